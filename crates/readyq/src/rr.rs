//! Round robin: a FIFO list.
//!
//! Tasks run in order of arrival; levels are ignored. Right when all tasks matter alike, and the
//! cheapest order of all. It cannot favour any task. If running tasks may stay linked,
//! [`RoundRobinInPlace`] costs a third of it.
//!
//! Cost: O(1), the same at any length: no mask, and writes to at most two nodes. Source: Porter 2021, structure (1).

use core::marker::PhantomData;

use crate::nodes::Cursor;
use crate::{Id, Key, Level, Node, Nodes, ReadyQueue, TaskId};

/// A doubly linked FIFO list.
///
/// Tasks at the ends are known by their ids, not by their links: the first node's `prev` and the
/// last node's `next` are stale. So an insertion writes two links and a pop none.
#[derive(Clone, Debug)]
pub struct RoundRobin<I = TaskId, K = u64> {
    head: Cursor,
    /// Both are `Cursor::NONE` when the list is empty.
    tail: Cursor,
    nodes: PhantomData<fn(I, K)>,
}

impl RoundRobin {
    /// An empty queue, of the default width.
    pub const fn new() -> Self {
        RoundRobin::EMPTY
    }
}

impl<I, K> RoundRobin<I, K> {
    /// As [`new`](RoundRobin::new), of any width.
    pub const EMPTY: Self =
        RoundRobin { head: Cursor::NONE, tail: Cursor::NONE, nodes: PhantomData };
}

impl<I, K> Default for RoundRobin<I, K> {
    fn default() -> Self {
        RoundRobin::EMPTY
    }
}

impl<I: Id, K: Key> ReadyQueue<I, K> for RoundRobin<I, K> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, _level: Level) {
        let tail = core::mem::replace(&mut self.tail, Cursor::at(task));
        nodes[task].prev = tail.task();
        match nodes.task_at(tail) {
            Some(last) => nodes[last].next = task,
            None => self.head = Cursor::at(task),
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let task = nodes.task_at(self.head)?;
        self.head = Cursor::at(nodes[task].next);
        if self.tail == Cursor::at(task) {
            *self = RoundRobin::EMPTY;
        }
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes<I, K>) -> Option<I> {
        self.head.task::<I>().known()
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let Node { prev, next, .. } = nodes[task];
        match (self.head == Cursor::at(task), self.tail == Cursor::at(task)) {
            (true, true) => *self = RoundRobin::EMPTY,
            (true, false) => self.head = Cursor::at(next),
            (false, true) => self.tail = Cursor::at(prev),
            (false, false) => {
                nodes[prev].next = next;
                nodes[next].prev = prev;
            }
        }
    }

    fn find(&self, nodes: &Nodes<I, K>, mut accept: impl FnMut(I) -> bool) -> Option<I> {
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
