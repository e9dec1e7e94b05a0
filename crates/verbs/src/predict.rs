//! `schedlab predict`: predicts a recording under other conditions, and compares with this machine.

use crate::output::Format;
use clap::Args;
use formats::workload::Workload;
use laboratory::prediction::{Change, Prediction, Sides, Test, Tested};
use laboratory::results_directory::ResultsDirectory;
use program::{Error, progress};
use results::{Align, Metric, Results, Table, quantity};
use schedsim::admission::Cpus;
use schedsim::policy::PolicySpec;
use schedsim::{Machine, Nanos};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;
use worlds::experiment::parse_policy;
use worlds::host::doctor::System;
use worlds::load::Closed;
use worlds::simulator::Simulator;
use worlds::this_machine::{HostSettings, HostWorld};
use worlds::{Program, Trial, World};

/// Tests the simulator's predictions on this machine
///
/// Each workload is recorded, and the recording is replayed on another number of CPUs, with another
/// nice value, and under SCHED_FIFO. Then all of that is done on this machine. Needs root and perf.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  sudo schedlab predict\n  sudo schedlab predict hackbench:1 \
                        my-load.toml --ensemble 10 --nice 5 -o results/prediction")]
pub struct Predict {
    /// Workloads of tasks, built-in or .toml files [default: hogs, periodic tasks beside a hog,
    /// hackbench, short threads and ping-pong]
    workloads: Vec<OsString>,
    /// Number of CPUs of the recording
    #[arg(long, default_value_t = 2, value_parser = Cpus::parse)]
    cpus: u16,
    /// Number of CPUs of the prediction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Cpus::parse)]
    to_cpus: u16,
    /// The nice value for the second half of a workload's kinds of tasks
    #[arg(long, value_name = "NICE", default_value_t = 10, allow_hyphen_values = true,
          value_parser = clap::value_parser!(i8).range(-20..=19))]
    nice: i8,
    /// The priority of all tasks under SCHED_FIFO
    #[arg(long, value_name = "PRIORITY", default_value_t = 50,
          value_parser = clap::value_parser!(u8).range(1..=98))]
    fifo: u8,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ensemble: u32,
    /// The policy that models this kernel's fair scheduler [default: eevdf from 6.6 on, before that
    /// cfs]
    #[arg(long, value_parser = parse_policy)]
    policy: Option<PolicySpec>,
    /// Kill a run that takes longer
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write results (JSON, CSV, Parquet) and report.html to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
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

impl Predict {
    /// Runs the test and prints the result.
    pub fn run(self) -> Result<(), Error> {
        let programs = self.programs()?;
        let model = || parse_policy(System::this().fair_model()).map_err(Error::Internal);
        let policy = self.policy.clone().map_or_else(model, Ok)?;
        let changes = vec![
            Change::Nothing,
            Change::Cpus(self.to_cpus),
            Change::Nice(self.nice),
            Change::Fifo(self.fifo),
        ];
        let test = Test { policy, changes, cpus: self.cpus, rounds: self.ensemble };
        let limit = Duration::from_nanos(self.timeout.0);
        let settings = HostSettings {
            affinity: Vec::new(),
            nice: 0,
            limit,
            no_rt_throttling: false,
            directory: None,
            printed: Vec::new(),
        };
        let (mut host, mut simulator) = (HostWorld::new(settings), Simulator::new());
        let trials: Vec<Trial<'_>> = programs
            .iter()
            .map(|program| test.trials(program))
            .collect::<Result<Vec<_>, Error>>()?
            .concat();
        trials.iter().try_for_each(|trial| {
            host.cpus(trial.program, Some(trial.cpus)).and_then(|_| host.admit(trial))
        })?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        host.prepare(&trials)?;
        // Each trial is run, and replayed.
        let bar = progress::bar("recording", 2 * trials.len() as u64 * u64::from(self.ensemble));
        let mut sides = Sides { recording: &mut host, replaying: &mut simulator };
        let predictions = programs
            .iter()
            .map(|program| test.run(program, &mut sides, &bar))
            .collect::<Result<Vec<Prediction>, Error>>();
        bar.finish_and_clear();
        let predictions = predictions?;
        let results = Results::new(
            predictions.iter().flat_map(|prediction| prediction.rows(&test)).collect(),
        );
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            crate::output::finish(directory)?;
        }
        self.format.print(&results, || text(&predictions, &test))
    }

    fn programs(&self) -> Result<Vec<Program>, Error> {
        let closed = |name: &OsString| match Workload::resolve(name)? {
            Workload::Closed(workload) => {
                let (scripts, machine) = (workload.scripts(self.cpus)?, Machine::ideal(self.cpus));
                let closed = Closed {
                    workload: *workload,
                    scripts,
                    machine,
                    told: String::new(),
                    mips: None,
                    point: Default::default(),
                };
                Ok(Program::Closed(Box::new(closed)))
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
fn text(predictions: &[Prediction], test: &Test) -> String {
    let mut text = format!(
        "Recorded on {} CPUs; each cell: predicted by {}, measured, error. Means of {} rounds, ± \
         half of a 95 % interval of the measured value.\n",
        test.cpus, test.policy, test.rounds
    );
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
    text
}

fn cell(tested: &Tested, metric: Metric) -> Option<String> {
    let (predicted, measured) = (tested.predicted(metric)?, tested.measured(metric)?);
    let spread = measured
        .half_width
        .filter(|width| *width > 0.01 * measured.mean.abs() && measured.mean != 0.0);
    let spread = spread.map_or(String::new(), |width| {
        format!(" ±{:.0}%", (100.0 * width / measured.mean.abs()).ceil())
    });
    let error =
        tested.error(metric).map_or("-".to_string(), |error| format!("{:+.0}%", 100.0 * error));
    Some(format!(
        "{} {}{spread} {error}",
        quantity(predicted.mean, metric.unit()),
        quantity(measured.mean, metric.unit())
    ))
}
