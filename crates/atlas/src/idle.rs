//! Porter's older baseline: a red-black tree that also contains the idle task, always last.
//!
//! His tables 2 to 7 were measured with it, as he says in "The Big Question". The tree is readyq's.
//! The keys are set by the caller here, because under a virtual clock the idle task would come to
//! the front at some point.

use readyq::tree::Tree;
use readyq::{Level, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// Sorts by virtual time or by arrival, with an idle task that never runs.
pub struct TreeWithIdle<P> {
    tree: Tree,
    keys: Vec<u64>,
    order: Order,
    /// The key of the running task, or the number of arrivals.
    now: u64,
    idle: TaskId,
    probe: P,
}

/// The sort order of the tree.
pub enum Order {
    /// Arrival.
    Arrival,
    /// Virtual time.
    Clock(Strides),
}

impl<P: Probe> TreeWithIdle<P> {
    /// For tasks with ids below `tasks`; the idle task has the id `tasks`.
    pub fn new(tasks: u32, order: Order, probe: P) -> Self {
        let mut keys = vec![0; tasks as usize + 1];
        keys[tasks as usize] = u64::MAX;
        TreeWithIdle { tree: Tree::new(), keys, order, now: 0, idle: TaskId(tasks), probe }
    }

    #[inline]
    fn place(&mut self, nodes: &mut Nodes, task: TaskId) {
        let (keys, probe) = (&self.keys, &mut self.probe);
        let key = keys[task.index()];
        self.tree.insert_by(nodes, task, |_, _, other| {
            probe.step();
            key < keys[other.index()]
        });
    }
}

impl<P: Probe> ReadyQueue for TreeWithIdle<P> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        if self.tree.first().is_none() {
            self.place(nodes, self.idle);
        }
        self.keys[task.index()] = match self.order {
            Order::Arrival => {
                self.now += 1;
                self.now
            }
            Order::Clock(strides) => self.keys[task.index()].max(self.now) + strides.of(level),
        };
        self.place(nodes, task);
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.tree.pop_first(nodes)?;
        if let Order::Clock(_) = self.order {
            self.now = self.keys[task.index()];
        }
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.tree.first()
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.tree.remove(nodes, task);
    }

    fn find(&self, nodes: &Nodes, accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        self.tree.find(nodes, accept)
    }

    fn is_empty(&self) -> bool {
        self.tree.first().is_none_or(|first| first == self.idle)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
