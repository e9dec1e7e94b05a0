//! Stride scheduling: each task has a pass, which advances by its CPU time over its tickets, and
//! the smallest pass runs.
//!
//! Deterministic, and no two tasks are further apart than a quantum. Right where shares must be
//! exact over short times, too. Bad at latency: a woken task waits as if it had not slept, even if
//! it needs little.
//!
//! Source: Waldspurger & Weihl 1995, "Stride Scheduling: Deterministic Proportional-Share Resource
//! Management" (MIT/LCS/TM-528), figures 1, 4 and 5. Dynamic participation: a task that leaves
//! stores how far its pass is ahead of the global one, and returns with that. A quantum that is not
//! used up advances the pass by the used part. A change of tickets scales how far ahead a task is.
//! Cost: O(log n).

use super::{Options, Proportional, QUANTUM, Rule};
use crate::policy::descriptor::{Descriptor, Make};
use crate::policy::{ShareMeasure, Shares};
use crate::{Nanos, Random, TaskId};
use std::collections::BTreeSet;

/// The policy.
pub type Stride = Proportional<Strides>;

/// A pass counts ns of a task with one ticket, times this.
const SCALE: u128 = 1 << 10;

/// The passes of all tasks.
#[derive(Clone, Debug, Default)]
pub struct Strides {
    tasks: Vec<Client>,
    waiting: BTreeSet<(u64, u64, TaskId)>,
    /// The pass of a task with all tickets of the competitors.
    global: u64,
    tickets: u64,
    /// The sequence number of the next task among equals.
    tail: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    tickets: u32,
    pass: u64,
    /// While it does not compete: how far its pass was ahead of the global one.
    remain: i64,
    competes: bool,
    /// The charged part of its current quantum.
    paid: Nanos,
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

    fn join(&mut self, task: TaskId, is_back: bool) {
        let client = &mut self.tasks[task.index()];
        // A task that was behind and slept returns without a claim: other passes have advanced
        // meanwhile.
        client.competes = true;
        client.pass = self.global.saturating_add_signed(if is_back {
            client.remain
        } else {
            client.remain.max(0)
        });
        self.tickets += u64::from(client.tickets);
    }

    fn leave(&mut self, task: TaskId) {
        let client = &mut self.tasks[task.index()];
        client.competes = false;
        client.remain = client.pass.wrapping_sub(self.global).cast_signed();
        self.tickets -= u64::from(client.tickets);
    }

    /// Figure 5, `client_modify`: scales how far ahead the task is by its tickets.
    fn set_tickets(&mut self, task: TaskId, tickets: u32, ran: Option<Nanos>) {
        if let Some(ran) = ran {
            self.charge(task, ran, ran);
            self.tasks[task.index()].paid = ran;
        }
        let competes = self.tasks[task.index()].competes;
        if competes {
            self.leave(task);
        }
        let client = &mut self.tasks[task.index()];
        let old = std::mem::replace(&mut client.tickets, tickets.max(1));
        client.remain =
            (i128::from(client.remain) * i128::from(old) / i128::from(client.tickets)) as i64;
        if competes {
            self.join(task, true);
        }
    }

    fn charge(&mut self, task: TaskId, used: Nanos, _quantum: Nanos) {
        let client = &mut self.tasks[task.index()];
        let used = used.saturating_sub(std::mem::take(&mut client.paid));
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
        // A task that starts has the smallest pass; after a quantum it is ahead of that by at most
        // a quantum of the lightest.
        Some(Shares {
            measure: ShareMeasure::Spread { fixed: quantum, per_task: Nanos::ZERO },
            undisturbed: true,
        })
    }
}

/// Stride scheduling.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "stride",
    summary: "stride scheduling: shares by weight to the quantum, the task with the least pass \
              runs",
    source: "Waldspurger & Weihl 1995, Stride Scheduling (MIT/LCS/TM-528), figures 1, 4 and 5",
    options: &[QUANTUM],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Stride::new(given.cpus(), Options::from(given))),
};
