//! The order of one CPU's fair tasks: what CFS, EEVDF and their relatives differ in.

use crate::policy::{Kept, Shares, TaskView, VirtualTimes};
use crate::workload::{Cgroup, TaskClass};
use crate::{CpuId, TaskId, Time};

/// The order in which a CPU runs its fair tasks. All times are the caller's; a discipline has no
/// clock.
///
/// The *running* task of a CPU is on the queue although it does not wait. [`start`](Self::start)
/// sets it. It stays so until it leaves or another task starts, even while the CPU chooses its next
/// task.
pub trait Discipline {
    /// Sets the control groups, before any task exists. Optional: disciplines without groups ignore
    /// it.
    fn set_groups(&mut self, _groups: &[Cgroup]) {}

    /// A task is created.
    fn init_task(&mut self, task: TaskId, view: &TaskView);

    /// Charges the running task of `cpu` for its time until `now`. Returns whether its slice is
    /// over.
    fn charge(&mut self, cpu: CpuId, now: Time) -> bool;

    /// A tick. Returns whether the slice of the running task of `cpu`, which has just been charged,
    /// is over for a reason that only ticks check.
    fn expires(&mut self, _cpu: CpuId) -> bool {
        false
    }

    /// Called when time advances, so that throttled groups can be replenished.
    fn refresh(&mut self, _now: Time) {}

    /// When `cpu` must check again because a throttled group waits there.
    fn wakes_at(&self, _cpu: CpuId) -> Option<Time> {
        None
    }

    /// Whether `task` is throttled on all CPUs.
    fn is_held(&self, _task: TaskId) -> bool {
        false
    }

    /// `task`, which is on no queue, joins that of `cpu`. The running task has been charged.
    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, now: Time);

    /// `task` leaves the queue of `cpu`. The running task has been charged.
    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, now: Time);

    /// As [`Policy::virtual_times`](crate::policy::Policy::virtual_times), of a task on the queue of `cpu`.
    fn virtual_times(&self, _cpu: CpuId, _task: TaskId, _now: Time) -> Option<VirtualTimes> {
        None
    }

    /// As [`Policy::keep`](crate::policy::Policy::keep), of a task that last ran on `cpu`.
    fn keep(&mut self, _cpu: CpuId, _task: TaskId, _kept: Kept) {}

    /// Whether `task` is still on the queue although it sleeps. If it wakes, it does so on the same
    /// CPU, by [`Join::Wakes`].
    fn in_delayed_dequeue(&self, task: TaskId) -> bool;

    /// The task that should run on `cpu`, which may be the running one.
    fn pick(&mut self, cpu: CpuId) -> Option<TaskId>;

    /// `task`, which was picked, runs on `cpu` from `now` on; the task that ran there waits.
    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time);

    /// The running task of `cpu` waits, because a task of a better class runs.
    fn put_back(&mut self, cpu: CpuId);

    /// The running task, which has been charged, gives up the rest of its slice.
    fn yield_task(&mut self, cpu: CpuId);

    /// Whether `task`, which has just joined `cpu`, preempts the running task, which has been
    /// charged.
    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool;

    /// The weight of `task` becomes that of `view` (`reweight_entity`). It does not wait. If it is
    /// on the queue of `cpu`, its running task has been charged.
    fn set_weight(&mut self, cpu: CpuId, task: TaskId, view: &TaskView);

    /// The promised bound on shares.
    fn shares(&self) -> Option<Shares>;

    /// Whether `task`, which waits on `cpu`, may move to another CPU without a disadvantage there.
    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool;
}

/// Whether the classes decide that a waking task preempts the running one; `None` if virtual times
/// decide. All other tasks preempt idle tasks; idle and batch tasks preempt only idle ones.
pub fn class_preempts(waking: TaskClass, running: TaskClass) -> Option<bool> {
    match (running, waking) {
        (TaskClass::Idle, waking) if waking != TaskClass::Idle => Some(true),
        (_, TaskClass::Idle | TaskClass::Batch) => Some(false),
        _ => None,
    }
}

/// Why a task joins a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// It is new.
    New,
    /// It woke.
    Wakes,
    /// It comes from another CPU.
    Moves,
    /// It was saved before.
    Restored,
}

/// Why a task leaves a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// It sleeps.
    Sleeps,
    /// It goes to another CPU.
    Moves,
    /// Its attributes change, and it rejoins at once (`DEQUEUE_SAVE`); or it leaves while it waits.
    Saved,
    /// It has ended.
    Exits,
}
