//! Tests reservations under `deadline` and `rm`, and shares by tickets under `stride` and
//! `lottery`: schedules by hand, and theory.

#[path = "support/play.rs"]
mod play;

use play::*;
use proptest::prelude::*;
use schedsim::checks::Checks;
use schedsim::engine::{self, Error, Options};
use schedsim::metrics::{Metrics, Summary};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, Trace};
use schedsim::workload::{
    Action, Closed, Phase, Reservation, ReservationOptions, Schedulability, Tasks, TimerMode,
    TimerPhase, Workload,
};
use schedsim::{CpuId, Machine, Nanos, Time};

/// A task that runs for `run` at the start of each period, with a reservation; in ms.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    run: u64,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn every(run: u64, period: u64) -> Periodic {
    Periodic { run, runtime: run, deadline: period, period }
}

fn load(tasks: &[Periodic], times: u64) -> Workload {
    let task = |(index, task): (usize, &Periodic)| {
        let timer = TimerPhase {
            period: Nanos(task.period * MS),
            name: String::new(),
            mode: TimerMode::Absolute,
            shared: false,
        };
        let phases = vec![Phase::Run(Nanos(task.run * MS)), Phase::Timer(timer)];
        let mut tasks = Tasks::new(&format!("t{index}"), vec![Phase::repeat(times, phases)]);
        let (runtime, deadline, period) =
            (Nanos(task.runtime * MS), Some(Nanos(task.deadline * MS)), Nanos(task.period * MS));
        tasks.reservation = Some(ReservationOptions { runtime, period, deadline });
        tasks
    };
    Workload::of(
        &Closed { tasks: tasks.iter().enumerate().map(task).collect(), ..Closed::default() },
        4,
    )
    .unwrap()
}

/// A run of `load` until `until` ms, all checks on.
fn ran(
    policy: &str,
    cpus: u16,
    load: &Workload,
    until: u64,
) -> Result<(Summary, Vec<Event>), Error> {
    let (policy, machine) = (PolicySpec::parse(policy).unwrap(), Machine::ideal(cpus));
    let mut checks = Checks::new(load, &machine, policy.promises(cpus));
    let mut metrics = Metrics::new(cpus).with_reservations(load.reservations.iter().copied());
    let mut collect = Collect::default();
    let options = Options { seed: 1, until: Time(until * MS) };
    let outcome = engine::simulate_named(
        load,
        &machine,
        &policy,
        options,
        Trace::new(vec![&mut checks, &mut metrics, &mut collect]),
    )?;
    assert_eq!(checks.finish(&outcome), [], "{policy}");
    Ok((metrics.finish(outcome.end), collect.0))
}

fn missed(policy: &str, cpus: u16, load: &Workload, until: u64) -> f64 {
    ran(policy, cpus, load, until).unwrap().0.get("deadline_misses").unwrap()
}

/// The switches on CPU 0, in ms.
fn in_ms(events: &[Event]) -> Vec<(u64, i64)> {
    switches(events).into_iter().map(|(time, task)| (time / MS, task)).collect()
}

#[test]
fn edf_meets_deadlines_that_rate_monotonic_misses() {
    // Buttazzo's example: 2 of 5 and 4 of 7, 97 % of a CPU.
    let textbook = load(&[every(2, 5), every(4, 7)], 100);
    let (summary, events) = ran("deadline?limit=100", 1, &textbook, 35).unwrap();
    let expected = [
        (0, 0),
        (2, 1),
        (6, 0),
        (8, 1),
        (12, 0),
        (14, 1),
        (15, 0),
        (17, 1),
        (20, 0),
        (22, 1),
        (26, 0),
        (28, 1),
        (32, 0),
        (34, -1),
    ];
    assert_eq!((&in_ms(&events)[..14], summary.get("deadline_misses")), (&expected[..], Some(0.0)));
    let (summary, events) = ran("rm", 1, &textbook, 35).unwrap();
    // The second task has 3 of its 4 ms when the first is back at 5, and is done at 8 with its
    // deadline at 7.
    assert_eq!(in_ms(&events)[..5], [(0, 0), (2, 1), (5, 0), (7, 1), (8, -1)]);
    assert!(summary.get("deadline_misses").unwrap() >= 1.0);
    assert_eq!(summary.deadlines[0].missed, 0);
}

#[test]
fn response_times_are_as_analysed() {
    // Audsley's example.
    let tasks = [every(3, 7), every(3, 12), every(5, 20)];
    let (summary, _) = ran("rm", 1, &load(&tasks, 80), 419).unwrap();
    let response: Vec<u64> = summary.deadlines.iter().map(|task| task.response.0 / MS).collect();
    assert_eq!((response, summary.get("deadline_misses")), (vec![3, 6, 20], Some(0.0)));
    assert_eq!(summary.deadlines.iter().map(|task| task.jobs).collect::<Vec<_>>(), [60, 35, 21]);
}

#[test]
fn a_server_gives_exactly_the_reserved_time() {
    // Two hogs, of which one has 3 of every 10 ms, beside a task without a reservation.
    let mut hogs = load(&[Periodic { run: 9_000, runtime: 3, deadline: 10, period: 10 }], 1);
    hogs.tasks.push(task(120, NOW, &[(9_000 * MS, Action::Exit)]));
    let (summary, events) = ran("deadline", 1, &hogs, 100).unwrap();
    let expected: Vec<(u64, i64)> =
        (0..10).flat_map(|period| [(10 * period, 0), (10 * period + 3, 1)]).collect();
    assert_eq!(in_ms(&events)[..20], expected);
    assert!((summary.get("reservation_used_max").unwrap() - 1.0).abs() < 1e-9);
    // Alone it gets no more: the CPU idles.
    hogs.tasks.pop();
    let (_, events) = ran("deadline", 1, &hogs, 30).unwrap();
    assert_eq!(in_ms(&events)[..6], [(0, 0), (3, -1), (10, 0), (13, -1), (20, 0), (23, -1)]);
}

#[test]
fn a_task_that_wakes_early_gets_its_share_of_the_remaining_time() {
    // 6 of 10 ms reserved. It runs for 2, sleeps until 5, and wants 9: of its 6 there are 4 left
    // for the 5 to its deadline, more than its share, so that a new period begins at 5.
    let mut sleeper = load(&[Periodic { run: 1, runtime: 6, deadline: 10, period: 10 }], 1);
    sleeper.tasks[0] =
        task(120, NOW, &[(2 * MS, Action::Sleep(Nanos(3 * MS))), (9 * MS, Action::Exit)]);
    let (_, events) = ran("deadline", 1, &sleeper, 40).unwrap();
    assert_eq!(in_ms(&events), [(0, 0), (2, -1), (5, 0), (11, -1), (15, 0), (18, -1)]);
    // With its deadline at 8 of 10 it continues with its share of the 3 ms until then, 2.25 ms, and
    // the rest from 10 on.
    sleeper.reservations[0] = Some(Reservation {
        runtime: Nanos(6 * MS),
        deadline: Nanos(8 * MS),
        period: Nanos(10 * MS),
    });
    let (_, events) = ran("deadline", 1, &sleeper, 40).unwrap();
    assert_eq!(switches(&events)[..4], [(0, 0), (2 * MS, -1), (5 * MS, 0), (7_250 * US, -1)]);
    assert_eq!(switches(&events)[4], (10 * MS, 0));
}

#[test]
fn a_set_that_does_not_fit_is_not_admitted() {
    let refused =
        |policy: &str, cpus, tasks: &[Periodic]| match ran(policy, cpus, &load(tasks, 3), 100) {
            Err(Error::Task { message, .. }) => Some(message),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        };
    let message = refused("deadline", 1, &[every(6, 10), every(4, 10)]).unwrap();
    assert!(
        message.contains("task 1 reserves 4.00ms of every 10.0ms") && message.contains("EBUSY"),
        "{message}"
    );
    assert_eq!(refused("deadline?limit=100", 1, &[every(6, 10), every(4, 10)]), None);
    // Three times 60 % are less than 2 CPUs, and do not fit on either of them.
    let three = [every(6, 10); 3];
    assert_eq!(refused("deadline", 2, &three), None);
    assert!(refused("deadline?placement=partitioned", 2, &three).unwrap().contains("on any CPU"));
    // Freed room is available again.
    let mut later = load(&three[..2], 1);
    later.tasks[1].start = at(50 * MS);
    assert!(ran("deadline", 1, &later, 100).is_ok());
}

#[test]
fn two_light_tasks_and_a_heavy_one_show_dhall_s_effect() {
    let tasks =
        [every(1, 10), every(1, 10), Periodic { run: 21, runtime: 21, deadline: 21, period: 22 }];
    let load = load(&tasks, 20);
    assert!(missed("deadline?limit=100", 2, &load, 200) > 0.0);
    assert_eq!(missed("deadline?limit=100&placement=partitioned", 2, &load, 200), 0.0);
    let (_, events) = ran("deadline?limit=100&placement=partitioned", 2, &load, 200).unwrap();
    assert!(
        (0..3).all(|task| dispatches(&events, task)
            .iter()
            .all(|&(_, cpu)| cpu == u16::from(task == 2)))
    );
}

#[test]
fn cpu_shares_are_proportional_to_tickets() {
    let prios = [110, 115, 120];
    let weights = [9548.0, 3121.0, 1024.0];
    let served = |policy: &str, load: &Workload, until: u64| {
        let (_, events) = ran(policy, 1, load, until).unwrap();
        Service::until(&events, load.tasks.len(), until * MS)
            .into_iter()
            .map(|served| served as f64 / (until * MS) as f64)
            .collect::<Vec<_>>()
    };
    let load = hogs(&prios, 200_000 * MS);
    let shares = weights.map(|weight| weight / weights.iter().sum::<f64>());
    // Stride is off by less than a quantum at any time, a lottery of 10,000 draws by at most three
    // standard deviations.
    for (seen, share) in served("stride", &load, 5_000).into_iter().zip(shares) {
        assert!((seen - share).abs() * 5_000.0 < 10.0, "{seen} {share}");
    }
    for (seen, share) in served("lottery", &load, 100_000).into_iter().zip(shares) {
        assert!(
            (seen - share).abs() < 3.0 * (share * (1.0 - share) / 10_000.0).sqrt(),
            "{seen} {share}"
        );
    }
    // A task that uses a fifth of its quanta gets as much as one that uses all of them:
    // compensation tickets, and passes that advance by the used part.
    let mut polite = hogs(&[120, 120], 200_000 * MS);
    polite.tasks[0] = task(120, NOW, &vec![(2 * MS, Action::Yield); 20_000]);
    for (policy, off) in [("stride", 0.01), ("lottery", 0.03)] {
        let seen = served(policy, &polite, 30_000);
        assert!((seen[0] - 0.5).abs() < off, "{policy}: {seen:?}");
    }
}

fn sets() -> impl Strategy<Value = Vec<Periodic>> {
    let task = (2..25u64).prop_flat_map(|period| {
        (1..=period.min(15), Just(period)).prop_flat_map(|(run, period)| {
            (run..=period).prop_map(move |deadline| Periodic {
                run,
                runtime: run,
                deadline,
                period,
            })
        })
    });
    prop::collection::vec(task, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Theory and simulation agree: tasks that start together are in their worst case at once.
    #[test]
    fn schedulable_sets_meet_their_deadlines(set in sets()) {
        let reservation = |task: &Periodic| Reservation {
            runtime: Nanos(task.runtime * MS),
            deadline: Nanos(task.deadline * MS),
            period: Nanos(task.period * MS),
        };
        let reservations: Vec<Reservation> = set.iter().map(reservation).collect();
        let known = Schedulability::of(&reservations, 1);
        let load = load(&set, 1_000);
        let late = |policy: &str| missed(policy, 1, &load, 1_500) > 0.0;
        prop_assert_eq!(known.rate_monotonic(), !late("rm?limit=900"));
        for (response, task) in known
            .response_times
            .iter()
            .zip(&ran("rm?limit=900", 1, &load, 1_500).unwrap().0.deadlines)
        {
            prop_assert!(
                response.is_none_or(|response| response == task.response),
                "{:?} {:?}",
                response,
                task
            );
        }
        // With servers and up to 100 %; anything above is refused.
        if known.utilisation <= 1.0 {
            prop_assert_eq!(known.edf == Some(true), !late("deadline?limit=100&cbs=no"));
            prop_assert!(known.edf == Some(false) || !late("deadline?limit=100"));
        }
        prop_assert!(!known.rate_monotonic() || known.edf == Some(true), "EDF is optimal");
        prop_assert!(
            !known.hyperbolic
                || set.iter().any(|task| task.deadline < task.period)
                || known.rate_monotonic()
        );
    }

    /// A task that keeps to its reservation meets its deadlines beside others that do not; the
    /// check verifies it.
    #[test]
    fn servers_isolate(set in sets(), greedy in prop::collection::vec(any::<bool>(), 6)) {
        let set: Vec<Periodic> = set
            .iter()
            .zip(greedy)
            .map(|(task, greedy)| Periodic { run: task.run * if greedy { 3 } else { 1 }, ..*task })
            .collect();
        let mut load = load(&set, 100);
        load.tasks.push(task(120, NOW, &[(9_000 * MS, Action::Exit)]));
        match ran("deadline?limit=100", 1, &load, 700) {
            Err(Error::Task { message, .. }) => prop_assert!(message.contains("not admitted")),
            outcome => prop_assert!(outcome.is_ok()),
        }
    }

    /// On several CPUs, with any affinity.
    #[test]
    fn no_task_is_lost_on_several_cpus(
        set in sets(),
        cpus in 1..5u16,
        pins in prop::collection::vec(0..8u16, 6),
    ) {
        let mut load = load(&set, 50);
        for (task, cpu) in load.tasks.iter_mut().zip(pins).filter(|(_, cpu)| *cpu < cpus) {
            task.affinity = schedsim::workload::Affinity::Pinned(CpuId(cpu));
        }
        load.tasks.push(task(120, NOW, &[(90 * MS, Action::Exit)]));
        for policy in [
            "deadline?limit=100",
            "deadline?limit=100&placement=partitioned",
            "rm?limit=900",
            "rm?limit=900&placement=partitioned",
            "stride",
            "lottery",
        ] {
            match ran(policy, cpus, &load, 3_000) {
                Err(Error::Task { message, .. }) => {
                    prop_assert!(message.contains("not admitted"), "{policy}: {message}")
                }
                outcome => prop_assert!(outcome.is_ok(), "{policy}: {:?}", outcome.err()),
            }
        }
    }
}
