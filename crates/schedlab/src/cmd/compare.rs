//! `schedlab compare`: which policy treats a workload best.

mod closed;
mod coverage;
mod host;
mod stochastic;
mod vm;
mod what_if;

pub use coverage::Coverage;

use super::{CommonArguments, MachineArguments, PolicyName, WorkloadArguments, load};
use crate::Error;
use crate::experiment::{Case, Cases, Comparison, Recorded, Repetition, Setup, parse_policy};
use crate::output::{Align, Answer, Results, Table, headline, quantity};
use crate::progress;
use crate::results_directory::ResultsDirectory;
use crate::trace_source::TraceSource;
use crate::workload::Workload;
use clap::Args;
use clap::builder::ArgPredicate;
use schedsim::Nanos;
use schedsim::admission::Cpus;
use schedsim::metrics::Metric;
use schedsim::policy::PolicySpec;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vm::Backend;
use what_if::WhatIf;

/// Compares scheduling policies on a workload
///
/// A recording of perf's is turned into tasks that run, sleep and wake each other. First the policy nearest to the recorded kernel's
/// replays it on the recorded CPUs, to show how close the replay is; then each policy runs it. A difference that is smaller than the replay's own error is undecided.
///
/// A stochastic workload runs with several seeds, the same for every policy; the paired differences decide. A saturated run is reported as such, not as a number.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab compare workloads/redis.perf-script.txt.zst\n  \
                        schedlab compare workloads/hackbench.perf-script.txt.zst --policy eevdf,take:multilist2 --cpus 1,2,4,8\n  \
                        schedlab compare perf.data --policy take:rr?quantum=1ms,take:rr?quantum=10ms --format csv\n  \
                        schedlab compare unix1990 --policy central:rr,take:rr --load 0.3,0.5,0.7 --set tmc=2ms\n  \
                        schedlab compare yield:2,8,32,128 --on vm --kernel 6.1,6.18\n  \
                        schedlab compare yield:2,64,512 --on vm --policy kernel:other,bpf:ruler,take:ruler\n  \
                        sudo schedlab compare hackbench:1 --on host --policy kernel:other,kernel:fifo:50\n  \
                        schedlab compare --on host --policy kernel:other,kernel:batch -- make -j8\n\n\
                        Marks: + better, - worse, = the same, ~ undecided, each against the baseline. Exit codes: 2 usage, 3 unusable input, 4 a check failed, \
                        5 not enough time, 6 a guest did not repeat itself, 77 something needed is missing.")]
#[command(mut_arg("workload", |workload| workload.index(1).required(false).required_unless_present("command").default_value_if("command", ArgPredicate::IsPresent, host::COMMAND)))]
pub struct Compare {
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Policies, separated by commas, or `all`: every order under every topology and every whole scheduler; `schedlab list policies` shows them
    /// [default: eevdf,take:rr,take:multilist2,take:priority,central:rr,initial:rr; of stochastic workloads central:rr,initial:rr,take:rr]
    /// On host and vm the kernel's own classes: kernel:other, batch, idle, fifo:PRIORITY, rr:PRIORITY, deadline:RUNTIME/DEADLINE/PERIOD
    /// [default on vm: kernel:other; on host: kernel:other,kernel:batch,kernel:idle,kernel:fifo:50,kernel:rr:50],
    /// and on vm schedulers in BPF, as in bpf:rr; any other policy decides in user space there, through the kernel's sched_ext
    #[arg(long, value_delimiter = ',', value_parser = PolicyName::parse)]
    policy: Vec<PolicyName>,
    /// The policy against which the others are held [default: eevdf, which stands for the recorded kernel's; of stochastic workloads initial:rr; on host it is the first]
    #[arg(long, value_name = "POLICY", value_parser = parse_policy)]
    baseline: Option<PolicySpec>,
    /// Offered Loads of a stochastic workload, separated by commas [default: the workload's]
    #[arg(long, value_delimiter = ',')]
    load: Vec<f64>,
    /// Numbers of CPUs, separated by commas [default: as recorded, or as the workload says]
    #[arg(long, value_delimiter = ',', value_parser = Cpus::parse)]
    cpus: Vec<u16>,
    #[command(flatten)]
    vm: vm::VmArguments,
    #[command(flatten)]
    host: host::HostArguments,
    #[command(flatten)]
    machine: MachineArguments,
    /// What if this second workload ran beside the recording: a closed workload or another recording
    #[arg(long, value_name = "WORKLOAD")]
    add_load: Option<OsString>,
    #[command(flatten)]
    common: CommonArguments,
    /// Repeat runs that draw random numbers until the 95 % half-width is at most this share of the mean
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    ci: f64,
    /// Repeat such runs at least so often
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    min_runs: u32,
    /// Stop repeating after this time and say that it was not enough
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    max_time: Nanos,
    /// Verify each simulation: no task on two CPUs, none lost, time conserved, affinity and promises held
    #[arg(long)]
    check: bool,
    /// Write results (JSON, CSV, Parquet), traces (schedlab's and Perfetto's) and report.html to this directory
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
}

const POLICIES: &str = "eevdf,take:rr,take:multilist2,take:priority,central:rr,initial:rr";

impl Compare {
    pub fn run(self) -> Result<(), Error> {
        if self.vm.on != [Backend::Sim] {
            self.machine.expect_flat("a described machine is simulated, and this runs elsewhere")?;
            self.expect_no_added_load()?;
        }
        if self.vm.on == [Backend::Host] {
            self.vm.expect_no_boot()?;
            return self.on_host();
        }
        if self.vm.on.contains(&Backend::Host) || !self.host.command.is_empty() {
            return Err(Error::Usage(
                "what runs on this machine is compared with itself: give --on host alone; a command runs nowhere else".to_string(),
            ));
        }
        if self.vm.is_on() {
            return self.on_vm();
        }
        self.vm.expect_no_boot()?;
        self.answer()?.print(self.common.format)
    }

    /// What it comes to in the simulator.
    pub fn answer(&self) -> Result<Answer, Error> {
        match self.workload.resolve()? {
            Workload::Recording(path) => self.recorded(&path),
            Workload::Stochastic(template) => self.stochastic(&template),
            Workload::Closed(workload) => self.closed(&workload),
        }
    }

    fn recorded(&self, path: &Path) -> Result<Answer, Error> {
        if !self.load.is_empty() {
            return Err(Error::Usage(format!("{} is a recording, which has the load that it has: leave --load out", path.display())));
        }
        self.workload.expect_no_parameters(path)?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let recorded = load(path, &self.common, &self.machine)?;
        let cpus = self.machine.cpus(&self.cpus, recorded.recording.cpus)?;
        let what_if = self.what_if(&recorded)?;
        let (policies, baseline) = (self.policies(POLICIES)?, self.baseline("eevdf")?);
        let setup = Setup { repetition: self.repetition(), check: self.check, traces: directory.as_ref() };
        let bar = progress::bar("simulating", 0);
        let cases = Cases { baseline: &baseline, policies: &policies, cpus: &cpus };
        let comparison =
            Comparison::of_replays(&recorded, what_if.as_ref().map(|changed| changed.subject(&recorded)), &cases, &setup, &bar);
        bar.finish_and_clear();
        let point = what_if.as_ref().map(|changed| changed.point.clone()).unwrap_or_default();
        let comparison = comparison?.at(point);
        let results = Results::new(comparison.rows(&recorded, self.common.seed));
        if let Some(directory) = directory {
            directory.write(&results, comparison.distributions(&recorded))?;
            directory.write_recording(&TraceSource::of_recording(path, &recorded.recording))?;
            let bar = progress::bar("exporting", 0);
            directory.export_traces(&bar)?;
            bar.finish_and_clear();
            directory.finish()?;
        }
        let text = self.text(&recorded, what_if.as_ref(), &comparison, &cpus);
        Ok(Answer::new(results, text))
    }

    fn policies(&self, default: &str) -> Result<Vec<PolicySpec>, Error> {
        if !self.policy.is_empty() {
            return PolicyName::all_simulated(&self.policy);
        }
        default.split(',').map(|policy| parse_policy(policy).map_err(Error::Usage)).collect()
    }

    fn baseline(&self, default: &str) -> Result<PolicySpec, Error> {
        self.baseline.clone().map_or_else(|| parse_policy(default).map_err(Error::Usage), Ok)
    }

    /// Refuses a second workload where there is no recording that it could run beside.
    fn expect_no_added_load(&self) -> Result<(), Error> {
        let wrong = || {
            Err(Error::Usage("--add-load is for recordings that are simulated: leave it out, or write one workload of both".to_string()))
        };
        if self.add_load.is_none() { Ok(()) } else { wrong() }
    }

    fn repetition(&self) -> Repetition {
        Repetition { seed: self.common.seed, min_runs: self.min_runs, half_width: self.ci, max_time: Duration::from_nanos(self.max_time.0) }
    }

    fn text(&self, recorded: &Recorded, what_if: Option<&WhatIf>, comparison: &Comparison, cpus: &[u16]) -> String {
        let machine = &recorded.machine;
        let mut text = recorded.headline();
        let _ = writeln!(
            text,
            "Machine: switch {}, migration {}, leaving idle {}, waking {}{}\n",
            machine.switch_cost,
            machine.migration_cost,
            machine.idle_exit,
            machine.wake_cost,
            if self.machine.is_given() { "" } else { " (estimated from the recording)" }
        );
        text += &fidelity(recorded, comparison);
        text += &what_if.map(WhatIf::told).unwrap_or_default();
        text += &self.tables(comparison, cpus);
        text + "\n+ better  - worse  = the same  ~ undecided: smaller than the replay's own error; ± where above 1%\n"
    }
}

impl Compare {
    /// A table and a sentence for each number of CPUs.
    fn tables(&self, comparison: &Comparison, cpus: &[u16]) -> String {
        let mut text = String::new();
        for &cpus in cpus {
            let _ = writeln!(text, "\n{cpus} CPU{}, against {}:\n", if cpus == 1 { "" } else { "s" }, comparison.baseline);
            text += &cases(comparison, cpus);
            text += &best(comparison, cpus);
        }
        if self.check {
            text += "\nAll checks held in every run.\n";
        }
        text
    }
}

/// How close the replay is to the recording.
fn fidelity(recorded: &Recorded, comparison: &Comparison) -> String {
    let mut table = Table::new([("metric", Align::Left), ("recorded", Align::Right), ("replayed", Align::Right), ("error", Align::Right)]);
    for (metric, title) in headline() {
        let Some(fidelity) = comparison.fidelity.iter().find(|fidelity| fidelity.metric.id == metric.id) else { continue };
        let show = |value| quantity(value, fidelity.metric.unit);
        let error = if fidelity.recorded == 0.0 { "-".to_string() } else { format!("{:.1}%", 100.0 * fidelity.error()) };
        table.row([title.to_string(), show(fidelity.recorded), show(fidelity.replayed), error]);
    }
    format!("Fidelity: the recording on {} CPUs, and its replay under {}\n\n{table}", recorded.recording.cpus, comparison.baseline)
}

/// One row per policy, one column per metric.
fn cases(comparison: &Comparison, cpus: u16) -> String {
    let mut table = Table::new(std::iter::once(("policy", Align::Left)).chain(headline().map(|(_, title)| (title, Align::Right))));
    for case in comparison.cases.iter().filter(|case| case.cpus == cpus) {
        let cells = headline().map(|(metric, _)| cell(comparison, case, metric));
        table.row(std::iter::once(case.policy.to_string()).chain(cells));
    }
    table.to_string()
}

fn cell(comparison: &Comparison, case: &Case, metric: &Metric) -> String {
    let Some(estimate) = case.estimate(metric) else { return "-".to_string() };
    let spread = match estimate.half_width {
        Some(half_width) if half_width > 0.01 * estimate.mean.abs() => {
            format!(" ±{:.0}%", (100.0 * half_width / estimate.mean.abs()).ceil())
        }
        _ => String::new(),
    };
    let mark = comparison.verdict(case, metric).map_or(" ", |verdict| verdict.mark());
    format!("{}{spread} {mark}", quantity(estimate.mean, metric.unit))
}

/// A sentence on who wins.
fn best(comparison: &Comparison, cpus: u16) -> String {
    let mut text = String::new();
    let winners: Vec<(&str, String)> =
        headline().filter_map(|(metric, title)| comparison.best(cpus, metric).map(|case| (title, case.policy.to_string()))).collect();
    if winners.is_empty() {
        let by = if comparison.fidelity.is_empty() { "" } else { "by more than the replay's error " };
        let _ = writeln!(text, "\nNo policy is better than {} {by}in any metric.", comparison.baseline);
    } else {
        let list: Vec<String> = winners.iter().map(|(metric, policy)| format!("{metric}: {policy}")).collect();
        let _ = writeln!(text, "\nBetter than {} beyond doubt, best first: {}.", comparison.baseline, list.join("; "));
    }
    text
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok()).filter(|&percent| percent > 0.0 && percent <= 100.0);
    number.map(|percent| percent / 100.0).ok_or_else(|| "give a percentage above 0% and up to 100%, as in 2%".to_string())
}
