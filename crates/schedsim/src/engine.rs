//! Advances time: the one place where something happens.
//!
//! A discrete-event simulation of a [`Workload`] on a [`Machine`] under a [`Policy`]. What happens next is the earliest of: a task's
//! start or the end of a sleep (equal times in order of task id), then a CPU's next own event (equal times in order of CPU number). The order is total, so a seed
//! determines the trace.

mod calendar;
mod stall;

pub use stall::Stall;

use crate::policy::{Context, Effect, Enqueue, Policy, Stop, TaskView, Wake};
use crate::trace::{EventKind, OverheadKind, PrevState, Trace, WakeContext};
use crate::workload::{Action, Start, Workload};
use crate::{CpuId, Machine, Nanos, Random, TaskId, Time};
use calendar::{CpuTimes, Timers};
use std::fmt;

/// How a simulation is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seeds the random numbers that the policy may draw.
    pub seed: u64,
    /// Stop here even if tasks are left.
    pub until: Time,
}

/// What a simulation came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// When it ended.
    pub end: Time,
    /// Dispatches, ends of bursts and slices, wakeups and starts: what was simulated.
    pub events: u64,
    /// CPU time spent on the tasks' own work.
    pub useful: Nanos,
    /// Whether the policy drew random numbers: if not, another seed gives the same trace.
    pub random: bool,
}

/// Why a simulation could not go on.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// The policy did what no policy may do.
    Policy {
        /// When.
        time: Time,
        /// What it did.
        message: String,
    },
    /// Tasks wait for one another.
    Stalled(Stall),
}

/// Runs `workload` under `policy` until every task has ended or sleeps for ever.
///
/// # Errors
/// If the policy breaks the contract of [`Policy`], or if tasks wait for one another for ever.
pub fn simulate<P: Policy>(workload: &Workload, machine: &Machine, policy: P, options: Options, trace: Trace) -> Result<Outcome, Error> {
    let mut engine = Engine::new(workload, machine, policy, options, trace);
    let outcome = engine.run();
    engine.trace.flush();
    outcome
}

/// The state of a simulation.
struct Engine<'w, 't, P> {
    workload: &'w Workload,
    policy: P,
    cx: Context,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    cpu_times: CpuTimes,
    timers: Timers,
    /// CPUs that shall dispatch before time goes on.
    resched: Vec<CpuId>,
    tick: Option<Nanos>,
    until: Time,
    trace: Trace<'t>,
    events: u64,
    useful: Nanos,
}

/// A task as the engine sees it.
#[derive(Clone, Copy, Debug)]
struct Task {
    status: Status,
    /// What follows when the work is done.
    then: Action,
    /// Work of the current step that is left.
    work: Nanos,
    /// Migration cost to be paid before the work goes on.
    debt: Nanos,
    /// The next step of the script.
    cursor: u32,
    /// Wakes that came before their wait.
    tokens: u32,
    /// Whether it has ever run, so that it can migrate.
    has_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Unborn,
    Ready,
    Running,
    Sleeping,
    Waiting,
    Dead,
}

/// A CPU as the engine sees it; what it runs is in the context.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    state: CpuState,
    /// Whom it last switched to.
    occupant: TaskId,
    /// From when on the running task's work has not been accounted for; in the future while the switch itself takes time.
    run_from: Time,
    slice_end: Time,
    next_tick: Time,
    /// It shall dispatch as soon as it can.
    resched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CpuState {
    Idle,
    /// Kicked; leaving idle takes until `run_from`.
    LeavingIdle,
    Busy,
}

impl<'w, 't, P: Policy> Engine<'w, 't, P> {
    fn new(workload: &'w Workload, machine: &Machine, policy: P, options: Options, trace: Trace<'t>) -> Self {
        let idle = Cpu {
            state: CpuState::Idle,
            occupant: TaskId::NONE,
            run_from: Time::ZERO,
            slice_end: Time::NEVER,
            next_tick: Time::NEVER,
            resched: false,
        };
        let unborn = Task {
            status: Status::Unborn,
            then: Action::Continue,
            work: Nanos::ZERO,
            debt: Nanos::ZERO,
            cursor: 0,
            tokens: 0,
            has_run: false,
        };
        let mut cx = Context::new(machine.clone(), workload.cpu_sets.clone(), Random::new(options.seed));
        cx.tasks.extend(workload.tasks.iter().map(|task| TaskView {
            prio: task.info.prio,
            affinity: task.affinity,
            cpu: CpuId(task.cpu.0 % machine.cpus),
        }));
        let mut timers = Timers::new();
        for (task, spec) in workload.ids().zip(&workload.tasks) {
            if let Start::At(time) = spec.start {
                timers.insert(time, task);
            }
        }
        Engine {
            tick: policy.needs().tick,
            workload,
            policy,
            cx,
            tasks: vec![unborn; workload.tasks.len()],
            cpus: vec![idle; usize::from(machine.cpus)],
            cpu_times: CpuTimes::new(machine.cpus),
            timers,
            resched: Vec::new(),
            until: options.until,
            trace,
            events: 0,
            useful: Nanos::ZERO,
        }
    }

    fn run(&mut self) -> Result<Outcome, Error> {
        loop {
            let (timer, (cpu_time, cpu)) = (self.timers.earliest(), self.cpu_times.earliest());
            let now = timer.min(cpu_time);
            if now > self.until || now == Time::NEVER {
                break;
            }
            self.cx.now = now;
            if timer <= cpu_time {
                let task = self.timers.pop();
                match self.tasks[task.index()].status {
                    Status::Unborn => self.start(task, None),
                    _ => self.wake(task, None),
                }
            } else {
                self.cpu_event(cpu);
            }
            while let Some(cpu) = self.resched.pop() {
                self.reschedule(cpu);
            }
            if let Some(message) = self.cx.failure.take() {
                return Err(Error::Policy { time: now, message });
            }
        }
        if self.until == Time::NEVER {
            self.expect_all_done()?;
        } else {
            self.cx.now = self.until;
            self.cx.machine.all().for_each(|cpu| self.account(cpu));
        }
        Ok(Outcome { end: self.cx.now, events: self.events, useful: self.useful, random: self.cx.random.drawn() })
    }

    /// Nothing will happen any more: is nobody left who wanted something to happen?
    fn expect_all_done(&self) -> Result<(), Error> {
        if let Some(task) = self.workload.ids().find(|task| self.tasks[task.index()].status == Status::Ready) {
            let message = format!("{} is ready, all CPUs idle, and it was never dispatched: the policy lost it", self.name(task));
            return Err(Error::Policy { time: self.cx.now, message });
        }
        let left = self.workload.ids().filter(|task| {
            let state = &self.tasks[task.index()];
            state.status == Status::Waiting && self.workload.tasks[task.index()].script.steps_from(state.cursor).next().is_some()
        });
        let waiting: Vec<(TaskId, u32)> = left.map(|task| (task, self.tasks[task.index()].cursor)).collect();
        if waiting.is_empty() { Ok(()) } else { Err(Error::Stalled(Stall::new(self.workload, self.cx.now, &waiting))) }
    }

    fn name(&self, task: TaskId) -> String {
        format!("task {} ({})", task.0, self.workload.tasks[task.index()].info.name)
    }

    // What happens on a CPU.

    fn cpu_event(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if state.state == CpuState::LeavingIdle {
            let spent = self.cx.machine.idle_exit;
            self.trace.push(self.cx.now, cpu, EventKind::Overhead { task: TaskId::NONE, kind: OverheadKind::IdleExit, spent });
            self.resched.push(cpu);
            return;
        }
        if state.resched {
            self.resched.push(cpu);
            return;
        }
        let (slice_end, next_tick) = (state.slice_end, state.next_tick);
        self.account(cpu);
        let task = self.cx.current[cpu.index()];
        let now = self.cx.now;
        if self.tasks[task.index()].work == Nanos::ZERO && self.tasks[task.index()].debt == Nanos::ZERO {
            self.events += 1;
            self.act(cpu, task);
        } else if slice_end <= now {
            self.events += 1;
            self.dispatch(cpu, Some(Stop::SliceOver));
        } else {
            debug_assert_eq!(next_tick, now);
            self.cpus[cpu.index()].next_tick = self.tick_after(now);
            self.plan(cpu);
            let effect = self.policy.tick(&mut self.cx, cpu, task);
            self.apply(effect);
        }
    }

    /// The running task has done the work of its step: it acts, and goes on with the next step unless it leaves the CPU.
    fn act(&mut self, cpu: CpuId, task: TaskId) {
        loop {
            match self.tasks[task.index()].then {
                Action::Continue => {}
                Action::Wake(other) => self.give_token(other, cpu),
                Action::Fork(child) => {
                    self.trace.push(self.cx.now, cpu, EventKind::SchedProcessFork { parent: task, child });
                    self.start(child, Some(cpu));
                }
                Action::Sleep(pause) => {
                    self.timers.insert(self.cx.now + pause, task);
                    return self.leave(cpu, task, Status::Sleeping);
                }
                Action::Wait => {
                    let tokens = &mut self.tasks[task.index()].tokens;
                    if *tokens == 0 {
                        return self.leave(cpu, task, Status::Waiting);
                    }
                    *tokens -= 1;
                }
                Action::Yield => {
                    self.next_step(task);
                    return self.dispatch(cpu, Some(Stop::Yielded));
                }
                Action::Exit => {
                    self.trace.push(self.cx.now, cpu, EventKind::SchedProcessExit { task });
                    return self.leave(cpu, task, Status::Dead);
                }
            }
            self.next_step(task);
            if self.tasks[task.index()].work > Nanos::ZERO {
                return self.plan(cpu);
            }
        }
    }

    /// The running task leaves the CPU, not runnable.
    fn leave(&mut self, cpu: CpuId, task: TaskId, status: Status) {
        self.tasks[task.index()].status = status;
        self.dispatch(cpu, Some(if status == Status::Dead { Stop::Exited } else { Stop::Blocked }));
    }

    /// Loads the next step; a script that is at its end goes on with an exit.
    fn next_step(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        let step = self.workload.tasks[task.index()].script.next(&mut state.cursor);
        (state.work, state.then) = step.map_or((Nanos::ZERO, Action::Exit), |step| (step.run, step.then));
    }

    // How tasks become runnable.

    /// A task comes into being, forked on a CPU or from outside.
    fn start(&mut self, task: TaskId, waker: Option<CpuId>) {
        self.events += 1;
        if let Some(cpu) = waker {
            self.cx.tasks[task.index()].cpu = cpu;
        }
        self.next_step(task);
        self.policy.init_task(&mut self.cx, task);
        // A task that begins with a pause does not have to run first to begin it.
        let state = &mut self.tasks[task.index()];
        match (state.work, state.then) {
            (Nanos::ZERO, Action::Sleep(pause)) => {
                state.status = Status::Sleeping;
                self.timers.insert(self.cx.now + pause, task);
            }
            (Nanos::ZERO, Action::Wait) if state.tokens == 0 => state.status = Status::Waiting,
            _ => return self.make_ready(task, Wake { new: true, waker }),
        }
        // It is placed now all the same, as the policies count tasks where they are placed.
        self.cx.tasks[task.index()].cpu = self.policy.select_cpu(&mut self.cx, task, Wake { new: true, waker });
    }

    /// `task` is given a token by the task running on `waker`.
    fn give_token(&mut self, task: TaskId, waker: CpuId) {
        if self.tasks[task.index()].status == Status::Waiting {
            self.wake(task, Some(waker));
        } else {
            self.tasks[task.index()].tokens += 1;
        }
    }

    /// A sleep or a wait is over; the task goes on with its next step.
    fn wake(&mut self, task: TaskId, waker: Option<CpuId>) {
        self.events += 1;
        self.next_step(task);
        self.make_ready(task, Wake { new: false, waker });
    }

    fn make_ready(&mut self, task: TaskId, wake: Wake) {
        let last = self.cx.tasks[task.index()].cpu;
        let target = self.policy.select_cpu(&mut self.cx, task, wake);
        let kind = match wake {
            Wake { new: true, .. } => EventKind::SchedWakeupNew { task, target },
            Wake { waker: Some(_), .. } => EventKind::SchedWaking { task, target, context: WakeContext::Task },
            Wake { waker: None, .. } => EventKind::SchedWaking { task, target, context: WakeContext::Hardirq },
        };
        self.trace.push(self.cx.now, wake.waker.unwrap_or(last), kind);
        self.enqueue(task, target, if wake.new { Enqueue::New } else { Enqueue::Wakeup });
    }

    fn enqueue(&mut self, task: TaskId, cpu: CpuId, why: Enqueue) {
        self.tasks[task.index()].status = Status::Ready;
        let effect = self.policy.enqueue(&mut self.cx, task, cpu, why);
        self.apply(effect);
    }

    /// Lets a CPU dispatch soon.
    fn apply(&mut self, effect: Effect) {
        let (Effect::Kick(cpu) | Effect::Preempt(cpu)) = effect else {
            return;
        };
        let state = &mut self.cpus[cpu.index()];
        match state.state {
            CpuState::Idle => {
                state.state = CpuState::LeavingIdle;
                self.cx.idle.remove(cpu);
                if self.cx.machine.idle_exit == Nanos::ZERO {
                    self.resched.push(cpu);
                } else {
                    state.run_from = self.cx.now + self.cx.machine.idle_exit;
                    self.cpu_times.set(cpu, state.run_from);
                }
            }
            CpuState::Busy if matches!(effect, Effect::Preempt(_)) && !state.resched => {
                state.resched = true;
                if state.run_from > self.cx.now {
                    self.cpu_times.set(cpu, state.run_from); // a switch is not interrupted
                } else {
                    self.resched.push(cpu);
                }
            }
            CpuState::Busy | CpuState::LeavingIdle => {}
        }
    }

    // How a CPU goes from one task to the next.

    fn reschedule(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].state {
            CpuState::Idle => {}
            CpuState::LeavingIdle => self.dispatch(cpu, None),
            CpuState::Busy if self.cpus[cpu.index()].resched => {
                self.account(cpu);
                self.dispatch(cpu, Some(Stop::Preempted));
            }
            CpuState::Busy => {} // it has dispatched in the meantime
        }
    }

    /// Puts away what `cpu` runs, stopped for the reason `stop`, and lets the policy choose the next task.
    fn dispatch(&mut self, cpu: CpuId, stop: Option<Stop>) {
        let prev = self.cx.current[cpu.index()];
        if let Some(stop) = stop {
            self.cx.current[cpu.index()] = TaskId::NONE;
            self.policy.stopping(&mut self.cx, cpu, prev, stop);
            match stop.requeue() {
                Some(why) => self.enqueue(prev, cpu, why),
                None if stop == Stop::Exited => self.policy.exit_task(&mut self.cx, prev),
                None => {}
            }
        }
        self.events += 1;
        self.cpus[cpu.index()].resched = false;
        let choice = self.policy.dispatch(&mut self.cx, cpu);
        let next = choice.map_or(TaskId::NONE, |choice| choice.task);
        let occupant = self.cpus[cpu.index()].occupant;
        let mut run_from = self.cx.now;
        if next != occupant {
            let migrates = next != TaskId::NONE && self.tasks[next.index()].has_run && self.cx.tasks[next.index()].cpu != cpu;
            if migrates {
                self.tasks[next.index()].debt = self.cx.machine.migration_cost;
                let from = self.cx.tasks[next.index()].cpu;
                self.trace.push(self.cx.now, cpu, EventKind::SchedMigrateTask { task: next, from, to: cpu });
            }
            let prev_state = match stop {
                Some(Stop::Blocked) => PrevState::Blocked,
                Some(Stop::Exited) => PrevState::Dead,
                _ => PrevState::Runnable,
            };
            self.trace.push(self.cx.now, cpu, EventKind::SchedSwitch { prev: occupant, next, prev_state });
            self.cpus[cpu.index()].occupant = next;
            if next != TaskId::NONE {
                run_from += self.switch(cpu, next);
            }
        }
        match choice {
            Some(choice) => self.run_on(cpu, next, run_from, choice.slice),
            None => {
                self.cpus[cpu.index()].state = CpuState::Idle;
                self.cx.idle.insert(cpu);
                self.cpu_times.set(cpu, Time::NEVER);
            }
        }
        if (next == TaskId::NONE) != (occupant == TaskId::NONE) {
            let effect = self.policy.update_idle(&mut self.cx, cpu, next == TaskId::NONE);
            self.apply(effect);
        }
    }

    /// Charges for a switch to `next`.
    fn switch(&mut self, cpu: CpuId, next: TaskId) -> Nanos {
        let spent = self.cx.machine.switch_cost.min(self.until - self.cx.now);
        if spent > Nanos::ZERO {
            self.trace.push(self.cx.now, cpu, EventKind::Overhead { task: next, kind: OverheadKind::Switch, spent });
        }
        spent
    }

    fn run_on(&mut self, cpu: CpuId, task: TaskId, run_from: Time, slice: Nanos) {
        if self.tasks[task.index()].status != Status::Ready || slice == Nanos::ZERO {
            let state = self.tasks[task.index()].status;
            return self.cx.fail(format!("dispatched {} on CPU {} for {slice}, and it is {state:?}", self.name(task), cpu.0));
        }
        self.tasks[task.index()].status = Status::Running;
        self.tasks[task.index()].has_run = true;
        self.cx.tasks[task.index()].cpu = cpu;
        self.cx.current[cpu.index()] = task;
        let next_tick = self.tick_after(run_from);
        self.cpus[cpu.index()] =
            Cpu { state: CpuState::Busy, occupant: task, run_from, slice_end: run_from + slice, next_tick, resched: false };
        self.policy.running(&mut self.cx, cpu, task);
        self.plan(cpu);
    }

    /// When will something happen on this busy CPU?
    fn plan(&mut self, cpu: CpuId) {
        let state = &self.cpus[cpu.index()];
        let task = &self.tasks[self.cx.current[cpu.index()].index()];
        let done = state.run_from + task.debt + task.work;
        let next = if state.resched { state.run_from } else { done.min(state.slice_end).min(state.next_tick) };
        self.cpu_times.set(cpu, next);
    }

    fn tick_after(&self, time: Time) -> Time {
        self.tick.map_or(Time::NEVER, |tick| Time((time.0 / tick.0 + 1) * tick.0))
    }

    /// Accounts for what the task on `cpu` has done until now: first the cost of its migration, then its work.
    fn account(&mut self, cpu: CpuId) {
        let (now, task) = (self.cx.now, self.cx.current[cpu.index()]);
        let state = &mut self.cpus[cpu.index()];
        if task == TaskId::NONE || state.run_from >= now {
            return;
        }
        let ran = now - state.run_from;
        state.run_from = now;
        let task_state = &mut self.tasks[task.index()];
        let paid = ran.min(task_state.debt);
        task_state.debt -= paid;
        task_state.work -= ran - paid;
        self.useful += ran - paid;
        if paid > Nanos::ZERO {
            self.trace.push(now, cpu, EventKind::Overhead { task, kind: OverheadKind::Migration, spent: paid });
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Policy { time, message } => write!(f, "at {}: {message}", Nanos(time.0)),
            Error::Stalled(stall) => stall.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
