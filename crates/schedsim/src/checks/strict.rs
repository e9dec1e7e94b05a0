//! Checks that no task waits while a less important one runs on a CPU that it may use.
//!
//! Inherited priorities count. If a task with an inherited priority is involved, the broken rule is
//! [`Rule::Inherited`].
//!
//! It checks tasks of the priorities for which this is promised. An overlap of a wait with such a
//! run is checked when either ends. The overlap may last as long as a CPU is busy with a switch,
//! which cannot be interrupted, and a chosen one leaves idle. Where these take time, a task's wait
//! restarts when a CPU that may have been meant for it takes another task. That is any task when
//! the CPU leaves idle. When the CPU was to choose again, it is one that is not less important.

use super::scene::{Running, Scene, Waiting};
use super::{Finding, Rule};
use crate::workload::Workload;
use crate::{CpuId, Machine, Nanos, TaskId, Ticks, Time};

/// Priorities, and the longest allowed overlap.
#[derive(Clone, Debug)]
pub struct Strict {
    own_prios: Vec<u8>,
    prios: Vec<u8>,
    below: u8,
    tolerance: Nanos,
}

impl Strict {
    /// `None` if no task has such a priority.
    pub fn new(workload: &Workload, machine: &Machine, below: u8) -> Option<Strict> {
        let prios: Vec<u8> = workload.tasks.iter().map(|task| task.info.prio).collect();
        let queue = machine
            .queue_cost
            .as_ref()
            .map_or(Nanos::ZERO, |cost| cost.of(workload.tasks.len() as u32));
        let tick = machine.ticks.as_ref().map_or(Nanos::ZERO, Ticks::most);
        // Each other task may wake and interrupt the CPU once more before it has stopped its task.
        let interrupts = Nanos((machine.timer_cost + machine.interruption).0 * prios.len() as u64);
        let tolerance = machine.switch_cost
            + machine.idle_exit
            + machine.wake_cost
            + machine.latency.most()
            + queue
            + tick
            + interrupts;
        prios.iter().any(|&prio| prio < below).then(|| Strict {
            own_prios: prios.clone(),
            prios,
            below,
            tolerance,
        })
    }

    /// Changes the priority of `task`. Its wait or run up to now must have been checked with the
    /// old one.
    pub fn set_prio(&mut self, task: TaskId, prio: u8) {
        self.prios[task.index()] = prio;
    }

    /// Whether any operation may take time.
    pub fn is_lenient(&self) -> bool {
        self.tolerance > Nanos::ZERO
    }

    /// Whether `task` is more important than `other`, which has taken a CPU.
    pub fn matters_more(&self, task: TaskId, other: TaskId) -> bool {
        self.prio(task) < self.prio(other)
    }

    fn prio(&self, task: TaskId) -> u8 {
        self.prios[task.index()]
    }

    /// A wait ends; `may_run` returns where the task could have run.
    pub fn wait_ends(
        &self,
        scene: &Scene,
        waited: Waiting,
        now: Time,
        may_run: impl Fn(CpuId) -> bool,
    ) -> Option<Finding> {
        let running = scene
            .running
            .iter()
            .enumerate()
            .filter_map(|(cpu, running)| Some((CpuId(cpu as u16), (*running)?)));
        running
            .filter(|&(cpu, _)| may_run(cpu))
            .find_map(|(cpu, running)| self.judge(waited, cpu, running, now))
    }

    /// A run ends; `may_run` returns which tasks could have run there.
    pub fn run_ends(
        &self,
        scene: &Scene,
        cpu: CpuId,
        ran: Running,
        now: Time,
        may_run: impl Fn(TaskId) -> bool,
    ) -> Option<Finding> {
        let waiting = scene
            .waiting
            .iter()
            .filter(|waiting| waiting.task != ran.task && may_run(waiting.task));
        waiting.copied().find_map(|waiting| self.judge(waiting, cpu, ran, now))
    }

    fn judge(&self, waiting: Waiting, cpu: CpuId, running: Running, now: Time) -> Option<Finding> {
        let (waits, runs) = (self.prio(waiting.task), self.prio(running.task));
        let inherits = |task: TaskId| self.own_prios[task.index()] != self.prio(task);
        let rule = if inherits(waiting.task) || inherits(running.task) {
            Rule::Inherited
        } else {
            Rule::StrictPriority
        };
        let overlap = now.since(waiting.passed_over.max(running.since));
        (waits < self.below && waits < runs && overlap > self.tolerance).then(|| Finding {
            rule,
            task: Some(waiting.task),
            cpu: Some(cpu),
            message: format!(
                "waits for {overlap} with priority {waits} while task {} runs there with {runs}",
                running.task.0
            ),
        })
    }
}
