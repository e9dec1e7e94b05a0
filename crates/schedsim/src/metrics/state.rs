//! The state of a task and of a CPU during a trace.

use crate::{CpuId, Nanos, TaskId, Time};
use std::collections::VecDeque;

/// The state of a task after the events so far.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// When it entered its phase.
    pub since: Time,
    /// The waking that its next dispatch answers; while it runs, one that takes effect when it
    /// blocks. `NEVER` if there is none.
    pub waking: Time,
    /// When it became runnable, if that was recorded: its activation lasts from then until it
    /// blocks or exits. `NEVER` otherwise.
    pub released: Time,
    /// When it was first seen.
    pub first: Time,
    /// From switch-ins to switch-outs.
    pub on_cpu: Nanos,
    pub run_delay: Nanos,
    /// Its longest uninterrupted wait.
    pub wait_max: Nanos,
    pub overhead: Nanos,
    /// Its CPU time when the current CPU burst began.
    pub burst_mark: Nanos,
    pub bursts: u32,
    pub wakeups: u32,
    pub dispatches: u32,
    pub migrations: u32,
    /// How often it started to run on a CPU that last ran another task.
    pub slices: u32,
    /// The number of tasks that exited before it, once it has exited.
    pub exit: Option<u32>,
    /// Where it last ran, once it [has run](Self::has_run).
    pub cpu: CpuId,
    /// Where it waits, or was last put to wait.
    pub queue: CpuId,
    pub phase: Phase,
    pub excluded: bool,
    /// Whether it created other tasks.
    pub is_parent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Unseen,
    Running,
    /// Runnable, and not running.
    Waiting,
    /// Waiting because of a waking that came while it ran. Another waking shows that it slept all
    /// the same.
    WaitingEarly,
    Blocked,
    Dead,
}

impl Phase {
    #[inline]
    pub fn waits(self) -> bool {
        matches!(self, Phase::Waiting | Phase::WaitingEarly)
    }
}

impl TaskState {
    pub const NEW: TaskState = TaskState {
        since: Time::ZERO,
        waking: Time::NEVER,
        released: Time::NEVER,
        first: Time::ZERO,
        on_cpu: Nanos::ZERO,
        run_delay: Nanos::ZERO,
        wait_max: Nanos::ZERO,
        overhead: Nanos::ZERO,
        burst_mark: Nanos::ZERO,
        bursts: 0,
        wakeups: 0,
        dispatches: 0,
        migrations: 0,
        slices: 0,
        exit: None,
        cpu: CpuId(0),
        queue: CpuId(0),
        phase: Phase::Unseen,
        excluded: false,
        is_parent: false,
    };

    /// Time on a CPU less the overhead on its account, up to its last switch-out.
    #[inline]
    pub fn cpu_time(&self) -> Nanos {
        self.on_cpu.saturating_sub(self.overhead)
    }

    /// Whether it has run, so that it can migrate.
    #[inline]
    pub fn has_run(&self) -> bool {
        self.dispatches > 0 || self.on_cpu > Nanos::ZERO || self.phase == Phase::Running
    }
}

/// The state of a CPU after the events so far.
#[derive(Clone, Debug)]
pub struct CpuState {
    pub running: TaskId,
    /// The task that ran last.
    pub last: TaskId,
    pub view: View,
    pub is_idle: bool,
    pub idle_since: Time,
    /// How long it has been idle before `idle_since`.
    pub idle: Nanos,
    /// How long some task had waited when it started to idle.
    pub waste_mark: Nanos,
    /// Tasks in its ready queue, since `queue_since`.
    pub waiting: u32,
    pub waiting_max: u32,
    pub queue_since: Time,
    /// The queue length integrated over time, in nanoseconds.
    pub queue_area: u128,
    pub switches: u64,
}

/// How much is known about the task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// No switch was seen.
    First,
    /// What the last switch said.
    Known,
    /// The task of the last switch has appeared on another CPU.
    Lost,
}

impl CpuState {
    pub const NEW: CpuState = CpuState {
        running: TaskId::NONE,
        last: TaskId::NONE,
        view: View::First,
        is_idle: true,
        idle_since: Time::ZERO,
        idle: Nanos::ZERO,
        waste_mark: Nanos::ZERO,
        waiting: 0,
        waiting_max: 0,
        queue_since: Time::ZERO,
        queue_area: 0,
        switches: 0,
    };

    /// Accounts for the queue length until `now`. A length that lasted no time does not count.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        if now > self.queue_since {
            self.queue_area += u128::from(self.waiting) * u128::from((now - self.queue_since).0);
            self.waiting_max = self.waiting_max.max(self.waiting);
            self.queue_since = now;
        }
    }

    /// The CPU, assumed idle until its first switch, ran a task.
    pub fn was_not_idle(&mut self) {
        self.is_idle = false;
    }
}

/// Jobs released and not completed, in order, per task. Empty in traces without jobs.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    released: Vec<VecDeque<Time>>,
}

impl Jobs {
    pub fn release(&mut self, task: TaskId, now: Time) {
        if task == TaskId::NONE {
            return;
        }
        if task.index() >= self.released.len() {
            self.released.resize(task.index() + 1, VecDeque::new());
        }
        self.released[task.index()].push_back(now);
    }

    /// The release time of the oldest job of `task`, which is now complete.
    pub fn complete(&mut self, task: TaskId) -> Option<Time> {
        self.released.get_mut(task.index())?.pop_front()
    }
}
