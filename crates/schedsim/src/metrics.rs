//! Numbers from a trace: one observer, one definition per number, for recordings and simulations alike.
//!
//! [`Metrics`] follows what every task and CPU does from the events alone; [`Summary`] is what it comes to, and [`CATALOGUE`] says what
//! each number means. A number whose events are missing has no value but a note.
//!
//! ```
//! use schedsim::metrics::Metrics;
//! use schedsim::trace::{Event, EventKind, Observer, PrevState};
//! use schedsim::{CpuId, TaskId, Time};
//!
//! let at = |time, kind| Event { time: Time(time), cpu: CpuId(0), kind };
//! let mut metrics = Metrics::new(1);
//! metrics.events(&[
//!     at(0, EventKind::SchedWakeupNew { task: TaskId(0), target: CpuId(0) }),
//!     at(100, EventKind::SchedSwitch { prev: TaskId::NONE, next: TaskId(0), prev_state: PrevState::Runnable }),
//!     at(400, EventKind::SchedSwitch { prev: TaskId(0), next: TaskId::NONE, prev_state: PrevState::Dead }),
//! ]);
//! let summary = metrics.finish(Time(500));
//! assert_eq!(summary.get("makespan_ns"), Some(400.0));
//! assert_eq!(summary.get("grr"), Some(400.0 / 300.0));
//! assert_eq!(summary.get("utilisation"), Some(0.6));
//! ```
//!
//! # How a stream is read
//! Times count from zero, the start of the trace. A CPU is taken to idle until its first switch says otherwise; a task that is first seen
//! as `prev` of its CPU's first switch has run since the start. A waking of a running task becomes effective when that task blocks
//! (a kernel wakes before the sleeper has left its CPU), and is void if `sched_wakeup` follows while it still runs. A waking of a runnable
//! task changes nothing. Whatever contradicts what came before is counted in [`Oddities`] and believed from then on.

mod catalogue;
mod histogram;
mod reading;
mod state;
mod summary;
mod wake_graph;

pub use catalogue::{Better, CATALOGUE, Metric, Value};
pub use histogram::Histogram;
pub use summary::{CpuSummary, Distributions, Oddities, ResponseRatios, Summary, TaskSummary, Totals};
pub use wake_graph::{WakeEdge, WakeGraph};

use crate::trace::{Event, EventKind, Observer, OverheadKind, PrevState};
use crate::{CpuId, Nanos, TaskId, Time};
use state::{CpuState, Jobs, Phase, TaskState, View};

/// Computes all metrics of [`CATALOGUE`] and the tables of tasks and CPUs. Memory grows with tasks and CPUs, not with events.
#[derive(Clone, Debug)]
pub struct Metrics {
    now: Time,
    tasks: Vec<TaskState>,
    cpus: Vec<CpuState>,
    /// Tasks that are runnable and do not run.
    waiting: u32,
    /// CPUs that run nothing.
    idle: u32,
    jobs: Jobs,
    totals: Totals,
    distributions: Distributions,
    oddities: Oddities,
}

impl Metrics {
    /// For a trace of `cpus` CPUs; if it is unknown, 0, and the highest CPU that an event names counts.
    pub fn new(cpus: u16) -> Metrics {
        Metrics {
            now: Time::ZERO,
            tasks: Vec::new(),
            cpus: vec![CpuState::NEW; usize::from(cpus)],
            waiting: 0,
            idle: u32::from(cpus),
            jobs: Jobs::default(),
            totals: Totals::default(),
            distributions: Distributions::default(),
            oddities: Oddities::default(),
        }
    }

    /// Leaves `tasks` out of everything that is about tasks (a recorder that recorded itself). They still occupy CPUs and wait for them, and
    /// their switches count.
    pub fn excluding(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Metrics {
        for task in tasks {
            self.task(task).excluded = true;
        }
        self
    }

    /// The metrics of the trace, which lasted until `end` (if that is earlier than the last event, until that).
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

    /// Lets time pass.
    #[inline]
    fn advance(&mut self, time: Time) {
        if time > self.now {
            let passed = time - self.now;
            if self.waiting > 0 {
                self.totals.time_waiting += passed;
                self.totals.idle_waste_min += Nanos(passed.0.saturating_mul(u64::from(self.waiting.min(self.idle))));
            }
            self.now = time;
        } else if time < self.now {
            self.oddities.time_backwards += 1;
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => self.switch(event.cpu, prev, next, prev_state),
            EventKind::SchedWaking { task, target, .. } => self.waking(task, target),
            EventKind::Overhead { task, kind, spent } => self.overhead(task, kind, spent),
            EventKind::SchedWakeup { task, target } => self.wakeup(task, target),
            EventKind::SchedWakeupNew { task, target } => self.wakeup_new(task, target),
            EventKind::SchedMigrateTask { task, to, .. } => self.requeue(task, to),
            EventKind::JobRelease { task } => self.jobs.release(task, self.now),
            EventKind::JobComplete { task, demand } => self.job_complete(task, demand),
            EventKind::SchedProcessFork { .. } | EventKind::SchedProcessExec { .. } | EventKind::SchedProcessExit { .. } => {}
        }
    }

    // Switches.

    #[inline]
    fn switch(&mut self, cpu: CpuId, prev: TaskId, next: TaskId, prev_state: PrevState) {
        let state = self.cpu(cpu);
        state.switches += 1;
        if state.running != prev || state.view != View::Known {
            self.reconcile(cpu, prev);
        }
        if prev != TaskId::NONE {
            self.stop(cpu, prev, prev_state);
        }
        if next != TaskId::NONE {
            self.start(cpu, next);
            self.end_idle(cpu);
        } else {
            self.begin_idle(cpu);
        }
        self.cpus[cpu.index()].running = next;
    }

    /// `prev` leaves `cpu`, on which it ran.
    #[inline]
    fn stop(&mut self, cpu: CpuId, prev: TaskId, why: PrevState) {
        let now = self.now;
        self.totals.last_stop = now;
        let state = &mut self.tasks[prev.index()];
        state.on_cpu += now.since(state.since);
        state.since = now;
        let waking = std::mem::replace(&mut state.waking, Time::NEVER);
        if why == PrevState::Runnable {
            state.phase = Phase::Waiting;
            state.queue = cpu;
            return self.join(cpu);
        }
        state.bursts += 1;
        let used = state.cpu_time();
        if !state.excluded {
            self.distributions.burst.record(used.saturating_sub(state.burst_mark));
        }
        state.burst_mark = used;
        if why == PrevState::Dead {
            state.phase = Phase::Dead;
        } else if waking == Time::NEVER {
            state.phase = Phase::Blocked;
        } else {
            // Woken before it had left: it is runnable at once.
            state.phase = Phase::WaitingEarly;
            state.waking = waking;
            state.wakeups += 1;
            let queue = state.queue;
            self.join(queue);
        }
    }

    /// `next` is dispatched to `cpu`.
    #[inline]
    fn start(&mut self, cpu: CpuId, next: TaskId) {
        let now = self.now;
        if !self.task(next).phase.waits() {
            self.expect_waiting(next);
        }
        let state = &mut self.tasks[next.index()];
        if state.phase.waits() {
            let waited = now.since(state.since);
            state.run_delay += waited;
            let waking = std::mem::replace(&mut state.waking, Time::NEVER);
            if !state.excluded {
                self.totals.run_delay_max = self.totals.run_delay_max.max(waited);
                if waking != Time::NEVER {
                    self.distributions.wakeup_latency.record(now.since(waking));
                }
            }
            let queue = state.queue;
            self.leave(queue);
        }
        let state = &mut self.tasks[next.index()];
        state.migrations += u32::from(state.has_run() && state.cpu != cpu);
        state.dispatches += 1;
        state.phase = Phase::Running;
        state.since = now;
        state.cpu = cpu;
    }

    /// A task that shall start to run was not known to wait.
    #[cold]
    #[inline(never)]
    fn expect_waiting(&mut self, task: TaskId) {
        match self.tasks[task.index()].phase {
            Phase::Unseen => self.tasks[task.index()].first = self.now,
            Phase::Running => {
                self.oddities.on_two_cpus += 1;
                self.steal(task);
            }
            Phase::Dead => self.oddities.after_exit += 1,
            Phase::Blocked => self.oddities.unwoken += 1,
            Phase::Waiting | Phase::WaitingEarly => {}
        }
    }

    /// The CPU does not run, as far as is known, the task that is about to leave it; from here on it does.
    #[cold]
    #[inline(never)]
    fn reconcile(&mut self, cpu: CpuId, prev: TaskId) {
        let now = self.now;
        let CpuState { running, view, .. } = self.cpus[cpu.index()];
        self.cpus[cpu.index()].view = View::Known;
        if view == View::First {
            if prev == TaskId::NONE {
                return;
            }
            self.cpus[cpu.index()].was_not_idle();
            self.idle -= 1;
            if !self.task(prev).has_run() {
                // It has run since the start; a waking of it came while it ran.
                self.leave_queue(prev);
                let state = &mut self.tasks[prev.index()];
                (state.first, state.since, state.phase, state.cpu) = (Time::ZERO, Time::ZERO, Phase::Running, cpu);
                return;
            }
        }
        self.oddities.wrong_prev += u64::from(view == View::Known);
        if running != TaskId::NONE {
            let lost = &mut self.tasks[running.index()];
            lost.on_cpu += now.since(lost.since);
            (lost.phase, lost.since, lost.waking) = (Phase::Blocked, now, Time::NEVER);
        }
        if prev != TaskId::NONE {
            self.end_idle(cpu);
            match self.task(prev).phase {
                Phase::Unseen => self.tasks[prev.index()].first = now,
                Phase::Running => self.steal(prev),
                Phase::Waiting | Phase::WaitingEarly => {
                    let state = &mut self.tasks[prev.index()];
                    state.run_delay += now.since(state.since);
                    self.leave_queue(prev);
                }
                Phase::Blocked | Phase::Dead => {}
            }
            let state = &mut self.tasks[prev.index()];
            (state.phase, state.since, state.cpu, state.waking) = (Phase::Running, now, cpu, Time::NEVER);
        }
    }

    /// A running task turns up elsewhere: the CPU on which it was thought to run does something unknown.
    fn steal(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.on_cpu += self.now.since(state.since);
        let robbed = &mut self.cpus[state.cpu.index()];
        robbed.running = TaskId::NONE;
        robbed.view = View::Lost;
    }

    // Wakings.

    #[inline]
    fn waking(&mut self, task: TaskId, target: CpuId) {
        if task == TaskId::NONE {
            return;
        }
        let now = self.now;
        self.totals.wakings += 1;
        let state = self.task(task);
        match state.phase {
            Phase::Blocked => {
                let pause = now.since(state.since);
                if !state.excluded {
                    self.distributions.pause.record(pause);
                }
            }
            Phase::Running => {
                (state.waking, state.queue) = (now, target);
                return;
            }
            Phase::Waiting => return,
            // The early waking was for naught, and the task slept until now.
            Phase::WaitingEarly => self.leave_queue(task),
            Phase::Unseen => state.first = now,
            Phase::Dead => self.oddities.after_exit += 1,
        }
        self.make_wait(task, target);
        let state = &mut self.tasks[task.index()];
        state.waking = now;
        state.wakeups += 1;
    }

    fn wakeup(&mut self, task: TaskId, target: CpuId) {
        if task == TaskId::NONE {
            return;
        }
        let state = self.task(task);
        match state.phase {
            Phase::Running => state.waking = Time::NEVER,
            Phase::Waiting | Phase::WaitingEarly => {
                state.phase = Phase::Waiting;
                self.requeue(task, target);
            }
            Phase::Unseen | Phase::Blocked | Phase::Dead => {
                state.wakeups += 1;
                self.wakeup_new(task, target);
            }
        }
    }

    fn wakeup_new(&mut self, task: TaskId, target: CpuId) {
        if task == TaskId::NONE {
            return;
        }
        let now = self.now;
        self.totals.wakeups_without_waking += 1;
        let state = self.task(task);
        match state.phase {
            Phase::Unseen => state.first = now,
            Phase::Dead => self.oddities.after_exit += 1,
            Phase::Blocked => {}
            Phase::Running | Phase::Waiting | Phase::WaitingEarly => return,
        }
        self.make_wait(task, target);
    }

    #[inline]
    fn make_wait(&mut self, task: TaskId, target: CpuId) {
        let now = self.now;
        let state = &mut self.tasks[task.index()];
        (state.phase, state.since, state.queue) = (Phase::Waiting, now, target);
        self.join(target);
    }

    // Ready queues and idleness.

    /// A waiting task waits on another CPU from now on.
    #[inline]
    fn requeue(&mut self, task: TaskId, to: CpuId) {
        if task == TaskId::NONE {
            return;
        }
        let state = self.task(task);
        let from = std::mem::replace(&mut state.queue, to);
        if state.phase.waits() && from != to {
            self.leave(from);
            self.join(to);
        }
    }

    fn leave_queue(&mut self, task: TaskId) {
        let state = &self.tasks[task.index()];
        if state.phase.waits() {
            self.leave(state.queue);
        }
    }

    #[inline]
    fn join(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = self.cpu(cpu);
        state.settle(now);
        state.waiting += 1;
        self.waiting += 1;
    }

    #[inline]
    fn leave(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.settle(self.now);
        state.waiting -= 1;
        self.waiting -= 1;
    }

    #[inline]
    fn begin_idle(&mut self, cpu: CpuId) {
        let (now, waited) = (self.now, self.totals.time_waiting);
        let state = &mut self.cpus[cpu.index()];
        if !state.is_idle {
            (state.is_idle, state.idle_since, state.waste_mark) = (true, now, waited);
            self.idle += 1;
        }
    }

    #[inline]
    fn end_idle(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if state.is_idle {
            state.is_idle = false;
            state.idle += self.now.since(state.idle_since);
            self.totals.idle_waste += self.totals.time_waiting - state.waste_mark;
            self.idle -= 1;
        }
    }

    // The rest.

    #[inline]
    fn overhead(&mut self, task: TaskId, kind: OverheadKind, spent: Nanos) {
        self.totals.overhead[kind as usize] += spent;
        self.totals.overheads += 1;
        if task != TaskId::NONE {
            self.task(task).overhead += spent;
        }
    }

    fn job_complete(&mut self, task: TaskId, demand: Nanos) {
        match self.jobs.complete(task) {
            Some(release) if !self.task(task).excluded => self.distributions.record_job(self.now.since(release), demand),
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
    }
}
