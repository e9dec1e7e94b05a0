//! The scheduling attributes of a task beyond its priority, as `sched_setattr` sets in Linux.

use crate::Nanos;

/// The attributes of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Its scheduling policy.
    pub class: TaskClass,
    /// The slice that a fair task requests (`sched_runtime`), which Linux limits to 0.1 ms…100 ms.
    /// Zero is the scheduler's default.
    pub slice: Slice,
    /// Its control group; by default it is in none.
    pub membership: Membership,
}

/// The control group of a task, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Membership(u16);

impl Membership {
    /// The group of this index.
    ///
    /// # Panics
    /// If it is 65,535 or more.
    pub fn of(group: usize) -> Membership {
        assert!(group < usize::from(u16::MAX), "there are at most 65,535 groups");
        Membership(group as u16 + 1)
    }

    /// The index of the group.
    pub fn group(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// Linux's scheduling policies, except those that follow from the priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskClass {
    /// `SCHED_FIFO` or, if the policy says so, `SCHED_RR` for priorities 0…99, else `SCHED_NORMAL`.
    #[default]
    ByPriority,
    /// `SCHED_FIFO`, for priorities 0…99.
    Fifo,
    /// `SCHED_RR`, for priorities 0…99.
    RoundRobin,
    /// `SCHED_BATCH`: a fair task that preempts no other when it wakes.
    Batch,
    /// `SCHED_IDLE`: a fair task of almost no weight, which every other one preempts.
    Idle,
}

/// A requested slice in nanoseconds, at most 100 ms. Half the size of [`Nanos`], as every live task
/// has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice(u32);

impl Slice {
    /// The scheduler's default.
    pub const DEFAULT: Slice = Slice(0);

    /// A requested slice, limited to 0.1 ms…100 ms.
    pub fn new(length: Nanos) -> Slice {
        Slice(length.0.clamp(100_000, 100_000_000) as u32)
    }

    /// The length, unless it is the default.
    pub fn length(self) -> Option<Nanos> {
        (self.0 > 0).then_some(Nanos(u64::from(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_limited_to_linuxs_range() {
        assert_eq!(
            [0, 5_000_000, u64::MAX].map(|ns| Slice::new(Nanos(ns)).length().unwrap().0),
            [100_000, 5_000_000, 100_000_000]
        );
        assert_eq!(Slice::DEFAULT.length(), None);
        assert_eq!(size_of::<Attributes>(), 8);
    }
}
