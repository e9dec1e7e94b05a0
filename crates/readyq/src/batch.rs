//! A FIFO list that is taken as one batch: one pass of the ruler or a multi-list.
//!
//! No node stores its list. The tail of an empty list is beyond every slab and equals the list's
//! index modulo 64. The first task's `prev` is a copy of it, and the ruler makes the last task's
//! `next` another. So an insertion writes only the links that the order needs.

use crate::nodes::Cursor;
use crate::{Id, Key, Node, Nodes, TaskId};

/// The two ends of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<I = TaskId> {
    /// Stale in an empty list.
    head: I,
    tail: I,
}

impl<I: Id> Batch<I> {
    /// `LISTS` empty lists.
    pub(crate) const fn lists<const LISTS: usize>() -> [Self; LISTS] {
        const { assert!(LISTS.is_power_of_two() && LISTS <= I::BEYOND.len()) };
        let mut lists = [Batch { head: I::NONE, tail: I::NONE }; LISTS];
        let mut index = 0;
        while index < LISTS {
            lists[index].tail = I::BEYOND[index];
            index += 1;
        }
        lists
    }

    /// The first task of a list that has one.
    pub(crate) fn first(&self) -> I {
        self.head
    }

    /// The last task of a list that has one.
    #[inline(always)]
    pub(crate) fn last(&self) -> I {
        self.tail
    }

    #[inline(always)]
    pub(crate) fn has_tasks<K: Key>(&self, nodes: &Nodes<I, K>) -> bool {
        nodes.holds(Cursor::at(self.tail))
    }

    /// The index of a list, modulo `LISTS`, from the end of the array: below 0. Cut to the width of
    /// an id, it is beyond every slab. One register holds both.
    #[inline(always)]
    fn place<const LISTS: usize>(index: usize) -> usize {
        index | !(LISTS - 1)
    }

    /// The id beyond every slab that equals `index` modulo `LISTS`.
    #[inline(always)]
    pub(crate) fn end<const LISTS: usize>(index: usize) -> I {
        I::from_index(Self::place::<LISTS>(index))
    }

    /// The list `index`, modulo `LISTS`.
    #[inline(always)]
    fn of<const LISTS: usize>(lists: &mut [Self; LISTS], index: usize) -> &mut Self {
        const { assert!(LISTS.is_power_of_two() && LISTS <= I::BEYOND.len()) };
        let place = Self::place::<LISTS>(index) as isize;
        // SAFETY: in a place all bits from that of `LISTS` on are set, so it is below 0 and at least
        // -`LISTS`.
        unsafe { &mut *lists.as_mut_ptr_range().end.offset(place) }
    }

    /// Appends `task` to the list `index`, modulo `LISTS`; its `next` is not changed. If the list
    /// was empty, calls `fill` with a number that equals `index` modulo `LISTS` (the old tail). So
    /// no register has to hold `index` until then.
    #[inline(always)]
    pub(crate) fn push_back<const LISTS: usize, K: Key>(
        lists: &mut [Self; LISTS],
        nodes: &mut Nodes<I, K>,
        index: usize,
        task: I,
        fill: impl FnOnce(u32),
    ) {
        let tail = core::mem::replace(&mut Self::of(lists, index).tail, task);
        nodes[task].prev = tail;
        match nodes.get_mut(tail) {
            Some(last) => last.next = task,
            None => {
                fill(tail.index() as u32);
                lists[tail.index() % LISTS].head = task;
            }
        }
    }

    /// Empties this list, which is the list `index`. Returns its first task; the others follow as a
    /// chain.
    #[inline(always)]
    pub(crate) fn take(&mut self, index: usize) -> Cursor {
        self.tail = I::BEYOND[index % I::BEYOND.len()];
        Cursor::at(self.head)
    }

    /// As [`take`](Batch::take), where insertions leave `next` stale: ends the chain with
    /// [`Id::NONE`].
    #[inline(always)]
    pub(crate) fn end_and_take<K: Key>(
        &mut self,
        nodes: &mut Nodes<I, K>,
        index: usize,
    ) -> Option<Cursor> {
        nodes.get_mut(self.tail)?.next = I::NONE;
        Some(self.take(index))
    }

    /// Removes `task` from whichever of `lists` holds it, and returns the index of that list if it
    /// is now empty. Also correct for a task of a chain other than its first: only its neighbours
    /// change. `last_of`: the list of which it is the last task, if it is that.
    #[inline]
    pub(crate) fn unlink<const LISTS: usize, K: Key>(
        lists: &mut [Self; LISTS],
        nodes: &mut Nodes<I, K>,
        task: I,
        last_of: Option<usize>,
    ) -> Option<usize> {
        let Node { prev, next, .. } = nodes[task];
        if let Some(index) = last_of {
            lists[index % LISTS].tail = prev;
            return match nodes.get_mut(prev) {
                Some(last) => {
                    last.next = next;
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
    pub(crate) fn find<K: Key>(
        &self,
        nodes: &Nodes<I, K>,
        accept: &mut impl FnMut(I) -> bool,
    ) -> Option<I> {
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
