//! From a policy's name to the policy: the one place where names are resolved.

use super::{Central, Initial, Levels, Policy, Take, central, initial, take};
use crate::Nanos;
use readyq::{ReadyQueue, RoundRobin};
use std::fmt;

/// Receives the policy that a name stands for.
pub trait PolicyVisitor {
    /// What comes of it.
    type Out;
    /// Called with the policy.
    fn visit<P: Policy>(self, policy: P) -> Self::Out;
}

/// A policy by name: `topology:order/option=value/…`, or a whole scheduler's name with options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySpec {
    text: String,
    topology: String,
    order: String,
    quantum: Nanos,
}

/// Why a name stands for no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// No such name.
    Unknown {
        /// What was asked for.
        name: String,
    },
}

/// The names of all policies.
pub fn names() -> Vec<String> {
    ["central", "initial", "take"]
        .iter()
        .map(|topology| format!("{topology}:rr"))
        .collect()
}

impl PolicySpec {
    /// Reads a policy's name and options.
    ///
    /// # Errors
    /// If there is no such policy or option.
    pub fn parse(text: &str) -> Result<PolicySpec, PolicyError> {
        let unknown = || PolicyError::Unknown { name: text.to_string() };
        let (topology, order) = text.split_once(':').ok_or_else(unknown)?;
        if !["central", "initial", "take"].contains(&topology) || order != "rr" {
            return Err(unknown());
        }
        Ok(PolicySpec {
            text: text.to_string(),
            topology: topology.to_string(),
            order: order.to_string(),
            quantum: Nanos::from_millis(4),
        })
    }

    /// Builds the policy for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(&self, cpus: u16, visitor: V) -> V::Out {
        self.with_order(RoundRobin::new(), cpus, visitor)
    }

    fn with_order<Q: ReadyQueue + Clone, V: PolicyVisitor>(&self, queue: Q, cpus: u16, visitor: V) -> V::Out {
        let (quantum, levels, preempt) = (self.quantum, Levels::new(8), false);
        match &self.topology[..] {
            "central" => visitor.visit(Central::new(
                queue,
                central::Options {
                    quantum,
                    levels,
                    search: 1,
                    preempt,
                },
            )),
            "initial" => visitor.visit(Initial::new(queue, cpus, initial::Options { quantum, levels, preempt })),
            _ => visitor.visit(Take::new(
                queue,
                cpus,
                take::Options {
                    quantum,
                    levels,
                    polling: true,
                    preempt,
                },
            )),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Unknown { name } => write!(f, "there is no policy named {name:?}"),
        }
    }
}

impl std::error::Error for PolicyError {}
