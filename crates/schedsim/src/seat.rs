//! The seat of a policy: the only code that enforces the contract between a policy and its driver.
//!
//! The engine, a kernel ([`live`](crate::live)) and the replay of a recording each hold a policy in
//! a [`Seat`] and call it through it. The seat keeps the policy's [`Context`] and the state of each
//! task:
//!
//! ```text
//!            init_task        select_cpu          enqueue            dispatch           running
//!   Absent ───────────→ New ────────────→ Asleep ─────────→ Waiting ──────────→ Chosen ─────────→ Running
//!      ↑                                    │ ↑                │                                     │
//!      └────────────── exit_task ───────────┘ └──── dequeue ───┴───────────── stopping ──────────────┘
//! ```
//!
//! The policy's part ([`Rule`] lists all of it): each CPU and task that it names exists. It
//! dispatches only a waiting task, to a CPU that the task may use, with a positive slice. An alarm
//! is declared and not in the past. No task is lost. The CPU returned by `select_cpu` must exist,
//! but need not be allowed, as in the kernel. It only names a queue, which a policy with one queue
//! for all CPUs ignores. The driver's part: calls come in the order of the diagram, and time does
//! not go back. It is checked for every driver but the engine, for which only debug builds assert
//! it.
//!
//! The first breach is kept ([`Seat::breach`]). From then on the seat returns harmless answers (no
//! effect, no task). So a driver can check for a breach once per event and not after each call. A
//! run with a breach has no result.
//!
//! ```
//! use schedsim::policy::{Central, CentralOptions, Enqueue, Wake};
//! use schedsim::policy::TaskView;
//! use schedsim::seat::{Rule, Seat};
//! use schedsim::{CpuId, Machine, Nanos, TaskId};
//!
//! let options = CentralOptions::baseline(Nanos::from_millis(4));
//! let policy = Central::new(readyq::RoundRobin::new(), options);
//! let (mut seat, task) = (Seat::new(policy, Machine::ideal(1), 1), TaskId(0));
//! seat.admit(task, TaskView::of(120));
//! seat.init_task(task);
//! let cpu = seat.select_cpu(task, Wake::start(None));
//! let _ = seat.enqueue(task, cpu, Enqueue::New);
//! assert_eq!(seat.dispatch(cpu).map(|dispatch| dispatch.task), Some(task));
//! assert!(seat.breach().is_none());
//! let _ = seat.enqueue(task, cpu, Enqueue::Wakeup);
//! assert!(matches!(seat.breach().unwrap().rule, Rule::CallInOrder { .. }));
//! ```

mod breach;
mod state;

pub use breach::{Breach, Callback, Ended, Found, Rule};
pub(crate) use state::Away;
pub use state::TaskState;

use crate::policy::{
    Context, Dispatch, Effect, Enqueue, InKernel, Kept, Needs, Policy, Reweight, Scan, Stop,
    TaskView, Wake,
};
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

/// A kind of driver.
pub trait Driver {
    /// Whether release builds skip the checks of its part of the contract. The engine does: the
    /// checks would cost an instruction each, in calls that take about ten.
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

impl<P: Policy> Seat<P> {
    /// `policy` on `machine`, without tasks. `seed` seeds the policy's random numbers.
    pub fn new(policy: P, machine: Machine, seed: u64) -> Seat<P> {
        Seat::with_context(policy, Context::new(machine, Vec::new(), Random::new(seed)))
    }
}

impl<P: Policy, D: Driver> Seat<P, D> {
    pub(crate) fn with_context(policy: P, cx: Context) -> Seat<P, D> {
        let Needs { tick, alarm, most_cpus, requests, .. } = policy.needs();
        let has_alarms = alarm || cx.cgroups.iter().any(|cgroup| cgroup.max.is_some());
        let mut seat = Seat { driver: PhantomData, policy, cx, has_alarms };
        seat.cx.has_requests = D::IS_TRUSTED && requests;
        if tick == Some(Nanos::ZERO) {
            seat.breach_of(Callback::Needs, None, None, Rule::TickIsPositive);
        }
        let cpus = seat.cx.machine.cpus;
        if let Some(most) = most_cpus.filter(|&most| most < cpus) {
            seat.refuse(format!(
                "the policy was made for {}, and the machine has {cpus}: make it for {cpus}",
                crate::counted(most.into(), "CPU")
            ));
        }
        seat
    }

    /// The policy, for its promises and needs.
    #[inline(always)]
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The task, which sleeps, has kept this from before.
    pub fn keep(&mut self, task: TaskId, kept: Kept) {
        if matches!(self.state(task), TaskState::New | TaskState::Asleep) {
            self.policy.keep(task, kept);
        }
    }

    /// A recorded kernel has this of the task. Returns what the policy had instead.
    pub fn correct(&mut self, task: TaskId, kernel: InKernel) -> Option<InKernel> {
        self.policy.correct(task, kernel)
    }

    /// The policy's context.
    #[inline(always)]
    pub fn cx(&self) -> &Context {
        &self.cx
    }

    /// Whether the policy may request alarms: its needs say so, or a group has a quota, which it
    /// learns later.
    pub fn has_alarms(&self) -> bool {
        self.has_alarms
    }

    /// Whether the run has ended early, without a result.
    #[inline(always)]
    pub fn has_ended(&self) -> bool {
        self.cx.ended.is_some()
    }

    /// Why the run ended early, if it did.
    pub fn ended(&self) -> Option<&Ended> {
        self.cx.ended.as_deref()
    }

    /// The first broken rule, if any.
    pub fn breach(&self) -> Option<&Breach> {
        match self.ended() {
            Some(Ended::Breach(breach)) => Some(breach),
            _ => None,
        }
    }

    /// The state of `task`.
    #[inline(always)]
    pub fn state(&self, task: TaskId) -> TaskState {
        self.cx.tasks.get(task.index()).map_or(TaskState::Absent, |view| view.state)
    }

    /// Sets the time to `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Time) {
        debug_assert!(!D::IS_TRUSTED || now >= self.cx.now);
        if !D::IS_TRUSTED && now < self.cx.now {
            return self.breach_of(
                Callback::Advance,
                None,
                None,
                Rule::ClockGoesForward { to: now },
            );
        }
        self.cx.now = now;
    }

    /// Registers `task`, which is new, or whose id is reused. Ids are dense.
    pub fn admit(&mut self, task: TaskId, view: TaskView) {
        if task.index() >= self.cx.tasks.len() {
            self.cx.tasks.resize(task.index() + 1, TaskView::of(120));
        }
        if self.moves(Callback::InitTask, task, TaskState::Absent, TaskState::Absent) {
            self.cx.tasks[task.index()] = TaskView { state: TaskState::Absent, ..view };
        }
    }

    /// `task` is assigned to `cpu`, without having run there.
    #[inline(always)]
    pub(crate) fn put(&mut self, task: TaskId, cpu: CpuId) {
        self.cx.tasks[task.index()].cpu = cpu;
    }

    /// `task`, which was admitted, is created.
    #[inline(always)]
    pub fn init_task(&mut self, task: TaskId) {
        if self.moves(Callback::InitTask, task, TaskState::Absent, TaskState::New) {
            self.policy.init_task(&mut self.cx, task);
        }
    }

    /// `task`, which sleeps or has just stopped, leaves for good.
    #[inline(always)]
    pub fn exit_task(&mut self, task: TaskId) {
        let from = if !D::IS_TRUSTED && self.state(task) == TaskState::Elsewhere {
            TaskState::Elsewhere
        } else {
            TaskState::Asleep
        };
        if self.moves(Callback::ExitTask, task, from, TaskState::Absent) {
            self.policy.exit_task(&mut self.cx, task);
        }
    }

    /// Returns the CPU on which `task`, which is new or sleeps, should wait.
    #[inline(always)]
    pub fn select_cpu(&mut self, task: TaskId, wake: Wake) -> CpuId {
        if !self.moves(
            Callback::SelectCpu,
            task,
            if wake.new { TaskState::New } else { TaskState::Asleep },
            TaskState::Asleep,
        ) {
            return CpuId(0);
        }
        let cpu = self.policy.select_cpu(&mut self.cx, task, wake);
        if cpu.0 < self.cx.machine.cpus {
            return cpu;
        }
        self.breach_of(
            Callback::SelectCpu,
            Some(task),
            Some(cpu),
            Rule::CpuExists { cpus: self.cx.machine.cpus },
        );
        self.cx.tasks[task.index()].cpu
    }

    /// Makes the policy place `task`, which already had a CPU: during the call it may run nowhere
    /// else.
    pub fn place_where_it_is(&mut self, task: TaskId) {
        let Some(view) = self.cx.tasks.get_mut(task.index()) else { return };
        let affinity = std::mem::replace(&mut view.affinity, Affinity::Pinned(view.cpu));
        let cpu = self.select_cpu(task, Wake::start(None));
        let view = &mut self.cx.tasks[task.index()];
        (view.cpu, view.affinity) = (cpu, affinity);
    }

    /// `task`, which sleeps or has just stopped, starts to wait on `cpu`.
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

    /// `task`, which waits, is removed without having run.
    pub fn dequeue(&mut self, task: TaskId) {
        if self.moves(Callback::Dequeue, task, TaskState::Waiting, TaskState::Asleep) {
            self.policy.dequeue(&mut self.cx, task);
        }
    }

    /// Returns the next task of `cpu`, which runs nothing.
    #[inline(always)]
    pub fn dispatch(&mut self, cpu: CpuId) -> Option<Dispatch> {
        if !D::IS_TRUSTED
            && (self.cx.current.get(cpu.index()) != Some(&TaskId::NONE) || self.is_away(cpu))
        {
            return self.cpu_in_no_order(Callback::Dispatch, cpu);
        }
        let dispatch = self.policy.dispatch(&mut self.cx, cpu)?;
        let Dispatch { task, slice } = dispatch;
        if self.state(task) != TaskState::Waiting
            || slice == Nanos::ZERO
            || !self.cx.allowed(task, cpu)
        {
            return self.undo_dispatch(cpu, dispatch);
        }
        self.cx.tasks[task.index()].state = TaskState::Chosen;
        Some(dispatch)
    }

    /// `task`, which was dispatched to `cpu`, now belongs to it.
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

    /// `task`, which was dispatched to `cpu`, occupies it and starts to run. The policy receives
    /// this `later` than the driver's clock: when the switch is over.
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

    /// The task that runs on `cpu` stops. If it is still runnable, [`enqueue`](Self::enqueue)
    /// follows.
    #[inline(always)]
    pub fn stopping(&mut self, cpu: CpuId, why: Stop) {
        let task = self
            .cx
            .current
            .get_mut(cpu.index())
            .map_or(TaskId::NONE, |current| std::mem::replace(current, TaskId::NONE));
        if self.moves(Callback::Stopping, task, TaskState::Running, TaskState::Asleep) {
            self.policy.stopping(&mut self.cx, cpu, task, why);
        }
    }

    /// `cpu` becomes idle.
    #[inline(always)]
    pub fn idle(&mut self, cpu: CpuId) {
        if D::IS_TRUSTED || cpu.0 < self.cx.machine.cpus && !self.is_away(cpu) {
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

    /// The time for which the policy asked has come.
    pub(crate) fn timer(&mut self) {
        self.policy.timer(&mut self.cx);
    }

    /// The driver grants requests beside answers ([`Context::also`]), if the policy declares them.
    pub(crate) fn grants_requests(&mut self) {
        self.cx.has_requests = self.policy.needs().requests;
    }

    /// Whether the policy has asked for something beside its answers.
    #[inline(always)]
    pub(crate) fn has_requests(&self) -> bool {
        !self.cx.requests.is_empty() || self.cx.call_at.is_some()
    }

    /// Takes the effects for which the policy asked, and the time at which it wants to be called.
    pub(crate) fn requests(&mut self) -> (Vec<Effect>, Option<Time>) {
        let effects = std::mem::take(&mut self.cx.requests);
        let checked = |effect| self.checked(effect, Callback::Timer);
        (effects.into_iter().map(checked).collect(), self.cx.call_at.take())
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

    /// The instructions of the policy on `cpu` that are to be charged.
    pub fn take_work(&mut self, cpu: CpuId) -> u64 {
        self.policy.take_work(cpu)
    }

    /// Where the last dispatch on `cpu` found its task.
    pub fn scan(&mut self, cpu: CpuId) -> Scan {
        let scan = self.policy.scan(cpu);
        if scan.queue.0 < self.cx.machine.cpus {
            return scan;
        }
        self.breach_of(
            Callback::Scan,
            None,
            Some(scan.queue),
            Rule::CpuExists { cpus: self.cx.machine.cpus },
        );
        Scan { queue: cpu, ..scan }
    }

    /// Whether any task waits.
    pub(crate) fn any_waits(&self) -> bool {
        self.cx.tasks.iter().any(|view| view.state == TaskState::Waiting)
    }

    /// Nothing is left to happen: a task that still waits was lost.
    pub fn expect_none_lost(&mut self) {
        if let Some(task) = self.cx.tasks.iter().position(|view| view.state == TaskState::Waiting) {
            self.breach_of(Callback::Dispatch, Some(TaskId(task as u32)), None, Rule::NoneLost);
        }
    }

    /// `policy` takes over at time zero. All tasks are new to it, and no CPU has a task.
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

    /// The priority of `task`, which is new, sleeps, has just stopped or [occupies](Self::occupy) a
    /// CPU, becomes `prio`. A waiting task is dequeued before.
    pub fn set_weight(&mut self, task: TaskId, prio: u8, why: Reweight) -> Effect {
        if !self.may_change(Callback::SetWeight, task) {
            return Effect::Nothing;
        }
        let old = std::mem::replace(&mut self.cx.tasks[task.index()].prio, prio);
        if old == prio {
            return Effect::Nothing;
        }
        let effect = self.policy.set_weight(&mut self.cx, task, old, why);
        self.checked(effect, Callback::SetWeight)
    }

    /// The affinity of `task`, which is in no queue, changes. If it runs on another CPU, it is
    /// stopped before.
    pub fn set_cpumask(&mut self, task: TaskId, affinity: Affinity) -> Effect {
        if !self.may_change(Callback::SetCpumask, task) {
            return Effect::Nothing;
        }
        let old = std::mem::replace(&mut self.cx.tasks[task.index()].affinity, affinity);
        if old == affinity {
            return Effect::Nothing;
        }
        if self.cx.runs_on(task).is_some_and(|cpu| !self.cx.allowed(task, cpu)) {
            self.cx.tasks[task.index()].affinity = old;
            let rule = Rule::CallInOrder { found: Found::Outside };
            self.breach_of(Callback::SetCpumask, Some(task), self.cx.runs_on(task), rule);
            return Effect::Nothing;
        }
        let effect = self.policy.set_cpumask(&mut self.cx, task, old);
        self.checked(effect, Callback::SetCpumask)
    }

    /// `task`, which sleeps or has just stopped, changes to another class.
    pub fn disable(&mut self, task: TaskId) {
        if self.moves(Callback::Disable, task, TaskState::Asleep, TaskState::Elsewhere) {
            self.policy.disable(&mut self.cx, task);
        }
    }

    /// `task`, which was of another class, returns to the policy.
    pub fn enable(&mut self, task: TaskId) {
        if self.moves(Callback::Enable, task, TaskState::Elsewhere, TaskState::Asleep) {
            self.policy.enable(&mut self.cx, task);
        }
    }

    /// `cpu`, which runs nothing, goes offline.
    pub fn cpu_offline(&mut self, cpu: CpuId) {
        if self.leaves(Callback::CpuOffline, cpu, Away::Offline) {
            self.policy.cpu_offline(&mut self.cx, cpu);
        }
    }

    /// `cpu`, which was offline, is online again.
    pub fn cpu_online(&mut self, cpu: CpuId) {
        if self.comes_back(Callback::CpuOnline, cpu, Away::Offline) {
            self.policy.cpu_online(&mut self.cx, cpu);
        }
    }

    /// A better class takes `cpu`, which may keep its task until it returns.
    pub fn cpu_release(&mut self, cpu: CpuId) {
        if self.leaves(Callback::CpuRelease, cpu, Away::Released) {
            self.policy.cpu_release(&mut self.cx, cpu);
        }
    }

    /// `cpu`, which a better class had taken, is the policy's again.
    pub fn cpu_acquire(&mut self, cpu: CpuId) {
        if self.comes_back(Callback::CpuAcquire, cpu, Away::Released) {
            self.policy.cpu_acquire(&mut self.cx, cpu);
        }
    }

    /// Whether `cpu` is offline or taken by another class.
    pub fn is_away(&self, cpu: CpuId) -> bool {
        self.cx.away.iter().any(|&(other, _)| other == cpu)
    }

    fn leaves(&mut self, callback: Callback, cpu: CpuId, why: Away) -> bool {
        let current = self.cx.current.get(cpu.index());
        let found = match current {
            None => Found::NoCpu,
            Some(&task) if task != TaskId::NONE && why == Away::Offline => Found::CpuBusy,
            Some(_) if self.is_away(cpu) => Found::CpuAway,
            Some(_) => {
                self.cx.away.push((cpu, why));
                self.cx.idle.remove(cpu);
                return true;
            }
        };
        self.breach_of(callback, None, Some(cpu), Rule::CallInOrder { found });
        false
    }

    fn comes_back(&mut self, callback: Callback, cpu: CpuId, why: Away) -> bool {
        if let Some(at) = self.cx.away.iter().position(|&away| away == (cpu, why)) {
            self.cx.away.remove(at);
            return true;
        }
        self.cpu_in_no_order(callback, cpu).unwrap_or(false)
    }

    /// Whether the attributes of `task` may change now: it must be in no queue of the policy.
    fn may_change(&mut self, callback: Callback, task: TaskId) -> bool {
        let state = self.state(task);
        let may = match state {
            TaskState::New | TaskState::Asleep | TaskState::Elsewhere | TaskState::Running => true,
            TaskState::Chosen => self.cx.runs_on(task).is_some(),
            TaskState::Absent | TaskState::Waiting => false,
        };
        if !may {
            debug_assert!(!D::IS_TRUSTED, "{callback:?} of {task:?}: {state:?}");
            self.breach_of(
                callback,
                Some(task),
                None,
                Rule::CallInOrder { found: Found::Task(state) },
            );
        }
        may
    }

    /// The affinity of this set of CPUs.
    pub(crate) fn affinity_of(&mut self, cpus: CpuSet) -> Affinity {
        let sets = &mut self.cx.cpu_sets;
        let index = sets.iter().position(|known| *known == cpus).unwrap_or_else(|| {
            sets.push(cpus);
            sets.len() - 1
        });
        Affinity::Set(index as u32)
    }

    /// The workload requests something impossible.
    pub(crate) fn refuse(&mut self, message: String) {
        self.cx.refuse(message);
    }

    /// Moves `task` from one state to another, or records that this call came out of order.
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
            Effect::KickAt(cpu, time) if cpu.0 < cpus && self.has_alarms && time >= self.cx.now => {
                effect
            }
            Effect::Kick(cpu) | Effect::Preempt(cpu) => {
                self.undo_effect(callback, cpu, Rule::CpuExists { cpus })
            }
            Effect::KickAt(cpu, _) if cpu.0 >= cpus => {
                self.undo_effect(callback, cpu, Rule::CpuExists { cpus })
            }
            Effect::KickAt(cpu, _) if !self.has_alarms => {
                self.undo_effect(callback, cpu, Rule::AlarmIsDeclared)
            }
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
    fn undo_dispatch(
        &mut self,
        cpu: CpuId,
        Dispatch { task, slice }: Dispatch,
    ) -> Option<Dispatch> {
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
            Some(_) if self.is_away(cpu) => Rule::CallInOrder { found: Found::CpuAway },
            Some(&TaskId::NONE) => Rule::CallInOrder { found: Found::CpuFree },
            Some(_) => Rule::CallInOrder { found: Found::CpuBusy },
        };
        self.breach_of(callback, None, Some(cpu), rule);
        None
    }

    #[cold]
    #[inline(never)]
    fn breach_of(
        &mut self,
        callback: Callback,
        task: Option<TaskId>,
        cpu: Option<CpuId>,
        rule: Rule,
    ) {
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
