//! The events of a CPU: dispatch, switch, tick, end of a burst or slice.

use super::call_costs::Leaving;
use super::sharing::{lost, part};
use super::step::{Done, Off};
use super::{Engine, NOBODY};
use crate::policy::{Dispatch, Enqueue, Policy, Scan, Stop};
use crate::trace::{Call, CallKind, EventKind, OverheadKind, PrevState, Sink};
use crate::workload::Action;
use crate::{CpuId, Nanos, TaskId, Time};

/// The engine's state of a CPU. Its running task is in the context.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    pub state: CpuState,
    /// When it must dispatch even if its task could continue; `Time::NEVER` if never.
    pub resched_at: Time,
    /// The task that it last switched to.
    pub occupant: TaskId,
    /// The running task's work is accounted for until this time; in the future during a switch.
    pub run_from: Time,
    pub slice_end: Time,
    pub next_tick: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuState {
    Idle,
    /// Kicked; dispatches after this time.
    LeavingIdle(Nanos),
    Busy,
}

impl Cpu {
    pub const IDLE: Cpu = Cpu {
        state: CpuState::Idle,
        resched_at: Time::NEVER,
        occupant: TaskId::NONE,
        run_from: Time::ZERO,
        slice_end: Time::NEVER,
        next_tick: Time::NEVER,
    };

    /// Whether it runs a task. It does not while it leaves idle.
    pub fn is_busy(&self) -> bool {
        self.state == CpuState::Busy
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    #[inline(always)]
    pub(super) fn cpu_event(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if let CpuState::LeavingIdle(spent) = state.state {
            self.trace.push(
                self.now(),
                cpu,
                EventKind::Overhead { task: TaskId::NONE, kind: OverheadKind::IdleExit, spent },
            );
            self.resched.push(cpu);
            return;
        }
        if state.state == CpuState::Idle {
            if cpu.0 == self.seat.cx().machine.cpus {
                return self.call_policy(cpu);
            }
            self.alarms[cpu.index()] = Time::NEVER;
            self.interrupted = cpu;
            self.kick(cpu, Nanos::ZERO);
            self.interrupted = NOBODY;
            return;
        }
        let Cpu { slice_end, next_tick, resched_at, run_from, .. } = *state;
        self.account(cpu);
        let task = self.current(cpu);
        let now = self.now();
        if self.tasks[task.index()].left() == Nanos::ZERO && run_from <= now {
            self.events += 1;
            self.act(cpu, task);
        } else if resched_at <= now {
            self.stop(cpu, Stop::Preempted);
        } else if slice_end <= now && !(next_tick == now && self.takes_its_tick(cpu)) {
            self.events += 1;
            self.stop(cpu, Stop::SliceOver);
        } else {
            debug_assert_eq!(next_tick, now);
            self.cpus[cpu.index()].next_tick = self.tick_after(cpu, now);
            self.plan(cpu);
            self.tick(cpu);
        }
    }

    /// Whether the tick of `cpu` at this moment takes time, before any effect of it.
    #[cold]
    fn takes_its_tick(&self, cpu: CpuId) -> bool {
        let ticks = self.machine().ticks.as_ref();
        ticks.is_some_and(|ticks| ticks.cost_at(self.now()) > Nanos::ZERO)
            && self.cpus[cpu.index()].resched_at == Time::NEVER
    }

    /// A tick. The policy receives it if it is one that it needs.
    fn tick(&mut self, cpu: CpuId) {
        let (period, now) = (self.seat.policy().needs().tick, self.now());
        let (cost, is_reported) = match &self.machine().ticks {
            None => (Nanos::ZERO, true),
            Some(ticks) => (
                ticks.cost_at(now),
                period.is_some_and(|period| ticks.is_one_of(now, ticks.within(period))),
            ),
        };
        let is_free = self.cpus[cpu.index()].run_from <= now;
        if cost > Nanos::ZERO {
            self.interrupt(cpu, cost, Nanos::ZERO);
        }
        if is_reported {
            self.interrupt_for_tick(cpu, is_free);
        }
    }

    /// A policy in a user-space program interrupts `cpu` for the tick. It does not if it occupies
    /// the CPU already, so that the CPU was not `is_free`, or if the CPU stops its task anyway.
    #[inline]
    fn interrupt_for_tick(&mut self, cpu: CpuId, is_free: bool) {
        let effect = self.seat.tick(cpu);
        self.apply(effect, Nanos::ZERO);
        if self.costs_are_special && is_free && self.cpus[cpu.index()].resched_at == Time::NEVER {
            self.interrupt(cpu, self.machine().interruption, Nanos::ZERO);
        }
    }

    /// The running task has finished the work of its step: executes the action, then continues with
    /// the next step unless the task leaves the CPU.
    #[inline(always)]
    fn act(&mut self, cpu: CpuId, task: TaskId) {
        let off = match self.tasks[task.index()].then {
            _ if self.costs_are_special && self.call_work.is_some() => {
                return self.act_in_full(cpu, task);
            }
            Action::Sleep(pause) => self.sleep(task, pause),
            Action::Exit => self.exit(cpu, task),
            _ => return self.act_in_full(cpu, task),
        };
        let prev_state = self.retire(cpu, task, off);
        self.dispatch_here(cpu, prev_state);
    }

    /// As [`act`](Self::act), for tasks that may do more than sleep and end.
    #[inline(never)]
    fn act_in_full(&mut self, cpu: CpuId, task: TaskId) {
        if let Leaving::As(off) = self.tasks[task.index()].leaving {
            return self.leave_now(cpu, task, off);
        }
        loop {
            match self.tasks[task.index()].then {
                Action::Continue => {}
                Action::Wake(other) => self.give_token(other, cpu),
                Action::Fork(child) => self.fork(cpu, task, child),
                Action::Sleep(pause) => {
                    let off = self.sleep(task, pause);
                    return self.leave(cpu, task, off);
                }
                Action::Wait => {
                    let tokens = &mut self.tasks[task.index()].tokens;
                    if *tokens == 0 {
                        return self.leave(cpu, task, Off::Waits);
                    }
                    *tokens -= 1;
                }
                Action::Do(operation) => {
                    self.calls(cpu, task, CallKind::Performs(operation));
                    match self.perform(cpu, task, operation) {
                        Done::Yes => self.calls(cpu, task, CallKind::Done),
                        Done::Blocks(off) => return self.leave(cpu, task, off),
                        Done::Spins => {
                            if self.costs_are_special {
                                self.resume_late(cpu, task);
                            }
                            return self.plan(cpu);
                        }
                        Done::Never => return,
                    }
                }
                Action::Yield => {
                    self.calls(cpu, task, CallKind::Yields);
                    self.next_step(task);
                    return self.stop(cpu, Stop::Yielded);
                }
                Action::Exit => {
                    let off = self.exit(cpu, task);
                    return self.leave(cpu, task, off);
                }
            }
            self.next_step(task);
            if self.costs_are_special {
                self.resume_late(cpu, task);
                self.pay_for_wakings(cpu, task);
            }
            if self.tasks[task.index()].work > Nanos::ZERO
                || self.cpus[cpu.index()].run_from > self.now()
            {
                return self.plan(cpu);
            }
        }
    }

    #[inline(always)]
    pub(super) fn calls(&mut self, cpu: CpuId, task: TaskId, kind: CallKind) {
        self.trace.call(Call { time: self.seat.cx().now, cpu, task, kind });
    }

    /// The task of `cpu` pauses for `cost`, even if the CPU is about to stop it. It also pauses for
    /// `interruption`, unless it is about to stop, has not begun, or pauses already: that other
    /// work then includes this one.
    #[cold]
    pub(super) fn interrupt(&mut self, cpu: CpuId, cost: Nanos, interruption: Nanos) {
        let (now, task) = (self.now(), self.current(cpu));
        let Cpu { resched_at, run_from, .. } = self.cpus[cpu.index()];
        let cost =
            if run_from > now || resched_at < Time::NEVER { cost } else { cost + interruption };
        if cost == Nanos::ZERO || task == TaskId::NONE {
            return;
        }
        self.account(cpu);
        if self.tasks[task.index()].left() == Nanos::ZERO && run_from <= now {
            // It is about to act, or is acting now. Whether it continues is not known yet.
            self.kept[cpu.index()] = self.kept[cpu.index()].max(now) + cost;
        } else {
            self.pause(cpu, task, cost, OverheadKind::Switch);
        }
    }

    /// The task of `cpu` continues `cost` later.
    pub(super) fn pause(&mut self, cpu: CpuId, task: TaskId, cost: Nanos, kind: OverheadKind) {
        let now = self.now();
        let state = &mut self.cpus[cpu.index()];
        let from = state.run_from.max(now);
        let spent = cost.min(self.until.since(from));
        state.run_from = from + spent;
        state.slice_end = state.slice_end.max(state.run_from);
        if state.resched_at < Time::NEVER {
            state.resched_at = state.resched_at.max(state.run_from);
        }
        self.trace.push(self.now(), cpu, EventKind::Overhead { task, kind, spent });
        self.plan(cpu);
    }

    /// The action of `task` interrupted `cpu`, and `task` continues.
    #[cold]
    fn resume_late(&mut self, cpu: CpuId, task: TaskId) {
        let kept = self.kept.get(cpu.index()).map_or(Nanos::ZERO, |until| until.since(self.now()));
        if kept > Nanos::ZERO {
            self.kept[cpu.index()] = Time::ZERO;
            self.pause(cpu, task, kept, OverheadKind::Switch);
        }
    }

    pub(super) fn fork(&mut self, cpu: CpuId, parent: TaskId, child: TaskId) {
        self.trace.push(self.now(), cpu, EventKind::SchedProcessFork { parent, child });
        self.start(child, Some(cpu));
    }

    #[inline(always)]
    fn sleep(&mut self, task: TaskId, pause: Nanos) -> Off {
        self.timers.insert(self.now() + pause, task);
        Off::Sleeps
    }

    #[inline(always)]
    fn exit(&mut self, cpu: CpuId, task: TaskId) -> Off {
        self.depart(cpu, task);
        self.disinherit(task);
        self.load.ended(task);
        self.trace.push(self.now(), cpu, EventKind::SchedProcessExit { task });
        if self.sync.counts_tasks() {
            self.ended(task, cpu);
        }
        Off::Ends
    }

    /// The running task leaves the CPU and is not runnable.
    fn leave(&mut self, cpu: CpuId, task: TaskId, off: Off) {
        if !(self.costs_are_special && self.pays_before_it_leaves(cpu, task, off)) {
            self.leave_now(cpu, task, off);
        }
    }

    fn leave_now(&mut self, cpu: CpuId, task: TaskId, off: Off) {
        self.tasks[task.index()].leaving = Leaving::No;
        let prev_state = self.retire(cpu, task, off);
        self.dispatch(cpu, prev_state);
    }

    /// The running task is no longer runnable. Returns the state for the switch event.
    #[inline(always)]
    fn retire(&mut self, cpu: CpuId, task: TaskId, off: Off) -> PrevState {
        let (stop, prev_state) = if off == Off::Ends {
            (Stop::Exited, PrevState::Dead)
        } else {
            (Stop::Blocked, PrevState::Blocked)
        };
        self.tasks[task.index()].waits = off == Off::Waits;
        self.put_away(cpu, task, stop);
        self.take_prio(task);
        if stop == Stop::Exited {
            self.seat.exit_task(task);
        }
        prev_state
    }

    /// The running task stops and waits from now on.
    fn stop(&mut self, cpu: CpuId, stop: Stop) {
        let task = self.current(cpu);
        self.put_away(cpu, task, stop);
        if stop == Stop::Preempted && self.call_work.is_some() {
            self.pays_for_preemption(cpu, task);
        }
        let why = if self.take_prio(task) { Some(Enqueue::PrioChanged) } else { stop.requeue() };
        if let Some(why) = why {
            self.enqueue(task, cpu, why);
        }
        self.dispatch(cpu, PrevState::Runnable);
    }

    #[inline(always)]
    fn put_away(&mut self, cpu: CpuId, task: TaskId, stop: Stop) {
        self.tasks[task.index()].stopped = self.now();
        self.seat.stopping(cpu, stop);
    }

    pub(super) fn reschedule(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].state {
            CpuState::Idle => {}
            CpuState::LeavingIdle(_) => self.dispatch_here(cpu, PrevState::Runnable),
            CpuState::Busy if self.cpus[cpu.index()].resched_at <= self.now() => {
                self.account(cpu);
                let task = self.current(cpu);
                // A job that completes at this moment completes before the next one is released.
                if self.seat.cx().reservation(task).is_some()
                    && self.tasks[task.index()].left() == Nanos::ZERO
                {
                    self.events += 1;
                    return self.act_in_full(cpu, task);
                }
                self.stop(cpu, Stop::Preempted);
            }
            CpuState::Busy => {} // it has dispatched in the meantime
        }
    }

    #[inline(never)]
    fn dispatch(&mut self, cpu: CpuId, prev_state: PrevState) {
        self.dispatch_here(cpu, prev_state);
    }

    /// Calls `dispatch`: the policy chooses the next task of `cpu`. The previous task has been put
    /// away; `prev_state` is its state. Inlined where most dispatches happen.
    #[inline(always)]
    fn dispatch_here(&mut self, cpu: CpuId, prev_state: PrevState) {
        let choice = self.seat.dispatch(cpu);
        let (now, prev) = (self.now(), self.cpus[cpu.index()].occupant);
        match choice {
            Some(Dispatch { task: next, slice }) => {
                let mut run_from = now;
                if next != prev {
                    self.charge_move(cpu, next);
                    self.trace.push(now, cpu, EventKind::SchedSwitch { prev, next, prev_state });
                    run_from += self.switch(cpu, next);
                } else if self.costs_are_special && self.machine().unseen > Nanos::ZERO {
                    run_from += self.switch(cpu, next); // there was a program between
                }
                if self.costs_are_special {
                    run_from = self.charge_specially(cpu, next, run_from);
                }
                self.run_on(cpu, next, run_from, slice);
            }
            None => {
                if prev != TaskId::NONE {
                    self.trace.push(
                        now,
                        cpu,
                        EventKind::SchedSwitch { prev, next: TaskId::NONE, prev_state },
                    );
                }
                self.idle_on(cpu);
            }
        }
        // A CPU that was woken too early, by an alarm or for a task that has to wait, may need an
        // alarm.
        let stays_idle = choice.is_none() && !self.alarms.is_empty();
        if stays_idle || choice.is_none() != (prev == TaskId::NONE) {
            let effect = self.seat.update_idle(cpu, choice.is_none());
            self.apply(effect, Nanos::ZERO);
        }
    }

    #[inline(always)]
    fn idle_on(&mut self, cpu: CpuId) {
        if !self.rates.are_even() {
            self.share_core(cpu, false);
        }
        let state = &mut self.cpus[cpu.index()];
        *state = Cpu {
            state: CpuState::Idle,
            occupant: TaskId::NONE,
            resched_at: Time::NEVER,
            ..*state
        };
        self.seat.idle(cpu);
        if self.costs_are_special {
            self.idles_from_now(cpu);
        }
        let alarm = self.alarms.get(cpu.index()).copied().unwrap_or(Time::NEVER);
        self.cpu_times.set(cpu, if alarm < self.now() { Time::NEVER } else { alarm });
    }

    /// Charges `next` the costs of a dispatch that only some machines have, and starts its work.
    #[cold]
    fn charge_specially(&mut self, cpu: CpuId, next: TaskId, mut run_from: Time) -> Time {
        if self.machine().queue_cost.is_some() {
            run_from = self.queue(cpu, next, run_from);
        }
        if self.locks.is_some() {
            run_from = self.hold_lock(cpu, next, run_from);
        }
        if let Some(kept) = self.kept.get_mut(cpu.index()) {
            let cost = std::mem::take(kept).since(self.seat.cx().now);
            run_from = self.spend(cpu, next, OverheadKind::Switch, cost, run_from);
        }
        if !self.rates.are_even() {
            self.share_core(cpu, true);
        }
        run_from
    }

    /// Charges `next` for a migration to `cpu` or a long absence.
    #[inline(always)]
    fn charge_move(&mut self, cpu: CpuId, next: TaskId) {
        let from = self.seat.cx().task(next).cpu;
        let state = &mut self.tasks[next.index()];
        let migrates = state.has_run && from != cpu;
        if migrates {
            state.debt = self.seat.cx().machine.migration_cost(from, cpu);
            self.trace.push(
                self.seat.cx().now,
                cpu,
                EventKind::SchedMigrateTask { task: next, from, to: cpu },
            );
        }
        if self.slowdown.at_dispatch {
            self.charge_sharing(cpu, next, migrates);
        }
    }

    /// Charges the costs of [`Sharing`](crate::Sharing) that depend on the CPU of a task.
    #[cold]
    fn charge_sharing(&mut self, cpu: CpuId, next: TaskId, migrates: bool) {
        let (now, sharing, cost) =
            (self.now(), self.machine().sharing, self.machine().migration_cost);
        let state = &mut self.tasks[next.index()];
        if !state.has_run {
            return;
        }
        if let (false, Some(half_life)) = (migrates, sharing.refill_half_life) {
            let refill = Nanos((cost.0 as f64 * lost(now - state.stopped, half_life)) as u64);
            state.debt = state.debt.max(refill);
        }
        if migrates {
            state.drag += part(state.work, self.slowdown.migrated);
        }
        if state.is_fresh && state.home != cpu {
            state.drag += part(state.work, self.slowdown.remote);
        }
        if migrates && sharing.bus > Nanos::ZERO {
            for other in self.machine().all().filter(|&other| other != cpu) {
                let running = self.current(other);
                if running != TaskId::NONE {
                    self.account(other);
                    self.tasks[running.index()].drag += sharing.bus;
                    self.plan(other);
                }
            }
        }
    }

    /// Charges for a switch to `next`.
    #[inline(always)]
    fn switch(&mut self, cpu: CpuId, next: TaskId) -> Nanos {
        if self.machine().switch_cost == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let spent = self.machine().switch_cost.min(self.until - self.now());
        if spent > Nanos::ZERO {
            self.trace.push(
                self.now(),
                cpu,
                EventKind::Overhead { task: next, kind: OverheadKind::Switch, spent },
            );
        }
        spent
    }

    /// Charges for the insert and the pop that chose `next`, or for the policy's instructions.
    /// Returns when `next` starts to run.
    #[cold]
    fn queue(&mut self, cpu: CpuId, next: TaskId, from: Time) -> Time {
        let waiting = self.seat.policy().queue_length(cpu);
        let work = self.seat.take_work(cpu);
        let cost = self.machine().queue_cost.as_ref();
        let cost = cost.map_or(Nanos::ZERO, |cost| cost.of(waiting + 1) + cost.of_work(work));
        self.spend(cpu, next, OverheadKind::Queue, cost, from)
    }

    /// Waits for the lock of the queue that held `next`, and for the search there. Returns when
    /// `next` starts to run; without the lock that is `from`.
    #[cold]
    fn hold_lock(&mut self, cpu: CpuId, next: TaskId, from: Time) -> Time {
        let Scan { queue, entries } = self.seat.scan(cpu);
        let (now, machine) = (self.now(), self.machine());
        let hold = Nanos(machine.lock_hold.0.saturating_mul(u64::from(entries)));
        let contention = machine.lock_contention;
        let Some(locks) = &mut self.locks else { return from };
        let cost = locks.decide(now, queue, hold, contention).since(now);
        self.spend(cpu, next, OverheadKind::Queue, cost, from)
    }

    /// Charges `cost` to `task` from `from` on, up to the end of the run. Returns when the task
    /// starts to run.
    fn spend(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        kind: OverheadKind,
        cost: Nanos,
        from: Time,
    ) -> Time {
        let spent = cost.min(self.until.since(from));
        if spent > Nanos::ZERO {
            self.trace.push(self.now(), cpu, EventKind::Overhead { task, kind, spent });
        }
        from + spent
    }

    #[inline(always)]
    fn run_on(&mut self, cpu: CpuId, task: TaskId, run_from: Time, slice: Nanos) {
        self.events += 1;
        let state = &mut self.tasks[task.index()];
        if !state.has_run {
            state.home = cpu;
        }
        state.has_run = true;
        state.is_fresh = false;
        let done = run_from + self.rates.time_for(cpu, state.left());
        let (slice_end, next_tick) =
            (self.machine().slice_end(cpu, run_from + slice), self.tick_after(cpu, run_from));
        self.cpus[cpu.index()] = Cpu {
            state: CpuState::Busy,
            occupant: task,
            run_from,
            slice_end,
            next_tick,
            resched_at: Time::NEVER,
        };
        self.cpu_times.set(cpu, done.min(slice_end).min(next_tick));
        let later = if self.costs_are_special {
            self.machine().unseen.min(run_from.since(self.now()))
        } else {
            Nanos::ZERO
        };
        self.seat.start(cpu, task, later);
    }

    /// Computes the next event of this busy CPU.
    #[inline]
    pub(super) fn plan(&mut self, cpu: CpuId) {
        let state = &self.cpus[cpu.index()];
        let task = &self.tasks[self.current(cpu).index()];
        let done = state.run_from + self.rates.time_for(cpu, task.left());
        let next = done.min(state.slice_end).min(state.next_tick).min(state.resched_at);
        self.cpu_times.set(cpu, next);
    }

    /// The first tick of `cpu` after `time`, the end of its switch; the ticks of a machine's kernel
    /// come during a switch, too. Nearly always the tick that was predicted last, so that no
    /// division is needed.
    #[inline]
    fn tick_after(&self, cpu: CpuId, time: Time) -> Time {
        let (Some(tick), expected) = (self.tick, self.cpus[cpu.index()].next_tick) else {
            return Time::NEVER;
        };
        let is_next = time < expected && expected.since(time) <= tick;
        match &self.machine().ticks {
            _ if is_next => expected,
            None => Time((time.0 / tick.0 + 1) * tick.0),
            Some(ticks) => ticks.after(cpu, self.now(), ticks.within(tick)),
        }
    }

    /// Accounts for the running task of `cpu` until now: first the cost of its migration, then that
    /// of sharing, then its work.
    #[inline(always)]
    pub(super) fn account(&mut self, cpu: CpuId) {
        let (now, task) = (self.now(), self.current(cpu));
        let state = &mut self.cpus[cpu.index()];
        if task == TaskId::NONE || state.run_from >= now {
            return;
        }
        let mut ran = now - state.run_from;
        state.run_from = now;
        if !self.rates.are_even() {
            ran = self.progress(cpu, task, ran);
        }
        let state = &mut self.tasks[task.index()];
        if state.debt > Nanos::ZERO {
            let spent = ran.min(state.debt);
            state.debt -= spent;
            ran -= spent;
            self.trace.push(
                now,
                cpu,
                EventKind::Overhead { task, kind: OverheadKind::Migration, spent },
            );
        }
        if state.drag > Nanos::ZERO && ran > Nanos::ZERO {
            let spent = ran.min(state.drag);
            state.drag -= spent;
            ran -= spent;
            let kind = if state.spins() { OverheadKind::Spin } else { OverheadKind::Sharing };
            self.trace.push(now, cpu, EventKind::Overhead { task, kind, spent });
        }
        state.work -= ran;
        self.useful += ran;
    }
}
