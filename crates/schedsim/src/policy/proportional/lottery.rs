//! Lottery scheduling: for each quantum a ticket is drawn, and its holder runs.
//!
//! Shares are right on average, and only bad luck starves a task; no state can go wrong. Right
//! where tickets change all the time. Bad over short times: after n draws a share of p is off by
//! about sqrt(p (1 - p) / n).
//!
//! Source: Waldspurger & Weihl 1994, "Lottery Scheduling: Flexible Proportional-Share Resource
//! Management" (OSDI), 2 and 4.5. A task that uses only a part f of its quantum has 1/f of its
//! tickets until it next wins (compensation tickets). Not implemented: currencies and transfers.
//! Cost: O(n) per draw, a scan of the waiting tasks, as in the paper's 4.2.

use super::{Options, Proportional, QUANTUM, Rule};
use crate::policy::Shares;
use crate::policy::descriptor::{Descriptor, Make};
use crate::{Nanos, Random, TaskId};

/// The policy.
pub type Lottery = Proportional<Tickets>;

/// The waiting tasks and their tickets.
#[derive(Clone, Debug, Default)]
pub struct Tickets {
    /// The tickets of each task, and their current worth.
    tasks: Vec<(u32, u64)>,
    /// The waiting tasks in order of arrival.
    waiting: Vec<TaskId>,
}

impl Lottery {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Lottery {
        Proportional::with_rule(Tickets::default(), cpus, options)
    }
}

impl Rule for Tickets {
    fn admit(&mut self, task: TaskId, tickets: u32) {
        let len = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(len, (1, 1));
        self.tasks[task.index()] = (tickets.max(1), u64::from(tickets.max(1)));
    }

    fn join(&mut self, _task: TaskId, _is_back: bool) {}

    fn set_tickets(&mut self, task: TaskId, tickets: u32, _ran: Option<Nanos>) {
        let (held, worth) = &mut self.tasks[task.index()];
        let (old, new) = (u128::from(*held), u128::from(tickets.max(1)));
        *held = tickets.max(1);
        *worth =
            u64::try_from(u128::from(*worth) * new / old).unwrap_or(u64::MAX).max(u64::from(*held)); // compensation tickets, too
    }

    fn leave(&mut self, _task: TaskId) {}

    fn charge(&mut self, task: TaskId, used: Nanos, quantum: Nanos) {
        let (tickets, worth) = &mut self.tasks[task.index()];
        let held = u64::from(*tickets);
        *worth = if used < quantum {
            held.saturating_mul(quantum.0 / used.0.max(1)).max(held)
        } else {
            held
        };
    }

    fn wait(&mut self, task: TaskId) {
        self.waiting.push(task);
    }

    fn stop_waiting(&mut self, task: TaskId) {
        self.waiting.retain(|&other| other != task);
    }

    fn choose(&self, random: &mut Random, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let worth = |task: TaskId| self.tasks[task.index()].1;
        let candidates = || self.waiting.iter().copied().filter(|&task| suits(task));
        let all = candidates().map(worth).fold(0, u64::saturating_add);
        if candidates().nth(1).is_none() {
            return candidates().next(); // nothing to draw
        }
        let mut drawn = random.below(all);
        candidates().find(|&task| {
            let is_it = drawn < worth(task);
            drawn = drawn.saturating_sub(worth(task));
            is_it
        })
    }

    fn any(&self, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.waiting.iter().copied().find(|&task| suits(task))
    }

    fn waiting(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn shares(&self, _quantum: Nanos) -> Option<Shares> {
        None
    }
}

/// Lottery scheduling.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "lottery",
    summary: "lottery scheduling: shares by weight on average, the holder of the drawn ticket runs",
    source: "Waldspurger & Weihl 1994, Lottery Scheduling (OSDI), 2 and 4.5",
    options: &[QUANTUM],
    structure: Some("sorted-list"),
    scheduler: &Make(|given| Lottery::new(given.cpus(), Options::from(given))),
};
