//! Round robin: a FIFO list.
//!
//! Tasks run in order of arrival; levels are ignored. Right when all tasks matter alike, and the
//! cheapest order of all. It cannot favour any task. If running tasks may stay linked,
//! [`RoundRobinInPlace`] costs a third of it.
//!
//! Cost: O(1), the same at any length. Source: Porter 2021, structure (1).

use crate::nodes::Cursor;
use crate::{Level, Node, Nodes, ReadyQueue, TaskId};

/// A doubly linked FIFO list.
///
/// Tasks at the ends are known by their ids, not by their links: the first node's `prev` and the
/// last node's `next` are stale. So an insertion writes two links and a pop none.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    head: Cursor,
    /// Both are `Cursor::NONE` when the list is empty.
    tail: Cursor,
}

impl RoundRobin {
    /// An empty queue.
    pub const fn new() -> Self {
        RoundRobin { head: Cursor::NONE, tail: Cursor::NONE }
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
        let tail = core::mem::replace(&mut self.tail, Cursor::at(task));
        nodes[task].prev = tail.task();
        match nodes.task_at(tail) {
            Some(last) => nodes[last].next = task,
            None => self.head = Cursor::at(task),
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = nodes.task_at(self.head)?;
        self.head = Cursor::at(nodes[task].next);
        if self.tail == Cursor::at(task) {
            *self = Self::new();
        }
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.head.task().known()
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        let Node { prev, next, .. } = nodes[task];
        match (self.head == Cursor::at(task), self.tail == Cursor::at(task)) {
            (true, true) => *self = Self::new(),
            (true, false) => self.head = Cursor::at(next),
            (false, true) => self.tail = Cursor::at(prev),
            (false, false) => {
                nodes[prev].next = next;
                nodes[next].prev = prev;
            }
        }
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let mut cursor = self.head;
        while let Some(task) = nodes.task_at(cursor) {
            if accept(task) {
                return Some(task);
            }
            cursor = if cursor == self.tail { Cursor::NONE } else { Cursor::at(nodes[task].next) };
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.head == Cursor::NONE
    }
}
