//! Intervals and verdicts. A replicate is a complete run, never a sample inside a run.

mod decision;
mod multiple_comparisons;
mod paired;
mod ranks;

pub use decision::{Comparison, Decision, Effect, Margin, Reason, Replay, decide, error_of_replay};
pub use multiple_comparisons::{holm, spent_at, widening};
pub use paired::Paired;
pub use ranks::{Ranks, median_interval};

pub use results::Verdict;
use schedsim::Random;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over runs with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval; absent for a single run.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// From one value per run (Student's t); absent without values.
    pub fn of(runs: &[f64]) -> Option<Estimate> {
        let n = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / n;
        match runs.len() {
            0 => None,
            1 => Some(Estimate { mean, half_width: None }),
            _ => {
                let variance =
                    runs.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
                let t = StudentsT::new(0.0, 1.0, n - 1.0)
                    .map_or(f64::INFINITY, |student| student.inverse_cdf(0.975));
                Some(Estimate { mean, half_width: Some(t * (variance / n).sqrt()) })
            }
        }
    }

    /// A value that is known exactly.
    pub fn exact(value: f64) -> Estimate {
        Estimate { mean: value, half_width: None }
    }

    /// The half-width as a share of the mean; zero where there is none.
    pub fn relative_half_width(&self) -> f64 {
        self.half_width
            .filter(|half_width| *half_width > 0.0)
            .map_or(0.0, |half_width| half_width / self.mean.abs())
    }

    /// Whether the half-width is at most `share` of the mean.
    pub fn is_within(&self, share: f64) -> bool {
        self.half_width.is_none_or(|half_width| half_width <= share * self.mean.abs())
    }
}

/// The 95 % interval of the mean of one value per run, by percentile bootstrap with a fixed seed;
/// absent for a single run.
pub fn bootstrap(runs: &[f64]) -> Option<(f64, f64)> {
    bootstrap_of(runs, |sample| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The same for any statistic of the values.
///
/// Source: Efron (1979), the percentile method.
pub fn bootstrap_of(runs: &[f64], statistic: impl Fn(&mut [f64]) -> f64) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 2000;
    if runs.len() < 2 {
        return None;
    }
    let mut random = Random::new(1);
    let mut resampled = || {
        let mut sample: Vec<f64> =
            runs.iter().map(|_| runs[random.below(runs.len() as u64) as usize]).collect();
        statistic(&mut sample)
    };
    let mut values: Vec<f64> = (0..RESAMPLES).map(|_| resampled()).collect();
    values.sort_unstable_by(f64::total_cmp);
    Some((values[RESAMPLES / 40], values[RESAMPLES - 1 - RESAMPLES / 40]))
}

/// The median: the mean of the two middle values if the number is even; NaN if there are none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_students_t() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, standard deviation 2.138, t(0.975, 7) = 2.36462.
        let estimate = Estimate::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(estimate.mean, 5.0);
        assert!((estimate.half_width.unwrap() - 1.787_487).abs() < 1e-5, "{estimate:?}");
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate::exact(3.0)));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_bootstrap_interval_includes_the_mean_and_narrows_with_runs() {
        let runs: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 5)).collect();
        let (low, high) = bootstrap(&runs).unwrap();
        assert!(low < 102.0 && 102.0 < high && high - low < 1.2, "{low} to {high}");
        let (wide_low, wide_high) = bootstrap(&runs[..5]).unwrap();
        assert!(wide_high - wide_low > high - low);
        assert_eq!(bootstrap(&[3.0]), None);
    }
}
