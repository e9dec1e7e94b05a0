//! A command behind `--`, and what it may take and take along.

use clap::Args;
use program::Error;
use schedsim::Nanos;
use std::path::{Path, PathBuf};
use worlds::printed::{self, Reader, Readers};
use worlds::vm::program_files::Origin;

/// A command and its options.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of commands (-- COMMAND)")]
pub struct CommandArguments {
    /// In a guest: the file system in which the command runs, a directory or an archive that tar
    /// unpacks [default: the program, its libraries and interpreter, and the programs and files
    /// that its arguments name, from this machine]
    #[arg(long, value_name = "DIR|TAR")]
    root: Option<PathBuf>,
    /// In a guest: a package of Debian's, which is fetched with all that it needs and not
    /// installed. The command runs in a file system of such packages; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with = "root", requires = "command")]
    package: Vec<String>,
    /// In a guest: a further file or directory of this machine for the command; may be given
    /// several times
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// End what takes longer. A run on this machine is left out; a command in a guest, on whose
    /// clock this is, ends the comparison with exit code 5
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// A number that the command prints: NAME=json:/POINTER,UNIT,DIRECTION or
    /// NAME=regex:PATTERN,UNIT,DIRECTION, where the first group of the last match is the number and
    /// DIRECTION is lower, higher or neither; or a benchmark whose output is known: perf-bench,
    /// hackbench, cyclictest, schbench, redis-benchmark, fio. May be given several times
    #[arg(long, value_name = "READING", value_parser = Readers::parse, requires = "command")]
    metric: Vec<Readers>,
    /// The command to run instead of a workload, with its arguments
    #[arg(last = true, index = 2, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl CommandArguments {
    /// The longest run.
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// The numbers that the command prints itself.
    pub fn printed(&self) -> Vec<Reader> {
        self.metric.iter().flat_map(|readings| readings.0.clone()).collect()
    }

    /// Refuses two numbers of one name, and files for a guest where there is none.
    ///
    /// # Errors
    /// The name.
    pub fn check(&self, is_in_guest: bool) -> Result<(), Error> {
        let of_guests = [
            ("--root", self.root.is_some()),
            ("--package", !self.package.is_empty()),
            ("--with", !self.with.is_empty()),
        ];
        if let Some((option, _)) = of_guests.iter().find(|(_, is_given)| !is_in_guest && *is_given)
        {
            return Err(Error::Usage(format!(
                "{option} is for a command in a guest (--on vm); this machine has its own files"
            )));
        }
        printed::expect_distinct(&self.printed()).map_err(Error::Usage)
    }

    /// Where the files of the command come from in a guest; relative paths begin in `directory`.
    pub fn origin(&self, directory: Option<&Path>) -> Origin {
        let (root, with, packages) = (self.root.clone(), self.with.clone(), self.package.clone());
        Origin { root, packages, with, directory: directory.map(Path::to_path_buf) }
    }
}
