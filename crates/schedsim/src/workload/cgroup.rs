//! Control groups: tasks that are scheduled as one, as Linux's cgroups of version 2 have it for the CPU.

use super::CgroupOptions;
use crate::Nanos;

/// A group of tasks beside all tasks that are in none. Groups are not in one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroup {
    /// Its name.
    pub name: String,
    /// `cpu.weight`: a group of 100 weighs as much as a task of nice 0 that is in none.
    pub weight: u32,
    /// `cpu.max`, if it has one.
    pub max: Option<Bandwidth>,
}

/// As much CPU time, on all CPUs together, in each period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// How much.
    pub quota: Nanos,
    /// In how long.
    pub period: Nanos,
}

impl Cgroup {
    /// The default of `cpu.weight`.
    pub const WEIGHT: u32 = CgroupOptions::WEIGHT;
    /// The default period of `cpu.max`.
    pub const PERIOD: Nanos = CgroupOptions::PERIOD;
}
