//! What a futex call waits for, as far as the recording shows it.
//!
//! A wait that the end of a thread ended is a join. If all calls on a futex form a barrier, they
//! are arrivals. Both are known only at the end of the recording. All other waits are locks,
//! semaphores or a program's own. Without the calls of a library they are tokens, as an uncontended
//! lock makes no call.

use super::ReplayBuilder;
use super::carriers::{Carrier, Doubted, Edge, Reason};
use super::log::{Deed, Did};
use super::sleeps::By;
use super::within::Within;
use crate::trace::TaskInfo;
use crate::workload::{Operation, Shared};
use crate::{TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};

impl ReplayBuilder {
    /// A futex call that began at `since` has ended. `barrier` is what its futex may be.
    pub(super) fn futex_returned(&mut self, sleeper: TaskId, since: Time, barrier: Option<u32>) {
        let state = &mut self.tasks[sleeper.index()];
        let mut joined = None;
        for sleep in state.calls.sleeps.iter().filter(|sleep| sleep.start >= since) {
            state.log.is_within(sleep.at, Within::Futex);
            let carrier = match sleep.by {
                By::SameObject => barrier.map(Carrier::Barrier),
                By::NoObject => {
                    joined = Some((sleep.waker, sleep.at));
                    Some(Carrier::End(sleep.waker))
                }
                _ => None,
            };
            let (slept_at, waker, woken_at) = (sleep.at, sleep.waker, sleep.woken_at);
            self.waits.extend(carrier.map(|carrier| Edge {
                reason: Reason::Carrier(carrier),
                sleeper,
                slept_at,
                waker,
                woken_at,
            }));
        }
        let first = state.calls.first(since).unwrap_or(u32::MAX);
        state.calls.keep_latest();
        let joins = joined.map(|(task, at)| (Did::Joined(task), at));
        let arrives = barrier.map(|barrier| (Did::Operation(Operation::Arrive(barrier)), first));
        for (did, at) in joins.into_iter().chain(arrives) {
            self.report.operations += 1;
            self.tasks[sleeper.index()].put(Deed::Called { at, did });
        }
    }

    /// What was taken for a barrier or for the end of a thread, and is neither.
    pub(super) fn doubtful_waits(&self, shared: &Shared, tasks: &[TaskInfo]) -> Vec<Carrier> {
        let is_barrier = |barrier: u32| {
            shared.barriers.get(barrier as usize).is_some_and(|barrier| barrier.tasks > 0)
        };
        let process = |task: TaskId| tasks.get(task.index()).map(|task| task.tgid);
        let doubtful = |edge: &Edge| match edge.reason {
            Reason::Carrier(end @ Carrier::End(task)) => {
                let is_odd =
                    !self.tasks[task.index()].dead || process(task) != process(edge.sleeper);
                is_odd.then_some(end)
            }
            _ => None,
        };
        let ends = self.waits.iter().filter_map(doubtful);
        let barriers = (0..shared.barriers.len() as u32).filter(|barrier| !is_barrier(*barrier));
        ends.chain(barriers.map(Carrier::Barrier)).collect()
    }

    /// The ranges of tasks that have not all ended, although a call that waits for their end did.
    /// It named them by the numbers of another namespace.
    pub(super) fn endless(&self, shared: &Shared) -> Vec<u32> {
        let has_ended = |task: u32| self.tasks.get(task as usize).is_some_and(|task| task.dead);
        let ranges = shared.groups.iter().enumerate();
        ranges
            .filter(|(_, range)| {
                let end = range.first.0.saturating_add(range.count);
                !(range.first.0..end).all(has_ended)
            })
            .map(|(range, _)| range as u32)
            .collect()
    }

    /// Barriers and ends of threads explain the waits for them.
    pub(super) fn explain_waits(&mut self, doubted: &Doubted) {
        for edge in std::mem::take(&mut self.waits) {
            if !doubted.contains(edge.reason) {
                self.tasks[edge.sleeper.index()].log.explain_sleep(edge.slept_at);
                self.tasks[edge.waker.index()].log.explain_waking(edge.woken_at);
            }
        }
    }

    /// Mutexes that a task unlocked, or waited with, without having locked them, or locked twice: a
    /// call is missing, or they are of another kind.
    pub(super) fn unpaired_mutexes(&self) -> BTreeSet<u32> {
        let mut unpaired = BTreeSet::new();
        for task in &self.tasks {
            let mut held = BTreeMap::new();
            for (_, _, deed) in task.log.places() {
                let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
                let (mutex, was_held) = match operation {
                    Operation::Lock(mutex) => (mutex, !held.insert(mutex, true).unwrap_or(false)),
                    Operation::Unlock(mutex) => (mutex, held.insert(mutex, false).unwrap_or(false)),
                    Operation::Await { mutex, .. } => (mutex, held.get(&mutex) == Some(&true)),
                    _ => continue,
                };
                if !was_held {
                    unpaired.insert(mutex);
                }
            }
        }
        unpaired
    }
}
