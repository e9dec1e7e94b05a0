//! Which CPU runs which real-time task: where one wakes, whom a CPU takes, and whom a task that has to wait may push aside.

use super::{Queue, RealTime};
use crate::policy::{Context, Effect};
use crate::{CpuId, TaskId};
use readyq::{Nodes, ReadyQueue};
use std::cmp::Reverse;

/// Who shall run. In order of importance, then its own before foreign ones, then the CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Best {
    prio: u8,
    is_foreign: bool,
    pub from: CpuId,
    pub task: TaskId,
}

impl RealTime {
    /// On which CPU a waking task shall wait.
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

    /// The most important task that `cpu` may run, of its own if they are equals.
    pub(super) fn best(&self, cx: &Context, cpu: CpuId) -> Option<Best> {
        let queue = &self.queues[cpu.index()];
        if self.waiting == 0 || queue.is_closed(cx.now()) {
            return None;
        }
        let nodes = Nodes::from_ref(&self.nodes);
        let of = |task, from| Best { prio: cx.task(task).prio, is_foreign: from != cpu, from, task };
        let own = queue.tasks.peek(nodes).map(|task| of(task, cpu));
        if self.waiting == queue.waiting {
            return own;
        }
        let others = self.queues.iter().zip(cx.machine().all()).filter(|(other, from)| *from != cpu && other.waiting > 0);
        let foreign = others.filter_map(|(other, from)| {
            let task = other.tasks.find(nodes, |task| other.running != Some(task) && cx.allowed(task, cpu))?;
            Some(of(task, from))
        });
        foreign.chain(own).min()
    }

    /// Whether `cpu` runs something that matters less than `prio`, or idles, and will go on doing so.
    pub(super) fn runs_less(&self, cx: &Context, cpu: CpuId, prio: u8) -> bool {
        self.importance(cx, cpu).is_some_and(|importance| importance > prio)
    }

    /// The number of what `cpu` runs: the higher, the less it matters. `None` if it is about to choose or not to be had.
    fn importance(&self, cx: &Context, cpu: CpuId) -> Option<u8> {
        let queue = &self.queues[cpu.index()];
        if queue.is_closed(cx.now()) || self.told.contains(cpu) {
            return None;
        }
        match cx.current(cpu) {
            Some(running) => Some(cx.task(running).prio),
            None => cx.idle().contains(cpu).then_some(u8::MAX),
        }
    }

    /// The CPU for `task` that runs what matters least, if that matters less than `task`; the lowest among equals.
    pub(super) fn victim(&self, cx: &Context, task: TaskId) -> Option<CpuId> {
        let prio = cx.task(task).prio;
        if let Some(only) = cx.pinned(task) {
            return Some(only).filter(|&cpu| self.runs_less(cx, cpu, prio));
        }
        let candidates = cx.allowed_cpus(task).filter_map(|cpu| Some((self.importance(cx, cpu)?, Reverse(cpu))));
        candidates.max().filter(|&(importance, _)| importance > prio).map(|(_, cpu)| cpu.0)
    }

    /// Finds a CPU for somebody who waits, other than who `goes_on`.
    pub(super) fn push(&mut self, cx: &Context, goes_on: Option<TaskId>) -> Effect {
        let nodes = Nodes::from_ref(&self.nodes);
        let all_alike = self.restricted == 0;
        let suits = |queue: &Queue| {
            let waits = |task| queue.running != Some(task) && goes_on != Some(task);
            let mut suits = |task| waits(task) && (all_alike || self.victim(cx, task).is_some());
            queue.tasks.find(nodes, &mut suits).and_then(|task| self.victim(cx, task))
        };
        let victim = self.queues.iter().filter(|queue| queue.waiting > 0).find_map(suits);
        victim.map_or(Effect::Nothing, |cpu| self.tell(cpu))
    }
}
