//! What schedules a workload: a policy behind the seam, a class of a kernel's own, or a scheduler in BPF.

use crate::experiment::Candidate as Scheduler;
use schedlab_runner::class::Class;
use schedsim::policy::PolicySpec;
use std::fmt;

/// One of them.
#[derive(Clone)]
pub enum Candidate<'a> {
    /// A policy by name.
    Policy(PolicySpec),
    /// A policy of the caller's, written in another language.
    Own(&'a dyn Scheduler),
    /// A class of a kernel's own.
    Class(Class),
    /// A scheduler in BPF, `bpf:NAME`.
    Bpf(String),
}

/// As in `--policy`, and as results name it.
impl fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Policy(policy) => policy.fmt(f),
            Candidate::Own(policy) => policy.fmt(f),
            Candidate::Class(class) => write!(f, "kernel:{class}"),
            Candidate::Bpf(name) => f.write_str(name),
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
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}
