//! The session: what the runner has to do.

use crate::class::Class;
use crate::nudge::Nudge;
use crate::step::Step;
use crate::tuning::Tuning;
use phases::Closed;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The jobs of one boot (or one start of the runner), one after another.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// How long to wait before the first job, in milliseconds, because a kernel is busy after its
    /// boot.
    pub settle_ms: u64,
    /// The silence in seconds, an even number, after which a guest's watchdog ends it; 0 for
    /// [`LONGEST_SILENCE_S`].
    #[serde(default)]
    pub silence_s: u8,
    /// Programs to start before the first job, with their arguments. The runner waits for the first
    /// line of output of each, which reports that it is ready. They live until the session ends. If
    /// one ends early the session continues: its output shows why.
    #[serde(default)]
    pub services: Vec<Vec<String>>,
    /// A scheduler of sched_ext that is a program of its own, with its arguments. It is ready when
    /// the kernel says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler: Vec<String>,
    /// Whether to report the addresses of the kernel's functions.
    #[serde(default)]
    pub symbols: bool,
    /// Whether to report, after the last job, where the code of the scheduler is: what it has in BPF
    /// and its programs.
    #[serde(default, skip_serializing_if = "is_no")]
    pub scheduler_code: bool,
    /// Whether to report the kernel's scheduling domains.
    #[serde(default, skip_serializing_if = "is_no")]
    pub domains: bool,
    /// The CPUs of a guest that are switched off first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offline: Vec<u16>,
    /// Whether to report what the guest's scheduler leaves behind.
    #[serde(default, skip_serializing_if = "is_no")]
    pub leftovers: bool,
    /// Whether a guest pauses when it has settled, so that QEMU can save its state. It then reads
    /// its jobs from [`ORDERS`] when it continues.
    #[serde(default)]
    pub pauses: bool,
    /// How many nanoseconds an instruction takes on each CPU of a guest whose CPUs run in
    /// lockstep; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub instruction_ns: u64,
    /// What is changed of a guest's kernel first.
    #[serde(default, skip_serializing_if = "Tuning::is_none")]
    pub tuning: Tuning,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// How to run them on a real machine.
    #[serde(default)]
    pub host: Option<Host>,
}

/// The settings of a session on a machine that others need as well.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The time in milliseconds after which a job is killed. It is also the most CPU time that a
    /// real-time task gets without a pause.
    pub limit_ms: u64,
    /// The CPUs that all tasks may use; empty: all.
    pub cpus: Vec<u16>,
    /// The nice value of the tasks that request none.
    pub nice: i32,
    /// Whether to leave out everything that takes time to measure.
    pub bare: bool,
    /// A program and its arguments, to run in `class` in place of jobs.
    pub command: Vec<String>,
    /// Whether to report what it writes.
    #[serde(default)]
    pub keeps_output: bool,
    /// The class of the command.
    pub class: Class,
}

/// The name of the file in which QEMU provides the jobs to a guest that has paused: a list of
/// [`Job`]s in JSON.
pub const ORDERS: &str = "opt/schedlab/jobs";

/// The longest silence that a guest's watchdog can allow, in seconds.
pub const LONGEST_SILENCE_S: u8 = 30;

fn is_unknown(ns: &u64) -> bool {
    *ns == 0
}

fn is_no(is: &bool) -> bool {
    !is
}

impl Session {
    /// How long a guest may be silent.
    pub fn silence(&self) -> Duration {
        let seconds = if self.silence_s == 0 {
            LONGEST_SILENCE_S
        } else {
            self.silence_s.clamp(2, LONGEST_SILENCE_S)
        };
        Duration::from_secs(seconds.into())
    }
}

/// One workload, run once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name in results.
    pub name: String,
    /// The workload.
    pub workload: Closed,
    /// The class of the tasks that request none.
    #[serde(default)]
    pub class: Class,
    /// Windows of steady state to take; without them the job runs to its end.
    #[serde(default)]
    pub windows: Option<Windows>,
    /// Whether to record the kernel's scheduling events, which takes instructions.
    #[serde(default)]
    pub trace: bool,
    /// Whether instructions can be counted by address from the release of the tasks to their end:
    /// one window, which is reported as a sample.
    #[serde(default, skip_serializing_if = "is_no")]
    pub marked: bool,
    /// What this run of it differs by.
    #[serde(default, skip_serializing_if = "Nudge::is_none")]
    pub nudge: Nudge,
    /// A program to run in place of the workload; only in a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// What the runner does meanwhile; only in a guest. It then comes before all ordinary tasks, a
    /// job that fails does not end the session, and the scheduler's state is reported after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overseen: Option<Vec<Step>>,
}

/// Any program, as a shell would start it: in the folder [`DIRECTORY`] of the file system at
/// [`ROOT`], with empty standard input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The path of the program in its file system.
    pub path: String,
    /// Its name and its arguments.
    pub words: Vec<String>,
    /// The time after which it is ended, on the guest's clock.
    pub limit_ns: u64,
}

/// Where the file system of a [`Command`] lies in the guest.
pub const ROOT: &str = "/program";

/// Where a [`Command`] starts in its file system.
pub const DIRECTORY: &str = "/here";

/// Where a [`Command`] looks for programs.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Job {
    /// Runs `workload` as described, to its end.
    pub fn new(name: impl Into<String>, workload: Closed, class: Class) -> Job {
        Job {
            name: name.into(),
            workload,
            class,
            windows: None,
            trace: false,
            marked: false,
            nudge: Nudge::default(),
            command: None,
            overseen: None,
        }
    }
}

/// Samples of a workload that does not end. The first task takes one after every `rounds` passes of
/// its outermost loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// The number of windows; the job ends with the last.
    pub count: u32,
    /// The number of windows to leave out before them.
    pub warm_up: u32,
    /// Rounds of the first task in each.
    pub rounds: u64,
}
