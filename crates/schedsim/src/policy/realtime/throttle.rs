//! Real-time throttling: real-time tasks run for so long in each second and no longer, so that something else can run, if only a shell.
//!
//! What they run too long before they are stopped, at a tick, is taken from the next second. On average they run exactly for what is allowed.

use super::PERIOD;
use crate::{Nanos, Time};

/// The account of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// For how long real-time tasks may run in each second.
    allowance: Option<Nanos>,
    /// What they have run, less what they were allowed to in earlier seconds.
    spent: Nanos,
    /// Up to which second that counts.
    second: u64,
    /// Until when they may not run.
    until: Time,
}

impl Throttle {
    pub fn new(allowance: Option<Nanos>) -> Throttle {
        Throttle { allowance, spent: Nanos::ZERO, second: 0, until: Time::ZERO }
    }

    /// Whether real-time tasks may not run now.
    #[inline]
    pub fn is_on(&self, now: Time) -> bool {
        now < self.until
    }

    /// When they may run again.
    pub fn until(&self) -> Time {
        self.until
    }

    /// They have run for `ran` until `now`.
    #[inline]
    pub fn spend(&mut self, ran: Nanos, now: Time) {
        if let Some(allowance) = self.allowance {
            let seconds = now.0 / PERIOD.0 - self.second;
            self.second += seconds;
            self.spent = (self.spent + ran).saturating_sub(Nanos(allowance.0.saturating_mul(seconds)));
        }
    }

    /// Throttles them if they have run for too long. Returns whether that is so.
    pub fn is_due(&mut self, now: Time) -> bool {
        self.spend(Nanos::ZERO, now);
        let Some(allowance) = self.allowance.filter(|&allowance| self.spent > allowance) else {
            return false;
        };
        // After so many seconds they have less than one allowance left to make up for.
        let seconds = self.spent.0 / allowance.0.max(1);
        self.until = Time((self.second + seconds).saturating_mul(PERIOD.0));
        true
    }
}
