//! Tests the metrics: simulated traces against a naive oracle, and messy recordings by hand.

#[path = "metrics/fairness.rs"]
mod fairness;
#[path = "metrics/naive.rs"]
mod naive;
mod support;

use schedsim::metrics::{CATALOGUE, Metrics, Summary, WakeEdge, WakeGraph};
use schedsim::trace::{Event, EventKind, Observer, PrevState, WakeContext};
use schedsim::workload::Action;
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use support::{at, event, events_of, id, switch, task, wakeup, wakeup_new, waking, workload};

use PrevState::{Blocked, Dead, Runnable};

fn summary(cpus: u16, end: u64, events: &[Event]) -> Summary {
    let mut metrics = Metrics::new(cpus);
    metrics.events(events);
    metrics.finish(Time(end))
}

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
