//! Looks for the smallest change of one past event that makes the policy decide as recorded.
//!
//! Recorded times are not exactly those that the scheduler saw. A policy that sums up run times
//! remembers which of two equal tasks was ahead by a few nanoseconds. Nor does a recording
//! distinguish a yield from a preemption. A hypothesis changes one event into a yield, or shifts it
//! a little. It is tested by a trial of the policy on all events since.

use super::Observation;
use super::follower::Follower;
use super::history::{Assumption, History};
use crate::policy::Policy;
use crate::trace::{Event, EventKind};
use crate::{TaskId, Time};
use std::collections::BTreeMap;

/// See [`Divergence::Microseconds`](super::Divergence::Microseconds): recorded times are not quite
/// those that the scheduler saw.
const SHIFTS: [i64; 7] = [3, 10, 30, 100, 300, 1_000, 3_000];
/// How many of the last events a hypothesis may change, of any task.
const NEAR: usize = 64;
/// How many earlier events it may change, per task in question. Between two tasks with equal
/// service, a few nanoseconds of long ago decide.
const OF_EACH: usize = 16;

impl<P: Policy + Clone> History<P> {
    /// If a hypothesis explains the divergence at the last event, adopts it and returns the
    /// follower after the last event. `preferred` is the task that the policy would have run.
    pub(super) fn explain(&mut self, preferred: Option<TaskId>) -> Option<Follower<P>> {
        let follower = self.before(0)?;
        let of_switch = match self.entries.back()?.observation.event.kind {
            EventKind::SchedSwitch { prev, next, .. } => vec![prev, next],
            _ => Vec::new(),
        };
        let tasks: Vec<TaskId> = of_switch
            .into_iter()
            .chain(preferred)
            .filter(|&task| follower.is_scheduled(task))
            .collect();
        self.assume(self.entries.len(), tasks.clone()).or_else(|| self.assume_instead(tasks))
    }

    /// As `assume`, where the last assumption was wrong: finds one event that explains both
    /// divergences.
    fn assume_instead(&mut self, mut tasks: Vec<TaskId>) -> Option<Follower<P>> {
        let wrong = self.assumption.clone()?;
        let (at, end) =
            (wrong.event.checked_sub(self.gone)?, (wrong.explains + 1).checked_sub(self.gone)?);
        let assumed = self.entries[at].observation;
        self.rewrite(at, wrong.recorded)?;
        tasks.extend(&wrong.tasks);
        tasks.sort_unstable();
        tasks.dedup();
        let instead = self.assume(end, tasks);
        if instead.is_none() {
            self.rewrite(at, assumed)?;
        }
        instead
    }

    /// The first hypothesis about an event before `end` that explains the last divergence: a yield,
    /// or else as small a shift as possible.
    fn assume(&mut self, end: usize, tasks: Vec<TaskId>) -> Option<Follower<P>> {
        let candidates = self.candidates(end, &tasks);
        let yields = candidates.iter().filter_map(|&at| Some((at, self.as_yield(at)?)));
        let shifts = SHIFTS
            .iter()
            .flat_map(|&by| candidates.iter().flat_map(move |&at| [(at, -by), (at, by)]));
        let shifted = shifts.map(|(at, by)| (at, self.entries[at].observation.shifted(by)));
        let mut trials = BTreeMap::new();
        let (at, observation) = yields
            .chain(shifted)
            .find(|&(at, observation)| self.explains(at, observation, &mut trials))?;
        let recorded = self.entries[at].observation;
        self.assumption = Some(Assumption {
            event: self.gone + at,
            recorded,
            explains: self.gone + end - 1,
            tasks,
        });
        self.rewrite(at, observation)
    }

    /// The events before `end` that may have been different, the last first: the near ones, and of
    /// the earlier ones those of `tasks`.
    fn candidates(&self, end: usize, tasks: &[TaskId]) -> Vec<usize> {
        let kind = |at: usize| self.entries[at].observation.event.kind;
        let near = end.saturating_sub(NEAR);
        let is_of = |at: usize, task: TaskId| match kind(at) {
            EventKind::SchedSwitch { prev, next, .. } => task == prev || task == next,
            EventKind::SchedWakeup { task: woken, .. }
            | EventKind::SchedWakeupNew { task: woken, .. } => task == woken,
            _ => false,
        };
        let far = tasks
            .iter()
            .flat_map(|&task| (0..near).rev().filter(move |&at| is_of(at, task)).take(OF_EACH));
        (near..end)
            .rev()
            .filter(|&at| !matches!(kind(at), EventKind::SchedWaking { .. }))
            .chain(far)
            .collect()
    }

    /// The event at `at` as a yield, where that makes a difference.
    fn as_yield(&self, at: usize) -> Option<Observation> {
        let entry = &self.entries[at];
        (entry.may_be_yield && !entry.observation.yielded)
            .then_some(Observation { yielded: true, ..entry.observation })
    }

    /// Whether the policy decides as recorded from the event at `at` on if that is `observation`.
    /// `before` caches the followers from which trials start.
    fn explains(
        &self,
        at: usize,
        observation: Observation,
        before: &mut BTreeMap<usize, Follower<P>>,
    ) -> bool {
        let Some(mut trial) = before.get(&at).cloned().or_else(|| self.trial(at)) else {
            return false;
        };
        before.entry(at).or_insert_with(|| trial.clone());
        let mut agrees = |observation| trial.follow(observation).judgement.divergences.is_empty();
        agrees(observation) && self.entries.range(at + 1..).all(|entry| agrees(entry.observation))
    }

    /// The policy before the event at `at`, for a trial. To force an unheralded task on the policy,
    /// a follower needs its saved states.
    fn trial(&self, at: usize) -> Option<Follower<P>> {
        let is_forced = self.entries.range(at..).any(|entry| entry.is_unheralded);
        self.before(at).map(|follower| if is_forced { follower } else { follower.trial() })
    }
}

impl Observation {
    /// The same, `by` nanoseconds later.
    fn shifted(self, by: i64) -> Observation {
        Observation {
            event: Event { time: Time(self.event.time.0.saturating_add_signed(by)), ..self.event },
            ..self
        }
    }
}
