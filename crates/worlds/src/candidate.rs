//! Candidates: a policy behind the seam, a scheduling class of the kernel, a scheduler in BPF, or
//! other settings of tasks under the usual scheduler.

use super::Program;
use crate::experiment::Candidate as Scheduler;
use crate::setting::Deployment;
use formats::workload::ClosedWorkload;
use program::Error;
use schedlab_runner::class::Class;
use schedsim::policy::PolicySpec;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What schedules a workload.
#[derive(Clone)]
pub enum Candidate<'a> {
    /// A policy by name.
    Policy(PolicySpec),
    /// A policy of the caller, written in another language.
    Own(&'a dyn Scheduler),
    /// A scheduling class of the kernel.
    Class(Class),
    /// A scheduler in BPF, `bpf:NAME`.
    Bpf(String),
    /// Settings of tasks under the usual scheduler: in the simulator under the policy that they
    /// name, elsewhere under the kernel's class `other`.
    Applied(Arc<Deployment>),
}

impl<'a> Candidate<'a> {
    /// The settings, if this candidate is settings.
    pub fn deployment(&self) -> Option<&Deployment> {
        if let Candidate::Applied(deployment) = self { Some(deployment) } else { None }
    }

    /// This candidate with `baseline` as the usual scheduler, if it is settings.
    #[must_use]
    pub fn under(self, baseline: &Candidate<'_>) -> Candidate<'a> {
        match (self, baseline) {
            (Candidate::Applied(deployment), Candidate::Policy(policy)) => {
                Candidate::Applied(Arc::new(Deployment {
                    under: Some(policy.clone()),
                    ..(*deployment).clone()
                }))
            }
            (candidate, _) => candidate,
        }
    }

    /// `workload` as its tasks run under this candidate.
    pub fn applied_to<'w>(&self, workload: &'w ClosedWorkload) -> Cow<'w, ClosedWorkload> {
        match self.deployment() {
            None => Cow::Borrowed(workload),
            Some(deployment) => Cow::Owned(workload.changed(|closed| deployment.to_closed(closed))),
        }
    }

    /// Refuses settings for programs or CPUs that `program` does not have.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists what there is.
    pub(super) fn expect_for(&self, program: &Program, cpus: u16) -> Result<(), Error> {
        let Some(deployment) = self.deployment() else { return Ok(()) };
        let names = program.programs();
        if names.is_empty() {
            let name = program.name();
            return Err(Error::Usage(format!(
                "--apply '{deployment}': {name} has no tasks of its own names: leave --apply out"
            )));
        }
        deployment.expect_for(&program.name(), &names, cpus)
    }
}

/// The name as in `--policy` and in results.
impl fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Policy(policy) => policy.fmt(f),
            Candidate::Own(policy) => policy.fmt(f),
            Candidate::Class(class) => write!(f, "kernel:{class}"),
            Candidate::Bpf(name) => f.write_str(name),
            Candidate::Applied(deployment) => deployment.fmt(f),
        }
    }
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Candidate({self})")
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Candidate<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.to_string() == other.to_string()
    }
}
