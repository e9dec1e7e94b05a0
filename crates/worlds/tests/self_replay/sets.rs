//! Sets: waits for room, sources that are edge-triggered or watched once, and changes of what is
//! watched.

use super::*;

/// Of a server that handles what comes: a nudge goes with the place in the original's order, so
/// another order would have other costs.
fn unnudged(text: &str) -> Original {
    Original { nudge: None, ..Original::of(text, 2) }
}

#[test]
fn polls_for_room_are_replayed_exactly_under_any_policy() {
    let text = r#"{ "pipe": { "p": { "capacity": 4096 } },
        "epoll": { "room": { "sources": [ { "send_room": "s" } ] },
                   "free": { "sources": [ { "pipe_room": "p" } ] } },
        "task": [
        { "name": "sends", "count": 2, "phases": [ { "loop": { "times": 40, "phases": [
            { "run": "7us" }, { "poll": "room" }, { "send": { "socket": "s", "bytes": 30000 } } ] } } ] },
        { "name": "receives", "phases": [ { "loop": { "times": 80, "phases": [
            { "receive": { "socket": "s", "bytes": 30000 } }, { "run": "41us" } ] } } ] },
        { "name": "writes", "phases": [ { "loop": { "times": 60, "phases": [
            { "run": "3us" }, { "poll": "free" }, { "write": { "pipe": "p", "bytes": 3000 } } ] } } ] },
        { "name": "reads", "phases": [ { "loop": { "times": 60, "phases": [
            { "read": { "pipe": "p", "bytes": 3000 } }, { "run": "23us" } ] } } ] } ] }"#;
    let original = Original::of(text, 2);
    is_exact("rooms", &original);
    // The waits are in the recording: without them the senders would block elsewhere.
    let (program, _) = original.recorded("eevdf", true);
    assert_eq!(program.shared.epolls.len(), 2, "{:?}", program.shared.epolls);
}

/// A server that reads questions, and writes each answer when there is room for it.
fn answering(trigger: &str) -> String {
    format!(
        r#"{{ "duration": "1s", "pipe": {{ "back": {{ "capacity": 4096 }} }},
        "eventfd": {{ "e": {{ "semaphore": true }} }},
        "epoll": {{ "w": {{ "sources": [
            {{ "pipe": "p" }}, {{ "eventfd": "e" }},
            {{ "pipe_room": "back", "trigger": "{trigger}", "off": true }} ] }} }},
        "task": [
        {{ "name": "server", "daemon": true, "phases": [ {{ "loop": {{ "phases": [
            {{ "serve": {{ "epoll": "w", "handle": [
                [ {{ "run": "3001ns" }}, {{ "read": {{ "pipe": "p", "bytes": 20 }} }}, {{ "run": "2us" }},
                  {{ "watch": {{ "epoll": "w", "source": {{ "pipe_room": "back" }} }} }} ],
                [ {{ "run": "1103ns" }}, {{ "take": {{ "eventfd": "e" }} }} ],
                [ {{ "run": "5us" }}, {{ "write": {{ "pipe": "back", "bytes": 3000 }} }},
                  {{ "watch": {{ "epoll": "w", "source": {{ "pipe_room": "back" }}, "off": true }} }}
                ] ] }} }} ] }} }} ] }},
        {{ "name": "asks", "count": 1, "phases": [ {{ "loop": {{ "times": 60, "phases": [
            {{ "run": "6151ns" }}, {{ "write": {{ "pipe": "p", "bytes": 20 }} }},
            {{ "take": {{ "eventfd": "go" }} }} ] }} }} ] }},
        {{ "name": "posts", "phases": [ {{ "loop": {{ "times": 50, "phases": [
            {{ "run": "1us" }}, {{ "sleep": "31us" }}, {{ "post": {{ "eventfd": "e" }} }} ] }} }} ] }},
        {{ "name": "reads", "phases": [ {{ "loop": {{ "times": 60, "phases": [
            {{ "run": "47us" }}, {{ "read": {{ "pipe": "back", "bytes": 3000 }} }},
            {{ "post": {{ "eventfd": "go" }} }} ] }} }} ] }} ] }}"#
    )
}

#[test]
fn answers_that_wait_for_room_in_a_set_are_replayed_exactly_under_any_policy() {
    for trigger in ["level", "once"] {
        let original = unnudged(&answering(trigger));
        is_exact(trigger, &original);
        let (program, report) = original.recorded("eevdf", true);
        assert_eq!((report.event_loops, report.doubted_waits), (1, 0), "{report:?}");
        let sources = &program.shared.epolls[0].sources;
        assert!(sources.iter().any(|source| source.is_off), "{sources:?}");
    }
}

/// A server that takes all that there is when it hears of it once, and one that is told of each
/// message until it says that it wants the next.
#[test]
fn sources_that_are_edge_triggered_or_watched_once_are_replayed_exactly_under_any_policy() {
    let server = |trigger: &str, bytes: u32, again: &str| {
        format!(
            r#"{{ "duration": "1s",
            "epoll": {{ "w": {{ "sources": [
                {{ "pipe": "p", "trigger": "{trigger}" }},
                {{ "socket": "s", "trigger": "{trigger}" }} ] }} }},
            "task": [
            {{ "name": "server", "daemon": true, "phases": [ {{ "loop": {{ "phases": [
                {{ "serve": {{ "epoll": "w", "handle": [
                    [ {{ "run": "3001ns" }},
                      {{ "read": {{ "pipe": "p", "bytes": {bytes}, "partial": true }} }}, {{ "run": "2us" }}
                      {} ],
                    [ {{ "run": "1103ns" }},
                      {{ "receive": {{ "socket": "s", "bytes": {bytes}, "partial": true }} }}
                      {} ] ] }} }} ] }} }} ] }},
            {{ "name": "writes", "phases": [ {{ "loop": {{ "times": 60, "phases": [
                {{ "run": "1us" }}, {{ "sleep": "29us" }},
                {{ "write": {{ "pipe": "p", "bytes": 20 }} }} ] }} }}, {{ "sleep": "1ms" }} ] }},
            {{ "name": "sends", "phases": [ {{ "loop": {{ "times": 60, "phases": [
                {{ "run": "1us" }}, {{ "sleep": "37us" }},
                {{ "send": {{ "socket": "s", "bytes": 20 }} }} ] }} }}, {{ "sleep": "1ms" }} ] }} ] }}"#,
            again.replace("OBJECT", r#""pipe": "p""#),
            again.replace("OBJECT", r#""socket": "s""#)
        )
    };
    let again = r#", { "watch": { "epoll": "w", "source": { OBJECT } } }"#;
    for (trigger, bytes, again) in
        [("edge", 65_536, ""), ("drained", 65_536, ""), ("drained", 20, ""), ("once", 20, again)]
    {
        let original = unnudged(&server(trigger, bytes, again));
        is_exact(&format!("{trigger} {bytes}"), &original);
    }
}
