//! The runner (`crates/runner`) on this machine: one start for each run, isolated in a session of its own, watched and killable.

use super::guard::Guard;
use crate::Error;
use crate::vm::initramfs;
use rustix::fs::{MemfdFlags, memfd_create};
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The runner's program, in memory: there is no file that could be left behind.
pub struct Runner {
    file: File,
    /// Where commands run; where this program does if it is not said.
    pub directory: Option<PathBuf>,
}

impl Runner {
    /// Makes it ready.
    ///
    /// # Errors
    /// [`Error::Missing`] if this program was built without it.
    pub fn new() -> Result<Runner, Error> {
        let bytes = initramfs::runner()?;
        let failed = |error: std::io::Error| Error::Internal(format!("the runner cannot be made ready: {error}"));
        let mut file = File::from(memfd_create("schedlab-runner", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?);
        file.write_all(bytes).map_err(failed)?;
        Ok(Runner { file, directory: None })
    }

    /// Where it can be executed from, as long as this is there.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// A command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.path());
        command.current_dir(self.directory.as_deref().unwrap_or(Path::new(".")));
        command
    }

    /// Does `session` and gives what it reports. Whatever it leaves behind is ended by the guard, if not by itself.
    ///
    /// # Errors
    /// If it cannot be started; what fails inside is an [`Event::Failed`].
    pub fn run(&self, session: &Session, guard: &mut Guard) -> Result<Vec<Event>, Error> {
        let failed = |error: std::io::Error| Error::Internal(format!("the runner cannot be started: {error}"));
        let mut child = self.command().arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        guard.watch(child.id())?;
        let text = serde_json::to_vec(session).map_err(|error| Error::Internal(error.to_string()))?;
        let told = child.stdin.take().map(|mut stdin| stdin.write_all(&text));
        let events = child.stdout.take().map_or(Vec::new(), |stdout| events(BufReader::new(stdout)));
        let status = child.wait().map_err(failed)?;
        guard.ended(child.id())?;
        match told {
            Some(Err(error)) => Err(Error::Internal(format!("the runner did not take its orders: {error}; it ended with {status}"))),
            _ => Ok(events),
        }
    }
}

/// The events in the runner's output; a line that is none is a failure by itself.
pub fn events(output: impl BufRead) -> Vec<Event> {
    let event = |line: String| {
        serde_json::from_str(&line).unwrap_or_else(|_| Event::Failed { message: format!("the runner said what is no event: {line}") })
    };
    output.lines().map_while(Result::ok).map(event).collect()
}
