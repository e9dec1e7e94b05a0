//! What the runner is to do.

use crate::class::Class;
use phases::Closed;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The jobs of one boot (or one start of the runner), one after another.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// How long to wait before the first job, in milliseconds: a kernel that has just booted is still busy with itself.
    pub settle_ms: u64,
    /// After how many seconds without a report a guest's watchdog bites, an even number; 0 for [`LONGEST_SILENCE_S`].
    #[serde(default)]
    pub silence_s: u8,
    /// Programs to start before the first job, with their arguments; each says by its first line that it is ready, which is waited for, and lives until the session ends.
    /// One that ends before is no reason to stop: what it was there for shows in what it said.
    #[serde(default)]
    pub services: Vec<Vec<String>>,
    /// Whether to tell where the kernel's functions lie.
    #[serde(default)]
    pub symbols: bool,
    /// What to run.
    pub jobs: Vec<Job>,
    /// How to run it on a machine that runs already.
    #[serde(default)]
    pub host: Option<Host>,
}

/// What holds for a session on a machine that others need as well.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A job that takes longer, in milliseconds, is killed; so much CPU time without a pause is the most that a real-time task gets, too.
    pub limit_ms: u64,
    /// The CPUs that everything may use; empty: all.
    pub cpus: Vec<u16>,
    /// The nice value of the tasks that ask for none.
    pub nice: i32,
    /// Whether to leave out all that costs time to measure.
    pub bare: bool,
    /// A program and its arguments to run in place of jobs, in `class`.
    pub command: Vec<String>,
    /// The class of the command.
    pub class: Class,
}

/// The longest that a guest's watchdog waits.
pub const LONGEST_SILENCE_S: u8 = 30;

impl Session {
    /// How long a guest may be silent.
    pub fn silence(&self) -> Duration {
        let seconds = if self.silence_s == 0 { LONGEST_SILENCE_S } else { self.silence_s.clamp(2, LONGEST_SILENCE_S) };
        Duration::from_secs(seconds.into())
    }
}

/// One workload, run once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name in results.
    pub name: String,
    /// What runs.
    pub workload: Closed,
    /// The class of the tasks that ask for none.
    #[serde(default)]
    pub class: Class,
    /// Windows of steady state to take; without them the job runs to its end.
    #[serde(default)]
    pub windows: Option<Windows>,
    /// Whether to record the kernel's scheduling events, which costs instructions.
    #[serde(default)]
    pub trace: bool,
}

/// Samples of a workload that goes on and on. The first task takes one each time it has gone around its outermost loop so often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// How many windows; when the last is over, so is the job.
    pub count: u32,
    /// How many to leave out before them.
    pub warm_up: u32,
    /// Rounds of the first task in each.
    pub rounds: u64,
}
