//! Verdicts: evaluates every comparison of a claim on our numbers and on the printed ones.

use super::claim::Claim;
use super::evidence::{Evidence, Replicate, Replicates};
use super::expression::{Check, Outcome};
use super::series::{self, Series};
use results::{Coordinate, Metric, Row, Verdict, World};
use statistics::Estimate;
use std::collections::BTreeMap;

/// A row for each check, and the verdicts that contradict the recorded ones. For checks of this
/// machine a difference is only noted in the row.
pub fn judge(claim: &Claim, evidence: &Evidence) -> (Vec<Row>, Vec<String>) {
    let row = |part: usize| {
        let mut row = Row { metric: Metric::check, ..evidence.row.clone() };
        let point: [(&str, Coordinate); 3] =
            [("claim", (&claim.id).into()), ("part", part.into()), ("says", (&claim.says).into())];
        row.point.extend(
            point
                .into_iter()
                .chain(evidence.regime.map(|regime| ("regime", regime.into())))
                .collect(),
        );
        row
    };
    if let Some(why) = &claim.skipped {
        let skipped = Row { verdict: Some(Verdict::Untestable), note: Some(why.clone()), ..row(1) };
        return (vec![skipped.at("expected", "")], Vec::new());
    }
    let (mut rows, mut surprises) = (Vec::new(), Vec::new());
    for (index, check) in claim.checks.iter().enumerate() {
        let mut row = row(index + 1);
        row.point.set("check", &claim.check[index]);
        row.point.set("expected", check.threshold());
        let outcomes = evaluate(check, evidence);
        let verdict = word(&outcomes);
        if let Ok(outcomes) = &outcomes {
            let estimate =
                Estimate::of(&outcomes.iter().map(|outcome| outcome.value).collect::<Vec<_>>())
                    .filter(|estimate| estimate.mean.is_finite());
            row.value = estimate.map(|estimate| estimate.mean);
            let half_width = estimate.and_then(|estimate| estimate.half_width);
            row.ci_low = row.value.zip(half_width).map(|(mean, half_width)| mean - half_width);
            row.ci_high = row.value.zip(half_width).map(|(mean, half_width)| mean + half_width);
            row.runs = outcomes.len() as u32;
        }
        if claim.in_print && !evidence.printed.is_empty() {
            row.point.set("in_print", in_print(check, evidence));
        }
        let known = claim.known(index + 1, evidence.regime);
        let undecided = outcomes
            .as_ref()
            .ok()
            .filter(|_| verdict == Verdict::Undecided)
            .map(|outcomes| undecided(outcomes, evidence.replicates));
        let why = outcomes
            .err()
            .map(Nothing::because)
            .or_else(|| known.map(|known| known.because.clone()))
            .or_else(|| claim.note.clone());
        let on_record = known.map_or(Verdict::Holds, |known| known.verdict);
        let is_decided =
            |verdict: &Verdict| [Verdict::Holds, Verdict::DoesNotHold].contains(verdict);
        let differs = [verdict, on_record].iter().all(is_decided) && verdict != on_record;
        // The record of one machine says nothing about another.
        let is_of_machine = evidence.row.world == World::Host;
        let elsewhere = (differs && is_of_machine)
            .then(|| format!("the record of another machine is {on_record}"));
        row.note = undecided
            .into_iter()
            .chain(elsewhere)
            .chain(why)
            .reduce(|counted, why| format!("{counted}; {why}"));
        if differs && !is_of_machine {
            let regime = evidence.regime.map_or(String::new(), |regime| format!(", {regime}"));
            surprises.push(format!(
                "{} ({}{regime}): {verdict}, on record: {on_record}: {}",
                claim.id,
                index + 1,
                claim.check[index]
            ));
        }
        row.verdict = Some(verdict);
        rows.push(row);
    }
    (rows, surprises)
}

/// Why outcomes decide nothing.
fn undecided(outcomes: &[Outcome], replicates: Replicates) -> String {
    let margins: Vec<f64> = outcomes.iter().map(|outcome| outcome.margin).collect();
    let margin = match Estimate::of(&margins) {
        Some(Estimate { mean, half_width: Some(half_width) }) if mean.is_finite() => {
            format!("holds by {mean:.3} ± {half_width:.3}")
        }
        _ => "cannot be averaged".to_string(),
    };
    let held = margins.iter().filter(|&&margin| margin >= 0.0).count();
    match replicates {
        Replicates::Each => format!("{margin}, in {held} of {}", margins.len()),
        Replicates::Mean => margin,
    }
}

/// Why there is nothing to compare.
enum Nothing {
    /// The series was not measured.
    Unmeasured(String),
    /// The series was measured, but lacks a required number.
    Missing(String),
}

impl Nothing {
    fn because(self) -> String {
        match self {
            Nothing::Unmeasured(why) | Nothing::Missing(why) => why,
        }
    }
}

fn evaluate(check: &Check, evidence: &Evidence) -> Result<Vec<Outcome>, Nothing> {
    let mut usable: BTreeMap<&str, &Vec<Series>> = BTreeMap::new();
    for (name, curves) in evidence.curves.iter().filter(|(name, _)| check.uses(name)) {
        usable.insert(name, curves.as_ref().map_err(|why| Nothing::Unmeasured(why.clone()))?);
    }
    replicates(&usable, evidence.replicates, |series| {
        check.evaluate(&Replicate { series, printed: &evidence.printed })
    })
    .map_err(Nothing::Missing)
}

/// Evaluates every replicate.
fn replicates(
    curves: &BTreeMap<&str, &Vec<Series>>,
    replicates: Replicates,
    evaluate: impl Fn(BTreeMap<&str, &Series>) -> Result<Outcome, String>,
) -> Result<Vec<Outcome>, String> {
    let count = curves.values().map(|curves| curves.len()).max().unwrap_or(1);
    if replicates == Replicates::Each || count == 1 {
        let one = |index: usize| {
            evaluate(
                curves
                    .iter()
                    .map(|(&name, curves)| (name, &curves[index.min(curves.len() - 1)]))
                    .collect(),
            )
        };
        return (0..count).map(one).collect();
    }
    let without = |left_out: Option<usize>| {
        let rest = |curves: &Vec<Series>| {
            let kept = curves
                .iter()
                .enumerate()
                .filter(|(index, _)| curves.len() == 1 || Some(*index) != left_out);
            series::mean(kept.map(|(_, curve)| curve))
        };
        let means: BTreeMap<&str, Series> =
            curves.iter().map(|(&name, curves)| (name, rest(curves))).collect();
        evaluate(means.iter().map(|(&name, series)| (name, series)).collect())
    };
    let (all, n) = (without(None)?, count as f64);
    let pseudo = |all: f64, one: f64| {
        if all.is_finite() && one.is_finite() { n * all - (n - 1.0) * one } else { one }
    };
    let one = |index| {
        without(Some(index)).map(|one| Outcome {
            value: pseudo(all.value, one.value),
            margin: pseudo(all.margin, one.margin),
        })
    };
    (0..count).map(one).collect()
}

/// Whether the printed numbers pass, with the value.
fn in_print(check: &Check, evidence: &Evidence) -> String {
    let mut series: BTreeMap<&str, &Series> = evidence
        .curves
        .iter()
        .filter_map(|(&name, curves)| Some((name, curves.as_ref().ok()?.first()?)))
        .collect();
    series.extend(evidence.printed.iter().map(|(&name, printed)| (name, printed)));
    match check.evaluate(&Replicate { series, printed: &evidence.printed }) {
        Ok(outcome) => format!(
            "{} ({:.4})",
            if outcome.margin >= 0.0 { "holds" } else { "fails" },
            outcome.value
        ),
        Err(why) => why,
    }
}

/// `holds` if the complete interval of the margin is on the right side, `does-not-hold` if it is
/// on the wrong side.
fn word(outcomes: &Result<Vec<Outcome>, Nothing>) -> Verdict {
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(Nothing::Unmeasured(_)) => return Verdict::Untestable,
        Err(Nothing::Missing(_)) => return Verdict::Undecided,
    };
    let margins: Vec<f64> = outcomes.iter().map(|outcome| outcome.margin).collect();
    let (low, high) = match Estimate::of(&margins) {
        Some(Estimate { mean, half_width }) if mean.is_finite() => {
            (mean - half_width.unwrap_or(0.0), mean + half_width.unwrap_or(0.0))
        }
        // A crossover that never happens: only the signs are known.
        _ => margins.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &margin| {
            (low.min(margin), high.max(margin))
        }),
    };
    match (low >= 0.0, high < 0.0) {
        (true, _) => Verdict::Holds,
        (_, true) => Verdict::DoesNotHold,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::Binding;
    use crate::expression::{Known, KnownSeries};
    use crate::queues;

    fn outcomes(margins: &[f64]) -> Result<Vec<Outcome>, Nothing> {
        Ok(margins.iter().map(|&margin| Outcome { value: 1.0, margin }).collect())
    }

    #[test]
    fn an_interval_on_both_sides_gets_no_verdict() {
        assert_eq!(word(&outcomes(&[1.0, 1.1, 0.9])), Verdict::Holds);
        assert_eq!(word(&outcomes(&[-1.0, -1.1, -0.9])), Verdict::DoesNotHold);
        assert_eq!(word(&outcomes(&[1.0, -1.0, 0.1])), Verdict::Undecided);
        assert_eq!(word(&outcomes(&[f64::INFINITY, 20.0])), Verdict::Holds);
        assert_eq!(word(&outcomes(&[f64::NEG_INFINITY, 20.0])), Verdict::Undecided);
        assert_eq!(word(&outcomes(&[0.0])), Verdict::Holds);
        assert_eq!(word(&Err(Nothing::Unmeasured("no valgrind".into()))), Verdict::Untestable);
    }

    #[test]
    fn the_jackknife_gives_the_interval_of_the_mean_for_noisy_curves() {
        let runs: Vec<Series> = [1.0, 2.0, 4.0].map(|y| vec![(0.0, y), (1.0, 10.0 - y)]).into();
        let judged = |text: &str| {
            let check =
                Check::parse(text, &KnownSeries::from([("run".to_string(), Known::default())]))
                    .unwrap();
            let none = BTreeMap::new();
            let of = |series: BTreeMap<&str, &Series>| {
                let series = series.into_iter().collect();
                check.evaluate(&Replicate { series, printed: &none })
            };
            replicates(&BTreeMap::from([("run", &runs)]), Replicates::Mean, of).unwrap()
        };
        let values: Vec<f64> = judged("run@0 <= 3").iter().map(|outcome| outcome.value).collect();
        assert!(
            values.iter().zip([1.0, 2.0, 4.0]).all(|(value, run)| (value - run).abs() < 1e-12),
            "{values:?}"
        );
        // Each run has a smaller minimum than the mean curve: 7/3, not the mean of 1, 2 and 4.
        let values: Vec<f64> =
            judged("min(run) <= 3").iter().map(|outcome| outcome.value).collect();
        assert!((values.iter().sum::<f64>() / 3.0 - 7.0 / 3.0).abs() < 1e-12, "{values:?}");
    }

    /// The comparisons express the paper's claims: they hold on its own numbers.
    #[test]
    fn the_printed_numbers_pass_the_checks() {
        let paper = crate::Paper::load("porter-2021").unwrap();
        for claim in paper.claims.iter().filter(|claim| claim.in_print) {
            let printed: BTreeMap<&str, Series> = claim
                .bindings
                .iter()
                .filter_map(|(name, binding)| {
                    let Binding::Queue(queues::binding::Binding::Column(id)) = binding else {
                        return None;
                    };
                    let (table, column) = paper.column(id).unwrap();
                    Some((name.as_str(), paper.printed.series(table, &column.name)))
                })
                .collect();
            for (check, text) in claim.checks.iter().zip(&claim.check) {
                if claim
                    .bindings
                    .iter()
                    .any(|(name, _)| check.uses(name) && !printed.contains_key(name.as_str()))
                {
                    continue;
                }
                let series = printed.iter().map(|(&name, series)| (name, series)).collect();
                let outcome = check.evaluate(&Replicate { series, printed: &printed }).unwrap();
                assert!(outcome.margin >= 0.0, "{}: {text:?}: {outcome:?}", claim.id);
            }
        }
    }
}
