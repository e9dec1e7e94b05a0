//! The summary of a trace: totals, distributions, and tables of tasks and CPUs.

use super::state::{CpuState, Phase, TaskState, View};
use super::{FairnessSummary, Histogram, Metrics, Parts, Slowdowns, TaskDeadlines};
use crate::trace::OverheadKind;
use crate::{CpuId, Nanos, TaskId, Time};

/// The result of [`Metrics`].
#[derive(Clone, Debug)]
pub struct Summary {
    /// When the trace ended; it began at zero.
    pub end: Time,
    /// Sums over the whole machine.
    pub totals: Totals,
    /// Samples of durations.
    pub distributions: Distributions,
    /// The tasks that were seen and not excluded, in order of id.
    pub tasks: Vec<TaskSummary>,
    /// The CPUs in order.
    pub cpus: Vec<CpuSummary>,
    /// Contradictions in the trace.
    pub oddities: Oddities,
    /// Fairness, if requested.
    pub fairness: Option<FairnessSummary>,
    /// The deadlines of tasks with reservations.
    pub deadlines: Vec<TaskDeadlines>,
    /// The samples of each task, if requested.
    pub parts: Option<Box<Parts>>,
}

/// A task starves after waiting this long without a break: what a person notices, and the quantum
/// of `SCHED_RR`.
pub(super) const PATIENCE: Nanos = Nanos::from_millis(100);

/// Sums over the whole machine.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// When the first event was.
    pub first_event: Option<Time>,
    /// When a task last left a CPU, or the end if one still runs.
    pub last_stop: Time,
    /// For how long at least one task waited.
    pub time_waiting: Nanos,
    /// CPU time idled while at least one task waited.
    pub idle_waste: Nanos,
    /// The same, with at most as many idle CPUs as waiting tasks.
    pub idle_waste_min: Nanos,
    /// The longest wait of a task between two other states.
    pub run_delay_max: Nanos,
    /// How long tasks waited beyond the first 100 ms of each wait.
    pub starved: Nanos,
    /// How long tasks may have run whose switches from idle are missing. During this time the idle
    /// waste of other CPUs counts them as waiting.
    pub time_unseen: Nanos,
    /// `sched_waking` events.
    pub wakings: u64,
    /// `sched_wakeup` events without a `sched_waking` before them, and `sched_wakeup_new` events.
    pub wakeups_without_waking: u64,
    /// `overhead` events.
    pub overheads: u64,
    pub(super) overhead: [Nanos; OverheadKind::ALL.len()],
}

impl Totals {
    /// CPU time spent on scheduling overhead of one kind.
    pub fn overhead(&self, kind: OverheadKind) -> Nanos {
        self.overhead[kind as usize]
    }
}

/// Samples of durations.
#[derive(Clone, Debug, Default)]
pub struct Distributions {
    /// From `sched_waking` to the switch that runs the task.
    pub wakeup_latency: Histogram,
    /// CPU bursts: CPU time from a wakeup to the next block or exit. A preempted burst continues.
    /// One that is cut by the start of the trace counts as far as it was seen; one that has not
    /// ended does not count.
    pub burst: Histogram,
    /// From a block to the waking that ends it.
    pub pause: Histogram,
    /// Activations: from when a task becomes runnable to when it blocks or exits.
    pub activation: Histogram,
    /// The same over the CPU time used in it.
    pub slowdowns: Slowdowns,
    /// From `job_release` to `job_complete`.
    pub response_time: Histogram,
    /// Σ of the demands of completed jobs.
    pub job_demand: Nanos,
    /// Σ of response time / demand over completed jobs with a demand, and their number.
    pub job_ratios: (f64, u64),
}

impl Distributions {
    pub(super) fn record_job(&mut self, response: Nanos, demand: Nanos) {
        self.response_time.record(response);
        self.job_demand += demand;
        if demand > Nanos::ZERO {
            self.job_ratios.0 += response.0 as f64 / demand.0 as f64;
            self.job_ratios.1 += 1;
        }
    }
}

/// Contradictions between events: lost events, or a fault of the producer. All zero for a
/// simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oddities {
    /// Events whose time is before that of the event before.
    pub time_backwards: u64,
    /// Switches whose `prev` is not the task of the CPU.
    pub wrong_prev: u64,
    /// The same on a CPU that seemed idle: the switch from idle was not recorded.
    pub unseen_switch_ins: u64,
    /// Dispatches of a task that runs elsewhere.
    pub on_two_cpus: u64,
    /// Dispatches of a task that was blocked and not woken.
    pub unwoken: u64,
    /// Wakings and dispatches of a task that has ended.
    pub after_exit: u64,
    /// Completions of jobs that were not released.
    pub jobs_unreleased: u64,
    /// CPUs without a switch, assumed idle throughout.
    pub cpus_unseen: u64,
}

impl Oddities {
    /// The number of contradictions (CPUs without a switch are none).
    pub fn total(&self) -> u64 {
        self.time_backwards
            + self.wrong_prev
            + self.unseen_switch_ins
            + self.on_two_cpus
            + self.unwoken
            + self.after_exit
            + self.jobs_unreleased
    }
}

/// What one task did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskSummary {
    /// Which task.
    pub task: TaskId,
    /// When it was first seen: its `sched_wakeup_new`, or its first waking or switch.
    pub first: Time,
    /// When it exited or, if it is alive, when it was last running or runnable.
    pub last: Time,
    /// Time on a CPU less overhead on its account.
    pub cpu_time: Nanos,
    /// Time runnable and waiting.
    pub run_delay: Nanos,
    /// Its longest uninterrupted wait.
    pub wait_max: Nanos,
    /// Scheduling overhead on its account.
    pub overhead: Nanos,
    /// CPU bursts that have ended.
    pub bursts: u32,
    /// How often it was woken.
    pub wakeups: u32,
    /// How often it was switched in.
    pub dispatches: u32,
    /// How often it was switched in on another CPU than before.
    pub migrations: u32,
    /// How often it ran on a CPU that ran another task before, with or without idle time between.
    pub slices: u32,
    /// The number of tasks that exited before it, if it has exited.
    pub exit: Option<u32>,
    /// Whether it created other tasks.
    pub is_parent: bool,
    /// Whether it ran, or was runnable, when the trace ended.
    pub is_unfinished: bool,
}

impl TaskSummary {
    fn new(task: TaskId, state: &TaskState, end: Time) -> TaskSummary {
        let lately = end.since(state.since);
        let (mut cpu_time, mut run_delay, mut wait_max, mut last) =
            (state.on_cpu, state.run_delay, state.wait_max, end);
        match state.phase {
            Phase::Running => cpu_time += lately,
            Phase::Waiting | Phase::WaitingEarly => {
                (run_delay, wait_max) = (run_delay + lately, wait_max.max(lately))
            }
            Phase::Unseen | Phase::Blocked | Phase::Dead => last = state.since,
        }
        TaskSummary {
            task,
            first: state.first,
            last,
            cpu_time: cpu_time.saturating_sub(state.overhead),
            run_delay,
            wait_max,
            overhead: state.overhead,
            bursts: state.bursts,
            wakeups: state.wakeups,
            dispatches: state.dispatches,
            migrations: state.migrations,
            slices: state.slices,
            exit: state.exit,
            is_parent: state.is_parent,
            is_unfinished: state.phase == Phase::Running || state.phase.waits(),
        }
    }

    /// From when it was first seen to its exit or, if it is alive, to when it was last running or
    /// runnable. A pause that the end of the trace cuts does not count.
    pub fn elapsed(&self) -> Nanos {
        self.last.since(self.first)
    }

    /// Its time without queueing and overhead: CPU bursts and pauses.
    pub fn task_time(&self) -> Nanos {
        self.elapsed().saturating_sub(self.run_delay).saturating_sub(self.overhead)
    }

    /// CPU time as a share of its running and waiting time; `None` if it was never runnable.
    pub fn service(&self) -> Option<f64> {
        let wanted = self.cpu_time + self.overhead + self.run_delay;
        (wanted > Nanos::ZERO).then(|| self.cpu_time.0 as f64 / wanted.0 as f64)
    }
}

/// What one CPU did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CpuSummary {
    /// Which CPU.
    pub cpu: CpuId,
    /// Time during which it ran tasks, overhead included. With `idle` it makes up the whole trace.
    pub busy: Nanos,
    /// Time during which it ran none (leaving idle is idle).
    pub idle: Nanos,
    /// Context switches.
    pub switches: u64,
    /// Tasks waiting in its ready queue, averaged over time. The running one is not in it.
    pub waiting_mean: f64,
    /// The maximum number of tasks that waited in its ready queue for longer than zero time.
    pub waiting_max: u32,
}

impl CpuSummary {
    fn new(cpu: CpuId, state: &CpuState, end: Time) -> CpuSummary {
        CpuSummary {
            cpu,
            busy: end.since(Time::ZERO).saturating_sub(state.idle),
            idle: state.idle,
            switches: state.switches,
            waiting_mean: if end == Time::ZERO {
                0.0
            } else {
                state.queue_area as f64 / end.0 as f64
            },
            waiting_max: state.waiting_max,
        }
    }
}

impl Summary {
    pub(super) fn new(mut metrics: Metrics) -> Summary {
        let end = metrics.now;
        for index in 0..metrics.cpus.len() {
            let cpu = CpuId(index as u16);
            metrics.cpus[index].settle(end);
            metrics.oddities.cpus_unseen += u64::from(metrics.cpus[index].view == View::First);
            if metrics.cpus[index].is_idle {
                metrics.become_idle(cpu, false);
            }
        }
        let seen =
            |&(_, state): &(usize, &TaskState)| state.phase != Phase::Unseen && !state.excluded;
        let waits = |state: &TaskState| {
            if state.phase.waits() { end.since(state.since) } else { Nanos::ZERO }
        };
        for (_, state) in metrics.tasks.iter().enumerate().filter(seen) {
            metrics.totals.run_delay_max = metrics.totals.run_delay_max.max(waits(state));
            metrics.totals.starved += waits(state).saturating_sub(PATIENCE);
        }
        if metrics.tasks.iter().any(|state| state.phase == Phase::Running) {
            metrics.totals.last_stop = end;
        }
        let tasks = metrics.tasks.iter().enumerate().filter(seen);
        let cpus = metrics.cpus.iter().enumerate();
        Summary {
            end,
            tasks: tasks
                .map(|(index, state)| TaskSummary::new(TaskId(index as u32), state, end))
                .collect(),
            cpus: cpus
                .map(|(index, state)| CpuSummary::new(CpuId(index as u16), state, end))
                .collect(),
            totals: metrics.totals,
            distributions: metrics.distributions,
            oddities: metrics.oddities,
            fairness: metrics.fairness.map(|fairness| fairness.finish(end)),
            deadlines: metrics.deadlines.map_or(Vec::new(), |deadlines| deadlines.finish(end)),
            parts: metrics.parts,
        }
    }

    /// GRR and APR of the tasks that `choose` accepts, for example those of one priority; `None` if
    /// their task time is zero.
    pub fn response_ratios(&self, choose: impl Fn(&TaskSummary) -> bool) -> Option<ResponseRatios> {
        let (mut elapsed, mut task_time, mut ratios, mut tasks) =
            (Nanos::ZERO, Nanos::ZERO, 0.0, 0u64);
        for task in self.tasks.iter().filter(|task| choose(task) && task.task_time() > Nanos::ZERO)
        {
            elapsed += task.elapsed();
            task_time += task.task_time();
            ratios += task.elapsed().0 as f64 / task.task_time().0 as f64;
            tasks += 1;
        }
        (tasks > 0).then(|| ResponseRatios {
            grr: elapsed.0 as f64 / task_time.0 as f64,
            apr: ratios / tasks as f64,
        })
    }

    /// The sum of a duration over all tasks.
    pub fn sum(&self, of: impl Fn(&TaskSummary) -> Nanos) -> Nanos {
        self.tasks.iter().map(of).sum()
    }

    /// The sum of a count over all tasks.
    pub fn count(&self, of: impl Fn(&TaskSummary) -> u32) -> u64 {
        self.tasks.iter().map(|task| u64::from(of(task))).sum()
    }

    /// All CPUs' time together.
    pub fn machine_time(&self) -> f64 {
        self.cpus.len() as f64 * self.end.0 as f64
    }
}

/// Curran & Stumm's two response ratios.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResponseRatios {
    /// Global: Σ elapsed / Σ task time, so that long tasks weigh more.
    pub grr: f64,
    /// Average per task: the mean of elapsed / task time, all tasks weighing alike.
    pub apr: f64,
}
