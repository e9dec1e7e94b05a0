//! A closed workload as people and programs write it: tasks, each of which goes through a list of phases.
//!
//! The same description, in JSON, is what real threads do, and the engine runs the scripts that are made of it.
//! A run takes no more CPU time than it says: what the calls themselves cost on a real machine is not in it, except as phases say.
//!
//! ```
//! use phases::Closed;
//!
//! let text = r#"{ "task": [ { "name": "polite", "count": 2, "phases": [ { "loop": { "times": 3, "phases": [ { "run": "1ms" }, "yield" ] } } ] } ] }"#;
//! let closed: Closed = serde_json::from_str(text).unwrap();
//! assert!(closed.check(4).is_ok());
//! ```

mod check;
mod walk;

use crate::Nanos;
use crate::admission::{Bytes, Channels, CpuNumber, Cpus, Rounds, Size, TaskCount, admitted, admitted_if_given, admitted_list_if_given};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
pub use walk::Place;

/// Tasks and what they share. Nothing is drawn at random.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// What to call it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: Option<String>,
    /// What it stands for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// On how many CPUs it runs if nobody says otherwise.
    #[serde(default, deserialize_with = "admitted_if_given::<_, Cpus, _>", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Cpus>"))]
    pub cpus: Option<u16>,
    /// When it is stopped, whatever is left of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub duration: Option<Nanos>,
    /// The tasks.
    #[serde(rename = "task")]
    pub tasks: Vec<Tasks>,
    /// Lists of phases that [`Phase::Exec`] goes on with.
    #[serde(rename = "list", default, skip_serializing_if = "is_default")]
    pub lists: BTreeMap<String, Vec<Phase>>,
    /// Control groups that tasks are in.
    #[serde(rename = "cgroup", default, skip_serializing_if = "is_default")]
    pub cgroups: BTreeMap<String, CgroupOptions>,
    /// Mutexes that are not as they are by default.
    #[serde(rename = "mutex", default, skip_serializing_if = "is_default")]
    pub mutexes: BTreeMap<String, MutexOptions>,
    /// Barriers that do not wait for all tasks that name them.
    #[serde(rename = "barrier", default, skip_serializing_if = "is_default")]
    pub barriers: BTreeMap<String, BarrierOptions>,
    /// Pipes that are not as they are by default.
    #[serde(rename = "pipe", default, skip_serializing_if = "is_default")]
    pub pipes: BTreeMap<String, PipeOptions>,
    /// Devices that are not as they are by default.
    #[serde(rename = "device", default, skip_serializing_if = "is_default")]
    pub devices: BTreeMap<String, DeviceOptions>,
}

/// One task, or several that do the same.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    /// What to call it. No two entries have the same name.
    pub name: String,
    /// How many there are, or can be if they are forked.
    #[serde(default = "one", deserialize_with = "admitted::<_, TaskCount, _>", skip_serializing_if = "is_one")]
    #[cfg_attr(feature = "schema", schemars(with = "TaskCount"))]
    pub count: u32,
    /// The scheduling policy of Linux.
    #[serde(default, skip_serializing_if = "is_default")]
    pub policy: SchedulingPolicy,
    /// −20…19, for all but `fifo` and `rr`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nice: Option<i32>,
    /// 1…99, for `fifo` and `rr`: 99 is the most important.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Option<i32>,
    /// The slice that it requests of EEVDF, 0.1…100 ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slice: Option<Nanos>,
    /// What it reserves, for the schedulers `deadline` and `rm`; under all of them missed deadlines are counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reservation: Option<ReservationOptions>,
    /// The control group that it is in; the schedulers `eevdf` and `cfs` know them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cgroup: Option<String>,
    /// The CPUs on which it may run; all if absent.
    #[serde(default, deserialize_with = "admitted_list_if_given::<_, CpuNumber, _>", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<CpuNumber>>"))]
    pub affinity: Option<Vec<u16>>,
    /// When it comes into being.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Nanos,
    /// Whether it comes into being only when a phase forks it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forked: bool,
    /// Whether each is a process, not a thread of one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub process: bool,
    /// Whether nobody waits for its end: the run is over when all others have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub daemon: bool,
    /// What it does; then it ends.
    pub phases: Vec<Phase>,
}

/// CPU time in each period, as `SCHED_DEADLINE` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReservationOptions {
    /// How much CPU time in each period.
    pub runtime: Nanos,
    /// How long a period is.
    pub period: Nanos,
    /// From the begin of a period until when; its end if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deadline: Option<Nanos>,
}

/// Linux's scheduling policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SchedulingPolicy {
    /// `SCHED_OTHER`, the fair one.
    #[default]
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
}

/// What a task does next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Phase {
    /// Uses so much CPU time.
    Run(Nanos),
    /// Sleeps for so long.
    Sleep(Nanos),
    /// Sleeps until the next time of a timer, see [`TimerPhase`].
    Timer(TimerPhase),
    /// Gives up the CPU and stays runnable.
    Yield,
    /// Takes a mutex.
    Lock(String),
    /// Gives it back.
    Unlock(String),
    /// Gives the mutex back, waits for a signal and takes the mutex again.
    Wait {
        /// For which signal.
        condition: String,
        /// A mutex that it holds.
        mutex: String,
    },
    /// Wakes the task that has waited longest on a condition, if one does.
    Signal(String),
    /// Wakes all tasks that wait on a condition.
    Broadcast(String),
    /// Waits at a barrier until all have come.
    Barrier(String),
    /// Goes on when so many bytes have been read.
    Read {
        /// From which pipe.
        pipe: String,
        /// How many.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
    },
    /// Goes on when so many bytes have been written.
    Write {
        /// Into which pipe.
        pipe: String,
        /// How many.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
    },
    /// A request to a device.
    Io(IoPhase),
    /// The next task of that name comes into being.
    Fork(String),
    /// Waits until no task of that name is alive that came into being.
    Join(String),
    /// Goes on with a list, as another program: what follows is not reached.
    Exec(String),
    /// Does phases several times, or for ever.
    Loop(LoopPhase),
}

/// The time that a timer waits for is a period after the last one, however long the task ran in the meantime; the first is a period after the task's start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TimerPhase {
    /// How far the times lie apart.
    pub period: Nanos,
    /// Which timer; each task has its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: String,
    /// What follows when that time is over before the phase begins: it takes no time, and the next is a period after now, or after that time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: TimerMode,
    /// Whether it is one timer for all tasks that name it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared: bool,
}

/// What a timer does when the task is late. The names are rt-app's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimerMode {
    /// The next period begins now.
    #[default]
    Relative,
    /// The next period began when it should have.
    Absolute,
}

/// A request to a device, which serves requests in the order in which they come.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IoPhase {
    /// Which.
    pub device: String,
    /// How long the device takes for it in a simulation; a request that takes no time does not wait for its turn.
    pub service: Nanos,
    /// How many bytes a real task moves.
    #[serde(default, deserialize_with = "admitted::<_, Size, _>", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Size"))]
    pub bytes: u64,
    /// In which direction.
    #[serde(default, skip_serializing_if = "is_default")]
    pub operation: IoOperation,
}

/// What a real task does with a file in place of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoOperation {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
}

/// Phases that are repeated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoopPhase {
    /// How often; for ever if absent.
    #[serde(default, deserialize_with = "admitted_if_given::<_, Rounds, _>", skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Rounds>"))]
    pub times: Option<u64>,
    /// What.
    pub phases: Vec<Phase>,
}

/// What a control group gets of the CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CgroupOptions {
    /// `cpu.weight`, 1…10000: a group of 100, the default, weighs as much as a task of nice 0 that is in none.
    pub weight: u32,
    /// `cpu.max`: so much CPU time in each period, on all CPUs together; without limit if absent.
    pub max: Option<Nanos>,
    /// How long a period is, 1 ms…1 s; 100 ms by default.
    pub period: Nanos,
}

impl CgroupOptions {
    /// The default of `cpu.weight`.
    pub const WEIGHT: u32 = 100;
    /// The default period of `cpu.max`.
    pub const PERIOD: Nanos = Nanos::from_millis(100);
}

impl Default for CgroupOptions {
    fn default() -> CgroupOptions {
        CgroupOptions { weight: CgroupOptions::WEIGHT, max: None, period: CgroupOptions::PERIOD }
    }
}

/// How a mutex behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MutexOptions {
    /// Whether it goes to the task that has waited longest. By default that task is woken and tries again, and another may be faster, as with a futex.
    pub handoff: bool,
    /// Whether who holds it counts as important as the most important task that waits for it (`PTHREAD_PRIO_INHERIT`). It goes to that task then.
    pub inherit: bool,
}

/// How a barrier behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BarrierOptions {
    /// For how many tasks it waits; by default for all whose phases name it.
    #[serde(deserialize_with = "admitted_if_given::<_, TaskCount, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TaskCount>"))]
    pub tasks: Option<u32>,
}

/// How a pipe behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PipeOptions {
    /// How many bytes it holds; as in Linux 65,536 by default.
    #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
    pub capacity: u64,
}

impl Default for PipeOptions {
    fn default() -> PipeOptions {
        PipeOptions { capacity: 65_536 }
    }
}

/// How a device behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeviceOptions {
    /// How many requests it serves at a time; one by default.
    #[serde(deserialize_with = "admitted::<_, Channels, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Channels"))]
    pub channels: u16,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions { channels: 1 }
    }
}

impl Tasks {
    /// One task with these phases and nothing special.
    pub fn new(name: &str, phases: Vec<Phase>) -> Tasks {
        Tasks {
            name: name.to_string(),
            count: 1,
            policy: SchedulingPolicy::Other,
            nice: None,
            priority: None,
            slice: None,
            reservation: None,
            cgroup: None,
            affinity: None,
            start: Nanos::ZERO,
            forked: false,
            process: false,
            daemon: false,
            phases,
        }
    }
}

impl Phase {
    /// `phases` so many times.
    pub fn repeat(times: u64, phases: Vec<Phase>) -> Phase {
        Phase::Loop(LoopPhase { times: Some(times), phases })
    }

    /// `phases` for ever.
    pub fn forever(phases: Vec<Phase>) -> Phase {
        Phase::Loop(LoopPhase { times: None, phases })
    }
}

impl Closed {
    /// Makes all mutexes that phases name such that their holders inherit.
    pub fn let_holders_inherit(&mut self) {
        let lock = |place: Place| if let Phase::Lock(name) = place.phase { Some(name.clone()) } else { None };
        let names: BTreeSet<String> = self.tasks.iter().flat_map(|tasks| self.reached_by(tasks, "")).filter_map(lock).collect();
        for name in names {
            self.mutexes.entry(name).or_default().inherit = true;
        }
    }

    /// The first mutex whose holder inherits priorities.
    pub fn inheriting(&self) -> Option<&str> {
        self.mutexes.iter().find(|(_, options)| options.inherit).map(|(name, _)| name.as_str())
    }
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
