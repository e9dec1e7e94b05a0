//! The effects of phases: each with a schedule by hand, and random ones under the checks.

use super::{Collect, switches};
use proptest::prelude::*;
use schedsim::checks::Checks;
use schedsim::engine::{self, Error, Options, Outcome};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Trace};
use schedsim::workload::{Closed, Phase, Tasks, TimerPhase, Workload};
use schedsim::{Machine, Nanos, Time};

/// A closed workload from the JSON value of `"task"`.
fn tasks(json: &str) -> Closed {
    serde_json::from_str(&format!("{{ \"task\": {json} }}"))
        .unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn run_on(machine: &Machine, closed: &Closed) -> (Result<Outcome, Error>, Vec<Event>) {
    let workload = Workload::of(closed, machine.cpus).unwrap();
    let mut collect = Collect::default();
    let until = closed.duration.map_or(Time::NEVER, |span| Time(span.0));
    let policy = PolicySpec::parse("central:rr?quantum=1s").unwrap();
    let outcome = engine::simulate_named(
        &workload,
        machine,
        &policy,
        Options { seed: 1, until },
        Trace::new(vec![&mut collect]),
    );
    (outcome, collect.0)
}

/// When it ends on an ideal machine, in microseconds.
fn end(cpus: u16, closed: &Closed) -> u64 {
    run_on(&Machine::ideal(cpus), closed).0.unwrap().end.0 / 1000
}

/// At which microseconds `task` is dispatched on an ideal machine.
fn dispatches(cpus: u16, closed: &Closed, task: i64) -> Vec<u64> {
    let (outcome, events) = run_on(&Machine::ideal(cpus), closed);
    outcome.unwrap();
    switches(&events)
        .iter()
        .filter(|&&(.., next)| next == task)
        .map(|&(time, ..)| time / 1000)
        .collect()
}

fn failure(cpus: u16, closed: &Closed) -> String {
    run_on(&Machine::ideal(cpus), closed).0.unwrap_err().to_string()
}

#[test]
fn a_mutex_goes_to_the_faster_task_without_handoff() {
    let text = r#"[
        { "name": "again", "affinity": [0], "phases": [ { "lock": "m" }, { "run": "10us" }, { "unlock": "m" }, { "run": "5us" }, { "lock": "m" }, { "run": "10us" }, { "unlock": "m" } ] },
        { "name": "waiter", "affinity": [1], "start": "1us", "phases": [ { "lock": "m" }, { "run": "10us" }, { "unlock": "m" } ] } ]"#;
    let machine = Machine { idle_exit: Nanos::from_micros(20), ..Machine::ideal(2) };
    let mut closed = tasks(text);
    let end = |closed: &Closed| run_on(&machine, closed).0.unwrap().end;
    // Both CPUs leave idle first. The waiter is woken at 30 us and runs at 50 us; meanwhile the
    // mutex was locked again, from 35 us to 45 us.
    assert_eq!(end(&closed), Time(60_000));
    // With handoff, the waiter has it from 30 us to 60 us; then the other one's CPU has to leave
    // idle.
    closed.mutexes.insert("m".into(), serde_json::from_str(r#"{ "handoff": true }"#).unwrap());
    assert_eq!(end(&closed), Time(90_000));
}

#[test]
fn a_barrier_opens_when_all_have_come_and_closes_again() {
    let closed = tasks(
        r#"[ { "name": "fast", "count": 2, "phases": [ { "loop": { "times": 2, "phases": [ { "run": "1us" }, { "barrier": "b" } ] } } ] },
             { "name": "slow", "phases": [ { "loop": { "times": 2, "phases": [ { "run": "7us" }, { "barrier": "b" } ] } } ] } ]"#,
    );
    assert_eq!(end(3, &closed), 14);
    assert_eq!(dispatches(3, &closed, 0), [0, 7, 14]);
    // On one CPU the fast ones do their second run when the slow one has arrived, which then
    // continues at once.
    assert_eq!(end(1, &closed), 2 * (1 + 1 + 7));
}

#[test]
fn a_pipe_holds_what_it_can_and_makes_both_ends_wait() {
    let mut closed = tasks(
        r#"[ { "name": "writer", "phases": [ { "loop": { "times": 3, "phases": [ { "run": "1us" }, { "write": { "pipe": "p", "bytes": 3000 } } ] } } ] },
             { "name": "reader", "phases": [ { "sleep": "10us" }, { "loop": { "times": 9, "phases": [ { "read": { "pipe": "p", "bytes": 1000 } }, { "run": "1us" } ] } } ] } ]"#,
    );
    // There is room for all.
    assert_eq!(dispatches(2, &closed, 0), [0]);
    // A capacity is at least a page, and there a write that does not fit behind the last waits until
    // all of that has been read.
    closed.pipes.insert("p".into(), serde_json::from_str(r#"{ "capacity": 100 }"#).unwrap());
    assert_eq!(dispatches(2, &closed, 0), [0, 12, 15]);
    assert_eq!(end(2, &closed), 19);
    // More than fits goes in piece by piece.
    let large = tasks(
        r#"[ { "name": "writer", "phases": [ { "write": { "pipe": "p", "bytes": 200000 } }, { "run": "1us" } ] },
             { "name": "reader", "phases": [ { "read": { "pipe": "p", "bytes": 200000 } }, { "run": "1us" } ] } ]"#,
    );
    assert_eq!(end(2, &large), 1);
}

#[test]
fn a_partial_read_continues_with_what_is_there() {
    let closed = |partial: bool| {
        tasks(&format!(
            r#"[ {{ "name": "writer", "phases": [ {{ "loop": {{ "times": 3, "phases": [ {{ "run": "2us" }}, {{ "write": {{ "pipe": "p", "bytes": 100 }} }} ] }} }} ] }},
                 {{ "name": "reader", "phases": [ {{ "read": {{ "pipe": "p", "bytes": 250, "partial": {partial} }} }}, {{ "run": "5us" }}, {{ "read": {{ "pipe": "p", "bytes": 50, "partial": {partial} }} }}, {{ "run": "1us" }} ] }} ]"#
        ))
    };
    assert_eq!(dispatches(2, &closed(false), 1), [0, 2, 4, 6]);
    assert_eq!(end(2, &closed(false)), 6 + 5 + 1);
    assert_eq!(dispatches(2, &closed(true), 1), [0, 2]);
    assert_eq!(end(2, &closed(true)), 2 + 5 + 1);
}

#[test]
fn readers_are_served_in_order_and_none_is_lost() {
    let closed = tasks(
        r#"[ { "name": "reader", "count": 5, "phases": [ { "read": { "pipe": "p", "bytes": 3 } }, { "run": "1us" } ] },
             { "name": "writer", "start": "9us", "phases": [ { "write": { "pipe": "p", "bytes": 8 } }, { "run": "1us" }, { "write": { "pipe": "p", "bytes": 7 } } ] } ]"#,
    );
    // The first two find six bytes at once, the third the other two; it needs one of the last
    // write's seven.
    let all: Vec<u64> =
        (0..5).map(|reader| *dispatches(6, &closed, reader).last().unwrap()).collect();
    assert_eq!(all, [9, 9, 10, 10, 10]);
}

#[test]
fn a_signal_wakes_one_waiter_a_broadcast_all_and_each_takes_the_mutex_again() {
    let waiters = r#"{ "name": "waiter", "count": 3, "phases": [ { "lock": "m" }, { "wait": { "condition": "c", "mutex": "m" } }, { "run": "2us" }, { "unlock": "m" } ] }"#;
    let with = |phase: &str| {
        tasks(&format!(
            r#"[ {waiters}, {{ "name": "waker", "start": "5us", "phases": [ {phase} ] }} ]"#
        ))
    };
    assert_eq!(end(4, &with(r#"{ "broadcast": "c" }"#)), 5 + 3 * 2);
    assert_eq!(
        end(
            4,
            &with(r#"{ "signal": "c" }, { "run": "10us" }, { "signal": "c" }, { "signal": "c" }"#)
        ),
        15 + 2 * 2
    );
    let message = failure(4, &with(r#"{ "signal": "c" }, { "signal": "c" }"#));
    assert!(
        message.contains(
            "1 task waits for ever; task 2 (waiter) waits for a signal on c that no other task \
             has left to give"
        ),
        "{message}"
    );
}

#[test]
fn a_timer_wakes_at_multiples_of_its_period_and_a_late_task_restarts_or_catches_up() {
    // The two diagrams in rt-app's tutorial: a period of 20, runs of 10, except for the third of
    // 35.
    let phases = |mode: &str| {
        let timer = format!(r#"{{ "timer": {{ "period": "20us", "mode": "{mode}" }} }}"#);
        let runs = ["10us", "10us", "35us", "10us", "10us"]
            .map(|run| format!(r#"{{ "run": "{run}" }}, {timer}"#))
            .join(", ");
        tasks(&format!(r#"[ {{ "name": "t", "phases": [ {runs}, {{ "run": "1us" }} ] }} ]"#))
    };
    // The third run ends at 75, when its period is over by 15: the next starts there.
    assert_eq!(dispatches(1, &phases("relative"), 0), [0, 20, 40, 95, 115]);
    // Or it started at 60, so that the fourth run is late as well, and the fifth is not.
    assert_eq!(dispatches(1, &phases("absolute"), 0), [0, 20, 40, 100]);
    assert_eq!(end(1, &phases("absolute")), 101);
}

#[test]
fn a_device_serves_one_request_after_the_other() {
    let mut closed = tasks(
        r#"[ { "name": "t", "count": 3, "phases": [ { "io": { "device": "disk", "service": "10us" } }, { "run": "1us" } ] } ]"#,
    );
    assert_eq!(end(3, &closed), 31);
    assert_eq!([0, 1, 2].map(|task| dispatches(3, &closed, task)[1]), [10, 20, 30]);
    closed.devices.insert("disk".into(), serde_json::from_str(r#"{ "channels": 2 }"#).unwrap());
    assert_eq!([0, 1, 2].map(|task| dispatches(3, &closed, task)[1]), [10, 10, 20]);
}

#[test]
fn forked_tasks_are_joined_and_exec_continues_with_another_list() {
    let mut closed = tasks(
        r#"[ { "name": "main", "phases": [ { "loop": { "times": 3, "phases": [ { "run": "1us" }, { "fork": "child" } ] } }, { "join": "child" }, { "run": "1us" } ] },
             { "name": "child", "count": 3, "forked": true, "phases": [ { "run": "1us" }, { "exec": "program" } ] } ]"#,
    );
    closed
        .lists
        .insert("program".into(), vec![Phase::repeat(2, vec![Phase::Run(Nanos::from_micros(5))])]);
    assert_eq!([1, 2, 3].map(|child| dispatches(4, &closed, child)[0]), [1, 2, 3]);
    assert_eq!(end(4, &closed), 3 + 11 + 1);
    let (_, events) = run_on(&Machine::ideal(4), &closed);
    let count =
        |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::SchedProcessFork { .. })), 3);
    assert_eq!(count(|kind| matches!(kind, EventKind::SchedProcessExec { .. })), 3);
}

#[test]
fn a_run_is_over_when_all_but_daemons_have_ended_or_when_its_time_is() {
    let hog = r#"{ "name": "hog", "daemon": true, "phases": [ { "loop": { "phases": [ { "run": "3us" }, "yield" ] } } ] }"#;
    let mut closed =
        tasks(&format!(r#"[ {hog}, {{ "name": "main", "phases": [ {{ "run": "10us" }} ] }} ]"#));
    closed.duration = Some(Nanos::from_millis(1));
    assert_eq!(end(2, &closed), 10);
    // If all tasks have ended, the run does not continue to the given time.
    let early = tasks(r#"[ { "name": "t", "phases": [ { "run": "3us" } ] } ]"#);
    assert_eq!(end(1, &Closed { duration: Some(Nanos::from_millis(1)), ..early }), 3);
    let mut closed = tasks(&format!("[ {hog} ]"));
    closed.duration = Some(Nanos::from_micros(50));
    let (outcome, _) = run_on(&Machine::ideal(2), &closed);
    assert_eq!(
        outcome.map(|outcome| (outcome.end, outcome.useful)),
        Ok((Time(50_000), Nanos(50_000)))
    );
}

#[test]
fn a_million_yields_are_a_few_words() {
    let closed = tasks(
        r#"[ { "name": "t", "count": 2, "phases": [ { "loop": { "times": 100000, "phases": [ { "run": "1us" }, "yield" ] } } ] } ]"#,
    );
    assert!(Workload::of(&closed, 1).unwrap().script_bytes() <= 2 * 40);
    assert_eq!(end(1, &closed), 200_000);
}

#[test]
fn a_deadlock_is_reported_with_its_tasks_and_what_each_waits_for() {
    let barriers = tasks(
        r#"[ { "name": "a", "phases": [ { "run": "1us" }, { "barrier": "x" }, { "barrier": "y" } ] },
             { "name": "b", "phases": [ { "barrier": "y" }, { "barrier": "x" } ] } ]"#,
    );
    let message = failure(2, &barriers);
    let cycle = "task 0 (a) waits for the barrier x, not yet reached by task 1 (b), which waits \
                 for the barrier y, not yet reached by task 0 again";
    assert!(
        message.starts_with("the workload stalls at 1.00us: 2 tasks wait for ever; ")
            && message.contains(cycle),
        "{message}"
    );
    let philosophers = tasks(
        r#"[ { "name": "a", "phases": [ { "lock": "l" }, { "run": "1us" }, { "lock": "r" } ] }, { "name": "b", "phases": [ { "lock": "r" }, { "run": "1us" }, { "lock": "l" } ] } ]"#,
    );
    assert!(failure(2, &philosophers).contains(
        "task 0 (a) waits for the mutex r, held by task 1 (b), which waits for the mutex l, held \
         by task 0 again"
    ));
    // A cycle is an error even if the run has a time limit.
    let stopped = Closed { duration: Some(Nanos::from_millis(1)), ..philosophers };
    assert!(failure(2, &stopped).contains("again"));
    let pipes = tasks(
        r#"[ { "name": "a", "phases": [ { "read": { "pipe": "p", "bytes": 1 } }, { "write": { "pipe": "q", "bytes": 1 } } ] },
             { "name": "b", "phases": [ { "read": { "pipe": "q", "bytes": 1 } }, { "write": { "pipe": "p", "bytes": 1 } } ] } ]"#,
    );
    assert!(failure(2, &pipes).contains(
        "task 0 (a) waits for data in the pipe p from task 1 (b), which waits for data in the \
         pipe q from task 0 again"
    ));
}

#[test]
fn a_wait_that_no_task_can_end_is_reported_with_its_reason() {
    let kept = tasks(
        r#"[ { "name": "a", "phases": [ { "lock": "m" }, { "run": "1us" } ] }, { "name": "b", "phases": [ { "lock": "m" } ] }, { "name": "c", "phases": [ { "join": "b" } ] } ]"#,
    );
    assert!(
        failure(3, &kept).contains(
            "task 1 (b) waits for the mutex m, which task 0 (a) has taken and will not give back"
        ),
        "{}",
        failure(3, &kept)
    );
    let mut alone = tasks(r#"[ { "name": "a", "count": 2, "phases": [ { "barrier": "b" } ] } ]"#);
    alone.barriers.insert("b".into(), serde_json::from_str(r#"{ "tasks": 3 }"#).unwrap());
    assert!(
        failure(1, &alone)
            .contains("the barrier b, to which 2 of 3 tasks have come and no other will")
    );
    let reader =
        tasks(r#"[ { "name": "a", "phases": [ { "read": { "pipe": "p", "bytes": 1 } } ] } ]"#);
    assert!(failure(1, &reader).contains("data in the pipe p, to which no task writes any more"));
    let writer =
        tasks(r#"[ { "name": "a", "phases": [ { "write": { "pipe": "p", "bytes": 65537 } } ] } ]"#);
    assert!(failure(1, &writer).contains("room in the pipe p, which no task reads any more"));
    // With a time limit, a wait for a task that has ended is no error.
    let stopped = Closed { duration: Some(Nanos::from_micros(9)), ..reader };
    assert_eq!(end(1, &stopped), 9);
}

#[test]
fn a_workload_that_cannot_run_is_refused_with_the_place() {
    let wrong = |text: &str, place: &str, message: &str| {
        let closed: Closed =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let invalid = Workload::of(&closed, 4).unwrap_err();
        assert_eq!(
            (invalid.key.as_str(), invalid.message.contains(message)),
            (place, true),
            "{}: {text}",
            invalid.message
        );
    };
    let task = |entries: &str, phases: &str| {
        format!(r#"{{ "task": [ {{ "name": "t", {entries} "phases": [ {phases} ] }} ] }}"#)
    };
    wrong(r#"{ "task": [] }"#, "task", "there is no task");
    wrong(&task("", ""), "task[0].phases", "nothing is done here");
    wrong(&task(r#""nice": 20,"#, r#""yield""#), "task[0].nice", "20 is not between -20 and 19");
    wrong(
        &task(r#""policy": "fifo", "priority": 100,"#, r#""yield""#),
        "task[0].priority",
        "100 is not between 1 and 99",
    );
    wrong(&task(r#""policy": "rr","#, r#""yield""#), "task[0]", "needs a `priority`");
    wrong(
        &task(r#""affinity": [1, 4],"#, r#""yield""#),
        "task[0].affinity[1]",
        "no CPU 4: the machine has CPUs 0 to 3",
    );
    wrong(
        &task("", r#"{ "run": "1us" }, { "unlock": "m" }"#),
        "task[0].phases[1]",
        "gives back the mutex m and does not hold it",
    );
    wrong(
        &task("", r#"{ "loop": { "times": 2, "phases": [ { "lock": "m" } ] } }"#),
        "task[0].phases[0].loop.phases[0]",
        "holds the mutex m already",
    );
    wrong(
        &task("", r#"{ "wait": { "condition": "c", "mutex": "m" } }"#),
        "task[0].phases[0]",
        "lock it first",
    );
    wrong(
        &task("", r#"{ "loop": { "phases": [ "yield" ] } }"#),
        "task[0].phases[0]",
        "takes no time",
    );
    wrong(
        &task("", r#"{ "loop": { "phases": [ { "run": "1us" } ] } }"#),
        "task[0].phases[0]",
        "this loop never ends",
    );
    wrong(
        &task("", r#"{ "loop": { "phases": [ { "run": "1us" } ] } }, "yield""#),
        "task[0].phases[0]",
        "never reached",
    );
    wrong(&task("", r#"{ "fork": "u" }"#), "task[0].phases[0]", "no task named u");
    wrong(&task("", r#"{ "exec": "l" }"#), "task[0].phases[0]", "no list named l");
    wrong(&task(r#""forked": true,"#, r#""yield""#), "task[0].forked", "no phase forks t");
    wrong(&task(r#""daemon": true,"#, r#""yield""#), "task", "all tasks are daemons");
    let fork = |times: u32| {
        format!(
            r#"{{ "name": "u", "phases": [ {{ "loop": {{ "times": {times}, "phases": [ {{ "fork": "t" }} ] }} }} ] }}"#
        )
    };
    let forked = |times| {
        format!(
            r#"{{ "task": [ {{ "name": "t", "forked": true, "count": 2, "phases": [ "yield" ] }}, {} ] }}"#,
            fork(times)
        )
    };
    wrong(
        &forked(3),
        "task[1].phases[0].loop.phases[0]",
        "t is forked 3 times, and its count is 2",
    );
    wrong(
        r#"{ "task": [ { "name": "t", "phases": [ "yield" ] } ], "pipe": { "p": {} } }"#,
        "pipe.p",
        "no phase names this pipe",
    );
    wrong(
        r#"{ "task": [ { "name": "t", "phases": [ { "exec": "l" } ] } ], "list": { "l": [ "yield", { "exec": "l" } ] } }"#,
        "list.l",
        "continues with itself for ever and takes no time",
    );
}

#[test]
fn a_script_that_misuses_a_mutex_ends_the_run_with_the_tasks_name() {
    use schedsim::workload::{Action, Mutex, Operation, Shared};
    let unlock =
        super::task(super::NOW, &[(5, Action::Do(Operation::Unlock(0))), (5, Action::Exit)]);
    let shared = Shared {
        mutexes: vec![Mutex { name: "m".into(), handoff: false, inherit: false, spin: None }],
        ..Shared::NOTHING
    };
    let workload = Workload { tasks: vec![unlock], shared, ..Workload::default() };
    let message =
        super::run("central:rr", &Machine::ideal(1), &workload).0.unwrap_err().to_string();
    assert_eq!(message, "at 5ns: task 0 (t) unlocks the mutex m, which is not locked");
}

#[test]
fn json_round_trips() {
    let text = r#"[ { "name": "t", "count": 2, "policy": "rr", "priority": 7, "affinity": [0, 2], "start": "1500ns", "phases": [ "yield",
        { "timer": { "period": "20us", "name": "x", "mode": "absolute", "shared": true } }, { "io": { "device": "d", "service": "1us", "bytes": 256, "operation": "write" } },
        { "loop": { "phases": [ { "run": "1us" } ] } } ] } ]"#;
    let closed = tasks(text);
    let json = serde_json::to_string(&closed).unwrap();
    assert_eq!(serde_json::from_str::<Closed>(&json).unwrap(), closed);
    assert!(json.contains(r#""start":"1500ns""#) && !json.contains("nice"), "{json}");
}

/// Phases that cannot deadlock anywhere.
fn any_phases() -> impl Strategy<Value = Vec<Phase>> {
    let us = (0u64..60).prop_map(Nanos::from_micros);
    let timer = (1u64..40).prop_map(|us| TimerPhase {
        period: Nanos::from_micros(us),
        name: String::new(),
        mode: Default::default(),
        shared: false,
    });
    let critical = (0..2u8, us.clone()).prop_map(|(mutex, span)| {
        vec![Phase::Lock(mutex.to_string()), Phase::Run(span), Phase::Unlock(mutex.to_string())]
    });
    let section = prop_oneof![
        3 => us.clone().prop_map(|span| vec![Phase::Run(span)]),
        1 => us.clone().prop_map(|span| vec![Phase::Sleep(span)]),
        1 => Just(vec![Phase::Yield]),
        3 => critical,
        1 => timer.prop_map(|timer| vec![Phase::Timer(timer)]),
        1 => us.prop_map(|service| serde_json::from_value(serde_json::json!([{ "io": { "device": "d", "service": service.exact() } }])).unwrap()),
        2 => (1u64..3000).prop_map(|bytes| vec![Phase::Write { pipe: "p".into(), bytes }, Phase::Signal("nobody".into())]),
    ];
    let list = proptest::collection::vec(section, 1..6).prop_map(|sections| sections.concat());
    (list, 1u64..4)
        .prop_map(|(list, times)| vec![Phase::repeat(times, list), Phase::Barrier("end".into())])
}

/// Random tasks, forked by one that joins them, and one that reads what they write.
fn any_closed() -> impl Strategy<Value = Closed> {
    proptest::collection::vec(any_phases(), 1..7).prop_map(|lists| {
        let mut written = 0;
        let count = |phases: &[Phase]| {
            phases
                .iter()
                .map(|phase| if let Phase::Write { bytes, .. } = phase { *bytes } else { 0 })
                .sum::<u64>()
        };
        let mut closed = Closed::default();
        let mut main = Vec::new();
        for (index, phases) in lists.into_iter().enumerate() {
            let name = format!("t{index}");
            if let Phase::Loop(inner) = &phases[0] {
                written += count(&inner.phases) * inner.times.unwrap();
            }
            main.push(Phase::Fork(name.clone()));
            closed.tasks.push(Tasks { forked: true, ..Tasks::new(&name, phases) });
        }
        main.extend((0..closed.tasks.len()).map(|index| Phase::Join(format!("t{index}"))));
        closed.tasks.push(Tasks::new("main", main));
        if written > 0 {
            closed.tasks.push(Tasks::new(
                "reader",
                vec![Phase::Read { pipe: "p".into(), bytes: written, partial: false }],
            ));
            closed
                .pipes
                .insert("p".into(), serde_json::from_str(r#"{ "capacity": 5000 }"#).unwrap());
        }
        closed
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_phases_end_under_every_policy_and_keep_all_rules(
        closed in any_closed(),
        cpus in 1u16..5,
        handoff: bool,
    ) {
        let mut closed = closed;
        if handoff && serde_json::to_string(&closed).unwrap().contains(r#""lock":"0""#) {
            closed
                .mutexes
                .insert("0".into(), serde_json::from_str(r#"{ "handoff": true }"#).unwrap());
        }
        let workload = Workload::of(&closed, cpus).unwrap();
        let machine = Machine {
            switch_cost: Nanos(700),
            migration_cost: Nanos(900),
            idle_exit: Nanos(2_000),
            ..Machine::ideal(cpus)
        };
        for policy in ["central:rr", "initial:rr", "take:rr", "eevdf", "cfs", "fifo", "rr"] {
            let mut checks = Checks::new(&workload, &machine, Default::default());
            let (spec, options) =
                (PolicySpec::parse(policy).unwrap(), Options { seed: 1, until: Time::NEVER });
            let outcome = engine::simulate_named(
                &workload,
                &machine,
                &spec,
                options,
                Trace::new(vec![&mut checks]),
            );
            prop_assert!(outcome.is_ok(), "{policy}: {}", outcome.unwrap_err());
            prop_assert_eq!(outcome.as_ref().unwrap().useful, workload.demand(), "{}", policy);
            prop_assert_eq!(checks.finish(outcome.as_ref().unwrap()), vec![], "{}", policy);
        }
    }
}

#[test]
fn a_load_beside_a_workload_behaves_as_alone_and_ends_with_it() {
    // Each shares one object of each kind, all on one CPU of its own.
    let closed = |cpu: u16, run: &str| {
        let mut closed = tasks(&format!(
            r#"[ {{ "name": "a", "affinity": [{cpu}], "phases": [
                    {{ "fork": "c" }}, {{ "lock": "m" }}, {{ "run": "{run}" }}, {{ "signal": "s" }}, {{ "unlock": "m" }}, {{ "barrier": "b" }},
                    {{ "loop": {{ "times": 3, "phases": [ {{ "run": "{run}" }}, {{ "write": {{ "pipe": "p", "bytes": 10 }} }}, {{ "send": {{ "socket": "k", "bytes": 10 }} }}, {{ "post": {{ "eventfd": "e" }} }}, {{ "timer": {{ "period": "90us" }} }} ] }} }},
                    {{ "join": "c" }}, {{ "run": "{run}" }} ] }},
                 {{ "name": "b", "affinity": [{cpu}], "phases": [
                    {{ "lock": "m" }}, {{ "wait": {{ "condition": "s", "mutex": "m" }} }}, {{ "unlock": "m" }}, {{ "barrier": "b" }},
                    {{ "loop": {{ "times": 3, "phases": [ {{ "read": {{ "pipe": "p", "bytes": 10 }} }}, {{ "receive": {{ "socket": "k", "bytes": 10 }} }}, {{ "take": {{ "eventfd": "e" }} }}, {{ "io": {{ "device": "d", "service": "7us" }} }} ] }} }} ] }},
                 {{ "name": "c", "affinity": [{cpu}], "forked": true, "phases": [ {{ "broadcast": "s" }}, {{ "run": "5us" }} ] }} ]"#
        ));
        // Each post is taken by itself, however many there are.
        let semaphore = r#"{ "semaphore": true }"#;
        closed.eventfds.insert("e".into(), serde_json::from_str(semaphore).unwrap());
        Workload::of(&closed, 2).unwrap()
    };
    let (mut first, load) = (closed(0, "1ms"), closed(1, "20us"));
    // A signal may come before any task waits: the forking task starts later.
    let policy = PolicySpec::parse("initial:rr?quantum=1s").unwrap();
    let seen = |workload: &Workload| {
        let mut collect = Collect::default();
        let options = Options { seed: 1, until: Time::NEVER };
        let outcome = engine::simulate_named(
            workload,
            &Machine::ideal(2),
            &policy,
            options,
            Trace::new(vec![&mut collect]),
        );
        (outcome.map(|outcome| outcome.end), switches(&collect.0))
    };
    first.tasks[0].start = schedsim::workload::Start::At(Time(100));
    let mut load = load;
    load.tasks[0].start = schedsim::workload::Start::At(Time(100));
    let ((end, alone), (own_end, _)) = (seen(&load), seen(&first));
    end.unwrap();
    let (both_end, both) = seen(&first.clone().beside(&load));
    assert_eq!(both_end, own_end);
    let shifted = |task: i64| if task < 0 { task } else { task - 3 };
    let of_load: Vec<_> = both
        .into_iter()
        .filter(|&(_, cpu, ..)| cpu == 1)
        .map(|(time, cpu, prev, next)| (time, cpu, shifted(prev), shifted(next)))
        .collect();
    assert!(alone.len() > 10, "{alone:?}");
    assert_eq!(of_load, alone);
    // One that never ends is stopped with the other.
    let endless = Closed {
        duration: Some(Nanos::from_millis(900)),
        ..tasks(
            r#"[ { "name": "e", "affinity": [1], "phases": [ { "loop": { "phases": [ { "run": "1ms" } ] } } ] } ]"#,
        )
    };
    let mut endless = Workload::of(&endless, 2).unwrap();
    endless.shared.groups.clear();
    assert_eq!(seen(&first.beside(&endless)).0, own_end);
}
