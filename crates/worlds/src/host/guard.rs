//! Starts the guard of this machine: a process that restores everything when this program ends,
//! also if it is killed. See `crates/runner/src/guard.rs`.

use program::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running guard. When dropped, it ends what is left and restores what was changed; the drop
/// waits for that.
pub struct Guard {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The settings that were changed, with what they were.
    settings: Vec<(String, String)>,
}

impl Guard {
    /// Starts the guard by `runner`, the command that starts the runner.
    ///
    /// # Errors
    /// If the program was built without the runner, or no process can be made.
    pub fn start(mut runner: Command) -> Result<Guard, Error> {
        runner.arg("--guard").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = runner
            .spawn()
            .map_err(|error| Error::Internal(format!("the guard cannot be started: {error}")))?;
        let (Some(orders), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Internal("the guard has no pipes".to_string()));
        };
        let answers = BufReader::new(answers);
        Ok(Guard { process, orders: Some(orders), answers, settings: Vec::new() })
    }

    /// From now on the processes of this session end with this program.
    ///
    /// # Errors
    /// If the guard is gone.
    pub fn watch(&mut self, session: u32) -> Result<(), Error> {
        self.order(&format!("session\t{session}"))
    }

    /// Reports that the session is over.
    ///
    /// # Errors
    /// If the guard is gone.
    pub fn ended(&mut self, session: u32) -> Result<(), Error> {
        self.order(&format!("ended\t{session}"))
    }

    /// Writes `value` to a system setting, until this program ends.
    ///
    /// # Errors
    /// [`Error::Missing`] if it may not be written.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Error> {
        let missing = |error| {
            Error::Missing(format!(
                "{path} cannot be changed: {error}; be root, as in: sudo schedlab …"
            ))
        };
        let before = std::fs::read_to_string(path).map_err(missing)?;
        if before.trim() == value {
            return Ok(());
        }
        self.order(&format!("restore\t{path}\t{}", before.trim()))?;
        self.settings.push((path.to_string(), before.trim().to_string()));
        std::fs::write(path, value).map_err(missing)
    }

    fn order(&mut self, line: &str) -> Result<(), Error> {
        let gone = |error: std::io::Error| {
            Error::Input(format!(
                "the guard of this machine has gone: {error}; if something killed it, run again"
            ))
        };
        let orders = self
            .orders
            .as_mut()
            .ok_or_else(|| Error::Internal("the guard has no orders".to_string()))?;
        writeln!(orders, "{line}").and_then(|()| orders.flush()).map_err(gone)?;
        match self.answers.read_line(&mut String::new()) {
            Ok(0) => Err(gone(std::io::ErrorKind::UnexpectedEof.into())),
            answer => answer.map(|_| ()).map_err(gone),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.orders.take());
        if self.process.wait().is_ok_and(|status| status.code().is_some()) {
            return;
        }
        // Something killed the guard.
        for (path, value) in self.settings.drain(..).rev() {
            if let Err(error) = std::fs::write(&path, &value) {
                program::say(&format!(
                    "{path} could not be set back to {value}: {error}; do it by hand"
                ));
            }
        }
    }
}
