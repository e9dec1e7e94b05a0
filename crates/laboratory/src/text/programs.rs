//! Gains and losses by program: a table of programs, tasks or classes of demand for each candidate,
//! compared with the baseline.

use crate::Section;
use results::{Align, Metric, Row, SubjectKind, Table, Verdict, counted, open_cell, quantity};
use std::collections::BTreeMap;
use std::fmt::Write;
use worlds::By;

/// The largest number of subjects shown: those with the most CPU time.
const SHOWN: usize = 12;

/// The metrics of programs and tasks, in this order, with their titles.
pub const OF_TASKS: [(Metric, &str); 8] = [
    (Metric::cpu_share, "CPU share"),
    (Metric::cpu_time_ns, "CPU time"),
    (Metric::run_delay_ns, "run delay"),
    (Metric::wakeup_latency_ns_p50, "wake p50"),
    (Metric::wakeup_latency_ns_p99, "wake p99"),
    (Metric::wakeup_latency_ns_max, "wake max"),
    (Metric::activation_ns_mean, "response"),
    (Metric::migrations, "migr."),
];

/// The metrics of classes of demand, with their titles.
pub const OF_DEMANDS: [(Metric, &str); 3] = [
    (Metric::slowdown_p50, "slowd. p50"),
    (Metric::slowdown_p95, "slowd. p95"),
    (Metric::slowdown_p99, "slowd. p99"),
];

/// The tables of a section; `recorded` are the rows of the replayed recording. With a program of
/// interest, the tables show it alone.
pub fn text(section: &Section<'_>, recorded: &[Row], by: By, focus: Option<&str>) -> String {
    let (kind, columns): (SubjectKind, &[(Metric, &str)]) = match by {
        By::Comm => (SubjectKind::Program, &OF_TASKS),
        By::Task => (SubjectKind::Task, &OF_TASKS),
        By::Demand => (SubjectKind::Class, &OF_DEMANDS),
    };
    let own: Vec<&Row> =
        recorded.iter().chain(&section.rows).filter(|row| row.subject_kind == Some(kind)).collect();
    if own.is_empty() {
        let why = "these runs have no recorded events, or their tasks are drawn and have no names";
        return format!(
            "\nNo numbers by {kind}: {why}. In a guest give one CPU, on this machine --traced; of \
             drawn tasks --by demand.\n"
        );
    }
    let mut text = String::new();
    let mut counts: Vec<u16> = own.iter().map(|row| row.cpus).collect();
    counts.sort_unstable();
    counts.dedup();
    for cpus in counts {
        let rows: Vec<&Row> = own.iter().copied().filter(|row| row.cpus == cpus).collect();
        let _ = writeln!(text, "\nBy {kind}, {}:\n", counted(cpus.into(), "CPU"));
        text += &table(&rows, kind, columns, focus);
        text += &gains(&rows, by);
    }
    text
}

/// One line for each candidate, for each subject.
fn table(
    rows: &[&Row],
    kind: SubjectKind,
    columns: &[(Metric, &str)],
    focus: Option<&str>,
) -> String {
    let titles = columns.iter().map(|(_, title)| (*title, Align::Right));
    let mut table =
        Table::new([(kind.word(), Align::Left), ("policy", Align::Left)].into_iter().chain(titles));
    let (names, left_out) = subjects(rows, kind, focus);
    for name in names {
        let of_subject: Vec<&Row> =
            rows.iter().copied().filter(|row| row.subject.as_deref() == Some(name)).collect();
        let mut shown = name;
        for candidate in candidates(&of_subject) {
            let cell = |metric: Metric| {
                let row = of_subject
                    .iter()
                    .find(|row| row.metric == metric && row.candidate == candidate);
                row.map_or("- ".to_string(), |row| cell(row))
            };
            let start = [std::mem::take(&mut shown).to_string(), candidate.to_string()];
            table.row(start.into_iter().chain(columns.iter().map(|(metric, _)| cell(*metric))));
        }
    }
    let more = if left_out > 0 {
        let which = if focus.is_some() { "" } else { " with less CPU time" };
        let are = if left_out == 1 { "is" } else { "are" };
        format!("{left_out} more{which} {are} in JSON and CSV.\n")
    } else {
        String::new()
    };
    format!("{table}{more}")
}

fn cell(row: &Row) -> String {
    match (row.metric, row.value) {
        (Metric::cpu_share, Some(share)) => format!("{:.1}%", 100.0 * share),
        (Metric::slowdown_p50 | Metric::slowdown_p95 | Metric::slowdown_p99, Some(value)) => {
            quantity(value, "1")
        }
        _ => open_cell(row),
    }
}

/// The subjects to show, those with the most CPU time first, and the number left out. Classes of
/// demand keep their order. The program of interest is shown alone, where it is one of them.
fn subjects<'r>(rows: &[&'r Row], kind: SubjectKind, focus: Option<&str>) -> (Vec<&'r str>, usize) {
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let Some(name) = row.subject.as_deref() else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
        if row.metric == Metric::cpu_time_ns {
            let time = times.entry(name).or_default();
            *time = time.max(row.value.unwrap_or(0.0));
        }
    }
    if kind != SubjectKind::Class {
        let time = |name: &&str| times.get(*name).copied().unwrap_or(0.0);
        names.sort_by(|a, b| time(b).total_cmp(&time(a)).then(a.cmp(b)));
    }
    if let Some(at) = names.iter().position(|name| focus == Some(name)) {
        names.swap(0, at);
        let left_out = names.len() - 1;
        names.truncate(1);
        return (names, left_out);
    }
    let left_out = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    (names, left_out)
}

fn candidates<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.candidate.as_str()) {
            names.push(&row.candidate);
        }
    }
    names
}

/// The programs that gain and lose under each candidate, by the length of their activations;
/// classes of demand by their median slowdown.
fn gains(rows: &[&Row], by: By) -> String {
    let metric = if by == By::Demand { Metric::slowdown_p50 } else { Metric::activation_ns_mean };
    let mut text = String::new();
    for candidate in candidates(rows) {
        let decided = |verdict: Verdict| {
            let is_so = |row: &&&Row| {
                row.metric == metric && row.candidate == candidate && row.verdict == Some(verdict)
            };
            rows.iter().filter(is_so).filter_map(|row| row.subject.as_deref()).collect::<Vec<_>>()
        };
        let (gain, pay) = (decided(Verdict::Better), decided(Verdict::Worse));
        if !gain.is_empty() || !pay.is_empty() {
            let _ = writeln!(
                text,
                "{candidate}: {}; {}.",
                listed(&gain, "gains", "gain"),
                listed(&pay, "pays", "pay")
            );
        }
    }
    text
}

fn listed(names: &[&str], one: &str, several: &str) -> String {
    const NAMES: usize = 5;
    let shown = names.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => format!("none {one}"),
        1 => format!("{shown} {one}"),
        count if count > NAMES => format!("{shown} and {} more {several}", count - NAMES),
        _ => format!("{shown} {several}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    fn row(
        candidate: &str,
        subject: &str,
        metric: Metric,
        value: f64,
        verdict: Option<Verdict>,
    ) -> Row {
        let row = Row {
            candidate: candidate.to_string(),
            cpus: 2,
            value: Some(value),
            verdict,
            ..Row::new(World::Sim, metric)
        };
        row.of(SubjectKind::Program, subject)
    }

    #[test]
    fn the_table_compares_each_program_with_the_baseline_and_names_the_gains() {
        let mut section = Section::new();
        for (name, time) in [("small", 1e6), ("large", 9e6)] {
            for candidate in ["eevdf", "take:rr"] {
                section.rows.push(row(candidate, name, Metric::cpu_time_ns, time, None));
            }
        }
        section.rows.push(row(
            "take:rr",
            "small",
            Metric::activation_ns_mean,
            1e6,
            Some(Verdict::Worse),
        ));
        section.rows.push(row(
            "take:rr",
            "large",
            Metric::activation_ns_mean,
            1e6,
            Some(Verdict::Better),
        ));
        let recorded = [row("recorded", "large", Metric::cpu_time_ns, 8e6, None)];
        let of_one = text(&section, &recorded, By::Comm, Some("small"));
        assert!(of_one.contains("1 more is in JSON") && !of_one.contains("8.00ms"), "{of_one}");
        let text = text(&section, &recorded, By::Comm, None);
        let (large, small) = (text.find("large").unwrap(), text.find("small").unwrap());
        assert!(large < small, "the most CPU time first: {text}");
        assert!(
            text.contains("recorded")
                && text.contains("8.00ms")
                && text.contains("By program, 2 CPUs:"),
            "{text}"
        );
        assert!(text.contains("take:rr: large gains; small pays."), "{text}");
        assert!(
            super::text(&Section::new(), &[], By::Comm, None).contains("No numbers by program")
        );
    }

    #[test]
    fn long_lists_of_names_are_cut_with_a_count() {
        assert_eq!(listed(&[], "gains", "gain"), "none gains");
        assert_eq!(listed(&["a", "b"], "pays", "pay"), "a, b pay");
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g"], "pays", "pay"),
            "a, b, c, d, e and 2 more pay"
        );
    }
}
