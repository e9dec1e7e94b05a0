//! A swarm: random workloads on random machines, held to all rules, and the one that breaks a rule made as small as it goes.
//!
//! Every case is a closed workload, so that what is left of a failing one can be written to a file and run by itself. No case can stall whatever the
//! policy does: tasks read only what earlier ones write, and never hold a mutex while they wait. So a stall is a failure, too.
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

use crate::Machine;
use crate::checks::{Checks, Rule};
use crate::engine::{self, Options};
use crate::policy::PolicySpec;
use crate::trace::Trace;
use crate::workload::{Closed, Workload};
use crate::{Nanos, Time};
use std::fmt;

/// The seed of the engine in every case: what `schedlab run` takes if it is not told another.
const ENGINE_SEED: u64 = 1;
/// So many smaller cases are tried at most.
const MOST_TRIES: u32 = 5_000;

/// What is run: tasks, and the machine under them.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The tasks. Its number of CPUs is that of the machine.
    pub workload: Closed,
    /// How many CPUs, and what scheduling costs there.
    pub machine: Machine,
}

/// Why a case fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The rule that was broken first; none if the run could not go on.
    pub rule: Option<Rule>,
    /// What happened.
    pub message: String,
}

impl Case {
    /// The case of this seed.
    pub fn draw(seed: u64) -> Case {
        draw::case(seed)
    }

    /// What the engine runs; none if tasks and machine do not fit together.
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
    /// With the first rule that is broken.
    pub fn verify(&self, policy: &PolicySpec) -> Result<(), Failure> {
        let Some(workload) = self.scripts() else {
            return Err(Failure { rule: None, message: "this case cannot be run".into() });
        };
        let mut checks = Checks::new(&workload, &self.machine, policy.promises(self.machine.cpus));
        let options = Options { seed: ENGINE_SEED, until: self.until() };
        let outcome = engine::simulate_named(&workload, &self.machine, policy, options, Trace::new(vec![&mut checks]))
            .map_err(|error| Failure { rule: None, message: error.to_string() })?;
        match checks.finish(&outcome).first() {
            Some(violation) => Err(Failure { rule: Some(violation.rule), message: violation.to_string() }),
            None => Ok(()),
        }
    }

    /// The smallest case that still `fails`, as far as leaving out one thing after another leads: tasks, phases, CPUs, costs, attributes, time.
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
