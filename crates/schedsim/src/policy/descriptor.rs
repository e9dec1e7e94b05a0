//! A policy's description: its name, options and source, and how to build it.
//!
//! A policy's file ends in one [`Descriptor`], which is all that the rest of the program uses. It
//! may be in any crate:
//!
//! ```
//! use schedsim::policy::{Catalog, Descriptor, Make, OptionSpec, Rr, RrOptions};
//!
//! pub static BRISK: Descriptor = Descriptor {
//!     name: "brisk",
//!     summary: "round robin with short quanta",
//!     source: "an example",
//!     options: &[OptionSpec::duration("quantum", "how long a task runs before its equals")
//!         .by_default("1ms")],
//!     structure: Some("priority"),
//!     scheduler: &Make(|given| {
//!         let options = RrOptions { quantum: given.duration("quantum"), throttle: None };
//!         Rr::new(given.cpus(), options)
//!     }),
//! };
//!
//! let catalog = Catalog::built_in().with(&[BRISK]).unwrap();
//! assert!(catalog.parse("brisk?quantum=2ms").is_ok());
//! assert!(catalog.parse("brisk?quantum=2").is_err());
//! ```

use super::options::{OptionSpec, Preset, Value};
use super::{AnyPolicy, Policy};
use crate::engine::{Error, Options, Outcome, Source, simulate};
use crate::metrics::OpenSystem;
use crate::trace::{Direct, Sink, Trace};
use crate::workload::Model;
use crate::{Machine, Nanos};
use readyq::catalog::Entry;
use std::fmt;

/// The description of a policy.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Its name: small letters, digits and hyphens or underscores.
    pub name: &'static str,
    /// Its behaviour, in one sentence.
    pub summary: &'static str,
    /// Its source: a paper and section, or a kernel version and file.
    pub source: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// The structure of [`readyq::catalog`] whose costs equal those of its ready queue, for
    /// `--mips`. `None` if there is none, or if the policy's name contains the order.
    pub structure: Option<&'static str>,
    /// Builds and runs the policy: usually a [`Make`].
    pub scheduler: &'static dyn Scheduler,
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Descriptor").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Descriptor {
    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Whether the name of an order follows its name, as in `take:rr`.
    pub fn is_topology(&self) -> bool {
        self.scheduler.is_topology()
    }

    /// The policy with the defaults of its options, for drivers other than the engine; none if it
    /// is a topology.
    ///
    /// # Panics
    /// If a default is invalid for its option.
    pub fn policy(&self, cpus: u16) -> Option<AnyPolicy> {
        let values = self.presets();
        let given = Given { cpus, order: None, values: &values };
        (!self.is_topology()).then(|| self.scheduler.policy(&given))
    }

    /// The defaults of all options.
    ///
    /// # Panics
    /// If a default is invalid for its option.
    pub(super) fn presets(&self) -> Values {
        let preset = |option: &OptionSpec| match option.preset {
            Preset::Unset(_) => None,
            Preset::Value(text) => match option.parse(text) {
                Ok(value) => Some((option.name, value)),
                Err(expected) => panic!(
                    "{}: the default of {} is {text:?}, which is not {expected}",
                    self.name, option.name
                ),
            },
        };
        Values(self.options.iter().filter_map(preset).collect())
    }
}

/// The values of options.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    pub(super) fn set(&mut self, option: &'static str, value: Value) {
        self.0.retain(|(name, _)| *name != option);
        self.0.push((option, value));
    }
}

/// The input of a policy's constructor: the number of CPUs, and the options of its descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub(super) cpus: u16,
    pub(super) order: Option<&'static Entry>,
    pub(super) values: &'a Values,
}

impl Given<'_> {
    /// How many CPUs the machine has.
    pub fn cpus(&self) -> u16 {
        self.cpus
    }

    /// The value of an option, if it has one.
    fn value(&self, option: &str) -> Option<Value> {
        self.values.0.iter().find(|(name, _)| *name == option).map(|&(_, value)| value)
    }

    /// The value of an option that is a duration and has a default.
    ///
    /// # Panics
    /// If the descriptor lists no such option.
    pub fn duration(&self, option: &str) -> Nanos {
        self.duration_if_set(option)
            .unwrap_or_else(|| panic!("the descriptor lists no duration `{option}` with a default"))
    }

    /// The value of a duration option, if set.
    pub fn duration_if_set(&self, option: &str) -> Option<Nanos> {
        match self.value(option) {
            Some(Value::Duration(time)) => Some(time),
            _ => None,
        }
    }

    /// The value of an option that is a number and has a default.
    ///
    /// # Panics
    /// If the descriptor lists no such option, or one with a range beyond `T`'s.
    pub fn count<T: TryFrom<u64>>(&self, option: &str) -> T {
        self.count_if_set(option)
            .unwrap_or_else(|| panic!("the descriptor lists no number `{option}` with a default"))
    }

    /// The value of a number option, if set.
    ///
    /// # Panics
    /// If the descriptor gives it a range beyond `T`'s.
    pub fn count_if_set<T: TryFrom<u64>>(&self, option: &str) -> Option<T> {
        match self.value(option) {
            Some(Value::Count(count)) => Some(
                T::try_from(count)
                    .unwrap_or_else(|_| panic!("the range of `{option}` is larger than its type")),
            ),
            _ => None,
        }
    }

    /// The value of an option that is `yes` or `no` and has a default.
    ///
    /// # Panics
    /// If the descriptor lists no such option.
    pub fn flag(&self, option: &str) -> bool {
        self.flag_if_set(option)
            .unwrap_or_else(|| panic!("the descriptor lists no flag `{option}` with a default"))
    }

    /// The value of a `yes`/`no` option, if set.
    pub fn flag_if_set(&self, option: &str) -> Option<bool> {
        match self.value(option) {
            Some(Value::Flag(flag)) => Some(flag),
            _ => None,
        }
    }

    /// The value of a word option, if set.
    pub fn word(&self, option: &str) -> Option<&'static str> {
        match self.value(option) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }
}

/// Builds a policy and runs it. Behind this trait the engine is compiled for the policy's type, in
/// the crate of the descriptor and not in every crate that names one. That is most of this
/// workspace's build time.
pub trait Scheduler: Send + Sync {
    /// Builds the policy, for drivers other than the engine.
    fn policy(&self, given: &Given) -> AnyPolicy;

    /// Runs [`simulate`] under it.
    ///
    /// # Errors
    /// As [`simulate`].
    fn simulate(
        &self,
        given: &Given,
        source: Source,
        machine: &Machine,
        options: Options,
        trace: Trace,
    ) -> Result<Outcome, Error>;

    /// Runs a model that only `open` observes. It is a third faster, because the engine is compiled
    /// for this observer.
    ///
    /// # Errors
    /// As [`simulate`].
    fn simulate_open(
        &self,
        given: &Given,
        model: &Model,
        machine: &Machine,
        options: Options,
        open: &mut OpenSystem,
    ) -> Result<Outcome, Error>;

    /// Checks that the options fit each other. Otherwise returns the option that does not, its
    /// value, and what it accepts.
    fn check(&self, _given: &Given) -> Result<(), (&'static str, String, String)> {
        Ok(())
    }

    /// Whether the name of an order follows the policy's name.
    fn is_topology(&self) -> bool {
        false
    }
}

/// Builds a policy by a function.
pub struct Make<P>(pub fn(&Given) -> P);

impl<P: Policy + Clone + 'static> Scheduler for Make<P> {
    fn policy(&self, given: &Given) -> AnyPolicy {
        AnyPolicy::new(self.0(given))
    }

    fn simulate(
        &self,
        given: &Given,
        source: Source,
        machine: &Machine,
        options: Options,
        trace: Trace,
    ) -> Result<Outcome, Error> {
        Run { source, machine, options, sink: trace }.under(self.0(given))
    }

    fn simulate_open(
        &self,
        given: &Given,
        model: &Model,
        machine: &Machine,
        options: Options,
        open: &mut OpenSystem,
    ) -> Result<Outcome, Error> {
        Run { source: model.into(), machine, options, sink: Direct(open) }.under(self.0(given))
    }
}

/// A run without its policy.
pub(super) struct Run<'w, 'm, S> {
    pub source: Source<'w>,
    pub machine: &'m Machine,
    pub options: Options,
    pub sink: S,
}

impl<S: Sink> Run<'_, '_, S> {
    pub fn under(self, policy: impl Policy) -> Result<Outcome, Error> {
        simulate(self.source, self.machine, policy, self.options, self.sink)
    }
}
