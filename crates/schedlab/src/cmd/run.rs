//! `schedlab run`: one run and its trace.

mod reservations;

use super::{CommonArguments, MachineArguments, STOCHASTIC_IS_FLAT, WorkloadArguments, load};
use crate::Error;
use crate::experiment::{Candidate, Subject, check_candidate, parse_policy, simulate, simulate_candidate};
use crate::output::{Align, Answer, Point, Results, Row, Table, World, quantity, registered};
use crate::trace_file::{Header, Writer};
use crate::workload::{ClosedWorkload, Template, Workload};
use clap::Args;
use schedsim::admission::Cpus;
use schedsim::checks::Violation;
use schedsim::metrics::CATALOGUE;
use schedsim::policy::PolicySpec;
use schedsim::trace::{Observer, TraceHash};
use std::path::{Path, PathBuf};

/// Runs a workload once under one policy, and writes its trace
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab run workloads/redis.perf-script.txt.zst --policy take:rr\n  \
                        schedlab run workloads/redis.perf-script.txt.zst --policy eevdf --cpus 4 --trace redis-eevdf.trace --check\n  \
                        schedlab run unix1990 --policy take:rr --set load=0.5")]
pub struct Run {
    #[command(flatten)]
    workload: WorkloadArguments,
    /// The policy; `schedlab list policies` shows them all
    #[arg(long, value_parser = parse_policy)]
    policy: PolicySpec,
    /// How many CPUs [default: as recorded, or as the workload says]
    #[arg(long, value_parser = Cpus::parse)]
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
        self.answer(None)?.print(self.common.format)
    }

    /// What it comes to, under a policy of the `caller`'s own if there is one.
    pub fn answer(&self, caller: Option<&dyn Candidate>) -> Result<Answer, Error> {
        match self.workload.resolve()? {
            Workload::Recording(path) => self.recorded(&path, caller),
            Workload::Stochastic(template) => self.stochastic(&template, caller),
            Workload::Closed(workload) => self.closed(&workload, caller),
        }
    }

    fn stochastic(&self, template: &Template, caller: Option<&dyn Candidate>) -> Result<Answer, Error> {
        self.machine.expect_flat(STOCHASTIC_IS_FLAT)?;
        let mut parameters = self.workload.parameters(&self.machine);
        if let Some(cpus) = self.cpus {
            parameters.insert("cpus", i64::from(cpus).into());
        }
        let workload = template.with(&parameters)?;
        let named = workload.policy(&self.policy).map_err(|error| Error::Usage(error.to_string()))?;
        let policy = caller.unwrap_or(&named);
        let shown = caller.map_or_else(|| self.policy.to_string(), |caller| caller.to_string());
        let (cpus, seed) = (workload.machine.cpus, self.common.seed);
        let version = env!("CARGO_PKG_VERSION").to_string();
        let header = Header { workload: workload.name.clone(), policy: shown.clone(), cpus, seed, version, tasks: Vec::new() };
        let mut writer = self.trace.as_deref().map(|path| Writer::create(path, &header)).transpose()?;
        let mut hash = TraceHash::new();
        let run = match &mut writer {
            Some(writer) => simulate_candidate(&workload, policy, seed, vec![&mut hash, writer])?,
            None => simulate_candidate(&workload, policy, seed, vec![&mut hash])?,
        };
        writer.map(Writer::finish).transpose()?;
        let mut rows = run.rows(&workload, &shown, seed);
        rows.iter_mut().for_each(|row| row.point.set("trace_hash", format!("{:016x}", hash.value())));
        let results = Results::new(rows);
        let text = format!("{workload}\n\n{}\n{} events, trace {:016x}\n", table(&results.rows), run.outcome.events, hash.value());
        let violations = if self.check { check_candidate(&workload, policy, seed)? } else { Vec::new() };
        Ok(Answer { results, text, end: refuse(&violations) })
    }

    fn recorded(&self, path: &Path, caller: Option<&dyn Candidate>) -> Result<Answer, Error> {
        self.workload.expect_no_parameters(path)?;
        let recorded = load(path, &self.common, &self.machine)?;
        let machine = self.machine.applied(self.machine.file()?.as_ref(), &recorded.machine);
        let subject = Subject { machine: &machine, ..recorded.subject() };
        self.scripted(subject, caller, self.cpus(recorded.recording.cpus)?, &recorded.headline())
    }

    fn closed(&self, workload: &ClosedWorkload, caller: Option<&dyn Candidate>) -> Result<Answer, Error> {
        self.workload.expect_no_parameters_of_closed()?;
        let cpus = self.cpus(workload.cpus())?;
        let (scripts, machine) = (workload.scripts(cpus)?, self.machine.of_closed(cpus)?);
        let subject = Subject::of_closed(workload, &scripts, &machine, self.machine.mips);
        self.scripted(subject, caller, cpus, &format!("{}Machine: {}\n", workload.headline(), self.machine.told_of_closed(&machine)))
    }

    fn cpus(&self, of_workload: u16) -> Result<u16, Error> {
        Ok(self.machine.cpus(self.cpus.as_slice(), of_workload)?[0])
    }

    fn scripted(&self, subject: Subject<'_>, caller: Option<&dyn Candidate>, cpus: u16, headline: &str) -> Result<Answer, Error> {
        let policy = caller.unwrap_or(&self.policy);
        let machine = subject.machine(cpus);
        let header = subject.header(policy, cpus, self.common.seed);
        let mut writer = self.trace.as_deref().map(|path| Writer::create(path, &header)).transpose()?;
        let observer = writer.as_mut().map(|writer| writer as &mut dyn Observer);
        let run = simulate(subject, &machine, policy, self.common.seed, self.check, observer)?;
        writer.map(Writer::finish).transpose()?;

        let mut rows: Vec<Row> = Vec::new();
        rows.extend(CATALOGUE.iter().map(|metric| Row {
            workload: subject.name.to_string(),
            candidate: policy.to_string(),
            cpus,
            seed: Some(self.common.seed),
            point: Point::new().with("trace_hash", format!("{:016x}", run.hash)),
            value: metric.read(&run.summary).value,
            runs: 1,
            note: metric.read(&run.summary).note.map(str::to_string),
            ..Row::new(World::Sim, registered(metric.id))
        }));
        let metrics = table(&rows);
        let of_tasks = rows.first().map_or(Vec::new(), |row| reservations::rows(&run, subject.workload, row));
        rows.extend(of_tasks);
        let results = Results::new(rows);
        let reservations = reservations::text(&run, subject.workload, cpus);
        let text = format!("{headline}{metrics}{reservations}\n{} events, trace {:016x}\n", run.outcome.events, run.hash);
        Ok(Answer { results, text, end: refuse(&run.violations) })
    }
}

/// A line for each metric.
fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([("metric", Align::Left), ("value", Align::Right), ("", Align::Left)]);
    for row in rows {
        let value = row.value.map_or("-".to_string(), |value| quantity(value, row.unit()));
        let of = row.subject_kind.zip(row.subject.as_ref()).map_or(String::new(), |(kind, subject)| format!(" {kind} {subject}"));
        table.row([row.metric.to_string() + &of, value, row.note.clone().unwrap_or_default()]);
    }
    table
}

fn refuse(violations: &[Violation]) -> Result<(), Error> {
    if violations.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = violations.iter().take(10).map(|violation| format!("  {violation}")).collect();
    Err(Error::Check(format!("{} checks failed:\n{}", violations.len(), list.join("\n"))))
}
