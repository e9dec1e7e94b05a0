//! The stopping rule for repeated runs.

use super::Case;
use crate::replication::Limit;
use results::Metric;
use std::time::Duration;

/// The number and time of repetitions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stopping {
    /// The smallest number of rounds.
    pub min_runs: u32,
    /// The largest number of rounds.
    pub max_runs: u32,
    /// The shortest time.
    pub min_time: Duration,
    /// The longest time; the result is then inconclusive.
    pub max_time: Option<Duration>,
    /// The required width of the intervals, if any.
    pub precision: Option<Precision>,
}

/// The required width.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Precision {
    /// The 95 % half-width of the mean makespan, and of its difference from the baseline's, is at
    /// most this share of the mean.
    HalfWidth(f64),
    /// The standard error of the mean makespan is at most this share of it: the pslist post's rule.
    StandardError(f64),
}

impl Stopping {
    /// The pslist post's protocol: "at least five times and at least ten minutes". It is repeated
    /// until the relative standard error is low, for at most an hour.
    ///
    /// The post does not define low; schedlab uses one per cent.
    pub const PSLIST: Stopping = Stopping {
        min_runs: 5,
        max_runs: u32::MAX,
        min_time: Duration::from_secs(600),
        max_time: Some(Duration::from_secs(3600)),
        precision: Some(Precision::StandardError(0.01)),
    };

    /// Whether to look at the runs after this number of rounds: first when the minimum is reached,
    /// then after each quarter more. Each look costs certainty.
    pub fn is_time_to_look(&self, rounds: u32, looks: u32, elapsed: Duration) -> bool {
        let due = f64::from(self.min_runs) * 1.25_f64.powi(looks.cast_signed());
        rounds >= self.min_runs && elapsed >= self.min_time && f64::from(rounds) >= due
    }

    /// The limit that ends the runs after this number of rounds, whatever the results.
    pub fn limit(&self, rounds: u32, elapsed: Duration) -> Option<Limit> {
        let is_late = self.max_time.is_some_and(|max_time| elapsed >= max_time);
        if is_late && rounds > 0 {
            Some(Limit::Time)
        } else {
            (rounds >= self.max_runs).then_some(Limit::Runs)
        }
    }

    /// Whether the makespans of `case` are precise enough.
    pub fn is_precise(&self, case: &Case<'_>, baseline: &Case<'_>) -> bool {
        const METRIC: Metric = Metric::makespan_ns;
        let Some(precision) = self.precision else { return true };
        let Some(estimate) = case.estimate(METRIC) else { return false };
        match precision {
            Precision::HalfWidth(share) => {
                let difference =
                    case.against(baseline, METRIC).map(|paired| paired.half_width(0.95));
                estimate.half_width.is_some()
                    && estimate.is_within(share)
                    && difference.is_some_and(|width| width <= share * estimate.mean)
            }
            Precision::StandardError(share) => {
                let runs: Vec<f64> = case.values(METRIC).flatten().collect();
                let variance =
                    runs.iter().map(|value| (value - estimate.mean).powi(2)).sum::<f64>()
                        / (runs.len() as f64 - 1.0);
                runs.len() > 1 && (variance / runs.len() as f64).sqrt() <= share * estimate.mean
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_runner::class::Class;
    use worlds::mock::{command, run};
    use worlds::{Candidate, Program, Trial};

    fn case<'p>(program: &'p Program, makespans: &[f64]) -> Case<'p> {
        let trial = Trial { program, candidate: Candidate::Class(Class::Other), cpus: 1 };
        Case {
            trial,
            runs: makespans.iter().map(|&ns| Ok(run(&[(Metric::makespan_ns, ns)]))).collect(),
            refused: None,
        }
    }

    #[test]
    fn the_pslist_protocol_repeats_for_ten_minutes_and_stops_after_an_hour() {
        let (protocol, minutes) =
            (Stopping::PSLIST, |minutes: u64| Duration::from_secs(60 * minutes));
        assert!(!protocol.is_time_to_look(4, 0, minutes(30)));
        assert!(!protocol.is_time_to_look(50, 0, minutes(9)));
        assert!(
            protocol.is_time_to_look(5, 0, minutes(10))
                && !protocol.is_time_to_look(6, 1, minutes(10))
        );
        assert_eq!(
            [59, 60].map(|elapsed| protocol.limit(50, minutes(elapsed))),
            [None, Some(Limit::Time)]
        );
        // Standard errors of 0.4 and 4 per cent.
        let program = command("w");
        let case = |makespans: &[f64]| case(&program, makespans);
        let (steady, noisy) =
            (case(&[99.0, 100.0, 101.0, 100.0, 99.0]), case(&[90.0, 100.0, 110.0, 100.0, 90.0]));
        assert!(protocol.is_precise(&steady, &steady) && !protocol.is_precise(&noisy, &noisy));
        let narrow = Stopping { precision: Some(Precision::HalfWidth(0.02)), ..protocol };
        assert!(
            narrow.is_precise(&steady, &steady)
                && !narrow.is_precise(&noisy, &steady)
                && !narrow.is_precise(&case(&[100.0]), &steady)
        );
    }
}
