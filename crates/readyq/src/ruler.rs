//! Ruler: Multi-List-2's exact order by bit arithmetic, without its table.
//!
//! Tick t serves the levels 0 to ctz(t), so level l is served at every multiple of 2^l and gets
//! half the rate of level l − 1. A mask holds the levels with waiting tasks. The next tick that
//! serves any of them is the next multiple of 2^l, where l is the lowest set bit: empty levels cost
//! nothing. All tasks of a level that wait when its service starts run once: a *pass*. A task that
//! arrives meanwhile runs in the next pass of its level.
//!
//! Right for proportional rates in up to 64 levels, each half the one before, at a cost that
//! neither the number of tasks nor their mix changes much. Bad at rates that are not powers of two
//! (take the [`Wheel`](crate::Wheel)) and at strict priorities. Within a tick, a pass over a
//! crowded level is not interrupted by a task that wakes at a better one.
//!
//! Cost: O(1); only removing the last task of a level searches the ends of all 64 lists. Source:
//! the order is Porter 2021, "Increasing the Responsiveness"; the arithmetic is ours. A pass is a
//! chain cut off its list, so Porter's `listLast` and its repairs are not needed: a blocked or
//! killed task does not move the end of the chain.

use core::num::NonZeroU64;

use crate::batch::Batch;
use crate::list::find_from;
use crate::nodes::{Cursor, Passes};
use crate::{Level, Nodes, ReadyQueue, TaskId};

const LEVELS: usize = 64;

/// FIFO lists served by the binary ruler sequence.
#[derive(Clone, Debug)]
pub struct Ruler {
    /// The next task of the current pass, or `NONE` when the pass has ended.
    pass: Cursor,
    position: Position,
    /// Bit l: `lists[l]` is not empty.
    waiting: u64,
    /// The waiting tasks that are not part of the current pass.
    lists: [Batch; LEVELS],
}

impl Ruler {
    /// An empty queue.
    pub const fn new() -> Self {
        Ruler { pass: Cursor::NONE, position: Position::START, waiting: 0, lists: Batch::lists() }
    }
}

impl Passes for Ruler {
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        let level = self.position.next(self.waiting)?;
        self.waiting &= !(1 << level);
        Some(self.lists[level].take(level))
    }
}

impl Default for Ruler {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadyQueue for Ruler {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "ruler has {LEVELS} levels, not level {}",
            level.0
        );
        nodes[task].next = TaskId::NONE;
        let index = usize::from(level.0) % LEVELS;
        Batch::push_back(&mut self.lists, nodes, index, task, |level| {
            self.waiting |= 1u64.wrapping_shl(level)
        });
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.pass, self)?;
        self.pass = Cursor::at(nodes[task].next);
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        if self.pass.task() != TaskId::NONE {
            return Some(self.pass.task());
        }
        self.position.clone().next(self.waiting).map(|level| self.lists[level].first())
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        let next = nodes[task].next;
        if self.pass == Cursor::at(task) {
            self.pass = Cursor::at(next);
        } else if let Some(level) =
            Batch::unlink(&mut self.lists, nodes, task, next == TaskId::NONE)
        {
            self.waiting &= !(1 << level);
        }
    }

    /// After the current pass, levels come in the order of their next passes.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        if let Some(task) = find_from(nodes, self.pass.task(), &mut accept) {
            return Some(task);
        }
        let (mut position, mut waiting) = (self.position, self.waiting);
        while let Some(level) = position.next(waiting) {
            waiting &= !(1 << level);
            if let Some(task) = self.lists[level].find(nodes, &mut accept) {
                return Some(task);
            }
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting == 0 && self.pass.task() == TaskId::NONE
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }
}

/// The position in the ruler sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// Wraps: 2^64 is a multiple of every level's period.
    tick: u64,
    /// Bit l: this tick has not served level l yet.
    due: u64,
}

impl Position {
    pub(crate) const START: Position = Position { tick: 0, due: 0 };

    /// Advances to the next level to serve among those in `waiting`; `None` when that is 0.
    #[inline(always)]
    pub(crate) fn next(&mut self, waiting: u64) -> Option<usize> {
        let due = self.due & waiting;
        if due != 0 {
            // The bits above the lowest set one, computed without a shift: x86 shifts need a fixed
            // register.
            self.due &= due ^ due.wrapping_neg();
            return Some(due.trailing_zeros() as usize);
        }
        let level = NonZeroU64::new(waiting)?.trailing_zeros();
        // Bits 0 to `level` will then be served in the next tick; half of them keep `tick` from
        // being a multiple of 2^level.
        let served = waiting ^ (waiting - 1);
        let before = self.tick | served >> 1;
        self.tick = before.wrapping_add(1);
        self.due = before ^ self.tick ^ served;
        Some(level as usize)
    }
}
