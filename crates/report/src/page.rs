//! The page: its sections in order, with styles, scripts and data.

use super::atlas::{self, Chart};
use super::curves::Curve;
use super::tables::{self, escape};
use super::timeline::Timelines;
use super::{critical_path, findings, functions, objects, papers};
use crate::contents::Contents;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use program::Error;
use results::figure::Figure;
use results::{Results, Row};
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
         content=\"width=device-width\">\n<meta http-equiv=Content-Security-Policy \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src {library} {own_hash}; \
         img-src data:\">\n<link rel=icon href=\"data:,\">\n<title>{0} – \
         schedlab</title>\n<style>{UPLOT_STYLE}\n{STYLE}</style>\n<body>\n<header><h1>{0}</h1>\n\
         <p>schedlab {1}</p></header>\n<main>\n",
        escape(title),
        escape(&results.version)
    );
    html += &answer(results);
    html += &findings::summary(&results.rows, &contents.findings);
    html += &claims;
    html += &papers::figures(&contents.figures);
    html += &findings::decisions(&contents.findings.decision);
    html += &comparison(results);
    html += &super::programs::section(results);
    html += &functions::section(results);
    html += &critical_path::section(&contents.paths);
    html += &objects::section(results);
    if !data.curves.is_empty() {
        html += DISTRIBUTIONS;
    }
    if !data.charts.is_empty() {
        html += ATLAS;
    }
    if !timelines.timelines.is_empty() {
        html += TIMELINE;
    }
    let rows: Vec<&Row> =
        results.rows.iter().filter(|row| claims.is_empty() || row.verdict.is_none()).collect();
    if tables::cases(results).is_empty() && !rows.is_empty() {
        let _ = write!(html, "<section><h2>All rows</h2>\n{}</section>\n", tables::long(rows));
    }
    html += &provenance(results);
    // Inside a script element only an end tag ends the data.
    let _ = write!(
        html,
        "</main>\n<script type=application/json \
         id=data>{}</script>\n<script>{UPLOT}</script>\n<script>{own}</script>\n",
        json.replace('<', "\\u003c")
    );
    Ok(html)
}

/// A script as the only ones that a browser runs in the page are named: by the hash of its text.
fn hash(script: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script)))
}

/// The first section: the answer, with its first line as the heading.
fn answer(results: &Results) -> String {
    let Some(answer) = &results.answer else { return String::new() };
    let mut lines = answer.lines();
    let first = lines.next().unwrap_or_default();
    let rest: String = lines.map(|line| format!("<br>{}\n", escape(line))).collect();
    format!("<section id=answer><h2>Answer</h2>\n<p><b>{}</b>\n{rest}</section>\n", escape(first))
}

fn comparison(results: &Results) -> String {
    let table = tables::comparison(results);
    if table.is_empty() {
        return String::new();
    }
    format!(
        "<section><h2>Comparison</h2>\n<p class=legend><span class=better>better</span> <span \
         class=worse>worse</span>, by how much on average <span class=equivalent>= \
         equivalent</span> <span class=undecided>~ undecided</span>: hold the pointer over a \
         number for its interval and the reason. Each against the baseline, which has no mark. A \
         heading sorts.</p>\n{table}<details><summary>All \
         metrics</summary>\n{}</details></section>\n",
        tables::all_metrics(results)
    )
}

const DISTRIBUTIONS: &str = "<section id=distributions><h2>Distributions</h2>\n<p class=controls><label>of <select \
     id=curves-of></select></label> <label>on <select id=curves-cpus></select></label></p>\n<div \
     class=plot id=curves></div>\n<p class=note id=curves-note></p></section>\n";

const ATLAS: &str = "<section id=atlas><h2>Cost by number of tasks</h2>\n<p \
                     class=controls><label><select id=charts-which></select></label></p>\n<div \
                     class=plot id=charts></div>\n<ul class=note id=charts-note></ul></section>\n";

const TIMELINE: &str = "<section id=timeline><h2>Who ran where</h2>\n<p class=controls><label>on <select \
     id=timeline-cpus></select></label> <label>from <input id=timeline-from size=10></label> \
     <label>to <input id=timeline-to size=10></label> <button id=timeline-show \
     type=button>Show</button> <button id=timeline-in type=button title=\"zoom in\">+</button> \
     <button id=timeline-out type=button title=\"zoom out\">−</button> <button id=timeline-left \
     type=button title=\"earlier\">←</button> <button id=timeline-right type=button \
     title=\"later\">→</button> <button id=timeline-exact type=button>Exact window</button> \
     <button id=timeline-all type=button>Whole run</button> <span id=timeline-error \
     role=alert></span></p>\n<p class=note id=timeline-note></p>\n<p id=timeline-what \
     aria-live=polite>&nbsp;</p>\n<div id=timelines></div>\n<p class=note>Drag over a time to \
     zoom in, double-click for the whole run. A task is highlighted while the pointer is over it \
     or its name here has the focus:</p>\n<ul id=timeline-tasks></ul></section>\n";

fn provenance(results: &Results) -> String {
    format!(
        "<section><h2>Where this comes \
         from</h2>\n<dl><dt>{}<dd><code>{}</code><dt>Version<dd>schedlab {}, schema \
         {}<dt>Machine<dd>{}, Linux {}{}{}</dl></section>\n",
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
        let cpus = if row.cpus == 1 { "1 CPU".to_string() } else { format!("{} CPUs", row.cpus) };
        Some(format!(
            "<dt>Guest<dd>Linux {}, {cpus}, an instruction takes {} ns; QEMU {}",
            escape(&part("kernel")?),
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
