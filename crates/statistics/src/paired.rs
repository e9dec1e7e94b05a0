//! Compares a policy with a baseline by pairs of runs: an influence on both runs of a pair cancels
//! out in the difference.
//!
//! Sources: Student (1908) for the test of a difference; Schuirmann (1987) for two one-sided tests,
//! which show that no difference matters.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The differences of pairs of runs: the policy's value minus the baseline's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Paired {
    /// The number of pairs.
    pub pairs: usize,
    /// The mean difference.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Paired {
    /// From pairs of (value, baseline); absent for fewer than two.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Paired> {
        let n = pairs.len() as f64;
        if pairs.len() < 2 {
            return None;
        }
        let mean = pairs.iter().map(|(value, base)| value - base).sum::<f64>() / n;
        let variance = pairs.iter().map(|(value, base)| (value - base - mean).powi(2)).sum::<f64>()
            / (n - 1.0);
        Some(Paired { pairs: pairs.len(), mean, error: (variance / n).sqrt() })
    }

    /// Half the width of the interval with this confidence.
    pub fn half_width(&self, confidence: f64) -> f64 {
        self.student().inverse_cdf(0.5 + confidence / 2.0) * self.error
    }

    /// The probability of a difference at least as large if there is no true difference.
    pub fn p_different(&self) -> f64 {
        match self.error > 0.0 {
            true => 2.0 * self.student().sf((self.mean / self.error).abs()),
            false => f64::from(u8::from(self.mean == 0.0)),
        }
    }

    /// The probability of a difference at most as large if the true one is at least `margin`.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        match self.error > 0.0 {
            true => self.student().sf((margin - self.mean.abs()) / self.error),
            false => f64::from(u8::from(self.mean.abs() >= margin)),
        }
    }

    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, (self.pairs - 1) as f64)
            .unwrap_or_else(|_| unreachable!("there are two pairs or more"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.ttest_rel([10.1, 11.2, 9.7, 12.4, 10.9], [9.6, 10.1, 9.9, 11.0, 10.2]) and
    /// ttest_1samp of the differences minus 1.5.
    #[test]
    fn probabilities_are_students() {
        let paired =
            Paired::of(&[(10.1, 9.6), (11.2, 10.1), (9.7, 9.9), (12.4, 11.0), (10.9, 10.2)])
                .unwrap();
        assert!(
            (paired.mean - 0.7).abs() < 1e-12 && (paired.error - 0.273_861_278_752).abs() < 1e-9,
            "{paired:?}"
        );
        assert!((paired.p_different() - 0.062_901_5).abs() < 1e-6, "{}", paired.p_different());
        assert!((paired.p_beyond(1.5) - 0.021_596_1).abs() < 1e-6, "{}", paired.p_beyond(1.5));
        assert!(
            (paired.half_width(0.95) - 0.760_360_8).abs() < 1e-6,
            "{}",
            paired.half_width(0.95)
        );
        assert_eq!(Paired::of(&[(1.0, 2.0)]), None);
    }
}
