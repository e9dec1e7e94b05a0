//! Virtual clock in a sorted list: the task with the minimum virtual time runs, FIFO among equals.
//!
//! An insertion searches the list, forward from its head or in reverse from its tail. Right for a
//! few tens of tasks: the search takes a few instructions per task, and a pop costs the same as in
//! a list. Bad beyond, since the search grows with the tasks. Forward is faster with many levels
//! (frequent tasks go near the head), reverse with few (it does not pass equal keys).
//!
//! Cost: insert O(n), pop and remove O(1). Source: Porter 2021, structure (3), and "Linked List
//! Search Direction". Deviations: keys wrap; a waking task does not get the slices it missed (see
//! [`Strides`]).

use crate::clock::Clock;
use crate::list::{List, find_from};
use crate::{Id, Key, Level, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// A sorted list that is searched from its head.
pub type SortedList<P = ()> = Sorted<false, P>;

/// A sorted list that is searched from its tail.
pub type SortedListReverse<P = ()> = Sorted<true, P>;

/// A list sorted by virtual time; [`SortedList`] and [`SortedListReverse`] name the two directions
/// of its search.
#[derive(Clone, Debug)]
pub struct Sorted<const REVERSE: bool, P> {
    list: List,
    clock: Clock,
    probe: P,
}

impl<const REVERSE: bool> Sorted<REVERSE, ()> {
    /// An empty queue.
    pub const fn new(strides: Strides) -> Self {
        Sorted { list: List::EMPTY, clock: Clock::new(strides), probe: () }
    }
}

impl<const REVERSE: bool, P: Probe> Sorted<REVERSE, P> {
    /// An empty queue whose `probe` counts the list elements that inserts walk past.
    pub const fn with_probe(strides: Strides, probe: P) -> Self {
        Sorted { list: List::EMPTY, clock: Clock::new(strides), probe }
    }

    /// Inserts before the first task that comes later.
    #[inline(always)]
    fn insert_forward(&mut self, nodes: &mut Nodes, task: TaskId, key: u64) {
        let mut place = self.list.head;
        while let Some(node) = nodes.get(place) {
            if key.is_before(node.key) {
                return self.list.insert_before(nodes, place, task);
            }
            self.probe.step();
            place = node.next;
        }
        self.list.push_back(nodes, task);
    }

    /// Inserts after the last task that does not come later.
    #[inline(always)]
    fn insert_reverse(&mut self, nodes: &mut Nodes, task: TaskId, key: u64) {
        let mut place = self.list.tail;
        while let Some(node) = nodes.get(place) {
            if !key.is_before(node.key) {
                return self.list.insert_after(nodes, place, task);
            }
            self.probe.step();
            if place == self.list.head {
                return self.list.insert_before(nodes, place, task);
            }
            place = node.prev;
        }
        self.list.push_back(nodes, task);
    }
}

impl<const REVERSE: bool, P: Probe> ReadyQueue for Sorted<REVERSE, P> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        if REVERSE {
            self.insert_reverse(nodes, task, key);
        } else {
            self.insert_forward(nodes, task, key);
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let (task, _) = self.list.pop_front(nodes)?;
        self.clock.now = nodes[task].key;
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

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(u64::LONGEST_STRIDE)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
