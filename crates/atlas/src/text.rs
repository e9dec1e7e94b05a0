//! The tables of the atlas as text.

use super::{crossover, structure};
use results::{Align, Coordinate, Metric, Row, Table};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The metrics with a separate table, and its heading.
const TABLES: [(&[Metric], &str); 8] = [
    (
        &[
            Metric::elements_walked_per_op,
            Metric::entries_examined_per_op,
            Metric::tree_levels_per_op,
        ],
        "list elements, schedule entries or tree levels examined per operation",
    ),
    (&[Metric::instructions_per_op], "instructions per operation, without the loop"),
    (&[Metric::instructions_per_op_gross], "instructions per operation, with the loop"),
    (&[Metric::data_accesses_per_op], "data accesses per operation"),
    (&[Metric::d1_misses_per_op], "misses of the first-level data cache per operation"),
    (&[Metric::i1_misses_per_op], "misses of the first-level instruction cache per operation"),
    (&[Metric::ll_misses_per_op], "misses of the last-level cache per operation"),
    (&[Metric::time_ns_per_op], "nanoseconds per operation, with the loop"),
];

/// All tables, and what follows from them.
pub fn render(rows: &[Row]) -> String {
    tables(rows) + &conclusion(rows)
}

/// The tables of `rows`. Those of [`Plan`](super::measure::Plan)'s steps, instructions, times and
/// threads one after the other are those of all rows. So each can be shown when it is measured.
pub fn tables(all: &[Row]) -> String {
    let mut out = String::new();
    for (index, (metrics, heading)) in TABLES.into_iter().enumerate() {
        let rows: Vec<&Row> = all.iter().filter(|row| metrics.contains(&row.metric)).collect();
        let builds: BTreeSet<Option<&Coordinate>> =
            rows.iter().map(|row| row.point.get("build")).collect();
        for build in builds {
            let rows: Vec<&Row> =
                rows.iter().copied().filter(|row| row.point.get("build") == build).collect();
            if rows.iter().any(|row| row.value.is_some()) {
                let build = build.map_or(String::new(), |build| format!(", build {build}"));
                let _ = writeln!(out, "{heading}{build}\n{}", by_tasks(&rows));
            }
        }
        if index == 0 {
            out += &waits(all);
        }
    }
    let threads: Vec<&Row> =
        all.iter().filter(|row| row.metric == Metric::thread_instructions_per_slice).collect();
    if let Some(last) = threads.last().map(|row| row.workload.clone()) {
        let threads: Vec<&Row> = threads.into_iter().filter(|row| row.workload == last).collect();
        let table = grid(&threads, |row| coordinate(row, "part"));
        let _ = writeln!(out, "instructions per slice of real user-level threads, {last}\n{table}");
    }
    out
}

/// The table of longest waits, with the most tasks.
fn waits(rows: &[Row]) -> String {
    let waits: Vec<&Row> =
        rows.iter().filter(|row| row.metric == Metric::longest_wait_slices).collect();
    let Some(last) = waits.last().map(|row| row.workload.clone()) else { return String::new() };
    let waits: Vec<&Row> = waits.into_iter().filter(|row| row.workload == last).collect();
    format!(
        "longest wait between two slices of a task by level, in slices, {last}\n{}\n",
        by_level(&waits)
    )
}

/// Why numbers are missing, crossovers, and which structure to use.
pub fn conclusion(rows: &[Row]) -> String {
    let mut out = String::new();
    let is_shown = |metric: &Metric| {
        *metric == Metric::thread_instructions_per_slice
            || TABLES.iter().any(|(metrics, _)| metrics.contains(metric))
    };
    let missing = rows.iter().filter(|row| row.value.is_none() && is_shown(&row.metric));
    let mut notes: BTreeSet<String> = missing.filter_map(|row| row.note.clone()).collect();
    notes.remove("not counted in published crates");
    for note in notes {
        let _ = writeln!(out, "note: {note}");
    }
    for row in rows.iter().filter(|row| row.metric == Metric::crossover_tasks) {
        let at = match (row.value, crossover::unmeasured(row)) {
            (Some(_), _) => format!("{} tasks", estimate(row)),
            (None, Some(_)) => "not measured".to_string(),
            (None, None) => "none".to_string(),
        };
        let _ = writeln!(
            out,
            "crossover {}: {at}; {}",
            row.candidate,
            row.note.as_deref().unwrap_or_default()
        );
    }
    let mut heading = "\nWhich to use:\n";
    for row in rows.iter().filter(|row| {
        [Metric::cheapest_instructions_per_op, Metric::cheapest_time_ns_per_op]
            .contains(&row.metric)
    }) {
        let _ = writeln!(
            out,
            "{heading}  {} {}",
            row.workload,
            row.note.as_deref().unwrap_or_default()
        );
        heading = "";
    }
    out
}

/// Structures as lines, numbers of tasks as columns.
fn by_tasks(rows: &[&Row]) -> Table {
    grid(rows, |row| row.workload.replace("yield:", "N="))
}

/// Structures as lines, levels as columns.
fn by_level(rows: &[&Row]) -> Table {
    grid(rows, |row| coordinate(row, "level"))
}

fn coordinate(row: &Row, name: &str) -> String {
    row.coordinate(name).map_or(String::new(), |value| value.to_string())
}

fn grid(rows: &[&Row], column: impl Fn(&Row) -> String) -> Table {
    let (mut columns, mut names) = (Vec::new(), Vec::new());
    for row in rows {
        if !columns.contains(&column(row)) {
            columns.push(column(row));
        }
        if !names.contains(&row.candidate) {
            names.push(row.candidate.clone());
        }
    }
    if columns.iter().all(|name| name.len() == 1) {
        columns.sort();
    }
    let heading = std::iter::once(("queue".to_string(), Align::Left))
        .chain(columns.iter().map(|name| (name.clone(), Align::Right)));
    let mut table = Table::new(heading.chain([(String::new(), Align::Left)]));
    for name in names {
        let cell = |wanted: &String| {
            let row = rows.iter().find(|row| row.candidate == name && column(row) == *wanted);
            row.map_or(String::new(), |row| estimate(row))
        };
        let what = structure::find(&name).map_or("", |found| found.what).to_string();
        let cells: Vec<String> = columns.iter().map(cell).collect();
        if cells.iter().any(|cell| cell != "-") {
            table.row(std::iter::once(name.clone()).chain(cells).chain([what]));
        }
    }
    table
}

/// The value with half the width of its interval.
fn estimate(row: &Row) -> String {
    match (row.value, row.ci_high) {
        (None, _) => "-".to_string(),
        (Some(value), Some(high)) if high - value >= 0.05 => {
            format!("{value:.1} ±{:.1}", high - value)
        }
        (Some(value), _) => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Results;
    use std::fs;

    const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/queue-atlas.json");
    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/queue-atlas.md");

    /// `schedlab queue --record docs/queue-atlas.json` prints the tables of the document.
    #[test]
    fn the_tables_of_the_document_are_those_of_the_record() {
        let record = Results::from_json(&fs::read_to_string(RECORD).unwrap()).unwrap();
        let tables = |rows: &[Row]| format!("{}\nReproduce: {}\n", render(rows), record.command);
        let document = fs::read_to_string(DOCUMENT).unwrap();
        let (before, rest) = document.split_once("```text\n").unwrap();
        let (shown, after) = rest.split_once("```\n").unwrap();
        let current = tables(&record.rows);
        if std::env::var_os("UPDATE_ATLAS").is_some() {
            fs::write(DOCUMENT, format!("{before}```text\n{current}```\n{after}")).unwrap();
        } else {
            assert!(
                shown == current,
                "docs/queue-atlas.md is out of date: UPDATE_ATLAS=1 cargo test -p schedlab-atlas \
                 record"
            );
        }
        let mut changed = record.rows.clone();
        let cost =
            changed.iter_mut().find(|row| row.metric == Metric::instructions_per_op).unwrap();
        cost.value = cost.value.map(|value| value + 0.1);
        assert_ne!(tables(&changed), current, "a changed digit is detected");
    }
}
