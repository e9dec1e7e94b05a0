//! Ready queues: which ready task runs next, and nothing else.
//!
//! A queue here holds *heads only*. The links live in [`Node`]s, one per task, in a slab that the caller owns and that serves every
//! queue on the machine: a task waits in at most one queue, so it needs one node. Ids are `u32` indices into that slab. Nothing is
//! allocated, nothing knows about time, CPUs or an operating system.
//!
//! ```
//! use readyq::{Level, Node, Nodes, ReadyQueue, RoundRobin, TaskId};
//!
//! let mut slab = [Node::NEW; 4];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut queue = RoundRobin::new();
//! queue.insert(nodes, TaskId(2), Level(0));
//! queue.insert(nodes, TaskId(0), Level(0));
//! assert_eq!(queue.pop(nodes), Some(TaskId(2)));
//! assert_eq!(queue.pop(nodes), Some(TaskId(0)));
//! assert_eq!(queue.pop(nodes), None);
//! ```
#![no_std]

mod batch;
pub mod catalog;
mod checked;
mod clock;
mod heap;
mod in_place;
mod list;
pub mod multilist;
mod multilist1;
mod multilist2;
mod multilist_printed;
mod nodes;
mod priority;
mod probe;
mod pslist;
mod rbtree;
mod rr;
mod rr_rbtree;
mod ruler;
mod sorted_list;
pub mod tree;
mod wheel;

pub use checked::{Checked, Error};
pub use clock::Strides;
pub use heap::Heap;
pub use in_place::{RoundRobinInPlace, RulerInPlace};
pub use multilist_printed::PrintedMultiList;
pub use multilist1::{MultiList1, schedules};
pub use multilist2::{MultiList2, RulerTable};
pub use nodes::{Level, Node, Nodes, TaskId};
pub use priority::Priority;
pub use probe::{Probe, Steps};
pub use pslist::PsList;
pub use rbtree::RbTree;
pub use rr::RoundRobin;
pub use rr_rbtree::RoundRobinTree;
pub use ruler::Ruler;
pub use sorted_list::{Sorted, SortedList, SortedListReverse};
pub use wheel::{Buckets, Wheel, WideWheel};

/// An order over ready tasks: which one runs next.
///
/// Four verbs do all scheduling work. A time slice ends: [`insert`](Self::insert) the running task, [`pop`](Self::pop) the next.
/// A task blocks: just do not insert it. It wakes: `insert` it. It is killed, moved or re-prioritised while it waits:
/// [`remove`](Self::remove) it by identity.
///
/// # Contract
/// A task is in at most one queue of a slab; its id is below `nodes.len()`; `remove` is given a task that waits in *this* queue; a level is
/// within the structure's stated range. Every structure breaks ties first-in first-out. A task that is removed counts as having
/// had its turn, so that leaving and coming back never buys service.
pub trait ReadyQueue {
    /// Makes `task` wait, at `level` (0 is the most important or the most frequent). A change of level takes effect here.
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level);

    /// Takes out the task that runs next, or `None` when no task waits.
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId>;

    /// The task that [`pop`](Self::pop) would return.
    fn peek(&self, nodes: &Nodes) -> Option<TaskId>;

    /// Takes out `task`, wherever it waits.
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId);

    /// The first waiting task that `accept` agrees to. Every waiting task is offered at most once, the one `pop` would return
    /// first, then in the structure's order (where that is only approximately the order of pops, the structure says so). The task stays in the queue.
    fn find(&self, nodes: &Nodes, accept: impl FnMut(TaskId) -> bool) -> Option<TaskId>;

    /// Whether no task waits.
    fn is_empty(&self) -> bool;

    /// Tells the queue that a task which it popped, and which runs, will not come back at the end of this slice. Only the printed
    /// variant of Porter's multi-list needs to know.
    fn block(&mut self, _nodes: &mut Nodes, _task: TaskId) {}

    /// How many levels the structure accepts: 0 to `levels() - 1`. A raw queue that is given another one still keeps the task, at a
    /// level of its own choice; [`Checked`] refuses it.
    fn levels(&self) -> u32 {
        u16::MAX as u32 + 1
    }

    /// How many list elements, schedule entries or tree levels the operations have examined so far, if the structure was built with a
    /// counting [`Probe`], and 0 otherwise. Looking ([`peek`](Self::peek), [`find`](Self::find)) is not counted.
    fn steps(&self) -> u64 {
        0
    }
}
