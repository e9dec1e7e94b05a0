//! `perf sched` reads the same file, and has the same numbers of each task.
//!
//! The file is of `perf sched record -a`. What perf prints of it is on record: the run times of
//! `timehist -s` (perf 6.1; 6.12 loses the rows of tasks that exit), the delays of `latency -p`
//! (perf 6.12; 6.1 takes `R+`, preempted, for asleep, and knows no `sched_wakeup_new`). The run
//! times of `latency` are the kernel's own accounts (`sched_stat_runtime`), which are no events of a
//! schedule. A `perf` on this machine is asked for run times as well.

mod import_support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::process::Command;

use import_support::{Imported, Temporary, contents, data, import};
use schedsim::metrics::Metrics;
use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::{CpuId, TaskId, Time};

const FILE: &str = "whole.perf.data.zst";

/// Of a task, by thread id. Times are in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ran {
    dispatches: u32,
    time: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Delayed {
    dispatches: u32,
    mean: u64,
    longest: u64,
}

/// Milliseconds with three digits as microseconds.
fn microseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    (part.len() == 3).then(|| format!("{whole}{part}").parse().ok())?
}

/// The thread id in `comm[tid]`, `comm[tid/pid]`, `comm:tid` or `:tid`.
fn thread(name: &str) -> Option<u32> {
    let number = match name.strip_suffix(']').and_then(|name| name.rsplit_once('[')) {
        Some((_, ids)) => ids.split('/').next()?,
        None => name.rsplit_once(':')?.1,
    };
    number.parse().ok()
}

/// The rows of `timehist -s`.
fn ran(text: &str) -> BTreeMap<u32, Ran> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name @ .., _parent, dispatches, time, _min, _avg, _max, _dev, _migrations] =
            &words[..]
        else {
            return None;
        };
        let ran = Ran { dispatches: dispatches.parse().ok()?, time: microseconds(time)? };
        Some((thread(&name.join(" "))?, ran))
    };
    text.lines().filter_map(row).collect()
}

/// The rows of `latency -p`.
fn delayed(text: &str) -> BTreeMap<u32, Delayed> {
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, _run, dispatches, mean, longest, ..] = columns[..] else { return None };
        let time =
            |column: &str, of| microseconds(column.strip_prefix(of)?.trim().strip_suffix(" ms")?);
        let delayed = Delayed {
            dispatches: dispatches.parse().ok()?,
            mean: time(mean, "avg:")?,
            longest: time(longest, "max:")?,
        };
        Some((thread(name)?, delayed))
    };
    text.lines().filter_map(row).collect()
}

/// What perf does not count: what runs, since when, or waits when the recording ends. And the tasks
/// of which a switch is missing, because `perf record` begins on one CPU after the other, or
/// the begin of a wait: `latency` lets it begin with the first `sched_stat_runtime`.
#[derive(Default)]
struct Edges {
    runs: BTreeMap<CpuId, (TaskId, Time)>,
    waits: BTreeSet<TaskId>,
    torn: BTreeSet<TaskId>,
}

impl Edges {
    fn of(imported: &Imported) -> Edges {
        let mut edges = Edges::default();
        for event in &imported.events {
            match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    match edges.runs.insert(event.cpu, (next, event.time)) {
                        Some((ran, _)) if ran != prev => edges.torn.extend([ran, prev]),
                        Some(_) => {}
                        None => edges.torn.extend([prev]),
                    }
                    edges.waits.remove(&prev);
                    if prev_state == PrevState::Runnable {
                        edges.waits.insert(prev);
                    }
                    if !edges.waits.remove(&next) {
                        edges.torn.insert(next);
                    }
                }
                EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. }
                    if edges.runs.values().all(|(runs, _)| *runs != task) =>
                {
                    edges.waits.insert(task);
                }
                _ => {}
            }
        }
        edges
    }
}

/// Our numbers of the whole tasks.
fn ours(imported: &Imported) -> BTreeMap<u32, (Ran, Delayed)> {
    let (mut metrics, edges) = (Metrics::new(0), Edges::of(imported));
    metrics.events(&imported.events);
    let end = Time(imported.recording.duration.0);
    let summary = metrics.finish(end);
    let row = |task: &schedsim::metrics::TaskSummary| {
        let runs = edges.runs.values().find(|(runs, _)| *runs == task.task);
        let running = runs.map_or(0, |(_, since)| end.since(*since).0);
        let dispatches = task.dispatches - u32::from(runs.is_some());
        let ran = Ran { dispatches, time: (task.cpu_time.0 - running) / 1000 };
        let delayed = Delayed {
            dispatches: task.dispatches,
            mean: (task.run_delay.0 / u64::from(task.dispatches) + 500) / 1000,
            longest: (task.wait_max.0 + 500) / 1000,
        };
        (imported.recording.tasks[task.task.index()].pid, (ran, delayed))
    };
    let whole = |task: &&schedsim::metrics::TaskSummary| {
        let cut = edges.torn.contains(&task.task) || edges.waits.contains(&task.task);
        task.dispatches > 0 && !cut
    };
    summary.tasks.iter().filter(whole).map(row).collect()
}

/// Compares what both know, and says of how many tasks.
fn hold<T: Copy + PartialEq + std::fmt::Debug>(
    theirs: &BTreeMap<u32, T>,
    ours: &BTreeMap<u32, (Ran, Delayed)>,
    of: impl Fn(&(Ran, Delayed)) -> T,
) -> Result<usize, String> {
    let both = ours.iter().filter_map(|(pid, ours)| Some((pid, of(ours), *theirs.get(pid)?)));
    let pairs: Vec<_> = both.collect();
    match pairs.iter().find(|(_, ours, theirs)| ours != theirs) {
        Some((pid, ours, theirs)) => Err(format!("task {pid}: {ours:?}, perf {theirs:?}")),
        None => Ok(pairs.len()),
    }
}

fn on_record() -> String {
    String::from_utf8(contents("whole.perf-sched.txt.zst")).unwrap()
}

#[test]
fn the_numbers_of_perf_sched_are_ours() {
    let ours = ours(&import(&data(FILE)).unwrap());
    let text = on_record();
    assert_eq!(ours.len(), 21);
    assert_eq!(hold(&ran(&text), &ours, |ours| ours.0), Ok(21));
    assert_eq!(hold(&delayed(&text), &ours, |ours| ours.1), Ok(21));
}

#[test]
fn a_perf_on_this_machine_says_the_same() {
    let raw = Temporary::new(&contents(FILE));
    let given = Command::new("perf").args(["sched", "timehist", "-s", "-i"]).arg(&raw.0).output();
    let given = match given {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("no perf on this machine; what it prints is on record");
            return;
        }
        given => given.unwrap(),
    };
    assert!(given.status.success(), "{}", String::from_utf8_lossy(&given.stderr));
    let text = String::from_utf8(given.stdout).unwrap();
    let compared = hold(&ran(&text), &ours(&import(&data(FILE)).unwrap()), |ours| ours.0);
    assert!(compared.clone().is_ok_and(|tasks| tasks >= 10), "{compared:?}");
}

#[test]
fn wakings_that_are_lost_or_late_show() {
    let text = on_record();
    let is_waking = |event: &Event| matches!(event.kind, EventKind::SchedWaking { .. });
    let mut lost = import(&data(FILE)).unwrap();
    lost.events.retain(|event| !is_waking(event));
    let mut late = import(&data(FILE)).unwrap();
    for at in 0..late.events.len() - 1 {
        if is_waking(&late.events[at]) {
            late.events[at].time = late.events[at + 1].time;
        }
    }
    for changed in [lost, late] {
        let compared = hold(&delayed(&text), &ours(&changed), |ours| ours.1);
        assert_ne!(compared, Ok(21));
    }
}
