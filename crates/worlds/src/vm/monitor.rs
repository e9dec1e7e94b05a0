//! Talks to QEMU's monitor: finds out where a running guest is, and saves the state of a paused
//! one.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The prompt of QEMU's monitor.
const PROMPT: &str = "(qemu) ";
/// The longest time of a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(1);

/// A connection to it.
pub(super) struct Monitor {
    stream: UnixStream,
}

impl Monitor {
    /// Connects to the monitor at `path`.
    fn connect(path: &Path) -> io::Result<Monitor> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Monitor { stream };
        monitor.answer()?;
        Ok(monitor)
    }

    /// Makes QEMU write the state of a pausing guest to the file `name` in its directory, and end.
    pub fn keep(path: &Path, name: &str) -> Result<Monitor, String> {
        let mut monitor = Monitor::connect(path).map_err(failed)?;
        // The guest has reported that it pauses, and does so a few instructions later.
        monitor.wait_for_pause()?;
        let fast = monitor.ask("migrate_set_parameter max-bandwidth 1000G").map_err(failed)?;
        let said = monitor.ask(&format!("migrate \"exec:cat > {name}\"")).map_err(failed)?;
        let status = monitor.ask("info migrate").map_err(failed)?;
        if !is_completed(&status) {
            return Err(format!("{fast}{said}{status}"));
        }
        // It ends without an answer; a connection that is closed before cancels the command.
        match monitor.ask("quit") {
            Err(error)
                if [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset]
                    .contains(&error.kind()) =>
            {
                Ok(monitor)
            }
            Err(error) => Err(failed(error)),
            Ok(said) => Err(format!("it does not end: {said}")),
        }
    }

    /// Lets a guest continue as soon as its state is restored; `has_ended` says whether QEMU has.
    /// Keep the connection until QEMU ends: closing it would wake up its main loop, which must
    /// sleep where the guest idles (docs/adr/0009).
    pub fn go_on(path: &Path, mut has_ended: impl FnMut() -> bool) -> Result<Monitor, String> {
        let begin = Instant::now();
        let mut monitor = loop {
            match Monitor::connect(path) {
                Ok(monitor) => break monitor,
                Err(error) if has_ended() || begin.elapsed() > PATIENCE => {
                    return Err(failed(error));
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        };
        monitor.wait_for_pause()?;
        monitor.ask("cont").map_err(failed)?;
        Ok(monitor)
    }

    /// Waits until the guest stops where it requested.
    fn wait_for_pause(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let status = self.ask("info status").map_err(failed)?;
            if status.contains("guest-panicked") {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("the guest did not pause: {status}"));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn ask(&mut self, command: &str) -> io::Result<String> {
        self.stream.write_all(format!("{command}\n").as_bytes())?;
        self.answer()
    }

    /// The output until the next prompt.
    fn answer(&mut self) -> io::Result<String> {
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        while !text.ends_with(PROMPT.as_bytes()) {
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => text.extend_from_slice(&chunk[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&text).trim_end_matches(PROMPT).to_string())
    }
}

/// Whether the state is written: QEMU prints `Migration status: completed` up to version 9.2,
/// `Status: completed` since.
fn is_completed(status: &str) -> bool {
    status.lines().any(|line| {
        line.split_once(':').is_some_and(|(what, value)| {
            ["Migration status", "Status"].contains(&what.trim()) && value.trim() == "completed"
        })
    })
}

fn failed(error: io::Error) -> String {
    format!("QEMU's monitor: {error}")
}

/// The places of the guest's CPUs, in words.
pub(super) fn where_cpus_are(path: &Path) -> String {
    let text = Monitor::connect(path)
        .and_then(|mut monitor| monitor.ask("info registers -a"))
        .unwrap_or_default();
    let is_place =
        |word: &&str| ["RIP=", "EIP=", "CPU#"].iter().any(|begin| word.starts_with(begin));
    let words: Vec<&str> = text.split_whitespace().filter(is_place).collect();
    format!(
        "the CPUs are at {}",
        if words.is_empty() { "an unknown place".to_string() } else { words.join(" ") }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_state_is_recognised_in_the_words_of_each_qemu() {
        assert!(is_completed("globals:\nMigration status: completed\ntotal time: 5 ms"));
        assert!(is_completed("Status: \t\tcompleted\r\nTime (ms): \t\ttotal=113"));
        assert!(!is_completed("Status: \t\tfailed\nError: completed"));
        assert!(!is_completed(""));
    }
}
