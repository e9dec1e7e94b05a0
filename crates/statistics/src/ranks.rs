//! Rank tests for differences with heavy tails, where the largest term dominates a mean.
//!
//! Sources: Wilcoxon (1945) for the test, Hodges & Lehmann (1963) for the estimate and its
//! interval. The distribution of the statistic is exact, with ties, up to [`EXACT`] differences,
//! and normal beyond.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

/// Up to this number of differences the distribution is computed exactly.
const EXACT: usize = 64;
/// Beyond this number of differences the median and its interval replace the means of all pairs,
/// which would be too many.
const PAIRED: usize = 512;
/// With fewer differences there is no 95 % interval: even the full range covers the centre less
/// often.
const FEWEST: usize = 6;

/// Differences, for rank statistics.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranks {
    differences: Vec<f64>,
}

impl Ranks {
    /// From one difference per run.
    pub fn of(differences: &[f64]) -> Ranks {
        Ranks { differences: differences.to_vec() }
    }

    /// The median of the means of all pairs of differences, each paired with itself too.
    pub fn centre(&self) -> f64 {
        let mut values =
            if self.differences.len() <= PAIRED { self.means() } else { self.differences.clone() };
        super::median(&mut values)
    }

    /// The 95 % interval of the centre; absent if there are too few differences.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let n = self.differences.len();
        if n < FEWEST {
            return None;
        }
        if n > PAIRED {
            return median_interval(&mut self.differences.clone());
        }
        let means = self.means();
        let out = if n <= EXACT {
            // The smallest value that the statistic stays at or below with a probability of at
            // least 2.5 %.
            let distribution = Distribution::of(&(1..=n).collect::<Vec<usize>>());
            (0..means.len()).find(|statistic| distribution.at_most(*statistic) >= 0.025)?
        } else {
            let (n, pairs) = (n as f64, means.len() as f64);
            (pairs / 2.0 - 1.96 * (pairs * (2.0 * n + 1.0) / 12.0).sqrt()) as usize
        };
        let out = out.max(1);
        Some((means[out - 1], means[means.len() - out]))
    }

    /// The probability of differences at least as one-sided if they are symmetric about zero.
    pub fn p_different(&self) -> f64 {
        (2.0 * self.p_below(0.0).min(self.p_above(0.0))).min(1.0)
    }

    /// The probability of differences at most as large if their centre is at least `margin` from
    /// zero, in either direction.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        self.p_below(margin).max(self.p_above(-margin))
    }

    /// The probability of differences at most as high if they are symmetric about `centre` or
    /// higher.
    fn p_below(&self, centre: f64) -> f64 {
        signed_ranks(self.differences.iter().map(|difference| difference - centre))
    }

    /// The probability of differences at least as high if they are symmetric about `centre` or
    /// lower.
    fn p_above(&self, centre: f64) -> f64 {
        signed_ranks(self.differences.iter().map(|difference| centre - difference))
    }

    /// The means of all pairs, sorted.
    fn means(&self) -> Vec<f64> {
        let all = &self.differences;
        let mut means: Vec<f64> = (0..all.len())
            .flat_map(|high| (0..=high).map(move |low| f64::midpoint(all[low], all[high])))
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        means
    }
}

/// The 95 % interval of the median from order statistics, for any distribution; absent for fewer
/// than six values. Sorts the values.
pub fn median_interval(values: &mut [f64]) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let coins = Binomial::new(0.5, n as u64).ok()?;
    // The number of values that can lie outside on one side with at most 2.5 %.
    let out = (0..n).take_while(|out| coins.cdf(*out as u64) <= 0.025).count();
    (out > 0).then(|| (values[out - 1], values[n - out]))
}

/// The probability of a sum of positive ranks at most as low if each sign is equally likely. Zeros
/// are left out.
fn signed_ranks(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| *value != 0.0).collect();
    if values.is_empty() {
        return 1.0;
    }
    values.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
    let ranks = doubled_ranks(&values);
    let positive =
        values.iter().zip(&ranks).filter(|(value, _)| **value > 0.0).map(|(_, rank)| rank).sum();
    if values.len() <= EXACT {
        return Distribution::of(&ranks).at_most(positive);
    }
    let (total, squares) = ranks.iter().fold((0.0, 0.0), |(total, squares), rank| {
        (total + *rank as f64, squares + (*rank as f64).powi(2))
    });
    let normal = Normal::new(total / 2.0, squares.sqrt() / 2.0)
        .unwrap_or_else(|_| unreachable!("ranks are positive"));
    // Doubled ranks change in steps of two, so half a step is one.
    normal.cdf(positive as f64 + 1.0)
}

/// Twice the rank of each of `sorted`, by absolute value; equal values share the mean of their
/// ranks.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for equal in sorted.chunk_by(|one, other| one.abs() == other.abs()) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + equal.len() - 1, equal.len()));
    }
    ranks
}

/// The distribution of the sum of ranks if each rank counts with probability one half.
struct Distribution {
    /// Indexed by sum.
    probabilities: Vec<f64>,
}

impl Distribution {
    fn of(ranks: &[usize]) -> Distribution {
        let mut probabilities = vec![0.0; ranks.iter().sum::<usize>() + 1];
        probabilities[0] = 1.0;
        let mut highest = 0;
        for &rank in ranks {
            highest += rank;
            for sum in (0..=highest).rev() {
                let with = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
                probabilities[sum] = (probabilities[sum] + with) / 2.0;
            }
        }
        Distribution { probabilities }
    }

    fn at_most(&self, sum: usize) -> f64 {
        self.probabilities[..=sum].iter().sum::<f64>().min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hollander & Wolfe (1973), depression scores before and after: scipy.stats.wilcoxon gives the
    /// probabilities, R's wilcox.test the interval and the centre.
    #[test]
    #[expect(clippy::approx_constant, reason = "3.14 is a score")]
    fn a_printed_example() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| before - after).collect();
        let ranks = Ranks::of(&differences);
        assert!((ranks.p_different() - 0.039_062_5).abs() < 1e-12, "{}", ranks.p_different());
        assert!((ranks.p_above(0.0) - 0.019_531_25).abs() < 1e-12, "{}", ranks.p_above(0.0));
        let (low, high) = ranks.interval().unwrap();
        assert!(
            (ranks.centre() - 0.46).abs() < 1e-9
                && (low - 0.01).abs() < 1e-9
                && (high - 0.786).abs() < 1e-9,
            "{low} to {high}"
        );
    }

    #[test]
    fn the_interval_of_a_median_ends_at_two_of_the_sorted_values() {
        // Of 16 values the fourth and the thirteenth: 97.9 %, as in tables of the sign test.
        let mut values: Vec<f64> = (1..=16).rev().map(f64::from).collect();
        assert_eq!(median_interval(&mut values), Some((4.0, 13.0)));
        assert_eq!(median_interval(&mut values[..6]), Some((1.0, 6.0)));
        assert_eq!(median_interval(&mut values[..5]), None);
        assert_eq!(median_interval(&mut []), None);
    }

    #[test]
    fn ties_and_zeros_give_the_same_as_counting_all_signs() {
        let differences = [1.0, 1.0, -1.0, 2.0, 0.0, 3.0, -2.0];
        // All 64 signs of the six values that are not zero. Their mid-ranks are 2, 2, 2, 4.5, 4.5,
        // 6.
        let ranks = [2.0, 2.0, 2.0, 4.5, 6.0, 4.5];
        let negative = 2.0 + 4.5;
        let sums = (0..64).map(|signs: u32| {
            (0..6).filter(|bit| signs >> bit & 1 == 1).map(|bit| ranks[bit]).sum::<f64>()
        });
        let share = sums.filter(|sum| *sum <= negative).count() as f64 / 64.0;
        assert!((Ranks::of(&differences).p_above(0.0) - share).abs() < 1e-12);
        assert_eq!(Ranks::of(&[0.0; 16]).p_different(), 1.0);
    }

    #[test]
    fn the_normal_distribution_is_close_to_the_exact_one() {
        let of = |n: usize| {
            let differences: Vec<f64> =
                (1..=n).map(|rank| rank as f64 * if rank % 8 < 3 { -1.0 } else { 1.0 }).collect();
            let ranks: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
            let negative = (1..=n).filter(|rank| rank % 8 < 3).map(|rank| 2 * rank).sum();
            (Ranks::of(&differences).p_above(0.0), Distribution::of(&ranks).at_most(negative))
        };
        let (normal, exact) = of(EXACT + 1);
        assert!((normal - exact).abs() < 2e-3 && exact < 0.1, "{normal} {exact}");
    }

    #[test]
    fn intervals_of_many_differences_are_close_and_fast() {
        let wave = |n: usize| -> Vec<f64> {
            (0..n).map(|run| 1.0 + ((run * 7919) % n) as f64 / n as f64).collect()
        };
        let width = |n: usize| {
            let ranks = Ranks::of(&wave(n));
            let (low, high) = ranks.interval().unwrap();
            assert!(
                low < ranks.centre()
                    && ranks.centre() < high
                    && (ranks.centre() - 1.5).abs() < 0.02,
                "{n}: {low} to {high}"
            );
            (high - low) * (n as f64).sqrt()
        };
        let (exact, normal) = (width(EXACT), width(EXACT + 1));
        assert!((exact / normal - 1.0).abs() < 0.05, "{exact} {normal}");
        assert!(width(PAIRED) < width(PAIRED + 1), "the interval of a median is wider");
        width(100_000);
    }

    #[test]
    fn one_huge_difference_does_not_move_the_centre_to_it() {
        let mut differences: Vec<f64> = (0..16).map(|run| 1.0 + 0.01 * f64::from(run)).collect();
        let before = Ranks::of(&differences).centre();
        differences[15] = 1e9;
        let ranks = Ranks::of(&differences);
        assert!((ranks.centre() - before).abs() < 0.02);
        assert!(ranks.interval().unwrap().0 > 1.0 && ranks.p_different() < 1e-4);
        assert_eq!(Ranks::of(&differences[..5]).interval(), None, "five runs are too few");
    }
}
