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
    /// What was changed of the kernel, as the kernel then says.
    Tuned {
        /// The further arguments that it was started with.
        arguments: Vec<String>,
        /// The modules that were loaded, by name.
        modules: Vec<String>,
        /// The features of its scheduler.
        features: Vec<String>,
        /// The values of sysctls and files in `/sys`.
        sysctls: BTreeMap<String, String>,
    },
    /// The wait after the boot is over.
    Settled {
        /// The clock.
        ns: u64,
    },
    /// How the kernel sees the CPUs; empty if it does not say.
    Domains {
        /// One after another.
        cpus: Vec<Domains>,
    },
    /// The guest pauses. It reports everything after this from its restored state.
    Paused {
        /// The clock.
        ns: u64,
    },
    /// A job's tasks are about to run.
    JobStart {
        /// The number of the job in the session, from 0.
        job: usize,
        /// Its name.
        name: String,
        /// The clock.
        ns: u64,
    },
    /// The time of the kernel's ticks, in a guest with one CPU.
    Tick {
        /// The number of the job.
        job: usize,
        /// The clock at a tick.
        ns: u64,
        /// How long it kept the CPU from the running task.
        took_ns: u64,
    },
    /// A window of a job's steady state.
    Sample {
        /// The number of the job.
        job: usize,
        /// The length of the window; on a clock that counts instructions, their number.
        ns: u64,
        /// What all tasks together did in it, counted in phases of the sampled kind.
        operations: u64,
    },
    /// A job is over.
    JobEnd {
        /// The number of the job.
        job: usize,
        /// From the release of the tasks to the end of the last one that is no daemon, or to the
        /// end of the job's duration.
        ns: u64,
        /// The result of each task, in the order of the workload.
        tasks: Vec<TaskResult>,
    },
    /// A part of what a command wrote.
    Output {
        /// The number of the job.
        job: usize,
        /// To which of its outputs.
        stream: Stream,
        /// The bytes, each as the character with its number: U+0000 to U+00FF.
        bytes: String,
    },
    /// A command is over.
    CommandEnd {
        /// The number of the job.
        job: usize,
        /// From its release to its end.
        ns: u64,
        /// Its process id, as in the trace.
        pid: u32,
        /// How it ended, as `wait` has it.
        wait_status: i32,
    },
    /// A command went beyond a limit and was ended.
    Limit {
        /// The number of the job.
        job: usize,
        /// Which limit.
        limit: Limit,
        /// The most that it allows: nanoseconds, tasks or bytes.
        most: u64,
    },
    /// What all tasks of a job together used; not in a guest.
    Usage {
        /// The number of the job.
        job: usize,
        /// The process that it ran in.
        pid: u32,
        /// CPU time in user space.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
        /// Voluntary context switches: a task blocked.
        voluntary: u64,
        /// Involuntary context switches: a task was preempted.
        involuntary: u64,
        /// Moves between CPUs; absent if they were not counted.
        migrations: Option<u64>,
        /// Time for which tasks were runnable and did not run; absent if it was not requested or
        /// the kernel does not keep it.
        run_delay_ns: Option<u64>,
    },
    /// A line of the kernel's scheduling trace, as tracefs prints it; times are ticks of the clock.
    Trace {
        /// The number of the job.
        job: usize,
        /// The line.
        line: String,
    },
    /// The buffer was too small for the trace of a job, which is left out.
    TraceLost {
        /// The number of the job.
        job: usize,
        /// The number of lost events.
        events: u64,
    },
    /// The addresses of the kernel's functions, in several parts.
    Symbols {
        /// Lines of an address in hexadecimal, a space and a name.
        text: String,
    },
    /// Where the code of a scheduler is.
    SchedulerCode {
        /// What it has in BPF: lines as those of [`Event::Symbols`].
        bpf: String,
        /// Code of the programs that run beside the jobs: from an address to the one behind the last.
        programs: Vec<(u64, u64)>,
        /// Code of this runner, which is that of the tasks.
        tasks: Vec<(u64, u64)>,
    },
    /// A line that a service wrote to its standard output. All come after the last job.
    Service {
        /// The number of the service in the session, from 0.
        service: usize,
        /// The line.
        line: String,
    },
    /// The end of a service.
    ServiceEnd {
        /// The number of the service.
        service: usize,
        /// Its exit status, or the signal.
        status: String,
        /// Whether it ended before the runner ended it, after the last job.
        early: bool,
    },
    /// What the kernel says of sched_ext: once the guest's scheduler is ready, and after the last
    /// job.
    SchedExt {
        /// Its files.
        now: SchedExt,
    },
    /// A step of an overseen job was done.
    Act {
        /// The number of the job.
        job: usize,
        /// The number of the step in it, from 0.
        step: usize,
        /// The clock before it.
        ns: u64,
        /// How long it took.
        took_ns: u64,
        /// Why it could not be done.
        error: Option<String>,
    },
    /// An overseen job could not be done to its end. The session continues.
    JobFailed {
        /// The number of the job.
        job: usize,
        /// Why.
        message: String,
    },
    /// What the kernel says after an overseen job.
    Overseen {
        /// The number of the job.
        job: usize,
        /// Its files of sched_ext.
        now: SchedExt,
        /// How often a scheduler of sched_ext was loaded so far.
        loads: u64,
        /// The process ids of the kernel's own threads.
        kernel_threads: Vec<u32>,
        /// Its warnings since the last report, and what sched_ext says.
        log: Vec<String>,
    },
    /// What is there besides the runner, before the scheduler was started and after its end.
    Left {
        /// Before.
        before: Leftovers,
        /// After.
        after: Leftovers,
    },
    /// The runner cannot continue.
    Failed {
        /// The reason, and what to do.
        message: String,
    },
    /// All jobs are done; the machine is switched off.
    PowerOff {
        /// The clock.
        ns: u64,
    },
}

/// The bytes of a part of what a command wrote: each character is the number of a byte.
pub fn written(part: &str) -> impl Iterator<Item = u8> {
    part.chars().map(|byte| byte as u8)
}

/// What the kernel says of sched_ext; empty where it says nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchedExt {
    /// `/sys/kernel/sched_ext/state`.
    pub state: String,
    /// `root/ops`, in the folder of `state`: the name of the scheduler.
    pub ops: String,
}

impl SchedExt {
    /// Whether a scheduler is at work.
    pub fn is_enabled(&self) -> bool {
        self.state == "enabled" && !self.ops.is_empty()
    }
}

/// What a scheduler can leave behind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Leftovers {
    /// The number of programs in BPF.
    pub programs: u32,
    /// The number of maps, those of `struct_ops` among them.
    pub maps: u32,
    /// The number of links.
    pub links: u32,
    /// The files in `/sys/fs/bpf`.
    pub pins: Vec<String>,
    /// The names of the processes.
    pub processes: Vec<String>,
    /// The files where programs keep them.
    pub files: Vec<String>,
}

/// An output of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A limit of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Its time.
    Time,
    /// The number of its tasks at a time.
    Tasks,
    /// Its memory, with that of the files it wrote.
    Memory,
    /// What it writes to its outputs.
    Output,
}

/// What a CPU belongs to that is online. Each is a mask of CPUs as the kernel prints it; empty if it does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Domains {
    /// The CPU.
    pub cpu: u16,
    /// The hardware threads of its core.
    pub core: String,
    /// The CPUs with which it shares the last cache.
    pub cache: String,
    /// Its NUMA node.
    pub node: String,
    /// Its scheduling domains from the inside out.
    pub domains: Vec<String>,
}

/// The result of one task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskResult {
    /// The name of its `[[task]]`.
    pub name: String,
    /// How many tasks this sums up: 1, or all of their `[[task]]` where there are too many to
    /// report each.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tasks: u32,
    /// CPU time.
    pub cpu_ns: u64,
    /// When it first ran, from the release of the tasks; not in a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// When it ended, from the release of the tasks; absent if it was still alive at the end of the
    /// job.
    pub ended_ns: Option<u64>,
    /// How many phases of each kind it completed; absent kinds are zero.
    pub operations: BTreeMap<String, u64>,
    /// Its thread or process id, as in the trace.
    pub tid: u32,
}

fn one() -> u32 {
    1
}

fn is_one(tasks: &u32) -> bool {
    *tasks == 1
}
