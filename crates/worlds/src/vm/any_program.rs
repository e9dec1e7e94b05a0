//! Any program in a guest: its jobs, how it ended, and its tasks in the trace.
//!
//! It runs twice, each time from the same saved state: one run is undisturbed, for the makespan and
//! the output. The other records the kernel's scheduling events, for everything else.

use super::Transcript;
use super::closed::{self, Traced};
use program::Error;
use results::counted;
use schedlab_runner::class::Class;
use schedlab_runner::event::{self, Event, Limit, Stream};
use schedlab_runner::session::{Command, Job};
use schedsim::Nanos;
use schedsim::workload::Closed;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a program ended, and what it wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// From its release to its end.
    pub makespan: Nanos,
    /// Its process id.
    pub pid: u32,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// And to its standard error.
    pub stderr: Vec<u8>,
}

/// The job that runs `command`.
pub fn job(command: &Command, class: Class, trace: bool) -> Job {
    let name = command.words.join(" ");
    Job { trace, command: Some(command.clone()), ..Job::new(name, Closed::default(), class) }
}

impl Ended {
    /// The end of the first job of a transcript.
    ///
    /// # Errors
    /// [`Error::Inconclusive`] if it went beyond a limit.
    pub fn of(transcript: &Transcript, name: &str) -> Result<Ended, Error> {
        let (stdout, stderr) =
            (written(transcript, Stream::Stdout), written(transcript, Stream::Stderr));
        for event in &transcript.events {
            match event {
                Event::CommandEnd { job: 0, ns, pid, wait_status } => {
                    let status = ExitStatus::from_raw(*wait_status);
                    let (makespan, pid) = (Nanos(*ns), *pid);
                    return Ok(Ended { status, makespan, pid, stdout, stderr });
                }
                Event::Limit { job: 0, limit, most } => {
                    let said = last_words(&stdout, &stderr).unwrap_or_default();
                    let console = &transcript.console;
                    return Err(Error::Inconclusive(format!(
                        "`{name}` {}{said}; the end of the guest's console:{console}",
                        beyond(*limit, *most)
                    )));
                }
                _ => {}
            }
        }
        Err(Error::Internal(format!("the guest does not say how `{name}` ended")))
    }

    /// Why the run gives no numbers, if the program failed.
    pub fn failure(&self, name: &str) -> Option<String> {
        const ILLEGAL_INSTRUCTION: i32 = 4;
        if self.status.success() {
            return None;
        }
        let said = last_words(&self.stdout, &self.stderr).unwrap_or_default();
        let hint = match self.status.signal() {
            Some(ILLEGAL_INSTRUCTION) => {
                "; the guest's CPU has no AVX and nothing newer than SSE 4.2 and POPCNT"
            }
            _ => "",
        };
        Some(format!("`{name}` ended with {}{hint}{said}", self.status))
    }
}

/// How it went beyond a limit, and what raises it.
fn beyond(limit: Limit, most: u64) -> String {
    const MIB: u64 = 1 << 20;
    let of_memory = "give the guest more --memory";
    match limit {
        Limit::Time => {
            let most = Nanos(most);
            format!("was not done after {most} on the guest's clock and was ended (--timeout)")
        }
        Limit::Tasks => format!(
            "has more than {} at a time and was ended; {of_memory}, which allows more",
            counted(usize::try_from(most).unwrap_or(usize::MAX), "task")
        ),
        Limit::Memory => format!(
            "takes more than {} MiB of memory, half of the guest's, and was ended; {of_memory}",
            most / MIB
        ),
        Limit::Output => format!("writes more than {} MiB of output", most / MIB),
    }
}

/// The last line that it wrote.
fn last_words(stdout: &[u8], stderr: &[u8]) -> Option<String> {
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_string())
    };
    last(stderr).or_else(|| last(stdout)).map(|line| format!("; its output ends: {line}"))
}

/// The bytes of an output of the first job.
fn written(transcript: &Transcript, of: Stream) -> Vec<u8> {
    let parts = transcript.events.iter().filter_map(|event| match event {
        Event::Output { job: 0, stream, bytes } if *stream == of => Some(bytes),
        _ => None,
    });
    parts.flat_map(|part| event::written(part)).collect()
}

/// The trace of the first job of a transcript, if no event was lost. It comes with the metrics of
/// the program's tasks: of the process `pid` and of those that descend from it. `Err` has the
/// number of lost events.
///
/// # Errors
/// The outer one if it is no trace that an import reads.
pub fn traced(transcript: &Transcript, pid: u32) -> Result<Result<Traced, u64>, Error> {
    let lost = transcript.events.iter().find_map(|event| match event {
        Event::TraceLost { job: 0, events } => Some(*events),
        _ => None,
    });
    if let Some(lost) = lost {
        return Ok(Err(lost));
    }
    let trace = closed::trace_of(transcript, 0);
    Traced::read(&trace, descendants(&trace, pid)).map(Ok)
}

/// `pid` and all that its tasks forked, by the events of a trace.
fn descendants(trace: &str, pid: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::from([pid]);
    for line in trace.lines() {
        let Some((_, event)) = line.split_once(": sched_process_fork: ") else { continue };
        // Names may contain anything; numbers follow the last of each.
        let number = |after: &str| {
            let (_, rest) = event.rsplit_once(after)?;
            rest.split(' ').next()?.parse::<u32>().ok()
        };
        let parent = event.split_once(" child_comm=").and_then(|(parent, _)| {
            parent.rsplit_once(" pid=").and_then(|(_, pid)| pid.parse::<u32>().ok())
        });
        if let Some((parent, child)) = parent.zip(number(" child_pid="))
            && all.contains(&parent)
        {
            all.insert(child);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(events: Vec<Event>) -> Transcript {
        Transcript { events, console: "\n    OOM".to_string(), ..Transcript::default() }
    }

    #[test]
    fn the_program_is_the_process_and_its_descendants_and_no_helper() {
        let fork = |parent: &str, pid: u32, child: u32| {
            format!(
                "x-1 [000] d..1. 1.000000000: sched_process_fork: comm={parent} pid={pid} \
                 child_comm={parent} child_pid={child}\n"
            )
        };
        let trace = fork("kthreadd", 2, 90)
            + &fork("sh", 80, 81)
            + &fork("a child_pid=7", 81, 82)
            + &fork("init", 1, 83)
            + &fork("sh", 83, 84);
        assert_eq!(descendants(&trace, 80), BTreeSet::from([80, 81, 82]));
    }

    #[test]
    fn every_byte_comes_back_and_so_does_the_status() {
        let all: Vec<u8> = (0..=255).collect();
        let bytes: String = all.iter().map(|&byte| char::from(byte)).collect();
        let part = |stream, bytes: &str| Event::Output { job: 0, stream, bytes: bytes.to_string() };
        let end = |wait_status| Event::CommandEnd { job: 0, ns: 5, pid: 80, wait_status };
        let line = serde_json::to_string(&part(Stream::Stdout, &bytes)).unwrap();
        let again: Event = serde_json::from_str(&line).unwrap();
        let error = part(Stream::Stderr, "no such file\n");
        let ended =
            Ended::of(&transcript(vec![again, error, part(Stream::Stdout, "z"), end(3 << 8)]), "p")
                .unwrap();
        assert_eq!(ended.stdout, [all, vec![b'z']].concat());
        assert_eq!((ended.status.code(), ended.makespan), (Some(3), Nanos(5)));
        let failure = ended.failure("p").unwrap();
        assert!(
            failure.contains("exit status: 3") && failure.contains("no such file"),
            "{failure}"
        );
        let killed = Ended::of(&transcript(vec![end(4)]), "p").unwrap();
        assert!(
            killed.failure("p").is_some_and(|why| why.contains("SIGILL") && why.contains("no AVX"))
        );
        assert_eq!(Ended::of(&transcript(vec![end(0)]), "p").unwrap().failure("p"), None);
    }

    #[test]
    fn each_limit_is_told_by_name_with_the_console_and_ends_with_5() {
        for (limit, most, word) in [
            (Limit::Time, 1_000_000_000, "not done after 1.00s"),
            (Limit::Tasks, 900, "more than 900 tasks"),
            (Limit::Memory, 200 << 20, "more than 200 MiB"),
            (Limit::Output, 8 << 20, "more than 8 MiB of output"),
        ] {
            let events = vec![Event::Limit { job: 0, limit, most }];
            let error = Ended::of(&transcript(events), "hog 7").unwrap_err();
            assert_eq!(error.exit_code(), 5);
            let text = error.to_string();
            assert!(["`hog 7`", word, "OOM"].iter().all(|word| text.contains(word)), "{text}");
        }
        assert_eq!(Ended::of(&transcript(Vec::new()), "p").unwrap_err().exit_code(), 1);
    }
}
