//! The results of one workload in one world.

use super::failed::Failed;
use super::samples::Fidelity;
use super::starving::Starving;
use super::unfinished::Unfinished;
use crate::results_directory::Distribution;
use program::Error;
use results::fidelity::Replayed;
use results::{Row, World};
use statistics::Comparison;
use worlds::{Program, Trial};

/// The results of a workload in a world.
pub struct Section<'p> {
    /// The index of the workload.
    pub program: usize,
    /// The index of the world.
    pub world: usize,
    /// The trials.
    pub trials: Vec<Trial<'p>>,
    /// The baseline.
    pub baseline: Option<String>,
    /// The results.
    pub rows: Vec<Row>,
    /// The numbers of each run of an ensemble of several: those of whole runs.
    pub members: Vec<Row>,
    /// The comparisons to decide.
    pub compared: Vec<(usize, Comparison)>,
    /// The distributions of durations.
    pub distributions: Vec<Distribution>,
    /// The distance of the replay from its recording.
    pub fidelity: Vec<Fidelity>,
    /// Candidates that failed: they have rows without numbers.
    pub failed: Vec<Failed>,
    /// Candidates that let programs starve.
    pub starving: Vec<Starving>,
    /// Candidates with unfinished tasks.
    pub unfinished: Vec<Unfinished>,
    /// Remarks.
    pub notes: String,
    /// Each value of each run, for worlds where runs are never equal.
    pub singles: String,
    /// Whether the same command gives the same digits.
    pub is_repeatable: bool,
    /// The problem, if there was one.
    pub end: Result<(), Error>,
}

impl Section<'_> {
    /// An empty section without a problem.
    pub fn new() -> Self {
        Section {
            program: 0,
            world: 0,
            trials: Vec::new(),
            baseline: None,
            rows: Vec::new(),
            members: Vec::new(),
            compared: Vec::new(),
            distributions: Vec::new(),
            fidelity: Vec::new(),
            failed: Vec::new(),
            starving: Vec::new(),
            unfinished: Vec::new(),
            notes: String::new(),
            singles: String::new(),
            is_repeatable: true,
            end: Ok(()),
        }
    }

    /// How far the replays of `program` were from its recording; none if it is not a recording.
    pub fn replayed(&self, program: &Program) -> Option<Replayed> {
        let (Program::Replay(replay), Some(policy)) = (program, &self.baseline) else {
            return None;
        };
        let whole = || self.fidelity.iter().filter(|of| of.subject.is_none());
        let runs = whole().map(|of| of.replayed.len()).max()?;
        Some(Replayed {
            workload: program.name(),
            world: self.rows.first().map_or(World::Sim, |row| row.world.clone()),
            policy: policy.clone(),
            cpus: replay.recorded.recording.cpus,
            runs: runs as u32,
            errors: whole().map(Fidelity::summary).collect(),
        })
    }
}
