//! Chooses the CPU on which a fair task wakes or starts.
//!
//! A woken task goes to its last CPU if that is idle. Else it goes to an idle one near its last CPU
//! or near its waker, or else to the less loaded of the two. Near CPUs share the last-level cache;
//! among them an idle core comes before an idle thread of a busy core. A new task goes to an idle
//! CPU, first of its own node and of the cluster with most idle CPUs. If none is idle, it goes to
//! the least loaded one. Where CPUs differ in speed, the fastest idle one is chosen.
//!
//! Source: Linux 6.18, `kernel/sched/fair.c`: `select_task_rq_fair`, `wake_affine`
//! (`wake_affine_idle`, `wake_affine_weight`), `select_idle_sibling`, `select_idle_cpu`,
//! `select_idle_core`, `select_idle_capacity`, `sched_balance_find_dst_cpu`.
//!
//! Deviations: load is the weight of the tasks that are runnable now, not a decaying average
//! (`load_avg`). So the choice between two busy CPUs follows short bursts more closely. All CPUs
//! are searched for an idle one. The kernel searches fewer the busier the machine is (`SIS_UTIL`)
//! and none above about 85 %, so under overload it overlooks a few more idle CPUs. A waker of very
//! many tasks still attracts them (no `wake_wide`). A waker that is pinned to one CPU is assumed to
//! be a per-CPU kernel thread, which the kernel knows. The CPU use of a task is not estimated.
//! Every task is assumed to need the fastest CPU, where the kernel searches the first that
//! suffices.

use super::{Discipline, Fair};
use crate::policy::{Context, LEVELS, Wake};
use crate::{CpuId, CpuSet, TaskId};
use std::cmp::Reverse;

/// `imbalance_pct` of a domain of CPUs that share a cache.
pub(super) const IMBALANCE_PERCENT: u64 = 117;

impl<D: Discipline> Fair<D> {
    /// The weight of the waiting and running tasks of `cpu`, divided by its speed.
    pub(super) fn load(&self, cx: &Context, cpu: CpuId) -> u64 {
        let load = self.queues[cpu.index()].load;
        match &cx.machine().topology {
            Some(topology) => (load as f64 / topology.place(cpu).speed) as u64,
            None => load,
        }
    }

    /// The last CPU of `task`, or the first that it may use.
    fn last_cpu(&self, cx: &Context, task: TaskId) -> CpuId {
        let last = self.tasks[task.index()].cpu;
        if cx.allowed(task, last) {
            return last;
        }
        cx.allowed_cpus(task).next().unwrap_or(last)
    }

    /// The CPU on which a woken task waits.
    pub(super) fn wake_cpu(&mut self, cx: &Context, task: TaskId, wake: Wake) -> CpuId {
        let last = self.last_cpu(cx, task);
        let target = match wake.waker {
            Some(here) if here != last && cx.allowed(task, here) => {
                self.affine_cpu(cx, task, here, last, wake.sync)
            }
            _ => last,
        };
        let uneven = cx.machine().topology.as_ref().filter(|topology| topology.has_speeds());
        let suits = |cpu| uneven.is_none_or(|topology| topology.place(cpu).speed >= 1.0);
        let idle = |cpu| cx.idle().contains(cpu) && suits(cpu);
        if idle(target) {
            return target;
        }
        let is_near = |cpu: CpuId| cx.cluster(target).contains(cpu);
        if idle(last) && is_near(last) {
            return last;
        }
        // A task that a per-CPU kernel thread wakes often waits for its work, and the thread is
        // about to sleep: the task stays.
        let is_kernel_thread = |waker| cx.pinned(waker) == Some(last);
        if wake.waker == Some(last)
            && self.queues[last.index()].runnable <= 1
            && cx.current(last).is_some_and(is_kernel_thread)
        {
            return last;
        }
        let recent = std::mem::replace(&mut self.tasks[task.index()].recent, last);
        if recent != target && idle(recent) && is_near(recent) && cx.allowed(task, recent) {
            return recent;
        }
        idle_among(
            cx,
            task,
            if uneven.is_some() { cx.spans(target)[LEVELS - 1] } else { cx.cluster(target) },
            target,
        )
        .unwrap_or(target)
    }

    /// Chooses between the waker's CPU and the task's last one.
    fn affine_cpu(
        &self,
        cx: &Context,
        task: TaskId,
        here: CpuId,
        last: CpuId,
        sync: bool,
    ) -> CpuId {
        let queue = &self.queues[here.index()];
        if sync && queue.runnable == 1 && self.realtime.waiting_on(here) == 0 {
            return here;
        }
        if cx.idle().contains(last) {
            return last;
        }
        let mut load_here = self.load(cx, here);
        if sync {
            let waker =
                cx.current(here).map_or(0, |waker| u64::from(self.tasks[waker.index()].weight));
            if waker > load_here {
                return here;
            }
            load_here -= waker;
        }
        load_here += u64::from(self.tasks[task.index()].weight);
        let load_last =
            self.load(cx, last) * (100 + (IMBALANCE_PERCENT - 100) / 2) + u64::from(sync);
        if load_here * 100 < load_last { here } else { last }
    }

    /// The CPU on which a new task starts.
    pub(super) fn fork_cpu(&self, cx: &Context, task: TaskId, waker: Option<CpuId>) -> CpuId {
        let here = match waker {
            Some(here) if cx.allowed(task, here) => here,
            _ => self.last_cpu(cx, task),
        };
        if cx.machine().topology.is_none() && cx.idle().contains(here) {
            return here;
        }
        if let Some(idle) = idle_for_new(cx, task, here) {
            return idle;
        }
        let least =
            cx.allowed_cpus(task).min_by_key(|&cpu| (self.load(cx, cpu), cpu)).unwrap_or(here);
        if self.load(cx, here) * 100 <= self.load(cx, least) * IMBALANCE_PERCENT {
            here
        } else {
            least
        }
    }
}

/// An idle CPU of the own node, or else of all, in the cluster with most idle CPUs.
fn idle_for_new(cx: &Context, task: TaskId, here: CpuId) -> Option<CpuId> {
    let Some(topology) = &cx.machine().topology else { return idle_after(cx, task, here) };
    let suits = |cluster: &CpuSet| match cx.is_restricted(task) {
        true => cx.idle().intersection(cluster).filter(|&cpu| cx.allowed(task, cpu)).count(),
        false => cx.idle().overlap(cluster),
    };
    let place = topology.place(here);
    let rank = |cluster: &'_ CpuSet| {
        let (idle, of) = (suits(cluster), topology.place(cluster.first()?));
        (idle > 0).then_some((
            Reverse(in_full(of.speed)),
            of.node != place.node,
            Reverse(idle),
            of.cluster != place.cluster,
        ))
    };
    let ranked = topology.clusters().iter().filter_map(|cluster| Some((rank(cluster)?, cluster)));
    let (_, best) = ranked.min_by_key(|&(rank, _)| rank)?;
    idle_among(cx, task, best, here)
}

/// A speed as a comparable number.
fn in_full(speed: f64) -> u16 {
    (speed * f64::from(u16::MAX)) as u16
}

/// The best idle CPU of `span` on which `task` may run. First is the fastest, then one on an idle
/// core, then `cpu` itself or the next one after it.
fn idle_among(cx: &Context, task: TaskId, span: &CpuSet, cpu: CpuId) -> Option<CpuId> {
    let Some(topology) = &cx.machine().topology else { return idle_after(cx, task, cpu) };
    if !topology.is_uneven() {
        let mut allowed =
            cx.idle().intersection(span).filter(|&idle| cx.allowed(task, idle)).peekable();
        let lowest = allowed.peek().copied();
        return allowed.find(|&idle| idle >= cpu).or(lowest);
    }
    let rank = |&idle: &CpuId| {
        let shares = topology.core(idle).iter().any(|thread| !cx.idle().contains(thread));
        (Reverse(in_full(topology.place(idle).speed)), shares, idle != cpu, idle < cpu, idle)
    };
    cx.idle().intersection(span).filter(|&idle| cx.allowed(task, idle)).min_by_key(rank)
}

/// The next idle CPU after `cpu`, cyclically, on which `task` may run.
fn idle_after(cx: &Context, task: TaskId, cpu: CpuId) -> Option<CpuId> {
    let mut allowed =
        cx.idle().above(cpu).chain(cx.idle().iter()).filter(|&idle| cx.allowed(task, idle));
    allowed.next()
}
