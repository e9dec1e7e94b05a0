//! The laws of all structures, against naive models: all short sequences of operations, then long
//! random ones. The suite itself is tested: it must catch queues that are broken on purpose.
#![allow(missing_docs)]

mod support;

use proptest::prelude::*;
use readyq::catalog::{self, Visitor};
use readyq::{Level, Nodes, PsList, ReadyQueue, Strides, TaskId};
use support::Op;
use support::laws::Pair;
use support::models::{VirtualClock, model};

const STRIDES: [Strides; 2] = [Strides::Linear, Strides::PowersOfTwo];

struct Exhaustively {
    name: &'static str,
    strides: Strides,
}

impl Visitor for Exhaustively {
    type Out = ();

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) {
        let pair = Pair::new(queue, model(self.name, 2, self.strides), 4, 2);
        let sequences = pair.check_all(7).unwrap_or_else(|fault| panic!("{}: {fault}", self.name));
        assert_eq!(sequences, 78_086);
    }
}

#[test]
fn every_structure_obeys_its_model_in_all_sequences_of_seven_operations_on_four_tasks() {
    for entry in catalog::ENTRIES {
        for &strides in if entry.uses_strides { &STRIDES[..] } else { &STRIDES[..1] } {
            catalog::visit(entry.name, 2, strides, Exhaustively { name: entry.name, strides })
                .unwrap();
        }
    }
    let pslist = Exhaustively { name: "pslist with stop rule", strides: Strides::Linear };
    pslist.visit(PsList::with_stop_rule(Strides::Linear));
}

struct Run<'a> {
    name: &'static str,
    strides: Strides,
    tasks: usize,
    levels: u16,
    ops: &'a [Op],
}

impl Visitor for Run<'_> {
    type Out = Result<(), String>;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> Self::Out {
        Pair::new(
            queue,
            model(self.name, self.levels as u32, self.strides),
            self.tasks,
            self.levels,
        )
        .check(self.ops)
    }
}

fn ops(length: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (any::<u32>(), any::<u16>()).prop_map(|(task, level)| Op::Insert(task, level)),
        4 => Just(Op::Pop),
        1 => any::<u32>().prop_map(Op::Remove),
    ];
    proptest::collection::vec(op, 0..length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_structure_obeys_its_model_in_long_random_sequences(
        ops in ops(400),
        tasks in 1usize..24,
        levels in 1u16..=8,
        linear: bool,
        entry in 0..catalog::ENTRIES.len(),
    ) {
        let entry = &catalog::ENTRIES[entry];
        let strides = STRIDES[linear as usize];
        let run = Run { name: entry.name, strides, tasks, levels, ops: &ops };
        prop_assert_eq!(catalog::visit(entry.name, levels as u32, strides, run).unwrap(), Ok(()));
        let run = Run { name: "pslist with stop rule", strides, tasks, levels, ops: &ops };
        prop_assert_eq!(run.visit(PsList::with_stop_rule(strides)), Ok(()));
    }

    #[test]
    fn sorted_structures_obey_their_model_with_many_levels(ops in ops(600), tasks in 1usize..40) {
        for name in ["sorted-list", "sorted-list-reverse", "rbtree", "wheel", "heap", "pslist"] {
            for (strides, levels) in [(Strides::Linear, 4095), (Strides::PowersOfTwo, 12)] {
                let run = Run { name, strides, tasks, levels, ops: &ops };
                prop_assert_eq!(
                    catalog::visit(name, levels as u32, strides, run).unwrap(),
                    Ok(()),
                    "{}",
                    name
                );
            }
        }
    }
}

/// A correct queue, and ways to break it.
#[derive(Clone)]
struct Canary {
    fault: Fault,
    clock: VirtualClock,
    levels: Vec<u16>,
    waiting: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    LastComeFirstServedAmongEquals,
    LosesATask,
    IgnoresAChangeOfLevel,
    FindOffersTwice,
    PeeksAtAnother,
    NeverEmpty,
}

impl ReadyQueue for Canary {
    fn insert(&mut self, _nodes: &mut Nodes, task: TaskId, level: Level) {
        let first = std::mem::replace(&mut self.levels[task.index()], level.0);
        let level = if self.fault == Fault::IgnoresAChangeOfLevel && first != u16::MAX {
            first
        } else {
            level.0
        };
        self.levels[task.index()] = level;
        self.waiting += 1;
        if self.fault == Fault::LosesATask && self.waiting == 4 {
            return;
        }
        support::models::Model::insert(&mut self.clock, task.0, level);
        if self.fault == Fault::LastComeFirstServedAmongEquals {
            self.clock.waiting.rotate_right(1);
        }
    }

    fn pop(&mut self, _nodes: &mut Nodes) -> Option<TaskId> {
        let task = support::models::Model::pop(&mut self.clock)?;
        self.waiting -= 1;
        Some(TaskId(task))
    }

    fn peek(&self, nodes: &Nodes) -> Option<TaskId> {
        if self.fault == Fault::PeeksAtAnother {
            return self.clock.waiting.last().map(|&(_, task)| TaskId(task));
        }
        self.find(nodes, |_| true)
    }

    fn remove(&mut self, _nodes: &mut Nodes, task: TaskId) {
        support::models::Model::remove(&mut self.clock, task.0);
        self.waiting -= 1;
    }

    fn find(&self, _nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let mut tasks = self.clock.waiting.clone();
        tasks.sort_by_key(|&(key, _)| key);
        if self.fault == Fault::FindOffersTwice {
            tasks.extend(tasks.clone());
        }
        tasks.iter().map(|&(_, task)| TaskId(task)).find(|&task| accept(task))
    }

    fn is_empty(&self) -> bool {
        self.fault != Fault::NeverEmpty && self.clock.waiting.is_empty()
    }
}

#[test]
fn the_suite_catches_queues_that_are_broken_on_purpose() {
    let verdict = |fault| {
        let clock = VirtualClock::new(Strides::Linear);
        let canary = Canary { fault, clock, levels: vec![u16::MAX; 4], waiting: 0 };
        Pair::new(canary, model("rbtree", 2, Strides::Linear), 4, 2).check_all(7)
    };
    assert!(verdict(Fault::None).is_ok());
    for fault in [
        Fault::LastComeFirstServedAmongEquals,
        Fault::LosesATask,
        Fault::IgnoresAChangeOfLevel,
        Fault::FindOffersTwice,
        Fault::PeeksAtAnother,
        Fault::NeverEmpty,
    ] {
        assert!(verdict(fault).is_err(), "{fault:?} goes unnoticed");
    }
}
