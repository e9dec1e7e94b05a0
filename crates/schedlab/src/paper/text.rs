//! A paper's tables and verdicts for people.

use super::Paper;
use super::claim::VERDICTS;
use crate::output::{Align, Row, Table};
use std::fmt::Write;

/// Tables with his numbers beside ours, then the verdicts.
pub fn render(paper: &Paper, rows: &[Row]) -> String {
    let mut out = String::new();
    for table in &paper.experiments.table {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.verdict.is_none() && param(row, "claim") == table.claim_id()).collect();
        if rows.is_empty() {
            continue;
        }
        let heading = table.column.iter().flat_map(|column| [(column.name.clone(), Align::Right), ("ours".to_string(), Align::Right)]);
        let mut text = Table::new(std::iter::once((String::new(), Align::Left)).chain(heading));
        let mut labels: Vec<&str> = Vec::new();
        for row in &rows {
            if !labels.contains(&param(row, "row")) {
                labels.push(param(row, "row"));
            }
        }
        for label in labels {
            let cells = table.column.iter().flat_map(|column| {
                let row = rows.iter().find(|row| param(row, "row") == label && param(row, "column") == column.name);
                [row.map_or(String::new(), |row| param(row, "expected").to_string()), row.map_or(String::new(), |row| number(row))]
            });
            text.row(std::iter::once(label.to_string()).chain(cells));
        }
        let _ = writeln!(out, "{} {}\n{text}", table.claim_id(), table.title);
    }
    let verdicts: Vec<&Row> = rows.iter().filter(|row| row.verdict.is_some()).collect();
    let columns =
        [("claim", Align::Left), ("check", Align::Left), ("in print", Align::Left), ("ours", Align::Right), ("verdict", Align::Left)];
    let mut table = Table::new(columns);
    for row in &verdicts {
        let check = match param(row, "expected") {
            "" => param(row, "says"),
            expected => expected,
        };
        table.row([param(row, "claim"), check, param(row, "in_print"), &number(row), row.verdict.as_deref().unwrap_or_default()]);
    }
    if !verdicts.is_empty() {
        let _ = writeln!(out, "{table}");
    }
    for row in verdicts.iter().filter(|row| row.verdict.as_deref() != Some("reproduced")) {
        if let Some(note) = &row.note {
            let _ =
                writeln!(out, "{} ({}) {}: {note}", param(row, "claim"), param(row, "part"), row.verdict.as_deref().unwrap_or_default());
        }
    }
    for word in VERDICTS {
        let _ = write!(out, "{} {word}  ", verdicts.iter().filter(|row| row.verdict.as_deref() == Some(word)).count());
    }
    out.push('\n');
    out
}

fn param<'a>(row: &'a Row, key: &str) -> &'a str {
    row.params.get(key).map_or("", String::as_str)
}

fn number(row: &Row) -> String {
    let digits = |value: f64| if value.abs() < 10.0 { 4 } else { 1 };
    match (row.value, row.ci_high) {
        (None, _) => "-".to_string(),
        (Some(value), Some(high)) if high > value => format!("{value:.0$} ±{1:.0$}", digits(value), high - value),
        (Some(value), _) => format!("{value:.0$}", digits(value)),
    }
}
