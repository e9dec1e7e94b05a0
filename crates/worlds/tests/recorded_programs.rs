//! Real programs: compiled here, recorded with causes, read as programs, and simulated.
//!
//! They need schedlab's recorder (`SCHEDLAB_RECORDER`), the right to use it, and a C compiler. Where
//! one is missing, the tests say which, and pass.

use formats::export::{described, write_description};
use formats::import;
use formats::workload::Workload as Named;
use schedsim::TaskId;
use schedsim::metrics::{Summary, TaskSummary};
use schedsim::trace::Observer;
use schedsim::workload::{
    Action, Affinity, Eventfd, Operation, Script, Source, Step, TaskClass, Trigger, Watched, Within,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use worlds::experiment::{CostOverrides, Reading, Recorded, Subject, parse_policy, simulate};
use worlds::host::record::{Detail, record};

/// A folder of a test's own, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        // Two tests may record the same program at once.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("schedlab-recorded-{name}-{process}-{number}");
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a scratch folder");
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles a program and records a run of it, with its scratch folder as its argument; `None` where
/// that is not possible.
fn recorded(name: &str) -> Option<(Scratch, PathBuf)> {
    recorded_with(name, &[])
}

fn recorded_with(name: &str, options: &[&str]) -> Option<(Scratch, PathBuf)> {
    let (scratch, program) = compiled(name)?;
    let mut command = Command::new(program);
    command.arg(&scratch.0);
    run_of(scratch, &command, options)
}

/// Compiles a program into a folder of its own; `None` without a compiler.
fn compiled(name: &str) -> Option<(Scratch, PathBuf)> {
    let scratch = Scratch::new(name);
    let program = scratch.0.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded_programs")
        .join(name)
        .with_extension("c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-pthread", "-o"]).args([&program, &source]);
    match cc.status() {
        Ok(status) => assert!(status.success(), "{name}.c does not compile"),
        Err(error) => {
            eprintln!("skipped: no C compiler: {error}");
            return None;
        }
    }
    Some((scratch, program))
}

/// Records a run of a command.
fn run_of(scratch: Scratch, command: &Command, options: &[&str]) -> Option<(Scratch, PathBuf)> {
    let Some(recorder) = std::env::var_os("SCHEDLAB_RECORDER") else {
        eprintln!("skipped: SCHEDLAB_RECORDER names no recorder");
        return None;
    };
    let recording = scratch.0.join("a.rec");
    let mut run = Command::new(recorder);
    run.args(options)
        .arg("-o")
        .arg(&recording)
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args());
    let output = run.output().expect("the recorder starts");
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some((scratch, recording))
}

fn read(path: &Path) -> Recorded {
    let reading = Reading { allow_lost: true, ..Reading::default() };
    let read = |path: &Path, options, observers: Vec<&mut dyn Observer>| {
        import::read(path, &options, observers)
            .map_err(|error| program::Error::Input(error.to_string()))
    };
    Recorded::load(path, reading, CostOverrides::default(), read).expect("a recording")
}

/// Wake-ups of the tasks of this name.
fn wakeups(recorded: &Recorded, name: &str, summary: &Summary) -> u32 {
    let is_named = |task: &&TaskSummary| {
        recorded.recording.tasks.get(task.task.index()).is_some_and(|info| info.name == name)
    };
    summary.tasks.iter().filter(is_named).map(|task| task.wakeups).sum()
}

fn replayed(recorded: &Recorded, policy: &str, cpus: u16) -> Summary {
    let subject = recorded.subject();
    let policy = parse_policy(policy).unwrap();
    let run = simulate(subject, &subject.machine(cpus), &policy, (1, None), false, None);
    run.unwrap_or_else(|error| panic!("{policy}: {error}")).summary
}

/// Whether the wake-ups of a replay are as many as the recorded ones, but for a few.
fn wakes_as_often(recorded: &Recorded, name: &str, policy: &str, cpus: u16) {
    let wanted = wakeups(recorded, name, &recorded.summary);
    let found = wakeups(recorded, name, &replayed(recorded, policy, cpus));
    let allowed = wanted / 20;
    assert!(
        found.abs_diff(wanted) <= allowed,
        "{found} of {wanted} wake-ups under {policy} on {cpus} CPUs"
    );
}

#[test]
fn barriers_and_joins_of_a_pthread_program_are_recognised() {
    // A thread that is preempted between its arrival and its call arrives unseen: very seldom.
    for attempt in 1..=3 {
        let Some((_scratch, path)) = recorded("barrier") else { return };
        let read = read(&path);
        println!("{}", read.headline());
        let barriers = &read.workload.shared.barriers;
        if attempt < 3 && barriers.iter().all(|barrier| barrier.tasks == 0) {
            continue;
        }
        let tasks: Vec<u32> = barriers.iter().map(|barrier| barrier.tasks).collect();
        assert_eq!(tasks.iter().filter(|tasks| **tasks > 0).collect::<Vec<_>>(), [&4], "{tasks:?}");
        let joins = read
            .workload
            .tasks
            .iter()
            .flat_map(|task| task.script.steps())
            .filter(|step| matches!(step.then, Action::Do(Operation::Join(_))));
        assert!(joins.count() >= 1, "the main thread waits for the end of another");
        let (explained, _) = read.replay.wakeups.shares().unwrap();
        assert!(explained > 0.95, "{:?}", read.replay);
        for (policy, cpus) in [("eevdf", 2), ("fifo", 1), ("take:rr", 2)] {
            wakes_as_often(&read, "barrier", policy, cpus);
        }
        return;
    }
}

/// What each task of this name does, in order of the tasks.
fn operations(recorded: &Recorded, name: &str) -> Vec<Vec<Operation>> {
    let tasks = recorded.workload.tasks.iter().filter(|task| task.info.name == name);
    let operation = |then| if let Action::Do(operation) = then { Some(operation) } else { None };
    let of = |script: &Script| script.steps().filter_map(|step| operation(step.then)).collect();
    tasks.map(|task| of(&task.script)).collect()
}

/// Forty processes had one number, each after the other's end.
#[test]
fn processes_with_one_number_are_different_tasks() {
    let Some((_scratch, path)) = recorded("reuse") else { return };
    let read = read(&path);
    println!("{}{:?}", read.headline(), read.recording.report.warnings);
    if read.recording.report.pids_reused == 0 {
        eprintln!("skipped: a process may not choose its number here");
        return;
    }
    // Others on the machine may have numbers of ended tasks, too.
    assert!(read.recording.report.pids_reused >= 40);
    let bytes = |of: &Vec<Operation>| match of.as_slice() {
        [Operation::Write { bytes, .. }] => Some(*bytes),
        _ => None,
    };
    let written: Vec<u64> = operations(&read, "reuse").iter().filter_map(bytes).collect();
    assert_eq!(written, (1..=40).collect::<Vec<u64>>(), "each life has its own calls");
    assert_eq!(read.replay.doubted_objects, 0);
    let (explained, _) = read.replay.wakeups.shares().expect("calls");
    assert!(explained > 0.95, "{:?}", read.replay);
    for (policy, cpus) in [("eevdf", 2), ("fifo", 1)] {
        replayed(&read, policy, cpus);
    }
}

/// In a namespace of pids, `wait4` returns numbers that are others' outside.
#[test]
fn waits_in_a_namespace_of_pids_are_explained_or_counted() {
    let script = "i=0; while [ $i -lt 20 ]; do sleep 0.002; i=$((i+1)); done";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", script]);
    if !Command::new("unshare")
        .args(["--pid", "--fork", "true"])
        .status()
        .is_ok_and(|of| of.success())
    {
        eprintln!("skipped: no namespace of pids may be made here");
        return;
    }
    let Some((_scratch, path)) = run_of(Scratch::new("namespace"), &command, &[]) else { return };
    let read = read(&path);
    println!("{}", read.headline());
    let waits = operations(&read, "sh").concat();
    let joins = waits.iter().filter(|of| matches!(of, Operation::Join(_) | Operation::Take(_)));
    println!("{} waits, {} doubted objects", joins.clone().count(), read.replay.doubted_objects);
    assert!(joins.count() >= 20 || read.replay.doubted_objects >= 20, "{:?}", read.replay);
    for policy in ["eevdf", "fifo"] {
        replayed(&read, policy, 2);
    }
}

/// perf has no objects of the kernel: descriptors are followed from call to call. What it explains is
/// held against what the recorder of causes explains of the same program.
#[test]
fn calls_that_perf_recorded_explain_what_descriptors_carry() {
    let Some((scratch, program)) = compiled("carriers") else { return };
    let by_perf = scratch.0.join("perf.data");
    let run = [program.clone().into_os_string(), "some".into()];
    match record(&run, &by_perf, Detail::Calls) {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    }
    let perf = read(&by_perf);
    println!("{}", perf.headline());
    let carriers = |of: &Recorded| {
        let shared = &of.workload.shared;
        // Ends of tasks and new programs count, too.
        let counters = shared.eventfds.iter().filter(|of| of.name.starts_with("eventfd "));
        (shared.pipes.len(), shared.sockets.len(), counters.count())
    };
    assert_eq!(carriers(&perf), (2, 1, 1), "{:?}", perf.workload.shared);
    let (explained, _) = perf.replay.wakeups.shares().expect("calls");
    assert!(explained > 0.9, "{:?}", perf.replay);
    assert_eq!(perf.replay.doubted_objects, 0);
    replayed(&perf, "eevdf", 2);
    // A recording of the scheduler alone has no calls.
    let alone = scratch.0.join("alone.data");
    record(&run, &alone, Detail::Scheduling).expect("perf");
    assert_eq!(read(&alone).recording.report.causes, 0);
    let mut command = Command::new(&program);
    command.arg("some");
    let Some((_scratch, by_bpf)) = run_of(scratch, &command, &[]) else { return };
    let bpf = read(&by_bpf);
    println!("{}", bpf.headline());
    let (known, _) = bpf.replay.wakeups.shares().expect("calls");
    println!("explained by perf {explained:.3}, by the recorder of causes {known:.3}");
    assert_eq!(carriers(&bpf), carriers(&perf));
    assert!(known > explained - 0.05, "{known} {explained}");
    let wakes = |of: &Recorded| wakeups(of, "carriers", &replayed(of, "fifo", 1));
    let (by_bpf, by_perf) = (wakes(&bpf), wakes(&perf));
    println!("wake-ups under FIFO on one CPU: {by_bpf} and {by_perf}");
    assert!(by_bpf.abs_diff(by_perf) <= by_bpf / 10, "{by_bpf} {by_perf}");
}

/// Most calls of a lock reach no kernel. Those that do are no barrier and no mutex: they stay tokens,
/// and are named.
#[test]
fn locks_without_the_calls_of_a_library_are_futex_tokens() {
    let Some((_scratch, path)) = recorded("locks") else { return };
    let read = read(&path);
    let wakeups = read.replay.wakeups;
    println!("{}", read.headline());
    assert!(read.workload.shared.barriers.iter().all(|barrier| barrier.tasks == 0));
    assert!(wakeups.futex_tokens > 100, "{wakeups:?}");
    assert!(read.headline().contains("% futex tokens)"), "{}", read.headline());
    for policy in ["eevdf", "fifo"] {
        replayed(&read, policy, 2);
    }
}

/// The requests of a program's tasks by device, without those that take no time.
fn requests(recorded: &Recorded) -> Vec<(String, u16, usize)> {
    let steps = || recorded.workload.tasks.iter().flat_map(|task| task.script.steps());
    let of = |number: usize| {
        let is_its = |step: &Step| match step.then {
            Action::Do(Operation::Io { device, .. }) => device as usize == number,
            _ => false,
        };
        steps().filter(is_its).count()
    };
    let devices = recorded.workload.shared.devices.iter().enumerate();
    let all = devices.map(|(number, device)| (device.name.clone(), device.channels, of(number)));
    all.filter(|(_, _, requests)| *requests > 0).collect()
}

/// Whether files of this folder are on a device.
fn is_on_a_device(folder: &Path) -> bool {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(folder).output();
    let kind = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    let is = kind.is_ok_and(|kind| !["tmpfs", "ramfs", ""].contains(&kind.as_str()));
    if !is {
        eprintln!("skipped: the temporary folder is in memory");
    }
    is
}

/// `requests` are to one file system, and nearly all of what the program waits for.
fn waits_for_the_device(read: &Recorded, name: &str, at_least: usize) {
    let (requests, wakeups) = (requests(read), read.replay.wakeups);
    println!("{}{requests:?}", read.headline());
    let [(device, channels, count)] = requests.as_slice() else {
        panic!("one device, not {requests:?}")
    };
    assert!(device.starts_with("file system ") && *channels <= 4, "{requests:?}");
    assert!(*count >= at_least, "{requests:?}");
    assert!(wakeups.objects * 5 >= wakeups.total() * 4, "{wakeups:?}");
    for (policy, cpus) in [("eevdf", 2), ("fifo", 1)] {
        wakes_as_often(read, name, policy, cpus);
    }
}

#[test]
fn synced_writes_are_requests_to_the_file_systems_device() {
    if !is_on_a_device(&std::env::temp_dir()) {
        return;
    }
    let Some((_scratch, path)) = recorded("files") else { return };
    // Each of 60 syncs waits at least once.
    waits_for_the_device(&read(&path), "files", 60);
}

#[test]
fn a_database_that_syncs_waits_for_a_device() {
    if !is_on_a_device(&std::env::temp_dir()) {
        return;
    }
    if Command::new("sqlite3").arg("--version").output().is_err() {
        eprintln!("skipped: no sqlite3");
        return;
    }
    let scratch = Scratch::new("sqlite");
    let mut command = Command::new("sqlite3");
    let inserts = "create table t(a); ".to_string() + &"insert into t values(1); ".repeat(30);
    command.arg(scratch.0.join("a.db")).arg(inserts);
    let Some((_scratch, path)) = run_of(scratch, &command, &[]) else { return };
    waits_for_the_device(&read(&path), "sqlite3", 60);
}

/// Locks of the kernel, outside recorded calls, may make tokens; what the program waits for does not.
#[test]
fn what_happens_once_is_an_object() {
    let Some((_scratch, path)) = recorded("once") else { return };
    let read = read(&path);
    println!("{}", read.headline());
    let named = |what: &str| {
        let counters = read.workload.shared.eventfds.iter();
        counters.filter(|counter| counter.name.starts_with(what)).count()
    };
    for (what, at_least) in [
        ("end of pipe ", 1),
        ("end of sockets ", 12),
        ("program of task ", 4),
        ("signals to task ", 1),
        ("ended children of task ", 1),
        ("connections to port ", 1),
        ("connections to address ", 1),
    ] {
        assert!(named(what) >= at_least, "{what}: {:?}", read.workload.shared.eventfds);
    }
    let tokens = &read.replay.tokens_within;
    let rest: u64 = tokens.iter().filter(|of| *of.0 != Within::Nothing).map(|of| *of.1).sum();
    // Of each Unix connection one sleep is not explained in some runs; why is not known yet.
    assert!(rest <= 6, "{tokens:?}");
    for (policy, cpus) in [("eevdf", 2), ("fifo", 1)] {
        replayed(&read, policy, cpus);
    }
}

/// Edge-triggered sockets, room for answers, sources that are watched once, and `select`.
#[test]
fn waits_for_sets_of_any_kind_are_waits_for_their_objects() {
    let Some((_scratch, path)) = recorded("sets") else { return };
    let read = read(&path);
    println!("{} {:?}", read.headline(), read.replay.tokens_within);
    let shared = &read.workload.shared;
    let sources: Vec<&Source> = shared.epolls.iter().flat_map(|set| &set.sources).collect();
    let has = |what: &dyn Fn(&Source) -> bool| sources.iter().any(|source| what(source));
    assert!(has(&|of| of.trigger == Trigger::Drained && matches!(of.object, Watched::End(_))));
    assert!(has(&|of| of.is_off && matches!(of.object, Watched::Room(_))));
    // Threads that share a set take what was recorded, whatever is ready: nothing may be lost.
    assert!(has(&|of| of.trigger == Trigger::Level && matches!(of.object, Watched::Pipe(_))));
    // What another task's read of the same socket has taken is a wait without an operation.
    let tokens = read.replay.tokens_within.get(&Within::Set).copied().unwrap_or_default();
    let wakeups = read.replay.wakeups;
    assert!(tokens * 10 < wakeups.total(), "{tokens} tokens of {wakeups:?}");
    for (policy, cpus) in [("eevdf", 2), ("eevdf", 1), ("take:rr", 2), ("fifo", 1), ("fifo", 2)] {
        replayed(&read, policy, cpus);
    }
}

#[test]
fn what_is_set_for_tasks_is_theirs_in_the_replay() {
    let Some((_scratch, path)) = recorded("settings") else { return };
    let read = read(&path);
    println!("{}", read.headline());
    let tasks = || read.workload.tasks.iter().zip(&read.recording.tasks);
    for (name, prio, class) in [
        ("is-nice", 130, TaskClass::ByPriority),
        ("is-batch", 120, TaskClass::Batch),
        ("is-fifo", 94, TaskClass::Fifo),
        ("is-round-robin", 93, TaskClass::RoundRobin),
        ("is-back", 120, TaskClass::ByPriority),
    ] {
        let (task, _) = tasks().find(|(_, info)| info.name == name).expect(name);
        assert_eq!((task.info.prio, task.attributes.class), (prio, class), "{name}");
        if read.recording.cpus > 1 {
            assert!(matches!(task.affinity, Affinity::Pinned(_)), "{name}: {:?}", task.affinity);
        }
    }
    if read.recording.cpus > 1 {
        assert!(read.replay.changed_settings >= 1, "{:?}", read.replay);
        assert!(read.headline().contains("CPUs or policy changed while"), "{}", read.headline());
    }
    replayed(&read, "eevdf", 2);
}

/// What a recorded program does, written out, read again and run, is the same program: every script
/// has its work, and a compressed file is much smaller than the recording.
#[test]
fn a_recorded_program_is_written_out_and_read_again() {
    for name in ["barrier", "files"] {
        let Some((scratch, path)) = recorded(name) else { return };
        let read = read(&path);
        let closed = described(&read.workload, &read.replay.ended, read.recording.cpus).unwrap();
        let operations: usize =
            read.workload.tasks.iter().map(|task| task.script.steps().count()).sum();
        let recording = std::fs::metadata(&path).expect("the recording").len();
        for (file, is_compressed) in [("program.toml", false), ("program.toml.zst", true)] {
            let file = scratch.0.join(file);
            write_description(&closed, &file).unwrap();
            let size = std::fs::metadata(&file).expect("the program").len();
            println!("{name}: {operations} operations, {size} bytes; recorded {recording}");
            if is_compressed {
                assert!(size * 4 < recording, "{size} bytes, and the recording has {recording}");
            }
            let again = Named::resolve(file.as_os_str()).unwrap();
            let Named::Closed(again) = again else { panic!("no closed workload") };
            let again = again.scripts(read.recording.cpus).unwrap();
            assert_eq!(again.demand(), read.workload.demand());
            // Run alone, it wakes as often.
            let policy = parse_policy("eevdf").unwrap();
            let subject = read.subject();
            let subject = Subject { workload: &again, ended: &[], ..subject };
            let run = simulate(subject, subject.machine, &policy, (1, None), false, None).unwrap();
            let tasks = again.ids().filter(|task| again.tasks[task.index()].info.name == name);
            let of = |task: TaskId| run.summary.tasks.iter().find(|of| of.task == task);
            let found: u32 = tasks.filter_map(of).map(|task| task.wakeups).sum();
            let wanted = wakeups(&read, name, &replayed(&read, "eevdf", read.recording.cpus));
            assert!(found.abs_diff(wanted) <= wanted / 20, "{found} wake-ups, and {wanted}");
        }
    }
}

/// What a task finds under a mutex decides whether it waits for a signal. A queue of four places is
/// read as a counter of four, and its replay stalls nowhere. On a machine where all wait for the CPU a
/// recording may tell too little, so one of three must be read.
#[test]
fn conditions_and_semaphores_are_counters_and_do_not_stall() {
    let has_room = |of: &Eventfd| of.count == 4 && of.name.starts_with("condition");
    let mut reports = Vec::new();
    for _ in 0..3 {
        let Some((_scratch, path)) = recorded_with("locks", &["--uprobes"]) else { return };
        let read = read(&path);
        for (policy, cpus) in [("eevdf", 2), ("fifo", 1), ("take:rr", 2)] {
            replayed(&read, policy, cpus);
        }
        let report = &read.replay;
        println!("{} {:?}", read.headline(), report.wakeups);
        let is_explained = report.wakeups.tokens * 50 < report.wakeups.objects;
        let is_read = read.workload.shared.eventfds.iter().any(has_room);
        if report.counters >= 3 && is_explained && is_read {
            return;
        }
        reports.push(format!("{report:?}"));
    }
    panic!("no recording was read: {reports:#?}");
}
