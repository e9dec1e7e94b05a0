//! Workloads: tasks, their affinity, and their scripts.

mod attributes;
mod background;
mod beside;
mod cgroup;
mod compile;
mod costs;
mod model;
mod nudge;
mod operation;
mod replay;
mod reservation;
mod script;
mod setting;
mod shared;

pub use attributes::{Attributes, Membership, Slice, TaskClass};
pub(crate) use background::Noises;
pub use background::{Background, Noise, NoiseClass};
pub use cgroup::{Bandwidth, Cgroup};
pub use costs::{
    CallCost, CallCostEstimator, CallEstimates, CostEstimator, Costs, Estimate, LONGEST_SWITCH,
    LatencyEstimates, USUAL_SWITCH, Unknown,
};
pub(crate) use model::Population;
pub use model::{
    After, Bin, Bursts, Class, Counts, Distribution, Histogram, Kind, Model, Priorities, RunLength,
    Stream, Unix1990,
};
pub(crate) use nudge::Jitter;
pub use nudge::Nudge;
pub use operation::{Call, Operation, Until};
pub use phases::{
    BarrierOptions, CgroupOptions, Closed, DeviceOptions, EpollObject, EpollOptions, EpollSource,
    EventLoopPhase, EventfdOptions, Invalid, IoOperation, IoPhase, LoopPhase, MutexOptions, Phase,
    PipeOptions, ReservationOptions, SchedulingPolicy, ServePhase, SocketKind, SocketOptions, Spin,
    Tasks, TimerMode, TimerPhase, Trigger, WatchPhase,
};
pub use replay::{
    BackgroundOf, EdgeCounts, Explained, KernelWork, Outside, Recorded, ReplayBuilder,
    ReplayOptions, ReplayReport, TaskMatch, UntilEnded, Within, is_kernel_thread_name,
};
pub use reservation::{Reservation, Schedulability, reservable};
pub(crate) use script::Words;
pub use script::{Action, Script, Step, Steps};
pub use setting::Setting;
pub use shared::{
    Barrier, Device, Epoll, Eventfd, Group, Late, Mutex, Pipe, Rounds, Serve, Shared, Socket,
    Source, Timer, Watched,
};

use crate::trace::TaskInfo;
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};

/// A closed set of tasks with a script each. [`TaskId`]s are indices into `tasks`.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The tasks, including those that other tasks fork.
    pub tasks: Vec<TaskSpec>,
    /// Sets of CPUs that [`Affinity::Set`] refers to.
    pub cpu_sets: Vec<CpuSet>,
    /// The control groups that [`Attributes::membership`] refers to.
    pub cgroups: Vec<Cgroup>,
    /// The reservations of tasks, in order of id; tasks beyond the end have none.
    pub reservations: Vec<Option<Reservation>>,
    /// The objects of the scripts' [`Operation`]s.
    pub shared: Shared,
    /// The tasks beside the program, which are drawn anew in each run; they have no scripts.
    pub background: Background,
}

/// One task of a workload.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Name, pid and priority.
    pub info: TaskInfo,
    /// Its scheduling policy and request.
    pub attributes: Attributes,
    /// Where it may run.
    pub affinity: Affinity,
    /// Its last CPU before the run.
    pub cpu: CpuId,
    /// When it starts.
    pub start: Start,
    /// Its script.
    pub script: Script,
}

/// Where a task may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Affinity {
    /// On every CPU.
    #[default]
    Any,
    /// On one CPU (on a smaller machine: its number modulo the number of CPUs).
    Pinned(CpuId),
    /// On the CPUs of `Workload::cpu_sets[index]`.
    Set(u32),
}

/// When a task starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// It is created at an instant.
    At(Time),
    /// It existed before, asleep on its last CPU, and wakes at an instant.
    Asleep(Time),
    /// Another task's script forks it.
    Forked,
}

impl Workload {
    /// The total CPU time of all scripts.
    pub fn demand(&self) -> Nanos {
        self.tasks.iter().map(|task| task.script.demand()).sum()
    }

    /// The number of CPU bursts: runs that end in a sleep, a wait or an exit. Those of a loop count
    /// once.
    pub fn bursts(&self) -> u64 {
        self.tasks
            .iter()
            .map(|task| task.script.steps().filter(|step| step.then.ends_burst()).count() as u64)
            .sum()
    }

    /// The memory that the scripts occupy.
    pub fn script_bytes(&self) -> usize {
        self.tasks.iter().map(|task| task.script.bytes()).sum()
    }

    /// The reservation of `task`.
    pub fn reservation(&self, task: TaskId) -> Option<Reservation> {
        self.reservations.get(task.index()).copied().flatten()
    }

    /// The ids of all tasks.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..self.tasks.len() as u32).map(TaskId)
    }
}
