//! Any program in a guest: it ends as it does here, its tasks are counted and nobody else's, and a
//! program that goes beyond a limit or takes its guest down is reported by name. Skipped by name
//! where QEMU cannot be had.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use worlds::vm::Qemu;

/// Whether guests can run here.
fn has_guests() -> bool {
    Qemu::find().inspect_err(|missing| eprintln!("skipped: programs in guests: {missing}")).is_ok()
}

fn schedlab(directory: &Path, arguments: &[&str]) -> Output {
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab.current_dir(directory).args(arguments).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The rows of a command's answer, which must be one.
fn rows(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["rows"].as_array().expect("rows").clone()
}

/// A script with an interpreter, a file that it is given, programs in a pipe, bytes that are no
/// text, and an exit status of its own.
#[test]
#[ignore = "long: tools/long"]
fn a_program_writes_and_ends_as_it_does_here_and_the_same_bytes_twice() {
    if !has_guests() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(
        at("job.sh"),
        "#!/bin/sh\nsort \"$1\" | sha256sum\nprintf '\\377\\000%s' \"$2\"\necho oops >&2\nexit 3\n",
    )
    .unwrap();
    fs::set_permissions(at("job.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(
        at("data"),
        (0..999).map(|line| format!("{}\n", line * 7919 % 1000)).collect::<String>(),
    )
    .unwrap();
    let here = Command::new(at("job.sh"))
        .args(["data", "a b"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let run = |random: &str| {
        let words = ["--", "./job.sh", "data", "a b", "sort", "sha256sum", random];
        let mut arguments =
            vec!["run", "--on", "vm", "--format", "json", "--stdout", "out", "--stderr", "err"];
        arguments.extend(words);
        let rows = rows(&schedlab(directory.path(), &arguments));
        (rows, fs::read(at("out")).unwrap(), fs::read(at("err")).unwrap())
    };
    let first = run("");
    assert_eq!((&first.1, &first.2), (&here.stdout, &here.stderr), "{}", text(&first.1));
    assert!(first.0.iter().all(|row| row["point"]["exit_status"] == "exit status: 3"));
    assert_eq!(first, run(""), "the same digits and bytes");
}

/// A program of a package runs in a file system of packages alone, which nothing of this machine is
/// in.
#[test]
#[ignore = "long: tools/long"]
fn a_program_that_this_machine_has_not_comes_in_a_package() {
    if !has_guests() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let more = ["run", "--on", "vm", "--no-events", "--package", "sqlite3", "--stdout", "out"];
        schedlab(directory.path(), &[&more, words].concat())
    };
    let script = "sqlite3 :memory: 'select 6 * 7'; test -e /usr/bin/apt-get || echo nothing else";
    let output = run(&["--", "sh", "-c", script]);
    if output.status.code() == Some(77) {
        return eprintln!("skipped: packages in guests: {}", text(&output.stderr));
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&fs::read(directory.path().join("out")).unwrap()), "42\nnothing else\n");
    let output = run(&["--", "apt-get"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("its file system has no such program"));
}

/// What a program prints is a metric: with an interval over members, or a reason. It prints where a
/// guest has what programs look for: terminals, the kernel's build options and its file systems.
#[test]
fn a_number_that_a_program_prints_is_a_metric() {
    if !has_guests() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "read release < /proc/sys/kernel/osrelease; test -c /dev/pts/ptmx && \
                  test -s /boot/config-$release && test -d /sys/kernel/debug/sched && \
                  test -d /sys/kernel/tracing/events && grep -q '/sys/fs/bpf bpf' /proc/mounts && \
                  echo '{\"a\": [1, 41.5]}'; echo b=7 >&2";
    let mut arguments =
        vec!["compare", "--on", "vm", "--format", "json", "--ensemble", "2", "--no-events"];
    for metric in ["a=json:/a/1,us,lower", "b=regex:b=(.*),count,higher", "c=json:/c,s,lower"] {
        arguments.extend(["--metric", metric]);
    }
    arguments.extend(["--", "sh", "-c", script]);
    let rows = rows(&schedlab(directory.path(), &arguments));
    let of = |metric: &str| {
        let row = rows.iter().find(|row| row["metric"] == metric);
        row.unwrap_or_else(|| panic!("no {metric}")).clone()
    };
    let (a, b, c) =
        (of("printed:a:us:lower"), of("printed:b:count:higher"), of("printed:c:s:lower"));
    assert_eq!((&a["value"], &a["unit"], &a["runs"]), (&41.5.into(), &"us".into(), &2.into()));
    assert_eq!(b["value"], 7.0);
    assert!(c["value"].is_null() && c["note"].to_string().contains("has no /c"), "{c}");
    // Undisturbed it ran, and what only the recorded run has is null, with the reason.
    let (makespan, switches) = (of("makespan_ns"), of("switches"));
    assert!(makespan["value"].as_f64().is_some_and(|ns| ns > 0.0), "{makespan}");
    assert!(
        switches["value"].is_null() && switches["note"].to_string().contains("--no-events"),
        "{switches}"
    );
}

/// Each task is there by name, and none of the guest's own: the CPU time of all is that of the
/// programs together, and work that is done four times takes four times as long.
#[test]
#[ignore = "long: tools/long"]
fn the_tasks_of_a_program_are_counted_and_nobody_elses() {
    if !has_guests() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data"), vec![b'x'; 300_000]).unwrap();
    let cpu_times = |times: usize| {
        let script = "sha256sum data; ".repeat(times) + "cksum data";
        let arguments = ["run", "--on", "vm", "--format", "json", "--", "sh", "-c", &script];
        let rows = rows(&schedlab(directory.path(), &arguments));
        let of = |subject: Option<&str>, metric: &str| {
            let is_it =
                |row: &&Value| row["metric"] == metric && row["subject"].as_str() == subject;
            rows.iter().find(is_it).and_then(|row| row["value"].as_f64())
        };
        let mut programs: Vec<&str> =
            rows.iter().filter_map(|row| row["subject"].as_str()).collect();
        programs.sort_unstable();
        programs.dedup();
        assert_eq!(programs, ["cksum", "sh", "sha256sum"]);
        let each: Vec<f64> = programs
            .iter()
            .map(|program| of(Some(program), "cpu_time_ns").expect("a CPU time"))
            .collect();
        let all = of(None, "cpu_time_ns").expect("a CPU time");
        assert!((each.iter().sum::<f64>() - all).abs() < 1.0, "{each:?} are not {all}");
        let makespan = of(None, "makespan_ns").expect("a makespan");
        // The recorded run takes longer, by what recording takes.
        assert!(all > 0.8 * makespan && all < 1.2 * makespan, "{all} in {makespan}");
        assert!(of(Some("sha256sum"), "run_delay_ns").is_some());
        each
    };
    let (once, fourfold) = (cpu_times(1), cpu_times(4));
    assert!((fourfold[2] / once[2] - 4.0).abs() < 0.1, "{once:?} {fourfold:?}");
    assert!((fourfold[0] / once[0] - 1.0).abs() < 0.1, "{once:?} {fourfold:?}");
}

/// What a program of the shell does to its guest, and what is then said, with which exit code.
#[test]
#[ignore = "long: tools/long"]
fn a_program_beyond_a_limit_or_that_takes_its_guest_down_is_told_by_name() {
    if !has_guests() {
        return;
    }
    // The code of the init becomes zeros.
    const KILL_INIT: &str = "while read -r range how rest; do case $how in r-xp) break;; esac; \
                             done < /proc/1/maps; begin=$((0x${range%-*} / 4096)); \
                             end=$((0x${range#*-} / 4096)); dd if=/dev/zero of=/proc/1/mem \
                             bs=4096 seek=$begin count=$((end - begin)) conv=notrunc; sleep 9";
    let cases: [(&str, i32, &[&str]); 7] = [
        ("sleep 1000", 5, &["was not done after 500ms on the guest's clock"]),
        ("f() { f | f & }; f; sleep 9", 5, &["tasks at a time"]),
        ("x=12345678; while :; do x=$x$x; done", 5, &["MiB of memory", "out of memory"]),
        ("while :; do echo 0123456789012345678901234567890123456789; done", 5, &["MiB of output"]),
        (KILL_INIT, 3, &["killed the init", "Attempted to kill init"]),
        ("echo c > /proc/sysrq-trigger", 3, &["panicked while", "sysrq triggered crash"]),
        ("echo o > /proc/sysrq-trigger; sleep 9", 3, &["was switched off", "while"]),
    ];
    for (script, code, words) in cases {
        let timeout = if script.starts_with("sleep") { "500ms" } else { "30s" };
        let arguments = ["run", "--on", "vm", "--memory", "256", "--timeout", timeout];
        let arguments = [&arguments[..], &["--", "sh", "-c", script]].concat();
        let output = schedlab(Path::new("/"), &arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {said}{}", text(&output.stdout));
        let name = format!("`sh -c {script}`");
        for word in words.iter().copied().chain([name.as_str()]) {
            assert!(said.contains(word), "{script}: {word:?} is not in {said}");
        }
    }
    // Every process but the init, which watches: the guest goes on, and so does the program.
    let arguments = ["run", "--on", "vm", "--", "sh", "-c", "kill -9 -1; kill -9 1; echo alive"];
    let output = schedlab(Path::new("/"), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("exit status: 0") && said.contains("alive"), "{said}");
}

#[test]
fn what_cannot_run_in_a_guest_is_refused_before_it_boots() {
    if !has_guests() {
        return;
    }
    let compare = ["compare", "--on", "vm", "--ensemble", "1"];
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--", "no-such-command"], 2, "there is no such command"),
        (&["--apply", "sh: batch", "--", "sh"], 2, "leave --apply out"),
        (&["--root", "/etc/passwd", "--", "sh"], 3, "neither a directory nor an archive"),
        (&["--with", "/no/such/file", "--", "sh"], 3, "/no/such/file"),
        (&["--", "sh", "-c", "exit 3"], 3, "ended with exit status: 3"),
    ];
    for (more, code, word) in cases {
        let output = schedlab(Path::new("/"), &[&compare[..], more].concat());
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(word), "{more:?}: {said}");
    }
    let directory = tempfile::tempdir().unwrap();
    let large = fs::File::create(directory.path().join("large")).unwrap();
    large.set_len(300 << 20).unwrap();
    let output = schedlab(directory.path(), &[&compare[..], &["--", "cat", "large"]].concat());
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("give --memory 1024"), "{said}");
}
