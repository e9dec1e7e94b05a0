//! What is known of a task and of a CPU while a trace goes by.

use crate::{CpuId, Nanos, TaskId, Time};
use std::collections::VecDeque;

/// A task, as the events so far tell.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// When it entered its phase.
    pub since: Time,
    /// The waking that its next dispatch answers; while it runs, one that comes into effect when it blocks. `NEVER` if there is none.
    pub waking: Time,
    /// When it became runnable, if that was seen: its activation lasts from then until it blocks or exits. `NEVER` otherwise.
    pub released: Time,
    /// When it was first seen.
    pub first: Time,
    /// From switch-ins to switch-outs.
    pub on_cpu: Nanos,
    pub run_delay: Nanos,
    /// The longest that it waited at a stretch.
    pub wait_max: Nanos,
    pub overhead: Nanos,
    /// Its CPU time when the current CPU burst began.
    pub burst_mark: Nanos,
    pub bursts: u32,
    pub wakeups: u32,
    pub dispatches: u32,
    pub migrations: u32,
    /// How often it began to run on a CPU that last ran another.
    pub turns: u32,
    /// How many had exited before it, once it has.
    pub exit: Option<u32>,
    /// Where it last ran, once it [has run](Self::has_run).
    pub cpu: CpuId,
    /// Where it waits, or was last put to wait.
    pub queue: CpuId,
    pub phase: Phase,
    pub excluded: bool,
    /// Whether it made others.
    pub is_parent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Unseen,
    Running,
    /// Runnable, and not running.
    Waiting,
    /// The same, because of a waking that came while it ran; another waking says that it slept all the same.
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
        turns: 0,
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

/// A CPU, as the events so far tell.
#[derive(Clone, Debug)]
pub struct CpuState {
    pub running: TaskId,
    /// Whose turn it is: who ran last.
    pub turn: TaskId,
    pub view: View,
    pub is_idle: bool,
    pub idle_since: Time,
    /// How long it has been idle before `idle_since`.
    pub idle: Nanos,
    /// For how long some task had waited when it began to idle.
    pub waste_mark: Nanos,
    /// Tasks in its ready queue, since `queue_since`.
    pub waiting: u32,
    pub waiting_max: u32,
    pub queue_since: Time,
    /// Length of the queue times how long it had it, in nanoseconds.
    pub queue_area: u128,
    pub switches: u64,
}

/// How much is known of what a CPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// No switch was seen.
    First,
    /// What the last switch said.
    Known,
    /// The task of the last switch has turned up elsewhere.
    Lost,
}

impl CpuState {
    pub const NEW: CpuState = CpuState {
        running: TaskId::NONE,
        turn: TaskId::NONE,
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

    /// Accounts for the length of the queue until `now`. A length that lasted no time counts for nothing.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        if now > self.queue_since {
            self.queue_area += u128::from(self.waiting) * u128::from((now - self.queue_since).0);
            self.waiting_max = self.waiting_max.max(self.waiting);
            self.queue_since = now;
        }
    }

    /// It turns out that the CPU, taken to idle until its first switch, ran a task.
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

    /// When the oldest job of `task` was released, which is now complete.
    pub fn complete(&mut self, task: TaskId) -> Option<Time> {
        self.released.get_mut(task.index())?.pop_front()
    }
}
