//! Does everybody get the share of the CPU that is promised?
//!
//! On a machine of one CPU, and per *epoch*: a time in which no fair task becomes runnable or ceases to be. What each task is served in it is compared with
//! what an ideal machine would have served it, or with what the others are served, at every switch. Where a task stood when the epoch began is not
//! known; so its distance may change by as much as the promised bounds are apart. On several CPUs nothing is checked, since a
//! trace does not show in which queue a task waits that was moved.

use super::{Finding, Rule};
use crate::policy::{Promises, ShareMeasure as Measure, Shares as Promise, weight};
use crate::workload::{Action, TaskClass, TaskSpec, Workload};
use crate::{Machine, Nanos, TaskId, Time};

/// Follows the service of each fair task.
#[derive(Clone, Debug)]
pub struct Shares {
    measure: Measure,
    tasks: Vec<Task>,
    /// Fair tasks that run or wait.
    runnable: Vec<TaskId>,
    running: Option<TaskId>,
    since: Time,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// None for real-time tasks.
    weight: Option<u32>,
    request: Option<Nanos>,
    /// In this epoch.
    served: Nanos,
}

impl Shares {
    /// Nothing to follow if nothing is promised for such a workload and machine.
    pub fn new(workload: &Workload, machine: &Machine, promises: Promises) -> Option<Shares> {
        let Promise { measure, undisturbed } = promises.shares.filter(|_| machine.cpus == 1)?;
        let disturbs = |task: &TaskSpec| task.info.prio < 100 || task.script.steps().any(|step| step.then == Action::Yield);
        if undisturbed && workload.tasks.iter().any(|task| disturbs(task) || task.attributes.class == TaskClass::Idle) {
            return None;
        }
        let task = |task: &TaskSpec| Task {
            weight: (task.info.prio >= 100).then(|| weight(task.info.prio, task.attributes.class)),
            request: task.attributes.slice.length(),
            served: Nanos::ZERO,
        };
        let tasks = workload.tasks.iter().map(task).collect();
        Some(Shares { measure, tasks, runnable: Vec::new(), running: None, since: Time::ZERO })
    }

    /// `task` is runnable from now on.
    pub fn comes(&mut self, task: TaskId, now: Time) -> Option<Finding> {
        self.tasks[task.index()].weight?;
        let finding = self.settle(now);
        self.begin_epoch();
        self.runnable.push(task);
        finding
    }

    /// The CPU goes on with `next`, and `gone` is not runnable any more.
    pub fn switch(&mut self, next: TaskId, gone: Option<TaskId>, now: Time) -> Option<Finding> {
        let finding = self.settle(now);
        self.running = self.tasks.get(next.index()).and_then(|task| task.weight.map(|_| next));
        if let Some(gone) = gone.filter(|gone| self.tasks[gone.index()].weight.is_some()) {
            self.begin_epoch();
            self.runnable.retain(|&task| task != gone);
        }
        finding
    }

    fn begin_epoch(&mut self) {
        for task in &self.runnable {
            self.tasks[task.index()].served = Nanos::ZERO;
        }
    }

    /// The running task is given what it was served until now, and the distances are looked at.
    pub fn settle(&mut self, now: Time) -> Option<Finding> {
        let served = now.since(std::mem::replace(&mut self.since, now));
        if let Some(running) = self.running {
            self.tasks[running.index()].served += served;
        }
        if self.runnable.len() < 2 || self.running.is_none() {
            return None;
        }
        match self.measure {
            Measure::Lag { request, tick } => self.judge_lag(request, tick),
            Measure::Spread { fixed, per_task } => self.judge_spread(fixed, per_task),
        }
    }

    fn present(&self) -> impl Iterator<Item = (TaskId, u32, Task)> + '_ {
        self.runnable.iter().map(|&task| (task, self.tasks[task.index()].weight.unwrap_or(1), self.tasks[task.index()]))
    }

    fn judge_lag(&self, request: Nanos, tick: Nanos) -> Option<Finding> {
        let requests = || self.present().map(|(_, _, task)| task.request.unwrap_or(request));
        let weights = || self.present().map(|(_, weight, _)| weight);
        let (least, most) = (requests().min()?, requests().max()?);
        let alike = weights().min() == weights().max() && least == most;
        let (ahead, behind) = Measure::lag_bounds(tick, least, most, alike);
        let bound = ahead + behind;
        let total: u128 = self.present().map(|(_, _, task)| u128::from(task.served.0)).sum();
        let weight: u128 = weights().map(u128::from).sum();
        self.present().find_map(|(task, own, Task { served, .. })| {
            let ideal = Nanos((total * u128::from(own) / weight) as u64);
            (ideal.0.abs_diff(served.0) > bound.0).then(|| Finding {
                rule: Rule::Shares,
                task: Some(task),
                cpu: None,
                message: format!("was served {served}, and its share was {ideal}; the bound is {bound}"),
            })
        })
    }

    fn judge_spread(&self, fixed: Nanos, per_task: Nanos) -> Option<Finding> {
        let lightest = self.present().map(|(_, weight, _)| weight).min()?;
        let bound = Nanos(2 * (fixed.0 + per_task.0 * self.runnable.len() as u64));
        let virtual_time = |(task, weight, Task { served, .. }): (TaskId, u32, Task)| {
            (Nanos((u128::from(served.0) * u128::from(lightest) / u128::from(weight)) as u64), task)
        };
        let (least, behind) = self.present().map(virtual_time).min()?;
        let (most, ahead) = self.present().map(virtual_time).max()?;
        (most - least > bound).then(|| Finding {
            rule: Rule::Shares,
            task: Some(behind),
            cpu: None,
            message: format!("was served {least} by weight, and task {} {most}; the bound is {bound}", ahead.0),
        })
    }
}
