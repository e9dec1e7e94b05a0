//! How workloads run on this machine.

use super::programs::parse_percent;
use crate::Error;
use crate::host::cpus;
use crate::laboratory::{RoundSettings, Stopping};
use crate::world::host::{HostSettings, HostWorld};
use clap::{Args, ValueEnum};
use schedsim::Nanos;
use std::path::Path;
use std::time::Duration;

/// Options of `--on host`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of this machine (--on host)")]
pub struct HostArguments {
    /// The nice value of tasks that ask for none, from -20 to 19
    #[arg(long, value_name = "NICE", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: i32,
    /// The CPUs to use, as in 0,2-3 [default: those that may be used, or the first --cpus of them]
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    affinity: Option<Cpus>,
    /// Kill a run that takes longer, and leave it out
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// Rounds that are not counted, before the others
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Do not run the baseline against itself first: for where whole comparisons are repeated, which shows the same
    #[arg(long)]
    no_self_comparison: bool,
    /// Repeat at least so long
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    min_time: Nanos,
    /// A difference within this share of the baseline makes none: it is shown to be equivalent
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    margin: f64,
    /// A rule for repetitions in place of --ensemble, --ci, --max-runs, --min-time and --max-time
    #[arg(long, value_enum, conflicts_with_all = ["min_time", "ensemble", "ci", "max_runs", "max_time"])]
    protocol: Option<Protocol>,
    /// Switch real-time throttling off while it runs: real-time tasks may then take all of every CPU. It is put back at the end, however that comes
    #[arg(long)]
    no_rt_throttling: bool,
    /// Run each class once more while perf records it: wakeup latencies and all other metrics of events, and traces in -o DIR. Needs root
    #[arg(long)]
    traced: bool,
    /// The command to run in place of a workload, with its arguments
    #[arg(last = true, index = 2, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// How often a run is repeated.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Protocol {
    /// At least five times and ten minutes, until the relative standard error is at most 1 %, at most an hour: the pslist post's.
    Pslist,
}

/// A list of CPUs; a type of its own, so that clap takes it for one value.
#[derive(Clone, Debug)]
struct Cpus(Vec<u16>);

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    cpus::parse_list(text).map(Cpus)
}

impl HostArguments {
    /// This machine; commands run in `directory`.
    pub fn world(&self, directory: Option<&Path>) -> Result<HostWorld, Error> {
        let affinity = self.affinity.as_ref().map_or(Vec::new(), |cpus| cpus.0.clone());
        cpus::choose(&affinity, None)?;
        Ok(HostWorld::new(HostSettings {
            affinity,
            nice: self.nice,
            limit: Duration::from_nanos(self.timeout.0),
            no_rt_throttling: self.no_rt_throttling,
            directory: directory.map(Path::to_path_buf),
        }))
    }

    /// The rule for repetitions, if one is named.
    pub fn protocol(&self) -> Option<Stopping> {
        self.protocol.map(|Protocol::Pslist| Stopping::PSLIST)
    }

    /// For how long runs are repeated at least.
    pub fn min_time(&self) -> Duration {
        Duration::from_nanos(self.min_time.0)
    }

    /// Whether each class runs once more while perf records it.
    pub fn traced(&self) -> bool {
        self.traced
    }

    /// How runs are repeated.
    pub fn rounds(&self, stopping: Stopping) -> RoundSettings {
        RoundSettings { warm_up: self.warm_up, against_itself: !self.no_self_comparison, stopping, margin: self.margin }
    }
}
