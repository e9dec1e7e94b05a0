//! The virtual clock of the sorted structures: how much a task's key advances per slice.
//!
//! A task's key is the virtual time of its next slice. At insert it becomes `clamp(last key +
//! stride, clock, clock + stride)`, where the clock is the key of the last popped task. So the
//! first key is the stride. A task that slept returns at the clock, without the slices it missed. A
//! task removed while it waits counts as having had its slice. A task from a queue with another
//! clock waits at most one stride.
//!
//! Keys wrap and are compared by their difference. This is correct while all waiting tasks lie
//! within half of a key's range of each other; they lie within the longest stride. A task that
//! sleeps for longer than that half may then wait a stride instead of none.

use core::hint::cold_path;

use crate::{Key, Level};

/// How a level becomes a stride, the virtual time between two slices. A task with twice the stride
/// gets half the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strides {
    /// Level l has the stride l + 1 (Porter 2021, "The Initial Priority System", whose levels start
    /// at 1).
    Linear,
    /// Level l has the stride 2^l, for levels 0 to 61 (Porter 2021, "A Better Priority System").
    PowersOfTwo,
}

impl Strides {
    /// The stride of `level`.
    #[inline(always)]
    pub fn of(self, level: Level) -> u64 {
        self.key(level)
    }

    /// The stride of `level`, as a key.
    #[inline(always)]
    pub(crate) fn key<K: Key>(self, level: Level) -> K {
        match self {
            Strides::Linear => K::linear(level),
            Strides::PowersOfTwo => {
                // `self` never changes, so this branch is always predicted. Without it the compiler
                // computes both strides and selects one.
                cold_path();
                K::power(level)
            }
        }
    }

    /// The number of levels with a stride of at most `longest`.
    pub(crate) const fn levels_up_to(self, longest: u64) -> u32 {
        match self {
            Strides::Linear if longest > u16::MAX as u64 => u16::MAX as u32 + 1,
            Strides::Linear => longest as u32,
            Strides::PowersOfTwo => longest.ilog2() + 1,
        }
    }
}

/// The time of a queue: the key of the last popped task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock<K = u64> {
    pub(crate) now: K,
    pub(crate) strides: Strides,
}

impl<K: Key> Clock<K> {
    pub(crate) const fn new(strides: Strides) -> Self {
        Clock { now: K::ZERO, strides }
    }

    /// The key of a task that is inserted at `level` and whose last key was `last`.
    #[inline(always)]
    pub(crate) fn key(&self, last: K, level: Level) -> K {
        self.now.next(last, self.strides.key(level))
    }
}
