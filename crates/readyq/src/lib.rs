//! Ready queues: which ready task runs next, and nothing else.
//!
//! A queue holds *heads only*. The links are in [`Node`]s, one per task, in a slab that the caller
//! owns. One slab serves every queue on the machine: a task waits in at most one queue, so it needs
//! one node. Ids are indices into the slab, of 32 bits unless [`Id`] says otherwise. The crate
//! allocates nothing and knows no time, CPUs or operating system.
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
//!
//! For kernels in C, the folder `c` of this package has the same queues as headers.
#![no_std]

/// The example of the package's README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod batch;
pub mod catalog;
mod checked;
mod clock;
mod heap;
mod in_place;
mod list;
mod mask;
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
mod width;

pub use checked::{Checked, Error};
pub use clock::Strides;
pub use heap::Heap;
pub use in_place::{RoundRobinInPlace, RulerInPlace};
pub use mask::{Levels, Mask, Masked, OneWord, Word, Words};
pub use multilist_printed::PrintedMultiList;
pub use multilist1::{MultiList1, schedules};
pub use multilist2::{MultiList2, RulerTable};
pub use nodes::{Node, Nodes};
pub use priority::Priority;
pub use probe::{Probe, Steps};
pub use pslist::PsList;
pub use rbtree::RbTree;
pub use rr::RoundRobin;
pub use rr_rbtree::RoundRobinTree;
pub use ruler::Ruler;
pub use sorted_list::{Sorted, SortedList, SortedListReverse};
pub use wheel::{Buckets, Wheel, WideWheel};
pub use width::{Id, Key, Level, TaskId};

/// An order over ready tasks: which one runs next.
///
/// Four verbs do all scheduling work. A slice ends: [`insert`](Self::insert) the running task,
/// [`pop`](Self::pop) the next. A task blocks: just do not insert it. It wakes: `insert` it. It is
/// killed, moved or re-prioritised while it waits: [`remove`](Self::remove) it by identity.
///
/// # Contract
/// A task is in at most one queue of a slab. Its id is below `nodes.len()`. `remove` receives a
/// task that waits in *this* queue. A level is within the structure's range. Every structure breaks
/// ties first-in first-out. A removed task counts as having had its slice, so that a task cannot
/// gain service by leaving and returning.
pub trait ReadyQueue<I: Id = TaskId, K: Key = u64> {
    /// Inserts `task` at `level` (0 is the most important or the most frequent). A change of level
    /// takes effect here.
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, level: Level);

    /// Removes the task that runs next; `None` when no task waits.
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I>;

    /// The task that [`pop`](Self::pop) would return.
    fn peek(&self, nodes: &Nodes<I, K>) -> Option<I>;

    /// Removes `task`, wherever it waits.
    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I);

    /// The first waiting task that `accept` returns true for. Each waiting task is offered at most
    /// once: first the one that `pop` would return, then the others in the structure's order. Where
    /// that only approximates the order of pops, the structure says so. The task stays in the
    /// queue.
    fn find(&self, nodes: &Nodes<I, K>, accept: impl FnMut(I) -> bool) -> Option<I>;

    /// Whether no task waits.
    fn is_empty(&self) -> bool;

    /// Informs the queue that the running task, which it popped, will not return at the end of this
    /// slice. Only the printed variant of Porter's multi-list needs this.
    fn block(&mut self, _nodes: &mut Nodes<I, K>, _task: I) {}

    /// The number of levels: 0 to `levels() - 1` are valid. A raw queue keeps a task of an invalid
    /// level at a level of its own choice; [`Checked`] refuses it.
    fn levels(&self) -> u32 {
        u16::MAX as u32 + 1
    }

    /// The number of list elements, schedule entries or tree levels that the operations examined so
    /// far. 0 unless the structure was built with a counting [`Probe`]. [`peek`](Self::peek) and
    /// [`find`](Self::find) are not counted.
    fn steps(&self) -> u64 {
        0
    }
}
