//! Timers that are files and expire again and again (`timerfd`).
//!
//! A read sleeps until the next expiry. One that comes late finds several at once; the replay takes
//! them one by one, without sleeping. A timer that expires once stays a pause of the recorded
//! length.

use super::{Calls, Ended, Place, add};
use ::recording::Class;
use schedsim::workload::{Late, Timer};
use schedsim::{Nanos, Time};

impl Calls {
    /// A timer is set: when it expires first, and how often from then on.
    pub(super) fn arms(&mut self, call: &Ended, timer: Option<(u64, u64)>) {
        let Some((expiry, interval)) = timer.filter(|_| call.result == 0) else { return };
        let is_timer = |of: &&mut super::Object| of.class == Class::Timerfd;
        let Some(object) = self.objects.get_mut(&call.object).filter(is_timer) else { return };
        object.place = None;
        if interval == 0 || expiry == u64::MAX {
            return;
        }
        // The recording's clock at its first event.
        let zero = call.entered.saturating_sub(call.since.0);
        let first = expiry.saturating_sub(zero);
        let origin = Some(Time(first.saturating_sub(interval)));
        let new = Timer { origin, late: Late::CatchUp };
        let place = add(&mut self.shared.timers, new);
        object.place = place.map(|timer| Place::Timer { timer, period: Nanos(interval) });
    }
}
