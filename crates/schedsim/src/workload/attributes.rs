//! How a task asks to be scheduled, beyond its priority: what `sched_setattr` sets in Linux.

use crate::Nanos;

/// What a task asks for. By default nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Its scheduling policy.
    pub class: TaskClass,
    /// How much CPU time a fair task requests at a time (`sched_runtime`); Linux keeps it within 0.1 ms and 100 ms. Zero requests nothing special.
    pub slice: Slice,
    /// Its control group; by default it is in none.
    pub membership: Membership,
}

/// Which of a workload's control groups a task is in, if in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Membership(u16);

impl Membership {
    /// In the group of this index.
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

/// Linux's scheduling policies, as far as they do not follow from the priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskClass {
    /// `SCHED_FIFO` or, if the policy says so, `SCHED_RR` for priorities 0…99, else `SCHED_NORMAL`.
    #[default]
    ByPriority,
    /// `SCHED_FIFO`, for priorities 0…99.
    Fifo,
    /// `SCHED_RR`, for priorities 0…99.
    RoundRobin,
    /// `SCHED_BATCH`: a fair task that preempts nobody when it wakes.
    Batch,
    /// `SCHED_IDLE`: a fair task of almost no weight, which every other one preempts.
    Idle,
}

/// A request in nanoseconds, at most 100 ms. Half as large as [`Nanos`], as every live task has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice(u32);

impl Slice {
    /// Nothing special.
    pub const DEFAULT: Slice = Slice(0);

    /// A request of this length, kept within 0.1 ms and 100 ms.
    pub fn new(length: Nanos) -> Slice {
        Slice(length.0.clamp(100_000, 100_000_000) as u32)
    }

    /// How long it is, if it is something special.
    pub fn length(self) -> Option<Nanos> {
        (self.0 > 0).then_some(Nanos(u64::from(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_kept_within_what_linux_allows() {
        assert_eq!([0, 5_000_000, u64::MAX].map(|ns| Slice::new(Nanos(ns)).length().unwrap().0), [100_000, 5_000_000, 100_000_000]);
        assert_eq!(Slice::DEFAULT.length(), None);
        assert_eq!(size_of::<Attributes>(), 8);
    }
}
