//! Tables for parts: shares of tasks, functions of a kernel, recorded runs.

use super::is_of;
use crate::Section;
use results::{Align, CALLBACKS, Metric, Row, SubjectKind, Table, headline, quantity, registered};
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

/// Where the instructions are: by side, the most expensive functions, and the calls of a
/// scheduler's callbacks. One table for each candidate, a column for each workload.
pub fn functions(sections: &[&Section<'_>], show: usize) -> String {
    let mut text = String::new();
    let Some(last) = sections.last().filter(|_| show > 0) else { return text };
    let metrics = [
        (
            Metric::instructions_per_yield_in_function,
            Metric::instructions_per_yield_of_side,
            " per yield",
        ),
        (Metric::instructions_in_function, Metric::instructions_of_side, ""),
    ];
    let has = |metric: Metric| last.rows.iter().any(|row| row.metric == metric);
    let Some((in_function, of_side, of_what)) =
        metrics.into_iter().find(|(in_function, ..)| has(*in_function))
    else {
        return text;
    };
    let _ = writeln!(
        text,
        "\nInstructions{of_what} by side and by function, counted in a separate boot that gave the \
         same digits:"
    );
    for trial in &last.trials {
        let (sides, functions) =
            (Parts::of(sections, of_side, trial), Parts::of(sections, in_function, trial));
        for (parts, show) in [(sides, usize::MAX), (functions, show)] {
            let mut table = parts.table(trial.candidate.to_string());
            let shown = parts.largest().into_iter().take(show);
            shown.for_each(|part| parts.row(&mut table, part));
            parts.all(&mut table);
            let _ = write!(text, "\n{table}");
        }
    }
    text + &callbacks(last)
}

/// What a scheduler's callbacks take, in the last section.
fn callbacks(section: &Section<'_>) -> String {
    let mut text = String::new();
    for trial in &section.trials {
        let of = CALLBACKS.map(|(metric, _)| Parts::of(&[section], metric, trial));
        let [calls, ..] = &of;
        let names = calls.largest();
        if names.is_empty() {
            continue;
        }
        let heads = CALLBACKS.map(|(_, head)| (head.to_string(), Align::Right));
        let first =
            (format!("callbacks of {}, instructions of a call", trial.candidate), Align::Left);
        let mut table = Table::new(std::iter::once(first).chain(heads));
        for name in names {
            let cells = of.iter().map(|part| {
                part.value(0, name).map_or(String::new(), |value| match value {
                    0.0..0.01 => format!("{value:.4}"),
                    0.01..10.0 => format!("{value:.2}"),
                    _ => format!("{value:.0}"),
                })
            });
            table.row(std::iter::once(name.to_string()).chain(cells));
        }
        let _ = write!(text, "\n{table}");
    }
    text
}

/// The values of a metric of one candidate, by subject, in each section.
struct Parts {
    columns: Vec<(String, BTreeMap<String, f64>)>,
}

impl Parts {
    fn of(sections: &[&Section<'_>], metric: Metric, trial: &Trial<'_>) -> Parts {
        let column = |section: &&Section<'_>| {
            let own = section.rows.iter().filter(|row| row.metric == metric && is_of(row, trial));
            let parts = own.filter_map(|row| Some((row.subject.clone()?, row.value?))).collect();
            Some((section.trials.first()?.program.name().to_string(), parts))
        };
        Parts { columns: sections.iter().filter_map(column).collect() }
    }

    fn value(&self, column: usize, part: &str) -> Option<f64> {
        self.columns.get(column)?.1.get(part).copied()
    }

    /// The parts by their values in the last column, the largest first.
    fn largest(&self) -> Vec<&str> {
        let mut largest: Vec<(&str, f64)> = self
            .columns
            .last()
            .into_iter()
            .flat_map(|(_, parts)| parts.iter().map(|(name, value)| (name.as_str(), *value)))
            .collect();
        largest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        largest.into_iter().map(|(name, _)| name).collect()
    }

    fn table(&self, candidate: String) -> Table {
        let names = self.columns.iter().map(|(name, _)| (name.clone(), Align::Right));
        Table::new(std::iter::once((candidate, Align::Left)).chain(names))
    }

    fn row(&self, table: &mut Table, part: &str) {
        let cells = (0..self.columns.len()).map(|column| self.value(column, part).unwrap_or(0.0));
        table
            .row(std::iter::once(part.to_string()).chain(cells.map(|value| format!("{value:.1}"))));
    }

    fn all(&self, table: &mut Table) {
        let sums = self.columns.iter().map(|(_, parts)| parts.values().sum::<f64>());
        table.row(std::iter::once("all".to_string()).chain(sums.map(|sum| format!("{sum:.1}"))));
    }
}
