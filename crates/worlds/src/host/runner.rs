//! Starts the runner (`crates/runner`) on this machine: once for each run, in a session of its own,
//! with a guard and a time limit.

use super::guard::Guard;
use crate::vm::initramfs;
use program::Error;
use rustix::fs::{MemfdFlags, memfd_create};
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The runner's program, in memory: no file is left behind.
pub struct Runner {
    file: File,
    /// Where commands run; by default where this program runs.
    pub directory: Option<PathBuf>,
}

impl Runner {
    /// Prepares the program.
    ///
    /// # Errors
    /// [`Error::Missing`] if this program was built without it, [`Error::Input`] if memory or a
    /// limit does not suffice.
    pub fn new() -> Result<Runner, Error> {
        let bytes = initramfs::runner()?;
        let failed = |error: std::io::Error| {
            Error::Input(format!(
                "the runner has no room in memory: {error}; free some, or raise the limit of \
                 files (ulimit -f)"
            ))
        };
        let mut file = File::from(
            memfd_create("schedlab-runner", MemfdFlags::CLOEXEC)
                .map_err(|error| failed(error.into()))?,
        );
        file.write_all(bytes).map_err(failed)?;
        Ok(Runner { file, directory: None })
    }

    /// The path to execute it from, while this exists.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// A command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.path());
        command.current_dir(self.directory.as_deref().unwrap_or(Path::new(".")));
        command
    }

    /// Executes `session` and returns its reports. The guard ends the processes that it leaves
    /// behind.
    ///
    /// # Errors
    /// If it cannot be started. A failure inside is an [`Event::Failed`].
    pub fn run(&self, session: &Session, guard: &mut Guard) -> Result<Vec<Event>, Error> {
        let failed = |error: std::io::Error| {
            Error::Internal(format!("the runner cannot be started: {error}"))
        };
        let mut child = self
            .command()
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        guard.watch(child.id())?;
        let text =
            serde_json::to_vec(session).map_err(|error| Error::Internal(error.to_string()))?;
        let told = child.stdin.take().map(|mut stdin| stdin.write_all(&text));
        let events =
            child.stdout.take().map_or(Vec::new(), |stdout| events(BufReader::new(stdout)));
        let status = child.wait().map_err(failed)?;
        guard.ended(child.id())?;
        match told {
            Some(Err(error)) => Err(Error::Input(format!(
                "the runner did not take its orders: {error}; it ended with {status}; if \
                 something killed it, run again"
            ))),
            _ => Ok(events),
        }
    }
}

/// The events in the runner's output; any other line is a failure.
pub fn events(output: impl BufRead) -> Vec<Event> {
    let event = |line: String| {
        serde_json::from_str(&line).unwrap_or_else(|_| Event::Failed {
            message: format!("the runner wrote a line that is no event: {line}"),
        })
    };
    output.lines().map_while(Result::ok).map(event).collect()
}
