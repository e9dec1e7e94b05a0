//! `schedlab run`: one run and its trace.

mod reservations;

use super::programs::Programs;
use super::{Caller, CommonArguments, MachineArguments, WorkloadArguments};
use clap::Args;
use laboratory::{Against, Experiment, Settings};
use program::Error;
use results::{Align, Answer, Results, Row, Table, quantity};
use schedsim::admission::Cpus;
use schedsim::policy::PolicySpec;
use std::path::PathBuf;
use worlds::experiment::parse_policy;
use worlds::simulator::Simulator;
use worlds::{By, Candidate, Observed};

/// Runs a workload once under one policy, and writes its trace
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab run workloads/redis.perf-script.txt.zst --policy \
                        take:rr\n  schedlab run workloads/redis.perf-script.txt.zst --policy \
                        eevdf --cpus 4 --trace redis-eevdf.trace --check\n  schedlab run \
                        unix1990 --policy take:rr --set load=0.5")]
pub struct Run {
    #[command(flatten)]
    workload: WorkloadArguments,
    /// The policy; see `schedlab list policies`
    #[arg(long, value_parser = parse_policy)]
    policy: PolicySpec,
    /// Number of CPUs [default: as recorded, or as in the workload]
    #[arg(long, value_parser = Cpus::parse)]
    cpus: Option<u16>,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    common: CommonArguments,
    /// Also show the numbers of each program, each task, or each size of demand
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Verify the run: no task on two CPUs, none lost, CPU time conserved, affinity and promises
    /// kept; and check that it repeats itself
    #[arg(long)]
    check: bool,
    /// Write every event to this file, for `schedlab diff`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl Run {
    /// Runs the workload and prints the result.
    pub fn run(self) -> Result<(), Error> {
        self.common.format.answer(self.answer(&Caller::default())?)
    }

    /// The result, under the policy of the `caller` if there is one.
    pub fn answer(&self, caller: &Caller<'_>) -> Result<Answer, Error> {
        let programs = Programs {
            set: &self.workload.set,
            load: &[],
            cpus: self.cpus.as_slice(),
            machine: &self.machine,
            common: &self.common,
            add_load: None,
            caller,
        };
        let all = programs.of(&self.workload.workload)?;
        let [program] = &all[..] else {
            return Err(Error::Usage(
                "a run has one workload: give one number of tasks".to_string(),
            ));
        };
        let program = program.clone();
        let candidate = caller.policies.first().map_or_else(
            || Candidate::Policy(self.policy.clone()),
            |(_, policy)| Candidate::Own(*policy),
        );
        let experiment = Experiment {
            programs: all,
            worlds: vec![Box::new(Simulator::new())],
            candidates: vec![candidate],
            against: Against::Nothing,
            cpus: self.cpus.into_iter().collect(),
            settings: Settings {
                check: self.check,
                by: self.by,
                ..Settings::once(self.common.seed)
            },
        };
        let (run, mut rows) = experiment.once(Observed::Events, self.trace.clone())?;
        let (events, hash) = run.trace.unwrap_or_default();
        for row in &mut rows {
            row.point = std::mem::take(&mut row.point)
                .without("machine")
                .with("trace_hash", format!("{hash:016x}"));
        }
        let text = match run.summary.as_ref().zip(program.subject("")) {
            Some((summary, subject)) => {
                let (of_tasks, of_all): (Vec<&Row>, Vec<&Row>) =
                    rows.iter().partition(|row| row.subject.is_some());
                let reservations = match summary.deadlines.is_empty() {
                    true => String::new(),
                    false => reservations::text(summary, subject.workload, rows[0].cpus),
                };
                let parts = if self.by.is_some() {
                    format!("\n{}", table(&of_tasks))
                } else {
                    String::new()
                };
                let machine = program
                    .closed()
                    .and_then(|_| program.machine())
                    .map(|machine| format!("Machine: {machine}\n"));
                format!(
                    "{}{}{}{reservations}",
                    program.headline(),
                    machine.unwrap_or_default(),
                    table(&of_all)
                ) + &parts
            }
            None => format!("{}\n{}", program.headline(), table(&rows.iter().collect::<Vec<_>>())),
        };
        Ok(Answer::new(Results::new(rows), format!("{text}\n{events} events, trace {hash:016x}\n")))
    }
}

/// A line for each metric.
fn table(rows: &[&Row]) -> Table {
    let mut table =
        Table::new([("metric", Align::Left), ("value", Align::Right), ("", Align::Left)]);
    for row in rows {
        let value = row.value.map_or("-".to_string(), |value| quantity(value, row.unit()));
        let of = row
            .subject_kind
            .zip(row.subject.as_ref())
            .map_or(String::new(), |(kind, subject)| format!(" {kind} {subject}"));
        table.row([row.metric.to_string() + &of, value, row.note.clone().unwrap_or_default()]);
    }
    table
}
