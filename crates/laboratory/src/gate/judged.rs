//! Compares the decisions of a rule on two ensembles with the true effects.

use crate::{Fidelity, Summed, settle, sum_up};
use results::{Metric, Row, SubjectKind, Verdict};
use statistics::{Comparison, Estimate, Margin, Ranks, Replay, median};
use std::collections::BTreeMap;
use worlds::Run;

/// A decision rule for a table.
pub type Rule = fn(&mut Summed);

/// The rule of all comparisons.
pub fn product_rule(table: &mut Summed) {
    settle([(&mut table.rows[..], &table.compared[..])]);
}

/// A decided row with its true effect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether all runs of both are equal.
    pub is_alike: bool,
    /// The true effect, if it was measured.
    pub truth: Option<Effect>,
}

/// A true effect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// As a share of the baseline, or absolute if the metric is itself a share; infinite if the
    /// baseline is zero.
    pub size: f64,
    /// The direction.
    pub verdict: Verdict,
    /// Whether it exceeds the margin.
    pub is_relevant: bool,
    /// Whether it also exceeds the replay's error, so that it should be found.
    pub is_due: bool,
}

/// The identity of a row.
type Key = (Metric, Option<SubjectKind>, Option<String>, String);

/// True effects by row.
pub struct Truth(BTreeMap<Key, Effect>);

/// The name of the unchanged variant in a table.
const BASE: &str = "unchanged";

impl Truth {
    /// From the runs of both variants and their replay errors; empty without runs.
    pub fn of(base: &[Run], other: &[Run], fidelity: &[Fidelity]) -> Truth {
        let table = table(base, other, fidelity);
        Truth(
            table
                .compared
                .iter()
                .filter_map(|(at, comparison)| Some((key(&table.rows[*at]), effect(comparison)?)))
                .collect(),
        )
    }
}

/// All rows that compare `other` with `base`.
pub fn rows(
    base: &[Run],
    other: &[Run],
    fidelity: &[Fidelity],
    truth: &Truth,
    rule: Rule,
) -> Vec<Judged> {
    let mut table = table(base, other, fidelity);
    rule(&mut table);
    let of = |(at, comparison): &(usize, Comparison)| {
        let row = &table.rows[*at];
        let is_alike = comparison.pairs.iter().all(|(value, base)| value == base);
        Some(Judged { verdict: row.verdict?, is_alike, truth: truth.0.get(&key(row)).copied() })
    };
    table.compared.iter().filter_map(of).collect()
}

fn table(base: &[Run], other: &[Run], fidelity: &[Fidelity]) -> Summed {
    let of = |candidate: &'static str, runs: &[Run]| {
        let member = |(member, run): (u64, &Run)| {
            let stamped = |row: &Row| {
                (member, Row { candidate: candidate.to_string(), runs: 1, ..row.clone() })
            };
            run.rows.iter().map(stamped).collect::<Vec<_>>()
        };
        (0..).zip(runs).flat_map(member).collect::<Vec<_>>()
    };
    let runs: Vec<(u64, Row)> = of(BASE, base).into_iter().chain(of("changed", other)).collect();
    sum_up(&runs, Some(BASE), fidelity)
}

fn key(row: &Row) -> Key {
    (row.metric, row.subject_kind, row.subject.clone(), format!("{:?}", row.point))
}

fn effect(comparison: &Comparison) -> Option<Effect> {
    let differences: Vec<f64> = comparison.pairs.iter().map(|(value, base)| value - base).collect();
    let mut bases: Vec<f64> = comparison.pairs.iter().map(|(_, base)| *base).collect();
    let (centre, base) = match comparison.heavy_tailed {
        true => (Ranks::of(&differences).centre(), median(&mut bases)),
        false => (Estimate::of(&differences)?.mean, Estimate::of(&bases)?.mean),
    };
    let (difference, base) = (centre.abs(), base.abs());
    let (margin, size) = match comparison.margin {
        Margin::Share(share) => (share, if difference == 0.0 { 0.0 } else { difference / base }),
        Margin::Fixed(margin) => (margin, difference),
    };
    let is_beyond_error = match comparison.replay {
        Replay::None => true,
        Replay::Share(share) => difference > share * base,
        Replay::Fixed(error) => difference > error,
        Replay::Unknown => false,
    };
    let verdict = match centre {
        0.0 => Verdict::Equivalent,
        _ if (centre < 0.0) == comparison.lower_is_better => Verdict::Better,
        _ => Verdict::Worse,
    };
    let is_relevant = size > margin;
    Some(Effect { size, verdict, is_relevant, is_due: is_relevant && is_beyond_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(replay: Replay) -> Comparison {
        let pairs = vec![(110.0, 100.0), (112.0, 100.0), (108.0, 100.0)];
        Comparison {
            pairs,
            heavy_tailed: false,
            lower_is_better: true,
            margin: Margin::Share(0.02),
            replay,
        }
    }

    #[test]
    fn an_effect_is_due_if_neither_margin_nor_replay_hides_it() {
        let due = |comparison: &Comparison| effect(comparison).expect("an effect");
        let plain = due(&comparison(Replay::None));
        assert!(
            (plain.size - 0.1).abs() < 1e-12
                && plain.is_relevant
                && plain.is_due
                && plain.verdict == Verdict::Worse
        );
        assert!(due(&comparison(Replay::Share(0.05))).is_due);
        assert!(
            !due(&comparison(Replay::Share(0.2))).is_due
                && due(&comparison(Replay::Share(0.2))).is_relevant
        );
        assert!(!due(&comparison(Replay::Unknown)).is_due);
        let higher = Comparison {
            lower_is_better: false,
            margin: Margin::Fixed(20.0),
            ..comparison(Replay::None)
        };
        assert_eq!(
            (due(&higher).verdict, due(&higher).is_relevant, due(&higher).size),
            (Verdict::Better, false, 10.0)
        );
        let from_zero = Comparison {
            pairs: vec![(1.0, 0.0); 3],
            heavy_tailed: true,
            ..comparison(Replay::None)
        };
        assert_eq!(due(&from_zero).size, f64::INFINITY);
        assert_eq!(
            due(&Comparison { pairs: vec![(1.0, 1.0); 3], ..comparison(Replay::None) }).verdict,
            Verdict::Equivalent
        );
    }
}
