//! The tables of a report.

use crate::output::{Metric, Results, Row, Verdict, World, headline, quantity};
use schedsim::metrics::CATALOGUE;
use std::fmt::Write;

/// Text with what HTML would take for markup spelled out.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The rows of a comparison: one per policy and number of CPUs, one column per metric. Empty if there is no such row.
pub fn comparison(results: &Results) -> String {
    let cases = cases(results);
    if cases.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=scroll><table class=sortable id=comparison><thead><tr><th scope=col>policy<th scope=col>CPUs");
    for (metric, title) in headline() {
        let _ = write!(html, "<th scope=col class=number title=\"{}\">{title}", escape(metric.definition));
    }
    html += "</thead><tbody>\n";
    for (policy, cpus) in &cases {
        let row_of = |metric: &str| {
            results.rows.iter().find(|row| {
                row.candidate == *policy && row.cpus == *cpus && row.metric.id() == metric && row.point.is_empty() && row.subject.is_none()
            })
        };
        let class = if *policy == "recorded" { " class=recorded" } else { "" };
        let _ = write!(html, "<tr{class}><th scope=row>{}<td data-value={cpus} class=number>{cpus}", escape(policy));
        headline().for_each(|(metric, _)| html += &cell(row_of(metric.id)));
        html += "\n";
    }
    html + "</tbody></table></div>\n"
}

/// Every metric of every case, for those whom the comparison does not suffice. Its columns are the cases.
pub fn all_metrics(results: &Results) -> String {
    let cases = cases(results);
    let mut html = String::from("<div class=scroll><table class=sortable id=metrics><thead><tr><th scope=col>metric");
    for (policy, cpus) in &cases {
        let _ = write!(html, "<th scope=col class=number>{}, {cpus} CPUs", escape(policy));
    }
    html += "<th scope=col>what it is</thead><tbody>\n";
    for metric in CATALOGUE {
        let rows: Vec<Option<&Row>> = cases
            .iter()
            .map(|(policy, cpus)| {
                results.rows.iter().find(|row| row.candidate == *policy && row.cpus == *cpus && row.metric.id() == metric.id)
            })
            .collect();
        if rows.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(html, "<tr><th scope=row>{}", metric.id);
        rows.into_iter().for_each(|row| html += &cell(row));
        let note = results.rows.iter().find(|row| row.metric.id() == metric.id && row.value.is_none()).and_then(|row| row.note.as_deref());
        let note = note.map_or(String::new(), |note| format!(" <i>Where it is missing: {}.</i>", escape(note)));
        let _ = writeln!(html, "<td>{}{note}", escape(metric.definition));
    }
    html + "</tbody></table></div>\n"
}

/// The rows as they are, for results that are no comparison.
pub fn long(rows: Vec<&Row>) -> String {
    let mut html = String::from("<div class=scroll><table class=sortable id=rows><thead><tr>");
    let titles = if is_stochastic(rows.iter().copied()) { ["policy", "workload"] } else { ["structure", "tasks"] };
    for title in titles.into_iter().chain(["conditions", "metric"]) {
        let _ = write!(html, "<th scope=col>{title}");
    }
    html += "<th scope=col class=number>value<th scope=col class=number>95 % interval<th scope=col class=number>runs<th scope=col>note</thead><tbody>\n";
    for row in rows {
        let mut conditions: Vec<String> = row.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        conditions.extend(row.subject_kind.zip(row.subject.as_ref()).map(|(kind, subject)| format!("{kind}={subject}")));
        if row.world == World::Sim {
            conditions.push(format!("cpus={}", row.cpus));
        }
        let _ = write!(html, "<tr><th scope=row>{}", escape(&row.candidate));
        let tasks = row.workload.rsplit(':').next().unwrap_or_default();
        let _ = write!(html, "<td data-value=\"{0}\">{1}", escape(tasks), escape(&row.workload));
        let _ = write!(html, "<td>{}<td>{}", escape(&conditions.join(", ")), row.metric);
        html += &cell(Some(row));
        let interval = row
            .ci_low
            .zip(row.ci_high)
            .map_or(String::new(), |(low, high)| format!("{} … {}", quantity(low, row.unit()), quantity(high, row.unit())));
        let _ = writeln!(
            html,
            "<td class=number>{interval}<td class=number data-value={0}>{0}<td>{1}",
            row.runs,
            escape(row.note.as_deref().unwrap_or(""))
        );
    }
    html + "</tbody></table></div>\n"
}

/// Whether these are results of a stochastic workload: a case is more than a policy and a number of CPUs then.
fn is_stochastic<'r>(rows: impl IntoIterator<Item = &'r Row>) -> bool {
    rows.into_iter().any(|row| row.metric == Metric::saturated)
}

/// Policies and numbers of CPUs in the order of the rows; a row of the atlas is none of them.
pub fn cases(results: &Results) -> Vec<(&str, u16)> {
    let mut cases: Vec<(&str, u16)> = Vec::new();
    if is_stochastic(&results.rows) {
        return cases;
    }
    for row in results.rows.iter().filter(|row| CATALOGUE.iter().any(|metric| metric.id == row.metric.id())) {
        if !cases.contains(&(&row.candidate, row.cpus)) {
            cases.push((&row.candidate, row.cpus));
        }
    }
    cases
}

fn cell(row: Option<&Row>) -> String {
    let Some(row) = row else { return "<td class=number>".to_string() };
    let Some(value) = row.value else {
        return format!("<td class=number title=\"{}\">–", escape(row.note.as_deref().unwrap_or("")));
    };
    let (class, mark) = match row.verdict {
        Some(Verdict::Better) => (" better", "+"),
        Some(Verdict::Worse) => (" worse", "−"),
        Some(Verdict::Equivalent) => (" equivalent", "="),
        Some(Verdict::Undecided) => (" undecided", "~"),
        _ => ("", ""),
    };
    let mut title = row.verdict.map_or(String::new(), |verdict| verdict.to_string());
    let mut spread = String::new();
    if let Some((low, high)) = row.ci_low.zip(row.ci_high) {
        let _ = write!(title, " 95 % interval {} to {}, {} runs", quantity(low, row.unit()), quantity(high, row.unit()), row.runs);
        let percent = 100.0 * (high - low) / 2.0 / value.abs();
        if percent > 1.0 && percent.is_finite() {
            spread = format!(" <small>±{:.0} %</small>", percent.ceil());
        }
    }
    if let Some(note) = &row.note {
        let _ = write!(title, " {note}");
    }
    let shown = quantity(value, row.unit());
    format!("<td class=\"number{class}\" data-value={value} title=\"{}\">{shown}{spread}<b>{mark}</b>", escape(title.trim()))
}
