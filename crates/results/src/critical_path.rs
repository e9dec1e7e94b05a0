//! Critical paths, piece by piece, as a file of a directory of results. The report draws them.

use crate::SCHEMA;
use program::{Error, write_whole};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file.
pub const CRITICAL_PATHS: &str = "critical-paths.json";

/// All paths, as a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CriticalPaths {
    /// The version of this schema, the same as that of the results.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// The run's first.
    pub paths: Vec<CriticalPath>,
}

/// One path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CriticalPath {
    /// What it is the path of.
    pub of: String,
    /// Its pieces, in order of time and without gaps.
    pub pieces: Vec<Piece>,
}

/// A piece of a path. Times are in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
    /// Whose it is.
    pub task: String,
    /// What the task does: `runs`, `waits for a CPU`, `sleeps`, or `not seen`.
    pub doing: String,
    /// The object through which it was woken, or on which it sleeps.
    pub object: Option<String>,
}

impl CriticalPaths {
    /// The paths, with the version of this program.
    pub fn new(paths: Vec<CriticalPath>) -> CriticalPaths {
        CriticalPaths { schema: SCHEMA, version: program::VERSION.to_string(), paths }
    }

    /// Writes the file to `dir`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join(CRITICAL_PATHS), json.as_bytes())
    }
}

impl CriticalPath {
    /// Its length.
    pub fn length(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.end - piece.start).sum()
    }
}
