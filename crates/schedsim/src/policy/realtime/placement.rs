//! Chooses CPUs for real-time tasks: where a task wakes, which task a CPU takes, and which CPU a
//! waiting task preempts.

use super::{Queue, RealTime};
use crate::policy::{Context, Effect};
use crate::{CpuId, TaskId};
use readyq::{Nodes, ReadyQueue};
use std::cmp::Reverse;

/// The next task of a CPU. Ordered by importance, then own tasks before foreign ones, then by CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Best {
    prio: u8,
    is_foreign: bool,
    pub from: CpuId,
    pub task: TaskId,
}

impl RealTime {
    /// The CPU on which a waking task waits.
    pub fn select_cpu(&self, cx: &Context, task: TaskId) -> CpuId {
        let last = cx.task(task).cpu;
        if cx.allowed(task, last) && self.runs_less(cx, last, cx.task(task).prio) {
            return last;
        }
        match self.victim(cx, task) {
            Some(cpu) => cpu,
            None if cx.allowed(task, last) => last,
            None => cx.allowed_cpus(task).next().unwrap_or(last),
        }
    }

    /// The most important task that `cpu` may run; ties go to its own.
    pub(super) fn best(&self, cx: &Context, cpu: CpuId) -> Option<Best> {
        let queue = &self.queues[cpu.index()];
        if self.waiting == 0 || queue.is_closed(cx.now()) {
            return None;
        }
        let nodes = Nodes::from_ref(&self.nodes);
        let of =
            |task, from| Best { prio: cx.task(task).prio, is_foreign: from != cpu, from, task };
        let own = queue.tasks.peek(nodes).map(|task| of(task, cpu));
        if self.waiting == queue.waiting {
            return own;
        }
        let others = self
            .queues
            .iter()
            .zip(cx.machine().all())
            .filter(|(other, from)| *from != cpu && other.waiting > 0);
        let foreign = others.filter_map(|(other, from)| {
            let mut keeps = self.keeps_first(cx, from);
            let task = other.tasks.find(nodes, |task| {
                let waits = other.running != Some(task);
                waits && !std::mem::take(&mut keeps) && cx.allowed(task, cpu)
            })?;
            Some(of(task, from))
        });
        foreign.chain(own).min()
    }

    /// Whether `cpu` is about to stop for the first of its waiting tasks, which stays there then: it
    /// is more important than what runs (`pull_rt_task`).
    fn keeps_first(&self, cx: &Context, cpu: CpuId) -> bool {
        let queue = &self.queues[cpu.index()];
        let nodes = Nodes::from_ref(&self.nodes);
        let is_next = |task: TaskId| {
            cx.current(cpu).is_none_or(|running| cx.task(task).prio < cx.task(running).prio)
        };
        self.kicked.contains(cpu)
            && !queue.is_closed(cx.now())
            && queue.tasks.find(nodes, |task| queue.running != Some(task)).is_some_and(is_next)
    }

    /// Whether `cpu` idles or runs a task less important than `prio`, and will continue to.
    pub(super) fn runs_less(&self, cx: &Context, cpu: CpuId, prio: u8) -> bool {
        self.importance(cx, cpu).is_some_and(|importance| importance > prio)
    }

    /// The importance of the task on `cpu`: the higher, the less important. `None` if it is about
    /// to dispatch or unavailable.
    fn importance(&self, cx: &Context, cpu: CpuId) -> Option<u8> {
        let queue = &self.queues[cpu.index()];
        if queue.is_closed(cx.now()) || self.kicked.contains(cpu) {
            return None;
        }
        match cx.current(cpu) {
            Some(running) => Some(cx.task(running).prio),
            None => cx.idle().contains(cpu).then_some(u8::MAX),
        }
    }

    /// The CPU that runs the least important task, if that is less important than `task`; the
    /// lowest CPU among equals.
    pub(super) fn victim(&self, cx: &Context, task: TaskId) -> Option<CpuId> {
        let prio = cx.task(task).prio;
        if let Some(only) = cx.pinned(task) {
            return Some(only).filter(|&cpu| self.runs_less(cx, cpu, prio));
        }
        let candidates =
            cx.allowed_cpus(task).filter_map(|cpu| Some((self.importance(cx, cpu)?, Reverse(cpu))));
        candidates.max().filter(|&(importance, _)| importance > prio).map(|(_, cpu)| cpu.0)
    }

    /// Finds a CPU for a waiting task other than `continues`.
    pub(super) fn push(&mut self, cx: &Context, continues: Option<TaskId>) -> Effect {
        let nodes = Nodes::from_ref(&self.nodes);
        let all_alike = self.restricted == 0;
        let suits = |queue: &Queue| {
            let waits = |task| queue.running != Some(task) && continues != Some(task);
            let mut suits = |task| waits(task) && (all_alike || self.victim(cx, task).is_some());
            queue.tasks.find(nodes, &mut suits).and_then(|task| self.victim(cx, task))
        };
        let victim = self.queues.iter().filter(|queue| queue.waiting > 0).find_map(suits);
        victim.map_or(Effect::Nothing, |cpu| self.kick(cpu))
    }
}
