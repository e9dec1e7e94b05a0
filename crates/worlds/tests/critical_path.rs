//! The critical path of a run whose path is known: a chain of three tasks through pipes, beside a
//! branch with slack; and of the same run with a branch that is longer than the chain.

use formats::export::RecordingWriter;
use formats::import::{self, Options as ImportOptions};
use schedsim::engine::{Options, simulate_named};
use schedsim::metrics::{CATALOGUE, CriticalPath, Doing, Metrics, Piece, shares};
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::Workload;
use schedsim::{Machine, Nanos, TaskId, Time};
use std::collections::HashMap;
use std::fs::{self, File};
use worlds::experiment::parse_policy;

const CPUS: u16 = 4;

/// `first` → `second` → `last` through pipes, and `slack` → `last`, which reads it at its end.
fn chain(slack: &str) -> Workload {
    let text = format!(
        r#"{{ "task": [
        {{ "name": "first", "phases": [ {{ "run": "1ms" }}, {{ "write": {{ "pipe": "one", "bytes": 1 }} }} ] }},
        {{ "name": "second", "phases": [ {{ "read": {{ "pipe": "one", "bytes": 1 }} }}, {{ "run": "2ms" }},
            {{ "write": {{ "pipe": "two", "bytes": 1 }} }} ] }},
        {{ "name": "slack", "phases": [ {{ "run": "{slack}" }}, {{ "write": {{ "pipe": "three", "bytes": 1 }} }} ] }},
        {{ "name": "last", "phases": [ {{ "read": {{ "pipe": "two", "bytes": 1 }} }},
            {{ "read": {{ "pipe": "three", "bytes": 1 }} }}, {{ "run": "4ms" }} ] }} ] }}"#
    );
    Workload::of(&serde_json::from_str(&text).expect("a workload"), CPUS).expect("its scripts")
}

fn machine(cpus: u16) -> Machine {
    Machine { switch_cost: Nanos(1_700), ..Machine::ideal(cpus) }
}

fn simulate(workload: &Workload, cpus: u16, observers: Vec<&mut dyn Observer>) -> Time {
    let policy = parse_policy("eevdf").expect("a policy");
    let options = Options { seed: 1, until: Time::NEVER };
    simulate_named(workload, &machine(cpus), &policy, options, Trace::new(observers))
        .expect("a run")
        .end
}

/// The path of the run, and its makespan as the catalogue of metrics has it.
fn path_of(workload: &Workload, cpus: u16) -> (Vec<Piece>, f64) {
    let (mut path, mut metrics) = (CriticalPath::new(), Metrics::new(cpus));
    let end = simulate(workload, cpus, vec![&mut path, &mut metrics]);
    let summary = metrics.finish(end);
    let makespan = CATALOGUE.iter().find(|metric| metric.id == "makespan_ns").expect("a metric");
    (path.of_run(), makespan.read(&summary).value.expect("a makespan"))
}

/// The path of the recording of the run, with the names of the objects.
fn path_of_recording(workload: &Workload) -> (Vec<Piece>, Vec<TaskInfo>, HashMap<u32, String>) {
    let tasks: Vec<TaskInfo> = workload.tasks.iter().map(|task| task.info.clone()).collect();
    let place =
        tempfile::Builder::new().suffix(".rec").tempfile().expect("a file").into_temp_path();
    let file = File::create(&place).expect("a file");
    let mut writer =
        RecordingWriter::new(file, &tasks, &workload.shared, CPUS).expect("a recording");
    simulate(workload, CPUS, vec![&mut writer]);
    writer.finish().expect("a recording");
    let mut path = CriticalPath::new();
    let recording = import::read(&place, &ImportOptions::default(), vec![&mut path]);
    let recording = recording.expect("a recording");
    fs::remove_file(&place).expect("it is there");
    (path.of_run(), recording.tasks, recording.object_names.into_iter().collect())
}

/// The names of the tasks on a path, each once for each time that the path comes to it.
fn names(path: &[Piece], tasks: &[TaskInfo]) -> Vec<String> {
    let mut names: Vec<String> =
        path.iter().map(|piece| tasks[piece.task.index()].name.clone()).collect();
    names.dedup();
    names
}

fn infos(workload: &Workload) -> Vec<TaskInfo> {
    workload.tasks.iter().map(|task| task.info.clone()).collect()
}

fn is_whole(path: &[Piece], makespan: f64) {
    assert!(path.windows(2).all(|pair| pair[0].end == pair[1].start), "no gap: {path:?}");
    let sum: Nanos = path.iter().map(Piece::length).sum();
    assert_eq!(sum.0 as f64, makespan, "the pieces are the makespan exactly");
    let of_shares: Nanos = shares(path).iter().map(|(.., length, _)| *length).sum();
    assert_eq!(of_shares, sum);
}

#[test]
fn the_chain_is_the_path_and_the_branch_with_slack_is_not() {
    let workload = chain("2ms");
    let (path, makespan) = path_of(&workload, CPUS);
    assert_eq!(names(&path, &infos(&workload)), ["first", "second", "last"]);
    is_whole(&path, makespan);
    let runs = path.iter().filter(|piece| piece.doing == Doing::Runs);
    let most = runs.max_by_key(|piece| piece.length()).expect("a burst");
    assert_eq!(most.task, TaskId(3));
    assert!(most.length() >= Nanos(4_000_000) && most.length() < Nanos(4_010_000));
}

#[test]
fn a_branch_that_is_longer_than_the_chain_becomes_the_path() {
    let workload = chain("5ms");
    let (path, makespan) = path_of(&workload, CPUS);
    assert_eq!(names(&path, &infos(&workload)), ["slack", "last"]);
    is_whole(&path, makespan);
}

#[test]
fn the_slack_decides_to_the_microsecond() {
    // The chain needs 3 ms and a switch or two before the last task reads what the branch wrote.
    let on_path = |slack: &str| {
        let workload = chain(slack);
        names(&path_of(&workload, CPUS).0, &infos(&workload)).contains(&"slack".to_string())
    };
    assert!(!on_path("2995us"));
    assert!(on_path("3010us"));
}

#[test]
fn on_one_cpu_the_path_waits_for_it_and_is_still_the_makespan() {
    let (path, makespan) = path_of(&chain("2ms"), 1);
    is_whole(&path, makespan);
    assert!(path.iter().any(
        |piece| matches!(piece.doing, Doing::WaitsForCpu(_)) && piece.length() > Nanos(100_000)
    ));
}

#[test]
fn a_recording_names_the_objects_of_the_path() {
    let through = |slack: &str| {
        let (path, tasks, objects) = path_of_recording(&chain(slack));
        let woken = path.iter().filter_map(|piece| match piece.doing {
            Doing::WaitsForCpu(Some(object)) => Some(objects.get(&object).cloned()),
            _ => None,
        });
        (names(&path, &tasks), woken.collect::<Vec<_>>())
    };
    let (names, objects) = through("2ms");
    assert_eq!(names, ["first", "second", "last"]);
    assert!(objects.len() == 2 && objects.iter().all(Option::is_some), "{objects:?}");
    assert_ne!(objects[0], objects[1], "two pipes");
    let (names, objects) = through("5ms");
    assert_eq!((names.len(), objects.len()), (2, 1), "{names:?} {objects:?}");
}

#[test]
fn the_longest_wait_of_a_task_leads_to_who_ended_it() {
    let workload = chain("5ms");
    let mut path = CriticalPath::new();
    simulate(&workload, CPUS, vec![&mut path]);
    let wait = path.of_longest_wait(TaskId(3));
    let length = wait.last().expect("a piece").end.since(wait[0].start);
    let sum: Nanos = wait.iter().map(Piece::length).sum();
    assert_eq!(sum, length);
    assert!(path.of_longest_wait(TaskId(0)).is_empty(), "it never waits for a task");
    assert!(path.of_longest_wait(TaskId(9)).is_empty());
}
