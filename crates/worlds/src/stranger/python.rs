//! Policies in Python: a file with one subclass of `schedlab.Policy`.

use super::{Stranger, Terms};
use crate::failure::Failure;
use crate::sandbox::Sandbox;
use program::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// An interpreter with the package `schedlab`.
#[derive(Clone, Debug)]
pub struct Python {
    program: PathBuf,
    /// Its own library.
    prefixes: Vec<PathBuf>,
    /// The folder that has the package `schedlab`.
    packages: PathBuf,
}

/// Prints what a sandbox must be able to read: the interpreter, its library, and the folder of the
/// package.
const WHERE: &str = "import os, sys, sysconfig, schedlab\nfor path in (sys.executable, \
                     sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib'), \
                     sysconfig.get_config_var('LIBDIR') or '', \
                     os.path.dirname(os.path.dirname(schedlab.__file__))):\n    \
                     print(os.path.realpath(path) if path else '')";

/// Runs the candidate; the folder of the package is its first argument.
const RUN: &str = "import sys\nsys.path.insert(0, sys.argv[1])\nfrom schedlab import candidate\n\
                   candidate.serve(sys.argv[2])";

impl Python {
    /// Finds `python3`, or `program`.
    ///
    /// # Errors
    /// [`Error::Missing`] without it, or if it has no package `schedlab`.
    pub fn find(program: &Path) -> Result<Python, Error> {
        let missing = |why: &str| {
            Error::Missing(format!(
                "candidates in Python take {} with the package schedlab ({why}): in schedlab's \
                 folder, pip install .",
                program.display()
            ))
        };
        let found = Command::new(program).args(["-B", "-c", WHERE]).output();
        let found = found.map_err(|error| missing(&error.to_string()))?;
        let (said, errors) =
            (String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
        let paths: Vec<PathBuf> = said.lines().map(PathBuf::from).collect();
        match &paths[..] {
            [program, own @ .., packages] if found.status.success() => Ok(Python {
                program: program.clone(),
                prefixes: own.iter().filter(|path| path.is_dir()).cloned().collect(),
                packages: packages.clone(),
            }),
            _ => Err(missing(errors.trim().lines().last().unwrap_or("it says nothing"))),
        }
    }

    /// Prepares the policy in `file`, which is copied: of its folder it sees nothing else.
    ///
    /// # Errors
    /// If it cannot be read. What it has is known when it runs.
    pub fn prepare(&self, file: &Path, name: &str, terms: Terms) -> Result<Stranger, Failure> {
        let folder = scratch()?;
        let copy = folder.path().join("policy.py");
        let text = fs::read(file)
            .map_err(|error| Failure::NotAPolicy(format!("{}: {error}", file.display())))?;
        fs::write(&copy, text).map_err(|error| Failure::Missing(error.to_string()))?;
        let mut sandbox = Sandbox::of(&self.program, folder.path(), terms.memory);
        sandbox.arguments = ["-s", "-S", "-B", "-c", RUN].map(OsString::from).to_vec();
        sandbox.arguments.extend([self.packages.clone().into(), copy.into()]);
        // Sets and dictionaries of texts have one order in all runs.
        sandbox.environment = vec![("PYTHONHASHSEED".into(), "0".into())];
        sandbox.reads.extend(self.prefixes.iter().cloned());
        sandbox.reads.extend([self.packages.join("schedlab"), folder.path().to_path_buf()]);
        sandbox.lists.push(self.packages.clone());
        Ok(Stranger {
            name: name.to_string(),
            sandbox,
            secret: terms.secret,
            _folder: Arc::new(folder),
        })
    }
}

/// A folder of a candidate's own.
pub(super) fn scratch() -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix("policy-").tempdir().map_err(|error| {
        Failure::Missing(format!("a temporary folder cannot be made: {error}; set TMPDIR"))
    })
}
