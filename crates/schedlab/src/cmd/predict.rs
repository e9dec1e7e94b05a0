//! `schedlab predict`: what a recording says of other conditions, and whether this machine agrees.

use crate::Error;
use crate::experiment::{Change, Prediction, Trial, parse_policy};
use crate::host::doctor::System;
use crate::host::run::Place;
use crate::output::{Align, Format, Results, Table, headline, quantity};
use crate::progress;
use crate::results_directory::ResultsDirectory;
use crate::workload::{ClosedWorkload, Workload};
use clap::Args;
use schedsim::Nanos;
use schedsim::admission::Cpus;
use schedsim::metrics::Metric;
use schedsim::policy::PolicySpec;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Puts the simulator's predictions to the test on this machine
///
/// Each workload is recorded, the recording is replayed on another number of CPUs, with another nice value and under SCHED_FIFO, and then all of that is done on this machine.
/// Needs root and perf.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  sudo schedlab predict\n  sudo schedlab predict hackbench:1 my-load.toml --ensemble 10 --nice 5 -o results/prediction"
)]
pub struct Predict {
    /// Workloads of tasks, built in or .toml files [default: hogs, periodic tasks beside a hog, hackbench, short threads and ping-pong]
    workloads: Vec<OsString>,
    /// How many CPUs the recording has
    #[arg(long, default_value_t = 2, value_parser = Cpus::parse)]
    cpus: u16,
    /// On how many CPUs it is predicted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = Cpus::parse)]
    to_cpus: u16,
    /// The nice value that the later half of a workload's kinds of tasks gets
    #[arg(long, value_name = "NICE", default_value_t = 10, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: i32,
    /// The priority that all tasks get under SCHED_FIFO
    #[arg(long, value_name = "PRIORITY", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=98))]
    fifo: u32,
    /// How often all of it is done
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ensemble: u32,
    /// The policy that stands for this kernel's fair scheduler [default: eevdf from 6.6 on, before that cfs]
    #[arg(long, value_parser = parse_policy)]
    policy: Option<PolicySpec>,
    /// Kill a run that takes longer
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Also write results (JSON, CSV, Parquet) and report.html to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Tasks that only compute, wake by the clock, wake one another in crowds and in pairs, and come and go.
const WORKLOADS: [&str; 5] = [
    "hogs:4?work=100ms",
    "periodic:4?hogs=1&times=25",
    "hackbench:1?loops=10",
    "pythagoras:200?work=400ms&alive=20",
    "ping-pong:2?times=2000",
];

impl Predict {
    pub fn run(self) -> Result<(), Error> {
        let workloads = self.workloads()?;
        let model = || parse_policy(System::this().fair_model()).map_err(Error::Internal);
        let policy = self.policy.clone().map_or_else(model, Ok)?;
        let changes = [Change::Nothing, Change::Cpus(self.to_cpus), Change::Nice(self.nice), Change::Fifo(self.fifo)];
        let limit = Duration::from_nanos(self.timeout.0);
        let trial = Trial { policy: &policy, changes: &changes, cpus: self.cpus, rounds: self.ensemble, limit };
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let mut place = Place::new()?;
        let bar = progress::bar("recording", (workloads.len() * changes.len()) as u64 * u64::from(self.ensemble));
        let test = |workload| Prediction::test(workload, &trial, &mut place, &bar);
        let predictions = workloads.iter().map(test).collect::<Result<Vec<Prediction>, Error>>();
        bar.finish_and_clear();
        let predictions = predictions?;
        let results = Results::new(predictions.iter().flat_map(|prediction| prediction.rows(&trial)).collect());
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            directory.finish()?;
        }
        results.print(self.format, || text(&predictions, &trial))
    }

    fn workloads(&self) -> Result<Vec<ClosedWorkload>, Error> {
        let closed = |name: &OsString| match Workload::resolve(name)? {
            Workload::Closed(workload) => Ok(*workload),
            _ => Err(Error::Usage(format!(
                "{} is not made of tasks that can be run again under other conditions; give a workload of tasks, as hackbench:1 or a file with [[task]]s",
                name.to_string_lossy()
            ))),
        };
        let given = if self.workloads.is_empty() { WORKLOADS.map(OsString::from).to_vec() } else { self.workloads.clone() };
        given.iter().map(closed).collect()
    }
}

/// A table per workload, a column per change: predicted, measured, and the error.
fn text(predictions: &[Prediction], trial: &Trial<'_>) -> String {
    let mut text = format!(
        "Recorded on {} CPUs; each cell: predicted by {}, measured, error. Means of {} rounds, ± half of a 95 % interval of what was measured.\n",
        trial.cpus, trial.policy, trial.rounds
    );
    for Prediction { name, tested } in predictions {
        let titles = tested.iter().map(|tested| (tested.change.to_string(), Align::Right));
        let mut table = Table::new(std::iter::once(("metric".to_string(), Align::Left)).chain(titles));
        for (metric, title) in headline() {
            let cell = |tested: &crate::experiment::Tested| cell(tested, metric).unwrap_or_else(|| "-".to_string());
            table.row(std::iter::once(title.to_string()).chain(tested.iter().map(cell)));
        }
        let _ = write!(text, "\n{name}\n\n{table}");
    }
    text
}

fn cell(tested: &crate::experiment::Tested, metric: &Metric) -> Option<String> {
    let (predicted, measured) = (tested.predicted(metric)?, tested.measured(metric)?);
    let spread = measured.half_width.filter(|width| *width > 0.01 * measured.mean.abs() && measured.mean != 0.0);
    let spread = spread.map_or(String::new(), |width| format!(" ±{:.0}%", (100.0 * width / measured.mean.abs()).ceil()));
    let error = tested.error(metric).map_or("-".to_string(), |error| format!("{:+.0}%", 100.0 * error));
    Some(format!("{} {}{spread} {error}", quantity(predicted.mean, metric.unit), quantity(measured.mean, metric.unit)))
}
