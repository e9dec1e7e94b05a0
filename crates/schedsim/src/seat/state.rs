//! The states of a task and of a CPU.

/// The state of a task, as its policy knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskState {
    /// Not created yet, or ended.
    #[default]
    Absent,
    /// Created; `select_cpu` has not placed it yet.
    New,
    /// It sleeps, or has stopped and is about to be enqueued.
    Asleep,
    /// It is of another scheduling class.
    Elsewhere,
    /// It waits in one of the policy's queues.
    Waiting,
    /// It was dispatched.
    Chosen,
    /// It runs.
    Running,
}

/// Why a CPU takes no task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Away {
    Offline,
    /// A better class has it.
    Released,
}
