//! The divergences of many pairs of policies, by class, equal those in `pinned.txt`, so that a
//! change of the shadow shows here.

use super::*;
use schedsim::live::Diverged;
use std::fmt::Write;

/// The recorded policy, and the judged one.
const PAIRS: [[&str; 2]; 9] = [
    ["central:rr", "central:rr"],
    ["take:ruler", "central:rr"],
    ["central:rr", "central:rr?quantum=12ms"],
    ["central:rr?quantum=12ms", "central:rr"],
    ["stride", "stride"],
    ["cfs", "cfs"],
    ["eevdf", "eevdf"],
    ["pslist", "pslist"],
    ["pslist", "mlfq"],
];

/// A program that decides, and an interrupt; their ids follow the tasks of [`few`].
const PROGRAM: TaskId = TaskId(6);
const INTERRUPT: TaskId = TaskId(7);

/// Two that compute, two that yield, two that sleep.
fn few() -> Workload {
    let hog = |prio| prio_of(prio, task(at(0), [(60_000_000, Action::Exit)]));
    let yields = |run| (0..40).map(move |_| (run, Action::Yield)).chain([(run, Action::Exit)]);
    let sleeps = |run| {
        (0..15).map(move |_| (run, Action::Sleep(Nanos(3_100_027)))).chain([(run, Action::Exit)])
    };
    let others = [
        task(at(3_001), yields(40_009)),
        task(at(5_003), yields(50_021)),
        task(at(7), sleeps(210_011)),
        task(at(9), sleeps(611_003)),
    ];
    workload([hog(120), hog(125)].into_iter().chain(others).collect())
}

/// A change to a recording: wrong, or with tasks that no policy schedules.
type Mutation = fn(&mut Vec<Event>);

const MUTATIONS: [(&str, Mutation); 5] = [
    ("as it was", |_| {}),
    ("late switches", |events| {
        events
            .iter_mut()
            .step_by(17)
            .filter(|event| is_switch(event))
            .for_each(|event| event.time.0 += 900);
    }),
    ("a program between", |events| {
        *events = events.iter().flat_map(|event| through_program(*event)).collect()
    }),
    ("interrupts", |events| {
        *events =
            events.iter().enumerate().flat_map(|(at, event)| interrupted(at, *event)).collect()
    }),
    ("swapped tasks", |events| {
        let swap = |task: &mut TaskId| {
            task.0 = [1, 0, 2, 3, 4, 5].get(task.index()).copied().unwrap_or(task.0)
        };
        let half = events.len() / 2;
        events[half..].iter_mut().for_each(|event| {
            if let EventKind::SchedSwitch { prev, next, .. } = &mut event.kind {
                swap(prev);
                swap(next);
            }
        });
    }),
];

fn is_switch(event: &Event) -> bool {
    matches!(event.kind, EventKind::SchedSwitch { .. })
}

fn through_program(event: Event) -> Vec<Event> {
    let EventKind::SchedSwitch { prev, next, prev_state } = event.kind else { return vec![event] };
    let to = EventKind::SchedSwitch { prev, next: PROGRAM, prev_state };
    let from = EventKind::SchedSwitch { prev: PROGRAM, next, prev_state: PrevState::Blocked };
    vec![Event { kind: to, ..event }, Event { kind: from, time: Time(event.time.0 + 400), ..event }]
}

fn interrupted(at: usize, event: Event) -> Vec<Event> {
    let EventKind::SchedSwitch { next, .. } = event.kind else { return vec![event] };
    if next == TaskId::NONE || !at.is_multiple_of(5) {
        return vec![event];
    }
    let switch = |after, prev, next, prev_state| Event {
        kind: EventKind::SchedSwitch { prev, next, prev_state },
        time: Time(event.time.0 + after),
        ..event
    };
    vec![
        event,
        switch(1_000, next, INTERRUPT, PrevState::Runnable),
        switch(3_000, INTERRUPT, next, PrevState::Blocked),
    ]
}

/// A few numbers of each judgement, in one short line.
fn line(judgement: &Judgement) -> String {
    let mut line = format!("{} decisions", judgement.decisions);
    judgement
        .by_class()
        .iter()
        .for_each(|(class, count)| write!(line, ", {} {count}", class.name()).unwrap());
    let places = judgement.divergences.iter().fold(
        0xcbf2_9ce4_8422_2325_u64,
        |hash, &Diverged { time, cpu, .. }| {
            (hash ^ time.0 ^ u64::from(cpu.0)).wrapping_mul(0x100_0000_01b3)
        },
    );
    write!(line, ", at {places:016x}").unwrap();
    line
}

#[test]
fn divergences_equal_the_pinned_ones() {
    let workload = few();
    let mut found = String::new();
    for cpus in [1, 2] {
        let machine = Machine { cpus, ..machine() };
        for [recorded_under, judged] in PAIRS {
            let recorded = recorded(recorded_under, &machine, &workload);
            for (name, mutation) in MUTATIONS {
                let mut events = recorded.clone();
                mutation(&mut events);
                for decides in [Decides::AtSwitch, Decides::AtEvent] {
                    let judgement = judge(judged, decides, &workload, &machine, &events);
                    writeln!(
                        found,
                        "{cpus} {recorded_under} as {judged}, {name}, {decides:?}: {}",
                        line(&judgement)
                    )
                    .unwrap();
                }
            }
        }
    }
    let pinned = include_str!("pinned.txt");
    let changed: Vec<_> =
        found.lines().zip(pinned.lines()).filter(|(now, then)| now != then).collect();
    assert!(found == pinned, "{changed:#?}\nall of them now:\n{found}");
}
