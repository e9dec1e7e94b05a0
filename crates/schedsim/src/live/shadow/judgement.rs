//! The result of a comparison of decisions.

use crate::{CpuId, Time};
use std::collections::BTreeMap;

/// How the policy's decision differs from the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Divergence {
    /// It would have dispatched another task.
    OtherTask,
    /// It would have dispatched no task.
    NoTask,
    /// It would have dispatched a task where the CPU idled.
    NotIdle,
    /// It would have let a task run on that was stopped.
    RunOn,
    /// It would have stopped a task that ran on.
    Stop,
    /// One of these, but it would have decided as the kernel did, had one of the last events come
    /// up to 3 us earlier or later, or had a task that was to be stopped yielded first.
    Microseconds,
}

impl Divergence {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Divergence::OtherTask => "another task",
            Divergence::NoTask => "no task",
            Divergence::NotIdle => "not idle",
            Divergence::RunOn => "run on",
            Divergence::Stop => "stop",
            Divergence::Microseconds => "microseconds",
        }
    }
}

/// How many decisions were compared, and which of them differ.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// How many decisions were compared.
    pub decisions: usize,
    /// Those that differ: when, where, and how.
    pub divergences: Vec<(Time, CpuId, Divergence)>,
}

impl Judgement {
    /// The share of decisions that are equal.
    pub fn share(&self) -> f64 {
        (self.decisions - self.divergences.len()) as f64 / self.decisions.max(1) as f64
    }

    /// How many divergences there are of each class.
    pub fn by_class(&self) -> BTreeMap<Divergence, usize> {
        let mut classes = BTreeMap::new();
        self.divergences.iter().for_each(|(_, _, class)| *classes.entry(*class).or_default() += 1);
        classes
    }

    /// Adds the judgement of a later event.
    pub(super) fn add(&mut self, later: Judgement) {
        self.decisions += later.decisions;
        self.divergences.extend(later.divergences);
    }
}
