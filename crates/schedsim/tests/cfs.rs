//! Tests CFS against hand-computed schedules, its bound, and a naive implementation.

#[path = "cfs/naive.rs"]
mod naive;
#[path = "support/play.rs"]
mod play;

use naive::Naive;
use play::*;
use proptest::prelude::*;
use schedsim::policy::{Cfs, CfsOptions, FairOptions, Policy, Promises};
use schedsim::workload::{Action, Affinity, Workload};
use schedsim::{CpuId, Machine, Nanos, Time};

fn weight(prio: u8) -> i128 {
    i128::from(NICE_WEIGHTS[usize::from(prio) - 100])
}

fn ticking(tick: u64) -> CfsOptions {
    CfsOptions {
        fair: FairOptions { tick: Nanos(tick), ..Default::default() },
        ..Default::default()
    }
}

/// The first switches on one CPU.
fn first<const N: usize>(
    options: CfsOptions,
    tasks: Vec<schedsim::workload::TaskSpec>,
) -> [(u64, i64); N] {
    let (_, events) = run(Cfs::new(1, options), &Machine::ideal(1), &workload(tasks));
    switches(&events)[..N].try_into().unwrap()
}

#[test]
fn two_equals_have_slices_of_half_a_latency_rounded_up_to_ticks() {
    // Slices of 3 ms end when more than that has been run, at the next tick.
    let hogs = || {
        vec![task(120, NOW, &[(40 * MS, Action::Exit)]), task(120, NOW, &[(40 * MS, Action::Exit)])]
    };
    assert_eq!(first(ticking(MS), hogs()), [(0, 0), (4 * MS, 1), (8 * MS, 0), (12 * MS, 1)]);
    assert_eq!(first(ticking(4 * MS), hogs()), [(0, 0), (4 * MS, 1), (8 * MS, 0), (12 * MS, 1)]);
    assert_eq!(
        first(ticking(2 * MS + 1), hogs()),
        [(0, 0), (4 * MS + 2, 1), (8 * MS + 4, 0), (12 * MS + 6, 1)]
    );
}

#[test]
fn two_weights_on_one_cpu_event_by_event() {
    // Task 0 weighs 1024, task 1 weighs 335; ticks of 1 ms. Slices of 6 ms × 1024 / 1359 = 4.52 ms
    // and 1.48 ms, so 5 and 2 ticks. Both begin at 6 ms of virtual time, task 0 a period of its own
    // ahead, task 1 not before its parent, which is taken to be the running task.  5: 11.0 stops.
    // 7: 6 + 2 × 3.057 = 12.1 stops.   12: 16.0.   14: 18.2.   19: 21.0.   21: 24.3.   26: 26.0.
    // 27: task 1 has 27.4, 1.4 ms ahead, less than its slice, and goes on.   28: 30.5.   33: 31.0.
    // 34: 33.5, 2.5 ms ahead, more than its slice, which it has not used up, and stops all the
    // same.   39: 36.0.
    let tasks = vec![
        task(120, NOW, &[(90 * MS, Action::Exit)]),
        task(125, NOW, &[(90 * MS, Action::Exit)]),
    ];
    let expected = [
        (0, 0),
        (5, 1),
        (7, 0),
        (12, 1),
        (14, 0),
        (19, 1),
        (21, 0),
        (26, 1),
        (28, 0),
        (33, 1),
        (34, 0),
        (39, 1),
    ];
    assert_eq!(first(ticking(MS), tasks), expected.map(|(ms, task)| (ms * MS, task)));
}

#[test]
fn a_new_task_waits_for_its_slot_and_a_sleeper_preempts_until_its_credit_is_used_up() {
    let burst = |pause: u64| (MS, Action::Sleep(Nanos(pause)));
    let short = 400 * US;
    let tasks = vec![
        task(120, NOW, &[(60 * MS, Action::Exit)]),
        task(
            120,
            at(MS),
            &[
                burst(20 * MS),
                burst(short),
                burst(short),
                burst(short),
                burst(short),
                (MS, Action::Exit),
            ],
        ),
    ];
    let expected = [
        (0, 0), // at 6.0
        // At 1 ms task 0 has 7.0. Task 1 is placed a slice of 3 ms later, at 10.0. At the tick at
        // 4 ms both have 10.0: the waiting one runs.
        (4 * MS, 1),
        (5 * MS, 0), // task 1 sleeps with 11.0
        // At 25 ms task 0 has 30.0, task 1 returns half a latency behind, at 27.0: more than 1 ms,
        // so it preempts.
        (25 * MS, 1),
        (26 * MS, 0),
        (26 * MS + short, 1), // 28.0 against 30.4
        (27 * MS + short, 0),
        (27 * MS + 2 * short, 1), // 29.0 against 30.8
        (28 * MS + 2 * short, 0),
        (28 * MS + 3 * short, 1), // 30.0 against 31.2
        (29 * MS + 3 * short, 0),
        // At 30.6 ms 31.0 against 31.6 is not enough. At the tick at 32 ms task 0 has 33.0, within
        // its slice and not more than that ahead. At 36 it has run for 5.8 ms.
        (36 * MS, 1),
        (37 * MS, 0),
    ];
    assert_eq!(first(ticking(4 * MS), tasks), expected);
}

#[test]
fn a_task_that_yields_is_skipped_once_if_the_next_is_not_too_far_ahead() {
    let tasks = vec![
        task(
            120,
            NOW,
            &[(500 * US, Action::Yield), (700 * US, Action::Yield), (10 * MS, Action::Exit)],
        ),
        task(
            120,
            NOW,
            &[(300 * US, Action::Yield), (6 * MS, Action::Yield), (10 * MS, Action::Exit)],
        ),
    ];
    let expected = [
        (0, 0),
        (500 * US, 1), // 6.5 yields to 6.0
        (800 * US, 0), // 6.3, the least advanced, yields to 6.5
        // 7.2 yields to 6.3, which runs to the tick at 4 ms, within its slice, and to that at 8
        // ms, by when it has done its 6 ms: at 7.5 ms it has 12.3 and yields to 7.2.
        (1500 * US, 1),
        (7500 * US, 0),
        // At 12 ms its slice is over, but 11.7 is less than 12.3, so it continues.
        (16 * MS, 1),
    ];
    assert_eq!(first(ticking(4 * MS), tasks), expected);
}

#[test]
fn yielding_to_one_that_is_far_ahead_does_nothing() {
    let mut steps = vec![(9 * MS, Action::Sleep(Nanos(40 * MS)))];
    steps.extend([(MS, Action::Yield); 3]);
    let tasks = vec![task(120, NOW, &steps), task(120, NOW, &[(90 * MS, Action::Exit)])];
    let (_, events) = run(Cfs::new(1, ticking(4 * MS)), &Machine::ideal(1), &workload(tasks));
    let woken =
        switches(&events).iter().position(|&(time, task)| time > 40 * MS && task == 0).unwrap();
    // It returns 3.0 behind; at 2.0 and at 1.0 behind it is not preempted.
    let (since, until) = (switches(&events)[woken].0, switches(&events)[woken + 1].0);
    assert_eq!(until - since, 2 * MS, "{:?}", switches(&events));
}

#[test]
fn where_many_run_the_one_that_was_preempted_comes_back() {
    // A period has room for two.
    let options = CfsOptions { min_granularity: Nanos::from_millis(3), ..ticking(4 * MS) };
    let tasks = vec![
        task(120, NOW, &[(30 * MS, Action::Exit)]),
        task(120, NOW, &[(30 * MS, Action::Exit)]),
        task(120, at(500 * US), &[(0, Action::Sleep(Nanos(300 * US))), (100 * US, Action::Exit)]),
    ];
    // At 0.8 ms task 0 has 6.8, task 1 6.0; task 2 is placed at 6.0 - 3.0, preempts, and ends. Task
    // 1 has less, but not by more than 1 ms. At 4 ms the running task has run for 3.1 ms.
    assert_eq!(first(options, tasks.clone()), [(0, 0), (800 * US, 2), (900 * US, 0), (4 * MS, 1)]);
    // With room for three, task 1 runs next.
    let options = CfsOptions { min_granularity: Nanos::from_millis(1), ..ticking(4 * MS) };
    assert_eq!(first(options, tasks), [(0, 0), (800 * US, 2), (900 * US, 1), (4 * MS, 0)]);
}

#[test]
fn parameters_grow_with_the_logarithm_of_the_cpus() {
    let turn = |cpus| {
        let mut load = hogs(&[120; 2], 400 * MS);
        load.tasks.iter_mut().for_each(|task| task.affinity = Affinity::Pinned(CpuId(0)));
        let (_, events) = run(Cfs::new(cpus, ticking(100 * US)), &Machine::ideal(cpus), &load);
        switches(&events)[2].0 - switches(&events)[1].0
    };
    let beyond = 100 * US;
    assert_eq!([1, 2, 3, 4, 8, 64].map(turn), [3, 6, 6, 9, 12, 12].map(|ms| ms * MS + beyond));
}

#[test]
fn shares_are_as_the_weights() {
    let prios = [100, 110, 120, 125, 130, 139];
    let until = 400_000 * MS;
    let (_, events) = run_until(
        Cfs::new(1, ticking(4 * MS)),
        &Machine::ideal(1),
        &hogs(&prios, until),
        Time(until),
    );
    let served = Service::until(&events, prios.len(), until);
    let total: i128 = prios.iter().map(|&prio| weight(prio)).sum();
    for (served, prio) in served.into_iter().zip(prios) {
        let ideal = until as f64 * weight(prio) as f64 / total as f64;
        assert!((served as f64 - ideal).abs() <= 10.0 * MS as f64, "{prio}: {served} for {ideal}");
    }
}

#[test]
fn an_idle_cpu_takes_a_waiting_task_and_five_hogs_share_four_cpus() {
    let until = 4000 * MS;
    let (_, events) = run_until(
        Cfs::new(4, ticking(4 * MS)),
        &Machine::ideal(4),
        &hogs(&[120; 5], until),
        Time(until),
    );
    let served = Service::until(&events, 5, until);
    assert_eq!(served.iter().sum::<u64>(), 4 * until);
    for served in served {
        let ideal = (4 * until / 5) as f64;
        assert!((served as f64 / ideal - 1.0).abs() < 0.15, "{served} for {ideal}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The trace of a run contains all decisions.
    #[test]
    fn decides_as_the_naive_implementation(
        tasks in random_tasks(12),
        tick in prop_oneof![Just(MS), Just(4 * MS)],
        granularity in prop_oneof![Just(750 * US), 1..4 * MS],
        wakeup in prop_oneof![Just(MS), 1..4 * MS],
        switch_cost in prop_oneof![Just(0), 0..50 * US],
    ) {
        let machine = Machine { switch_cost: Nanos(switch_cost), ..Machine::ideal(1) };
        let workload = workload(tasks);
        let options = CfsOptions {
            min_granularity: Nanos(granularity),
            wakeup_granularity: Nanos(wakeup),
            ..ticking(tick)
        };
        let (outcome, events) = run_until(Cfs::new(1, options), &machine, &workload, Time::NEVER);
        let naive = Naive::new(tick, 6 * MS, granularity, wakeup);
        let (expected_outcome, expected) = run_until(naive, &machine, &workload, Time::NEVER);
        if let Some(first) =
            (0..events.len().max(expected.len())).find(|&n| events.get(n) != expected.get(n))
        {
            prop_assert_eq!(events.get(first), expected.get(first), "event {}", first);
        }
        prop_assert_eq!(outcome, expected_outcome);
    }

    /// Any mix on any number of CPUs: pinned tasks, tasks on two CPUs only, real-time tasks.
    #[test]
    fn keeps_all_rules_and_its_promises(tasks in mixed_tasks(14), machine in random_machine()) {
        let workload = Workload {
            tasks,
            cpu_sets: vec![[CpuId(0), CpuId(2)].into_iter().collect()],
            ..Workload::default()
        };
        let policy = Cfs::new(machine.cpus, CfsOptions::default());
        let promises = policy.promises();
        let violations = violations(policy, promises, &machine, &workload);
        prop_assert!(violations.is_empty(), "{violations:?}");
    }

    /// No CPU idles while a task waits, except where the kernel accepts it: warm caches and tasks
    /// with restricted affinity.
    #[test]
    fn conserves_work_except_for_accepted_reasons(
        tasks in random_tasks(14),
        machine in random_machine(),
    ) {
        let fair = FairOptions { cache_hot: Nanos::ZERO, ..Default::default() };
        let policy = Cfs::new(machine.cpus, CfsOptions { fair, ..Default::default() });
        let promises = Promises { work_conserving: true, ..policy.promises() };
        let violations = violations(policy, promises, &machine, &workload(tasks));
        prop_assert!(violations.is_empty(), "{violations:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Hogs that stay on one CPU differ in virtual run time by at most a latency and a tick of the
    /// lightest.
    #[test]
    fn the_spread_is_bounded(
        prios in prop::collection::vec(100..140u8, 2..12),
        long_tick in any::<bool>(),
    ) {
        let (until, tick) = (2000 * MS, if long_tick { 4 * MS } else { MS });
        let (_, events) = run_until(
            Cfs::new(1, ticking(tick)),
            &Machine::ideal(1),
            &hogs(&prios, until),
            Time(until),
        );
        let lightest = prios.iter().map(|&prio| weight(prio)).min().unwrap();
        let bound = i128::from(6 * MS + tick) * 1024 / lightest;
        let mut service = Service::new(prios.len());
        for event in &events {
            service.event(event);
            let advanced = || {
                service
                    .served
                    .iter()
                    .zip(&prios)
                    .map(|(&served, &prio)| i128::from(served) * 1024 / weight(prio))
            };
            // They may have started with that difference.
            let spread = advanced().max().unwrap() - advanced().min().unwrap();
            prop_assert!(spread <= 2 * bound, "at {}: {spread}, bound {bound}", event.time.0);
        }
    }
}
