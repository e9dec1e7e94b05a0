//! A subject that is a process: it reads events from its standard input and answers on its
//! standard output, a line each.

use crate::format::{Answer, Event};
use crate::lines::line;
use crate::subject::{Broken, Subject};
use std::io::{BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A process under test. It and what it has started are killed at the end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// To the thread that writes; a process that does not read cannot stop us.
    events: Option<SyncSender<String>>,
    /// From the thread that reads. `Err` says why there is no more.
    answers: Receiver<Result<String, String>>,
    deadline: Duration,
    /// Whether it has not answered in time.
    is_silent: bool,
}

impl Process {
    /// How long a process may take to answer.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// Starts `command`: a program and its arguments, separated by spaces; no shell reads it.
    pub fn start(command: &str, deadline: Duration) -> std::io::Result<Process> {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (events, to_write) = sync_channel::<String>(16);
        let (to_main, answers) = sync_channel(1);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            let Some(mut input) = input else { return };
            while let Ok(event) = to_write.recv() {
                if input.write_all(event.as_bytes()).and_then(|()| input.flush()).is_err() {
                    return; // it has ended, which the reading side sees
                }
            }
        });
        thread::spawn(move || {
            let Some(output) = output else { return };
            let (mut output, mut text) = (BufReader::new(output), String::new());
            loop {
                let next = match line(&mut output, &mut text) {
                    Ok(true) => Ok(text.clone()),
                    Ok(false) => return,
                    Err(why) => Err(why),
                };
                let is_last = next.is_err();
                if to_main.send(next).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Process { child, events: Some(events), answers, deadline, is_silent: false })
    }

    /// Its id, as the system has it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not answered in time.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// How the process has ended, if it does so soon.
    fn end(&mut self) -> String {
        let until = Instant::now() + Duration::from_secs(1).min(self.deadline);
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(Some(status)) => return format!("it ended ({status})"),
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Err(why) => return why.to_string(),
            }
        }
        "it closed its output".into()
    }
}

impl Subject for Process {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        let event = event.line();
        if let Ok(Ok(extra)) = self.answers.try_recv() {
            let extra: String = extra.chars().take(80).collect();
            return Err(Broken(format!("before {event} it said {extra:?} unasked")));
        }
        let sent = self.events.as_ref().is_some_and(|to| to.try_send(format!("{event}\n")).is_ok());
        let answer = match self.answers.recv_timeout(self.deadline) {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => return Err(Broken(format!("after {event}: {why}"))),
            Err(RecvTimeoutError::Timeout) => {
                self.is_silent = true;
                let seconds = self.deadline.as_secs_f64();
                return Err(Broken(format!(
                    "no answer to {event} in {seconds} s; flush each line"
                )));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let end = self.end();
                return Err(Broken(format!("no answer to {event}: {end}")));
            }
        };
        if !sent {
            return Err(Broken(format!("it answers without reading {event}")));
        }
        Answer::parse(&answer).map_err(|why| {
            let answer: String = answer.chars().take(80).collect();
            Broken(format!("after {event} it said {answer:?}: {why}"))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.events = None;
        // Killed with all that it has started, and waited for: no zombie stays. The threads end with
        // the pipes.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
