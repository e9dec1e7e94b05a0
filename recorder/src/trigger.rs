//! What ends a snapshot: a signal, or a command that succeeds.

use crate::error::Error;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often the command is run.
const PAUSE: Duration = Duration::from_secs(1);

static SIGNALLED: AtomicBool = AtomicBool::new(false);

/// What is waited for.
pub enum Trigger {
    /// A signal to the recorder.
    Signal,
    /// This command of the shell succeeds.
    Command { text: String, running: Option<Child>, latest: Option<Instant> },
}

extern "C" fn note(_: libc::c_int) {
    SIGNALLED.store(true, Relaxed);
}

impl Trigger {
    /// `SIGUSR1`, `SIGUSR2`, `SIGHUP`, or a command.
    ///
    /// # Errors
    /// If the signal cannot be handled.
    pub fn new(text: &str) -> Result<Trigger, Error> {
        let signal = match text {
            "SIGUSR1" => libc::SIGUSR1,
            "SIGUSR2" => libc::SIGUSR2,
            "SIGHUP" => libc::SIGHUP,
            _ => {
                let text = text.to_string();
                return Ok(Trigger::Command { text, running: None, latest: None });
            }
        };
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler stores a flag and nothing else.
        if unsafe { libc::signal(signal, handler) } == libc::SIG_ERR {
            return Err(Error::Internal(format!("{text} cannot be handled")));
        }
        Ok(Trigger::Signal)
    }

    /// Whether it has happened.
    ///
    /// # Errors
    /// If the command cannot be run.
    pub fn happened(&mut self) -> Result<bool, Error> {
        let Trigger::Command { text, running, latest } = self else {
            return Ok(SIGNALLED.load(Relaxed));
        };
        let failed = |error| Error::Usage(format!("--when: cannot run the command: {error}"));
        if let Some(child) = running {
            let Some(status) = child.try_wait().map_err(failed)? else { return Ok(false) };
            *running = None;
            return Ok(status.success());
        }
        if latest.is_none_or(|latest| latest.elapsed() >= PAUSE) {
            *latest = Some(Instant::now());
            let mut command = Command::new("sh");
            command.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null());
            *running = Some(command.spawn().map_err(failed)?);
        }
        Ok(false)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if let Trigger::Command { running: Some(child), .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
