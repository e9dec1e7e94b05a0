//! The policy interface: which task runs next, where, and for how long.
//!
//! The callbacks are those of the kernel's `sched_ext_ops`, so that the simulator's engine and a
//! kernel can drive the same policy. For each task the caller makes these calls in this order:
//!
//! ```text
//! init_task → ( select_cpu → enqueue → dispatch → running → ( tick )* → stopping
//!               → [still runnable: enqueue → dispatch …] )* → exit_task
//! ```
//!
//! A policy sees [`Context`] (time, machine, running tasks, random numbers), but no engine, trace
//! or pid. It returns effects; the compiler warns about an effect that is dropped.

mod any_policy;
mod any_queue;
mod catalog;
mod central;
mod cfs;
mod context;
mod deadline;
mod descriptor;
mod eevdf;
mod fair;
mod fifo;
mod initial;
mod levels;
mod loads;
mod mlfq;
mod o1;
mod options;
mod promises;
mod proportional;
mod pslist;
mod ranking;
mod realtime;
pub mod remote;
mod rr;
mod take;
mod topology;
mod utilisation;
mod virtual_times;
mod weights;

pub use any_policy::AnyPolicy;
pub use catalog::{Catalog, PolicyError, PolicySpec};
pub use central::{Central, Options as CentralOptions};
pub use cfs::{Cfs, Options as CfsOptions};
pub use context::{Context, LEVELS, TaskView};
pub use deadline::{Deadline, Options as DeadlineOptions, Order as DeadlineOrder, Placement};
pub use descriptor::{Descriptor, Given, Make, Scheduler, Values};
pub use eevdf::{Eevdf, Options as EevdfOptions};
pub use fair::Options as FairOptions;
pub use fifo::Fifo;
pub use initial::{Initial, Options as InitialOptions};
pub use levels::Levels;
pub use loads::Ties;
pub use mlfq::textbook::{Book, Textbook};
pub use mlfq::windows::{Mlfq, Windows};
pub use mlfq::{Rules as FeedbackRules, Standing};
pub use o1::{O1, Options as O1Options};
pub use options::{Kind, OptionSpec, Preset, Value, split_options};
pub use promises::{Deadlines, Measure as ShareMeasure, Promises, Request, Shares};
pub use proportional::lottery::Lottery;
pub use proportional::stride::Stride;
pub use proportional::{Options as ProportionalOptions, Proportional};
pub use pslist::{Options as PsListOptions, PsList};
pub use realtime::Options as RealTimeOptions;
pub use rr::{Options as RrOptions, Rr};
pub use take::{Options as TakeOptions, Take};
pub use topology::{Count, Measure, Ready, Search, Taken};
pub use virtual_times::{Entitlement, InKernel, Kept, VirtualTimes};
pub(crate) use weights::weight;
pub use weights::weight_of;

use crate::workload::Affinity;
use crate::{CpuId, Nanos, TaskId, Time};
use readyq::{Node, Nodes, ReadyQueue};
use std::hint::black_box;

/// Gives a new task a fresh node, and extends the slab for it. Ids are dense and are reused.
#[inline]
fn renew(nodes: &mut Vec<Node>, task: TaskId) {
    if task.index() >= nodes.len() {
        nodes.resize(task.index() + 1, Node::NEW);
    }
    nodes[task.index()] = Node::NEW;
}

/// Takes a waiting task out of a queue, by a pop if it is the first. For an order that counts
/// slices, a pop and a removal differ.
fn take_out(queue: &mut impl ReadyQueue, nodes: &mut Nodes, task: TaskId) {
    if queue.peek(nodes) == Some(task) {
        queue.pop(nodes);
    } else {
        queue.remove(nodes, task);
    }
}

/// Prefetches a task's entry of a table, if it has one.
fn fetch<T: Copy>(table: &[T], task: TaskId) {
    black_box(table.get(task.index()).copied());
}

/// A scheduling policy.
pub trait Policy {
    /// The callbacks beyond the four verbs that this policy requires. A world that cannot supply
    /// one refuses the policy by name.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The guarantees of this policy, for the checks.
    fn promises(&self) -> Promises {
        Promises::default()
    }

    /// The virtual times of `task` if its CPU were charged `now`, if the policy has such and the
    /// task is in a queue or runs. Conformance vectors compare them.
    fn virtual_times(&self, _task: TaskId, _now: Time) -> Option<VirtualTimes> {
        None
    }

    /// What `task`, which sleeps since before the run, has kept; only policies with virtual times
    /// need it.
    fn keep(&mut self, _task: TaskId, _kept: Kept) {}

    /// A recorded kernel has this of `task` at the moment; the policy has it too from now on.
    /// Returns what it had instead. A policy that keeps nothing for a kernel returns `None`.
    fn correct(&mut self, _task: TaskId, _kernel: InKernel) -> Option<InKernel> {
        None
    }

    /// How many tasks wait in the queue from which `cpu` is served, for
    /// [`Machine::queue_cost`](crate::Machine::queue_cost).
    fn queue_length(&self, _cpu: CpuId) -> u32 {
        0
    }

    /// The instructions that its callbacks took on `cpu` since this was asked last, for
    /// [`Machine::queue_cost`](crate::Machine::queue_cost). Only a policy that runs compiled code
    /// counts them.
    fn take_work(&mut self, _cpu: CpuId) -> u64 {
        0
    }

    /// Where the last `dispatch` on `cpu` found its task, for
    /// [`Machine::lock_hold`](crate::Machine::lock_hold).
    fn scan(&self, cpu: CpuId) -> Scan {
        Scan { queue: cpu, entries: 1 }
    }

    /// Whether a task may run on several CPUs in its life. This may slow down a machine (Curran &
    /// Stumm's SMC).
    fn migrates(&self) -> bool {
        true
    }

    /// Prefetches this policy's data of a task that is about to wake: with a million tasks it is
    /// not in the cache.
    fn fetch(&self, _task: TaskId) {}

    /// A task is created; its attributes are in the context.
    fn init_task(&mut self, cx: &mut Context, task: TaskId);

    /// A task has ended. It neither runs nor waits.
    fn exit_task(&mut self, _cx: &mut Context, _task: TaskId) {}

    /// A task becomes runnable: returns the CPU on which it should wait. Called just before
    /// `enqueue`, for new and woken tasks, and for a restored one ([`Enqueue::Restored`]) that may
    /// not run where it was.
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId;

    /// A task starts to wait. `cpu` is the result of `select_cpu`, or the CPU on which the task
    /// ran. The policy must kick an idle CPU that should look at the queues.
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect;

    /// A waiting task is removed without having run: it leaves, or its attributes change and it is
    /// enqueued again at once ([`Enqueue::Restored`]).
    fn dequeue(&mut self, cx: &mut Context, task: TaskId);

    /// `cpu` has nothing to run. Returns the waiting task that it runs next, which then no longer
    /// waits, or `None` to idle.
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch>;

    /// A dispatched task starts to run.
    fn running(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId) {}

    /// The priority or nice value of a task changes. The context has the new one; `old` is the old
    /// one. The task does not wait: a waiting one was dequeued before and is enqueued afterwards
    /// ([`Enqueue::Restored`]), as in the kernel. It may run. A policy that reads the priority at
    /// `enqueue` can ignore this.
    fn set_weight(&mut self, _cx: &mut Context, _task: TaskId, _old: u8, _why: Reweight) -> Effect {
        Effect::Nothing
    }

    /// The affinity of a task changes. The context has the new one; `old` is the old one. As for
    /// [`set_weight`](Self::set_weight) the task does not wait, and may run, but not on a CPU that
    /// it may no longer use.
    fn set_cpumask(&mut self, _cx: &mut Context, _task: TaskId, _old: Affinity) -> Effect {
        Effect::Nothing
    }

    /// A task that sleeps or has just stopped changes to another scheduling class, until
    /// [`enable`](Self::enable) or `exit_task`.
    fn disable(&mut self, _cx: &mut Context, _task: TaskId) {}

    /// A task of another class returns to the policy, asleep. Not called for new tasks.
    fn enable(&mut self, _cx: &mut Context, _task: TaskId) {}

    /// `cpu`, which runs no task of the policy, goes offline: it does not dispatch until
    /// [`cpu_online`](Self::cpu_online). Tasks that waited for it alone were restored on other
    /// CPUs. Called only for policies that promise [`Promises::hotplug`].
    fn cpu_offline(&mut self, _cx: &mut Context, _cpu: CpuId) {}

    /// `cpu` is online again and dispatches next.
    fn cpu_online(&mut self, _cx: &mut Context, _cpu: CpuId) {}

    /// A better scheduling class takes `cpu`: it does not dispatch until
    /// [`cpu_acquire`](Self::cpu_acquire). A task that runs there continues afterwards, unless it
    /// is stopped.
    fn cpu_release(&mut self, _cx: &mut Context, _cpu: CpuId) {}

    /// The policy has `cpu` again.
    fn cpu_acquire(&mut self, _cx: &mut Context, _cpu: CpuId) {}

    /// A task stops running. If it is still runnable ([`Stop::is_runnable`]), `enqueue` follows.
    fn stopping(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId, _why: Stop) {}

    /// `cpu` has become idle, or has left idle for a task. With alarms ([`Effect::KickAt`],
    /// [`Needs::alarm`], groups with quotas), it is also called if the CPU was woken and stays
    /// idle. A task that waited for it and was passed over may need another idle CPU, which must be
    /// kicked.
    fn update_idle(&mut self, _cx: &mut Context, _cpu: CpuId, _idle: bool) -> Effect {
        Effect::Nothing
    }

    /// The time for which it asked last ([`Context::call_at`]).
    fn timer(&mut self, _cx: &mut Context) {}

    /// The periodic tick on a busy CPU, at multiples of `needs().tick`.
    fn tick(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId) -> Effect {
        Effect::Nothing
    }
}

/// What a policy requests after a callback.
#[must_use = "an effect that is dropped is a preemption or a kick that never happens"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// Lets this CPU dispatch if it is idle.
    Kick(CpuId),
    /// Lets this CPU dispatch at that time, not in the past, if it is idle then. Replaces an
    /// earlier request.
    KickAt(CpuId, Time),
    /// Stops the task of this CPU, and lets the CPU dispatch.
    Preempt(CpuId),
}

/// The task to run, and its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// The task.
    pub task: TaskId,
    /// The maximum run time; then the task is stopped with [`Stop::SliceOver`].
    pub slice: Nanos,
}

/// The cost of a dispatch: the entries that it examined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scan {
    /// The queue, by its CPU; a queue that serves all CPUs is CPU 0's.
    pub queue: CpuId,
    /// The number of waiting tasks that were examined.
    pub entries: u32,
}

/// How a task becomes runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// Whether it is new.
    pub new: bool,
    /// The CPU whose running task woke or forked it, or on which an interrupt arrived if that is
    /// not the task's last one. It is `None` from an interrupt there or an arrival from outside.
    pub waker: Option<CpuId>,
    /// Whether the waker announces that it sleeps soon (`WF_SYNC`). Who writes to a pipe or a
    /// socket, or reads from it, does. Who gives back a lock does not.
    pub sync: bool,
}

impl Wake {
    /// A wakeup by the task on `waker`, or by none, that announces nothing.
    pub fn by(waker: Option<CpuId>) -> Wake {
        Wake { new: false, waker, sync: false }
    }

    /// The start of a task, by the one on `waker` or from outside.
    pub fn start(waker: Option<CpuId>) -> Wake {
        Wake { new: true, ..Wake::by(waker) }
    }
}

/// Why a task is enqueued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enqueue {
    /// It is new.
    New,
    /// It woke.
    Wakeup,
    /// It used its slice.
    SliceOver,
    /// It was preempted before.
    Preempted,
    /// It gave up the rest of its slice.
    Yielded,
    /// It was stopped ([`Stop::Preempted`]) because its priority changes; the context has the new
    /// one ([`Promises::inherits`]).
    PrioChanged,
    /// It waited, was dequeued ([`Policy::dequeue`]) because its attributes change, and waits again
    /// (`ENQUEUE_RESTORE`). It has not slept.
    Restored,
}

impl Enqueue {
    /// Whether the task neither waited nor ran: it is new, woke, or is restored. Otherwise it has
    /// just stopped on the CPU of the call.
    pub fn comes(self) -> bool {
        matches!(self, Enqueue::New | Enqueue::Wakeup | Enqueue::Restored)
    }
}

/// Why a priority changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// The task's own nice value or priority was set (`set_user_nice`).
    Own,
    /// It starts or stops inheriting the priority of a task that waits for it (`rt_mutex_setprio`).
    /// Its own nice value stays, and so does its weight.
    Inherited,
}

/// Why a task stops running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// It used its slice and is runnable.
    SliceOver,
    /// It was preempted and is runnable.
    Preempted,
    /// It gave up its slice and is runnable.
    Yielded,
    /// It sleeps or waits.
    Blocked,
    /// It ended.
    Exited,
    /// It changes to another scheduling class; [`Policy::disable`] follows.
    OtherClass,
}

impl Stop {
    /// Whether the task still wants to run.
    pub fn is_runnable(self) -> bool {
        self.requeue().is_some()
    }

    /// How a task that is still runnable is enqueued again.
    pub fn requeue(self) -> Option<Enqueue> {
        match self {
            Stop::SliceOver => Some(Enqueue::SliceOver),
            Stop::Preempted => Some(Enqueue::Preempted),
            Stop::Yielded => Some(Enqueue::Yielded),
            Stop::Blocked | Stop::Exited | Stop::OtherClass => None,
        }
    }
}

/// Calls and services that a policy requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// A tick of this period on busy CPUs.
    pub tick: Option<Nanos>,
    /// A call when a task sleeps, at that time and not at its next wakeup.
    pub blocking: bool,
    /// A call at a time of its choice ([`Effect::KickAt`]).
    pub alarm: bool,
    /// Effects beside the ones that callbacks return ([`Context::also`]), and calls at times of its
    /// choice ([`Context::call_at`]). Only the engine supplies them.
    pub requests: bool,
    /// The maximum number of CPUs, for which it was built; `None` if it keeps no per-CPU data.
    pub most_cpus: Option<u16>,
}
