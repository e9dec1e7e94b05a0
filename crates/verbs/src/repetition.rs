//! Options for the number of runs.

use super::programs::parse_percent;
use clap::Args;
use laboratory::{Goal, Precision, Stopping};
use schedsim::Nanos;
use std::time::Duration;

/// Options of ensembles. Budgets count runs, so that the same command prints the same digits on any
/// machine; a time limit is optional.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of ensembles")]
pub struct RepetitionArguments {
    /// Number of runs of each candidate. Simulated runs differ in what the input does not
    /// determine: costs and bursts by 2 %, delays, phases, ties. Guests differ by their start
    /// between two ticks, and runs on this machine by themselves. A single run gets no verdict
    /// [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ensemble: Option<u32>,
    /// Continue until the 95 % half-width is at most this share of the mean; exit code 5 if
    /// --max-runs are not enough
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    ci: Option<f64>,
    /// The largest number of runs of each candidate with --ci
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(2..=100_000), requires = "ci")]
    max_runs: u32,
    /// Stop after this time, complete or not: incomplete rows are marked, and the exit code is 5.
    /// The same command may then print other digits
    #[arg(long, value_name = "DURATION")]
    max_time: Option<Nanos>,
    #[arg(long, hide = true, aliases = ["boots", "rounds"], value_parser = renamed)]
    min_runs: Option<String>,
}

/// The default number of rounds on this machine.
const ROUNDS: u32 = 16;

fn renamed(_: &str) -> Result<String, String> {
    Err("this option is --ensemble N now: the number of runs of each candidate".to_string())
}

impl RepetitionArguments {
    /// The number of members of an ensemble, if given.
    pub fn ensemble(&self) -> Option<u32> {
        self.ensemble
    }

    /// The required width of intervals, if given.
    pub fn goal(&self) -> Option<Goal> {
        self.ci.map(|half_width| Goal {
            half_width,
            max_runs: self.max_runs.max(self.ensemble.unwrap_or(0)),
        })
    }

    /// The time limit, if given.
    pub fn max_time(&self) -> Option<Duration> {
        self.max_time.map(|time| Duration::from_nanos(time.0))
    }

    /// The stopping rule for rounds on this machine.
    pub fn stopping(&self, min_time: Duration) -> Stopping {
        let min_runs = self.ensemble.unwrap_or(ROUNDS);
        let goal = self.goal();
        // With a shortest time, the number of rounds is not limited.
        let max_runs =
            if min_time.is_zero() { goal.map_or(min_runs, |goal| goal.max_runs) } else { u32::MAX };
        let precision = goal.map(|goal| Precision::HalfWidth(goal.half_width));
        Stopping {
            min_runs,
            max_runs: max_runs.max(min_runs),
            min_time,
            max_time: self.max_time(),
            precision,
        }
    }
}
