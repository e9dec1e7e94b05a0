//! Event loops that are written out: each object is handled in its own order, whatever the order in
//! which they have data.

use super::{run, switches};
use schedsim::trace::Event;
use schedsim::workload::{Closed, Workload};
use schedsim::{Machine, Nanos};

fn closed(rest: &str, phases: &str, others: &str) -> Closed {
    let text = format!(
        r#"{{ "epoll": {{ "w": {{ "sources": [ {{ "pipe": "p" }}, {{ "pipe": "q" }} ] }} }}, {rest}
            "task": [ {{ "name": "server", "phases": [ {phases} ] }}, {others} ] }}"#
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn simulated(closed: &Closed) -> Vec<Event> {
    let workload = Workload::of(closed, 2).unwrap_or_else(|error| panic!("{error}"));
    let (outcome, events) = run("fifo", &Machine::ideal(2), &workload);
    outcome.unwrap_or_else(|error| panic!("{error}"));
    events
}

/// When the server gives up its CPU, in microseconds.
fn ends(events: &[Event]) -> Vec<u64> {
    let switches = switches(events).into_iter().filter(|(_, _, prev, _)| *prev == 0);
    switches.map(|(time, ..)| time / 1000).collect()
}

const READ: [&str; 2] =
    [r#"{ "read": { "pipe": "p", "bytes": 1 } }"#, r#"{ "read": { "pipe": "q", "bytes": 1 } }"#];

/// A writer that waits between its writes.
fn writer(name: &str, pipe: &str, times: u32, pause: &str) -> String {
    format!(
        r#"{{ "name": "{name}", "phases": [ {{ "loop": {{ "times": {times}, "phases": [
            {{ "sleep": "{pause}" }}, {{ "write": {{ "pipe": "{pipe}", "bytes": 1 }} }} ] }} }} ] }}"#
    )
}

#[test]
fn each_object_is_handled_in_its_own_order() {
    let [p, q] = READ;
    let event_loop = format!(
        r#"{{ "event_loop": {{ "epoll": "w", "handle": [
            [ [ {p}, {{ "run": "1us" }} ], [ {p}, {{ "run": "2us" }} ], [ {p}, {{ "run": "3us" }} ] ],
            [ [ {q}, {{ "run": "100us" }} ] ] ] }} }}"#
    );
    // The order of the objects is not that of the file: q comes between the first and the second p.
    let others = [writer("a", "p", 3, "400us"), writer("b", "q", 1, "600us")].join(",");
    let events = simulated(&closed("", &event_loop, &others));
    assert_eq!(ends(&events), [0, 401, 700, 802, 1203]);
    // A nudge of the order: q comes first, and the work of each stays its own.
    let others = [writer("a", "p", 3, "400us"), writer("b", "q", 1, "200us")].join(",");
    assert_eq!(ends(&simulated(&closed("", &event_loop, &others))), [0, 300, 401, 802, 1203]);
}

/// More data than the loop takes wakes nobody, and is there for what follows.
#[test]
fn an_object_whose_rounds_are_done_is_not_heard() {
    let [p, q] = READ;
    let phases = format!(
        r#"{{ "event_loop": {{ "epoll": "w", "handle": [ [ [ {p} ] ], [ [ {q} ] ] ] }} }},
           {{ "loop": {{ "times": 4, "phases": [ {p}, {{ "run": "1us" }} ] }} }}"#
    );
    let others = [writer("a", "p", 5, "100us"), writer("b", "q", 1, "900us")].join(",");
    let events = simulated(&closed("", &phases, &others));
    assert_eq!(ends(&events), [0, 100, 904], "woken by the first p and by q alone");
}

#[test]
fn a_repeated_event_loop_begins_anew() {
    let [p, q] = READ;
    let phases = format!(
        r#"{{ "loop": {{ "times": 2, "phases": [ {{ "run": "5us" }}, {{ "event_loop": {{ "epoll": "w",
            "handle": [ [ [ {p}, {{ "run": "1us" }} ] ], [ [ {q}, {{ "run": "2us" }} ] ] ] }} }} ] }} }}"#
    );
    let others = [writer("a", "p", 2, "100us"), writer("b", "q", 2, "150us")].join(",");
    let closed = closed("", &phases, &others);
    assert_eq!(ends(&simulated(&closed)), [5, 101, 157, 201, 302]);
    assert_eq!(Workload::of(&closed, 2).unwrap().demand(), Nanos(16_000));
}

#[test]
fn a_wait_without_handlers_takes_nothing() {
    let [p, _] = READ;
    let phases = format!(r#"{{ "serve": {{ "epoll": "w" }} }}, {{ "run": "7us" }}, {p}"#);
    let others = [writer("a", "p", 1, "100us"), writer("b", "q", 1, "900us")].join(",");
    assert_eq!(ends(&simulated(&closed("", &phases, &others))), [0, 107]);
}

#[test]
fn wrong_event_loops_are_refused_with_their_place() {
    let wrong = |handle: &str, rest: &str, others: &str, place: &str, message: &str| {
        let phases = format!(r#"{{ "event_loop": {{ "epoll": "w", "handle": {handle} }} }}"#);
        let invalid = Workload::of(&closed(rest, &phases, others), 4).unwrap_err();
        let place = format!("task[0].phases[0]{place}");
        assert_eq!(
            (invalid.key.as_str(), invalid.message.contains(message)),
            (place.as_str(), true),
            "{}: {handle}",
            invalid.message
        );
    };
    let writers = [writer("a", "p", 1, "1us"), writer("b", "q", 1, "1us")].join(",");
    let [p, q] = READ;
    let round = ".event_loop.handle[1][0]";
    let with = |phase: &str| format!("[ [ [ {p} ] ], [ [ {q}, {phase} ] ] ]");
    let is_wrong = |handle: &str, place: &str, message: &str| {
        wrong(handle, "", &writers, place, message);
    };
    is_wrong("[ [ ] ]", "", "the set has 2 sources, and 1 are handled");
    is_wrong("[ ]", "", "the set has 2 sources, and 0 are handled");
    is_wrong("[ [ ], [ ] ]", "", "no object has a round");
    is_wrong("[ [ ], [ [ ] ] ]", round, "nothing is done here");
    let at = format!("{round}[1]");
    is_wrong(&with(r#"{ "lock": "m" }"#), round, "gives back the mutexes that it takes");
    is_wrong(&with(r#"{ "unlock": "m" }"#), &at, "does not hold it");
    is_wrong(&with(r#"{ "serve": { "epoll": "w" } }"#), &at, "in one event loop at a time");
    is_wrong(&with(r#"{ "fork": "nobody" }"#), &at, "no task named nobody");
    is_wrong(
        &with(r#"{ "loop": { "phases": [ { "run": "1us" } ] } }"#),
        &at,
        "never returns to its event loop",
    );
    is_wrong(
        &with(r#"{ "loop": { "times": 2, "phases": [ { "exec": "l" } ] } }"#),
        &format!("{at}.loop.phases[0]"),
        "never returns to its event loop",
    );
    let other = r#"{ "name": "other", "count": 3, "phases": [ { "serve": { "epoll": "w" } } ] }"#;
    let others = format!("{writers}, {other}");
    wrong(&with(r#""yield""#), "", &others, "", "4 tasks wait for the set w");
}
