//! The guarantees of the partially sorted list, and its limits.
#![allow(missing_docs)]

mod support;

use proptest::prelude::*;
use readyq::{Level, Node, Nodes, PsList, ReadyQueue, Strides, TaskId};
use support::{counts, yielding};

#[test]
fn equal_tasks_are_served_round_robin() {
    for tasks in 1..20 {
        let mut slab = vec![Node::NEW; tasks];
        let order = yielding(
            &mut PsList::new(Strides::Linear),
            Nodes::from_mut(&mut slab),
            &vec![3; tasks],
            10 * tasks,
        );
        assert!(
            order.iter().enumerate().all(|(slice, &task)| task as usize == slice % tasks),
            "{order:?}"
        );
    }
}

#[test]
fn under_yield_rates_are_not_proportional() {
    let levels: Vec<u16> = (0..8).collect();
    let rates = |mut queue: PsList| {
        let mut slab = vec![Node::NEW; 8];
        counts(&yielding(&mut queue, Nodes::from_mut(&mut slab), &levels, 255 * 100), 8)
    };
    // Where proportional rates are 128:64:32:…:1, the two most frequent tasks get the same and far
    // too little.
    let yields = rates(PsList::new(Strides::PowersOfTwo));
    assert!(yields[0].abs_diff(yields[1]) <= 2, "{yields:?}");
    assert!(yields[0] < 50 * yields[7], "{yields:?}");
    // The stop rule makes them proportional.
    let stops = rates(PsList::with_stop_rule(Strides::PowersOfTwo));
    let expected = [128, 64, 32, 16, 8, 4, 2, 1].map(|rate| rate * 100);
    assert!(
        stops
            .iter()
            .zip(expected)
            .all(|(&got, expected)| got.abs_diff(expected) <= 1 + expected / 50),
        "{stops:?}"
    );
}

/// The maximum spread of virtual times (strides × slices) over all tasks at the end of any slice.
fn spread(mut queue: PsList, levels: &[u16], slices: usize) -> u64 {
    let mut slab = vec![Node::NEW; levels.len()];
    let nodes = Nodes::from_mut(&mut slab);
    let mut time: Vec<u64> = vec![0; levels.len()];
    for (task, &level) in levels.iter().enumerate() {
        queue.insert(nodes, TaskId(task as u32), Level(level));
    }
    let mut largest = 0;
    for _ in 0..slices {
        let task = queue.pop(nodes).unwrap();
        let level = Level(levels[task.index()]);
        time[task.index()] += Strides::Linear.of(level);
        queue.insert(nodes, task, level);
        largest = largest.max(time.iter().max().unwrap() - time.iter().min().unwrap());
    }
    largest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_stop_rule_bounds_the_spread_of_virtual_times(
        levels in proptest::collection::vec(0u16..40, 1..40),
    ) {
        let longest = *levels.iter().max().unwrap() as u64 + 1;
        // Observed, not proven: the longest stride times one more than the binary logarithm of the number of tasks.
        let bound = longest * (1 + (levels.len() as u64).next_power_of_two().ilog2() as u64);
        let got = spread(PsList::with_stop_rule(Strides::Linear), &levels, 20_000);
        prop_assert!(
            got <= bound,
            "spread {} > {} for {} tasks, longest stride {}",
            got,
            bound,
            levels.len(),
            longest
        );
    }
}

#[test]
fn without_the_stop_rule_the_spread_grows_without_bound() {
    let levels = [0, 0, 0, 39, 39, 39, 39];
    let short = spread(PsList::new(Strides::Linear), &levels, 10_000);
    let long = spread(PsList::new(Strides::Linear), &levels, 100_000);
    assert!(long > 9 * short, "{short}, then {long}");
}

#[path = "../examples/pslist_steps/picture.rs"]
mod picture;
#[path = "../examples/pslist_steps/steps.rs"]
mod steps;

#[test]
fn the_pictures_of_the_steps_are_those_of_the_example() {
    // L-FIG05, L-FIG06.
    for (count, name) in [(12, "pslist-steps"), (100, "pslist-100-steps")] {
        let path = format!("{}/../../docs/policies/{name}.svg", env!("CARGO_MANIFEST_DIR"));
        let drawn = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            drawn == picture::draw(&steps::GRANULARITIES, count),
            "{path} is not what `pslist_steps -- {count} svg` prints"
        );
    }
}

#[test]
fn the_simulation_of_100_steps_as_worked_by_hand() {
    // L-EXP05, L-FIG05. The waiting tasks; the running task with its times; "<" if it is inserted
    // before the middle, else at the tail.
    let expected = [
        "B0 C0 D0 E0 F0, A 0-1",
        "C0 D0 E0 F0 A1, B 0-1",
        "D0 E0 F0 A1 B1, C 0-2",
        "E0 F0 A1 B1 C2, D 0-2",
        "F0 A1 B1 C2 D2, E 0-3",
        "A1 B1 C2 D2 E3, F 0-5",
        "B1 C2 D2 E3 F5, A 1-2",
        "C2 D2 E3 F5 A2, B 1-3",
        "D2 E3 F5 A2 B3, C 2-4 <",
        "E3 C4 F5 A2 B3, D 2-4 <",
    ];
    let row = |step: steps::Step| {
        let list: Vec<String> =
            step.list.iter().map(|&(task, time)| format!("{}{time}", steps::name(task))).collect();
        let mark = if step.to_middle { " <" } else { "" };
        format!("{}, {} {}-{}{mark}", list.join(" "), steps::name(step.runs), step.from, step.to)
    };
    let found: Vec<String> = steps::simulate(&steps::GRANULARITIES).map(row).take(10).collect();
    assert_eq!(found, expected);
    // L-CLM04: all 100 keep within (6 + 1) / 2 steps of the lightest.
    let worst = steps::simulate(&steps::GRANULARITIES).take(100).map(|step| step.spread).max();
    assert!(worst.is_some_and(|worst| worst <= 7 * 5 / 2), "{worst:?}");
}
