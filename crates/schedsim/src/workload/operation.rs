//! Operations on shared objects and on the order of a task's own steps.

use super::shared::after;
use super::{Shared, Watched};
use crate::{Nanos, Time};

/// A blocking or signalling call, a fork, or a jump. Numbers are indices into the lists of
/// [`Shared`](super::Shared).
///
/// A policy never sees one: it sees only a task that blocks, wakes or continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Locks a mutex, or waits for it.
    Lock(u32),
    /// Unlocks a mutex that the task holds.
    Unlock(u32),
    /// Unlocks the mutex, waits for a signal, and locks the mutex again.
    Await {
        /// The condition.
        condition: u32,
        /// The mutex, which the task holds.
        mutex: u32,
    },
    /// Wakes the task that has waited longest on a condition, if one waits.
    Signal(u32),
    /// Wakes all tasks that wait on a condition.
    Broadcast(u32),
    /// Waits at a barrier until all tasks have arrived.
    Arrive(u32),
    /// Reads from a pipe.
    Read {
        /// The pipe.
        pipe: u32,
        /// The number of bytes.
        bytes: u64,
        /// What it blocks for.
        until: Until,
        /// Always [`Call::Begins`] in a script.
        call: Call,
    },
    /// Blocks until all bytes are in the pipe.
    Write {
        /// The pipe.
        pipe: u32,
        /// The number of bytes.
        bytes: u64,
        /// Always [`Call::Begins`] in a script.
        call: Call,
    },
    /// Sends from an end of a pair of sockets, and blocks until all bytes are on their way.
    Send {
        /// Twice the number of the pair, and one more for its second end.
        end: u32,
        /// The number of bytes.
        bytes: u64,
    },
    /// Receives at an end of a pair of sockets: bytes of a stream, or one datagram.
    Receive {
        /// Twice the number of the pair, and one more for its second end.
        end: u32,
        /// The number of bytes.
        bytes: u64,
        /// What it blocks for, at a stream.
        until: Until,
    },
    /// Adds to an event counter, and wakes all that wait for it.
    Post {
        /// The counter.
        eventfd: u32,
        /// What is added.
        count: u64,
    },
    /// Takes from an event counter, or waits while it is zero.
    Take(u32),
    /// Waits until an object of a set is ready.
    Serve(u32),
    /// Continues with the handler of the next object that has, or behind all handlers.
    Handle(u32),
    /// Waits until an object of a set is ready, as `poll(2)`, and takes nothing.
    Poll(u32),
    /// From now on an object of a set is watched, or is not (`epoll_ctl`). One that is ready then is
    /// news.
    Watch {
        /// The set.
        epoll: u32,
        /// The object.
        object: Watched,
        /// Whether it is watched.
        on: bool,
    },
    /// Sleeps until a time, unless that is over.
    SleepUntil(Time),
    /// Sleeps until a timer's next expiry, `period` after the last.
    Timer {
        /// The timer.
        timer: u32,
        /// The period.
        period: Nanos,
    },
    /// Waits until a device has served this request. A request with no service time is served at
    /// once, as from a cache.
    Io {
        /// The device.
        device: u32,
        /// The service time.
        service: Nanos,
    },
    /// Creates the next task of a group.
    Fork(u32),
    /// Waits until no created task of a group is alive.
    Join(u32),
    /// Continues at another step of its script, as another program.
    Exec {
        /// A cursor.
        begin: u32,
    },
    /// The end of a loop.
    Repeat {
        /// The cursor of its first step.
        begin: u32,
        /// The number of enclosing loops.
        depth: u8,
        /// The number of iterations, at least one; [`Operation::FOREVER`] if infinite.
        times: u64,
    },
}

/// What a read blocks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// All its bytes.
    All,
    /// At least one byte, as `read(2)`.
    Any,
}

/// How far a call is that may block more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// It has not blocked yet.
    Begins,
    /// It has blocked, and continues.
    HasWaited,
}

const _: () = assert!(size_of::<Operation>() == 16);

/// An operation in a script: a code, an index, and a second word if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub code: u8,
    pub index: u32,
    pub second: Option<u64>,
}

impl Operation {
    /// The number of iterations of an infinite loop.
    pub const FOREVER: u64 = u64::MAX;

    /// Whether the task may block.
    pub fn may_block(self) -> bool {
        use Operation::{
            Arrive, Await, Io, Join, Lock, Poll, Post, Read, Receive, Send, Serve, SleepUntil,
            Take, Timer, Write,
        };
        matches!(
            self,
            Lock(_)
                | Await { .. }
                | Arrive(_)
                | Read { .. }
                | Write { .. }
                | Send { .. }
                | Post { .. }
                | Take(_)
                | Serve(_)
                | Poll(_)
                | SleepUntil(_)
                | Receive { .. }
                | Timer { .. }
                | Io { .. }
                | Join(_)
        )
    }

    /// This operation for a workload whose lists follow those of `others`.
    pub(super) fn behind(self, others: &Shared) -> Operation {
        match self {
            Operation::Lock(mutex) => Operation::Lock(after(&others.mutexes, mutex)),
            Operation::Unlock(mutex) => Operation::Unlock(after(&others.mutexes, mutex)),
            Operation::Await { condition, mutex } => Operation::Await {
                condition: after(&others.conditions, condition),
                mutex: after(&others.mutexes, mutex),
            },
            Operation::Signal(condition) => Operation::Signal(after(&others.conditions, condition)),
            Operation::Broadcast(condition) => {
                Operation::Broadcast(after(&others.conditions, condition))
            }
            Operation::Arrive(barrier) => Operation::Arrive(after(&others.barriers, barrier)),
            Operation::Read { pipe, bytes, until, call } => {
                Operation::Read { pipe: after(&others.pipes, pipe), bytes, until, call }
            }
            Operation::Write { pipe, bytes, call } => {
                Operation::Write { pipe: after(&others.pipes, pipe), bytes, call }
            }
            Operation::Send { end, bytes } => {
                Operation::Send { end: after(&others.sockets, 0) * 2 + end, bytes }
            }
            Operation::Receive { end, bytes, until } => {
                Operation::Receive { end: after(&others.sockets, 0) * 2 + end, bytes, until }
            }
            Operation::Post { eventfd, count } => {
                Operation::Post { eventfd: after(&others.eventfds, eventfd), count }
            }
            Operation::Take(eventfd) => Operation::Take(after(&others.eventfds, eventfd)),
            Operation::Serve(serve) => Operation::Serve(after(&others.serves, serve)),
            Operation::Handle(serve) => Operation::Handle(after(&others.serves, serve)),
            Operation::Poll(epoll) => Operation::Poll(after(&others.epolls, epoll)),
            Operation::Watch { epoll, object, on } => Operation::Watch {
                epoll: after(&others.epolls, epoll),
                object: object.behind(others),
                on,
            },
            Operation::SleepUntil(_) => self,
            Operation::Timer { timer, period } => {
                Operation::Timer { timer: after(&others.timers, timer), period }
            }
            Operation::Io { device, service } => {
                Operation::Io { device: after(&others.devices, device), service }
            }
            Operation::Fork(group) => Operation::Fork(after(&others.groups, group)),
            Operation::Join(group) => Operation::Join(after(&others.groups, group)),
            Operation::Exec { .. } | Operation::Repeat { .. } => self,
        }
    }

    /// The cursor of another step that may be next, if any.
    pub(super) fn jumps_to(self) -> Option<u32> {
        match self {
            Operation::Exec { begin } | Operation::Repeat { begin, .. } => Some(begin),
            _ => None,
        }
    }

    pub(super) fn pack(self) -> Packed {
        let (code, index, second) = match self {
            Operation::Lock(mutex) => (1, mutex, None),
            Operation::Unlock(mutex) => (2, mutex, None),
            Operation::Await { condition, mutex } => (3, condition, Some(u64::from(mutex))),
            Operation::Signal(condition) => (4, condition, None),
            Operation::Broadcast(condition) => (5, condition, None),
            Operation::Arrive(barrier) => (6, barrier, None),
            Operation::Read { pipe, bytes, until: Until::All, .. } => (7, pipe, Some(bytes)),
            Operation::Write { pipe, bytes, .. } => (8, pipe, Some(bytes)),
            Operation::Timer { timer, period } => (9, timer, Some(period.0)),
            Operation::Io { device, service } => (10, device, Some(service.0)),
            Operation::Fork(group) => (11, group, None),
            Operation::Join(group) => (12, group, None),
            Operation::Exec { .. } => (13, 0, None),
            Operation::Repeat { depth, times, .. } => (14, u32::from(depth), Some(times)),
            Operation::Read { pipe, bytes, until: Until::Any, .. } => (15, pipe, Some(bytes)),
            Operation::Send { end, bytes } => (16, end, Some(bytes)),
            Operation::Receive { end, bytes, until: Until::All } => (17, end, Some(bytes)),
            Operation::Receive { end, bytes, until: Until::Any } => (18, end, Some(bytes)),
            Operation::Post { eventfd, count } => (19, eventfd, Some(count)),
            Operation::Take(eventfd) => (20, eventfd, None),
            Operation::SleepUntil(time) => (21, 0, Some(time.0)),
            Operation::Serve(serve) => (22, serve, None),
            Operation::Handle(serve) => (23, serve, None),
            Operation::Poll(epoll) => (30, epoll, None),
            Operation::Watch { epoll, object, on } => {
                (24, epoll, Some(object.pack() << 1 | u64::from(on)))
            }
        };
        Packed { code, index, second }
    }

    /// Decodes an operation, and the number of words after the first. `begin` is its jump target,
    /// if any.
    pub(super) fn unpack(
        code: u8,
        index: u32,
        begin: u32,
        second: Option<u64>,
    ) -> (Operation, u32) {
        let second = second.unwrap_or_default();
        let read =
            |until| (Operation::Read { pipe: index, bytes: second, until, call: Call::Begins }, 1);
        match code {
            1 => (Operation::Lock(index), 0),
            2 => (Operation::Unlock(index), 0),
            3 => (Operation::Await { condition: index, mutex: second as u32 }, 1),
            4 => (Operation::Signal(index), 0),
            5 => (Operation::Broadcast(index), 0),
            6 => (Operation::Arrive(index), 0),
            7 => read(Until::All),
            8 => (Operation::Write { pipe: index, bytes: second, call: Call::Begins }, 1),
            9 => (Operation::Timer { timer: index, period: Nanos(second) }, 1),
            10 => (Operation::Io { device: index, service: Nanos(second) }, 1),
            11 => (Operation::Fork(index), 0),
            12 => (Operation::Join(index), 0),
            13 => (Operation::Exec { begin }, 0),
            14 => (Operation::Repeat { begin, depth: index as u8, times: second }, 1),
            15 => read(Until::Any),
            16 => (Operation::Send { end: index, bytes: second }, 1),
            17 => (Operation::Receive { end: index, bytes: second, until: Until::All }, 1),
            18 => (Operation::Receive { end: index, bytes: second, until: Until::Any }, 1),
            19 => (Operation::Post { eventfd: index, count: second }, 1),
            20 => (Operation::Take(index), 0),
            21 => (Operation::SleepUntil(Time(second)), 1),
            22 => (Operation::Serve(index), 0),
            23 => (Operation::Handle(index), 0),
            24 => {
                let (object, on) = (Watched::unpack(second >> 1), second & 1 == 1);
                (Operation::Watch { epoll: index, object, on }, 1)
            }
            30 => (Operation::Poll(index), 0),
            _ => unreachable!("only packed operations are unpacked"),
        }
    }
}
