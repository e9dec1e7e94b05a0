//! Tests the metrics: simulated traces against a naive oracle, and messy recordings by hand.

mod support;

use proptest::prelude::*;
use schedsim::metrics::{CATALOGUE, Metrics, Summary, WakeEdge, WakeGraph};
use schedsim::trace::{Event, EventKind, Observer, OverheadKind, PrevState, WakeContext};
use schedsim::workload::{Action, TaskClass};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use support::{
    Run, at, event, events_of, id, swarm, switch, task, wakeup, wakeup_new, waking, workload,
};

use PrevState::{Blocked, Dead, Runnable};

fn summary(cpus: u16, end: u64, events: &[Event]) -> Summary {
    let mut metrics = Metrics::new(cpus);
    metrics.events(events);
    metrics.finish(Time(end))
}

// By hand.

#[test]
fn a_task_whose_switch_from_idle_is_missing_has_run_since_it_could() {
    // CPU 0 idles from 20; task 1 is woken at 50 and leaves it at 90. Task 2 was woken at 10, while
    // the CPU was busy, and must have waited until 20.
    let start = [switch(0, 0, -1, Runnable, 0), waking(10, 2, 0), switch(20, 0, 0, Blocked, -1)];
    let s = summary(
        1,
        100,
        &[&start[..1], &start[2..], &[waking(50, 1, 0), switch(90, 0, 1, Blocked, -1)]].concat(),
    );
    assert_eq!(
        (s.tasks[1].cpu_time, s.tasks[1].run_delay, s.tasks[1].dispatches),
        (Nanos(40), Nanos::ZERO, 1)
    );
    assert_eq!(
        (s.cpus[0].busy, s.cpus[0].idle, s.get("switches")),
        (Nanos(60), Nanos(40), Some(4.0))
    );
    assert_eq!((s.totals.idle_waste, s.totals.idle_waste_min), (Nanos::ZERO, Nanos::ZERO));
    let s = summary(1, 100, &[&start[..], &[switch(90, 0, 2, Blocked, -1)]].concat());
    assert_eq!(
        (s.tasks[1].cpu_time, s.tasks[1].run_delay, s.cpus[0].waiting_mean),
        (Nanos(70), Nanos(10), 0.1)
    );
    assert_eq!((s.oddities.unseen_switch_ins, s.oddities.total()), (1, 1));
    // The waste of idle CPUs is unknown then, and so is the wakeup latency.
    assert_eq!(
        (s.get("idle_waste"), s.get("wakeup_latency_ns_max"), s.get("run_delay_ns")),
        (None, None, Some(10.0))
    );
    // Neither waking nor switch was recorded: it runs now, and nothing else is known.
    let s = summary(1, 100, &[&start[..1], &start[2..], &[switch(90, 0, 3, Blocked, -1)]].concat());
    assert_eq!(
        (s.tasks[1].cpu_time, s.cpus[0].busy, s.totals.time_unseen),
        (Nanos::ZERO, Nanos(20), Nanos(70))
    );
}

#[test]
fn a_small_trace_has_its_hand_computed_numbers() {
    // Two CPUs. Task 0 runs 0..100 on CPU 0, sleeps, is woken at 150 and runs 170..200 on CPU 1.
    // Task 1 is new at 20, runs 40..90 on CPU 1, is preempted for nothing, and runs 100..120 on CPU
    // 0, where it exits.
    let s = summary(
        2,
        200,
        &[
            wakeup_new(0, 0, 0),
            switch(0, 0, -1, Runnable, 0),
            wakeup_new(20, 1, 1),
            switch(40, 1, -1, Runnable, 1),
            switch(90, 1, 1, Runnable, -1),
            switch(100, 0, 0, Blocked, 1),
            switch(120, 0, 1, Dead, -1),
            waking(150, 0, 1),
            switch(170, 1, -1, Runnable, 0),
        ],
    );
    assert_eq!(s.get("makespan_ns"), Some(200.0));
    assert_eq!(s.get("cpu_time_ns"), Some((100 + 30 + 50 + 20) as f64));
    assert_eq!(s.get("utilisation"), Some(200.0 / 400.0));
    assert_eq!(s.get("run_delay_ns"), Some((20 + 10 + 20) as f64));
    assert_eq!(s.get("run_delay_ns_mean"), Some(50.0 / 4.0));
    assert_eq!(s.get("run_delay_ns_max"), Some(20.0));
    assert_eq!(s.get("wakeup_latency_ns_max"), Some(20.0));
    assert_eq!(s.get("wakeup_latency_ns_p50"), Some(20.0));
    assert_eq!(s.get("wakeup_latency_ns_p99"), None);
    assert_eq!((s.get("switches"), s.get("dispatches")), (Some(6.0), Some(4.0)));
    assert_eq!((s.get("migrations"), s.get("migration_rate")), (Some(2.0), Some(0.5)));
    assert_eq!((s.get("slice_ns_mean"), s.get("completion_inversions")), (Some(200.0 / 4.0), None));
    // Elapsed 200 and 100, waiting 20 and 30.
    assert_eq!(s.get("grr"), Some(300.0 / 250.0));
    assert_eq!(s.get("apr"), Some((200.0 / 180.0 + 100.0 / 70.0) / 2.0));
    // A task waits and a CPU idles in 20..40, 90..100 (one CPU each) and 150..170 (both).
    assert_eq!(s.get("idle_waste"), Some((20 + 10 + 40) as f64 / 400.0));
    assert_eq!(s.get("idle_waste_min"), Some((20 + 10 + 20) as f64 / 400.0));
    let (x, y) = (130.0 / 150.0, 70.0 / 100.0);
    assert_eq!(s.get("jain_fairness"), Some((x + y) * (x + y) / (2.0 * (x * x + y * y))));
    assert_eq!(s.get("overhead_ns"), None);
    assert_eq!(s.oddities.total(), 0);
    // Queues: task 1 waits on CPU 1 twice, task 0 once, and the dispatch on CPU 0 takes task 1 from
    // CPU 1's queue.
    assert_eq!(
        s.cpus.iter().map(|cpu| (cpu.busy.0, cpu.idle.0, cpu.waiting_max)).collect::<Vec<_>>(),
        [(120, 80, 0), (80, 120, 1)]
    );
    assert_eq!(s.cpus[1].waiting_mean, 50.0 / 200.0);
    let bursts: Vec<(u32, u64)> =
        s.tasks.iter().map(|task| (task.bursts, task.cpu_time.0)).collect();
    assert_eq!(bursts, [(1, 130), (1, 70)]);
    assert_eq!(
        (s.distributions.burst.min(), s.distributions.burst.max()),
        (Some(Nanos(70)), Some(Nanos(100)))
    );
    assert_eq!(s.distributions.pause.max(), Some(Nanos(50)));
}

#[test]
fn slices_continue_over_idle_time_and_exits_are_compared_with_starts() {
    let start = [0, 1, 2, 3].map(|task| wakeup_new(0, task, 0));
    let run = [
        switch(0, 0, -1, Runnable, 0),
        switch(10, 0, 0, Blocked, -1),
        waking(20, 0, 0),
        switch(20, 0, -1, Runnable, 0),
        switch(30, 0, 0, Runnable, 1),
        switch(50, 0, 1, Dead, 0),
        switch(60, 0, 0, Dead, 3),
        switch(70, 0, 3, Dead, 2),
        switch(100, 0, 2, Dead, -1),
    ];
    let s = summary(1, 100, &[&start[..], &run].concat());
    // Slices of 0, 1, 0, 3 and 2; they end as 1, 0, 3, 2, so two of six pairs are in reverse order.
    assert_eq!((s.get("slice_ns_mean"), s.get("dispatches")), (Some(90.0 / 5.0), Some(6.0)));
    assert_eq!(s.get("completion_inversions"), Some(2.0 / 6.0));
    let reversed = [(3, 2), (2, 1), (1, 0), (0, -1)]
        .iter()
        .zip(1..)
        .map(|(&(task, next), time)| switch(time, 0, task, Dead, next));
    let s = summary(
        1,
        9,
        &[&start[..], &[switch(0, 0, -1, Runnable, 3)], &reversed.collect::<Vec<_>>()].concat(),
    );
    assert_eq!(s.get("completion_inversions"), Some(1.0));
    // Parents, which may wait for their children, are excluded: 1, 3, 2.
    let fork = event(0, 0, EventKind::SchedProcessFork { parent: id(0), child: id(1) });
    let s = summary(1, 100, &[&[fork], &start[..], &run].concat());
    assert_eq!(s.get("completion_inversions"), Some(1.0 / 3.0));
}

#[test]
fn every_metric_of_an_empty_trace_is_null_with_a_note() {
    for cpus in [0, 3] {
        for (metric, value) in summary(cpus, 0, &[]).values() {
            assert!(value.value.is_none() && value.note.is_some(), "{} is {value:?}", metric.id);
        }
    }
}

#[test]
fn the_names_of_metrics_are_unique_and_say_their_unit() {
    for (index, metric) in CATALOGUE.iter().enumerate() {
        assert!(
            CATALOGUE[..index].iter().all(|other| other.id != metric.id),
            "{} twice",
            metric.id
        );
        assert!(
            metric
                .id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{}",
            metric.id
        );
        assert_eq!(
            metric.id.split('_').any(|word| word == "ns"),
            metric.unit == "ns",
            "{}",
            metric.id
        );
        assert!(metric.definition.ends_with('.') && !metric.source.is_empty(), "{}", metric.id);
    }
}

#[test]
fn without_wakeups_only_metrics_of_switches_have_values() {
    let s = summary(
        1,
        30,
        &[switch(0, 0, 0, Runnable, 1), switch(10, 0, 1, Blocked, 0), switch(20, 0, 0, Blocked, 1)],
    );
    assert_eq!(
        (s.get("switches"), s.get("makespan_ns"), s.get("utilisation")),
        (Some(3.0), Some(30.0), Some(1.0))
    );
    for id in [
        "grr",
        "apr",
        "run_delay_ns",
        "wakeup_latency_ns_p50",
        "idle_waste",
        "jain_fairness",
        "response_time_ns_mean",
    ] {
        assert_eq!(s.get(id), None, "{id}");
    }
    assert_eq!(s.oddities.unwoken, 1);
}

#[test]
fn a_99th_percentile_takes_a_thousand_samples() {
    let round = |n: u64| {
        [
            waking(100 * n, 0, 0),
            switch(100 * n + 1 + n % 50, 0, -1, Runnable, 0),
            switch(100 * n + 60, 0, 0, Blocked, -1),
        ]
    };
    let of =
        |rounds: u64| summary(1, 100 * rounds, &(0..rounds).flat_map(round).collect::<Vec<_>>());
    let (_, few) =
        of(999).values().find(|(metric, _)| metric.id == "wakeup_latency_ns_p99").unwrap();
    assert_eq!((few.value, few.note), (None, Some("fewer than 1,000 samples")));
    assert_eq!(of(1000).get("wakeup_latency_ns_p99"), Some(50.0));
}

// Recordings are messy.

#[test]
fn the_first_prev_of_a_cpu_has_run_since_the_start_even_if_it_was_woken_meanwhile() {
    let s = summary(
        2,
        100,
        &[waking(10, 0, 0), switch(40, 0, 0, Blocked, -1), switch(50, 1, -1, Runnable, 1)],
    );
    assert_eq!(s.tasks[0].cpu_time, Nanos(40));
    assert_eq!(s.tasks[0].first, Time::ZERO);
    assert_eq!(s.tasks[0].run_delay, Nanos::ZERO);
    assert_eq!((s.cpus[0].busy, s.cpus[1].idle), (Nanos(40), Nanos(50)));
    assert_eq!(s.oddities.total(), 0);
}

#[test]
fn a_waking_before_the_sleeper_has_left_its_cpu_counts_from_the_waking() {
    let s = summary(
        1,
        100,
        &[
            switch(0, 0, -1, Runnable, 0),
            waking(30, 0, 0),
            switch(40, 0, 0, Blocked, -1),
            wakeup(45, 0, 0),
            switch(60, 0, -1, Runnable, 0),
        ],
    );
    assert_eq!(s.get("wakeup_latency_ns_max"), Some(30.0));
    assert_eq!(s.get("run_delay_ns"), Some(20.0));
    assert_eq!((s.tasks[0].wakeups, s.tasks[0].bursts, s.oddities.total()), (1, 1, 0));
}

#[test]
fn a_waking_of_a_task_that_keeps_running_is_void() {
    // The wakeup comes while it runs: it was about to sleep and did not.
    let awake = [
        switch(0, 0, -1, Runnable, 0),
        waking(10, 0, 0),
        wakeup(11, 0, 0),
        switch(50, 0, 0, Blocked, -1),
    ];
    let s = summary(
        1,
        100,
        &[&awake[..], &[waking(80, 0, 0), switch(85, 0, -1, Runnable, 0)]].concat(),
    );
    assert_eq!(
        (s.get("wakeup_latency_ns_max"), s.distributions.pause.max()),
        (Some(5.0), Some(Nanos(30)))
    );
    // The same without sched_wakeup events: the second waking shows that it did sleep.
    let s = summary(
        1,
        100,
        &[awake[0], awake[1], awake[3], waking(80, 0, 0), switch(85, 0, -1, Runnable, 0)],
    );
    assert_eq!((s.get("wakeup_latency_ns_max"), s.get("run_delay_ns")), (Some(5.0), Some(5.0)));
    assert_eq!(s.oddities.total(), 0);
    // Preempted before it could sleep: an ordinary wait, and no wakeup.
    let s = summary(
        1,
        100,
        &[awake[0], awake[1], switch(50, 0, 0, Runnable, 1), switch(60, 0, 1, Blocked, 0)],
    );
    assert_eq!((s.get("wakeup_latency_ns_max"), s.get("run_delay_ns")), (None, Some(10.0)));
}

#[test]
fn a_task_on_a_second_cpu_is_counted_as_an_oddity_and_believed() {
    let s = summary(
        2,
        100,
        &[
            switch(0, 0, -1, Runnable, 0),
            switch(40, 1, -1, Runnable, 0),
            switch(70, 0, 1, Blocked, -1),
        ],
    );
    assert_eq!((s.oddities.on_two_cpus, s.oddities.wrong_prev), (1, 0));
    assert_eq!(s.tasks[0].cpu_time, Nanos(100));
    assert_eq!(s.cpus.iter().map(|cpu| cpu.busy.0).collect::<Vec<_>>(), [70, 60]);
}

#[test]
fn the_queue_of_a_waiting_task_is_where_it_was_last_sent() {
    let migrate = EventKind::SchedMigrateTask { task: TaskId(0), from: CpuId(0), to: CpuId(2) };
    let s = summary(
        3,
        100,
        &[waking(0, 0, 0), event(10, 0, migrate), wakeup(30, 0, 1), switch(60, 1, -1, Runnable, 0)],
    );
    assert_eq!(s.cpus.iter().map(|cpu| cpu.waiting_mean).collect::<Vec<_>>(), [0.1, 0.3, 0.2]);
}

#[test]
fn excluded_tasks_occupy_cpus_and_nothing_else() {
    let events = [
        wakeup_new(0, 0, 0),
        switch(10, 0, -1, Runnable, 0),
        waking(20, 1, 0),
        switch(50, 0, 0, Runnable, 1),
    ];
    let mut metrics = Metrics::new(1).excluding([TaskId(0)]);
    metrics.events(&events);
    let s = metrics.finish(Time(100));
    assert_eq!(
        (s.tasks.len(), s.get("utilisation"), s.get("run_delay_ns")),
        (1, Some(0.9), Some(30.0))
    );
    assert_eq!(
        (s.get("switches"), s.get("dispatches"), s.get("run_delay_ns_max")),
        (Some(2.0), Some(1.0), Some(30.0))
    );
}

#[test]
fn jobs_have_response_times_and_ratios_and_may_overlap() {
    let release = |time| event(time, 0, EventKind::JobRelease { task: TaskId(3) });
    let complete = |time, demand| {
        event(time, 0, EventKind::JobComplete { task: TaskId(3), demand: Nanos(demand) })
    };
    let s = summary(
        1,
        100,
        &[release(0), release(10), complete(20, 10), complete(60, 20), complete(70, 1)],
    );
    assert_eq!(
        (s.get("response_time_ns_mean"), s.get("response_time_ns_p50")),
        (Some(35.0), Some(20.0))
    );
    assert_eq!((s.get("job_grr"), s.get("job_apr")), (Some(70.0 / 30.0), Some((2.0 + 2.5) / 2.0)));
    assert_eq!(s.oddities.jobs_unreleased, 1);
}

#[test]
fn the_wake_graph_names_the_running_task_unless_it_was_an_interrupt() {
    let by = |time, context| {
        event(time, 0, EventKind::SchedWaking { task: TaskId(1), target: CpuId(0), context })
    };
    let mut graph = WakeGraph::new();
    graph.events(&[
        by(0, WakeContext::Task),
        switch(1, 0, -1, Runnable, 0),
        by(2, WakeContext::Task),
        by(3, WakeContext::Unknown),
        by(4, WakeContext::Hardirq),
        waking(5, 2, 0),
    ]);
    let edge = |waker, wakee, count| WakeEdge { waker: id(waker), wakee: id(wakee), count };
    assert_eq!(graph.strongest(2), [edge(0, 1, 2), edge(-1, 1, 2)]);
    assert_eq!(graph.len(), 3);
}

// Against a naive oracle.

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

/// Run by hand: `cargo test --release -p schedsim --test metrics -- --ignored --nocapture`.
#[test]
#[ignore = "measures speed"]
fn how_fast() {
    let mut random = schedsim::Random::new(1);
    let mut steps = || {
        (0..50)
            .map(|_| (random.below(8_000_000), Action::Sleep(Nanos(random.below(100_000_000)))))
            .collect::<Vec<_>>()
    };
    let workload = workload((0..2000).map(|n| task(at(n * 90_000_000), steps())).collect());
    let machine = Machine {
        cpus: 4,
        switch_cost: Nanos(2000),
        migration_cost: Nanos(100_000),
        idle_exit: Nanos(1000),
        wake_cost: Nanos(700),
        ..Machine::ideal(4)
    };
    let (outcome, events) = events_of("take:rr", &machine, &workload);
    for _ in 0..5 {
        let (mut metrics, start) = (Metrics::new(4), std::time::Instant::now());
        for _ in 0..10 {
            metrics = Metrics::new(4);
            events.chunks(schedsim::trace::CHUNK).for_each(|chunk| metrics.events(chunk));
        }
        let spent = start.elapsed().as_nanos() as f64 / (10 * events.len()) as f64;
        let s = metrics.finish(outcome.end);
        println!(
            "{spent:.2} ns per event, {} events, utilisation {:?}",
            events.len(),
            s.get("utilisation")
        );
    }
}

// Fairness: tasks of nice 0 and 5, weights 1024 and 335, on one CPU.

fn fairness(
    cpus: u16,
    prios: &[u8],
    events: &[Event],
    end: u64,
) -> schedsim::metrics::FairnessSummary {
    let mut metrics =
        Metrics::new(cpus).with_tasks(prios.iter().map(|&prio| (prio, TaskClass::ByPriority)));
    metrics.events(events);
    metrics.finish(Time(end)).fairness.unwrap()
}

#[test]
fn lag_and_spread_against_the_ideal_share_by_hand() {
    // Task 0 runs for 1359 ns while task 1 waits: its share of those was 1024, and that of task 1
    // 335. Then task 1 runs for 335: it is as far ahead as 335 × 1024 / 1359 − 335 is behind.
    let events = [
        wakeup_new(0, 0, 0),
        wakeup_new(0, 1, 0),
        switch(0, 0, -1, Runnable, 0),
        switch(1359, 0, 0, Runnable, 1),
        switch(1694, 0, 1, Runnable, 0),
    ];
    let found = fairness(1, &[120, 125], &events[..4], 1359);
    assert_eq!((found.behind_max, found.ahead_max), (Nanos(335), Nanos(335)));
    assert_eq!((found.spread_max, found.inversion), (Nanos(1359), Nanos(0)));
    // Virtual run times are 1359 and 335 × 1024 / 335 = 1024 then; task 1 ran while the more
    // important task waited.
    let found = fairness(1, &[120, 125], &events, 1694);
    assert_eq!((found.spread_max, found.inversion), (Nanos(1359), Nanos(335)));
    // An arriving task resets the spread of virtual run times, but not lags.
    let mut joined = events[..4].to_vec();
    joined.insert(3, wakeup_new(1000, 2, 0));
    let found = fairness(1, &[120, 125, 120], &joined, 1359);
    assert_eq!(found.spread_max, Nanos(359));
    assert!(
        found.ahead_max > Nanos(1000 * 335 / 1359) && found.ahead_max < Nanos(500),
        "{found:?}"
    );
}

#[test]
fn no_task_is_owed_more_than_a_cpu_and_real_time_tasks_reduce_the_capacity() {
    // Of two CPUs a task of nice −20 is owed one and not 1.9, and the two others half a CPU each,
    // of which one is served twice that.
    let all = [
        wakeup_new(0, 0, 0),
        wakeup_new(0, 1, 1),
        wakeup_new(0, 2, 1),
        switch(0, 0, -1, Runnable, 0),
        switch(0, 1, -1, Runnable, 1),
    ];
    let found = fairness(2, &[100, 120, 120], &all, 1000);
    assert_eq!((found.behind_max, found.ahead_max), (Nanos(500), Nanos(500)));
    // If the first one is a real-time task, the others share what it leaves.
    assert_eq!(fairness(2, &[50, 120, 120], &all, 1000).ahead_max, Nanos(500));
    // On one CPU nothing is left for them, and they are owed nothing.
    let alone = [wakeup_new(0, 0, 0), wakeup_new(0, 1, 0), switch(0, 0, -1, Runnable, 0)];
    let found = fairness(1, &[50, 120], &alone, 1000);
    assert_eq!((found.behind_max, found.inversion), (Nanos(0), Nanos(0)));
}

#[test]
fn starvation_is_the_wait_beyond_a_tenth_of_a_second() {
    const MS: u64 = 1_000_000;
    let events = [
        wakeup_new(0, 0, 0),
        switch(0, 0, -1, Runnable, 0),
        wakeup_new(MS, 1, 0),
        switch(121 * MS, 0, 0, Runnable, 1),
    ];
    let mut metrics = Metrics::new(1);
    metrics.events(&events);
    // 20 ms of the finished wait, and 30 of the unfinished one.
    assert_eq!(metrics.finish(Time(251 * MS)).get("starvation_ns"), Some(50.0 * MS as f64));
}

/// The spread of virtual run times of `count` tasks that compute for a second.
fn spread(policy: &str, count: usize) -> f64 {
    let hogs = workload((0..count).map(|_| task(at(0), [(1_000_000_000, Action::Exit)])).collect());
    let machine = Machine::ideal(1);
    let mut metrics = Metrics::new(1).with_tasks(vec![(120, TaskClass::ByPriority); count]);
    let run = Run {
        workload: &hogs,
        machine: &machine,
        until: Time(1_000_000_000),
        observers: vec![&mut metrics],
    };
    run.under(policy).unwrap();
    metrics.finish(Time(1_000_000_000)).get("vruntime_spread_ns_max").unwrap() / 1e6
}

#[test]
fn the_spread_of_virtual_run_times_is_bounded_by_tasks_and_granularity() {
    // L-CLM04, L-MET06: tasks × ticks. Among equals that of pslist is two ticks for any number of
    // tasks; that of CFS is a slice, at least 0.75 ms, and a tick; that of EEVDF two of a slice,
    // rounded up to ticks.
    for count in [2, 4, 16, 64] {
        for tick in [1, 4] {
            let granular = |policy: &str| spread(&format!("{policy}?tick={tick}ms"), count);
            let (pslist, cfs, eevdf) = (granular("pslist"), granular("cfs"), granular("eevdf"));
            let tick = f64::from(tick);
            assert!(
                pslist <= 2.0 * tick,
                "pslist: {pslist} with {count} tasks and ticks of {tick} ms"
            );
            assert!(cfs <= 6.0 + tick, "cfs: {cfs} with {count} tasks and ticks of {tick} ms");
            assert!(
                eevdf <= 2.0 * (0.7 + tick),
                "eevdf: {eevdf} with {count} tasks and ticks of {tick} ms"
            );
        }
    }
    // That of round robin is its quantum, and that of first come, first served the length of the
    // run.
    assert_eq!([spread("central:rr?quantum=4ms", 16), spread("fifo", 16)], [4.0, 1000.0]);
}
