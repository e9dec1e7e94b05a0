//! Topologies: policies over any ready queue. The three are `central`, `initial` and `take`; their
//! descriptors are at the ends of their files.
//!
//! The two most used orders have engines of their own; all others use [`AnyQueue`].

use super::any_queue::AnyQueue;
use super::descriptor::{Given, Run, Scheduler};
use super::loads::Ties;
use super::options::OptionSpec;
use super::{AnyPolicy, Levels, Policy};
use crate::engine::{Error, Options as Settings, Outcome, Source};
use crate::metrics::OpenSystem;
use crate::trace::{Direct, Trace};
use crate::workload::Model;
use crate::{Machine, Nanos};
use readyq::catalog::Entry;
use readyq::{Priority, ReadyQueue, RoundRobin, Strides};
use std::marker::PhantomData;

/// How far a CPU searches the central queue for a task that last ran there (§4.2, §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// The first n tasks; 1 takes the head.
    First(usize),
    /// All tasks of the best non-empty level. With few `levels`, several priorities share one: the
    /// paper's groups.
    TopLevel,
}

/// Which task an idle CPU takes from the queue of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taken {
    /// The one that would run next.
    #[default]
    Head,
    /// The one that would run last.
    Tail,
}

/// Which tasks count as ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ready {
    /// Those that wait and the one that runs.
    #[default]
    Running,
    /// Those that wait.
    Waiting,
}

/// The load of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measure {
    /// The number of its tasks.
    #[default]
    Tasks,
    /// The CPU time that its tasks use.
    Utilisation,
}

/// Which tasks count when CPUs are compared for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Count {
    /// All.
    #[default]
    All,
    /// Those of an equal or better level, as in §5.3.
    Level,
}

/// The options of every topology.
pub(super) const QUANTUM: OptionSpec =
    OptionSpec::duration("quantum", "how long a task runs before it goes back to its queue")
        .up_to(Nanos::from_millis(1_000_000))
        .by_default("4ms");
pub(super) const LEVELS: OptionSpec = OptionSpec::count(
    "levels",
    1,
    140,
    "levels",
    "over how many levels nice values are spread; some orders have fewer",
)
.unset("8; 140 for priority, 10 for multilist1");
pub(super) const STRIDES: OptionSpec = OptionSpec::choice(
    "strides",
    &["powers", "linear"],
    "virtual clocks: level k runs 1/2^k as often (powers) or 1/(k+1) as often (linear)",
)
.by_default("powers");
pub(super) const PREEMPT: OptionSpec =
    OptionSpec::flag("preempt", "whether a woken task stops a running one of a worse level")
        .unset("yes for priority, else no");
/// The options of topologies that compare CPUs for a new task.
pub(super) const COUNT: OptionSpec = OptionSpec::choice(
    "count",
    &["all", "level"],
    "which tasks count when CPUs are compared for a new one: all, or those of an equal or better \
     level",
)
.unset("level for priority, else all");
pub(super) const TIES: OptionSpec =
    OptionSpec::choice("ties", &["random", "lowest"], "which of several equal CPUs is taken")
        .by_default("random");

impl Given<'_> {
    /// The order in the policy's name.
    ///
    /// # Panics
    /// If the policy is no topology.
    fn order(&self) -> &'static Entry {
        self.order.expect("a topology has an order")
    }

    fn is_priority(&self) -> bool {
        self.order().name == "priority"
    }

    fn strides(&self) -> Strides {
        if self.word(STRIDES.name) == Some("linear") {
            Strides::Linear
        } else {
            Strides::PowersOfTwo
        }
    }

    fn level_count(&self) -> u16 {
        self.count_if_set(LEVELS.name).unwrap_or(match self.order().name {
            "rr" | "rr-rbtree" => 1,
            "priority" => 140,
            "multilist1" => 10,
            _ => 8,
        })
    }

    pub(super) fn levels(&self) -> Levels {
        Levels::new(self.level_count())
    }

    pub(super) fn preempts(&self) -> bool {
        self.flag_if_set(PREEMPT.name).unwrap_or(self.is_priority())
    }

    pub(super) fn counted(&self) -> Count {
        match self.word(COUNT.name) {
            Some("level") => Count::Level,
            Some(_) => Count::All,
            None if self.is_priority() => Count::Level,
            None => Count::All,
        }
    }

    pub(super) fn ties(&self) -> Ties {
        if self.word(TIES.name) == Some("lowest") { Ties::Lowest } else { Ties::Random }
    }
}

/// Builds a policy for each order.
pub(super) trait Topology: Send + Sync {
    type Over<Q: ReadyQueue + Clone + 'static>: Policy + Clone + 'static;

    fn over<Q: ReadyQueue + Clone + 'static>(queue: Q, given: &Given) -> Self::Over<Q>;
}

/// The [`Scheduler`] of a topology.
pub(super) struct Orders<T>(pub PhantomData<T>);

/// Generic code to run with a policy of any type.
trait Job {
    type Out;
    fn of(self, policy: impl Policy + Clone + 'static) -> Self::Out;
}

impl<T: Topology> Orders<T> {
    /// Builds the policy with the queue in its name.
    fn make<J: Job>(given: &Given, job: J) -> J::Out {
        match given.order().name {
            "rr" => job.of(T::over(RoundRobin::new(), given)),
            "priority" => job.of(T::over(Priority::new(), given)),
            name => match AnyQueue::new(name, u32::from(given.level_count()), given.strides()) {
                Ok(queue) => job.of(T::over(queue, given)),
                Err(unavailable) => {
                    unreachable!("`check` has found that {name} can be made: {unavailable}")
                }
            },
        }
    }
}

impl<T: Topology> Scheduler for Orders<T> {
    fn policy(&self, given: &Given) -> AnyPolicy {
        struct Box;
        impl Job for Box {
            type Out = AnyPolicy;
            fn of(self, policy: impl Policy + Clone + 'static) -> AnyPolicy {
                AnyPolicy::new(policy)
            }
        }
        Self::make(given, Box)
    }

    fn simulate(
        &self,
        given: &Given,
        source: Source,
        machine: &Machine,
        options: Settings,
        trace: Trace,
    ) -> Result<Outcome, Error> {
        Self::make(given, Run { source, machine, options, sink: trace })
    }

    fn simulate_open(
        &self,
        given: &Given,
        model: &Model,
        machine: &Machine,
        options: Settings,
        open: &mut OpenSystem,
    ) -> Result<Outcome, Error> {
        Self::make(given, Run { source: model.into(), machine, options, sink: Direct(open) })
    }

    fn check(&self, given: &Given) -> Result<(), (&'static str, String, String)> {
        let (order, count) = (given.order(), given.level_count());
        let most = order.levels(given.strides());
        if u32::from(count) <= most {
            return Ok(());
        }
        Err((
            LEVELS.name,
            count.to_string(),
            format!("at most {most} for {} with these strides", order.name),
        ))
    }

    fn is_topology(&self) -> bool {
        true
    }
}

impl<S: crate::trace::Sink> Job for Run<'_, '_, S> {
    type Out = Result<Outcome, Error>;
    fn of(self, policy: impl Policy + Clone + 'static) -> Self::Out {
        self.under(policy)
    }
}
