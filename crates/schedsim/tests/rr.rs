//! Tests `rr` rule by rule, each by hand. Rules shared with `fifo` are tested there.

#[path = "support/play.rs"]
mod play;

use play::*;
use proptest::prelude::*;
use schedsim::policy::{Policy, Rr, RrOptions};
use schedsim::workload::{Action, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, Time};

/// The switches on one CPU under quanta of 100 ms, in ms.
fn on_one_cpu(tasks: Vec<TaskSpec>) -> Vec<(u64, i64)> {
    let (_, events) = run(Rr::new(1, RrOptions::default()), &Machine::ideal(1), &workload(tasks));
    switches(&events).into_iter().map(|(time, task)| (time / MS, task)).collect()
}

fn hog(prio: u8, ms: u64) -> TaskSpec {
    task(prio, NOW, &[(ms * MS, Action::Exit)])
}

#[test]
fn equals_alternate_after_each_quantum_and_finish_together() {
    // T-CLM02.
    let expected = [
        (0, 0),
        (100, 1),
        (200, 2),
        (300, 0),
        (400, 1),
        (500, 2),
        (600, 0),
        (650, 1),
        (700, 2),
        (750, -1),
    ];
    assert_eq!(on_one_cpu(vec![hog(50, 250), hog(50, 250), hog(50, 250)]), expected);
}

#[test]
fn a_preempted_task_keeps_the_rest_of_its_quantum_and_its_place() {
    // T-ALG02. Task 0 runs 0–60, task 2 preempts it 60–90, task 0 has 40 ms left.
    let tasks = vec![hog(50, 250), hog(50, 250), task(40, at(60 * MS), &[(30 * MS, Action::Exit)])];
    let expected =
        [(0, 0), (60, 2), (90, 0), (130, 1), (230, 0), (330, 1), (430, 0), (480, 1), (530, -1)];
    assert_eq!(on_one_cpu(tasks), expected);
}

#[test]
fn a_preemption_at_the_end_of_a_quantum_ends_the_slice() {
    // At 100 ms task 0 has nothing left, whichever comes first, the end of its quantum or the
    // better task: 1 runs next.
    let tasks =
        vec![hog(50, 150), hog(50, 150), task(40, at(100 * MS), &[(10 * MS, Action::Exit)])];
    assert_eq!(on_one_cpu(tasks), [(0, 0), (100, 2), (110, 1), (210, 0), (260, 1), (310, -1)]);
}

#[test]
fn a_task_that_sleeps_or_yields_keeps_the_rest_of_its_quantum_and_goes_to_the_tail() {
    let sleeper =
        task(50, NOW, &[(60 * MS, Action::Sleep(Nanos(10 * MS))), (200 * MS, Action::Exit)]);
    // Task 0 is away 60–70 and runs again at 160, for the 40 ms that are left.
    assert_eq!(
        on_one_cpu(vec![sleeper, hog(50, 250)])[..5],
        [(0, 0), (60, 1), (160, 0), (200, 1), (300, 0)]
    );
    let yielder = task(50, NOW, &[(60 * MS, Action::Yield), (200 * MS, Action::Exit)]);
    assert_eq!(
        on_one_cpu(vec![yielder, hog(50, 250)])[..5],
        [(0, 0), (60, 1), (160, 0), (200, 1), (300, 0)]
    );
}

#[test]
fn alone_at_its_priority_a_task_gets_quantum_after_quantum_without_a_switch() {
    assert_eq!(on_one_cpu(vec![hog(50, 1000), hog(51, 10)]), [(0, 0), (1000, 1), (1010, -1)]);
    // Its third quantum started at 200: a task that arrives at 250 waits for its end.
    let tasks = vec![hog(50, 1000), task(50, at(250 * MS), &[(10 * MS, Action::Exit)])];
    assert_eq!(on_one_cpu(tasks), [(0, 0), (300, 1), (310, 0), (1010, -1)]);
}

#[test]
fn short_tasks_run_as_under_fifo() {
    // T-ERR02: runs of 1.6 ms never see the end of a quantum of 100 ms.
    let tasks = || (0..4).map(|_| task(29, NOW, &[(1600 * US, Action::Exit)])).collect();
    let (_, events) = run(Rr::new(1, RrOptions::default()), &Machine::ideal(1), &workload(tasks()));
    assert_eq!(
        switches(&events),
        [0, 1, 2, 3, 4].map(|n| (n * 1600 * US, if n == 4 { -1 } else { n as i64 }))
    );
}

#[test]
fn equals_on_several_cpus_alternate_where_they_wait() {
    // Three hogs on two CPUs: one has a CPU for itself, as no task moves for an equal.
    let until = Time(1000 * MS);
    let load = workload(vec![hog(50, 9000), hog(50, 9000), hog(50, 9000)]);
    let (_, events) = run_until(Rr::new(2, RrOptions::default()), &Machine::ideal(2), &load, until);
    let mut served = Service::until(&events, 3, until.0);
    served.sort_unstable();
    assert_eq!(served, [500 * MS, 500 * MS, 1000 * MS]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn keeps_all_rules_and_its_promises(
        tasks in mixed_tasks(14),
        machine in random_machine(),
        quantum in 1..9 * MS,
    ) {
        let workload = Workload {
            tasks,
            cpu_sets: vec![[CpuId(0), CpuId(2)].into_iter().collect()],
            ..Workload::default()
        };
        let policy =
            Rr::new(machine.cpus, RrOptions { quantum: Nanos(quantum), ..Default::default() });
        let promises = policy.promises();
        let violations = violations(policy, promises, &machine, &workload);
        prop_assert!(violations.is_empty(), "{violations:?}");
    }
}
