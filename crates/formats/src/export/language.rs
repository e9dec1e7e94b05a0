//! Writes what the tasks of a program do, so that others can run it. It is a workload file,
//! rt-app's JSON, or a program in C.

use super::{c, description, rt_app};
use program::Error;
use schedsim::Nanos;
use schedsim::workload::Closed;
use std::path::Path;

/// A language for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Language {
    /// A workload file of schedlab, which does what the recorded tasks do
    Workload,
    /// The same in rt-app's JSON, for rt-app since 2026 (docs/rt-app.md)
    RtApp,
    /// The same as a program in C, which needs only the C library
    C,
}

impl Language {
    /// The language for a file name. `.json` alone is a trace.
    pub fn of_name(path: &Path) -> Option<Language> {
        let name = path.file_name()?.to_str()?;
        match name.strip_suffix(".zst").unwrap_or(name) {
            name if name.ends_with(".toml") => Some(Language::Workload),
            name if name.ends_with(".c") => Some(Language::C),
            name if name.ends_with(".rt-app.json") => Some(Language::RtApp),
            _ => None,
        }
    }

    /// Writes a program to the file `to`, compressed with zstd if its name ends in `.zst`. `length`
    /// is how long it took, if that is known.
    ///
    /// # Errors
    /// [`Error::Missing`] if the language has no words for something; the message says what to do.
    pub fn write(self, closed: &Closed, length: Option<Nanos>, to: &Path) -> Result<(), Error> {
        let text = match self {
            Language::Workload => return description::write_description(closed, to),
            Language::RtApp => rt_app::text(closed, length),
            Language::C => c::text(closed),
        };
        description::write_text(&text.map_err(Error::Missing)?, to)
    }
}
