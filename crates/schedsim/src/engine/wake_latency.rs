//! How late a CPU chooses after a waking, where that is a distribution.

use super::cpus::CpuState;
use super::{Engine, NOBODY};
use crate::machine::{IdleTime, WakeLatency};
use crate::policy::{Effect, Policy};
use crate::trace::Sink;
use crate::{CpuId, Nanos, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The distributions and their draws.
#[derive(Debug)]
pub struct Lateness {
    latency: WakeLatency,
    random: SplitMix64,
    /// Since when each CPU idles, if it does.
    idle_since: Vec<Time>,
}

impl Lateness {
    /// `None` if no distribution is known.
    pub fn new(latency: &WakeLatency, cpus: u16) -> Option<Box<Lateness>> {
        (!latency.is_unknown()).then(|| {
            Box::new(Lateness {
                latency: latency.clone(),
                random: SplitMix64::seed_from_u64(latency.seed),
                idle_since: vec![Time::ZERO; usize::from(cpus)],
            })
        })
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// `cpu` starts to idle.
    #[cold]
    pub(super) fn idles_from_now(&mut self, cpu: CpuId) {
        let now = self.now();
        if let Some(lateness) = &mut self.lateness {
            lateness.idle_since[cpu.index()] = now;
        }
    }

    /// Makes a CPU dispatch after a waking on CPU `by`.
    #[cold]
    pub(super) fn apply_late(&mut self, effect: Effect, by: CpuId) {
        let (Effect::Kick(cpu) | Effect::Preempt(cpu)) = effect else {
            return self.apply(effect, Nanos::ZERO);
        };
        match self.cpus[cpu.index()].state {
            CpuState::Idle => {
                let after = self.late_from_idle(cpu, by);
                self.leave_idle_after(cpu, after);
            }
            CpuState::Busy if matches!(effect, Effect::Preempt(_)) => {
                let after = self.late_when_busy(by == cpu);
                self.preempt(cpu, after);
            }
            CpuState::Busy | CpuState::LeavingIdle(_) => {}
        }
    }

    fn late_from_idle(&mut self, cpu: CpuId, by: CpuId) -> Nanos {
        let (now, machine) = (self.seat.cx().now, &self.seat.cx().machine);
        // Only an interrupt of its own ends the idleness of a CPU on itself.
        let here = self.interrupted != NOBODY && by == cpu;
        let single = if here { machine.wake_cost } else { machine.idle_exit };
        let Some(lateness) = &mut self.lateness else { return single };
        let Lateness { latency, random, idle_since } = &mut **lateness;
        let of = if here { &latency.idle_here } else { &latency.idle_away };
        let spread = of.of(IdleTime::of(now.since(idle_since[cpu.index()])));
        if spread.values().is_empty() { single } else { spread.draw(random.next_u64()) }
    }

    fn late_when_busy(&mut self, here: bool) -> Nanos {
        let single = self.seat.cx().machine.wake_cost;
        let Some(lateness) = &mut self.lateness else { return single };
        let Lateness { latency, random, .. } = &mut **lateness;
        let spread = if here { &latency.busy_here } else { &latency.busy_away };
        if spread.values().is_empty() { single } else { spread.draw(random.next_u64()) }
    }
}
