//! What was decided, in words: by how much each candidate is better and worse than its baseline, and why the rest is undecided.

use crate::output::counted;
use crate::world::Measure;
use results::{Direction, Row, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A line for each candidate of which anything was decided; `rows` are those of one table.
pub fn text(candidates: &[String], rows: &[&Row], columns: &[(Measure, &'static str)]) -> String {
    let mut text = String::new();
    for candidate in candidates {
        let own = || rows.iter().copied().filter(|row| row.candidate == *candidate && row.verdict.is_some());
        let of = |verdict: Verdict| {
            let row = |measure: &Measure| own().find(|row| row.metric == measure.metric && row.verdict == Some(verdict));
            let sizes = columns.iter().filter_map(|(measure, title)| Some(format!("{title} {}", size(row(measure)?, measure))));
            sizes.collect::<Vec<String>>()
        };
        let parts: Vec<String> = [(Verdict::Better, "better"), (Verdict::Worse, "worse")]
            .into_iter()
            .map(|(verdict, word)| (of(verdict), word))
            .filter(|(sizes, _)| !sizes.is_empty())
            .map(|(sizes, word)| format!("{word}: {}", sizes.join(", ")))
            .collect();
        if own().next().is_some() {
            let nothing =
                if own().all(|row| row.verdict == Some(Verdict::Equivalent)) { "equivalent in all" } else { "nothing is decided" };
            let _ = writeln!(text, "{candidate}: {}", if parts.is_empty() { nothing.to_string() } else { parts.join("; ") });
        }
    }
    text + &reasons(rows, columns)
}

/// `12-19 % shorter`: the interval of the difference, and what it is a difference of.
pub fn size(row: &Row, measure: &Measure) -> String {
    let Some(effect) = row.effect else { return "from nothing".to_string() };
    let (low, high) = row.effect_low.zip(row.effect_high).unwrap_or((effect, effect));
    let (low, high) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let word = match (measure.metric.unit(), effect < 0.0) {
        ("ns", true) => "shorter",
        ("ns", false) => "longer",
        ("count" | "instructions", true) => "fewer",
        ("count" | "instructions", false) => "more",
        (_, true) => "lower",
        (_, false) => "higher",
    };
    format!("{} {word}", range(low, high))
}

/// `12-19 %`.
fn range(low: f64, high: f64) -> String {
    let digits = |value: f64| if 100.0 * value >= 10.0 { format!("{:.0}", 100.0 * value) } else { format!("{:.1}", 100.0 * value) };
    let (from, to) = (digits(low), digits(high));
    if from == to { format!("{to} %") } else { format!("{from}-{to} %") }
}

/// How many of the rows that are shown are undecided, by reason.
fn reasons(rows: &[&Row], columns: &[(Measure, &'static str)]) -> String {
    let is_shown = |row: &&&Row| columns.iter().any(|(measure, _)| measure.metric == row.metric && measure.direction != Direction::Neither);
    let judged = rows.iter().filter(is_shown).filter(|row| row.verdict.is_some());
    let undecided: Vec<&&Row> = judged.clone().filter(|row| row.verdict == Some(Verdict::Undecided)).collect();
    if undecided.is_empty() {
        return String::new();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &undecided {
        let reason = row.reason.as_deref().unwrap_or("for no reason that is known");
        let kind = ["within the replay's error", "not beyond chance", "the interval holds zero"];
        let other = if reason.ends_with("runs do not show it") { "some runs do not show it" } else { reason };
        *counts.entry(kind.into_iter().find(|kind| reason.starts_with(kind)).unwrap_or(other)).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let list: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!("Undecided: {} of {}: {}\n", undecided.len(), counted(judged.count(), "comparison"), list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Metric, World};

    fn measure(metric: Metric) -> Measure {
        Measure { metric, direction: metric.description().direction, title: None, missing: None }
    }

    fn row(candidate: &str, metric: Metric, verdict: Verdict, effect: (f64, f64, f64)) -> Row {
        let (low, size, high) = effect;
        Row {
            candidate: candidate.to_string(),
            verdict: Some(verdict),
            effect: Some(size),
            effect_low: Some(low),
            effect_high: Some(high),
            reason: (verdict == Verdict::Undecided).then(|| "within the replay's error of 6.1 %".to_string()),
            ..Row::new(World::Sim, metric)
        }
    }

    #[test]
    fn a_verdict_comes_with_its_size() {
        let rows = [
            row("a", Metric::makespan_ns, Verdict::Better, (-0.19, -0.15, -0.12)),
            row("a", Metric::switches, Verdict::Worse, (0.041, 0.05, 0.062)),
            row("b", Metric::makespan_ns, Verdict::Undecided, (-0.01, 0.01, 0.03)),
            row("b", Metric::switches, Verdict::Equivalent, (0.0, 0.001, 0.002)),
            row("c", Metric::makespan_ns, Verdict::Equivalent, (0.0, 0.0, 0.0)),
        ];
        let columns = [(measure(Metric::makespan_ns), "makespan"), (measure(Metric::switches), "switches")];
        let candidates = ["base", "a", "b", "c"].map(str::to_string);
        assert_eq!(
            text(&candidates, &rows.iter().collect::<Vec<_>>(), &columns),
            "a: better: makespan 12-19 % shorter; worse: switches 4.1-6.2 % more\nb: nothing is decided\nc: equivalent in all\n\
             Undecided: 1 of 5 comparisons: 1 within the replay's error\n"
        );
    }

    #[test]
    fn an_interval_that_rounds_to_one_number_is_one() {
        assert_eq!([range(0.121, 0.124), range(0.04, 0.12), range(2.0, 3.5)], ["12 %", "4.0-12 %", "200-350 %"]);
    }
}
