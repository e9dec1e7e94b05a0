//! Checks that no CPU idles while a task waits that may run there.
//!
//! A violation is a waiting task and an idle CPU that it may use, which overlap for longer than
//! leaving idle takes. An overlap ends with a dispatch of the task, with the end of idleness, or
//! with the trace. It is checked then.
//!
//! A CPU that was woken for one task may find a better one after leaving idle. Another CPU, which
//! takes as long again to leave idle, then serves the first task. So a task's wait restarts when a
//! CPU that leaves idle passes it over, unless leaving idle takes no time.

use super::{Finding, Rule};
use crate::policy::Promises;
use crate::{CpuId, CpuSet, Machine, Nanos, TaskId, Time};

/// Tracks which tasks wait and which CPUs idle.
#[derive(Clone, Debug)]
pub struct Conservation {
    promised: Option<Rule>,
    /// How long a CPU may take to leave idle.
    exit: Nanos,
    idle: CpuSet,
    idle_since: Vec<Time>,
    /// The waiting tasks, unordered.
    waiting: Vec<TaskId>,
    waits: Vec<Wait>,
}

/// How a task waits, if it does.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// The start of the wait, or when a CPU last passed the task over.
    since: Time,
    placed: CpuId,
    /// The index in `waiting`.
    position: u32,
}

impl Conservation {
    pub fn new(machine: &Machine, tasks: usize, promises: Promises) -> Conservation {
        let mut idle = CpuSet::empty(machine.cpus);
        machine.all().for_each(|cpu| idle.insert(cpu));
        let wait = Wait { since: Time::ZERO, placed: CpuId(0), position: 0 };
        let promised = match promises {
            Promises { work_conserving: true, .. } => Some(Rule::WorkConserving),
            Promises { locally_work_conserving: true, .. } => Some(Rule::LocallyWorkConserving),
            _ => None,
        };
        Conservation {
            promised,
            exit: machine.longest_wake(),
            idle,
            idle_since: vec![Time::ZERO; usize::from(machine.cpus)],
            waiting: Vec::new(),
            waits: vec![wait; tasks],
        }
    }

    pub fn wait_begins(&mut self, task: TaskId, placed: CpuId, now: Time) {
        let position = self.waiting.len() as u32;
        self.waiting.push(task);
        self.waits[task.index()] = Wait { since: now, placed, position };
    }

    /// `task` is dispatched. `may_run` returns where it could have run.
    pub fn wait_ends(
        &mut self,
        task: TaskId,
        now: Time,
        may_run: impl Fn(CpuId) -> bool,
    ) -> Option<Finding> {
        let wait = self.waits[task.index()];
        self.waiting.swap_remove(wait.position as usize);
        if let Some(&moved) = self.waiting.get(wait.position as usize) {
            self.waits[moved.index()].position = wait.position;
        }
        if self.promised.is_none() || now.since(wait.since) <= self.exit {
            return None;
        }
        self.idle.iter().filter(|&cpu| may_run(cpu)).find_map(|cpu| self.judge(task, cpu, now))
    }

    pub fn idle_begins(&mut self, cpu: CpuId, now: Time) {
        self.idle.insert(cpu);
        self.idle_since[cpu.index()] = now;
    }

    /// `cpu` starts to run something. `may_run` returns which of the tasks that still wait could
    /// have run there.
    pub fn idle_ends(
        &mut self,
        cpu: CpuId,
        now: Time,
        may_run: impl Fn(TaskId) -> bool,
    ) -> Option<Finding> {
        self.idle.remove(cpu);
        self.promised?;
        let mut finding = None;
        for position in 0..self.waiting.len() {
            let task = self.waiting[position];
            if may_run(task) {
                finding = finding.or_else(|| self.judge(task, cpu, now));
                if self.exit > Nanos::ZERO {
                    self.waits[task.index()].since = now;
                }
            }
        }
        finding
    }

    /// The trace ends, and all waits and idle times with it.
    pub fn at_end(&self, now: Time, may_run: impl Fn(TaskId, CpuId) -> bool) -> Vec<Finding> {
        let idle_cpu = |&task: &TaskId| {
            self.idle
                .iter()
                .filter(|&cpu| may_run(task, cpu))
                .find_map(|cpu| self.judge(task, cpu, now))
        };
        self.waiting.iter().filter_map(idle_cpu).collect()
    }

    /// Whether no CPU will run `task`: all CPUs idle, and both have lasted longer than leaving idle
    /// takes.
    pub fn is_lost(&self, task: TaskId, now: Time) -> bool {
        now.since(self.waits[task.index()].since) > self.exit && self.is_over(now)
    }

    fn is_over(&self, now: Time) -> bool {
        self.idle_since.iter().enumerate().all(|(cpu, &since)| {
            self.idle.contains(CpuId(cpu as u16)) && now.since(since) > self.exit
        })
    }

    /// Whether `task` waited too long while `cpu` idled.
    fn judge(&self, task: TaskId, cpu: CpuId, now: Time) -> Option<Finding> {
        let Wait { since, placed, .. } = self.waits[task.index()];
        let rule = self.promised.filter(|&rule| rule == Rule::WorkConserving || placed == cpu)?;
        let overlap = now.since(since.max(self.idle_since[cpu.index()]));
        (overlap > self.exit).then(|| Finding {
            rule,
            task: Some(task),
            cpu: Some(cpu),
            message: format!("waits for {overlap} while the CPU idles"),
        })
    }
}
