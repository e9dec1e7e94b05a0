//! What one world made of one workload.

use super::samples::Fidelity;
use super::starving::Starving;
use crate::Error;
use crate::results_directory::Distribution;
use crate::statistics::Comparison;
use crate::world::Trial;
use results::Row;

/// The results of a workload in a world.
pub struct Section<'p> {
    /// The workload, by its number.
    pub program: usize,
    /// The world, by its number.
    pub world: usize,
    /// What was run.
    pub trials: Vec<Trial<'p>>,
    /// What candidates are compared with.
    pub baseline: Option<String>,
    /// The results.
    pub rows: Vec<Row>,
    /// What is to be decided about them.
    pub compared: Vec<(usize, Comparison)>,
    /// How its durations are distributed.
    pub distributions: Vec<Distribution>,
    /// How close a replay is to its recording.
    pub fidelity: Vec<Fidelity>,
    /// Candidates that let programs starve.
    pub starving: Vec<Starving>,
    /// Further sentences.
    pub notes: String,
    /// Each value of each run, where runs are never the same, for others to judge.
    pub singles: String,
    /// Whether the same command gives the same digits.
    pub is_repeatable: bool,
    /// What was wrong with it, if anything was.
    pub end: Result<(), Error>,
}

impl Section<'_> {
    /// One without results, of which nothing is wrong.
    pub fn new() -> Self {
        Section {
            program: 0,
            world: 0,
            trials: Vec::new(),
            baseline: None,
            rows: Vec::new(),
            compared: Vec::new(),
            distributions: Vec::new(),
            fidelity: Vec::new(),
            starving: Vec::new(),
            notes: String::new(),
            singles: String::new(),
            is_repeatable: true,
            end: Ok(()),
        }
    }
}
