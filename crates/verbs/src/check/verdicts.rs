//! `schedlab check verdicts`: are equal candidates called equal, and known differences found?

use super::read_counts;
use crate::programs::Programs;
use crate::{Caller, CommonArguments, MachineArguments};
use clap::Args;
use laboratory::gate::{Assessment, Change, Gate, Rule, Tally, picture, product_rule};
use program::{Error, prepare_directory, write_whole};
use results::{Metric, Results, Row, World};
use schedsim::policy::PolicySpec;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use worlds::Program;
use worlds::experiment::parse_policy;
use worlds::simulator::ENSEMBLE;

/// Compares workloads with themselves: how often does a comparison call two equal candidates
/// different, and how often does it find a known difference?
///
/// Each workload is compared with itself under changes that make no difference: other seeds, other
/// CPU numbers, costs half a percent off, a slice one microsecond longer. Then it is compared with
/// longer slices, on half the CPUs and under a policy that starves tasks. The true effect of a
/// change comes from additional runs with different seeds. At most 1 % of the rows without a
/// difference may be called better or worse. At least 80 % of the differences beyond the margin and
/// the replay's error must be found.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab check verdicts --quick\n  schedlab check verdicts \
                        -o results/verdicts\n  schedlab check verdicts perf.data --policy \
                        eevdf,cfs\n\nExit codes: 0 both hold, 2 usage, 3 unusable input, 4 one \
                        of them does not hold.")]
pub struct Verdicts {
    /// Recordings and workloads of tasks [default: all in the folders workloads/ and
    /// workloads/causes/, and some built-in ones]
    workload: Vec<OsString>,
    /// Policies, each compared with itself
    #[arg(long, value_delimiter = ',', default_value = "eevdf,take:rr",
          value_parser = parse_policy)]
    policy: Vec<PolicySpec>,
    /// Number of runs of each candidate for a verdict
    #[arg(long, value_name = "N", default_value_t = ENSEMBLE,
          value_parser = clap::value_parser!(u32).range(2..=10_000))]
    ensemble: u32,
    /// Number of runs for the true effect
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(16..=10_000))]
    truth: u32,
    /// Only the changes that make no difference: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Show counts that were written before (verdicts.csv) instead of counting
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "quick"])]
    counts: Option<PathBuf>,
    /// Write the counts (verdicts.csv) and a picture of them (verdicts.svg) to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    machine: MachineArguments,
}

/// The folder of the default workloads.
const FOLDER: &str = "workloads";
/// The folder in it of recordings with causes.
const CAUSES: &str = "causes";
/// Built-in workloads that are also used.
const BUILT_IN: [&str; 4] = ["yield:8", "hackbench:1", "periodic:4", "two-threads:other"];

impl Verdicts {
    /// Runs the check and prints the result.
    pub fn run(self) -> Result<(), Error> {
        if let Some(directory) = &self.output {
            prepare_directory(directory)?;
        }
        let tally = match &self.counts {
            Some(path) => read_counts(path, "verdicts.csv", Tally::from_csv)?,
            None => self.count()?,
        };
        let assessment = tally.assess();
        if let Some(directory) = &self.output {
            write_whole(&directory.join("verdicts.csv"), tally.to_csv()?.as_bytes())?;
            write_whole(&directory.join("verdicts.svg"), picture(&tally).as_bytes())?;
        }
        self.common.format.print(&Results::new(self.rows(&tally, assessment)), || tally.text())?;
        assessment.expect()
    }

    fn count(&self) -> Result<Tally, Error> {
        let programs = if self.workload.is_empty() {
            let bundled = self.programs(&bundled(Path::new(FOLDER))?)?;
            bundled.into_iter().filter(|program| !program.is_drawn()).collect()
        } else {
            expect_scripts(self.programs(&self.workload)?)?
        };
        let changes = if self.quick { Change::null() } else { Change::all() };
        self.gate(changes, product_rule).test(&programs)
    }

    fn gate(&self, changes: Vec<Change>, rule: Rule) -> Gate {
        Gate {
            policies: self.policy.clone(),
            changes,
            ensemble: self.ensemble,
            truth: self.truth,
            seed: self.common.seed,
            rule,
        }
    }

    fn programs(&self, names: &[OsString]) -> Result<Vec<Program>, Error> {
        let caller = Caller::default();
        let programs = Programs {
            set: &[],
            load: &[],
            cpus: &[],
            machine: &self.machine,
            common: &self.common,
            add_load: None,
            in_guest: false,
            caller: &caller,
        };
        let mut all = Vec::new();
        for name in names {
            all.extend(programs.of(name)?);
        }
        Ok(all)
    }

    /// The two shares as rows.
    fn rows(&self, tally: &Tally, assessment: Assessment) -> Vec<Row> {
        let share = |metric: Metric, (whole, part): (u32, u32)| Row {
            workload: "all".to_string(),
            candidate: "rule".to_string(),
            seed: Some(self.common.seed),
            value: (whole > 0).then(|| f64::from(part) / f64::from(whole)),
            runs: self.ensemble,
            note: Some(format!("{part} of {whole} rows of {} comparisons", tally.comparisons())),
            ..Row::new(World::Sim, metric)
        };
        vec![
            share(Metric::false_verdicts, assessment.null),
            share(Metric::found_differences, assessment.due),
        ]
    }
}

/// Refuses workloads with drawn tasks.
fn expect_scripts(programs: Vec<Program>) -> Result<Vec<Program>, Error> {
    match programs.iter().find(|program| program.is_drawn()) {
        Some(drawn) => Err(Error::Usage(format!(
            "{}: its tasks are drawn anew in each run, so there is nothing to change: name \
             recordings and workloads of tasks",
            drawn.name()
        ))),
        None => Ok(programs),
    }
}

/// The recordings and workload files in `folder` and its folder of recordings with causes, each
/// sorted by name, and built-in workloads.
fn bundled(folder: &Path) -> Result<Vec<OsString>, Error> {
    let paths = files(folder)?.into_iter().chain(files(&folder.join(CAUSES))?);
    Ok(paths.map(PathBuf::into_os_string).chain(BUILT_IN.map(OsString::from)).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let missing = |error: std::io::Error| {
        Error::Usage(format!(
            "the folder {} is not here ({error}): name WORKLOADs, or run this where the sources \
             are",
            folder.display()
        ))
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(missing)? {
        paths.push(entry.map_err(missing)?.path());
    }
    paths.retain(|path| is_workload(path));
    paths.sort();
    Ok(paths)
}

fn is_workload(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_described = name.ends_with(".toml") || name.ends_with(".json");
    name.ends_with(".zst") || (is_described && !name.ends_with(".grid.toml"))
}

#[cfg(test)]
mod tests;
