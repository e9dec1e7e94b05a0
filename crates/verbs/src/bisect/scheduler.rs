//! `schedlab bisect scheduler`: in which commit of a scheduler a number changed.

use super::Question;
use crate::Measuring;
use clap::Args;
use program::Error;
use results::{Answer, Row};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use worlds::vm::commits::Commits;

/// In which commit of a scheduler a measurement changed
///
/// Each commit between the two, along first parents, is checked out into a folder of its own; `{}`
/// in the measurement is that folder. One that does not build, or whose scheduler the kernel ends,
/// is skipped. Counts are exact, so that each step is decided by one run; give --ensemble for other
/// numbers. The repository is only read.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab bisect scheduler --good v1.0 --bad main -- compare \
                        yield:8 --policy 'scx:{}/src/mine.bpf.c slice_ns=5ms'\n  schedlab bisect \
                        scheduler --git ../scx --good v1.0.19 --bad main --build 'cargo build \
                        --release -p scx_bpfland' -- compare yield:8 --policy \
                        'scx:{}/target/release/scx_bpfland'")]
pub(super) struct OfSchedulers {
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    git: PathBuf,
    /// A commit whose number is good
    #[arg(long, value_name = "COMMIT")]
    good: String,
    /// A later commit whose number is bad
    #[arg(long, value_name = "COMMIT")]
    bad: String,
    /// A command that builds the scheduler, run by `sh` in the folder of each commit
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    #[command(flatten)]
    pub question: Question,
}

/// What stands for the folder of a commit.
const FOLDER: &str = "{}";
/// How many lines of a build that fails are shown.
const SHOWN: usize = 12;

impl OfSchedulers {
    pub fn answer(&self) -> Result<Answer, Error> {
        let measurement = command(&self.question.measurement, Path::new(FOLDER))?;
        self.question.metric(&Measuring::read(&measurement)?)?;
        let commits = Commits::between(&self.git, &self.good, &self.bad, &[])?;
        let mut measure = |at: usize| -> Result<Row, Error> {
            let folder = commits.folder(at)?;
            self.build.as_deref().map_or(Ok(()), |build| built(build, &folder))?;
            let mut row = self.question.measure(&command(&self.question.measurement, &folder)?)?;
            row.point.set("commit", commits.hash(at));
            Ok(row)
        };
        self.question.answer("commit", &commits.names(), &mut measure)
    }
}

/// Runs a build in `folder`.
fn built(build: &str, folder: &Path) -> Result<(), Error> {
    let mut shell = Command::new("sh");
    let said = shell.args(["-c", build]).current_dir(folder).stdin(Stdio::null()).output();
    let said = said.map_err(|error| Error::Missing(format!("sh cannot be run: {error}")))?;
    if said.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&said.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(SHOWN)..].join("\n    ");
    Err(Error::Input(format!("`{build}` fails ({}): {shown}", said.status)))
}

/// The command line of a measurement of the commit in `folder`.
fn command(measurement: &[String], folder: &Path) -> Result<Vec<String>, Error> {
    if measurement.first().is_none_or(|verb| verb != "compare") {
        return Err(Error::Usage(
            "a measurement is a comparison, as in -- compare yield:8 --policy \
             'scx:{}/src/mine.bpf.c'"
                .to_string(),
        ));
    }
    if !measurement.iter().any(|word| word.contains(FOLDER)) {
        return Err(Error::Usage(
            "the measurement is of no commit: write {} where its folder is meant, as in --policy \
             'scx:{}/src/mine.bpf.c'"
                .to_string(),
        ));
    }
    let shown = folder.display().to_string();
    let mut words: Vec<String> =
        measurement.iter().map(|word| word.replace(FOLDER, &shown)).collect();
    let has = |name: &str| {
        measurement.iter().any(|word| word == name || word.starts_with(&format!("{name}=")))
    };
    // Counts are exact: one member decides.
    let usual = [("--on", "vm"), ("--ensemble", "1")];
    for (name, value) in usual.into_iter().filter(|(name, _)| !has(name)) {
        words.extend([name.to_string(), value.to_string()]);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_names_the_folder_of_a_commit() {
        let of = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_string).collect();
            command(&words, Path::new("/a/b")).map(|words| words.join(" "))
        };
        assert_eq!(
            of("compare yield:8 --policy scx:{}/x.bpf.c --on=vm").unwrap(),
            "compare yield:8 --policy scx:/a/b/x.bpf.c --on=vm --ensemble 1"
        );
        for wrong in ["compare yield:8", "queue {}"] {
            assert_eq!(of(wrong).unwrap_err().exit_code(), 2);
        }
    }

    #[test]
    fn a_build_that_fails_shows_the_end_of_what_it_says() {
        let error = built("echo broken >&2; exit 3", Path::new("/")).unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains("broken"), "{error}");
        assert!(built("true", Path::new("/")).is_ok());
    }
}
