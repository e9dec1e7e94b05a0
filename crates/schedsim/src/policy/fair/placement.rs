//! On which CPU a fair task wakes or begins.
//!
//! A woken task goes to its last CPU if that is idle; else to an idle one near where it was last or near its waker; else to the less loaded of the two.
//! A new task goes to an idle CPU, or else to the least loaded one.
//!
//! Source: Linux 6.18, `kernel/sched/fair.c`: `select_task_rq_fair`, `wake_affine` (`wake_affine_idle`, `wake_affine_weight`), `select_idle_sibling`,
//! `select_idle_cpu`, `sched_balance_find_dst_cpu`, for one scheduling domain whose CPUs share a cache and have no siblings.
//!
//! Deviations: load is the weight of what is runnable now, not a decaying average of it (`load_avg`), so that the choice between two busy CPUs follows
//! short bursts more closely. All CPUs are searched for an idle one; the kernel searches fewer the busier the machine is (`SIS_UTIL`) and, above about 85 %,
//! none, so that under overload it leaves a few more idle CPUs unseen. A waker of very many tasks still attracts them (no `wake_wide`). An interrupt is
//! taken to come in on the task's last CPU. A waker that may run on one CPU only is taken for a per-CPU kernel thread, which the kernel knows.

use super::{Discipline, Fair};
use crate::policy::Context;
use crate::{CpuId, TaskId};

/// `imbalance_pct` of a domain of CPUs that share a cache.
pub(super) const IMBALANCE_PERCENT: u64 = 117;

impl<D: Discipline> Fair<D> {
    fn load(&self, cpu: CpuId) -> u64 {
        self.queues[cpu.index()].load
    }

    /// Where `task` was last, or the first CPU it may run on.
    fn last_cpu(&self, cx: &Context, task: TaskId) -> CpuId {
        let last = self.tasks[task.index()].cpu;
        if cx.allowed(task, last) {
            return last;
        }
        cx.allowed_cpus(task).next().unwrap_or(last)
    }

    /// Where a woken task shall wait.
    pub(super) fn wake_cpu(&mut self, cx: &Context, task: TaskId, waker: Option<CpuId>) -> CpuId {
        let last = self.last_cpu(cx, task);
        let target = match waker {
            Some(here) if here != last && cx.allowed(task, here) => self.affine_cpu(cx, task, here, last),
            _ => last,
        };
        let idle = |cpu| cx.idle().contains(cpu);
        if idle(target) {
            return target;
        }
        if idle(last) {
            return last;
        }
        // What a per-CPU kernel thread wakes it often works for, and it is about to sleep: the task stays.
        let is_kernel_thread = |waker| cx.pinned(waker) == Some(last);
        if waker == Some(last) && self.queues[last.index()].runnable <= 1 && cx.current(last).is_some_and(is_kernel_thread) {
            return last;
        }
        let recent = std::mem::replace(&mut self.tasks[task.index()].recent, last);
        if recent != target && idle(recent) && cx.allowed(task, recent) {
            return recent;
        }
        idle_after(cx, task, target).unwrap_or(target)
    }

    /// The waker's CPU or the task's last one?
    fn affine_cpu(&self, cx: &Context, task: TaskId, here: CpuId, last: CpuId) -> CpuId {
        let sync = self.options.sync_wakeups;
        let queue = &self.queues[here.index()];
        if sync && queue.runnable == 1 && self.realtime.waiting_on(here) == 0 {
            return here;
        }
        if cx.idle().contains(last) {
            return last;
        }
        let mut load_here = self.load(here);
        if sync {
            let waker = cx.current(here).map_or(0, |waker| u64::from(self.tasks[waker.index()].weight));
            if waker > load_here {
                return here;
            }
            load_here -= waker;
        }
        load_here += u64::from(self.tasks[task.index()].weight);
        let load_last = self.load(last) * (100 + (IMBALANCE_PERCENT - 100) / 2) + u64::from(sync);
        if load_here * 100 < load_last { here } else { last }
    }

    /// Where a new task shall begin.
    pub(super) fn fork_cpu(&self, cx: &Context, task: TaskId, waker: Option<CpuId>) -> CpuId {
        let here = match waker {
            Some(here) if cx.allowed(task, here) => here,
            _ => self.last_cpu(cx, task),
        };
        if cx.idle().contains(here) {
            return here;
        }
        if let Some(idle) = idle_after(cx, task, here) {
            return idle;
        }
        let least = cx.allowed_cpus(task).min_by_key(|&cpu| (self.load(cpu), cpu)).unwrap_or(here);
        if self.load(here) * 100 <= self.load(least) * IMBALANCE_PERCENT { here } else { least }
    }
}

/// The next idle CPU above `cpu`, or from the lowest on, on which `task` may run.
fn idle_after(cx: &Context, task: TaskId, cpu: CpuId) -> Option<CpuId> {
    let mut first = None;
    for idle in cx.idle().iter().filter(|&idle| cx.allowed(task, idle)) {
        if idle > cpu {
            return Some(idle);
        }
        first = first.or(Some(idle));
    }
    first
}
