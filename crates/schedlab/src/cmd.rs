//! The verbs of the command line, one file each.

mod check;
mod compare;
mod completions;
mod diff;
mod doctor;
mod export;
mod guests;
mod host;
mod inspect;
mod list;
mod new;
mod predict;
mod programs;
mod queue;
mod record;
mod repetition;
mod report;
mod reproduce;
mod run;
mod sweep;

pub use compare::Coverage;

use crate::experiment::{Candidate, CostOverrides, Recorded, all_policies, parse_policy};
use crate::import::{self, Options, Progress, Recording};
use crate::machine_file::MachineFile;
use crate::output::{Answer, Format, Point};
use crate::workload::{Parameters, Workload};
use crate::world::simulator;
use crate::{Error, progress};
use clap::{Args, Parser, Subcommand};
use schedlab_runner::class::Class;
use schedsim::admission::Seed;
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
use schedsim::{Machine, Nanos};
use std::ffi::OsString;
use std::path::Path;

/// A laboratory for CPU schedulers: one policy, three worlds, the same numbers every time.
#[derive(Parser, Debug)]
#[command(
    name = "schedlab",
    version = crate::sweep::BUILD,
    arg_required_else_help = true,
    after_help = "Examples:\n  sudo schedlab record -- make -j8\n  schedlab compare perf.data -o results\n  \
                  schedlab report results --window 100ms..120ms\n  schedlab queue --tasks 1,10,100 -o results/queues\n\n\
                  Exit codes: 0 an answer, undecided or unwelcome ones included, 1 internal error, 2 usage, 3 unusable input, 4 a check failed or a policy broke its contract, \
                  5 a requested precision or limit was not met, 6 not reproducible where it must be, 77 something needed is missing."
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Check(check::Check),
    Compare(Box<compare::Compare>),
    Run(run::Run),
    Sweep(sweep::Sweep),
    Inspect(inspect::Inspect),
    Diff(diff::Diff),
    Doctor(doctor::Doctor),
    Export(export::Export),
    Record(record::Record),
    Predict(predict::Predict),
    Report(report::Report),
    List(list::List),
    New(new::New),
    Queue(queue::Queue),
    Reproduce(reproduce::Reproduce),
    Completions(completions::Completions),
    ManPages(completions::ManPages),
    #[command(hide = true)]
    QueueCells(queue::QueueCells),
}

impl Arguments {
    /// Does what the command line asks for.
    pub fn run(self) -> Result<(), Error> {
        match self.verb {
            Verb::Check(verb) => verb.run(),
            Verb::Compare(verb) => verb.run(),
            Verb::Run(verb) => verb.run(),
            Verb::Sweep(verb) => verb.run(),
            Verb::Inspect(verb) => verb.run(),
            Verb::Diff(verb) => verb.run(),
            Verb::Doctor(verb) => verb.run(),
            Verb::Export(verb) => verb.run(),
            Verb::Record(verb) => verb.run(),
            Verb::Predict(verb) => verb.run(),
            Verb::Report(verb) => verb.run(),
            Verb::List(verb) => verb.run(),
            Verb::New(verb) => verb.run(),
            Verb::Queue(verb) => verb.run(),
            Verb::Reproduce(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(),
            Verb::ManPages(verb) => verb.run(),
            Verb::QueueCells(verb) => verb.run(),
        }
    }
}

impl Arguments {
    /// The command line of these words, without the program's name.
    ///
    /// # Errors
    /// If it is none, in a line.
    pub fn read(words: &[String]) -> Result<Arguments, Error> {
        Arguments::try_parse_from(std::iter::once("schedlab").chain(words.iter().map(String::as_str))).map_err(|error| {
            let text = error.to_string();
            let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
            let said: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information")).collect();
            Error::Input(said.join(" ").trim_start_matches("error: ").to_string())
        })
    }

    /// What the rows of a comparison can be about; `resolve` finds the workload of a name.
    ///
    /// # Errors
    /// If it is no comparison, or names what is not there.
    pub fn coverage(&self, resolve: &dyn Fn(&str) -> Result<Workload, Error>) -> Result<Coverage, Error> {
        match &self.verb {
            Verb::Compare(compare) => compare.coverage(resolve),
            _ => Err(Error::Input("only `schedlab compare` has rows that a paper can be about".to_string())),
        }
    }

    /// What the command line comes to, unprinted, for `caller`.
    ///
    /// # Errors
    /// As [`run`](Self::run), and if the verb has no table or does not take a policy of the caller's.
    pub fn answer(self, caller: &Caller<'_>) -> Result<Answer, Error> {
        match (self.verb, &caller.policies[..]) {
            (Verb::Run(verb), _) => verb.answer(caller),
            (Verb::Compare(verb), _) => verb.answer(caller),
            (Verb::Queue(verb), []) => verb.answer(),
            (Verb::Sweep(verb), []) => verb.answer(),
            _ => Err(Error::Usage("this verb gives no table to a caller".to_string())),
        }
    }
}

/// Who calls the program as a library.
#[derive(Default)]
pub struct Caller<'a> {
    /// Policies of the caller's own, with their places among those that are named. Of a single run the first takes the place of the one that is named.
    pub policies: Vec<(usize, &'a dyn Candidate)>,
    /// Where workload files are looked for first, and where commands run.
    pub directory: Option<&'a Path>,
}

/// What the simulated machine is, and what it costs.
#[derive(Args, Clone, Debug)]
struct MachineArguments {
    /// A machine that is not flat: a file that describes it (docs/machines.md), or `host` for how the CPUs of this one lie [default: equal CPUs that share a cache]
    #[arg(long = "machine", value_name = "FILE")]
    file: Option<OsString>,
    /// What a switch from one task to another costs, as in 2us [default: estimated from the recording]
    #[arg(long, value_name = "DURATION")]
    switch_cost: Option<Nanos>,
    /// What is added to a task's burst when it runs on another CPU than before [default: estimated from the recording]
    #[arg(long, value_name = "DURATION")]
    migration_cost: Option<Nanos>,
    /// What it takes an idle CPU to begin with a task woken from another CPU [default: estimated from the recording]
    #[arg(long, value_name = "DURATION")]
    idle_exit: Option<Nanos>,
    /// What it takes a CPU that is awake to switch to a woken task [default: estimated from the recording]
    #[arg(long, value_name = "DURATION")]
    wake_cost: Option<Nanos>,
    /// Charge each insert and pop of a ready queue what the cost atlas counts, on CPUs of so many million instructions per second [default: they cost nothing]
    #[arg(long, value_name = "NUMBER", value_parser = parse_mips)]
    mips: Option<f64>,
}

impl MachineArguments {
    fn overrides(&self) -> CostOverrides {
        CostOverrides {
            switch: self.switch_cost,
            migration: self.migration_cost,
            idle_exit: self.idle_exit,
            wake: self.wake_cost,
            mips: self.mips,
        }
    }

    /// The machine that is described, if one is.
    fn file(&self) -> Result<Option<MachineFile>, Error> {
        self.file.as_deref().map(MachineFile::resolve).transpose()
    }

    /// Refuses a described machine where none can be simulated.
    fn expect_flat(&self, what: &str) -> Result<(), Error> {
        if self.file.is_none() { Ok(()) } else { Err(Error::Usage(format!("{what}: leave --machine out"))) }
    }

    /// `flat`, or the machine that is described with what `flat` costs where it does not say; what is given on the command line holds in any case.
    fn applied(&self, file: Option<&MachineFile>, flat: &Machine) -> Machine {
        let CostOverrides { switch, migration, idle_exit, wake, mips: _ } = self.overrides();
        let machine = file.map_or(flat.clone(), |file| file.apply(flat));
        Machine {
            switch_cost: switch.unwrap_or(machine.switch_cost),
            migration_cost: migration.unwrap_or(machine.migration_cost),
            idle_exit: idle_exit.unwrap_or(machine.idle_exit),
            wake_cost: wake.unwrap_or(machine.wake_cost),
            ..machine
        }
    }

    /// The machine of a closed workload: what is not given costs nothing.
    fn of_closed(&self, cpus: u16) -> Result<Machine, Error> {
        Ok(self.applied(self.file()?.as_ref(), &Machine::ideal(cpus)))
    }

    /// On how many CPUs: as many as are `given`, as the machine that is described has, or as the workload has.
    fn cpus(&self, given: &[u16], of_workload: u16) -> Result<Vec<u16>, Error> {
        match (self.file()?, given) {
            (Some(file), []) => Ok(vec![file.topology.cpus()]),
            (Some(file), _) => {
                Err(Error::Usage(format!("the machine {} has the CPUs that it has, {}: leave --cpus out", file.name, file.topology.cpus())))
            }
            (None, []) => Ok(vec![of_workload]),
            (None, given) => Ok(given.to_vec()),
        }
    }

    /// What results say of the machine, beside the number of its CPUs.
    fn point(&self) -> Result<Point, Error> {
        Ok(self.file()?.map(|file| ("machine", file.name)).into_iter().collect())
    }

    /// What `machine`, that of a closed workload, costs, in words.
    fn told_of_closed(&self, machine: &Machine) -> String {
        let Machine { switch_cost, migration_cost, idle_exit, wake_cost, .. } = machine;
        let hint = if self.is_given() { "" } else { " (what is not given costs nothing)" };
        format!("switch {switch_cost}, migration {migration_cost}, leaving idle {idle_exit}, a waking {wake_cost}{hint}")
    }

    /// Whether all of it was given.
    fn is_given(&self) -> bool {
        self.switch_cost.is_some() && self.migration_cost.is_some() && self.idle_exit.is_some() && self.wake_cost.is_some()
    }
}

/// Why it is refused a described machine.
const STOCHASTIC_IS_FLAT: &str = "a stochastic workload says itself how many equal CPUs it needs";

fn parse_mips(text: &str) -> Result<f64, String> {
    let mips = text.parse().ok().filter(|mips| (0.001..=1e9).contains(mips));
    mips.ok_or_else(|| "give a number of million instructions per second from 0.001 to 1000000000, as in 3000".to_string())
}

/// What every verb that simulates takes.
#[derive(Args, Clone, Debug)]
struct CommonArguments {
    /// Seeds the random numbers
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// Use a recording even if it lost more than one event in a hundred
    #[arg(long)]
    allow_lost: bool,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A WORKLOAD and what changes it.
#[derive(Args, Clone, Debug)]
struct WorkloadArguments {
    /// A built-in workload, a workload file (.toml), or a recording: perf.data or the text of `perf script`, either may be compressed with zstd
    workload: OsString,
    /// A parameter of a stochastic workload, as in tmc=2ms; `schedlab list workloads` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Parameters>,
}

/// The parameters that are set, those of the machine among them.
fn parameters(set: &[Parameters], machine: &MachineArguments) -> Parameters {
    let mut parameters: Parameters = set.iter().cloned().collect();
    let given = [
        ("switch-cost", machine.switch_cost),
        ("tmc", machine.migration_cost),
        ("idle-exit", machine.idle_exit),
        ("wake-cost", machine.wake_cost),
    ];
    for (key, cost) in given {
        if let Some(cost) = cost {
            parameters.insert(key, format!("{}ns", cost.0).into());
        }
    }
    parameters
}

/// Reads a recording for a replay.
fn load(path: &Path, common: &CommonArguments, machine: &MachineArguments) -> Result<Recorded, Error> {
    Recorded::load(path, common.allow_lost, machine.overrides(), read_with_progress)
}

/// Reads a recording and shows how far it has come.
fn read_with_progress(path: &Path, options: Options, observers: Vec<&mut dyn Observer>) -> Result<Recording, Error> {
    let bar = progress::bar("reading", 0);
    let reader = bar.clone();
    let progress = move |progress: Progress| {
        reader.set_length(progress.bytes_total);
        reader.set_position(progress.bytes_read);
    };
    let recording = import::read(path, &Options { progress: Some(Box::new(progress)), ..options }, observers);
    bar.finish_and_clear();
    Ok(recording?)
}

/// The policies of the 1990 study's kind, EEVDF beside them.
fn classic() -> Result<Vec<PolicySpec>, Error> {
    simulator::POLICIES.iter().map(|name| parse_policy(name).map_err(Error::Usage)).collect()
}

/// A policy of ours, all of them, or a class of a real kernel's.
#[derive(Clone, Debug)]
enum PolicyName {
    All,
    /// The topologies of 1990, and EEVDF.
    Classic,
    Ours(PolicySpec),
    Kernel(Class),
    /// A scheduler in BPF, `bpf:NAME`.
    Bpf(String),
}

impl PolicyName {
    /// `all`, `classic`, `kernel:CLASS`, `bpf:NAME`, or what [`experiment::parse_policy`](crate::experiment::parse_policy) reads.
    fn parse(text: &str) -> Result<PolicyName, String> {
        match text.split_once(':') {
            None if text == "all" => Ok(PolicyName::All),
            None if text == "classic" => Ok(PolicyName::Classic),
            Some(("kernel", class)) => class.parse().map(PolicyName::Kernel),
            Some(("bpf", _)) => Ok(PolicyName::Bpf(text.to_string())),
            _ => parse_policy(text).map(PolicyName::Ours),
        }
    }

    /// The policies of a list, each once, where only ours can run.
    fn all_simulated(names: &[PolicyName]) -> Result<Vec<PolicySpec>, Error> {
        let mut policies: Vec<PolicySpec> = Vec::new();
        for name in names {
            for policy in name.simulated()? {
                if !policies.contains(&policy) {
                    policies.push(policy);
                }
            }
        }
        Ok(policies)
    }

    /// What it stands for, where only ours can run.
    fn simulated(&self) -> Result<Vec<PolicySpec>, Error> {
        match self {
            PolicyName::All => Ok(all_policies()),
            PolicyName::Classic => classic(),
            PolicyName::Ours(policy) => Ok(vec![policy.clone()]),
            PolicyName::Kernel(class) => Err(Error::Usage(format!(
                "kernel:{class} is a class of a real kernel's, which is not simulated: add --on vm or --on host, or give eevdf or cfs"
            ))),
            PolicyName::Bpf(name) => Err(Error::Usage(format!(
                "{name} is a scheduler in BPF, which runs in a real kernel only: add --on vm, or leave `bpf:` out"
            ))),
        }
    }
}
