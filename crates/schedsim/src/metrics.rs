//! Computes numbers from a trace, with one definition per number for recordings and simulations.
//!
//! [`Metrics`] follows each task and CPU through the events alone. [`Summary`] is the result, and
//! [`CATALOGUE`] defines each number. A number whose events are missing has a note in place of a
//! value.
//!
//! ```
//! use schedsim::metrics::Metrics;
//! use schedsim::trace::{Event, EventKind, Observer, PrevState};
//! use schedsim::{CpuId, TaskId, Time};
//!
//! let at = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
//! let switch = |prev, next, prev_state| EventKind::SchedSwitch { prev, next, prev_state };
//! let mut metrics = Metrics::new(1);
//! metrics.events(&[
//!     at(0, EventKind::SchedWakeupNew { task: TaskId(0), target: CpuId(0) }),
//!     at(100, switch(TaskId::NONE, TaskId(0), PrevState::Runnable)),
//!     at(400, switch(TaskId(0), TaskId::NONE, PrevState::Dead)),
//! ]);
//! let summary = metrics.finish(Time(500));
//! assert_eq!(summary.get("makespan_ns"), Some(400.0));
//! assert_eq!(summary.get("grr"), Some(400.0 / 300.0));
//! assert_eq!(summary.get("utilisation"), Some(0.6));
//! ```
//!
//! # How a stream is read
//! Times count from zero, the start of the trace. A CPU is assumed idle until its first switch; a
//! task first seen as `prev` of its CPU's first switch has run since the start. A waking of a
//! running task takes effect when that task blocks, because a kernel wakes before the sleeper has
//! left its CPU. The waking is void if `sched_wakeup` follows while the task still runs. A waking
//! of a runnable task changes nothing. A contradiction to earlier events is counted in [`Oddities`]
//! and believed from then on.

mod catalogue;
mod critical_path;
pub(crate) mod deadlines;
mod fairness;
mod follow;
mod histogram;
mod object_graph;
mod open;
mod order;
mod part;
mod parts;
mod reading;
mod slowdown;
mod starving;
mod state;
mod summary;
mod value;
mod wake_graph;

pub use catalogue::{CATALOGUE, Metric};
pub use critical_path::{CriticalPath, Doing, Piece, shares};
pub use deadlines::TaskDeadlines;
pub use fairness::FairnessSummary;
pub use histogram::{Bucket, Histogram};
pub use object_graph::{ObjectEdge, ObjectGraph, Waits};
pub use open::{Group, OPEN_CATALOGUE, OpenMetric, OpenSummary, OpenSystem, Saturation};
pub use part::{PART_CATALOGUE, Part, PartMetric};
pub use parts::{Parts, Samples};
pub use slowdown::{DEMAND_CLASSES, Slowdowns, slowdown};
pub use summary::{
    CpuSummary, Distributions, Oddities, ResponseRatios, Summary, TaskSummary, Totals,
};
pub use value::{Better, Value};
pub use wake_graph::{WakeEdge, WakeGraph};

use crate::trace::{Event, EventKind, Observer, OverheadKind};
use crate::workload::{Reservation, TaskClass};
use crate::{CpuId, Nanos, TaskId, Time};
use deadlines::Deadlines;
use fairness::Fairness;
use state::{CpuState, Jobs, TaskState};

/// Computes all metrics of [`CATALOGUE`] and the tables of tasks and CPUs. Memory grows with tasks
/// and CPUs, not with events.
#[derive(Clone, Debug)]
pub struct Metrics {
    now: Time,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    /// Tasks that are runnable and do not run.
    waiting: u32,
    /// CPUs that run nothing.
    idle: u32,
    /// Tasks that have exited.
    exits: u32,
    jobs: Jobs,
    totals: Totals,
    distributions: Distributions,
    oddities: Oddities,
    fairness: Option<Box<Fairness>>,
    deadlines: Option<Box<Deadlines>>,
    parts: Option<Box<Parts>>,
}

impl Metrics {
    /// Metrics of a trace of `cpus` CPUs. With 0, the highest CPU of an event defines the number.
    pub fn new(cpus: u16) -> Metrics {
        Metrics {
            now: Time::ZERO,
            tasks: Vec::new(),
            cpus: vec![CpuState::NEW; usize::from(cpus)],
            waiting: 0,
            idle: u32::from(cpus),
            exits: 0,
            jobs: Jobs::default(),
            totals: Totals::default(),
            distributions: Distributions::default(),
            oddities: Oddities::default(),
            fairness: None,
            deadlines: None,
            parts: None,
        }
    }

    /// Also measures fairness and priority inversion. This requires the kernel priorities and
    /// scheduling policies of all tasks, in order of id, and the number of CPUs.
    pub fn with_tasks(mut self, tasks: impl IntoIterator<Item = (u8, TaskClass)>) -> Metrics {
        self.fairness = Some(Box::new(Fairness::new(self.cpus.len() as u16, tasks)));
        self
    }

    /// Also counts missed deadlines. This requires each task's reservation, in order of id.
    pub fn with_reservations(
        mut self,
        reservations: impl IntoIterator<Item = Option<Reservation>>,
    ) -> Metrics {
        let reservations: Vec<Option<Reservation>> = reservations.into_iter().collect();
        self.deadlines = reservations
            .iter()
            .any(Option::is_some)
            .then(|| Box::new(Deadlines::new(reservations)));
        self
    }

    /// Also gathers the samples of each task, for [`Summary::part`].
    pub fn with_parts(mut self) -> Metrics {
        self.parts = Some(Box::default());
        self
    }

    /// Excludes `tasks` from all task metrics (a recorder that recorded itself). They still occupy
    /// CPUs and wait for them, and their switches count.
    pub fn excluding(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Metrics {
        for task in tasks {
            self.task(task).excluded = true;
        }
        self
    }

    /// The metrics of the trace, which lasted until `end` or the last event, whichever is later.
    pub fn finish(mut self, end: Time) -> Summary {
        self.advance(end.max(self.now));
        Summary::new(self)
    }

    /// The CPU in whose ready queue `task` waits now, if it waits.
    #[inline]
    pub fn waits_on(&self, task: TaskId) -> Option<CpuId> {
        self.tasks.get(task.index()).filter(|state| state.phase.waits()).map(|state| state.queue)
    }

    /// How many tasks wait in the ready queue of `cpu` now.
    #[inline]
    pub fn ready_length(&self, cpu: CpuId) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |state| state.waiting)
    }

    /// The task on `cpu`; [`TaskId::NONE`] if none is known.
    #[inline]
    pub fn running(&self, cpu: CpuId) -> TaskId {
        self.cpus.get(cpu.index()).map_or(TaskId::NONE, |state| state.running)
    }

    /// The CPU of `task` and the start of its run, if it runs.
    #[inline]
    pub fn runs(&self, task: TaskId) -> Option<(CpuId, Time)> {
        self.tasks
            .get(task.index())
            .filter(|state| state.phase == state::Phase::Running)
            .map(|state| (state.cpu, state.since))
    }

    /// The CPU time of `task` up to its last switch-out. A run is added at its end.
    #[inline]
    pub fn on_cpu(&self, task: TaskId) -> Nanos {
        self.tasks.get(task.index()).map_or(Nanos::ZERO, |state| state.on_cpu)
    }

    /// Advances the time.
    #[inline]
    fn advance(&mut self, time: Time) {
        if time > self.now {
            let passed = time - self.now;
            if self.waiting > 0 {
                self.totals.time_waiting += passed;
                self.totals.idle_waste_min +=
                    Nanos(passed.0.saturating_mul(u64::from(self.waiting.min(self.idle))));
            }
            self.now = time;
        } else if time < self.now {
            self.oddities.time_backwards += 1;
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                self.switch(event.cpu, prev, next, prev_state)
            }
            EventKind::SchedWaking { task, target, .. } => self.waking(task, target),
            EventKind::Overhead { task, kind, spent } => self.overhead(task, kind, spent),
            EventKind::SchedWakeup { task, target } => self.wakeup(task, target),
            EventKind::SchedWakeupNew { task, target } => self.wakeup_new(task, target),
            EventKind::SchedMigrateTask { task, to, .. } => self.requeue(task, to),
            EventKind::JobRelease { task } => self.jobs.release(task, self.now),
            EventKind::JobComplete { task, demand } => self.job_complete(task, demand),
            EventKind::SchedProcessFork { parent, .. } if parent != TaskId::NONE => {
                self.task(parent).is_parent = true
            }
            EventKind::SchedProcessFork { .. }
            | EventKind::SchedProcessExec { .. }
            | EventKind::SchedProcessExit { .. } => {}
            EventKind::SchedPiSetprio { .. } | EventKind::ContentionBegin { .. } => {}
        }
    }

    #[inline]
    fn overhead(&mut self, task: TaskId, kind: OverheadKind, spent: Nanos) {
        self.totals.overhead[kind as usize] += spent;
        self.totals.overheads += 1;
        // A kernel's work in a task's call is CPU time of the task, as every kernel accounts it, and
        // so is what the task spins.
        let is_own = matches!(kind, OverheadKind::Calls | OverheadKind::Spin);
        if task != TaskId::NONE && !is_own {
            self.task(task).overhead += spent;
        }
    }

    fn job_complete(&mut self, task: TaskId, demand: Nanos) {
        match self.jobs.complete(task) {
            Some(release) if !self.task(task).excluded => {
                self.distributions.record_job(self.now.since(release), demand)
            }
            Some(_) => {}
            None => self.oddities.jobs_unreleased += 1,
        }
    }

    #[inline]
    fn task(&mut self, task: TaskId) -> &mut TaskState {
        if task.index() >= self.tasks.len() {
            self.grow_tasks(task);
        }
        &mut self.tasks[task.index()]
    }

    #[cold]
    #[inline(never)]
    fn grow_tasks(&mut self, task: TaskId) {
        self.tasks.resize(task.index() + 1, TaskState::NEW);
    }

    #[inline]
    fn cpu(&mut self, cpu: CpuId) -> &mut CpuState {
        if cpu.index() >= self.cpus.len() {
            self.grow_cpus(cpu);
        }
        &mut self.cpus[cpu.index()]
    }

    #[cold]
    #[inline(never)]
    fn grow_cpus(&mut self, cpu: CpuId) {
        self.idle += (cpu.index() + 1 - self.cpus.len()) as u32;
        self.cpus.resize(cpu.index() + 1, CpuState::NEW);
    }
}

impl Observer for Metrics {
    fn events(&mut self, chunk: &[Event]) {
        if let (None, Some(first)) = (self.totals.first_event, chunk.first()) {
            self.totals.first_event = Some(first.time);
        }
        for event in chunk {
            self.advance(event.time);
            self.event(event);
        }
        if let Some(fairness) = &mut self.fairness {
            fairness.events(chunk);
        }
        if let Some(deadlines) = &mut self.deadlines {
            chunk.iter().for_each(|event| deadlines.event(event));
        }
    }
}
