//! `schedlab inspect`: the content of a workload.

mod causes;
mod closed;
mod critical;
mod measured;
mod stochastic;

use super::read_with_progress;
use crate::output::{Format, finish};
use causes::Causes;
use clap::Args;
use formats::import::{Options, Recording};
use formats::selection::{self, Selection};
use formats::workload::{Parameters, Workload};
use laboratory::results_directory::ResultsDirectory;
use program::{Error, print_data, write_whole};
use results::{
    Align, Metric, Results, Row, SubjectKind, Table, World, counted, quantity, registered,
};
use schedsim::metrics::{
    CATALOGUE, CriticalPath, Histogram, Metrics, ObjectGraph, Summary, WakeGraph,
};
use schedsim::workload::{
    CallCostEstimator, CallEstimates, CostEstimator, Costs, Recorded, ReplayReport,
};
use schedsim::{Nanos, TaskId, Time};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use worlds::experiment::fit;

/// Shows the content of a recording: tasks, bursts, pauses, ready queues, wakeups between tasks,
/// latencies, the critical path; or the classes of a stochastic workload
///
/// Lost events are reported first. The file is read once, as a stream, whatever its size.
/// A critical path is found in up to six million changes of tasks' states: 200 MB.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab inspect workloads/hackbench.perf-script.txt.zst\n  \
                        schedlab inspect perf.data --tasks 50 --format json\n  schedlab inspect \
                        perf.data --window 1s..2s --comm redis-server\n  schedlab inspect \
                        perf.data --fit -o like-it.toml\n  \
                        schedlab inspect server.rec --request client --report explained\n\nRecord with: perf record -a -e \
                        'sched:sched_*' -- COMMAND")]
pub struct Inspect {
    /// A recording: perf.data, trace.dat, Perfetto's, systrace's or Chrome's, or the text of `perf
    /// script`, `trace-cmd report` or ftrace, plain or compressed with zstd. Or a stochastic workload
    workload: OsString,
    /// Number of tasks and wake edges to show
    #[arg(long, value_name = "N", default_value_t = 15)]
    tasks: usize,
    /// Accept a recording that lost more than one event in a hundred
    #[arg(long)]
    allow_lost: bool,
    /// Also show the critical path of the longest wait of this task, a name or name/tid. It is from
    /// where the task begins to sleep to where it runs again
    #[arg(long, value_name = "TASK", conflicts_with = "fit")]
    request: Option<String>,
    /// Write the results to this directory, with a report that draws the objects and the path
    #[arg(long, value_name = "DIR", conflicts_with = "fit")]
    report: Option<PathBuf>,
    #[command(flatten, next_help_heading = "A part of the recording")]
    part: Selection,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print a stochastic workload fitted to the recording instead: a workload file, with the
    /// fitted data and the quality of the fit
    #[arg(long, conflicts_with = "format")]
    fit: bool,
    /// Fit only to the tasks with these names
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "fit")]
    only: Vec<String>,
    /// Write the fitted workload to this file
    #[arg(short, value_name = "FILE", requires = "fit")]
    output: Option<PathBuf>,
}

/// The kinds of system calls whose cost is shown.
const MOST_CALLS: usize = 5;

/// The result of one pass over a recording.
struct Inspection {
    recording: Recording,
    summary: Summary,
    graph: WakeGraph,
    objects: ObjectGraph,
    path: CriticalPath,
    costs: Costs,
    calls: CallEstimates,
    replay: ReplayReport,
}

impl Inspect {
    /// Inspects the workload and prints the result.
    pub fn run(self) -> Result<(), Error> {
        match Workload::resolve(&self.workload)? {
            Workload::Recording(_) if self.fit && !self.part.is_all() => Err(Error::Usage(
                "--fit takes a whole recording; write the part first: schedlab export RECORDING \
                 --window FROM..TO -o part.txt"
                    .to_string(),
            )),
            Workload::Stochastic(_) | Workload::Closed(_) if !self.part.is_all() => {
                Err(Error::Usage(
                    "--window, --cpus and --comm take a recording; this is a description"
                        .to_string(),
                ))
            }
            Workload::Recording(path) if self.fit => {
                let text = fit(&path, &self.only, self.allow_lost, read_with_progress)?;
                self.output
                    .as_deref()
                    .map_or_else(|| print_data(&text), |to| write_whole(to, text.as_bytes()))
            }
            Workload::Recording(path) => self.recording(&path),
            Workload::Stochastic(_) | Workload::Closed(_)
                if self.request.is_some() || self.report.is_some() =>
            {
                Err(Error::Usage(
                    "--request and --report take a recording; this is a description".to_string(),
                ))
            }
            Workload::Stochastic(_) | Workload::Closed(_) if self.fit => Err(Error::Usage(
                "--fit takes a recording; this is a description already".to_string(),
            )),
            Workload::Closed(workload) => closed::inspect(&workload, self.format),
            Workload::Stochastic(template) => {
                stochastic::inspect(&template.with(&Parameters::default())?, self.format)
            }
        }
    }

    fn recording(&self, path: &Path) -> Result<(), Error> {
        let (mut metrics, mut graph, mut costs) =
            (Metrics::new(0), WakeGraph::new(), CostEstimator::new());
        let options = || Options { allow_lost: self.allow_lost, ..Options::default() };
        let (mut objects, mut path_of) = (ObjectGraph::new(), CriticalPath::new());
        let mut calls = CallCostEstimator::new(true);
        let mut causes = Causes::new();
        let mut recording = selection::read(
            &self.part,
            vec![
                &mut metrics,
                &mut graph,
                &mut objects,
                &mut path_of,
                &mut costs,
                &mut calls,
                &mut causes,
            ],
            |observers| read_with_progress(path, options(), observers),
        )?;
        let end = Time(recording.duration.0);
        let (summary, calls) = (metrics.finish(end), calls.finish());
        let costs = costs.finish().with_calls(&calls);
        let recorded = Recorded {
            tasks: &recording.tasks,
            cpus: recording.cpus,
            end,
            switch_cost: costs.switch_cost(),
            recorders: recording.report.format.recorders(),
        };
        let shared = std::mem::take(&mut recording.objects);
        let replay = causes.finish(calls.kernel_work(), shared, recorded);
        let path = path_of;
        let inspection =
            Inspection { recording, summary, graph, objects, path, costs, calls, replay };
        let paths = critical::paths(&inspection, self.request.as_deref())?;
        let results = Results::new(self.rows(&inspection, &paths));
        if let Some(dir) = &self.report {
            let directory = ResultsDirectory::begin(dir)?;
            directory.write(&results, vec![])?;
            critical::drawn(&inspection, &paths).write(dir)?;
            finish(directory)?;
        }
        self.format.print(&results, || self.text(&inspection, &paths))
    }

    fn rows(&self, inspection: &Inspection, paths: &[critical::Path]) -> Vec<Row> {
        let Inspection { recording, summary, .. } = inspection;
        let row = |metric: Metric, value: Option<f64>| Row {
            workload: self.workload.to_string_lossy().into_owned(),
            candidate: "recorded".to_string(),
            cpus: recording.cpus,
            value,
            runs: 1,
            ..Row::new(World::Recorded, metric)
        };
        let mut rows = vec![row(Metric::lost_events, Some(recording.report.lost as f64))];
        rows.extend(CATALOGUE.iter().map(|metric| {
            let value = metric.read(summary);
            Row { note: value.note.map(str::to_string), ..row(registered(metric.id), value.value) }
        }));
        if let Some((explained, tokens)) = inspection.shares() {
            rows.push(row(Metric::explained_wakeups, Some(explained)));
            rows.push(row(Metric::token_wakeups, Some(tokens)));
        }
        rows.extend(recording.measurements.iter().map(|of| measured::row(of, row)));
        for (object, waits) in inspection.objects.longest(self.tasks) {
            let numbers = [
                (Metric::object_sleeps, waits.count as f64),
                (Metric::object_slept_ns, waits.slept.0 as f64),
            ];
            rows.extend(numbers.map(|(metric, value)| {
                row(metric, Some(value)).of(SubjectKind::Object, object_name(recording, object))
            }));
        }
        for edge in inspection.objects.strongest(self.tasks) {
            rows.push(
                row(Metric::wakes, Some(edge.count as f64))
                    .of(SubjectKind::Object, object_name(recording, edge.object))
                    .at("waker", name(recording, edge.waker))
                    .at("wakee", name(recording, edge.wakee)),
            );
        }
        rows.extend(critical::rows(inspection, paths, row));
        for task in &summary.tasks {
            let info = &recording.tasks[task.task.index()];
            let numbers = [
                (Metric::task_cpu_time_ns, task.cpu_time.0 as f64),
                (Metric::task_run_delay_ns, task.run_delay.0 as f64),
                (Metric::task_run_delay_ns_max, task.wait_max.0 as f64),
                (Metric::task_bursts, f64::from(task.bursts)),
                (Metric::task_dispatches, f64::from(task.dispatches)),
                (Metric::task_migrations, f64::from(task.migrations)),
            ];
            rows.extend(numbers.map(|(metric, value)| {
                row(metric, Some(value)).of(SubjectKind::Task, &info.name).at("pid", info.pid)
            }));
        }
        for cpu in &summary.cpus {
            let numbers = [
                (Metric::cpu_busy_ns, cpu.busy.0 as f64),
                (Metric::cpu_ready_length_mean, cpu.waiting_mean),
                (Metric::cpu_ready_length_max, f64::from(cpu.waiting_max)),
            ];
            rows.extend(numbers.map(|(metric, value)| {
                row(metric, Some(value)).of(SubjectKind::Cpu, cpu.cpu.0.to_string())
            }));
        }
        for edge in inspection.graph.strongest(self.tasks) {
            let wakes = row(Metric::wakes, Some(edge.count as f64));
            rows.push(
                wakes
                    .of(SubjectKind::Task, name(recording, edge.waker))
                    .at("wakee", name(recording, edge.wakee)),
            );
        }
        rows
    }

    fn text(&self, inspection: &Inspection, paths: &[critical::Path]) -> String {
        let Inspection { recording, summary, graph, costs, .. } = inspection;
        let mut text = inspection.explained();
        text += &recording.report.to_string();
        let _ = writeln!(
            text,
            "\n{} on {}, {} tasks, {}",
            recording.duration,
            counted(recording.cpus.into(), "CPU"),
            summary.tasks.len(),
            costs
        );

        text += &inspection.costs_of_calls();
        text += "\nTasks by CPU time\n\n";
        let columns =
            ["CPU time", "bursts", "run delay", "longest", "wakeups", "dispatches", "migrations"]
                .map(|title| (title, Align::Right));
        let mut table = Table::new([("  task", Align::Left)].into_iter().chain(columns));
        let mut tasks: Vec<_> = summary.tasks.iter().collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.cpu_time), task.task));
        for task in tasks.iter().take(self.tasks) {
            let numbers = [task.bursts, task.wakeups, task.dispatches, task.migrations]
                .map(|n| n.to_string());
            let [bursts, wakeups, dispatches, migrations] = numbers;
            let [time, delay, longest] =
                [task.cpu_time, task.run_delay, task.wait_max].map(|span| span.to_string());
            table.row([
                format!("  {}", name(recording, task.task)),
                time,
                bursts,
                delay,
                longest,
                wakeups,
                dispatches,
                migrations,
            ]);
        }
        text += &table.to_string();
        if tasks.len() > self.tasks {
            let rest: Nanos = tasks[self.tasks..].iter().map(|task| task.cpu_time).sum();
            let _ = writeln!(
                text,
                "  and {} more with {rest} (--tasks N shows more)",
                tasks.len() - self.tasks
            );
        }

        text += "\nDistributions\n\n";
        let columns = ["samples", "p50", "p90", "p99", "max"].map(|title| (title, Align::Right));
        let mut table = Table::new([("  of", Align::Left)].into_iter().chain(columns));
        let distributions = &summary.distributions;
        for (of, samples) in [
            ("CPU bursts", &distributions.burst),
            ("pauses", &distributions.pause),
            ("wakeup latency", &distributions.wakeup_latency),
        ] {
            table.row(std::iter::once(format!("  {of}")).chain(percentiles(samples)));
        }
        text += &table.to_string();

        text += "\nCPUs\n\n";
        let columns =
            ["busy", "switches", "ready mean", "ready max"].map(|title| (title, Align::Right));
        let mut table = Table::new([("  CPU", Align::Left)].into_iter().chain(columns));
        for cpu in &summary.cpus {
            let busy = format!(
                "{:.1}%",
                100.0 * cpu.busy.0 as f64 / (cpu.busy + cpu.idle).0.max(1) as f64
            );
            table.row([
                format!("  {}", cpu.cpu.0),
                busy,
                cpu.switches.to_string(),
                format!("{:.2}", cpu.waiting_mean),
                cpu.waiting_max.to_string(),
            ]);
        }
        text += &table.to_string();

        let _ = writeln!(text, "\nWakeups between tasks ({} pairs)\n", graph.len());
        let mut table =
            Table::new([("  waker", Align::Left), ("wakee", Align::Left), ("wakes", Align::Right)]);
        for edge in graph.strongest(self.tasks) {
            table.row([
                format!("  {}", name(recording, edge.waker)),
                name(recording, edge.wakee),
                edge.count.to_string(),
            ]);
        }
        text += &table.to_string();

        text += &self.objects(inspection);
        text += &critical::text(self, inspection, paths);
        text += "\nAs a whole\n\n";
        let mut table =
            Table::new([("  metric", Align::Left), ("value", Align::Right), ("", Align::Left)]);
        for (metric, value) in summary.values() {
            let number = value.value.map_or("-".to_string(), |value| quantity(value, metric.unit));
            table.row([
                format!("  {}", metric.id),
                number,
                value.note.unwrap_or_default().to_string(),
            ]);
        }
        text + &table.to_string()
    }

    /// Which object woke whom, and what tasks slept on; empty without calls.
    fn objects(&self, inspection: &Inspection) -> String {
        let Inspection { recording, objects, .. } = inspection;
        if recording.report.causes == 0 {
            return String::new();
        }
        let mut text = format!("\nWakeups through objects ({} edges)\n\n", objects.len());
        let columns = [("  object", Align::Left), ("waker", Align::Left), ("wakee", Align::Left)];
        let mut table = Table::new(columns.into_iter().chain([("wakes", Align::Right)]));
        for edge in objects.strongest(self.tasks) {
            table.row([
                format!("  {}", object_name(recording, edge.object)),
                name(recording, edge.waker),
                name(recording, edge.wakee),
                edge.count.to_string(),
            ]);
        }
        text += &table.to_string();
        text += "\nSleeps by object\n\n";
        let columns = ["sleeps", "slept", "mean"].map(|title| (title, Align::Right));
        let mut table = Table::new([("  object", Align::Left)].into_iter().chain(columns));
        for (object, waits) in objects.longest(self.tasks) {
            table.row([
                format!("  {}", object_name(recording, object)),
                waits.count.to_string(),
                waits.slept.to_string(),
                Nanos(waits.slept.0 / waits.count.max(1)).to_string(),
            ]);
        }
        text + &table.to_string()
    }
}

impl Inspection {
    /// What blocking, waking, and calls that do neither take; empty without calls.
    fn costs_of_calls(&self) -> String {
        if self.recording.report.causes == 0 {
            return String::new();
        }
        let mut text = format!("In calls, {}\n", self.calls);
        let own: Vec<String> = self
            .calls
            .own
            .iter()
            .take(MOST_CALLS)
            .map(|(call, cost)| format!("number {}: {cost}", call >> 16))
            .collect();
        if !own.is_empty() {
            let _ = writeln!(text, "System calls that neither block nor wake: {}", own.join("; "));
        }
        text
    }

    /// The shares of explained wakeups and of tokens, if the recording has calls.
    fn shares(&self) -> Option<(f64, f64)> {
        self.replay.wakeups.shares().filter(|_| self.recording.report.causes > 0)
    }

    fn explained(&self) -> String {
        let sentence = self.shares().and_then(|_| self.replay.wakeups.sentence());
        let tokens = sentence.as_ref().and_then(|_| self.replay.tokens_in_words());
        sentence.into_iter().chain(tokens).map(|line| line + "\n").collect()
    }
}

/// The name of an object of calls.
fn object_name(recording: &Recording, object: u32) -> String {
    if object == 0 {
        return "no object".to_string();
    }
    let name = recording.object_names.get(&object).cloned();
    name.unwrap_or_else(|| format!("object {object}"))
}

/// The task's name and pid.
fn name(recording: &Recording, task: TaskId) -> String {
    match recording.tasks.get(task.index()) {
        Some(info) => format!("{}/{}", info.name, info.pid),
        None => "idle or interrupt".to_string(),
    }
}

fn percentiles(samples: &Histogram) -> [String; 5] {
    let show = |value: Option<Nanos>| value.map_or("-".to_string(), |value| value.to_string());
    let p99 = if samples.count() < 1000 { "-".to_string() } else { show(samples.percentile(99.0)) };
    [
        samples.count().to_string(),
        show(samples.percentile(50.0)),
        show(samples.percentile(90.0)),
        p99,
        show(samples.max()),
    ]
}
