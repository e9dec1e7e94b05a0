//! How often runs are repeated.

use super::programs::parse_percent;
use crate::laboratory::{Goal, Precision, Stopping};
use clap::Args;
use schedsim::Nanos;
use std::time::Duration;

/// Options of ensembles. Budgets count runs, so that the same command prints the same digits on any machine; a limit of time is for those who ask for it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of ensembles")]
pub struct RepetitionArguments {
    /// How many runs each candidate has: simulated ones differ by what the input does not determine (costs and bursts by 2 %, delays, phases, ties), guests by when they
    /// start, and runs on this machine by themselves. Of one run nothing is decided [default: 16; in guests 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ensemble: Option<u32>,
    /// Then go on until the 95 % half-width is at most this share of the mean; exit code 5 if --max-runs are not enough
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    ci: Option<f64>,
    /// The most runs of each candidate that --ci may take
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=100_000), requires = "ci")]
    max_runs: u32,
    /// Stop after this time, complete or not: rows that it cuts short say so, and the exit code is 5. The same command may then print other digits
    #[arg(long, value_name = "DURATION")]
    max_time: Option<Nanos>,
    #[arg(long, hide = true, aliases = ["boots", "rounds"], value_parser = renamed)]
    min_runs: Option<String>,
}

/// How many rounds are run on this machine unless the command says.
const ROUNDS: u32 = 16;

fn renamed(_: &str) -> Result<String, String> {
    Err("this option is --ensemble N now: the number of runs of each candidate".to_string())
}

impl RepetitionArguments {
    /// How many members an ensemble has, if it is said.
    pub fn ensemble(&self) -> Option<u32> {
        self.ensemble
    }

    /// How narrow intervals are to be, if they are to be.
    pub fn goal(&self) -> Option<Goal> {
        self.ci.map(|half_width| Goal { half_width, max_runs: self.max_runs.max(self.ensemble.unwrap_or(0)) })
    }

    /// When it ends in any case, if it does.
    pub fn max_time(&self) -> Option<Duration> {
        self.max_time.map(|time| Duration::from_nanos(time.0))
    }

    /// The same for rounds on this machine.
    pub fn stopping(&self, min_time: Duration) -> Stopping {
        let min_runs = self.ensemble.unwrap_or(ROUNDS);
        let goal = self.goal();
        // Rounds that are to last for a time are as many as that takes.
        let max_runs = if min_time.is_zero() { goal.map_or(min_runs, |goal| goal.max_runs) } else { u32::MAX };
        let precision = goal.map(|goal| Precision::HalfWidth(goal.half_width));
        Stopping { min_runs, max_runs: max_runs.max(min_runs), min_time, max_time: self.max_time(), precision }
    }
}
