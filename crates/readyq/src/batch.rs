//! A FIFO list that is taken as one batch: one pass of the ruler or a multi-list.
//!
//! No node stores its list. The tail of an empty list is beyond every slab and equals the list's
//! index modulo 64; the first task's `prev` is a copy of it. So an insertion writes only the links
//! that the order needs. The ends of all lists are searched only when a last task is removed.

use crate::nodes::Cursor;
use crate::{Node, Nodes, TaskId};

/// The maximum number of lists of a structure.
const MOST: usize = 64;

/// The tail of each list while it is empty. A table: a lookup takes one instruction less than the
/// computation.
static NO_TAIL: [TaskId; MOST] = no_tails();

const fn no_tails() -> [TaskId; MOST] {
    let mut tails = [TaskId::NONE; MOST];
    let mut index = 0;
    while index < MOST {
        tails[index] = TaskId((Nodes::MOST + index) as u32);
        index += 1;
    }
    tails
}

/// The two ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Stale in an empty list.
    head: TaskId,
    tail: TaskId,
}

impl Batch {
    /// `LISTS` empty lists.
    pub(crate) const fn lists<const LISTS: usize>() -> [Batch; LISTS] {
        const { assert!(LISTS.is_power_of_two() && LISTS <= MOST) };
        let tails = no_tails();
        let mut lists = [Batch { head: TaskId::NONE, tail: TaskId::NONE }; LISTS];
        let mut index = 0;
        while index < LISTS {
            lists[index].tail = tails[index];
            index += 1;
        }
        lists
    }

    /// The first task of a list that has one.
    pub(crate) fn first(&self) -> TaskId {
        self.head
    }

    #[inline(always)]
    pub(crate) fn has_tasks(&self, nodes: &Nodes) -> bool {
        nodes.holds(Cursor::at(self.tail))
    }

    /// Appends `task` to the list `index`; its `next` is not changed. If the list was empty, calls
    /// `fill` with a number that equals `index` modulo 64 (the old tail), so that no register has
    /// to hold `index` until then.
    #[inline(always)]
    pub(crate) fn push_back<const LISTS: usize>(
        lists: &mut [Batch; LISTS],
        nodes: &mut Nodes,
        index: usize,
        task: TaskId,
        fill: impl FnOnce(u32),
    ) {
        let tail = core::mem::replace(&mut lists[index].tail, task);
        nodes[task].prev = tail;
        match nodes.get_mut(tail) {
            Some(last) => last.next = task,
            None => {
                fill(tail.0);
                lists[tail.index() % LISTS].head = task;
            }
        }
    }

    /// Empties this list, which is the list `index`. Returns its first task; the others follow as a
    /// chain.
    #[inline(always)]
    pub(crate) fn take(&mut self, index: usize) -> Cursor {
        self.tail = NO_TAIL[index % MOST];
        Cursor::at(self.head)
    }

    /// As [`take`](Batch::take), where insertions leave `next` stale: ends the chain with
    /// [`TaskId::NONE`].
    #[inline(always)]
    pub(crate) fn end_and_take(&mut self, nodes: &mut Nodes, index: usize) -> Option<Cursor> {
        nodes.get_mut(self.tail)?.next = TaskId::NONE;
        Some(self.take(index))
    }

    /// Removes `task` from whichever of `lists` holds it, and returns the index of that list if it
    /// is now empty. Also correct for a task of a chain other than its first: only its neighbours
    /// change. `may_be_last`: whether to search the ends of the lists for it.
    pub(crate) fn unlink<const LISTS: usize>(
        lists: &mut [Batch; LISTS],
        nodes: &mut Nodes,
        task: TaskId,
        may_be_last: bool,
    ) -> Option<usize> {
        let Node { prev, next, .. } = nodes[task];
        if may_be_last && let Some(list) = lists.iter_mut().find(|list| list.tail == task) {
            list.tail = prev;
            return match nodes.get_mut(prev) {
                Some(last) => {
                    last.next = TaskId::NONE;
                    None
                }
                None => Some(prev.index() % LISTS),
            };
        }
        if let Some(following) = nodes.get_mut(next) {
            following.prev = prev;
        }
        match nodes.get_mut(prev) {
            Some(before) => before.next = next,
            None => lists[prev.index() % LISTS].head = next,
        }
        None
    }

    /// The first task of a non-empty list that `accept` returns true for.
    pub(crate) fn find(
        &self,
        nodes: &Nodes,
        accept: &mut impl FnMut(TaskId) -> bool,
    ) -> Option<TaskId> {
        let mut task = self.head;
        while !accept(task) {
            if task == self.tail {
                return None;
            }
            task = nodes[task].next;
        }
        Some(task)
    }
}
