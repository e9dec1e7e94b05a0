//! The largest admitted numbers: a run with them ends as it should, or with an error, in debug and
//! release builds alike.

use schedsim::admission::{LAST, LONGEST};
use schedsim::engine::{self, Options, Outcome};
use schedsim::metrics::Metrics;
use schedsim::policy::{Catalog, PolicySpec};
use schedsim::trace::{Trace, TraceHash};
use schedsim::workload::{Closed, Phase, Tasks, Workload};
use schedsim::{Machine, Nanos, Time};
use std::time::Instant;

const MS: Nanos = Nanos(1_000_000);

fn closed(phases: impl IntoIterator<Item = Vec<Phase>>) -> Closed {
    let tasks = phases
        .into_iter()
        .enumerate()
        .map(|(index, phases)| Tasks::new(&format!("t{index}"), phases));
    Closed { tasks: tasks.collect(), ..Closed::default() }
}

/// Runs it on two CPUs, with the usual observers.
fn run(closed: &Closed, policy: &str, until: Time) -> Result<Outcome, String> {
    let workload = Workload::of(closed, 2).map_err(|invalid| invalid.to_string())?;
    let policy = PolicySpec::parse(policy).expect("a policy");
    let (mut metrics, mut hash) = (Metrics::new(2), TraceHash::new());
    let trace = Trace::new(vec![&mut metrics, &mut hash]);
    let outcome = engine::simulate_named(
        &workload,
        &Machine::ideal(2),
        &policy,
        Options { seed: 1, until },
        trace,
    );
    let outcome = outcome.map_err(|error| error.to_string())?;
    metrics.finish(outcome.end);
    Ok(outcome)
}

fn policies() -> impl Iterator<Item = String> {
    Catalog::built_in().all().into_iter().map(|policy| policy.to_string())
}

#[test]
fn the_longest_sleeps_end_in_time_or_with_an_error_under_every_policy() {
    let mut tried = 0;
    for policy in policies() {
        let sleeps = |times| {
            closed([
                vec![Phase::repeat(times, vec![Phase::Sleep(LONGEST), Phase::Run(MS)])],
                vec![Phase::Run(MS), Phase::Sleep(LONGEST)],
            ])
        };
        let outcome = run(&sleeps(3), &policy, Time::NEVER).expect(&policy);
        assert_eq!(outcome.end, Time(3 * (LONGEST.0 + MS.0)), "{policy}");
        for times in [4, 1 << 62] {
            let error = run(&sleeps(times), &policy, Time::NEVER).expect_err(&policy);
            assert!(
                error.contains("need more time than the longest run, 4611686018s"),
                "{policy}: {error}"
            );
        }
        // With a time to stop at there is no error.
        let outcome = run(&sleeps(1 << 62), &policy, Time(2 * LONGEST.0)).expect(&policy);
        assert_eq!(outcome.end, Time(2 * LONGEST.0), "{policy}");
        tried += 1;
    }
    assert!(tried > 12, "{tried} policies");
}

#[test]
fn the_longest_runs_add_up_without_overflow() {
    let long = || Phase::Run(LONGEST);
    let outcome = run(&closed([vec![long(), long(), long(), Phase::Run(MS)]]), "fifo", Time::NEVER)
        .expect("it ends before the end of time");
    assert_eq!(
        (outcome.end, outcome.useful),
        (Time(3 * LONGEST.0 + MS.0), Nanos(3 * LONGEST.0 + MS.0))
    );
    for phases in
        [vec![long(), long(), long(), long(), long()], vec![Phase::repeat(1 << 62, vec![long()])]]
    {
        let error = run(&closed([phases]), "fifo", Time::NEVER).expect_err("it needs too long");
        assert!(error.contains("need more time than the longest run"), "{error}");
    }
    assert_eq!(
        Workload::of(&closed([vec![Phase::repeat(1 << 62, vec![long()])]]), 1)
            .expect("a workload")
            .demand(),
        Nanos::MAX
    );
}

#[test]
fn the_longest_costs_are_paid_and_no_more() {
    let phases = vec![Phase::repeat(3, vec![Phase::Run(MS), Phase::Sleep(MS)])];
    let workload =
        Workload::of(&closed([phases.clone(), phases.clone(), phases]), 2).expect("a workload");
    let costs: [fn(&mut Machine); 7] = [
        |machine| machine.switch_cost = LONGEST,
        |machine| machine.migration_cost = LONGEST,
        |machine| machine.idle_exit = LONGEST,
        |machine| machine.wake_cost = LONGEST,
        |machine| machine.lock_hold = LONGEST,
        |machine| machine.interruption = LONGEST,
        |machine| machine.sharing.bus = LONGEST,
    ];
    for (index, cost) in costs.into_iter().enumerate() {
        let mut machine = Machine::ideal(2);
        cost(&mut machine);
        for policy in policies() {
            let spec = PolicySpec::parse(&policy).expect("a policy");
            let mut hash = TraceHash::new();
            // An end with tasks left or without; in any case an end.
            let options = Options { seed: 1, until: Time(LONGEST.0 / 1_000_000_000) };
            let outcome = engine::simulate_named(
                &workload,
                &machine,
                &spec,
                options,
                Trace::new(vec![&mut hash]),
            );
            assert!(outcome.is_ok_and(|outcome| outcome.end <= LAST), "{policy}, cost {index}");
        }
    }
}

#[test]
fn too_large_a_workload_is_refused_before_it_is_built() {
    let refused = |closed: Closed, cpus: u16| {
        let begin = Instant::now();
        let error = Workload::of(&closed, cpus).expect_err("it is too much").to_string();
        assert!(begin.elapsed().as_secs() < 5, "{error} took {:?}", begin.elapsed());
        error
    };
    let plain = || closed([vec![Phase::Run(MS)]]);
    assert_eq!(refused(plain(), 0), "cpus: 0 is out of range: give a whole number from 1 to 4096");
    assert_eq!(
        refused(plain(), 65_535),
        "cpus: 65535 is out of range: give a whole number from 1 to 4096"
    );
    let with_count = |count, phases| Closed {
        tasks: vec![Tasks { count, ..Tasks::new("t", phases) }],
        ..Closed::default()
    };
    assert!(
        refused(with_count(u32::MAX, vec![Phase::Run(MS)]), 1)
            .contains("4294967295 is out of range: give a whole number from 1 to 1048576")
    );
    let many = with_count(1 << 20, vec![Phase::Yield; 100]);
    assert!(
        refused(many, 1)
            .starts_with("task[0].phases: the tasks so far have 104857600 phases together")
    );
    let still = closed([vec![Phase::repeat(1 << 40, vec![Phase::Yield])]]);
    assert!(refused(still, 1).contains("1099511627776 rounds take no time"));
    let still =
        closed([vec![Phase::repeat(1 << 20, vec![Phase::repeat(1 << 20, vec![Phase::Yield])])]]);
    assert!(refused(still, 1).contains("1099511627776 rounds take no time"));
    let nested = |depth| {
        closed([(0..depth).fold(vec![Phase::Run(MS)], |phases, _| vec![Phase::repeat(2, phases)])])
    };
    assert!(refused(nested(102), 1).contains("nested more than 100 deep"));
    // Each level doubled the time of the check.
    let begin = Instant::now();
    assert!(Workload::of(&nested(60), 1).is_ok());
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[test]
fn locks_in_loops_are_followed_to_the_second_round() {
    let refused = |phases| {
        Workload::of(&closed([phases]), 1).expect_err("a lock that does not fit").to_string()
    };
    let (lock, unlock) = (|| Phase::Lock("m".into()), || Phase::Unlock("m".into()));
    assert!(
        refused(vec![Phase::repeat(2, vec![lock(), Phase::Run(MS)]), unlock()])
            .contains("holds the mutex m already")
    );
    assert!(
        refused(vec![lock(), Phase::repeat(2, vec![unlock(), Phase::Run(MS)])])
            .contains("does not hold it here")
    );
    assert!(
        Workload::of(&closed([vec![Phase::repeat(1, vec![lock(), Phase::Run(MS)]), unlock()]]), 1)
            .is_ok()
    );
}
