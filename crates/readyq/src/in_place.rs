//! Round robin and ruler "in place": the running task stays linked, and the end of a slice moves a cursor.
//!
//! The order is that of [`RoundRobin`](crate::RoundRobin) and [`Ruler`](crate::Ruler), task by task, for a third of the price. Right inside a
//! scheduler that owns its tasks and always says when one blocks. The price is in the interface: taking the next task is
//! [`rotate`](RulerInPlace::rotate) instead of `insert` and `pop`, and a running task that blocks, dies or moves to another queue must be
//! removed *before* it is inserted anywhere else. A change of level is a removal and an insertion.
//!
//! Cost: O(1) in every operation. Source: ours.
//!
//! ```
//! use readyq::{Level, Node, Nodes, RulerInPlace, TaskId};
//!
//! let mut slab = [Node::NEW; 2];
//! let nodes = Nodes::from_mut(&mut slab);
//! let mut queue = RulerInPlace::new();
//! queue.insert(nodes, TaskId(0), Level(0));
//! queue.insert(nodes, TaskId(1), Level(1));
//! let turns: Vec<_> = (0..6).map_while(|_| queue.rotate(nodes)).map(|task| task.0).collect();
//! assert_eq!(turns, [0, 0, 1, 0, 0, 1]);
//! queue.remove(nodes, TaskId(1)); // the running task blocks
//! assert_eq!(queue.rotate(nodes), Some(TaskId(0)));
//! ```

use crate::list::List;
use crate::nodes::{Cursor, Passes};
use crate::ruler::Turn;
use crate::{Level, Nodes, TaskId};

const LEVELS: usize = 64;

/// Round robin over tasks that stay linked while they run.
#[derive(Clone, Debug)]
pub struct RoundRobinInPlace {
    list: List,
    walk: Walk,
}

impl RoundRobinInPlace {
    /// An empty queue.
    pub const fn new() -> Self {
        RoundRobinInPlace { list: List::EMPTY, walk: Walk::ENDED }
    }

    /// Ends the running task's slice and begins that of the next one, which may be the same; `None` when there is no task.
    #[inline]
    pub fn rotate(&mut self, nodes: &Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.walk.next, self)?;
        self.walk.next = Cursor::at(nodes[task].next);
        Some(task)
    }

    /// Makes `task`, which is not in this queue, wait behind everybody.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.insert(nodes, &mut self.list, task);
    }

    /// Takes out `task`, which waits or runs.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.forget(nodes, &self.list, task);
        self.list.unlink(nodes, task);
    }

    /// The task whose slice it is, unless it was removed.
    pub fn running(&self, nodes: &Nodes) -> Option<TaskId> {
        self.walk.running(nodes, &self.list)
    }
}

impl Passes for RoundRobinInPlace {
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        if let Some(cursor) = self.walk.resume() {
            return Some(cursor);
        }
        if self.list.is_empty() {
            return self.walk.end();
        }
        Some(Cursor::at(self.list.head))
    }
}

impl Default for RoundRobinInPlace {
    fn default() -> Self {
        Self::new()
    }
}

/// The ruler over tasks that stay linked while they run. Levels are 0 to 63.
#[derive(Clone, Debug)]
pub struct RulerInPlace {
    /// The pass under way.
    walk: Walk,
    /// Its level.
    level: usize,
    turn: Turn,
    /// Bit l: `lists[l]` is not empty.
    ready: u64,
    lists: [List; LEVELS],
}

impl RulerInPlace {
    /// An empty queue.
    pub const fn new() -> Self {
        RulerInPlace { walk: Walk::ENDED, level: 0, turn: Turn::START, ready: 0, lists: [List::EMPTY; LEVELS] }
    }

    /// Ends the running task's slice and begins that of the next one, which may be the same; `None` when there is no task.
    #[inline]
    pub fn rotate(&mut self, nodes: &Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.walk.next, self)?;
        self.walk.next = Cursor::at(nodes[task].next);
        Some(task)
    }

    /// Makes `task`, which is not in this queue, wait at `level`.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as usize) < LEVELS, "ruler has {LEVELS} levels, not level {}", level.0);
        let index = level.0 as usize % LEVELS;
        nodes[task].set_list(index);
        self.ready |= 1 << index;
        if index == self.level {
            self.walk.insert(nodes, &mut self.lists[index], task);
        } else {
            self.lists[index].push_back(nodes, task);
        }
    }

    /// Takes out `task`, which waits or runs.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.forget(nodes, &self.lists[self.level % LEVELS], task);
        let index = nodes[task].list() % LEVELS;
        self.lists[index].unlink(nodes, task);
        if self.lists[index].is_empty() {
            self.ready &= !(1 << index);
        }
    }

    /// The task whose slice it is, unless it was removed.
    pub fn running(&self, nodes: &Nodes) -> Option<TaskId> {
        self.walk.running(nodes, &self.lists[self.level % LEVELS])
    }
}

impl Passes for RulerInPlace {
    #[inline(always)]
    fn begin_pass(&mut self) -> Option<Cursor> {
        if let Some(cursor) = self.walk.resume() {
            return Some(cursor);
        }
        let Some(level) = self.turn.next(self.ready) else { return self.walk.end() };
        self.level = level;
        Some(Cursor::at(self.lists[level].head))
    }
}

impl Default for RulerInPlace {
    fn default() -> Self {
        Self::new()
    }
}

/// A walk from a list's head to its tail.
#[derive(Clone, Debug)]
struct Walk {
    /// Whose slice comes next in this walk, or none at its end. Away if nobody's slice it is now: before the first one and after the running
    /// task was removed. The running task is not stored: it is the one before.
    next: Cursor,
}

impl Walk {
    const ENDED: Walk = Walk { next: Cursor::NONE };

    /// Where the walk was when the running task was removed, if it has not ended.
    #[inline(always)]
    fn resume(&self) -> Option<Cursor> {
        if self.next.task() == TaskId::NONE { None } else { Some(self.next.back()) }
    }

    /// Nobody runs and nobody comes next.
    #[inline(always)]
    fn end(&mut self) -> Option<Cursor> {
        self.next = Cursor::NONE;
        None
    }

    /// The task whose slice it is in the walk through `list`.
    #[inline]
    fn running(&self, nodes: &Nodes, list: &List) -> Option<TaskId> {
        if self.next.is_away() {
            return None;
        }
        match self.next.task().known() {
            Some(next) => Some(nodes[next].prev),
            None => list.tail.known(),
        }
    }

    /// Links `task` into the list that is walked: before the running task, which an [`insert`](crate::ReadyQueue::insert) at the end of
    /// its slice would put behind it.
    #[inline]
    fn insert(&self, nodes: &mut Nodes, list: &mut List, task: TaskId) {
        if let Some(place) = self.running(nodes, list).or(self.next.task().known()) {
            list.insert_before(nodes, place, task);
        } else {
            list.push_back(nodes, task);
        }
    }

    /// Prepares for the removal of `task`; `list` is the one that is walked.
    #[inline]
    fn forget(&mut self, nodes: &Nodes, list: &List, task: TaskId) {
        if self.running(nodes, list) == Some(task) {
            self.next = self.next.away();
        } else if self.next.task() == task {
            let next = Cursor::at(nodes[task].next);
            self.next = if self.next.is_away() { next.away() } else { next };
        }
    }
}
