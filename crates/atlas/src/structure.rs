//! The structures of the atlas, by name: readyq's catalog, the in-place pair, Porter's older
//! baseline, and peers from published crates.

use super::idle::{Order, TreeWithIdle};
use super::peers::{BTree, Deque, Heap, IntrusiveList, IntrusiveTree, PeerQueue};
use super::subject::{InPlace, Queue, Subject};
use readyq::{ReadyQueue, RoundRobinInPlace, RulerInPlace, Steps, Strides, catalog};
use results::Metric;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A measurable ready queue.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its name.
    pub name: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The service that tasks get.
    pub service: Service,
    /// What its operations examine.
    pub examined: Examined,
}

/// The service for the tasks of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Equal service for all tasks.
    Alike,
    /// Rates inversely proportional to any stride.
    AnyRates,
    /// Half the rate of the level before.
    HalvingRates,
    /// Roughly more for better levels.
    RoughRates,
    /// No service while a better level waits.
    Strict,
}

/// What an operation examines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Examined {
    /// A few fixed words, independent of the load.
    Nothing,
    /// List elements.
    ListElements,
    /// Entries of a schedule.
    ScheduleEntries,
    /// Levels of a tree or heap.
    TreeLevels,
    /// Unknown: not schedlab's code.
    Unknown,
}

impl Examined {
    /// The metric for the count.
    pub fn metric(self) -> Option<Metric> {
        match self {
            Examined::ListElements => Some(Metric::elements_walked_per_op),
            Examined::ScheduleEntries => Some(Metric::entries_examined_per_op),
            Examined::TreeLevels => Some(Metric::tree_levels_per_op),
            Examined::Nothing | Examined::Unknown => None,
        }
    }
}

/// How a level becomes a rate, in structures that allow several rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrideRule {
    /// Level l runs at 1/(l + 1) of the rate of level 0 (Porter's tables 3 to 18).
    #[default]
    Linear,
    /// Level l runs at 1/2^l of the rate of level 0 (Porter's tables 19 to 23).
    Powers,
}

impl StrideRule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            StrideRule::Linear => "linear",
            StrideRule::Powers => "powers",
        }
    }

    /// The virtual time between two slices of a task at `level`.
    pub fn stride(self, level: u16) -> u64 {
        Strides::from(self).of(readyq::Level(level))
    }

    /// The virtual time after which the order repeats; for linear strides of many levels, a large
    /// part of it.
    pub fn period(self, levels: u16) -> u64 {
        match self {
            StrideRule::Powers => 1 << (levels - 1).min(40),
            StrideRule::Linear if levels <= 10 => {
                (1..=u64::from(levels)).fold(1, |lcm, k| lcm / greatest_common_divisor(lcm, k) * k)
            }
            StrideRule::Linear => 20 * u64::from(levels),
        }
    }
}

impl From<StrideRule> for Strides {
    fn from(rule: StrideRule) -> Strides {
        match rule {
            StrideRule::Linear => Strides::Linear,
            StrideRule::Powers => Strides::PowersOfTwo,
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Receives a structure of any type.
pub trait Visitor {
    /// The result.
    type Out;

    /// Receives the empty structure.
    fn visit<S: Subject>(self, subject: S) -> Self::Out;
}

/// The parameters of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of tasks.
    pub tasks: u32,
    /// The number of levels.
    pub levels: u16,
    /// The rates of the levels.
    pub strides: Strides,
    /// Whether steps are counted.
    pub counting: bool,
}

use Examined::{ListElements, Nothing, ScheduleEntries, TreeLevels, Unknown};
use Service::{Alike, AnyRates, HalvingRates, RoughRates, Strict};

/// The structures besides readyq's catalog.
const OTHERS: [Structure; 9] = [
    other("rr-in-place", Alike, Nothing, "rr whose running task stays linked"),
    other("ruler-in-place", HalvingRates, Nothing, "ruler whose running task stays linked"),
    other("rr-rbtree+idle", Alike, TreeLevels, "rr-rbtree with an idle task in the tree"),
    other("rbtree+idle", AnyRates, TreeLevels, "rbtree with an idle task in the tree"),
    other("peer:vecdeque", Alike, Unknown, "std VecDeque"),
    other("peer:intrusive-list", Alike, Unknown, "intrusive-collections LinkedList"),
    other("peer:binaryheap", AnyRates, Unknown, "std BinaryHeap by virtual time"),
    other("peer:btreemap", AnyRates, Unknown, "std BTreeMap by virtual time"),
    other(
        "peer:intrusive-rbtree",
        AnyRates,
        Unknown,
        "intrusive-collections RBTree by virtual time",
    ),
];

const fn other(
    name: &'static str,
    service: Service,
    examined: Examined,
    what: &'static str,
) -> Structure {
    Structure { name, what, service, examined }
}

/// All structures, in the order of tables.
pub static STRUCTURES: LazyLock<Vec<Structure>> = LazyLock::new(|| {
    let ours = catalog::ENTRIES.iter().map(|entry| {
        let service = match entry.name {
            "priority" => Strict,
            "pslist" => RoughRates,
            "multilist1" | "multilist2" | "ruler" => HalvingRates,
            _ if entry.uses_strides => AnyRates,
            _ => Alike,
        };
        let examined = match entry.steps {
            Some("list elements") => ListElements,
            Some("schedule entries") => ScheduleEntries,
            Some(_) => TreeLevels,
            None => Nothing,
        };
        Structure { name: entry.name, what: entry.summary, service, examined }
    });
    ours.chain(OTHERS).collect()
});

/// The structure with this name.
pub fn find(name: &str) -> Option<&'static Structure> {
    STRUCTURES.iter().find(|structure| structure.name == name)
}

impl Structure {
    /// Whether readyq's catalog has it, so that a scheduler with the usual four operations can use
    /// it.
    pub fn is_ours(&self) -> bool {
        catalog::entry(self.name).is_some()
    }

    /// The rates under `asked`; a structure without a choice keeps its own.
    pub fn rates(&self, asked: StrideRule) -> &'static str {
        match self.service {
            Alike | Strict => "none",
            HalvingRates => StrideRule::Powers.name(),
            AnyRates | RoughRates => asked.name(),
        }
    }

    /// Builds it and passes it to `visitor`; an error if it does not have that many levels.
    pub fn build<V: Visitor>(&self, setup: Setup, visitor: V) -> Result<V::Out, String> {
        let Setup { tasks, levels, strides, counting } = setup;
        if self.is_ours() {
            let visit = if counting { catalog::visit_counting } else { catalog::visit };
            let most = catalog::entry(self.name).map_or(0, |entry| entry.levels(strides));
            return visit(self.name, u32::from(levels), strides, OfCatalog(visitor)).map_err(
                |_| {
                    format!(
                        "{} has {most} levels with these strides, not {levels}; try --levels \
                         {most}",
                        self.name
                    )
                },
            );
        }
        Ok(match (self.name, counting) {
            ("rr-in-place", _) => visitor.visit(InPlace(RoundRobinInPlace::new())),
            ("ruler-in-place", _) if levels > 64 => {
                return Err(format!("ruler-in-place has 64 levels, not {levels}; try --levels 64"));
            }
            ("ruler-in-place", _) => visitor.visit(InPlace(RulerInPlace::new())),
            ("rr-rbtree+idle", false) => {
                visitor.visit(Queue(TreeWithIdle::new(tasks, Order::Arrival, ())))
            }
            ("rr-rbtree+idle", true) => {
                visitor.visit(Queue(TreeWithIdle::new(tasks, Order::Arrival, Steps::default())))
            }
            ("rbtree+idle", false) => {
                visitor.visit(Queue(TreeWithIdle::new(tasks, Order::Clock(strides), ())))
            }
            ("rbtree+idle", true) => visitor.visit(Queue(TreeWithIdle::new(
                tasks,
                Order::Clock(strides),
                Steps::default(),
            ))),
            ("peer:vecdeque", _) => visitor.visit(PeerQueue(Deque::default())),
            ("peer:intrusive-list", _) => visitor.visit(PeerQueue(IntrusiveList::new(tasks))),
            ("peer:binaryheap", _) => visitor.visit(PeerQueue(Heap::new(tasks, strides))),
            ("peer:btreemap", _) => visitor.visit(PeerQueue(BTree::new(tasks, strides))),
            ("peer:intrusive-rbtree", _) => {
                visitor.visit(PeerQueue(IntrusiveTree::new(tasks, strides)))
            }
            (name, _) => return Err(format!("there is no structure `{name}`")),
        })
    }
}

/// Adapts our visitor to readyq's.
struct OfCatalog<V>(V);

impl<V: Visitor> catalog::Visitor for OfCatalog<V> {
    type Out = V::Out;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> V::Out {
        self.0.visit(Queue(queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_of_linear_strides_is_their_least_common_multiple() {
        assert_eq!([5, 10].map(|levels| StrideRule::Linear.period(levels)), [60, 2520]);
        assert_eq!(StrideRule::Powers.period(8), 128);
    }

    #[test]
    fn every_structure_can_be_built_and_has_a_unique_name() {
        struct Name;
        impl Visitor for Name {
            type Out = &'static str;
            fn visit<S: Subject>(self, _subject: S) -> &'static str {
                std::any::type_name::<S>()
            }
        }
        for structure in STRUCTURES.iter() {
            for counting in [false, true] {
                let setup = Setup { tasks: 3, levels: 8, strides: Strides::Linear, counting };
                assert!(structure.build(setup, Name).is_ok(), "{}", structure.name);
            }
        }
    }

    #[test]
    fn names_are_unique() {
        for (index, structure) in STRUCTURES.iter().enumerate() {
            assert!(std::ptr::eq(find(structure.name).unwrap(), &STRUCTURES[index]));
        }
    }
}
