//! Does a task wait while a less important one runs where it could?
//!
//! Whoever inherits a priority counts with that; where such a one is concerned, the rule that is broken is [`Rule::Inherited`].
//!
//! For tasks of the priorities for which that is promised. An overlap of such a wait with such a run is judged when either ends. It may last for as
//! long as a CPU is busy with a switch, which nothing interrupts, and a chosen one leaves idle; where such things take time, a task's wait counts
//! anew when a CPU that may have been meant for it has taken another: any when it leaves idle, one that is not less important when it was told to
//! choose anew.

use super::scene::{Running, Scene, Waiting};
use super::{Finding, Rule};
use crate::workload::Workload;
use crate::{CpuId, Machine, Nanos, TaskId, Ticks, Time};

/// Priorities, and how long is too long.
#[derive(Clone, Debug)]
pub struct Strict {
    own_prios: Vec<u8>,
    prios: Vec<u8>,
    below: u8,
    tolerance: Nanos,
}

impl Strict {
    /// Nothing to look at if no task is of such a priority.
    pub fn new(workload: &Workload, machine: &Machine, below: u8) -> Option<Strict> {
        let prios: Vec<u8> = workload.tasks.iter().map(|task| task.info.prio).collect();
        let queue = machine.queue_cost.as_ref().map_or(Nanos::ZERO, |cost| cost.of(workload.tasks.len() as u32));
        let tick = machine.ticks.as_ref().map_or(Nanos::ZERO, Ticks::most);
        // Each other task may wake, and interrupt the CPU once more, before that has stopped what it runs.
        let interrupts = Nanos((machine.timer_cost + machine.interruption).0 * prios.len() as u64);
        let tolerance = machine.switch_cost + machine.idle_exit + machine.wake_cost + queue + tick + interrupts;
        prios.iter().any(|&prio| prio < below).then(|| Strict { own_prios: prios.clone(), prios, below, tolerance })
    }

    /// The priority of `task` has changed. Its wait, or its run, was to be judged by the old one up to now.
    pub fn set_prio(&mut self, task: TaskId, prio: u8) {
        self.prios[task.index()] = prio;
    }

    /// Whether anything may take time.
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

    /// A wait ends; `may_run` says where the task could have run meanwhile.
    pub fn wait_ends(&self, scene: &Scene, waited: Waiting, now: Time, may_run: impl Fn(CpuId) -> bool) -> Option<Finding> {
        let running = scene.running.iter().enumerate().filter_map(|(cpu, running)| Some((CpuId(cpu as u16), (*running)?)));
        running.filter(|&(cpu, _)| may_run(cpu)).find_map(|(cpu, running)| self.judge(waited, cpu, running, now))
    }

    /// A run ends; `may_run` says who could have run there meanwhile.
    pub fn run_ends(&self, scene: &Scene, cpu: CpuId, ran: Running, now: Time, may_run: impl Fn(TaskId) -> bool) -> Option<Finding> {
        let waiting = scene.waiting.iter().filter(|waiting| waiting.task != ran.task && may_run(waiting.task));
        waiting.copied().find_map(|waiting| self.judge(waiting, cpu, ran, now))
    }

    fn judge(&self, waiting: Waiting, cpu: CpuId, running: Running, now: Time) -> Option<Finding> {
        let (waits, runs) = (self.prio(waiting.task), self.prio(running.task));
        let inherits = |task: TaskId| self.own_prios[task.index()] != self.prio(task);
        let rule = if inherits(waiting.task) || inherits(running.task) { Rule::Inherited } else { Rule::StrictPriority };
        let overlap = now.since(waiting.passed_over.max(running.since));
        (waits < self.below && waits < runs && overlap > self.tolerance).then(|| Finding {
            rule,
            task: Some(waiting.task),
            cpu: Some(cpu),
            message: format!("waits for {overlap} with priority {waits} while task {} runs there with {runs}", running.task.0),
        })
    }
}
