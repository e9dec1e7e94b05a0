//! Applies each event to the state of tasks, CPUs and ready queues.

use super::Metrics;
use super::state::{CpuState, Phase, View};
use super::summary::PATIENCE;
use crate::trace::PrevState;
use crate::{CpuId, TaskId, Time};

impl Metrics {
    #[inline]
    pub(super) fn switch(&mut self, cpu: CpuId, prev: TaskId, next: TaskId, prev_state: PrevState) {
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
        }
        let state = &mut self.cpus[cpu.index()];
        state.running = next;
        if state.is_idle != (next == TaskId::NONE) {
            self.become_idle(cpu, next == TaskId::NONE);
        }
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
        let demand = used.saturating_sub(state.burst_mark);
        state.burst_mark = used;
        let released = std::mem::replace(
            &mut state.released,
            if waking == Time::NEVER { Time::NEVER } else { now },
        );
        if !state.excluded {
            self.distributions.burst.record(demand);
            if released != Time::NEVER {
                let response = now.since(released);
                self.distributions.activation.record(response);
                self.distributions.slowdowns.record(response, demand);
                if let Some(parts) = &mut self.parts {
                    parts.activation(prev, response, demand);
                }
            }
        }
        if why == PrevState::Dead {
            state.phase = Phase::Dead;
            state.exit = Some(self.exits);
            self.exits += 1;
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
        if !self.tasks.get(next.index()).is_some_and(|state| state.phase.waits()) {
            self.expect_waiting(next);
        }
        self.begin_slice(cpu, next);
        let now = self.now;
        let state = &mut self.tasks[next.index()];
        state.migrations += u32::from(state.cpu != cpu && state.has_run());
        state.dispatches += 1;
        state.cpu = cpu;
        let waited = now.since(std::mem::replace(&mut state.since, now));
        if !std::mem::replace(&mut state.phase, Phase::Running).waits() {
            return;
        }
        state.run_delay += waited;
        state.wait_max = state.wait_max.max(waited);
        let waking = std::mem::replace(&mut state.waking, Time::NEVER);
        if !state.excluded {
            self.totals.run_delay_max = self.totals.run_delay_max.max(waited);
            self.totals.starved += waited.saturating_sub(PATIENCE);
            if waking != Time::NEVER {
                self.distributions.wakeup_latency.record(now.since(waking));
                if let Some(parts) = &mut self.parts {
                    parts.wakeup(next, now.since(waking));
                }
            }
        }
        let queue = state.queue;
        self.leave(queue);
    }

    /// `task` runs on `cpu`. This is a new slice unless `task` was also the last one there.
    #[inline]
    fn begin_slice(&mut self, cpu: CpuId, task: TaskId) {
        let before = std::mem::replace(&mut self.cpus[cpu.index()].last, task);
        self.tasks[task.index()].slices += u32::from(before != task);
    }

    /// A task that starts to run was not known to wait.
    #[cold]
    #[inline(never)]
    fn expect_waiting(&mut self, task: TaskId) {
        match self.task(task).phase {
            Phase::Unseen => self.tasks[task.index()].first = self.now,
            Phase::Running => {
                self.oddities.on_two_cpus += 1;
                self.steal(task);
            }
            Phase::Dead => self.oddities.after_exit += 1,
            Phase::Blocked => {
                self.oddities.unwoken += 1;
                self.tasks[task.index()].released = Time::NEVER;
            }
            Phase::Waiting | Phase::WaitingEarly => {}
        }
    }

    /// The known state does not have the leaving task on this CPU; corrects it.
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
                // It has run since the start; a waking came while it ran and was void.
                self.leave_queue(prev);
                let state = &mut self.tasks[prev.index()];
                (state.first, state.since, state.waking, state.released) =
                    (Time::ZERO, Time::ZERO, Time::NEVER, Time::NEVER);
                (state.phase, state.cpu) = (Phase::Running, cpu);
                self.begin_slice(cpu, prev);
                return;
            }
        }
        if view == View::Known && self.cpus[cpu.index()].is_idle && prev != TaskId::NONE {
            return self.left_idle_unseen(cpu, prev);
        }
        self.oddities.wrong_prev += u64::from(view == View::Known);
        if running != TaskId::NONE {
            let lost = &mut self.tasks[running.index()];
            lost.on_cpu += now.since(lost.since);
            (lost.phase, lost.since, lost.waking, lost.released) =
                (Phase::Blocked, now, Time::NEVER, Time::NEVER);
        }
        if prev != TaskId::NONE {
            if self.cpus[cpu.index()].is_idle {
                self.become_idle(cpu, false);
            }
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
            (state.phase, state.since, state.cpu, state.waking) =
                (Phase::Running, now, cpu, Time::NEVER);
            self.begin_slice(cpu, prev);
        }
    }

    /// The switch from idle to `prev` is missing (some virtual machines record none on some CPUs).
    /// An idle CPU takes a task as soon as there is one, so `prev` has run since it waited and the
    /// CPU was idle. If its waking was not recorded either, it runs from now on.
    #[cold]
    #[inline(never)]
    fn left_idle_unseen(&mut self, cpu: CpuId, prev: TaskId) {
        let now = self.now;
        self.oddities.unseen_switch_ins += 1;
        let idle_since = self.cpus[cpu.index()].idle_since;
        let (phase, since) = (self.task(prev).phase, self.tasks[prev.index()].since);
        let from = idle_since.max(since);
        self.totals.time_unseen += now.since(from);
        let mut started = now;
        match phase {
            Phase::Waiting | Phase::WaitingEarly => {
                started = from;
                self.leave_queue(prev);
                let queue = &mut self.cpus[self.tasks[prev.index()].queue.index()];
                queue.queue_area = queue.queue_area.saturating_sub(u128::from(now.since(from).0));
                self.tasks[prev.index()].run_delay += from.since(since);
            }
            Phase::Unseen => self.tasks[prev.index()].first = now,
            Phase::Running => self.steal(prev),
            Phase::Blocked | Phase::Dead => {}
        }
        let unseen = now.since(started);
        let state = &mut self.cpus[cpu.index()];
        state.switches += 1;
        state.is_idle = false;
        state.idle += started.since(idle_since);
        // At least one task, `prev`, has been counted as waiting since it started, and this CPU as
        // idle.
        self.totals.idle_waste +=
            (self.totals.time_waiting - state.waste_mark).saturating_sub(unseen);
        self.totals.idle_waste_min = self.totals.idle_waste_min.saturating_sub(unseen);
        self.idle -= 1;
        let state = &mut self.tasks[prev.index()];
        state.migrations += u32::from(state.cpu != cpu && state.has_run());
        state.dispatches += 1;
        (state.phase, state.since, state.cpu, state.waking) =
            (Phase::Running, started, cpu, Time::NEVER);
        self.begin_slice(cpu, prev);
    }

    /// A running task appears on another CPU; the CPU on which it was thought to run does something
    /// unknown.
    fn steal(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.on_cpu += self.now.since(state.since);
        let robbed = &mut self.cpus[state.cpu.index()];
        robbed.running = TaskId::NONE;
        robbed.view = View::Lost;
    }

    // Wakings.

    #[inline]
    pub(super) fn waking(&mut self, task: TaskId, target: CpuId) {
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
            // The early waking had no effect, and the task slept until now.
            Phase::WaitingEarly => self.leave_queue(task),
            Phase::Unseen => state.first = now,
            Phase::Dead => self.oddities.after_exit += 1,
        }
        self.make_wait(task, target);
        let state = &mut self.tasks[task.index()];
        state.waking = now;
        state.wakeups += 1;
    }

    pub(super) fn wakeup(&mut self, task: TaskId, target: CpuId) {
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

    pub(super) fn wakeup_new(&mut self, task: TaskId, target: CpuId) {
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
        (state.phase, state.since, state.released, state.queue) =
            (Phase::Waiting, now, now, target);
        self.join(target);
    }

    // Ready queues and idleness.

    /// A waiting task waits on another CPU from now on.
    #[inline]
    pub(super) fn requeue(&mut self, task: TaskId, to: CpuId) {
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
    pub(super) fn become_idle(&mut self, cpu: CpuId, idle: bool) {
        let state = &mut self.cpus[cpu.index()];
        state.is_idle = idle;
        if idle {
            (state.idle_since, state.waste_mark) = (self.now, self.totals.time_waiting);
            self.idle += 1;
        } else {
            state.idle += self.now.since(state.idle_since);
            self.totals.idle_waste += self.totals.time_waiting - state.waste_mark;
            self.idle -= 1;
        }
    }
}
