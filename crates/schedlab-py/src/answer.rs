//! Runs the program's commands: from a command line to its results.

use crate::error::{class, exception, named};
use crate::policy::Caller;
use crate::table::Table;
use crate::work::work;
use clap::Parser;
use clap::error::ErrorKind;
use formats::import;
use program::command_line;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use results::{Align, Answer as Output, Results, Row, Table as Lines, quantity};
use std::path::PathBuf;
use verbs::Measuring;
use worlds::experiment;
use worlds::experiment::Candidate;

/// The result of a command.
#[pyclass(frozen, module = "schedlab")]
pub struct Answer {
    results: Results,
    /// The rows.
    #[pyo3(get)]
    table: Py<Table>,
    /// The text that the command line prints.
    #[pyo3(get)]
    text: String,
    /// The error with the results, if any: a class of `schedlab.errors`, and the message.
    #[pyo3(get)]
    end: Option<(&'static str, String)>,
}

#[pymethods]
impl Answer {
    /// The command line that produced the rows.
    #[getter]
    fn command(&self) -> &str {
        &self.results.command
    }

    /// The same, if it gives the same digits again.
    #[getter]
    fn reproduce(&self) -> Option<&str> {
        self.results.reproduce.as_deref()
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        self.results.to_json().map_err(|error| exception(py, &error))
    }

    fn to_csv(&self, py: Python<'_>) -> PyResult<String> {
        self.results.to_csv().map_err(|error| exception(py, &error))
    }

    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.results.to_parquet().map_err(|error| exception(py, &error))?))
    }
}

/// Runs a command line. `policies` are classes, or functions that make a `schedlab.Policy`, each
/// with its position among the named policies. In a single run the first replaces the named one.
#[pyfunction]
#[pyo3(signature = (words, policies = Vec::new(), progress = None))]
pub fn evaluate(
    py: Python<'_>,
    words: Vec<String>,
    policies: Vec<(usize, Bound<'_, PyAny>)>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let arguments = Measuring::try_parse_from(["schedlab".to_string()].iter().chain(&words))
        .map_err(|error| refused(py, &error))?;
    let mut output = if policies.is_empty() {
        work(py, progress, move || arguments.answer(&verbs::Caller::default()))?
    } else {
        // A policy in Python needs the interpreter at every event, so it runs on the caller's
        // thread.
        let own = policies
            .iter()
            .map(|(place, policy)| Ok((*place, Caller::new(policy)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let candidates =
            own.iter().map(|(place, policy)| (*place, policy as &dyn Candidate)).collect();
        let raised = || own.iter().find_map(|(_, policy)| policy.raised(py));
        let caller = verbs::Caller { policies: candidates, directory: None };
        arguments
            .answer(&caller)
            .map_err(|error| raised().unwrap_or_else(|| exception(py, &error)))?
    };
    output.results = output.results.of_command(command_line(words.iter().map(Into::into)));
    let Output { results, text, end, inputs: _, members: _ } = output;
    let end = end.err().map(|error| (class(&error), error.to_string()));
    Ok(Answer { table: Py::new(py, Table::of_rows(py, &results.rows)?)?, results, text, end })
}

/// Joins the JSON results of several commands, each with its host.
#[pyfunction]
pub fn joined(py: Python<'_>, printed: Vec<(String, String)>) -> PyResult<Answer> {
    let mut joined: Option<Results> = None;
    for (host, json) in &printed {
        let mut results = Results::from_json(json)
            .map_err(|error| named(py, "InternalError", &format!("on {host}: {error}")))?;
        results.rows.iter_mut().for_each(|row| row.point.set("host", host));
        match &mut joined {
            Some(joined) => {
                joined.rows.append(&mut results.rows);
                joined.command += &format!("; {}", results.command);
            }
            None => joined = Some(results.repeatable(false)),
        }
    }
    let results = joined
        .ok_or_else(|| named(py, "UsageError", "there is nothing to measure: give a workload"))?;
    let table = Py::new(py, Table::of_rows(py, &results.rows)?)?;
    Ok(Answer { text: lines(&results.rows).to_string(), table, results, end: None })
}

/// A line for each row that describes all tasks.
fn lines(rows: &[Row]) -> Lines {
    let titles = [
        ("workload", Align::Left),
        ("CPUs", Align::Right),
        ("policy", Align::Left),
        ("metric", Align::Left),
        ("value", Align::Right),
    ];
    let mut lines =
        Lines::new(titles.into_iter().chain([("verdict", Align::Left), ("host", Align::Left)]));
    for row in rows.iter().filter(|row| row.subject.is_none()) {
        let value = row.value.map_or("-".to_string(), |value| quantity(value, row.unit()));
        let verdict = row.verdict.map_or(String::new(), |verdict| verdict.to_string());
        let place = [
            row.workload.clone(),
            row.cpus.to_string(),
            row.candidate.clone(),
            row.metric.to_string(),
        ];
        lines.row(place.into_iter().chain([value, verdict, row.text("host").to_string()]));
    }
    lines
}

/// The text of a workload file fitted to the recording at `path`.
#[pyfunction]
pub fn fit(py: Python<'_>, path: PathBuf, only: Vec<String>, allow_lost: bool) -> PyResult<String> {
    let read = |path: &std::path::Path,
                options: import::Options,
                observers: Vec<&mut dyn schedsim::trace::Observer>| {
        Ok(import::read(path, &options, observers)?)
    };
    work(py, None, move || experiment::fit(&path, &only, allow_lost, read))
}

/// Converts `json` to TOML.
#[pyfunction]
pub fn to_toml(py: Python<'_>, json: &str) -> PyResult<String> {
    let wrong = |error: &dyn std::fmt::Display| {
        named(py, "UsageError", &format!("this cannot be a file of TOML: {error}"))
    };
    let value: toml::Table = serde_json::from_str(json).map_err(|error| wrong(&error))?;
    toml::to_string(&value).map_err(|error| wrong(&error))
}

/// clap's message without the parts that only help on a command line.
fn refused(py: Python<'_>, error: &clap::Error) -> PyErr {
    let text = error.render().to_string();
    let text = text
        .trim_start_matches("error: ")
        .split("\n\nFor more information")
        .next()
        .unwrap_or_default();
    let text = text.split("\n\nUsage:").next().unwrap_or_default().trim();
    let class = if error.kind() == ErrorKind::DisplayHelp { "InternalError" } else { "UsageError" };
    named(py, class, text)
}
