//! Callers that break the contract: `Checked` refuses, and the raw queues stay within their slab.
#![allow(missing_docs)]

mod support;

use readyq::catalog::{self, Unavailable, Visitor};
use readyq::{Checked, Error, Level, Node, Nodes, ReadyQueue, RoundRobin, Strides, TaskId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::Lcg;

fn each_structure<V: Visitor>(visitor: impl Fn() -> V) -> Vec<(&'static str, V::Out)> {
    catalog::names()
        .map(|name| (name, catalog::visit(name, 4, Strides::Linear, visitor()).unwrap()))
        .collect()
}

struct Misuse;

impl Visitor for Misuse {
    type Out = ();

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) {
        let mut slab = [Node::NEW; 3];
        let nodes = Nodes::from_mut(&mut slab);
        let mut queue = Checked::new(queue, 7.try_into().unwrap());
        let mut other = Checked::new(RoundRobin::new(), 8.try_into().unwrap());
        let task = TaskId(1);
        assert_eq!(queue.remove(nodes, task), Err(Error::NotWaiting { task }));
        queue.insert(nodes, task, Level(1)).unwrap();
        assert_eq!(queue.insert(nodes, task, Level(2)), Err(Error::AlreadyWaiting { task }));
        assert_eq!(other.insert(nodes, task, Level(0)), Err(Error::AlreadyWaiting { task }));
        assert_eq!(other.remove(nodes, task), Err(Error::NotWaiting { task }));
        for beyond in [TaskId(3), TaskId(u32::MAX)] {
            let error = Error::BeyondSlab { task: beyond, tasks: 3 };
            assert_eq!(queue.insert(nodes, beyond, Level(0)), Err(error));
            assert_eq!(queue.remove(nodes, beyond), Err(error));
        }
        let levels = queue.levels();
        if let Ok(level) = u16::try_from(levels) {
            let level = Level(level);
            assert_eq!(
                queue.insert(nodes, TaskId(0), level),
                Err(Error::LevelOutOfRange { level, levels })
            );
        }
        // Refusing changed nothing.
        assert_eq!(queue.find(nodes, |_| true), Some(task));
        assert_eq!(
            (queue.peek(nodes), queue.pop(nodes), queue.pop(nodes)),
            (Some(task), Some(task), None)
        );
        other.insert(nodes, task, Level(0)).unwrap();
        other.remove(nodes, task).unwrap();
        assert!(queue.is_empty() && other.is_empty());
        queue.insert(nodes, task, Level(0)).unwrap();
        queue.remove(nodes, task).unwrap();
        assert_eq!(queue.pop(nodes), None);
    }
}

#[test]
fn checked_queues_refuse_misuse_and_stay_as_they_were() {
    each_structure(|| Misuse);
}

#[test]
fn errors_name_the_fault_and_the_remedy() {
    let message = |error: Error| error.to_string();
    assert!(
        message(Error::BeyondSlab { task: TaskId(9), tasks: 4 })
            .contains("task 9 has no node: the slab has 4")
    );
    assert!(
        message(Error::LevelOutOfRange { level: Level(8), levels: 8 }).contains("levels 0 to 7")
    );
    assert!(message(Error::AlreadyWaiting { task: TaskId(1) }).contains("remove it first"));
    assert!(message(Error::NotWaiting { task: TaskId(1) }).contains("does not wait"));
    assert!(Unavailable::NoSuchStructure.to_string().contains("sorted-list-reverse"));
    assert!(Unavailable::TooManyLevels { levels: 9, at_most: 8 }.to_string().contains("at most 8"));
}

/// Misuses raw queues: ids beyond the slab, double inserts, removals of absent tasks, two slabs of
/// different sizes.
struct Abuse {
    seed: u64,
}

impl Visitor for Abuse {
    type Out = ();

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) {
        let mut random = Lcg(self.seed);
        let mut queue = queue;
        let mut slabs = [vec![Node::NEW; 5], vec![Node::NEW; 2]];
        for _ in 0..40 {
            let nodes = Nodes::from_mut(&mut slabs[random.below(2) as usize]);
            let task = TaskId(random.below(7) as u32);
            let level = Level(random.below(4) as u16);
            let operation = random.below(3);
            // Debug assertions decide whether it panics; in any case it does nothing worse.
            let _ = catch_unwind(AssertUnwindSafe(|| match operation {
                0 => queue.insert(nodes, task, level),
                1 => drop(queue.pop(nodes)),
                _ => queue.remove(nodes, task),
            }));
        }
    }
}

#[test]
fn raw_queues_never_leave_their_slab() {
    // Under Miri this checks for undefined behaviour; without it, only for crashes.
    std::panic::set_hook(Box::new(|_| ()));
    // A tangled list can be a ring, so only structures that never walk one are abused.
    let names = ["rr", "multilist1", "multilist2", "ruler", "wheel", "priority"];
    for seed in 0..if cfg!(miri) { 3 } else { 300 } {
        for name in names {
            catalog::visit(name, 4, Strides::Linear, Abuse { seed }).unwrap();
        }
    }
    drop(std::panic::take_hook());
}

#[test]
fn the_catalogue_knows_its_limits() {
    struct Levels;
    impl Visitor for Levels {
        type Out = u32;
        fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> u32 {
            queue.levels()
        }
    }
    for strides in [Strides::Linear, Strides::PowersOfTwo] {
        for entry in catalog::ENTRIES {
            let at_most = entry.levels(strides);
            assert_eq!(
                catalog::visit(entry.name, at_most, strides, Levels),
                Ok(at_most),
                "{}",
                entry.name
            );
            let too_many = Unavailable::TooManyLevels { levels: at_most + 1, at_most };
            assert_eq!(catalog::visit(entry.name, at_most + 1, strides, Levels), Err(too_many));
        }
    }
    assert_eq!(
        catalog::visit("fifo", 1, Strides::Linear, Levels),
        Err(Unavailable::NoSuchStructure)
    );
    assert_eq!(catalog::names().count(), 12);
    // One word of buckets is taken when it suffices.
    assert_eq!(catalog::visit("wheel", 10, Strides::Linear, Levels), Ok(63));
    assert_eq!(catalog::visit("wheel", 10, Strides::PowersOfTwo, Levels), Ok(12));
}
