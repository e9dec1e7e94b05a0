//! The policy seam: who runs next, where, and for how long.
//!
//! The callbacks are those of the kernel's `sched_ext_ops`, so that the same policy can be driven by the simulator's engine and by a kernel.
//! For each task the caller makes these calls in this order:
//!
//! ```text
//! init_task → ( select_cpu → enqueue → dispatch → running → ( tick )* → stopping → [still runnable: enqueue → dispatch …] )* → exit_task
//! ```
//!
//! A policy sees [`Context`] (the time, the machine, what runs where, random numbers) and nothing of the engine, the trace or a pid. It answers with effects;
//! an effect that is dropped is a compiler warning.

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
mod rr;
mod take;
mod topology;
mod utilisation;
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
pub(crate) use weights::weight;

use crate::{CpuId, Nanos, TaskId, Time};
use readyq::{Node, Nodes, ReadyQueue};
use std::hint::black_box;

/// Gives a new task a fresh node, and the slab room for it. Ids are dense, and are used again.
#[inline]
fn renew(nodes: &mut Vec<Node>, task: TaskId) {
    if task.index() >= nodes.len() {
        nodes.resize(task.index() + 1, Node::NEW);
    }
    nodes[task.index()] = Node::NEW;
}

/// Takes a waiting task out of a queue, by a pop if it is the first: to an order that counts turns the two are not the same.
fn take_out(queue: &mut impl ReadyQueue, nodes: &mut Nodes, task: TaskId) {
    if queue.peek(nodes) == Some(task) {
        queue.pop(nodes);
    } else {
        queue.remove(nodes, task);
    }
}

/// Reads the entry of a task in a table, if it has one.
fn fetch<T: Copy>(table: &[T], task: TaskId) {
    black_box(table.get(task.index()).copied());
}

/// A scheduling policy.
pub trait Policy {
    /// Which callbacks beyond the four verbs this policy cannot do without. A world that cannot supply one refuses the policy by name.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// What this policy guarantees, for the checks.
    fn promises(&self) -> Promises {
        Promises::default()
    }

    /// How many tasks wait in the queue from which `cpu` is served, for [`Machine::queue_cost`](crate::Machine::queue_cost).
    fn queue_length(&self, _cpu: CpuId) -> u32 {
        0
    }

    /// Where the last `dispatch` on `cpu` found its task, for [`Machine::lock_hold`](crate::Machine::lock_hold).
    fn scan(&self, cpu: CpuId) -> Scan {
        Scan { queue: cpu, entries: 1 }
    }

    /// Whether a task may run on several CPUs in its life. A machine may be slower for supporting that (Curran & Stumm's SMC).
    fn migrates(&self) -> bool {
        true
    }

    /// Reads what this policy keeps of a task that is about to wake, so that it is at hand by then: of a million tasks each is far away in memory.
    fn fetch(&self, _task: TaskId) {}

    /// A task came into being; its attributes are in the context.
    fn init_task(&mut self, cx: &mut Context, task: TaskId);

    /// A task has ended. It runs nowhere and waits nowhere.
    fn exit_task(&mut self, _cx: &mut Context, _task: TaskId) {}

    /// A task becomes runnable: on which CPU should it wait? Called just before `enqueue`, for new and for woken tasks.
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId;

    /// A task waits from now on; `cpu` is what `select_cpu` said or where the task ran. An idle CPU that should look at the queues must be kicked.
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect;

    /// A waiting task is taken away without having run: it was killed, or its attributes change, and `select_cpu` and `enqueue` follow as if it woke.
    fn dequeue(&mut self, cx: &mut Context, task: TaskId);

    /// `cpu` has nothing to run: the waiting task it shall run, which thereby waits no longer, or `None` to idle.
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch>;

    /// A dispatched task starts to run.
    fn running(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId) {}

    /// The priority or nice value of a task changes. It is in the context already; `old` is what it was. The task does not wait: one that waited was dequeued
    /// before and is enqueued afterwards, as in the kernel. A policy that reads the priority at `enqueue` need not do anything.
    fn set_weight(&mut self, _cx: &mut Context, _task: TaskId, _old: u8) {}

    /// A task stops running. If it is still runnable ([`Stop::is_runnable`]), `enqueue` follows.
    fn stopping(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId, _why: Stop) {}

    /// `cpu` has become idle, or has left idle for a task; where alarms were asked for ([`Effect::KickAt`]) or may be ([`Needs::alarm`], groups with
    /// quotas) also if it was woken and goes on idling. A task that waited for it and was passed over may need another idle CPU, which must be kicked.
    fn update_idle(&mut self, _cx: &mut Context, _cpu: CpuId, _idle: bool) -> Effect {
        Effect::Nothing
    }

    /// The periodic tick on a busy CPU, at multiples of `needs().tick`.
    fn tick(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId) -> Effect {
        Effect::Nothing
    }
}

/// What a policy asks of the caller after a callback.
#[must_use = "an effect that is dropped is a preemption or a kick that never happens"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// If this CPU is idle, let it dispatch.
    Kick(CpuId),
    /// If this CPU is idle at that time, which must not be over, let it dispatch. Replaces an earlier one.
    KickAt(CpuId, Time),
    /// Whatever this CPU runs shall stop, and it shall dispatch.
    Preempt(CpuId),
}

/// The task to run and for how long at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// Who runs.
    pub task: TaskId,
    /// For at most this long; then it is stopped with [`Stop::SliceOver`].
    pub slice: Nanos,
}

/// What a dispatch looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scan {
    /// The queue, by the CPU that it is of; one that serves all is CPU 0's.
    pub queue: CpuId,
    /// How many waiting tasks were examined there.
    pub entries: u32,
}

/// How a task becomes runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// Whether it is new.
    pub new: bool,
    /// The CPU whose running task woke or forked it; `None` from an interrupt or an arrival from outside.
    pub waker: Option<CpuId>,
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
    /// It was stopped ([`Stop::Preempted`]) because its priority changes; it is in the context already ([`Promises::inherits`]).
    PrioChanged,
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
}

impl Stop {
    /// Whether the task still wants to run.
    pub fn is_runnable(self) -> bool {
        self.requeue().is_some()
    }

    /// How a still runnable task goes back to wait.
    pub fn requeue(self) -> Option<Enqueue> {
        match self {
            Stop::SliceOver => Some(Enqueue::SliceOver),
            Stop::Preempted => Some(Enqueue::Preempted),
            Stop::Yielded => Some(Enqueue::Yielded),
            Stop::Blocked | Stop::Exited => None,
        }
    }
}

/// Events that a policy cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// A tick of this period on busy CPUs.
    pub tick: Option<Nanos>,
    /// To be told when a task sleeps, at the time (not at its next wakeup).
    pub blocking: bool,
    /// To be asked again at a time of its choice ([`Effect::KickAt`]).
    pub alarm: bool,
}
