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

use crate::list::{List, find_from};
use crate::nodes::{Cursor, Passes};
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
    /// The waiting tasks that are not part of the pass under way.
    lists: [List; LEVELS],
    /// Bit l: `lists[l]` is not empty.
    waiting: u64,
    /// Bit l: the schedule has an entry of level l.
    served: u64,
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
        let turn = Turn { index: schedule.entries() - 1, passes: 0 };
        MultiList { pass: Cursor::NONE, turn, lists: [List::EMPTY; LEVELS], waiting: 0, served, schedule, probe }
    }

    /// Moves `turn` on to the next level to serve among those in `waiting`; `None` when the schedule serves none of them.
    #[inline(always)]
    fn next(&self, turn: &mut Turn, waiting: u64, mut examined: impl FnMut()) -> Option<usize> {
        if waiting & self.served == 0 {
            return None;
        }
        if !S::SINGLE_PASSES && turn.passes > 0 {
            let level = self.schedule.entry(turn.index).level as usize % LEVELS;
            if waiting >> level & 1 == 1 {
                turn.passes -= 1;
                return Some(level);
            }
        }
        loop {
            turn.index += 1;
            if turn.index >= self.schedule.entries() {
                cold_path();
                turn.index = 0;
            }
            examined();
            let Visit { level, passes } = self.schedule.entry(turn.index);
            let level = level as usize % LEVELS;
            if waiting >> level & 1 == 1 {
                if !S::SINGLE_PASSES {
                    turn.passes = passes - 1;
                }
                return Some(level);
            }
        }
    }
}

impl<S: Schedule, const LEVELS: usize, P: Probe> Passes for MultiList<S, LEVELS, P> {
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        let (mut turn, mut probe) = (self.turn, self.probe.clone());
        let level = self.next(&mut turn, self.waiting, || probe.step())?;
        (self.turn, self.probe) = (turn, probe);
        self.waiting &= !(1 << level);
        Some(Cursor::at(self.lists[level].cut_off()))
    }
}

impl<S: Schedule, const LEVELS: usize, P: Probe> ReadyQueue for MultiList<S, LEVELS, P> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as usize) < LEVELS, "this multi-list has {LEVELS} levels, not level {}", level.0);
        let level = Level(level.0 % LEVELS as u16);
        let index = usize::from(level.0);
        nodes[task].level = level;
        if self.lists[index].push_back(nodes, task) {
            self.waiting |= 1 << index;
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.pass, self)?;
        self.pass = Cursor::at(nodes[task].next);
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        let next = || Some(self.lists[self.next(&mut { self.turn }, self.waiting, || ())?].head);
        self.pass.task().known().or_else(next)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        if self.pass == Cursor::at(task) {
            self.pass = Cursor::at(nodes[task].next);
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
        if let Some(task) = find_from(nodes, self.pass.task(), &mut accept) {
            return Some(task);
        }
        let (mut turn, mut waiting) = (self.turn, self.waiting);
        while let Some(level) = self.next(&mut turn, waiting, || ()) {
            if let Some(task) = find_from(nodes, self.lists[level].head, &mut accept) {
                return Some(task);
            }
            waiting &= !(1 << level);
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting == 0 && self.pass.task().known().is_none()
    }

    fn levels(&self) -> u32 {
        self.served.trailing_ones()
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}

/// Where in the schedule the queue stands.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The entry that is being served.
    index: usize,
    /// How many more passes it makes.
    passes: u16,
}
