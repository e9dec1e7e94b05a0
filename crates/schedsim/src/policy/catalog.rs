//! The catalogue of policies: the only code that resolves their names.

use super::descriptor::{Descriptor, Given, Values};
use super::options::split_options;
use super::{
    AnyPolicy, Needs, Promises, central, cfs, deadline, eevdf, fifo, initial, mlfq, o1,
    proportional, pslist, rr, take,
};
use crate::engine::{Error, Options, Outcome, Source};
use crate::metrics::OpenSystem;
use crate::trace::Trace;
use crate::workload::Model;
use crate::{Machine, Nanos};
use readyq::catalog::{self, Entry};
use std::fmt;

/// The policies of this crate. To add one, add its file and a line here.
static BUILT_IN: [&Descriptor; 15] = [
    &central::DESCRIPTOR,
    &initial::DESCRIPTOR,
    &take::DESCRIPTOR,
    &eevdf::DESCRIPTOR,
    &cfs::DESCRIPTOR,
    &o1::DESCRIPTOR,
    &pslist::DESCRIPTOR,
    &mlfq::windows::DESCRIPTOR,
    &mlfq::textbook::DESCRIPTOR,
    &fifo::DESCRIPTOR,
    &rr::DESCRIPTOR,
    &proportional::stride::DESCRIPTOR,
    &proportional::lottery::DESCRIPTOR,
    &deadline::RATE_MONOTONIC,
    &deadline::DEADLINE,
];

/// Policies by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    descriptors: Vec<Descriptor>,
}

impl Catalog {
    /// The policies of this crate.
    pub fn built_in() -> Catalog {
        Catalog { descriptors: BUILT_IN.iter().map(|descriptor| **descriptor).collect() }
    }

    /// Adds more policies.
    ///
    /// # Errors
    /// If a name is invalid or taken.
    ///
    /// # Panics
    /// If a descriptor contradicts itself: a default that its option does not accept, or a
    /// constructor that reads an unlisted option.
    pub fn with(mut self, descriptors: &[Descriptor]) -> Result<Catalog, String> {
        for descriptor in descriptors {
            let name = descriptor.name;
            let plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
                return Err(format!(
                    "`{name}` cannot name a policy: take small letters, digits, hyphens and \
                     underscores, a letter first"
                ));
            }
            if self.find(name).is_some() || RESERVED.contains(&name) {
                return Err(format!("there is a policy named `{name}` already: take another name"));
            }
            let values = descriptor.presets();
            descriptor.scheduler.policy(&Given {
                cpus: 1,
                order: descriptor.is_topology().then(|| &catalog::ENTRIES[0]),
                values: &values,
            });
            self.descriptors.push(*descriptor);
        }
        Ok(self)
    }

    /// All descriptors, topologies first.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// The topologies. Any order can be combined with each of them.
    pub fn topologies(&self) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.iter().filter(|descriptor| descriptor.is_topology())
    }

    /// The schedulers that have their own order and topology.
    pub fn schedulers(&self) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.iter().filter(|descriptor| !descriptor.is_topology())
    }

    /// The names of all policies.
    pub fn names(&self) -> Vec<String> {
        let orders = || catalog::names();
        let queued = self
            .topologies()
            .flat_map(|topology| orders().map(|order| format!("{}:{order}", topology.name)));
        queued.chain(self.schedulers().map(|scheduler| scheduler.name.to_string())).collect()
    }

    /// All policies with default options.
    pub fn all(&self) -> Vec<PolicySpec> {
        self.names().iter().filter_map(|name| self.parse(name).ok()).collect()
    }

    fn find(&self, name: &str) -> Option<&Descriptor> {
        self.descriptors.iter().find(|descriptor| descriptor.name == name)
    }

    /// Reads a policy's name and options, as in `take:multilist2?quantum=1ms&levels=4`.
    ///
    /// # Errors
    /// If there is no such policy or option, or an option cannot have that value.
    pub fn parse(&self, text: &str) -> Result<PolicySpec, PolicyError> {
        let (name, options) = split_options(text);
        if let Some((front, back)) = name.split_once('/') {
            return Err(PolicyError::Slash {
                wrong: text.to_string(),
                right: format!("{front}?{}", back.replace('/', "&")),
            });
        }
        let (descriptor, order) =
            self.resolve(name).ok_or_else(|| PolicyError::UnknownName(name.to_string()))?;
        let mut spec = PolicySpec {
            text: name.to_string(),
            descriptor,
            order,
            set: Vec::new(),
            values: descriptor.presets(),
        };
        for (option, value) in options {
            spec.set(option, value)?;
        }
        spec.check()
    }

    fn resolve(&self, name: &str) -> Option<(Descriptor, Option<&'static Entry>)> {
        let (front, order) =
            name.split_once(':').map_or((name, None), |(front, order)| (front, Some(order)));
        let descriptor = *self.find(front)?;
        let order = match (descriptor.is_topology(), order) {
            (true, Some(order)) => Some(catalog::entry(order)?),
            (false, None) => None,
            _ => return None,
        };
        Some((descriptor, order))
    }
}

/// Names with another meaning on the command line.
const RESERVED: [&str; 4] = ["all", "bpf", "canary", "kernel"];

/// A policy by name, with its options.
///
/// ```
/// use schedsim::policy::PolicySpec;
///
/// assert!(PolicySpec::parse("take:multilist2?quantum=1ms").is_ok());
/// let error = PolicySpec::parse("take:cfs").unwrap_err();
/// assert_eq!(error.to_string(), "there is no policy named \"take:cfs\"");
/// ```
#[derive(Clone, Debug)]
pub struct PolicySpec {
    text: String,
    descriptor: Descriptor,
    order: Option<&'static Entry>,
    /// The options that were given explicitly.
    set: Vec<&'static str>,
    values: Values,
}

/// Two specs are equal if they are written the same.
impl PartialEq for PolicySpec {
    fn eq(&self, other: &PolicySpec) -> bool {
        self.text == other.text
    }
}

impl PolicySpec {
    /// The policy of this name among those of this crate; see [`Catalog::parse`].
    ///
    /// # Errors
    /// As of [`Catalog::parse`].
    pub fn parse(text: &str) -> Result<PolicySpec, PolicyError> {
        Catalog::built_in().parse(text)
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Whether this option was given explicitly.
    pub fn sets(&self, option: &str) -> bool {
        self.set.contains(&option)
    }

    /// The value of a duration option, given or by default; `None` if there is no such option.
    pub fn duration(&self, option: &str) -> Option<Nanos> {
        self.descriptor.option(option)?;
        self.given(1).duration_if_set(option)
    }

    /// This policy with another option set.
    ///
    /// # Errors
    /// If there is no such option, it is set already, or it cannot have that value.
    pub fn with(&self, option: &str, value: &str) -> Result<PolicySpec, PolicyError> {
        let mut spec = self.clone();
        spec.set(option, Some(value))?;
        spec.check()
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), PolicyError> {
        let policy = || self.descriptor.name.to_string();
        let Some(option) = self.descriptor.option(name) else {
            if let Some(renamed) =
                self.descriptor.options.iter().find(|option| option.former == Some(name))
            {
                return Err(PolicyError::Renamed {
                    policy: policy(),
                    option: name.to_string(),
                    now: renamed.name,
                });
            }
            let known =
                self.descriptor.options.iter().map(|option| option.name.to_string()).collect();
            return Err(PolicyError::UnknownOption {
                policy: policy(),
                option: name.to_string(),
                known,
            });
        };
        if self.sets(option.name) {
            return Err(PolicyError::Twice { policy: policy(), option: name.to_string() });
        }
        let text = value.unwrap_or_default();
        let wrong = |expected| PolicyError::BadValue {
            policy: policy(),
            option: name.to_string(),
            value: text.to_string(),
            expected,
        };
        self.values.set(option.name, option.parse(text).map_err(wrong)?);
        self.text += &format!("{}{name}={text}", if self.set.is_empty() { '?' } else { '&' });
        self.set.push(option.name);
        Ok(())
    }

    /// Checks that the options fit each other.
    fn check(self) -> Result<PolicySpec, PolicyError> {
        let policy = self.descriptor.name.to_string();
        let wrong = |(option, value, expected): (&str, _, _)| PolicyError::BadValue {
            policy,
            option: option.to_string(),
            value,
            expected,
        };
        self.descriptor.scheduler.check(&self.given(1)).map_err(wrong)?;
        Ok(self)
    }

    fn given(&self, cpus: u16) -> Given<'_> {
        Given { cpus, order: self.order, values: &self.values }
    }

    /// Builds the policy for a machine of `cpus` CPUs, for drivers other than the engine.
    pub fn policy(&self, cpus: u16) -> AnyPolicy {
        self.descriptor.scheduler.policy(&self.given(cpus))
    }

    /// The policy's promises on `cpus` CPUs.
    pub fn promises(&self, cpus: u16) -> Promises {
        super::Policy::promises(&self.policy(cpus))
    }

    /// The policy's needs.
    pub fn needs(&self) -> Needs {
        super::Policy::needs(&self.policy(1))
    }

    /// Whether a task may run on several CPUs in its life.
    pub fn migrates(&self, cpus: u16) -> bool {
        super::Policy::migrates(&self.policy(cpus))
    }

    /// The structure of [`readyq::catalog`] that holds its ready tasks, or the most similar one;
    /// `None` if there is none.
    pub fn structure(&self) -> Option<&'static str> {
        self.order.map(|order| order.name).or(self.descriptor.structure)
    }

    /// Implements [`engine::simulate_named`](crate::engine::simulate_named).
    pub(crate) fn simulate(
        &self,
        source: Source,
        machine: &Machine,
        options: Options,
        trace: Trace,
    ) -> Result<Outcome, Error> {
        self.descriptor.scheduler.simulate(
            &self.given(machine.cpus),
            source,
            machine,
            options,
            trace,
        )
    }

    /// Implements [`engine::simulate_open`](crate::engine::simulate_open).
    pub(crate) fn simulate_open(
        &self,
        model: &Model,
        machine: &Machine,
        options: Options,
        open: &mut OpenSystem,
    ) -> Result<Outcome, Error> {
        self.descriptor.scheduler.simulate_open(
            &self.given(machine.cpus),
            model,
            machine,
            options,
            open,
        )
    }
}

/// The name as it was written.
impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Why a name is no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// No such topology, order or scheduler.
    UnknownName(String),
    /// Options after slashes, the former syntax.
    Slash {
        /// What was written.
        wrong: String,
        /// How it is written.
        right: String,
    },
    /// The policy has no such option.
    UnknownOption {
        /// The policy, without its order.
        policy: String,
        /// The option.
        option: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// An option under its former name.
    Renamed {
        /// The policy, without its order.
        policy: String,
        /// The option.
        option: String,
        /// Its present name.
        now: &'static str,
    },
    /// An option is given twice.
    Twice {
        /// The policy, without its order.
        policy: String,
        /// The option.
        option: String,
    },
    /// An option with a value that it cannot take.
    BadValue {
        /// The policy, without its order.
        policy: String,
        /// The option.
        option: String,
        /// The value given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::UnknownName(name) => write!(f, "there is no policy named {name:?}"),
            PolicyError::Slash { wrong, right } => {
                write!(f, "options stand behind a question mark: write `{right}`, not `{wrong}`")
            }
            PolicyError::UnknownOption { policy, option, known } if known.is_empty() => {
                write!(f, "the policy {policy} takes no options, so not {option:?}")
            }
            PolicyError::UnknownOption { policy, option, known } => {
                write!(f, "the policy {policy} has no option {option:?}: give {}", known.join(", "))
            }
            PolicyError::Renamed { policy, option, now } => {
                write!(f, "the option {option} of {policy} is called {now} now: give {now}")
            }
            PolicyError::Twice { policy, option } => {
                write!(f, "the option {option} of {policy} is given twice: give it once")
            }
            PolicyError::BadValue { policy, option, value, expected } => {
                write!(f, "the option {option} of {policy} cannot be {value:?}: give {expected}")
            }
        }
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests;
