//! How late CPUs chose after wakings, from the events of a recording.

use super::Estimate;
use crate::Nanos;
use crate::machine::{ByIdleTime, IdleTime, Spread, WakeLatency};
use crate::metrics::Histogram;
use std::fmt;

/// Samples of each class of [`WakeLatency`].
#[derive(Clone, Debug, Default)]
pub(super) struct LatencySamples {
    idle_here: [Histogram; IdleTime::COUNT],
    idle_away: [Histogram; IdleTime::COUNT],
    busy_here: Histogram,
    busy_away: Histogram,
}

/// What was measured of each class.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LatencyEstimates {
    /// The distributions; empty where there are too few samples. For a machine see
    /// [`whole`](LatencyEstimates::whole).
    pub latency: WakeLatency,
    /// The medians over all idle times, of the two kinds of wakings of idle CPUs and of busy ones.
    pub idle_here: Estimate,
    /// See `idle_here`.
    pub idle_away: Estimate,
    /// See `idle_here`.
    pub busy_here: Estimate,
    /// See `idle_here`.
    pub busy_away: Estimate,
}

/// The fewest samples of a distribution.
const ENOUGH: u64 = 10;
/// The number of values of a distribution.
const VALUES: usize = 32;
/// A task that is stopped later than this after a waking was not stopped for it.
const LATEST: Nanos = Nanos(50_000);

impl LatencySamples {
    /// A CPU that had been idle for `idle` chose the woken task `after` the waking.
    pub fn left_idle(&mut self, is_here: bool, idle: Nanos, after: Nanos) {
        let of = if is_here { &mut self.idle_here } else { &mut self.idle_away };
        of[IdleTime::of(idle).index()].record(after);
    }

    /// A busy CPU stopped its task for the woken one.
    pub fn when_busy(&mut self, is_here: bool, after: Nanos) {
        if after <= LATEST {
            let of = if is_here { &mut self.busy_here } else { &mut self.busy_away };
            of.record(after);
        }
    }

    pub fn finish(&self) -> LatencyEstimates {
        let latency = WakeLatency {
            idle_here: ByIdleTime(self.idle_here.each_ref().map(spread)),
            idle_away: ByIdleTime(self.idle_away.each_ref().map(spread)),
            busy_here: spread(&self.busy_here),
            busy_away: spread(&self.busy_away),
            seed: 0,
        };
        let median = |of: &Histogram| Estimate::of_percentile(of, 50.0);
        LatencyEstimates {
            latency,
            idle_here: median(&pooled(&self.idle_here)),
            idle_away: median(&pooled(&self.idle_away)),
            busy_here: median(&self.busy_here),
            busy_away: median(&self.busy_away),
        }
    }
}

impl LatencyEstimates {
    /// Takes from `other` what is unknown here: each class of idle time for itself. Returns what
    /// that is, in words.
    pub fn fill(&mut self, other: &LatencyEstimates) -> Vec<&'static str> {
        let (own, from) = (&mut self.latency, &other.latency);
        let spreads = [
            (&mut own.idle_here.0[..], &from.idle_here.0[..]),
            (&mut own.idle_away.0, &from.idle_away.0),
            (std::slice::from_mut(&mut own.busy_here), std::slice::from_ref(&from.busy_here)),
            (std::slice::from_mut(&mut own.busy_away), std::slice::from_ref(&from.busy_away)),
        ];
        let medians = [
            (&mut self.idle_here, other.idle_here, "leaving idle by an interrupt"),
            (&mut self.idle_away, other.idle_away, "leaving idle"),
            (&mut self.busy_here, other.busy_here, "stopping a task"),
            (&mut self.busy_away, other.busy_away, "stopping a task of another CPU"),
        ];
        let mut filled = Vec::new();
        for ((own, from), (median, other, name)) in spreads.into_iter().zip(medians) {
            let before = own.iter().filter(|spread| !spread.values().is_empty()).count();
            let mut taken = 0;
            for (own, from) in own.iter_mut().zip(from) {
                if own.values().is_empty() && !from.values().is_empty() {
                    own.clone_from(from);
                    taken += 1;
                }
            }
            if taken > 0 {
                filled.push(name);
            }
            if before == 0 && taken > 0 {
                *median = other;
            }
        }
        filled
    }

    /// The distributions for a machine. A class of idle time without one has that of the next
    /// longer class that has one, or else of the next shorter.
    pub fn whole(&self) -> WakeLatency {
        let mut latency = self.latency.clone();
        for of in [&mut latency.idle_here, &mut latency.idle_away] {
            let own = of.clone();
            let is_known = |spread: &&Spread| !spread.values().is_empty();
            for (class, spread) in of.0.iter_mut().enumerate() {
                let longer = own.0[class..].iter().find(is_known);
                if let Some(known) = longer.or_else(|| own.0[..class].iter().rfind(is_known)) {
                    spread.clone_from(known);
                }
            }
        }
        latency
    }
}

fn pooled(samples: &[Histogram]) -> Histogram {
    let mut all = Histogram::default();
    samples.iter().for_each(|one| all.merge(one));
    all
}

fn spread(samples: &Histogram) -> Spread {
    if samples.count() < ENOUGH {
        return Spread::default();
    }
    let at = |place: usize| samples.percentile(100.0 * (place as f64 + 0.5) / VALUES as f64);
    Spread::of((0..VALUES).filter_map(at).collect())
}

impl fmt::Display for LatencyEstimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LatencyEstimates { idle_here, idle_away, busy_here, busy_away, .. } = self;
        write!(
            f,
            "an idle CPU switches {idle_away} later, one that an interrupt of its own woke \
             {idle_here}; a busy CPU stops its task {busy_here} later, {busy_away} if another CPU \
             interrupts it"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(time: u64, count: u64) -> LatencySamples {
        let mut samples = LatencySamples::default();
        (0..count).for_each(|n| samples.left_idle(false, Nanos(10_000), Nanos(time + n)));
        samples
    }

    #[test]
    fn a_class_with_few_samples_has_the_distribution_of_the_next() {
        let mut samples = samples(14_000, 40);
        (0..20).for_each(|n| samples.left_idle(false, Nanos(2_000), Nanos(8_000 + n)));
        samples.left_idle(false, Nanos(1_000_000), Nanos(30_000)); // alone in its class
        let of = samples.finish().whole().idle_away;
        let median = |idle| of.of(IdleTime::of(Nanos(idle))).values()[16].0;
        assert!((7_900..8_100).contains(&median(100)), "{of:?}");
        assert!((13_900..14_200).contains(&median(12_000)), "{of:?}");
        assert!((13_900..14_200).contains(&median(1_000_000)), "{of:?}");
        assert!(samples.finish().whole().idle_here.0[0].values().is_empty());
    }

    #[test]
    fn what_is_unknown_comes_from_the_other() {
        let (mut own, other) = (samples(3_000, 9).finish(), samples(14_000, 40).finish());
        assert!(own.latency.is_unknown());
        assert_eq!(own.fill(&other), ["leaving idle"]);
        assert_eq!(own.latency, other.latency);
        let mut own = samples(3_000, 40).finish();
        let before = own.clone();
        assert!(own.fill(&other).is_empty() && own == before);
        let mut longer = samples(14_000, 0);
        (0..40).for_each(|n| longer.left_idle(false, Nanos(1_000_000), Nanos(30_000 + n)));
        assert_eq!(own.fill(&longer.finish()), ["leaving idle"]);
        let class = |of: &LatencyEstimates, idle| {
            of.whole().idle_away.of(IdleTime::of(Nanos(idle))).clone()
        };
        assert_eq!(class(&own, 10_000), class(&before, 10_000), "what is known stays");
        assert_ne!(
            class(&own, 1_000_000),
            class(&before, 1_000_000),
            "a class of its own is taken"
        );
    }

    #[test]
    fn a_task_that_is_stopped_much_later_was_not_stopped_for_it() {
        let mut samples = LatencySamples::default();
        (0..20).for_each(|_| samples.when_busy(true, Nanos(50_001)));
        assert!(samples.finish().latency.is_unknown());
    }
}
