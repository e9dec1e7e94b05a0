//! A directory of results: `-o DIR` writes it, complete or marked as unfinished, and `schedlab
//! report DIR` reads it.
//!
//! | file | content |
//! |---|---|
//! | `results.json`, `results.csv`, `results.parquet` | the rows; version and provenance too |
//! | `distributions.json` | latencies, CPU bursts and pauses: percentiles, histogram |
//! | `figures.json`, `P-FIG01.csv`, … | the figures of a paper: ours beside the printed numbers |
//! | `critical-paths.json` | the critical paths of a recording, piece by piece |
//! | `fidelity.json` | how far replays were from their recordings |
//! | `findings.json` | the findings of papers beyond their claims |
//! | `traces/*.trace`, `traces/*.pftrace` | the first run of each case: schedlab, Perfetto |
//! | `schedulers/` | what schedulers of sched_ext wrote, and what a compiled one did |
//! | `report.html` | the report |
//! | `UNFINISHED` | only while a command runs, or after it was killed |

pub mod distributions;

pub use distributions::{Distribution, Distributions};

use formats::export::{Format, export};
use formats::trace_file::Writer;
use formats::trace_source::TraceSource;
use indicatif::ProgressBar;
use program::{Error, plain, prepare_directory, write_whole};
use rayon::prelude::*;
use results::Results;
use results::critical_path::CRITICAL_PATHS;
use results::fidelity::FIDELITY;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The mark of a directory whose command still runs, or was killed.
pub const UNFINISHED: &str = "UNFINISHED";
/// What schedulers of sched_ext wrote.
pub const SCHEDULERS: &str = "schedulers";
/// The figures of a paper.
pub const FIGURES: &str = "figures.json";
/// The findings of papers beyond their claims.
pub const FINDINGS: &str = "findings.json";

/// A directory that a command writes its results to.
pub struct ResultsDirectory {
    path: PathBuf,
    /// Keeps others from writing there. The kernel opens it when the program ends.
    _lock: Option<File>,
}

impl ResultsDirectory {
    /// Checks that `dir` can be written to, and marks it as unfinished.
    pub fn begin(dir: &Path) -> Result<ResultsDirectory, Error> {
        prepare_directory(dir)?;
        let lock = lock(dir)?;
        write_whole(&dir.join(UNFINISHED), (Results::new(vec![]).command + "\n").as_bytes())?;
        // Files of an earlier command would be taken for those of this one.
        let files = [FIGURES, FINDINGS, CRITICAL_PATHS, FIDELITY].map(|file| dir.join(file));
        let folders = ["traces", SCHEDULERS].map(|folder| dir.join(folder));
        let files = files.into_iter().map(|file| (fs::remove_file(&file), file));
        let folders = folders.into_iter().map(|folder| (fs::remove_dir_all(&folder), folder));
        for (removed, path) in files.chain(folders) {
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::output(&path, error));
                }
                _ => {}
            }
        }
        Ok(ResultsDirectory { path: dir.to_path_buf(), _lock: lock })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for the trace of `policy` on `cpus` CPUs.
    pub fn trace(&self, policy: &str, cpus: u16) -> Result<PathBuf, Error> {
        let traces = self.path.join("traces");
        fs::create_dir_all(&traces).map_err(|error| Error::output(&traces, error))?;
        Ok(traces.join(format!("{}-{cpus}cpu.trace", plain(policy))))
    }

    /// The path for the trace of a single run.
    pub fn trace_of_run(&self) -> Result<PathBuf, Error> {
        let traces = self.path.join("traces");
        fs::create_dir_all(&traces).map_err(|error| Error::output(&traces, error))?;
        Ok(traces.join("run.trace"))
    }

    /// The path for what a compiled scheduler does, in words.
    pub fn trace_of_bpf(&self) -> Result<PathBuf, Error> {
        let folder = self.path.join(SCHEDULERS);
        fs::create_dir_all(&folder).map_err(|error| Error::output(&folder, error))?;
        Ok(folder.join("trace-bpf.txt"))
    }

    /// Writes the trace at `source` unchanged, for comparison with the runs.
    pub fn write_recording(&self, source: &TraceSource) -> Result<(), Error> {
        let mut writer = Writer::create(
            &self.trace(&source.header.candidate, source.header.cpus)?,
            &source.header,
        )?;
        source.feed(vec![&mut writer])?;
        writer.finish()
    }

    /// Writes each trace for Perfetto, beside the trace.
    pub fn export_traces(&self, progress: &ProgressBar) -> Result<(), Error> {
        let traces = traces_in(&self.path);
        progress.set_length(traces.len() as u64);
        traces.into_par_iter().try_for_each(|path| {
            export(&TraceSource::open(&path)?, Format::Perfetto, &path.with_extension("pftrace"))?;
            progress.inc(1);
            Ok(())
        })
    }

    /// Writes results and distributions.
    pub fn write(&self, results: &Results, distributions: Vec<Distribution>) -> Result<(), Error> {
        results.write(&self.path)?;
        if results::expect_parquet().is_err() {
            program::note(format!(
                "{} has the rows as JSON and CSV, not as Parquet: this build has no `parquet`; \
                 `make install` builds all of schedlab",
                self.path.display()
            ));
        }
        Distributions::new(distributions).write(&self.path)
    }

    /// Marks the directory as complete.
    pub fn finish(self) -> Result<(), Error> {
        complete(&self.path)
    }
}

/// Marks `dir` as complete.
pub fn complete(dir: &Path) -> Result<(), Error> {
    let mark = dir.join(UNFINISHED);
    match fs::remove_file(&mark) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::output(&mark, error)),
        _ => Ok(()),
    }
}

/// Locks a directory for its only writer; none where the file system has no locks.
fn lock(dir: &Path) -> Result<Option<File>, Error> {
    let folder = File::open(dir).map_err(|error| Error::output(dir, error))?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => Err(Error::Usage(format!(
            "another command is writing its results to {}; wait for its end, or give another \
             directory",
            dir.display()
        ))),
    }
}

/// The traces in a directory of results.
pub fn traces_in(dir: &Path) -> Vec<PathBuf> {
    let files =
        fs::read_dir(dir.join("traces")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "trace")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = ResultsDirectory::begin(folder.path()).unwrap();
        let refused = ResultsDirectory::begin(folder.path()).err().expect("it is refused");
        assert!(refused.to_string().contains("another command is writing"), "{refused}");
        assert!(folder.path().join(UNFINISHED).exists(), "the first one's mark is gone");
        first.finish().unwrap();
        ResultsDirectory::begin(folder.path()).unwrap();
    }
}
