//! Applies recorded events to a policy and returns the judgement of each.

mod requests;

use super::{Decides, Difference, Diverged, Divergence, Judgement, Known, Observation, Role};
use crate::live::{Arrival, Live};
use crate::policy::{Policy, Stop, weight_of};
use crate::seat::{Ended, TaskState};
use crate::trace::{EventKind, PrevState, WakeContext};
use crate::{CpuId, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A policy in the situation after the last recorded event.
#[derive(Clone)]
pub(super) struct Follower<P> {
    live: Live<P>,
    decides: Decides,
    roles: Arc<[Role]>,
    /// The number of ticks so far.
    tick: u64,
    /// Tasks that were there before, of which the policy in the kernel remembers what no recording
    /// has, until they have run.
    remembered: BTreeSet<TaskId>,
    /// Tasks of which the policy has had the kernel's state: it is compared from then on.
    corrected: BTreeSet<TaskId>,
    /// The waker CPU of each task that is being woken.
    wakers: BTreeMap<TaskId, Option<CpuId>>,
    cpus: Vec<Cpu<P>>,
    /// A trial ends at its first divergence, so it keeps no way back from a decision and never
    /// clones the policy.
    is_trial: bool,
    outcome: Outcome,
}

/// The judgement of one event.
#[derive(Clone, Default)]
pub(super) struct Outcome {
    pub judgement: Judgement,
    /// The task that the policy would have run instead, where its decision differs.
    pub preferred: Option<TaskId>,
    /// Whether a yield of the stopping task would make a difference.
    pub may_be_yield: bool,
    /// Whether a task ran without a recorded wakeup. It is forced on the policy, and is no
    /// divergence.
    pub is_unheralded: bool,
}

#[derive(Clone)]
struct Cpu<P> {
    /// Whether the policy was called since the program last ran.
    is_called: bool,
    /// The policy's choice, until the switch.
    choice: Option<Choice<P>>,
    /// The last stop, until the switch; only on a machine of one CPU, where nothing else happens
    /// in between.
    stop: Option<StopPoint<P>>,
    /// When the policy first wanted the running task to stop.
    stop_wanted: Option<Time>,
    /// Whether a better class has the CPU, as far as the policy knows.
    is_released: bool,
}

/// The state before a dispatch.
#[derive(Clone)]
struct Choice<P> {
    before: Live<P>,
    /// The tasks that woke since, with the attributes of those that arrived then.
    woken: Vec<(Woken, Option<Arrival>)>,
}

/// The state before a stop.
#[derive(Clone)]
struct StopPoint<P> {
    before: Live<P>,
    task: TaskId,
    why: Stop,
}

#[derive(Clone, Copy)]
pub(super) struct Woken {
    pub time: Time,
    pub task: TaskId,
    pub new: bool,
    pub waker: Option<CpuId>,
}

impl<P: Policy + Clone> Follower<P> {
    pub(super) fn new(mut live: Live<P>, decides: Decides, roles: Vec<Role>) -> Follower<P> {
        live.wanting = Some(Vec::new());
        let cpu = || Cpu {
            is_called: false,
            choice: None,
            stop: None,
            stop_wanted: None,
            is_released: false,
        };
        let cpus = live.machine().all().map(|_| cpu()).collect();
        let (roles, wakers, outcome) = (roles.into(), BTreeMap::new(), Outcome::default());
        let remembered = BTreeSet::new();
        Follower {
            live,
            decides,
            roles,
            tick: 0,
            remembered,
            corrected: BTreeSet::new(),
            wakers,
            cpus,
            is_trial: false,
            outcome,
        }
    }

    /// See [`Shadow::has`](super::Shadow::has).
    pub(super) fn has(&mut self, task: TaskId) {
        if self.is_scheduled(task) {
            self.remembered.insert(task);
            self.unseen(task).into_iter().for_each(|arrival| self.live.arrive(task, arrival));
        }
    }

    /// See [`Shadow::begins`](super::Shadow::begins).
    pub(super) fn begins(&mut self, cpu: CpuId, task: TaskId) {
        if self.is_scheduled(task) {
            self.unseen(task).into_iter().for_each(|arrival| self.live.arrive(task, arrival));
            self.live.wake(task, true, None);
            self.live.seat.leave_idle(cpu);
            self.live = self.live.forcing(cpu, task);
            self.live.running(cpu, task);
        }
    }

    pub(super) fn now(&self) -> Time {
        self.live.now()
    }

    pub(super) fn ended(&self) -> Option<&Ended> {
        self.live.ended()
    }

    pub(super) fn is_scheduled(&self, task: TaskId) -> bool {
        matches!(self.roles.get(task.index()), Some(Role::Scheduled { .. }))
    }

    /// A copy of the policy for a trial, which follows events up to the first divergence.
    pub(super) fn trial(&self) -> Follower<P> {
        let without_ways_back = |cpu: &Cpu<P>| Cpu { choice: None, stop: None, ..*cpu };
        Follower {
            live: self.live.clone(),
            roles: self.roles.clone(),
            wakers: self.wakers.clone(),
            remembered: self.remembered.clone(),
            corrected: self.corrected.clone(),
            cpus: self.cpus.iter().map(without_ways_back).collect(),
            is_trial: true,
            outcome: Outcome::default(),
            ..*self
        }
    }

    /// Applies an event.
    pub(super) fn follow(&mut self, observation: Observation) -> Outcome {
        let Observation { event, yielded, known } = observation;
        let is_late = self.ticks_until(&event);
        let (time, cpu) = (event.time, event.cpu);
        match event.kind {
            EventKind::SchedWaking { task, context, .. } => {
                self.wakers.insert(task, (context == WakeContext::Task).then_some(cpu));
            }
            EventKind::SchedWakeup { task, .. } => {
                let waker = self.wakers.remove(&task).flatten();
                self.wakes(cpu, Woken { time, task, new: false, waker });
            }
            EventKind::SchedWakeupNew { task, .. } => {
                self.wakes(cpu, Woken { time, task, new: true, waker: Some(cpu) })
            }
            EventKind::SchedSwitch { prev, next, prev_state } => {
                self.switches_from(time, cpu, (prev, prev_state, yielded), next);
                self.program_decides();
                self.switches_to(time, cpu, prev, next);
            }
            _ => {}
        }
        if is_late {
            self.ticks(cpu);
        }
        self.program_decides();
        self.correct(known);
        std::mem::take(&mut self.outcome)
    }

    /// Compares what the policy keeps of tasks with the kernel's, which it then has.
    fn correct(&mut self, known: Known) {
        for (task, kernel) in known.into_iter().flatten() {
            if self.live.seat.state(task) == TaskState::Absent {
                continue;
            }
            let Some(policy) = self.live.seat.correct(task, kernel) else { continue };
            if !self.corrected.insert(task) {
                let judgement = &mut self.outcome.judgement;
                judgement.states += 1;
                let (time, prio) = (self.live.now(), self.live.seat.cx().task(task).prio);
                let weight = weight_of(prio);
                let difference = Difference { time, task, weight, kernel, policy };
                judgement.differences.extend((kernel != policy).then_some(difference));
            }
        }
    }

    /// Makes the choices that are due.
    fn program_decides(&mut self) {
        if self.decides == Decides::AtEvent {
            self.live.wanting.clone().into_iter().flatten().for_each(|cpu| self.choose(cpu));
        }
        self.live.decisions.clear();
    }

    fn wakes(&mut self, cpu: CpuId, woken: Woken) {
        if !self.is_scheduled(woken.task) {
            return;
        }
        self.live.at(woken.time);
        let unseen = self.unseen(woken.task);
        unseen.into_iter().for_each(|arrival| self.live.arrive(woken.task, arrival));
        self.choices().for_each(|choice| choice.woken.push((woken, unseen)));
        if matches!(self.live.seat.state(woken.task), TaskState::New | TaskState::Asleep) {
            self.cpus[cpu.index()].is_called = true;
        }
        self.live.wake(woken.task, woken.new, woken.waker);
    }

    fn switches_from(
        &mut self,
        time: Time,
        cpu: CpuId,
        (prev, state, yielded): (TaskId, PrevState, bool),
        next: TaskId,
    ) {
        let is_interrupted = self.is_other(next);
        if !is_interrupted && std::mem::take(&mut self.cpus[cpu.index()].is_released) {
            self.live.at(time);
            self.live.seat.cpu_acquire(cpu);
        }
        if self.is_scheduled(prev) {
            self.live.at(time);
            self.outcome.may_be_yield =
                state == PrevState::Runnable && self.may_have_yielded(cpu, prev);
            if yielded && self.outcome.may_be_yield {
                self.settle_request(cpu, time);
                self.has_stopped(cpu, Stop::Yielded);
            } else if state == PrevState::Runnable
                && is_interrupted
                && self.live.current(cpu) == Some(prev)
            {
                self.is_interrupted(cpu, prev, next);
            } else {
                self.stops(cpu, prev, state);
            }
        } else if !is_interrupted
            && let Some(kept) = self.live.interrupted(cpu).filter(|&kept| kept != next)
        {
            // It does not continue: that was decided at the last call of the policy.
            self.stops(cpu, kept, PrevState::Runnable);
        }
    }

    fn switches_to(&mut self, time: Time, cpu: CpuId, prev: TaskId, next: TaskId) {
        self.live.at(time);
        if self.is_scheduled(next) {
            self.runs(cpu, next);
        } else if next == TaskId::NONE {
            self.idles(cpu);
        }
        if self.roles.get(prev.index()) == Some(&Role::Program) && !self.is_other(next) {
            self.cpus[cpu.index()].is_called = false;
        }
    }

    /// A task of another class interrupts the task on `cpu`. That task continues, unless it has
    /// yielded or the policy wants it to stop.
    fn is_interrupted(&mut self, cpu: CpuId, task: TaskId, by: TaskId) {
        self.settle_request(cpu, self.live.now());
        let by_program = self.roles[by.index()] == Role::Program;
        // Where the slice is nearly over, the next task shows whether it was.
        let (had, left) = self.slice(cpu);
        let is_wanted = self.live.cpus[cpu.index()].preempted || had >= left;
        if is_wanted {
            self.stops(cpu, task, PrevState::Runnable);
        } else if by_program && !self.cpus[cpu.index()].is_called && self.yields(task) {
            self.has_stopped(cpu, Stop::Yielded);
        } else {
            self.live.paused(cpu);
            if !by_program && self.live.interrupted(cpu) == Some(task) {
                self.live.cpu_release(cpu);
                self.cpus[cpu.index()].is_released = true;
            }
        }
    }

    /// The task on `cpu` stops.
    fn stops(&mut self, cpu: CpuId, task: TaskId, state: PrevState) {
        self.settle_request(cpu, self.live.now());
        if self.live.current(cpu) != Some(task) {
            // It ran before the recording began.
            self.unseen(task).into_iter().for_each(|arrival| self.live.arrive(task, arrival));
            if state == PrevState::Runnable {
                self.live.wake(task, false, None);
            }
            return;
        }
        let why = match state {
            PrevState::Blocked => Stop::Blocked,
            PrevState::Dead => Stop::Exited,
            PrevState::Runnable if self.live.cpus[cpu.index()].preempted => Stop::Preempted,
            PrevState::Runnable if self.is_over(cpu) => Stop::SliceOver,
            PrevState::Runnable if self.yields(task) => Stop::Yielded,
            PrevState::Runnable => {
                self.diverges(cpu, Divergence::RunOn, Some(task), None);
                Stop::Preempted
            }
        };
        self.outcome.judgement.decisions +=
            usize::from(matches!(why, Stop::Preempted | Stop::SliceOver));
        self.has_stopped(cpu, why);
    }

    fn has_stopped(&mut self, cpu: CpuId, why: Stop) {
        let task = self.live.seat.cx().current[cpu.index()];
        let keeps_way_back = self.cpus.len() == 1 && !self.is_trial;
        let state = &mut self.cpus[cpu.index()];
        state.stop_wanted = None;
        state.stop = keeps_way_back.then(|| StopPoint { before: self.live.clone(), task, why });
        self.live.stopped(cpu, why);
    }

    /// Calls `dispatch` for `cpu`.
    fn choose(&mut self, cpu: CpuId) {
        self.live.seat.leave_idle(cpu);
        self.cpus[cpu.index()].choice =
            (!self.is_trial).then(|| Choice { before: self.live.clone(), woken: Vec::new() });
        self.live.dispatch(cpu);
    }

    /// `cpu` runs `task` from now on.
    fn runs(&mut self, cpu: CpuId, task: TaskId) {
        let was_asleep = matches!(
            self.live.seat.state(task),
            TaskState::Absent | TaskState::New | TaskState::Asleep
        );
        let is_unheralded = self.remembered.remove(&task) || was_asleep;
        if is_unheralded {
            self.outcome.is_unheralded = true;
        }
        if was_asleep {
            // It has waited since before the recording began.
            let unseen = self.unseen(task);
            self.choices().for_each(|choice| choice.before.bring(task, unseen));
            self.live.bring(task, unseen);
        }
        let continues = self.live.interrupted(cpu) == Some(task);
        if self.live.current(cpu).is_none() {
            self.choose(cpu);
        }
        if self.live.current(cpu) != Some(task) {
            self.runs_another(cpu, task, is_unheralded);
        }
        self.outcome.judgement.decisions += usize::from(!is_unheralded && !continues);
        let state = &mut self.cpus[cpu.index()];
        (state.choice, state.stop) = (None, None);
        self.live.running(cpu, task);
    }

    /// `cpu` runs `task`, which is not the policy's choice; forces it.
    fn runs_another(&mut self, cpu: CpuId, task: TaskId, is_unheralded: bool) {
        let chosen = self.live.current(cpu);
        let ran_on = self.cpus[cpu.index()]
            .stop
            .take_if(|stop| stop.task == task && stop.why != Stop::Yielded);
        let class = match chosen {
            _ if ran_on.is_some() => Divergence::Stop,
            Some(_) => Divergence::OtherTask,
            None => Divergence::NoTask,
        };
        if !is_unheralded {
            self.diverges(cpu, class, Some(task), chosen);
        }
        let (now, choice) = (self.live.now(), self.cpus[cpu.index()].choice.take());
        if let Some(stop) = ran_on {
            self.live = stop.before;
            self.live.cpus[cpu.index()].preempted = false;
            self.live.paused(cpu);
            self.live.catch_up(&choice.map_or(Vec::new(), |choice| choice.woken), now);
            self.live.cpus[cpu.index()].preempted = false;
        } else if let Some(Choice { mut before, woken }) = choice {
            before.catch_up(&woken, now);
            self.live = before.forcing(cpu, task);
        }
    }

    /// `cpu` idles from now on.
    fn idles(&mut self, cpu: CpuId) {
        if self.live.current(cpu).is_none() && !self.live.seat.cx().idle().contains(cpu) {
            self.choose(cpu);
        }
        if self.decides == Decides::AtSwitch && self.live.current(cpu).is_some() {
            self.diverges(cpu, Divergence::NotIdle, None, self.live.current(cpu));
            self.outcome.judgement.decisions += 1;
            let Some(choice) = self.cpus[cpu.index()].choice.take() else { return };
            self.live = choice.before;
            self.live.seat.idle(cpu);
        }
    }

    fn diverges(
        &mut self,
        cpu: CpuId,
        class: Divergence,
        kernel: Option<TaskId>,
        policy: Option<TaskId>,
    ) {
        let time = self.live.now();
        self.outcome.judgement.divergences.push(Diverged { time, cpu, class, kernel, policy });
        self.outcome.preferred = policy;
    }

    /// Whether `task`, which stops on `cpu`, may have yielded where the policy wanted it to stop:
    /// its program receives a yield first.
    fn may_have_yielded(&self, cpu: CpuId, task: TaskId) -> bool {
        self.live.current(cpu) == Some(task)
            && self.yields(task)
            && (self.live.cpus[cpu.index()].preempted || self.is_over(cpu))
    }

    fn yields(&self, task: TaskId) -> bool {
        matches!(self.roles.get(task.index()), Some(Role::Scheduled { yields: true, .. }))
    }

    /// Whether a scheduler other than the policy schedules this task.
    fn is_other(&self, task: TaskId) -> bool {
        task != TaskId::NONE && !self.is_scheduled(task)
    }

    /// The attributes of a task that has not been seen.
    fn unseen(&self, task: TaskId) -> Option<Arrival> {
        match self.roles.get(task.index()) {
            Some(Role::Scheduled { arrival, .. })
                if self.live.seat.state(task) == TaskState::Absent =>
            {
                Some(*arrival)
            }
            _ => None,
        }
    }

    fn choices(&mut self) -> impl Iterator<Item = &mut Choice<P>> {
        self.cpus.iter_mut().filter_map(|cpu| cpu.choice.as_mut())
    }
}
