//! Replays a recorded schedule through a policy. At each recorded decision, compares the policy's
//! choice with the recorded one, then forces the recorded one.
//!
//! So each decision is judged in the situation in which it was taken: waiting tasks, waiting times
//! and CPU times are the recording's. Two simulations that differ once have different situations
//! from then on, so only what they still have in common can be compared.
//!
//! A decision is a dispatch (which task runs next) or a stop that the task did not ask for (when).
//! The data flow, one type a file:
//!
//! - [`Follower`]: applies one recorded event to the policy and returns the judgement of that event
//!   alone.
//! - `Live::forcing`: the policy as if it had dispatched the recorded task, with the order of the
//!   others kept.
//! - [`History`]: the last events with checkpoints of the follower, from which a follower before
//!   any of them is rebuilt.
//! - `hypothesis`: looks in the history for one small change of a past event that removes a
//!   divergence.
//! - [`Judgement`]: the sum over all events.

mod follower;
mod forcing;
mod history;
mod hypothesis;
mod judgement;

use super::{Arrival, Live};
use crate::policy::{InKernel, Policy};
use crate::seat::Ended;
use crate::trace::{Event, EventKind};
use crate::{CpuId, Machine, TaskId, Time};
use follower::Follower;
use history::History;
pub use judgement::{Difference, Diverged, Divergence, Judgement};
use std::collections::BTreeMap;

/// When the recorded scheduler decided which task runs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// When a CPU switches to it, as a kernel does.
    AtSwitch,
    /// At the event after which a CPU needs a task, as a program in user space does, which receives
    /// one event after another.
    AtEvent,
}

/// The role of a task for the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// One of those that it schedules.
    Scheduled {
        /// Its attributes.
        arrival: Arrival,
        /// Whether it may yield: recordings do not distinguish a yield from a preemption.
        yields: bool,
    },
    /// The program that decides; it runs whenever there is a decision.
    Program,
    /// Scheduled by another scheduler, and before all others: the interrupted task continues after
    /// it.
    Interrupts,
}

/// An event, and the facts that its recording lacks.
#[derive(Clone, Copy)]
struct Observation {
    event: Event,
    /// Whether the task that stops has yielded, although the policy wanted it to stop anyway.
    yielded: bool,
    /// What the kernel had of tasks of the event after it.
    known: Known,
}

/// What the recorded kernel had of up to two tasks.
pub type Known = [Option<(TaskId, InKernel)>; 2];

/// The number of unexplained divergences after which no hypothesis is tried any more: the recorded
/// scheduler is another policy.
const UNEXPLAINED: usize = 30;

/// A policy beside a recording.
#[derive(Clone)]
pub struct Shadow<P> {
    follower: Follower<P>,
    known: BTreeMap<Time, Known>,
}

impl<P: Policy + Clone> Shadow<P> {
    /// A shadow of the scheduler that was recorded on `machine` and `decides` at these moments.
    /// `tasks` are indexed by their ids in the recording.
    ///
    /// # Panics
    /// If the machine has more CPUs than [`MOST_CPUS`](super::MOST_CPUS).
    pub fn new(
        policy: P,
        machine: Machine,
        seed: u64,
        decides: Decides,
        tasks: Vec<Role>,
    ) -> Shadow<P> {
        let follower = Follower::new(Live::new(policy, machine, seed), decides, tasks);
        Shadow { follower, known: BTreeMap::new() }
    }

    /// What the kernel had of tasks after the events at these times. The policy is compared with it
    /// and corrected, so that each decision is judged in the kernel's own state.
    pub fn knows(&mut self, known: BTreeMap<Time, Known>) {
        self.known = known;
    }

    /// When the policy takes over, at time zero, `task` is there already, asleep.
    pub fn has(&mut self, task: TaskId) {
        self.follower.has(task);
    }

    /// When the policy takes over, at time zero, `task` runs on `cpu`.
    pub fn begins(&mut self, cpu: CpuId, task: TaskId) {
        self.follower.begins(cpu, task);
    }

    /// Judges the policy on all `events`, which are in the order of time.
    ///
    /// # Errors
    /// If the policy no longer decides, usually because of the rule that it broke.
    pub fn judge(self, events: &[Event]) -> Result<Judgement, Ended> {
        let Shadow { mut follower, known } = self;
        let (mut history, mut judgement, mut unexplained) =
            (History::default(), Judgement::default(), 0);
        for &event in events.iter().filter(|event| is_followed(event)) {
            let known = known.get(&event.time).copied().unwrap_or_default();
            let observation = Observation { event, yielded: false, known };
            if unexplained == UNEXPLAINED {
                judgement.add(follower.follow(observation).judgement);
                continue;
            }
            let checkpoint = history.wants_checkpoint().then(|| follower.clone());
            let outcome = follower.follow(observation);
            history.push(observation, &outcome, checkpoint);
            let mut own = outcome.judgement;
            if !own.divergences.is_empty() {
                match history.explain(outcome.preferred) {
                    Some(explained) => {
                        follower = explained;
                        own.divergences.truncate(1);
                        own.divergences.iter_mut().for_each(|of| {
                            (of.time, of.class) = (follower.now(), Divergence::Microseconds);
                        });
                    }
                    None => {
                        // The reason for the kernel's decision is unknown, so there is no earlier
                        // state to return to.
                        history = History::default();
                        unexplained += 1;
                    }
                }
            }
            judgement.add(own);
        }
        follower.ended().cloned().map_or(Ok(judgement), Err)
    }
}

fn is_followed(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::SchedSwitch { .. }
            | EventKind::SchedWakeup { .. }
            | EventKind::SchedWakeupNew { .. }
            | EventKind::SchedWaking { .. }
    )
}
