//! The metrics of simulated traces against a naive oracle, and of random streams.

use super::summary;
use crate::support::{at, event, events_of, id, swarm, task, workload};
use proptest::prelude::*;
use schedsim::metrics::Summary;
use schedsim::trace::PrevState::{Blocked, Dead, Runnable};
use schedsim::trace::{Event, EventKind, OverheadKind, WakeContext};
use schedsim::workload::Action;
use schedsim::{CpuId, Machine, Nanos, TaskId};
/// The activity of each task and CPU in each nanosecond, by replaying all events before it.
struct Oracle {
    /// Per task, `(runs, waits)` in nanoseconds.
    tasks: Vec<(u64, u64)>,
    idle: Vec<u64>,
    waste: u64,
    waste_min: u64,
    slices: u32,
    /// Tasks without children, in the order in which they exited.
    exits: Vec<TaskId>,
}

impl Oracle {
    fn new(events: &[Event], tasks: usize, cpus: usize, end: u64) -> Oracle {
        let mut oracle = Oracle {
            tasks: vec![(0, 0); tasks],
            idle: vec![0; cpus],
            waste: 0,
            waste_min: 0,
            slices: 0,
            exits: Vec::new(),
        };
        let forked = |task| {
            events.iter().any(|event| matches!(event.kind, EventKind::SchedProcessFork { parent, .. } if parent == task))
        };
        oracle.exits.extend(events.iter().filter_map(|event| match event.kind {
            EventKind::SchedSwitch { prev, prev_state: Dead, .. } if !forked(prev) => Some(prev),
            _ => None,
        }));
        for cpu in 0..cpus {
            let ran = events.iter().filter(|event| event.cpu.index() == cpu).filter_map(|event| {
                match event.kind {
                    EventKind::SchedSwitch { next, .. } if next != TaskId::NONE => Some(next),
                    _ => None,
                }
            });
            let mut ran: Vec<TaskId> = ran.collect();
            ran.dedup();
            oracle.slices += ran.len() as u32;
        }
        let (mut running, mut waits) = (vec![TaskId::NONE; cpus], vec![false; tasks]);
        let mut rest = events;
        for instant in 0..end {
            while let Some((first, others)) =
                rest.split_first().filter(|(first, _)| first.time.0 <= instant)
            {
                rest = others;
                match first.kind {
                    EventKind::SchedWaking { task, .. }
                    | EventKind::SchedWakeupNew { task, .. } => waits[task.index()] = true,
                    EventKind::SchedSwitch { prev, next, prev_state } => {
                        if prev != TaskId::NONE {
                            waits[prev.index()] = prev_state == Runnable;
                        }
                        if next != TaskId::NONE {
                            waits[next.index()] = false;
                        }
                        running[first.cpu.index()] = next;
                    }
                    _ => {}
                }
            }
            let (mut idle, mut waiting) = (0, 0);
            for (cpu, &task) in running.iter().enumerate() {
                match task {
                    TaskId::NONE => (oracle.idle[cpu], idle) = (oracle.idle[cpu] + 1, idle + 1),
                    task => oracle.tasks[task.index()].0 += 1,
                }
            }
            for (task, _) in waits.iter().enumerate().filter(|&(_, &waits)| waits) {
                (oracle.tasks[task].1, waiting) = (oracle.tasks[task].1 + 1, waiting + 1);
            }
            oracle.waste += if waiting > 0 { idle } else { 0 };
            oracle.waste_min += idle.min(waiting);
        }
        oracle
    }

    /// The share of exited pairs whose order differs from that of their starts.
    fn order(&self, s: &Summary) -> Option<f64> {
        let began = |task: TaskId| {
            s.tasks.iter().find(|summary| summary.task == task).map(|summary| (summary.first, task))
        };
        let (mut pairs, mut reversed) = (0u32, 0u32);
        for (index, &task) in self.exits.iter().enumerate() {
            for &before in &self.exits[..index] {
                pairs += 1;
                reversed += u32::from(began(before) > began(task));
            }
        }
        (pairs > 0).then(|| f64::from(reversed) / f64::from(pairs))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_metrics_of_a_simulation_agree_with_the_oracle(
        (mut workload, machine) in swarm::workloads(7),
    ) {
        // Short runs only: the oracle examines every nanosecond.
        for spec in &mut workload.tasks {
            let short =
                spec.script.steps().map(|step| (Nanos(step.run.0 % 1000), step.then)).collect();
            spec.script = short;
        }
        for policy in ["central:rr", "initial:rr", "take:rr"] {
            let (outcome, events) = events_of(policy, &machine, &workload);
            let (end, cpus) = (outcome.end.0, usize::from(machine.cpus));
            let s = summary(machine.cpus, end, &events);
            let oracle = Oracle::new(&events, workload.tasks.len(), cpus, end);
            prop_assert_eq!(s.oddities.total(), 0);
            prop_assert_eq!(
                s.cpus.iter().map(|cpu| cpu.idle.0).collect::<Vec<_>>(),
                &oracle.idle[..]
            );
            prop_assert!(s.cpus.iter().all(|cpu| (cpu.busy + cpu.idle).0 == end));
            for task in &s.tasks {
                let (ran, waited) = oracle.tasks[task.task.index()];
                prop_assert_eq!(
                    ((task.cpu_time + task.overhead).0, task.run_delay.0),
                    (ran, waited),
                    "task {:?}",
                    task
                );
                // The phases of a task add up to its life, so that task time is bursts and pauses.
                prop_assert!(task.task_time() >= task.cpu_time);
            }
            prop_assert_eq!(s.sum(|task| task.cpu_time), outcome.useful);
            prop_assert_eq!(s.count(|task| task.slices), u64::from(oracle.slices));
            prop_assert_eq!(s.get("completion_inversions"), oracle.order(&s));
            prop_assert_eq!(
                (s.totals.idle_waste.0, s.totals.idle_waste_min.0),
                (oracle.waste, oracle.waste_min)
            );
        }
    }

    #[test]
    fn no_stream_makes_the_metrics_panic_and_time_is_conserved(
        events in proptest::collection::vec(any_event(), 0..120),
    ) {
        let s = summary(2, 1000, &events);
        for cpu in &s.cpus {
            prop_assert_eq!((cpu.busy + cpu.idle).0, s.end.0);
        }
        for (metric, value) in s.values() {
            prop_assert!(
                value.value.is_some() != value.note.is_some(),
                "{}: {:?}",
                metric.id,
                value
            );
            prop_assert!(
                value.value.is_none_or(|value| value.is_finite() && value >= 0.0),
                "{}: {:?}",
                metric.id,
                value
            );
        }
    }
}

/// Any event on four CPUs and five tasks, valid or not.
fn any_event() -> impl Strategy<Value = Event> {
    let kind =
        (0u8..10, -1i64..5, -1i64..5, 0u16..4, 0u64..50).prop_map(|(which, a, b, cpu, span)| {
            let (task, other, target, spent) = (id(a), id(b), CpuId(cpu), Nanos(span));
            match which {
                0..4 => EventKind::SchedSwitch {
                    prev: task,
                    next: other,
                    prev_state: [Runnable, Blocked, Dead][usize::from(cpu) % 3],
                },
                4 => EventKind::SchedWaking { task, target, context: WakeContext::Unknown },
                5 => EventKind::SchedWakeup { task, target },
                6 => EventKind::SchedWakeupNew { task, target },
                7 => EventKind::SchedMigrateTask { task, from: CpuId(0), to: target },
                8 if span < 25 => EventKind::JobRelease { task },
                8 => EventKind::JobComplete { task, demand: spent },
                _ => EventKind::Overhead { task, kind: OverheadKind::Switch, spent },
            }
        });
    (0u64..1000, 0u16..4, kind).prop_map(|(time, cpu, kind)| event(time, cpu, kind))
}

#[test]
fn the_global_response_ratio_of_a_simulation_is_that_of_its_bursts_and_pauses() {
    let sleeper = |n: u64| {
        task(
            at(n * 10),
            (0..5).map(|k| (100 + n + k, Action::Sleep(Nanos(50 * k)))).chain([(10, Action::Exit)]),
        )
    };
    let workload = workload((0..6).map(sleeper).collect());
    let machine = Machine {
        cpus: 2,
        switch_cost: Nanos(3),
        migration_cost: Nanos(9),
        idle_exit: Nanos(5),
        wake_cost: Nanos(4),
        ..Machine::ideal(2)
    };
    let (outcome, events) = events_of("central:rr", &machine, &workload);
    let s = summary(2, outcome.end.0, &events);
    let pauses = 6 * 50 * (1 + 2 + 3 + 4);
    assert_eq!(s.sum(|task| task.task_time()).0, workload.demand().0 + pauses);
    assert!(s.get("grr").unwrap() > 1.5 && s.get("overhead_ns").unwrap() > 0.0);
    assert_eq!(s.get("cpu_time_ns"), Some(workload.demand().0 as f64));
}
