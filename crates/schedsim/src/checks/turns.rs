//! Do equals take turns of exactly one quantum?
//!
//! A task's CPU time is counted in quanta. While an equal waits on its CPU, a quantum may not be overrun; and an equal may not take over in the middle of
//! one, unless the task yields. Preemption by a better task, and sleep, interrupt a quantum and do not end it. Exact, and therefore not looked
//! at on machines where a switch costs time, which a quantum contains or not, depending on how it is interrupted.

use super::scene::{Running, Scene};
use super::{Finding, Rule};
use crate::policy::Promises;
use crate::workload::{Action, TaskClass, TaskSpec, Workload};
use crate::{CpuId, Nanos, TaskId, Time};

/// Where in its quantum each task is.
#[derive(Clone, Debug)]
pub struct Turns {
    tasks: Vec<Turn>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    prio: u8,
    /// If it takes turns at all.
    quantum: Option<Nanos>,
    used: Nanos,
    yields: bool,
}

impl Turns {
    pub fn new(workload: &Workload, promises: Promises) -> Turns {
        let turn = |task: &TaskSpec| {
            let class = task.attributes.class;
            let asked = (class == TaskClass::RoundRobin).then_some(Nanos::from_millis(100));
            let takes_turns = task.info.prio < promises.strict_below && class != TaskClass::Fifo;
            let quantum = promises.quantum.or(asked).filter(|_| takes_turns);
            let yields = task.script.steps().any(|step| step.then == Action::Yield);
            Turn { prio: task.info.prio, quantum, used: Nanos::ZERO, yields }
        };
        Turns { tasks: workload.tasks.iter().map(turn).collect() }
    }

    /// `cpu` goes from `ran` to `next`; `goes_on` if the former wants to.
    pub fn switch(&mut self, scene: &Scene, cpu: CpuId, ran: Running, next: TaskId, goes_on: bool, now: Time) -> Option<Finding> {
        let turn = self.tasks[ran.task.index()];
        let quantum = turn.quantum?;
        let length = now.since(ran.since);
        let used = turn.used + length;
        self.tasks[ran.task.index()].used = Nanos(used.0 % quantum.0);
        let finding = |message| Some(Finding { rule: Rule::RoundRobin, task: Some(ran.task), cpu: Some(cpu), message });
        let is_equal = |task: TaskId| self.tasks[task.index()].prio == turn.prio;
        let rest = quantum - turn.used;
        if length > rest {
            let end = ran.since + rest;
            let waits = scene.waiting.iter().find(|other| other.cpu == cpu && other.since < end && is_equal(other.task));
            if let Some(other) = waits {
                return finding(format!(
                    "runs for {length}, {rest} to the end of its quantum, while its equal task {} waits",
                    other.task.0
                ));
            }
        }
        if goes_on && !turn.yields && !used.0.is_multiple_of(quantum.0) && next != TaskId::NONE && is_equal(next) {
            return finding(format!("is followed by its equal task {} when it has used {used} of a quantum of {quantum}", next.0));
        }
        None
    }
}
