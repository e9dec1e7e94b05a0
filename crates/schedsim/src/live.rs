//! Drives a policy from outside the engine, for tasks in a kernel or in a recording.
//!
//! The driver reports that tasks arrive, wake, stop and leave. [`Live`] translates each report into
//! policy calls in the order of the contract, applies the effects, and returns decisions: which
//! task runs where. It knows no kernel, so that tests need none. [`Shadow`] feeds it a recording
//! and judges the policy's decisions.
//!
//! A CPU chooses its next task when it has stopped its last one or was kicked while idle. A chosen
//! task belongs to the CPU at once; the policy receives `running` when the outside reports that
//! it runs.
//!
//! ```
//! use schedsim::live::{Arrival, Decision, Live};
//! use schedsim::policy::{Central, CentralOptions, Stop};
//! use schedsim::{CpuId, Machine, Nanos, TaskId};
//!
//! let options = CentralOptions::baseline(Nanos::from_millis(4));
//! let policy = Central::new(readyq::RoundRobin::new(), options);
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

pub use shadow::{Decides, Difference, Diverged, Divergence, Judgement, Known, Role, Shadow};

use crate::policy::{Dispatch, Effect, Enqueue, Needs, Policy, Stop, TaskView, Wake};
use crate::seat::{Breach, Ended, Seat, TaskState};
use crate::workload::Attributes;
use crate::{CpuId, Machine, Nanos, TaskId, Time};

/// A policy, with the reported tasks and CPUs.
#[derive(Clone, Debug)]
pub struct Live<P> {
    seat: Seat<P>,
    /// The driver's time when the policy took over. The policy's own clock starts at zero, as in
    /// the simulator.
    begin: Time,
    cpus: Vec<Cpu>,
    decisions: Vec<Decision>,
    /// When the policy wants to be called, if it does.
    call_at: Option<Time>,
    /// CPUs that need their next task, if `choose` is deferred.
    wanting: Option<Vec<CpuId>>,
}

/// What the driver must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// `cpu` shall run `task` next.
    Run {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// The slice.
        slice: Nanos,
    },
    /// This CPU must stop its task.
    Stop(CpuId),
}

/// The attributes of a task that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Linux's kernel priority, 0…139.
    pub prio: u8,
    /// Its scheduling class.
    pub attributes: Attributes,
    /// The allowed CPUs, one bit for each.
    pub cpus: u64,
    /// Its current or last CPU.
    pub cpu: CpuId,
}

/// A task of nice 0 that may run on all CPUs.
impl Default for Arrival {
    fn default() -> Arrival {
        Arrival { prio: 120, attributes: Attributes::default(), cpus: u64::MAX, cpu: CpuId(0) }
    }
}

/// The maximum number of CPUs: a set of CPUs is one word.
pub const MOST_CPUS: u16 = 64;

#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// What is left of its task's slice.
    left: Nanos,
    /// Since when its task has been running; `None` while that is interrupted.
    since: Option<Time>,
    /// Whether the decision to continue the task has been sent, which cannot be withdrawn.
    resumed: bool,
    /// Whether the policy wants the task to stop.
    preempted: bool,
}

/// What a policy with these needs would miss under a kernel, in words; `None` if nothing. Whether
/// that kernel supplies the policy's tick is not known here.
pub fn unmet(needs: Needs) -> Option<&'static str> {
    needs.requests.then_some(NO_REQUESTS).or(needs.alarm.then_some(NO_ALARMS))
}

const NO_REQUESTS: &str = "makes requests beside its answers (Context::also, call_at), which the \
                           bridge does not hand on: return one effect";

const NO_ALARMS: &str = "needs an alarm at a time of its choice (an effect KickAt), as throttling \
                         and served reservations do, and sched_ext has none: leave `throttle` \
                         out, or take another policy than `deadline`";

impl<P: Policy> Live<P> {
    /// `policy` on `machine`, without any running task.
    ///
    /// # Panics
    /// If the machine has more than [`MOST_CPUS`] CPUs.
    pub fn new(policy: P, machine: Machine, seed: u64) -> Live<P> {
        assert!(machine.cpus <= MOST_CPUS, "at most {MOST_CPUS} CPUs");
        let idle = Cpu { left: Nanos::ZERO, since: None, resumed: false, preempted: false };
        let cpus = vec![idle; usize::from(machine.cpus)];
        let mut seat = Seat::new(policy, machine, seed);
        seat.grants_requests();
        Live { seat, call_at: None, begin: Time::ZERO, cpus, decisions: Vec::new(), wanting: None }
    }

    /// Advances the time, which never goes back.
    pub fn at(&mut self, now: Time) {
        let now = self.now().max(Time(now.since(self.begin).0));
        while let Some(time) = self.call_at.take_if(|time| *time <= now) {
            self.seat.advance(time.max(self.now()));
            self.seat.timer();
            self.grant_requests();
        }
        self.seat.advance(now);
    }

    /// Grants what the policy asked for beside its answers.
    fn grant_requests(&mut self) {
        while self.seat.has_requests() {
            let (effects, call_at) = self.seat.requests();
            self.call_at = call_at.or(self.call_at);
            effects.into_iter().for_each(|effect| self.apply(effect));
        }
    }

    /// The rule that the policy broke, if it broke one.
    pub fn breach(&self) -> Option<&Breach> {
        self.seat.breach()
    }

    /// Why the policy no longer decides, if so.
    pub fn ended(&self) -> Option<&Ended> {
        self.seat.ended()
    }

    /// The task of `cpu`, whether or not it runs already.
    pub fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.seat.cx().current(cpu)
    }

    /// Whether this is the next or current task of a CPU.
    pub fn is_chosen(&self, task: TaskId) -> bool {
        matches!(self.seat.state(task), TaskState::Chosen | TaskState::Running)
    }

    /// Whether the policy has this task in a queue.
    pub fn is_waiting(&self, task: TaskId) -> bool {
        self.seat.state(task) == TaskState::Waiting
    }

    /// Returns the decisions since the last call.
    pub fn decisions(&mut self) -> impl Iterator<Item = Decision> + '_ {
        self.decisions.drain(..)
    }

    /// A task is created, asleep. Ids are dense and may be reused.
    pub fn arrive(&mut self, task: TaskId, arrival: Arrival) {
        if self.seat.has_ended() {
            return;
        }
        let affinity = self.affinity(arrival.cpus);
        let cpu = CpuId(arrival.cpu.0.min(self.machine().cpus - 1));
        let view = TaskView {
            attributes: arrival.attributes,
            affinity,
            cpu,
            ..TaskView::of(arrival.prio.min(139))
        };
        self.seat.admit(task, view);
        self.seat.init_task(task);
        self.grant_requests();
    }

    /// A task leaves for good, wherever it is.
    pub fn leave(&mut self, task: TaskId) {
        match self.seat.state(task) {
            TaskState::Absent => return,
            TaskState::New | TaskState::Asleep | TaskState::Elsewhere => {}
            TaskState::Waiting => self.seat.dequeue(task),
            TaskState::Chosen | TaskState::Running => {
                return self.stopped(self.seat.cx().task(task).cpu, Stop::Exited);
            }
        }
        self.exit(task);
    }

    /// A task becomes runnable.
    pub fn wake(&mut self, task: TaskId, new: bool, waker: Option<CpuId>) {
        if let TaskState::New | TaskState::Asleep = self.seat.state(task)
            && let Some(cpu) = self.place(task, waker)
        {
            self.enqueue(task, cpu, if new { Enqueue::New } else { Enqueue::Wakeup });
        }
        self.grant_requests();
    }

    /// A waiting task is removed, or a chosen one that has not run.
    pub fn taken(&mut self, task: TaskId) {
        match self.seat.state(task) {
            TaskState::Waiting => self.seat.dequeue(task),
            TaskState::Chosen | TaskState::Running => {
                self.stopped(self.seat.cx().task(task).cpu, Stop::Blocked)
            }
            TaskState::Absent | TaskState::New | TaskState::Asleep | TaskState::Elsewhere => {}
        }
        self.grant_requests();
    }

    /// `cpu` runs the task that was chosen for it.
    pub fn running(&mut self, cpu: CpuId, task: TaskId) {
        if self.current(cpu) != Some(task) {
            return;
        }
        (self.cpus[cpu.index()].since, self.cpus[cpu.index()].resumed) = (Some(self.now()), false);
        if self.seat.state(task) == TaskState::Chosen {
            self.seat.running(cpu);
        }
        if self.cpus[cpu.index()].preempted {
            // The first request may have come before it ran.
            self.decisions.push(Decision::Stop(cpu));
        }
        self.grant_requests();
    }

    /// The task of `cpu` is interrupted, not by a decision of the policy. It continues later, or
    /// stops if the policy wants that or its slice is over.
    pub fn paused(&mut self, cpu: CpuId) {
        let now = self.now();
        let state = &mut self.cpus[cpu.index()];
        let ran = state.since.take().map_or(Nanos::ZERO, |since| now.since(since));
        (state.left, state.resumed) = (state.left.saturating_sub(ran), false);
        if state.preempted {
            self.stopped(cpu, Stop::Preempted);
        } else if state.left == Nanos::ZERO {
            self.stopped(cpu, Stop::SliceOver);
        }
    }

    /// `cpu` continues its interrupted task.
    pub fn resume(&mut self, cpu: CpuId) {
        let state = self.cpus[cpu.index()];
        if let Some(task) = self.interrupted(cpu) {
            self.cpus[cpu.index()].resumed = true;
            self.decisions.push(Decision::Run { cpu, task, slice: state.left });
        }
    }

    /// `cpu` has stopped its task and needs another one.
    pub fn stopped(&mut self, cpu: CpuId, why: Stop) {
        let Some(task) = self.current(cpu) else { return };
        self.end_run(cpu, task, why);
        match (why.requeue(), why) {
            (Some(why), _) => self.enqueue(task, cpu, why),
            (None, Stop::Exited) => self.exit(task),
            (None, Stop::OtherClass) => self.seat.disable(task),
            (None, _) => {}
        }
        self.choose(cpu);
        self.grant_requests();
    }

    /// Calls `stopping` for the task of `cpu`; `running` before it, if the outside did not report
    /// that.
    fn end_run(&mut self, cpu: CpuId, task: TaskId, why: Stop) {
        if self.seat.state(task) == TaskState::Chosen {
            self.seat.running(cpu);
        }
        if std::mem::take(&mut self.cpus[cpu.index()].preempted) {
            // A stop would hit the next task.
            self.decisions.retain(|&decision| decision != Decision::Stop(cpu));
        }
        self.cpus[cpu.index()].since = None;
        self.seat.stopping(cpu, why);
    }

    /// No more reports follow: a task that still waits was lost.
    pub fn expect_none_lost(&mut self) {
        self.seat.expect_none_lost();
    }

    /// The periodic tick on a busy CPU.
    pub fn tick(&mut self, cpu: CpuId) {
        if self.current(cpu).is_some() {
            let effect = self.seat.tick(cpu);
            self.apply(effect);
            self.grant_requests();
        }
    }

    fn now(&self) -> Time {
        self.seat.cx().now()
    }

    fn machine(&self) -> &Machine {
        self.seat.cx().machine()
    }

    /// The interrupted task of `cpu`.
    fn interrupted(&self, cpu: CpuId) -> Option<TaskId> {
        let is_kept = |&task: &TaskId| {
            self.seat.state(task) == TaskState::Running && self.cpus[cpu.index()].since.is_none()
        };
        self.current(cpu).filter(is_kept)
    }

    /// Calls `select_cpu`. The first time the task is new to the policy, whether or not it is new
    /// outside.
    fn place(&mut self, task: TaskId, waker: Option<CpuId>) -> Option<CpuId> {
        let new = self.seat.state(task) == TaskState::New;
        let cpu = self.seat.select_cpu(task, Wake { new, ..Wake::by(waker) });
        if self.seat.has_ended() {
            return None;
        }
        self.seat.put(task, cpu);
        Some(cpu)
    }

    /// Calls `exit_task`. A task that was never placed is placed first, as the engine places tasks
    /// that begin asleep.
    fn exit(&mut self, task: TaskId) {
        if self.seat.state(task) == TaskState::New && self.place(task, None).is_none() {
            return;
        }
        self.seat.exit_task(task);
    }

    fn enqueue(&mut self, task: TaskId, cpu: CpuId, why: Enqueue) {
        let effect = self.seat.enqueue(task, cpu, why);
        self.apply(effect);
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Kick(cpu) | Effect::Preempt(cpu) if self.seat.cx().idle().contains(cpu) => {
                self.seat.leave_idle(cpu);
                self.choose(cpu);
            }
            Effect::Kick(_) => {}
            Effect::KickAt(..) => self.seat.refuse(format!("the policy {NO_ALARMS}")),
            Effect::Preempt(cpu) => self.preempt(cpu),
        }
    }

    fn preempt(&mut self, cpu: CpuId) {
        if self.interrupted(cpu).is_some() && !self.cpus[cpu.index()].resumed {
            self.stopped(cpu, Stop::Preempted);
        } else if self.current(cpu).is_some() {
            self.cpus[cpu.index()].preempted = true;
            self.decisions.push(Decision::Stop(cpu));
        }
    }

    /// `cpu` needs its next task.
    fn choose(&mut self, cpu: CpuId) {
        match &mut self.wanting {
            Some(wanting) => wanting.push(cpu),
            None => self.dispatch(cpu),
        }
    }

    /// Calls `dispatch`: `cpu` runs the task that the policy returns, or idles.
    fn dispatch(&mut self, cpu: CpuId) {
        if self.seat.has_ended() || self.seat.is_away(cpu) {
            return;
        }
        self.wanting.iter_mut().for_each(|wanting| wanting.retain(|&other| other != cpu));
        let was_idle = self.seat.cx().idle().contains(cpu);
        match self.seat.dispatch(cpu) {
            Some(Dispatch { task, slice }) => {
                self.seat.occupy(cpu, task);
                self.cpus[cpu.index()] =
                    Cpu { left: slice, since: None, resumed: false, preempted: false };
                self.decisions.push(Decision::Run { cpu, task, slice });
            }
            None => {
                self.seat.idle(cpu);
                if !was_idle {
                    let effect = self.seat.update_idle(cpu, true);
                    self.apply(effect);
                }
            }
        }
    }
}
