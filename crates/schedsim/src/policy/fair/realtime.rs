//! Real-time tasks: they run before all fair ones, by priority, first in first out within a priority.
//!
//! A preempted task keeps its place at the head of its priority; a woken one or one that yields goes to the end. A task that wakes goes to where it last
//! was, if it may run there at once, else to the CPU that runs what matters least; an idle CPU takes the best one that waits.
//!
//! Source: Linux 6.18, `kernel/sched/rt.c` (`select_task_rq_rt`, `find_lowest_rq`, `wakeup_preempt_rt`, `pull_rt_task`). Priority 0, which the kernel
//! shows for its stop class (`migration/N`), is the best of them.
//!
//! Deviations: all are `SCHED_FIFO` (no quantum); no throttling and no fair server, so that a real-time task that never sleeps starves the fair ones
//! on its CPU for good; a CPU takes waiting real-time tasks from others only when it would idle, not whenever its own priority falls.

use super::{Discipline, Fair};
use crate::policy::{Context, Effect, Enqueue};
use crate::{CpuId, TaskId};
use std::collections::BTreeSet;

/// The real-time tasks that wait on one CPU.
#[derive(Clone, Debug, Default)]
pub struct RealTime {
    /// By priority, then arrival.
    waiting: BTreeSet<(u8, u64, TaskId)>,
    /// The task taken last, with its arrival, so that it can come back to its place.
    running: Option<(TaskId, u64)>,
    arrivals: u64,
}

/// Whether `task` is of a real-time class.
#[inline]
pub fn is_real_time(cx: &Context, task: TaskId) -> bool {
    cx.task(task).prio < 100
}

impl RealTime {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    fn insert(&mut self, task: TaskId, prio: u8, why: Enqueue) {
        let arrival = match (why, self.running) {
            (Enqueue::Preempted | Enqueue::SliceOver, Some((last, arrival))) if last == task => arrival,
            _ => {
                self.arrivals += 1;
                self.arrivals
            }
        };
        self.waiting.insert((prio, arrival, task));
    }

    /// Takes out the best task that `accept` agrees to.
    fn take(&mut self, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let &entry = self.waiting.iter().find(|entry| accept(entry.2))?;
        self.waiting.remove(&entry);
        self.running = Some((entry.2, entry.1));
        Some(entry.2)
    }

    /// Takes out `task`.
    pub fn remove(&mut self, task: TaskId) {
        self.waiting.retain(|entry| entry.2 != task);
    }
}

impl<D: Discipline> Fair<D> {
    pub(super) fn enqueue_real_time(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let prio = cx.task(task).prio;
        self.real_time_waiting += 1;
        self.queues[cpu.index()].realtime.insert(task, prio, why);
        if matches!(why, Enqueue::New | Enqueue::Wakeup) {
            return match cx.current(cpu) {
                None => Effect::Kick(cpu),
                Some(running) if prio < cx.task(running).prio && !self.queues[cpu.index()].resched => self.preempt(cpu),
                Some(_) => Effect::Nothing,
            };
        }
        cx.idle_cpu_for(task).map_or(Effect::Nothing, Effect::Kick)
    }

    /// The real-time task that shall run on `cpu`, taken from another CPU if nothing at all waits here.
    pub(super) fn pick_real_time(&mut self, cx: &Context, cpu: CpuId) -> Option<TaskId> {
        let queue = &mut self.queues[cpu.index()];
        let mut task = queue.realtime.take(|_| true);
        if task.is_none() && queue.runnable == 0 && self.real_time_waiting > 0 {
            let first = |other: CpuId| {
                let mut waiting = self.queues[other.index()].realtime.waiting.iter();
                waiting.find(|entry| cx.allowed(entry.2, cpu)).map(|entry| (entry.0, other))
            };
            let (_, other) = cx.machine().all().filter_map(first).min()?;
            task = self.queues[other.index()].realtime.take(|task| cx.allowed(task, cpu));
        }
        let task = task?;
        self.real_time_waiting -= 1;
        self.tasks[task.index()].cpu = cpu;
        Some(task)
    }

    /// On which CPU a waking real-time task shall wait.
    pub(super) fn real_time_cpu(&self, cx: &Context, task: TaskId) -> CpuId {
        let last = self.tasks[task.index()].cpu;
        // What matters least runs where the number is greatest; an idle CPU is above them all.
        let running = |cpu| match cx.current(cpu) {
            Some(other) => u16::from(cx.task(other).prio.min(140)),
            None if cx.idle().contains(cpu) => 256,
            None => 255, // on its way out of idle for someone else
        };
        if cx.allowed(task, last) && running(last) > u16::from(cx.task(task).prio) {
            return last;
        }
        let best = cx.allowed_cpus(task).max_by_key(|&cpu| (running(cpu), std::cmp::Reverse(cpu)));
        best.unwrap_or(last)
    }
}
