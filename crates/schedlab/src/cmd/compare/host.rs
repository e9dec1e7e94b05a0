//! `schedlab compare --on host`: a workload or a command on this machine, under the kernel's own classes.

mod text;

use super::{Compare, parse_percent};
use crate::Error;
use crate::cmd::PolicyName;
use crate::experiment::{HostComparison, Plan, Precision, RecordedRun, Stopping};
use crate::host::run::{Conditions, Place, Subject};
use crate::host::{cpus, limits};
use crate::output::{Results, write_whole};
use crate::progress;
use crate::results_directory::ResultsDirectory;
use crate::workload::Workload;
use clap::{Args, ValueEnum};
use schedlab_runner::class::Class;
use schedsim::Nanos;
use std::path::Path;
use std::time::Duration;

/// How a workload runs on this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of --on host")]
pub struct HostArguments {
    /// The nice value of tasks that ask for none, from -20 to 19
    #[arg(long, value_name = "NICE", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    nice: i32,
    /// The CPUs to use, as in 0,2-3 [default: those that may be used, or the first --cpus of them]
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    affinity: Option<Cpus>,
    /// Kill a run that takes longer, and leave it out
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Nanos,
    /// Rounds that are not counted, before the others
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Do not run the baseline against itself first: for where whole comparisons are repeated, which shows the same
    #[arg(long)]
    no_self_comparison: bool,
    /// Repeat at least so long
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    min_time: Nanos,
    /// A difference within this share of the baseline makes none: it is shown to be equivalent
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    margin: f64,
    /// A rule for repetitions in place of --ci, --min-runs, --min-time and --max-time
    #[arg(long, value_enum, conflicts_with_all = ["min_time"])]
    protocol: Option<Protocol>,
    /// Switch real-time throttling off while it runs: real-time tasks may then take all of every CPU. It is put back at the end, however that comes
    #[arg(long)]
    no_rt_throttling: bool,
    /// Run each class once more while perf records it: wakeup latencies and all other metrics of events, and traces in -o DIR. Needs root
    #[arg(long)]
    traced: bool,
    /// The command to run in place of a workload, with its arguments
    #[arg(last = true, index = 2, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// How often a run is repeated.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Protocol {
    /// At least five times and ten minutes, until the relative standard error is at most 1 %, at most an hour: the pslist post's.
    Pslist,
}

/// A list of CPUs; a type of its own, so that clap takes it for one value.
#[derive(Clone, Debug)]
struct Cpus(Vec<u16>);

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    cpus::parse_list(text).map(Cpus)
}

/// What stands for the workload where there is a command.
pub const COMMAND: &str = "COMMAND";
/// The classes that are compared by default.
pub(super) const CLASSES: [Class; 5] = [Class::Other, Class::Batch, Class::Idle, Class::Fifo(50), Class::Rr(50)];

/// Records a run of each class that runs at all.
fn record(
    plan: &Plan<'_>,
    comparison: &HostComparison,
    place: &mut Place,
    directory: Option<&ResultsDirectory>,
) -> Result<Vec<RecordedRun>, Error> {
    let running = comparison.cases.iter().filter(|case| case.refused.is_none());
    running.map(|case| RecordedRun::run(plan, place, case.class, directory)).collect()
}

impl Compare {
    pub(super) fn on_host(&self) -> Result<(), Error> {
        let (name, headline, subject) = self.subject()?;
        let classes = self.host_classes()?;
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let mut place = Place::new()?;
        if self.host.no_rt_throttling {
            place.guard.set("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
        }
        let (mut rows, mut text, mut raw, mut ends) = (Vec::new(), headline, String::from(text::RAW_HEADER), Vec::new());
        for conditions in self.conditions()? {
            let plan = Plan {
                name: &name,
                subject: &subject,
                classes: &classes,
                conditions,
                seed: self.common.seed,
                warm_up: self.host.warm_up,
                against_itself: !self.host.no_self_comparison,
                stopping: self.stopping(),
                margin: self.host.margin,
            };
            let bar = progress::bar("measuring", 0);
            let comparison = HostComparison::run(&plan, &mut place, &bar);
            bar.finish_and_clear();
            let comparison = comparison?;
            rows.extend(comparison.rows(&plan));
            text += &text::table(&comparison, &plan);
            raw += &text::raw(&comparison, &plan);
            if self.host.traced {
                let recorded = record(&plan, &comparison, &mut place, directory.as_ref())?;
                rows.extend(recorded.iter().flat_map(|run| run.rows(&plan)));
                text += &text::recorded(&recorded);
            }
            ends.push(text::end(&comparison));
        }
        drop(place);
        let results = Results::new(rows);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            write_whole(&directory.path().join("runs.csv"), raw.as_bytes())?;
            let bar = progress::bar("exporting", 0);
            directory.export_traces(&bar)?;
            bar.finish_and_clear();
            directory.finish()?;
        }
        results.print(self.common.format, || text + text::MARKS)?;
        ends.into_iter().collect()
    }

    /// What runs, what to call it, and what a reader must know first.
    fn subject(&self) -> Result<(String, String, Subject), Error> {
        if !self.load.is_empty() || !self.workload.set.is_empty() {
            return Err(Error::Usage("what runs on this machine has the load that it has: leave --load and --set out".to_string()));
        }
        let command = &self.host.command;
        if let Some(program) = command.first() {
            if self.workload.workload != COMMAND {
                let workload = self.workload.workload.to_string_lossy();
                return Err(Error::Usage(format!("give either the workload {workload} or a command behind --, not both")));
            }
            crate::host::record::find_command(program.as_ref(), "run")?;
            let name = command.join(" ");
            return Ok((name.clone(), format!("{name}\n"), Subject::Command(command.clone())));
        }
        match self.workload.resolve()? {
            Workload::Closed(workload) => {
                workload.expect_for_host()?;
                limits::require_room(workload.name(), workload.description())?;
                Ok((workload.name().to_string(), workload.headline(), Subject::Closed(Box::new(workload.description().clone()))))
            }
            Workload::Recording(path) => Err(Error::Usage(format!(
                "{} is a recording of what ran, not something to run; give a workload of tasks, as pythagoras:3200, or the command itself, as in: \
                 schedlab compare --on host -- make -j8",
                Path::new(&path).display()
            ))),
            Workload::Stochastic(_) => Err(Error::Usage(format!(
                "{} is drawn at random and runs in the simulator only; give a workload of tasks, as hackbench:1 or a file with [[task]]s",
                self.workload.workload.to_string_lossy()
            ))),
        }
    }

    fn host_classes(&self) -> Result<Vec<Class>, Error> {
        // The watchdog and the guard have 99, and must be able to end what runs.
        const HIGHEST: u32 = 98;
        let class = |policy: &PolicyName| match policy {
            PolicyName::Kernel(Class::Fifo(priority) | Class::Rr(priority)) if *priority > HIGHEST => Err(Error::Usage(format!(
                "priority {priority} is the watchdog's on this machine, which must be able to end what hangs; give at most {HIGHEST}"
            ))),
            PolicyName::Kernel(class) => Ok(*class),
            _ => Err(Error::Usage(
                "on this machine the kernel's own classes run: kernel:other, kernel:batch, kernel:idle, kernel:fifo:50, kernel:rr:50, \
                 kernel:deadline:2ms/10ms/10ms; other policies run with --on sim, or in a kernel with --on vm"
                    .to_string(),
            )),
        };
        if self.baseline.is_some() {
            return Err(Error::Usage("on this machine the first policy of --policy is the baseline: leave --baseline out".to_string()));
        }
        if self.policy.is_empty() { Ok(CLASSES.into()) } else { self.policy.iter().map(class).collect() }
    }

    /// For each number of CPUs.
    fn conditions(&self) -> Result<Vec<Conditions>, Error> {
        let allowed = self.host.affinity.as_ref().map_or(&[][..], |cpus| &cpus.0);
        let counts: Vec<Option<u16>> = if self.cpus.is_empty() { vec![None] } else { self.cpus.iter().copied().map(Some).collect() };
        let all = cpus::usable().len();
        let of_count = |count| {
            let cpus = cpus::choose(allowed, count)?;
            let limit = Duration::from_nanos(self.host.timeout.0);
            Ok(Conditions { pinned: cpus.len() < all, cpus, nice: self.host.nice, limit, bare: false })
        };
        counts.into_iter().map(of_count).collect()
    }

    fn stopping(&self) -> Stopping {
        match self.host.protocol {
            Some(Protocol::Pslist) => Stopping::PSLIST,
            None => Stopping {
                min_runs: self.min_runs,
                min_time: Duration::from_nanos(self.host.min_time.0),
                max_time: Duration::from_nanos(self.max_time.0),
                precision: Precision::HalfWidth(self.ci),
            },
        }
    }
}
