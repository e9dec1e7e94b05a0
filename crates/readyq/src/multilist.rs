//! The engine of Porter's multi-lists: a FIFO list per level, served in the order of a schedule that is data.
//!
//! An entry of the schedule names a level and how many passes to make over its list; in a pass, every task that waited when it began runs
//! once. An entry whose list is empty is passed over, and so is the rest of an entry whose list becomes empty.
//!
//! Source: Porter 2021, "Multiple Ready Lists" and "Implementation", with both corrections that the paper prints for blocked and
//! killed tasks. Deviations: the paper decides at the end of a slice where to go next, this decides lazily at the next
//! [`pop`](ReadyQueue::pop), so that tasks which woke in between are seen; and a pass is a chain cut off its list instead of a mark
//! (`listLast`) in it, which makes the corrections true by construction and cannot starve anybody as the printed repair does (see
//! [`PrintedMultiList`](crate::PrintedMultiList)).

use core::hint::cold_path;
use core::ops::Range;

use crate::batch::Batch;
use crate::list::find_from;
use crate::nodes::Cursor;
use crate::{Level, Nodes, Probe, ReadyQueue, TaskId};

/// How often each level is served, and in which order: a list of entries that repeats for ever.
pub trait Schedule: Clone {
    /// Whether every entry makes one pass, so that there is nothing to count.
    const SINGLE_PASSES: bool = false;

    /// How many entries there are. Never 0.
    fn entries(&self) -> usize;

    /// The entry at `index`, which is below `entries()`.
    fn entry(&self, index: usize) -> Visit;
}

/// One entry of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visit {
    /// Whose list to run through.
    pub level: u8,
    /// How many times in a row. Never 0.
    pub passes: u16,
}

/// FIFO lists served by a schedule. `LEVELS` is a power of two, at most 64.
#[derive(Clone, Debug)]
pub struct MultiList<S, const LEVELS: usize, P = ()> {
    /// The next task of the pass under way, or `NONE` when it has ended.
    pass: Cursor,
    turn: Turn,
    /// How many of the `lists` are not empty.
    filled: u32,
    /// The waiting tasks that are not part of the pass under way.
    lists: [Batch; LEVELS],
    /// From 0 to this many, without it, the schedule serves every level.
    levels: u32,
    schedule: S,
    probe: P,
}

impl<S: Schedule, const LEVELS: usize, P: Probe> MultiList<S, LEVELS, P> {
    /// An empty queue whose first pass is the schedule's first entry; `probe` counts the schedule entries that are examined.
    ///
    /// # Panics
    /// If the schedule is empty, or has an entry without passes or of a level beyond `LEVELS`.
    pub fn with_probe(schedule: S, probe: P) -> Self {
        const { assert!(LEVELS.is_power_of_two() && LEVELS <= 64) };
        assert!(schedule.entries() > 0, "a schedule needs an entry");
        let mut served = 0u64;
        for index in 0..schedule.entries() {
            let Visit { level, passes } = schedule.entry(index);
            assert!(passes > 0, "schedule entry {index} makes no pass");
            assert!(passes == 1 || !S::SINGLE_PASSES, "schedule entry {index} makes {passes} passes, not a single one");
            assert!((level as usize) < LEVELS, "schedule entry {index} serves level {level} of {LEVELS}");
            served |= 1 << level;
        }
        let turn = Turn { next: 0, level: 0, passes: 0 };
        MultiList { pass: Cursor::NONE, turn, filled: 0, lists: Batch::lists(), levels: served.trailing_ones(), schedule, probe }
    }

    /// Moves `turn` on to the next level to serve among those that `waits` says so of; `None` when the schedule serves none of them.
    #[inline(always)]
    fn next(&self, turn: &mut Turn, waits: impl Fn(usize) -> bool, mut examined: impl FnMut()) -> Option<usize> {
        if !S::SINGLE_PASSES && turn.passes > 0 {
            let level = usize::from(turn.level) % LEVELS;
            if waits(level) {
                turn.passes -= 1;
                return Some(level);
            }
        }
        let begin = turn.next;
        let found = self.search(turn, begin..self.schedule.entries(), &waits, &mut examined);
        if found.is_some() {
            return found;
        }
        cold_path();
        self.search(turn, 0..begin, waits, examined)
    }

    /// Moves `turn` to the first of these entries whose level `waits`.
    #[inline(always)]
    fn search(&self, turn: &mut Turn, entries: Range<usize>, waits: impl Fn(usize) -> bool, mut examined: impl FnMut()) -> Option<usize> {
        for index in entries {
            examined();
            let Visit { level, passes } = self.schedule.entry(index);
            let list = usize::from(level) % LEVELS;
            if waits(list) {
                turn.next = index + 1;
                if !S::SINGLE_PASSES {
                    turn.level = level;
                    turn.passes = passes - 1;
                }
                return Some(list);
            }
        }
        None
    }

    /// Begins the next pass and returns its first task.
    #[inline(always)]
    fn begin_pass(&mut self, nodes: &mut Nodes) -> Option<Cursor> {
        if self.filled == 0 {
            return None;
        }
        let (mut turn, mut probe) = (self.turn, self.probe.clone());
        let level = self.next(&mut turn, |level| self.lists[level].has_tasks(nodes), || probe.step())?;
        let first = self.lists[level].end_and_take(nodes, level);
        // With single passes there is nothing else in a turn.
        self.turn = if S::SINGLE_PASSES { Turn { next: turn.next, ..self.turn } } else { turn };
        self.probe = probe;
        self.filled -= 1;
        first
    }
}

impl<S: Schedule, const LEVELS: usize, P: Probe> ReadyQueue for MultiList<S, LEVELS, P> {
    #[inline(always)]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as usize) < LEVELS, "this multi-list has {LEVELS} levels, not level {}", level.0);
        Batch::push_back(&mut self.lists, nodes, usize::from(level.0) % LEVELS, task, |_| self.filled += 1);
    }

    #[inline(always)]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let mut next = self.pass;
        if !nodes.holds(next) {
            cold_path();
            next = self.begin_pass(nodes)?;
            if !nodes.holds(next) {
                return None;
            }
        }
        // SAFETY: both ways here have just asked for it.
        let task = unsafe { nodes.promised(next) };
        self.pass = Cursor::at(nodes[task].next);
        Some(task)
    }

    fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        let next = || Some(self.lists[self.next(&mut { self.turn }, |level| self.lists[level].has_tasks(nodes), || ())?].first());
        self.pass.task().known().or_else(next)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        if self.pass == Cursor::at(task) {
            self.pass = Cursor::at(nodes[task].next);
        } else if Batch::unlink(&mut self.lists, nodes, task, true).is_some() {
            self.filled -= 1;
        }
    }

    /// After the pass under way, levels come in the order of their next turns.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        if let Some(task) = find_from(nodes, self.pass.task(), &mut accept) {
            return Some(task);
        }
        let (mut turn, mut offered) = (self.turn, 0u64);
        while let Some(level) = self.next(&mut turn, |level| offered >> level & 1 == 0 && self.lists[level].has_tasks(nodes), || ()) {
            if let Some(task) = self.lists[level].find(nodes, &mut accept) {
                return Some(task);
            }
            offered |= 1 << level;
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.filled == 0 && self.pass.task().known().is_none()
    }

    fn levels(&self) -> u32 {
        self.levels
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}

/// Where in the schedule the queue stands.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The entry to look at next, or one too far.
    next: usize,
    /// The level that is being served.
    level: u8,
    /// How many more passes its entry makes.
    passes: u16,
}
