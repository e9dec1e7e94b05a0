//! Virtual clock in a binary heap: the textbook's priority queue, FIFO among equals.
//!
//! The complete binary tree is linked through the nodes, not an array, so that one slab still
//! serves all queues. Right as a baseline, and where only the first element needs an order. Its pop
//! costs more than that of [`RbTree`](crate::RbTree), and [`Wheel`](crate::Wheel) does all it can
//! for less. `find` visits waiting tasks in no useful order.
//!
//! Cost: O(log n) in every operation. Source: the textbook's heap (Cormen et al., chapter 6); the
//! order is Porter 2021, structure (4). A heap is not stable, so ties are broken by a 24-bit
//! arrival number. FIFO holds while fewer than 2^23 inserts lie between two tasks that wait at the
//! same key.

use crate::clock::Clock;
use crate::{Id, Key, Level, Node, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// A linked complete binary tree in which no task precedes its parent.
#[derive(Clone, Debug)]
pub struct Heap<P = ()> {
    root: TaskId,
    tasks: u32,
    arrivals: u32,
    clock: Clock,
    probe: P,
}

impl Heap {
    /// An empty queue.
    pub const fn new(strides: Strides) -> Self {
        Heap { root: TaskId::NONE, tasks: 0, arrivals: 0, clock: Clock::new(strides), probe: () }
    }
}

/// A place in the tree that is empty for the moment.
#[derive(Clone, Copy)]
struct Hole {
    parent: TaskId,
    on_left: bool,
    left: TaskId,
    right: TaskId,
}

impl<P: Probe> Heap<P> {
    /// An empty queue whose `probe` counts the tree levels at which inserts and removals compare.
    pub const fn with_probe(strides: Strides, probe: P) -> Self {
        Heap { root: TaskId::NONE, tasks: 0, arrivals: 0, clock: Clock::new(strides), probe }
    }

    /// The task at `position`, counted from 1 row by row. Below the leading 1, each bit is a step
    /// down: 0 to the left.
    #[inline]
    fn at(&self, nodes: &Nodes, position: u32) -> TaskId {
        let mut task = self.root;
        for bit in (0..position.ilog2()).rev() {
            let node = &nodes[task];
            task = if position >> bit & 1 == 0 { node.next } else { node.prev };
        }
        task
    }

    /// Puts `task` into `hole` or above it, and moves down each task that comes after it.
    #[inline]
    fn settle_up(&mut self, nodes: &mut Nodes, mut hole: Hole, task: TaskId) {
        while let Some(&Node { next, prev, parent: grand, .. }) = nodes.get(hole.parent) {
            self.probe.step();
            if !comes_before(nodes, task, hole.parent) {
                break;
            }
            let parent = hole.parent;
            let Hole { left, right, on_left, .. } = hole;
            adopt(nodes, parent, left, right);
            (hole.left, hole.right) = if on_left { (parent, prev) } else { (next, parent) };
            hole.parent = grand;
            hole.on_left = nodes.get(grand).is_some_and(|node| node.next == parent);
        }
        self.fill(nodes, hole, task);
    }

    /// Puts `task` into `hole` or below it, and moves up each task that comes before it.
    #[inline]
    fn settle_down(&mut self, nodes: &mut Nodes, mut hole: Hole, task: TaskId) {
        while hole.left != TaskId::NONE {
            self.probe.step();
            let on_left = hole.right == TaskId::NONE || !comes_before(nodes, hole.right, hole.left);
            let child = if on_left { hole.left } else { hole.right };
            if !comes_before(nodes, child, task) {
                break;
            }
            let Node { next: left, prev: right, .. } = nodes[child];
            *(if on_left { &mut hole.left } else { &mut hole.right }) = TaskId::NONE;
            self.fill(nodes, hole, child);
            hole = Hole { parent: child, on_left, left, right };
        }
        self.fill(nodes, hole, task);
    }

    /// Links `task` into `hole`.
    #[inline]
    fn fill(&mut self, nodes: &mut Nodes, hole: Hole, task: TaskId) {
        nodes[task].parent = hole.parent;
        adopt(nodes, task, hole.left, hole.right);
        self.set_child(nodes, hole.parent, hole.on_left, task);
    }

    #[inline]
    fn set_child(&mut self, nodes: &mut Nodes, parent: TaskId, on_left: bool, child: TaskId) {
        match nodes.get_mut(parent) {
            Some(node) if on_left => node.next = child,
            Some(node) => node.prev = child,
            None => self.root = child,
        }
    }
}

impl<P: Probe> ReadyQueue for Heap<P> {
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        nodes[task].key = self.clock.key(nodes[task].key, level);
        set_arrival(&mut nodes[task], self.arrivals);
        self.arrivals = self.arrivals.wrapping_add(1);
        self.tasks += 1;
        let parent = if self.tasks == 1 { TaskId::NONE } else { self.at(nodes, self.tasks / 2) };
        let hole = Hole {
            parent,
            on_left: self.tasks.is_multiple_of(2),
            left: TaskId::NONE,
            right: TaskId::NONE,
        };
        self.settle_up(nodes, hole, task);
    }

    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.root.known()?;
        self.remove(nodes, task);
        self.clock.now = nodes[task].key;
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.root.known()
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        // The last task moves to the place of `task`, so that the tree stays complete.
        let last = self.at(nodes, self.tasks);
        self.set_child(nodes, nodes[last].parent, self.tasks.is_multiple_of(2), TaskId::NONE);
        self.tasks -= 1;
        if last == task {
            return;
        }
        let Node { next: left, prev: right, parent, .. } = nodes[task];
        let hole = Hole {
            parent,
            on_left: nodes.get(parent).is_some_and(|node| node.next == task),
            left,
            right,
        };
        if parent != TaskId::NONE && comes_before(nodes, last, parent) {
            self.settle_up(nodes, hole, last);
        } else {
            self.settle_down(nodes, hole, last);
        }
    }

    /// Only the first task is in order. The others come in the order of the tree, parents before
    /// children.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        for position in 1..=self.tasks {
            let task = self.at(nodes, position);
            if accept(task) {
                return Some(task);
            }
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.tasks == 0
    }

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(u64::LONGEST_STRIDE)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}

/// Makes `left` and `right` the children of `task`.
#[inline]
fn adopt(nodes: &mut Nodes, task: TaskId, left: TaskId, right: TaskId) {
    nodes[task].next = left;
    nodes[task].prev = right;
    for child in [left, right] {
        if let Some(node) = nodes.get_mut(child) {
            node.parent = task;
        }
    }
}

#[inline]
fn comes_before(nodes: &Nodes, a: TaskId, b: TaskId) -> bool {
    let (a, b) = (&nodes[a], &nodes[b]);
    // Shifted to the top, 24-bit numbers wrap like 32-bit ones.
    a.key.is_before(b.key)
        || a.key == b.key && ((arrival(a).wrapping_sub(arrival(b)) << 8) as i32) < 0
}

/// The arrival number lies in two fields.
#[inline]
fn arrival(node: &Node) -> u32 {
    u32::from(node.arrival) << 8 | u32::from(node.tag)
}

#[inline]
fn set_arrival(node: &mut Node, arrival: u32) {
    node.arrival = (arrival >> 8) as u16;
    node.tag = arrival as u8;
}
