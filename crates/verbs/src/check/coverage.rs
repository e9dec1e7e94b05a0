//! `schedlab check coverage`: do 95 % of the 95 % intervals include the theoretical value?

use super::read_counts;
use crate::output::Format;
use clap::Args;
use laboratory::gate::coverage::{
    Effort, INTERVALS, Length, Line, expect, from_csv, laws, picture, text, to_csv,
};
use program::{Error, prepare_directory, progress, write_whole};
use results::{Metric, Results, Row, World};
use schedsim::admission::Seed;
use std::path::PathBuf;
use worlds::simulator::ENSEMBLE;

/// Counts how often the 95 % interval of an ensemble of drawn tasks includes the theoretical value
///
/// M/M/1 and M/M/4 with FIFO and processor sharing, and `unix1990` with exponential bursts, have
/// exact formulas. They are for the mean response time, the mean time in queues and the mean number
/// of tasks. Each is run like a comparison, many times with different seeds. From 93 to 97 % of the
/// intervals must include the theoretical value. For comparison, the same is done with 1,000 tasks
/// from an empty system.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab check coverage --quick\n  schedlab check coverage \
                        -o results/coverage\n\nExit codes: 0 they do, 2 usage, 3 unusable input, \
                        4 they do not.")]
pub struct Coverage {
    /// Number of intervals for each mean
    #[arg(long, value_name = "N", default_value_t = INTERVALS,
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    intervals: u32,
    /// Number of runs for each interval
    #[arg(long, value_name = "N", default_value_t = ENSEMBLE,
          value_parser = clap::value_parser!(u32).range(2..=10_000))]
    ensemble: u32,
    /// The first seed
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// 100 intervals of the shortest runs: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Show counts that were written before (coverage.csv) instead of counting
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    counts: Option<PathBuf>,
    /// Write the counts (coverage.csv) and a picture of them (coverage.svg) to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The number of intervals with --quick, and its workloads.
const QUICK: u32 = 100;
const QUICK_LAWS: [&str; 3] = ["M/M/1 at 0.5", "M/M/4 at 0.7", "unix1990 at 0.5, 10 bursts"];

impl Coverage {
    pub fn run(self) -> Result<(), Error> {
        if let Some(directory) = &self.output {
            prepare_directory(directory)?;
        }
        let lines = match &self.counts {
            Some(path) => read_counts(path, "coverage.csv", from_csv)?,
            None => self.count()?,
        };
        if let Some(directory) = &self.output {
            write_whole(&directory.join("coverage.csv"), to_csv(&lines)?.as_bytes())?;
            write_whole(&directory.join("coverage.svg"), picture(&lines).as_bytes())?;
        }
        self.format
            .print(&Results::new(lines.iter().map(|line| self.row(line)).collect()), || {
                text(&lines)
            })?;
        expect(&lines)
    }

    fn count(&self) -> Result<Vec<Line>, Error> {
        let bar = progress::bar("counting", 0);
        let mut lines = Vec::new();
        for law in
            laws().into_iter().filter(|law| !self.quick || QUICK_LAWS.contains(&law.name.as_str()))
        {
            let lengths: &[Length] =
                if self.quick { &[Length::Usual] } else { &[Length::Usual, Length::FromEmpty] };
            for length in lengths {
                lines.extend(law.measure(*length, self.effort(), &bar)?);
            }
        }
        bar.finish_and_clear();
        Ok(lines)
    }

    fn effort(&self) -> Effort {
        Effort {
            intervals: if self.quick { self.intervals.min(QUICK) } else { self.intervals },
            ensemble: self.ensemble,
            seed: self.seed,
        }
    }

    fn row(&self, line: &Line) -> Row {
        Row {
            workload: line.workload.clone(),
            candidate: line.policy.clone(),
            seed: Some(self.seed),
            value: Some(line.share()),
            runs: line.intervals,
            note: Some(format!(
                "{} of {} intervals of {}, {}",
                line.held, line.intervals, line.metric, line.length
            )),
            ..Row::new(World::Sim, Metric::interval_coverage)
        }
    }
}

#[cfg(test)]
mod tests;
