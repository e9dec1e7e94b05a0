//! A directory of results: what `-o DIR` writes, whole or marked as unfinished, and `schedlab report DIR` reads back.
//!
//! | file | what is in it |
//! |---|---|
//! | `results.json`, `results.csv`, `results.parquet` | the rows; JSON and Parquet with schema version and provenance |
//! | `distributions.json` | latencies, CPU bursts and pauses: percentiles with intervals, and the histogram |
//! | `figures.json`, `P-FIG01.csv`, … | the figures of a paper: ours beside the printed numbers |
//! | `findings.json` | what follows from papers beyond their claims |
//! | `traces/*.trace`, `traces/*.pftrace` | the first run of each case, for schedlab and for Perfetto |
//! | `report.html` | all of it to look at |
//! | `UNFINISHED` | only while a command is at work, or after it was killed |

pub mod distributions;

pub use distributions::{Distribution, Distributions};

use crate::Error;
use crate::export::{Format, export};
use crate::output::{Results, SCHEMA, prepare_directory, write_whole};
use crate::paper::figure::{Figure, Figures};
use crate::paper::findings::{AllFindings, Findings};
use crate::report;
use crate::trace_file::{Header, Reader, Writer};
use crate::trace_source::TraceSource;
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

const UNFINISHED: &str = "UNFINISHED";
const FIGURES: &str = "figures.json";
const FINDINGS: &str = "findings.json";

/// A directory that a command writes its results to.
pub struct ResultsDirectory(PathBuf);

impl ResultsDirectory {
    /// Makes sure that `dir` can be written to, and marks it as unfinished.
    pub fn begin(dir: &Path) -> Result<ResultsDirectory, Error> {
        prepare_directory(dir)?;
        write_whole(&dir.join(UNFINISHED), (Results::new(vec![]).command + "\n").as_bytes())?;
        // What an earlier command left would be taken for this one's.
        for file in [FIGURES, FINDINGS].map(|file| dir.join(file)) {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::output(&file, error)),
                _ => {}
            }
        }
        let traces = dir.join("traces");
        match fs::remove_dir_all(&traces) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::output(&traces, error)),
            _ => {}
        }
        Ok(ResultsDirectory(dir.to_path_buf()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the trace of `policy` on `cpus` CPUs goes.
    pub fn trace(&self, policy: &str, cpus: u16) -> Result<PathBuf, Error> {
        let traces = self.0.join("traces");
        fs::create_dir_all(&traces).map_err(|error| Error::output(&traces, error))?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-=.".contains(c) { c } else { '_' };
        Ok(traces.join(format!("{}-{cpus}cpu.trace", policy.chars().map(plain).collect::<String>())))
    }

    /// Writes the trace at `source` as it is, for the runs to be held against.
    pub fn write_recording(&self, source: &TraceSource) -> Result<(), Error> {
        let mut writer = Writer::create(&self.trace(&source.header.candidate, source.header.cpus)?, &source.header)?;
        source.feed(vec![&mut writer])?;
        writer.finish()
    }

    /// Writes each trace for Perfetto, beside the trace.
    pub fn export_traces(&self, progress: &ProgressBar) -> Result<(), Error> {
        let traces = traces_in(&self.0);
        progress.set_length(traces.len() as u64);
        traces.into_par_iter().try_for_each(|path| {
            export(&TraceSource::open(&path)?, Format::Perfetto, &path.with_extension("pftrace"))?;
            progress.inc(1);
            Ok(())
        })
    }

    /// Writes results and distributions.
    pub fn write(&self, results: &Results, distributions: Vec<Distribution>) -> Result<(), Error> {
        results.write(&self.0)?;
        Distributions::new(distributions).write(&self.0)
    }

    /// Writes what is about papers.
    pub fn write_papers(&self, figures: Figures, findings: &AllFindings) -> Result<(), Error> {
        figures.write(&self.0)?;
        findings.write(&self.0.join(FINDINGS))
    }

    /// All is written; writes the report.
    pub fn finish(self) -> Result<(), Error> {
        let mark = self.0.join(UNFINISHED);
        fs::remove_file(&mark).map_err(|error| Error::output(&mark, error))?;
        report::write(&self.0, None).map(|_| ())
    }
}

/// A directory of results, read back.
pub struct Contents {
    /// The rows and where they come from.
    pub results: Results,
    /// Distributions, if any were written.
    pub distributions: Vec<Distribution>,
    /// Figures of a paper, if any were written.
    pub figures: Vec<Figure>,
    /// What follows from papers, if any were measured.
    pub findings: Findings,
    /// Traces with what they say about their run, recordings first, then in the order of the rows.
    pub traces: Vec<(PathBuf, Header)>,
}

/// What every version of results.json and distributions.json has.
#[derive(Deserialize)]
pub struct Stamp {
    /// The version of the shape.
    pub schema: u32,
    /// The version of the program.
    pub version: String,
}

impl Contents {
    /// Reads what is in `dir`.
    ///
    /// # Errors
    /// If the directory is unfinished or damaged, was written by a newer schedlab, or by two different ones.
    pub fn read(dir: &Path) -> Result<Contents, Error> {
        if !dir.is_dir() {
            return Err(Error::Input(format!(
                "{}: there is no such directory; `-o DIR` of `compare` and `queue` makes one",
                dir.display()
            )));
        }
        if let Ok(command) = fs::read_to_string(dir.join(UNFINISHED)) {
            let (dir, command) = (dir.display(), command.trim());
            return Err(Error::Input(format!("{dir}: the command that writes these results did not finish; run it again: {command}")));
        }
        let (stamp, results): (Stamp, Results) = read_stamped(&dir.join("results.json"))?;
        let distributions: Option<Distributions> = read_optional(dir, "distributions.json", &stamp, &results)?;
        let figures: Option<Figures> = read_optional(dir, FIGURES, &stamp, &results)?;
        let findings: Option<AllFindings> = read_optional(dir, FINDINGS, &stamp, &results)?;
        let mut traces = Vec::new();
        for path in traces_in(dir) {
            let header = Reader::open(&path)?.header().clone();
            same_version(&path, &header.version, &stamp.version, &results)?;
            traces.push((path, header));
        }
        let place = |header: &Header| results.rows.iter().position(|row| row.candidate == header.candidate && row.cpus == header.cpus);
        traces.sort_by_key(|(path, header)| (place(header).unwrap_or(usize::MAX), path.clone()));
        Ok(Contents {
            results,
            distributions: distributions.map(|file| file.distributions).unwrap_or_default(),
            figures: figures.map(|file| file.figures).unwrap_or_default(),
            findings: findings.map(|file| file.findings).unwrap_or_default(),
            traces,
        })
    }
}

fn traces_in(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("traces")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "trace")).collect()
}

/// Reads a JSON file with a schema version.
fn read_stamped<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<(Stamp, T), Error> {
    let input = |message: String| Error::Input(format!("{}: {message}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => input("there are no results here; `-o DIR` of `compare` and `queue` writes them".to_string()),
        _ => input(error.to_string()),
    })?;
    stamped(&text).map_err(input)
}

/// The content of JSON with a schema version, which is looked at before the rest; an error says what is wrong with it.
pub fn stamped<T: for<'a> Deserialize<'a>>(text: &str) -> Result<(Stamp, T), String> {
    let stamp: Stamp = serde_json::from_str(text).map_err(|error| format!("not results of schedlab's, or damaged: {error}"))?;
    if stamp.schema != SCHEMA {
        let next = if stamp.schema > SCHEMA { "install the newer one" } else { "write the results again with this one" };
        return Err(format!(
            "its schema is version {}, written by schedlab {}; this is schedlab {}, which reads version {SCHEMA}: {next}",
            stamp.schema,
            stamp.version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    let content = serde_json::from_str(text).map_err(|error| format!("damaged: {error}; write the results again"))?;
    Ok((stamp, content))
}

/// The same of a file that need not be there, and that the same program must have written.
fn read_optional<T: for<'a> Deserialize<'a>>(dir: &Path, file: &str, stamp: &Stamp, results: &Results) -> Result<Option<T>, Error> {
    let path = dir.join(file);
    if !path.exists() {
        return Ok(None);
    }
    let (other, content) = read_stamped(&path)?;
    same_version(&path, &other.version, &stamp.version, results)?;
    Ok(Some(content))
}

fn same_version(path: &Path, version: &str, expected: &str, results: &Results) -> Result<(), Error> {
    if version == expected {
        return Ok(());
    }
    let (path, command) = (path.display(), &results.command);
    Err(Error::Input(format!(
        "{path} was written by schedlab {version}, results.json by {expected}: these are results of different runs; write them again: {command}"
    )))
}
