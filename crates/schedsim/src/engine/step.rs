//! The result of a task's step.

/// How a task leaves its CPU when it is no longer runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Off {
    /// Sleeps until a time.
    Sleeps,
    /// Waits for another task.
    Waits,
    /// Exits.
    Ends,
}

/// The result of an operation.
pub enum Done {
    /// The task continues with its next step.
    Yes,
    /// It leaves the CPU.
    Blocks(Off),
    /// It keeps the CPU, and tries again when it has spun.
    Spins,
    /// It did something that no task may do; the run ends with an error.
    Never,
}
