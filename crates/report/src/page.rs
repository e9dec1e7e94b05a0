//! The page: its sections in order, with styles, scripts and data.

use super::atlas::{self, Chart};
use super::curves::Curve;
use super::tables::{self, escape};
use super::timeline::Timelines;
use super::{critical_path, effects, findings, functions, lead, objects, papers, trust};
use crate::contents::Contents;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use program::Error;
use results::figure::Figure;
use results::{Results, Row, counted};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

const UPLOT: &str = include_str!("vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("vendor/uPlot.min.css");
const STYLE: &str = include_str!("report.css");
const SCRIPTS: [&str; 5] = [
    include_str!("table.js"),
    include_str!("plots.js"),
    include_str!("figures.js"),
    include_str!("timeline.js"),
    include_str!("report.js"),
];

/// The most rows of the table of all that are open.
const MOST_OPEN: usize = 40;

/// The data for the scripts.
#[derive(Serialize)]
struct Data<'a> {
    curves: Vec<Curve<'a>>,
    charts: Vec<Chart>,
    timelines: &'a Timelines,
    figures: &'a [Figure],
}

/// The complete page.
pub fn render(contents: &Contents, timelines: &Timelines) -> Result<String, Error> {
    let results = &contents.results;
    let data = Data {
        curves: Curve::all(&contents.distributions),
        charts: atlas::charts(&results.rows),
        timelines,
        figures: &contents.figures,
    };
    let json = serde_json::to_string(&data)
        .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
    let mut workloads: Vec<&str> = results.rows.iter().map(|row| row.workload.as_str()).collect();
    workloads.dedup();
    let claims = papers::claims(&results.rows, &contents.findings.decision);
    let title = match workloads[..] {
        _ if !claims.is_empty() || !contents.figures.is_empty() => "papers measured again",
        [one] => one,
        _ if !data.charts.is_empty() => "cost atlas of ready queues",
        _ => "results",
    };
    let own = format!("\n{}", SCRIPTS.concat());
    let (library, own_hash) = (hash(UPLOT), hash(&own));
    let mut html = String::with_capacity(json.len() + 200_000);
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport \
         content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=Content-Security-Policy \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src {library} {own_hash}; \
         img-src data:\">\n<link rel=icon href=\"data:,\">\n<title>{0} – \
         schedlab</title>\n<style>{UPLOT_STYLE}\n{STYLE}</style>\n<body>\n<a class=skip \
         href=#main>Skip to the content</a>\n<header><h1>{0}</h1>\n<p>schedlab \
         {1}</p></header>\n",
        escape(title),
        escape(&results.version)
    );
    let body = sections(contents, &data, &claims);
    html += &navigation(&body);
    html += "<main id=main tabindex=-1>\n";
    html += &body;
    // Inside a script element only an end tag ends the data.
    let _ = write!(
        html,
        "</main>\n<script type=application/json \
         id=data>{}</script>\n<script>{UPLOT}</script>\n<script>{own}</script>\n",
        json.replace('<', "\\u003c")
    );
    Ok(html)
}

/// All sections, the answer first.
fn sections(contents: &Contents, data: &Data<'_>, claims: &str) -> String {
    let results = &contents.results;
    let mut html = lead::section(results, &data.charts, &contents.figures);
    html += &trust::section(results, &contents.replays);
    html += &findings::summary(&results.rows, &contents.findings);
    html += claims;
    html += &papers::figures(&contents.figures);
    html += &findings::decisions(&contents.findings.decision);
    html += &effects::section(results);
    html += &super::programs::section(results);
    html += &comparison(results);
    if !data.curves.is_empty() {
        html += DISTRIBUTIONS;
    }
    if !data.charts.is_empty() {
        html += ATLAS;
    }
    if !data.timelines.timelines.is_empty() {
        html += TIMELINE;
    }
    html += &functions::section(results);
    html += &critical_path::section(&contents.paths);
    html += &objects::section(results);
    let rows: Vec<&Row> =
        results.rows.iter().filter(|row| claims.is_empty() || row.verdict.is_none()).collect();
    if tables::cases(results).is_empty() && !rows.is_empty() {
        let open = if rows.len() > MOST_OPEN { "" } else { " open" };
        let summary = counted(rows.len(), "number");
        let table = tables::long(rows);
        let _ = write!(
            html,
            "<section id=all><h2>All rows</h2>\n<details{open}><summary>{summary}</summary>\n{table}</details></section>\n"
        );
    }
    html + &provenance(results)
}

/// Links to the sections of `body`, by their headings.
fn navigation(body: &str) -> String {
    let link = |part: &str| {
        let (id, rest) = part.split_once('>')?;
        let title = rest.strip_prefix("<h2>")?.split_once("</h2>")?.0;
        Some(format!("<li><a href=\"#{id}\">{title}</a>\n"))
    };
    let links: String = body.split("<section id=").skip(1).filter_map(link).collect();
    format!("<nav aria-label=Sections><ul>\n{links}</ul></nav>\n")
}

/// A script as the only ones that a browser runs in the page are named: by the hash of its text.
fn hash(script: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script)))
}

fn comparison(results: &Results) -> String {
    let table = tables::comparison(results);
    if table.is_empty() {
        return String::new();
    }
    format!(
        "<section id=all-policies><h2>All policies side by side</h2>\n<p class=legend>By how much each is <span class=better>better</span> or <span \
         class=worse>worse</span> than the baseline on average; <span class=equivalent>= is \
         equivalent</span>, <span class=undecided>~ undecided</span>. Hold the pointer over a \
         number for its interval and the reason. A heading sorts.</p>\n{table}<details><summary>All \
         metrics</summary>\n{}</details></section>\n",
        tables::all_metrics(results)
    )
}

const DISTRIBUTIONS: &str = "<section id=distributions><h2>Distributions</h2>\n<p class=controls><label>of <select \
     id=curves-of></select></label> <label>on <select id=curves-cpus></select></label></p>\n<div \
     class=plot id=curves></div>\n<p class=note id=curves-note></p></section>\n";

const ATLAS: &str = "<section id=atlas><h2>Cost by number of tasks</h2>\n<p \
                     class=controls><label>cost <select id=charts-which></select></label></p>\n<div \
                     class=plot id=charts></div>\n<ul class=note id=charts-note></ul></section>\n";

const TIMELINE: &str = "<section id=timeline><h2>Who ran where</h2>\n<p class=controls><label>on <select \
     id=timeline-cpus></select></label> <label>from <input id=timeline-from size=10></label> \
     <label>to <input id=timeline-to size=10></label> <button id=timeline-show \
     type=button>Show</button> <button id=timeline-in type=button aria-label=\"Zoom \
     in\">+</button> <button id=timeline-out type=button aria-label=\"Zoom out\">−</button> \
     <button id=timeline-left type=button aria-label=Earlier>←</button> <button \
     id=timeline-right type=button aria-label=Later>→</button> <button id=timeline-exact \
     type=button>Exact window</button> <button id=timeline-all type=button>Whole run</button> \
     <span id=timeline-error role=alert></span></p>\n<p class=controls><label>task <input \
     id=timeline-search type=search size=14 placeholder=\"name or id\"></label> <button \
     id=timeline-previous type=button>Previous run</button> <button id=timeline-next \
     type=button>Next run</button> <span id=timeline-found role=status></span></p>\n<p \
     class=note id=timeline-note></p>\n<p id=timeline-what aria-live=polite>&nbsp;</p>\n<div \
     id=timelines tabindex=0 role=application aria-label=\"Timelines of all runs\" \
     aria-describedby=timeline-keys></div>\n<p class=note id=timeline-keys>Drag over a time to \
     zoom in, double-click for the whole run. With the timelines in focus: <kbd>←</kbd> \
     <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>Home</kbd> the whole run, \
     <kbd>N</kbd> <kbd>P</kbd> the next and the previous run of the task that is found, \
     <kbd>Esc</kbd> no task.</p>\n<h3>The same moment under every policy</h3>\n<div \
     id=timeline-moment class=scroll tabindex=0 role=region aria-label=\"What runs at one moment \
     under every policy\"></div>\n<h3>Tasks</h3>\n<p class=note>A task is highlighted while the \
     pointer is over it or its name has the focus; a press keeps it.</p>\n<ul \
     id=timeline-tasks></ul></section>\n";

fn provenance(results: &Results) -> String {
    format!(
        "<section id=provenance><h2>Where this comes from</h2>\n<details><summary>Command, \
         version, machine, inputs</summary><dl><dt>{}<dd><code>{}</code><dt>Version<dd>schedlab \
         {}, schema {}<dt>Machine<dd>{}, Linux {}{}{}</dl></details></section>\n",
        if results.reproduce.is_some() {
            "Reproduce"
        } else {
            "Command, whose digits differ each time"
        },
        escape(&results.command),
        escape(&results.version),
        results.schema,
        escape(&results.cpu),
        escape(&results.kernel),
        guests(&results.rows),
        results
            .inputs
            .as_deref()
            .map_or(String::new(), |hash| format!("<dt>Inputs<dd><code>{}</code>", escape(hash))),
    )
}

/// The guests in which rows were measured: their kernel, emulator and CPUs, and how fast these are.
fn guests(rows: &[Row]) -> String {
    let guest = |row: &Row| {
        let part = |name: &str| row.point.get(name).map(ToString::to_string);
        Some(format!(
            "<dt>Guest<dd>Linux {}, {}, an instruction takes {} ns; QEMU {}",
            escape(&part("kernel")?),
            counted(row.cpus.into(), "CPU"),
            escape(&part("instruction_ns")?),
            escape(&part("qemu")?)
        ))
    };
    rows.iter().filter_map(guest).collect::<BTreeSet<String>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Metric, Point, World};

    #[test]
    fn a_guest_stands_once_with_what_it_runs_on_and_other_rows_have_none() {
        let mut row = Row::new(World::Vm { kernel: "6.18".to_string() }, Metric::makespan_ns);
        row.cpus = 2;
        let mut point = Point::new();
        point.set("kernel", "6.18.15<");
        point.set("instruction_ns", 8);
        point.set("qemu", "11.1.3");
        row.point = point;
        let rows = [row.clone(), row, Row::new(World::Sim, Metric::makespan_ns)];
        assert_eq!(
            guests(&rows),
            "<dt>Guest<dd>Linux 6.18.15&lt;, 2 CPUs, an instruction takes 8 ns; QEMU 11.1.3"
        );
    }
}
