//! The contract between a policy and its driver: for each rule a policy that breaks it, which every
//! world rejects with the same error.

#[path = "contract/canary.rs"]
mod canary;
#[path = "contract/random.rs"]
mod random;
#[path = "support/mod.rs"]
mod support;

use canary::{Canary, Fault};
use schedsim::engine::{self, Error};
use schedsim::live::{Arrival, Decides, Live, Role, Shadow};
use schedsim::policy::Stop;
use schedsim::seat::{Breach, Callback, Ended, Rule, TaskState};
use schedsim::trace::{Event, EventKind, PrevState, Trace};
use schedsim::workload::{Action, Affinity, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, TaskId, Ticks, Time};
use support::*;

const MS: u64 = 1_000_000;

/// Two CPUs with ticks and a queue lock.
fn machine() -> Machine {
    Machine {
        ticks: Some(Ticks::new(Nanos(4 * MS), Time(MS))),
        lock_hold: Nanos(1),
        ..Machine::ideal(2)
    }
}

/// Task 0 runs and sleeps; task 1 comes while it runs; task 2 comes last and may run on CPU 1 only.
fn tasks() -> Workload {
    let naps =
        |start| task(at(start), [(10 * MS, Action::Sleep(Nanos(20 * MS))), (3 * MS, Action::Exit)]);
    workload(vec![
        naps(0),
        naps(6 * MS),
        TaskSpec { affinity: Affinity::Pinned(CpuId(1)), ..naps(7 * MS) },
    ])
}

/// The expected error of `fault`: at the first call that reveals it.
fn expected(fault: Fault) -> (Callback, Rule, Option<u32>, Option<u16>) {
    let no_cpu = Rule::CpuExists { cpus: 2 };
    match fault {
        Fault::SelectsNoCpu => (Callback::SelectCpu, no_cpu, Some(0), Some(99)),
        Fault::KicksNoCpu => (Callback::Enqueue, no_cpu, None, Some(99)),
        Fault::PreemptsNoCpu => (Callback::Enqueue, no_cpu, None, Some(99)),
        Fault::KicksNoCpuLater => (Callback::Enqueue, no_cpu, None, Some(99)),
        Fault::KicksInThePast => {
            (Callback::Enqueue, Rule::AlarmIsAhead { at: Time(1) }, None, Some(0))
        }
        Fault::KicksLaterUndeclared => (Callback::Enqueue, Rule::AlarmIsDeclared, None, Some(0)),
        Fault::KicksNoCpuWhenIdle => (Callback::UpdateIdle, no_cpu, None, Some(99)),
        Fault::PreemptsNoCpuAtTick => (Callback::Tick, no_cpu, None, Some(99)),
        Fault::DispatchesNoTask => (Callback::Dispatch, Rule::TaskExists, Some(99), Some(0)),
        Fault::DispatchesSleeper => {
            (Callback::Dispatch, Rule::Waits { state: TaskState::Asleep }, Some(0), Some(0))
        }
        Fault::DispatchesRunning => {
            (Callback::Dispatch, Rule::Waits { state: TaskState::Running }, Some(0), Some(1))
        }
        Fault::DispatchesWhereItMayNot => (Callback::Dispatch, Rule::MayRunThere, Some(2), Some(0)),
        Fault::GivesNoTime => (Callback::Dispatch, Rule::SliceIsPositive, Some(0), Some(0)),
        Fault::Loses => (Callback::Dispatch, Rule::NoneLost, Some(0), None),
        Fault::GivesUp => {
            (Callback::Enqueue, Rule::GivesUp { message: "no more".into() }, None, None)
        }
        Fault::TicksWithoutPause => (Callback::Needs, Rule::TickIsPositive, None, None),
        Fault::SearchesNoQueue => (Callback::Scan, no_cpu, None, Some(99)),
        Fault::None => unreachable!("nothing is expected of a policy without a fault"),
    }
}

fn in_the_engine(fault: Fault) -> (Option<Breach>, Vec<Event>) {
    let (mut events, options) =
        (Collect::default(), engine::Options { seed: 1, until: Time::NEVER });
    let outcome = engine::simulate(
        &tasks(),
        &machine(),
        Canary::new(fault),
        options,
        Trace::new(vec![&mut events]),
    );
    let breach = match outcome {
        Ok(_) => None,
        Err(Error::Policy(breach)) => Some(breach),
        Err(error) => panic!("{fault:?}: {error}"),
    };
    (breach, events.0)
}

fn arrival(spec: &TaskSpec) -> Arrival {
    let cpus = if let Affinity::Pinned(cpu) = spec.affinity { 1 << cpu.0 } else { u64::MAX };
    Arrival { prio: spec.info.prio, cpus, ..Arrival::default() }
}

/// Drives the policy as a kernel would, with these `events`, until the policy ends.
fn in_a_kernel(fault: Fault, events: &[Event]) -> Option<Breach> {
    let (specs, mut live) = (tasks().tasks, Live::new(Canary::new(fault), machine(), 1));
    let mut ticks = (0..).map(|tick| Time(MS + 4 * MS * tick)).peekable();
    for event in events {
        while let Some(tick) = ticks.next_if(|&tick| tick < event.time) {
            live.at(tick);
            machine().all().for_each(|cpu| live.tick(cpu));
        }
        live.at(event.time);
        match event.kind {
            EventKind::SchedWakeupNew { task, .. } => {
                live.arrive(task, arrival(&specs[task.index()]));
                live.wake(task, true, None);
            }
            EventKind::SchedWaking { task, .. } => live.wake(task, false, None),
            EventKind::SchedSwitch { prev, next, prev_state } => {
                if live.current(event.cpu) == Some(prev) {
                    let why = match prev_state {
                        PrevState::Runnable => Stop::SliceOver,
                        PrevState::Blocked => Stop::Blocked,
                        PrevState::Dead => Stop::Exited,
                    };
                    live.stopped(event.cpu, why);
                }
                live.running(event.cpu, next);
            }
            _ => {}
        }
        if live.breach().is_some() {
            break;
        }
    }
    live.expect_none_lost();
    live.breach().cloned()
}

/// Shadows a recording of these `events` with the policy.
fn beside_a_recording(fault: Fault, events: &[Event]) -> Option<Breach> {
    let role = |spec: &TaskSpec| Role::Scheduled { arrival: arrival(spec), yields: false };
    let roles = tasks().tasks.iter().map(role).collect();
    let mut events = events.to_vec();
    for event in &mut events {
        if let EventKind::SchedWaking { task, target, .. } = event.kind {
            event.kind = EventKind::SchedWakeup { task, target };
        }
    }
    match Shadow::new(Canary::new(fault), machine(), 1, Decides::AtSwitch, roles).judge(&events) {
        Ok(_) => None,
        Err(Ended::Breach(breach)) => Some(breach),
        Err(ended) => panic!("{fault:?}: {ended}"),
    }
}

#[test]
fn every_world_names_the_rule_that_a_policy_breaks_in_the_same_words() {
    let (breach, recorded) = in_the_engine(Fault::None);
    assert_eq!(breach, None);
    assert_eq!(
        (in_a_kernel(Fault::None, &recorded), beside_a_recording(Fault::None, &recorded)),
        (None, None)
    );
    for fault in Fault::ALL {
        let (callback, rule, task, cpu) = expected(fault);
        let (task, cpu) = (task.map(TaskId), cpu.map(CpuId));
        let mut worlds = vec![("engine", in_the_engine(fault).0)];
        if fault != Fault::SearchesNoQueue {
            worlds.push(("kernel", in_a_kernel(fault, &recorded)));
            worlds.push(("recording", beside_a_recording(fault, &recorded)));
        }
        let engine = worlds[0].1.clone();
        for (world, breach) in worlds {
            let breach = breach.unwrap_or_else(|| panic!("{world}: {fault:?} passes"));
            let found = (breach.callback, breach.rule.clone(), breach.task, breach.cpu);
            assert_eq!(found, (callback, rule.clone(), task, cpu), "{world}: {fault:?}");
            let is_at_the_end = fault == Fault::Loses;
            assert!(
                is_at_the_end || engine.as_ref() == Some(&breach),
                "{world}: {breach} and not {engine:?}"
            );
            assert!(
                !breach.is_drivers() && breach.to_string().contains(callback.name()),
                "{breach}"
            );
        }
    }
}

#[test]
fn a_breach_is_a_sentence_with_callback_task_cpu_value_and_range() {
    let told = |fault| in_the_engine(fault).0.map(|breach| breach.to_string());
    let says = |fault, words: &str| assert_eq!(told(fault).as_deref(), Some(words));
    says(
        Fault::SelectsNoCpu,
        "at 0ns: select_cpu, task 0, CPU 99: there is no such CPU; the last one is CPU 1",
    );
    says(
        Fault::KicksInThePast,
        "at 6.00ms: enqueue, CPU 0: the alarm (KickAt) is for 1ns, which is over",
    );
    says(
        Fault::DispatchesSleeper,
        "at 10.0ms: dispatch, task 0, CPU 0: the task sleeps, and only a task that waits may be \
         dispatched",
    );
}

#[test]
fn a_run_that_is_stopped_at_a_time_names_the_rule_too() {
    let options = engine::Options { seed: 1, until: Time(20 * MS) };
    let outcome = engine::simulate(
        &tasks(),
        &machine(),
        Canary::new(Fault::KicksNoCpu),
        options,
        Trace::new(vec![]),
    );
    assert!(matches!(outcome, Err(Error::Policy(_))), "{outcome:?}");
}
