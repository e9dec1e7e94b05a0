//! Stride scheduling: everybody has a pass, which advances by what was used over the tickets held, and the least pass runs.
//!
//! Deterministic, and no pair of tasks is further apart than a quantum. Right where shares shall be exact over short times too. It does badly at
//! latency: a task that wakes waits for its turn as if it had not slept, however little it needs.
//!
//! Source: Waldspurger & Weihl 1995, "Stride Scheduling: Deterministic Proportional-Share Resource Management" (MIT/LCS/TM-528), figures 1 and 4:
//! dynamic participation (a task that leaves takes along how far its pass is ahead of the global one, and comes back with that), quanta that are not
//! used up advance by what was used. Cost: O(log n).

use super::{Options, Proportional, QUANTUM, Rule};
use crate::policy::descriptor::{Descriptor, Make};
use crate::policy::{ShareMeasure, Shares};
use crate::{Nanos, Random, TaskId};
use std::collections::BTreeSet;

/// The policy.
pub type Stride = Proportional<Strides>;

/// Passes are counted in ns of a task with one ticket, times this.
const SCALE: u128 = 1 << 10;

/// Who has used how much by tickets.
#[derive(Clone, Debug, Default)]
pub struct Strides {
    tasks: Vec<Client>,
    waiting: BTreeSet<(u64, u64, TaskId)>,
    /// The pass of one that had all tickets of those that compete.
    global: u64,
    tickets: u64,
    /// The place of the next among equals.
    tail: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    tickets: u32,
    pass: u64,
    /// While it does not compete: by how much its pass was ahead of the global one.
    remain: u64,
    place: u64,
}

impl Stride {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Stride {
        Proportional::with_rule(Strides::default(), cpus, options)
    }
}

impl Rule for Strides {
    fn admit(&mut self, task: TaskId, tickets: u32) {
        let len = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(len, Client::default());
        self.tasks[task.index()] = Client { tickets: tickets.max(1), ..Client::default() };
    }

    fn join(&mut self, task: TaskId) {
        let client = &mut self.tasks[task.index()];
        client.pass = self.global + client.remain;
        self.tickets += u64::from(client.tickets);
    }

    fn leave(&mut self, task: TaskId) {
        let client = &mut self.tasks[task.index()];
        // One that is behind does not come back with a claim: passes of others have moved on meanwhile.
        client.remain = client.pass.saturating_sub(self.global);
        self.tickets -= u64::from(client.tickets);
    }

    fn charge(&mut self, task: TaskId, used: Nanos, _quantum: Nanos) {
        let client = &mut self.tasks[task.index()];
        let scaled = u128::from(used.0) * SCALE;
        client.pass += (scaled / u128::from(client.tickets)) as u64;
        self.global += (scaled / u128::from(self.tickets.max(1))) as u64;
    }

    fn wait(&mut self, task: TaskId) {
        self.tail += 1;
        let client = &mut self.tasks[task.index()];
        client.place = self.tail;
        self.waiting.insert((client.pass, client.place, task));
    }

    fn stop_waiting(&mut self, task: TaskId) {
        let Client { pass, place, .. } = self.tasks[task.index()];
        self.waiting.remove(&(pass, place, task));
    }

    fn choose(&self, _random: &mut Random, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.any(suits)
    }

    fn any(&self, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        self.waiting.iter().map(|&(_, _, task)| task).find(|&task| suits(task))
    }

    fn waiting(&self) -> u32 {
        self.waiting.len() as u32
    }

    fn shares(&self, quantum: Nanos) -> Option<Shares> {
        // Whoever starts has the least pass; after a quantum it is ahead of that by no more than a quantum of the lightest.
        Some(Shares { measure: ShareMeasure::Spread { fixed: quantum, per_task: Nanos::ZERO }, undisturbed: true })
    }
}

/// Stride scheduling.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "stride",
    summary: "stride scheduling: shares by weight to the quantum, the task with the least pass runs",
    source: "Waldspurger & Weihl 1995, Stride Scheduling (MIT/LCS/TM-528), figures 1 and 4",
    options: &[QUANTUM],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Stride::new(given.cpus(), Options::from(given))),
};
