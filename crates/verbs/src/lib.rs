//! The commands of schedlab, one file each: from arguments to an answer.
//!
//! [`Measuring`] is the command line as a library, for papers and for Python.

pub mod bisect;
pub mod check;
mod command;
pub mod compare;
pub mod conform;
pub mod diff;
pub mod doctor;
pub mod export;
mod guests;
mod host;
pub mod image;
pub mod inspect;
pub mod judge;
pub mod list;
pub mod new;
pub mod output;
pub mod predict;
mod programs;
pub mod queue;
pub mod record;
mod repetition;
pub mod report;
pub mod run;
pub mod scheduler;
pub mod sweep;
pub mod tour;
pub mod verify;

pub use compare::Coverage;

use crate::output::Format;
use clap::{Args, Parser, Subcommand};
use formats::import;
use formats::import::{Options, Progress, Recording};
use formats::machine_file::MachineFile;
use formats::workload::{Parameters, Workload};
use program::{Error, progress};
use results::{Answer, Input, InputKind, Point, Printed};
use schedlab_runner::class::Class;
use schedsim::admission::Seed;
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
use schedsim::workload::BackgroundOf;
use schedsim::{Machine, Nanos};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use worlds::experiment::{
    Candidate, CostOverrides, KnownCosts, Reading, Recorded, ReplayOf, all_policies, not_simulated,
    parse_policy,
};
use worlds::simulator;
use worlds::vm::foreign::PREFIX;
use worlds::vm::pins;

/// A command line with a table as its answer.
#[derive(Parser, Debug)]
#[command(name = "schedlab")]
pub struct Measuring {
    #[command(subcommand)]
    verb: MeasuringVerb,
}

#[derive(Subcommand, Debug)]
enum MeasuringVerb {
    Compare(Box<compare::Compare>),
    Run(Box<run::Run>),
    Sweep(sweep::Sweep),
    Queue(queue::Queue),
}

impl Measuring {
    /// Parses a command line, without the program's name.
    ///
    /// # Errors
    /// One line, if the command line is wrong.
    pub fn read(words: &[String]) -> Result<Measuring, Error> {
        Measuring::try_parse_from(
            std::iter::once("schedlab").chain(words.iter().map(String::as_str)),
        )
        .map_err(|error| {
            let text = error.to_string();
            let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
            let said: Vec<&str> = lines
                .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
                .collect();
            Error::Input(said.join(" ").trim_start_matches("error: ").to_string())
        })
    }

    /// What the rows of a comparison can be about; `resolve` finds a workload by name.
    ///
    /// # Errors
    /// If it is not a comparison, or names something that does not exist.
    pub fn coverage(
        &self,
        resolve: &dyn Fn(&str) -> Result<Workload, Error>,
    ) -> Result<Coverage, Error> {
        match &self.verb {
            MeasuringVerb::Compare(compare) => compare.coverage(resolve),
            _ => {
                Err(Error::Input("a paper can only use the rows of `schedlab compare`".to_string()))
            }
        }
    }

    /// What the command of a comparison prints.
    pub fn printed(&self) -> Vec<&'static Printed> {
        match &self.verb {
            MeasuringVerb::Compare(compare) => compare.printed(),
            _ => Vec::new(),
        }
    }

    /// The result of the command line for `caller`, without printing.
    ///
    /// # Errors
    /// As on a command line, and if the command does not support a caller's policy.
    pub fn answer(self, caller: &Caller<'_>) -> Result<Answer, Error> {
        match (self.verb, &caller.policies[..]) {
            (MeasuringVerb::Run(verb), _) => verb.answer(caller),
            (MeasuringVerb::Compare(verb), _) => verb.answer(caller),
            (MeasuringVerb::Queue(verb), []) => verb.answer(),
            (MeasuringVerb::Sweep(verb), []) => verb.answer(),
            _ => Err(Error::Usage("this command has no table for a caller".to_string())),
        }
    }
}

/// The caller of the program as a library.
#[derive(Default)]
pub struct Caller<'a> {
    /// The caller's own policies, with their positions among the named ones. In a single run the
    /// first replaces the named one.
    pub policies: Vec<(usize, &'a dyn Candidate)>,
    /// The first directory to search for workload files; commands run there.
    pub directory: Option<&'a Path>,
}

/// The simulated machine and its costs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of the simulated machine (--on sim)")]
struct MachineArguments {
    /// A machine with a topology, simulated or a guest's: a file that describes it
    /// (docs/machines.md), `two-caches`, `smt`, `numa-2`, `numa-8`, or `host` for the topology of
    /// this machine [default: equal CPUs that share a cache]
    #[arg(long = "machine", value_name = "FILE")]
    file: Option<OsString>,
    /// The cost of a switch from one task to another, as in 2us [default: estimated from the
    /// recording]
    #[arg(long, value_name = "DURATION")]
    switch_cost: Option<Nanos>,
    /// The cost added to a task's burst when it runs on another CPU than before [default: estimated
    /// from the recording]
    #[arg(long, value_name = "DURATION")]
    migration_cost: Option<Nanos>,
    /// The time that an idle CPU needs to start a task woken from another CPU [default: estimated
    /// from the recording]
    #[arg(long, value_name = "DURATION")]
    idle_exit: Option<Nanos>,
    /// The time that a busy CPU needs to switch to a woken task [default: estimated from the
    /// recording]
    #[arg(long, value_name = "DURATION")]
    wake_cost: Option<Nanos>,
    /// A recording made on the machine of the others (`schedlab record`): what they cannot tell of
    /// its costs is taken from it
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Charge a policy's instructions, on CPUs with this many million per second: each insert and
    /// pop of its ready queue as the cost atlas counts them, or each callback of a compiled
    /// scheduler by a model [default: they cost nothing]
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

    /// The named files among `workloads`, and those of the machine, as inputs.
    fn inputs<'a>(&'a self, workloads: impl Iterator<Item = &'a OsStr>) -> Vec<Input> {
        let machine = self.file.as_deref().into_iter();
        let costs = self.costs.as_deref().map(Path::as_os_str);
        workloads
            .chain(machine)
            .chain(costs)
            .filter_map(|file| pins::named_file(InputKind::Workload, Path::new(file)))
            .collect()
    }

    /// The described machine, if there is one.
    fn file(&self) -> Result<Option<MachineFile>, Error> {
        self.file.as_deref().map(worlds::host::topology::machine).transpose()
    }

    /// Refuses a described machine for something that is not simulated on one.
    fn expect_flat(&self, what: &str) -> Result<(), Error> {
        if self.file.is_none() {
            Ok(())
        } else {
            Err(Error::Usage(format!("{what}: leave --machine out")))
        }
    }

    /// `flat`, or the described machine, with `flat`'s costs where it has none; the costs on the
    /// command line override both.
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

    /// The machine of a closed workload: costs that are not given are zero.
    fn of_closed(&self, cpus: u16) -> Result<Machine, Error> {
        if let Some(costs) = &self.costs {
            return Err(Error::Usage(format!(
                "{} has the costs of a recorded machine, and the workload is not recorded: leave \
                 --costs out",
                costs.display()
            )));
        }
        Ok(self.applied(self.file()?.as_ref(), &Machine::ideal(cpus)))
    }

    /// The numbers of CPUs: those `given`, else that of the described machine, else that of the
    /// workload.
    fn cpus(&self, given: &[u16], of_workload: u16) -> Result<Vec<u16>, Error> {
        match (self.file()?, given) {
            (Some(file), []) => Ok(vec![file.topology.cpus()]),
            (Some(file), _) => Err(Error::Usage(format!(
                "the machine {} already sets the number of CPUs, {}: leave --cpus out",
                file.name,
                file.topology.cpus()
            ))),
            (None, []) => Ok(vec![of_workload]),
            (None, given) => Ok(given.to_vec()),
        }
    }

    /// The coordinates of the machine in results, besides the number of CPUs.
    fn point(&self) -> Result<Point, Error> {
        Ok(self.file()?.map(|file| ("machine", file.name)).into_iter().collect())
    }

    /// The costs of `machine`, of a closed workload, in words.
    fn describe_closed(&self, machine: &Machine) -> String {
        let Machine { switch_cost, migration_cost, idle_exit, wake_cost, .. } = machine;
        let hint = if self.is_given() { "" } else { " (costs that are not given are zero)" };
        format!(
            "switch {switch_cost}, migration {migration_cost}, leaving idle {idle_exit}, a wakeup \
             {wake_cost}{hint}"
        )
    }

    /// Whether all costs were given.
    fn is_given(&self) -> bool {
        self.switch_cost.is_some()
            && self.migration_cost.is_some()
            && self.idle_exit.is_some()
            && self.wake_cost.is_some()
    }
}

/// The reason to refuse a described machine.
const STOCHASTIC_IS_FLAT: &str = "a stochastic workload sets its own number of equal CPUs";

fn parse_mips(text: &str) -> Result<f64, String> {
    let mips = text.parse().ok().filter(|mips| (0.001..=1e9).contains(mips));
    mips.ok_or_else(|| {
        "give a number of million instructions per second from 0.001 to 1000000000, as in 3000"
            .to_string()
    })
}

/// The heading of options on what is read of a recording.
const RECORDINGS: &str = "Options of recordings";

/// The common options of commands that simulate.
#[derive(Args, Clone, Debug)]
struct CommonArguments {
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1, value_parser = Seed::parse)]
    seed: u64,
    /// Use a recording even if it lost more than one event in a hundred
    #[arg(long, help_heading = RECORDINGS)]
    allow_lost: bool,
    /// What of a recording with calls is replayed
    #[arg(long, value_enum, default_value_t, help_heading = RECORDINGS)]
    replay: ReplayOf,
    /// Leave out what ran beside the recorded program: kernel threads and other programs
    #[arg(long, help_heading = RECORDINGS)]
    without_background: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl CommonArguments {
    fn reading(&self) -> Reading {
        let background =
            if self.without_background { BackgroundOf::Nothing } else { BackgroundOf::Fitted };
        Reading { allow_lost: self.allow_lost, replay: self.replay, background, whole_runs: false }
    }
}

/// The given parameters, with those of the machine.
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
fn load(
    path: &Path,
    common: &CommonArguments,
    machine: &MachineArguments,
) -> Result<Recorded, Error> {
    let known = machine.costs.as_deref().map(|path| KnownCosts::load(path, read_with_progress));
    let known = known.transpose()?;
    Recorded::load_with(
        path,
        common.reading(),
        machine.overrides(),
        known.as_ref(),
        read_with_progress,
    )
}

/// Reads a recording and shows the progress.
fn read_with_progress(
    path: &Path,
    options: Options,
    observers: Vec<&mut dyn Observer>,
) -> Result<Recording, Error> {
    let bar = progress::bar("reading", 0);
    let reader = bar.clone();
    let progress = move |progress: Progress| {
        reader.set_length(progress.bytes_total);
        reader.set_position(progress.bytes_read);
    };
    let recording =
        import::read(path, &Options { progress: Some(Box::new(progress)), ..options }, observers);
    bar.finish_and_clear();
    Ok(recording?)
}

/// The policies of the 1990 study, and EEVDF.
fn classic() -> Result<Vec<PolicySpec>, Error> {
    simulator::POLICIES.iter().map(|name| parse_policy(name).map_err(Error::Usage)).collect()
}

/// A policy of schedlab, all of them, or a class of a real kernel.
#[derive(Clone, Debug)]
enum PolicyName {
    All,
    /// The topologies of 1990, and EEVDF.
    Classic,
    Ours(PolicySpec),
    Kernel(Class),
    /// A scheduler in BPF, `bpf:NAME` or `scx:PROGRAM`.
    Bpf(String),
}

/// The policies of one `--policy`.
#[derive(Clone, Debug)]
struct PolicyNames(Vec<PolicyName>);

impl PolicyNames {
    /// Names, separated by commas. The arguments of a program behind `scx:` may have commas, so all
    /// of them are its own. The constants of an object have none.
    fn parse(text: &str) -> Result<PolicyNames, String> {
        let (mut names, mut rest) = (Vec::new(), Some(text));
        while let Some(all) = rest {
            let file = all.split_whitespace().next().unwrap_or_default();
            let is_object = file.ends_with(".bpf.o") || file.ends_with(".bpf.c");
            let within = if all.starts_with(PREFIX) && !is_object { file } else { all };
            let end = within.find(',');
            names.push(PolicyName::parse(&all[..end.unwrap_or(all.len())])?);
            rest = end.map(|end| &all[end + 1..]);
        }
        Ok(PolicyNames(names))
    }
}

impl PolicyName {
    /// `all`, `classic`, `kernel:CLASS`, `bpf:NAME`, `scx:PROGRAM`, or what
    /// [`experiment::parse_policy`](worlds::experiment::parse_policy) reads.
    fn parse(text: &str) -> Result<PolicyName, String> {
        match text.split_once(':') {
            None if text == "all" => Ok(PolicyName::All),
            None if text == "classic" => Ok(PolicyName::Classic),
            Some(("kernel", class)) => class.parse().map(PolicyName::Kernel),
            Some(("bpf" | "scx", _)) => Ok(PolicyName::Bpf(text.to_string())),
            _ => parse_policy(text).map(PolicyName::Ours),
        }
    }

    /// The policies of a list, each once, where only simulated ones can run.
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

    /// The candidate that it names, unless it names several.
    fn candidate(&self) -> Option<worlds::Candidate<'static>> {
        match self {
            PolicyName::All | PolicyName::Classic => None,
            PolicyName::Ours(policy) => Some(worlds::Candidate::Policy(policy.clone())),
            PolicyName::Kernel(class) => Some(worlds::Candidate::Class(*class)),
            PolicyName::Bpf(name) => Some(worlds::Candidate::Bpf(name.clone())),
        }
    }

    /// The policies behind the name, where only simulated ones can run.
    fn simulated(&self) -> Result<Vec<PolicySpec>, Error> {
        let refused = |name: &str| Err(Error::Usage(not_simulated(name).unwrap_or_default()));
        match self {
            PolicyName::All => Ok(all_policies()),
            PolicyName::Classic => classic(),
            PolicyName::Ours(policy) => Ok(vec![policy.clone()]),
            PolicyName::Kernel(class) => refused(&format!("kernel:{class}")),
            PolicyName::Bpf(name) => refused(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_all_that_follows_it() {
        let of = |text: &str| {
            let PolicyNames(all) = PolicyNames::parse(text).unwrap();
            let name = |name: &PolicyName| match name {
                PolicyName::Kernel(class) => format!("kernel:{class}"),
                PolicyName::Bpf(name) => name.clone(),
                other => panic!("{other:?}"),
            };
            all.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(of("kernel:other,bpf:rr"), ["kernel:other", "bpf:rr"]);
        assert_eq!(of("kernel:batch,scx:./a -l 1,2"), ["kernel:batch", "scx:./a -l 1,2"]);
        assert_eq!(of("scx:./a"), ["scx:./a"]);
        assert_eq!(of("scx:./a,bpf:rr"), ["scx:./a", "bpf:rr"]);
        assert_eq!(
            of("scx:./a.bpf.o slice_ns=5ms,scx:b.bpf.c,scx:c -l 1,2"),
            ["scx:./a.bpf.o slice_ns=5ms", "scx:b.bpf.c", "scx:c -l 1,2"]
        );
        for wrong in ["", "kernel:other,", ",kernel:other", "eevdfx", "kernel:other,eevdfx"] {
            assert!(PolicyNames::parse(wrong).is_err(), "{wrong}");
        }
    }
}
