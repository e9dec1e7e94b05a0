//! Restores the machine after a run: a process that outlives the program, however that one ends.
//!
//! It reads lines from its standard input, which the program holds open: `session PID`, `ended PID`
//! and `restore PATH VALUE`, separated by tabs. It answers each with `ok`. The input ends when the
//! program closes it, panics or is killed. The guard then kills the processes of each session and
//! writes each value back, the last one first.

use crate::attributes;
use std::io::{BufRead, Write};
use std::process::ExitCode;

/// Serves until the standard input ends.
pub fn stand() -> ExitCode {
    // SAFETY: a session of its own and no signals: Ctrl-C is for the program, and this process
    // waits for the program's end.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    // Above every process that it may have to end. Without the privilege, no process is above it
    // either.
    attributes::become_experimenter();
    let mut sessions: Vec<i32> = Vec::new();
    let mut settings: Vec<(String, String)> = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["session", pid] => sessions.extend(pid.parse::<i32>().ok().filter(|&pid| pid > 1)),
            ["ended", pid] => sessions.retain(|session| session.to_string() != pid),
            ["restore", path, value] => settings.push((path.to_string(), value.to_string())),
            _ => {}
        }
        let mut out = std::io::stdout();
        let _ = out.write_all(b"ok\n").and_then(|()| out.flush());
    }
    sessions.into_iter().for_each(end);
    let mut code = ExitCode::SUCCESS;
    for (path, value) in settings.into_iter().rev() {
        if let Err(error) = std::fs::write(&path, &value) {
            eprintln!("schedlab: {path} could not be set back to {value}: {error}; do it by hand");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Kills all processes of a session, those made meanwhile included.
fn end(session: i32) {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        let members: Vec<i32> = processes().filter(|&pid| is_of(pid, session)).collect();
        if members.is_empty() {
            return;
        }
        for pid in members {
            // SAFETY: it takes two numbers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether the process belongs to the session and is alive. `/proc/PID/stat` is `pid (name) state
/// parent group session …`, and the name may contain anything.
fn is_of(pid: i32, session: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let words: Vec<&str> = stat
        .rsplit_once(')')
        .map_or(Vec::new(), |(_, rest)| rest.split_ascii_whitespace().collect());
    let [state, _, _, of, ..] = words[..] else { return false };
    of.parse() == Ok(session) && state != "Z" && state != "X"
}
