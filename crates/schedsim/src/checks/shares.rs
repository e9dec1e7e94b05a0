//! Checks that each task gets the CPU share that is promised.
//!
//! The check works per CPU and *epoch*, an interval in which no fair task becomes runnable or stops
//! being so. At every switch it compares each task's service in the epoch with the service of an
//! ideal machine, or with that of the other tasks. In the first epoch after a CPU had no fair task,
//! all tasks start at their ideal. At the start of a later epoch the offsets are unknown, so a
//! task's offset may change by the distance between the promised bounds. How far it can be behind
//! depends on the tasks that were there before. It is at most the sum of what each other task could
//! delay it alone.
//!
//! On several CPUs it checks only workloads whose fair tasks are each pinned to one CPU. A trace
//! does not show in which queue a migrated task waits.

use super::{Finding, Rule};
use crate::policy::{Promises, Request, ShareMeasure as Measure, Shares as Promise, weight};
use crate::workload::{Action, Affinity, TaskClass, TaskSpec, Workload};
use crate::{CpuId, Machine, Nanos, TaskId, Time};
use std::collections::BTreeMap;

/// Tracks the service of each fair task.
#[derive(Clone, Debug)]
pub struct Shares {
    measure: Measure,
    tasks: Vec<Task>,
    queues: Vec<Queue>,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// Fair tasks that run or wait.
    runnable: Vec<TaskId>,
    running: Option<TaskId>,
    since: Time,
    /// Whether this is the first epoch since the CPU had no fair task.
    is_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// None for real-time tasks.
    request: Option<Request>,
    /// Where it runs or waits.
    cpu: CpuId,
    /// In this epoch.
    served: Nanos,
    /// How far it can be behind with any set of other tasks, where lag is promised.
    most_behind: Nanos,
}

impl Shares {
    /// `None` if nothing is promised for this workload and machine.
    pub fn new(workload: &Workload, machine: &Machine, promises: Promises) -> Option<Shares> {
        let Promise { measure, undisturbed } = promises.shares?;
        let disturbs = |task: &TaskSpec| {
            task.info.prio < 100 || task.script.steps().any(|step| step.then == Action::Yield)
        };
        if undisturbed
            && workload
                .tasks
                .iter()
                .any(|task| disturbs(task) || task.attributes.class == TaskClass::Idle)
        {
            return None;
        }
        let request = match measure {
            Measure::Lag { request, .. } => request,
            Measure::Spread { .. } => Nanos::ZERO,
        };
        let task = |task: &TaskSpec| {
            let cpu = match task.affinity {
                _ if machine.cpus == 1 => Some(CpuId(0)),
                Affinity::Pinned(cpu) => Some(CpuId(cpu.0 % machine.cpus)),
                _ => None,
            };
            let weight = weight(task.info.prio, task.attributes.class);
            let length = task.attributes.slice.length().unwrap_or(request);
            let request = (task.info.prio >= 100).then_some(Request { weight, length });
            let is_known = cpu.is_some() || request.is_none();
            is_known.then_some(Task {
                request,
                cpu: cpu.unwrap_or_default(),
                served: Nanos::ZERO,
                most_behind: Nanos::ZERO,
            })
        };
        let mut tasks = workload.tasks.iter().map(task).collect::<Option<Vec<Task>>>()?;
        if let Measure::Lag { tick, .. } = measure {
            hold_up(&mut tasks, tick);
        }
        let queue =
            Queue { runnable: Vec::new(), running: None, since: Time::ZERO, is_first: true };
        Some(Shares { measure, tasks, queues: vec![queue; usize::from(machine.cpus)] })
    }

    /// `task` is runnable from now on.
    pub fn comes(&mut self, task: TaskId, now: Time) -> Option<Finding> {
        self.tasks[task.index()].request?;
        let cpu = self.tasks[task.index()].cpu;
        let finding = self.settle(cpu, now);
        self.begin_epoch(cpu);
        self.queues[cpu.index()].runnable.push(task);
        finding
    }

    /// `cpu` switches to `next`; `gone` is no longer runnable.
    pub fn switch(
        &mut self,
        cpu: CpuId,
        next: TaskId,
        gone: Option<TaskId>,
        now: Time,
    ) -> Option<Finding> {
        let finding = self.settle(cpu, now);
        self.queues[cpu.index()].running =
            self.tasks.get(next.index()).and_then(|task| task.request.map(|_| next));
        if let Some(gone) = gone.filter(|gone| self.tasks[gone.index()].request.is_some()) {
            self.begin_epoch(cpu);
            let queue = &mut self.queues[cpu.index()];
            queue.runnable.retain(|&task| task != gone);
            queue.is_first |= queue.runnable.is_empty();
        }
        finding
    }

    /// Starts an epoch: resets all service. If any task had been served, the offsets are unknown
    /// from now on.
    fn begin_epoch(&mut self, cpu: CpuId) {
        let queue = &mut self.queues[cpu.index()];
        for task in &queue.runnable {
            let served = std::mem::take(&mut self.tasks[task.index()].served);
            queue.is_first &= served == Nanos::ZERO;
        }
    }

    /// Credits the running task of `cpu` with its service until now, and checks the offsets.
    fn settle(&mut self, cpu: CpuId, now: Time) -> Option<Finding> {
        let queue = &mut self.queues[cpu.index()];
        let served = now.since(std::mem::replace(&mut queue.since, now));
        let running = queue.running?;
        self.tasks[running.index()].served += served;
        if queue.runnable.len() < 2 {
            return None;
        }
        match self.measure {
            Measure::Lag { tick, .. } => self.judge_lag(cpu, tick),
            Measure::Spread { fixed, per_task } => self.judge_spread(cpu, fixed, per_task),
        }
    }

    /// The runnable fair tasks of `cpu`.
    fn present(&self, cpu: CpuId) -> impl Iterator<Item = (TaskId, Request, Task)> + Clone + '_ {
        let entry = |&task: &TaskId| {
            self.tasks[task.index()]
                .request
                .map(|request| (task, request, self.tasks[task.index()]))
        };
        self.queues[cpu.index()].runnable.iter().filter_map(entry)
    }

    fn judge_lag(&self, cpu: CpuId, tick: Nanos) -> Option<Finding> {
        let total: u128 = self.present(cpu).map(|(_, _, task)| u128::from(task.served.0)).sum();
        let weight: u128 =
            self.present(cpu).map(|(_, request, _)| u128::from(request.weight)).sum();
        let is_first = self.queues[cpu.index()].is_first;
        self.present(cpu).find_map(|(task, own, Task { served, most_behind, .. })| {
            let ideal = Nanos((total * u128::from(own.weight) / weight) as u64);
            let ahead = Measure::most_ahead(tick, own);
            let bound = match (is_first, served > ideal) {
                (true, true) => ahead,
                // The usual case.
                (true, false) if ideal - served <= ahead.min(most_behind) => return None,
                (true, false) => {
                    let others = self
                        .present(cpu)
                        .filter(|&(other, ..)| other != task)
                        .map(|(_, request, _)| request);
                    Measure::most_behind(tick, own, others)
                }
                (false, _) => ahead + most_behind,
            };
            (ideal.0.abs_diff(served.0) > bound.0 + 1).then(|| Finding {
                rule: Rule::Shares,
                task: Some(task),
                cpu: Some(cpu),
                message: format!(
                    "was served {served}, and its share was {ideal}; the bound is {bound}"
                ),
            })
        })
    }

    fn judge_spread(&self, cpu: CpuId, fixed: Nanos, per_task: Nanos) -> Option<Finding> {
        let lightest = self.present(cpu).map(|(_, request, _)| request.weight).min()?;
        let bound =
            Nanos(2 * (fixed.0 + per_task.0 * self.queues[cpu.index()].runnable.len() as u64));
        let virtual_time = |(task, request, Task { served, .. }): (TaskId, Request, Task)| {
            (
                Nanos(
                    (u128::from(served.0) * u128::from(lightest) / u128::from(request.weight))
                        as u64,
                ),
                task,
            )
        };
        let (least, behind) = self.present(cpu).map(virtual_time).min()?;
        let (most, ahead) = self.present(cpu).map(virtual_time).max()?;
        (most - least > bound).then(|| Finding {
            rule: Rule::Shares,
            task: Some(behind),
            cpu: Some(cpu),
            message: format!(
                "was served {least} by weight, and task {} {most}; the bound is {bound}",
                ahead.0
            ),
        })
    }
}

/// Computes for each task how far it can be behind, with any set of the other tasks of its CPU. The
/// weight sum in the denominator contains at least two weights.
fn hold_up(tasks: &mut [Task], tick: Nanos) {
    let mut alike: BTreeMap<(CpuId, u32, Nanos), u64> = BTreeMap::new();
    for (task, request) in tasks.iter().filter_map(|task| Some((task, task.request?))) {
        *alike.entry((task.cpu, request.weight, request.length)).or_default() += 1;
    }
    for task in tasks {
        let Some(own) = task.request else { continue };
        let of_cpu =
            alike.range((task.cpu, 0, Nanos::ZERO)..).take_while(|((cpu, ..), _)| *cpu == task.cpu);
        let each = of_cpu.map(|(&(_, weight, length), &count)| {
            let is_own = weight == own.weight && length == own.length;
            let alone =
                Measure::most_behind(tick, own, std::iter::once(Request { weight, length }));
            Nanos(alone.0.saturating_mul(count - u64::from(is_own)))
        });
        task.most_behind = each.sum();
    }
}
