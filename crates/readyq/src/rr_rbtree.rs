//! Round robin in a red-black tree, keyed by an arrival counter: the order of
//! [`RoundRobin`](crate::RoundRobin) at a tree's price.
//!
//! Never the right choice. It shows the cost of a tree that is filled at one end and emptied at the
//! other.
//!
//! Cost: insert and pop O(log n). Source: Porter 2021, structure (2).

use crate::tree::Tree;
use crate::{Level, Nodes, Probe, ReadyQueue, TaskId};

/// A red-black tree keyed by order of arrival.
#[derive(Clone, Debug)]
pub struct RoundRobinTree<P = ()> {
    tree: Tree,
    /// At 2^64 arrivals the order would break: after centuries.
    arrivals: u64,
    probe: P,
}

impl RoundRobinTree {
    /// An empty queue.
    pub const fn new() -> Self {
        RoundRobinTree { tree: Tree::new(), arrivals: 0, probe: () }
    }
}

impl Default for RoundRobinTree {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Probe> RoundRobinTree<P> {
    /// An empty queue whose `probe` counts the tree levels that inserts descend.
    pub const fn with_probe(probe: P) -> Self {
        RoundRobinTree { tree: Tree::new(), arrivals: 0, probe }
    }
}

impl<P: Probe> ReadyQueue for RoundRobinTree<P> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, _level: Level) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        nodes[task].key = arrival;
        let Self { tree, probe, .. } = self;
        tree.insert_before(nodes, task, |other| {
            probe.step();
            arrival < other.key
        });
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.tree.pop_first(nodes)
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

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
