//! How far replays were from their recordings, as a file of a directory of results. The report says
//! what it means.

use crate::{Metric, SCHEMA, World};
use program::{Error, write_whole};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file.
pub const FIDELITY: &str = "fidelity.json";

/// The replays of all recordings, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Replays {
    /// The version of this schema, the same as that of the results.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// One for each recording and world.
    pub replays: Vec<Replayed>,
}

/// A recording that was replayed unchanged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Replayed {
    /// The recording's name.
    pub workload: String,
    /// Where it was replayed.
    pub world: World,
    /// The policy that replayed it.
    pub policy: String,
    /// The recorded CPUs.
    pub cpus: u16,
    /// The number of replays.
    pub runs: u32,
    /// The errors of the complete run, metric by metric.
    pub errors: Vec<ReplayError>,
}

/// The error of the replays in one metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReplayError {
    /// The metric.
    pub metric: Metric,
    /// The recorded value.
    pub recorded: f64,
    /// The replays' median.
    pub replayed: f64,
    /// The smallest error of a replay, as a share of the recorded value; absent if that is zero.
    pub least: Option<f64>,
    /// The error that nine of ten replays do not exceed, as such a share. A difference must exceed
    /// it to be decided.
    pub error: Option<f64>,
}

impl Replays {
    /// The replays, with the version of this program.
    pub fn new(replays: Vec<Replayed>) -> Replays {
        Replays { schema: SCHEMA, version: program::VERSION.to_string(), replays }
    }

    /// Writes the file to `dir`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join(FIDELITY), json.as_bytes())
    }
}
