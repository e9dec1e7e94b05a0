//! Runs under a policy that is known by name only.
//!
//! The engine is compiled for each policy here, once, and not in every crate that names one: that is most of what this workspace takes to build.

use super::{Error, Options, Outcome, Source, simulate};
use crate::Machine;
use crate::metrics::OpenSystem;
use crate::policy::{Policy, PolicySpec, PolicyVisitor};
use crate::trace::{Direct, Sink, Trace};
use crate::workload::Model;

/// [`simulate`] under the policy that `policy` names, on all CPUs of `machine`.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_named<'w>(
    source: impl Into<Source<'w>>,
    machine: &Machine,
    policy: &PolicySpec,
    options: Options,
    trace: Trace,
) -> Result<Outcome, Error> {
    run(Run { source: source.into(), machine, options, sink: trace }, policy)
}

/// The same of a model, which only `open` looks at: a third faster, because the engine is compiled for it.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_open(
    model: &Model,
    machine: &Machine,
    policy: &PolicySpec,
    options: Options,
    open: &mut OpenSystem,
) -> Result<Outcome, Error> {
    policy.visit(machine.cpus, Run { source: model.into(), machine, options, sink: Direct(open) })
}

/// Not generic, so that it is compiled in this crate.
fn run(run: Run<'_, '_, Trace>, policy: &PolicySpec) -> Result<Outcome, Error> {
    policy.visit(run.machine.cpus, run)
}

struct Run<'w, 'm, S> {
    source: Source<'w>,
    machine: &'m Machine,
    options: Options,
    sink: S,
}

impl<S: Sink> PolicyVisitor for Run<'_, '_, S> {
    type Out = Result<Outcome, Error>;

    fn visit<P: Policy>(self, policy: P) -> Self::Out {
        simulate(self.source, self.machine, policy, self.options, self.sink)
    }
}
