//! Measures a closed workload in a guest twice: one run is undisturbed, for CPU times and the
//! makespan. The other records the kernel's scheduling events, which become a trace with the usual
//! metrics.
//!
//! Recording an event takes the kernel instructions, which are part of the latencies of the second
//! run. The difference of the two makespans shows how many.

use super::background_load::{BackgroundLoad, SwitchCost, is_unscheduled};
use super::conformance::{Collector, Turns};
use super::witness::Witness;
use super::{Transcript, kernel};
use formats::import;
use formats::import::{Options, Recording};
use program::{Error, Scratch};
use schedlab_runner::class::Class;
use schedlab_runner::event::{Event, TaskResult};
use schedlab_runner::session::Job;
use schedsim::metrics::{Metrics, Summary};
use schedsim::trace::{EventKind, Observer};
use schedsim::workload::{Closed, CostEstimator, Costs, Phase, Tasks};
use schedsim::{CpuId, Machine, Nanos, TaskId, Ticks, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The number of jobs that measure a workload.
pub const JOBS: usize = 2;

/// The two jobs.
pub fn jobs(name: &str, workload: &Closed, class: Class) -> Vec<Job> {
    let job = |trace| Job { trace, ..Job::new(name, workload.clone(), class) };
    vec![job(false), job(true)]
}

/// The job that measures the cost of a switch there: two tasks that only yield, recorded like the
/// workload.
pub fn switching(class: Class) -> Job {
    const ROUNDS: u64 = 200;
    let yielder = Tasks {
        count: 2,
        ..Tasks::new("yielder", vec![Phase::repeat(ROUNDS, vec![Phase::Yield])])
    };
    let workload = Closed { tasks: vec![yielder], ..Closed::default() };
    Job { trace: true, ..Job::new("switch", workload, class) }
}

impl SwitchCost {
    /// The result of [`switching`] as job number `job`. It is the busy time of a CPU per run, or
    /// per yield where many return to the same task without a switch.
    ///
    /// # Errors
    /// If the trace is none that an import reads.
    pub fn of(transcript: &Transcript, job: usize) -> Result<Option<SwitchCost>, Error> {
        let Some((_, tasks)) = end(transcript, job) else { return Ok(None) };
        let threads = tasks.iter().map(|task| task.tid);
        let traced = Traced::read(&trace(lines(transcript, job)), threads)?;
        let is_own = |task| traced.number(task).is_some();
        let begin = |event: &schedsim::trace::Event| match event.kind {
            EventKind::SchedSwitch { next, .. } if is_own(next) => Some(event.time),
            _ => None,
        };
        let begins: Vec<Time> = traced.events.iter().filter_map(begin).collect();
        let (Some(&first), Some(&last)) = (begins.first(), begins.last()) else { return Ok(None) };
        let (mut all, mut own, mut running) = (0, 0, BTreeMap::new());
        for event in traced.events.iter().filter(|event| (first..=last).contains(&event.time)) {
            let EventKind::SchedSwitch { next, .. } = event.kind else { continue };
            if let Some((since, is_own)) = running.remove(&event.cpu) {
                let ran = event.time.since(since).0;
                (all, own) = (all + ran, own + if is_own { ran } else { 0 });
            }
            if next != TaskId::NONE {
                running.insert(event.cpu, (event.time, is_own(next)));
            }
        }
        let yields = tasks.iter().filter_map(|task| task.operations.get("yield")).sum::<u64>();
        let each = |sum: u64| sum.checked_div(yields.max(begins.len() as u64 - 1)).map(Nanos);
        Ok(each(all).zip(each(own)).map(|(all, own)| SwitchCost { all, own }))
    }
}

/// The result of the two jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// From the release of the tasks to the end of the last one, or to the end of the workload's
    /// duration; undisturbed.
    pub makespan: Nanos,
    /// The same while events were recorded.
    pub makespan_traced: Nanos,
    /// The result of each task, undisturbed.
    pub tasks: Vec<TaskResult>,
    /// The same while events were recorded.
    pub tasks_traced: Vec<TaskResult>,
    /// The events as `perf script` would print them.
    pub trace: String,
    /// What a witness wrote beside them.
    pub witness: Witness,
    /// The number of events for which the guest's buffer had no room.
    pub lost: u64,
    /// The ticks while events were recorded, from the first of them on; only with one CPU.
    pub ticks: Option<Ticks>,
}

/// A guest's trace, read.
pub struct Traced {
    /// Its tasks.
    pub recording: Recording,
    /// All events, of other tasks as well.
    pub events: Vec<schedsim::trace::Event>,
    /// By task of the recording: its number in the workload, if it is one of its tasks.
    pub numbers: Vec<Option<u32>>,
    /// The metrics of the workload's tasks.
    pub summary: Summary,
    /// The costs of scheduling there.
    pub costs: Costs,
    /// The runs of the workload's tasks, by its numbers; only with one CPU.
    pub turns: Turns,
    /// The ticks of this kernel, from the begin of the workload on.
    pub ticks: Ticks,
}

impl Measured {
    /// Reads the jobs `first` and `first + 1` of a transcript, as [`jobs`] made them; `None` if
    /// they did not end.
    pub fn of(transcript: &Transcript, first: usize) -> Option<Measured> {
        let ((makespan, tasks), (makespan_traced, tasks_traced)) =
            (end(transcript, first)?, end(transcript, first + 1)?);
        let lost = transcript.events.iter().find_map(|event| match event {
            Event::TraceLost { job, events } if *job == first + 1 => Some(*events),
            _ => None,
        });
        let recorded = || lines(transcript, first + 1);
        let begin = recorded().next().map(|(_, ns, _)| ns);
        let ticks = transcript.events.iter().find_map(|event| match event {
            Event::Tick { job, ns, took_ns } if *job == first + 1 => {
                let first =
                    (i128::from(*ns) - i128::from(begin?)).rem_euclid(i128::from(kernel::TICK.0));
                Some(Ticks {
                    cost: Nanos(*took_ns),
                    ..Ticks::new(kernel::TICK, Time(first as u64))
                })
            }
            _ => None,
        });
        let trace = trace(recorded());
        let witness = Witness::of(texts(transcript, first + 1));
        Some(Measured {
            makespan,
            makespan_traced,
            tasks,
            tasks_traced,
            trace,
            witness,
            lost: lost.unwrap_or(0),
            ticks,
        })
    }

    /// The trace as events, with their metrics.
    ///
    /// # Errors
    /// If it is none that an import reads.
    pub fn read(&self) -> Result<Traced, Error> {
        let threads = self.tasks_traced.iter().map(|task| task.tid);
        let traced = Traced::read(&self.trace, threads)?;
        Ok(Traced { ticks: self.ticks.clone().unwrap_or(traced.ticks), ..traced })
    }
}

/// The share of each task in the CPU time of all.
pub fn shares(tasks: &[TaskResult]) -> Vec<(String, f64)> {
    let all: u64 = tasks.iter().map(|task| task.cpu_ns).sum();
    tasks.iter().map(|task| (task.name.clone(), task.cpu_ns as f64 / all.max(1) as f64)).collect()
}

impl Traced {
    /// The scheduling events of the threads with these ids, in the order of the workload's tasks.
    pub(super) fn read(
        trace: &str,
        threads: impl IntoIterator<Item = u32>,
    ) -> Result<Traced, Error> {
        let scratch = Scratch::new()?;
        let file = scratch.path().join("trace");
        std::fs::write(&file, trace).map_err(|error| Error::output(&file, error))?;
        let mut collector = Collector::default();
        let recording = import::read(&file, &Options::default(), vec![&mut collector])?;
        let of: BTreeMap<u32, u32> = threads.into_iter().zip(0..).collect();
        let numbers: Vec<Option<u32>> =
            recording.tasks.iter().map(|task| of.get(&task.pid).copied()).collect();
        let others = (0..)
            .zip(&numbers)
            .filter(|(_, number)| number.is_none())
            .map(|(task, _)| TaskId(task));
        let (mut metrics, mut costs) =
            (Metrics::new(0).with_parts().excluding(others), CostEstimator::new());
        metrics.events(&collector.events);
        costs.events(&collector.events);
        let number = |task: TaskId| numbers.get(task.index()).copied().flatten();
        let (turns, ticks) = (collector.turns(number), collector.ticks(number, kernel::TICK));
        let summary = metrics.finish(Time(recording.duration.0));
        Ok(Traced {
            recording,
            events: collector.events,
            numbers,
            summary,
            costs: costs.finish(),
            turns,
            ticks,
        })
    }

    /// The times when a CPU switched to a real-time task, which no policy schedules: the kernel
    /// checks then as well whether a slice is over.
    pub fn looks(&self) -> BTreeSet<(CpuId, Time)> {
        let is_real_time = |task| is_unscheduled(&self.recording.tasks, task, None);
        let looks = self.events.iter().filter(
            |event| matches!(event.kind, EventKind::SchedSwitch { next, .. } if is_real_time(next)),
        );
        looks.map(|event| (event.cpu, event.time)).collect()
    }

    /// The number of a task in the workload, if it is one of its tasks.
    pub(super) fn number(&self, task: TaskId) -> Option<u32> {
        self.numbers.get(task.index()).copied().flatten()
    }

    /// The background load of the workload on this machine; `left_out` is no part of it, by name.
    pub fn background_load(
        &self,
        machine: &Machine,
        switch: SwitchCost,
        left_out: Option<&str>,
    ) -> BackgroundLoad {
        BackgroundLoad::of(
            &self.events,
            &self.recording.tasks,
            &self.numbers,
            machine,
            switch,
            left_out,
        )
    }
}

/// The recorded events of job number `job`, and the clock at the first of them; `None` if it has not
/// ended.
///
/// # Errors
/// If the trace is none that an import reads, or the guest's buffer had no room for it.
pub fn recorded(transcript: &Transcript, job: usize) -> Result<Option<(u64, Traced)>, Error> {
    let Some((_, tasks)) = end(transcript, job) else { return Ok(None) };
    let lost = transcript.events.iter().find_map(|event| match event {
        Event::TraceLost { job: of, events } if *of == job => Some(*events),
        _ => None,
    });
    if let Some(events) = lost {
        return Err(Error::Input(format!("the guest's buffer had no room for {events} events")));
    }
    let Some((_, begin, _)) = lines(transcript, job).next() else { return Ok(None) };
    let threads = tasks.iter().map(|task| task.tid);
    Ok(Some((begin, Traced::read(&trace_of(transcript, job), threads)?)))
}

/// The duration of a job, and the results of its tasks.
fn end(transcript: &Transcript, number: usize) -> Option<(Nanos, Vec<TaskResult>)> {
    transcript.events.iter().find_map(|event| match event {
        Event::JobEnd { job, ns, tasks } if *job == number => Some((Nanos(*ns), tasks.clone())),
        _ => None,
    })
}

/// The lines of a job's trace.
fn texts(transcript: &Transcript, number: usize) -> impl Iterator<Item = &str> {
    transcript.events.iter().filter_map(move |event| match event {
        Event::Trace { job, line } if *job == number => Some(line.as_str()),
        _ => None,
    })
}

/// The events of a job: the text before the time, the time, and the event.
fn lines(transcript: &Transcript, number: usize) -> impl Iterator<Item = (&str, u64, &str)> {
    texts(transcript, number).filter_map(columns)
}

/// The events of a job as `perf script` would print them.
pub(super) fn trace_of(transcript: &Transcript, job: usize) -> String {
    trace(lines(transcript, job))
}

/// The events as `perf script` would print them.
fn trace<'a>(lines: impl Iterator<Item = (&'a str, u64, &'a str)>) -> String {
    let mut text = String::new();
    for (before, ns, event) in lines {
        let _ =
            writeln!(text, "{before} {}.{:09}: {event}", ns / 1_000_000_000, ns % 1_000_000_000);
    }
    text
}

/// The text before the time, the time, and the event. A name has 15 bytes at most and may contain
/// anything, but has no room for a number and an event's name.
fn columns(line: &str) -> Option<(&str, u64, &str)> {
    line.match_indices(": ").find_map(|(at, _)| {
        let (before, event) = (&line[..at], &line[at + 2..]);
        let is_event = event.split(' ').next().is_some_and(|name| {
            name.starts_with("sched_") && name.ends_with(':') && name.len() > 12
        });
        let word = before.rfind(' ').filter(|_| is_event)?;
        Some((&before[..word], before[word + 1..].parse().ok()?, event))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_tracefs_is_taken_apart_at_its_time() {
        let line = "          <idle>-0       [000] d.h2. 1000000700: sched_waking: comm=a b: 7: c \
                    pid=80 prio=120 target_cpu=000";
        let (before, ticks, event) = columns(line).unwrap();
        assert!(
            before.ends_with("d.h2.") && event.starts_with("sched_waking: comm=a b: 7: c pid=80"),
            "{before} {event}"
        );
        assert_eq!(ticks, 1_000_000_700);
        let named = "      7: sched_: x-80      [000] d..2. 1000000700: sched_switch: \
                     prev_comm=7: sched_: x prev_pid=80";
        assert_eq!(
            columns(named).map(|(_, ticks, event)| (ticks, &event[..13])),
            Some((1_000_000_700, "sched_switch:"))
        );
        assert_eq!(columns("# a comment: none"), None);
    }
}
