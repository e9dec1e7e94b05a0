//! Streams that the engine never produces, by hand: one CPU more than tasks, 100 ns, task 0 works
//! 30 ns and task 1 works 20 ns.

use super::{ALL_PROMISES, LOCAL, rules};
use crate::support::{at, event, switch, task, wakeup_new, waking, workload};
use schedsim::checks::{Checks, Rule};
use schedsim::engine::Outcome;
use schedsim::policy::Promises;
use schedsim::trace::PrevState::{Blocked, Dead, Runnable};
use schedsim::trace::{Event, EventKind, Observer, OverheadKind};
use schedsim::workload::Action;
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
fn by_hand(promises: Promises, idle_exit: u64, events: &[Event], outcome: Outcome) -> Vec<Rule> {
    let load = workload(vec![
        task(at(0), [(10, Action::Sleep(Nanos(5))), (20, Action::Exit)]),
        task(at(50), [(20, Action::Exit)]),
    ]);
    let machine = Machine { idle_exit: Nanos(idle_exit), ..Machine::ideal(3) };
    let mut checks = Checks::new(&load, &machine, promises);
    checks.events(events);
    rules(&checks.finish(&outcome))
}

const OUTCOME: Outcome = Outcome { end: Time(100), events: 0, useful: Nanos(50), random: false };

fn right() -> Vec<Event> {
    vec![
        wakeup_new(0, 0, 0),
        switch(0, 0, -1, Runnable, 0),
        switch(10, 0, 0, Blocked, -1),
        waking(15, 0, 1),
        switch(15, 1, -1, Runnable, 0),
        switch(35, 1, 0, Dead, -1),
        wakeup_new(50, 1, 0),
        switch(50, 0, -1, Runnable, 1),
        switch(70, 0, 1, Dead, -1),
    ]
}

/// The valid stream, with `change` applied to it.
fn changed(change: impl FnOnce(&mut Vec<Event>)) -> Vec<Rule> {
    let mut events = right();
    change(&mut events);
    by_hand(ALL_PROMISES, 0, &events, OUTCOME)
}

fn without(index: usize) -> impl FnOnce(&mut Vec<Event>) {
    move |events| {
        events.remove(index);
    }
}

#[test]
fn the_stream_that_is_right_passes() {
    assert_eq!(changed(|_| ()), []);
}

#[test]
fn a_task_on_two_cpus_is_caught() {
    assert!(
        changed(|events| events.insert(2, switch(5, 2, -1, Runnable, 0))).contains(&Rule::OneCpu)
    );
}

#[test]
fn a_task_that_runs_while_it_is_blocked_unborn_or_dead_is_caught() {
    assert_eq!(changed(without(3)), [Rule::RunsWhenReady]);
    assert_eq!(changed(without(6)), [Rule::RunsWhenReady]);
    let dead = |events: &mut Vec<Event>| {
        events.extend([switch(80, 0, -1, Runnable, 1), switch(80, 0, 1, Dead, -1)])
    };
    assert_eq!(changed(dead), [Rule::RunsWhenReady]);
}

#[test]
fn a_task_that_is_never_started_is_lost() {
    assert_eq!(changed(|events| events.truncate(6)), [Rule::NoneLost, Rule::CpuTime]);
}

#[test]
fn cpu_time_that_is_made_or_lost_is_caught() {
    // A nanosecond too much or too little work, in the stream or in the engine's sum.
    let later = |events: &mut Vec<Event>| events[8].time = Time(71);
    assert_eq!(changed(later), [Rule::CpuTime]);
    assert_eq!(
        by_hand(ALL_PROMISES, 0, &right(), Outcome { useful: Nanos(49), ..OUTCOME }),
        [Rule::CpuTime]
    );
    // Missing overhead, overhead longer than its interval, or charged to an uninvolved task.
    let overhead = |time, payer, spent| {
        event(
            time,
            0,
            EventKind::Overhead {
                task: TaskId(payer),
                kind: OverheadKind::Switch,
                spent: Nanos(spent),
            },
        )
    };
    assert_eq!(changed(|events| events.insert(2, overhead(0, 0, 3))), [Rule::CpuTime]);
    assert_eq!(changed(|events| events.insert(2, overhead(0, 0, 11))), [Rule::CpuTime]);
    assert_eq!(changed(|events| events.insert(4, overhead(15, 0, 0))), [Rule::CpuTime]);
    // A run that ends before its last event.
    assert!(
        by_hand(ALL_PROMISES, 0, &right(), Outcome { end: Time(60), ..OUTCOME })
            .contains(&Rule::Stream)
    );
}

#[test]
fn a_contradictory_stream_is_caught() {
    assert!(changed(|events| events[2] = switch(10, 0, 1, Blocked, -1)).contains(&Rule::Stream));
    assert!(changed(|events| events.insert(2, waking(5, 0, 0))).contains(&Rule::Stream));
    assert!(changed(|events| events.swap(1, 2)).contains(&Rule::Stream));
    assert!(changed(|events| events.push(waking(90, 9, 0))).contains(&Rule::Stream));
    assert!(changed(|events| events.push(switch(90, 7, -1, Runnable, 1))).contains(&Rule::Stream));
}

#[test]
fn idling_beside_a_waiting_task_is_allowed_for_as_long_as_leaving_idle_takes() {
    // The waking comes 4 ns earlier than the dispatch: three CPUs idle meanwhile.
    let mut events = right();
    events[3].time = Time(11);
    assert_eq!(by_hand(ALL_PROMISES, 3, &events, OUTCOME), [Rule::WorkConserving]);
    assert_eq!(by_hand(ALL_PROMISES, 4, &events, OUTCOME), []);
    assert_eq!(by_hand(LOCAL, 3, &events, OUTCOME), [Rule::LocallyWorkConserving]);
    assert_eq!(by_hand(Promises::default(), 0, &events, OUTCOME), []);
    // Placed elsewhere than where it runs: only its own queue's CPU counts for the weaker promise.
    events[3] = waking(11, 0, 0);
    events.insert(0, wakeup_new(0, 1, 0));
    events.insert(4, switch(10, 0, -1, Runnable, 1));
    events.retain(|event| event.time < Time(50) || event.cpu != CpuId(0));
    assert!(!by_hand(LOCAL, 3, &events, OUTCOME).contains(&Rule::LocallyWorkConserving));
    assert!(by_hand(ALL_PROMISES, 3, &events, OUTCOME).contains(&Rule::WorkConserving));
}
