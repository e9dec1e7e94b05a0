//! A policy at the other end of a link decides as it does here, and a bad end is an error.

use super::*;
use crate::engine::{self, Options, Outcome};
use crate::policy::Catalog;
use crate::seat::{Breach, Rule};
use crate::swarm::Case;
use crate::trace::{Trace, TraceHash};
use std::os::unix::net::UnixStream;
use std::thread;

/// The end of a stream on which another thread serves.
struct Stream(UnixStream);

impl Link for Stream {
    fn exchange(&mut self, message: &[u64]) -> Result<Vec<u64>, String> {
        self.tell(message)?;
        receive(&mut self.0).map_err(|error| error.to_string())
    }

    fn tell(&mut self, message: &[u64]) -> Result<(), String> {
        send(&mut self.0, message).map_err(|error| error.to_string())
    }
}

/// Answers each message with the next of these.
struct Canned(Vec<Result<Vec<u64>, String>>);

impl Link for Canned {
    fn exchange(&mut self, _message: &[u64]) -> Result<Vec<u64>, String> {
        if self.0.is_empty() { Err("none left".to_string()) } else { self.0.remove(0) }
    }

    fn tell(&mut self, _message: &[u64]) -> Result<(), String> {
        Ok(())
    }
}

fn run(case: &Case, policy: impl Policy) -> (Result<Outcome, engine::Error>, u64) {
    let (workload, mut hash) = (case.scripts().expect("a case that runs"), TraceHash::new());
    let options = Options { seed: 1, until: case.until() };
    let trace = Trace::new(vec![&mut hash]);
    let outcome = engine::simulate(&workload, &case.machine, policy, options, trace);
    (outcome, hash.value())
}

#[test]
fn a_remote_policy_leaves_the_same_trace() {
    let catalog = Catalog::built_in();
    let mut events = 0;
    for (seed, name) in
        (0..240).zip(["eevdf", "cfs", "take:rr", "central:priority", "fifo", "o1"].iter().cycle())
    {
        let case = Case::draw(seed);
        let (spec, machine) = (catalog.parse(name).unwrap(), case.machine.clone());
        if spec.needs().tick.is_some_and(|tick| tick.0 == 0) {
            continue;
        }
        let (here, there) = UnixStream::pair().unwrap();
        let made = spec.clone();
        let server = thread::spawn(move || {
            let (mut from, mut to) = (there.try_clone().unwrap(), there);
            serve(|machine| Ok(made.policy(machine.cpus)), &mut from, &mut to)
        });
        let remote = Remote::greet(Stream(here), &machine, 1).unwrap();
        let (near, far) = (run(&case, spec.policy(machine.cpus)), run(&case, remote));
        assert_eq!(near, far, "{name}, case {seed}");
        server.join().unwrap().unwrap();
        events += near.0.map_or(0, |outcome| outcome.events);
    }
    assert!(events > 10_000, "{events}");
}

#[test]
fn an_end_that_is_none_or_breaks_is_an_error_and_nothing_panics() {
    let case = Case::draw(3);
    let machine = case.machine.clone();
    let greet =
        |answers: Vec<Result<Vec<u64>, String>>| Remote::greet(Canned(answers), &machine, 1);
    let mut no = vec![NO_POLICY];
    words::put_text(&mut no, "there is none");
    assert_eq!(greet(vec![Ok(no)]).err(), Some(NoPolicy::Said("there is none".into())));
    for silent in [Err("gone".to_string()), Ok(vec![]), Ok(vec![DONE]), Ok(vec![99, 1, 2])] {
        assert!(matches!(greet(vec![silent]), Err(NoPolicy::Silent(_))));
    }
    let hello = || {
        let mut hello = vec![DONE];
        state::put_nature(&mut hello, Needs::default(), Promises::default(), true);
        Ok(hello)
    };
    for (answer, says) in [
        (Err("gone".to_string()), "gone"),
        (Ok(vec![]), "out of form"),
        (Ok(vec![DONE, 0, u64::MAX]), "out of form"),
        (Ok(vec![GAVE_UP, u64::MAX]), "out of form"),
        (Ok(vec![GAVE_UP, 4, u64::MAX]), "out of form"),
        (Ok(vec![GAVE_UP, 4, 3, 0x6f_6f62]), "boo"),
    ] {
        let (outcome, _) = run(&case, greet(vec![hello(), answer]).unwrap());
        let Err(engine::Error::Policy(Breach { rule: Rule::GivesUp { message }, .. })) = outcome
        else {
            panic!("{says}: {outcome:?}")
        };
        assert!(message.contains(says), "{message}");
    }
    // A CPU that does not exist is the seat's affair.
    let (outcome, _) = run(&case, greet(vec![hello(), Ok(vec![DONE, 0, 4000])]).unwrap());
    let Err(engine::Error::Policy(breach)) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(breach.rule, Rule::CpuExists { .. }), "{breach}");
}

#[test]
fn a_machine_crosses_with_its_topology() {
    use crate::{MigrationCosts, Nanos, Place, Topology};
    let place = |cpu: u16| Place { core: cpu / 2, cluster: cpu / 4, node: cpu / 4, speed: 0.5 };
    let costs = MigrationCosts { node: Some(Nanos(7)), ..Default::default() };
    let topology = Topology::new((0..8).map(place).collect(), Vec::new(), 1.5, costs).unwrap();
    let machine = Machine {
        topology: Some(topology),
        switch_cost: Nanos(1),
        migration_cost: Nanos(2),
        idle_exit: Nanos(3),
        wake_cost: Nanos(4),
        ..Machine::ideal(8)
    };
    let mut words = Vec::new();
    state::put_machine(&mut words, &machine);
    assert_eq!(state::machine(&mut Reader::new(&words)), Some(machine));
    for short in 0..words.len() {
        assert_eq!(state::machine(&mut Reader::new(&words[..short])), None);
    }
}
