//! The machine-independent counts of examined elements, by laws that the paper's numbers obey, too.
#![allow(missing_docs)]

mod support;

use readyq::catalog::{self, Visitor};
use readyq::{Level, Node, Nodes, ReadyQueue, Strides, TaskId};
use support::Lcg;

/// Steps over `slices` slices of tasks that yield for ever, after a warm-up.
struct Steps<'a> {
    levels: &'a [u16],
    slices: u64,
}

impl Visitor for Steps<'_> {
    type Out = u64;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, mut queue: Q) -> u64 {
        let mut slab = vec![Node::NEW; self.levels.len()];
        let nodes = Nodes::from_mut(&mut slab);
        for (task, &level) in self.levels.iter().enumerate() {
            queue.insert(nodes, TaskId(task as u32), Level(level));
        }
        let mut before = 0;
        for slice in 0..self.slices + 1000 {
            if slice == 1000 {
                before = queue.steps();
            }
            let task = queue.pop(nodes).unwrap();
            queue.insert(nodes, task, Level(self.levels[task.index()]));
        }
        queue.steps() - before
    }
}

fn steps(name: &str, levels: &[u16], slices: u64) -> u64 {
    let count = *levels.iter().max().unwrap() as u32 + 1;
    catalog::visit_counting(name, count, Strides::Linear, Steps { levels, slices }).unwrap()
}

#[test]
fn both_directions_together_see_the_whole_list() {
    let mut random = Lcg(3);
    for levels in [5, 10, 20, 50] {
        for tasks in [1, 10, 100] {
            let levels: Vec<u16> = (0..tasks).map(|_| random.below(levels) as u16).collect();
            let both =
                steps("sorted-list", &levels, 2000) + steps("sorted-list-reverse", &levels, 2000);
            assert_eq!(both, 2000 * (tasks - 1));
        }
    }
}

#[test]
fn p_chk04_all_at_one_level_examine_a_fixed_number_of_schedule_entries_per_pass() {
    // A level's passes come once in 255 / 2^(7 - level) entries, and a pass serves all tasks.
    for (level, entries_per_period) in [(0u16, 128u64), (2, 32), (5, 4), (6, 2), (7, 1)] {
        for tasks in [1u64, 10, 50] {
            // Over whole periods, so that the ends do not matter.
            let slices = 20 * entries_per_period * tasks;
            let examined = steps("multilist2", &vec![level; tasks as usize], slices);
            assert!(
                examined.abs_diff(20 * 255) <= 255,
                "{examined} entries for {tasks} tasks at level {level}"
            );
        }
    }
}

#[test]
fn trees_descend_a_logarithm_and_the_others_count_nothing() {
    for tasks in [10u32, 100, 1000] {
        let levels: Vec<u16> = (0..tasks).map(|task| (task % 10) as u16).collect();
        for name in ["rbtree", "rr-rbtree"] {
            let per_insert = steps(name, &levels, 4000) as f64 / 4000.0;
            let height = 2.0 * f64::from(tasks + 1).log2();
            assert!(
                (height / 4.0..height).contains(&per_insert),
                "{name}: {per_insert} levels for {tasks} tasks"
            );
        }
        for entry in catalog::ENTRIES.iter().filter(|entry| entry.steps.is_none()) {
            assert_eq!(steps(entry.name, &levels, 100), 0, "{}", entry.name);
        }
    }
    for entry in catalog::ENTRIES.iter().filter(|entry| entry.steps.is_some()) {
        assert!(steps(entry.name, &[0, 3, 1, 2], 100) > 0, "{}", entry.name);
    }
}

#[test]
fn without_a_probe_nothing_is_counted() {
    for name in catalog::names() {
        let levels = [0, 3, 1, 2];
        assert_eq!(
            catalog::visit(name, 4, Strides::Linear, Steps { levels: &levels, slices: 100 }),
            Ok(0),
            "{name}"
        );
    }
}
