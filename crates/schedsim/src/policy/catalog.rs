//! From a policy's name to the policy: the one place where names are resolved.

use super::{Central, Eevdf, EevdfOptions, Initial, Levels, Policy, Take, central, initial, take};
use crate::Nanos;
use readyq::{MultiList2, Priority, ReadyQueue, RoundRobin, Ruler};
use std::fmt;

/// Receives the policy that a name stands for.
pub trait PolicyVisitor {
    /// What comes of it.
    type Out;
    /// Called with the policy.
    fn visit<P: Policy>(self, policy: P) -> Self::Out;
}

/// A policy by name: `topology:order` or a whole scheduler, with `/option=value` behind it as often as needed.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicySpec {
    text: String,
    kind: Kind,
    quantum: Nanos,
    levels: Option<u16>,
    search: usize,
    polling: bool,
    preempt: Option<bool>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Queued { topology: Topology, order: Order },
    Eevdf,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Topology {
    Central,
    Initial,
    Take,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Order {
    Rr,
    Priority,
    MultiList2,
    Ruler,
}

const TOPOLOGIES: [(&str, Topology, &str); 3] = [
    ("central", Topology::Central, "one ready queue for all CPUs (Curran & Stumm's CQ)"),
    (
        "initial",
        Topology::Initial,
        "a queue per CPU; a task stays where it is first placed (IP)",
    ),
    ("take", Topology::Take, "a queue per CPU; an idle CPU takes from the longest (TK)"),
];

const ORDERS: [(&str, Order, &str); 4] = [
    ("rr", Order::Rr, "round robin: first in, first out, whatever the priority"),
    ("priority", Order::Priority, "strict priorities, first in first out within each"),
    ("multilist2", Order::MultiList2, "eight levels, each served half as often as the one above (Porter 2021)"),
    ("ruler", Order::Ruler, "the order of multilist2 without its table, up to 64 levels"),
];

/// Schedulers with an order and a topology of their own.
const WHOLE: [(&str, Kind, &str); 1] = [(
    "eevdf",
    Kind::Eevdf,
    "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, load balancing",
)];

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
        expected: &'static str,
    },
}

/// The names of all policies, with a line about each.
pub fn policies() -> Vec<(String, String)> {
    let queued = |(topology, _, where_)| {
        ORDERS
            .iter()
            .map(move |(order, _, what)| (format!("{topology}:{order}"), format!("{what}; {where_}")))
    };
    let whole = WHOLE.iter().map(|(name, _, what)| (name.to_string(), what.to_string()));
    TOPOLOGIES.iter().copied().flat_map(queued).chain(whole).collect()
}

/// The options that may follow a name, with a line about each.
pub const OPTIONS: [(&str, &str); 5] = [
    ("quantum", "how long a task runs before it goes back to its queue (default 4ms)"),
    (
        "levels",
        "how many priority levels nice values are spread over (default: what the order is made for)",
    ),
    (
        "preempt",
        "yes or no: whether a woken task stops a running one of a worse level (default: yes for `priority`, else no)",
    ),
    (
        "search",
        "central: how many tasks a CPU looks at for one that last ran there, or `all` (default 1)",
    ),
    (
        "idle",
        "take: `polling` looks for work all the time, `once` when it becomes idle (default polling)",
    ),
];

impl PolicySpec {
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
            search: 1,
            polling: true,
            preempt: None,
        };
        for part in parts {
            let (option, value) = part.split_once('=').ok_or_else(|| PolicyError::UnknownOption(part.to_string()))?;
            let accepted = match option {
                "quantum" => value
                    .parse()
                    .ok()
                    .filter(|&quantum| quantum > Nanos::ZERO)
                    .map(|quantum| spec.quantum = quantum)
                    .ok_or("a duration above zero"),
                "levels" => value
                    .parse()
                    .ok()
                    .filter(|&levels| (1..=140).contains(&levels))
                    .map(|levels| spec.levels = Some(levels))
                    .ok_or("1 to 140"),
                "preempt" => parse_choice(value, "yes", "no")
                    .map(|preempt| spec.preempt = Some(preempt))
                    .ok_or("yes or no"),
                "search" if value == "all" => {
                    spec.search = usize::MAX;
                    Ok(())
                }
                "search" => value
                    .parse()
                    .ok()
                    .filter(|&search| search > 0)
                    .map(|search| spec.search = search)
                    .ok_or("a number above zero, or all"),
                "idle" => parse_choice(value, "polling", "once")
                    .map(|polling| spec.polling = polling)
                    .ok_or("polling or once"),
                _ => return Err(PolicyError::UnknownOption(option.to_string())),
            };
            accepted.map_err(|expected| PolicyError::BadValue {
                option: option.to_string(),
                value: value.to_string(),
                expected,
            })?;
        }
        Ok(spec)
    }

    /// Builds the policy for a machine of `cpus` CPUs and hands it to `visitor`.
    pub fn visit<V: PolicyVisitor>(&self, cpus: u16, visitor: V) -> V::Out {
        let (topology, order) = match self.kind {
            Kind::Queued { topology, order } => (topology, order),
            Kind::Eevdf => return visitor.visit(Eevdf::new(cpus, EevdfOptions::default())),
        };
        match order {
            Order::Rr => self.queued(topology, RoundRobin::new(), 1, false, cpus, visitor),
            Order::Priority => self.queued(topology, Priority::new(), 140, true, cpus, visitor),
            Order::MultiList2 => self.queued(topology, MultiList2::new(), 8, false, cpus, visitor),
            Order::Ruler => self.queued(topology, Ruler::new(), 8, false, cpus, visitor),
        }
    }

    fn queued<Q: ReadyQueue + Clone, V: PolicyVisitor>(
        &self,
        topology: Topology,
        queue: Q,
        levels: u16,
        preempt: bool,
        cpus: u16,
        visitor: V,
    ) -> V::Out {
        let (quantum, levels, preempt) = (
            self.quantum,
            Levels::new(self.levels.unwrap_or(levels)),
            self.preempt.unwrap_or(preempt),
        );
        match topology {
            Topology::Central => visitor.visit(Central::new(
                queue,
                central::Options {
                    quantum,
                    levels,
                    search: self.search,
                    preempt,
                },
            )),
            Topology::Initial => visitor.visit(Initial::new(queue, cpus, initial::Options { quantum, levels, preempt })),
            Topology::Take => visitor.visit(Take::new(
                queue,
                cpus,
                take::Options {
                    quantum,
                    levels,
                    polling: self.polling,
                    preempt,
                },
            )),
        }
    }
}

impl Kind {
    fn parse(name: &str) -> Result<Kind, PolicyError> {
        let find = || {
            if let Some(&(_, kind, _)) = WHOLE.iter().find(|(whole, ..)| *whole == name) {
                return Some(kind);
            }
            let (topology, order) = name.split_once(':')?;
            let &(_, topology, _) = TOPOLOGIES.iter().find(|(name, ..)| *name == topology)?;
            let &(_, order, _) = ORDERS.iter().find(|(name, ..)| *name == order)?;
            Some(Kind::Queued { topology, order })
        };
        find().ok_or_else(|| PolicyError::UnknownName(name.to_string()))
    }
}

fn parse_choice(value: &str, yes: &str, no: &str) -> Option<bool> {
    if value == yes { Some(true) } else { (value == no).then_some(false) }
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
