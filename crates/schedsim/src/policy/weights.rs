//! Linux's weights of nice values: one step of nice is worth about 10 % of a CPU, or a factor of
//! 1.25.
//!
//! The numbers are those of `sched_prio_to_weight` in the kernel's `kernel/sched/core.c`, unchanged
//! since 2.6.23.

use crate::workload::TaskClass;

/// The weight of nice 0, at which real time and virtual time advance alike.
pub const NICE_0: u32 = 1024;

/// From nice −20 to nice 19.
const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, //
    29154, 23254, 18705, 14949, 11916, //
    9548, 7620, 6100, 4904, 3906, //
    3121, 2501, 1991, 1586, 1277, //
    1024, 820, 655, 526, 423, //
    335, 272, 215, 172, 137, //
    110, 87, 70, 56, 45, //
    36, 29, 23, 18, 15,
];

/// The weight of a `SCHED_IDLE` task (`WEIGHT_IDLEPRIO`).
const IDLE: u32 = 3;

/// The weight of a fair task, from its nice value or from `SCHED_IDLE`.
#[inline]
pub fn weight(prio: u8, class: TaskClass) -> u32 {
    if class == TaskClass::Idle { IDLE } else { weight_of(prio) }
}

/// The weight of a kernel priority: 100…139 for nice −20…19. Real-time priorities, which have no
/// weight, get that of nice −20.
#[inline]
pub fn weight_of(prio: u8) -> u32 {
    WEIGHTS[usize::from(prio.clamp(100, 139) - 100)]
}

/// A weight with its reciprocal, which avoids a division in each slice (the kernel's
/// `load_weight`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    value: u32,
    reciprocal: u64,
}

impl Weight {
    /// A weight of `value`, or of 1 if that is 0.
    pub fn new(value: u32) -> Weight {
        let value = value.max(1);
        Weight { value, reciprocal: u64::MAX / u64::from(value) }
    }

    /// The weight of a fair task, as [`weight`].
    pub fn of(prio: u8, class: TaskClass) -> Weight {
        Weight::new(weight(prio, class))
    }

    /// Its value.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.value
    }

    /// How far the virtual time of a task of this weight advances while it runs for `ns` (rounded
    /// down).
    ///
    /// The kernel's reciprocal has 32 bits and its product is not corrected, which differs by less
    /// than 2 millionths.
    #[inline]
    pub fn virtual_time(self, ns: u64) -> i64 {
        match ns.checked_mul(u64::from(NICE_0)) {
            Some(product) => self.divide(product) as i64,
            None => (u128::from(ns) * u128::from(NICE_0) / u128::from(self.value)) as i64,
        }
    }

    /// `dividend` divided by the weight. The product with the reciprocal is exact or one too small.
    #[inline(always)]
    fn divide(self, dividend: u64) -> u64 {
        let (quotient, value) = (
            ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64,
            u64::from(self.value),
        );
        quotient + u64::from(dividend - quotient * value >= value)
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight::new(NICE_0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nice_0_weighs_1024_and_five_steps_are_worth_a_factor_of_three() {
        assert_eq!(
            [0, 100, 119, 120, 125, 139, 255].map(weight_of),
            [88761, 88761, 1277, 1024, 335, 15, 15]
        );
        assert!(
            WEIGHTS
                .windows(2)
                .all(|pair| (1.19..1.30).contains(&(f64::from(pair[0]) / f64::from(pair[1]))))
        );
    }

    #[test]
    fn virtual_time_runs_slower_for_the_heavy() {
        assert_eq!(
            [1024, 2048, 335].map(|weight| Weight::new(weight).virtual_time(1_000_000)),
            [1_000_000, 500_000, 3_056_716]
        );
        assert_eq!(
            Weight::new(88761).virtual_time(u64::MAX / 2),
            (u128::from(u64::MAX / 2) * 1024 / 88761) as i64
        );
    }

    proptest! {
        #[test]
        fn the_reciprocal_divides_exactly(
            value in 1u32..,
            factor in 0u64..,
            offset in -2i64..=2,
            dividend in 0u64..,
        ) {
            let near = (factor % (u64::MAX / u64::from(value)))
                .wrapping_mul(u64::from(value))
                .saturating_add_signed(offset);
            for dividend in [near, dividend, u64::MAX] {
                prop_assert_eq!(Weight::new(value).divide(dividend), dividend / u64::from(value));
            }
        }
    }
}
