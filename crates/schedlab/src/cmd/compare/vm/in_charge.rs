//! Who schedules in a guest: a class of the kernel's own, or a policy of ours through sched_ext.

use crate::Error;
use crate::cmd::PolicyName;
use crate::experiment::parse_policy;
use crate::vm::{Guest, Kernel, Scheduler, Transcript};
use schedlab_runner::class::Class;
use schedsim::policy::PolicySpec;
use std::fmt;

/// One of `--policy`.
#[derive(Clone, Debug)]
pub enum InCharge {
    Class(Class),
    Ours(Scheduler),
}

impl InCharge {
    /// Who is asked for; the kernel's fair scheduler if nobody is.
    pub fn all(policies: &[PolicyName]) -> Result<Vec<InCharge>, Error> {
        if policies.is_empty() {
            return Ok(vec![InCharge::Class(Class::Other)]);
        }
        let each = |policy: &PolicyName| match policy {
            PolicyName::Kernel(class) => Ok(InCharge::Class(*class)),
            PolicyName::All => Err(Error::Usage(
                "`all` are the policies that are simulated; on vm name those that are meant, as in kernel:other,bpf:rr,take:ruler"
                    .to_string(),
            )),
            PolicyName::Bpf(name) => Scheduler::find(name).map(InCharge::Ours),
            PolicyName::Ours(policy) => Scheduler::find(&policy.to_string()).map(InCharge::Ours),
        };
        policies.iter().map(each).collect()
    }

    /// The class of the tasks. What sched_ext takes over is `other`.
    pub fn class(&self) -> Class {
        if let InCharge::Class(class) = self { *class } else { Class::Other }
    }

    /// Makes sure that the kernel has what it needs.
    pub fn require(&self, kernel: &Kernel, cpus: u16) -> Result<(), Error> {
        match self {
            InCharge::Class(_) => kernel.require(cpus, &[]),
            InCharge::Ours(scheduler) => scheduler.require(kernel, cpus),
        }
    }

    /// Puts what is needed into the guest.
    pub fn install(&self, guest: &mut Guest) -> Result<(), Error> {
        if let InCharge::Ours(scheduler) = self { scheduler.install(guest) } else { Ok(()) }
    }

    /// Whether it was in charge to the end.
    pub fn judge(&self, transcript: &Transcript) -> Result<(), Error> {
        if let InCharge::Ours(scheduler) = self { scheduler.judge(transcript) } else { Ok(()) }
    }

    /// Whether it is a policy of ours, whose slices sched_ext looks at: the simulated ones of the kernel's have ticks themselves.
    pub fn is_ours(&self) -> bool {
        matches!(self, InCharge::Ours(_))
    }

    /// The name of the tasks of our program, if that has loaded the scheduler.
    pub fn program(&self) -> Option<String> {
        if let InCharge::Ours(scheduler) = self { Some(scheduler.task_name()) } else { None }
    }

    /// The name of the task that decides, where that is one: it does not schedule itself.
    pub fn in_user_space(&self) -> Option<String> {
        if let InCharge::Ours(scheduler) = self { scheduler.in_user_space() } else { None }
    }

    /// The policy of the simulator's that stands for it.
    pub fn simulated(&self, kernel: &Kernel) -> Result<PolicySpec, Error> {
        match self {
            InCharge::Class(_) => parse_policy(if kernel.fair_scheduler() == "CFS" { "cfs" } else { "eevdf" }).map_err(Error::Internal),
            InCharge::Ours(scheduler) => scheduler.original(),
        }
    }

    /// For people: the fair scheduler by its own name.
    pub fn title(&self, kernel: &Kernel) -> String {
        match self {
            InCharge::Class(Class::Other) => kernel.fair_scheduler().to_string(),
            InCharge::Class(class) => class.to_string(),
            InCharge::Ours(scheduler) => scheduler.to_string(),
        }
    }
}

/// As in `--policy`.
impl fmt::Display for InCharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InCharge::Class(class) => write!(f, "kernel:{class}"),
            InCharge::Ours(scheduler) => scheduler.fmt(f),
        }
    }
}
