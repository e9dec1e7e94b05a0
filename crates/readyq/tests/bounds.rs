//! The constants behind "O(1)": accesses to words of masks, and nodes written to, of each operation,
//! in all sequences of operations on three tasks at levels in different words.
#![allow(missing_docs)]

use readyq::{
    Buckets, Level, MultiList2, Node, Nodes, Priority, ReadyQueue, RoundRobin, Ruler, RulerTable,
    Steps, Strides, TaskId,
};

const TASKS: u32 = 3;

/// The most of an insertion, a pop and a removal.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Worst {
    insert: u64,
    pop: u64,
    remove: u64,
    /// Nodes that one operation changed.
    nodes: usize,
}

/// A state of a queue.
#[derive(Clone)]
struct State<Q> {
    queue: Q,
    slab: Vec<Node>,
    waiting: Vec<TaskId>,
}

impl<Q: ReadyQueue + Clone> State<Q> {
    /// Does `operation`; returns the state after it and its steps.
    fn after(&self, worst: &mut Worst, operation: impl FnOnce(&mut Self)) -> (Self, u64) {
        let mut next = self.clone();
        operation(&mut next);
        let is_changed = |(old, new): &(&Node, &Node)| format!("{old:?}") != format!("{new:?}");
        let nodes = self.slab.iter().zip(&next.slab).filter(is_changed).count();
        worst.nodes = worst.nodes.max(nodes);
        let steps = next.queue.steps() - self.queue.steps();
        (next, steps)
    }

    /// Tries all sequences of up to `length` operations.
    fn explore(&self, levels: &[u16], length: usize, worst: &mut Worst) {
        if length == 0 {
            return;
        }
        for task in (0..TASKS).map(TaskId) {
            if self.waiting.contains(&task) {
                let (next, steps) = self.after(worst, |state| {
                    state.queue.remove(Nodes::from_mut(&mut state.slab), task);
                    state.waiting.retain(|&other| other != task);
                });
                worst.remove = worst.remove.max(steps);
                next.explore(levels, length - 1, worst);
                continue;
            }
            for &level in levels {
                let (next, steps) = self.after(worst, |state| {
                    state.queue.insert(Nodes::from_mut(&mut state.slab), task, Level(level));
                    state.waiting.push(task);
                });
                worst.insert = worst.insert.max(steps);
                next.explore(levels, length - 1, worst);
            }
        }
        let (next, steps) = self.after(worst, |state| {
            let popped = state.queue.pop(Nodes::from_mut(&mut state.slab));
            state.waiting.retain(|&task| Some(task) != popped);
        });
        worst.pop = worst.pop.max(steps);
        next.explore(levels, length - 1, worst);
    }
}

fn worst(queue: impl ReadyQueue + Clone, levels: &[u16]) -> Worst {
    let mut worst = Worst::default();
    let state = State { queue, slab: vec![Node::NEW; TASKS as usize], waiting: vec![] };
    state.explore(levels, 5, &mut worst);
    worst
}

#[test]
fn every_operation_takes_as_many_mask_words_as_its_page_says() {
    let bound = |insert, pop, remove| Worst { insert, pop, remove, nodes: 2 };
    let linear = Strides::Linear;
    assert_eq!(worst(RoundRobin::new(), &[0]), bound(0, 0, 0));
    let priority = Priority::<256, _, _, _>::with_probe(Steps::default());
    assert_eq!(worst(priority, &[0, 63, 64, 255]), bound(2, 4, 2));
    let priority = Priority::<32, _, _, _>::with_probe(Steps::default());
    assert_eq!(worst(priority, &[0, 1, 31]), bound(1, 2, 1));
    let ruler = Ruler::<64, _, _, _>::with_probe(Steps::default());
    assert_eq!(worst(ruler, &[0, 1, 2, 63]), bound(1, 4, 1));
    let wheel = Buckets::<64, _, _, _>::with_probe(linear, Steps::default());
    assert_eq!(worst(wheel, &[0, 1, 31, 62]), bound(1, 2, 1));
    for levels in [&[0, 63, 64, 254], &[62, 127, 128, 190]] {
        let wheel = Buckets::<256, _, _, _>::with_probe(linear, Steps::default());
        assert_eq!(worst(wheel, levels), bound(2, 5, 2));
    }
}

#[test]
fn a_structure_that_searches_is_caught() {
    let searches = MultiList2::with_probe(RulerTable, Steps::default());
    assert!(worst(searches, &[0, 7]).pop > 6);
}
