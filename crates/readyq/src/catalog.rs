//! The catalogue of all structures by name.
//!
//! [`visit`] creates the queue of a given name and passes it, with its own type, to a [`Visitor`].
//! That is generic code for the caller, and no dynamic dispatch in the operations.
//!
//! ```
//! use readyq::catalog::{self, Visitor};
//! use readyq::{Level, Node, Nodes, ReadyQueue, Strides, TaskId};
//!
//! struct Order;
//!
//! impl Visitor for Order {
//!     type Out = Vec<u32>;
//!
//!     fn visit<Q: ReadyQueue + Clone + 'static>(self, mut queue: Q) -> Vec<u32> {
//!         let mut slab = [Node::NEW; 2];
//!         let nodes = Nodes::from_mut(&mut slab);
//!         queue.insert(nodes, TaskId(0), Level(0));
//!         queue.insert(nodes, TaskId(1), Level(1));
//!         let slice = |_| {
//!             let task = queue.pop(nodes).unwrap();
//!             queue.insert(nodes, task, Level(task.0 as u16));
//!             task.0
//!         };
//!         (0..6).map(slice).collect()
//!     }
//! }
//!
//! assert_eq!(catalog::visit("ruler", 2, Strides::PowersOfTwo, Order), Ok(vec![0, 0, 1, 0, 0, 1]));
//! assert!(catalog::visit("rular", 2, Strides::PowersOfTwo, Order).is_err());
//! ```

use core::fmt;

use crate::{
    Heap, Key, MultiList1, MultiList2, Priority, Probe, PsList, RbTree, ReadyQueue, RoundRobin,
    RoundRobinTree, Ruler, RulerTable, SortedList, SortedListReverse, Steps, Strides, Wheel,
    WideWheel, schedules,
};

/// Facts about a structure that need no instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name for [`visit`].
    pub name: &'static str,
    /// One line on its order and its cost.
    pub summary: &'static str,
    /// Its source.
    pub source: &'static str,
    /// What [`ReadyQueue::steps`] counts, if its cost varies.
    pub steps: Option<&'static str>,
    /// Whether its rates follow [`Strides`]; the others have an order of their own.
    pub uses_strides: bool,
}

impl Entry {
    /// How many levels the structure can have.
    pub fn levels(&self, strides: Strides) -> u32 {
        match self.name {
            "multilist1" => 10,
            "multilist2" => 8,
            "ruler" => 64,
            "priority" => 256,
            "wheel" => strides.levels_up_to(4095),
            _ if self.uses_strides => strides.levels_up_to(u64::LONGEST_STRIDE),
            _ => u16::MAX as u32 + 1,
        }
    }
}

/// All structures, from the simplest to the most specialised.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "rr",
        summary: "round robin in a FIFO list; levels are ignored; O(1)",
        source: "Porter 2021, structure (1)",
        steps: None,
        uses_strides: false,
    },
    Entry {
        name: "rr-rbtree",
        summary: "round robin in a red-black tree keyed by arrival; levels are ignored; O(log n)",
        source: "Porter 2021, structure (2)",
        steps: Some("tree levels"),
        uses_strides: false,
    },
    Entry {
        name: "sorted-list",
        summary: "virtual clock in a sorted list searched from its head; O(n)",
        source: "Porter 2021, structure (3)",
        steps: Some("list elements"),
        uses_strides: true,
    },
    Entry {
        name: "sorted-list-reverse",
        summary: "virtual clock in a sorted list searched from its tail; O(n)",
        source: "Porter 2021, structure (3), reverse",
        steps: Some("list elements"),
        uses_strides: true,
    },
    Entry {
        name: "rbtree",
        summary: "virtual clock in a red-black tree; O(log n)",
        source: "Porter 2021, structure (4)",
        steps: Some("tree levels"),
        uses_strides: true,
    },
    Entry {
        name: "multilist1",
        summary: "a list per level, each level half as often as the one before, in bunches, by a \
                  table; O(1)",
        source: "Porter 2021, Multi-List-1",
        steps: Some("schedule entries"),
        uses_strides: false,
    },
    Entry {
        name: "multilist2",
        summary: "a list per level, each level half as often as the one before, by a table of 255 \
                  entries; O(1)",
        source: "Porter 2021, Multi-List-2",
        steps: Some("schedule entries"),
        uses_strides: false,
    },
    Entry {
        name: "ruler",
        summary: "the exact order of multilist2 by bit arithmetic, up to 64 levels; O(1)",
        source: "ours, after Porter 2021, Multi-List-2",
        steps: None,
        uses_strides: false,
    },
    Entry {
        name: "wheel",
        summary: "the exact order of rbtree in FIFO buckets, strides up to 4095; O(1)",
        source: "ours, after Porter 2021, structure (4)",
        steps: None,
        uses_strides: true,
    },
    Entry {
        name: "pslist",
        summary: "partially sorted list: in front of the middle or to the tail; rates only \
                  roughly by stride; O(1)",
        source: "the post on pslist, Linux 3.6",
        steps: None,
        uses_strides: true,
    },
    Entry {
        name: "priority",
        summary: "strict priorities by bitmap, FIFO within a level; worse levels may starve; O(1)",
        source: "Curran & Stumm 1990, 5.3; Linux O(1)",
        steps: None,
        uses_strides: false,
    },
    Entry {
        name: "heap",
        summary: "virtual clock in a binary heap, the textbook's choice; O(log n)",
        source: "Cormen et al., chapter 6",
        steps: Some("tree levels"),
        uses_strides: true,
    },
];

/// The names, in the order of [`ENTRIES`].
pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}

/// The entry called `name`.
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// Generic code to run with a queue whose type is known only by name.
pub trait Visitor {
    /// The result.
    type Out;

    /// Receives the queue, empty.
    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> Self::Out;
}

/// Creates the structure called `name` for the levels 0 to `levels - 1` and passes it to `visitor`.
///
/// # Errors
/// [`Unavailable`] if there is no such structure or if it cannot have that many levels.
pub fn visit<V: Visitor>(
    name: &str,
    levels: u32,
    strides: Strides,
    visitor: V,
) -> Result<V::Out, Unavailable> {
    visit_probed(name, levels, strides, (), visitor)
}

/// As [`visit`], with a queue that counts its [`steps`](ReadyQueue::steps).
///
/// # Errors
/// As [`visit`].
pub fn visit_counting<V: Visitor>(
    name: &str,
    levels: u32,
    strides: Strides,
    visitor: V,
) -> Result<V::Out, Unavailable> {
    visit_probed(name, levels, strides, Steps::default(), visitor)
}

fn visit_probed<P: Probe + 'static, V: Visitor>(
    name: &str,
    levels: u32,
    strides: Strides,
    probe: P,
    visitor: V,
) -> Result<V::Out, Unavailable> {
    let entry = entry(name).ok_or(Unavailable::NoSuchStructure)?;
    if levels > entry.levels(strides) {
        return Err(Unavailable::TooManyLevels { levels, at_most: entry.levels(strides) });
    }
    Ok(match name {
        "rr" => visitor.visit(RoundRobin::new()),
        "rr-rbtree" => visitor.visit(RoundRobinTree::with_probe(probe)),
        "sorted-list" => visitor.visit(SortedList::with_probe(strides, probe)),
        "sorted-list-reverse" => visitor.visit(SortedListReverse::with_probe(strides, probe)),
        "rbtree" => visitor.visit(RbTree::with_probe(strides, probe)),
        "multilist1" => {
            visitor.visit(MultiList1::with_schedule(schedules::for_levels(levels), probe))
        }
        "multilist2" => visitor.visit(MultiList2::with_probe(RulerTable, probe)),
        "ruler" => visitor.visit(Ruler::new()),
        "wheel" if levels <= strides.levels_up_to(63) => visitor.visit(Wheel::new(strides)),
        "wheel" => visitor.visit(WideWheel::new(strides)),
        "pslist" => visitor.visit(PsList::new(strides)),
        "priority" => visitor.visit(Priority::new()),
        "heap" => visitor.visit(Heap::with_probe(strides, probe)),
        _ => unreachable!("an entry without a structure"),
    })
}

/// Why [`visit`] has no queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// No structure has this name; [`ENTRIES`] has them all.
    NoSuchStructure,
    /// The structure has fewer levels.
    TooManyLevels {
        /// The requested number of levels.
        levels: u32,
        /// The maximum.
        at_most: u32,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NoSuchStructure => {
                write!(f, "no such structure; there are")?;
                ENTRIES.iter().try_for_each(|entry| write!(f, " {}", entry.name))
            }
            Unavailable::TooManyLevels { levels, at_most } => {
                write!(f, "{levels} levels are too many: this structure has at most {at_most}")
            }
        }
    }
}

impl core::error::Error for Unavailable {}
