//! Ruler: Multi-List-2's exact order by bit arithmetic, without its table.
//!
//! Tick t serves the levels 0 to ctz(t). So level l is served at every multiple of 2^l and gets
//! half the rate of level l − 1. A mask holds the levels with waiting tasks. The next tick that
//! serves any of them is the next multiple of 2^l, where l is the lowest set bit: empty levels cost
//! nothing. All tasks of a level that wait when its service starts run once: a *pass*. A task that
//! arrives meanwhile runs in the next pass of its level.
//!
//! Right for proportional rates in up to 64 levels, each half the one before. Neither the number of
//! tasks nor their mix changes the cost much. Bad at rates that are not powers of two (take the
//! [`Wheel`](crate::Wheel)) and at strict priorities. Within a tick, a pass over a crowded level is
//! not interrupted by a task that wakes at a better one.
//!
//! Cost: O(1) in every operation. At most 4 accesses to words of the mask and the position (1 in an
//! insertion, 1 in a removal), and writes to two nodes. Source: the order is Porter 2021,
//! "Increasing the Responsiveness"; the arithmetic is ours. A pass is a chain cut off its list, so
//! Porter's `listLast` and its repairs are not needed. A blocked or killed task does not move the
//! end of the chain.

use core::marker::PhantomData;

use crate::batch::Batch;
use crate::list::find_from;
use crate::mask::{Levels, OneWord, Word};
use crate::nodes::{Cursor, Passes};
use crate::{Id, Key, Level, Nodes, Probe, ReadyQueue, TaskId};

/// FIFO lists served by the binary ruler sequence. `LEVELS` is 8, 16, 32 or 64: level 63 gets a pass
/// in 2^63 ticks, and there is no use for a rarer one.
///
/// ```
/// use readyq::{Level, Node, Nodes, ReadyQueue, Ruler};
///
/// let mut slab = [Node::<u16, u32>::default(); 2];
/// let nodes = Nodes::from_mut(&mut slab);
/// let mut queue = Ruler::<32, u16, u32>::default();
/// queue.insert(nodes, 0, Level(0));
/// queue.insert(nodes, 1, Level(1));
/// let mut order = [0; 6];
/// for slice in &mut order {
///     *slice = queue.pop(nodes).unwrap();
///     queue.insert(nodes, *slice, Level(*slice));
/// }
/// assert_eq!(order, [0, 0, 1, 0, 0, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Ruler<const LEVELS: usize = 64, I = TaskId, K = u64, P = ()>
where
    Levels<LEVELS>: OneWord,
{
    /// The next task of the current pass, or beyond every slab when the pass has ended.
    pass: Cursor,
    position: Position<<Levels<LEVELS> as OneWord>::Word>,
    /// Bit l: `lists[l]` is not empty.
    waiting: <Levels<LEVELS> as OneWord>::Word,
    /// The waiting tasks that are not part of the current pass. The last task's `next` is beyond
    /// every slab and equals the index of its list, as the first one's `prev`.
    lists: [Batch<I>; LEVELS],
    probe: P,
    nodes: PhantomData<fn(K)>,
}

impl Ruler {
    /// An empty queue, of 64 levels and the default width.
    pub const fn new() -> Self {
        Ruler::with_probe(())
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe> Ruler<LEVELS, I, K, P>
where
    Levels<LEVELS>: OneWord,
{
    /// An empty queue of any width, whose `probe` counts the accesses to words of the mask and the
    /// position; `()` counts nothing.
    pub const fn with_probe(probe: P) -> Self {
        Ruler {
            pass: Cursor::NONE,
            position: Position::START,
            waiting: Word::ZERO,
            lists: Batch::lists(),
            probe,
            nodes: PhantomData,
        }
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe> Passes for Ruler<LEVELS, I, K, P>
where
    Levels<LEVELS>: OneWord,
{
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        self.probe.step();
        let level = self.position.next(self.waiting, &mut self.probe)?;
        self.probe.step();
        self.waiting = self.waiting.without(level as u32);
        Some(self.lists[level % LEVELS].take(level))
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe + Default> Default for Ruler<LEVELS, I, K, P>
where
    Levels<LEVELS>: OneWord,
{
    fn default() -> Self {
        Ruler::with_probe(P::default())
    }
}

impl<const LEVELS: usize, I: Id, K: Key, P: Probe> ReadyQueue<I, K> for Ruler<LEVELS, I, K, P>
where
    Levels<LEVELS>: OneWord,
{
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "ruler has {LEVELS} levels, not level {}",
            level.0
        );
        let fill = |level| {
            self.probe.step();
            self.waiting = self.waiting.with(level);
        };
        nodes[task].next = Batch::<I>::end::<LEVELS>(level.0.into());
        Batch::push_back(&mut self.lists, nodes, level.0.into(), task, fill);
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let task = nodes.task_at_or(self.pass, self)?;
        self.pass = Cursor::at(nodes[task].next);
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes<I, K>) -> Option<I> {
        if self.pass.is_at_task::<I>() {
            return Some(self.pass.task());
        }
        self.position.clone().next(self.waiting, &mut ()).map(|level| self.lists[level].first())
    }

    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let next = nodes[task].next;
        if self.pass == Cursor::at(task) {
            self.pass = Cursor::at(next);
            return;
        }
        let list = next.index() % LEVELS;
        let last_of = (self.lists[list].last() == task).then_some(list);
        if let Some(level) = Batch::unlink(&mut self.lists, nodes, task, last_of) {
            self.probe.step();
            self.waiting = self.waiting.without(level as u32);
        }
    }

    /// After the current pass, levels come in the order of their next passes.
    fn find(&self, nodes: &Nodes<I, K>, mut accept: impl FnMut(I) -> bool) -> Option<I> {
        if let Some(task) = find_from(nodes, self.pass.task(), &mut accept) {
            return Some(task);
        }
        let (mut position, mut waiting) = (self.position, self.waiting);
        while let Some(level) = position.next(waiting, &mut ()) {
            waiting = waiting.without(level as u32);
            if let Some(task) = self.lists[level].find(nodes, &mut accept) {
                return Some(task);
            }
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting == Word::ZERO && !self.pass.is_at_task::<I>()
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}

/// The position in the ruler sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position<W = u64> {
    /// Wraps: its range is a multiple of every level's period.
    tick: W,
    /// Bit l: this tick has not served level l yet.
    due: W,
}

impl<W: Word> Position<W> {
    pub(crate) const START: Self = Position { tick: W::ZERO, due: W::ZERO };

    /// Advances to the next level to serve among those in `waiting`; `None` when that is 0.
    #[inline(always)]
    pub(crate) fn next(&mut self, waiting: W, probe: &mut impl Probe) -> Option<usize> {
        probe.step();
        let due = self.due & waiting;
        if due != W::ZERO {
            self.due = self.due & due.above_lowest();
            return Some(due.lowest());
        }
        if waiting == W::ZERO {
            return None;
        }
        let level = waiting.lowest();
        // Bits 0 to `level` will then be served in the next tick; half of them keep `tick` from
        // being a multiple of 2^level.
        let served = waiting.up_to_lowest();
        probe.step();
        let before = self.tick | served >> 1;
        self.tick = before.add_one();
        self.due = before ^ self.tick ^ served;
        Some(level)
    }
}
