//! Ruler: Multi-List-2's exact order by bit arithmetic, without its table.
//!
//! Tick t serves the levels 0 to ctz(t), so level l has its turn at every multiple of 2^l and gets half the rate of level l − 1. With a mask of
//! the levels that have waiting tasks, the next tick that serves any of them is the next multiple of 2^l, l being the lowest set
//! bit: empty levels cost nothing. All tasks of a level that wait when its turn starts run once: a *pass*. A task that arrives
//! meanwhile runs in the next pass of its level.
//!
//! Right for proportional rates in up to 64 levels, each half the one before, at a cost that neither the number of tasks nor their mix
//! changes much. Bad at rates that are not powers of two (take the [`Wheel`](crate::Wheel)) and at strict priorities. Within a tick, a
//! pass over a crowded level is not interrupted by a task that wakes at a better one.
//!
//! Cost: O(1) in every operation. Source: the order is Porter 2021, "Increasing the Responsiveness"; the arithmetic is ours. A pass is a chain
//! cut off its list, so Porter's `listLast` and its repairs do not exist here: whoever blocks or is killed, the chain ends where
//! it ended.

use crate::list::{List, find_from};
use crate::{Level, Nodes, ReadyQueue, TaskId};

const LEVELS: usize = 64;

/// FIFO lists served by the binary ruler sequence.
#[derive(Clone, Debug)]
pub struct Ruler {
    /// The next task of the pass under way, or `NONE` when it has ended.
    pass: TaskId,
    turn: Turn,
    /// Bit l: `lists[l]` is not empty.
    waiting: u64,
    /// The waiting tasks that are not part of the pass under way.
    lists: [List; LEVELS],
}

impl Ruler {
    /// An empty queue.
    pub const fn new() -> Self {
        Ruler { pass: TaskId::NONE, turn: Turn::START, waiting: 0, lists: [List::EMPTY; LEVELS] }
    }

    /// Begins the next pass, or returns `None` when no task waits.
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<()> {
        let (level, turn) = self.turn.next(self.waiting)?;
        self.turn = turn;
        self.waiting &= !(1 << level);
        self.pass = core::mem::replace(&mut self.lists[level], List::EMPTY).head;
        Some(())
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
        debug_assert!((level.0 as usize) < LEVELS, "ruler has {LEVELS} levels, not level {}", level.0);
        let index = level.0 as usize % LEVELS;
        nodes[task].level = Level(index as u16);
        if self.lists[index].push_back(nodes, task) {
            self.waiting |= 1 << index;
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        loop {
            let task = self.pass;
            if let Some(node) = nodes.get(task) {
                self.pass = node.next;
                return Some(task);
            }
            self.begin_pass()?;
        }
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        if self.pass != TaskId::NONE {
            return Some(self.pass);
        }
        self.turn.next(self.waiting).map(|(level, _)| self.lists[level].head)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        if self.pass == task {
            self.pass = nodes[task].next;
            return;
        }
        let index = nodes[task].level.0 as usize % LEVELS;
        self.lists[index].unlink(nodes, task);
        if self.lists[index].is_empty() {
            self.waiting &= !(1 << index);
        }
    }

    /// After the pass under way, levels come in the order of their next turns.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        if let Some(task) = find_from(nodes, self.pass, &mut accept) {
            return Some(task);
        }
        let (mut turn, mut waiting) = (self.turn, self.waiting);
        while let Some((level, next)) = turn.next(waiting) {
            if let Some(task) = find_from(nodes, self.lists[level].head, &mut accept) {
                return Some(task);
            }
            waiting &= !(1 << level);
            turn = next;
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting == 0 && self.pass == TaskId::NONE
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }
}

/// Where in the ruler sequence the schedule stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Wraps: 2^64 is a multiple of every level's period.
    tick: u64,
    /// Bit l: this tick has still to serve level l.
    due: u64,
}

impl Turn {
    pub(crate) const START: Turn = Turn { tick: 0, due: 0 };

    /// The next level to serve among those in `waiting`, and where the schedule stands then; `None` when `waiting` is 0.
    #[inline(always)]
    pub(crate) fn next(self, waiting: u64) -> Option<(usize, Turn)> {
        let Turn { mut tick, mut due } = self;
        let mut level = (due & waiting).trailing_zeros();
        if due & waiting == 0 {
            if waiting == 0 {
                return None;
            }
            level = waiting.trailing_zeros();
            tick = ((tick >> level) + 1) << level;
            due = tick ^ tick.wrapping_sub(1);
        }
        due &= (u64::MAX << level) << 1;
        Some((level as usize, Turn { tick, due }))
    }
}
