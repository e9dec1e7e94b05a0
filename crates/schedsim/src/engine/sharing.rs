//! How much bursts lengthen because memory is shared with migrating tasks.

use crate::machine::{Sharing, Slows};
use crate::{Machine, Nanos};

/// The shares of [`Sharing`] as they apply to this run, in units of 2⁻³².
#[derive(Clone, Copy, Debug)]
pub struct Slowdown {
    /// Of every burst.
    pub every: u64,
    /// Of what is left of a burst when its task migrates.
    pub migrated: u64,
    /// Of a burst that begins away from the CPU where its task first ran.
    pub remote: u64,
    /// Whether any cost applies at dispatches.
    pub at_dispatch: bool,
}

impl Slowdown {
    pub fn new(machine: &Machine, policy_migrates: bool) -> Slowdown {
        let Sharing { slowdown, slows, refill_half_life, bus, remote } = machine.sharing;
        let fraction = |share: f64| (share.max(0.0) * (1u64 << 32) as f64) as u64;
        let (every, migrated) = match slows {
            Slows::EveryBurst => (if policy_migrates { fraction(slowdown) } else { 0 }, 0),
            Slows::MigratedBursts => (0, fraction(slowdown)),
        };
        let at_dispatch =
            migrated > 0 || remote > 0.0 || refill_half_life.is_some() || bus > Nanos::ZERO;
        Slowdown { every, migrated, remote: fraction(remote), at_dispatch }
    }
}

/// `share` of `work`, in units of 2⁻³².
#[inline]
pub fn part(work: Nanos, share: u64) -> Nanos {
    Nanos(((u128::from(work.0) * u128::from(share)) >> 32) as u64)
}

/// The share of its cache that a task has lost, if it last ran on this CPU `away` ago.
pub fn lost(away: Nanos, half_life: Nanos) -> f64 {
    1.0 - libm::exp2(-(away.0 as f64) / half_life.0.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_to_a_nanosecond_and_half_lives_halve() {
        let machine = Machine {
            sharing: Sharing { slowdown: 0.05, ..Sharing::default() },
            ..Machine::ideal(1)
        };
        let share = Slowdown::new(&machine, true).every;
        assert!(part(Nanos::from_millis(16_384), share).0.abs_diff(819_200_000) <= 16);
        assert_eq!(Slowdown::new(&machine, false).every, 0);
        assert_eq!(lost(Nanos(500), Nanos(500)), 0.5);
        assert_eq!(lost(Nanos(0), Nanos(500)), 0.0);
    }
}
