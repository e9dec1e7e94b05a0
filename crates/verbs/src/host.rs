//! Options for workloads on this machine.

use super::command::CommandArguments;
use super::programs::parse_percent;
use clap::{Args, ValueEnum};
use laboratory::{RoundSettings, Stopping};
use program::Error;
use schedsim::Nanos;
use std::path::Path;
use std::time::Duration;
use worlds::host::cpus;
use worlds::this_machine::{HostSettings, HostWorld};

/// Options of `--on host`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of this machine (--on host)")]
pub struct HostArguments {
    /// The nice value of tasks without one of their own, from -20 to 19
    #[arg(long, value_name = "NICE", default_value_t = 0, allow_hyphen_values = true,
          value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: i32,
    /// The CPUs to use, as in 0,2-3 [default: the available ones, or the first --cpus of them]
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    affinity: Option<Cpus>,
    /// Warm-up rounds that are not counted
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Do not first compare the baseline with itself: for repetitions of complete comparisons,
    /// which show the same
    #[arg(long)]
    no_self_comparison: bool,
    /// Repeat for at least this time
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    min_time: Nanos,
    /// A difference within this share of the baseline does not matter: the candidates are
    /// equivalent
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    margin: f64,
    /// A stopping rule instead of --ensemble, --ci, --max-runs, --min-time and --max-time
    #[arg(long, value_enum,
          conflicts_with_all = ["min_time", "ensemble", "ci", "max_runs", "max_time"])]
    protocol: Option<Protocol>,
    /// Switch real-time throttling off during the runs: real-time tasks can then use 100 % of every
    /// CPU. It is restored at the end in every case
    #[arg(long)]
    no_rt_throttling: bool,
    /// Run each class once more under perf: gives wakeup latency and all other metrics of events,
    /// and traces in -o DIR. Needs root
    #[arg(long)]
    traced: bool,
}

/// A stopping rule.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Protocol {
    /// The rule of the pslist post: at least five times and ten minutes, and at most an hour. It
    /// ends when the relative standard error is at most 1 %.
    Pslist,
}

/// A list of CPUs; a separate type, so that clap treats it as one value.
#[derive(Clone, Debug)]
struct Cpus(Vec<u16>);

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    cpus::parse_list(text).map(Cpus)
}

impl HostArguments {
    /// This machine as a world, for `command`, which runs in `directory`.
    pub fn world(
        &self,
        command: &CommandArguments,
        directory: Option<&Path>,
    ) -> Result<HostWorld, Error> {
        let affinity = self.affinity.as_ref().map_or(Vec::new(), |cpus| cpus.0.clone());
        Ok(HostWorld::new(HostSettings {
            affinity,
            nice: self.nice,
            limit: Duration::from_nanos(command.timeout().0),
            no_rt_throttling: self.no_rt_throttling,
            directory: directory.map(Path::to_path_buf),
            printed: command.printed(),
        }))
    }

    /// The stopping rule, if one is named.
    pub fn protocol(&self) -> Option<Stopping> {
        self.protocol.map(|Protocol::Pslist| Stopping::PSLIST)
    }

    /// The shortest time of repetitions.
    pub fn min_time(&self) -> Duration {
        Duration::from_nanos(self.min_time.0)
    }

    /// Whether each class runs once more under perf.
    pub fn traced(&self) -> bool {
        self.traced
    }

    /// The settings of repetitions.
    pub fn rounds(&self, stopping: Stopping) -> RoundSettings {
        RoundSettings {
            warm_up: self.warm_up,
            against_itself: !self.no_self_comparison,
            stopping,
            margin: self.margin,
        }
    }
}
