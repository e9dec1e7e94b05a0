//! Experiments: a workload under policies on machines, run as often as it takes, and what comes of it.

mod candidate;
mod fitting;
mod loading;
mod open;
mod panics;
mod policy_name;
mod prediction;
mod queue_costs;
mod simulation;
mod swarm;

pub use candidate::Candidate;
pub use fitting::fit;
pub use open::{OpenRun, check_candidate, simulate_candidate, simulate_open, subjects};
pub use policy_name::{all_policies, parse_policy};
pub use prediction::{Change, Prediction, Tested, Trial};
pub use simulation::{Run, simulate};
pub use swarm::{Finding, Stood, swarm};

use crate::import::Recording;
use crate::trace_file::{Header, Task};
use crate::workload::ClosedWorkload;
use schedsim::metrics::Summary;
use schedsim::workload::{Costs, ReplayReport, Workload};
use schedsim::{Machine, Nanos, TaskId, Time};
use std::fmt::Display;

/// A recording, as everything that a replay needs.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What to call it: the file's name.
    pub name: String,
    /// Who its tasks are, on how many CPUs it was made, how long it lasted, what was lost.
    pub recording: Recording,
    /// What its tasks do.
    pub workload: Workload,
    /// How sure the workload is.
    pub replay: ReplayReport,
    /// What scheduling cost there, as far as the events tell.
    pub costs: Costs,
    /// The machine to replay it on: the recorded CPUs, and the costs estimated or given.
    pub machine: Machine,
    /// How many million instructions per second its CPUs do, if operations on ready queues are to be charged.
    pub mips: Option<f64>,
    /// The metrics of the recording itself.
    pub summary: Summary,
}

/// Scripts, and what else decides how they run.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What to call it.
    pub name: &'a str,
    /// What its tasks do.
    pub workload: &'a Workload,
    /// What scheduling costs.
    pub machine: &'a Machine,
    /// How many million instructions per second its CPUs do, if operations on ready queues are to be charged.
    pub mips: Option<f64>,
    /// Tasks with whose end the measurement ends; if there are none, with the run.
    pub ended: &'a [TaskId],
    /// When a run is stopped.
    pub until: Time,
    /// Tasks that run beside the others and are not measured.
    pub beside: &'a [TaskId],
    /// Whether the samples of single tasks are gathered.
    pub parts: bool,
}

impl<'a> Subject<'a> {
    /// A closed workload, its `scripts` being those of [`ClosedWorkload::scripts`].
    pub fn of_closed(workload: &'a ClosedWorkload, scripts: &'a Workload, machine: &'a Machine, mips: Option<f64>) -> Subject<'a> {
        Subject { name: workload.name(), workload: scripts, machine, mips, ended: &[], until: workload.until(), beside: &[], parts: false }
    }

    /// The machine with `cpus` CPUs; one that is not flat has those that it has.
    pub fn machine(&self, cpus: u16) -> Machine {
        Machine { cpus, ..self.machine.clone() }
    }

    /// What a trace of `policy` on `cpus` CPUs says about itself.
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

/// The costs that a user gave, in place of those estimated.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostOverrides {
    /// Of a switch.
    pub switch: Option<Nanos>,
    /// Of a migration.
    pub migration: Option<Nanos>,
    /// Of leaving idle.
    pub idle_exit: Option<Nanos>,
    /// Of a waking on a CPU that is awake.
    pub wake: Option<Nanos>,
    /// Of operations on ready queues: as the cost atlas has it, at so many million instructions per second. By default nothing.
    pub mips: Option<f64>,
}
