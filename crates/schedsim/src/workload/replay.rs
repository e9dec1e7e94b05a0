//! Converts a recorded trace to a workload: each task's own work and its dependencies.
//!
//! [`ReplayBuilder`] observes the events of a recording and writes a [`Script`](super::Script) for
//! each task. A CPU burst is a task's run time between two sleeps, however often it was preempted.
//! A sleep that another task ended is a dependency: `Wait` here, `Wake` at the same point of the
//! waker's own work. Any other is a pause of the recorded length. The rules and their errors are in
//! docs/METHODOLOGY.md, "From trace to workload".
//!
//! ```
//! use schedsim::trace::{Event, EventKind, Observer, PrevState, TaskInfo};
//! use schedsim::workload::{Action, Recorded, ReplayBuilder, ReplayOptions};
//! use schedsim::{CpuId, Nanos, TaskId, Time};
//!
//! let switch = |time, prev, next, prev_state| Event {
//!     time: Time(time),
//!     cpu: CpuId(0),
//!     kind: EventKind::SchedSwitch { prev, next, prev_state },
//! };
//! let mut builder = ReplayBuilder::new(ReplayOptions::default());
//! builder.events(&[
//!     switch(10, TaskId::NONE, TaskId(0), PrevState::Runnable),
//!     switch(60, TaskId(0), TaskId::NONE, PrevState::Dead),
//! ]);
//! let tasks = [TaskInfo { name: "t".into(), pid: 7, tgid: 7, prio: 120 }];
//! let (end, switch_cost) = (Time(60), Nanos(2));
//! let recorded = Recorded { tasks: &tasks, cpus: 1, end, switch_cost, recorders: &[] };
//! let (workload, report) = builder.finish(recorded);
//! let step = workload.tasks[0].script.next(&mut 0).unwrap();
//! assert_eq!((step.run, step.then), (Nanos(48), Action::Exit));
//! assert_eq!(report.bursts, 1);
//! ```

mod assemble;
mod calls;
mod carriers;
mod event_loops;
mod files;
mod futexes;
mod groups;
mod kernel_threads;
mod latches;
mod log;
mod monitors;
mod outside;
mod report;
mod settings;
mod sleeps;
mod task;
mod until_ended;
mod verdict;
mod within;

pub use kernel_threads::is_kernel_thread_name;
pub use report::{EdgeCounts, Explained, Outside, ReplayReport};
pub use until_ended::UntilEnded;
pub use within::Within;

use super::{Shared, Start, Workload};
use crate::trace::{Call, Event, EventKind, Observer, PrevState, TaskInfo, WakeContext};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use log::{Deed, Kind};
use std::collections::BTreeMap;
use task::{Pending, Status, Task};

/// Facts that the recording lacks.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// The affinity of tasks, which scheduling events do not show; the first match of a task
    /// counts.
    pub affinities: Vec<(TaskMatch, CpuSet)>,
    /// Use the calls of the recording, if it has any: replay the program, not the schedule.
    pub program: bool,
    /// Keep conditions and semaphores as tokens: as counters they stall.
    pub locks_as_tokens: bool,
    /// What becomes of the tasks that are not of the program, if the recording's calls show which
    /// these are.
    pub background: BackgroundOf,
    /// The speed of each recorded CPU, of the fastest; without them all are alike. Run times are
    /// those of the fastest.
    pub speeds: Vec<f64>,
}

/// What becomes of tasks beside a recorded program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackgroundOf {
    /// They do what they did.
    #[default]
    Recorded,
    /// They are drawn anew in each run, as stationary processes.
    Fitted,
    /// They are left out.
    Nothing,
}

/// Matches tasks of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskMatch {
    /// All tasks of this name.
    Name(String),
    /// The tasks of this thread id.
    Pid(u32),
    /// All tasks of this process.
    Process(u32),
}

impl TaskMatch {
    fn fits(&self, task: &TaskInfo) -> bool {
        match self {
            TaskMatch::Name(name) => *name == task.name,
            TaskMatch::Pid(pid) => *pid == task.pid,
            TaskMatch::Process(tgid) => *tgid == task.tgid,
        }
    }
}

/// Facts known at the end of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The identity of each `TaskId`.
    pub tasks: &'a [TaskInfo],
    /// CPUs of the recorded machine.
    pub cpus: u16,
    /// The time of the last event.
    pub end: Time,
    /// The cost of a switch. Each recorded run contains the switch that began it, and the engine
    /// will charge it again, so it is subtracted.
    pub switch_cost: Nanos,
    /// The names of programs that may have made it. Such a task that was there at the start did.
    pub recorders: &'a [&'a str],
}

/// Builds a workload from a recording's events.
#[derive(Debug, Default)]
pub struct ReplayBuilder {
    options: ReplayOptions,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// The mean of all completely recorded runs, as the guess for a run with an unseen start.
    runs: Mean,
    report: ReplayReport,
    /// The object of the call in which the next event happens.
    within: Option<(TaskId, u32)>,
    edges: Vec<carriers::Edge>,
    /// What was done to mutexes and conditions.
    acts: Vec<monitors::Act>,
    /// Sleeps that a barrier or a thread's end may explain.
    waits: Vec<carriers::Edge>,
    /// By device: the sleeps for it.
    requests: BTreeMap<u32, Vec<files::Request>>,
    /// The sleeps for pages.
    paged: Vec<files::Request>,
    latches: latches::Latches,
    shared: Shared,
    kernel_work: KernelWork,
    /// Whether any wakeup was recorded that ends a sleep.
    has_wakeups: bool,
}

/// What the scheduler's work in a task's calls takes, in the mean. It is taken off the task's own
/// work, because the engine charges it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelWork {
    /// In each call that blocks.
    pub block: Nanos,
    /// For each task that is woken.
    pub wake: Nanos,
    /// Each time that a task is preempted.
    pub preempt: Nanos,
}

/// A CPU of the recorded machine.
#[derive(Debug, Default)]
struct Cpu {
    current: Current,
    /// When it last switched.
    switched: Time,
    /// The start of the current run was not recorded.
    guessed: bool,
    /// Wakings from here while the CPU seemed idle. Some recordings lack the events of idle CPUs,
    /// and with them the switch to the task that did the waking. The next switch away from that
    /// task shows it.
    unclaimed: Vec<Unclaimed>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Current {
    /// Nothing was seen yet.
    #[default]
    Unknown,
    Idle,
    Task(TaskId),
}

/// A waking with a waker that is not known yet, and the position of the ended sleep in the log of
/// the woken task.
#[derive(Debug)]
struct Unclaimed {
    time: Time,
    task: TaskId,
    kind: Kind,
    at: u32,
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: Nanos) {
        self.sum = self.sum.saturating_add(value.0);
        self.count = self.count.saturating_add(1);
    }

    fn get(&self) -> Option<Nanos> {
        self.sum.checked_div(u64::from(self.count)).map(Nanos)
    }
}

impl Observer for ReplayBuilder {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            self.event(event);
        }
    }

    fn hears_calls(&self) -> bool {
        self.options.program
    }

    fn call(&mut self, call: &Call) {
        if self.options.program {
            self.called(call);
        }
    }
}

impl ReplayBuilder {
    /// A builder without events.
    pub fn new(options: ReplayOptions) -> ReplayBuilder {
        ReplayBuilder { options, ..ReplayBuilder::default() }
    }

    /// The objects that the recording's operations name: needed if it is replayed as a program.
    pub fn share(&mut self, shared: Shared) {
        self.shared = shared;
    }

    /// Takes the scheduler's work in calls off the runs of tasks.
    pub fn take_off(&mut self, work: KernelWork) {
        self.kernel_work = work;
    }

    /// The workload of the recording, and what is uncertain about it.
    ///
    /// Its tasks have the recording's ids. Tasks that have no place in `recorded.tasks` get an
    /// empty name.
    pub fn finish(mut self, recorded: Recorded) -> (Workload, ReplayReport) {
        for cpu in 0..self.cpus.len() {
            if let Current::Task(task) = self.cpus[cpu].current {
                self.tasks[task.index()].charge(recorded.end);
                self.report.running_at_the_end += 1;
            }
        }
        self.tasks.resize_with(self.tasks.len().max(recorded.tasks.len()), Task::default);
        if !self.has_wakeups {
            self.tasks.iter_mut().for_each(Task::start_where_seen);
        }
        let mut shared = std::mem::take(&mut self.shared);
        let pages = self.device_of_pages(&shared);
        self.count_channels(&mut shared);
        self.find_last_users();
        let monitors = self.find_monitors(&mut shared);
        let doubted = self.doubt(&shared, recorded.tasks, &monitors);
        let placed = latches::Placed::new(&self.latches, (&self.paged, pages), &mut shared);
        let kernel_work = self.kernel_work;
        let program = assemble::Program { shared, doubted, monitors, placed, kernel_work };
        assemble::assemble(self.tasks, program, &self.options, recorded, self.report)
    }

    fn event(&mut self, event: &Event) {
        let Event { time, cpu, kind } = *event;
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, Cpu::default);
        }
        match kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let object = self.object_of(prev);
                if self.meet(prev) {
                    self.tasks[prev.index()].calls.asleep_on =
                        object.filter(|_| prev_state == PrevState::Blocked);
                    self.is_on(cpu, prev, time);
                    self.switched_out(cpu, prev, prev_state, time);
                } else {
                    self.is_idle(cpu);
                }
                if self.meet(next) {
                    self.switched_in(cpu, next, time);
                } else {
                    self.cpus[cpu.index()].current = Current::Idle;
                }
                self.cpus[cpu.index()].switched = time;
            }
            EventKind::SchedWaking { task, target, context } if self.meet(task) => {
                self.has_wakeups = true;
                self.tasks[task.index()].live_on(target);
                self.waking(cpu, task, context, time);
            }
            EventKind::SchedWakeup { task, target } if self.meet(task) => {
                self.has_wakeups = true;
                self.tasks[task.index()].live_on(target);
                self.wakeup(task, time);
            }
            EventKind::SchedWakeupNew { task, target } if self.meet(task) => {
                self.tasks[task.index()].created_on.get_or_insert(cpu);
                self.tasks[task.index()].live_on(target);
                self.wakeup_new(task, time);
            }
            EventKind::SchedProcessFork { parent, child }
                if self.meet(parent) && self.meet(child) =>
            {
                self.is_on(cpu, parent, time);
                self.fork(parent, child, time);
            }
            EventKind::SchedProcessExec { task } if self.meet(task) => self.is_on(cpu, task, time),
            EventKind::SchedProcessExit { task } if self.meet(task) => {
                self.tasks[task.index()].exits = true;
                let parent = self.tasks[task.index()].parent;
                if let Some(parent) = self.tasks.get_mut(parent.index()) {
                    parent.calls.ended = Some(task);
                }
                self.is_on(cpu, task, time);
            }
            EventKind::SchedMigrateTask { task, .. } => _ = self.meet(task),
            _ => {}
        }
    }

    /// Makes room for a task; returns false for the idle task and for ids that do not fit a script.
    fn meet(&mut self, task: TaskId) -> bool {
        if task.index() < self.tasks.len() {
            return true;
        }
        let fits = task.0 < log::TASK_LIMIT;
        if fits {
            self.tasks.resize_with(task.index() + 1, Task::default);
        }
        fits
    }

    // Who runs.

    /// An event shows that `task` runs on `cpu`. If that is new, its switch-in was not recorded.
    fn is_on(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        if self.cpus[cpu.index()].current == Current::Task(task) {
            return;
        }
        self.displace(cpu);
        self.leave_other_cpu(task);
        let state = &self.cpus[cpu.index()];
        let at_start = state.current == Current::Unknown;
        let free_since = self.tasks[task.index()].since;
        let latest = state
            .unclaimed
            .iter()
            .find(|waking| waking.time > free_since)
            .map_or(now, |first| first.time);
        let mut earliest = state.switched.max(self.tasks[task.index()].since).min(latest);
        match self.tasks[task.index()].status {
            Status::Unknown if at_start => {} // it has run since the recording began
            Status::Ready | Status::Running | Status::Unborn => self.report.unseen_switch_ins += 1,
            Status::Unknown | Status::Asleep => {
                // Neither its waking nor its switch-in was recorded: assume that it ran as long as
                // usual.
                self.report.unseen_switch_ins += 1;
                self.report.unseen_wakings += 1;
                self.report.uncertain_run += latest.since(earliest);
                let usual =
                    self.tasks[task.index()].runs.get().or(self.runs.get()).unwrap_or(Nanos::ZERO);
                earliest = Time(now.0.saturating_sub(usual.0)).clamp(earliest, latest);
                self.tasks[task.index()].wake(TaskId::NONE, Kind::Unknown, earliest);
            }
        }
        let speed = self.speed(cpu);
        self.tasks[task.index()].switch_in(cpu, speed, earliest);
        let state = &mut self.cpus[cpu.index()];
        state.current = Current::Task(task);
        state.guessed = true;
        for waking in std::mem::take(&mut state.unclaimed) {
            // Its later deeds on another CPU, or at the same moment, would precede the waking in
            // its log: such a waking is not its own.
            if waking.task != task && waking.time > free_since {
                self.tasks[waking.task.index()].log.name_waker(waking.at, task);
                self.tasks[task.index()].charge(waking.time);
                let (woken, kind) = (waking.task, waking.kind);
                self.tasks[task.index()].put(Deed::Woke { task: woken, kind });
            }
        }
    }

    /// An event shows that `cpu` is idle: its wakings came from interrupts.
    fn is_idle(&mut self, cpu: CpuId) {
        self.displace(cpu);
        self.cpus[cpu.index()].unclaimed.clear();
    }

    /// If a task seemed to run on `cpu`, its switch-out was not recorded. Its run ends when it was
    /// last seen there.
    fn displace(&mut self, cpu: CpuId) {
        if let Current::Task(task) = self.cpus[cpu.index()].current {
            self.report.unseen_switch_outs += 1;
            self.tasks[task.index()].status = Status::Ready;
            let state = &mut self.cpus[cpu.index()];
            state.current = Current::Idle;
            state.switched = state.switched.max(self.tasks[task.index()].since);
        }
    }

    fn leave_other_cpu(&mut self, task: TaskId) {
        if self.tasks[task.index()].status == Status::Running {
            let other = self.tasks[task.index()].cpu;
            debug_assert_eq!(self.cpus[other.index()].current, Current::Task(task));
            self.displace(other);
        }
    }

    fn switched_out(&mut self, cpu: CpuId, task: TaskId, prev_state: PrevState, now: Time) {
        let state = &self.cpus[cpu.index()];
        let task_state = &mut self.tasks[task.index()];
        if !state.guessed && state.current != Current::Unknown {
            let run = now.since(state.switched);
            task_state.runs.add(run);
            self.runs.add(run);
        }
        task_state.charge(now);
        task_state.since = now;
        task_state.dead = prev_state == PrevState::Dead;
        task_state.status =
            if prev_state == PrevState::Runnable { Status::Ready } else { Status::Asleep };
        // It was woken while it went to sleep.
        if task_state.status == Status::Asleep
            && let Some(Pending { waker, kind, at, object }) = task_state.pending.take()
        {
            let slept = task_state.wake(waker, kind, now);
            task_state.calls.slept(slept, (now, Nanos::ZERO), (waker, at, kind), object);
        }
        self.cpus[cpu.index()].current = Current::Idle;
    }

    fn speed(&self, cpu: CpuId) -> f64 {
        self.options.speeds.get(cpu.index()).copied().unwrap_or(1.0)
    }

    fn switched_in(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let speed = self.speed(cpu);
        self.leave_other_cpu(task);
        let state = &mut self.tasks[task.index()];
        if state.status == Status::Unknown {
            state.seen = now;
        }
        if state.status == Status::Asleep {
            if state.dead {
                state.dead = false; // it was preempted on its way out
            } else {
                self.report.unseen_wakings += 1;
                state.wake(TaskId::NONE, Kind::Unknown, now);
            }
        }
        state.switch_in(cpu, speed, now);
        self.cpus[cpu.index()].current = Current::Task(task);
        self.cpus[cpu.index()].guessed = false;
        self.cpus[cpu.index()].unclaimed.clear();
    }

    // Wakings.

    fn waking(&mut self, cpu: CpuId, task: TaskId, context: WakeContext, now: Time) {
        let kind = match context {
            WakeContext::Task => Kind::Task,
            WakeContext::Softirq => Kind::Softirq,
            WakeContext::Hardirq | WakeContext::Unknown => Kind::Unknown,
        };
        let current = self.cpus[cpu.index()].current;
        let waker = match current {
            Current::Task(waker) if waker != task && context != WakeContext::Hardirq => waker,
            _ => TaskId::NONE,
        };
        let object = self.object_of(waker);
        let state = &self.tasks[task.index()];
        let sleeps = state.may_sleep();
        if !sleeps && state.pending.is_some() {
            return;
        }
        // How late the waker was, as it waited for a CPU after that time.
        let (woken, delay) =
            self.tasks.get(waker.index()).map_or((Time::ZERO, Nanos::ZERO), |of| of.lateness());
        let late = |start: Time| if woken >= start { delay } else { Nanos::ZERO };
        let woken_at = if waker == TaskId::NONE {
            0
        } else {
            let waker = &mut self.tasks[waker.index()];
            waker.charge(now);
            let at = waker.put(Deed::Woke { task, kind });
            if object.is_some() {
                waker.calls.woke(at, now);
            }
            at
        };
        let state = &mut self.tasks[task.index()];
        let ran_on = state.cpu;
        if !sleeps {
            state.pending = Some(Pending { waker, kind, at: woken_at, object });
            return;
        }
        let start = state.since;
        let at = state.wake(waker, kind, now);
        let length = now.since(start).saturating_sub(late(start));
        state.calls.on = Some((cpu, ran_on));
        state.calls.slept(at, (start, length), (waker, woken_at, kind), object);
        if !matches!(current, Current::Task(_)) && context != WakeContext::Hardirq {
            self.cpus[cpu.index()].unclaimed.push(Unclaimed { time: now, task, kind, at });
        }
    }

    fn wakeup(&mut self, task: TaskId, now: Time) {
        let state = &mut self.tasks[task.index()];
        if state.may_sleep() {
            self.report.unseen_wakings += 1;
            state.wake(TaskId::NONE, Kind::Unknown, now);
        } else if let Some(pending) = state.pending.take() {
            // It had not slept, and now will not.
            self.report.wakings_without_sleep += 1;
            if pending.waker != TaskId::NONE {
                self.tasks[pending.waker.index()].log.forget_waking(pending.at);
            }
        }
    }

    // Birth.

    fn wakeup_new(&mut self, task: TaskId, now: Time) {
        let state = &mut self.tasks[task.index()];
        if state.status == Status::Unknown {
            state.start = Start::At(now);
        }
        if matches!(state.status, Status::Unknown | Status::Unborn) {
            state.status = Status::Ready;
            state.since = now;
        }
    }

    fn fork(&mut self, parent: TaskId, child: TaskId, now: Time) {
        if self.tasks[child.index()].status != Status::Unknown || parent == child {
            return; // a task is born once
        }
        // Of a task whose calls are not recorded nothing says that it waited for its last child.
        let calls = &self.tasks[parent.index()].calls;
        if calls.traced && calls.forked.is_some() {
            self.before_call(parent, now);
        }
        self.tasks[parent.index()].charge(now);
        self.tasks[parent.index()].put(Deed::Forked(child));
        self.tasks[parent.index()].calls.forked = Some((child, now));
        let settings = self.tasks[parent.index()].settings.inherited();
        let state = &mut self.tasks[child.index()];
        state.settings = settings;
        state.status = Status::Unborn;
        state.start = Start::Forked;
        state.since = now;
        state.parent = parent;
        state.born = now;
    }
}
