//! CPU control groups, as in Linux's cgroups of version 2: a group of tasks is scheduled like one
//! task.

use super::CgroupOptions;
use crate::Nanos;

/// A group of tasks, beside the tasks outside of groups. Groups are not nested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// Its name.
    pub name: String,
    /// `cpu.weight`: a group of 100 weighs as much as a task of nice 0 outside of groups.
    pub weight: u32,
    /// `cpu.max`, if set.
    pub max: Option<Bandwidth>,
}

/// CPU time per period, over all CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// The CPU time.
    pub quota: Nanos,
    /// The period.
    pub period: Nanos,
}

impl Cgroup {
    /// The default of `cpu.weight`.
    pub const WEIGHT: u32 = CgroupOptions::WEIGHT;
    /// The default period of `cpu.max`.
    pub const PERIOD: Nanos = CgroupOptions::PERIOD;
}
