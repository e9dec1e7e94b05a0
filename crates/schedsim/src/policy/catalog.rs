//! From a policy's name to the policy: the one place where names are resolved.

use super::any_queue::AnyQueue;
use super::topology::{Count, VARIANTS, Variants, choose};
use super::whole::{self, Whole};
use super::{Central, Initial, Levels, Needs, Policy, Promises, Take, central, initial, take};
use crate::Nanos;
use readyq::catalog::{self, Entry};
use readyq::{Priority, ReadyQueue, RoundRobin, Strides};
use std::fmt;

/// Receives the policy that a name stands for.
pub trait PolicyVisitor {
    /// What comes of it.
    type Out;
    /// Called with the policy.
    fn visit<P: Policy + Clone>(self, policy: P) -> Self::Out;
}

/// A policy by name: `topology:order` or a whole scheduler, with `/option=value` behind it as often as needed.
///
/// ```
/// use schedsim::policy::PolicySpec;
///
/// assert!(PolicySpec::parse("take:multilist2/quantum=1ms").is_ok());
/// assert_eq!(PolicySpec::parse("take:cfs").unwrap_err().to_string(), "there is no policy named \"take:cfs\"");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct PolicySpec {
    text: String,
    kind: Kind,
    quantum: Nanos,
    levels: Option<u16>,
    strides: Strides,
    variants: Variants,
    preempt: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Queued { topology: Topology, order: &'static Entry },
    Whole(Whole),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Topology {
    Central,
    Initial,
    Take,
}

const TOPOLOGIES: [(&str, Topology, &str); 3] = [
    ("central", Topology::Central, "one ready queue for all CPUs (Curran & Stumm's CQ)"),
    ("initial", Topology::Initial, "a ready queue per CPU; a task stays on the CPU where it is first placed (IP)"),
    ("take", Topology::Take, "a ready queue per CPU; an idle CPU takes a task from the longest (TK)"),
];

/// Why a name stands for no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyError {
    /// No such topology, order or scheduler.
    UnknownName(String),
    /// No such option.
    UnknownOption(String),
    /// An option with a value that it cannot take.
    BadValue {
        /// The option.
        option: String,
        /// The value given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

/// What there is to choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// The topologies: which queue, which CPU.
pub fn topologies() -> impl Iterator<Item = Choice> {
    TOPOLOGIES.iter().map(|&(name, _, summary)| Choice { name, summary })
}

/// The orders: which ready task next. Any of them goes with any topology.
pub fn orders() -> impl Iterator<Item = Choice> {
    catalog::ENTRIES.iter().map(|entry| Choice { name: entry.name, summary: entry.summary })
}

/// The whole schedulers.
pub fn schedulers() -> impl Iterator<Item = Choice> {
    whole::schedulers()
}

/// The names of all policies.
pub fn names() -> Vec<String> {
    let queued = topologies().flat_map(|topology| orders().map(move |order| format!("{}:{}", topology.name, order.name)));
    queued.chain(schedulers().map(|scheduler| scheduler.name.to_string())).collect()
}

/// The options that may follow a name; a whole scheduler refuses those that it does not know.
pub fn options() -> impl Iterator<Item = Choice> {
    OPTIONS.into_iter().chain(VARIANTS).chain(whole::OPTIONS)
}

const OPTIONS: [Choice; 4] = [
    Choice {
        name: "quantum",
        summary: "how long a task runs before it goes back to its queue (default 4ms; rr 100ms; stride and lottery 10ms; mlfq 31.25ms; mlfq-textbook 10ms; eevdf, cfs, o1, pslist: of real-time tasks, default endless)",
    },
    Choice {
        name: "levels",
        summary: "over how many levels nice values are spread, 1 to 140 (default 8; 140 for priority, 10 for multilist1; mlfq-textbook: how many there are, default 3)",
    },
    Choice { name: "strides", summary: "virtual clocks: level k runs 1/2^k as often (powers, the default) or 1/(k+1) as often (linear)" },
    Choice {
        name: "preempt",
        summary: "yes or no: whether a woken task stops a running one of a worse level, pslist: one that is ahead of it (default yes for priority, else no)",
    },
];

impl PolicySpec {
    /// What the policy guarantees on so many CPUs.
    pub fn promises(&self, cpus: u16) -> Promises {
        struct Ask;
        impl PolicyVisitor for Ask {
            type Out = Promises;
            fn visit<P: Policy>(self, policy: P) -> Promises {
                policy.promises()
            }
        }
        self.visit(cpus, Ask)
    }

    /// What the policy cannot do without.
    pub fn needs(&self) -> Needs {
        struct Ask;
        impl PolicyVisitor for Ask {
            type Out = Needs;
            fn visit<P: Policy>(self, policy: P) -> Needs {
                policy.needs()
            }
        }
        self.visit(1, Ask)
    }

    /// Whether a task may run on several CPUs in its life.
    pub fn migrates(&self, cpus: u16) -> bool {
        struct Ask;
        impl PolicyVisitor for Ask {
            type Out = bool;
            fn visit<P: Policy>(self, policy: P) -> bool {
                policy.migrates()
            }
        }
        self.visit(cpus, Ask)
    }

    /// Reads a policy's name and options, as in `take:multilist2/quantum=1ms`.
    ///
    /// # Errors
    /// If there is no such policy or option, or an option cannot have that value.
    pub fn parse(text: &str) -> Result<PolicySpec, PolicyError> {
        let mut parts = text.split('/');
        let kind = Kind::parse(parts.next().unwrap_or_default())?;
        let mut spec = PolicySpec {
            text: text.to_string(),
            kind,
            quantum: Nanos::from_millis(4),
            levels: None,
            strides: Strides::PowersOfTwo,
            variants: Variants::default(),
            preempt: None,
        };
        for part in parts {
            let (option, value) = part.split_once('=').ok_or_else(|| PolicyError::UnknownOption(part.to_string()))?;
            let expected = spec.set(option, value).ok_or_else(|| PolicyError::UnknownOption(option.to_string()))?;
            expected.map_err(|expected| PolicyError::BadValue { option: option.to_string(), value: value.to_string(), expected })?;
        }
        match spec.kind {
            Kind::Queued { order, .. } if u32::from(spec.level_count(order)) > order.levels(spec.strides) => Err(PolicyError::BadValue {
                option: "levels".to_string(),
                value: spec.level_count(order).to_string(),
                expected: format!("at most {} for {} with these strides", order.levels(spec.strides), order.name),
            }),
            _ => Ok(spec),
        }
    }

    /// Sets an option; `None` if there is no such option, an error that says what it takes if the value will not do.
    fn set(&mut self, option: &str, value: &str) -> Option<Result<(), String>> {
        if let Kind::Whole(whole) = &mut self.kind {
            return whole.set(option, value);
        }
        let expect = |done: Option<()>, what: &str| done.ok_or_else(|| what.to_string());
        Some(match option {
            "quantum" => {
                let quantum = value.parse().ok().filter(|&quantum| quantum > Nanos::ZERO);
                expect(quantum.map(|quantum| self.quantum = quantum), "a duration above zero, as in 1ms")
            }
            "levels" => {
                let levels = value.parse().ok().filter(|levels| (1..=140).contains(levels));
                expect(levels.map(|levels| self.levels = Some(levels)), "1 to 140")
            }
            "strides" => {
                let strides = choose(value, [("powers", Strides::PowersOfTwo), ("linear", Strides::Linear)]);
                expect(strides.map(|strides| self.strides = strides), "powers or linear")
            }
            "preempt" => expect(choose(value, [("yes", true), ("no", false)]).map(|preempt| self.preempt = Some(preempt)), "yes or no"),
            _ => return self.variants.set(option, value),
        })
    }

    /// The structure of [`readyq::catalog`] that keeps its ready tasks, or comes nearest to what does.
    pub fn structure(&self) -> &'static str {
        match self.kind {
            Kind::Queued { order, .. } => order.name,
            Kind::Whole(whole) => whole.structure(),
        }
    }

    fn level_count(&self, order: &Entry) -> u16 {
        self.levels.unwrap_or(match order.name {
            "rr" | "rr-rbtree" => 1,
            "priority" => 140,
            "multilist1" => 10,
            _ => 8,
        })
    }

    /// Builds the policy for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(&self, cpus: u16, visitor: V) -> V::Out {
        match self.kind {
            Kind::Whole(whole) => whole.visit(cpus, visitor),
            Kind::Queued { topology, order } => {
                let levels = self.level_count(order);
                let preempt = self.preempt.unwrap_or(order.name == "priority");
                let count = if order.name == "priority" { Count::Level } else { Count::All };
                let build = Build { spec: self, topology, cpus, levels: Levels::new(levels), preempt, count, visitor };
                match order.name {
                    "rr" => build.with(RoundRobin::new()),
                    "priority" => build.with(Priority::new()),
                    name => match AnyQueue::new(name, u32::from(levels), self.strides) {
                        Ok(queue) => build.with(queue),
                        Err(unavailable) => unreachable!("parse has checked that {name} exists: {unavailable}"),
                    },
                }
            }
        }
    }
}

/// A topology that waits for its order.
struct Build<'a, V> {
    spec: &'a PolicySpec,
    topology: Topology,
    cpus: u16,
    levels: Levels,
    preempt: bool,
    /// Whether worse levels count when CPUs are compared, unless an option says.
    count: Count,
    visitor: V,
}

impl<V: PolicyVisitor> Build<'_, V> {
    fn with<Q: ReadyQueue + Clone>(self, queue: Q) -> V::Out {
        let Build { spec, topology, cpus, levels, preempt, count: default_count, visitor } = self;
        let quantum = spec.quantum;
        let Variants { search, shortcut, polling, taken, ready, measure, heavy, count, ties, near } = spec.variants;
        let count = count.unwrap_or(default_count);
        match topology {
            Topology::Central => visitor.visit(Central::new(queue, central::Options { quantum, levels, search, shortcut, preempt })),
            Topology::Initial => {
                visitor.visit(Initial::new(queue, cpus, initial::Options { quantum, levels, preempt, measure, count, heavy, ties }))
            }
            Topology::Take => {
                visitor.visit(Take::new(queue, cpus, take::Options { quantum, levels, polling, preempt, taken, ready, count, ties, near }))
            }
        }
    }
}

impl Kind {
    fn parse(name: &str) -> Result<Kind, PolicyError> {
        let find = || {
            if let Some(whole) = Whole::named(name) {
                return Some(Kind::Whole(whole));
            }
            let (topology, order) = name.split_once(':')?;
            let &(_, topology, _) = TOPOLOGIES.iter().find(|(name, ..)| *name == topology)?;
            Some(Kind::Queued { topology, order: catalog::entry(order)? })
        };
        find().ok_or_else(|| PolicyError::UnknownName(name.to_string()))
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
            PolicyError::UnknownName(name) => write!(f, "there is no policy named {name:?}"),
            PolicyError::UnknownOption(option) => write!(f, "there is no policy option named {option:?}"),
            PolicyError::BadValue { option, value, expected } => {
                write!(f, "the policy option {option} cannot be {value:?}: give {expected}")
            }
        }
    }
}

impl std::error::Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_and_options_are_checked() {
        let all = names();
        assert_eq!(all.len(), 3 * catalog::ENTRIES.len() + schedulers().count());
        assert!(all.iter().all(|name| PolicySpec::parse(name).is_ok()), "{all:?}");
        let error = |text| PolicySpec::parse(text).unwrap_err().to_string();
        assert!(error("take").contains("no policy named"));
        assert!(error("take:rr/quantum").contains("no policy option"));
        assert!(error("take:rr/quantum=0ms").contains("a duration above zero"));
        assert!(error("take:multilist2/levels=9").contains("at most 8"), "{}", error("take:multilist2/levels=9"));
        for (bad, why) in [
            ("central:rr/search=0", "all, or top"),
            ("central:rr/shortcut=1", "yes or no"),
            ("take:rr/idle=never", "polling or once"),
            ("take:rr/taken=middle", "head or tail"),
            ("take:rr/ready=blocked", "running or waiting"),
            ("initial:rr/load=weight", "tasks or utilisation"),
            ("initial:rr/heavy=0", "1 to 1000"),
            ("initial:rr/count=none", "all or level"),
            ("take:rr/ties=first", "random or lowest"),
            ("take:rr/raid=far", "longest or near"),
        ] {
            assert!(error(bad).contains(why), "{}", error(bad));
        }
        assert!(error("eevdf/latency=1ms").contains("no policy option"));
        assert!(error("fifo/quantum=1ms").contains("no policy option"));
        assert!(error("fifo/quantum=x").contains("no policy option"));
        assert!(error("cfs/latency=0ms").contains("a duration above zero"));
        let names: Vec<&str> = options().map(|option| option.name).collect();
        assert!(names.iter().enumerate().all(|(index, name)| !names[..index].contains(name)), "{names:?}");
    }
}
