//! A policy against a baseline by pairs of runs that were made side by side: what both suffered alike drops out of the difference.
//!
//! Sources: Student (1908) for the test of a difference; Schuirmann (1987) for two one-sided tests, which show that there is none that matters.

use super::{Verdict, holm};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The differences of pairs of runs, the policy's value less the baseline's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Paired {
    /// How many pairs.
    pub pairs: usize,
    /// The mean difference.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Paired {
    /// From pairs of value and baseline; `None` from less than two.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Paired> {
        let n = pairs.len() as f64;
        if pairs.len() < 2 {
            return None;
        }
        let mean = pairs.iter().map(|(value, base)| value - base).sum::<f64>() / n;
        let variance = pairs.iter().map(|(value, base)| (value - base - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Paired { pairs: pairs.len(), mean, error: (variance / n).sqrt() })
    }

    /// Half the width of the interval that holds the true difference with this confidence.
    pub fn half_width(&self, confidence: f64) -> f64 {
        self.student().inverse_cdf(0.5 + confidence / 2.0) * self.error
    }

    /// How probable a difference as large is if there is none.
    pub fn p_different(&self) -> f64 {
        match self.error > 0.0 {
            true => 2.0 * self.student().sf((self.mean / self.error).abs()),
            false => f64::from(u8::from(self.mean == 0.0)),
        }
    }

    /// How probable a difference as small is if it is `margin` or more in either direction.
    pub fn p_beyond(&self, margin: f64) -> f64 {
        match self.error > 0.0 {
            true => self.student().sf((margin - self.mean.abs()) / self.error),
            false => f64::from(u8::from(self.mean.abs() >= margin)),
        }
    }

    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, (self.pairs - 1) as f64).unwrap_or_else(|_| unreachable!("there are two pairs or more"))
    }
}

/// A difference that is to be judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Question {
    /// The differences.
    pub paired: Paired,
    /// A difference smaller than this makes none.
    pub margin: f64,
    /// Which way is better.
    pub lower_is_better: bool,
}

/// Judges all differences together, so that with probability `1 - alpha` no verdict among them is wrong: `equivalent` where the difference is shown to be within the
/// margin, else `better` or `worse` where there is shown to be one, else `undecided`. Each of the two families of tests is corrected after Holm, with half of `alpha`.
pub fn judge(questions: &[Question], alpha: f64) -> Vec<Verdict> {
    let beyond = holm(&questions.iter().map(|question| question.paired.p_beyond(question.margin)).collect::<Vec<_>>());
    let different = holm(&questions.iter().map(|question| question.paired.p_different()).collect::<Vec<_>>());
    let verdict = |((question, beyond), different): ((&Question, f64), f64)| {
        if beyond <= alpha / 2.0 {
            Verdict::Equivalent
        } else if different > alpha / 2.0 {
            Verdict::Undecided
        } else if (question.paired.mean < 0.0) == question.lower_is_better {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    };
    questions.iter().zip(beyond).zip(different).map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Random;

    /// scipy.stats.ttest_rel([10.1, 11.2, 9.7, 12.4, 10.9], [9.6, 10.1, 9.9, 11.0, 10.2]) and ttest_1samp of the differences less 1.5.
    #[test]
    fn probabilities_are_students() {
        let paired = Paired::of(&[(10.1, 9.6), (11.2, 10.1), (9.7, 9.9), (12.4, 11.0), (10.9, 10.2)]).unwrap();
        assert!((paired.mean - 0.7).abs() < 1e-12 && (paired.error - 0.273_861_278_752).abs() < 1e-9, "{paired:?}");
        assert!((paired.p_different() - 0.062_901_5).abs() < 1e-6, "{}", paired.p_different());
        assert!((paired.p_beyond(1.5) - 0.021_596_1).abs() < 1e-6, "{}", paired.p_beyond(1.5));
        assert!((paired.half_width(0.95) - 0.760_360_8).abs() < 1e-6, "{}", paired.half_width(0.95));
        assert_eq!(Paired::of(&[(1.0, 2.0)]), None);
    }

    #[test]
    fn values_that_never_vary_are_judged_without_a_division_by_zero() {
        let paired = |value| Paired::of(&[(value, 10.0); 5]).unwrap();
        let judged = |value| judge(&[Question { paired: paired(value), margin: 0.1, lower_is_better: true }], 0.05)[0];
        assert_eq!([9.0, 9.95, 10.0, 11.0].map(judged), [Verdict::Better, Verdict::Equivalent, Verdict::Equivalent, Verdict::Worse]);
    }

    /// What the whole procedure promises: judged again and again while runs come in, the same system is seldom called different from itself.
    #[test]
    fn the_same_is_called_different_in_less_than_five_of_a_hundred_experiments() {
        let mut random = Random::new(7);
        let mut normal = move || (0..12).map(|_| random.below(1 << 32) as f64 / (1u64 << 32) as f64).sum::<f64>() - 6.0;
        let mut wrong = 0;
        for _ in 0..400 {
            let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); 4];
            'experiment: for look in 1..=6 {
                for pairs in &mut pairs {
                    pairs.extend((0..5).map(|_| (100.0 + normal(), 100.0 + normal())));
                }
                let question =
                    |pairs: &Vec<(f64, f64)>| Question { paired: Paired::of(pairs).unwrap(), margin: 1e-9, lower_is_better: true };
                let verdicts = judge(&pairs.iter().map(question).collect::<Vec<_>>(), super::super::spent_at(look, 0.05));
                if verdicts.iter().any(|verdict| *verdict != Verdict::Undecided) {
                    wrong += 1;
                    break 'experiment;
                }
            }
        }
        assert!((1..=20).contains(&wrong), "{wrong} of 400 experiments");
    }
}
