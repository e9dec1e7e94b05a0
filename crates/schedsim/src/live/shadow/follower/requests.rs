//! When the policy wants a running task to stop (tick, slice or preemption), and whether the
//! recorded CPU stopped it.

use super::{Divergence, Follower};
use crate::policy::{Policy, Stop};
use crate::seat::TaskState;
use crate::trace::{Event, EventKind};
use crate::{CpuId, Nanos, Time};

/// The tolerance for the end of a slice: recorded times are a little before or after the event.
const TOLERANCE: Nanos = Nanos(2_000);
/// A tick this close before a switch waits until the switch is done, and belongs to the next task.
const SWITCH: Nanos = Nanos(4_000);
/// The longest time from the cause of a stop to the stop.
const DONE: Nanos = Nanos(100_000);

impl<P: Policy + Clone> Follower<P> {
    /// Applies all ticks before `event`, if the policy wants ticks, and the stop requests that are
    /// due by then. Returns whether the last tick comes just after the event instead.
    pub(super) fn ticks_until(&mut self, event: &Event) -> bool {
        let (end, is_switch) = (event.time, matches!(event.kind, EventKind::SchedSwitch { .. }));
        let mut is_late = false;
        while let Some(time) = self.next_tick().filter(|&time| time < end) {
            self.live.machine().all().for_each(|cpu| self.settle_request(cpu, time));
            is_late = is_switch && end.since(time) <= SWITCH;
            self.live.at(time);
            self.tick += 1;
            self.live
                .machine()
                .all()
                .filter(|&cpu| !is_late || cpu != event.cpu)
                .for_each(|cpu| self.ticks(cpu));
        }
        self.live.machine().all().for_each(|cpu| self.settle_request(cpu, end));
        is_late
    }

    fn next_tick(&self) -> Option<Time> {
        self.live.machine().ticks.as_ref().map(|ticks| ticks.time_of(self.tick))
    }

    /// The last tick interrupts `cpu`.
    pub(super) fn ticks(&mut self, cpu: CpuId) {
        let is_running = self
            .live
            .current(cpu)
            .is_some_and(|task| self.live.seat.state(task) == TaskState::Running);
        let Some(ticks) = self
            .live
            .machine()
            .ticks
            .as_ref()
            .filter(|_| is_running && self.live.interrupted(cpu).is_none())
        else {
            return;
        };
        let every = self.live.seat.policy().needs().tick.map(|period| ticks.within(period));
        if every.is_some_and(|every| self.tick.is_multiple_of(every)) {
            self.cpus[cpu.index()].is_called = true;
            self.live.tick(cpu);
        }
        if self.live.cpus[cpu.index()].preempted || self.is_over(cpu) {
            self.cpus[cpu.index()].stop_wanted = Some(self.live.now());
        }
    }

    /// If `cpu` should have stopped its task and has not by `now`: the task continued. The policy
    /// may have chosen it again, which records no switch.
    pub(super) fn settle_request(&mut self, cpu: CpuId, now: Time) {
        let Some(since) =
            self.cpus[cpu.index()].stop_wanted.take_if(|since| now.since(*since) > DONE)
        else {
            return;
        };
        let Some(task) = self.live.current(cpu) else { return };
        let before = (!self.is_trial).then(|| self.live.clone());
        let why =
            if self.live.cpus[cpu.index()].preempted { Stop::Preempted } else { Stop::SliceOver };
        self.live.stopped(cpu, why);
        self.live.dispatch(cpu);
        self.outcome.judgement.decisions += 1;
        let chosen = self.live.current(cpu);
        if chosen == Some(task) {
            self.live.running(cpu, task);
            self.live.cpus[cpu.index()].since = Some(since);
            return;
        }
        if let Some(before) = before {
            self.live = before;
        }
        self.diverges(cpu, Divergence::Stop, Some(task), chosen);
        let state = &mut self.live.cpus[cpu.index()];
        (state.preempted, state.left) = (false, Nanos::MAX);
    }

    /// How much of its slice the task of `cpu` has used since it started or continued, and how much
    /// was left then.
    pub(super) fn slice(&self, cpu: CpuId) -> (Nanos, Nanos) {
        let state = self.live.cpus[cpu.index()];
        (state.since.map_or(Nanos::ZERO, |since| self.live.now().since(since)), state.left)
    }

    /// Whether the slice of the task of `cpu` is over, or nearly.
    pub(super) fn is_over(&self, cpu: CpuId) -> bool {
        let (had, left) = self.slice(cpu);
        had + TOLERANCE >= left
    }
}
