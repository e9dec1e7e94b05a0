//! `schedlab run`: one run and its trace.

mod reservations;

use super::command::CommandArguments;
use super::guests::GuestArguments;
use super::programs::Programs;
use super::{Caller, CommonArguments, MachineArguments, PolicyName};
use crate::output::Format;
use clap::{Args, ValueEnum};
use formats::workload::Parameters;
use laboratory::results_directory::ResultsDirectory;
use laboratory::{Against, Experiment, Once, Settings};
use program::{Error, progress};
use results::{Align, Answer, Metric, Results, Row, Table, quantity};
use schedlab_runner::class::Class;
use schedsim::admission::Cpus;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worlds::compiled::traced::{BpfFilter, BpfTrace};
use worlds::guest::GuestWorld;
use worlds::simulator::Simulator;
use worlds::{By, Candidate, Ended, Observed, World};

/// Runs a workload or a command once under one policy, and writes its trace
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab run workloads/redis.perf-script.txt.zst --policy \
                        take:rr\n  schedlab run workloads/redis.perf-script.txt.zst --policy \
                        eevdf --cpus 4 --trace redis-eevdf.trace --check\n  schedlab run \
                        unix1990 --policy take:rr --set load=0.5\n  schedlab run --on vm \
                        --stdout answer.txt -- sqlite3 :memory: 'select 1 + 1'")]
pub struct Run {
    /// A built-in workload, a workload file (.toml), or a recording: perf.data, trace.dat, Perfetto's,
    /// systrace's or Chrome's, or the text of `perf script`, `trace-cmd report` or ftrace, plain or
    /// compressed with zstd
    #[arg(required_unless_present = "command", index = 1)]
    workload: Option<OsString>,
    /// A parameter of a stochastic workload, as in tmc=2ms; `schedlab list workloads` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Parameters>,
    /// Where it runs: simulated, or in a real kernel
    #[arg(long, value_enum, default_value = "sim")]
    on: Backend,
    /// The policy; see `schedlab list policies`. On vm also kernel:CLASS and bpf:NAME, as in
    /// `schedlab compare` [default on vm: kernel:other]
    #[arg(long, value_parser = PolicyName::parse)]
    policy: Option<PolicyName>,
    /// Number of CPUs [default: as recorded, or as in the workload]
    #[arg(long, value_parser = Cpus::parse)]
    cpus: Option<u16>,
    #[command(flatten)]
    common: CommonArguments,
    /// Also show the numbers of each program, each task, or each size of demand
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Verify the run: no task on two CPUs, none lost, CPU time conserved, affinity and promises
    /// kept; and check that it repeats itself
    #[arg(long)]
    check: bool,
    /// Show what a compiled scheduler does (scx:FILE.bpf.o, in the simulator), as in
    /// 'enqueue,dispatch task=redis at=2ms..3ms lines'
    ///
    /// The words may be in any order. Callbacks are those of sched_ext_ops, and `timer`; all by
    /// default. `task=` takes names and pids, `cpu=` CPUs, as in cpu=0,2-3. How much is shown:
    /// `callbacks`, `calls`, `writes` (the default) or `lines`. `maps` shows maps after each
    /// callback, `costs` its instructions. With -o DIR all goes to DIR/schedulers/trace-bpf.txt.
    #[arg(long, value_name = "FILTER")]
    trace_bpf: Option<BpfFilter>,
    /// Write every event to this file, for `schedlab diff`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write results (JSON, CSV, Parquet), the trace (schedlab's and Perfetto's) and report.html to
    /// this directory
    #[arg(short, value_name = "DIR", conflicts_with = "trace")]
    output: Option<PathBuf>,
    /// Write what a command writes to its standard output to this file, byte by byte
    #[arg(long, value_name = "FILE", requires = "command")]
    stdout: Option<PathBuf>,
    /// The same for its standard error
    #[arg(long, value_name = "FILE", requires = "command")]
    stderr: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    guests: GuestArguments,
    #[command(flatten)]
    command: CommandArguments,
}

/// The world of a run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Backend {
    /// In the simulator.
    Sim,
    /// In a real kernel under QEMU, with a clock that counts instructions.
    Vm,
}

impl Run {
    /// Runs the workload and prints the result.
    pub fn run(self) -> Result<(), Error> {
        self.common.format.answer(self.answer(&Caller::default())?)
    }

    /// The result, under the policy of the `caller` if there is one.
    pub fn answer(&self, caller: &Caller<'_>) -> Result<Answer, Error> {
        let programs = Programs {
            set: &self.set,
            load: &[],
            cpus: self.cpus.as_slice(),
            machine: &self.machine,
            common: &self.common,
            add_load: None,
            in_guest: self.on == Backend::Vm,
            caller,
        };
        self.command.check(self.on == Backend::Vm)?;
        self.expect_traceable()?;
        let all = match (&self.workload, &self.command.command[..]) {
            (Some(workload), []) => programs.of(workload)?,
            (None, words) => vec![Programs::command(words)],
            (Some(workload), _) => {
                return Err(Error::Usage(format!(
                    "give either the workload {} or a command behind --, not both",
                    workload.to_string_lossy()
                )));
            }
        };
        let [program] = &all[..] else {
            return Err(Error::Usage(
                "a run has one workload: give one number of tasks".to_string(),
            ));
        };
        let program = program.clone();
        // The programs of a command are not known before.
        let by = self.by.or(program.command().map(|_| By::Comm));
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let bpf = self.bpf_trace(directory.as_ref())?;
        let experiment = Experiment {
            programs: all,
            worlds: vec![self.world(caller, bpf.as_ref().map(|(trace, _)| trace))?],
            candidates: vec![self.candidate(caller)?],
            against: Against::Nothing,
            cpus: self.cpus.into_iter().collect(),
            settings: Settings { check: self.check, by, ..Settings::once(self.common.seed) },
        };
        let trace = match &directory {
            Some(directory) => Some(directory.trace_of_run()?),
            None => self.trace.clone(),
        };
        let once = experiment.once(Observed::Events, trace);
        // What a scheduler did until it was ejected is wanted most.
        let traced = bpf.map(|(trace, to)| (trace.finish(), to));
        if let (Err(_), Some((Ok(1..), to))) = (&once, &traced) {
            set_apart(to)?;
        }
        let Once { run, mut rows, inputs } = once?;
        if let Some((lines, to)) = traced {
            match lines.map_err(|error| Error::output(&to, error))? {
                0 => program::complain!(
                    "schedlab: --trace-bpf: no callback of the run is as the filter says"
                ),
                _ => set_apart(&to)?,
            }
        }
        for row in &mut rows {
            let mut point = std::mem::take(&mut row.point);
            if let Some((_, hash)) = run.trace {
                point = point.without("machine").with("trace_hash", format!("{hash:016x}"));
            }
            if let Some(ended) = &run.ended {
                point = point.with("exit_status", ended.status.to_string());
            }
            row.point = point;
        }
        if let Some(ended) = &run.ended {
            for (to, bytes) in [(&self.stdout, &ended.stdout), (&self.stderr, &ended.stderr)] {
                to.as_deref().map_or(Ok(()), |to| write(to, bytes))?;
            }
        }
        let text = match run.summary.as_ref().zip(program.subject("")) {
            Some((summary, subject)) => {
                let (of_tasks, of_all): (Vec<&Row>, Vec<&Row>) =
                    self.shown(&rows).into_iter().partition(|row| row.subject.is_some());
                let reservations = match summary.deadlines.is_empty() {
                    true => String::new(),
                    false => reservations::text(summary, subject.workload, rows[0].cpus),
                };
                let parts =
                    if by.is_some() { format!("\n{}", table(&of_tasks)) } else { String::new() };
                let machine = program
                    .closed()
                    .filter(|_| self.on == Backend::Sim)
                    .and_then(|_| program.machine())
                    .map(|machine| format!("Machine: {machine}\n"));
                format!(
                    "{}{}{}{reservations}",
                    program.headline(),
                    machine.unwrap_or_default(),
                    table(&of_all)
                ) + &parts
            }
            None => format!("{}\n{}", program.headline(), table(&self.shown(&rows))),
        };
        let trace =
            run.trace.map(|(events, hash)| format!("\n{events} events, trace {hash:016x}\n"));
        let ended = run.ended.as_ref().map(outputs);
        let text = text + &trace.unwrap_or_default() + &ended.unwrap_or_default();
        let answer = Answer { inputs, ..Answer::new(Results::new(rows), text) };
        let named = self.machine.inputs(self.workload.as_deref().into_iter());
        if let Some(directory) = &directory {
            directory.write(&answer.results, Vec::new())?;
            let bar = progress::bar("writing the trace for Perfetto", 0);
            directory.export_traces(&bar)?;
            bar.finish_and_clear();
        }
        let answer = crate::output::pinned(answer, named, self.output.as_deref())?;
        directory.map_or(Ok(()), crate::output::finish)?;
        Ok(answer)
    }

    /// The rows without those of functions that are not among the most expensive ones wanted.
    fn shown<'r>(&self, rows: &'r [Row]) -> Vec<&'r Row> {
        let is_of_function = |row: &&Row| {
            [Metric::instructions_in_function, Metric::instructions_per_yield_in_function]
                .contains(&row.metric)
        };
        let (mut functions, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(is_of_function);
        functions
            .sort_by(|one, other| other.value.unwrap_or(0.0).total_cmp(&one.value.unwrap_or(0.0)));
        functions.truncate(self.guests.functions().unwrap_or(0));
        others.into_iter().chain(functions).collect()
    }

    /// Refuses a trace of a scheduler where there is none, or no room for it.
    fn expect_traceable(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Usage(format!("--trace-bpf {what}")));
        match self.trace_bpf {
            None => Ok(()),
            Some(_) if self.on == Backend::Vm => {
                wrong("shows a scheduler that the simulator runs: leave --on vm out")
            }
            Some(_) if self.common.format != Format::Text && self.output.is_none() => wrong(
                "writes text to standard output, where the results go: give -o DIR, or --format \
                 text",
            ),
            Some(_) => Ok(()),
        }
    }

    /// Where what a compiled scheduler does is written, if that is wanted, and what that is called.
    fn bpf_trace(
        &self,
        directory: Option<&ResultsDirectory>,
    ) -> Result<Option<(Arc<BpfTrace>, PathBuf)>, Error> {
        let Some(filter) = &self.trace_bpf else { return Ok(None) };
        let (to, name): (Box<dyn Write + Send>, PathBuf) = match directory {
            None => (Box::new(std::io::stdout()), STANDARD_OUTPUT.into()),
            Some(directory) => {
                let path = directory.trace_of_bpf()?;
                let file = File::create(&path).map_err(|error| Error::output(&path, error))?;
                (Box::new(BufWriter::new(file)), path)
            }
        };
        Ok(Some((Arc::new(BpfTrace::new(filter.clone(), to)), name)))
    }

    fn world(
        &self,
        caller: &Caller<'_>,
        trace: Option<&Arc<BpfTrace>>,
    ) -> Result<Box<dyn World>, Error> {
        if self.on == Backend::Sim {
            let simulator = Simulator::new();
            return Ok(Box::new(match trace {
                Some(trace) => simulator.tracing(Arc::clone(trace)),
                None => simulator,
            }));
        }
        let machine = self.machine.file()?;
        let settings = self.guests.settings(
            machine.as_ref(),
            Some(&self.command),
            caller.directory,
            self.output.as_deref(),
        )?;
        let Ok([settings]) = <[_; 1]>::try_from(settings) else {
            return Err(Error::Usage("a run has one kernel: give one".to_string()));
        };
        Ok(Box::new(GuestWorld::new(settings)))
    }

    fn candidate<'c>(&self, caller: &Caller<'c>) -> Result<Candidate<'c>, Error> {
        if let Some((_, policy)) = caller.policies.first() {
            return Ok(Candidate::Own(*policy));
        }
        match &self.policy {
            Some(PolicyName::Ours(policy)) => Ok(Candidate::Policy(policy.clone())),
            Some(PolicyName::Kernel(class)) => Ok(Candidate::Class(*class)),
            Some(PolicyName::Bpf(name)) => Ok(Candidate::Bpf(name.clone())),
            Some(PolicyName::All | PolicyName::Classic) => {
                Err(Error::Usage("a run has one policy: give one, as in eevdf".to_string()))
            }
            None if self.on == Backend::Vm => Ok(Candidate::Class(Class::Other)),
            None => Err(Error::Usage(
                "a simulated run needs --policy, as in --policy eevdf; `schedlab list policies` \
                 shows them"
                    .to_string(),
            )),
        }
    }
}

/// What errors call it.
const STANDARD_OUTPUT: &str = "standard output";

/// What follows a trace on standard output stands apart from it.
fn set_apart(to: &Path) -> Result<(), Error> {
    if to == Path::new(STANDARD_OUTPUT) { program::print("\n") } else { Ok(()) }
}

/// How a command ended, and what it wrote.
fn outputs(ended: &Ended) -> String {
    let mut text = format!("\n{}\n", ended.status);
    for (name, bytes) in [("Standard output", &ended.stdout), ("Standard error", &ended.stderr)] {
        if !bytes.is_empty() {
            let (size, shown) = (bytes.len(), String::from_utf8_lossy(bytes));
            text += &format!("\n{name}, {size} bytes:\n{shown}");
            text += if shown.ends_with('\n') { "" } else { "\n" };
        }
    }
    text
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(to, bytes).map_err(|error| Error::output(to, error))
}

/// A line for each metric, and one for many that have no number for one reason.
fn table(rows: &[&Row]) -> String {
    const MANY: usize = 4;
    let mut table =
        Table::new([("metric", Align::Left), ("value", Align::Right), ("", Align::Left)]);
    let mut without: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.value.is_none()) {
        *without.entry(row.note.as_deref().unwrap_or_default()).or_default() += 1;
    }
    without.retain(|_, rows| *rows >= MANY);
    for row in rows {
        if row.value.is_none() && without.contains_key(row.note.as_deref().unwrap_or_default()) {
            continue;
        }
        let value = row.value.map_or("-".to_string(), |value| quantity(value, row.unit()));
        let of = row
            .subject_kind
            .zip(row.subject.as_ref())
            .map_or(String::new(), |(kind, subject)| format!(" {kind} {subject}"));
        table.row([row.metric.to_string() + &of, value, row.note.clone().unwrap_or_default()]);
    }
    let reasons = without.iter().map(|(reason, rows)| match *reason {
        "" => format!("{rows} more have no number\n"),
        reason => format!("{rows} more have no number: {reason}\n"),
    });
    table.to_string() + &reasons.collect::<String>()
}
