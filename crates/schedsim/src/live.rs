//! Drives a policy by what really happens somewhere: a second caller of [`Policy`] beside the engine.
//!
//! Whoever runs the tasks (a kernel, through sched_ext) reports that they come, wake, stop and leave; [`Live`] keeps the policy's
//! [`Context`], makes the calls in the order that the trait promises, applies the effects, and says what shall run where. It knows no
//! kernel, so the same is tested without one.
//!
//! A CPU is asked for its next task when it has stopped its last one or was kicked while idle. A task that has been chosen counts as the
//! CPU's at once; the policy is told that it runs when the world says so.
//!
//! ```
//! use schedsim::live::{Arrival, Decision, Live};
//! use schedsim::policy::{Central, CentralOptions, Stop};
//! use schedsim::{CpuId, Machine, Nanos, TaskId};
//!
//! let policy = Central::new(readyq::RoundRobin::new(), CentralOptions::baseline(Nanos::from_millis(4)));
//! let mut live = Live::new(policy, Machine::ideal(1), 1);
//! for task in [TaskId(0), TaskId(1)] {
//!     live.arrive(task, Arrival::default());
//!     live.wake(task, true, None);
//! }
//! live.stopped(CpuId(0), Stop::Yielded);
//! let order: Vec<TaskId> = live.decisions().filter_map(|decision| match decision {
//!     Decision::Run { task, .. } => Some(task),
//!     Decision::Stop(_) => None,
//! }).collect();
//! assert_eq!(order, [TaskId(0), TaskId(1)]);
//! ```

mod changes;
mod shadow;
#[cfg(test)]
mod tests;

pub use shadow::{Decides, Judgement, Otherwise, Role, Shadow};

use crate::policy::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Stop, TaskView, Wake};
use crate::workload::{Affinity, Attributes};
use crate::{CpuId, Machine, Nanos, Random, TaskId, Time};
use std::collections::BTreeMap;

/// A policy, and the world as it was reported.
#[derive(Clone, Debug)]
pub struct Live<P> {
    policy: P,
    /// Since when it has been in charge, by the clock of whoever drives it: the policy's own begins at zero, as it does in the simulator.
    begin: Time,
    cx: Context,
    tasks: Vec<State>,
    /// Whom the policy has placed: policies count tasks where they placed them when they were new.
    placed: Vec<bool>,
    /// What tasks are from their next stop on.
    changes: BTreeMap<TaskId, TaskView>,
    cpus: Vec<Cpu>,
    decisions: Vec<Decision>,
    /// The CPUs that want their next task, if it is not the policy that is asked at once.
    wanting: Option<Vec<CpuId>>,
}

/// What shall happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// `cpu` shall run `task` next.
    Run {
        /// Where.
        cpu: CpuId,
        /// Who.
        task: TaskId,
        /// For how long at most.
        slice: Nanos,
    },
    /// This CPU shall stop the task that it runs.
    Stop(CpuId),
}

/// What is known of a task when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Linux's kernel priority, 0…139.
    pub prio: u8,
    /// Its scheduling class.
    pub attributes: Attributes,
    /// Where it may run: one bit for each CPU.
    pub cpus: u64,
    /// Where it is or was last.
    pub cpu: CpuId,
}

/// A task of nice 0 that may run on all CPUs.
impl Default for Arrival {
    fn default() -> Arrival {
        Arrival { prio: 120, attributes: Attributes::default(), cpus: u64::MAX, cpu: CpuId(0) }
    }
}

/// Machines have at most so many CPUs here: a set of them is one word.
pub const MOST_CPUS: u16 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unknown,
    Asleep,
    Waiting,
    /// A CPU's, and running there if it was said so.
    Chosen(CpuId, Running),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Running {
    NotYet,
    Yes,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// What is left of the slice of its task.
    left: Nanos,
    /// Since when that has been running; `None` while it is kept from running.
    since: Option<Time>,
    /// It has been said that the task goes on, which cannot be taken back.
    resumed: bool,
    /// Whether the policy has asked for the task to be stopped.
    preempted: bool,
}

/// What a policy with these needs would miss when it is driven by a kernel, in words; `None` if nothing. Of its tick that kernel has to say.
pub fn unmet(needs: Needs) -> Option<&'static str> {
    needs.alarm.then_some(
        "needs an alarm at a time of its choice (an effect KickAt), as throttling and served reservations do, and sched_ext has none: leave `throttle` out, or take another policy than `deadline`",
    )
}

impl<P: Policy> Live<P> {
    /// `policy` in charge of `machine`, on which nothing runs yet.
    ///
    /// # Panics
    /// If the machine has more than [`MOST_CPUS`] CPUs.
    pub fn new(policy: P, machine: Machine, seed: u64) -> Live<P> {
        assert!(machine.cpus <= MOST_CPUS, "at most {MOST_CPUS} CPUs");
        let idle = Cpu { left: Nanos::ZERO, since: None, resumed: false, preempted: false };
        let cpus = vec![idle; usize::from(machine.cpus)];
        Live {
            policy,
            begin: Time::ZERO,
            cx: Context::new(machine, Vec::new(), Random::new(seed)),
            tasks: Vec::new(),
            placed: Vec::new(),
            changes: BTreeMap::new(),
            cpus,
            decisions: Vec::new(),
            wanting: None,
        }
    }

    /// Time goes on, never back.
    pub fn at(&mut self, now: Time) {
        self.cx.now = self.cx.now.max(Time(now.since(self.begin).0));
    }

    /// The policy's failure, or the rule that it broke.
    pub fn failure(&self) -> Option<&str> {
        self.cx.failure.as_deref()
    }

    /// Whose turn it is on `cpu`, whether or not it runs already.
    pub fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.cx.current(cpu)
    }

    /// Whether some CPU's next or present task is this one.
    pub fn is_chosen(&self, task: TaskId) -> bool {
        matches!(self.state(task), State::Chosen(..))
    }

    /// Whether the policy has this task in a queue.
    pub fn is_waiting(&self, task: TaskId) -> bool {
        self.state(task) == State::Waiting
    }

    /// What shall happen since the last time this was asked.
    pub fn decisions(&mut self) -> impl Iterator<Item = Decision> + '_ {
        self.decisions.drain(..)
    }

    /// A task comes into being, asleep. Ids are dense, and may be used again.
    pub fn arrive(&mut self, task: TaskId, arrival: Arrival) {
        let index = task.index();
        if index >= self.tasks.len() {
            self.tasks.resize(index + 1, State::Unknown);
            self.placed.resize(index + 1, false);
            let nobody =
                TaskView { prio: 120, attributes: Attributes::default(), intensive: false, affinity: Affinity::Any, cpu: CpuId(0) };
            self.cx.tasks.resize(index + 1, nobody);
        }
        let affinity = self.affinity(arrival.cpus);
        let cpu = CpuId(arrival.cpu.0.min(self.cx.machine.cpus - 1));
        self.cx.tasks[index] = TaskView { prio: arrival.prio.min(139), attributes: arrival.attributes, intensive: false, affinity, cpu };
        self.tasks[index] = State::Asleep;
        self.init(task);
    }

    /// A task leaves for good, wherever it is.
    pub fn leave(&mut self, task: TaskId) {
        match self.state(task) {
            State::Unknown => return,
            State::Asleep => {}
            State::Waiting => self.policy.dequeue(&mut self.cx, task),
            State::Chosen(cpu, _) => return self.stopped(cpu, Stop::Exited),
        }
        self.exit(task);
    }

    /// A task becomes runnable.
    pub fn wake(&mut self, task: TaskId, new: bool, waker: Option<CpuId>) {
        if self.state(task) != State::Asleep {
            return;
        }
        let Some(cpu) = self.place(task, waker) else { return };
        self.enqueue(task, cpu, if new { Enqueue::New } else { Enqueue::Wakeup });
    }

    /// A waiting task is taken away, or one that was chosen and has not run.
    pub fn taken(&mut self, task: TaskId) {
        match self.state(task) {
            State::Waiting => {
                self.policy.dequeue(&mut self.cx, task);
                self.tasks[task.index()] = State::Asleep;
            }
            State::Chosen(cpu, _) => self.stopped(cpu, Stop::Blocked),
            State::Unknown | State::Asleep => {}
        }
    }

    /// `cpu` runs the task that was chosen for it.
    pub fn running(&mut self, cpu: CpuId, task: TaskId) {
        if self.state(task) != (State::Chosen(cpu, Running::NotYet)) && self.state(task) != State::Chosen(cpu, Running::Yes) {
            return;
        }
        (self.cpus[cpu.index()].since, self.cpus[cpu.index()].resumed) = (Some(self.cx.now), false);
        if self.state(task) == State::Chosen(cpu, Running::NotYet) {
            self.tasks[task.index()] = State::Chosen(cpu, Running::Yes);
            self.policy.running(&mut self.cx, cpu, task);
        }
        if self.cpus[cpu.index()].preempted {
            self.decisions.push(Decision::Stop(cpu)); // the first request may have come before it ran
        }
    }

    /// `cpu` does not run its task for a moment, by no decision of the policy's: it goes on with it, or stops it if that was wanted
    /// meanwhile, or if its slice is over.
    pub fn paused(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        let ran = state.since.take().map_or(Nanos::ZERO, |since| self.cx.now.since(since));
        (state.left, state.resumed) = (state.left.saturating_sub(ran), false);
        if state.preempted {
            self.stopped(cpu, Stop::Preempted);
        } else if state.left == Nanos::ZERO {
            self.stopped(cpu, Stop::SliceOver);
        }
    }

    /// `cpu` goes on with the task that it was kept from.
    pub fn resume(&mut self, cpu: CpuId) {
        let state = self.cpus[cpu.index()];
        if let Some(task) = self.cx.current(cpu)
            && state.since.is_none()
            && matches!(self.state(task), State::Chosen(_, Running::Yes))
        {
            self.cpus[cpu.index()].resumed = true;
            self.decisions.push(Decision::Run { cpu, task, slice: state.left });
        }
    }

    /// `cpu` has stopped its task, and wants another one.
    pub fn stopped(&mut self, cpu: CpuId, why: Stop) {
        let Some(task) = self.cx.current(cpu) else { return };
        if self.state(task) == State::Chosen(cpu, Running::NotYet) {
            self.policy.running(&mut self.cx, cpu, task);
        }
        self.cx.current[cpu.index()] = TaskId::NONE;
        if std::mem::take(&mut self.cpus[cpu.index()].preempted) {
            self.decisions.retain(|&decision| decision != Decision::Stop(cpu)); // it would stop the next one
        }
        self.cpus[cpu.index()].since = None;
        self.tasks[task.index()] = State::Asleep;
        let change = self.changes.remove(&task).filter(|_| why != Stop::Exited);
        self.policy.stopping(&mut self.cx, cpu, task, if change.is_some() { Stop::Exited } else { why });
        match (change, why.requeue()) {
            (Some(view), requeue) => {
                self.become_another(task, view);
                if requeue.is_some() {
                    self.wake(task, false, None);
                }
            }
            (None, Some(why)) => self.enqueue(task, cpu, why),
            (None, None) if why == Stop::Exited => self.exit(task),
            (None, None) => {}
        }
        self.choose(cpu);
    }

    /// The periodic tick on a busy CPU.
    pub fn tick(&mut self, cpu: CpuId) {
        if let Some(task) = self.cx.current(cpu) {
            let effect = self.policy.tick(&mut self.cx, cpu, task);
            self.apply(effect);
        }
    }

    fn state(&self, task: TaskId) -> State {
        self.tasks.get(task.index()).copied().unwrap_or(State::Unknown)
    }

    fn init(&mut self, task: TaskId) {
        self.placed[task.index()] = false;
        self.policy.init_task(&mut self.cx, task);
    }

    /// Asks the policy for a CPU; the first time the task is new to it, though the world may have known it before.
    fn place(&mut self, task: TaskId, waker: Option<CpuId>) -> Option<CpuId> {
        let new = !std::mem::replace(&mut self.placed[task.index()], true);
        let cpu = self.policy.select_cpu(&mut self.cx, task, Wake { new, waker });
        if cpu.0 >= self.cx.machine.cpus {
            self.cx.fail(format!("select_cpu returned CPU {}, and there are {}", cpu.0, self.cx.machine.cpus));
            return None;
        }
        self.cx.tasks[task.index()].cpu = cpu;
        Some(cpu)
    }

    /// The policy is told that a task is gone. One that it never placed is placed first, as the engine places tasks that begin asleep.
    fn forget(&mut self, task: TaskId) {
        if !self.placed[task.index()] && self.place(task, None).is_none() {
            return;
        }
        self.policy.exit_task(&mut self.cx, task);
    }

    fn exit(&mut self, task: TaskId) {
        self.changes.remove(&task);
        self.tasks[task.index()] = State::Unknown;
        self.forget(task);
    }

    fn enqueue(&mut self, task: TaskId, cpu: CpuId, why: Enqueue) {
        self.tasks[task.index()] = State::Waiting;
        let effect = self.policy.enqueue(&mut self.cx, task, cpu, why);
        self.apply(effect);
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Kick(cpu) | Effect::Preempt(cpu) if cpu.0 >= self.cx.machine.cpus => {
                self.cx.fail(format!("kicked CPU {}, and there are {}", cpu.0, self.cx.machine.cpus));
            }
            Effect::Kick(cpu) | Effect::Preempt(cpu) if self.cx.idle.contains(cpu) => {
                self.cx.idle.remove(cpu);
                self.choose(cpu);
            }
            Effect::Kick(_) => {}
            Effect::KickAt(..) => self.cx.fail("asked for an alarm (an effect KickAt) without having said that it needs one"),
            Effect::Preempt(cpu) => self.preempt(cpu),
        }
    }

    fn preempt(&mut self, cpu: CpuId) {
        let Some(task) = self.cx.current(cpu) else { return };
        let Cpu { since, resumed, .. } = self.cpus[cpu.index()];
        if since.is_none() && !resumed && self.state(task) == State::Chosen(cpu, Running::Yes) {
            self.stopped(cpu, Stop::Preempted); // it is kept from running already
        } else {
            self.cpus[cpu.index()].preempted = true;
            self.decisions.push(Decision::Stop(cpu));
        }
    }

    /// `cpu` wants its next task.
    fn choose(&mut self, cpu: CpuId) {
        match &mut self.wanting {
            Some(wanting) => wanting.push(cpu),
            None => self.ask(cpu),
        }
    }

    /// Asks the policy what `cpu` shall run.
    fn ask(&mut self, cpu: CpuId) {
        if self.cx.failure.is_some() {
            return;
        }
        self.wanting.iter_mut().for_each(|wanting| wanting.retain(|&other| other != cpu));
        let was_idle = self.cx.idle.contains(cpu);
        let Some(Dispatch { task, slice }) = self.policy.dispatch(&mut self.cx, cpu) else {
            self.cx.idle.insert(cpu);
            if !was_idle {
                let effect = self.policy.update_idle(&mut self.cx, cpu, true);
                self.apply(effect);
            }
            return;
        };
        if self.state(task) != State::Waiting {
            return self.cx.fail(format!("dispatched task {} to CPU {}, and it does not wait", task.0, cpu.0));
        }
        if !self.cx.allowed(task, cpu) {
            return self.cx.fail(format!("dispatched task {} to CPU {}, on which it may not run", task.0, cpu.0));
        }
        self.tasks[task.index()] = State::Chosen(cpu, Running::NotYet);
        self.cx.tasks[task.index()].cpu = cpu;
        self.cx.current[cpu.index()] = task;
        self.cpus[cpu.index()] = Cpu { left: slice, since: None, resumed: false, preempted: false };
        self.decisions.push(Decision::Run { cpu, task, slice });
    }
}
