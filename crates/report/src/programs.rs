//! The section on programs, tasks and classes of demand: gains and losses.

use super::tables::{cell, escape};
use laboratory::{OF_DEMANDS, OF_TASKS};
use results::{Metric, Results, Row, SubjectKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The metrics of programs, tasks and classes of demand, which share a table.
fn columns() -> impl Iterator<Item = (Metric, &'static str)> {
    OF_TASKS.into_iter().chain(OF_DEMANDS)
}

/// The key of a line of the table.
type Line<'r> = (SubjectKind, &'r str, &'r str, u16, String, &'r str);

/// The section; empty if there are no numbers of parts.
pub fn section(results: &Results) -> String {
    let mut lines: BTreeMap<Line<'_>, BTreeMap<Metric, &Row>> = BTreeMap::new();
    for row in &results.rows {
        let (
            Some(kind @ (SubjectKind::Program | SubjectKind::Task | SubjectKind::Class)),
            Some(subject),
        ) = (row.subject_kind, &row.subject)
        else {
            continue;
        };
        if columns().any(|(metric, _)| metric == row.metric) {
            let line = (
                kind,
                subject.as_str(),
                row.workload.as_str(),
                row.cpus,
                row.world.to_string(),
                row.candidate.as_str(),
            );
            lines.entry(line).or_default().insert(row.metric, row);
        }
    }
    // For a guest only the share is known; it is shown elsewhere.
    lines.retain(|_, row| row.len() > 1);
    if lines.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=programs><h2>Who gains, who pays</h2>\n<div class=scroll><table \
         class=sortable><thead><tr>",
    );
    for title in ["part", "name", "workload", "CPUs", "world", "policy"] {
        let _ = write!(html, "<th scope=col>{title}");
    }
    for (metric, title) in columns() {
        let _ = write!(
            html,
            "<th scope=col class=number title=\"{}\">{title}",
            escape(metric.description().summary)
        );
    }
    html += "</thead><tbody>\n";
    for ((kind, subject, workload, cpus, world, candidate), rows) in &lines {
        let class = if *candidate == "recorded" { " class=recorded" } else { "" };
        let _ = write!(
            html,
            "<tr{class}><td>{kind}<th scope=row>{}<td>{}<td>{cpus}",
            escape(subject),
            escape(workload)
        );
        let _ = write!(html, "<td>{}<td>{}", escape(world), escape(candidate));
        columns().for_each(|(metric, _)| html += &cell(rows.get(&metric).copied()));
        html += "\n";
    }
    html + "</tbody></table></div></section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    #[test]
    fn each_program_has_a_line_for_each_candidate_and_markup_stays_text() {
        let row = |candidate: &str, metric, value| {
            let row = Row {
                candidate: candidate.to_string(),
                cpus: 2,
                value: Some(value),
                ..Row::new(World::Sim, metric)
            };
            row.of(SubjectKind::Program, "<b>")
        };
        let rows = ["eevdf", "fifo"].into_iter().flat_map(|name| {
            [row(name, Metric::cpu_time_ns, 1e6), row(name, Metric::migrations, 3.0)]
        });
        let html = section(&Results::new(rows.collect()));
        assert_eq!(html.matches("<th scope=row>&lt;b&gt;").count(), 2, "{html}");
        assert!(html.contains("1.00ms") && html.contains("fifo"), "{html}");
        assert_eq!(section(&Results::new(vec![row("eevdf", Metric::cpu_share, 0.5)])), "");
    }
}
