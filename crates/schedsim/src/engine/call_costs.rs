//! The kernel's work in tasks' calls: a task that blocks, wakes others, exits or is preempted pays
//! for it.
//!
//! A task that has to wait leaves its CPU only after that work. If it is woken in between, it stays,
//! as in Linux: it has not slept.

use super::step::Off;
use super::{Engine, TaskState};
use crate::machine::CallCosts;
use crate::policy::Policy;
use crate::trace::{CallKind, EventKind, OverheadKind, Sink};
use crate::workload::Action;
use crate::{CpuId, Nanos, TaskId};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The costs and their draws; `None` in the engine where calls are free.
#[derive(Debug)]
pub struct CallWork {
    costs: CallCosts,
    random: SplitMix64,
    /// What the wakings of the task that is acting take.
    waking: Nanos,
}

/// Whether a task has still to leave its CPU, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    No,
    As(Off),
}

impl CallWork {
    pub fn new(costs: &CallCosts) -> Option<Box<CallWork>> {
        let random = SplitMix64::seed_from_u64(costs.seed);
        (!costs.are_free())
            .then(|| Box::new(CallWork { costs: costs.clone(), random, waking: Nanos::ZERO }))
    }

    fn take_waking(&mut self) -> Nanos {
        std::mem::take(&mut self.waking)
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// A task is woken on `target` by the one that acts on `waker`.
    #[cold]
    pub(super) fn charge_waking(&mut self, waker: CpuId, target: CpuId) {
        let Some(work) = &mut self.call_work else { return };
        let idles = !self.cpus[target.index()].is_busy();
        let spread =
            if waker == target { &work.costs.wake_here } else { work.costs.wake_other(idles) };
        work.waking += spread.draw(work.random.next_u64());
    }

    /// The task of `cpu` pays for what it woke and continues.
    #[cold]
    pub(super) fn pay_for_wakings(&mut self, cpu: CpuId, task: TaskId) {
        let cost = self.call_work.as_mut().map_or(Nanos::ZERO, |work| work.take_waking());
        if cost > Nanos::ZERO {
            self.pause(cpu, task, cost, OverheadKind::Calls);
        }
    }

    /// The task of `cpu` pays before it leaves. Returns whether there is anything to pay.
    #[cold]
    pub(super) fn pays_before_it_leaves(&mut self, cpu: CpuId, task: TaskId, off: Off) -> bool {
        let Some(work) = &mut self.call_work else { return false };
        let mut cost = work.take_waking();
        let leaving = if off == Off::Ends { &work.costs.exit } else { &work.costs.block };
        if off != Off::Ends || !leaving.is_zero() {
            cost += leaving.draw(work.random.next_u64());
        }
        let cost = cost.min(self.until.since(self.seat.cx().now));
        if cost == Nanos::ZERO {
            return false;
        }
        let state = &mut self.tasks[task.index()];
        state.leaving = Leaving::As(off);
        state.waits = off == Off::Waits;
        self.pause(cpu, task, cost, OverheadKind::Calls);
        true
    }

    /// The task of `cpu` is preempted. What that took is work that it has not done.
    #[cold]
    pub(super) fn pays_for_preemption(&mut self, cpu: CpuId, task: TaskId) {
        let Some(work) = self.call_work.as_mut().filter(|work| !work.costs.preempt.is_zero())
        else {
            return;
        };
        let spent = work.costs.preempt.draw(work.random.next_u64());
        if spent > Nanos::ZERO {
            self.tasks[task.index()].work += spent;
            let kind = OverheadKind::Calls;
            self.trace.push(self.now(), cpu, EventKind::Overhead { task, kind, spent });
        }
    }

    /// The operation of a task that is woken before it has left its CPU is finished.
    #[cold]
    pub(super) fn end_call_of_one_who_stays(&mut self, task: TaskId) {
        let state = &self.tasks[task.index()];
        if state.leaving != Leaving::No && matches!(state.then, Action::Do(_)) {
            let cpu = self.seat.cx().task(task).cpu;
            self.calls(cpu, task, CallKind::Done);
        }
    }

    /// Whether the task, which was woken, had not left its CPU yet and stays.
    #[cold]
    pub(super) fn stays(&mut self, task: TaskId) -> bool {
        let state = &mut self.tasks[task.index()];
        if !matches!(state.leaving, Leaving::As(Off::Sleeps | Off::Waits)) {
            return false;
        }
        (state.leaving, state.waits) = (Leaving::No, false);
        let cpu = self.seat.cx().task(task).cpu;
        if self.seat.state(task) == TaskState::Running && self.current(cpu) == task {
            self.plan(cpu);
        }
        true
    }
}
