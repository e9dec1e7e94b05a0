//! Real-time throttling: limits the time of real-time tasks in each second, so that other tasks,
//! such as a shell, can run.
//!
//! An overrun until the stop at a tick is subtracted from the next second. On average they run
//! exactly the allowed time.

use super::PERIOD;
use crate::{Nanos, Time};

/// The throttling state of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// The allowed time of real-time tasks in each second.
    allowance: Option<Nanos>,
    /// Their run time less the allowances of earlier seconds.
    spent: Nanos,
    /// The second up to which `spent` is computed.
    second: u64,
    /// Until when they may not run.
    until: Time,
}

impl Throttle {
    pub fn new(allowance: Option<Nanos>) -> Throttle {
        Throttle { allowance, spent: Nanos::ZERO, second: 0, until: Time::ZERO }
    }

    /// Whether real-time tasks are throttled now.
    #[inline]
    pub fn is_on(&self, now: Time) -> bool {
        now < self.until
    }

    /// When they may run again.
    pub fn until(&self) -> Time {
        self.until
    }

    /// Charges `ran` until `now`.
    #[inline]
    pub fn spend(&mut self, ran: Nanos, now: Time) {
        if let Some(allowance) = self.allowance {
            let seconds = now.0 / PERIOD.0 - self.second;
            self.second += seconds;
            self.spent =
                (self.spent + ran).saturating_sub(Nanos(allowance.0.saturating_mul(seconds)));
        }
    }

    /// Starts throttling if they have run too long. Returns whether they have.
    pub fn is_due(&mut self, now: Time) -> bool {
        self.spend(Nanos::ZERO, now);
        let Some(allowance) = self.allowance.filter(|&allowance| self.spent > allowance) else {
            return false;
        };
        // After this many seconds less than one allowance is left to make up for.
        let seconds = self.spent.0 / allowance.0.max(1);
        self.until = Time((self.second + seconds).saturating_mul(PERIOD.0));
        true
    }
}
