//! Tables for parts: shares of tasks, functions of a kernel, recorded runs.

use super::is_of;
use crate::Section;
use results::{Align, Metric, Row, SubjectKind, Table, headline, quantity, registered};
use std::collections::BTreeMap;
use std::fmt::Write;
use worlds::Trial;

/// The candidates, each once.
fn candidates(trials: &[Trial<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in trials.iter().map(|trial| trial.candidate.to_string()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The CPU share of tasks by name: from the smallest to the largest of the tasks with that name.
pub fn shares(section: &Section<'_>) -> String {
    const NAMES: usize = 20;
    let candidates = candidates(&section.trials);
    let mut ranges: BTreeMap<&str, BTreeMap<&str, (f64, f64)>> = BTreeMap::new();
    for row in section.rows.iter().filter(|row| row.metric == Metric::cpu_share) {
        if let (Some(task), Some(share)) = (row.subject_of(SubjectKind::Task), row.value) {
            let range = ranges
                .entry(task)
                .or_default()
                .entry(&row.candidate)
                .or_insert((f64::INFINITY, 0.0));
            *range = (range.0.min(share), range.1.max(share));
        }
    }
    if ranges.is_empty() {
        return String::new();
    }
    let columns = candidates.iter().map(|candidate| (candidate.clone(), Align::Right));
    let mut table =
        Table::new(std::iter::once(("share of CPU time".to_string(), Align::Left)).chain(columns));
    for (task, shares) in ranges.iter().take(NAMES) {
        let cell = |candidate: &String| match shares.get(candidate.as_str()) {
            Some((low, high)) if high - low < 1e-4 => format!("{:.2}%", 100.0 * low),
            Some((low, high)) => format!("{:.2}…{:.2}%", 100.0 * low, 100.0 * high),
            None => "-".to_string(),
        };
        table.row(std::iter::once((*task).to_string()).chain(candidates.iter().map(cell)));
    }
    format!("\n{table}")
}

/// The metrics of extra, recorded runs.
pub fn recorded(section: &Section<'_>) -> String {
    let rows: Vec<&Row> = section.rows.iter().filter(|row| super::is_recorded(row)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let titles = headline().map(|(_, title)| (title, Align::Right));
    let mut table = Table::new(std::iter::once(("recorded once", Align::Left)).chain(titles));
    for trial in &section.trials {
        let of = |id: &str| {
            rows.iter()
                .find(|row| row.metric == registered(id) && is_of(row, trial))
                .and_then(|row| row.value)
        };
        if rows.iter().any(|row| is_of(row, trial)) {
            let cells = headline().map(|(metric, _)| {
                of(metric.id()).map_or("-".to_string(), |value| quantity(value, metric.unit()))
            });
            table.row(std::iter::once(trial.candidate.to_string()).chain(cells));
        }
    }
    format!(
        "\n{table}Only the workload's own tasks; from their creation on, not from the release, and \
         with what perf costs.\n"
    )
}

/// The growth of the cost of a yield, one line for each candidate.
pub fn fits(sections: &[&Section<'_>]) -> String {
    let mut text = String::new();
    let rows = || sections.iter().flat_map(|section| &section.rows);
    for base in rows().filter(|row| row.metric == Metric::instructions_per_yield_base) {
        let slope = rows().find(|row| {
            row.metric == Metric::instructions_per_yield_per_doubling
                && row.candidate == base.candidate
        });
        if let (Some(base_value), Some(slope)) = (base.value, slope.and_then(|row| row.value)) {
            let _ = writeln!(text, "{}: {base_value:.0} + {slope:.1} * log2 N", base.candidate);
        }
    }
    text
}

/// The most expensive functions, one line each, with a column for each workload; one table for each
/// candidate.
pub fn functions(sections: &[&Section<'_>], show: usize) -> String {
    let mut text = String::new();
    let Some(last) = sections.last().filter(|_| show > 0) else { return text };
    let metrics = [Metric::instructions_per_yield_in_function, Metric::instructions_in_function];
    let has = |metric: &Metric| last.rows.iter().any(|row| row.metric == *metric);
    let Some(metric) = metrics.into_iter().find(has) else { return text };
    let of_what = if metric == metrics[0] { " per yield" } else { "" };
    let _ = writeln!(
        text,
        "\nInstructions{of_what} by function, counted in a separate boot that gave the same digits:"
    );
    for trial in &last.trials {
        let of = |section: &Section<'_>| -> BTreeMap<String, f64> {
            let own = section.rows.iter().filter(|row| row.metric == metric && is_of(row, trial));
            own.filter_map(|row| Some((row.subject.clone()?, row.value?))).collect()
        };
        let split: Vec<BTreeMap<String, f64>> =
            sections.iter().map(|section| of(section)).collect();
        let names = sections
            .iter()
            .filter_map(|section| Some((section.trials.first()?.program.name(), Align::Right)));
        let mut table =
            Table::new(std::iter::once((trial.candidate.to_string(), Align::Left)).chain(names));
        let mut largest: Vec<(&String, f64)> =
            split.last().into_iter().flatten().map(|(name, value)| (name, *value)).collect();
        largest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        for (function, _) in largest.into_iter().take(show) {
            let cells =
                split.iter().map(|of| format!("{:.1}", of.get(function).copied().unwrap_or(0.0)));
            table.row(std::iter::once(function.clone()).chain(cells));
        }
        let all = split.iter().map(|of| format!("{:.1}", of.values().sum::<f64>()));
        table.row(std::iter::once("all functions".to_string()).chain(all));
        let _ = write!(text, "\n{table}");
    }
    text
}
