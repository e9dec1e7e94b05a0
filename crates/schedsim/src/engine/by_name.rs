//! Runs a simulation under a policy given by name.

use super::{Error, Options, Outcome, Source};
use crate::Machine;
use crate::metrics::OpenSystem;
use crate::policy::PolicySpec;
use crate::trace::Trace;
use crate::workload::Model;

/// [`simulate`](super::simulate) under the policy that `policy` names, on all CPUs of `machine`.
///
/// # Errors
/// As [`simulate`](super::simulate).
pub fn simulate_named<'w>(
    source: impl Into<Source<'w>>,
    machine: &Machine,
    policy: &PolicySpec,
    options: Options,
    trace: Trace,
) -> Result<Outcome, Error> {
    policy.simulate(source.into(), machine, options, trace)
}

/// [`simulate_named`] for a model that only `open` observes. It is a third faster, because the
/// engine is compiled for this observer.
///
/// # Errors
/// As [`simulate`](super::simulate).
pub fn simulate_open(
    model: &Model,
    machine: &Machine,
    policy: &PolicySpec,
    options: Options,
    open: &mut OpenSystem,
) -> Result<Outcome, Error> {
    policy.simulate_open(model, machine, options, open)
}
