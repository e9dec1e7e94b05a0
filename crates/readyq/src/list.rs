//! A doubly linked list through the nodes, the base of all list-shaped queues.
//!
//! The last node's `next` is [`Id::NONE`]; the first node's `prev` is *stale* and never read,
//! since a comparison with `head` finds the first node. So [`pop_front`](List::pop_front) accesses
//! a single node. An empty list's `head` is stale, too.

use crate::nodes::Cursor;
use crate::{Id, Key, Nodes, TaskId};

/// The two ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<I = TaskId> {
    pub(crate) head: I,
    /// `NONE` exactly when the list is empty.
    pub(crate) tail: I,
}

impl<I: Id> List<I> {
    pub(crate) const EMPTY: Self = List { head: I::NONE, tail: I::NONE };

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.tail == I::NONE
    }

    /// Appends `task`. Returns whether the list was empty before.
    #[inline(always)]
    pub(crate) fn push_back<K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I) -> bool {
        let tail = core::mem::replace(&mut self.tail, task);
        nodes[task].next = I::NONE;
        nodes[task].prev = tail;
        match nodes.get_mut(tail) {
            Some(last) => {
                last.next = task;
                false
            }
            None => {
                self.head = task;
                true
            }
        }
    }

    /// Removes the first task. Returns it and whether it was also the last one. An empty list does
    /// not change; its head is `NONE`.
    #[inline(always)]
    pub(crate) fn pop_front<K: Key>(&mut self, nodes: &Nodes<I, K>) -> Option<(I, bool)> {
        let task = nodes.task_at(Cursor::at(self.head))?;
        let next = nodes[task].next;
        self.head = next;
        let emptied = next == I::NONE;
        if emptied {
            self.tail = I::NONE;
        }
        Some((task, emptied))
    }

    /// Removes `task`.
    #[inline]
    pub(crate) fn unlink<K: Key>(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let (prev, next) = (nodes[task].prev, nodes[task].next);
        let first = self.head == task;
        if first {
            self.head = next;
        } else {
            nodes[prev].next = next;
        }
        if self.tail == task {
            self.tail = if first { I::NONE } else { prev };
        } else if let Some(following) = nodes.get_mut(next) {
            following.prev = prev;
        }
    }

    /// Puts `task` before `place`, which is in the list.
    #[inline]
    pub(crate) fn insert_before<K: Key>(&mut self, nodes: &mut Nodes<I, K>, place: I, task: I) {
        let prev = core::mem::replace(&mut nodes[place].prev, task);
        let node = &mut nodes[task];
        node.next = place;
        node.prev = prev;
        if self.head == place {
            self.head = task;
        } else {
            nodes[prev].next = task;
        }
    }

    /// Puts `task` after `place`, which is in the list.
    #[inline]
    pub(crate) fn insert_after<K: Key>(&mut self, nodes: &mut Nodes<I, K>, place: I, task: I) {
        let next = core::mem::replace(&mut nodes[place].next, task);
        let node = &mut nodes[task];
        node.next = next;
        node.prev = place;
        match nodes.get_mut(next) {
            Some(following) => following.prev = task,
            None => self.tail = task,
        }
    }
}

/// Offers the tasks from `task` to the end of its list. Returns the first one that `accept` returns
/// true for.
pub(crate) fn find_from<I: Id, K: Key>(
    nodes: &Nodes<I, K>,
    mut task: I,
    accept: &mut impl FnMut(I) -> bool,
) -> Option<I> {
    while let Some(node) = nodes.get(task) {
        if accept(task) {
            return Some(task);
        }
        task = node.next;
    }
    None
}
