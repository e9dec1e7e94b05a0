//! Candidates that fail: one gives no numbers, says why, and the others continue.

use super::Section;
use program::Error;
use results::{Row, counted};
use std::fmt::Write;
use worlds::{Measure, Trial, World};

/// What the note of a row begins with that has no number for this reason.
pub const NOTE: &str = "failed: ";

/// A candidate that failed in a world.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What it was to run.
    workload: String,
    pub(super) candidate: String,
    pub(super) cpus: u16,
    /// Why, in the words of the world.
    why: Error,
}

impl Failed {
    /// The candidate of `trial`.
    pub fn of(trial: &Trial<'_>, why: &Error) -> Failed {
        let (workload, candidate) = (trial.program.name(), trial.candidate.to_string());
        Failed { workload, candidate, cpus: trial.cpus, why: why.clone() }
    }

    /// A row without a number for each metric of `trial`, its own, in `world`.
    pub fn rows(
        &self,
        trial: &Trial<'_>,
        world: &dyn World,
        baseline: Option<&str>,
        seed: u64,
    ) -> Vec<Row> {
        let baseline = baseline.filter(|baseline| *baseline != self.candidate).map(str::to_string);
        let row = |measure: Measure| {
            let row = trial.stamp(&Row::new(world.name(), measure.metric), Some(seed));
            let note = Some(format!("{NOTE}{}", self.first_line()));
            Row { runs: 0, baseline: baseline.clone(), note, ..row }
        };
        world.measures(trial.program, trial.cpus).into_iter().map(row).collect()
    }

    fn first_line(&self) -> String {
        let text = self.why.to_string();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if lines.next().is_none() { text } else { first.trim_end_matches(':').to_string() }
    }
}

/// `error` of a run of `trial`; that of a workload names the trial.
pub fn of_run(trial: &Trial<'_>, error: Error) -> Error {
    match error {
        Error::Input(message) => Error::Input(format!("{trial}: {message}")),
        other => other,
    }
}

/// One line for each failed candidate of `section`.
pub fn lines(section: &Section<'_>) -> String {
    section.failed.iter().fold(String::new(), |mut text, failed| {
        let Failed { workload, candidate, .. } = failed;
        let cpus = counted(failed.cpus.into(), "CPU");
        let _ = writeln!(text, "{candidate} failed ({workload}, {cpus}): {}", failed.first_line());
        text
    })
}

/// The error at the end of an experiment in which candidates failed and others did not; each
/// reason once. It is [`Error::Check`], whatever the reasons are.
///
/// # Errors
/// If any failed.
pub fn end(sections: &[Section<'_>]) -> Result<(), Error> {
    let mut reasons: Vec<String> = Vec::new();
    let failed = sections.iter().flat_map(|section| &section.failed);
    for why in failed.map(|failed| failed.why.to_string()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Error::Check(reasons.join("\n"))) }
}
