//! What happens once: a kernel sees the end of a pipe, the program of a created task, a signal and a
//! page fault. The workloads have event counters and devices in their place, and the recordings are
//! rewritten to what a kernel's would have.

use super::*;
use recording::{Class, Event as Recorded, What};

const CLOSE: u16 = 3;
const SIGSUSPEND: u16 = 130;
const SIGTIMEDWAIT: u16 = 128;
const RESTARTS: i64 = -514;
const BROKEN: i64 = -32;

/// The first object of a class that the recording announces, at `place` among them.
fn object(events: &[Recorded], class: Class, place: usize) -> u64 {
    let ids = events.iter().filter_map(|event| match event.what {
        What::Object { id, class: of, .. } if of == class => Some(id),
        _ => None,
    });
    ids.collect::<Vec<_>>()[place]
}

/// The same without a counter: a call that adds to it becomes `close` of the pipe, or none if the
/// task's end closes it. A poll of it becomes `read` or `write` of the pipe.
fn without_counter(
    events: &[Recorded],
    event: Recorded,
    is_closed: bool,
    (number, result): (u16, i64),
) -> Vec<Recorded> {
    let (pipe, counter) = (object(events, Class::Pipe, 0), object(events, Class::Eventfd, 0));
    let polls = |tid: u32| {
        let is_member = |of: &&Recorded| matches!(of.what, What::Member { .. });
        events.iter().filter(is_member).any(|of| of.tid == tid)
    };
    let what = match event.what {
        What::Object { id, .. } if id == counter => return Vec::new(),
        What::Member { .. } => return Vec::new(),
        What::Call { object, duration, .. } if object == counter => {
            if !is_closed {
                return Vec::new();
            }
            What::Call { object: pipe, result: 0, number: CLOSE, op: 0, duration }
        }
        What::Call { number: 7, duration, .. } => {
            What::Call { object: pipe, result, number, op: 0, duration }
        }
        What::Waking { task, target, prio, object, .. } if object == counter => {
            let (call, object) = if is_closed { (CLOSE + 1, pipe) } else { (0, 0) };
            What::Waking { task, target, prio, call, object }
        }
        What::Switch { state: 1, prev_prio, next, next_prio, prev_tgid, object: 0 }
            if polls(event.tid) =>
        {
            What::Switch { state: 1, prev_prio, next, next_prio, prev_tgid, object: pipe }
        }
        what => what,
    };
    vec![Recorded { what, ..event }]
}

#[test]
fn the_end_of_a_file_is_replayed_exactly_under_any_policy() {
    // Its writer is slow, so that readers sleep until the end, or fast, so that none has to.
    for (work, last) in [("40us", "35us"), ("1us", "3us"), ("40us", "1us")] {
        let text = format!(
            r#"{{ "epoll": {{ "end": {{ "sources": [ {{ "eventfd": "closed" }} ] }} }}, "task": [
            {{ "name": "reader", "count": 3, "phases": [ {{ "loop": {{ "times": 20, "phases": [
                {{ "run": "9us" }}, {{ "read": {{ "pipe": "p", "bytes": 100 }} }} ] }} }},
                {{ "run": "7us" }}, {{ "poll": "end" }}, {{ "run": "11us" }} ] }},
            {{ "name": "writer", "phases": [ {{ "loop": {{ "times": 60, "phases": [
                {{ "run": "{work}" }}, {{ "write": {{ "pipe": "p", "bytes": 100 }} }} ] }} }},
                {{ "run": "{last}" }}, {{ "post": {{ "eventfd": "closed" }} }} ] }} ] }}"#
        );
        let original = Original::of(&text, 2);
        for is_closed in [true, false] {
            is_exact_with(&format!("{work}, closed {is_closed}"), &original, |policy| {
                let ends = |events: &[Recorded], event: Recorded| {
                    without_counter(events, event, is_closed, (0, 0))
                };
                let (program, report) = original.rewritten(policy, true, ends);
                assert_eq!(program.shared.eventfds.len(), 1, "{report:?}");
                (program, report)
            });
        }
        // A writer that never ends nor closes ends nothing, and nothing waits for it.
        let (program, _) = original.rewritten("eevdf", true, |events, event| {
            let is_end = matches!(event.what, What::Exit { .. } | What::Waking { call: 4, .. });
            let mut all = without_counter(events, event, true, (0, 0));
            all.retain(|event| !is_end && !matches!(event.what, What::Call { number: CLOSE, .. }));
            all
        });
        assert!(!replayed(&program, &original, "eevdf").is_empty());
    }
}

/// `poll` is over at the end of a file, and the read that follows finds it.
#[test]
fn a_poll_that_the_end_of_a_file_ends_is_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "epoll": { "end": { "sources": [ { "pipe": "p" }, { "eventfd": "closed" } ] },
                        "over": { "sources": [ { "eventfd": "closed" } ] } }, "task": [
        { "name": "reader", "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "9us" }, { "poll": "end" }, { "read": { "pipe": "p", "bytes": 100 } } ] } },
            { "run": "7us" }, { "poll": "end" }, { "poll": "over" }, { "run": "11us" } ] },
        { "name": "writer", "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "23us" }, { "write": { "pipe": "p", "bytes": 100 } } ] } },
            { "run": "30us" }, { "post": { "eventfd": "closed" } } ] } ] }"#,
        2,
    );
    is_exact_with("polled", &original, |policy| {
        let (mut polls, reads) = (0, 30);
        original.rewritten(policy, true, |events, event| {
            let (pipe, counter) =
                (object(events, Class::Pipe, 0), object(events, Class::Eventfd, 0));
            let what = match event.what {
                What::Object { id, .. } if id == counter => return Vec::new(),
                What::Member { object, .. } if object == counter => return Vec::new(),
                What::Call { object, duration, .. } if object == counter => {
                    What::Call { object: pipe, result: 0, number: CLOSE, op: 0, duration }
                }
                // The last one is a read.
                What::Call { number: 7, duration, .. } => {
                    polls += 1;
                    if polls <= reads + 1 {
                        return vec![event];
                    }
                    What::Call { object: pipe, result: 0, number: 0, op: 0, duration }
                }
                What::Waking { task, target, prio, object, .. } if object == counter => {
                    What::Waking { task, target, prio, call: CLOSE + 1, object: pipe }
                }
                what => what,
            };
            vec![Recorded { what, ..event }]
        })
    });
}

#[test]
fn a_broken_pipe_is_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "epoll": { "broken": { "sources": [ { "eventfd": "closed" } ] } }, "task": [
        { "name": "writer", "phases": [ { "loop": { "times": 9, "phases": [
            { "run": "9us" }, { "write": { "pipe": "p", "bytes": 100 } } ] } },
            { "run": "7us" }, { "poll": "broken" }, { "run": "11us" } ] },
        { "name": "reader", "phases": [ { "loop": { "times": 9, "phases": [
            { "run": "30us" }, { "read": { "pipe": "p", "bytes": 100 } } ] } },
            { "run": "400us" }, { "post": { "eventfd": "closed" } }, { "run": "5us" } ] } ] }"#,
        2,
    );
    is_exact_with("broken", &original, |policy| {
        original.rewritten(policy, true, |events, event| {
            without_counter(events, event, true, (1, BROKEN))
        })
    });
}

#[test]
fn signals_are_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "eventfd": { "s": { "semaphore": true } }, "task": [
        { "name": "waits", "phases": [ { "loop": { "times": 40, "phases": [
            { "take": { "eventfd": "s" } }, { "run": "9us" } ] } } ] },
        { "name": "kills", "phases": [ "yield", { "loop": { "times": 40, "phases": [
            { "run": "31us" }, { "sleep": "50us" }, { "post": { "eventfd": "s" } } ] } } ] },
        { "name": "hog", "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "70us" }, { "sleep": "20us" } ] } } ] } ] }"#,
        2,
    );
    for (number, result) in [(SIGTIMEDWAIT, 10), (SIGSUSPEND, RESTARTS), (7, -4)] {
        is_exact_with(&format!("call {number}"), &original, |policy| {
            original.rewritten(policy, true, |events, event| {
                let counter = object(events, Class::Eventfd, 0);
                let what = match event.what {
                    What::Object { .. } => return Vec::new(),
                    What::Call { object, number: 0, duration, .. } if object == counter => {
                        What::Call { object: 0, result, number, op: 0, duration }
                    }
                    What::Call { object, .. } if object == counter => return Vec::new(),
                    What::Waking { task, target, prio, object, .. } if object == counter => {
                        What::Waking { task, target, prio, call: 0, object: 0 }
                    }
                    What::Switch { state, prev_prio, next, next_prio, prev_tgid, .. } => {
                        What::Switch { state, prev_prio, next, next_prio, prev_tgid, object: 0 }
                    }
                    what => what,
                };
                vec![Recorded { what, ..event }]
            })
        });
    }
}

/// A parent that lends its memory waits until its child runs a program of its own, and later for a
/// signal of its end.
#[test]
fn vfork_and_the_signal_of_an_end_are_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "epoll": { "runs": { "sources": [ { "eventfd": "r" } ] } }, "task": [
        { "name": "parent", "phases": [ { "run": "9us" }, { "fork": "child" }, { "poll": "runs" },
            { "run": "5us" }, "yield", { "run": "30us" }, { "join": "child" }, { "run": "8us" } ] },
        { "name": "child", "forked": true, "phases": [ { "run": "40us" },
            { "post": { "eventfd": "r" } }, { "run": "300us" } ] },
        { "name": "hog", "phases": [ { "loop": { "times": 9, "phases": [
            { "run": "70us" }, { "sleep": "20us" } ] } } ] } ] }"#,
        2,
    );
    is_exact_with("vfork", &original, |policy| {
        let (program, report) = original.rewritten(policy, true, |events, event| {
            let counter = object(events, Class::Eventfd, 0);
            let what = match event.what {
                What::Object { .. } | What::Member { .. } => return Vec::new(),
                What::Call { number: 7, .. } => return Vec::new(),
                What::Call { object, .. } if object == counter => return Vec::new(),
                What::Call { number: 247, duration, .. } => {
                    let (result, number) = (RESTARTS, SIGSUSPEND);
                    What::Call { object: 0, result, number, op: 0, duration }
                }
                What::Waking { task, target, prio, .. } => {
                    What::Waking { task, target, prio, call: 0, object: 0 }
                }
                what => what,
            };
            vec![Recorded { what, ..event }]
        });
        assert!(program.shared.eventfds[0].name.starts_with("program of task "), "{report:?}");
        (program, report)
    });
}

#[test]
fn page_faults_are_replayed_exactly_under_any_policy() {
    let original = Original::of(
        r#"{ "device": { "disk": { "channels": 4 } }, "task": [
        { "name": "faults", "count": 4, "phases": [ { "loop": { "times": 30, "phases": [
            { "run": "9us" }, { "io": { "device": "disk", "service": "80us" } },
            { "run": "5us" }, "yield" ] } } ] } ] }"#,
        2,
    );
    is_exact_with("pages", &original, |policy| {
        let (program, report) = original.rewritten(policy, true, |_, event| match event.what {
            What::Object { .. } | What::Timer { .. } | What::Call { number: 17, .. } => Vec::new(),
            What::Switch { state, prev_prio, next, next_prio, prev_tgid, .. } => {
                let what = What::Switch { state, prev_prio, next, next_prio, prev_tgid, object: 0 };
                vec![Recorded { what, ..event }]
            }
            What::Waking { .. } => vec![Recorded { context: 1, ..event }],
            _ => vec![event],
        });
        let devices: Vec<_> = program.shared.devices.iter().collect();
        assert_eq!((devices[0].name.as_str(), devices.len()), ("page faults", 1));
        assert!((2..=4).contains(&devices[0].channels), "{devices:?}");
        (program, report)
    });
}

/// A parent that waits for any child goes on when the first has ended, whichever that is.
#[test]
fn waits_for_any_child_are_replayed_exactly_under_any_policy() {
    const WAIT4: u16 = 61;
    let mut original = Original::of(
        r#"{ "eventfd": { "c": { "semaphore": true } }, "task": [
        { "name": "parent", "phases": [ { "run": "9us" }, { "fork": "long" }, { "fork": "short" },
            { "run": "5us" }, { "take": { "eventfd": "c" } }, { "run": "30us" },
            { "fork": "next" }, { "take": { "eventfd": "c" } }, { "run": "8us" },
            { "take": { "eventfd": "c" } }, { "run": "3us" } ] },
        { "name": "long", "forked": true, "phases": [ { "run": "300us" }, { "sleep": "150us" },
            { "run": "90us" }, { "post": { "eventfd": "c" } } ] },
        { "name": "short", "forked": true, "phases": [ { "run": "200us" },
            { "post": { "eventfd": "c" } } ] },
        { "name": "next", "forked": true, "phases": [ { "run": "70us" },
            { "post": { "eventfd": "c" } } ] },
        { "name": "hog", "count": 2, "phases": [ { "loop": { "times": 9, "phases": [
            { "run": "70us" }, { "sleep": "20us" } ] } } ] } ] }"#,
        2,
    );
    original.nudge = None;
    is_exact_with("any child", &original, |policy| {
        let mut reaped = 0;
        original.rewritten(policy, true, |events, event| {
            let counter = object(events, Class::Eventfd, 0);
            let is_counter = |of: u64| of == counter;
            let posts = events.iter().filter(
                |of| matches!(of.what, What::Call { object, number: 1, .. } if is_counter(object)),
            );
            let ended: Vec<u32> = posts.map(|of| of.tid).collect();
            let what = match event.what {
                What::Object { .. } => return Vec::new(),
                What::Call { object, number: 0, duration, .. } if is_counter(object) => {
                    reaped += 1;
                    let result = i64::from(ended[reaped - 1]);
                    What::Call { object: 0, result, number: WAIT4, op: 1, duration }
                }
                What::Call { object, .. } if is_counter(object) => return Vec::new(),
                What::Waking { task, target, prio, object, .. } if is_counter(object) => {
                    What::Waking { task, target, prio, call: 0, object: 0 }
                }
                What::Switch { state, prev_prio, next, next_prio, prev_tgid, .. } => {
                    What::Switch { state, prev_prio, next, next_prio, prev_tgid, object: 0 }
                }
                what => what,
            };
            vec![Recorded { what, ..event }]
        })
    });
}

/// A server whose set has the place where connections come in, and a pipe that ends.
#[test]
fn connections_and_ends_in_a_set_are_replayed_exactly_under_any_policy() {
    const CONNECT: u16 = 42;
    const ACCEPT: u16 = 43;
    let mut original = Original::of(
        r#"{ "duration": "1s", "eventfd": { "listens": { "semaphore": true } },
        "epoll": { "w": { "sources": [
            { "pipe": "p" }, { "eventfd": "listens" }, { "eventfd": "closed" } ] } },
        "task": [
        { "name": "server", "daemon": true, "phases": [ { "loop": { "phases": [
            { "serve": { "epoll": "w", "handle": [
                [ { "run": "3001ns" }, { "read": { "pipe": "p", "bytes": 20 } } ],
                [ { "run": "5003ns" }, { "take": { "eventfd": "listens" } } ],
                [ { "run": "2us" }, { "take": { "eventfd": "closed" } } ] ] } } ] } } ] },
        { "name": "connects", "count": 3, "phases": [ { "loop": { "times": 20, "phases": [
            { "run": "6151ns" }, { "sleep": "23us" }, { "post": { "eventfd": "listens" } } ] } },
            { "sleep": "9ms" } ] },
        { "name": "writes", "phases": [ { "loop": { "times": 25, "phases": [
            { "run": "8377ns" }, { "write": { "pipe": "p", "bytes": 20 } }, { "sleep": "9us" } ] } },
            { "run": "9us" }, { "post": { "eventfd": "closed" } }, { "run": "80us" } ] } ] }"#,
        2,
    );
    // A nudge goes with the place in the original's order, so another order has other costs.
    original.nudge = None;
    is_exact_with("connections", &original, |policy| {
        let (mut connected, mut accepted) = (0, 0);
        let (program, report) = original.rewritten(policy, true, |events, event| {
            let pipe = object(events, Class::Pipe, 0);
            let listener = object(events, Class::Eventfd, 0);
            let closed = object(events, Class::Eventfd, 1);
            let socket = |id: u64, own: u64, other: u64| {
                let peer = own << 16 | other | 1 << 56;
                let what = What::Object { id, class: Class::InternetSocket, inode: id, peer };
                Recorded { what, ..event }
            };
            let of = |what| Recorded { what, ..event };
            let call = |object, result, number, duration| {
                of(What::Call { object, result, number, op: 0, duration })
            };
            match event.what {
                What::Object { id, .. } if id == listener => vec![socket(id, 0, 0)],
                What::Object { id, .. } if id == closed => Vec::new(),
                What::Member { object, .. } if object == closed => Vec::new(),
                What::Call { object, number, duration, .. } if object == listener => {
                    let is_accept = number == 0;
                    let count = if is_accept { &mut accepted } else { &mut connected };
                    *count += 1;
                    let (number_of, port) = (*count, 5000 + *count);
                    if !is_accept {
                        let id = 1000 + number_of;
                        return vec![socket(id, port, 80), call(id, 0, CONNECT, duration)];
                    }
                    let id = 2000 + number_of;
                    let what = What::Member { set: listener, object: id, events: 0, op: 17 };
                    vec![socket(id, 80, port), of(what), call(listener, 9, ACCEPT, duration)]
                }
                What::Call { object, number, duration, .. } if object == closed => {
                    vec![call(pipe, 0, if number == 0 { 0 } else { CLOSE }, duration)]
                }
                What::Waking { task, target, prio, object, .. } if object == listener => {
                    let what = What::Waking { task, target, prio, call: 0, object: 0 };
                    vec![Recorded { what, context: 1, ..event }]
                }
                What::Waking { task, target, prio, object, .. } if object == closed => {
                    vec![of(What::Waking { task, target, prio, call: CLOSE + 1, object: pipe })]
                }
                _ => vec![event],
            }
        });
        let names: Vec<_> = program.shared.eventfds.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names[0], "connections to port 80");
        assert!(report.event_loops == 1 && report.doubted_waits == 0, "{report:?}");
        (program, report)
    });
}

/// A task that wakes the program is part of it. Its creator is not, and yet it must come.
#[test]
fn a_task_of_the_program_that_others_created_comes_by_itself() {
    let original = Original::of(
        r#"{ "task": [
        { "name": "program", "phases": [ "yield", { "take": { "eventfd": "e" } },
            { "run": "9us" }, "yield" ] },
        { "name": "creator", "phases": [ { "run": "30us" }, { "fork": "wakes" },
            { "run": "20us" } ] },
        { "name": "wakes", "forked": true, "phases": [ { "run": "40us" },
            { "post": { "eventfd": "e" } } ] } ] }"#,
        2,
    );
    let options = schedsim::workload::ReplayOptions {
        program: true,
        background: schedsim::workload::BackgroundOf::Nothing,
        ..Default::default()
    };
    let (program, report) = original.rewritten_with("fifo", options, |_, event| {
        let what = match event.what {
            What::Object { .. } | What::Call { number: 0 | 1, .. } => return Vec::new(),
            What::Waking { task, target, prio, .. } => {
                What::Waking { task, target, prio, call: 0, object: 0 }
            }
            What::Switch { state, prev_prio, next, next_prio, prev_tgid, .. } => {
                What::Switch { state, prev_prio, next, next_prio, prev_tgid, object: 0 }
            }
            what => what,
        };
        vec![Recorded { what, ..event }]
    });
    assert_eq!((report.outside.programs.0, report.wakeups.tokens), (1, 1), "{report:?}");
    for policy in POLICIES {
        let ends = replayed(&program, &original, policy);
        let exits = ends.iter().filter(|(_, _, what)| what.starts_with("exit"));
        assert_eq!(exits.count(), 2, "{policy}");
    }
}
