//! Real programs: compiled here, recorded with causes, read as programs, and simulated.
//!
//! They need schedlab's recorder (`SCHEDLAB_RECORDER`), the right to use it, and a C compiler. Where
//! one is missing, the tests say which, and pass.

use formats::import;
use schedsim::metrics::{Summary, TaskSummary};
use schedsim::trace::Observer;
use schedsim::workload::{Action, Operation};
use std::path::{Path, PathBuf};
use std::process::Command;
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy, simulate};

/// A folder of a test's own, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("schedlab-recorded-{name}-{}", std::process::id());
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

/// Compiles a program and records a run of it; `None` where that is not possible.
fn recorded(name: &str) -> Option<(Scratch, PathBuf)> {
    let Some(recorder) = std::env::var_os("SCHEDLAB_RECORDER") else {
        eprintln!("skipped: SCHEDLAB_RECORDER names no recorder");
        return None;
    };
    let scratch = Scratch::new(name);
    let (program, recording) = (scratch.0.join(name), scratch.0.join("a.rec"));
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
    let run = Command::new(recorder).arg("-o").arg(&recording).arg("--").arg(&program).output();
    let output = run.expect("the recorder starts");
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
