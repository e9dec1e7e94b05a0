//! Checks that real-time tasks of equal priority alternate after exactly one quantum.
//!
//! The check counts a task's CPU time in quanta. While an equal task waits on its CPU, the task may
//! not exceed a quantum. An equal task may not take over within one, unless the task yields.
//! Preemption by a better task and sleep interrupt a quantum and do not end it. The check is exact,
//! so it is off on machines where a switch costs time. Whether a quantum contains that cost depends
//! on how it is interrupted.

use super::scene::{Running, Scene};
use super::{Finding, Rule};
use crate::policy::Promises;
use crate::workload::{Action, TaskClass, TaskSpec, Workload};
use crate::{CpuId, Nanos, TaskId, Time};

/// The position of each task in its quantum.
#[derive(Clone, Debug)]
pub struct Quanta {
    tasks: Vec<Progress>,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    prio: u8,
    /// `None` if it does not alternate with equals.
    quantum: Option<Nanos>,
    used: Nanos,
    yields: bool,
}

impl Quanta {
    pub fn new(workload: &Workload, promises: Promises) -> Quanta {
        let progress = |task: &TaskSpec| {
            let class = task.attributes.class;
            let own = (class == TaskClass::RoundRobin).then_some(Nanos::from_millis(100));
            let alternates = task.info.prio < promises.strict_below && class != TaskClass::Fifo;
            let quantum = promises.quantum.or(own).filter(|_| alternates);
            let yields = task.script.steps().any(|step| step.then == Action::Yield);
            Progress { prio: task.info.prio, quantum, used: Nanos::ZERO, yields }
        };
        Quanta { tasks: workload.tasks.iter().map(progress).collect() }
    }

    /// `cpu` switches from `ran` to `next`; `stays_runnable`: whether `ran` is still runnable.
    pub fn switch(
        &mut self,
        scene: &Scene,
        cpu: CpuId,
        ran: Running,
        next: TaskId,
        stays_runnable: bool,
        now: Time,
    ) -> Option<Finding> {
        let progress = self.tasks[ran.task.index()];
        let quantum = progress.quantum?;
        let length = now.since(ran.since);
        let used = progress.used + length;
        self.tasks[ran.task.index()].used = Nanos(used.0 % quantum.0);
        let finding = |message| {
            Some(Finding { rule: Rule::RoundRobin, task: Some(ran.task), cpu: Some(cpu), message })
        };
        let is_equal = |task: TaskId| self.tasks[task.index()].prio == progress.prio;
        let rest = quantum - progress.used;
        if length > rest {
            let end = ran.since + rest;
            let waits = scene
                .waiting
                .iter()
                .find(|other| other.cpu == cpu && other.since < end && is_equal(other.task));
            if let Some(other) = waits {
                return finding(format!(
                    "runs for {length}, {rest} to the end of its quantum, while its equal task {} \
                     waits",
                    other.task.0
                ));
            }
        }
        if stays_runnable
            && !progress.yields
            && !used.0.is_multiple_of(quantum.0)
            && next != TaskId::NONE
            && is_equal(next)
        {
            return finding(format!(
                "is followed by its equal task {} when it has used {used} of a quantum of \
                 {quantum}",
                next.0
            ));
        }
        None
    }
}
