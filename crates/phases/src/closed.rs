//! The format of closed workloads: a set of tasks, each with a list of phases.
//!
//! Real threads and simulated tasks both follow this description. A run uses no more CPU time than
//! the description states. The cost of the system calls themselves is not included, unless a phase
//! states it.
//!
//! ```
//! use phases::Closed;
//!
//! let text = r#"{ "task": [ { "name": "polite", "count": 2, "phases": [
//!     { "loop": { "times": 3, "phases": [ { "run": "1ms" }, "yield" ] } } ] } ] }"#;
//! let closed: Closed = serde_json::from_str(text).unwrap();
//! assert!(closed.check(4).is_ok());
//! ```

mod check;
mod defaults;
mod sets;
mod walk;

use crate::Nanos;
use crate::admission::{
    Bytes, Channels, CpuNumber, Cpus, Rounds, Size, TaskCount, admitted, admitted_if_given,
    admitted_list_if_given,
};
use defaults::is_default;
use serde::{Deserialize, Serialize};
pub use sets::{EpollObject, EpollOptions, EpollSource, Trigger, WatchPhase};
use std::collections::{BTreeMap, BTreeSet};
pub use walk::Place;

/// Tasks and the objects that they share. Nothing is random.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// The name of the workload.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: Option<String>,
    /// What the workload represents.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// The default number of CPUs.
    #[serde(
        default,
        deserialize_with = "admitted_if_given::<_, Cpus, _>",
        skip_serializing_if = "is_default"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Cpus>"))]
    pub cpus: Option<u16>,
    /// When the run stops, even if tasks are left.
    #[serde(default, skip_serializing_if = "is_default")]
    pub duration: Option<Nanos>,
    /// The tasks.
    #[serde(rename = "task")]
    pub tasks: Vec<Tasks>,
    /// Named lists of phases that [`Phase::Exec`] continues with.
    #[serde(rename = "list", default, skip_serializing_if = "is_default")]
    pub lists: BTreeMap<String, Vec<Phase>>,
    /// Control groups that tasks are in.
    #[serde(rename = "cgroup", default, skip_serializing_if = "is_default")]
    pub cgroups: BTreeMap<String, CgroupOptions>,
    /// Mutexes with non-default options.
    #[serde(rename = "mutex", default, skip_serializing_if = "is_default")]
    pub mutexes: BTreeMap<String, MutexOptions>,
    /// Barriers that wait for a given number of tasks, not for all that name them.
    #[serde(rename = "barrier", default, skip_serializing_if = "is_default")]
    pub barriers: BTreeMap<String, BarrierOptions>,
    /// Pipes with non-default options.
    #[serde(rename = "pipe", default, skip_serializing_if = "is_default")]
    pub pipes: BTreeMap<String, PipeOptions>,
    /// Pairs of sockets with non-default options.
    #[serde(rename = "socket", default, skip_serializing_if = "is_default")]
    pub sockets: BTreeMap<String, SocketOptions>,
    /// Event counters with non-default options.
    #[serde(rename = "eventfd", default, skip_serializing_if = "is_default")]
    pub eventfds: BTreeMap<String, EventfdOptions>,
    /// Sets of objects that tasks wait for together.
    #[serde(rename = "epoll", default, skip_serializing_if = "is_default")]
    pub epolls: BTreeMap<String, EpollOptions>,
    /// Devices with non-default options.
    #[serde(rename = "device", default, skip_serializing_if = "is_default")]
    pub devices: BTreeMap<String, DeviceOptions>,
}

/// One task, or several identical ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    /// A name that no other entry has.
    pub name: String,
    /// The program that the task belongs to; its own name if absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub program: Option<String>,
    /// The number of tasks, or the maximum number that can be forked.
    #[serde(
        default = "one",
        deserialize_with = "admitted::<_, TaskCount, _>",
        skip_serializing_if = "is_one"
    )]
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
    /// The slice that the task requests under EEVDF, 0.1…100 ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slice: Option<Nanos>,
    /// The task's reservation, which the schedulers `deadline` and `rm` use. Missed deadlines are
    /// counted under every scheduler.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reservation: Option<ReservationOptions>,
    /// The task's control group, which the schedulers `eevdf` and `cfs` use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cgroup: Option<String>,
    /// The CPUs on which it may run; all if absent.
    #[serde(
        default,
        deserialize_with = "admitted_list_if_given::<_, CpuNumber, _>",
        skip_serializing_if = "is_default"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<CpuNumber>>"))]
    pub affinity: Option<Vec<u16>>,
    /// When the task is created.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Nanos,
    /// Whether the task is created only when a phase forks it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub forked: bool,
    /// Whether each task is a process of its own, not a thread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub process: bool,
    /// Whether the run may end before this task does: it ends when all tasks that are no daemons
    /// have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub daemon: bool,
    /// The phases. The task exits after the last one.
    pub phases: Vec<Phase>,
}

/// CPU time in each period, as `SCHED_DEADLINE` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReservationOptions {
    /// CPU time in each period.
    pub runtime: Nanos,
    /// The length of a period.
    pub period: Nanos,
    /// The deadline, counted from the start of a period; the end of the period if absent.
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

/// What a task does in one step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Phase {
    /// Uses this much CPU time.
    Run(Nanos),
    /// Sleeps for this long.
    Sleep(Nanos),
    /// Sleeps until this long after the start of the run; not at all if that is over.
    SleepUntil(Nanos),
    /// Sleeps until the timer expires next, see [`TimerPhase`].
    Timer(TimerPhase),
    /// Gives up the CPU and stays runnable.
    Yield,
    /// Locks a mutex.
    Lock(String),
    /// Unlocks a mutex.
    Unlock(String),
    /// Unlocks the mutex, waits for a signal and locks the mutex again.
    Wait {
        /// The condition.
        condition: String,
        /// A mutex that the task holds.
        mutex: String,
    },
    /// Wakes the task that has waited longest on a condition, if any.
    Signal(String),
    /// Wakes all tasks that wait on a condition.
    Broadcast(String),
    /// Waits at a barrier until all tasks have arrived.
    Barrier(String),
    /// Reads from a pipe.
    Read {
        /// The pipe.
        pipe: String,
        /// The number of bytes.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
        /// Whether the task continues with as many of the bytes as are there, at least one, as
        /// `read(2)` does. By default it blocks until all have been read.
        #[serde(default, skip_serializing_if = "is_default")]
        partial: bool,
    },
    /// Writes to a pipe, and blocks until all bytes have been written.
    Write {
        /// The pipe.
        pipe: String,
        /// The number of bytes.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
    },
    /// Sends to the other end of a pair of Unix sockets, and blocks until all bytes are on their way.
    Send {
        /// The pair of sockets.
        socket: String,
        /// The number of bytes; of a datagram all, of a stream in messages of the kernel's size.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
        /// Whether they go from the second end to the first. By default the first end sends.
        #[serde(default, skip_serializing_if = "is_default")]
        reply: bool,
    },
    /// Receives from the other end of a pair of Unix sockets.
    Receive {
        /// The pair of sockets.
        socket: String,
        /// The number of bytes; of datagrams the task receives one, of at most this size.
        #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        bytes: u64,
        /// Whether the task continues with as many of the bytes as are there, at least one, as
        /// `recv(2)` does. By default it blocks until all have been received.
        #[serde(default, skip_serializing_if = "is_default")]
        partial: bool,
        /// Whether it receives at the first end what the second sends as a reply.
        #[serde(default, skip_serializing_if = "is_default")]
        reply: bool,
    },
    /// Adds to an event counter (`eventfd`), and wakes all that wait for it.
    Post {
        /// The counter.
        eventfd: String,
        /// What is added.
        #[serde(
            default = "one_more",
            deserialize_with = "admitted::<_, Bytes, _>",
            skip_serializing_if = "is_one_more"
        )]
        #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
        count: u64,
    },
    /// Takes all of an event counter (`eventfd`), or one if it is a semaphore; blocks while it is
    /// zero.
    Take {
        /// The counter.
        eventfd: String,
    },
    /// Sends a request to a device and waits for it.
    Io(IoPhase),
    /// Waits until an object of a set is ready, then handles each that is.
    Serve(ServePhase),
    /// Serves a set until all that is written for its objects is done, see [`EventLoopPhase`].
    EventLoop(EventLoopPhase),
    /// Waits until an object of a set is ready, and takes nothing: `poll(2)` with the set's sources.
    Poll(String),
    /// Changes whether a source of a set is watched, see [`WatchPhase`].
    Watch(WatchPhase),
    /// Creates the next task of that name.
    Fork(String),
    /// Waits until every task created so far under that name has exited.
    Join(String),
    /// Continues with a list, as another program. The phases after it are not reached.
    Exec(String),
    /// Repeats phases, a number of times or for ever.
    Loop(LoopPhase),
}

/// A periodic timer. The task waits for one period after the last expiry, however long it ran in
/// between. The first expiry is one period after the task's start.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TimerPhase {
    /// The period.
    pub period: Nanos,
    /// The name of the timer; each task has its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: String,
    /// What happens when the expiry is already over as the phase begins. The phase takes no time
    /// then, and the next expiry is one period after now, or after that expiry.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: TimerMode,
    /// Whether all tasks that name the timer share it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared: bool,
}

/// What a timer does when the task is late, by rt-app's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimerMode {
    /// The next period starts now.
    #[default]
    Relative,
    /// The next period starts at the missed expiry.
    Absolute,
}

/// A request to a device. The device serves requests in order of arrival.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IoPhase {
    /// The device.
    pub device: String,
    /// The service time in a simulation. A request with no service time does not queue.
    pub service: Nanos,
    /// The number of bytes that a real task transfers.
    #[serde(
        default,
        deserialize_with = "admitted::<_, Size, _>",
        skip_serializing_if = "is_default"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Size"))]
    pub bytes: u64,
    /// The direction.
    #[serde(default, skip_serializing_if = "is_default")]
    pub operation: IoOperation,
}

/// The file operation of a real task, which uses a file in place of the device.
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

/// One `epoll_wait(2)`, and what the task does for each object that it returns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServePhase {
    /// The set, which has a table.
    pub epoll: String,
    /// For each source of the set, in its order, the phases that handle it. It is returned again as
    /// long as data is left in it. If absent, the task only waits, and what follows handles them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handle: Vec<Vec<Phase>>,
}

/// An event loop whose handlers do something else each time. The task waits until an object of a set
/// has data and handles each that has, again and again. It hears no more of an object of which all
/// rounds are done, and continues when all rounds of all objects are.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventLoopPhase {
    /// The set, which has a table. No other task waits for it.
    pub epoll: String,
    /// The CPU time of each round beside its handlers, behind the wait.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: Nanos,
    /// For each source of the set, in its order, its rounds: the phases that handle it the first
    /// time, those that handle it the second time, and so on.
    pub handle: Vec<Vec<Vec<Phase>>>,
}

/// Phases that are repeated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoopPhase {
    /// The number of iterations; infinite if absent.
    #[serde(
        default,
        deserialize_with = "admitted_if_given::<_, Rounds, _>",
        skip_serializing_if = "is_default"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Rounds>"))]
    pub times: Option<u64>,
    /// The phases to repeat.
    pub phases: Vec<Phase>,
}

/// The CPU controls of a control group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CgroupOptions {
    /// `cpu.weight`, 1…10000. A group of weight 100, the default, weighs as much as one task of
    /// nice 0 outside of all groups.
    pub weight: u32,
    /// `cpu.max`: CPU time in each period, over all CPUs; no limit if absent.
    pub max: Option<Nanos>,
    /// The length of a period, 1 ms…1 s; 100 ms by default.
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
    /// Whether unlocking passes the mutex to the task that has waited longest. By default that task
    /// only wakes and tries again, and another task may lock it first, as with a futex.
    pub handoff: bool,
    /// Whether the holder inherits the priority of the most important waiting task
    /// (`PTHREAD_PRIO_INHERIT`). Unlocking then passes the mutex to that task.
    pub inherit: bool,
    /// How a task spins for it. By default it does not spin but waits, off its CPU.
    #[serde(skip_serializing_if = "is_default")]
    pub spin: Option<Spin>,
}

/// How a task spins for a mutex: it stays on its CPU and looks again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Spin {
    /// The CPU time that it spins before it gives up; without a limit it spins until it has the
    /// mutex.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Option<Nanos>,
    /// How long it sleeps then before it spins again, as PostgreSQL's `s_lock` does. Without it, it
    /// waits as for a mutex without `spin`, as an adaptive mutex of the C library does.
    #[serde(skip_serializing_if = "is_default")]
    pub sleep: Option<Nanos>,
}

impl Spin {
    /// The time after which a task that spins, or spins and sleeps, ends the run: the mutex is stuck.
    /// PostgreSQL ends, too, after a thousand sleeps.
    pub const LONGEST: Nanos = Nanos::from_millis(100_000);
}

/// How a barrier behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BarrierOptions {
    /// The number of tasks that it waits for; by default all whose phases name it.
    #[serde(deserialize_with = "admitted_if_given::<_, TaskCount, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TaskCount>"))]
    pub tasks: Option<u32>,
}

/// How a pipe behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PipeOptions {
    /// The capacity in bytes; 65,536 by default, as in Linux. It is rounded up to a power of two of
    /// pages of 4,096 bytes, and bytes of one write that share no page with others take one each.
    #[serde(deserialize_with = "admitted::<_, Bytes, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Bytes"))]
    pub capacity: u64,
}

impl Default for PipeOptions {
    fn default() -> PipeOptions {
        PipeOptions { capacity: 65_536 }
    }
}

/// How a pair of sockets behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SocketOptions {
    /// What it carries.
    pub kind: SocketKind,
}

/// What a pair of sockets carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SocketKind {
    /// A stream of bytes (`SOCK_STREAM`).
    #[default]
    Stream,
    /// Datagrams, each received as a whole (`SOCK_DGRAM`).
    Datagram,
}

/// How an event counter behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct EventfdOptions {
    /// Whether a task takes one, not all (`EFD_SEMAPHORE`).
    pub semaphore: bool,
    /// The count at the start.
    pub count: u32,
    /// Whether adding n wakes n tasks, not all: a semaphore of the C library (`sem_post`).
    #[serde(skip_serializing_if = "is_default")]
    pub wakes_one: bool,
}

/// How a device behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct DeviceOptions {
    /// The number of requests that it serves at a time; one by default.
    #[serde(deserialize_with = "admitted::<_, Channels, _>")]
    #[cfg_attr(feature = "schema", schemars(with = "Channels"))]
    pub channels: u16,
    /// The CPU on which its interrupts arrive, modulo the CPUs there are; by default the one on
    /// which the waiting task ran.
    #[serde(
        deserialize_with = "admitted_if_given::<_, CpuNumber, _>",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<CpuNumber>"))]
    pub interrupts: Option<u16>,
}

impl Default for DeviceOptions {
    fn default() -> DeviceOptions {
        DeviceOptions { channels: 1, interrupts: None }
    }
}

impl Tasks {
    /// One task with these phases and default attributes.
    pub fn new(name: &str, phases: Vec<Phase>) -> Tasks {
        Tasks {
            name: name.to_string(),
            program: None,
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

    /// The program that the task belongs to.
    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(&self.name)
    }
}

impl Phase {
    /// Repeats `phases` this many times.
    pub fn repeat(times: u64, phases: Vec<Phase>) -> Phase {
        Phase::Loop(LoopPhase { times: Some(times), phases })
    }

    /// Repeats `phases` for ever.
    pub fn forever(phases: Vec<Phase>) -> Phase {
        Phase::Loop(LoopPhase { times: None, phases })
    }
}

impl Closed {
    /// Enables priority inheritance on all mutexes that phases name.
    pub fn let_holders_inherit(&mut self) {
        let lock = |place: Place| {
            if let Phase::Lock(name) = place.phase { Some(name.clone()) } else { None }
        };
        let names: BTreeSet<String> = self
            .tasks
            .iter()
            .flat_map(|tasks| self.reached_by(tasks, ""))
            .filter_map(lock)
            .collect();
        for name in names {
            self.mutexes.entry(name).or_default().inherit = true;
        }
    }

    /// The first mutex with priority inheritance.
    pub fn inheriting(&self) -> Option<&str> {
        self.mutexes.iter().find(|(_, options)| options.inherit).map(|(name, _)| name.as_str())
    }
}

fn one() -> u32 {
    1
}

fn one_more() -> u64 {
    1
}

fn is_one_more(count: &u64) -> bool {
    *count == 1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}
