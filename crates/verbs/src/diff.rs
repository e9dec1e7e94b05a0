//! `schedlab diff`: the first decision that differs between two runs, or the agreement of the
//! simulator with a kernel.

mod decisions;

use super::PolicyName;
use super::guests::GuestArguments;
use crate::output::Format;
use clap::Args;
use formats::import;
use formats::trace_file::{Reader, Task};
use program::Error;
use results::{Align, Metric, Results, Row, Table, Verdict, World, counted};
use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::{CpuId, TaskId, Time};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Shows the first scheduling decision that differs between two runs, and which tasks waited then
///
/// A decision is a CPU's choice of its next task. Two runs of the same workload are compared
/// decision by decision. With --order times are ignored, so that a simulation can be compared with
/// the recording that it replays.
///
/// With --decisions workloads run in real kernels, and are then simulated with the background load
/// of the kernels. The simulated scheduler is compared with the real one, decision by decision and
/// by the metrics of both.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab run workloads/redis.perf-script.txt.zst --policy \
                        take:rr --trace a.trace\n  schedlab run \
                        workloads/redis.perf-script.txt.zst --policy central:rr --trace \
                        b.trace\n  schedlab diff a.trace b.trace\n  schedlab diff --decisions \
                        workloads/mixed.toml --policy eevdf,bpf:ruler")]
pub struct Diff {
    /// Two traces of schedlab, or recordings of perf; with --decisions workloads of tasks
    #[arg(value_name = "TRACE", required = true)]
    subjects: Vec<OsString>,
    /// Compare the choices (CPU and task), not their times
    #[arg(long, conflicts_with = "decisions")]
    order: bool,
    /// Compare the simulated scheduler with the real one
    #[arg(long)]
    decisions: bool,
    /// With --decisions: classes of the kernel itself, schedulers in BPF, and policies that decide
    /// in user space, separated by commas [default: kernel:other]
    #[arg(long, value_delimiter = ',', value_parser = PolicyName::parse, requires = "decisions")]
    policy: Vec<PolicyName>,
    /// With --decisions: number of CPUs of a guest [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16),
          requires = "decisions")]
    cpus: Option<u16>,
    /// With --decisions: seed of the simulator's random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// With --decisions: verify each simulation
    #[arg(long, requires = "decisions")]
    check: bool,
    /// With --decisions: show each decision that differs, with both tasks, and of a compiled
    /// scheduler the slices and virtual times that differ
    #[arg(long, requires = "decisions")]
    explain: bool,
    /// With --decisions: write results, report.html and the dispatches of both sides as traces to
    /// this directory
    #[arg(short, value_name = "DIR", requires = "decisions")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// With --decisions: boots of each kernel. Each boot idles 7 ms longer than the one before, so
    /// that effects of microseconds come out differently
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    ensemble: Option<u32>,
    #[command(flatten)]
    guests: GuestArguments,
}

/// A run to compare.
struct Run {
    label: String,
    tasks: Vec<Task>,
    events: Vec<Event>,
}

/// A CPU's choice, and its situation.
struct Decision {
    time: Time,
    cpu: CpuId,
    prev: TaskId,
    next: TaskId,
}

impl Diff {
    /// Runs the comparison and prints the result.
    pub fn run(self) -> Result<(), Error> {
        if self.decisions {
            return self.format.answer(self.held_against_kernels()?);
        }
        let [a, b] = &self.subjects[..] else {
            return Err(Error::Usage(
                "give two traces or recordings, or workloads with --decisions".to_string(),
            ));
        };
        let (a, b) = (Run::load(Path::new(a))?, Run::load(Path::new(b))?);
        let (mut one, mut other) = (Replay::new(&a), Replay::new(&b));
        let mut decisions = 0u64;
        let parted = loop {
            match (one.next_decision(), other.next_decision()) {
                (None, None) => break None,
                (Some(x), Some(y)) if self.same(&a, &x, &b, &y) => decisions += 1,
                pair => break Some(pair),
            }
        };
        let time = parted
            .as_ref()
            .and_then(|(x, y)| x.as_ref().or(y.as_ref()))
            .map(|decision| decision.time);
        let row = Row {
            workload: self.subjects[0].to_string_lossy().into_owned(),
            candidate: format!("{} | {}", a.label, b.label),
            value: Some(decisions as f64),
            runs: 1,
            verdict: Some(if parted.is_none() { Verdict::Equivalent } else { Verdict::Different }),
            note: time.map(|time| format!("the runs first differ at {} ns", time.0)),
            ..Row::new(World::Trace, Metric::decisions_until_divergence)
        };
        let text = || match &parted {
            None => format!("The runs are equal in all {decisions} decisions.\n"),
            Some((x, y)) => {
                let mut text = format!("After {decisions} equal decisions the runs differ:\n\n");
                one.describe(&mut text, "A", x.as_ref());
                other.describe(&mut text, "B", y.as_ref());
                text
            }
        };
        self.format.print(&Results::new(vec![row]), text)
    }

    fn same(&self, a: &Run, x: &Decision, b: &Run, y: &Decision) -> bool {
        let same_task = |x: TaskId, y: TaskId| match (x == TaskId::NONE, y == TaskId::NONE) {
            (false, false) => x == y && a.name(x) == b.name(y),
            (idle, other_idle) => idle == other_idle,
        };
        x.cpu == y.cpu
            && same_task(x.next, y.next)
            && (self.order || (x.time == y.time && same_task(x.prev, y.prev)))
    }
}

impl Run {
    fn load(path: &Path) -> Result<Run, Error> {
        let mut collect = Collect(Vec::new());
        if Reader::recognises(path) {
            let mut reader = Reader::open(path)?;
            while let Some(event) = reader.next_event()? {
                collect.0.push(event);
            }
            let header = reader.header();
            let label = format!(
                "{}, {}, {}, seed {}",
                header.workload,
                header.candidate,
                counted(header.cpus.into(), "CPU"),
                header.seed
            );
            return Ok(Run { label, tasks: header.tasks.clone(), events: collect.0 });
        }
        let recording = import::read(path, &import::Options::default(), vec![&mut collect])?;
        let label = format!("{}, as recorded", path.display());
        Ok(Run {
            label,
            tasks: recording.tasks.iter().map(Task::from).collect(),
            events: collect.0,
        })
    }

    fn name(&self, task: TaskId) -> String {
        match self.tasks.get(task.index()) {
            Some(info) if info.pid != 0 => format!("{}/{}", info.name, info.pid),
            Some(info) => format!("{}#{}", info.name, task.0),
            None if task == TaskId::NONE => "idle".to_string(),
            None => format!("task {}", task.0),
        }
    }
}

struct Collect(Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

/// Replays a run decision by decision and tracks which tasks wait.
struct Replay<'a> {
    run: &'a Run,
    next: usize,
    /// The start and the CPU of each task's wait.
    waiting: BTreeMap<TaskId, (Time, CpuId)>,
}

impl<'a> Replay<'a> {
    fn new(run: &'a Run) -> Self {
        Replay { run, next: 0, waiting: BTreeMap::new() }
    }

    /// The next decision. The waiting tasks are those at the time of the decision, with the chosen
    /// task among them.
    fn next_decision(&mut self) -> Option<Decision> {
        if let Some(Event { kind: EventKind::SchedSwitch { next, .. }, .. }) =
            self.next.checked_sub(1).map(|last| self.run.events[last])
        {
            self.waiting.remove(&next);
        }
        while let Some(&Event { time, cpu, kind }) = self.run.events.get(self.next) {
            self.next += 1;
            match kind {
                EventKind::SchedWaking { task, target, .. }
                | EventKind::SchedWakeupNew { task, target } => {
                    self.waiting.entry(task).or_insert((time, target));
                }
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    if prev != TaskId::NONE {
                        self.waiting.remove(&prev);
                        if prev_state == PrevState::Runnable {
                            self.waiting.insert(prev, (time, cpu));
                        }
                    }
                    return Some(Decision { time, cpu, prev, next });
                }
                _ => {}
            }
        }
        None
    }

    fn describe(&self, out: &mut String, side: &str, decision: Option<&Decision>) {
        let Some(Decision { time, cpu, prev, next }) = decision else {
            let _ = writeln!(out, "{side}: {}\n   has no further decision\n", self.run.label);
            return;
        };
        let name = |task: &TaskId| self.run.name(*task);
        let _ = writeln!(out, "{side}: {}", self.run.label);
        let _ = writeln!(
            out,
            "   at {} ns CPU {} goes from {} to {}; waiting then:",
            time.0,
            cpu.0,
            name(prev),
            name(next)
        );
        let mut waiting: Vec<_> = self.waiting.iter().collect();
        waiting.sort_by_key(|&(task, &(since, _))| (since, *task));
        let mut table = Table::new([
            ("  task", Align::Left),
            ("CPU", Align::Right),
            ("waits for", Align::Right),
            ("", Align::Left),
        ]);
        for (task, (since, cpu)) in waiting {
            let chosen = if task == next { "<- chosen" } else { "" };
            table.row([
                format!("  {}", name(task)),
                cpu.0.to_string(),
                time.since(*since).to_string(),
                chosen.to_string(),
            ]);
        }
        let _ = writeln!(out, "{}", indent(&table.to_string()));
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("   {line}\n")).collect()
}
