//! Round robin: a FIFO list.
//!
//! Every task gets its turn in the order of arrival; levels are ignored. Right when all tasks matter alike, and as the cheapest order there is. It can
//! favour nobody. If running tasks may stay linked, [`RoundRobinInPlace`] costs a third of it.
//!
//! Cost: O(1), the same at any length. Source: Porter 2021, structure (1).

use crate::list::{List, find_from};
use crate::{Level, Nodes, ReadyQueue, TaskId};

/// A doubly linked FIFO list.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    list: List,
}

impl RoundRobin {
    /// An empty queue.
    pub const fn new() -> Self {
        RoundRobin { list: List::EMPTY }
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadyQueue for RoundRobin {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, _level: Level) {
        // Unlike `List::push_back` and `pop_front`, these two leave the tail stale while the list is empty: fewer instructions.
        let tail = core::mem::replace(&mut self.list.tail, task);
        nodes[task].next = TaskId::NONE;
        nodes[task].prev = tail;
        if self.list.is_empty() {
            self.list.head = task;
        } else {
            nodes[tail].next = task;
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.list.head;
        self.list.head = nodes.get(task)?.next;
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.list.head.known()
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.list.unlink(nodes, task);
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        find_from(nodes, self.list.head, &mut accept)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
