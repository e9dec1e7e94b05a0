//! Strict priorities: the best level that has waiting tasks runs, FIFO within it.
//!
//! Right for real-time work and wherever unimportant tasks may starve. It does not share: a task
//! that always runs at a good level starves every worse one. One bit per level finds the best level
//! without a search.
//!
//! Cost: O(1) in every operation. At most 4 accesses to words of the mask (2 in an insertion, 2 in a
//! removal), and writes to two nodes. 8 to 256 levels, 8 bytes each with ids of 32 bits.
//! Source: the ready queue of Curran & Stumm 1990, section 5.3; the bitmap is that of Linux's O(1)
//! scheduler.

use core::marker::PhantomData;

use crate::list::{List, find_from};
use crate::mask::{Levels, Mask, Masked};
use crate::{Id, Key, Level, Nodes, Probe, ReadyQueue, TaskId};

/// FIFO lists, the lowest level first. `LEVELS` is 8, 16, 32, 64, 128 or 256.
///
/// ```
/// use readyq::{Level, Node, Nodes, Priority, ReadyQueue};
///
/// let mut slab = [Node::<u8, u16>::default(); 2];
/// let nodes = Nodes::from_mut(&mut slab);
/// let mut queue = Priority::<8, u8, u16>::default();
/// queue.insert(nodes, 0, Level(7));
/// queue.insert(nodes, 1, Level(3));
/// assert_eq!(queue.best_level(), Some(Level(3)));
/// assert_eq!(queue.pop(nodes), Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct Priority<const LEVELS: usize = 256, I = TaskId, K = u64, P = ()>
where
    Levels<LEVELS>: Masked,
{
    /// Bit l: `lists[l]` is not empty.
    waiting: <Levels<LEVELS> as Masked>::Mask,
    lists: [List<I>; LEVELS],
    probe: P,
    nodes: PhantomData<fn(K)>,
}

impl Priority {
    /// An empty queue, of 256 levels and the default width.
    pub const fn new() -> Self {
        Priority::with_probe(())
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe> Priority<LEVELS, I, K, P>
where
    Levels<LEVELS>: Masked,
{
    /// An empty queue of any width, whose `probe` counts the accesses to words of the mask; `()`
    /// counts nothing.
    pub const fn with_probe(probe: P) -> Self {
        Priority { waiting: Mask::EMPTY, lists: [List::EMPTY; LEVELS], probe, nodes: PhantomData }
    }

    /// The best level that has waiting tasks.
    #[inline(always)]
    pub fn best_level(&self) -> Option<Level> {
        self.waiting.first(&mut ()).map(|level| Level(level as u16))
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe + Default> Default for Priority<LEVELS, I, K, P>
where
    Levels<LEVELS>: Masked,
{
    fn default() -> Self {
        Priority::with_probe(P::default())
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe> ReadyQueue<I, K> for Priority<LEVELS, I, K, P>
where
    Levels<LEVELS>: Masked,
{
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "priority has {LEVELS} levels, not level {}",
            level.0
        );
        let index = level.0 as usize % LEVELS;
        nodes[task].set_list(index);
        if self.lists[index].push_back(nodes, task) {
            self.waiting.insert(index, &mut self.probe);
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let index = self.waiting.first(&mut self.probe)? % LEVELS;
        let (task, emptied) = self.lists[index].pop_front(nodes)?;
        if emptied {
            self.waiting.remove(index, &mut self.probe);
        }
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes<I, K>) -> Option<I> {
        self.waiting.first(&mut ()).map(|level| self.lists[level % LEVELS].head)
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let index = nodes[task].list() % LEVELS;
        self.lists[index].unlink(nodes, task);
        if self.lists[index].is_empty() {
            self.waiting.remove(index, &mut self.probe);
        }
    }

    fn find(&self, nodes: &Nodes<I, K>, mut accept: impl FnMut(I) -> bool) -> Option<I> {
        self.waiting.find(0, |level| find_from(nodes, self.lists[level % LEVELS].head, &mut accept))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
