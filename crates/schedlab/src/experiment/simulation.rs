//! One run in the simulator, observed.

use crate::Error;
use schedsim::checks::{Checks, Violation};
use schedsim::engine::{self, Options, Outcome};
use schedsim::metrics::{Metrics, Summary};
use schedsim::policy::{Policy, PolicySpec, PolicyVisitor};
use schedsim::trace::{Observer, Trace, TraceHash};
use schedsim::workload::Workload;
use schedsim::{Machine, Time};

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its metrics.
    pub summary: Summary,
    /// Its end, its events, and whether another seed would change it.
    pub outcome: Outcome,
    /// The hash of its trace.
    pub hash: u64,
    /// What the checks found, if they were asked to look.
    pub violations: Vec<Violation>,
}

/// Runs `workload` on `machine` under `policy`; `observer` sees the events as well.
pub fn simulate(
    workload: &Workload,
    machine: &Machine,
    policy: &PolicySpec,
    seed: u64,
    check: bool,
    observer: Option<&mut dyn Observer>,
) -> Result<Run, Error> {
    let job = Job { workload, machine, seed, check, observer };
    policy.visit(machine.cpus, job).map_err(|error| match error {
        engine::Error::Stalled(_) => Error::Input(format!("under {policy} on {} CPUs {error}", machine.cpus)),
        engine::Error::Policy { .. } => Error::Internal(format!("{policy} on {} CPUs failed: {error}", machine.cpus)),
    })
}

/// A run that waits for its policy.
struct Job<'a, 'o> {
    workload: &'a Workload,
    machine: &'a Machine,
    seed: u64,
    check: bool,
    observer: Option<&'o mut dyn Observer>,
}

impl PolicyVisitor for Job<'_, '_> {
    type Out = Result<Run, engine::Error>;

    fn visit<P: Policy>(self, policy: P) -> Self::Out {
        let mut metrics = Metrics::new(self.machine.cpus);
        let mut hash = TraceHash::new();
        let mut checks = self.check.then(|| Checks::new(self.workload, self.machine, policy.promises()));
        let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, &mut hash];
        if let Some(checks) = &mut checks {
            observers.push(checks);
        }
        if let Some(observer) = self.observer {
            observers.push(observer);
        }
        let options = Options { seed: self.seed, until: Time::NEVER };
        let outcome = engine::simulate(self.workload, self.machine, policy, options, Trace::new(observers))?;
        let violations = checks.map(|checks| checks.finish(&outcome)).unwrap_or_default();
        Ok(Run { summary: metrics.finish(outcome.end), outcome, hash: hash.value(), violations })
    }
}
