//! What the tasks of a closed workload share: what [`Operation`](super::Operation)s refer to.

use crate::{TaskId, Time};

/// Mutexes, conditions, barriers, pipes, devices, timers, and the groups that tasks are forked from. Recordings have none.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// See [`Mutex`].
    pub mutexes: Vec<Mutex>,
    /// Conditions have a name only. A signal that comes when nobody waits is lost, as in POSIX.
    pub conditions: Vec<String>,
    /// See [`Barrier`].
    pub barriers: Vec<Barrier>,
    /// See [`Pipe`].
    pub pipes: Vec<Pipe>,
    /// See [`Device`].
    pub devices: Vec<Device>,
    /// See [`Timer`].
    pub timers: Vec<Timer>,
    /// In order of their first task. A task need not be in one.
    pub groups: Vec<Group>,
    /// How deep loops are nested at most.
    pub depth: u8,
}

/// A lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutex {
    /// Its name.
    pub name: String,
    /// Whether it goes to the task that has waited longest. If not, that one is woken and tries again, and any task may be faster: what a futex does.
    pub handoff: bool,
    /// Whether who holds it counts as important as the most important task that waits for it, which it goes to: priority inheritance.
    pub inherit: bool,
}

/// A meeting point that can be used again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// How many tasks must have come.
    pub tasks: u32,
}

/// Bytes on their way between tasks, first come first served. A write of up to 4,096 bytes (`PIPE_BUF`) goes in as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipe {
    /// Its name.
    pub name: String,
    /// How many bytes it holds.
    pub capacity: u64,
}

/// Serves requests in the order in which they come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// How many requests at a time.
    pub channels: u16,
}

/// Wakes tasks at times that lie a period apart, whatever they did in the meantime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timer {
    /// One period before its first time; `None`: when it is first used.
    pub origin: Option<Time>,
    /// What follows when a time is over before the task asks for it: the next is a period later than that time, or than now.
    pub late: Late,
}

/// What becomes of a period that is over already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Late {
    /// The next begins now.
    #[default]
    Restart,
    /// The next began when it should have.
    CatchUp,
}

/// Tasks that are alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Their name.
    pub name: String,
    /// The first.
    pub first: TaskId,
    /// How many.
    pub count: u32,
    /// Whether nobody waits for their end: a run is over when all others have ended.
    pub daemon: bool,
}

impl Shared {
    /// A mutex that lets its holder inherit priorities, if there is one.
    pub fn inheriting(&self) -> Option<&Mutex> {
        self.mutexes.iter().find(|mutex| mutex.inherit)
    }

    /// What tasks share that are on their own.
    pub const NOTHING: Shared = Shared {
        mutexes: Vec::new(),
        conditions: Vec::new(),
        barriers: Vec::new(),
        pipes: Vec::new(),
        devices: Vec::new(),
        timers: Vec::new(),
        groups: Vec::new(),
        depth: 0,
    };

    /// The group in which a task is.
    pub fn group_of(&self, task: TaskId) -> Option<usize> {
        let index = self.groups.partition_point(|group| group.first <= task).checked_sub(1)?;
        (task.0 - self.groups[index].first.0 < self.groups[index].count).then_some(index)
    }
}
