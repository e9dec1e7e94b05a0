//! Reads a directory of results.

use formats::trace_file::{Header, Reader};
use laboratory::results_directory::{
    Distribution, Distributions, FIGURES, FINDINGS, UNFINISHED, traces_in,
};
use program::{Error, plain};
use results::critical_path::{CRITICAL_PATHS, CriticalPath, CriticalPaths};
use results::fidelity::{FIDELITY, Replayed, Replays};
use results::figure::{Figure, Figures};
use results::findings::{AllFindings, Findings};
use results::{Results, Row, Stamp, stamped};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The content of a directory of results.
pub struct Contents {
    /// The rows, with their origin.
    pub results: Results,
    /// Distributions, if any were written.
    pub distributions: Vec<Distribution>,
    /// Figures of a paper, if any were written.
    pub figures: Vec<Figure>,
    /// Critical paths of a recording, if any were written.
    pub paths: Vec<CriticalPath>,
    /// How far replays were from their recordings, if there are any.
    pub replays: Vec<Replayed>,
    /// The findings of papers, if any were measured.
    pub findings: Findings,
    /// Traces with their headers: recordings first, then in the order of the rows.
    pub traces: Vec<(PathBuf, Header)>,
}

impl Contents {
    /// Reads `dir`.
    ///
    /// # Errors
    /// If the directory is unfinished or damaged, was written by a newer schedlab, or by two
    /// different ones.
    pub fn read(dir: &Path) -> Result<Contents, Error> {
        if !dir.is_dir() {
            let what = if dir.exists() { "this is a file" } else { "there is no such directory" };
            return Err(Error::Input(format!(
                "{}: {what}; give a directory of results, as `-o DIR` of `compare` and `queue` \
                 makes one",
                dir.display()
            )));
        }
        if let Ok(command) = fs::read_to_string(dir.join(UNFINISHED)) {
            let (dir, command) = (dir.display(), command.trim());
            return Err(Error::Input(format!(
                "{dir}: the command that writes these results did not finish; run it again: \
                 {command}"
            )));
        }
        let (stamp, results): (Stamp, Results) = read_stamped(&dir.join("results.json"))?;
        let distributions: Option<Distributions> =
            read_optional(dir, "distributions.json", &stamp, &results)?;
        let figures: Option<Figures> = read_optional(dir, FIGURES, &stamp, &results)?;
        let paths: Option<CriticalPaths> = read_optional(dir, CRITICAL_PATHS, &stamp, &results)?;
        let replays: Option<Replays> = read_optional(dir, FIDELITY, &stamp, &results)?;
        let findings: Option<AllFindings> = read_optional(dir, FINDINGS, &stamp, &results)?;
        let mut traces = Vec::new();
        for path in traces_in(dir) {
            let mut header = Reader::open(&path)?.header().clone();
            same_version(&path, &header.version, &stamp.version, &results)?;
            if let Some(candidate) = candidate_of(&path, &header, &results) {
                header.candidate = candidate;
            }
            traces.push((path, header));
        }
        let place = |header: &Header| {
            results
                .rows
                .iter()
                .position(|row| row.candidate == header.candidate && row.cpus == header.cpus)
        };
        traces.sort_by_key(|(path, header)| (place(header).unwrap_or(usize::MAX), path.clone()));
        Ok(Contents {
            results,
            distributions: distributions.map(|file| file.distributions).unwrap_or_default(),
            paths: paths.map(|file| file.paths).unwrap_or_default(),
            replays: replays.map(|file| file.replays).unwrap_or_default(),
            figures: figures.map(|file| file.figures).unwrap_or_default(),
            findings: findings.map(|file| file.findings).unwrap_or_default(),
            traces,
        })
    }
}

/// The candidate whose trace lies at `path`. A header has the policy alone; what a candidate does to
/// it, such as a setting, is in the file's name.
fn candidate_of(path: &Path, header: &Header, results: &Results) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let is_of = |row: &&Row| {
        let (workload, world) = (row.workload.clone(), row.world.to_string());
        [vec![], vec![workload.clone()], vec![world.clone()], vec![workload, world]]
            .into_iter()
            .map(|before| [before, vec![row.candidate.clone()]].concat().join("-"))
            .any(|own| name == format!("{}-{}cpu", plain(&own), row.cpus))
    };
    let row = results.rows.iter().filter(|row| row.cpus == header.cpus).find(is_of)?;
    Some(row.candidate.clone())
}

/// Reads a JSON file with a schema version.
fn read_stamped<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<(Stamp, T), Error> {
    let input = |message: String| Error::Input(format!("{}: {message}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => input(
            "there are no results here; `-o DIR` of `compare` and `queue` writes them".to_string(),
        ),
        _ => Error::unreadable(path, &error, "a directory of results"),
    })?;
    stamped(&text).map_err(input)
}

/// The same for an optional file, which the same program must have written.
fn read_optional<T: for<'a> Deserialize<'a>>(
    dir: &Path,
    file: &str,
    stamp: &Stamp,
    results: &Results,
) -> Result<Option<T>, Error> {
    let path = dir.join(file);
    if !path.exists() {
        return Ok(None);
    }
    let (other, content) = read_stamped(&path)?;
    same_version(&path, &other.version, &stamp.version, results)?;
    Ok(Some(content))
}

fn same_version(
    path: &Path,
    version: &str,
    expected: &str,
    results: &Results,
) -> Result<(), Error> {
    if version == expected {
        return Ok(());
    }
    let (path, command) = (path.display(), &results.command);
    Err(Error::Input(format!(
        "{path} was written by schedlab {version}, results.json by {expected}: these are results \
         of different runs; write them again: {command}"
    )))
}
