//! The result of a comparison of decisions.

use crate::policy::InKernel;
use crate::{CpuId, TaskId, Time};
use std::collections::BTreeMap;

/// How the policy's decision differs from the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Divergence {
    /// It would have dispatched another task.
    OtherTask,
    /// It would have dispatched no task.
    NoTask,
    /// It would have dispatched a task where the CPU idled.
    NotIdle,
    /// It would have let a task run on that was stopped.
    RunOn,
    /// It would have stopped a task that ran on.
    Stop,
    /// One of these, but a small change makes it decide as the kernel did. Either one of the last
    /// events comes up to 3 us earlier or later, or a task that was to be stopped yields first.
    Microseconds,
}

impl Divergence {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Divergence::OtherTask => "another task",
            Divergence::NoTask => "no task",
            Divergence::NotIdle => "not idle",
            Divergence::RunOn => "run on",
            Divergence::Stop => "stop",
            Divergence::Microseconds => "microseconds",
        }
    }
}

/// How many decisions were compared, and which of them differ.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judgement {
    /// How many decisions were compared.
    pub decisions: usize,
    /// Those that differ.
    pub divergences: Vec<Diverged>,
    /// How often what the kernel keeps of a task was compared.
    pub states: usize,
    /// Those that differ.
    pub differences: Vec<Difference>,
}

/// A decision that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Diverged {
    /// When.
    pub time: Time,
    /// Where.
    pub cpu: CpuId,
    /// How.
    pub class: Divergence,
    /// The task that the kernel ran next, or stopped.
    pub kernel: Option<TaskId>,
    /// The task that the policy would have run next.
    pub policy: Option<TaskId>,
}

/// What the kernel and the policy kept of a task at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// When.
    pub time: Time,
    /// Of which task.
    pub task: TaskId,
    /// Its weight; 1024 is that of nice 0. A virtual time passes faster for a smaller one.
    pub weight: u32,
    /// What the kernel had.
    pub kernel: InKernel,
    /// What the policy had.
    pub policy: InKernel,
}

impl Difference {
    /// The larger of the two differences, in ns of the task's time.
    pub fn size(&self) -> u64 {
        let of =
            |kernel: u64, policy: u64| kernel.wrapping_sub(policy).cast_signed().unsigned_abs();
        let vtime = of(self.kernel.vtime, self.policy.vtime);
        let vtime = u128::from(vtime) * u128::from(self.weight.min(1024)) / 1024;
        of(self.kernel.slice, self.policy.slice).max(vtime as u64)
    }
}

impl Judgement {
    /// The share of decisions that are equal.
    pub fn share(&self) -> f64 {
        (self.decisions - self.divergences.len()) as f64 / self.decisions.max(1) as f64
    }

    /// The share of what was kept that is equal within `tolerance`, in ns; `None` if nothing was
    /// compared.
    pub fn kept_alike(&self, tolerance: u64) -> Option<f64> {
        let far =
            self.differences.iter().filter(|difference| difference.size() > tolerance).count();
        (self.states > 0).then(|| (self.states - far) as f64 / self.states as f64)
    }

    /// How many divergences there are of each class.
    pub fn by_class(&self) -> BTreeMap<Divergence, usize> {
        let mut classes = BTreeMap::new();
        self.divergences.iter().for_each(|of| *classes.entry(of.class).or_default() += 1);
        classes
    }

    /// Adds the judgement of a later event.
    pub(super) fn add(&mut self, later: Judgement) {
        self.decisions += later.decisions;
        self.divergences.extend(later.divergences);
        self.states += later.states;
        self.differences.extend(later.differences);
    }
}
