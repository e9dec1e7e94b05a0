//! A closed workload in a guest: once undisturbed, which gives CPU times and the makespan, and once with the kernel's scheduling events, which become a trace like any
//! other and pass through the same metrics.
//!
//! Recording an event takes the kernel instructions, which are part of the latencies of the second run: what that comes to is the difference of the two makespans.

use super::conformance::{Collector, Turns};
use super::{Transcript, kernel};
use crate::Error;
use crate::import::{self, Options, Recording};
use schedlab_runner::class::Class;
use schedlab_runner::event::{Event, TaskResult};
use schedlab_runner::session::Job;
use schedsim::metrics::{Metrics, Summary};
use schedsim::workload::{Closed, CostEstimator, Costs};
use schedsim::{Nanos, SliceCheck, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The two jobs.
pub fn jobs(name: &str, workload: &Closed, class: Class) -> Vec<Job> {
    let job = |trace| Job { name: name.to_string(), workload: workload.clone(), class, windows: None, trace };
    vec![job(false), job(true)]
}

/// What the two jobs came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// From the release of the tasks until the last one had ended or the workload's time was over, undisturbed.
    pub makespan: Nanos,
    /// The same while events were recorded.
    pub makespan_traced: Nanos,
    /// What each task came to, undisturbed.
    pub tasks: Vec<TaskResult>,
    /// The same while events were recorded.
    pub tasks_traced: Vec<TaskResult>,
    /// The events as `perf script` would print them.
    pub trace: String,
    /// How many events the guest's buffer had no room for.
    pub lost: u64,
}

/// A guest's trace, read.
pub struct Traced {
    /// Who its tasks are.
    pub recording: Recording,
    /// Its metrics.
    pub summary: Summary,
    /// What scheduling cost there.
    pub costs: Costs,
    /// What the workload's tasks did, by its numbers; of one CPU only.
    pub turns: Turns,
    /// When this kernel looks whether a slice is over, from the begin of the workload on.
    pub slice_check: SliceCheck,
}

impl Measured {
    /// Reads the jobs `first` and `first + 1` of a transcript, as [`jobs`] made them; `None` if they did not end.
    pub fn of(transcript: &Transcript, first: usize) -> Option<Measured> {
        let end = |number: usize| {
            transcript.events.iter().find_map(|event| match event {
                Event::JobEnd { job, ns, tasks } if *job == number => Some((Nanos(*ns), tasks.clone())),
                _ => None,
            })
        };
        let ((makespan, tasks), (makespan_traced, tasks_traced)) = (end(first)?, end(first + 1)?);
        let ours: BTreeSet<u32> = tasks_traced.iter().map(|task| task.tid).collect();
        let mut measured = Measured { makespan, makespan_traced, tasks, tasks_traced, trace: String::new(), lost: 0 };
        for event in &transcript.events {
            match event {
                Event::Trace { job, line } if *job == first + 1 => append(&mut measured.trace, line, &ours),
                Event::TraceLost { job, events } if *job == first + 1 => measured.lost = *events,
                _ => {}
            }
        }
        Some(measured)
    }

    /// The trace as events, with their metrics.
    ///
    /// # Errors
    /// If it is none that an import reads.
    pub fn read(&self) -> Result<Traced, Error> {
        let file = tempfile::NamedTempFile::new().map_err(|error| Error::output(&std::env::temp_dir(), error))?;
        std::fs::write(file.path(), &self.trace).map_err(|error| Error::output(file.path(), error))?;
        let (mut metrics, mut costs, mut turns) = (Metrics::new(0), CostEstimator::new(), Collector::default());
        let recording = import::read(file.path(), &Options::default(), vec![&mut metrics, &mut costs, &mut turns])?;
        let summary = metrics.finish(Time(recording.duration.0));
        let numbers: BTreeMap<u32, u32> = self.tasks_traced.iter().zip(0..).map(|(task, number)| (task.tid, number)).collect();
        let number = |task: TaskId| numbers.get(&recording.tasks.get(task.index())?.pid).copied();
        let (turns, slice_check) = (turns.turns(number), turns.slice_check(number, kernel::TICK));
        Ok(Traced { recording, summary, costs: costs.finish(), turns, slice_check })
    }

    /// What the tasks ran beyond `demand`, the work that they were given, for each switch of the recorded run: their calls and the way through the scheduler.
    /// `None` unless all have ended.
    pub fn beyond(&self, demand: Nanos, recorded: &Summary) -> Option<Nanos> {
        let all_ended = self.tasks_traced.iter().all(|task| task.ended_ns.is_some());
        let ran: u64 = self.tasks_traced.iter().map(|task| task.cpu_ns).sum();
        let switches = recorded.get("switches").filter(|&switches| all_ended && switches > 0.0)?;
        Some(Nanos((ran.saturating_sub(demand.0) as f64 / switches) as u64))
    }

    /// Each task's share of the CPU time of all, undisturbed.
    pub fn shares(&self) -> Vec<f64> {
        let all: u64 = self.tasks.iter().map(|task| task.cpu_ns).sum();
        self.tasks.iter().map(|task| task.cpu_ns as f64 / all.max(1) as f64).collect()
    }
}

/// Appends a line of tracefs as one of `perf script`. Wakings of the kernel's own threads are left out, so that latencies are those of the workload's tasks.
fn append(trace: &mut String, line: &str, ours: &BTreeSet<u32>) {
    // `  worker-79  [000] d..2. 3626636494: sched_waking: comm=worker pid=80 prio=120 target_cpu=000`
    let Some((before, ticks, event)) = columns(line) else { return };
    if ["sched_waking:", "sched_wakeup:"].iter().any(|waking| event.starts_with(waking)) {
        let woken = event.rsplit_once(" pid=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        if !woken.is_some_and(|woken| ours.contains(&woken)) {
            return;
        }
    }
    let _ = writeln!(trace, "{before} {}.{:09}: {event}", ticks / 1_000_000_000, ticks % 1_000_000_000);
}

/// What stands before the time, the time, and the event.
fn columns(line: &str) -> Option<(&str, u64, &str)> {
    for (at, _) in line.match_indices(": ") {
        let before = &line[..at];
        let word = before.rfind(' ')?;
        if let Ok(ticks) = before[word + 1..].parse() {
            return Some((&before[..word], ticks, &line[at + 2..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_becomes_perf_script_and_keeps_what_is_about_the_workload() {
        let ours = BTreeSet::from([80]);
        let mut trace = String::new();
        let lines = [
            "          <idle>-0       [000] d.h2. 1000000700: sched_waking: comm=a b: 7: c pid=80 prio=120 target_cpu=000",
            "          <idle>-0       [000] d.h2. 1000000800: sched_waking: comm=kworker/0:1 pid=12 prio=120 target_cpu=000",
            "          <idle>-0       [000] d..2. 1000000900: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=80 next_prio=120",
        ];
        lines.iter().for_each(|line| append(&mut trace, line, &ours));
        let times: Vec<&str> = trace.lines().map(|line| line.split(' ').find(|word| word.starts_with("1.")).unwrap()).collect();
        assert_eq!(times, ["1.000000700:", "1.000000900:"]);
    }
}
