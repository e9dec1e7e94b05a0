//! What sets of objects hold.

use crate::TaskId;
use crate::workload::{Source, Watched};
use std::collections::{BTreeMap, VecDeque};

/// All sets.
#[derive(Debug, Default)]
pub struct Epolls {
    pub sets: Vec<EpollState>,
    pub sources: Vec<SourceState>,
    /// By set and object: the number of the source.
    pub numbers: BTreeMap<(u32, Watched), u32>,
    /// What the last wait of a task returned, as far as it is not handled.
    pub returned: BTreeMap<TaskId, VecDeque<u32>>,
    /// Of handlers that differ from round to round: where each continues, by the number of the wait.
    pub cursors: BTreeMap<u32, Vec<u32>>,
    /// Which of them each task does now.
    pub handling: BTreeMap<TaskId, u32>,
    /// By task and set: the sources that its last wait returned and that it is to drain.
    pub draining: BTreeMap<(TaskId, u32), Vec<u32>>,
    /// The tasks that poll, and whether each sleeps.
    pub polling: BTreeMap<TaskId, bool>,
}

impl Epolls {
    /// Whether a task waits for the set of a source.
    pub fn has_waiter(&self, source: u32) -> bool {
        let set = self.sources[source as usize].set;
        !self.sets[set as usize].waiters.is_empty()
    }
}

#[derive(Debug)]
pub struct EpollState {
    /// The number of the first source among all.
    pub first: u32,
    /// The most that a wait returns.
    pub events: usize,
    pub ready: VecDeque<u32>,
    /// The last to come is woken first (`__add_wait_queue_exclusive`).
    pub waiters: VecDeque<Waiter>,
}

/// A task that waits for a set.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub task: TaskId,
    /// The number of its wait.
    pub serve: u32,
}

/// An object in a set.
#[derive(Debug)]
pub struct SourceState {
    pub set: u32,
    pub of: Source,
    /// Whether it is watched now.
    pub is_on: bool,
    /// Whether it is on the set's list.
    pub is_listed: bool,
}
