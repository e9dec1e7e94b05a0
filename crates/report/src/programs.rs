//! The section on programs, tasks and classes of demand: who gains and who pays, under each
//! candidate, and all their numbers.

use super::effects::is_of_comparison;
use super::place::{Place, Places};
use super::tables::{cell, escape, open, size};
use laboratory::{OF_DEMANDS, OF_TASKS};
use results::{Metric, Results, Row, SubjectKind, Verdict, World};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most parts that a candidate's cell names.
const NAMED: usize = 6;

/// The metrics of programs, tasks and classes of demand, which share a table.
fn columns() -> impl Iterator<Item = (Metric, &'static str)> {
    OF_TASKS.into_iter().chain(OF_DEMANDS)
}

/// The kind of part that a row of this section describes, and its name.
fn part(row: &Row) -> Option<(SubjectKind, &str)> {
    match (row.subject_kind, &row.subject) {
        (
            Some(kind @ (SubjectKind::Program | SubjectKind::Task | SubjectKind::Class)),
            Some(subject),
        ) if columns().any(|(metric, _)| metric == row.metric) => Some((kind, subject)),
        _ => None,
    }
}

/// The key of a line of the table.
type Line<'r> = (SubjectKind, &'r str, &'r str, u16, String, &'r str);

/// The section; empty if nothing was compared and there are no numbers of parts.
pub fn section(results: &Results) -> String {
    let mut lines: BTreeMap<Line<'_>, BTreeMap<Metric, &Row>> = BTreeMap::new();
    for row in &results.rows {
        let Some((kind, subject)) = part(row) else { continue };
        let line = (
            kind,
            subject,
            row.workload.as_str(),
            row.cpus,
            row.world.to_string(),
            row.candidate.as_str(),
        );
        lines.entry(line).or_default().insert(row.metric, row);
    }
    // For a guest only the share is known; it is shown elsewhere.
    lines.retain(|_, row| row.len() > 1);
    if lines.is_empty() {
        return without_parts(results);
    }
    let folded = format!(
        "<details><summary>All numbers of all parts</summary>\n{}</details>",
        all_numbers(&lines)
    );
    let summary = summary(results);
    let body = if summary.is_empty() { all_numbers(&lines) } else { summary + &folded };
    format!("<section id=programs><h2>Who gains, who pays</h2>\n{body}</section>\n")
}

/// What to do to see parts, if a replay was compared without them.
fn without_parts(results: &Results) -> String {
    let is_compared =
        |row: &Row| row.world == World::Sim && row.verdict.is_some_and(is_of_comparison);
    let has_names = results.rows.iter().any(|row| row.world == World::Recorded);
    if !has_names || !results.rows.iter().any(is_compared) {
        return String::new();
    }
    "<section id=programs><h2>Who gains, who pays</h2>\n<p>The numbers are of the complete run. \
     <code>--by comm</code> splits them by program.</p></section>\n"
        .to_string()
}

/// A row for each candidate: the parts that gain, and those that pay; empty if nothing is decided.
fn summary(results: &Results) -> String {
    let mut cases: Vec<(Place<'_>, &str, Vec<&Row>)> = Vec::new();
    for row in results.rows.iter().filter(|row| {
        part(row).is_some() && row.baseline.is_some() && row.verdict.is_some_and(is_of_comparison)
    }) {
        let (place, candidate) = (Place::of(row), row.candidate.as_str());
        match cases.iter_mut().find(|case| case.0 == place && case.1 == candidate) {
            Some(case) => case.2.push(row),
            None => cases.push((place, candidate, vec![row])),
        }
    }
    if cases.is_empty() {
        return String::new();
    }
    let places = Places::of(cases.iter().map(|case| &case.0));
    let mut html = String::from(
        "<p class=note>In brackets the largest difference from the baseline of each that is \
         decided.</p>\n",
    );
    html += &open("class=gains", "Who gains and who pays under each policy");
    html += "<thead><tr><th scope=col>policy<th scope=col>gains<th scope=col>pays</thead><tbody>\n";
    for (place, candidate, rows) in &cases {
        let label = places.label(place);
        let label =
            if label.is_empty() { label } else { format!(" <small>{}</small>", escape(&label)) };
        let _ = writeln!(
            html,
            "<tr><th scope=row class=words>{}{label}<td class=words>{}<td class=words>{}",
            escape(candidate),
            named(rows, Verdict::Better),
            named(rows, Verdict::Worse)
        );
    }
    html + "</tbody></table></div>\n"
}

/// The parts with this verdict, each with its largest difference, the largest first.
fn named(rows: &[&Row], verdict: Verdict) -> String {
    let mut largest: BTreeMap<&str, &Row> = BTreeMap::new();
    // A part whose baseline is near zero has no share, and comes last.
    let share = |row: &Row| row.effect.map_or(-1.0, f64::abs);
    for row in rows.iter().filter(|row| row.verdict == Some(verdict)) {
        let Some((_, subject)) = part(row) else { continue };
        let known = largest.entry(subject).or_insert(row);
        if share(row) > share(known) {
            *known = row;
        }
    }
    let mut largest: Vec<(&str, &Row)> = largest.into_iter().collect();
    largest.sort_by(|a, b| share(b.1).total_cmp(&share(a.1)).then(a.0.cmp(b.0)));
    let class = if verdict == Verdict::Better { "better" } else { "worse" };
    let one = |(subject, row): &(&str, &Row)| {
        let title = columns().find(|(metric, _)| *metric == row.metric).map_or("", |one| one.1);
        format!("{} <span class={class}>({title} {})</span>", escape(subject), escape(&size(row)))
    };
    let shown: Vec<String> = largest.iter().take(NAMED).map(one).collect();
    match largest.len().checked_sub(NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", shown.join(", ")),
        None if shown.is_empty() => "none".to_string(),
        None => shown.join(", "),
    }
}

fn all_numbers(lines: &BTreeMap<Line<'_>, BTreeMap<Metric, &Row>>) -> String {
    let mut html = open("class=sortable", "All numbers of all parts") + "<thead><tr>";
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
    for ((kind, subject, workload, cpus, world, candidate), rows) in lines {
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
    html + "</tbody></table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(candidate: &str, metric: Metric, value: f64) -> Row {
        let row = Row {
            candidate: candidate.to_string(),
            cpus: 2,
            value: Some(value),
            ..Row::new(World::Sim, metric)
        };
        row.of(SubjectKind::Program, "<b>")
    }

    #[test]
    fn each_program_has_a_line_for_each_candidate_and_markup_stays_text() {
        let rows = ["eevdf", "fifo"].into_iter().flat_map(|name| {
            [row(name, Metric::cpu_time_ns, 1e6), row(name, Metric::migrations, 3.0)]
        });
        let html = section(&Results::new(rows.collect()));
        assert_eq!(html.matches("<th scope=row>&lt;b&gt;").count(), 2, "{html}");
        assert!(html.contains("1.00ms") && html.contains("fifo"), "{html}");
        assert_eq!(section(&Results::new(vec![row("eevdf", Metric::cpu_share, 0.5)])), "");
    }

    #[test]
    fn who_gains_and_who_pays_are_named_with_their_largest_difference() {
        let judged = |subject: &str, metric, verdict, effect| {
            let row = Row {
                baseline: Some("eevdf".to_string()),
                verdict: Some(verdict),
                effect: Some(effect),
                ..row("fifo", metric, 1.0)
            };
            row.of(SubjectKind::Program, subject)
        };
        let html = section(&Results::new(vec![
            judged("<sql>", Metric::run_delay_ns, Verdict::Better, -0.1),
            judged("<sql>", Metric::wakeup_latency_ns_p99, Verdict::Better, -0.3),
            judged("xz", Metric::run_delay_ns, Verdict::Worse, 0.25),
            judged("xz", Metric::cpu_time_ns, Verdict::Undecided, 0.9),
        ]));
        for words in [
            "<th scope=row class=words>fifo<td class=words>&lt;sql&gt; <span class=better>(wake \
             p99 −30 %)</span><td class=words>xz <span class=worse>(run delay +25 %)</span>",
            "<details><summary>All numbers of all parts",
        ] {
            assert!(html.contains(words), "{words}: {html}");
        }
    }

    #[test]
    fn a_compared_recording_without_parts_says_how_to_get_them() {
        let compared = Row {
            baseline: Some("eevdf".to_string()),
            verdict: Some(Verdict::Worse),
            ..Row::new(World::Sim, Metric::makespan_ns)
        };
        let recorded = Row::new(World::Recorded, Metric::makespan_ns);
        assert!(section(&Results::new(vec![compared.clone(), recorded])).contains("--by comm"));
        assert_eq!(section(&Results::new(vec![compared])), "");
    }
}
