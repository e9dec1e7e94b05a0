//! What is uncertain about a reconstructed workload.

use crate::{Nanos, TaskId};

/// How a recording became a workload, and which parts of that are guesses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplayReport {
    /// CPU bursts.
    pub bursts: u64,
    /// CPU time of all tasks, without the switches.
    pub demand: Nanos,
    /// Memory of the scripts, in bytes.
    pub script_bytes: usize,
    /// Sleeps ended by a task: the waker's work decides when.
    pub dependencies: EdgeCounts,
    /// Sleeps ended by an interrupt or by nobody seen: they last as long as recorded.
    pub delays: EdgeCounts,
    /// Wakings of tasks that had not gone to sleep and then did not.
    pub wakings_without_sleep: u64,
    /// Tasks kept on one CPU because they are a CPU's kernel threads.
    pub pinned: u64,
    /// Tasks that an option restricts to some CPUs.
    pub restricted: u64,
    /// The tasks that ended. When they have, what was recorded is done; see [`UntilEnded`](super::UntilEnded).
    pub ended: Vec<TaskId>,
    /// Tasks that had not ended and did not sleep at the end.
    pub unfinished: u64,
    /// Of these, the ones on a CPU.
    pub running_at_the_end: u64,
    /// Runs whose beginning was not recorded.
    pub unseen_switch_ins: u64,
    /// Runs whose end was not recorded; nothing was credited for them.
    pub unseen_switch_outs: u64,
    /// Sleeps whose end was not recorded.
    pub unseen_wakings: u64,
    /// Time of which it is not known whether it was run or sleep: the span of the guesses for unseen switch-ins.
    pub uncertain_run: Nanos,
    /// CPU time taken off the recorded runs for the switches in them.
    pub switch_time: Nanos,
}

/// Sleeps by how sure it is what ended them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EdgeCounts {
    /// The recording says so: its interrupt flags, or the CPU was idle.
    pub recorded: u64,
    /// A heuristic with evidence says so.
    pub inferred: u64,
    /// The heuristic had nothing to go by.
    pub doubtful: u64,
}

impl EdgeCounts {
    /// All.
    pub fn total(&self) -> u64 {
        self.recorded + self.inferred + self.doubtful
    }
}

impl ReplayReport {
    /// The share of sleeps of which it is doubtful what ended them, 0…1; `None` if there are no sleeps.
    pub fn doubtful_share(&self) -> Option<f64> {
        let all = self.dependencies.total() + self.delays.total();
        (all > 0).then(|| (self.dependencies.doubtful + self.delays.doubtful) as f64 / all as f64)
    }
}
