//! The lock file of a result: everything that its numbers were made of, by SHA-256.

use program::{Error, write_whole};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::Path;

/// The name of the lock file in a directory of results.
pub const LOCK: &str = "inputs.lock";

/// The kind of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// The image of a guest's kernel.
    Kernel,
    /// An emulator with its firmware.
    Emulator,
    /// The plugin of an emulator.
    Plugin,
    /// The program that runs workloads in a guest.
    Runner,
    /// Another file of a guest: a scheduler, or a library that it needs.
    File,
    /// A file that the command line names: of a workload, a grid, a machine, costs.
    Workload,
    /// Another build of this program, whose instructions are counted.
    Build,
}

/// One input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What it is.
    pub kind: InputKind,
    /// Its name: a kernel's series, an emulator's version, a path.
    pub name: String,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// Where it came from, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The inputs of a result.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputLock {
    /// The inputs, sorted.
    pub inputs: Vec<Input>,
}

impl InputLock {
    /// A lock of these inputs, each once.
    pub fn new(mut inputs: Vec<Input>) -> InputLock {
        inputs.sort();
        inputs.dedup();
        InputLock { inputs }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// [`Error::Input`] if it cannot be read or is none.
    pub fn read(path: &Path) -> Result<InputLock, Error> {
        let wrong = |why: &dyn fmt::Display| {
            Error::Input(format!("{}: not a lock file of inputs: {why}", path.display()))
        };
        let text = fs::read_to_string(path)
            .map_err(|error| Error::unreadable(path, &error, "an inputs.lock, as -o DIR writes"))?;
        serde_json::from_str(&text).map_err(|error| wrong(&error))
    }

    /// Writes the lock file into the directory `dir`; without inputs, removes that of an earlier
    /// command.
    ///
    /// # Errors
    /// [`Error::Output`] if it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(LOCK);
        if self.inputs.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::output(&path, error))
                }
                _ => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&path, (text + "\n").as_bytes())
    }

    /// The input of this kind and name.
    pub fn find(&self, kind: InputKind, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.kind == kind && input.name == name)
    }
}

/// As in an error: `kernel 6.18`.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            InputKind::Kernel => "kernel",
            InputKind::Emulator => "QEMU",
            InputKind::Plugin => "plugin",
            InputKind::Runner => "runner",
            InputKind::File => "file",
            InputKind::Workload => "workload",
            InputKind::Build => "build",
        };
        write!(f, "{kind} {}", self.name)
    }
}
