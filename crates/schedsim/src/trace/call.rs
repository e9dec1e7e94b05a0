//! Calls: what tasks ask of one another, as a stream beside the events.
//!
//! The simulator says which operation a task begins and when it has finished it. A recording with
//! causes says about which object the call is in which a task sleeps or wakes another, and what a
//! call has done when it ends. [`Observer::call`](super::Observer::call) receives both.

use crate::workload::Operation;
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
    /// A recording: the task is in a call about this object, by its number. The switch or the
    /// waking that happens in the call follows.
    Within(u32),
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

/// What a recorded call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// Nothing that is understood: what it waited for and whom it woke stays as recorded.
    Unknown,
    /// Slept for a time that does not depend on others.
    Slept,
    /// Gave up the rest of the slice.
    Yielded,
    /// An operation on a shared object.
    Did(Operation),
}
