//! The virtual clock of the sorted structures: how much a task's key advances per slice.
//!
//! A task's key is the virtual time of its next slice. At insert it becomes `clamp(last key +
//! stride, clock, clock + stride)`, where the clock is the key of the last popped task. So the
//! first key is the stride. A task that slept returns at the clock, without the slices it missed. A
//! task removed while it waits counts as having had its slice. A task from a queue with another
//! clock waits at most one stride.
//!
//! Keys wrap and are compared by their difference. This is correct while all waiting tasks lie
//! within 2^63 of each other; they lie within the longest stride.

use core::hint::cold_path;

use crate::Level;

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
    pub const fn of(self, level: Level) -> u64 {
        match self {
            Strides::Linear => level.0 as u64 + 1,
            Strides::PowersOfTwo => {
                // `self` never changes, so this branch is always predicted. Without it the compiler
                // computes both strides and selects one.
                cold_path();
                1 << (level.0 & 63)
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

/// The longest stride with which wrapped keys still compare.
pub(crate) const LONGEST_STRIDE: u64 = 1 << 61;

/// The time of a queue: the key of the last popped task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: u64,
    pub(crate) strides: Strides,
}

impl Clock {
    pub(crate) const fn new(strides: Strides) -> Self {
        Clock { now: 0, strides }
    }

    /// The key of a task that is inserted at `level` and whose last key was `last`.
    #[inline(always)]
    pub(crate) fn key(&self, last: u64, level: Level) -> u64 {
        let behind = self.now.wrapping_sub(last) as i64;
        let stride = self.strides.of(level);
        // At most the clock plus a stride, at least the clock.
        if behind <= 0 {
            self.now.wrapping_add(stride)
        } else {
            self.now.wrapping_add(stride.saturating_sub(behind as u64))
        }
    }
}

/// Whether key `a` comes before key `b`.
#[inline(always)]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}
