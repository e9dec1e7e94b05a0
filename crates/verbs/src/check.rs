//! `schedlab check`: random workloads under all policies, checked against every rule.

mod coverage;
mod verdicts;

use super::{PolicyName, PolicyNames};
use crate::output::Format;
use clap::{Args, Subcommand};
use laboratory::swarm::{Examined, Finding, Stood, swarm};
use program::{Error, prepare_directory, progress, shell_word, write_whole};
use results::{Metric, Results, Row, World};
use schedsim::admission::Seed;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};
use worlds::compiled::{Compiled, is_one as is_compiled};
use worlds::experiment::all_policies;

/// Runs random workloads under policies and checks every run against all rules
///
/// Each seed draws a machine with one to five CPUs and up to nine tasks of all classes. They run,
/// sleep, yield, lock, fork, join, read, write, and wait for devices and timers. No task may be
/// lost or run in two places, CPU time is conserved, and affinity and the promises of the policy
/// hold. A compiled scheduler must not be ejected; it gets no real-time tasks. The first workload
/// that a policy fails is reduced to a small case and printed with the commands that repeat it.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  schedlab check\n  schedlab check --swarm 10000 --policy \
                  eevdf,cfs\n  schedlab check --swarm 1 --seed 278 --policy eevdf -o \
                  failures\n  schedlab check --policy scx:./main.bpf.o\n\nExit codes: 0 all rules held, 2 usage, 4 a rule was broken."
)]
pub struct Check {
    #[command(subcommand)]
    what: Option<What>,
    /// Number of workloads
    #[arg(long, value_name = "NUMBER", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    swarm: u64,
    /// Seed of the first workload; the others count up from it
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// Policies, separated by commas, or `all`; also a compiled scheduler of sched_ext, scx:FILE.bpf.o,
    /// the last of its list [default: all]
    #[arg(long, value_parser = PolicyNames::parse)]
    policy: Vec<PolicyNames>,
    /// Write the reduced cases of failing workloads to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What is checked instead of policies.
#[derive(Subcommand, Debug)]
enum What {
    Coverage(Box<coverage::Coverage>),
    Verdicts(Box<verdicts::Verdicts>),
}

/// Reads counts that a check wrote to `file`.
fn read_counts<T, E: fmt::Display>(
    path: &Path,
    file: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Error> {
    let wrong = |why: &dyn fmt::Display| {
        Error::Input(format!("{}: {why}; give a {file} that this command wrote", path.display()))
    };
    let wanted = format!("a {file} that this command wrote");
    let text =
        fs::read_to_string(path).map_err(|error| Error::unreadable(path, &error, &wanted))?;
    parse(&text).map_err(|error| wrong(&error))
}

impl Check {
    /// Runs the check and prints the result.
    pub fn run(mut self) -> Result<(), Error> {
        match self.what.take() {
            Some(What::Coverage(coverage)) => coverage.run(),
            Some(What::Verdicts(verdicts)) => verdicts.run(),
            None => self.swarm(),
        }
    }

    fn swarm(self) -> Result<(), Error> {
        let Some(end) = self.seed.checked_add(self.swarm) else {
            return Err(Error::Usage(format!(
                "there are no {} seeds from {} on: give a smaller --seed",
                self.swarm, self.seed
            )));
        };
        if let Some(dir) = &self.output {
            prepare_directory(dir)?;
        }
        let policies = self.policies()?;
        let bar = progress::bar("checking", 0);
        let stood = swarm(self.seed..end, &policies, &bar);
        bar.finish_and_clear();
        let findings: Vec<&Finding> =
            stood.iter().filter_map(|stood| stood.first.as_ref()).collect();
        if findings.is_empty() {
            let results = Results::new(stood.iter().map(|stood| self.row(stood)).collect());
            return self.format.print(&results, || {
                format!(
                    "{} random workloads under {} policies: all rules held.\n",
                    self.swarm,
                    policies.len()
                )
            });
        }
        let mut message =
            format!("{} of {} policies broke a rule:\n", findings.len(), policies.len());
        for finding in findings {
            message += &self.report(finding)?;
        }
        Err(Error::Check(message))
    }

    /// What is checked, each once.
    fn policies(&self) -> Result<Vec<Examined>, Error> {
        if self.policy.is_empty() {
            return Ok(all_policies().into_iter().map(Examined::Policy).collect());
        }
        let names = self.policy.iter().flat_map(|PolicyNames(names)| names);
        let (mut compiled, mut others) = (BTreeSet::new(), Vec::new());
        for name in names {
            match name {
                PolicyName::Bpf(name) if is_compiled(name) => _ = compiled.insert(name.as_str()),
                other => others.push(other.clone()),
            }
        }
        let others = PolicyName::all_simulated(&others)?.into_iter().map(Examined::Policy);
        let compiled =
            compiled.into_iter().map(|name| Compiled::find(name).map(Examined::Compiled));
        others.map(Ok).chain(compiled).collect()
    }

    fn row(&self, stood: &Stood) -> Row {
        Row {
            workload: "swarm".to_string(),
            candidate: stood.policy.to_string(),
            seed: Some(self.seed),
            value: Some(f64::from(stood.failed)),
            runs: u32::try_from(self.swarm).unwrap_or(u32::MAX),
            note: Some("each seed draws its own machine, of one to five CPUs".to_string()),
            ..Row::new(World::Sim, Metric::failed_workloads)
        }
    }

    /// The failure, and the commands that repeat it.
    fn report(&self, finding: &Finding) -> Result<String, Error> {
        let mut text =
            format!("\n{}: {}\n  again: {}\n", finding.policy, finding.failure, finding.again());
        let file = finding.file_name();
        let content = finding.to_toml()?;
        let (path, given) = match &self.output {
            Some(dir) => {
                let path = dir.join(file);
                write_whole(&path, content.as_bytes())?;
                (shell_word(&path.display().to_string()), None)
            }
            None => (file, Some(content)),
        };
        let command = finding.run_command(&path);
        let _ = match &given {
            Some(_) => {
                writeln!(text, "  reduced case, saved as {path} (-o DIR does that): {command}")
            }
            None => writeln!(text, "  reduced case: {command}"),
        };
        if finding.policy.is_compiled() {
            let _ = writeln!(text, "  what it does: {command} --trace-bpf calls");
        }
        if let Some(content) = given {
            let _ = write!(text, "\n{content}\n");
        }
        Ok(text)
    }
}
