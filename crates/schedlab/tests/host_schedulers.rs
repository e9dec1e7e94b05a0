//! Schedulers of sched_ext on "this machine": a guest whose kernel has it, in which the program runs
//! itself. Skipped by name where QEMU or the schedulers' program cannot be had.

use program::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;
use worlds::vm::{Scheduler, newer_qemu};

/// The program and the schedulers' without what debuggers need: a guest has them in memory.
fn stripped(folder: &Path) -> Option<[PathBuf; 2]> {
    let scheduler = match Scheduler::find("bpf:rr") {
        Ok(scheduler) => scheduler,
        Err(missing) => {
            eprintln!("skipped: schedulers on this machine: {missing}");
            return None;
        }
    };
    if let Err(missing) = newer_qemu::of(1, &|_| {}) {
        eprintln!("skipped: schedulers on this machine: {missing}");
        return None;
    }
    let strip = |from: &Path, name: &str| {
        let to = folder.join(name);
        let said = Command::new("strip").arg("-s").arg("-o").arg(&to).arg(from).status();
        assert!(said.expect("binutils are there").success(), "strip {name}");
        to
    };
    let program = Path::new(env!("CARGO_BIN_EXE_schedlab"));
    Some([strip(program, "schedlab"), strip(scheduler.program(), "schedlab-scx")])
}

/// What `script` writes in a guest; `SCHEDLAB` and `SCX` in it are the two programs.
fn written(script: &str) -> Option<String> {
    let scratch = Scratch::new().expect("a folder");
    let [program, scheduler] = stripped(scratch.path())?;
    let script = script
        .replace("SCHEDLAB", &program.to_string_lossy())
        .replace("SCX", &scheduler.to_string_lossy());
    let out = scratch.path().join("out");
    let run = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["run", "--on", "vm", "--memory", "2048", "--stdout"])
        .arg(&out)
        .arg("--with")
        .arg(&program)
        .arg("--with")
        .arg(&scheduler)
        .args(["--with", "/usr/bin/timeout", "--", "sh", "-c", &script])
        .output()
        .expect("it starts");
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    assert!(run.status.success(), "{}\n{text}", String::from_utf8_lossy(&run.stderr));
    Some(text)
}

/// The state that the kernel said after the word.
fn state_after(text: &str, word: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(word)).map(|state| state.trim().to_string())
}

/// The involuntary switches of a candidate, of its first row.
fn stopped(text: &str, candidate: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let is_it = fields.get(4) == Some(&candidate);
        let metric = fields.iter().position(|field| *field == "involuntary_switches")?;
        fields.get(metric + 2).filter(|_| is_it)?.parse().ok()
    })
}

#[test]
#[ignore = "long: tools/long"]
fn a_scheduler_is_loaded_for_its_rounds_only_and_is_gone_after_any_end() {
    let script = r#"
        export HOME=/tmp
        state() { read now < /sys/kernel/sched_ext/state; echo "$1 $now"; }
        compare() { SCHEDLAB compare 'hogs:4?work=20ms' --on host --ensemble 2 --format csv --policy "$@" 2>&1; echo "exit $?"; }
        state before
        compare kernel:other,bpf:rr
        state after
        compare 'kernel:other,scx:/usr/bin/timeout 0.001 SCX bpf:rr --this-machine'
        state ended
        SCHEDLAB compare 'hogs:2?work=30s' --on host --ensemble 2 --policy bpf:rr > /tmp/killed 2>&1 &
        victim=$!
        now=no
        while [ "$now" != enabled ]; do sleep 0.05; read now < /sys/kernel/sched_ext/state; done
        state running
        SCHEDLAB compare hogs:2 --on host --ensemble 2 --policy bpf:ruler 2>&1; echo "beside $?"
        kill -9 $victim
        for second in 1 2 3 4 5 6 7 8; do sleep 0.5; read now < /sys/kernel/sched_ext/state; [ $now = disabled ] && break; done
        state killed
        for process in /proc/[0-9]*/comm; do read name < $process; case $name in schedlab*) echo "left $name"; esac; done
    "#;
    let Some(text) = written(script) else { return };
    let exits: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("exit ")).collect();
    assert_eq!(exits, ["0", "4"], "{text}");
    for (word, state) in [
        ("before", "disabled"),
        ("after", "disabled"),
        ("ended", "disabled"),
        ("running", "enabled"),
        ("killed", "disabled"),
    ] {
        assert_eq!(state_after(&text, word).as_deref(), Some(state), "{word}: {text}");
    }
    // It ran: with slices of 20 ms the four hogs are stopped far less often than by the kernel.
    let stopped = |candidate: &str| stopped(&text, candidate).expect(&text);
    assert!(2.0 * stopped("bpf:rr") < stopped("kernel:other"), "{text}");
    assert!(text.contains("it ended by itself"), "{text}");
    assert_eq!(state_after(&text, "beside").as_deref(), Some("77"), "{text}");
    assert!(text.contains("is in charge of this machine"), "{text}");
    assert!(!text.contains("left schedlab"), "{text}");
}
