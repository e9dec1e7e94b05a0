//! What the reference does as Linux 7.3, where no captured history shows it: computed by hand.
//!
//! All tasks have weight 1024 if nothing else is said, so virtual time is CPU time. Times in µs.

use vectors::{Answer, Event, Options, Reference, Subject};

const CLAIMS: &str = "linux-7.3-eevdf";

/// The reference's answer to the last of some events. A line is `AT OP [NUMBER…]`, in µs; `task`
/// has its number, its request and its lag, `weight` and `slice` the task and the new value.
fn last(claims: &str, lines: &[&str]) -> Answer {
    let mut reference = Reference::claiming(claims, Options::default());
    let reset = r#"{"at":0,"op":"reset","tick":4000000,"slice":3000000}"#.to_string();
    let events = lines.iter().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let (at, op) = (1000 * words[0].parse::<i64>().unwrap(), words[1]);
        let numbers: Vec<i64> = words[2..].iter().map(|word| word.parse().unwrap()).collect();
        let rest = match (op, numbers[..].as_ref()) {
            ("task", [task, slice, lag]) => {
                let (slice, lag) = (1000 * slice, 1000 * lag);
                format!(r#","task":{task},"weight":1024,"slice":{slice},"lag":{lag}"#)
            }
            ("weight", [task, weight]) => format!(r#","task":{task},"weight":{weight}"#),
            ("slice", [task, slice]) => format!(r#","task":{task},"slice":{}"#, 1000 * slice),
            (_, [task]) => format!(r#","task":{task}"#),
            _ => String::new(),
        };
        format!(r#"{{"at":{at},"op":"{op}"{rest}}}"#)
    });
    let lines = std::iter::once(reset).chain(events);
    let answers = lines.map(|line| reference.event(&Event::parse(&line).unwrap()).unwrap());
    answers.last().unwrap()
}

/// Whether the last of some events asks for a pick.
fn asks(lines: &[&str]) -> bool {
    last(CLAIMS, lines).resched.unwrap()
}

#[test]
fn the_lag_of_a_delayed_task_does_not_grow() {
    // 1 sleeps with V = 200 at 400: it owes 200, and stays. 3 brings a lag of 300 and V falls to
    // 50, so 1 would owe 350. It owes 200 when it wakes. Without it V is −125; it is put 200 × 3/2
    // beyond.
    let woken = last(
        CLAIMS,
        &[
            "0 task 1 3000 0",
            "0 task 2 3000 0",
            "0 task 3 3000 300",
            "0 wake 1",
            "0 wake 2",
            "0 pick",
            "400 block",
            "400 pick",
            "400 wake 3",
            "400 wake 1",
        ],
    );
    let state = woken.state(1).unwrap();
    assert_eq!((state.vruntime, state.deadline), (Some(175_000), Some(3_175_000)));
    assert_eq!(state.lag, Some(-200_000));
}

#[test]
fn a_new_task_preempts_only_with_a_shorter_request() {
    // At 3100 task 1 begins a second request, and is protected no more. A new task is due at 3100
    // and half a request, before it.
    for (slice, claims, asks) in
        [(3000, CLAIMS, false), (3000, "linux-6.18-eevdf", true), (2000, CLAIMS, true)]
    {
        let new = format!("0 task 2 {slice} 0");
        let lines = ["0 task 1 3000 0", &new, "0 wake 1", "0 pick", "3100 new 2"];
        assert_eq!(last(claims, &lines).resched, Some(asks), "{slice} {claims}");
    }
}

#[test]
fn each_wakeup_ends_protection_a_shortest_request_after_the_mean() {
    // 1 is protected until 3000. At 400, V is 200; 2 has a request of 200 from now on, which does
    // not change that. 3 wakes and does not preempt: protection ends at 200 + 200.
    let lines = [
        "0 task 1 3000 0",
        "0 task 2 3000 0",
        "0 task 3 3000 0",
        "0 wake 1",
        "0 wake 2",
        "0 pick",
        "400 slice 2 200",
    ];
    assert!(!asks(&[&lines[..], &["550 tick"]].concat()));
    assert!(!asks(&[&lines[..], &["400 wake 3"]].concat()));
    assert!(asks(&[&lines[..], &["400 wake 3", "450 tick"]].concat()));
}

#[test]
fn a_new_weight_of_a_delayed_task_ends_protection_sooner() {
    // 2 owes 150 at 300 and stays; 1 is protected until it is not eligible, beyond 300. At 350 it
    // has run for 50: the new weight of 2 moves the end to 50 + 200.
    let lines = [
        "0 task 1 3000 0",
        "0 task 2 200 0",
        "0 wake 1",
        "0 wake 2",
        "0 pick",
        "300 block",
        "300 pick",
    ];
    assert!(!asks(&[&lines[..], &["560 tick"]].concat()));
    assert!(asks(&[&lines[..], &["601 tick"]].concat()));
    let weighs = [&lines[..], &["350 weight 2 2048"]].concat();
    let heavier = last(CLAIMS, &weighs);
    assert_eq!(heavier.resched, Some(false));
    // It owed 125, which is half of that by its new weight; V is 50 without it.
    let state = heavier.state(2).unwrap();
    assert_eq!((state.vruntime, state.lag), (Some(237_500), Some(-62_500)));
    assert!(asks(&[&weighs[..], &["560 tick"]].concat()));
}

#[test]
fn the_timer_is_set_by_a_join_and_ticks_for_whoever_runs_then() {
    // The request of 1 is over at 3000: so is the timer, though 1 sleeps and 2 is alone.
    let lines = [
        "0 task 1 3000 0",
        "0 task 2 20000 0",
        "0 wake 1",
        "0 pick",
        "1000 wake 2",
        "1000 block",
        "1000 pick",
    ];
    assert!(!asks(&[&lines[..], &["2900 tick"]].concat()));
    assert!(asks(&[&lines[..], &["3000 tick"]].concat()));
    assert!(!asks(&[&lines[..], &["3000 tick", "3000 pick", "3100 tick"]].concat()));
    // An idle CPU has no timer.
    let idles = ["1100 block", "1100 pick", "1200 wake 2", "1200 pick", "3000 tick"];
    assert!(!asks(&[&lines[..], &idles].concat()));
}

#[test]
fn who_preempts_with_the_shortest_request_runs_next_while_it_is_eligible() {
    let runs = |lines: &[&str]| {
        let begin = [
            "0 task 1 3000 0",
            "0 task 2 200 0",
            "0 task 3 500 0",
            "0 task 4 3000 2000",
            "0 wake 1",
            "0 pick",
        ];
        last(CLAIMS, &[&begin[..], lines, &["1000 pick"]].concat()).runs
    };
    assert_eq!(runs(&["1000 wake 2", "1000 wake 3"]), Some(2));
    assert_eq!(runs(&["1000 wake 3", "1000 wake 2"]), Some(2));
    // 4 brings a lag of 2000, and V falls to 0.
    assert_eq!(runs(&["1000 wake 2", "1000 wake 4"]), Some(4));
}

#[test]
fn a_wish_to_pick_does_not_hide_a_wakeup() {
    // 1 is asked to make way for 2, which wakes with the shorter request; then 3 wakes with one as
    // short, and takes its place.
    let lines = [
        "0 task 1 3000 0",
        "0 task 2 500 0",
        "0 task 3 500 0",
        "0 wake 1",
        "0 pick",
        "1000 wake 2",
        "1000 wake 3",
        "1000 pick",
    ];
    assert_eq!(last(CLAIMS, &lines).runs, Some(3));
    assert_eq!(last("linux-6.18-eevdf", &lines).runs, Some(2));
}
