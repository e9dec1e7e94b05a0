//! Corrections for multiple comparisons: many tests at once, and repeated tests while runs arrive.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Corrects the probabilities of several tests, so that each can be compared with the level for all
/// of them together.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let mut corrected = vec![0.0; probabilities.len()];
    let mut highest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        highest = highest.max((probabilities.len() - rank) as f64 * probabilities[index]).min(1.0);
        corrected[index] = highest;
    }
    corrected
}

/// The part of `alpha` that look number `look` (from 1 on) can spend: half at the first. All looks
/// together spend at most `alpha`, whatever their number.
///
/// The share 1 / (k (k + 1)) sums up to one. By Boole's inequality all looks together are wrong at
/// most as often as `alpha`, whatever rule stops them. Spending functions that use the dependence
/// of looks (Lan & DeMets 1983) are less conservative, but need the number of runs in advance.
pub fn spent_at(look: u32, alpha: f64) -> f64 {
    let look = f64::from(look);
    alpha / (look * (look + 1.0))
}

/// By how much the half of a 95 % interval of the mean of `runs` runs grows if it is one of
/// `numbers`. All of them must be right with a probability of `1 - alpha`. By Bonferroni and
/// Student's t.
pub fn widening(numbers: usize, runs: u32, alpha: f64) -> f64 {
    let freedom = f64::from(runs.max(2) - 1);
    let quantile = |alpha: f64| {
        StudentsT::new(0.0, 1.0, freedom)
            .map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - alpha / 2.0))
    };
    quantile(alpha / numbers.max(1) as f64) / quantile(0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holms_example_and_ties() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(
            corrected.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12),
            "{corrected:?}"
        );
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn all_looks_together_spend_no_more_than_alpha() {
        let spent: f64 = (1..100_000).map(|look| spent_at(look, 0.05)).sum();
        assert!(spent < 0.05 && spent > 0.049, "{spent}");
    }

    /// Quantiles of Student's t with 15 degrees of freedom, from a table: 2.131 at 95 %, 4.073 at 99.9
    /// %.
    #[test]
    fn an_interval_of_many_is_wider() {
        assert!((widening(1, 16, 0.001) - 4.073 / 2.131).abs() < 1e-3);
        assert!((widening(1, 16, 0.05) - 1.0).abs() < 1e-9);
        assert!(widening(20, 16, 0.001) > widening(1, 16, 0.001));
        assert!(widening(0, 0, 0.001).is_finite());
    }
}
