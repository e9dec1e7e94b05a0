//! Round robin: a FIFO list.
//!
//! Every task gets its turn in the order of arrival; levels are ignored. Right when all tasks are equal. Costs the same at any length.
//! Source: Porter 2021, structure (1).

use crate::{Level, Nodes, ReadyQueue, TaskId};

/// A doubly linked FIFO list.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    head: TaskId,
    tail: TaskId,
}

impl RoundRobin {
    /// An empty queue.
    pub const fn new() -> Self {
        RoundRobin { head: TaskId::NONE, tail: TaskId::NONE }
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
        let tail = self.tail;
        nodes[task].next = TaskId::NONE;
        nodes[task].prev = tail;
        if tail == TaskId::NONE {
            self.head = task;
        } else {
            nodes[tail].next = task;
        }
        self.tail = task;
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.head;
        if task == TaskId::NONE {
            return None;
        }
        self.remove(nodes, task);
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        (self.head != TaskId::NONE).then_some(self.head)
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        let Self { head, tail } = self;
        let (prev, next) = (nodes[task].prev, nodes[task].next);
        *(if prev == TaskId::NONE { head } else { &mut nodes[prev].next }) = next;
        *(if next == TaskId::NONE { tail } else { &mut nodes[next].prev }) = prev;
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let mut task = self.head;
        while task != TaskId::NONE {
            if accept(task) {
                return Some(task);
            }
            task = nodes[task].next;
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.head == TaskId::NONE
    }
}
