//! What the runner reports, one line of JSON each.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line of the runner's output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The kernel runs and has started the runner.
    Boot {
        /// The kernel's release, as `uname -r` has it.
        kernel: String,
        /// CPUs online.
        cpus: u32,
        /// NUMA nodes; 0 if the kernel knows none.
        nodes: u32,
        /// The clock: nanoseconds since the machine was started.
        ns: u64,
    },
    /// The wait after the boot is over.
    Settled {
        /// The clock.
        ns: u64,
    },
    /// A job's tasks are about to run.
    JobStart {
        /// Which job of the session, from 0.
        job: usize,
        /// Its name.
        name: String,
        /// The clock.
        ns: u64,
    },
    /// When the kernel's ticks are; of a guest with one CPU.
    Tick {
        /// Which job.
        job: usize,
        /// The clock at a tick.
        ns: u64,
        /// For how long it kept the CPU from what ran.
        took_ns: u64,
    },
    /// A window of a job's steady state.
    Sample {
        /// Which job.
        job: usize,
        /// How long the window was; on a clock that counts instructions, how many.
        ns: u64,
        /// What all tasks together did in it, counted in phases of the sampled kind.
        operations: u64,
    },
    /// A job is over.
    JobEnd {
        /// Which job.
        job: usize,
        /// From the release of the tasks until the last one that somebody waits for ended, or the job's duration was over.
        ns: u64,
        /// What each task came to, in the order of the workload.
        tasks: Vec<TaskResult>,
    },
    /// What all tasks of a job together used, on a machine that is no guest.
    Usage {
        /// Which job.
        job: usize,
        /// The process that it ran in.
        pid: u32,
        /// CPU time in programs.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
        /// Switches because a task waited for something.
        voluntary: u64,
        /// Switches because something else was to run.
        involuntary: u64,
        /// Moves between CPUs; absent if they were not counted.
        migrations: Option<u64>,
        /// Time for which tasks were runnable and did not run; absent if it was not asked for or the kernel does not keep it.
        run_delay_ns: Option<u64>,
    },
    /// A line of the kernel's scheduling trace, as tracefs prints it, times in ticks of the clock.
    Trace {
        /// Which job.
        job: usize,
        /// The line.
        line: String,
    },
    /// The buffer was too small for a job's trace, which is left out.
    TraceLost {
        /// Which job.
        job: usize,
        /// How many events went missing.
        events: u64,
    },
    /// Where the kernel's functions lie, some at a time.
    Symbols {
        /// Lines of an address in hexadecimal, a space and a name.
        text: String,
    },
    /// A line that a service wrote on its standard output; all come when the jobs are over.
    Service {
        /// Which service of the session, from 0.
        service: usize,
        /// The line.
        line: String,
    },
    /// How a service ended.
    ServiceEnd {
        /// Which service.
        service: usize,
        /// Its exit status, or the signal.
        status: String,
        /// Whether it ended before it was asked to, after the last job.
        early: bool,
    },
    /// The runner cannot go on.
    Failed {
        /// Why, and what to do.
        message: String,
    },
    /// All jobs are done; the machine is switched off.
    PowerOff {
        /// The clock.
        ns: u64,
    },
}

/// What one task came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskResult {
    /// The name of its `[[task]]`.
    pub name: String,
    /// How many tasks this sums up: 1, or all of their `[[task]]` where there are too many to tell of each.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tasks: u32,
    /// CPU time.
    pub cpu_ns: u64,
    /// When it first ran, from the release of the tasks; not in a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// When it ended, from the release of the tasks; absent if it was still alive at the end of the job.
    pub ended_ns: Option<u64>,
    /// How many phases of each kind it completed; absent kinds are zero.
    pub operations: BTreeMap<String, u64>,
    /// Its thread or process id, which the trace uses.
    pub tid: u32,
}

fn one() -> u32 {
    1
}

fn is_one(tasks: &u32) -> bool {
    *tasks == 1
}
