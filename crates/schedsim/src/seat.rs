//! The seat of a policy: the one place that enforces the contract between a policy and whoever drives it.
//!
//! The engine, a kernel ([`live`](crate::live)) and the replay of a recording each hold a policy in a [`Seat`] and call it through it. The seat keeps the policy's
//! [`Context`] and what each task does:
//!
//! ```text
//!            init_task        select_cpu          enqueue            dispatch           running
//!   Absent ───────────→ New ────────────→ Asleep ─────────→ Waiting ──────────→ Chosen ─────────→ Running
//!      ↑                                    │ ↑                │                                     │
//!      └────────────── exit_task ───────────┘ └──── dequeue ───┴───────────── stopping ──────────────┘
//! ```
//!
//! The policy's part ([`Rule`] has all of it, in [`Breach`] words): each CPU and each task that it names exists; it dispatches only a task that waits, to a CPU
//! on which that may run, for more than no time; an alarm is declared and not in the past; no task is lost. The answer of `select_cpu` must exist, and need not be allowed, as in
//! the kernel: it says in which queue the task waits, and a policy with one queue for all CPUs does not care.
//! The driver's part: calls come in the order of the picture, and time does not go back. It is checked of every driver but the engine, for which debug builds assert it.
//!
//! The first breach stays ([`Seat::breach`]). From then on the seat gives harmless answers (no effect, no task), so that a driver may look for a breach once per event
//! and not after each call. A run with a breach has no result.
//!
//! ```
//! use schedsim::policy::{Central, CentralOptions, Enqueue, Wake};
//! use schedsim::policy::TaskView;
//! use schedsim::seat::{Rule, Seat};
//! use schedsim::{CpuId, Machine, Nanos, TaskId};
//!
//! let policy = Central::new(readyq::RoundRobin::new(), CentralOptions::baseline(Nanos::from_millis(4)));
//! let (mut seat, task) = (Seat::new(policy, Machine::ideal(1), 1), TaskId(0));
//! seat.admit(task, TaskView::of(120));
//! seat.init_task(task);
//! let cpu = seat.select_cpu(task, Wake { new: true, waker: None });
//! let _ = seat.enqueue(task, cpu, Enqueue::New);
//! assert_eq!(seat.dispatch(cpu).map(|dispatch| dispatch.task), Some(task));
//! assert!(seat.breach().is_none());
//! let _ = seat.enqueue(task, cpu, Enqueue::Wakeup);
//! assert!(matches!(seat.breach().unwrap().rule, Rule::CallInOrder { .. }));
//! ```

mod breach;

pub use breach::{Breach, Callback, Found, Rule};

use crate::policy::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Scan, Stop, TaskView, Wake};
use crate::workload::Affinity;
use crate::{CpuId, CpuSet, Machine, Nanos, Random, TaskId, Time};
use std::fmt;
use std::marker::PhantomData;

/// A policy, its context, and the contract between it and its driver.
#[derive(Clone, Debug)]
pub struct Seat<P, D = Stranger> {
    driver: PhantomData<D>,
    policy: P,
    cx: Context,
    /// Whether the policy may ask for alarms.
    has_alarms: bool,
}

/// Who drives a policy.
pub trait Driver {
    /// Whether its part of the contract need not be checked in release builds: the engine keeps it, which has a cost of an instruction where others have one of ten.
    const IS_TRUSTED: bool;
}

/// A driver that may make any call.
#[derive(Clone, Copy, Debug)]
pub struct Stranger;

impl Driver for Stranger {
    const IS_TRUSTED: bool = false;
}

/// The simulator's engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine;

impl Driver for Engine {
    const IS_TRUSTED: bool = true;
}

/// What a task does, as its policy knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskState {
    /// It has not come yet, or has left.
    #[default]
    Absent,
    /// It has come, and `select_cpu` has not placed it yet.
    New,
    /// It sleeps, or has stopped and is about to be enqueued.
    Asleep,
    /// It waits in one of the policy's queues.
    Waiting,
    /// It was dispatched.
    Chosen,
    /// It runs.
    Running,
}

/// Why a run ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The contract was broken.
    Breach(Breach),
    /// A task asks for what cannot be: the workload's fault.
    Refused {
        /// When.
        time: Time,
        /// Which task, and what it asks for.
        message: String,
    },
}

impl<P: Policy> Seat<P> {
    /// `policy` on `machine`, on which no task is yet. `seed` is of the random numbers that the policy may draw.
    pub fn new(policy: P, machine: Machine, seed: u64) -> Seat<P> {
        Seat::with_context(policy, Context::new(machine, Vec::new(), Random::new(seed)))
    }
}

impl<P: Policy, D: Driver> Seat<P, D> {
    pub(crate) fn with_context(policy: P, cx: Context) -> Seat<P, D> {
        let Needs { tick, alarm, .. } = policy.needs();
        let has_alarms = alarm || cx.cgroups.iter().any(|cgroup| cgroup.max.is_some());
        let mut seat = Seat { driver: PhantomData, policy, cx, has_alarms };
        if tick == Some(Nanos::ZERO) {
            seat.breach_of(Callback::Needs, None, None, Rule::TickIsPositive);
        }
        seat
    }

    /// The policy, to read what it says of itself.
    #[inline(always)]
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// What the policy may know.
    #[inline(always)]
    pub fn cx(&self) -> &Context {
        &self.cx
    }

    /// Whether the policy may ask for alarms: if its needs say so, or if a group has a quota, which it learns of by and by.
    pub fn has_alarms(&self) -> bool {
        self.has_alarms
    }

    /// Whether the run has ended early: nothing that it came to counts.
    #[inline(always)]
    pub fn has_ended(&self) -> bool {
        self.cx.ended.is_some()
    }

    /// Why the run ended early, if it did.
    pub fn ended(&self) -> Option<&Ended> {
        self.cx.ended.as_deref()
    }

    /// The rule that was broken first, if one was.
    pub fn breach(&self) -> Option<&Breach> {
        match self.ended() {
            Some(Ended::Breach(breach)) => Some(breach),
            _ => None,
        }
    }

    /// What `task` does.
    #[inline(always)]
    pub fn state(&self, task: TaskId) -> TaskState {
        self.cx.tasks.get(task.index()).map_or(TaskState::Absent, |view| view.state)
    }

    /// The time is `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Time) {
        debug_assert!(!D::IS_TRUSTED || now >= self.cx.now);
        if !D::IS_TRUSTED && now < self.cx.now {
            return self.breach_of(Callback::Advance, None, None, Rule::ClockGoesForward { to: now });
        }
        self.cx.now = now;
    }

    /// Makes `task` known, which comes later, or comes again under its id. Ids are dense.
    pub fn admit(&mut self, task: TaskId, view: TaskView) {
        if task.index() >= self.cx.tasks.len() {
            self.cx.tasks.resize(task.index() + 1, TaskView::of(120));
        }
        if self.moves(Callback::InitTask, task, TaskState::Absent, TaskState::Absent) {
            self.cx.tasks[task.index()] = TaskView { state: TaskState::Absent, ..view };
        }
    }

    /// `task` is on `cpu` from now on, without having run there.
    #[inline(always)]
    pub(crate) fn put(&mut self, task: TaskId, cpu: CpuId) {
        self.cx.tasks[task.index()].cpu = cpu;
    }

    /// `task`, which was admitted, comes into being.
    #[inline(always)]
    pub fn init_task(&mut self, task: TaskId) {
        if self.moves(Callback::InitTask, task, TaskState::Absent, TaskState::New) {
            self.policy.init_task(&mut self.cx, task);
        }
    }

    /// `task`, which sleeps or has just stopped, leaves for good.
    #[inline(always)]
    pub fn exit_task(&mut self, task: TaskId) {
        if self.moves(Callback::ExitTask, task, TaskState::Asleep, TaskState::Absent) {
            self.policy.exit_task(&mut self.cx, task);
        }
    }

    /// Where `task`, which is new or sleeps, shall wait.
    #[inline(always)]
    pub fn select_cpu(&mut self, task: TaskId, wake: Wake) -> CpuId {
        if !self.moves(Callback::SelectCpu, task, if wake.new { TaskState::New } else { TaskState::Asleep }, TaskState::Asleep) {
            return CpuId(0);
        }
        let cpu = self.policy.select_cpu(&mut self.cx, task, wake);
        if cpu.0 < self.cx.machine.cpus {
            return cpu;
        }
        self.breach_of(Callback::SelectCpu, Some(task), Some(cpu), Rule::CpuExists { cpus: self.cx.machine.cpus });
        self.cx.tasks[task.index()].cpu
    }

    /// Lets the policy place `task`, which was somewhere before it was new to the policy: it is placed while it may run nowhere else.
    pub fn place_where_it_is(&mut self, task: TaskId) {
        let Some(view) = self.cx.tasks.get_mut(task.index()) else { return };
        let affinity = std::mem::replace(&mut view.affinity, Affinity::Pinned(view.cpu));
        let cpu = self.select_cpu(task, Wake { new: true, waker: None });
        let view = &mut self.cx.tasks[task.index()];
        (view.cpu, view.affinity) = (cpu, affinity);
    }

    /// `task`, which sleeps or has just stopped, waits on `cpu` from now on.
    #[inline(always)]
    pub fn enqueue(&mut self, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if !D::IS_TRUSTED && cpu.0 >= self.cx.machine.cpus {
            return self.cpu_in_no_order(Callback::Enqueue, cpu).unwrap_or(Effect::Nothing);
        }
        if !self.moves(Callback::Enqueue, task, TaskState::Asleep, TaskState::Waiting) {
            return Effect::Nothing;
        }
        let effect = self.policy.enqueue(&mut self.cx, task, cpu, why);
        self.checked(effect, Callback::Enqueue)
    }

    /// `task`, which waits, is taken away without having run.
    pub fn dequeue(&mut self, task: TaskId) {
        if self.moves(Callback::Dequeue, task, TaskState::Waiting, TaskState::Asleep) {
            self.policy.dequeue(&mut self.cx, task);
        }
    }

    /// What `cpu`, which runs nothing, shall run next.
    #[inline(always)]
    pub fn dispatch(&mut self, cpu: CpuId) -> Option<Dispatch> {
        if !D::IS_TRUSTED && self.cx.current.get(cpu.index()) != Some(&TaskId::NONE) {
            return self.cpu_in_no_order(Callback::Dispatch, cpu);
        }
        let dispatch = self.policy.dispatch(&mut self.cx, cpu)?;
        let Dispatch { task, slice } = dispatch;
        if self.state(task) != TaskState::Waiting || slice == Nanos::ZERO || !self.cx.allowed(task, cpu) {
            return self.undo_dispatch(cpu, dispatch);
        }
        self.cx.tasks[task.index()].state = TaskState::Chosen;
        Some(dispatch)
    }

    /// `task`, which was dispatched to `cpu`, is that CPU's from now on.
    pub fn occupy(&mut self, cpu: CpuId, task: TaskId) {
        if self.cx.current.get(cpu.index()) != Some(&TaskId::NONE) {
            return self.cpu_in_no_order(Callback::Running, cpu).unwrap_or(());
        }
        if self.moves(Callback::Running, task, TaskState::Chosen, TaskState::Chosen) {
            self.take(cpu, task);
        }
    }

    /// The task that [occupies](Self::occupy) `cpu` starts to run.
    pub fn running(&mut self, cpu: CpuId) {
        let task = self.cx.current.get(cpu.index()).copied().unwrap_or(TaskId::NONE);
        if self.moves(Callback::Running, task, TaskState::Chosen, TaskState::Running) {
            self.policy.running(&mut self.cx, cpu, task);
        }
    }

    /// `task`, which was dispatched to `cpu`, occupies it and starts to run. The policy learns of it `later` than it is by the driver's clock: when the switch is over.
    #[inline(always)]
    pub(crate) fn start(&mut self, cpu: CpuId, task: TaskId, later: Nanos) {
        if self.moves(Callback::Running, task, TaskState::Chosen, TaskState::Running) {
            self.take(cpu, task);
            let now = self.cx.now;
            self.cx.now = now + later;
            self.policy.running(&mut self.cx, cpu, task);
            self.cx.now = now;
        }
    }

    /// The task that runs on `cpu` stops. If it is still runnable, [`enqueue`](Self::enqueue) follows.
    #[inline(always)]
    pub fn stopping(&mut self, cpu: CpuId, why: Stop) {
        let task = self.cx.current.get_mut(cpu.index()).map_or(TaskId::NONE, |current| std::mem::replace(current, TaskId::NONE));
        if self.moves(Callback::Stopping, task, TaskState::Running, TaskState::Asleep) {
            self.policy.stopping(&mut self.cx, cpu, task, why);
        }
    }

    /// `cpu` is idle from now on.
    #[inline(always)]
    pub fn idle(&mut self, cpu: CpuId) {
        if D::IS_TRUSTED || cpu.0 < self.cx.machine.cpus {
            self.cx.idle.insert(cpu);
        }
    }

    /// `cpu` was idle and is about to dispatch.
    #[inline(always)]
    pub fn leave_idle(&mut self, cpu: CpuId) {
        if D::IS_TRUSTED || cpu.0 < self.cx.machine.cpus {
            self.cx.idle.remove(cpu);
        }
    }

    /// `cpu` has become idle or has left idle.
    #[inline(always)]
    pub fn update_idle(&mut self, cpu: CpuId, idle: bool) -> Effect {
        let effect = self.policy.update_idle(&mut self.cx, cpu, idle);
        self.checked(effect, Callback::UpdateIdle)
    }

    /// The tick of `cpu`, which runs a task.
    #[inline]
    pub fn tick(&mut self, cpu: CpuId) -> Effect {
        match self.cx.current.get(cpu.index()) {
            Some(&task) if task != TaskId::NONE => {
                let effect = self.policy.tick(&mut self.cx, cpu, task);
                self.checked(effect, Callback::Tick)
            }
            _ => self.cpu_in_no_order(Callback::Tick, cpu).unwrap_or(Effect::Nothing),
        }
    }

    /// Where the last dispatch on `cpu` found its task.
    pub fn scan(&mut self, cpu: CpuId) -> Scan {
        let scan = self.policy.scan(cpu);
        if scan.queue.0 < self.cx.machine.cpus {
            return scan;
        }
        self.breach_of(Callback::Scan, None, Some(scan.queue), Rule::CpuExists { cpus: self.cx.machine.cpus });
        Scan { queue: cpu, ..scan }
    }

    /// Nothing is left to happen: a task that waits now was lost.
    pub fn expect_none_lost(&mut self) {
        if let Some(task) = self.cx.tasks.iter().position(|view| view.state == TaskState::Waiting) {
            self.breach_of(Callback::Dispatch, Some(TaskId(task as u32)), None, Rule::NoneLost);
        }
    }

    /// `policy` takes over at time zero: to it all tasks are new, and none is any CPU's.
    pub fn begin_anew(&mut self, policy: P, seed: u64) {
        self.cx.now = Time::ZERO;
        self.cx.random = Random::new(seed);
        self.cx.current.fill(TaskId::NONE);
        self.policy = policy;
        for task in (0..self.cx.tasks.len() as u32).map(TaskId) {
            if std::mem::take(&mut self.cx.tasks[task.index()].state) != TaskState::Absent {
                self.init_task(task);
            }
        }
    }

    /// The priority of `task`, which is new, sleeps, has just stopped or runs, becomes `prio`. One that waits is dequeued before. Says what it was.
    pub fn set_weight(&mut self, task: TaskId, prio: u8) -> u8 {
        let state = self.state(task);
        if !matches!(state, TaskState::New | TaskState::Asleep | TaskState::Running) {
            debug_assert!(!D::IS_TRUSTED, "set_weight of {task:?}: {state:?}");
            self.breach_of(Callback::SetWeight, Some(task), None, Rule::CallInOrder { found: Found::Task(state) });
            return prio;
        }
        let old = std::mem::replace(&mut self.cx.tasks[task.index()].prio, prio);
        if old != prio {
            self.policy.set_weight(&mut self.cx, task, old);
        }
        old
    }

    /// The affinity that these CPUs are.
    pub(crate) fn affinity_of(&mut self, cpus: CpuSet) -> Affinity {
        let sets = &mut self.cx.cpu_sets;
        let index = sets.iter().position(|known| *known == cpus).unwrap_or_else(|| {
            sets.push(cpus);
            sets.len() - 1
        });
        Affinity::Set(index as u32)
    }

    /// The workload asks for what cannot be.
    pub(crate) fn refuse(&mut self, message: String) {
        self.cx.refuse(message);
    }

    /// Moves `task` from one state to another, or notes that this call came out of order.
    #[inline(always)]
    fn moves(&mut self, callback: Callback, task: TaskId, from: TaskState, to: TaskState) -> bool {
        match self.cx.tasks.get_mut(task.index()) {
            Some(view) if D::IS_TRUSTED || view.state == from => {
                debug_assert_eq!(view.state, from, "{callback:?} of {task:?}");
                if from != to {
                    view.state = to;
                }
                true
            }
            _ => {
                let found = Found::Task(self.state(task));
                self.breach_of(callback, Some(task), None, Rule::CallInOrder { found });
                false
            }
        }
    }

    #[inline(always)]
    fn checked(&mut self, effect: Effect, callback: Callback) -> Effect {
        let cpus = self.cx.machine.cpus;
        match effect {
            Effect::Nothing => effect,
            Effect::Kick(cpu) | Effect::Preempt(cpu) if cpu.0 < cpus => effect,
            Effect::KickAt(cpu, time) if cpu.0 < cpus && self.has_alarms && time >= self.cx.now => effect,
            Effect::Kick(cpu) | Effect::Preempt(cpu) => self.undo_effect(callback, cpu, Rule::CpuExists { cpus }),
            Effect::KickAt(cpu, _) if cpu.0 >= cpus => self.undo_effect(callback, cpu, Rule::CpuExists { cpus }),
            Effect::KickAt(cpu, _) if !self.has_alarms => self.undo_effect(callback, cpu, Rule::AlarmIsDeclared),
            Effect::KickAt(cpu, at) => self.undo_effect(callback, cpu, Rule::AlarmIsAhead { at }),
        }
    }

    #[inline(always)]
    fn take(&mut self, cpu: CpuId, task: TaskId) {
        self.cx.tasks[task.index()].cpu = cpu;
        self.cx.current[cpu.index()] = task;
    }

    #[cold]
    #[inline(never)]
    fn undo_effect(&mut self, callback: Callback, cpu: CpuId, rule: Rule) -> Effect {
        self.breach_of(callback, None, Some(cpu), rule);
        Effect::Nothing
    }

    #[cold]
    #[inline(never)]
    fn undo_dispatch(&mut self, cpu: CpuId, Dispatch { task, slice }: Dispatch) -> Option<Dispatch> {
        let rule = match self.state(task) {
            TaskState::Absent => Rule::TaskExists,
            TaskState::Waiting if slice == Nanos::ZERO => Rule::SliceIsPositive,
            TaskState::Waiting => Rule::MayRunThere,
            state => Rule::Waits { state },
        };
        self.breach_of(Callback::Dispatch, Some(task), Some(cpu), rule);
        None
    }

    #[cold]
    #[inline(never)]
    fn cpu_in_no_order<T>(&mut self, callback: Callback, cpu: CpuId) -> Option<T> {
        let rule = match self.cx.current.get(cpu.index()) {
            None => Rule::CallInOrder { found: Found::NoCpu },
            Some(&TaskId::NONE) => Rule::CallInOrder { found: Found::CpuFree },
            Some(_) => Rule::CallInOrder { found: Found::CpuBusy },
        };
        self.breach_of(callback, None, Some(cpu), rule);
        None
    }

    #[cold]
    #[inline(never)]
    fn breach_of(&mut self, callback: Callback, task: Option<TaskId>, cpu: Option<CpuId>, rule: Rule) {
        let breach = Breach { callback, rule, task, cpu, time: self.cx.now };
        self.cx.ended.get_or_insert_with(|| Box::new(Ended::Breach(breach)));
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Breach(breach) => breach.fmt(f),
            Ended::Refused { time, message } => write!(f, "at {}: {message}", Nanos(time.0)),
        }
    }
}
