//! What a task does with what it shares with others, and with the order of its own steps.

use super::Shared;
use crate::Nanos;

/// A blocking or signalling call, a fork, or a jump. Numbers are indices into the lists of [`Shared`](super::Shared).
///
/// A policy never sees one: it sees a task that blocks, that wakes, or that goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Takes a mutex, or waits for it.
    Lock(u32),
    /// Gives back a mutex that it holds.
    Unlock(u32),
    /// Gives back the mutex, waits for a signal, and takes the mutex again.
    Await {
        /// For a signal on which condition.
        condition: u32,
        /// Which mutex it holds.
        mutex: u32,
    },
    /// Wakes the task that has waited longest on a condition, if one waits.
    Signal(u32),
    /// Wakes all tasks that wait on a condition.
    Broadcast(u32),
    /// Waits at a barrier until all have come.
    Arrive(u32),
    /// Goes on when so many bytes have been read.
    Read {
        /// From where.
        pipe: u32,
        /// How many.
        bytes: u64,
    },
    /// Goes on when so many bytes are in the pipe.
    Write {
        /// Into which.
        pipe: u32,
        /// How many.
        bytes: u64,
    },
    /// Sleeps until a timer's next time, which is `period` after the last.
    Timer {
        /// Which timer.
        timer: u32,
        /// How much later.
        period: Nanos,
    },
    /// Waits until a device has served this request. One that takes no time is served at once, as from a cache.
    Io {
        /// Which device.
        device: u32,
        /// How long the device takes for it when its turn comes.
        service: Nanos,
    },
    /// Brings the next task of a group into being.
    Fork(u32),
    /// Waits until no task of a group is alive that came into being.
    Join(u32),
    /// Goes on elsewhere in its script, as another program.
    Exec {
        /// A cursor.
        begin: u32,
    },
    /// The end of a loop.
    Repeat {
        /// The cursor of its first step.
        begin: u32,
        /// In how many loops it is.
        depth: u8,
        /// How often its steps are done in all, at least once; [`Operation::FOREVER`] if it has no end.
        times: u64,
    },
}

/// An operation in a script: a code, an index, and a second word if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub code: u8,
    pub index: u32,
    pub second: Option<u64>,
}

impl Operation {
    /// A loop of so many rounds has no end.
    pub const FOREVER: u64 = u64::MAX;

    /// Whether the task may have to leave the CPU for it.
    pub fn may_block(self) -> bool {
        use Operation::{Arrive, Await, Io, Join, Lock, Read, Timer, Write};
        matches!(self, Lock(_) | Await { .. } | Arrive(_) | Read { .. } | Write { .. } | Timer { .. } | Io { .. } | Join(_))
    }

    /// The same of a workload whose lists stand behind `others`.
    pub(super) fn behind(self, others: &Shared) -> Operation {
        fn after<T>(others: &[T], index: u32) -> u32 {
            others.len() as u32 + index
        }
        match self {
            Operation::Lock(mutex) => Operation::Lock(after(&others.mutexes, mutex)),
            Operation::Unlock(mutex) => Operation::Unlock(after(&others.mutexes, mutex)),
            Operation::Await { condition, mutex } => {
                Operation::Await { condition: after(&others.conditions, condition), mutex: after(&others.mutexes, mutex) }
            }
            Operation::Signal(condition) => Operation::Signal(after(&others.conditions, condition)),
            Operation::Broadcast(condition) => Operation::Broadcast(after(&others.conditions, condition)),
            Operation::Arrive(barrier) => Operation::Arrive(after(&others.barriers, barrier)),
            Operation::Read { pipe, bytes } => Operation::Read { pipe: after(&others.pipes, pipe), bytes },
            Operation::Write { pipe, bytes } => Operation::Write { pipe: after(&others.pipes, pipe), bytes },
            Operation::Timer { timer, period } => Operation::Timer { timer: after(&others.timers, timer), period },
            Operation::Io { device, service } => Operation::Io { device: after(&others.devices, device), service },
            Operation::Fork(group) => Operation::Fork(after(&others.groups, group)),
            Operation::Join(group) => Operation::Join(after(&others.groups, group)),
            Operation::Exec { .. } | Operation::Repeat { .. } => self,
        }
    }

    /// The cursor of the step that may be next, if that is not the step behind it.
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
            Operation::Read { pipe, bytes } => (7, pipe, Some(bytes)),
            Operation::Write { pipe, bytes } => (8, pipe, Some(bytes)),
            Operation::Timer { timer, period } => (9, timer, Some(period.0)),
            Operation::Io { device, service } => (10, device, Some(service.0)),
            Operation::Fork(group) => (11, group, None),
            Operation::Join(group) => (12, group, None),
            Operation::Exec { .. } => (13, 0, None),
            Operation::Repeat { depth, times, .. } => (14, u32::from(depth), Some(times)),
        };
        Packed { code, index, second }
    }

    /// The operation of a code, and how many words follow the first. `begin` is where it jumps to, if it does.
    pub(super) fn unpack(code: u8, index: u32, begin: u32, second: Option<u64>) -> (Operation, u32) {
        let second = second.unwrap_or_default();
        match code {
            1 => (Operation::Lock(index), 0),
            2 => (Operation::Unlock(index), 0),
            3 => (Operation::Await { condition: index, mutex: second as u32 }, 1),
            4 => (Operation::Signal(index), 0),
            5 => (Operation::Broadcast(index), 0),
            6 => (Operation::Arrive(index), 0),
            7 => (Operation::Read { pipe: index, bytes: second }, 1),
            8 => (Operation::Write { pipe: index, bytes: second }, 1),
            9 => (Operation::Timer { timer: index, period: Nanos(second) }, 1),
            10 => (Operation::Io { device: index, service: Nanos(second) }, 1),
            11 => (Operation::Fork(index), 0),
            12 => (Operation::Join(index), 0),
            13 => (Operation::Exec { begin }, 0),
            14 => (Operation::Repeat { begin, depth: index as u8, times: second }, 1),
            _ => unreachable!("only packed operations are unpacked"),
        }
    }
}
