//! Every check catches a canary, and every policy passes all checks.

#[path = "checks/broken.rs"]
mod broken;
#[path = "checks/streams.rs"]
mod streams;
mod support;

use broken::{Broken, Fault};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use schedsim::checks::{Checks, Rule, Violation};
use schedsim::engine::{self, Error, Options, Outcome};
use schedsim::policy::{Catalog, Policy, PolicySpec, Promises, Shares};
use schedsim::swarm::Case;
use schedsim::trace::PrevState::{Blocked, Runnable};
use schedsim::trace::{Event, EventKind, Observer, Trace};
use schedsim::workload::{
    Action, Affinity, Closed, Phase, ReservationOptions, Tasks, TimerMode, TimerPhase, Workload,
};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use support::{at, event, id, swarm, switch, task, wakeup_new, waking, workload};

const NOTHING: Promises = Promises {
    work_conserving: false,
    locally_work_conserving: false,
    strict_below: 0,
    quantum: None,
    shares: None,
    deadlines: None,
    inherits: false,
    hotplug: false,
    starvation_free: false,
};
const LOCAL: Promises = Promises { locally_work_conserving: true, ..NOTHING };
const ALL_PROMISES: Promises = Promises { work_conserving: true, ..LOCAL };

/// A run with all checks on, under a policy that may have a fault.
struct Checked<'a> {
    workload: &'a Workload,
    machine: &'a Machine,
    until: Time,
    fault: Option<Fault>,
}

impl Checked<'_> {
    fn simulate<P: Policy>(self, policy: P) -> Result<Vec<Violation>, Error> {
        let mut checks = Checks::new(self.workload, self.machine, policy.promises());
        let options = Options { seed: 1, until: self.until };
        let outcome = engine::simulate(
            self.workload,
            self.machine,
            policy,
            options,
            Trace::new(vec![&mut checks]),
        )?;
        Ok(checks.finish(&outcome))
    }

    /// The policy of this name, with the fault if there is one.
    fn under(self, policy: &str) -> Result<Vec<Violation>, Error> {
        let policy = PolicySpec::parse(policy).unwrap().policy(self.machine.cpus);
        match self.fault {
            Some(fault) => self.simulate(Broken { policy, fault, wakeups: 0 }),
            None => self.simulate(policy),
        }
    }
}

/// The rules that a faulty policy breaks.
fn broken_by(
    policy: &str,
    fault: Fault,
    machine: &Machine,
    workload: &Workload,
    until: u64,
) -> Vec<Rule> {
    let run = Checked { workload, machine, until: Time(until), fault: Some(fault) };
    let violations = run.under(policy).unwrap();
    rules(&violations)
}

fn rules(violations: &[Violation]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

const MS: u64 = 1_000_000;

fn sleepers(count: u64) -> Workload {
    let steps = |n| {
        [
            (MS + n, Action::Sleep(Nanos(3 * MS + n))),
            (MS, Action::Sleep(Nanos(MS))),
            (MS, Action::Exit),
        ]
    };
    workload((0..count).map(|n| task(at(n), steps(n))).collect())
}

#[test]
fn a_policy_that_never_kicks_loses_tasks_and_lets_cpus_idle() {
    let rules =
        broken_by("central:rr", Fault::NeverKicks, &Machine::ideal(2), &sleepers(3), 20 * MS);
    assert_eq!(rules, [Rule::NoneLost, Rule::WorkConserving]);
    let rules =
        broken_by("initial:rr", Fault::NeverKicks, &Machine::ideal(2), &sleepers(3), 20 * MS);
    assert_eq!(rules, [Rule::NoneLost, Rule::LocallyWorkConserving]);
}

#[test]
fn a_policy_that_forgets_kicks_is_caught_when_the_task_runs_at_last() {
    let mut load = sleepers(4);
    load.tasks.push(task(at(0), [(10 * MS, Action::Exit)]));
    for (policy, rule) in [
        ("central:rr", Rule::WorkConserving),
        ("take:rr", Rule::WorkConserving),
        ("initial:rr", Rule::LocallyWorkConserving),
    ] {
        assert!(
            broken_by(policy, Fault::ForgetsKicks, &Machine::ideal(3), &load, 60 * MS)
                .contains(&rule),
            "{policy}"
        );
    }
}

#[test]
fn a_policy_that_forgets_a_task_loses_it() {
    let load = workload(vec![
        task(at(0), [(9 * MS, Action::Exit)]),
        task(at(0), [(9 * MS, Action::Exit)]),
    ]);
    let rules =
        broken_by("central:rr", Fault::Forgets(TaskId(1)), &Machine::ideal(1), &load, 100 * MS);
    assert_eq!(rules, [Rule::NoneLost, Rule::WorkConserving]);
}

#[test]
fn a_task_that_runs_where_it_may_not_is_caught() {
    // The engine ends such a run; these tasks may run everywhere, and the checks receive another
    // affinity.
    let (machine, load) = (Machine::ideal(2), sleepers(4));
    for affinity in [Affinity::Pinned(CpuId(1)), Affinity::Set(0)] {
        let mut bound = load.clone();
        bound.tasks[2].affinity = affinity;
        bound.cpu_sets = vec![[CpuId(1)].into_iter().collect()];
        let mut checks = Checks::new(&bound, &machine, Promises::default());
        let options = Options { seed: 1, until: Time::NEVER };
        let policy = PolicySpec::parse("central:rr").unwrap().policy(2);
        let outcome =
            engine::simulate(&load, &machine, policy, options, Trace::new(vec![&mut checks]))
                .unwrap();
        assert_eq!(rules(&checks.finish(&outcome)), [Rule::Affinity], "{affinity:?}");
    }
}

#[test]
fn a_policy_that_promises_what_it_does_not_keep_is_caught() {
    // Initial placement leaves a CPU idle while the other has a queue.
    let load =
        workload((1..5).map(|n| task(at(0), [(n % 2 * 20 * MS + MS, Action::Exit)])).collect());
    let rules =
        broken_by("initial:rr", Fault::Promises(ALL_PROMISES), &Machine::ideal(2), &load, u64::MAX);
    assert_eq!(rules, [Rule::WorkConserving]);
    assert_eq!(
        broken_by("initial:rr", Fault::Promises(LOCAL), &Machine::ideal(2), &load, u64::MAX),
        []
    );
    assert_eq!(
        broken_by(
            "initial:rr",
            Fault::Promises(Promises::default()),
            &Machine::ideal(2),
            &load,
            u64::MAX
        ),
        []
    );
}

/// Tasks of these priorities that compute for `ms` and all start at once.
fn hogs(prios: &[u8], ms: u64) -> Workload {
    let hog = |&prio: &u8| {
        let mut hog = task(at(0), [(ms * MS, Action::Exit)]);
        hog.info.prio = prio;
        hog
    };
    workload(prios.iter().map(hog).collect())
}

#[test]
fn a_policy_that_forgets_to_preempt_is_caught_where_priorities_are_strict() {
    let mut load = hogs(&[50, 120], 20);
    load.tasks.push(task(at(5 * MS), [(MS, Action::Exit)]));
    load.tasks[2].info.prio = 10;
    for policy in ["fifo", "rr", "eevdf", "cfs"] {
        assert_eq!(
            broken_by(policy, Fault::NeverPreempts, &Machine::ideal(1), &load, u64::MAX),
            [Rule::StrictPriority],
            "{policy}"
        );
        assert_eq!(
            broken_by(policy, Fault::Promises(NOTHING), &Machine::ideal(1), &load, u64::MAX),
            [],
            "{policy}"
        );
    }
    // Only policies for which nice values are priorities promise anything about them.
    load.tasks[2].info.prio = 119;
    load.tasks[0].info.prio = 120;
    assert_eq!(
        broken_by("fifo", Fault::NeverPreempts, &Machine::ideal(1), &load, u64::MAX),
        [Rule::StrictPriority]
    );
    assert_eq!(broken_by("eevdf", Fault::NeverPreempts, &Machine::ideal(1), &load, u64::MAX), []);
}

/// One task holds a mutex for 4 ms, another one wants it at 2 ms, and a third, of a priority
/// between theirs, computes from then on.
fn inversion() -> Workload {
    let text = r#"{ "mutex": { "m": { "inherit": true } }, "task": [
        { "name": "low", "policy": "fifo", "priority": 10, "phases": [ { "lock": "m" }, { "run": "4ms" }, { "unlock": "m" } ] },
        { "name": "high", "policy": "fifo", "priority": 90, "start": "2ms", "phases": [ { "lock": "m" }, { "unlock": "m" } ] },
        { "name": "middle", "policy": "fifo", "priority": 50, "start": "2ms", "phases": [ { "run": "9ms" } ] } ] }"#;
    Workload::of(&serde_json::from_str(text).unwrap(), 1).unwrap()
}

#[test]
fn a_policy_that_ignores_inherited_priorities_is_caught() {
    // It ranks a task only when that is created or changes its priority.
    let deaf = Fault::Deaf(Promises { strict_below: 100, inherits: true, ..NOTHING });
    assert_eq!(
        broken_by("mlfq", deaf, &Machine::ideal(1), &inversion(), u64::MAX),
        [Rule::Inherited]
    );
    assert_eq!(broken_by("fifo", deaf, &Machine::ideal(1), &inversion(), u64::MAX), []);
    // A forgotten preemption can be one of a task that inherits, too.
    assert_eq!(
        broken_by("fifo", Fault::NeverPreempts, &Machine::ideal(1), &inversion(), u64::MAX),
        [Rule::StrictPriority]
    );
}

#[test]
fn a_holder_that_inherits_too_little_or_for_too_long_is_caught() {
    let load = inversion();
    let (low, high) = (id(0), id(1));
    let contention = event(2, 0, EventKind::ContentionBegin { task: high, owner: low, mutex: 0 });
    let set = |time, old, new| event(time, 0, EventKind::SchedPiSetprio { task: low, old, new });
    let found = |events: &[Event]| {
        let mut checks =
            Checks::new(&load, &Machine::ideal(1), Promises { inherits: true, ..NOTHING });
        let begin = [
            wakeup_new(0, 0, 0),
            switch(0, 0, -1, Runnable, 0),
            wakeup_new(2, 1, 0),
            switch(2, 0, 0, Runnable, 1),
            contention,
        ];
        let middle = [switch(2, 0, 1, Blocked, 0)];
        let end = [waking(4, 1, 0)];
        let (before, after) =
            events.split_at(events.iter().take_while(|event| event.time.0 <= 2).count());
        [
            &begin[..],
            before,
            &middle,
            &end,
            after,
            &[event(5, 0, EventKind::SchedProcessExec { task: low })],
        ]
        .iter()
        .for_each(|part| checks.events(part));
        let violations =
            checks.finish(&Outcome { end: Time(5), events: 0, useful: Nanos(5), random: false });
        violations
            .into_iter()
            .filter(|violation| violation.rule == Rule::Inherited)
            .map(|violation| violation.time.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[set(2, 89, 9), set(4, 9, 89)]), [0u64; 0]);
    assert_eq!(found(&[]), [2], "it inherits nothing");
    assert_eq!(found(&[set(2, 89, 49), set(4, 49, 89)]), [2], "too little");
    assert_eq!(found(&[set(2, 89, 9)]), [4], "no task waits any more");
    assert_eq!(found(&[set(2, 79, 9), set(4, 9, 89)]), [2], "it had another priority");
}

#[test]
fn quanta_that_are_too_long_or_too_short_are_caught() {
    let load = hogs(&[50, 50, 50], 350);
    for fault in [Fault::Overruns(Nanos(1)), Fault::Cuts(Nanos(100 * MS - 1))] {
        assert_eq!(
            broken_by("rr", fault, &Machine::ideal(1), &load, u64::MAX),
            [Rule::RoundRobin],
            "{fault:?}"
        );
    }
    assert_eq!(
        broken_by("rr", Fault::Cuts(Nanos(100 * MS)), &Machine::ideal(1), &load, u64::MAX),
        []
    );
    assert_eq!(
        broken_by(
            "eevdf?quantum=10ms",
            Fault::Overruns(Nanos(1)),
            &Machine::ideal(1),
            &load,
            u64::MAX
        ),
        [Rule::RoundRobin]
    );
    assert_eq!(
        broken_by("eevdf", Fault::Cuts(Nanos(MS)), &Machine::ideal(1), &load, u64::MAX),
        [],
        "FIFO tasks have no quantum, and need not be stopped"
    );
}

/// What the policy of this name promises on one CPU.
fn promises_of(policy: &str) -> Promises {
    PolicySpec::parse(policy).unwrap().promises(1)
}

#[test]
fn a_policy_that_exceeds_shares_is_caught() {
    let fair = ["eevdf", "cfs", "pslist"];
    let (equal, unequal) = (hogs(&[120, 120, 120], 2_000), hogs(&[110, 120, 120], 2_000));
    for policy in fair {
        let broken = |fault, load| broken_by(policy, fault, &Machine::ideal(1), load, 3_000 * MS);
        assert_eq!(broken(Fault::NeverTicks, &equal), [Rule::Shares], "{policy}");
        // Round robin is fair among equals and unfair among others.
        let claims = Fault::Promises(promises_of(policy));
        let round_robin =
            |load| broken_by("central:rr", claims, &Machine::ideal(1), load, 3_000 * MS);
        assert_eq!(
            (round_robin(&equal), round_robin(&unequal)),
            (vec![], vec![Rule::Shares]),
            "{policy}"
        );
        // On several CPUs too, if every task is pinned.
        let mut pinned = unequal.clone();
        pinned.tasks.iter_mut().for_each(|task| task.affinity = Affinity::Pinned(CpuId(1)));
        let on_two =
            |name: &str, load| broken_by(name, claims, &Machine::ideal(2), load, 3_000 * MS);
        assert_eq!(
            (on_two("central:rr", &pinned), on_two("central:rr", &unequal)),
            (vec![Rule::Shares], vec![]),
            "{policy}"
        );
        assert_eq!(on_two(policy, &pinned), vec![], "{policy}");
    }
}

/// Tasks that run for `.0` of every `.1` ms, and reserve `.2` of that.
fn periodic(tasks: &[(u64, u64, u64)]) -> Workload {
    let task = |(index, &(run, period, runtime)): (usize, &(u64, u64, u64))| {
        let timer = TimerPhase {
            period: Nanos(period * MS),
            name: String::new(),
            mode: TimerMode::Absolute,
            shared: false,
        };
        let mut task = Tasks::new(
            &format!("t{index}"),
            vec![Phase::repeat(50, vec![Phase::Run(Nanos(run * MS)), Phase::Timer(timer)])],
        );
        task.reservation = Some(ReservationOptions {
            runtime: Nanos(runtime * MS),
            period: Nanos(period * MS),
            deadline: None,
        });
        task
    };
    Workload::of(
        &Closed { tasks: tasks.iter().enumerate().map(task).collect(), ..Closed::default() },
        4,
    )
    .unwrap()
}

#[test]
fn missed_deadlines_and_overrun_reservations_are_caught() {
    let one = Machine::ideal(1);
    let claims = |policy: &str| Fault::Promises(promises_of(policy));
    // Rate monotonic cannot meet all deadlines that EDF can; it promises nothing there, and fails
    // the promise of EDF.
    let textbook = periodic(&[(2, 5, 2), (4, 7, 4)]);
    assert_eq!(
        broken_by("rm", claims("deadline?cbs=no"), &one, &textbook, 200 * MS),
        [Rule::Deadlines]
    );
    for policy in ["rm", "deadline?limit=100", "deadline?limit=100&cbs=no"] {
        assert_eq!(broken_by(policy, claims(policy), &one, &textbook, 200 * MS), [], "{policy}");
    }
    // The first takes 9 of 10 ms and reserves 3. Servers limit it to that and the other meets its
    // deadlines; without them neither holds.
    let greedy = periodic(&[(9, 10, 3), (6, 11, 6)]);
    assert_eq!(broken_by("deadline", claims("deadline"), &one, &greedy, 300 * MS), []);
    assert_eq!(
        broken_by("deadline?cbs=no", claims("deadline"), &one, &greedy, 300 * MS),
        [Rule::Deadlines, Rule::Bandwidth]
    );
    assert_eq!(
        broken_by("deadline?cbs=no", claims("deadline?cbs=no"), &one, &greedy, 300 * MS),
        [],
        "not all behave"
    );
    assert_eq!(
        broken_by("deadline", Fault::Overruns(Nanos(MS)), &one, &greedy, 300 * MS),
        [Rule::Bandwidth]
    );
    // The impossible is not promised.
    assert_eq!(
        broken_by(
            "deadline?limit=200",
            claims("deadline"),
            &one,
            &periodic(&[(6, 10, 6), (6, 10, 6)]),
            100 * MS
        ),
        []
    );
}

#[test]
fn pslist_s_bound_holds_only_while_slices_are_not_cut_short() {
    // L-EXP06, L-CLM06: the precondition is part of the promise; without it the same runs break the
    // bound.
    let mut load = hogs(&[110, 120, 120, 120, 120, 120, 120], 8_000);
    let until = 6_000 * MS;
    let without = || {
        let promises = promises_of("pslist");
        let shares = promises.shares.map(|shares| Shares { undisturbed: false, ..shares });
        Fault::Promises(Promises { shares, ..promises })
    };
    assert_eq!(broken_by("pslist", without(), &Machine::ideal(1), &load, until), []);
    let mut preempts = load.clone();
    preempts.tasks.push(task(at(0), [(MS / 10, Action::Sleep(Nanos(19 * MS / 10)))].repeat(2_990)));
    preempts.tasks[7].info.prio = 50;
    load.tasks[0].script = [(Nanos(MS), Action::Yield)].repeat(8_000).into_iter().collect();
    for load in [preempts, load] {
        assert_eq!(
            broken_by("pslist", without(), &Machine::ideal(1), &load, until),
            [Rule::Shares]
        );
        let run = Checked {
            workload: &load,
            machine: &Machine::ideal(1),
            until: Time(until),
            fault: None,
        };
        assert_eq!(run.under("pslist"), Ok(vec![]));
    }
}

// All policies pass.

/// All policies, and some with options that change when CPUs are woken or preempted.
fn every_policy() -> Vec<String> {
    let options = [
        "central:rr?search=all",
        "central:priority?search=2&preempt=no",
        "central:multilist2?preempt=yes",
        "initial:ruler?preempt=yes",
        "take:priority?idle=once",
        "take:multilist2?preempt=yes",
        "take:rr?idle=once&quantum=100us",
    ];
    Catalog::built_in().names().into_iter().chain(options.map(String::from)).collect()
}

#[test]
fn a_task_whose_cpu_is_taken_by_a_better_one_while_it_leaves_idle_gets_another() {
    // CPU 0 passes over task 0 and runs task 1 for long. In one load task 1 may run nowhere else;
    // in the other it wakes CPU 1, which does not help task 0.
    let pair = || vec![task(at(0), [(0, Action::Exit)]), task(at(0), [(MS, Action::Exit)])];
    let (mut pinned, mut set) = (workload(pair()), workload(pair()));
    pinned.tasks[1].affinity = Affinity::Pinned(CpuId(0));
    set.tasks[0].affinity = Affinity::Set(0);
    set.cpu_sets = vec![[CpuId(0), CpuId(2)].into_iter().collect()];
    let machine = Machine { idle_exit: Nanos(10), ..Machine::ideal(3) };
    for mut load in [pinned, set] {
        load.tasks[1].info.prio = 100;
        for name in every_policy() {
            let run =
                Checked { workload: &load, machine: &machine, until: Time::NEVER, fault: None };
            assert_eq!(run.under(&name), Ok(vec![]), "{name}");
        }
    }
}

/// A random load of this seed under every policy, optionally with a fault, with all checks on. A
/// failing load is shrunk; the message contains the shrunk load, the broken rule, and the command
/// that repeats it.
fn swarm(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let config =
        ProptestConfig { cases: 1, failure_persistence: None, ..ProptestConfig::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let loads = (swarm::workloads(9), prop_oneof![Just(u64::MAX), 0u64..20_000_000]);
    let result = runner.run(&loads, |((workload, machine), cut)| {
        for name in every_policy() {
            let run = Checked { workload: &workload, machine: &machine, until: Time(cut), fault };
            match run.under(&name) {
                Ok(violations) => prop_assert!(violations.is_empty(), "{name}: {}", violations[0]),
                Err(error) => prop_assert!(false, "{name}: {error}"),
            }
        }
        Ok(())
    });
    result.map_err(|failure| {
        format!(
            "{failure}\nAgain: SWARM={seed} cargo test -p schedsim --test checks \
             every_policy_keeps_all_rules"
        )
    })
}

#[test]
fn every_policy_keeps_all_rules() {
    // `SWARM=7` tries the load of that seed only, `SWARM=0..5000` a range of seeds.
    let seeds = match std::env::var("SWARM") {
        Err(_) => 0..128,
        Ok(text) => match text.split_once("..") {
            Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
            None => text.parse().map(|seed: u64| seed..seed + 1).unwrap(),
        },
    };
    for seed in seeds {
        swarm(seed, None).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn a_load_that_a_broken_policy_fails_shrinks_and_fails_again() {
    let seed = (0..).find(|&seed| swarm(seed, Some(Fault::ForgetsKicks)).is_err()).unwrap();
    let failure = swarm(seed, Some(Fault::ForgetsKicks)).unwrap_err();
    assert_eq!(failure, swarm(seed, Some(Fault::ForgetsKicks)).unwrap_err());
    // The shrunk load: few tasks, of which two wake.
    assert!(failure.matches("TaskSpec {").count() <= 4, "{failure}");
    assert!(failure.ends_with(&format!(
        "SWARM={seed} cargo test -p schedsim --test checks every_policy_keeps_all_rules"
    )));
}

#[test]
fn every_policy_stands_the_swarm_of_closed_workloads() {
    let policies: Vec<PolicySpec> =
        every_policy().iter().map(|name| PolicySpec::parse(name).unwrap()).collect();
    for seed in 0..100 {
        let case = Case::draw(seed);
        for policy in &policies {
            case.verify(policy).unwrap_or_else(|failure| {
                panic!("schedlab check --swarm 1 --seed {seed} --policy {policy}: {failure}")
            });
        }
    }
}

#[test]
fn the_swarm_catches_a_broken_policy_and_leaves_little_of_the_case() {
    let broken = |case: &Case| {
        let Some(load) = case.scripts() else { return vec![] };
        let run = Checked {
            workload: &load,
            machine: &case.machine,
            until: case.until(),
            fault: Some(Fault::NeverKicks),
        };
        run.under("central:rr").map_or(vec![], |violations| rules(&violations))
    };
    // A task that is never kicked waits beside an idle CPU.
    let rule = Rule::WorkConserving;
    let case = (0..).map(Case::draw).find(|case| broken(case).contains(&rule)).unwrap();
    let left = case.shrink(|case| broken(case).contains(&rule));
    assert!(broken(&left).contains(&rule));
    assert!(left.workload.tasks.len() == 1 && left.workload.tasks[0].phases.len() <= 2, "{left:?}");
}
