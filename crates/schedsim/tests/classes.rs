//! Real-time tasks above fair ones: preemption, and protection of fair tasks from starvation.

#[path = "classes/groups.rs"]
mod groups;
#[path = "support/play.rs"]
mod play;

use play::*;
use proptest::prelude::*;
use schedsim::policy::{
    Cfs, CfsOptions, Eevdf, EevdfOptions, FairOptions, Policy, RealTimeOptions,
};
use schedsim::workload::{Action, Attributes, TaskClass, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, Time};

const HOG: [(u64, Action); 1] = [(90_000 * MS, Action::Exit)];

fn cfs(cpus: u16, fair: FairOptions) -> Cfs {
    Cfs::new(cpus, CfsOptions { fair, ..Default::default() })
}

fn throttled() -> FairOptions {
    let realtime = RealTimeOptions { throttle: Some(Nanos(950 * MS)), ..Default::default() };
    FairOptions { realtime, ..Default::default() }
}

fn served() -> FairOptions {
    FairOptions { server: Some(Nanos(50 * MS)), ..Default::default() }
}

/// The switches on one CPU until `ms`, in ms.
fn until<P: Policy>(policy: P, ms: u64, tasks: Vec<TaskSpec>) -> Vec<(u64, i64)> {
    let (_, events) = run_until(policy, &Machine::ideal(1), &workload(tasks), Time(ms * MS));
    switches(&events).into_iter().map(|(time, task)| (time / MS, task)).collect()
}

#[test]
fn a_fifo_task_preempts_a_hog_the_moment_it_wakes() {
    // T-CLM05: a task of SCHED_OTHER has static priority 0, and every FIFO task preempts it,
    // whatever its nice value.
    let tasks = || {
        vec![
            task(100, NOW, &HOG),
            task(98, at(7 * MS), &[(5 * MS, Action::Sleep(Nanos(8 * MS))), (5 * MS, Action::Exit)]),
        ]
    };
    let expected = [(0, 0), (7, 1), (12, 0), (20, 1), (25, 0)];
    assert_eq!(until(cfs(1, FairOptions::default()), 100, tasks()), expected);
    assert_eq!(until(Eevdf::new(1, EevdfOptions::default()), 100, tasks()), expected);
    // And no fair task preempts it.
    let tasks =
        vec![task(99, NOW, &[(50 * MS, Action::Exit)]), task(100, at(MS), &[(MS, Action::Exit)])];
    assert_eq!(until(cfs(1, FairOptions::default()), 100, tasks), [(0, 0), (50, 1), (51, -1)]);
}

#[test]
fn the_option_selects_fifo_or_round_robin_for_real_time_tasks() {
    let tasks = || {
        vec![
            task(50, NOW, &[(15 * MS, Action::Exit)]),
            task(50, NOW, &[(15 * MS, Action::Exit)]),
            task(120, NOW, &HOG),
        ]
    };
    assert_eq!(until(cfs(1, FairOptions::default()), 100, tasks()), [(0, 0), (15, 1), (30, 2)]);
    let realtime = RealTimeOptions { quantum: Some(Nanos(10 * MS)), ..Default::default() };
    let fair = FairOptions { realtime, ..Default::default() };
    assert_eq!(until(cfs(1, fair), 100, tasks()), [(0, 0), (10, 1), (20, 0), (25, 1), (30, 2)]);
}

/// `task` under this scheduling policy.
fn of(class: TaskClass, task: TaskSpec) -> TaskSpec {
    TaskSpec { attributes: Attributes { class, ..task.attributes }, ..task }
}

#[test]
fn fifo_and_round_robin_tasks_of_one_priority_share_a_list() {
    // Tasks 0 and 1 alternate every 100 ms and wait for the end of task 2, which is not SCHED_RR.
    let hog = |ms| task(50, NOW, &[(ms * MS, Action::Exit)]);
    let tasks = vec![
        of(TaskClass::RoundRobin, hog(150)),
        of(TaskClass::RoundRobin, hog(150)),
        of(TaskClass::Fifo, hog(500)),
    ];
    let expected = [(0, 0), (100, 1), (200, 2), (700, 0), (750, 1), (800, -1)];
    assert_eq!(until(cfs(1, FairOptions::default()), 900, tasks.clone()), expected);
    let realtime = RealTimeOptions { quantum: Some(Nanos(10 * MS)), ..Default::default() };
    let fair = FairOptions { realtime, ..Default::default() };
    assert_eq!(until(cfs(1, fair), 900, tasks)[..4], [(0, 0), (10, 1), (20, 2), (520, 0)]);
}

#[test]
fn an_idle_task_gets_three_parts_in_1027_and_is_preempted_at_once() {
    let tasks = || {
        vec![
            of(TaskClass::Idle, task(120, NOW, &HOG)),
            task(120, NOW, &[(0, Action::Sleep(Nanos(5 * MS))), HOG[0]]),
        ]
    };
    let until_end = Time(40_000 * MS);
    let check = |events: &[schedsim::trace::Event]| {
        assert_eq!(dispatches(events, 1)[0], (5 * MS, 0));
        let share = Service::until(events, 2, until_end.0)[0] as f64 / until_end.0 as f64;
        assert!((share - 3.0 / 1027.0).abs() < 0.0005, "{share}");
    };
    check(
        &run_until(
            cfs(1, FairOptions::default()),
            &Machine::ideal(1),
            &workload(tasks()),
            until_end,
        )
        .1,
    );
    check(
        &run_until(
            Eevdf::new(1, EevdfOptions::default()),
            &Machine::ideal(1),
            &workload(tasks()),
            until_end,
        )
        .1,
    );
}

#[test]
fn a_batch_task_preempts_only_idle_tasks() {
    // A sleeper of SCHED_NORMAL preempts a hog when it wakes; one of SCHED_BATCH waits for the tick
    // at 108 ms.
    let woken = |hog: TaskClass, sleeper: TaskClass| {
        let naps = [(US, Action::Sleep(Nanos(101 * MS))), (US, Action::Exit)];
        let tasks = vec![of(hog, task(120, NOW, &HOG)), of(sleeper, task(120, at(4 * MS), &naps))];
        let (_, events) = run_until(
            cfs(1, FairOptions::default()),
            &Machine::ideal(1),
            &workload(tasks),
            Time(200 * MS),
        );
        let waking = events
            .iter()
            .find(|event| matches!(event.kind, schedsim::trace::EventKind::SchedWaking { .. }))
            .unwrap()
            .time
            .0;
        dispatches(&events, 1)[1].0 - waking
    };
    assert_eq!(woken(TaskClass::ByPriority, TaskClass::ByPriority), 0);
    assert!(woken(TaskClass::ByPriority, TaskClass::Batch) > 0);
    assert_eq!(woken(TaskClass::Idle, TaskClass::Batch), 0);
}

#[test]
fn a_real_time_hog_starves_all_others_without_throttling() {
    let tasks = vec![task(50, NOW, &HOG), task(120, NOW, &HOG)];
    assert_eq!(until(cfs(1, FairOptions::default()), 50_000, tasks), [(0, 0)]);
}

#[test]
fn throttling_leaves_the_rest_of_each_second_to_fair_tasks_or_idle() {
    let expected = |other| {
        [(0, 0), (952, other), (1000, 0), (1952, other), (2000, 0), (2948, other), (3000, 0)]
    };
    let tasks = vec![task(50, NOW, &HOG), task(120, NOW, &HOG)];
    assert_eq!(until(cfs(1, throttled()), 3500, tasks), expected(1));
    assert_eq!(until(cfs(1, throttled()), 3500, vec![task(50, NOW, &HOG)]), expected(-1));
}

#[test]
fn the_fair_server_gives_fifty_ms_of_a_second_and_leaves_nothing_idle() {
    // At 952 ms, a tick, the fair task has waited for 950 ms, and again at 1952. A real-time task
    // that wakes meanwhile waits for the server.
    let wakes = task(10, at(960 * MS), &[(20 * MS, Action::Exit)]);
    let tasks = vec![task(50, NOW, &HOG), task(120, NOW, &HOG), wakes];
    assert_eq!(
        until(cfs(1, served()), 2500, tasks),
        [(0, 0), (952, 1), (1002, 2), (1022, 0), (1952, 1), (2002, 0)]
    );
    assert_eq!(until(cfs(1, served()), 2500, vec![task(50, NOW, &HOG)]), [(0, 0)]);
    // Its service is over when no fair task is left.
    let tasks = vec![
        task(50, NOW, &HOG),
        task(120, NOW, &[(8 * MS, Action::Exit)]),
        task(120, NOW, &[(8 * MS, Action::Exit)]),
    ];
    let found = until(cfs(1, served()), 2500, tasks);
    assert_eq!((found[1], *found.last().unwrap()), ((952, 2), (968, 0)));
}

/// Fair and real-time tasks, the latter of few priorities, so that there are equals.
fn mixed(most: usize) -> impl Strategy<Value = Vec<TaskSpec>> {
    mixed_tasks(most).prop_map(|mut tasks| {
        tasks.iter_mut().filter(|task| task.info.prio < 100).for_each(|task| task.info.prio %= 3);
        tasks
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn all_rules_are_kept_with_quanta_throttling_and_server(
        tasks in mixed(14),
        machine in random_machine(),
        quantum in prop_oneof![Just(None), (1..5 * MS).prop_map(|ns| Some(Nanos(ns)))],
        throttle in prop_oneof![Just(None), (MS / 10..9 * MS).prop_map(|ns| Some(Nanos(ns)))],
        server in prop_oneof![Just(None), (990 * MS..1000 * MS).prop_map(|ns| Some(Nanos(ns)))],
    ) {
        let workload = Workload {
            tasks,
            cpu_sets: vec![[CpuId(0), CpuId(2)].into_iter().collect()],
            ..Workload::default()
        };
        let realtime = RealTimeOptions { quantum, throttle, ..Default::default() };
        let policy = cfs(machine.cpus, FairOptions { realtime, server, ..Default::default() });
        let promises = policy.promises();
        let violations = violations(policy, promises, &machine, &workload);
        prop_assert!(violations.is_empty(), "{violations:?}");
    }
}
