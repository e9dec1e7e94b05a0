//! The tables and verdicts of a paper as text.

use super::Paper;
use program::terminal::wrapped;
use results::{Align, Row, Table, Verdict, counted};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The printed tables beside ours, then the verdicts; uses the rows of this paper.
pub fn render(paper: &Paper, rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.text("paper") == paper.name).collect();
    let mut out = format!("{}\n\n", paper.name);
    for table in &paper.experiments.table {
        let rows: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| row.verdict.is_none() && row.text("claim") == table.claim_id())
            .collect();
        if rows.is_empty() {
            continue;
        }
        let heading = table.column.iter().flat_map(|column| {
            [(column.name.clone(), Align::Right), ("ours".to_string(), Align::Right)]
        });
        let mut text = Table::new(std::iter::once((String::new(), Align::Left)).chain(heading));
        let mut labels: Vec<&str> = Vec::new();
        for row in &rows {
            if !labels.contains(&row.text("row")) {
                labels.push(row.text("row"));
            }
        }
        for label in labels {
            let cells = table.column.iter().flat_map(|column| {
                let row = rows
                    .iter()
                    .find(|row| row.text("row") == label && row.text("column") == column.name);
                [
                    row.map_or(String::new(), |row| row.text("expected").to_string()),
                    row.map_or(String::new(), |row| number(row)),
                ]
            });
            text.row(std::iter::once(label.to_string()).chain(cells));
        }
        let _ = writeln!(out, "{} {}\n{text}", table.claim_id(), table.title);
    }
    out + &claims(&rows)
}

/// The width of a column of words.
const WORDS: usize = 44;

/// A line for every verdict, with the reason if the claim does not hold.
fn claims(rows: &[&Row]) -> String {
    let verdicts: Vec<&Row> = rows.iter().copied().filter(|row| row.verdict.is_some()).collect();
    if verdicts.is_empty() {
        return String::new();
    }
    let has = |key: &str| verdicts.iter().any(|row| !row.text(key).is_empty());
    let (regimes, in_print) = (has("regime"), has("in_print"));
    let mut columns = vec![("claim", Align::Left), ("says", Align::Left), ("check", Align::Left)];
    columns.extend(in_print.then_some(("in print", Align::Left)));
    columns.extend(regimes.then_some(("regime", Align::Left)));
    columns.extend([
        ("measured", Align::Right),
        ("verdict", Align::Left),
        ("because", Align::Left),
    ]);
    let mut table = Table::new(columns);
    let mut before = "";
    for row in &verdicts {
        // The statement of a claim is shown once.
        let says = if row.text("claim") == before { String::new() } else { wrap(row.text("says")) };
        before = row.text("claim");
        let because = if row.verdict == Some(Verdict::Holds) {
            String::new()
        } else {
            wrap(row.note.as_deref().unwrap_or_default())
        };
        let mut cells = vec![row.text("claim").to_string(), says, wrap(row.text("check"))];
        cells.extend(in_print.then(|| row.text("in_print").to_string()));
        cells.extend(regimes.then(|| row.text("regime").to_string()));
        cells.extend([number(row), row.verdict.map_or("", Verdict::word).to_string(), because]);
        table.row(cells);
    }
    let mut out = format!("{table}\n");
    let counts = Verdict::OF_CLAIMS.map(|verdict| {
        format!("{} {verdict}", verdicts.iter().filter(|row| row.verdict == Some(verdict)).count())
    });
    let claims: BTreeSet<&str> = verdicts.iter().map(|row| row.text("claim")).collect();
    let _ = writeln!(
        out,
        "{}, {}: {}",
        counted(claims.len(), "claim"),
        counted(verdicts.len(), "check"),
        counts.join(", ")
    );
    out
}

fn wrap(text: &str) -> String {
    wrapped(text, WORDS).join("\n")
}

fn number(row: &Row) -> String {
    let digits = |value: f64| if value.abs() < 10.0 { 4 } else { 1 };
    match (row.value, row.ci_high) {
        (None, _) => "-".to_string(),
        (Some(value), Some(high)) if high > value => {
            format!("{value:.0$} ±{1:.0$}", digits(value), high - value)
        }
        (Some(value), _) => format!("{value:.0$}", digits(value)),
    }
}
