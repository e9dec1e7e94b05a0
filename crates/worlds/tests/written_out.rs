//! A bundled recording, written out as a workload and read again, does the same event for event.

#[path = "support/seen.rs"]
mod seen;

use formats::export::described;
use formats::import;
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::{
    Action, BackgroundOf, Closed, Operation, Script, Serve, Shared, Step, TaskSpec, Workload,
};
use schedsim::{Machine, Nanos, TaskId, Time};
use seen::{Events, Seen, difference};
use std::collections::BTreeSet;
use std::path::Path;
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy};

/// Without what the format does not write: the background.
fn program(name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/causes").join(name);
    let reading = Reading { background: BackgroundOf::Nothing, ..Reading::default() };
    let read = |path: &Path, options, observers: Vec<&mut dyn Observer>| {
        import::read(path, &options, observers)
            .map_err(|error| program::Error::Input(error.to_string()))
    };
    Recorded::load(&path, reading, CostOverrides::default(), read).expect("a recording")
}

fn events(workload: &Workload, machine: &Machine, policy: &str) -> Vec<Seen> {
    let tasks: Vec<TaskInfo> = workload.tasks.iter().map(|task| task.info.clone()).collect();
    let mut events = Events(&tasks, Vec::new());
    let (policy, options) =
        (parse_policy(policy).unwrap(), Options { seed: 1, until: Time::NEVER });
    let outcome =
        simulate_named(workload, machine, &policy, options, Trace::new(vec![&mut events]));
    outcome.unwrap_or_else(|error| panic!("{policy}: {error}"));
    events.1
}

/// A task that waits for a token first is asleep from the beginning in a replay. The format does not
/// say so: the task begins, and waits.
fn begins_awake(task: &mut TaskSpec, shared: &mut Shared) {
    let steps: Vec<Step> = task.script.steps().collect();
    if steps.first() != Some(&Step { run: Nanos::ZERO, then: Action::Wait }) {
        return;
    }
    let mut script = Script::new();
    script.push(Nanos::ZERO, Action::Continue);
    let shift = script.end();
    let mut moved = BTreeSet::new();
    for step in steps {
        assert!(!matches!(step.then, Action::Do(Operation::Repeat { .. })), "its place is kept");
        if let Action::Do(Operation::Serve(serve)) = step.then
            && let Serve { handlers, after, rounds: Some(rounds), .. } =
                &mut shared.serves[serve as usize]
            && moved.insert(serve)
        {
            let places = handlers.iter_mut().chain(&mut rounds.ends);
            places.chain([after, &mut rounds.begin]).for_each(|place| *place += shift);
        }
        script.push(step.run, step.then);
    }
    task.script = script;
}

/// Nor does the format say on which CPU a task was first.
fn is_the_same(name: &str) {
    let Recorded { mut workload, replay, machine, .. } = program(name);
    let Workload { tasks, shared, .. } = &mut workload;
    tasks.iter_mut().for_each(|task| begins_awake(task, shared));
    let closed = described(&workload, &replay.ended, machine.cpus).unwrap();
    let text = toml::to_string(&closed).unwrap();
    let closed: Closed = toml::from_str(&text).unwrap();
    let mut again = Workload::of(&closed, machine.cpus).unwrap_or_else(|error| panic!("{error}"));
    for (task, tasks) in again.tasks.iter_mut().zip(&closed.tasks) {
        task.info.pid = tasks.name.rsplit('/').next().unwrap().parse().unwrap();
        let of_recording = workload.tasks.iter().find(|of| of.info.pid == task.info.pid);
        task.cpu = of_recording.expect("each is a task of the recording").cpu;
    }
    for policy in ["eevdf", "take:rr", "central:rr", "fifo"] {
        let [mut wanted, mut found] =
            [&workload, &again].map(|workload| events(workload, &machine, policy));
        // Written out, the run ends when those have ended that ended in the recording.
        let exit = |task: &TaskId| {
            let exit = format!("exit {}", workload.tasks[task.index()].info.pid);
            let at = found.iter().position(|(.., what)| *what == exit);
            at.unwrap_or_else(|| panic!("{name} under {policy}: {exit}"))
        };
        let end = replay.ended.iter().map(exit).max().expect("some tasks ended") + 1;
        wanted.truncate(end);
        found.truncate(end);
        if let Some(difference) = difference(&wanted, &found) {
            panic!("{name} under {policy}: {difference}");
        }
        println!("{name} under {policy}: {} events are equal", wanted.len());
    }
}

#[test]
fn redis_with_its_event_loops_is_written_out_and_does_the_same() {
    let loops = program("redis.rec.zst").replay.event_loops;
    assert!(loops > 0, "redis serves its clients in a loop");
    is_the_same("redis.rec.zst");
}

#[test]
fn a_program_of_pipes_is_written_out_and_does_the_same() {
    is_the_same("hackbench.rec.zst");
}
