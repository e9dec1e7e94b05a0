//! Experiments: runs workloads under policies on machines, and collects the results.

mod candidate;
mod failure;
mod fitting;
mod known_costs;
mod loading;
mod open;
pub mod panics;
mod policy_name;
mod queue_costs;
mod simulation;

pub use candidate::Candidate;
pub use failure::of_run;
pub use fitting::fit;
pub use known_costs::KnownCosts;
pub use open::{OpenRun, check_candidate, simulate_candidate, simulate_open, subjects};
pub use policy_name::{all_policies, catalog, not_simulated, parse_policy, set_catalog};
pub use simulation::{Run, simulate};

use formats::import::Recording;
use formats::trace_file::{Header, Task};
use formats::workload::ClosedWorkload;
use schedsim::metrics::Summary;
use schedsim::workload::{
    BackgroundOf, CallEstimates, Costs, LatencyEstimates, ReplayReport, Workload,
};
use schedsim::{Machine, Nanos, TaskId, Time};
use std::fmt::{self, Display, Formatter};

/// A recording with everything that a replay needs.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its name: that of the file.
    pub name: String,
    /// Its tasks, the number of CPUs, the duration, and the number of lost events.
    pub recording: Recording,
    /// What its tasks do.
    pub workload: Workload,
    /// How certain the workload is.
    pub replay: ReplayReport,
    /// The costs of scheduling on the recorded machine, as far as the events show them.
    pub costs: Costs,
    /// What blocking and waking take, as far as its calls show it.
    pub calls: CallEstimates,
    /// How late CPUs choose after wakings.
    pub latencies: LatencyEstimates,
    /// The file from which costs are that the recording cannot tell, and which.
    pub costs_from: Vec<CostsFrom>,
    /// What became of the tasks beside the program.
    pub background: BackgroundOf,
    /// The machine of its replay: the recorded CPUs, with the estimated or given costs.
    pub machine: Machine,
    /// The speed of its CPUs in million instructions per second, if operations on ready queues are
    /// charged.
    pub mips: Option<f64>,
    /// The metrics of the recording itself.
    pub summary: Summary,
}

/// Costs from another recording of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostsFrom {
    /// The file.
    pub name: String,
    /// The costs, in words.
    pub which: Vec<&'static str>,
}

impl Display for CostsFrom {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let CostsFrom { name, which } = self;
        match which.as_slice() {
            [] => write!(f, "The recording has all costs that {name} has"),
            which => write!(
                f,
                "The recording does not say what these cost, {name} does: {}",
                which.join(", ")
            ),
        }
    }
}

/// Scripts, with everything else that decides how they run.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its tasks do.
    pub workload: &'a Workload,
    /// The costs of scheduling.
    pub machine: &'a Machine,
    /// The speed of its CPUs in million instructions per second, if operations on ready queues are
    /// charged.
    pub mips: Option<f64>,
    /// The tasks with whose end the measurement ends; if there are none, it ends with the run.
    pub ended: &'a [TaskId],
    /// When a run is stopped.
    pub until: Time,
    /// Tasks that run beside the others and are not measured.
    pub beside: &'a [TaskId],
    /// Whether the samples of single tasks are kept.
    pub parts: bool,
}

impl<'a> Subject<'a> {
    /// A closed workload; `scripts` are those of [`ClosedWorkload::scripts`].
    pub fn of_closed(
        workload: &'a ClosedWorkload,
        scripts: &'a Workload,
        machine: &'a Machine,
        mips: Option<f64>,
    ) -> Subject<'a> {
        Subject {
            name: workload.name(),
            workload: scripts,
            machine,
            mips,
            ended: &[],
            until: workload.until(),
            beside: &[],
            parts: false,
        }
    }

    /// The machine with `cpus` CPUs. One that is not flat keeps its own. Of a recorded machine whose
    /// CPUs differ, nothing says which another number of CPUs would be: all are as the fastest.
    pub fn machine(&self, cpus: u16) -> Machine {
        let topology = self.machine.topology.clone().filter(|topology| topology.cpus() == cpus);
        Machine { cpus, topology, ..self.machine.clone() }
    }

    /// The description that a trace of `policy` on `cpus` CPUs carries.
    pub fn header(&self, policy: &(impl Display + ?Sized), cpus: u16, seed: u64) -> Header {
        Header {
            workload: self.name.to_string(),
            candidate: policy.to_string(),
            cpus,
            seed,
            version: env!("CARGO_PKG_VERSION").to_string(),
            tasks: self.workload.tasks.iter().map(|task| Task::from(&task.info)).collect(),
        }
    }
}

/// How a recording is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Accept one that lost more than one event in a hundred.
    pub allow_lost: bool,
    /// What is replayed.
    pub replay: ReplayOf,
    /// What becomes of the tasks beside a recorded program.
    pub background: BackgroundOf,
    /// Keep in the runs what blocking, waking others and being preempted took: for a program whose
    /// runs begin with what its last calls took.
    pub whole_runs: bool,
}

/// What is replayed of a recording with calls. Other recordings have only a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum ReplayOf {
    /// The operations of its tasks on shared objects
    #[default]
    Program,
    /// Who slept for how long and who woke whom
    Schedule,
}

/// The costs that a user gives, in place of those estimated.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostOverrides {
    /// Of a context switch.
    pub switch: Option<Nanos>,
    /// Of a migration.
    pub migration: Option<Nanos>,
    /// Of leaving idle.
    pub idle_exit: Option<Nanos>,
    /// Of a wakeup on a CPU that is awake.
    pub wake: Option<Nanos>,
    /// Of operations on ready queues: as in the cost atlas, at this speed in million instructions
    /// per second. By default nothing.
    pub mips: Option<f64>,
}
