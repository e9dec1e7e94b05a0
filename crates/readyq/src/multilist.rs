//! Porter's multi-lists: a FIFO list per level, served in the order of a schedule table.
//!
//! A schedule entry names a level and a number of passes over its list. In a pass, every task that
//! waited at its start runs once. Entries of empty lists are skipped, and so is the rest of an
//! entry whose list becomes empty.
//!
//! Source: Porter 2021, "Multiple Ready Lists" and "Implementation", with both corrections that the
//! paper prints for blocked and killed tasks. Deviations: the paper chooses the next list at the
//! end of a slice. This code chooses it at the next [`pop`](ReadyQueue::pop), so that tasks that
//! woke in between count. A pass is a chain cut off its list, not a mark (`listLast`) in it. This
//! makes the corrections unnecessary and avoids the starvation of the printed repair (see
//! [`PrintedMultiList`](crate::PrintedMultiList)).

use core::hint::cold_path;
use core::ops::Range;

use crate::batch::Batch;
use crate::list::find_from;
use crate::nodes::Cursor;
use crate::{Id, Level, Nodes, Probe, ReadyQueue, TaskId};

/// How often each level is served, and in which order: a list of entries that repeats.
pub trait Schedule: Clone {
    /// Whether every entry has one pass, so that no pass counter is needed.
    const SINGLE_PASSES: bool = false;

    /// The number of entries, never 0.
    fn entries(&self) -> usize;

    /// The entry at `index`, which is below `entries()`.
    fn entry(&self, index: usize) -> Visit;
}

/// One entry of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visit {
    /// The level whose list is served.
    pub level: u8,
    /// The number of passes in a row, never 0.
    pub passes: u16,
}

/// FIFO lists served by a schedule. `LEVELS` is a power of two, at most 64.
#[derive(Clone, Debug)]
pub struct MultiList<S, const LEVELS: usize, P = ()> {
    /// The next task of the current pass, or `NONE` when the pass has ended.
    pass: Cursor,
    position: Position,
    /// The number of non-empty `lists`.
    filled: u32,
    /// The waiting tasks that are not part of the current pass.
    lists: [Batch; LEVELS],
    /// The schedule serves every level below this.
    levels: u32,
    schedule: S,
    probe: P,
}

impl<S: Schedule, const LEVELS: usize, P: Probe> MultiList<S, LEVELS, P> {
    /// An empty queue that starts with the schedule's first entry. `probe` counts the schedule
    /// entries that are examined.
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
            assert!(
                passes == 1 || !S::SINGLE_PASSES,
                "schedule entry {index} makes {passes} passes, not a single one"
            );
            assert!(
                (level as usize) < LEVELS,
                "schedule entry {index} serves level {level} of {LEVELS}"
            );
            served |= 1 << level;
        }
        let position = Position { next: 0, level: 0, passes: 0 };
        MultiList {
            pass: Cursor::NONE,
            position,
            filled: 0,
            lists: Batch::lists(),
            levels: served.trailing_ones(),
            schedule,
            probe,
        }
    }

    /// Advances `position` to the next level to serve for which `waits` is true; `None` when the
    /// schedule serves none of them.
    #[inline(always)]
    fn next(
        &self,
        position: &mut Position,
        waits: impl Fn(usize) -> bool,
        mut examined: impl FnMut(),
    ) -> Option<usize> {
        if !S::SINGLE_PASSES && position.passes > 0 {
            let level = usize::from(position.level) % LEVELS;
            if waits(level) {
                position.passes -= 1;
                return Some(level);
            }
        }
        let begin = position.next;
        let found = self.search(position, begin..self.schedule.entries(), &waits, &mut examined);
        if found.is_some() {
            return found;
        }
        cold_path();
        self.search(position, 0..begin, waits, examined)
    }

    /// Moves `position` to the first of these entries whose level `waits`.
    #[inline(always)]
    fn search(
        &self,
        position: &mut Position,
        entries: Range<usize>,
        waits: impl Fn(usize) -> bool,
        mut examined: impl FnMut(),
    ) -> Option<usize> {
        for index in entries {
            examined();
            let Visit { level, passes } = self.schedule.entry(index);
            let list = usize::from(level) % LEVELS;
            if waits(list) {
                position.next = index + 1;
                if !S::SINGLE_PASSES {
                    position.level = level;
                    position.passes = passes - 1;
                }
                return Some(list);
            }
        }
        None
    }

    /// Starts the next pass and returns its first task.
    #[inline(always)]
    fn begin_pass(&mut self, nodes: &mut Nodes) -> Option<Cursor> {
        if self.filled == 0 {
            return None;
        }
        let (mut position, mut probe) = (self.position, self.probe.clone());
        let level =
            self.next(&mut position, |level| self.lists[level].has_tasks(nodes), || probe.step())?;
        let first = self.lists[level].end_and_take(nodes, level);
        // With single passes nothing else has to be stored.
        self.position = if S::SINGLE_PASSES {
            Position { next: position.next, ..self.position }
        } else {
            position
        };
        self.probe = probe;
        self.filled -= 1;
        first
    }
}

impl<S: Schedule, const LEVELS: usize, P: Probe> ReadyQueue for MultiList<S, LEVELS, P> {
    #[inline(always)]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "this multi-list has {LEVELS} levels, not level {}",
            level.0
        );
        Batch::push_back(&mut self.lists, nodes, usize::from(level.0) % LEVELS, task, |_| {
            self.filled += 1
        });
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
        // SAFETY: both paths to here have just checked it.
        let task = unsafe { nodes.promised(next) };
        self.pass = Cursor::at(nodes[task].next);
        Some(task)
    }

    fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        let next = || {
            Some(
                self.lists[self.next(
                    &mut { self.position },
                    |level| self.lists[level].has_tasks(nodes),
                    || (),
                )?]
                .first(),
            )
        };
        self.pass.task::<TaskId>().known().or_else(next)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        if self.pass == Cursor::at(task) {
            self.pass = Cursor::at(nodes[task].next);
        } else {
            let last_of = self.lists.iter().position(|list| list.last() == task);
            if Batch::unlink(&mut self.lists, nodes, task, last_of).is_some() {
                self.filled -= 1;
            }
        }
    }

    /// After the current pass, levels come in the order of their next passes.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        if let Some(task) = find_from(nodes, self.pass.task(), &mut accept) {
            return Some(task);
        }
        let (mut position, mut offered) = (self.position, 0u64);
        while let Some(level) = self.next(
            &mut position,
            |level| offered >> level & 1 == 0 && self.lists[level].has_tasks(nodes),
            || (),
        ) {
            if let Some(task) = self.lists[level].find(nodes, &mut accept) {
                return Some(task);
            }
            offered |= 1 << level;
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.filled == 0 && self.pass.task::<TaskId>().known().is_none()
    }

    fn levels(&self) -> u32 {
        self.levels
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}

/// The position in the schedule.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The next entry to examine, or one past the end.
    next: usize,
    /// The level that is served now.
    level: u8,
    /// The remaining passes of its entry.
    passes: u16,
}
