//! Creation and wakeup of tasks.

use super::call_costs::Leaving;
use super::cpus::CpuState;
use super::sharing::part;
use super::source::Load;
use super::{Engine, NOBODY};
use crate::policy::{Effect, Enqueue, Policy, TaskView, Wake};
use crate::trace::{EventKind, Sink, WakeContext};
use crate::workload::{Action, Operation, Start};
use crate::{CpuId, Nanos, TaskId, Time};

/// The engine's state of a task, one cache line: with a million tasks each access is a cache miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Task {
    /// The action after the work.
    pub then: Action,
    /// Work of the current step that is left.
    pub work: Nanos,
    /// The unpaid migration cost; it is paid before the work continues.
    pub debt: Nanos,
    /// The unpaid cost of shared memory for this burst; it is paid before the work continues. Of a
    /// task that spins, which has no work left, how long it does.
    pub drag: Nanos,
    /// When it last stopped running.
    pub stopped: Time,
    /// The next step of the script.
    pub cursor: u32,
    /// Tokens of wakes that came before their wait.
    pub tokens: u32,
    /// The CPU on which it first ran.
    pub home: CpuId,
    /// The CPU on which it waits, if it does.
    pub waits_on: CpuId,
    /// Whether it sleeps until another task wakes it, not until a time.
    pub waits: bool,
    /// Whether it has ever run, so that it can migrate.
    pub has_run: bool,
    /// Whether the current step has not run yet.
    pub is_fresh: bool,
    /// Whether it has still to leave its CPU.
    pub leaving: Leaving,
}

const _: () = assert!(size_of::<Task>() == 64);

impl Task {
    const UNBORN: Task = Task {
        then: Action::Continue,
        work: Nanos::ZERO,
        debt: Nanos::ZERO,
        drag: Nanos::ZERO,
        stopped: Time::ZERO,
        cursor: 0,
        tokens: 0,
        home: CpuId(0),
        waits_on: CpuId(0),
        waits: false,
        has_run: false,
        is_fresh: false,
        leaving: Leaving::No,
    };

    /// CPU time until the step is done.
    #[inline]
    pub fn left(&self) -> Nanos {
        self.debt + self.drag + self.work
    }

    /// Whether its `drag` is a spin for a mutex.
    pub fn spins(&self) -> bool {
        self.work == Nanos::ZERO && matches!(self.then, Action::Do(Operation::Lock(_)))
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Makes room for the tasks of scripts, or for the first one of a model.
    pub(super) fn admit_first(&mut self) {
        let Load::Scripts(scripts) = &self.load else { return self.admit_next() };
        let workload = scripts.workload;
        self.tasks = vec![Task::UNBORN; workload.tasks.len()];
        let cpus = self.machine().cpus;
        for (task, spec) in workload.ids().zip(&workload.tasks) {
            let (attributes, affinity, cpu) =
                (spec.attributes, spec.affinity, CpuId(spec.cpu.0 % cpus));
            self.seat.admit(
                task,
                TaskView { attributes, affinity, cpu, ..TaskView::of(spec.info.prio) },
            );
            if let Start::At(time) | Start::Asleep(time) = spec.start {
                self.timers.insert(scripts.start(task, time), task);
            }
        }
    }

    /// Admits the next task of a model at its time. One arrival is always drawn in advance.
    #[inline(always)]
    fn admit_next(&mut self) {
        let Load::Drawn(population) = &mut self.load else { return };
        if let Some(arrival) = population.arrive() {
            let index = arrival.task.index();
            let view = TaskView {
                intensive: population.is_intensive(arrival.kind),
                ..TaskView::of(arrival.kind.prio)
            };
            if index == self.tasks.len() {
                self.tasks.push(Task::UNBORN);
            } else {
                self.tasks[index] = Task::UNBORN;
            }
            self.seat.admit(arrival.task, view);
            self.timers.insert(arrival.time, arrival.task);
        }
        if population.is_over() {
            self.until = self.seat.cx().now;
        }
    }

    /// A task arrives from outside.
    #[inline(always)]
    pub(super) fn arrive(&mut self, task: TaskId) {
        if let Load::Drawn(_) = self.load {
            let cpu = self.seat.cx().task(task).cpu;
            self.trace.push(self.now(), cpu, EventKind::JobRelease { task });
        }
        self.start(task, None);
        self.admit_next();
    }

    /// A task of a model has finished its last burst; its id will be reused.
    #[inline(always)]
    pub(super) fn depart(&mut self, cpu: CpuId, task: TaskId) {
        let Load::Drawn(population) = &mut self.load else { return };
        let demand = population.leave(task);
        if population.is_over() {
            self.until = self.now();
        }
        self.trace.push(self.now(), cpu, EventKind::JobComplete { task, demand });
    }

    /// Loads the next step.
    #[inline(always)]
    pub(super) fn next_step(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.work = self.load.next_step(task, &mut state.cursor, &mut state.then);
        state.drag = part(state.work, self.slowdown.every);
        state.is_fresh = true;
    }

    /// Creates a task, forked on a CPU or from outside.
    #[inline(always)]
    pub(super) fn start(&mut self, task: TaskId, waker: Option<CpuId>) {
        self.events += 1;
        if let Some(cpu) = waker {
            self.seat.put(task, cpu);
        }
        if self.sync.counts_tasks() {
            self.born(task, waker.is_some());
        }
        self.next_step(task);
        self.seat.init_task(task);
        if self.load.was_asleep(task) {
            self.seat.place_where_it_is(task);
            return self.make_ready(task, Wake::by(waker));
        }
        // A task whose script starts with a pause does not have to run before it.
        let state = &mut self.tasks[task.index()];
        match (state.work, state.then) {
            (Nanos::ZERO, Action::Sleep(pause)) => {
                self.timers.insert(self.seat.cx().now + pause, task)
            }
            (Nanos::ZERO, Action::Wait) if state.tokens == 0 => state.waits = true,
            _ => return self.make_ready(task, Wake::start(waker)),
        }
        // It is placed now all the same: policies count tasks where they are placed.
        let cpu = self.seat.select_cpu(task, Wake::start(waker));
        self.seat.put(task, cpu);
    }

    /// The task on `waker` gives `task` a token.
    pub(super) fn give_token(&mut self, task: TaskId, waker: CpuId) {
        let state = &self.tasks[task.index()];
        if state.waits && state.then == Action::Wait {
            self.wake(task, Some(waker));
        } else {
            self.tasks[task.index()].tokens += 1;
        }
    }

    /// A sleep or a wait ends; the task continues with its next step.
    #[inline]
    pub(super) fn wake(&mut self, task: TaskId, waker: Option<CpuId>) {
        self.events += 1;
        if self.costs_are_special {
            self.end_call_of_one_who_stays(task);
            if waker.is_none() && self.spins_again(task) {
                return self.make_ready(task, Wake::by(waker));
            }
        }
        self.next_step(task);
        self.make_ready(task, Wake::by(waker));
    }

    /// The CPU on which the interrupt arrives that wakes `task`: that of its device, or its last one.
    #[inline(always)]
    pub(super) fn interrupted_for(&self, task: TaskId) -> CpuId {
        let last = self.seat.cx().task(task).cpu;
        match self.tasks[task.index()].then {
            Action::Do(Operation::Io { device, .. }) => {
                let of = self.shared().devices.get(device as usize);
                let cpus = self.machine().cpus;
                of.and_then(|of| of.interrupts).map_or(last, |cpu| CpuId(cpu.0 % cpus))
            }
            _ => last,
        }
    }

    #[inline(always)]
    pub(super) fn make_ready(&mut self, task: TaskId, wake: Wake) {
        if self.costs_are_special && self.stays(task) {
            return;
        }
        let last = self.seat.cx().task(task).cpu;
        let interrupted = if self.interrupted == NOBODY { last } else { self.interrupted };
        let by = wake.waker.unwrap_or(interrupted);
        let near = wake.waker.or((interrupted != last).then_some(interrupted));
        let target = self.seat.select_cpu(task, Wake { waker: near, ..wake });
        let kind = match wake {
            Wake { new: true, .. } => EventKind::SchedWakeupNew { task, target },
            Wake { waker: Some(_), .. } => {
                EventKind::SchedWaking { task, target, context: WakeContext::Task }
            }
            Wake { waker: None, .. } => {
                EventKind::SchedWaking { task, target, context: WakeContext::Hardirq }
            }
        };
        self.tasks[task.index()].waits = false;
        self.trace.push(self.now(), by, kind);
        let why = if wake.new { Enqueue::New } else { Enqueue::Wakeup };
        if self.costs_are_special && self.lateness.is_some() {
            self.tasks[task.index()].waits_on = target;
            let effect = self.seat.enqueue(task, target, why);
            self.apply_late(effect, by);
        } else {
            self.enqueue(task, target, why);
        }
        if self.costs_are_special {
            let timer =
                if self.interrupted == NOBODY { Nanos::ZERO } else { self.machine().timer_cost };
            self.interrupt(interrupted, timer, self.machine().interruption);
            if let Wake { new: false, waker: Some(waker), .. } = wake {
                self.charge_waking(waker, target);
            }
        }
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, task: TaskId, cpu: CpuId, why: Enqueue) {
        self.tasks[task.index()].waits_on = cpu;
        let effect = self.seat.enqueue(task, cpu, why);
        let delay = if matches!(why, Enqueue::Wakeup | Enqueue::New) {
            self.machine().wake_cost
        } else {
            Nanos::ZERO
        };
        self.apply(effect, delay);
    }

    /// Makes a CPU dispatch: an awake one after `delay`, an idle one after leaving idle.
    #[inline(always)]
    pub(super) fn apply(&mut self, effect: Effect, delay: Nanos) {
        match effect {
            Effect::Nothing => {}
            Effect::Kick(cpu) => self.kick(cpu, delay),
            Effect::KickAt(cpu, time) => self.kick_at(cpu, time),
            Effect::Preempt(cpu) => self.preempt_or_kick(cpu, delay),
        }
    }

    /// Wakes an idle CPU, after `delay` if a timer has interrupted it.
    #[inline(always)]
    pub(super) fn kick(&mut self, cpu: CpuId, delay: Nanos) {
        if self.cpus[cpu.index()].state != CpuState::Idle {
            return;
        }
        let exit = if self.interrupted == cpu { delay } else { self.seat.cx().machine.idle_exit };
        self.leave_idle_after(cpu, exit);
    }

    /// Wakes the idle `cpu`, which dispatches after `exit`.
    #[inline(always)]
    pub(super) fn leave_idle_after(&mut self, cpu: CpuId, exit: Nanos) {
        self.cpus[cpu.index()].state = CpuState::LeavingIdle(exit);
        self.seat.leave_idle(cpu);
        if exit == Nanos::ZERO {
            self.resched.push(cpu);
        } else {
            self.cpu_times.set(cpu, self.now() + exit);
        }
    }

    #[cold]
    fn preempt_or_kick(&mut self, cpu: CpuId, delay: Nanos) {
        if self.cpus[cpu.index()].state == CpuState::Busy {
            self.preempt(cpu, delay)
        } else {
            self.kick(cpu, delay)
        }
    }

    #[cold]
    pub(super) fn preempt(&mut self, cpu: CpuId, delay: Nanos) {
        let state = &mut self.cpus[cpu.index()];
        let at = (self.seat.cx().now + delay).max(state.run_from); // a switch is not interrupted
        if at >= state.resched_at {
            return;
        }
        state.resched_at = at;
        if at > self.now() {
            self.plan(cpu);
        } else {
            self.resched.push(cpu);
        }
    }

    #[cold]
    fn kick_at(&mut self, cpu: CpuId, time: Time) {
        self.alarms[cpu.index()] = time;
        if self.cpus[cpu.index()].state == CpuState::Idle {
            self.cpu_times.set(cpu, time);
        }
    }
}
