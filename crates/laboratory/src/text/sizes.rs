//! The verdicts in words: how much better or worse each candidate is than its baseline, and why the
//! rest is undecided.

use results::{Better, Row, Verdict, counted, quantity};
use std::collections::BTreeMap;
use std::fmt::Write;
use worlds::Measure;

/// A line for each candidate with a verdict; `rows` are those of one table.
pub fn text(candidates: &[String], rows: &[&Row], columns: &[(Measure, &'static str)]) -> String {
    let mut text = String::new();
    // Those without a word of their own share a line.
    let mut alike = [("nothing is decided", Vec::new()), ("equivalent in all", Vec::new())];
    for candidate in candidates {
        let own = || {
            rows.iter().copied().filter(|row| row.candidate == *candidate && row.verdict.is_some())
        };
        let of = |verdict: Verdict| {
            let row = |measure: &Measure| {
                own().find(|row| row.metric == measure.metric && row.verdict == Some(verdict))
            };
            let sizes = columns.iter().filter_map(|(measure, title)| {
                Some(format!("{title} {}", size(row(measure)?, measure)))
            });
            sizes.collect::<Vec<String>>()
        };
        let parts: Vec<String> = [(Verdict::Better, "better"), (Verdict::Worse, "worse")]
            .into_iter()
            .map(|(verdict, word)| (of(verdict), word))
            .filter(|(sizes, _)| !sizes.is_empty())
            .map(|(sizes, word)| format!("{word}: {}", sizes.join(", ")))
            .collect();
        if own().next().is_some() {
            let is_equivalent = own().all(|row| row.verdict == Some(Verdict::Equivalent));
            if parts.is_empty() {
                alike[usize::from(is_equivalent)].1.push(candidate.as_str());
            } else {
                let _ = writeln!(text, "{candidate}: {}", parts.join("; "));
            }
        }
    }
    for (what, candidates) in alike.iter().filter(|(_, candidates)| !candidates.is_empty()) {
        let _ = writeln!(text, "{}: {what}", candidates.join(", "));
    }
    text + &reasons(rows, columns)
}

/// `12-19 % shorter`: the interval of the difference, with its direction.
pub fn size(row: &Row, measure: &Measure) -> String {
    let as_share = row.effect.map(|effect| (effect, row.effect_low.zip(row.effect_high)));
    let in_units =
        row.difference.map(|difference| (difference, row.difference_low.zip(row.difference_high)));
    let Some((size, interval)) = as_share.or(in_units) else { return "from nothing".to_string() };
    let (low, high) = interval.unwrap_or((size, size));
    let (low, high) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
    let word = match (measure.metric.unit(), size < 0.0) {
        ("ns", true) => "shorter",
        ("ns", false) => "longer",
        ("count" | "instructions", true) => "fewer",
        ("count" | "instructions", false) => "more",
        (_, true) => "lower",
        (_, false) => "higher",
    };
    let range = if as_share.is_some() {
        range(low, high)
    } else {
        range_of(low, high, measure.metric.unit())
    };
    format!("{range} {word}")
}

/// `1.10ms-1.30ms`.
fn range_of(low: f64, high: f64, unit: &str) -> String {
    let (from, to) = (quantity(low, unit), quantity(high, unit));
    if from == to { to } else { format!("{from}-{to}") }
}

/// `12-19 %`.
fn range(low: f64, high: f64) -> String {
    let digits = |value: f64| {
        if 100.0 * value >= 10.0 {
            format!("{:.0}", 100.0 * value)
        } else {
            format!("{:.1}", 100.0 * value)
        }
    };
    let (from, to) = (digits(low), digits(high));
    if from == to { format!("{to} %") } else { format!("{from}-{to} %") }
}

/// The number of shown rows that are undecided, by reason.
fn reasons(rows: &[&Row], columns: &[(Measure, &'static str)]) -> String {
    let is_shown = |row: &&&Row| {
        columns.iter().any(|(measure, _)| {
            measure.metric == row.metric && measure.direction != Better::Neither
        })
    };
    let judged = rows.iter().filter(is_shown).filter(|row| row.verdict.is_some());
    let undecided: Vec<&&Row> =
        judged.clone().filter(|row| row.verdict == Some(Verdict::Undecided)).collect();
    if undecided.is_empty() {
        return String::new();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &undecided {
        let reason = row.reason.as_deref().unwrap_or("no known reason");
        let kind = ["within the replay's error", "not beyond chance", "the interval includes zero"];
        let other = if reason.ends_with("runs do not show it") {
            "some runs do not show it"
        } else {
            reason
        };
        *counts
            .entry(kind.into_iter().find(|kind| reason.starts_with(kind)).unwrap_or(other))
            .or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let list: Vec<String> =
        counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!(
        "Undecided: {} of {}: {}\n",
        undecided.len(),
        counted(judged.count(), "comparison"),
        list.join(", ")
    )
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
            reason: (verdict == Verdict::Undecided)
                .then(|| "within the replay's error of 6.1 %".to_string()),
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
        let columns =
            [(measure(Metric::makespan_ns), "makespan"), (measure(Metric::switches), "switches")];
        let candidates = ["base", "a", "b", "c"].map(str::to_string);
        assert_eq!(
            text(&candidates, &rows.iter().collect::<Vec<_>>(), &columns),
            "a: better: makespan 12-19 % shorter; worse: switches 4.1-6.2 % more\nb: nothing is \
             decided\nc: equivalent in all\nUndecided: 1 of 5 comparisons: 1 within the replay's \
             error\n"
        );
    }

    #[test]
    fn a_difference_without_a_share_is_shown_with_its_unit() {
        let row = Row {
            effect: None,
            difference: Some(1.2e6),
            difference_low: Some(1.1e6),
            difference_high: Some(1.3e6),
            ..row("a", Metric::wakeup_latency_ns_p99, Verdict::Worse, (0.0, 0.0, 0.0))
        };
        assert_eq!(size(&row, &measure(row.metric)), "1.10ms-1.30ms longer");
    }

    #[test]
    fn an_interval_that_rounds_to_one_number_is_shown_as_one_number() {
        assert_eq!(
            [range(0.121, 0.124), range(0.04, 0.12), range(2.0, 3.5)],
            ["12 %", "4.0-12 %", "200-350 %"]
        );
    }
}
