//! Real kernels: they boot, count, and repeat themselves. Skipped by name where QEMU cannot be had.
//!
//! The boots of all tests here run as the machine's other work does, several at a time: the digits
//! must not care.

#[path = "vm/functions.rs"]
mod functions;
#[path = "vm/objects.rs"]
mod objects;
#[path = "vm/schedulers.rs"]
mod schedulers;

use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session};
use schedsim::workload::{Closed, Phase, Tasks, Workload};
use schedsim::{Machine, Nanos, Time};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use worlds::experiment::{Subject, simulate};
use worlds::vm::conformance::{Collector, Conformance};
use worlds::vm::lockstep::INTERLEAVE;
use worlds::vm::{
    Foreign, Guest, GuestFile, Kernel, Lockstep, Proved, Qemu, Scheduler, boot, closed, newer_qemu,
    prove, yields,
};

/// A guest that does `jobs`; `None`, said aloud, without QEMU.
fn guest(kernel: &str, cpus: u16, jobs: Vec<Job>) -> Option<Guest> {
    let qemu = match newer_qemu::of(cpus, &|_| {}) {
        Ok(qemu) => qemu,
        Err(missing) => {
            eprintln!("skipped: real kernels: {missing}");
            return None;
        }
    };
    Some(Guest {
        qemu,
        kernel: Kernel::find(kernel, &|_| {}).unwrap_or_else(|error| panic!("{error}")),
        cpus,
        lockstep: (cpus > 1).then_some(Lockstep { cpus, interleave: INTERLEAVE }),
        memory: 512,
        nodes: 1,
        shape: None,
        session: Session { settle_ms: 2000, jobs, ..Session::default() },
        files: Vec::new(),
        wall_limit: Duration::from_secs(600),
    })
}

/// A guest in which `policy` is in charge while it does `jobs`; `None`, said aloud, without QEMU or
/// the schedulers' program.
fn guest_under(policy: &str, cpus: u16, jobs: Vec<Job>) -> Option<(Scheduler, Guest)> {
    let scheduler = match Scheduler::find(policy) {
        Ok(scheduler) => scheduler,
        Err(missing) => {
            eprintln!("skipped: sched_ext: {missing}");
            return None;
        }
    };
    let mut guest = guest("6.18", cpus, jobs)?;
    scheduler.require(&guest.kernel).unwrap_or_else(|error| panic!("{error}"));
    scheduler.install(&mut guest).unwrap_or_else(|error| panic!("{error}"));
    Some((scheduler, guest))
}

fn cost(proved: &Proved, job: usize) -> f64 {
    yields::cost(&proved.transcript, job).expect("samples").instructions
}

/// The shares of its tasks, undisturbed.
fn shares(measured: &closed::Measured) -> Vec<f64> {
    closed::shares(&measured.tasks).into_iter().map(|(_, share)| share).collect()
}

/// Two hogs, one of them nice, and one that sleeps.
fn mixed() -> Closed {
    let hog = || vec![Phase::forever(vec![Phase::Run(Nanos(1_000_000_000))])];
    let sleeper =
        vec![Phase::forever(vec![Phase::Run(Nanos(500_000)), Phase::Sleep(Nanos(3_000_000))])];
    let tasks = vec![
        Tasks::new("hog", hog()),
        Tasks { nice: Some(5), ..Tasks::new("nice", hog()) },
        Tasks::new("sleeper", sleeper),
    ];
    Closed { tasks, duration: Some(Nanos(100_000_000)), ..Closed::default() }
}

/// Groups by weight and by quota, and a hog in none.
fn grouped() -> Closed {
    let hog = |name: &str, cgroup: Option<&str>| {
        let phases = vec![Phase::forever(vec![Phase::Run(Nanos(1_000_000_000))])];
        Tasks { cgroup: cgroup.map(str::to_string), ..Tasks::new(name, phases) }
    };
    let groups = r#"{ "heavy": { "weight": 300 }, "light": {},
        "capped": { "max": "5ms", "period": "50ms" } }"#;
    Closed {
        tasks: vec![
            hog("a", Some("heavy")),
            hog("b", Some("heavy")),
            hog("c", Some("light")),
            hog("d", Some("capped")),
            hog("e", None),
        ],
        cgroups: serde_json::from_str(groups).unwrap(),
        duration: Some(Nanos(500_000_000)),
        ..Closed::default()
    }
}

/// Two hogs of the job's class.
fn hogs_for(duration: Nanos) -> Closed {
    let hog = || vec![Phase::forever(vec![Phase::Run(Nanos(1_000_000_000))])];
    Closed {
        tasks: vec![Tasks { count: 2, ..Tasks::new("hog", hog()) }],
        duration: Some(duration),
        ..Closed::default()
    }
}

/// Mars Pathfinder's inversion.
fn pathfinder(inherit: bool) -> Closed {
    let mut closed: Closed =
        serde_json::from_str(include_str!("../../schedsim/tests/engine/pathfinder.json")).unwrap();
    closed.mutexes.values_mut().for_each(|mutex| mutex.inherit = inherit);
    closed
}

#[test]
#[ignore = "long: tools/long"]
fn a_workload_ends_after_its_duration_in_every_real_time_class() {
    const MS: u64 = 1_000_000;
    let deadline = Class::Deadline { runtime: 4 * MS, deadline: 10 * MS, period: 10 * MS };
    let classes = [Class::Fifo(50), Class::Rr(99), deadline];
    // Real-time throttling and the server of ordinary tasks act after 950 ms.
    let cases = [300, 970].into_iter().flat_map(|ms| classes.map(|class| (ms, class)));
    let cases: Vec<(u64, Class)> = cases.collect();
    let jobs: Vec<Job> = cases
        .iter()
        .map(|&(ms, class)| {
            let mut workload = hogs_for(Nanos(ms * MS));
            let ordinary = Tasks {
                policy: schedsim::workload::SchedulingPolicy::Batch,
                ..Tasks::new("ordinary", workload.tasks[0].phases.clone())
            };
            workload.tasks.push(ordinary);
            Job::new("hogs", workload, class)
        })
        .collect();
    for (kernel, cpus) in [("6.1", 1), ("6.18", 1), ("6.18", 2)] {
        let Some(guest) = guest(kernel, cpus, jobs.clone()) else { return };
        let transcript = boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        let ends: Vec<u64> = transcript
            .events
            .iter()
            .filter_map(|event| match event {
                Event::JobEnd { ns, .. } => Some(*ns),
                _ => None,
            })
            .collect();
        for ((ms, class), end) in cases.iter().zip(ends) {
            let error = end as f64 / (ms * MS) as f64 - 1.0;
            // On two CPUs a deadline task that is served delays the end by up to its runtime.
            let most = if cpus == 1 { 0.002 } else { 0.015 };
            assert!(
                (0.0..most).contains(&error),
                "{kernel} on {cpus}: {class} ended after {end} ns instead of {ms} ms"
            );
        }
    }
}

#[test]
#[ignore = "long: tools/long"]
fn each_kernel_repeats_itself_on_one_cpu_and_the_newer_one_on_two_and_four() {
    let yields: Vec<Job> = [2, 32].map(|tasks| yields::job(tasks, Class::Other)).into();
    let with_mixed =
        yields.iter().cloned().chain(closed::jobs("mixed", &mixed(), Class::Other)).collect();
    let inversions = || {
        [false, true]
            .into_iter()
            .flat_map(|inherit| closed::jobs("pathfinder", &pathfinder(inherit), Class::Other))
    };
    let with_groups = |jobs: Vec<Job>| {
        jobs.into_iter()
            .chain(closed::jobs("groups", &grouped(), Class::Other))
            .collect::<Vec<Job>>()
    };
    let real_time = [yields::job(256, Class::Fifo(10))];
    let several = || closed::jobs("mixed", &mixed(), Class::Other);
    let guests = [
        guest("6.1", 1, with_groups(yields)),
        guest(
            "6.18",
            1,
            with_groups(with_mixed).into_iter().chain(inversions()).chain(real_time).collect(),
        ),
        guest("6.18", 2, several()),
        guest("6.18", 4, several()),
    ];
    let Some(mut guests) = guests.into_iter().collect::<Option<Vec<Guest>>>() else { return };
    guests[3].nodes = 2;
    // `prove` boots each twice and compares every line, those of the traces among them. Two boots with
    // 4 CPUs were seen to differ once, of 19 pairs, cause unknown: that may happen once here.
    let proved = prove(&guests, &|_, _| {}).or_else(|error| {
        let is_rare = error.to_string().contains("on 4 CPUs did not repeat itself");
        eprintln!("{error}");
        if is_rare { prove(&guests, &|_, _| {}) } else { Err(error) }
    });
    let proved = proved.unwrap_or_else(|error| panic!("{error}"));
    let [cfs, eevdf, two, four] = &proved[..] else { panic!("four guests") };
    for (proved, around) in [(cfs, 2050.0), (eevdf, 2800.0)] {
        let (few, many) = (cost(proved, 0), cost(proved, 1));
        assert!(
            (few / around - 1.0).abs() < 0.15,
            "a yield of two tasks takes {few} instructions, which was about {around}"
        );
        assert!(few < many && many < 1.3 * few, "a tree grows with the logarithm: {few}, {many}");
    }

    let measured = closed::Measured::of(&eevdf.transcript, 2).expect("both jobs end");
    let [hog, nice, sleeper] = shares(&measured)[..] else { panic!("three tasks") };
    // nice 0 has three times the weight of nice 5 (1024 and 335); the sleeper wants less than its
    // share.
    assert!((2.2..4.0).contains(&(hog / nice)), "{hog} {nice}");
    assert!(sleeper < hog, "{sleeper} {hog}");
    let traced = measured.read().expect("a trace");
    assert!(traced.summary.get("switches").is_some_and(|switches| switches > 20.0));
    assert!(traced.summary.get("wakeup_latency_ns_p50").is_some());

    // The quota leaves 90 % to weights of 3, 1 and 1; those of a group divide its share.
    for (proved, first) in [(cfs, 2), (eevdf, 4)] {
        let shares =
            shares(&closed::Measured::of(&proved.transcript, first).expect("both jobs end"));
        let close = shares
            .iter()
            .zip([0.27, 0.27, 0.18, 0.1, 0.18])
            .all(|(share, expected)| (share - expected).abs() < 0.02);
        assert!(close && shares.len() == 5, "{shares:?}");
    }

    // The bus manager waits for the radio, unless the holder of the bus inherits its priority.
    for (first, is_before) in [(6, false), (8, true)] {
        let measured = closed::Measured::of(&eevdf.transcript, first).expect("both jobs end");
        let [_, manager, radio] = &measured.tasks[..] else { panic!("three tasks") };
        assert_eq!(manager.ended_ns < radio.ended_ns, is_before, "{manager:?} {radio:?}");
    }

    // A real-time task that is alone takes 850 instructions: it need not switch.
    assert!(
        cost(eevdf, 10) > 1_500.0,
        "256 tasks take turns, and a yield takes {}",
        cost(eevdf, 10)
    );

    let nodes = |proved: &Proved| match proved.transcript.events[..] {
        [Event::Boot { nodes, .. }, ..] => nodes,
        _ => panic!("a kernel boots first"),
    };
    assert_eq!([nodes(two), nodes(four)], [1, 2]);
    for proved in [two, four] {
        let measured = closed::Measured::of(&proved.transcript, 0).expect("both jobs end");
        let [hog, nice, sleeper] = shares(&measured)[..] else { panic!("three tasks") };
        // Which of the hogs has the sleeper on its CPU is a matter of some instructions.
        assert!(hog + nice > 1.5 * sleeper, "{hog} {nice} {sleeper}");
    }
}

#[test]
fn a_guest_that_hangs_is_ended_by_its_own_clock_or_by_ours_and_says_where_it_is() {
    let nobody_writes = Tasks::new(
        "reader",
        vec![Phase::Read { pipe: "silent".to_string(), bytes: 1, partial: false }],
    );
    let workload = Closed { tasks: vec![nobody_writes], ..Closed::default() };
    let job = Job::new("silence", workload, Class::Other);
    let Some(hangs) = guest("6.18", 1, vec![job]) else { return };
    let by_its_own = failure(&hangs);
    for word in [
        "hung: no report for 30 s of its time",
        "\"event\":\"job-start\"",
        "what was running",
        "NMI",
    ] {
        assert!(by_its_own.contains(word), "{word:?} is not in {by_its_own}");
    }
    let by_ours = failure(&Guest { wall_limit: Duration::from_secs(1), ..hangs });
    // After one second it may still be in the firmware, which has no RIP but EIP.
    for word in ["was not done after 1 s", "IP="] {
        assert!(by_ours.contains(word), "{word:?} is not in {by_ours}");
    }
}

/// What is said of a guest that does not come to its end.
fn failure(guest: &Guest) -> String {
    match boot(guest, &mut |_| {}) {
        Err(error) if error.exit_code() == 3 => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_a_guest_that_panics_the_last_lines_are_shown() {
    let Some(mut guest) = guest("6.1", 1, Vec::new()) else { return };
    guest.files =
        GuestFile::program(Path::new("/bin/sh")).unwrap_or_else(|error| panic!("{error}"));
    guest.session.services =
        vec![["/bin/sh", "-c", "echo c > /proc/sysrq-trigger"].map(str::to_string).to_vec()];
    let said = failure(&guest);
    for word in [
        "panicked",
        "last report: {\"event\":\"boot\"",
        "sysrq triggered crash",
        "sysrq_handle_crash",
        "Comm: sh",
    ] {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

#[test]
fn of_a_kernel_that_ends_before_it_starts_the_runner_it_is_asked_for_its_console() {
    let Some(mut guest) = guest("6.1", 1, Vec::new()) else { return };
    // What it begins with is no instruction, and there is nobody yet to handle that: the machine is
    // reset.
    let mut image = std::fs::read(&guest.kernel.image).expect("a kernel");
    let begin = (usize::from(image[0x1f1]) + 1) * 512;
    image[begin..begin + 0x400].copy_from_slice(&[0x0f, 0x0b].repeat(0x200));
    let faults = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(faults.path(), image).expect("a kernel that faults");
    let opened = Kernel::open(faults.path()).unwrap_or_else(|error| panic!("{error}"));
    guest.kernel = Kernel { name: guest.kernel.name, release: guest.kernel.release, ..opened };
    let said = failure(&guest);
    for word in ["kernel 6.1 (6.1.", "did not start the runner", "CONFIG_SERIAL_8250_CONSOLE"] {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

#[test]
fn a_guest_that_hangs_with_interrupts_off_is_ended_by_its_watchdog_and_shows_what_was_running() {
    let Some((_, mut guest)) = guest_under("canary:spin", 1, vec![yields::job(2, Class::Other)])
    else {
        return;
    };
    (guest.session.settle_ms, guest.session.silence_s) = (1_000, 2);
    let said = failure(&guest);
    // The scheduler goes round in circles in its `enqueue`, the run queue's lock held.
    for word in [
        "hung: no report for 2 s of its time",
        "\"event\":\"job-start\"",
        "NMI: Not continuing",
        "canary_enqueue",
    ] {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
}

/// Programs of these names in a directory of their own, each a shell script.
fn fakes(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, script) in scripts {
        let path = directory.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    directory
}

const QEMU: (&str, &str) = ("qemu-system-x86_64", "echo QEMU emulator version 7.2.22");

#[test]
fn what_a_guest_needs_and_this_machine_has_not_is_said_with_what_to_do() {
    let refused = |directory: &Path, kernel: &str, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(["compare", "yield:2", "--on", "vm", "--kernel", kernel]);
        let path = format!("{}:/usr/bin:/bin", directory.display());
        let output = command
            .env("PATH", path)
            .env("XDG_CACHE_HOME", directory.join("cache"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word:?} is not in {said}"));
    };
    let old = fakes(&[("qemu-system-x86_64", "echo QEMU emulator version 5.2.0")]);
    refused(
        old.path(),
        "6.18",
        &["version 5.2.0 is too old, 7.2 is the oldest", "apt-get install"],
    );
    let site = r#"test "$1" != indextargets || echo http://site.invalid trixie"#;
    let moved_on = fakes(&[
        QEMU,
        ("apt-get", site),
        ("apt-cache", "echo linux-image-6.19.1+deb13-cloud-amd64"),
    ]);
    refused(
        moved_on.path(),
        "6.17",
        &["Debian has no kernel 6.17 in trixie-backports", "it has 6.19", "`--kernel PATH`"],
    );
    let offline = format!(
        r#"{site}
            case "$*" in
            *update*) echo "E: Could not connect to site.invalid" >&2; exit 100;;
            esac"#
    );
    let offline = fakes(&[QEMU, ("apt-get", &offline)]);
    refused(
        offline.path(),
        "6.18",
        &[
            "read the list of trixie-backports",
            "Could not connect",
            "Is there a network",
            "`--kernel PATH`",
        ],
    );
}

#[test]
fn a_full_disk_where_kernels_are_kept_is_said_and_leaves_nothing_half_done() {
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "skipped: it mounts a small disk, which needs root: sudo cargo test -p schedlab \
             --test vm"
        );
        return;
    }
    let site = r#"test "$1" != indextargets || echo http://site.invalid trixie"#;
    let download = format!(r#"{site}; case "$*" in *download*) echo > linux.deb;; esac"#);
    let unpack = r#"mkdir -p "$3/boot" &&
        head -c 4096 /dev/zero > "$3/boot/config-6.18.1-cloud-amd64" &&
        head -c 300000 /dev/zero > "$3/boot/vmlinuz-6.18.1-cloud-amd64""#;
    let names = "echo linux-image-6.18.1-cloud-amd64";
    let fakes = fakes(&[QEMU, ("apt-get", &download), ("apt-cache", names), ("dpkg", unpack)]);
    // Too small for the package unpacked, and then for a second copy of the kernel in it.
    for (size, word) in
        [("100k", "dpkg cannot unpack the package"), ("400k", "No space left on device")]
    {
        let script = format!(
            "mount -t tmpfs -o size={size} none /mnt && PATH={}:$PATH XDG_CACHE_HOME=/mnt {} \
             compare yield:2 --on vm; echo $? && ls -A /mnt/schedlab/kernels",
            fakes.path().display(),
            env!("CARGO_BIN_EXE_schedlab")
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output()
            .expect("unshare of util-linux");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(word) && said.contains("XDG_CACHE_HOME"), "{said}");
        let code = String::from_utf8_lossy(&output.stdout).trim().to_string();
        assert!(
            ["2", "77"].contains(&code.as_str()),
            "nothing may be left there, and this is: {code}; {said}"
        );
    }
}

/// The processes whose parent is `pid`.
fn children(pid: u32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |of: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    numbers.filter(|&of| parent(of) == Some(pid)).collect()
}

#[test]
fn a_killed_program_leaves_no_guest_behind() {
    if guest("6.18", 1, Vec::new()).is_none() {
        return;
    }
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab
        .args(["compare", "yield:2", "--on", "vm", "--settle", "1000s"])
        .stderr(std::process::Stdio::null());
    let mut schedlab = schedlab.spawn().expect("the program starts");
    // Looks for a minute.
    let until = |what: &dyn Fn() -> bool| {
        (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            what()
        })
    };
    assert!(until(&|| !children(schedlab.id()).is_empty()), "no guest is started");
    let guests = children(schedlab.id());
    schedlab.kill().expect("SIGKILL");
    schedlab.wait().expect("it can be waited for");
    let is_over = |pid: &i32| !Path::new(&format!("/proc/{pid}/fd/0")).exists();
    assert!(until(&|| guests.iter().all(is_over)), "of {guests:?} some live on");
}

#[test]
#[ignore = "long: tools/long"]
fn what_runs_in_a_guest_comes_to_the_same_alone_and_after_others_and_members_differ() {
    if guest("6.1", 1, Vec::new()).is_none() {
        return;
    }
    // The makespan of `hogs:2`, exactly, with all rows of it.
    let rows = |arguments: &[&str]| -> Vec<serde_json::Value> {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = schedlab
            .arg("compare")
            .args(arguments)
            .args(["--on", "vm", "--kernel", "6.1", "--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        results["rows"].as_array().unwrap().clone()
    };
    let of = |rows: &[serde_json::Value], policy: &str| -> Vec<(String, String)> {
        let own = rows
            .iter()
            .filter(|row| row["workload"] == "hogs:2?work=30ms" && row["candidate"] == policy);
        // A ratio to the baseline, which one of the two has not.
        let own = own.filter(|row| row["metric"] != "ngrr");
        own.map(|row| {
            (
                format!("{} {} {}", row["metric"], row["subject"], row["point"]["number"]),
                row["value"].to_string(),
            )
        })
        .collect()
    };
    let alone = rows(&["hogs:2?work=30ms", "--policy", "kernel:fifo:50", "--ensemble", "1"]);
    let after = rows(&[
        "hogs:1?work=10ms",
        "--then",
        "hogs:2?work=30ms",
        "--policy",
        "kernel:other,kernel:fifo:50",
        "--ensemble",
        "1",
    ]);
    let (alone, after) = (of(&alone, "kernel:fifo:50"), of(&after, "kernel:fifo:50"));
    assert!(alone.len() > 20 && alone == after, "{alone:?} is not {after:?}");

    let members =
        rows(&["hogs:2?work=30ms", "--policy", "kernel:other,kernel:batch", "--ensemble", "3"]);
    let makespan = |policy: &str| {
        let is_it =
            |row: &&serde_json::Value| row["candidate"] == policy && row["metric"] == "makespan_ns";
        members.iter().find(is_it).unwrap().clone()
    };
    let of_batch = makespan("kernel:batch");
    assert_eq!(of_batch["runs"], 3, "{of_batch}");
    assert_eq!(of_batch["seed"], 1, "{of_batch}");
    assert!(of_batch["ci_high"].as_f64() > of_batch["ci_low"].as_f64(), "{of_batch}");
    assert!(of_batch["verdict"].is_string() && of_batch["effect_high"].is_number(), "{of_batch}");
}

/// Under a policy that compares sums of run times two boots differ from a moment on that hangs on a
/// microsecond, and the simulator is one boot more.
#[test]
#[ignore = "long: tools/long"]
fn boots_differ_by_microseconds_and_a_simulation_is_as_near_as_another_boot() {
    if guest_under("eevdf", 1, Vec::new()).is_none() {
        return;
    }
    let mixed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/mixed.toml");
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab.args(["diff", "--decisions"]).arg(mixed).args([
        "--policy",
        "eevdf",
        "--ensemble",
        "2",
        "--format",
        "json",
    ]);
    let output = schedlab.output().expect("it runs");
    // 4: the 99th percentile of a latency, of two members, may miss its goal.
    let answered = matches!(output.status.code(), Some(0 | 4));
    assert!(answered, "{}", String::from_utf8_lossy(&output.stderr));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |metric: &str| -> Vec<(String, f64)> {
        let rows =
            results["rows"].as_array().expect("rows").iter().filter(|row| row["metric"] == metric);
        rows.map(|row| {
            (
                row["point"]["member"].to_string().trim_matches('"').to_string(),
                row["value"].as_f64().expect("a value"),
            )
        })
        .collect()
    };
    let (own, simulated) = (of("equal_dispatches_itself"), of("equal_dispatches"));
    let [(boots, own)] = &own[..] else { panic!("one pair of boots: {own:?}") };
    let [(first, one), (second, other)] = &simulated[..] else {
        panic!("two boots: {simulated:?}")
    };
    assert_eq!([boots, first, second], ["1,2", "1", "2"]);
    // Among three hogs and five sleepers some two thirds of the turns are equal, whatever is
    // compared.
    assert!(
        *own < 0.9 && (one + other) / 2.0 > own - 0.1,
        "{own} of the kernel with itself, {one} and {other} of the simulator"
    );
}

/// Schedulers in BPF are judged in a guest, and what is none has a verdict that says why.
#[test]
#[ignore = "long: tools/long"]
fn candidates_are_judged_in_a_guest() {
    if newer_qemu::of(1, &|_| {}).is_err() || std::env::var_os("SCHEDLAB_SCX").is_none() {
        return eprintln!("skipped: a judge of guests: no QEMU, or SCHEDLAB_SCX is not set");
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let suite = "kernel = \"6.18\"\nbaseline = \"kernel:other\"\ntraining = [\"yield:4\"]\n\
                 seeds = 2\n[[score]]\nmetric = \"instructions_per_yield\"\n";
    write("suite.toml", suite);
    write("bad.bpf.c", "int main( {");
    let judged = |lines: [&str; 4]| -> Vec<serde_json::Value> {
        write("candidates.jsonl", &lines.join("\n"));
        let run = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .args(["judge", "suite.toml", "candidates.jsonl"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let text = String::from_utf8(run.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let lines = [
        r#"{"id": "same", "policy": "kernel:other"}"#,
        r#"{"id": "rr", "policy": "bpf:rr"}"#,
        r#"{"id": "bad", "bpf": "bad.bpf.c"}"#,
        r#"{"id": "python", "python": "policy.py"}"#,
    ];
    let mut all = judged(lines);
    let verdicts: Vec<&str> = all.iter().filter_map(|one| one["verdict"].as_str()).collect();
    assert_eq!(verdicts[..2], ["score", "score"]);
    assert!(["compile-error", "missing"].contains(&verdicts[2]), "{}", all[2]);
    assert_ne!(verdicts[3], "score");
    assert_eq!(all[0]["score"], 1.0);
    let score = all[1]["score"].as_f64().unwrap();
    assert!((0.5..0.99).contains(&score), "BPF costs more than the kernel's own: {score}");
    let mut reversed = lines;
    reversed.reverse();
    all.reverse();
    assert_eq!(judged(reversed), all, "in any order");
}
