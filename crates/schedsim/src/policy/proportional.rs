//! Proportional share by tickets: one queue for all CPUs, quanta, and a rule that chooses the next
//! task. Two rules: [`stride`] and [`lottery`].
//!
//! A task holds as many tickets as the Linux weight of its nice value. It runs for a quantum unless
//! it stops by itself; there is no preemption. A rule charges the used part of the quantum.
//!
//! Deviation: the papers have one CPU. Here each CPU takes the first task, by the rule, that may
//! run on it.

pub mod lottery;
pub mod stride;

use super::descriptor::Given;
use super::options::OptionSpec;
use super::weights::weight;
use super::{
    Context, Dispatch, Effect, Enqueue, Needs, Policy, Promises, Reweight, Shares, Stop, Wake,
};
use crate::{CpuId, Nanos, Random, TaskId, Time};

/// Chooses the next task.
pub trait Rule {
    /// `task` is created with this many tickets.
    fn admit(&mut self, task: TaskId, tickets: u32);

    /// `task` becomes a competitor. `is_back`: it returns at once after a change of its tickets.
    fn join(&mut self, task: TaskId, is_back: bool);

    /// The tickets of `task`, which does not wait, change. If it runs, it has done so for `ran`.
    fn set_tickets(&mut self, task: TaskId, tickets: u32, ran: Option<Nanos>);

    /// `task` competes no longer.
    fn leave(&mut self, task: TaskId);

    /// Charges `task`, which was chosen, for the `used` part of a quantum.
    fn charge(&mut self, task: TaskId, used: Nanos, quantum: Nanos);

    /// `task`, which competes, starts to wait.
    fn wait(&mut self, task: TaskId);

    /// `task` no longer waits.
    fn stop_waiting(&mut self, task: TaskId);

    /// The next task among those that wait and `suit`.
    fn choose(&self, random: &mut Random, suits: impl Fn(TaskId) -> bool) -> Option<TaskId>;

    /// Any task that waits and `suits`.
    fn any(&self, suits: impl Fn(TaskId) -> bool) -> Option<TaskId>;

    /// The number of waiting tasks.
    fn waiting(&self) -> u32;

    /// The promised bound on shares.
    fn shares(&self, quantum: Nanos) -> Option<Shares>;
}

/// Options of both rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How long a task runs at a time.
    pub quantum: Nanos,
}

impl Default for Options {
    fn default() -> Self {
        Options { quantum: Nanos::from_millis(10) }
    }
}

/// The option of every proportional-share scheduler.
const QUANTUM: OptionSpec =
    OptionSpec::duration("quantum", "how long a task runs at a time").by_default("10ms");

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options { quantum: given.duration(QUANTUM.name) }
    }
}

/// A proportional-share scheduler.
#[derive(Clone, Debug)]
pub struct Proportional<R> {
    rule: R,
    options: Options,
    cpus: u16,
    /// When each task started to run.
    since: Vec<Time>,
}

impl<R: Rule> Proportional<R> {
    fn with_rule(rule: R, cpus: u16, options: Options) -> Self {
        Proportional { rule, options, cpus, since: Vec::new() }
    }
}

impl<R: Rule> Policy for Proportional<R> {
    fn needs(&self) -> Needs {
        Needs { blocking: true, ..Needs::default() }
    }

    fn promises(&self) -> Promises {
        let shares = self.rule.shares(self.options.quantum);
        let starvation_free = shares.is_some();
        let shares = shares.filter(|_| self.cpus == 1);
        Promises {
            work_conserving: true,
            locally_work_conserving: true,
            starvation_free,
            shares,
            hotplug: true,
            ..Promises::default()
        }
    }

    fn queue_length(&self, _cpu: CpuId) -> u32 {
        self.rule.waiting()
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        let len = self.since.len().max(task.index() + 1);
        self.since.resize(len, Time::ZERO);
        self.rule.admit(task, weight(cx.task(task).prio, cx.task(task).attributes.class));
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let is_here = !why.comes();
        if !is_here {
            self.rule.join(task, why == Enqueue::Restored);
        }
        self.rule.wait(task);
        if is_here && self.rule.waiting() == 1 && cx.allowed(task, cpu) {
            return Effect::Nothing; // `cpu` itself is about to choose and finds it
        }
        cx.idle_cpu_for(task).map_or(Effect::Nothing, Effect::Kick)
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, _old: u8, _why: Reweight) -> Effect {
        let ran = cx.runs_on(task).map(|_| cx.now().since(self.since[task.index()]));
        self.rule.set_tickets(
            task,
            weight(cx.task(task).prio, cx.task(task).attributes.class),
            ran,
        );
        Effect::Nothing
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.rule.stop_waiting(task);
        self.rule.leave(task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let mut random = cx.random.clone();
        let task = self.rule.choose(&mut random, |task| cx.allowed(task, cpu));
        cx.random = random;
        let task = task?;
        self.rule.stop_waiting(task);
        self.since[task.index()] = cx.now();
        Some(Dispatch { task, slice: self.options.quantum })
    }

    fn stopping(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId, why: Stop) {
        self.rule.charge(task, cx.now().since(self.since[task.index()]), self.options.quantum);
        if !why.is_runnable() {
            self.rule.leave(task);
        }
    }

    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        if idle || cx.idle().is_empty() {
            return Effect::Nothing;
        }
        // The CPU may have been kicked for another task than it took.
        let passed_over = self.rule.any(|task| cx.idle_cpu_for(task).is_some());
        passed_over.and_then(|task| cx.idle_cpu_for(task)).map_or(Effect::Nothing, Effect::Kick)
    }
}
