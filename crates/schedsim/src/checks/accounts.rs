//! Accounts for every nanosecond of every CPU.

use super::{Finding, Rule};
use crate::engine::Outcome;
use crate::{CpuId, Nanos, TaskId, Time};

/// Adds up useful work, overhead and idle time, one interval between two switches at a time.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// Per CPU: the start of the current interval, and the overhead in it.
    stretches: Vec<(Time, Nanos)>,
    /// Per task.
    useful: Vec<Nanos>,
    overhead: Nanos,
    idle: Nanos,
}

impl Accounts {
    pub fn new(cpus: u16, tasks: usize) -> Accounts {
        Accounts {
            stretches: vec![(Time::ZERO, Nanos::ZERO); usize::from(cpus)],
            useful: vec![Nanos::ZERO; tasks],
            overhead: Nanos::ZERO,
            idle: Nanos::ZERO,
        }
    }

    /// Overhead in the current interval, of the running task or of leaving idle.
    pub fn overhead(&mut self, cpu: CpuId, spent: Nanos) {
        self.stretches[cpu.index()].1 += spent;
    }

    /// Ends the interval in which `cpu` ran `task`, or idled.
    pub fn settle(&mut self, cpu: CpuId, task: TaskId, now: Time) -> Option<Finding> {
        let (start, overhead) =
            std::mem::replace(&mut self.stretches[cpu.index()], (now, Nanos::ZERO));
        let length = now.since(start);
        self.overhead += overhead.min(length);
        match self.useful.get_mut(task.index()) {
            Some(useful) => *useful += length.saturating_sub(overhead),
            None => self.idle += length.saturating_sub(overhead),
        }
        (overhead > length).then(|| Finding {
            rule: Rule::CpuTime,
            task: Some(task),
            cpu: Some(cpu),
            message: format!("overhead of {overhead} in a stretch of {length}"),
        })
    }

    /// The work that `task` has done.
    pub fn useful(&self, task: TaskId) -> Nanos {
        self.useful[task.index()]
    }

    /// Compares the sums with the run time and with the engine's outcome.
    pub fn compare(&self, outcome: &Outcome, end: Time) -> Vec<Finding> {
        let useful: Nanos = self.useful.iter().copied().sum();
        let spent = u128::from(useful.0) + u128::from(self.overhead.0) + u128::from(self.idle.0);
        let machine = self.stretches.len() as u128 * u128::from(end.0);
        let finding = |message| Finding { rule: Rule::CpuTime, task: None, cpu: None, message };
        let mut findings = Vec::new();
        if spent != machine {
            findings.push(finding(format!(
                "useful + overhead + idle is {spent} ns, the CPUs had {machine} ns"
            )));
        }
        if useful != outcome.useful {
            findings.push(finding(format!(
                "tasks worked for {} ns, the engine says {} ns",
                useful.0, outcome.useful.0
            )));
        }
        findings
    }
}
