//! Slowdowns (response time over demand), by size of the demand.

use super::Histogram;
use super::value::{TOO_FEW, Value};
use crate::Nanos;

/// The classes of demand, each a power of ten.
pub const DEMAND_CLASSES: [&str; 8] = [
    "demand below 10us",
    "demand 10us to 100us",
    "demand 100us to 1ms",
    "demand 1ms to 10ms",
    "demand 10ms to 100ms",
    "demand 100ms to 1s",
    "demand 1s to 10s",
    "demand 10s and more",
];

/// A slowdown of one in the histograms, which count whole numbers.
const ONE: u64 = 1000;

/// Slowdown samples. Waiting slows a short demand far more than a long one, so each class is
/// counted separately.
#[derive(Clone, PartialEq, Debug)]
pub struct Slowdowns {
    classes: Vec<Histogram>,
}

impl Default for Slowdowns {
    fn default() -> Slowdowns {
        Slowdowns { classes: vec![Histogram::default(); DEMAND_CLASSES.len()] }
    }
}

impl Slowdowns {
    /// Counts one response. A demand of zero has no slowdown.
    #[inline]
    pub(super) fn record(&mut self, response: Nanos, demand: Nanos) {
        if let Some(magnitude) = demand.0.checked_ilog10() {
            let class = magnitude.saturating_sub(3).min(DEMAND_CLASSES.len() as u32 - 1);
            self.classes[class as usize].record(Nanos(ratio(response, demand)));
        }
    }

    /// All classes together, in thousandths.
    pub fn all(&self) -> Histogram {
        let mut all = Histogram::default();
        self.classes.iter().for_each(|class| all.merge(class));
        all
    }

    /// The classes that have samples, by name, each in thousandths.
    pub fn classes(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        DEMAND_CLASSES.into_iter().zip(&self.classes).filter(|(_, class)| class.count() > 0)
    }
}

/// Response over demand in thousandths.
#[inline]
pub(super) fn ratio(response: Nanos, demand: Nanos) -> u64 {
    let demand = demand.0.max(1);
    match response.0.checked_mul(ONE) {
        Some(scaled) => scaled / demand,
        None => u64::try_from(u128::from(response.0) * u128::from(ONE) / u128::from(demand))
            .unwrap_or(u64::MAX),
    }
}

/// A percentile of slowdowns in thousandths; above the median it requires 1,000 samples.
pub fn slowdown(samples: &Histogram, percent: f64, none: &'static str) -> Value {
    match samples.count() {
        0 => Value::or(None, none),
        1..1000 if percent > 50.0 => Value::or(None, TOO_FEW),
        _ => Value::or(samples.percentile(percent).map(|found| found.0 as f64 / ONE as f64), none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_demand_is_in_its_class() {
        for (demand, class) in [
            (1, 0),
            (9_999, 0),
            (10_000, 1),
            (999_999, 2),
            (1_000_000, 3),
            (9_999_999_999, 6),
            (1 << 60, 7),
        ] {
            let mut slowdowns = Slowdowns::default();
            slowdowns.record(Nanos(3 * demand), Nanos(demand));
            let found: Vec<&str> = slowdowns.classes().map(|(name, _)| name).collect();
            assert_eq!(found, [DEMAND_CLASSES[class]], "{demand}");
            assert!(
                (2.98..3.02).contains(&slowdown(&slowdowns.all(), 50.0, "none").value.unwrap())
            );
        }
        let mut nothing = Slowdowns::default();
        nothing.record(Nanos(5), Nanos(0));
        assert_eq!(slowdown(&nothing.all(), 50.0, "none").note, Some("none"));
    }

    #[test]
    fn a_tail_takes_a_thousand_samples_and_a_median_one() {
        let mut slowdowns = Slowdowns::default();
        for n in 0..999 {
            slowdowns.record(Nanos(1000 + n), Nanos(1000));
        }
        let read = |slowdowns: &Slowdowns, percent| slowdown(&slowdowns.all(), percent, "none");
        assert_eq!(
            (read(&slowdowns, 95.0).value, read(&slowdowns, 95.0).note),
            (None, Some(TOO_FEW))
        );
        assert!(read(&slowdowns, 50.0).value.is_some());
        slowdowns.record(Nanos(1000), Nanos(1000));
        assert!((read(&slowdowns, 99.0).value.unwrap() - 1.988).abs() < 0.01);
    }
}
