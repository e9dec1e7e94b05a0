//! Forces a recorded dispatch on a policy, by removing the tasks that it prefers for a moment.

use super::super::{Arrival, Live};
use super::follower::Woken;
use crate::policy::{Policy, Stop};
use crate::{CpuId, TaskId, Time};

impl<P: Policy + Clone> Live<P> {
    /// A copy of the policy that has dispatched `task` to `cpu`. Of two ways to force this, the one
    /// that keeps the order of the other tasks.
    pub(super) fn forcing(&self, cpu: CpuId, task: TaskId) -> Live<P> {
        let mut others = self.order(cpu);
        others.retain(|&other| other != task);
        let preferred = self.without_preferred(cpu, task);
        let keeps_order = |live: &Live<P>| {
            let mut after = live.clone();
            after.running(cpu, task);
            after.stopped(cpu, Stop::Blocked);
            after.order(cpu) == others
        };
        if keeps_order(&preferred) {
            return preferred;
        }
        let alone = self.without_others(cpu, &others);
        if alone.current(cpu) == Some(task) && keeps_order(&alone) { alone } else { preferred }
    }

    /// The order in which the policy would run tasks on `cpu`, if each one slept when chosen.
    fn order(&self, cpu: CpuId) -> Vec<TaskId> {
        let (mut ahead, mut order) = (self.clone(), Vec::new());
        loop {
            ahead.dispatch(cpu);
            let Some(task) = ahead.current(cpu) else { return order };
            order.push(task);
            ahead.running(cpu, task);
            ahead.cpus[cpu.index()].preempted = false;
            ahead.stopped(cpu, Stop::Blocked);
        }
    }

    /// Removes only the tasks that the policy prefers to `task`.
    fn without_preferred(&self, cpu: CpuId, task: TaskId) -> Live<P> {
        let (mut live, mut away) = (self.clone(), Vec::new());
        loop {
            live.dispatch(cpu);
            match live.current(cpu) {
                Some(chosen) if chosen == task => break,
                Some(other) => {
                    away.push(other);
                    live.taken(other);
                }
                None => {
                    live.seat.expect_none_lost();
                    break;
                }
            }
        }
        live.back(cpu, &away);
        live
    }

    /// Removes all `others`, and restores them in this order.
    fn without_others(&self, cpu: CpuId, others: &[TaskId]) -> Live<P> {
        let mut live = self.clone();
        others.iter().for_each(|&other| live.taken(other));
        live.dispatch(cpu);
        live.back(cpu, others);
        live
    }

    fn back(&mut self, cpu: CpuId, away: &[TaskId]) {
        away.iter().for_each(|&task| self.wake(task, false, None));
        self.cpus[cpu.index()].preempted = false;
    }

    /// A task waits whose wakeup was not recorded.
    pub(super) fn bring(&mut self, task: TaskId, unseen: Option<Arrival>) {
        unseen.into_iter().for_each(|arrival| self.arrive(task, arrival));
        self.wake(task, false, None);
    }

    /// These tasks woke before `now`.
    pub(super) fn catch_up(&mut self, woken: &[(Woken, Option<Arrival>)], now: Time) {
        for &(Woken { time, task, new, waker }, unseen) in woken {
            self.at(time);
            unseen.into_iter().for_each(|arrival| self.arrive(task, arrival));
            self.wake(task, new, waker);
        }
        self.at(now);
    }
}
