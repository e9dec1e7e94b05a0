//! The directory of a sweep: its cells, and the complete grid file, so that anyone can continue the
//! sweep from the directory alone.

use super::{Store, Sweep};
use program::{Error, prepare_directory, write_whole};
use std::fs;
use std::path::{Path, PathBuf};

/// The complete grid file; its first line names the build that computes the cells.
const GRID: &str = "grid.toml";
const BUILD_IS: &str = "# schedlab ";

/// The complete grid file of the sweep that was started in `dir`.
pub fn grid_of(dir: &Path) -> PathBuf {
    dir.join(GRID)
}

impl Sweep {
    /// Starts or continues the sweep in `dir`, and returns the store of its cells.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn begin(&self, dir: &Path) -> Result<Store, Error> {
        prepare_directory(dir)?;
        write_whole(&grid_of(dir), self.file().as_bytes())?;
        Store::open(&dir.join("cells"))
    }

    /// The sweep that was started in `dir`.
    ///
    /// # Errors
    /// If there is none, or its cells come from another build of the program.
    pub fn begun(dir: &Path) -> Result<Sweep, Error> {
        let file = grid_of(dir);
        let input = |message: String| Error::Input(format!("{}: {message}", file.display()));
        let wanted =
            "the directory that `schedlab sweep GRID.toml --shard 1/N -o DIR` has written to";
        let text =
            fs::read_to_string(&file).map_err(|error| Error::unreadable(&file, &error, wanted))?;
        let (build, grid) = text.split_once('\n').unwrap_or_default();
        match build.strip_prefix(BUILD_IS) {
            Some(build) if build == program::build() => {
                Sweep::parse(&file.display().to_string(), grid)
            }
            Some(other) => Err(input(format!(
                "its cells were computed by schedlab {other}, and this is {}: continue with that \
                 one",
                program::build()
            ))),
            None => Err(input("this is not the grid file of a sweep".to_string())),
        }
    }

    /// Refuses a directory with another sweep, or with one of another build.
    pub fn expect_no_other(&self, dir: &Path) -> Result<(), Error> {
        match fs::read_to_string(grid_of(dir)) {
            Ok(other) if other != self.file() => Err(Error::Usage(format!(
                "{} is of another sweep, or of another build of schedlab: give another directory \
                 with -o",
                dir.display()
            ))),
            _ => Ok(()),
        }
    }

    fn file(&self) -> String {
        format!("{BUILD_IS}{}\n{}", program::build(), self.complete)
    }
}
