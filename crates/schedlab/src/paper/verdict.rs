//! Verdicts: every comparison of a claim, put to our numbers and to the printed ones.

use super::claim::Claim;
use super::expression::{Check, Names, Outcome};
use super::queues::{Binding, Curves, Measured};
use super::series::Series;
use crate::output::Row;
use crate::statistics::Estimate;
use std::collections::BTreeMap;

/// The series of a claim under one assignment.
struct Assignment<'a> {
    series: BTreeMap<&'a str, &'a Series>,
    printed: &'a BTreeMap<&'a str, Series>,
}

impl Names for Assignment<'_> {
    fn series(&self, name: &str) -> Option<&Series> {
        self.series.get(name).copied()
    }

    fn printed(&self, name: &str) -> Option<&Series> {
        self.printed.get(name)
    }
}

/// A row per check, and the verdicts that contradict those on record.
pub fn judge(claim: &Claim, measured: &Measured) -> (Vec<Row>, Vec<String>) {
    let row = |part: usize, expected: &str| {
        let queues: Vec<String> = claim.bindings.values().filter_map(|binding| measured.queue(binding)).collect();
        let mut row = measured.row(&claim.id, &distinct(queues).join(" | "), "check");
        row.unit = "1".to_string();
        let params = [("part", part.to_string()), ("expected", expected.to_string()), ("says", claim.says.clone())];
        row.params.extend(params.into_iter().map(|(key, value)| (key.to_string(), value)));
        row
    };
    if let Some(why) = &claim.skipped {
        let skipped = Row { verdict: Some("skipped".to_string()), note: Some(why.clone()), ..row(1, "") };
        return (vec![skipped], Vec::new());
    }
    let curves: BTreeMap<&str, Curves> = claim.bindings.iter().map(|(name, binding)| (name.as_str(), measured.binding(binding))).collect();
    let printed: BTreeMap<&str, Series> =
        claim.bindings.iter().filter_map(|(name, binding)| Some((name.as_str(), measured.printed(binding)?))).collect();
    let (mut rows, mut surprises) = (Vec::new(), Vec::new());
    for (index, check) in claim.checks.iter().enumerate() {
        let part = index + 1;
        let mut row = row(part, &claim.check[index]);
        let outcomes = evaluate(check, &curves, &printed);
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
        if claim.in_print {
            row.params.insert("in_print".to_string(), in_print(check, &curves, &printed));
        }
        let known = claim.known.get(&part.to_string());
        let why = outcomes.err().or_else(|| known.map(|known| known.because.clone()));
        row.note = why.or_else(|| claim.note.clone());
        let on_record = known.map_or("reproduced", |known| known.verdict.as_str());
        if [verdict, on_record].iter().all(|word| ["reproduced", "not-reproduced"].contains(word)) && verdict != on_record {
            surprises.push(format!("{} ({part}) is {verdict}, on record as {on_record}: {}", claim.id, claim.check[index]));
        }
        row.verdict = Some(verdict.to_string());
        rows.push(row);
    }
    (rows, surprises)
}

fn evaluate(check: &Check, curves: &BTreeMap<&str, Curves>, printed: &BTreeMap<&str, Series>) -> Result<Vec<Outcome>, String> {
    let mut usable: BTreeMap<&str, &Vec<Series>> = BTreeMap::new();
    for (name, curves) in curves {
        match curves {
            Ok(curves) => usable.insert(name, curves),
            // A series that this check does not use may well be missing.
            Err(why) if check.uses(name) => return Err(why.clone()),
            Err(_) => None,
        };
    }
    usable.retain(|name, _| check.uses(name));
    let assignments = usable.values().map(|curves| curves.len()).max().unwrap_or(1);
    let one = |assignment: usize| {
        let series = usable.iter().map(|(&name, curves)| (name, &curves[assignment.min(curves.len() - 1)])).collect();
        check.evaluate(&Assignment { series, printed })
    };
    (0..assignments).map(one).collect()
}

/// Whether the printed numbers pass, with the value.
fn in_print(check: &Check, curves: &BTreeMap<&str, Curves>, printed: &BTreeMap<&str, Series>) -> String {
    let mut series: BTreeMap<&str, &Series> =
        curves.iter().filter_map(|(&name, curves)| Some((name, curves.as_ref().ok()?.first()?))).collect();
    series.extend(printed.iter().map(|(&name, printed)| (name, printed)));
    match check.evaluate(&Assignment { series, printed }) {
        Ok(outcome) => format!("{} ({:.4})", if outcome.margin >= 0.0 { "holds" } else { "fails" }, outcome.value),
        Err(why) => why,
    }
}

/// Reproduced if the whole interval of the margin is on the right side, not if it is on the wrong one.
fn word(outcomes: &Result<Vec<Outcome>, String>) -> &'static str {
    let Ok(outcomes) = outcomes else { return "skipped" };
    let margins: Vec<f64> = outcomes.iter().map(|outcome| outcome.margin).collect();
    let (low, high) = match Estimate::of(&margins) {
        Some(Estimate { mean, half_width }) if mean.is_finite() => (mean - half_width.unwrap_or(0.0), mean + half_width.unwrap_or(0.0)),
        // A crossover that never comes: only the signs can be told.
        _ => margins.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &margin| (low.min(margin), high.max(margin))),
    };
    match (low >= 0.0, high < 0.0) {
        (true, _) => "reproduced",
        (_, true) => "not-reproduced",
        _ => "inconclusive",
    }
}

fn distinct(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

impl Measured<'_> {
    /// The structure that a binding measures.
    fn queue(&self, binding: &Binding) -> Option<String> {
        match binding {
            Binding::Column(column) | Binding::Measure { column, .. } => Some(self.paper.column(column).ok()?.1.queue().to_string()),
            Binding::Load { load, .. } => Some(load.queue.clone()),
        }
    }

    /// The printed numbers of a binding.
    fn printed(&self, binding: &Binding) -> Option<Series> {
        let Binding::Column(id) = binding else { return None };
        let (table, column) = self.paper.column(id).ok()?;
        Some(self.paper.printed.series(table, &column.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(margins: &[f64]) -> Result<Vec<Outcome>, String> {
        Ok(margins.iter().map(|&margin| Outcome { value: 1.0, margin }).collect())
    }

    #[test]
    fn an_interval_on_both_sides_decides_nothing() {
        assert_eq!(word(&outcomes(&[1.0, 1.1, 0.9])), "reproduced");
        assert_eq!(word(&outcomes(&[-1.0, -1.1, -0.9])), "not-reproduced");
        assert_eq!(word(&outcomes(&[1.0, -1.0, 0.1])), "inconclusive");
        assert_eq!(word(&outcomes(&[f64::INFINITY, 20.0])), "reproduced");
        assert_eq!(word(&outcomes(&[f64::NEG_INFINITY, 20.0])), "inconclusive");
        assert_eq!(word(&outcomes(&[0.0])), "reproduced");
        assert_eq!(word(&Err("no valgrind".into())), "skipped");
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
                    let Binding::Column(id) = binding else { return None };
                    let (table, column) = paper.column(id).unwrap();
                    Some((name.as_str(), paper.printed.series(table, &column.name)))
                })
                .collect();
            for (check, text) in claim.checks.iter().zip(&claim.check) {
                if claim.bindings.iter().any(|(name, _)| check.uses(name) && !printed.contains_key(name.as_str())) {
                    continue;
                }
                let series = printed.iter().map(|(&name, series)| (name, series)).collect();
                let outcome = check.evaluate(&Assignment { series, printed: &printed }).unwrap();
                assert!(outcome.margin >= 0.0, "{}: {text:?}: {outcome:?}", claim.id);
            }
        }
    }
}
