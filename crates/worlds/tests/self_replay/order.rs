//! What keeps its recorded order.

use super::{Original, POLICIES, replayed};

/// Readers that take turns by a lock of which the recording has no calls: the order of the lock
/// stays as recorded, and so must that of the pipe, or they wait for each other.
#[test]
fn what_unseen_locks_order_keeps_its_order() {
    let text = r#"{ "task": [
        { "name": "reader", "count": 3, "phases": [ { "loop": { "times": 20, "phases": [
            { "run": "9us" }, { "lock": "m" }, { "read": { "pipe": "p", "bytes": 4 } },
            { "run": "3us" }, { "read": { "pipe": "p", "bytes": 300 } },
            { "unlock": "m" } ] } } ] },
        { "name": "writer", "phases": [ { "loop": { "times": 60, "phases": [
            { "run": "40us" }, { "write": { "pipe": "p", "bytes": 4 } },
            { "write": { "pipe": "p", "bytes": 300 } } ] } } ] } ] }"#;
    let original = Original::of(text, 2);
    let is_lock = |event: &recording::Event| matches!(event.what, recording::What::Call { op, .. } if op >= recording::lock::LOCK);
    let without_locks = |_: &[_], event| if is_lock(&event) { vec![] } else { vec![event] };
    let (program, report) = original.rewritten("eevdf", true, without_locks);
    assert!(report.ordered_objects == 1 && report.wakeups.tokens > 0, "{report:?}");
    for policy in POLICIES {
        assert!(!replayed(&program, &original, policy).is_empty());
    }
}

/// A handler that waits for another task is no part of an event loop: its order is the recorded one.
#[test]
fn a_server_that_waits_elsewhere_keeps_its_order() {
    let text = r#"{ "duration": "1s",
        "epoll": { "w": { "sources": [ { "pipe": "p" }, { "eventfd": "e" } ] } },
        "task": [
        { "name": "server", "daemon": true, "phases": [ { "loop": { "phases": [
            { "serve": { "epoll": "w", "handle": [
                [ { "run": "3us" }, { "read": { "pipe": "p", "bytes": 20 } },
                  { "write": { "pipe": "question", "bytes": 8 } },
                  { "read": { "pipe": "answer", "bytes": 8 } } ],
                [ { "run": "2us" }, { "take": { "eventfd": "e" } } ] ] } } ] } } ] },
        { "name": "backend", "phases": [ { "loop": { "times": 60, "phases": [
            { "read": { "pipe": "question", "bytes": 8 } }, { "run": "11us" },
            { "write": { "pipe": "answer", "bytes": 8 } } ] } } ] },
        { "name": "asks", "count": 2, "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "6us" }, { "write": { "pipe": "p", "bytes": 20 } } ] } } ] },
        { "name": "posts", "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "9us" }, { "post": { "eventfd": "e" } } ] } } ] } ] }"#;
    let original = Original::of(text, 2);
    let (program, report) = original.recorded("eevdf", true);
    // Rounds that handle the counter alone may be loops.
    assert!(report.loop_rounds < 20 && report.operations > 200, "{report:?}");
    assert_eq!((report.wakeups.tokens, report.doubted_objects), (0, 0), "{report:?}");
    for policy in POLICIES {
        assert!(!replayed(&program, &original, policy).is_empty());
    }
}
