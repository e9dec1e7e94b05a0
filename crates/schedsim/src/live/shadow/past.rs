//! What a shadow was told, to look back where its policy decides otherwise: had one of the last times been a little different, would all have been as it was?
//!
//! Recorded times are not quite those that the scheduler knew, and a policy that keeps sums of run times remembers which of two equals was ahead by a hair. Nor does a recording tell a yield
//! from a preemption.

use super::{Judgement, Otherwise, Shadow, Told};
use crate::policy::Policy;
use crate::seat::Ended;
use crate::trace::{Event, EventKind, PrevState};
use crate::{TaskId, Time};
use std::collections::VecDeque;

/// See [`Otherwise::Microseconds`]: recorded times are not quite those that the scheduler saw.
const MICROSECONDS: [i64; 7] = [3, 10, 30, 100, 300, 1_000, 3_000];
/// So many events are looked back on, whoever they are of.
const NEAR: usize = 64;
/// So many, where they are of the tasks in question, and so many of each of those: of two that have had the same for long, a hair of long ago decides.
const FAR: usize = 1024;
const OF_EACH: usize = 16;
/// Of those that are not near, each how many-th can be gone back to at once.
const EACH: usize = 16;
/// After so many differences that no microseconds explain, none is looked for any more: the policy is another one.
const UNEXPLAINED: usize = 30;

impl<P: Policy + Clone> Shadow<P> {
    /// Judges the policy on all `events`, which are in the order of time.
    ///
    /// # Errors
    /// Why the policy decides no longer: the rule that it broke, as a rule.
    pub fn judge(mut self, events: &[Event]) -> Result<Judgement, Ended> {
        let (mut past, mut unexplained) = (Past::default(), 0);
        for &event in events {
            let is_told = matches!(
                event.kind,
                EventKind::SchedSwitch { .. }
                    | EventKind::SchedWakeup { .. }
                    | EventKind::SchedWakeupNew { .. }
                    | EventKind::SchedWaking { .. }
            );
            if !is_told {
                continue;
            }
            let known = self.judgement.otherwise.len();
            let told = Told { event, yielded: false };
            if unexplained == UNEXPLAINED {
                self.hears(told);
                continue;
            }
            past.push(&self, told);
            self.hears(told);
            if self.judgement.otherwise.len() == known {
                continue;
            }
            match past.retell(self.preferred) {
                Some(other) => {
                    self.judgement.otherwise.truncate(known);
                    self = Shadow { judgement: self.judgement, ..other };
                    self.otherwise(event.cpu, Otherwise::Microseconds);
                }
                None => {
                    // Nobody knows how the kernel came to that, so there is nothing behind it to go back to.
                    past = Past::default();
                    unexplained += 1;
                }
            }
        }
        self.live.ended().cloned().map_or(Ok(self.judgement), Err)
    }
}

/// See the head of the file.
struct Past<P> {
    /// The first of them has a shadow.
    entries: VecDeque<Entry<P>>,
    /// How many there were before.
    gone: usize,
    /// What is assumed since the last difference that was explained.
    assumed: Option<Assumed>,
}

/// That an event was another one than was told. Events are counted from the first of all on.
#[derive(Clone)]
struct Assumed {
    event: usize,
    recorded: Told,
    /// The event where the policy decided otherwise, and whom that was about.
    explains: usize,
    tasks: Vec<TaskId>,
}

struct Entry<P> {
    told: Told,
    /// What the shadow was before it.
    before: Option<Box<Shadow<P>>>,
}

impl<P> Default for Past<P> {
    fn default() -> Past<P> {
        Past { entries: VecDeque::new(), gone: 0, assumed: None }
    }
}

impl<P: Policy + Clone> Past<P> {
    fn push(&mut self, shadow: &Shadow<P>, told: Told) {
        self.entries.push_back(Entry { told, before: Some(Box::new(shadow.clone())) });
        if let Some(at) = self.entries.len().checked_sub(NEAR + 1).filter(|at| !(self.gone + at).is_multiple_of(EACH)) {
            self.entries[at].before = None;
        }
        while self.entries.len() > FAR || self.entries.front().is_some_and(|entry| entry.before.is_none()) {
            self.entries.pop_front();
            self.gone += 1;
        }
    }

    /// The shadow before the event at `at`.
    fn before(&self, at: usize) -> Option<Shadow<P>> {
        let (begin, shadow) = (0..=at).rev().find_map(|at| Some((at, self.entries[at].before.as_deref()?)))?;
        let mut shadow = shadow.clone();
        self.entries.range(begin..at).for_each(|entry| shadow.hears(entry.told));
        Some(shadow)
    }

    /// The events before `end` to ask about, the last first, where it is in question whether one of `tasks` is dispatched: those that are near, and those that are far and of these.
    fn candidates(&self, end: usize, tasks: &[TaskId]) -> Vec<usize> {
        let near = end.saturating_sub(NEAR);
        let is_told = |at: &usize| !matches!(self.entries[*at].told.event.kind, EventKind::SchedWaking { .. });
        let is_of = |at: usize, task: TaskId| match self.entries[at].told.event.kind {
            EventKind::SchedSwitch { prev, next, .. } => task == prev || task == next,
            EventKind::SchedWakeup { task: woken, .. } | EventKind::SchedWakeupNew { task: woken, .. } => task == woken,
            _ => false,
        };
        let far = tasks.iter().flat_map(|&task| (0..near).rev().filter(move |&at| is_of(at, task)).take(OF_EACH));
        (near..end).rev().filter(is_told).chain(far).collect()
    }

    /// The shadow behind the last event, if there is an event that would have made the policy decide as was decided, from it on, had it been as little another one as will do
    /// ([`assume`](Self::assume)). From now on it has been that. `preferred` is whom the policy would have run.
    fn retell(&mut self, preferred: Option<TaskId>) -> Option<Shadow<P>> {
        let last = self.entries.back()?;
        let shadow = last.before.as_deref()?;
        let of_switch = if let EventKind::SchedSwitch { prev, next, .. } = last.told.event.kind { vec![prev, next] } else { Vec::new() };
        let tasks: Vec<TaskId> = of_switch.into_iter().chain(preferred).filter(|&task| shadow.is_ours(task)).collect();
        self.assume(self.entries.len(), tasks.clone()).or_else(|| self.assume_instead(tasks))
    }

    /// The same where what was assumed the last time was wrong: one event that explains both differences.
    fn assume_instead(&mut self, mut tasks: Vec<TaskId>) -> Option<Shadow<P>> {
        let wrong = self.assumed.clone()?;
        let (at, end) = (wrong.event.checked_sub(self.gone)?, (wrong.explains + 1).checked_sub(self.gone)?);
        let assumed = std::mem::replace(&mut self.entries[at].told, wrong.recorded);
        self.renew(at)?;
        tasks.extend(&wrong.tasks);
        tasks.sort_unstable();
        tasks.dedup();
        let instead = self.assume(end, tasks);
        if instead.is_none() {
            self.entries[at].told = assumed;
            self.renew(at)?;
        }
        instead
    }

    /// The least that can be assumed of an event before `end`: that a task which was to be stopped had yielded, or as little time as will do.
    fn assume(&mut self, end: usize, tasks: Vec<TaskId>) -> Option<Shadow<P>> {
        let candidates = self.candidates(end, &tasks);
        let yields = candidates.iter().filter_map(|&at| Some((at, self.as_yield(at)?)));
        let shifts = MICROSECONDS.iter().flat_map(|&by| candidates.iter().flat_map(move |&at| [(at, -by), (at, by)]));
        let shifted = shifts.map(|(at, by)| (at, self.entries[at].told.shifted(by)));
        let (at, told) = yields.chain(shifted).find(|&(at, told)| self.explains(at, told))?;
        let recorded = std::mem::replace(&mut self.entries[at].told, told);
        self.assumed = Some(Assumed { event: self.gone + at, recorded, explains: self.gone + end - 1, tasks });
        self.renew(at)
    }

    /// The event at `at` as a yield, where it may have been one.
    fn as_yield(&self, at: usize) -> Option<Told> {
        let told = self.entries[at].told;
        let EventKind::SchedSwitch { prev, prev_state: PrevState::Runnable, .. } = told.event.kind else { return None };
        let shadow = self.entries.back()?.before.as_deref()?;
        (!told.yielded && shadow.yields(prev)).then_some(Told { yielded: true, ..told })
    }

    /// The shadow behind the last event, where that at `at` is told otherwise now.
    fn renew(&mut self, at: usize) -> Option<Shadow<P>> {
        let mut shadow = self.before(at)?;
        for entry in self.entries.range_mut(at..) {
            entry.before = entry.before.is_some().then(|| Box::new(shadow.clone()));
            shadow.hears(entry.told);
        }
        Some(shadow)
    }

    /// Whether the policy would have decided as was decided had the event at `at` been as `told`.
    fn explains(&self, at: usize, told: Told) -> bool {
        let Some(mut shadow) = self.before(at) else { return false };
        let known = shadow.judgement.otherwise.len();
        shadow.hears(told);
        let mut rest = self.entries.range(at + 1..);
        while shadow.judgement.otherwise.len() == known {
            let Some(entry) = rest.next() else { return true };
            shadow.hears(entry.told);
        }
        false
    }
}

impl Told {
    /// The same `by` so many nanoseconds later.
    fn shifted(self, by: i64) -> Told {
        Told { event: Event { time: Time(self.event.time.0.saturating_add_signed(by)), ..self.event }, ..self }
    }
}
