//! `schedlab run`: one run and its trace.

use super::{CommonArguments, MachineArguments, load, parse_policy};
use crate::Error;
use crate::experiment::simulate;
use crate::output::{Align, Results, Row, Table, quantity};
use crate::trace_file::Writer;
use clap::Args;
use schedsim::metrics::CATALOGUE;
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Runs a workload once under one policy, and writes its trace
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab run workloads/redis.perf-script.txt.zst --policy take:rr\n  \
                        schedlab run workloads/redis.perf-script.txt.zst --policy eevdf --cpus 4 --trace redis-eevdf.trace --check")]
pub struct Run {
    /// A recording: perf.data or the text of `perf script`, either may be compressed with zstd
    workload: PathBuf,
    /// The policy; `schedlab list policies` shows them all
    #[arg(long, value_parser = parse_policy)]
    policy: PolicySpec,
    /// How many CPUs [default: as recorded]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    common: CommonArguments,
    /// Verify the run: no task on two CPUs, none lost, time conserved, affinity and promises held
    #[arg(long)]
    check: bool,
    /// Write every event to this file, for `schedlab diff`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl Run {
    pub fn run(self) -> Result<(), Error> {
        let recorded = load(&self.workload, &self.common, &self.machine)?;
        let machine = recorded.machine(self.cpus.unwrap_or(recorded.recording.cpus));
        let header = recorded.header(&self.policy, machine.cpus, self.common.seed);
        let mut writer = self.trace.as_deref().map(|path| Writer::create(path, &header)).transpose()?;
        let observer = writer.as_mut().map(|writer| writer as &mut dyn Observer);
        let run = simulate(&recorded, &machine, &self.policy, self.common.seed, self.check, observer)?;
        writer.map(Writer::finish).transpose()?;

        let rows = CATALOGUE.iter().map(|metric| Row {
            workload: recorded.name.clone(),
            policy: self.policy.to_string(),
            backend: "sim".to_string(),
            cpus: machine.cpus,
            seed: Some(self.common.seed),
            params: BTreeMap::from([("trace_hash".to_string(), format!("{:016x}", run.hash))]),
            metric: metric.id.to_string(),
            unit: metric.unit.to_string(),
            value: metric.read(&run.summary).value,
            ci_low: None,
            ci_high: None,
            runs: 1,
            verdict: None,
            note: metric.read(&run.summary).note.map(str::to_string),
        });
        let results = Results::new(rows.collect());
        let text = || {
            let mut table = Table::new([("metric", Align::Left), ("value", Align::Right), ("", Align::Left)]);
            for row in &results.rows {
                let value = row.value.map_or("-".to_string(), |value| quantity(value, &row.unit));
                table.row([row.metric.clone(), value, row.note.clone().unwrap_or_default()]);
            }
            let mut text = format!("{}{table}", recorded.headline());
            let _ = writeln!(text, "\n{} events, trace {:016x}", run.outcome.events, run.hash);
            text
        };
        results.print(self.common.format, text)?;
        match &run.violations[..] {
            [] => Ok(()),
            violations => {
                let list: Vec<String> = violations.iter().take(10).map(|violation| format!("  {violation}")).collect();
                Err(Error::Check(format!("{} checks failed:\n{}", violations.len(), list.join("\n"))))
            }
        }
    }
}
