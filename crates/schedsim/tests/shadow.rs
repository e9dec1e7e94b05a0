//! A policy judged on its own decisions agrees with all of them; one judged on another's does not.

#[path = "support/mod.rs"]
mod support;

#[path = "shadow/pinned.rs"]
mod pinned;

use schedsim::live::{Arrival, Decides, Divergence, Judgement, Role, Shadow};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, PrevState};
use schedsim::workload::{Action, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Ticks, Time};
use std::collections::BTreeMap;
use support::*;

/// Policies with lists, levels, a tree, and run times.
const POLICIES: [&str; 9] = [
    "central:rr",
    "take:ruler",
    "central:multilist2",
    "central:rbtree",
    "pslist",
    "mlfq",
    "o1",
    "cfs",
    "eevdf",
];

/// One CPU with a tick every 4 ms and a switch cost.
fn machine() -> Machine {
    Machine {
        switch_cost: Nanos(1_700),
        ticks: Some(Ticks { cost: Nanos(6_000), ..Ticks::new(Nanos(4_000_000), Time(1_300_000)) }),
        ..Machine::ideal(1)
    }
}

/// Three tasks that only compute, two that yield and four that sleep, of several nice values.
fn mixed() -> Workload {
    let hog = |prio| prio_of(prio, task(at(0), [(400_000_000, Action::Exit)]));
    let yields = |run| (0..300).map(move |_| (run, Action::Yield)).chain([(run, Action::Exit)]);
    let sleeps = |run, sleep| {
        (0..100).map(move |_| (run, Action::Sleep(Nanos(sleep)))).chain([(run, Action::Exit)])
    };
    let sleepers = (0..4u64).map(|number| {
        prio_of(120, task(at(10_007 * number), sleeps(210_011 + 1_009 * number, 3_100_027)))
    });
    let others = [
        hog(120),
        hog(125),
        hog(130),
        task(at(3_001), yields(40_009)),
        task(at(5_003), yields(50_021)),
    ];
    workload(others.into_iter().chain(sleepers).collect())
}

fn prio_of(prio: u8, mut task: TaskSpec) -> TaskSpec {
    task.info.prio = prio;
    task
}

/// A recording of a run under `policy`; in the simulator a waking is also the wakeup.
fn recorded(policy: &str, machine: &Machine, workload: &Workload) -> Vec<Event> {
    let (_, mut events) = events_of(policy, machine, workload);
    for event in &mut events {
        if let EventKind::SchedWaking { task, target, .. } = event.kind {
            event.kind = EventKind::SchedWakeup { task, target };
        }
    }
    events
}

/// Judges `policy` on the decisions in `events`.
fn judge(
    policy: &str,
    decides: Decides,
    workload: &Workload,
    machine: &Machine,
    events: &[Event],
) -> Judgement {
    let role = |task: &TaskSpec| Role::Scheduled {
        arrival: Arrival {
            prio: task.info.prio,
            attributes: task.attributes,
            ..Arrival::default()
        },
        yields: task.script.steps().any(|step| step.then == Action::Yield),
    };
    let tasks = workload.tasks.iter().map(role).chain([Role::Program, Role::Interrupts]).collect();
    let policy = PolicySpec::parse(policy).unwrap().policy(machine.cpus);
    Shadow::new(policy, machine.clone(), 1, decides, tasks).judge(events).unwrap()
}

#[test]
fn a_policy_agrees_with_its_own_recording() {
    let (machine, workload) = (machine(), mixed());
    for policy in POLICIES {
        let events = recorded(policy, &machine, &workload);
        for decides in [Decides::AtSwitch, Decides::AtEvent] {
            let judgement = judge(policy, decides, &workload, &machine, &events);
            assert!(judgement.decisions > 1_000, "{policy}: {judgement:?}");
            assert_eq!(
                judgement.by_class(),
                BTreeMap::new(),
                "{policy}, which decides {decides:?}"
            );
        }
    }
}

#[test]
fn the_divergence_of_another_policy_is_found() {
    let (machine, workload) = (machine(), mixed());
    let judged = |policy: &str, recorded_under: &str| {
        let events = recorded(recorded_under, &machine, &workload);
        judge(policy, Decides::AtSwitch, &workload, &machine, &events)
    };
    let has = |judgement: &Judgement, class: Divergence| {
        judgement.by_class().get(&class).copied().unwrap_or(0)
    };
    let other_order = judged("central:rr", "take:ruler");
    assert!(
        has(&other_order, Divergence::OtherTask) > 50 && other_order.share() < 0.95,
        "{:?}",
        other_order.by_class()
    );
    let longer_slices = judged("central:rr?quantum=12ms", "central:rr");
    assert!(has(&longer_slices, Divergence::RunOn) > 50, "{:?}", longer_slices.by_class());
    let shorter_slices = judged("central:rr", "central:rr?quantum=12ms");
    assert!(has(&shorter_slices, Divergence::Stop) > 50, "{:?}", shorter_slices.by_class());
    let lower_levels = judged("central:priority", "central:rr");
    assert!(lower_levels.share() < 0.95, "{:?}", lower_levels.by_class());
}

/// Among equals a fifth of a microsecond decides, and all later decisions depend on it.
#[test]
fn a_late_recorded_time_is_found_as_one_divergence() {
    let machine = machine();
    let equal =
        || task(at(0), (0..100).map(|_| (20_000, Action::Yield)).chain([(20_000, Action::Exit)]));
    let workload = workload((0..8).map(|_| equal()).collect());
    let mut events = recorded("stride", &machine, &workload);
    let judged = |events: &[Event]| judge("stride", Decides::AtSwitch, &workload, &machine, events);
    assert_eq!(judged(&events).by_class(), BTreeMap::new());
    let switches =
        events.iter_mut().filter(|event| matches!(event.kind, EventKind::SchedSwitch { .. }));
    switches.skip(100).take(1).for_each(|event| event.time.0 += 200);
    let judgement = judged(&events);
    let microseconds = judgement.by_class().get(&Divergence::Microseconds).copied().unwrap_or(0);
    assert!(microseconds > 0, "{:?}", judgement.by_class());
}

/// Two light tasks have slices hundreds of events apart: which of them is first was decided at
/// their last slices.
#[test]
fn a_late_recorded_time_long_ago_is_found() {
    let machine = machine();
    let yields = |prio, run, times| {
        prio_of(
            prio,
            task(at(0), (0..times).map(move |_| (run, Action::Yield)).chain([(run, Action::Exit)])),
        )
    };
    let workload = workload(
        (0..6)
            .map(|n| yields(120, 20_000 + 1_009 * n, 400))
            .chain((0..2).map(|_| yields(139, 20_000, 4)))
            .collect(),
    );
    let mut events = recorded("stride", &machine, &workload);
    let judged = |events: &[Event]| judge("stride", Decides::AtSwitch, &workload, &machine, events);
    assert_eq!(judged(&events).by_class(), BTreeMap::new());
    let light = TaskId(6);
    let ends_turn =
        |event: &Event| matches!(event.kind, EventKind::SchedSwitch { prev, .. } if prev == light);
    let turns: Vec<usize> = (0..events.len()).filter(|&at| ends_turn(&events[at])).collect();
    assert!(turns[1] - turns[0] > 100, "{turns:?}");
    events[turns[0]].time.0 += 300;
    let judgement = judged(&events);
    assert!(
        judgement.by_class().keys().eq([&Divergence::Microseconds]),
        "{:?}",
        judgement.by_class()
    );
}

/// A recording does not distinguish a yield from a preemption. Where the policy wanted the task to
/// stop anyway, it may have been either: at the tail of its list, or at the head.
#[test]
fn a_yield_is_found_where_the_policy_wanted_a_stop() {
    let machine = Machine::ideal(1);
    let yields = |prio| prio_of(prio, task(at(0), [(1, Action::Yield), (1, Action::Exit)]));
    let workload = workload(vec![yields(120), yields(120), yields(100)]);
    let [first, second, better] = [0, 1, 2].map(TaskId);
    let event = |us: u64, kind| Event { time: Time(us * 1_000), cpu: CpuId(0), kind };
    let wakes = |us, task| event(us, EventKind::SchedWakeup { task, target: CpuId(0) });
    let switches =
        |us, prev, next, prev_state| event(us, EventKind::SchedSwitch { prev, next, prev_state });
    let recording = |goes_on, then| {
        let begins = [
            wakes(10, first),
            wakes(20, second),
            switches(30, TaskId::NONE, first, PrevState::Runnable),
        ];
        let stops = [
            wakes(100, better),
            switches(110, first, better, PrevState::Runnable),
            switches(200, better, goes_on, PrevState::Blocked),
        ];
        begins
            .into_iter()
            .chain(stops)
            .chain([switches(300, goes_on, then, PrevState::Runnable)])
            .collect::<Vec<Event>>()
    };
    let differences =
        |events: &[Event]| judge("fifo", Decides::AtSwitch, &workload, &machine, events).by_class();
    assert_eq!(differences(&recording(first, second)), BTreeMap::new(), "it was preempted");
    assert_eq!(
        differences(&recording(second, first)),
        BTreeMap::from([(Divergence::Microseconds, 1)]),
        "it had yielded"
    );
}
