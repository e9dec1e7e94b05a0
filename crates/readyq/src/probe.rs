//! Counts what an operation examines, at no cost when counting is off.
//!
//! Instructions depend on a machine and a compiler; the number of examined list elements, schedule
//! entries or tree levels does not. Every structure with a varying cost takes a [`Probe`] as its
//! last type parameter. The default `()` compiles to nothing; [`Steps`] counts, and
//! [`ReadyQueue::steps`](crate::ReadyQueue::steps) reads the total.
//!
//! ```
//! use readyq::{Level, Node, Nodes, ReadyQueue, SortedList, Steps, Strides, TaskId};
//!
//! let mut slab = [Node::NEW; 4];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut queue = SortedList::with_probe(Strides::Linear, Steps::default());
//! for task in 0..3 {
//!     queue.insert(nodes, TaskId(task), Level(0));
//! }
//! assert_eq!(queue.steps(), 0 + 1 + 2); // equal keys: a forward walk passes everything that waits
//! ```

/// Receives a call for every element, entry or level that an operation examines.
pub trait Probe: Clone {
    /// Counts one more.
    fn step(&mut self);

    /// The number of steps so far.
    fn steps(&self) -> u64;
}

/// Counts nothing and costs nothing.
impl Probe for () {
    #[inline(always)]
    fn step(&mut self) {}

    #[inline(always)]
    fn steps(&self) -> u64 {
        0
    }
}

/// Counts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Steps(pub u64);

impl Probe for Steps {
    #[inline(always)]
    fn step(&mut self) {
        self.0 += 1;
    }

    #[inline(always)]
    fn steps(&self) -> u64 {
        self.0
    }
}
