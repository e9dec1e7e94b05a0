//! pslist, the partially sorted list: a virtual clock that sorts no more than "in front of the
//! middle, or behind everything".
//!
//! The list is not sorted. A task whose key is less than that of the list's middle task is inserted
//! before the middle; any other goes to the tail. Right where O(1) matters more than exact rates.
//! That is for equal tasks: it is then round robin. Or for tasks that run until their virtual time
//! passes that of the next one ([`PsList::with_stop_rule`]), which sorts while running. Bad for
//! tasks of different weights that yield or are preempted early: a frequent task still waits behind
//! half the list. So it gets at most about two slices per round, and the virtual times drift apart
//! without bound.
//!
//! Cost: O(1) in every operation. Source: the post "Partial sorted list scheduler – pslist" (Linux
//! 3.6). Choices where the post is silent: tasks leave at the head. The middle is the first task of
//! the back half, which is as long as the front half or one longer. Each node stores its half, so
//! that removing any task updates the middle in O(1). A key equal to the middle's counts as
//! greater, which keeps FIFO among equal tasks. A waking task is inserted like any other, at the
//! key that [`Strides`] describes.

use crate::clock::Clock;
use crate::list::{List, find_from};
use crate::{Id, Key, Level, Nodes, ReadyQueue, Strides, TaskId};

const FRONT: u8 = 0;
const BACK: u8 = 1;

/// A partially sorted list.
#[derive(Clone, Debug)]
pub struct PsList {
    list: List,
    /// The first task of the back half; `NONE` exactly when the list is empty.
    middle: TaskId,
    /// The number of tasks with the tag `FRONT`, which are the first ones of the list.
    front: u32,
    /// The number of tasks with the tag `BACK`: `front` or `front + 1`.
    back: u32,
    clock: Clock,
    stop_rule: bool,
    /// The task that [`pop`](ReadyQueue::pop) returned last, until it is inserted again.
    running: TaskId,
}

impl PsList {
    /// An empty queue in which every slice ends with a switch, as under `sched_yield`.
    pub const fn new(strides: Strides) -> Self {
        PsList {
            list: List::EMPTY,
            middle: TaskId::NONE,
            front: 0,
            back: 0,
            clock: Clock::new(strides),
            stop_rule: false,
            running: TaskId::NONE,
        }
    }

    /// An empty queue with the post's stop rule. A running task may be inserted again while its
    /// virtual time is not larger than the next one's. It then goes back to the head and continues
    /// to run. Virtual times then stay close together.
    pub const fn with_stop_rule(strides: Strides) -> Self {
        PsList { stop_rule: true, ..PsList::new(strides) }
    }

    /// Inserts `task` before the middle task if it precedes that one, else at the tail; for callers
    /// with their own keys.
    #[inline]
    pub fn insert_by(
        &mut self,
        nodes: &mut Nodes,
        task: TaskId,
        precedes: impl FnOnce(TaskId) -> bool,
    ) {
        let middle = self.middle;
        if middle != TaskId::NONE && precedes(middle) {
            self.insert_in_front(nodes, middle, task);
        } else {
            self.list.push_back(nodes, task);
            nodes[task].tag = BACK;
            self.back += 1;
            if self.back == 1 {
                self.middle = task;
            }
        }
        self.balance(nodes);
    }

    /// Puts `task` before `place`, which is in the front half or the middle.
    #[inline]
    fn insert_in_front(&mut self, nodes: &mut Nodes, place: TaskId, task: TaskId) {
        self.list.insert_before(nodes, place, task);
        nodes[task].tag = FRONT;
        self.front += 1;
    }

    /// Restores equal halves after an insertion or a removal.
    #[inline]
    fn balance(&mut self, nodes: &mut Nodes) {
        if self.front > self.back {
            self.middle = if self.back == 0 { self.list.tail } else { nodes[self.middle].prev };
            nodes[self.middle].tag = BACK;
            self.front -= 1;
            self.back += 1;
        } else if self.back > self.front + 1 {
            let node = &mut nodes[self.middle];
            node.tag = FRONT;
            self.middle = node.next;
            self.front += 1;
            self.back -= 1;
        }
    }
}

impl ReadyQueue for PsList {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        let was_running = task == self.running;
        if was_running {
            self.running = TaskId::NONE;
        }
        let runs_on = was_running && self.stop_rule;
        let (head, middle) = (self.list.head, self.middle);
        if runs_on && nodes.get(head).is_some_and(|node| !node.key.is_before(key)) {
            self.insert_in_front(nodes, head, task);
            return self.balance(nodes);
        }
        let precedes = nodes.get(middle).is_some_and(|node| key.is_before(node.key));
        self.insert_by(nodes, task, |_| precedes);
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.list.head.known()?;
        self.remove(nodes, task);
        self.clock.now = nodes[task].key;
        self.running = task;
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.list.head.known()
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        if self.middle == task {
            self.middle = nodes[task].next;
        }
        if nodes[task].tag == FRONT {
            self.front -= 1;
        } else {
            self.back -= 1;
        }
        self.list.unlink(nodes, task);
        self.balance(nodes);
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
}
