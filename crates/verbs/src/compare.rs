//! `schedlab compare`: which candidate is best for a workload.

mod coverage;
mod gate;
mod settings;

pub use coverage::Coverage;

use super::command::CommandArguments;
use super::guests::GuestArguments;
use super::host::HostArguments;
use super::programs::Programs;
use super::repetition::RepetitionArguments;
use super::{Caller, CommonArguments, MachineArguments, PolicyName, PolicyNames};
use clap::{Args, ValueEnum};
use formats::workload::Parameters;
use laboratory::{Against, Experiment, Settings};
use program::Error;
use results::{Answer, Printed};
use schedsim::admission::Cpus;
use schedsim::policy::PolicySpec;
use std::ffi::OsString;
use std::path::PathBuf;
use worlds::experiment::parse_policy;
use worlds::guest::GuestWorld;
use worlds::simulator::Simulator;
use worlds::{By, Candidate, World};

/// Compares scheduling policies on workloads: simulated, in real kernels, and on this machine
///
/// A recording of perf is converted to tasks that run, sleep and wake each other. First the policy
/// nearest to the recorded kernel's replays it on the recorded CPUs, to measure the error of the
/// replay. Then each policy runs it 16 times with slightly different costs. A difference is better
/// or worse only if the interval, the error of the replay, nearly every run, and multiple
/// comparisons confirm it. Else the results give the reason why it is undecided.
///
/// A stochastic workload runs with 16 seeds, the same for every policy. A saturated run is reported
/// as saturated, not as a number.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab compare workloads/redis.perf-script.txt.zst\n  \
                        schedlab compare workloads/hackbench.perf-script.txt.zst --policy \
                        eevdf,take:multilist2 --cpus 1,2,4,8\n  schedlab compare perf.data \
                        --policy take:rr?quantum=1ms,take:rr?quantum=10ms --format csv\n  \
                        schedlab compare unix1990 --policy central:rr,take:rr --load 0.3,0.5,0.7 \
                        --set tmc=2ms\n  schedlab compare hackbench:1 workloads/mixed.toml --on \
                        sim,vm --policy eevdf,take:rr\n  schedlab compare \
                        workloads/sqlite-and-xz.perf.data.zst --apply 'xz: batch' --apply '*: \
                        slice=1ms' --focus sqlite3\n  schedlab compare yield:2,8,32,128 --on vm \
                        --kernel 6.1,6.18\n  schedlab compare yield:2,64,512 --on vm --policy \
                        kernel:other,bpf:ruler,take:ruler\n  sudo schedlab compare hackbench:1 \
                        --on host --policy kernel:other,kernel:fifo:50\n  schedlab compare --on \
                        host --policy kernel:other,kernel:batch -- make -j8\n  schedlab compare --on vm \
                        --policy kernel:other,bpf:rr -- sh -c 'xz -k data & sqlite3 db < q; wait'\n\nCells: value, ± \
                        half of its 95 % interval, then the difference from the baseline where \
                        it is decided, = equivalent, ~ undecided. Exit codes: 0 an answer, \
                        undecided and unwelcome ones included, 2 usage, 3 unusable input, 4 a \
                        check failed or a policy broke its contract, 5 --ci or --max-time was \
                        not met, 6 not reproducible where it must be, 77 something needed is \
                        missing.")]
pub struct Compare {
    /// Built-in workloads, workload files (.toml), or recordings: perf.data, trace.dat, Perfetto's,
    /// systrace's or Chrome's, or the text of `perf script`, `trace-cmd report` or ftrace, plain or
    /// compressed with zstd
    #[arg(value_name = "WORKLOAD", required_unless_present = "command", index = 1)]
    workload: Vec<OsString>,
    /// Another workload to run after the others; may be given several times
    #[arg(long, value_name = "WORKLOAD")]
    then: Vec<OsString>,
    /// A parameter of a stochastic workload, as in tmc=2ms; `schedlab list workloads` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Parameters>,
    /// Policies, separated by commas, as in eevdf,take:rr; `schedlab list policies` shows them
    /// [default: settings that can be switched on, for a recording; else see --help]
    ///
    /// `all`: every order under every topology and every scheduler. `classic`:
    /// eevdf,take:rr,take:multilist2,take:priority,central:rr,initial:rr, the default for tasks that
    /// are not recorded. The default for stochastic workloads: central:rr,initial:rr,take:rr.
    ///
    /// On host and vm the kernel's own classes: kernel:other, batch, idle, fifo:PRIORITY,
    /// rr:PRIORITY, deadline:RUNTIME/DEADLINE/PERIOD. The default on vm: kernel:other; on host:
    /// kernel:other,kernel:batch,kernel:idle,kernel:fifo:50,kernel:rr:50.
    ///
    /// On sim also compiled schedulers of sched_ext, as in scx:scx_simple.bpf.o.
    ///
    /// On vm also schedulers in BPF, as in bpf:rr, and any scheduler of sched_ext, as in
    /// scx:./scx_simple or 'scx:./scx_bpfland -s 5000', the last of its list. Any other policy
    /// decides in user space there, through the kernel's sched_ext.
    #[arg(long, value_parser = PolicyNames::parse)]
    policy: Vec<PolicyNames>,
    /// The policy to compare the others with [default: eevdf, which models the recorded kernel's;
    /// for stochastic workloads initial:rr; on host the first]
    #[arg(long, value_name = "POLICY", value_parser = parse_policy)]
    baseline: Option<PolicySpec>,
    /// Where the workloads run: simulated, in a real kernel, or on this machine; several values,
    /// separated by commas, give the rows of each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim")]
    on: Vec<Backend>,
    /// Offered loads of a stochastic workload, separated by commas [default: the workload's]
    #[arg(long, value_delimiter = ',')]
    load: Vec<f64>,
    /// Numbers of CPUs, separated by commas [default: as recorded, or as in the workload; on vm 1]
    #[arg(long, value_delimiter = ',', value_parser = Cpus::parse)]
    cpus: Vec<u16>,
    /// What if this second workload ran beside the recording: a closed workload or another
    /// recording
    #[arg(long, value_name = "WORKLOAD")]
    add_load: Option<OsString>,
    /// Also show which parts gain and lose: by program, by task, or by the CPU time of an
    /// activation
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Verify each simulation: no task on two CPUs, none lost, CPU time conserved, affinity and
    /// promises kept; and check that first runs repeat themselves
    #[arg(long)]
    check: bool,
    /// Write results (JSON, CSV, Parquet), traces (schedlab's and Perfetto's) and report.html to
    /// this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    // What has a heading comes after what has none: a heading holds until the next one.
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    setting: settings::SettingArguments,
    #[command(flatten)]
    repetition: RepetitionArguments,
    #[command(flatten)]
    gate: gate::GateArguments,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    guests: GuestArguments,
    #[command(flatten)]
    host: HostArguments,
    #[command(flatten)]
    command: CommandArguments,
}

/// The world of a workload.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Backend {
    /// In the simulator.
    Sim,
    /// In a real kernel under QEMU, with a clock that counts instructions.
    Vm,
    /// On this machine.
    Host,
}

impl Compare {
    /// Runs the comparison and prints the result.
    pub fn run(self) -> Result<(), Error> {
        self.common.format.answer(self.answer(&Caller::default())?)
    }

    /// The result, with the policies of the `caller` among the candidates.
    pub fn answer(&self, caller: &Caller<'_>) -> Result<Answer, Error> {
        if self.on.iter().all(|on| *on == Backend::Host) {
            self.machine.expect_flat(
                "a described machine is simulated or a guest's, and this machine is what it is",
            )?;
        }
        let programs = Programs {
            set: &self.set,
            load: &self.load,
            cpus: &self.cpus,
            machine: &self.machine,
            common: &self.common,
            add_load: self.add_load.as_deref(),
            in_guest: self.on.contains(&Backend::Vm),
            caller,
        };
        self.command.check(self.on.contains(&Backend::Vm))?;
        let stored = self.gate.baseline(&self.printed())?;
        let mut all = Vec::new();
        for argument in self.workload.iter().chain(&self.then) {
            all.extend(programs.of(argument)?);
        }
        match (&self.command.command[..], &self.workload[..]) {
            ([], _) => {}
            (words, []) => all.push(Programs::command(words)),
            (_, [workload, ..]) => {
                let workload = workload.to_string_lossy();
                return Err(Error::Usage(format!(
                    "give either the workload {workload} or a command behind --, not both"
                )));
            }
        }
        // Its programs are not known before.
        let is_in_guest = !self.command.command.is_empty() && self.on.contains(&Backend::Vm);
        let focus = self.setting.focus(&all)?;
        let mut candidates = self.candidates(caller)?;
        candidates.extend(self.setting.candidates(&all, &self.cpus)?);
        let experiment =
            Experiment {
                programs: all,
                worlds: self.worlds(caller)?,
                candidates,
                against: self
                    .baseline
                    .clone()
                    .map_or(Against::Usual, |policy| Against::Named(Candidate::Policy(policy))),
                cpus: self.cpus.clone(),
                settings: Settings {
                    by: self.by.or((focus.is_some() || is_in_guest || self.gate.has_parts())
                        .then_some(By::Comm)),
                    focus,
                    ..self.settings()
                },
            };
        let answer = experiment.run()?;
        let named = self.workload.iter().chain(&self.then).chain(&self.add_load);
        let named = self.machine.inputs(named.map(OsString::as_os_str));
        let answer = crate::output::pinned(answer, named, self.output.as_deref())?;
        let answer = crate::output::reported(answer, self.output.as_deref())?;
        self.gate.judged(stored.as_ref(), answer)
    }

    /// What its command prints.
    pub fn printed(&self) -> Vec<&'static Printed> {
        self.command.printed().iter().map(|reader| reader.metric).collect()
    }

    fn worlds(&self, caller: &Caller<'_>) -> Result<Vec<Box<dyn World>>, Error> {
        let mut worlds: Vec<Box<dyn World>> = Vec::new();
        let mut seen: Vec<Backend> = Vec::new();
        if self.guests.is_first_member() && self.repetition.ensemble().is_some() {
            let why = "--first-member runs one member of the usual ensemble: leave --ensemble out";
            return Err(Error::Usage(why.to_string()));
        }
        for on in &self.on {
            if seen.contains(on) {
                return Err(Error::Usage("a world is named twice in --on".to_string()));
            }
            seen.push(*on);
            match on {
                Backend::Sim => worlds.push(Box::new(Simulator::new())),
                Backend::Host => {
                    worlds.push(Box::new(self.host.world(&self.command, caller.directory)?))
                }
                Backend::Vm => worlds.extend(
                    self.guests
                        .settings(
                            self.machine.file()?.as_ref(),
                            Some(&self.command),
                            caller.directory,
                            self.output.as_deref(),
                        )?
                        .into_iter()
                        .map(|of| Box::new(GuestWorld::new(of)) as Box<dyn World>),
                ),
            }
        }
        Ok(worlds)
    }

    /// The named policies, with those of the caller in their places.
    fn candidates<'c>(&self, caller: &Caller<'c>) -> Result<Vec<Candidate<'c>>, Error> {
        let mut all: Vec<Candidate<'c>> = Vec::new();
        for name in self.policies() {
            match name {
                PolicyName::All | PolicyName::Classic if !self.on.contains(&Backend::Sim) => {
                    return Err(Error::Usage(
                        "`all` and `classic` are simulated policies; on vm and host name \
                         the policies, as in kernel:other,bpf:rr,take:ruler"
                            .to_string(),
                    ));
                }
                PolicyName::All | PolicyName::Classic => {
                    all.extend(name.simulated()?.into_iter().map(Candidate::Policy))
                }
                one => all.extend(one.candidate()),
            }
        }
        for (place, policy) in &caller.policies {
            all.insert((*place).min(all.len()), Candidate::Own(*policy));
        }
        Ok(all)
    }

    /// The names of policies.
    fn policies(&self) -> impl Iterator<Item = &PolicyName> {
        self.policy.iter().flat_map(|names| &names.0)
    }

    fn settings(&self) -> Settings {
        let stopping =
            self.host.protocol().unwrap_or(self.repetition.stopping(self.host.min_time()));
        Settings {
            seed: self.common.seed,
            ensemble: self.repetition.ensemble(),
            goal: self.repetition.goal(),
            max_time: self.repetition.max_time(),
            rounds: self.host.rounds(stopping),
            check: self.check,
            events: self.host.traced(),
            by: self.by,
            parts: self.guests.functions().unwrap_or(0),
            output: self.output.clone(),
            focus: None,
        }
    }
}
