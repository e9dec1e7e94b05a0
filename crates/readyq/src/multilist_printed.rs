//! The multi-list exactly as printed, to show the effect of its repair for blocked tasks. Do not
//! use it.
//!
//! A pass over a list ends after the slice of `listLast`, the list's last task when the pass began.
//! When that task blocks or is killed, the paper makes the list's current last task the new
//! `listLast`. Two tasks of one level that wake each other and then block move it on for ever. The
//! pass never ends and every other level starves. [`MultiList`](crate::multilist::MultiList) is the
//! corrected version.
//!
//! Callers must report blocking tasks: [`ReadyQueue::block`]. Source: Porter 2021,
//! "Implementation", including both corrections. Deviations: there is no `initThread`, so the first
//! pass is the schedule's first entry. Where the paper would search for ever because all lists are
//! empty, this stops.

use crate::list::{List, find_from};
use crate::multilist::{Schedule, Visit};
use crate::{Id, Level, Nodes, ReadyQueue, TaskId};

const LEVELS: usize = 16;

/// A multi-list of up to 16 levels with the printed rule for blocked tasks.
#[derive(Clone, Debug)]
pub struct PrintedMultiList<S> {
    lists: [List; LEVELS],
    schedule: S,
    index: usize,
    /// The level of the paper's `thisList`.
    this_level: usize,
    remaining_count: u16,
    list_last: TaskId,
    /// The running task and the level of its list.
    current: Option<(TaskId, usize)>,
}

impl<S: Schedule> PrintedMultiList<S> {
    /// An empty queue that is served by `schedule`, whose levels are below 16.
    pub fn new(schedule: S) -> Self {
        let index = schedule.entries() - 1;
        let this_level = schedule.entry(index).level as usize % LEVELS;
        PrintedMultiList {
            lists: [List::EMPTY; LEVELS],
            schedule,
            index,
            this_level,
            remaining_count: 0,
            list_last: TaskId::NONE,
            current: None,
        }
    }

    /// The paper's `repeat … until (thisList is not empty)`, after which the pass over `thisList`
    /// begins.
    fn advance(&mut self) {
        for _ in 0..self.schedule.entries() {
            self.index = (self.index + 1) % self.schedule.entries();
            let Visit { level, passes } = self.schedule.entry(self.index);
            self.this_level = level as usize % LEVELS;
            self.remaining_count = passes;
            self.list_last = self.lists[self.this_level].tail;
            if self.list_last != TaskId::NONE {
                return;
            }
        }
    }

    /// Advances if `thisList` is empty.
    fn prepare(&mut self) {
        if self.list_last == TaskId::NONE || self.lists[self.this_level].is_empty() {
            self.advance();
        }
    }

    /// The paper's "after thr is made un-runnable".
    fn repair(&mut self, task: TaskId) {
        if task != self.list_last {
            return;
        }
        let last = self.lists[self.this_level].tail;
        match self.current {
            _ if last != TaskId::NONE => self.list_last = last,
            Some((current, level)) if level == self.this_level => self.list_last = current,
            _ => self.advance(),
        }
    }
}

impl<S: Schedule> ReadyQueue for PrintedMultiList<S> {
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        let index = usize::from(level.0) % LEVELS;
        nodes[task].set_list(index);
        self.lists[index].push_back(nodes, task);
        if self.current.is_some_and(|(current, _)| current == task) {
            self.current = None;
            if task == self.list_last {
                self.remaining_count -= 1;
                if self.remaining_count == 0 {
                    self.advance();
                }
            }
        }
    }

    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        self.prepare();
        let task = self.lists[self.this_level].pop_front(nodes)?.0;
        self.current = Some((task, self.this_level));
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        let mut ahead = self.clone();
        ahead.prepare();
        ahead.lists[ahead.this_level].head.known()
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.lists[nodes[task].list() % LEVELS].unlink(nodes, task);
        self.repair(task);
    }

    /// The first offer is what `pop` would return; the rest comes level by level.
    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let first = self.peek(nodes)?;
        if accept(first) {
            return Some(first);
        }
        let mut accept = |task| task != first && accept(task);
        self.lists.iter().find_map(|list| find_from(nodes, list.head, &mut accept))
    }

    fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }

    fn block(&mut self, _nodes: &mut Nodes, task: TaskId) {
        self.repair(task);
        self.current = None;
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }
}
