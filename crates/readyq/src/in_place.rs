//! Round robin and ruler "in place": the running task stays linked, and a cursor advances at the
//! end of a slice.
//!
//! The order is exactly that of [`RoundRobin`](crate::RoundRobin) and [`Ruler`](crate::Ruler), at a
//! third of the cost. Right inside a scheduler that owns its tasks and always reports blocking. The
//! cost is in the interface. [`rotate`](RulerInPlace::rotate) replaces `insert` and `pop`. A
//! running task that blocks, exits or migrates must be removed *before* it is inserted elsewhere. A
//! change of level is a removal and an insertion.
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
//! let order: Vec<_> = (0..6).map_while(|_| queue.rotate(nodes)).map(|task| task.0).collect();
//! assert_eq!(order, [0, 0, 1, 0, 0, 1]);
//! queue.remove(nodes, TaskId(1)); // the running task blocks
//! assert_eq!(queue.rotate(nodes), Some(TaskId(0)));
//! ```

use crate::list::List;
use crate::nodes::{Cursor, Passes};
use crate::ruler::Position;
use crate::{Id, Level, Nodes, TaskId};

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

    /// Ends the running task's slice and starts that of the next task, which may be the same;
    /// `None` when there is no task.
    #[inline]
    pub fn rotate(&mut self, nodes: &Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.walk.next, self)?;
        self.walk.next = Cursor::at(nodes[task].next);
        Some(task)
    }

    /// Inserts `task`, which is not in this queue, at the tail.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.insert(nodes, &mut self.list, task);
    }

    /// Removes `task`, which waits or runs.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.forget(nodes, &self.list, task);
        self.list.unlink(nodes, task);
    }

    /// The running task, unless it was removed.
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
    /// The current pass.
    walk: Walk,
    /// Its level.
    level: usize,
    position: Position,
    /// Bit l: `lists[l]` is not empty.
    ready: u64,
    lists: [List; LEVELS],
}

impl RulerInPlace {
    /// An empty queue.
    pub const fn new() -> Self {
        RulerInPlace {
            walk: Walk::ENDED,
            level: 0,
            position: Position::START,
            ready: 0,
            lists: [List::EMPTY; LEVELS],
        }
    }

    /// Ends the running task's slice and starts that of the next task, which may be the same;
    /// `None` when there is no task.
    #[inline]
    pub fn rotate(&mut self, nodes: &Nodes) -> Option<TaskId> {
        let task = nodes.task_at_or(self.walk.next, self)?;
        self.walk.next = Cursor::at(nodes[task].next);
        Some(task)
    }

    /// Inserts `task`, which is not in this queue, at `level`.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "ruler has {LEVELS} levels, not level {}",
            level.0
        );
        let index = level.0 as usize % LEVELS;
        nodes[task].set_list(index);
        self.ready |= 1 << index;
        if index == self.level {
            self.walk.insert(nodes, &mut self.lists[index], task);
        } else {
            self.lists[index].push_back(nodes, task);
        }
    }

    /// Removes `task`, which waits or runs.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        self.walk.forget(nodes, &self.lists[self.level % LEVELS], task);
        let index = nodes[task].list() % LEVELS;
        self.lists[index].unlink(nodes, task);
        if self.lists[index].is_empty() {
            self.ready &= !(1 << index);
        }
    }

    /// The running task, unless it was removed.
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
        let Some(level) = self.position.next(self.ready, &mut ()) else { return self.walk.end() };
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
    /// The task with the next slice in this walk, or none at its end. It is away before the first
    /// slice and after the running task was removed. The running task is not stored: it is the one
    /// before.
    next: Cursor,
    /// While `next` is away: the task in its place.
    held: TaskId,
}

impl Walk {
    const ENDED: Walk = Walk { next: Cursor::AWAY, held: TaskId::NONE };

    /// The position when the running task was removed, if the walk has not ended.
    #[inline(always)]
    fn resume(&self) -> Option<Cursor> {
        if self.next == Cursor::AWAY { self.held.known().map(Cursor::at) } else { None }
    }

    /// No task runs and none comes next.
    #[inline(always)]
    fn end(&mut self) -> Option<Cursor> {
        *self = Walk::ENDED;
        None
    }

    /// The task with the next slice in this walk, if there is one.
    #[inline]
    fn upcoming(&self) -> Option<TaskId> {
        if self.next == Cursor::AWAY { self.held } else { self.next.task() }.known()
    }

    /// The running task in the walk through `list`.
    #[inline]
    fn running(&self, nodes: &Nodes, list: &List) -> Option<TaskId> {
        if self.next == Cursor::AWAY {
            return None;
        }
        match self.upcoming() {
            Some(next) => Some(nodes[next].prev),
            None => list.tail.known(),
        }
    }

    /// Links `task` into the walked list before the running task: an
    /// [`insert`](crate::ReadyQueue::insert) at the end of its slice would put the running task
    /// behind it.
    #[inline]
    fn insert(&self, nodes: &mut Nodes, list: &mut List, task: TaskId) {
        if let Some(place) = self.running(nodes, list).or(self.upcoming()) {
            list.insert_before(nodes, place, task);
        } else {
            list.push_back(nodes, task);
        }
    }

    /// Prepares for the removal of `task`; `list` is the one that is walked.
    #[inline]
    fn forget(&mut self, nodes: &Nodes, list: &List, task: TaskId) {
        if self.running(nodes, list) == Some(task) {
            *self = Walk { next: Cursor::AWAY, held: self.next.task() };
        } else if self.upcoming() == Some(task) {
            let next = nodes[task].next;
            if self.next == Cursor::AWAY {
                self.held = next;
            } else {
                self.next = Cursor::at(next);
            }
        }
    }
}
