//! Virtual clock in a red-black tree: the task with the minimum virtual time runs, FIFO among
//! equals.
//!
//! Right for proportional rates with arbitrary strides and hundreds of tasks, and where tasks must
//! also be found by order. It costs several times what the list structures cost, and more with
//! every doubling of the tasks. With bounded strides the [`Wheel`](crate::Wheel) has the same order
//! for less.
//!
//! Cost: insert O(log n), pop amortised O(1) rotations plus the way up. Source: Porter 2021,
//! structure (4). Deviations: the first task is cached; keys wrap; a waking task does not get the
//! slices it missed (see [`Strides`]).

use crate::clock::Clock;
use crate::tree::Tree;
use crate::{Id, Key, Level, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// A red-black tree keyed by virtual time.
#[derive(Clone, Debug)]
pub struct RbTree<I = TaskId, K = u64, P = ()> {
    tree: Tree<I>,
    clock: Clock<K>,
    probe: P,
}

impl RbTree {
    /// An empty queue, of the default width.
    pub const fn new(strides: Strides) -> Self {
        RbTree::with_probe(strides, ())
    }
}

impl<I: Id, K: Key, P: Probe> RbTree<I, K, P> {
    /// An empty queue of any width, whose `probe` counts the tree levels that inserts descend; `()`
    /// counts nothing.
    pub const fn with_probe(strides: Strides, probe: P) -> Self {
        RbTree { tree: Tree::EMPTY, clock: Clock::new(strides), probe }
    }
}

impl<I: Id, K: Key, P: Probe> ReadyQueue<I, K> for RbTree<I, K, P> {
    #[inline(always)]
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        let Self { tree, probe, .. } = self;
        tree.insert_before(nodes, task, |other| {
            probe.step();
            key.is_before(other.key)
        });
    }

    #[inline(always)]
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let task = self.tree.pop_first(nodes)?;
        self.clock.now = nodes[task].key;
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes<I, K>) -> Option<I> {
        self.tree.first()
    }

    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        self.tree.remove(nodes, task);
    }

    fn find(&self, nodes: &Nodes<I, K>, accept: impl FnMut(I) -> bool) -> Option<I> {
        self.tree.find(nodes, accept)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(K::LONGEST_STRIDE)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
