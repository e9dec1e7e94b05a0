//! The policy of an experiment: one by name, or one of the caller.

use super::panics::run_or_breach;
use super::queue_costs::cost_of;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::metrics::OpenSystem;
use schedsim::policy::{AnyPolicy, PolicySpec, Promises};
use schedsim::trace::Trace;
use schedsim::workload::Model;
use schedsim::{Machine, QueueCost};
use std::fmt::Display;

/// A policy that can be run from its beginning any number of times. It is displayed as results name
/// it.
pub trait Candidate: Display {
    /// What its decisions cost on CPUs that execute this many million instructions per second;
    /// `None` if that is not known.
    fn cost(&self, mips: f64) -> Option<QueueCost>;

    /// What it guarantees on this many CPUs.
    fn promises(&self, cpus: u16) -> Promises;

    /// Whether a task may run on more than one CPU in its life.
    fn migrates(&self, cpus: u16) -> bool;

    /// The policy itself, for drivers other than the engine; `None` if there is none.
    fn policy(&self, _cpus: u16) -> Option<AnyPolicy> {
        None
    }

    /// Runs the tasks of `source` under it.
    ///
    /// # Errors
    /// As [`engine::simulate`].
    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error>;

    /// Runs the tasks of `model` under it, observed by `open` alone.
    ///
    /// # Errors
    /// As [`engine::simulate`].
    fn run_open(
        &self,
        model: &Model,
        machine: &Machine,
        options: Options,
        open: &mut OpenSystem<'_>,
    ) -> Result<Outcome, engine::Error> {
        self.run(model.into(), machine, options, Trace::new(vec![open]))
    }
}

impl Candidate for PolicySpec {
    fn cost(&self, mips: f64) -> Option<QueueCost> {
        self.structure().map(|structure| cost_of(structure, mips))
    }

    fn promises(&self, cpus: u16) -> Promises {
        PolicySpec::promises(self, cpus)
    }

    fn migrates(&self, cpus: u16) -> bool {
        PolicySpec::migrates(self, cpus)
    }

    fn policy(&self, cpus: u16) -> Option<AnyPolicy> {
        Some(PolicySpec::policy(self, cpus))
    }

    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error> {
        run_or_breach(self, source, machine, options, || {
            engine::simulate_named(source, machine, self, options, trace)
        })
    }

    fn run_open(
        &self,
        model: &Model,
        machine: &Machine,
        options: Options,
        open: &mut OpenSystem<'_>,
    ) -> Result<Outcome, engine::Error> {
        run_or_breach(self, model.into(), machine, options, || {
            engine::simulate_open(model, machine, self, options, open)
        })
    }
}
