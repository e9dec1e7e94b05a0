//! Verdicts: every comparison of a claim, put to our numbers and to the printed ones.

use super::claim::Claim;
use super::expression::{Check, Names, Outcome};
use super::series::{self, Series};
use crate::output::{Coordinate, Metric, Row, Verdict, World};
use crate::statistics::Estimate;
use std::collections::BTreeMap;

/// One series per replicate, or why there is none.
pub type Curves = Result<Vec<Series>, String>;

/// What a claim is judged by.
pub struct Evidence<'a> {
    /// The measured series of the claim by name.
    pub curves: BTreeMap<&'a str, Curves>,
    /// The printed ones.
    pub printed: BTreeMap<&'a str, Series>,
    /// What replicates are.
    pub replicates: Replicates,
    /// Under which circumstances, if there are several.
    pub regime: Option<&'a str>,
    /// The coordinates of a row about the claim.
    pub row: Row,
}

/// What the series of a claim are replicates of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicates {
    /// Whole experiments, each of which the claim is put to, such as an assignment of levels.
    Each,
    /// Noisy runs, of whose mean the claim is about. The interval is the jackknife's: what the claim's numbers become without each run.
    Mean,
}

/// The series of a claim in one replicate.
pub struct Replicate<'a> {
    series: BTreeMap<&'a str, &'a Series>,
    printed: &'a BTreeMap<&'a str, Series>,
}

impl Names for Replicate<'_> {
    fn series(&self, name: &str) -> Option<&Series> {
        self.series.get(name).copied()
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.printed.get(name)
    }
}

impl Evidence<'_> {
    /// The measured series, replicate by replicate. What was not measured is not there.
    pub fn replicates(&self) -> Vec<Replicate<'_>> {
        let usable = || self.curves.iter().filter_map(|(&name, curves)| Some((name, curves.as_ref().ok()?)));
        let count = usable().map(|(_, curves)| curves.len()).max().unwrap_or(0);
        let one = |index: usize| {
            usable().filter(|(_, curves)| !curves.is_empty()).map(|(name, curves)| (name, &curves[index.min(curves.len() - 1)])).collect()
        };
        (0..count).map(|index| Replicate { series: one(index), printed: &self.printed }).collect()
    }
}

/// A row per check, and the verdicts that contradict those on record; where they are about the machine at hand, the row says so and no more.
pub fn judge(claim: &Claim, evidence: &Evidence) -> (Vec<Row>, Vec<String>) {
    let row = |part: usize| {
        let mut row = Row { metric: Metric::check, ..evidence.row.clone() };
        let point: [(&str, Coordinate); 3] = [("claim", (&claim.id).into()), ("part", part.into()), ("says", (&claim.says).into())];
        row.point.extend(point.into_iter().chain(evidence.regime.map(|regime| ("regime", regime.into()))).collect());
        row
    };
    if let Some(why) = &claim.skipped {
        let skipped = Row { verdict: Some(Verdict::Skipped), note: Some(why.clone()), ..row(1) };
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
            let estimate = Estimate::of(&outcomes.iter().map(|outcome| outcome.value).collect::<Vec<_>>())
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
        let undecided =
            outcomes.as_ref().ok().filter(|_| verdict == Verdict::Inconclusive).map(|outcomes| undecided(outcomes, evidence.replicates));
        let why = outcomes.err().map(Nothing::because).or_else(|| known.map(|known| known.because.clone())).or_else(|| claim.note.clone());
        let on_record = known.map_or(Verdict::Reproduced, |known| known.verdict);
        let is_decided = |verdict: &Verdict| [Verdict::Reproduced, Verdict::NotReproduced].contains(verdict);
        let differs = [verdict, on_record].iter().all(is_decided) && verdict != on_record;
        // What is on record of one machine is no promise about another.
        let is_of_machine = evidence.row.world == World::Host;
        let elsewhere = (differs && is_of_machine).then(|| format!("another machine has {on_record} on record"));
        row.note = undecided.into_iter().chain(elsewhere).chain(why).reduce(|counted, why| format!("{counted}; {why}"));
        if differs && !is_of_machine {
            let regime = evidence.regime.map_or(String::new(), |regime| format!(", {regime}"));
            surprises.push(format!("{} ({}{regime}) is {verdict}, on record as {on_record}: {}", claim.id, index + 1, claim.check[index]));
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
        Some(Estimate { mean, half_width: Some(half_width) }) if mean.is_finite() => format!("holds by {mean:.3} ± {half_width:.3}"),
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
    /// It was not measured.
    Unmeasured(String),
    /// It was, and has no number where the claim needs one.
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
    replicates(&usable, evidence.replicates, |series| check.evaluate(&Replicate { series, printed: &evidence.printed }))
        .map_err(Nothing::Missing)
}

/// What `evaluate` makes of every replicate.
fn replicates(
    curves: &BTreeMap<&str, &Vec<Series>>,
    replicates: Replicates,
    evaluate: impl Fn(BTreeMap<&str, &Series>) -> Result<Outcome, String>,
) -> Result<Vec<Outcome>, String> {
    let count = curves.values().map(|curves| curves.len()).max().unwrap_or(1);
    if replicates == Replicates::Each || count == 1 {
        let one = |index: usize| evaluate(curves.iter().map(|(&name, curves)| (name, &curves[index.min(curves.len() - 1)])).collect());
        return (0..count).map(one).collect();
    }
    let without = |left_out: Option<usize>| {
        let rest = |curves: &Vec<Series>| {
            let kept = curves.iter().enumerate().filter(|(index, _)| curves.len() == 1 || Some(*index) != left_out);
            series::mean(kept.map(|(_, curve)| curve))
        };
        let means: BTreeMap<&str, Series> = curves.iter().map(|(&name, curves)| (name, rest(curves))).collect();
        evaluate(means.iter().map(|(&name, series)| (name, series)).collect())
    };
    let (all, n) = (without(None)?, count as f64);
    let pseudo = |all: f64, one: f64| if all.is_finite() && one.is_finite() { n * all - (n - 1.0) * one } else { one };
    let one =
        |index| without(Some(index)).map(|one| Outcome { value: pseudo(all.value, one.value), margin: pseudo(all.margin, one.margin) });
    (0..count).map(one).collect()
}

/// Whether the printed numbers pass, with the value.
fn in_print(check: &Check, evidence: &Evidence) -> String {
    let mut series: BTreeMap<&str, &Series> =
        evidence.curves.iter().filter_map(|(&name, curves)| Some((name, curves.as_ref().ok()?.first()?))).collect();
    series.extend(evidence.printed.iter().map(|(&name, printed)| (name, printed)));
    match check.evaluate(&Replicate { series, printed: &evidence.printed }) {
        Ok(outcome) => format!("{} ({:.4})", if outcome.margin >= 0.0 { "holds" } else { "fails" }, outcome.value),
        Err(why) => why,
    }
}

/// Reproduced if the whole interval of the margin is on the right side, not if it is on the wrong one.
fn word(outcomes: &Result<Vec<Outcome>, Nothing>) -> Verdict {
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(Nothing::Unmeasured(_)) => return Verdict::Skipped,
        Err(Nothing::Missing(_)) => return Verdict::Inconclusive,
    };
    let margins: Vec<f64> = outcomes.iter().map(|outcome| outcome.margin).collect();
    let (low, high) = match Estimate::of(&margins) {
        Some(Estimate { mean, half_width }) if mean.is_finite() => (mean - half_width.unwrap_or(0.0), mean + half_width.unwrap_or(0.0)),
        // A crossover that never comes: only the signs can be told.
        _ => margins.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &margin| (low.min(margin), high.max(margin))),
    };
    match (low >= 0.0, high < 0.0) {
        (true, _) => Verdict::Reproduced,
        (_, true) => Verdict::NotReproduced,
        _ => Verdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::claim::Binding;
    use crate::paper::expression::{Known, KnownSeries};
    use crate::paper::queues;

    fn outcomes(margins: &[f64]) -> Result<Vec<Outcome>, Nothing> {
        Ok(margins.iter().map(|&margin| Outcome { value: 1.0, margin }).collect())
    }

    #[test]
    fn an_interval_on_both_sides_decides_nothing() {
        assert_eq!(word(&outcomes(&[1.0, 1.1, 0.9])), Verdict::Reproduced);
        assert_eq!(word(&outcomes(&[-1.0, -1.1, -0.9])), Verdict::NotReproduced);
        assert_eq!(word(&outcomes(&[1.0, -1.0, 0.1])), Verdict::Inconclusive);
        assert_eq!(word(&outcomes(&[f64::INFINITY, 20.0])), Verdict::Reproduced);
        assert_eq!(word(&outcomes(&[f64::NEG_INFINITY, 20.0])), Verdict::Inconclusive);
        assert_eq!(word(&outcomes(&[0.0])), Verdict::Reproduced);
        assert_eq!(word(&Err(Nothing::Unmeasured("no valgrind".into()))), Verdict::Skipped);
    }

    #[test]
    fn the_jackknife_has_the_interval_of_the_mean_and_sees_the_mean_of_noisy_curves() {
        let runs: Vec<Series> = [1.0, 2.0, 4.0].map(|y| vec![(0.0, y), (1.0, 10.0 - y)]).into();
        let judged = |text: &str| {
            let check = Check::parse(text, &KnownSeries::from([("run".to_string(), Known::default())])).unwrap();
            let none = BTreeMap::new();
            let of = |series: BTreeMap<&str, &Series>| {
                let series = series.into_iter().collect();
                check.evaluate(&Replicate { series, printed: &none })
            };
            replicates(&BTreeMap::from([("run", &runs)]), Replicates::Mean, of).unwrap()
        };
        let values: Vec<f64> = judged("run@0 <= 3").iter().map(|outcome| outcome.value).collect();
        assert!(values.iter().zip([1.0, 2.0, 4.0]).all(|(value, run)| (value - run).abs() < 1e-12), "{values:?}");
        // Each run has a smaller minimum than their mean has: 7/3, not the mean of 1, 2 and 4.
        let values: Vec<f64> = judged("min(run) <= 3").iter().map(|outcome| outcome.value).collect();
        assert!((values.iter().sum::<f64>() / 3.0 - 7.0 / 3.0).abs() < 1e-12, "{values:?}");
    }

    /// The comparisons say what the paper says: they hold in its own numbers.
    #[test]
    fn the_printed_numbers_pass_the_checks_made_of_them() {
        let paper = crate::paper::Paper::load("porter-2021").unwrap();
        for claim in paper.claims.iter().filter(|claim| claim.in_print) {
            let printed: BTreeMap<&str, Series> = claim
                .bindings
                .iter()
                .filter_map(|(name, binding)| {
                    let Binding::Queue(queues::Binding::Column(id)) = binding else { return None };
                    let (table, column) = paper.column(id).unwrap();
                    Some((name.as_str(), paper.printed.series(table, &column.name)))
                })
                .collect();
            for (check, text) in claim.checks.iter().zip(&claim.check) {
                if claim.bindings.iter().any(|(name, _)| check.uses(name) && !printed.contains_key(name.as_str())) {
                    continue;
                }
                let series = printed.iter().map(|(&name, series)| (name, series)).collect();
                let outcome = check.evaluate(&Replicate { series, printed: &printed }).unwrap();
                assert!(outcome.margin >= 0.0, "{}: {text:?}: {outcome:?}", claim.id);
            }
        }
    }
}
