//! The tables of a report.

use super::place::IDENTITIES;
use program::visible;
use results::{
    Metric, Point, Results, Row, Verdict, World, counted, headline, quantity, signed_difference,
};
use schedsim::metrics::CATALOGUE;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Escapes text for HTML, and what hides the order of its letters.
pub fn escape(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Text with `code` marked as in Markdown.
pub fn prose(text: &str) -> String {
    let part = |(index, part): (usize, &str)| {
        if index % 2 == 1 { format!("<code>{part}</code>") } else { part.to_string() }
    };
    escape(text).split('`').enumerate().map(part).collect()
}

/// The beginning of a table in a place of its own, which scrolls where the page is narrow, also by
/// keyboard. A screen reader gives its caption.
pub fn open(attributes: &str, caption: &str) -> String {
    let caption = escape(caption);
    format!(
        "<div class=scroll tabindex=0 role=region aria-label=\"{caption}\"><table \
         {attributes}><caption class=quiet>{caption}</caption>"
    )
}

/// A share with its sign, in percent.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() < 0.05 {
        return "0 %".to_string();
    }
    let digits = usize::from(percent.abs() < 9.95);
    format!("{percent:+.digits$} %").replace('-', "−")
}

/// The rows of a comparison: one for each case, with a column for each metric. Empty if there are
/// none.
pub fn comparison(results: &Results) -> String {
    let cases = cases(results);
    if cases.is_empty() {
        return String::new();
    }
    let varying = Varying::of(&cases);
    let mut html = open("class=sortable id=comparison", "Comparison of all policies");
    html += "<thead><tr><th scope=col>policy";
    varying.titles().for_each(|title| html += &format!("<th scope=col>{title}"));
    html += "<th scope=col>CPUs";
    let mut columns: Vec<(Metric, &str)> = columns(results).collect();
    columns.retain(|(metric, _)| cases.iter().any(|case| case.row(results, metric.id()).is_some()));
    for (metric, title) in &columns {
        let _ = write!(
            html,
            "<th scope=col class=number title=\"{}\">{title}",
            escape(metric.description().summary)
        );
    }
    html += "</thead><tbody>\n";
    for case in &cases {
        let class = if case.candidate == "recorded" { " class=recorded" } else { "" };
        let _ = write!(html, "<tr{class}><th scope=row>{}", escape(case.candidate));
        varying.cells(case).into_iter().for_each(|cell| html += &format!("<td>{}", escape(&cell)));
        let _ = write!(html, "<td data-value={0} class=number>{0}", case.cpus);
        columns.iter().for_each(|(metric, _)| html += &cell(case.row(results, metric.id())));
        html += "\n";
    }
    html + "</tbody></table></div>\n"
}

/// Every metric of every case, in addition to the comparison. Its columns are the cases.
pub fn all_metrics(results: &Results) -> String {
    let cases = cases(results);
    let varying = Varying::of(&cases);
    let mut html = open("class=sortable id=metrics", "All metrics");
    html += "<thead><tr><th scope=col>metric";
    for case in &cases {
        let words = std::iter::once(case.candidate.to_string())
            .chain(varying.cells(case).into_iter().filter(|cell| !cell.is_empty()));
        let _ = write!(
            html,
            "<th scope=col class=number>{}, {}",
            escape(&words.collect::<Vec<_>>().join(", ")),
            counted(case.cpus.into(), "CPU")
        );
    }
    html += "<th scope=col>what it is</thead><tbody>\n";
    let of_catalogue = CATALOGUE.iter().map(|metric| (metric.id, metric.definition));
    let of_command = printed(results).map(|metric| (metric.id(), metric.description().summary));
    for (id, definition) in of_catalogue.chain(of_command) {
        let rows: Vec<Option<&Row>> = cases.iter().map(|case| case.row(results, id)).collect();
        if rows.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(html, "<tr><th scope=row>{}", escape(id));
        rows.into_iter().for_each(|row| html += &cell(row));
        let note = results
            .rows
            .iter()
            .find(|row| row.metric.id() == id && row.value.is_none())
            .and_then(|row| row.note.as_deref());
        let note = note.map_or(String::new(), |note| {
            format!(" <i>Where it is missing: {}.</i>", escape(note))
        });
        let _ = writeln!(html, "<td>{}{note}", escape(definition));
    }
    html + "</tbody></table></div>\n"
}

/// The metrics that commands printed themselves.
fn printed(results: &Results) -> impl Iterator<Item = Metric> {
    let all: BTreeSet<Metric> = results.rows.iter().map(|row| row.metric).collect();
    all.into_iter().filter(|metric| matches!(metric, Metric::printed(_)))
}

/// The metrics of the comparison, each with its title.
fn columns(results: &Results) -> impl Iterator<Item = (Metric, &'static str)> {
    let titled = |metric| match metric {
        Metric::printed(printed) => Some((metric, printed.name())),
        _ => None,
    };
    headline().chain(printed(results).filter_map(titled))
}

/// A candidate in a place: everything that identifies a row besides its metric.
#[derive(PartialEq)]
pub struct Case<'r> {
    workload: &'r str,
    world: &'r World,
    candidate: &'r str,
    cpus: u16,
    point: &'r Point,
}

impl<'r> Case<'r> {
    fn of(row: &'r Row) -> Case<'r> {
        Case {
            workload: &row.workload,
            world: &row.world,
            candidate: &row.candidate,
            cpus: row.cpus,
            point: &row.point,
        }
    }

    fn row(&self, results: &'r Results, metric: &str) -> Option<&'r Row> {
        results.rows.iter().find(|row| {
            row.metric.id() == metric && row.subject.is_none() && Case::of(row) == *self
        })
    }
}

/// The coordinates in which cases differ, besides candidate and CPUs.
struct Varying<'r> {
    workloads: bool,
    worlds: bool,
    coordinates: Vec<&'r str>,
}

impl<'r> Varying<'r> {
    fn of(cases: &[Case<'r>]) -> Varying<'r> {
        // The recording is shown beside its replays.
        let replayed = || cases.iter().filter(|case| *case.world != World::Recorded);
        let differ = |of: &dyn Fn(&Case<'r>) -> String| {
            let mut all: Vec<String> = replayed().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all.len() > 1
        };
        let mut names: Vec<&str> = replayed().flat_map(|case| case.point.names()).collect();
        names.sort_unstable();
        names.dedup();
        let coordinate = |case: &Case<'r>, name: &str| {
            case.point.get(name).map(ToString::to_string).unwrap_or_default()
        };
        names.retain(|name| !IDENTITIES.contains(name) && differ(&|case| coordinate(case, name)));
        Varying {
            workloads: differ(&|case| case.workload.to_string()),
            worlds: differ(&|case| case.world.to_string()),
            coordinates: names,
        }
    }

    fn titles(&self) -> impl Iterator<Item = &str> {
        let both = [(self.workloads, "workload"), (self.worlds, "world")];
        both.into_iter()
            .filter(|(differ, _)| *differ)
            .map(|(_, title)| title)
            .chain(self.coordinates.iter().copied())
    }

    fn cells(&self, case: &Case<'_>) -> Vec<String> {
        let mut cells = Vec::new();
        if self.workloads {
            cells.push(case.workload.to_string());
        }
        if self.worlds {
            cells.push(case.world.to_string());
        }
        cells.extend(
            self.coordinates
                .iter()
                .map(|name| case.point.get(name).map(ToString::to_string).unwrap_or_default()),
        );
        cells
    }
}

/// The rows unchanged, for results that are not a comparison.
pub fn long(rows: Vec<&Row>) -> String {
    let mut html = open("class=sortable id=rows", "All rows") + "<thead><tr>";
    let titles = if is_stochastic(rows.iter().copied()) {
        ["policy", "workload"]
    } else {
        ["structure", "tasks"]
    };
    for title in titles.into_iter().chain(["conditions", "metric"]) {
        let _ = write!(html, "<th scope=col>{title}");
    }
    html += "<th scope=col class=number>value<th scope=col class=number>95 % interval<th \
             scope=col class=number>runs<th scope=col>note</thead><tbody>\n";
    for row in rows {
        let mut conditions: Vec<String> =
            row.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        conditions.extend(
            row.subject_kind
                .zip(row.subject.as_ref())
                .map(|(kind, subject)| format!("{kind}={subject}")),
        );
        if row.world == World::Sim {
            conditions.push(format!("cpus={}", row.cpus));
        }
        let _ = write!(html, "<tr><th scope=row>{}", escape(&row.candidate));
        let tasks = row.workload.rsplit(':').next().unwrap_or_default();
        let _ = write!(html, "<td data-value=\"{0}\">{1}", escape(tasks), escape(&row.workload));
        let _ = write!(html, "<td>{}<td>{}", escape(&conditions.join(", ")), row.metric);
        html += &cell(Some(row));
        let interval = row.ci_low.zip(row.ci_high).map_or(String::new(), |(low, high)| {
            format!("{} … {}", quantity(low, row.unit()), quantity(high, row.unit()))
        });
        let _ = writeln!(
            html,
            "<td class=number>{interval}<td class=number data-value={0}>{0}<td>{1}",
            row.runs,
            escape(row.note.as_deref().unwrap_or(""))
        );
    }
    html + "</tbody></table></div>\n"
}

/// Whether these are results of a stochastic workload: a case is then more than a policy and a
/// number of CPUs.
fn is_stochastic<'r>(rows: impl IntoIterator<Item = &'r Row>) -> bool {
    rows.into_iter().any(|row| row.metric == Metric::saturated)
}

/// All cases, in the order of the rows; rows of the atlas have none.
pub fn cases(results: &Results) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    if is_stochastic(&results.rows) {
        return cases;
    }
    for row in results.rows.iter().filter(|row| {
        row.subject.is_none() && CATALOGUE.iter().any(|metric| metric.id == row.metric.id())
    }) {
        let case = Case::of(row);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// The size of its difference from the baseline.
pub fn size(row: &Row) -> String {
    row.effect
        .map_or_else(|| signed_difference(row), |effect| format!("{:+.0} %", 100.0 * effect))
        .replace('-', "−")
}

/// A number with its verdict, interval and note.
pub fn cell(row: Option<&Row>) -> String {
    let Some(row) = row else { return "<td class=number>".to_string() };
    let Some(value) = row.value else {
        return format!(
            "<td class=number title=\"{}\">–",
            escape(row.note.as_deref().unwrap_or(""))
        );
    };
    let (class, mark) = match row.verdict {
        Some(Verdict::Better) => (" better", size(row)),
        Some(Verdict::Worse) => (" worse", size(row)),
        Some(Verdict::Equivalent) => (" equivalent", "=".to_string()),
        Some(Verdict::Undecided) => (" undecided", "~".to_string()),
        _ => ("", String::new()),
    };
    let mut title = row.verdict.map_or(String::new(), |verdict| verdict.to_string());
    if let Some((low, high)) = row.effect_low.zip(row.effect_high) {
        let _ = write!(title, " by {:+.1} to {:+.1} %;", 100.0 * low, 100.0 * high);
    } else if let Some((low, high)) = row.difference_low.zip(row.difference_high) {
        let end =
            |difference| signed_difference(&Row { difference: Some(difference), ..row.clone() });
        let _ = write!(title, " by {} to {};", end(low), end(high));
    }
    if let Some(reason) = &row.reason {
        let _ = write!(title, " {reason};");
    }
    let mut spread = String::new();
    if let Some((low, high)) = row.ci_low.zip(row.ci_high) {
        let _ = write!(
            title,
            " 95 % interval {} to {}, {} runs",
            quantity(low, row.unit()),
            quantity(high, row.unit()),
            row.runs
        );
        let percent = 100.0 * (high - low) / 2.0 / value.abs();
        if percent > 1.0 && percent.is_finite() {
            spread = format!(" <small>±{:.0} %</small>", percent.ceil());
        }
    }
    if let Some(note) = &row.note {
        let _ = write!(title, " {note}");
    }
    let shown = quantity(value, row.unit());
    format!(
        "<td class=\"number{class}\" data-value={value} title=\"{}\">{shown}{spread}<b>{mark}</b>",
        escape(title.trim())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_nothing_measured_has_no_column() {
        let row = Row { value: Some(5e8), ..Row::new(World::Host, Metric::makespan_ns) };
        let html = comparison(&Results::new(vec![row]));
        assert!(html.contains(">makespan") && !html.contains(">GRR"), "{html}");
    }
}
