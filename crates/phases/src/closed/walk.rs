//! Iterates over the phases of a closed workload.

use super::{Closed, EventLoopPhase, Phase, Tasks};
use std::collections::BTreeSet;

/// A phase and its place.
pub struct Place<'c> {
    /// The phase.
    pub phase: &'c Phase,
    /// As in `task[1].phases[0].loop.phases[2]`.
    pub key: String,
    /// The executions per execution of its list; [`u64::MAX`] in an endless loop.
    pub times: u64,
}

impl Closed {
    /// All phases that a task may reach, each once, including those of lists that it may continue
    /// with.
    pub fn reached_by<'c>(&'c self, tasks: &'c Tasks, key: &str) -> Vec<Place<'c>> {
        let mut places = Vec::new();
        collect(&tasks.phases, &format!("{key}.phases"), 1, &mut places);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut next = 0;
        while let Some(place) = places.get(next) {
            if let Phase::Exec(name) = place.phase
                && let Some((name, list)) = self.lists.get_key_value(name)
                && seen.insert(name)
            {
                collect(list, &format!("list.{name}"), 1, &mut places);
            }
            next += 1;
        }
        places
    }

    /// The lists that a task may continue with, in order of name.
    pub fn lists_of<'c>(&'c self, tasks: &'c Tasks) -> BTreeSet<&'c str> {
        let exec = |place: Place<'c>| {
            if let Phase::Exec(name) = place.phase { Some(name.as_str()) } else { None }
        };
        self.reached_by(tasks, "").into_iter().filter_map(exec).collect()
    }
}

impl EventLoopPhase {
    /// The rounds of all objects, each with its place, if that of the loop is `key`.
    pub(super) fn rounds(&self, key: &str) -> impl Iterator<Item = (String, &[Phase])> {
        self.handle.iter().enumerate().flat_map(move |(source, rounds)| {
            rounds.iter().enumerate().map(move |(round, phases)| {
                (format!("{key}.event_loop.handle[{source}][{round}]"), phases.as_slice())
            })
        })
    }
}

fn collect<'c>(phases: &'c [Phase], key: &str, times: u64, places: &mut Vec<Place<'c>>) {
    for (index, phase) in phases.iter().enumerate() {
        let key = format!("{key}[{index}]");
        if let Phase::Loop(inner) = phase {
            let times = times.saturating_mul(inner.times.unwrap_or(u64::MAX));
            places.push(Place { phase, key: key.clone(), times });
            collect(&inner.phases, &format!("{key}.loop.phases"), times, places);
        } else if let Phase::Serve(serve) = phase {
            places.push(Place { phase, key: key.clone(), times });
            for (source, phases) in serve.handle.iter().enumerate() {
                collect(phases, &format!("{key}.serve.handle[{source}]"), times, places);
            }
        } else if let Phase::EventLoop(event_loop) = phase {
            places.push(Place { phase, key: key.clone(), times });
            for (key, phases) in event_loop.rounds(&key) {
                collect(phases, &key, times, places);
            }
        } else {
            places.push(Place { phase, key, times });
        }
    }
}
