//! Tests every rule with random workloads on random machines, and shrinks a failing case.
//!
//! Every case is a closed workload, so that a shrunk case can be written to a file and run
//! separately. No case can stall, whatever the policy does: tasks read only what earlier tasks
//! write, and never hold a mutex while they wait. So a stall is a failure, too.
//!
//! ```
//! use schedsim::policy::PolicySpec;
//! use schedsim::swarm::Case;
//!
//! let policy = PolicySpec::parse("take:multilist2").unwrap();
//! assert!((0..10).all(|seed| Case::draw(seed).verify(&policy).is_ok()));
//! ```

mod draw;
mod smaller;

use crate::checks::{Checks, Rule};
use crate::engine::{self, Options, Outcome, Source};
use crate::policy::{PolicySpec, Promises};
use crate::trace::Trace;
use crate::workload::{Closed, Workload};
use crate::{Machine, Nanos, Time};
use std::fmt;

/// The engine's seed in every case, which is the default of `schedlab run`.
const ENGINE_SEED: u64 = 1;
/// The maximum number of smaller cases that are tried.
const MOST_TRIES: u32 = 5_000;

/// A case: tasks and a machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The tasks. The number of CPUs is that of the machine.
    pub workload: Closed,
    /// The number of CPUs and the scheduling costs.
    pub machine: Machine,
}

/// Why a case fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The first broken rule; `None` if the run stopped with an error.
    pub rule: Option<Rule>,
    /// What happened.
    pub message: String,
}

impl Case {
    /// The case of `seed`.
    pub fn draw(seed: u64) -> Case {
        draw::case(seed)
    }

    /// The compiled scripts; `None` if the tasks do not fit the machine.
    pub fn scripts(&self) -> Option<Workload> {
        Workload::of(&self.workload, self.machine.cpus).ok()
    }

    /// When the run is stopped.
    pub fn until(&self) -> Time {
        self.workload.duration.map_or(Time::NEVER, |Nanos(span)| Time(span))
    }

    /// Runs it under `policy` with every check on.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn verify(&self, policy: &PolicySpec) -> Result<(), Failure> {
        let promises = policy.promises(self.machine.cpus);
        self.verify_with(promises, |source, machine, options, trace| {
            engine::simulate_named(source, machine, policy, options, trace)
        })
    }

    /// The same under a policy without a name, which `simulate` runs.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn verify_with(
        &self,
        promises: Promises,
        simulate: impl FnOnce(
            Source<'_>,
            &Machine,
            Options,
            Trace<'_>,
        ) -> Result<Outcome, engine::Error>,
    ) -> Result<(), Failure> {
        let Some(workload) = self.scripts() else {
            return Err(Failure { rule: None, message: "this case cannot be run".into() });
        };
        let mut checks = Checks::new(&workload, &self.machine, promises);
        let options = Options { seed: ENGINE_SEED, until: self.until() };
        let trace = Trace::new(vec![&mut checks]);
        let outcome = simulate((&workload).into(), &self.machine, options, trace)
            .map_err(|error| Failure { rule: None, message: error.to_string() })?;
        match checks.finish(&outcome).first() {
            Some(violation) => {
                Err(Failure { rule: Some(violation.rule), message: violation.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Shrinks the case by one omission after another, as long as it still `fails`: tasks, phases,
    /// CPUs, costs, attributes, time.
    pub fn shrink(&self, mut fails: impl FnMut(&Case) -> bool) -> Case {
        let (mut best, mut tries) = (self.clone(), 0..MOST_TRIES);
        loop {
            let runs = smaller::cases(&best).filter(|case| case.scripts().is_some());
            let next = runs.take_while(|_| tries.next().is_some()).find(&mut fails);
            let Some(smaller) = next else { return best };
            best = smaller;
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.message)
    }
}
