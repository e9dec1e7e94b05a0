//! `schedlab compare` of a stochastic workload: policies at several loads and numbers of CPUs.

use super::Compare;
use crate::Error;
use crate::cmd::STOCHASTIC_IS_FLAT;
use crate::experiment::{check_open, compare_open};
use crate::output::{Align, Answer, Point, Results, Row, Table, open_cell, open_headline};
use crate::progress;
use crate::results_directory::ResultsDirectory;
use crate::workload::{Stochastic, Template};
use rayon::prelude::*;
use schedsim::policy::PolicySpec;
use std::fmt::Write;
use toml::Value;

/// The policies that are compared by default.
pub(super) const POLICIES: &str = "central:rr,initial:rr,take:rr";
/// The policy against which the others are held by default.
pub(super) const BASELINE: &str = "initial:rr";

impl Compare {
    pub(super) fn stochastic(&self, template: &Template) -> Result<Answer, Error> {
        self.machine.expect_flat(STOCHASTIC_IS_FLAT)?;
        self.expect_no_added_load()?;
        let workloads = self.variants(template)?;
        let (policies, baseline) = (self.policies(POLICIES)?, self.baseline(BASELINE)?);
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        if self.check {
            verify(&workloads, &policies, self.common.seed)?;
        }
        let bar = progress::bar("simulating", 0);
        let rows = compare_open(&workloads, &baseline, &policies, self.repetition(), &bar);
        bar.finish_and_clear();
        let results = Results::new(rows?);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            directory.finish()?;
        }
        let text = self.stochastic_text(&workloads, &baseline, &results.rows);
        Ok(Answer::new(results, text))
    }

    /// The workload at each load on each number of CPUs that was asked for.
    fn variants(&self, template: &Template) -> Result<Vec<Stochastic>, Error> {
        let mut variants = vec![self.workload.parameters(&self.machine)];
        for (key, values) in [
            ("cpus", self.cpus.iter().map(|&cpus| i64::from(cpus).into()).collect::<Vec<Value>>()),
            ("load", self.load.iter().map(|&load| load.into()).collect()),
        ] {
            if !values.is_empty() {
                variants = variants.iter().flat_map(|given| values.iter().map(move |value| given.with(key, value.clone()))).collect();
            }
        }
        variants.iter().map(|parameters| template.with(parameters)).collect()
    }

    fn stochastic_text(&self, workloads: &[Stochastic], baseline: &PolicySpec, rows: &[Row]) -> String {
        let mut text = String::new();
        for workload in workloads {
            let point = Point::read(&workload.parameters);
            let of_workload = |row: &&Row| row.cpus == workload.machine.cpus && row.point == point && row.subject.is_none();
            let rows: Vec<&Row> = rows.iter().filter(of_workload).collect();
            let _ = writeln!(text, "{workload}; against {baseline}, {} runs:\n\n{}", rows.first().map_or(0, |row| row.runs), table(&rows));
        }
        if self.check {
            text += "All checks held.\n\n";
        }
        text + "+ better  - worse  = the same  ~ undecided, by the paired difference; ± half of a 95 % interval where above 1%\n"
    }
}

/// Runs each policy once under all checks.
fn verify(workloads: &[Stochastic], policies: &[PolicySpec], seed: u64) -> Result<(), Error> {
    let jobs: Vec<(&Stochastic, &PolicySpec)> =
        workloads.iter().flat_map(|workload| policies.iter().map(move |policy| (workload, policy))).collect();
    jobs.into_par_iter().try_for_each(|(workload, policy)| match &check_open(workload, policy, seed)?[..] {
        [] => Ok(()),
        [first, more @ ..] => Err(Error::Check(format!("{workload}: {policy}, seed {seed}: {first} ({} more violations)", more.len()))),
    })
}

/// One row per policy, one column per metric; reasons for missing numbers below.
fn table(rows: &[&Row]) -> String {
    let columns = open_headline().map(|(_, title)| (title, Align::Right));
    let mut table = Table::new(std::iter::once(("policy", Align::Left)).chain(columns));
    let mut policies: Vec<&str> = rows.iter().map(|row| row.candidate.as_str()).collect();
    policies.dedup();
    let mut notes: Vec<String> = Vec::new();
    for policy in policies {
        let of_policy = |metric: &str| rows.iter().find(|row| row.candidate == policy && row.metric.id() == metric);
        let cells = open_headline().map(|(metric, _)| of_policy(metric).map_or(String::new(), |row| open_cell(row)));
        table.row(std::iter::once(policy.to_string()).chain(cells));
        if let Some(note) = of_policy("grr").and_then(|row| row.note.as_ref()) {
            notes.push(format!("{policy}: {note}\n"));
        }
    }
    format!("{table}{}", notes.concat())
}
