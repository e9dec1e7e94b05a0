//! `schedlab predict`: what the simulator says of changes, held against a real kernel.

use crate::guests::GuestArguments;
use crate::output::Format;
use clap::{Args, ValueEnum};
use formats::workload::Workload;
use laboratory::prediction::{
    Basis, Cell, Change, Costs, Prediction, Score, Sides, Test, Tested, all_at_once,
};
use laboratory::results_directory::ResultsDirectory;
use program::{Error, progress};
use results::{Align, Metric, Results, Row, Table, World as Name, counted, quantity};
use schedsim::admission::Cpus;
use schedsim::policy::PolicySpec;
use schedsim::{Machine, Nanos};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use worlds::experiment::parse_policy;
use worlds::guest::GuestWorld;
use worlds::host::doctor::System;
use worlds::load::Closed;
use worlds::simulator::Simulator;
use worlds::this_machine::{HostSettings, HostWorld};
use worlds::vm::kernel;
use worlds::vm::release::fair_model;
use worlds::{Program, World};

/// Tests the simulator's predictions against a real kernel
///
/// For each workload and each change (--change), the simulator predicts, and then the real kernel is
/// measured: how much does each metric change? On this machine (--on host, needs root and perf) the
/// unchanged workload is recorded, and the recording is replayed with the change. In guests (--on vm)
/// the simulator runs the workload's description. The score counts right signs, errors, and
/// intervals.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  sudo schedlab predict\n  sudo schedlab predict hackbench:1 \
                        my-load.toml --change nice=5 --change cpus=1 -o results/prediction\n  \
                        schedlab predict --on vm --kernel 6.18 --change batch --change fifo=50")]
pub struct Predict {
    /// Workloads of tasks, built-in or .toml files [default: hogs, periodic tasks beside a hog,
    /// hackbench, short threads and ping-pong]
    workloads: Vec<OsString>,
    /// Where the real kernel runs
    #[arg(long, value_enum, default_value_t)]
    on: Backend,
    /// A change; repeatable: cpus=N, kernel=NAME, policy=NAME (a scheduler in BPF, as bpf:rr, an
    /// object, as scx:./main.bpf.o, or a policy that decides in user space; the last two with --on
    /// vm), a setting of all tasks (fifo=50, rr=50, batch, idle, slice=1ms), one of the second half
    /// of the programs (nice=10, weight=200), or settings of programs as in --apply ('xz: batch')
    /// [default: cpus=1, nice=10 and fifo=50]
    #[arg(long, value_name = "CHANGE", value_parser = Change::from_str)]
    change: Vec<Change>,
    /// Number of CPUs without a change [default: 2; in guests 1]
    #[arg(long, value_parser = Cpus::parse)]
    cpus: Option<u16>,
    /// Number of rounds, or of members in guests [default: 5; in guests 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ensemble: Option<u32>,
    /// The policy that models the kernel's fair scheduler [default: eevdf from 6.6 on, before that
    /// cfs]
    #[arg(long, value_parser = parse_policy)]
    policy: Option<PolicySpec>,
    /// The kernel of guests
    #[arg(long, value_name = "KERNEL", default_value = "6.18")]
    kernel: String,
    /// Take the costs of kernels from the results.json of an earlier `predict --on vm`; what it has
    /// not is measured
    #[arg(long, value_name = "RESULTS")]
    costs: Option<PathBuf>,
    /// Kill a run that takes longer (--on host)
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write results (JSON, CSV, Parquet) and report.html to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Where the real kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
enum Backend {
    /// On this machine.
    #[default]
    Host,
    /// In guests.
    Vm,
}

/// Tasks that only compute, wake by a timer, wake one another in groups and in pairs, and start and
/// exit.
const WORKLOADS: [&str; 5] = [
    "hogs:4?work=100ms",
    "periodic:4?hogs=1&times=25",
    "hackbench:1?loops=10",
    "pythagoras:200?work=400ms&alive=20",
    "ping-pong:2?times=2000",
];
/// A larger error is shown as more than this, in per cent.
const MOST: f64 = 999.0;
/// Another number of CPUs, other weights, and another class.
const CHANGES: [&str; 3] = ["cpus=1", "nice=10", "fifo=50"];

impl Predict {
    /// Runs the test and prints the result.
    pub fn run(self) -> Result<(), Error> {
        let in_guests = self.on == Backend::Vm;
        let cpus = self.cpus.unwrap_or(if in_guests { 1 } else { 2 });
        let programs = self.programs(cpus)?;
        let mut test = Test {
            policy: self.model()?,
            changes: self.changes(cpus)?,
            cpus,
            rounds: self.ensemble.unwrap_or(if in_guests { 16 } else { 5 }),
            basis: Basis::Recording,
        };
        let guests = |kernel: &str| {
            Ok::<_, Error>(Box::new(GuestWorld::new(GuestArguments::of_kernel(kernel)?)))
        };
        let mut real: Box<dyn World> = if in_guests {
            guests(&self.kernel)?
        } else {
            Box::new(HostWorld::new(HostSettings {
                affinity: Vec::new(),
                nice: 0,
                limit: Duration::from_nanos(self.timeout.0),
                no_rt_throttling: false,
                directory: None,
                printed: Vec::new(),
            }))
        };
        let known = self.known_costs(&real.name())?;
        let mut simulator = Simulator::new();
        let mut sides =
            Sides { real: &mut *real, kernels: BTreeMap::new(), predicting: &mut simulator };
        for kernel in test.kernels().into_iter().flatten() {
            sides.kernels.insert(kernel.to_string(), guests(kernel)?);
        }
        let mut trials = 0;
        for kernel in test.kernels() {
            let own = programs
                .iter()
                .map(|program| test.trials_on(kernel, program))
                .collect::<Result<Vec<_>, Error>>()?
                .concat();
            let world = sides.world(kernel)?;
            own.iter().try_for_each(|trial| {
                world.cpus(trial.program, Some(trial.cpus)).and_then(|_| world.admit(trial))
            })?;
            world.prepare(&own)?;
            trials += own.len() as u64;
        }
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        if in_guests {
            let bar = progress::bar("measuring the kernels' costs", 0);
            let costs = known.measure(&test, &mut sides, kernel::TICK, &bar);
            bar.finish_and_clear();
            test.basis = Basis::Description(costs?);
        }
        // Each trial is run, and predicted.
        let bar = progress::bar("predicting", 2 * trials * u64::from(test.rounds));
        let predictions = programs
            .iter()
            .map(|program| test.run(program, &mut sides, &bar))
            .collect::<Result<Vec<Prediction>, Error>>();
        bar.finish_and_clear();
        let predictions = predictions?;
        let cells: Vec<Cell> = predictions.iter().flat_map(Prediction::cells).collect();
        let mut rows: Vec<Row> =
            predictions.iter().flat_map(|prediction| prediction.rows(&test)).collect();
        rows.extend(
            Score::of(&cells).into_iter().flat_map(|score| score.rows(&sides.predicting.name())),
        );
        if let Basis::Description(costs) = &test.basis {
            rows.extend(costs.rows(&sides.real.name()));
        }
        let results = Results::new(rows);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            crate::output::finish(directory)?;
        }
        self.format.print(&results, || text(&predictions, &cells, &test))
    }

    /// The costs of kernels that an earlier run has measured.
    fn known_costs(&self, real: &Name) -> Result<Costs, Error> {
        let Some(file) = &self.costs else { return Ok(Costs::default()) };
        if self.on == Backend::Host {
            return Err(Error::Usage(
                "--costs is of kernels in guests; on this machine recordings show what calls cost: \
                 leave it out, or add --on vm"
                    .to_string(),
            ));
        }
        Costs::read(&Results::read(file)?.rows, real, kernel::TICK)
            .map_err(|error| Error::Input(format!("{}: {error}", file.display())))
    }

    /// The policy that models the kernel's fair scheduler.
    fn model(&self) -> Result<PolicySpec, Error> {
        if let Some(policy) = &self.policy {
            return Ok(policy.clone());
        }
        let model = match self.on {
            Backend::Host => System::this().fair_model(),
            Backend::Vm => fair_model(&self.kernel),
        };
        parse_policy(model).map_err(Error::Internal)
    }

    /// None, and then those that are asked for, each once.
    fn changes(&self, cpus: u16) -> Result<Vec<Change>, Error> {
        let usual = || {
            CHANGES
                .iter()
                .map(|text| text.parse().map_err(Error::Internal))
                .filter(|change| !matches!(change, Ok(Change::Cpus(to)) if *to == cpus))
                .collect::<Result<Vec<Change>, Error>>()
        };
        let mut changes = vec![Change::Nothing];
        for change in if self.change.is_empty() { usual()? } else { self.change.clone() } {
            let is_known = match &change {
                Change::Cpus(to) => *to == cpus,
                Change::Kernel(name) => *name == self.kernel,
                _ => false,
            };
            if changes.contains(&change) || is_known {
                return Err(Error::Usage(format!(
                    "--change {change} changes nothing: it is named twice, or it is what there is \
                     without a change"
                )));
            }
            if self.on == Backend::Host
                && matches!(change, Change::Kernel(_) | Change::Scheduler(..))
            {
                return Err(Error::Usage(format!(
                    "--change {change}: this machine has one kernel and its own scheduler; add \
                     --on vm"
                )));
            }
            changes.push(change);
        }
        Ok(changes)
    }

    fn programs(&self, cpus: u16) -> Result<Vec<Program>, Error> {
        let closed = |name: &OsString| match Workload::resolve(name)? {
            Workload::Closed(workload) => {
                let workload = match self.on {
                    Backend::Host => *workload,
                    Backend::Vm => all_at_once(&workload),
                };
                Closed::on(workload, Machine::ideal(cpus)).map(Box::new).map(Program::Closed)
            }
            _ => Err(Error::Usage(format!(
                "the tasks of {} cannot be run again under other conditions; give a \
                 workload of tasks, as hackbench:1 or a file with [[task]]s",
                name.to_string_lossy()
            ))),
        };
        let given = if self.workloads.is_empty() {
            WORKLOADS.map(OsString::from).to_vec()
        } else {
            self.workloads.clone()
        };
        given.iter().map(closed).collect()
    }
}

/// A table for each workload, a column for each change: predicted, measured, and the error.
fn text(predictions: &[Prediction], cells: &[Cell], test: &Test) -> String {
    let mut text = format!(
        "On {}; each cell: predicted by {}, measured, error. Means of {} rounds, ± half of a \
         95 % interval of the measured value.\n",
        counted(test.cpus.into(), "CPU"),
        test.policy,
        test.rounds
    );
    if let Basis::Description(costs) = &test.basis {
        let _ = write!(text, "\nCosts of the kernel, measured before\n\n{}", table_of(costs));
    }
    for Prediction { name, measures, tested, .. } in predictions {
        let titles = tested.iter().map(|tested| (tested.change.to_string(), Align::Right));
        let mut table =
            Table::new(std::iter::once(("metric".to_string(), Align::Left)).chain(titles));
        for (metric, title) in
            measures.iter().filter_map(|measure| Some((measure.metric, measure.title?)))
        {
            let cell = |tested: &Tested| cell(tested, metric).unwrap_or_else(|| "-".to_string());
            table.row(std::iter::once(title.to_string()).chain(tested.iter().map(cell)));
        }
        let _ = write!(text, "\n{name}\n\n{table}");
    }
    if let Some(score) = Score::of(cells) {
        let _ = write!(text, "\nThe changes\n\n{score}");
    }
    let percent = |share: f64| format!("{:+.1} %", 100.0 * share);
    for Cell { workload, change, metric, predicted, measured } in
        cells.iter().filter(|cell| cell.is_miss())
    {
        let (said, so) = (percent(predicted.mean), percent(measured.mean));
        let _ = writeln!(text, "  {workload}, {change}: {metric} {said} predicted, {so} measured");
    }
    text
}

/// A column for each place where tasks run, a row for each cost.
fn table_of(costs: &Costs) -> Table {
    let titles = costs.iter().map(|(ground, _)| (ground.to_string(), Align::Right));
    let mut table = Table::new(std::iter::once(("cost".to_string(), Align::Left)).chain(titles));
    let columns: Vec<_> = costs.iter().map(|(_, costs)| costs.named()).collect();
    for (row, (name, _)) in columns.first().into_iter().flatten().enumerate() {
        let time = |column: &Vec<(&str, Option<Nanos>)>| {
            column[row].1.map_or("-".to_string(), |time| time.to_string())
        };
        table.row(std::iter::once((*name).to_string()).chain(columns.iter().map(time)));
    }
    table
}

fn cell(tested: &Tested, metric: Metric) -> Option<String> {
    let (predicted, measured) = (tested.predicted(metric)?, tested.measured(metric)?);
    let spread = measured
        .half_width
        .filter(|width| *width > 0.01 * measured.mean.abs() && measured.mean != 0.0);
    let spread = spread.map_or(String::new(), |width| {
        format!(" ±{:.0}%", (100.0 * width / measured.mean.abs()).ceil())
    });
    let error = tested.error(metric).map_or("-".to_string(), |error| match 100.0 * error {
        percent if percent > MOST => format!(">{MOST:+.0}%"),
        percent => format!("{percent:+.0}%"),
    });
    Some(format!(
        "{} {}{spread} {error}",
        quantity(predicted.mean, metric.unit()),
        quantity(measured.mean, metric.unit())
    ))
}
