//! Corrections for asking more than once: several comparisons at a time, and the same ones again while runs come in.

/// The probabilities of several tests so corrected that each may be held against the level that is meant for all of them.
///
/// Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
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

/// How much of `alpha` is spent at a look, from 1 on: half at the first, and in all never more than all of it, however many looks there are.
///
/// The share 1 / (k (k + 1)) sums up to one; by Boole's inequality the looks together are wrong no more often than `alpha`, whatever stops them. Spending functions that use
/// how looks depend on each other (Lan & DeMets 1983) are less cautious, and need the number of runs to be known beforehand.
pub fn spent_at(look: u32, alpha: f64) -> f64 {
    let look = f64::from(look);
    alpha / (look * (look + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holms_example_and_ties() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(corrected.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12), "{corrected:?}");
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn all_looks_together_spend_no_more_than_alpha() {
        let spent: f64 = (1..100_000).map(|look| spent_at(look, 0.05)).sum();
        assert!(spent < 0.05 && spent > 0.049, "{spent}");
    }
}
