//! Peers: the same orders with published crates, written in the usual way.
//!
//! `VecDeque` and the intrusive list do round robin. The others use the virtual clock, first-in
//! first-out among equal keys. They store their tasks themselves, so the slab is unused. Most
//! cannot remove a task from the middle without a search, so they are measured but not offered as
//! policies.

use super::subject::Subject;
use intrusive_collections::{
    KeyAdapter, LinkedList, LinkedListLink, RBTree, RBTreeLink, UnsafeRef, intrusive_adapter,
};
use readyq::{Level, Nodes, Strides, TaskId};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The operations of a peer.
pub trait Peer {
    /// Inserts `task`.
    fn push(&mut self, task: TaskId, level: Level);
    /// Removes the next task.
    fn pop(&mut self) -> Option<TaskId>;
}

/// A peer as a subject of the rig.
pub struct PeerQueue<P>(pub P);

impl<P: Peer> Subject for PeerQueue<P> {
    #[inline(always)]
    fn take(&mut self, _nodes: &mut Nodes) -> Option<TaskId> {
        self.0.pop()
    }

    #[inline(always)]
    fn put(&mut self, _nodes: &mut Nodes, task: TaskId, level: Level) {
        self.0.push(task, level);
    }
}

/// std's ring buffer.
#[derive(Default)]
pub struct Deque(VecDeque<TaskId>);

impl Peer for Deque {
    #[inline]
    fn push(&mut self, task: TaskId, _level: Level) {
        self.0.push_back(task);
    }

    #[inline]
    fn pop(&mut self) -> Option<TaskId> {
        self.0.pop_front()
    }
}

/// The virtual clock of the sorting peers, with arrival numbers for ties.
struct Clock {
    keys: Vec<u64>,
    strides: Strides,
    arrivals: u64,
}

impl Clock {
    fn new(tasks: u32, strides: Strides) -> Clock {
        Clock { keys: vec![0; tasks as usize], strides, arrivals: 0 }
    }

    #[inline]
    fn key(&mut self, task: TaskId, level: Level) -> (u64, u64) {
        let key = &mut self.keys[task.index()];
        *key += self.strides.of(level);
        self.arrivals += 1;
        (*key, self.arrivals)
    }
}

/// std's binary heap.
pub struct Heap {
    clock: Clock,
    heap: BinaryHeap<Reverse<((u64, u64), u32)>>,
}

impl Heap {
    pub fn new(tasks: u32, strides: Strides) -> Self {
        Heap { clock: Clock::new(tasks, strides), heap: BinaryHeap::with_capacity(tasks as usize) }
    }
}

impl Peer for Heap {
    #[inline]
    fn push(&mut self, task: TaskId, level: Level) {
        let key = self.clock.key(task, level);
        self.heap.push(Reverse((key, task.0)));
    }

    #[inline]
    fn pop(&mut self) -> Option<TaskId> {
        self.heap.pop().map(|Reverse((_, task))| TaskId(task))
    }
}

/// std's B-tree.
pub struct BTree {
    clock: Clock,
    map: BTreeMap<(u64, u64), TaskId>,
}

impl BTree {
    pub fn new(tasks: u32, strides: Strides) -> Self {
        BTree { clock: Clock::new(tasks, strides), map: BTreeMap::new() }
    }
}

impl Peer for BTree {
    #[inline]
    fn push(&mut self, task: TaskId, level: Level) {
        let key = self.clock.key(task, level);
        self.map.insert(key, task);
    }

    #[inline]
    fn pop(&mut self) -> Option<TaskId> {
        self.map.pop_first().map(|(_, task)| task)
    }
}

/// A task for `intrusive-collections`, with the links inside.
#[derive(Default)]
struct Linked {
    id: u32,
    key: Cell<u64>,
    list: LinkedListLink,
    tree: RBTreeLink,
}

intrusive_adapter!(InList = UnsafeRef<Linked>: Linked { list => LinkedListLink });
intrusive_adapter!(InTree = UnsafeRef<Linked>: Linked { tree => RBTreeLink });

impl<'a> KeyAdapter<'a> for InTree {
    type Key = u64;

    fn get_key(&self, task: &'a Linked) -> u64 {
        task.key.get()
    }
}

fn linked(tasks: u32) -> Box<[Linked]> {
    (0..tasks).map(|id| Linked { id, ..Linked::default() }).collect()
}

/// The doubly linked list of `intrusive-collections`.
pub struct IntrusiveList {
    list: LinkedList<InList>,
    tasks: Box<[Linked]>,
}

impl IntrusiveList {
    pub fn new(tasks: u32) -> Self {
        IntrusiveList { list: LinkedList::new(InList::new()), tasks: linked(tasks) }
    }
}

impl Peer for IntrusiveList {
    #[inline]
    fn push(&mut self, task: TaskId, _level: Level) {
        // SAFETY: `tasks` is a box that lives as long as the list and is never moved out of; the
        // list is cleared before it is dropped.
        self.list.push_back(unsafe { UnsafeRef::from_raw(&raw const self.tasks[task.index()]) });
    }

    #[inline]
    fn pop(&mut self) -> Option<TaskId> {
        self.list.pop_front().map(|task| TaskId(task.id))
    }
}

impl Drop for IntrusiveList {
    fn drop(&mut self) {
        self.list.fast_clear();
    }
}

/// The red-black tree of `intrusive-collections`.
pub struct IntrusiveTree {
    tree: RBTree<InTree>,
    tasks: Box<[Linked]>,
    strides: Strides,
}

impl IntrusiveTree {
    pub fn new(tasks: u32, strides: Strides) -> Self {
        IntrusiveTree { tree: RBTree::new(InTree::new()), tasks: linked(tasks), strides }
    }
}

impl Peer for IntrusiveTree {
    #[inline]
    fn push(&mut self, task: TaskId, level: Level) {
        let linked = &self.tasks[task.index()];
        linked.key.set(linked.key.get() + self.strides.of(level));
        // SAFETY: as above. Among equal keys the tree puts the new one last.
        self.tree.insert(unsafe { UnsafeRef::from_raw(linked) });
    }

    #[inline]
    fn pop(&mut self) -> Option<TaskId> {
        self.tree.front_mut().remove().map(|task| TaskId(task.id))
    }
}

impl Drop for IntrusiveTree {
    fn drop(&mut self) {
        self.tree.fast_clear();
    }
}
