//! Lag, spread and starvation, by hand: tasks of nice 0 and 5, weights 1024 and 335, on one CPU.

use crate::support::{Run, at, switch, task, wakeup_new, workload};
use schedsim::metrics::{FairnessSummary, Metrics};
use schedsim::trace::PrevState::Runnable;
use schedsim::trace::{Event, Observer};
use schedsim::workload::{Action, TaskClass};
use schedsim::{Machine, Nanos, Time};
fn fairness(cpus: u16, prios: &[u8], events: &[Event], end: u64) -> FairnessSummary {
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
