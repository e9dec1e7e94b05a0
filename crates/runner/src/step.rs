//! What the runner does to the tasks and the machine while the tasks of a job run.

use serde::{Deserialize, Serialize};

/// An act at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// When it is due, in nanoseconds after the release of the tasks. Steps are done one after
    /// another: one that takes long delays the next.
    pub at_ns: u64,
    /// What is done.
    pub act: Act,
}

/// What the runner can do. A task is named by its `[[task]]`; all of that name are meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Switches a CPU off.
    Offline(u16),
    /// Switches a CPU on.
    Online(u16),
    /// Stops tasks, as a debugger does (`SIGSTOP`). They must be processes: the signal stops all
    /// threads of one.
    Stop(String),
    /// Lets stopped tasks continue (`SIGCONT`).
    Continue(String),
    /// Changes the CPUs on which tasks may run.
    Affinity {
        /// The tasks.
        task: String,
        /// The CPUs.
        cpus: Vec<u16>,
    },
    /// Gives the kernel's worker of each CPU something to do, and waits until all have done it.
    KernelWork,
    /// Waits for a grace period of RCU, for which the kernel's own threads must run.
    GracePeriod,
    /// Lets an ordinary process start this many programs, one after another, and waits for the end
    /// of the last (`fork`, `exec`, `exit`, `wait`).
    Execs(u32),
    /// Ends the guest's scheduler, and waits until the kernel says that it is gone.
    Unload,
}
