//! Metrics of single tasks, programs and classes of demand, against naive twins over random traces;
//! and starvation.

mod support;

use proptest::prelude::*;
use schedsim::metrics::{Metrics, PART_CATALOGUE, Part, Summary, Value};
use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::workload::Action;
use schedsim::{Machine, Nanos, TaskId, Time};
use support::{Run, at, events_of, swarm, switch, task, wakeup_new, waking, workload};

use PrevState::{Blocked, Dead, Runnable};

fn summary(cpus: u16, end: u64, events: &[Event]) -> Summary {
    let mut metrics = Metrics::new(cpus).with_parts();
    metrics.events(events);
    metrics.finish(Time(end))
}

fn value(part: &Part, id: &str) -> Value {
    PART_CATALOGUE.iter().find(|metric| metric.id == id).expect("a metric of parts").read(part)
}

#[test]
fn two_tasks_have_their_hand_computed_numbers() {
    // Task 0 waits 10 and runs 30; task 1 waits 30 and runs 20, preempted for 40 in between; then
    // it is woken at 200, waits 5 and runs 15.
    let s = summary(
        1,
        300,
        &[
            wakeup_new(0, 0, 0),
            wakeup_new(10, 1, 0),
            switch(10, 0, -1, Runnable, 0),
            switch(40, 0, 0, Blocked, 1),
            switch(50, 0, 1, Runnable, 2),
            switch(90, 0, 2, Runnable, 1),
            switch(100, 0, 1, Blocked, 2),
            waking(200, 1, 0),
            switch(205, 0, 2, Runnable, 1),
            switch(220, 0, 1, Dead, 2),
        ],
    );
    let first = s.part([TaskId(0)]);
    assert_eq!(
        (value(&first, "cpu_time_ns").value, value(&first, "run_delay_ns").value),
        (Some(30.0), Some(10.0))
    );
    assert_eq!(
        (value(&first, "activation_ns_mean").value, value(&first, "slowdown_p50").value),
        (Some(40.0), Some(1.333))
    );
    let second = s.part([TaskId(1)]);
    assert_eq!(
        (value(&first, "wakeups").value, value(&second, "wakeups").value),
        (Some(0.0), Some(1.0)),
        "a new task is not woken up"
    );
    assert_eq!(
        (value(&second, "run_delay_ns").value, value(&second, "run_delay_ns_max").value),
        (Some(75.0), Some(40.0))
    );
    assert_eq!(
        (value(&second, "activation_ns_mean").value, value(&second, "wakeup_latency_ns_max").value),
        (Some(55.0), Some(5.0))
    );
    assert_eq!(
        (value(&second, "dispatches").value, value(&second, "unfinished_tasks").value),
        (Some(3.0), Some(0.0))
    );
    let both = s.part([TaskId(0), TaskId(1)]);
    assert_eq!(
        (value(&both, "activation_ns_mean").value, value(&both, "wakeup_latency_ns_p99").value),
        (Some(50.0), None)
    );
    assert_eq!(value(&s.part([TaskId(2)]), "unfinished_tasks").value, Some(1.0));
    assert_eq!(value(&s.part([TaskId(9)]), "cpu_time_ns").note, Some("no task was seen at work"));
}

#[test]
fn without_their_samples_parts_have_no_percentiles_and_say_why() {
    let mut metrics = Metrics::new(1);
    metrics.events(&[
        wakeup_new(0, 0, 0),
        switch(10, 0, -1, Runnable, 0),
        switch(40, 0, 0, Blocked, -1),
    ]);
    let s = metrics.finish(Time(50));
    let part = s.part([TaskId(0)]);
    assert_eq!(
        value(&part, "activation_ns_mean").note,
        Some("samples of single tasks were not gathered")
    );
    assert_eq!(
        (value(&part, "cpu_time_ns").value, s.get("activation_ns_mean")),
        (Some(30.0), Some(40.0))
    );
}

/// The history of a task, recomputed from all events for each question.
struct Twin<'e> {
    events: &'e [Event],
    task: TaskId,
    end: u64,
}

impl Twin<'_> {
    /// The times when it became runnable: wakings while it runs or waits change nothing in a
    /// simulation.
    fn releases(&self) -> Vec<u64> {
        let is_release = |event: &&Event| match event.kind {
            EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                task == self.task
            }
            _ => false,
        };
        self.events.iter().filter(is_release).map(|event| event.time.0).collect()
    }

    /// The times after `from` when it left a CPU, for good or not.
    fn stops(&self, from: u64) -> Vec<(u64, PrevState)> {
        let stop = |event: &Event| match event.kind {
            EventKind::SchedSwitch { prev, prev_state, .. }
                if prev == self.task && event.time.0 >= from =>
            {
                Some((event.time.0, prev_state))
            }
            _ => None,
        };
        self.events.iter().filter_map(stop).collect()
    }

    fn starts(&self) -> Vec<u64> {
        let start = |event: &Event| match event.kind {
            EventKind::SchedSwitch { next, .. } if next == self.task => Some(event.time.0),
            _ => None,
        };
        self.events.iter().filter_map(start).collect()
    }

    /// From each release to the block or exit that follows.
    fn activations(&self) -> Vec<u64> {
        // The blocks in order match the releases in order.
        let blocks: Vec<u64> = self
            .stops(0)
            .into_iter()
            .filter(|(_, state)| *state != Runnable)
            .map(|(time, _)| time)
            .collect();
        self.releases().iter().zip(&blocks).map(|(release, block)| block - release).collect()
    }

    /// Each wait ends with a start or with the trace; it began with the last release or preemption
    /// before.
    fn waits(&self) -> Vec<u64> {
        let preempted: Vec<u64> = self
            .stops(0)
            .into_iter()
            .filter(|(_, state)| *state == Runnable)
            .map(|(time, _)| time)
            .collect();
        let mut begins: Vec<u64> = self.releases().into_iter().chain(preempted).collect();
        begins.sort_unstable();
        let starts = self.starts();
        begins
            .iter()
            .enumerate()
            .map(|(place, begin)| starts.get(place).unwrap_or(&self.end) - begin)
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tasks_and_programs_agree_with_their_naive_twins((workload, machine) in swarm::workloads(7)) {
        for policy in ["eevdf", "take:rr", "central:rr"] {
            let (outcome, events) = events_of(policy, &machine, &workload);
            let s = summary(machine.cpus, outcome.end.0, &events);
            let mut all: Vec<u64> = Vec::new();
            for known in &s.tasks {
                let twin = Twin { events: &events, task: known.task, end: outcome.end.0 };
                let part = s.part([known.task]);
                let activations = twin.activations();
                prop_assert_eq!(
                    part.wait_max().0,
                    twin.waits().into_iter().max().unwrap_or(0),
                    "task {:?}",
                    known
                );
                let samples = part.samples.as_ref().unwrap();
                prop_assert_eq!(samples.activation.count(), activations.len() as u64);
                prop_assert_eq!(samples.activation.total().0, activations.iter().sum::<u64>());
                prop_assert_eq!(value(&part, "dispatches").value, Some(twin.starts().len() as f64));
                prop_assert!(
                    samples.slowdown.min().is_none_or(|least| least.0 >= 1000),
                    "no response is shorter than its demand"
                );
                all.extend(activations);
            }
            // A program is the sum of its tasks, and all tasks are the complete trace.
            let whole = s.part(s.tasks.iter().map(|task| task.task));
            let samples = whole.samples.as_ref().unwrap();
            prop_assert_eq!(&samples.activation, &s.distributions.activation);
            prop_assert_eq!(&samples.wakeup_latency, &s.distributions.wakeup_latency);
            prop_assert_eq!(&samples.slowdown, &s.distributions.slowdowns.all());
            prop_assert_eq!(samples.activation.total().0, all.iter().sum::<u64>());
            for id in [
                "cpu_time_ns",
                "run_delay_ns",
                "run_delay_ns_max",
                "wakeup_latency_ns_max",
                "migrations",
                "unfinished_tasks",
                "run_delay_per_cpu_time",
            ] {
                if let Some(of_all) = s.get(id) {
                    prop_assert_eq!(value(&whole, id).value, Some(of_all), "{}", id);
                }
            }
            let halves = [0, 1].map(|half| {
                s.part(s.tasks.iter().map(|task| task.task).filter(move |task| task.0 % 2 == half))
            });
            let shares: f64 = halves.iter().filter_map(|half| value(half, "cpu_share").value).sum();
            prop_assert!(
                s.get("cpu_time_ns") == Some(0.0) || (shares - 1.0).abs() < 1e-9,
                "{}",
                shares
            );
        }
    }
}

/// Two computing programs of one task each under `policy` until `until` milliseconds.
fn under(policy: &str, prios: [u8; 2], until: u64) -> Summary {
    let hog = |prio| {
        let mut hog = task(at(0), [(1_000_000_000, Action::Exit)]);
        hog.info.prio = prio;
        hog
    };
    let hogs = workload(prios.map(hog).into());
    let machine = Machine::ideal(1);
    let mut metrics = Metrics::new(1);
    let run = Run {
        workload: &hogs,
        machine: &machine,
        until: Time(until * 1_000_000),
        observers: vec![&mut metrics],
    };
    let outcome = run.under(policy).unwrap();
    metrics.finish(outcome.end)
}

/// The programs that starve under `policy`, compared with equals under eevdf.
fn starving(policy: &str, prios: [u8; 2], until: u64) -> Vec<u32> {
    let (run, base) = (under(policy, prios, until), under("eevdf", [120; 2], until));
    let starves =
        |task: &u32| run.part([TaskId(*task)]).starves(&base.part([TaskId(*task)]), run.length());
    (0..2).filter(starves).collect()
}

#[test]
fn a_policy_that_lets_a_task_wait_for_the_other_starves_it() {
    // All work is done in the end, and for half of the run a task waited; cut off there, the second
    // task got nothing at all.
    assert_eq!(starving("fifo", [120; 2], 5_000), [1]);
    assert_eq!(starving("fifo", [120; 2], 900), [1]);
    assert_eq!(starving("take:priority", [130, 110], 900), [0]);
    // The canary: a policy that shares starves no task, whatever the slice.
    for policy in ["eevdf", "take:rr", "take:rr?quantum=20ms", "cfs"] {
        assert_eq!(starving(policy, [120; 2], 900), Vec::<u32>::new(), "{policy}");
    }
    // A quarter of the CPU time is little, and no starvation.
    assert_eq!(starving("eevdf", [120, 125], 900), Vec::<u32>::new());
}

#[test]
fn equal_work_is_counted_per_cpu_time_and_not_per_window() {
    // The same two tasks cut at 900 ms and run to the end: totals grow, rates per CPU time served
    // do not.
    let (cut, whole) = (
        under("take:rr?quantum=10ms", [120; 2], 900),
        under("take:rr?quantum=10ms", [120; 2], 5_000),
    );
    let of = |id: &str| (cut.get(id).unwrap(), whole.get(id).unwrap());
    let (few, many) = of("run_delay_ns");
    assert!(many > 2.0 * few, "{few} {many}");
    for id in ["run_delay_per_cpu_time", "switches_per_cpu_second", "service_rate"] {
        let (cut, whole) = of(id);
        assert!((cut / whole - 1.0).abs() < 0.02, "{id}: {cut} {whole}");
    }
    assert_eq!(of("unfinished_tasks"), (2.0, 0.0));
    assert_eq!(
        under("fifo", [120; 2], 900).part([TaskId(1)]).sum(|task| task.cpu_time),
        Nanos::ZERO
    );
}
