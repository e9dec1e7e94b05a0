//! Virtual clock in a red-black tree: the task with the minimum virtual time runs, FIFO among
//! equals.
//!
//! Right for proportional rates with arbitrary strides and hundreds of tasks, and where tasks must
//! also be found by order. It costs several times what the list structures cost, and more with
//! every doubling of the tasks; with bounded strides the [`Wheel`](crate::Wheel) has the same order
//! for less.
//!
//! Cost: insert O(log n), pop amortised O(1) rotations plus the way up. Source: Porter 2021,
//! structure (4). Deviations: the first task is cached; keys wrap; a waking task does not get the
//! slices it missed (see [`Strides`]).

use crate::clock::{Clock, LONGEST_STRIDE, before};
use crate::tree::Tree;
use crate::{Level, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// A red-black tree keyed by virtual time.
#[derive(Clone, Debug)]
pub struct RbTree<P = ()> {
    tree: Tree,
    clock: Clock,
    probe: P,
}

impl RbTree {
    /// An empty queue.
    pub const fn new(strides: Strides) -> Self {
        RbTree { tree: Tree::new(), clock: Clock::new(strides), probe: () }
    }
}

impl<P: Probe> RbTree<P> {
    /// An empty queue whose `probe` counts the tree levels that inserts descend.
    pub const fn with_probe(strides: Strides, probe: P) -> Self {
        RbTree { tree: Tree::new(), clock: Clock::new(strides), probe }
    }
}

impl<P: Probe> ReadyQueue for RbTree<P> {
    #[inline(always)]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        let Self { tree, probe, .. } = self;
        tree.insert_before(nodes, task, |other| {
            probe.step();
            before(key, other.key)
        });
    }

    #[inline(always)]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.tree.pop_first(nodes)?;
        self.clock.now = nodes[task].key;
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.tree.first()
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.tree.remove(nodes, task);
    }

    fn find(&self, nodes: &Nodes, accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        self.tree.find(nodes, accept)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(LONGEST_STRIDE)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
