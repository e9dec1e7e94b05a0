//! The shared objects of a closed workload, which [`Operation`](super::Operation)s refer to.

use super::{SocketKind, Spin, Trigger};
use crate::{CpuId, TaskId, Time};

/// Mutexes, conditions, barriers, pipes, sockets, event counters, sets of them, devices, timers, and the
/// groups that tasks are forked from. Recordings have none.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// See [`Mutex`].
    pub mutexes: Vec<Mutex>,
    /// Conditions have only a name. A signal without a waiting task is lost, as in POSIX.
    pub conditions: Vec<String>,
    /// See [`Barrier`].
    pub barriers: Vec<Barrier>,
    /// See [`Pipe`].
    pub pipes: Vec<Pipe>,
    /// See [`Socket`].
    pub sockets: Vec<Socket>,
    /// See [`Eventfd`].
    pub eventfds: Vec<Eventfd>,
    /// See [`Epoll`].
    pub epolls: Vec<Epoll>,
    /// See [`Serve`].
    pub serves: Vec<Serve>,
    /// See [`Device`].
    pub devices: Vec<Device>,
    /// See [`Timer`].
    pub timers: Vec<Timer>,
    /// Groups, in order of their first task. A task need not be in one.
    pub groups: Vec<Group>,
    /// The maximum nesting of loops.
    pub depth: u8,
}

/// A lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutex {
    /// Its name.
    pub name: String,
    /// Whether unlocking passes it to the task that has waited longest. If not, that task wakes
    /// and tries again, and another one may be faster, as with a futex.
    pub handoff: bool,
    /// Priority inheritance: the holder counts as important as the most important waiting task,
    /// which gets the mutex next.
    pub inherit: bool,
    /// How tasks spin for it, if they do.
    pub spin: Option<Spin>,
}

/// A reusable barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// The number of tasks that it waits for.
    pub tasks: u32,
}

/// Pages of bytes in transit between tasks, first come first served. A write of up to 4,096 bytes
/// (`PIPE_BUF`) is atomic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipe {
    /// Its name.
    pub name: String,
    /// Its capacity in bytes; pages, rounded up to a power of two.
    pub capacity: u64,
}

/// A pair of connected Unix sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Socket {
    /// Its name.
    pub name: String,
    /// What it carries.
    pub kind: SocketKind,
}

/// An event counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Eventfd {
    /// Its name.
    pub name: String,
    /// Whether a task takes one, not all.
    pub is_semaphore: bool,
    /// The count at the start.
    pub count: u64,
    /// Whether adding n wakes n tasks, not all: a semaphore of the C library.
    pub wakes_one: bool,
}

impl Eventfd {
    /// A semaphore of the C library: a task takes one, and one is woken for each that is added.
    pub fn semaphore(name: String, count: u64) -> Eventfd {
        Eventfd { name, is_semaphore: true, count, wakes_one: true }
    }
}

/// A set of objects that tasks wait for together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Epoll {
    /// Its name.
    pub name: String,
    /// The objects, in the order in which they were added.
    pub sources: Vec<Source>,
    /// The largest number of objects that one wait returns. Of a recorded array of `poll` the number
    /// of all its objects.
    pub events: u16,
}

impl Epoll {
    /// Whether this is one of its objects.
    pub fn has(&self, object: Watched) -> bool {
        self.sources.iter().any(|source| source.object == object)
    }
}

/// An object in a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The object.
    pub object: Watched,
    /// When a wait returns it.
    pub trigger: Trigger,
    /// Whether news of it wake one set of those that have it so (`EPOLLEXCLUSIVE`), not all.
    pub is_exclusive: bool,
    /// Whether it is watched only after an [`Operation::Watch`](super::Operation::Watch).
    pub is_off: bool,
}

impl From<Watched> for Source {
    /// Level-triggered, and watched from the beginning.
    fn from(object: Watched) -> Source {
        Source { object, trigger: Trigger::Level, is_exclusive: false, is_off: false }
    }
}

/// What a task may wait for at an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Watched {
    /// Data in a pipe.
    Pipe(u32),
    /// A message at an end of a pair of sockets: twice the number of the pair, and one more for the
    /// second.
    End(u32),
    /// An event of a counter.
    Eventfd(u32),
    /// Room to write to a pipe.
    PipeRoom(u32),
    /// Room to send from an end of a pair of sockets.
    Room(u32),
}

impl Watched {
    /// In a set of a workload whose lists follow those of `others`.
    pub(super) fn behind(self, others: &Shared) -> Watched {
        match self {
            Watched::Pipe(pipe) => Watched::Pipe(after(&others.pipes, pipe)),
            Watched::End(end) => Watched::End(2 * after(&others.sockets, 0) + end),
            Watched::Eventfd(eventfd) => Watched::Eventfd(after(&others.eventfds, eventfd)),
            Watched::PipeRoom(pipe) => Watched::PipeRoom(after(&others.pipes, pipe)),
            Watched::Room(end) => Watched::Room(2 * after(&others.sockets, 0) + end),
        }
    }

    pub(super) fn pack(self) -> u64 {
        let (kind, number) = match self {
            Watched::Pipe(pipe) => (0, pipe),
            Watched::End(end) => (1, end),
            Watched::Eventfd(eventfd) => (2, eventfd),
            Watched::PipeRoom(pipe) => (3, pipe),
            Watched::Room(end) => (4, end),
        };
        kind << 32 | u64::from(number)
    }

    pub(super) fn unpack(packed: u64) -> Watched {
        let number = packed as u32;
        match packed >> 32 {
            0 => Watched::Pipe(number),
            1 => Watched::End(number),
            2 => Watched::Eventfd(number),
            3 => Watched::PipeRoom(number),
            _ => Watched::Room(number),
        }
    }
}

/// The number of an object behind all others.
pub(super) fn after<T>(others: &[T], index: u32) -> u32 {
    others.len() as u32 + index
}

/// What a script does for the objects of a set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Serve {
    /// The set.
    pub epoll: u32,
    /// For each object, the cursor of its handler.
    pub handlers: Vec<u32>,
    /// The cursor behind all handlers.
    pub after: u32,
    /// Whether handlers differ from round to round. If so, the task waits until all are done.
    pub rounds: Option<Rounds>,
}

/// Handlers that do something else each time: each continues where it ended. The task does not hear
/// of an object whose handler is at its end. When all are, it continues behind them, and the loop is
/// as new.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// The cursor of the wait, to which the last handler of a round leads back.
    pub begin: u32,
    /// For each object, the cursor behind its handler.
    pub ends: Vec<u32>,
}

/// Serves requests in order of arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The number of requests that it serves at a time.
    pub channels: u16,
    /// The CPU on which its interrupts arrive, modulo the CPUs there are; `None`: the one on which
    /// the waiting task ran.
    pub interrupts: Option<CpuId>,
}

/// A periodic timer, independent of the tasks' run times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timer {
    /// One period before its first expiry; `None`: at its first use.
    pub origin: Option<Time>,
    /// What happens if an expiry is over before the task waits for it: the next one is a period
    /// after that expiry, or after now.
    pub late: Late,
}

/// What happens to a period that is already over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Late {
    /// The next one starts now.
    #[default]
    Restart,
    /// The next one starts at the missed expiry.
    CatchUp,
}

/// Identical tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Their name.
    pub name: String,
    /// The first.
    pub first: TaskId,
    /// How many.
    pub count: u32,
    /// Whether the run may end before they do: it ends when all other tasks have ended.
    pub daemon: bool,
}

impl Shared {
    /// The first mutex with priority inheritance.
    pub fn inheriting(&self) -> Option<&Mutex> {
        self.mutexes.iter().find(|mutex| mutex.inherit)
    }

    /// The shared objects of independent tasks: none.
    pub const NOTHING: Shared = Shared {
        mutexes: Vec::new(),
        conditions: Vec::new(),
        barriers: Vec::new(),
        pipes: Vec::new(),
        sockets: Vec::new(),
        eventfds: Vec::new(),
        epolls: Vec::new(),
        serves: Vec::new(),
        devices: Vec::new(),
        timers: Vec::new(),
        groups: Vec::new(),
        depth: 0,
    };

    /// The group of a task.
    pub fn group_of(&self, task: TaskId) -> Option<usize> {
        let index = self.groups.partition_point(|group| group.first <= task).checked_sub(1)?;
        (task.0 - self.groups[index].first.0 < self.groups[index].count).then_some(index)
    }
}
