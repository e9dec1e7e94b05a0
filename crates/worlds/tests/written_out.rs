//! A bundled recording, written out as a workload and read again, does the same event for event.

use formats::export::described;
use formats::import;
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Event, Observer, Trace};
use schedsim::workload::{BackgroundOf, Closed, Start, Workload};
use schedsim::{Machine, Time};
use std::path::Path;
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy};

#[derive(Default)]
struct Events(Vec<Event>);

impl Observer for Events {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

/// Without what the format does not write: the background, and the CPU on which a task was first.
fn program(name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/causes").join(name);
    let reading = Reading { background: BackgroundOf::Nothing, ..Reading::default() };
    let read = |path: &Path, options, observers: Vec<&mut dyn Observer>| {
        import::read(path, &options, observers)
            .map_err(|error| program::Error::Input(error.to_string()))
    };
    Recorded::load(&path, reading, CostOverrides::default(), read).expect("a recording")
}

fn events(workload: &Workload, machine: &Machine, policy: &str) -> Vec<Event> {
    let mut events = Events::default();
    let (policy, options) =
        (parse_policy(policy).unwrap(), Options { seed: 1, until: Time::NEVER });
    let outcome =
        simulate_named(workload, machine, &policy, options, Trace::new(vec![&mut events]));
    outcome.unwrap_or_else(|error| panic!("{policy}: {error}"));
    events.0
}

fn is_the_same(name: &str) {
    let Recorded { mut workload, replay, machine, .. } = program(name);
    let closed = described(&workload, &replay.ended, machine.cpus).unwrap();
    let text = toml::to_string(&closed).unwrap();
    let again: Closed = toml::from_str(&text).unwrap();
    let mut again = Workload::of(&again, machine.cpus).unwrap_or_else(|error| panic!("{error}"));
    // Tasks that the recording only mentions are not written.
    workload.tasks.retain(|task| task.script.steps().count() > 1 || task.start == Start::Forked);
    assert_eq!(again.tasks.len(), workload.tasks.len());
    for (task, recorded) in again.tasks.iter_mut().zip(&workload.tasks) {
        task.cpu = recorded.cpu;
    }
    for policy in ["eevdf", "take:rr", "central:rr", "fifo"] {
        let [wanted, found] =
            [&workload, &again].map(|workload| events(workload, &machine, policy));
        let first = wanted.iter().zip(&found).position(|(wanted, found)| wanted != found);
        let first = first.or((wanted.len() != found.len()).then_some(wanted.len()));
        assert_eq!(
            first.map(|first| (first, wanted.get(first), found.get(first))),
            None,
            "{name} under {policy}: {} events, written out {}",
            wanted.len(),
            found.len()
        );
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
