//! Runs under a policy that is known by name only.
//!
//! The engine is compiled for each policy here, once, and not in every crate that names one: that is most of what this workspace takes to build.

use super::{Error, Options, Outcome, Source, simulate};
use crate::Machine;
use crate::policy::{Policy, PolicySpec, PolicyVisitor};
use crate::trace::Trace;

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
    run(Run { source: source.into(), machine, options, trace }, policy)
}

/// Not generic, so that it is compiled in this crate.
fn run(run: Run, policy: &PolicySpec) -> Result<Outcome, Error> {
    policy.visit(run.machine.cpus, run)
}

struct Run<'w, 'm, 't> {
    source: Source<'w>,
    machine: &'m Machine,
    options: Options,
    trace: Trace<'t>,
}

impl PolicyVisitor for Run<'_, '_, '_> {
    type Out = Result<Outcome, Error>;

    fn visit<P: Policy>(self, policy: P) -> Self::Out {
        simulate(self.source, self.machine, policy, self.options, self.trace)
    }
}
