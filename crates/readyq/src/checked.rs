//! A queue that checks its arguments, for callers that cannot guarantee the contract.
//!
//! The raw queues never access memory beyond the slab, but a wrong call may panic or corrupt their
//! lists. A [`Checked`] queue refuses the call and does not change. It marks each waiting task in
//! its node with the queue's number, so that it recognises in O(1) a task that waits elsewhere.
//! This requires that every queue on the slab is checked and has its own number.

use core::fmt;
use core::num::NonZeroU8;

use crate::{Level, Nodes, ReadyQueue, TaskId};

/// A queue whose operations return [`Error`] instead of trusting the caller.
///
/// ```
/// use readyq::{Checked, Error, Level, Node, Nodes, Ruler, TaskId};
///
/// let mut slab = [Node::NEW; 2];
/// let nodes = Nodes::from_mut(&mut slab);
/// let mut queue = Checked::new(Ruler::new(), 1.try_into().unwrap());
/// queue.insert(nodes, TaskId(0), Level(0)).unwrap();
/// let error = queue.insert(nodes, TaskId(0), Level(0)).unwrap_err();
/// assert_eq!(error, Error::AlreadyWaiting { task: TaskId(0) });
/// let error = queue.insert(nodes, TaskId(2), Level(0)).unwrap_err();
/// assert_eq!(error, Error::BeyondSlab { task: TaskId(2), tasks: 2 });
/// assert_eq!(queue.remove(nodes, TaskId(1)), Err(Error::NotWaiting { task: TaskId(1) }));
/// ```
#[derive(Clone, Debug)]
pub struct Checked<Q> {
    queue: Q,
    number: NonZeroU8,
}

impl<Q: ReadyQueue> Checked<Q> {
    /// Wraps `queue`, which is empty. `number` is unique among the queues of the slab.
    pub const fn new(queue: Q, number: NonZeroU8) -> Self {
        Checked { queue, number }
    }

    /// Inserts `task` at `level`.
    ///
    /// # Errors
    /// [`Error::BeyondSlab`], [`Error::LevelOutOfRange`], or [`Error::AlreadyWaiting`] in this or
    /// another queue. The queue has not changed.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) -> Result<(), Error> {
        let levels = self.queue.levels();
        if level.0 as u32 >= levels {
            return Err(Error::LevelOutOfRange { level, levels });
        }
        if self.owner(nodes, task)? != 0 {
            return Err(Error::AlreadyWaiting { task });
        }
        self.queue.insert(nodes, task, level);
        nodes[task].owner = self.number.get();
        Ok(())
    }

    /// Removes the task that runs next; `None` when no task waits.
    #[inline]
    pub fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let task = self.queue.pop(nodes)?;
        nodes[task].owner = 0;
        Some(task)
    }

    /// The task that [`pop`](Self::pop) would return.
    #[inline]
    pub fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        self.queue.peek(nodes)
    }

    /// Removes `task`.
    ///
    /// # Errors
    /// [`Error::BeyondSlab`], or [`Error::NotWaiting`] if it does not wait in this queue. The queue
    /// has not changed.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) -> Result<(), Error> {
        if self.owner(nodes, task)? != self.number.get() {
            return Err(Error::NotWaiting { task });
        }
        self.queue.remove(nodes, task);
        nodes[task].owner = 0;
        Ok(())
    }

    /// The first waiting task that `accept` returns true for, as in [`ReadyQueue::find`].
    pub fn find(&self, nodes: &Nodes, accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        self.queue.find(nodes, accept)
    }

    /// Whether no task waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number of levels: 0 to `levels() - 1` are accepted.
    pub fn levels(&self) -> u32 {
        self.queue.levels()
    }

    /// The number of the queue in which `task` waits, or 0.
    #[inline]
    fn owner(&self, nodes: &Nodes, task: TaskId) -> Result<u8, Error> {
        nodes.get(task).map(|node| node.owner).ok_or(Error::BeyondSlab { task, tasks: nodes.len() })
    }
}

/// Why a [`Checked`] queue refuses a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The slab has no node for this task: it is full, or the id is wrong.
    BeyondSlab {
        /// The task of the call.
        task: TaskId,
        /// The number of nodes in the slab.
        tasks: usize,
    },
    /// The structure has no such level.
    LevelOutOfRange {
        /// The requested level.
        level: Level,
        /// Levels are 0 to one less than this.
        levels: u32,
    },
    /// The task waits already, in this queue or another one of the slab.
    AlreadyWaiting {
        /// The task of the call.
        task: TaskId,
    },
    /// The task does not wait in this queue.
    NotWaiting {
        /// The task of the call.
        task: TaskId,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::BeyondSlab { task, tasks } => {
                write!(
                    f,
                    "task {} has no node: the slab has {tasks}; give it more, or check the id",
                    task.0
                )
            }
            Error::LevelOutOfRange { level, levels } => {
                write!(
                    f,
                    "level {} is out of range: this structure has the levels 0 to {}",
                    level.0,
                    levels.saturating_sub(1)
                )
            }
            Error::AlreadyWaiting { task } => {
                write!(f, "task {} waits already: remove it first", task.0)
            }
            Error::NotWaiting { task } => write!(f, "task {} does not wait in this queue", task.0),
        }
    }
}

impl core::error::Error for Error {}
