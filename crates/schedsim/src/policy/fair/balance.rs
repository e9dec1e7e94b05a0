//! Load balancing: which waiting tasks move to another CPU, and when.
//!
//! Domains are nested: the threads of a core, the CPUs that share a cache, those of a node, all
//! CPUs. Without a topology all CPUs share a cache. A CPU that would idle takes one task from the
//! most loaded CPU of the smallest domain where one can move. A busy CPU with waiting tasks
//! requests at its tick that an idle CPU does so, the nearest first. Every `16 × CPUs` ms of each
//! domain a busy CPU pulls tasks from the most loaded one until both are near the average. The task
//! that has not run for longest moves first. A task that ran within `cache_hot` stays, unless it
//! moves between threads of a core. So does a task that has been served more than its share.
//! Neither stays after a few attempts that left a CPU without work. If all waiting tasks are
//! pinned, the running task moves at last.
//!
//! Source: Linux 6.18, `kernel/sched/fair.c`: `sched_balance_newidle`, `nohz_balancer_kick`,
//! `sched_balance_rq`, `calculate_imbalance`, `detach_tasks`, `can_migrate_task`, `task_hot`,
//! `need_active_balance`; `kernel/sched/topology.c`: `sd_init`.
//!
//! Deviations: loads are instantaneous weights (see `placement`), divided by the CPU's speed. CPUs
//! are compared, not groups of them. A task does not leave a busy CPU for a faster one or for an
//! idle core (`group_misfit_task`, `group_smt_balance`): it finds those when it wakes. There are no
//! preferred NUMA nodes. A CPU that becomes idle always looks for a task. The kernel does not if it
//! expects to idle for less time than the search costs. Intervals are fixed; the kernel doubles
//! them once while the load is even. An idle CPU with a request takes one task, and only idle CPUs
//! receive a running one. If the running task of the source CPU has just used up its slice, it
//! stops at its next tick and not at once.

use super::placement::IMBALANCE_PERCENT;
use super::{Discipline, Fair, Join, Leave};
use crate::policy::Context;
use crate::{CpuId, CpuSet, Distance, Nanos, TaskId, Time};
use readyq::{Nodes, ReadyQueue};

/// The maximum number of tasks of a queue that are examined (`sysctl_sched_nr_migrate`).
const LOOK_AT: u32 = 32;
/// After this many failed attempts warm caches are ignored (`cache_nice_tries`), within a node and
/// beyond.
const NICE_TRIES: u32 = 1;
const REMOTE_NICE_TRIES: u32 = 2;
/// `imbalance_pct` between the threads of a core.
const CORE_IMBALANCE_PERCENT: u64 = 110;
/// A busy CPU balances less often than an idle one by this factor (`busy_factor`).
const BUSY_FACTOR: u64 = 16;

impl<D: Discipline> Fair<D> {
    /// `cpu` would idle: takes a task from the most loaded CPU with one that can move, in the
    /// smallest domain that has one.
    pub(super) fn pull_one(&mut self, cx: &Context, cpu: CpuId) -> bool {
        if self.crowded.is_empty() || !self.balances() {
            return false;
        }
        let look = |from| self.find_movable(cx, from, cpu, u64::MAX).map(|task| (from, task));
        let mut seen = None;
        let found = cx.domains(cpu).find_map(|(_, span)| {
            let inner = seen.replace(span);
            let others = self
                .crowded
                .intersection(span)
                .filter(|&other| inner.is_none_or(|inner: &CpuSet| !inner.contains(other)));
            self.busiest_first(cx, cpu, others, look)
        });
        let queue = &mut self.queues[cpu.index()];
        let was_requested = std::mem::take(&mut queue.is_requested);
        if let Some((from, task)) = found {
            queue.failed = 0;
            self.transfer(cx, task, from, cpu);
        } else {
            queue.failed += u32::from(was_requested);
        }
        found.is_some()
    }

    /// An idle CPU that takes a task from the busy `cpu`.
    pub(super) fn find_help(&mut self, cx: &Context, cpu: CpuId) -> Option<CpuId> {
        if cx.idle().is_empty() || !self.is_crowded(cx, cpu) || cx.now() < self.next_help {
            return None;
        }
        let (by_age, nodes) = (&self.queues[cpu.index()].by_age, Nodes::from_ref(&self.nodes));
        let helps = |idle: &CpuId| by_age.find(nodes, |task| cx.allowed(task, *idle)).is_some();
        let helper =
            cx.domains(cpu).find_map(|(_, span)| cx.idle().intersection(span).find(helps))?;
        self.next_help = cx.now() + self.interval();
        self.queues[helper.index()].is_requested = true;
        Some(helper)
    }

    /// Whether `helper` has failed so often to find a task on `cpu` that it receives the running
    /// one.
    pub(super) fn is_desperate(&mut self, cx: &Context, cpu: CpuId, helper: CpuId) -> bool {
        let may_move = |running| {
            !self.realtime.has(cx, running)
                && !self.discipline.is_held(running)
                && cx.allowed(running, helper)
        };
        let failed = &mut self.queues[helper.index()].failed;
        let is_desperate = *failed > NICE_TRIES + 2 && cx.current(cpu).is_some_and(may_move);
        if is_desperate {
            *failed = NICE_TRIES + 1;
        }
        is_desperate
    }

    /// The busy `cpu` takes tasks from the most loaded CPU of each domain that is due. Returns
    /// whether one of them should run at once.
    pub(super) fn balance_busy(&mut self, cx: &Context, cpu: CpuId) -> bool {
        if !self.balances() || cx.now() < self.queues[cpu.index()].balance_due {
            return false;
        }
        let (mut preempts, mut due) = (false, Time::NEVER);
        for (level, span) in cx.domains(cpu) {
            let next = &mut self.queues[cpu.index()].next_balance[level];
            let is_due = cx.now() >= *next;
            if is_due {
                *next = cx.now() + Nanos(Nanos::from_millis(span.len() as u64).0 * BUSY_FACTOR);
            }
            due = due.min(*next);
            preempts |= is_due && !self.crowded.is_empty() && self.balance_within(cx, cpu, span);
        }
        self.queues[cpu.index()].balance_due = due;
        preempts
    }

    fn balance_within(&mut self, cx: &Context, cpu: CpuId, span: &CpuSet) -> bool {
        let average = span.iter().map(|cpu| self.load(cx, cpu)).sum::<u64>() / span.len() as u64;
        let here = self.load(cx, cpu);
        let Some(from) = self.busiest_first(cx, cpu, self.crowded.intersection(span), Some) else {
            return false;
        };
        let there = self.load(cx, from);
        let shares_core = cx.machine().distance(from, cpu) == Distance::Core;
        if here >= average
            || there * 100
                <= here * if shares_core { CORE_IMBALANCE_PERCENT } else { IMBALANCE_PERCENT }
        {
            return false;
        }
        let mut imbalance = there.saturating_sub(average).min(average - here);
        let (mut moved, mut preempts) = (0, false);
        while imbalance > 0 && moved < LOOK_AT {
            let Some(task) = self.find_movable(cx, from, cpu, imbalance) else {
                break;
            };
            imbalance = imbalance.saturating_sub(u64::from(self.tasks[task.index()].weight));
            self.transfer(cx, task, from, cpu);
            moved += 1;
            let is_fair = |running| !self.realtime.has(cx, running);
            preempts = preempts
                || cx.current(cpu).is_some_and(is_fair) && self.discipline.preempts(cpu, task);
        }
        let failed = &mut self.queues[cpu.index()].failed;
        *failed = if moved > 0 { 0 } else { *failed + 1 };
        preempts
    }

    fn interval(&self) -> Nanos {
        Nanos::from_millis(self.queues.len() as u64)
    }

    /// Whether more than one task is runnable on `cpu`, and a fair one of them waits.
    fn is_crowded(&self, cx: &Context, cpu: CpuId) -> bool {
        let runnable = self.queues[cpu.index()].runnable;
        runnable > 1
            || runnable == 1
                && cx.current(cpu).is_some_and(|running| self.realtime.has(cx, running))
    }

    /// The first result of `look` over the crowded CPUs of `among`, from the most loaded on; ties
    /// go to the next CPU after `cpu`. Excludes `cpu` itself.
    fn busiest_first<T>(
        &self,
        cx: &Context,
        cpu: CpuId,
        among: impl Iterator<Item = CpuId>,
        look: impl Fn(CpuId) -> Option<T>,
    ) -> Option<T> {
        let count = self.queues.len();
        let mut best = None;
        for other in among.filter(|&other| other != cpu && self.is_crowded(cx, other)) {
            // The maximum is the most loaded; of equals, the next after `cpu`.
            let rank = (self.load(cx, other), (cpu.index() + count - other.index()) % count);
            if best.as_ref().is_none_or(|&(greatest, _)| rank > greatest)
                && let Some(found) = look(other)
            {
                best = Some((rank, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// The least recently run task that waits on `from` and may move to `to` without moving more
    /// than `imbalance`.
    fn find_movable(&self, cx: &Context, from: CpuId, to: CpuId, imbalance: u64) -> Option<TaskId> {
        let failed = self.queues[to.index()].failed;
        let (hot, tries) = match cx.machine().distance(from, to) {
            Distance::Itself | Distance::Core => (Nanos::ZERO, NICE_TRIES),
            Distance::Cluster | Distance::Node => (self.options.cache_hot, NICE_TRIES),
            Distance::Remote(_) => (self.options.cache_hot, REMOTE_NICE_TRIES),
        };
        let is_cold = |ran| failed > tries || cx.now().since(ran) >= hot;
        let mut left = LOOK_AT;
        let mut gives_up = false;
        let found = (self.queues[from.index()].by_age).find(Nodes::from_ref(&self.nodes), |task| {
            if left == 0 {
                gives_up = true;
                return true;
            }
            left -= 1;
            let entry = &self.tasks[task.index()];
            cx.current(from) != Some(task)
                && !self.discipline.is_held(task)
                && cx.allowed(task, to)
                && entry.ran.is_none_or(is_cold)
                && u64::from(entry.weight) >> failed.min(31) <= imbalance
                && (failed > 0
                    || self.queues[to.index()].runnable == 0
                    || self.discipline.may_move(from, task))
        });
        found.filter(|_| !gives_up)
    }

    pub(super) fn transfer(&mut self, cx: &Context, task: TaskId, from: CpuId, to: CpuId) {
        self.discipline.charge(from, cx.now());
        self.discipline.leave(from, task, Leave::Moves, cx.now());
        self.subtract(from, task);
        self.end_wait(from);
        self.discipline.charge(to, cx.now());
        self.discipline.join(to, task, Join::Moves, cx.now());
        let entry = &mut self.tasks[task.index()];
        (entry.cpu, entry.ran) = (to, None);
        self.add(to, task);
        self.wait(to);
    }
}
