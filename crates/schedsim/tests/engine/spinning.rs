//! Tasks that spin for a mutex: schedules by hand, and random ones held against a naive machine that
//! goes from nanosecond to nanosecond.

use super::Collect;
use proptest::prelude::*;
use schedsim::checks::Checks;
use schedsim::engine::{self, Error, Options, Outcome};
use schedsim::policy::PolicySpec;
use schedsim::trace::{EventKind, OverheadKind, Trace};
use schedsim::workload::{Closed, MutexOptions, Phase, Spin, Tasks, Workload};
use schedsim::{Machine, Nanos, Time};
use std::collections::{BTreeMap, VecDeque};

fn closed(spin: &str, tasks: &str) -> Closed {
    serde_json::from_str(&format!(
        r#"{{ "mutex": {{ "m": {{ "spin": {spin} }} }}, "task": {tasks} }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}: {tasks}"))
}

/// The outcome, and what was spun.
fn run(policy: &str, cpus: u16, closed: &Closed) -> (Result<Outcome, Error>, u64) {
    let workload = Workload::of(closed, cpus).unwrap();
    let machine = Machine::ideal(cpus);
    let policy = PolicySpec::parse(policy).unwrap();
    let (mut collect, mut checks) =
        (Collect::default(), Checks::new(&workload, &machine, policy.promises(cpus)));
    let outcome = engine::simulate_named(
        &workload,
        &machine,
        &policy,
        Options { seed: 1, until: Time::NEVER },
        Trace::new(vec![&mut collect, &mut checks]),
    );
    if let Ok(outcome) = &outcome {
        assert_eq!(checks.finish(outcome), []);
    }
    let spun = collect.0.iter().filter_map(|event| match event.kind {
        EventKind::Overhead { kind: OverheadKind::Spin, spent, .. } => Some(spent.0),
        _ => None,
    });
    (outcome, spun.sum())
}

/// The end, the useful time and the time spun, in microseconds.
fn times(policy: &str, cpus: u16, closed: &Closed) -> (u64, u64, u64) {
    let (outcome, spun) = run(policy, cpus, closed);
    let outcome = outcome.unwrap();
    (outcome.end.0 / 1000, outcome.useful.0 / 1000, spun / 1000)
}

const RR: &str = "central:rr?quantum=100us";

const TWO: &str = r#"[
    { "name": "first", "affinity": [0], "phases": [ { "lock": "m" }, { "run": "10us" }, { "unlock": "m" }, { "run": "20us" } ] },
    { "name": "second", "affinity": [1], "phases": [ { "run": "4us" }, { "lock": "m" }, { "run": "10us" }, { "unlock": "m" } ] } ]"#;

#[test]
fn a_spinner_keeps_its_cpu_and_takes_the_mutex_when_it_is_free() {
    assert_eq!(times(RR, 2, &closed("{}", TWO)), (30, 44, 6));
    // One that waits leaves its CPU, and nothing is spun.
    let mut waits = closed("{}", TWO);
    waits.mutexes.insert("m".into(), MutexOptions::default());
    assert_eq!(times(RR, 2, &waits), (30, 44, 0));
}

/// Ten tasks on one CPU: the first is preempted while it has the mutex, and each of the others spins
/// for a whole quantum before it runs again.
#[test]
fn on_one_cpu_a_preempted_holder_costs_all_others_their_quanta() {
    let text = r#"[
        { "name": "holder", "phases": [ { "run": "50us" }, { "lock": "m" }, { "run": "60us" }, { "unlock": "m" } ] },
        { "name": "other", "count": 9, "phases": [ { "lock": "m" }, { "run": "1us" }, { "unlock": "m" } ] } ]"#;
    assert_eq!(times(RR, 1, &closed("{}", text)), (1019, 119, 900));
    // With a limit they spin as long, and wait.
    let limited = closed(r#"{ "limit": "20us" }"#, text);
    assert_eq!(times(RR, 1, &limited), (299, 119, 180));
    // The sleep of the last one ends at 440 us.
    let sleeping = closed(r#"{ "limit": "20us", "sleep": "160us" }"#, text);
    assert_eq!(times(RR, 1, &sleeping), (441, 119, 180));
}

#[test]
fn a_spinner_that_sleeps_looks_again_and_again() {
    // It spins from 4 us to 7 us, sleeps for 2 us, spins from 9 us to 10 us.
    assert_eq!(times(RR, 2, &closed(r#"{ "limit": "3us", "sleep": "2us" }"#, TWO)), (30, 44, 4));
    // It sleeps from 7 us to 14 us.
    assert_eq!(times(RR, 2, &closed(r#"{ "limit": "3us", "sleep": "7us" }"#, TWO)), (30, 44, 3));
}

#[test]
fn a_mutex_that_does_not_come_back_is_named() {
    let text = r#"[
        { "name": "keeper", "affinity": [0], "phases": [ { "lock": "m" }, { "lock": "other" }, { "barrier": "b" } ] },
        { "name": "late", "affinity": [1], "phases": [ { "run": "1us" }, { "lock": "m" }, { "barrier": "b" } ] } ]"#;
    let failure = |spin| run(RR, 2, &closed(spin, text)).0.unwrap_err().to_string();
    let message = "at 100s: task 1 (late) tries to get the mutex m for 100s, as long as a task may; task 0 \
                   (keeper) sleeps or waits with it";
    assert_eq!(failure("{}"), message);
    assert_eq!(failure(r#"{ "limit": "1us", "sleep": "1ms" }"#), message);
    assert!(failure(r#"{ "limit": "1us" }"#).contains("the workload stalls"));
}

/// A step of a task of the naive machine.
#[derive(Clone, Copy, Debug)]
enum Step {
    Run(u64),
    Sleep(u64),
    Lock(usize),
    Unlock(usize),
}

const MUTEXES: usize = 2;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Now {
    /// Acts in so many nanoseconds.
    Works(u64),
    /// Looks in so many nanoseconds, and has then so many left to spin.
    Spins {
        look: u64,
        left: u64,
    },
    Sleeps {
        until: u64,
    },
    Waits,
    Over,
}

/// One task on each CPU. Returns when each is over, and what was spun.
fn naive(tasks: &[Vec<Step>], spins: [Spin; MUTEXES]) -> (Vec<u64>, u64) {
    let cpus = tasks.len();
    let (mut now, mut spun) = (0, 0);
    let mut at = vec![0; cpus];
    let mut state = vec![Now::Works(0); cpus];
    let mut gave_up = vec![false; cpus];
    let mut owner = [None; MUTEXES];
    let mut waiters = [const { VecDeque::new() }; MUTEXES];
    let mut ends = vec![0; cpus];
    loop {
        for state in &mut state {
            if *state == (Now::Sleeps { until: now }) {
                *state = Now::Works(0);
            }
        }
        // A task acts until it has to do something that takes time; of several, the one on the lowest
        // CPU comes first.
        let mut last = None;
        let acts = |state: &[Now], cpu: usize| {
            matches!(state[cpu], Now::Works(0) | Now::Spins { look: 0, .. })
        };
        loop {
            let again = last.filter(|&cpu| state[cpu] == Now::Works(0));
            let Some(cpu) = again.or_else(|| (0..cpus).find(|&cpu| acts(&state, cpu))) else {
                break;
            };
            last = Some(cpu);
            let Some(&step) = tasks[cpu].get(at[cpu]) else {
                (state[cpu], ends[cpu]) = (Now::Over, now);
                continue;
            };
            let (before, mut goes_on) = (state[cpu], true);
            state[cpu] = Now::Works(0);
            match step {
                Step::Run(span) => state[cpu] = Now::Works(span),
                Step::Sleep(span) => state[cpu] = Now::Sleeps { until: now + span },
                Step::Lock(mutex) if owner[mutex].is_none() => {
                    (owner[mutex], gave_up[cpu]) = (Some(cpu), false);
                }
                Step::Lock(mutex) => {
                    goes_on = false;
                    let whole = spins[mutex].limit.map_or(u64::MAX / 2, |limit| limit.0);
                    let left = match before {
                        Now::Spins { left, .. } => left,
                        _ if gave_up[cpu] => 0,
                        _ => whole,
                    };
                    state[cpu] = match (left, spins[mutex].sleep) {
                        (1.., _) => Now::Spins { look: left, left: 0 },
                        (0, Some(pause)) => Now::Sleeps { until: now + pause.0 },
                        (0, None) => {
                            gave_up[cpu] = true;
                            waiters[mutex].push_back(cpu);
                            Now::Waits
                        }
                    };
                }
                Step::Unlock(mutex) => {
                    owner[mutex] = None;
                    for way in 0..cpus {
                        let other = (cpu + 1 + way) % cpus;
                        let wants = matches!(tasks[other].get(at[other]), Some(Step::Lock(of)) if *of == mutex);
                        if let Now::Spins { look: look @ 1.., left } = state[other]
                            && wants
                        {
                            state[other] = Now::Spins { look: way as u64, left: left + look };
                        }
                    }
                    if let Some(first) = waiters[mutex].pop_front() {
                        let first: usize = first;
                        state[first] = Now::Works(0);
                    }
                }
            }
            at[cpu] += usize::from(goes_on);
        }
        if state.iter().all(|state| matches!(state, Now::Over | Now::Waits)) {
            return (ends, spun);
        }
        for state in &mut state {
            match state {
                Now::Works(left) => *left -= 1,
                Now::Spins { look, .. } => (*look, spun) = (*look - 1, spun + 1),
                _ => {}
            }
        }
        now += 1;
    }
}

fn any_spin() -> impl Strategy<Value = Spin> {
    let time = || proptest::option::of((1u64..60).prop_map(Nanos));
    (time(), time()).prop_map(|(limit, sleep)| Spin { limit, sleep: limit.and(sleep) })
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let section = |mutex| {
        (0u64..50)
            .prop_map(move |span| vec![Step::Lock(mutex), Step::Run(span), Step::Unlock(mutex)])
    };
    let part = prop_oneof![
        2 => (0u64..60).prop_map(|span| vec![Step::Run(span)]),
        1 => (1u64..90).prop_map(|span| vec![Step::Sleep(span)]),
        4 => section(0),
        2 => section(1),
        1 => (1u64..40).prop_map(|span| vec![
            Step::Lock(0), Step::Run(span), Step::Lock(1), Step::Run(span), Step::Unlock(0), Step::Unlock(1),
        ]),
    ];
    proptest::collection::vec(part, 1..12).prop_map(|parts| parts.concat())
}

fn name(mutex: usize) -> String {
    format!("m{mutex}")
}

fn phase(step: &Step) -> Phase {
    match *step {
        Step::Run(span) => Phase::Run(Nanos(span)),
        Step::Sleep(span) => Phase::Sleep(Nanos(span)),
        Step::Lock(mutex) => Phase::Lock(name(mutex)),
        Step::Unlock(mutex) => Phase::Unlock(name(mutex)),
    }
}

fn of(tasks: &[Vec<Step>], spins: [Spin; MUTEXES], is_pinned: bool) -> Closed {
    let mut closed = Closed::default();
    for (cpu, steps) in tasks.iter().enumerate() {
        let mut tasks = Tasks::new(&format!("t{cpu}"), steps.iter().map(phase).collect());
        tasks.affinity = is_pinned.then(|| vec![cpu as u16]);
        closed.tasks.push(tasks);
    }
    let used = serde_json::to_string(&closed.tasks).unwrap();
    for (mutex, spin) in spins.into_iter().enumerate() {
        if used.contains(&name(mutex)) {
            let options = MutexOptions { spin: Some(spin), ..MutexOptions::default() };
            closed.mutexes.insert(name(mutex), options);
        }
    }
    closed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn spinners_end_and_spin_as_on_a_naive_machine(
        tasks in proptest::collection::vec(any_steps(), 2..6),
        spins in [any_spin(), any_spin()],
    ) {
        let closed = of(&tasks, spins, true);
        let (outcome, spun) = run("central:rr?quantum=1s", tasks.len() as u16, &closed);
        let (ends, naively_spun) = naive(&tasks, spins);
        prop_assert_eq!(outcome.unwrap().end.0, ends.iter().copied().max().unwrap());
        prop_assert_eq!(spun, naively_spun);
    }

    /// More tasks than CPUs, under schedulers that preempt: the checks find no fault, every task does
    /// its work, and no order of theirs lets a mutex have two holders.
    #[test]
    fn spinners_that_are_preempted_finish(
        tasks in proptest::collection::vec(any_steps(), 2..9),
        spins in [any_spin(), any_spin()],
        cpus in 1u16..4,
        policy in prop_oneof![
            Just("central:rr?quantum=30ns"), Just("take:rr?quantum=50ns"), Just("eevdf?slice=100us"), Just("rr?quantum=70ns"),
        ],
    ) {
        let closed = of(&tasks, spins, false);
        let (outcome, _) = run(policy, cpus, &closed);
        let work: u64 = tasks.iter().flatten().map(|step| if let Step::Run(span) = step { *span } else { 0 }).sum();
        prop_assert_eq!(outcome.unwrap().useful.0, work);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |options: &str| {
        let text = format!(
            r#"{{ "mutex": {{ "m": {options} }}, "task": [ {{ "name": "t", "phases": [ {{ "lock": "m" }}, {{ "wait": {{ "condition": "c", "mutex": "m" }} }} ] }} ] }}"#
        );
        let closed: Closed = serde_json::from_str(&text).unwrap();
        closed.check(1).unwrap_err().to_string()
    };
    let refusals: BTreeMap<&str, &str> = [
        (r#"{ "spin": {}, "handoff": true }"#, "mutex.m.spin: the first task that finds it free"),
        (r#"{ "spin": {}, "inherit": true }"#, "mutex.m.spin: the first task that finds it free"),
        (
            r#"{ "spin": { "limit": "0ns" } }"#,
            "mutex.m.spin.limit: give a time above zero and up to 100s",
        ),
        (
            r#"{ "spin": { "limit": "101s" } }"#,
            "mutex.m.spin.limit: give a time above zero and up to 100s",
        ),
        (r#"{ "spin": { "sleep": "1ms" } }"#, "mutex.m.spin.sleep: give a `limit`"),
        (
            r#"{ "spin": { "limit": "1ms", "sleep": "0ns" } }"#,
            "mutex.m.spin.sleep: give a time above zero",
        ),
        (
            r#"{ "spin": {} }"#,
            "task[0].phases[1]: a task waits for a signal with a mutex that sleeps",
        ),
    ]
    .into();
    for (options, message) in refusals {
        let refused = refusal(options);
        assert!(refused.starts_with(message), "{options}: {refused}");
    }
}
