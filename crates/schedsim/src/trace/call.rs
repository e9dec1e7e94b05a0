//! Calls: what tasks ask of one another, as a stream beside the events.
//!
//! The simulator says which operation a task begins and when it has finished it. A recording with
//! causes says which object a call is about, if a task sleeps or wakes another in the call. It also
//! says what a call has done when it ends. [`Observer::call`](super::Observer::call) receives both.

use crate::workload::{Operation, TaskClass, Watched};
use crate::{CpuId, Nanos, TaskId, Time};

/// A moment in a call of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The time.
    pub time: Time,
    /// The CPU of the task.
    pub cpu: CpuId,
    /// The task.
    pub task: TaskId,
    /// The moment.
    pub kind: CallKind,
}

/// The moments of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// The simulator: the task begins an operation, or tries it again after it has waited.
    Performs(Operation),
    /// The simulator: the operation is finished. One that ends with a waking has no such moment.
    Done,
    /// The simulator: the task gives up the rest of its slice.
    Yields,
    /// A recording: the task is in a call about an object. The switch or the waking that happens in
    /// the call follows.
    Within {
        /// The object's number.
        object: u32,
        /// The same number for both ends of a pair of sockets; otherwise the object's.
        channel: u32,
    },
    /// A recording: from now on this holds for the task, and for the tasks that it creates.
    Sets(Set),
    /// A recording: a call ends that began at `since`.
    Ends {
        /// When it began.
        since: Time,
        /// Which call it was: its number, and what it was called for in the lower 16 bits.
        call: u32,
        /// What it did.
        returned: Returned,
        /// The CPU time that recording it took, which is not the task's.
        recording: Nanos,
    },
}

/// A setting of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// The CPUs on which it may run: a bit for each of the first 64.
    Cpus(u64),
    /// Its scheduling policy, and whether the tasks that it creates have the default one.
    Class {
        /// The policy.
        class: TaskClass,
        /// `SCHED_RESET_ON_FORK`.
        resets: bool,
    },
}

/// What a recorded call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// Nothing that is understood: what it waited for and whom it woke stays as recorded.
    Unknown,
    /// Slept for a time that does not depend on others.
    Slept,
    /// Gave up the rest of the slice.
    Yielded,
    /// A futex call. If a task's end ended the wait, the wait was for that end. Whatever else it was
    /// is known only in a library's call around it, or if all calls on the futex form a barrier.
    Futex {
        /// The barrier that it would be an arrival at. One of no tasks turned out to be none.
        barrier: Option<u32>,
    },
    /// A call on a file or a disk. Where an interrupt or a thread of the kernel ended its sleeps, it
    /// waited for the device. Devices without channels have as many as were ever used at once.
    Stored {
        /// The device.
        device: u32,
    },
    /// A mutex of a real program is locked.
    Locked {
        /// The mutex.
        mutex: u32,
        /// Where in the program; 0 is unknown. Sections that begin at one place do the same.
        site: u64,
    },
    /// A wait for a signal in a real program, under a mutex. Whether it waits depends on what it
    /// finds, so a signal must not be lost in a replay: conditions are counters.
    Waited {
        /// The mutex.
        mutex: u32,
        /// The counter of the condition; `None` if its time was over before a signal.
        condition: Option<u32>,
    },
    /// A signal to a condition of a real program.
    Signals {
        /// Its counter.
        condition: u32,
        /// Whether to all that wait.
        all: bool,
    },
    /// A signal ended it, or is what it waited for.
    Signalled,
    /// It has waited for the end of any task that its task created, and it was this one's.
    Reaped(TaskId),
    /// It has found that nothing more comes from an object: end of file.
    Ended(Watched),
    /// It has found that nothing more is taken from an object: a broken pipe. The object is named as
    /// by who takes from it.
    Broken(Watched),
    /// It has closed a descriptor through which data may have gone into an object, which is named
    /// as by who takes from it.
    Closed(Watched),
    /// An operation on a shared object.
    Did(Operation),
}
