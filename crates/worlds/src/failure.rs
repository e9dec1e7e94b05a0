//! The limits of a judged run, and why it has no number.

use std::time::Instant;

/// The limits of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most events of its trace; it is stopped within a chunk of 256 of it. A stranger's policy
    /// may also be called eight times as often at most.
    pub events: u64,
    /// When it is given up.
    pub deadline: Instant,
}

/// Why a candidate has no number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A run had more events than allowed.
    Limit(String),
    /// The time was over.
    Timeout(String),
    /// It broke the contract of a policy.
    Contract(String),
    /// It panicked, raised an exception, gave up, or its process ended.
    Crash(String),
    /// It needed more memory than allowed.
    OutOfMemory(String),
    /// The compiler refuses it.
    CompileError(String),
    /// It is no policy.
    NotAPolicy(String),
    /// It cannot run this workload, or not on this machine.
    Refused(String),
    /// Something that it needs is missing here.
    Missing(String),
}

impl Failure {
    /// The reason.
    pub fn reason(&self) -> &str {
        match self {
            Failure::Limit(why)
            | Failure::Timeout(why)
            | Failure::Contract(why)
            | Failure::Crash(why)
            | Failure::OutOfMemory(why)
            | Failure::CompileError(why)
            | Failure::NotAPolicy(why)
            | Failure::Refused(why)
            | Failure::Missing(why) => why,
        }
    }
}

/// The time of a candidate is over.
pub fn late() -> Failure {
    Failure::Timeout("it took longer than the time that the suite allows".to_string())
}
