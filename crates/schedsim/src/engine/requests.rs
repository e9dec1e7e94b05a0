//! What a policy asks for beside its answers: more effects, and calls at times of its choice.

use super::Engine;
use crate::policy::Policy;
use crate::trace::Sink;
use crate::{CpuId, Nanos, Time};

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Grants what the policy asked for while the last event was handled.
    #[cold]
    pub(super) fn grant_requests(&mut self) {
        let (effects, call_at) = self.seat.requests();
        for effect in effects {
            self.apply(effect, Nanos::ZERO);
        }
        if let Some(time) = call_at {
            self.cpu_times.set(CpuId(self.machine().cpus), time.max(self.now()));
        }
    }

    /// The time for which the policy asked has come. If nothing else is left to happen, and no task
    /// waits, the run is over.
    #[cold]
    pub(super) fn call_policy(&mut self, calls: CpuId) {
        self.cpu_times.set(calls, Time::NEVER);
        let is_over = self.timers.earliest().min(self.cpu_times.earliest().0) == Time::NEVER;
        if !is_over || self.seat.any_waits() {
            self.seat.timer();
        }
    }
}
