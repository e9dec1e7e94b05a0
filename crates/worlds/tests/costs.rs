//! Costs are found again: simulates with known costs of blocking and waking, writes a recording of
//! it, and estimates the costs from that file.

use formats::export::RecordingWriter;
use formats::import::{self, Options as ImportOptions};
use formats::workload::Workload as Named;
use schedsim::checks::Checks;
use schedsim::engine::{Options, simulate_named};
use schedsim::metrics::Metrics;
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::{
    CallCost, CallCostEstimator, CallEstimates, CostEstimator, KernelWork, Nudge, Recorded,
    ReplayBuilder, ReplayOptions, Unknown, Workload,
};
use schedsim::{ByIdleTime, CallCosts, IdleTime, Machine, Nanos, Spread, Time, WakeLatency};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use worlds::experiment::parse_policy;

/// Writers that post to a semaphore of the C library. Every third post finds a reader asleep, readers
/// sometimes find a count, and tasks sleep. Nothing wakes in sync, so that wakeups go to either CPU.
const MIXED: &str = r#"{ "eventfd": { "p": { "semaphore": true, "wakes_one": true } }, "task": [
    { "name": "writer", "count": 2, "phases": [ { "loop": { "times": 150, "phases": [
        { "run": "11us" }, { "post": { "eventfd": "p" } },
        { "run": "2us" }, { "post": { "eventfd": "p" } },
        { "run": "2us" }, { "post": { "eventfd": "p" } }, { "run": "40us" },
        { "sleep": "60us" } ] } } ] },
    { "name": "reader", "count": 2, "phases": [ { "loop": { "times": 450, "phases": [
        { "run": "3us" }, { "take": { "eventfd": "p" } } ] } } ] } ] }"#;

fn scripts(text: &str, cpus: u16) -> Workload {
    Workload::of(&serde_json::from_str(text).unwrap(), cpus).unwrap()
}

/// Values around `middle`: half of it to one and a half, the median of which it is.
fn around(middle: u64) -> Spread {
    Spread::of((0..33).map(|part| Nanos(middle / 2 + middle * part / 32)).collect())
}

fn machine(seed: u64) -> Machine {
    Machine {
        switch_cost: Nanos(1_000),
        calls: CallCosts {
            block: around(3_000),
            wake_here: around(900),
            wake_away: around(1_200),
            wake_idle: around(5_000),
            exit: Spread::default(),
            preempt: Spread::default(),
            seed,
        },
        ..Machine::ideal(2)
    }
}

fn simulate(
    workload: &Workload,
    machine: &Machine,
    nudge: Option<Nudge>,
    policy: &str,
    observers: Vec<&mut dyn Observer>,
) -> Time {
    let options = Options { seed: 1, until: Time::NEVER };
    let policy = parse_policy(policy).unwrap();
    let trace = Trace::new(observers);
    simulate_named((workload, nudge), machine, &policy, options, trace).unwrap().end
}

fn record(workload: &Workload, machine: &Machine, nudge: Option<Nudge>, policy: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path =
        std::env::temp_dir().join(format!("schedlab-costs-{}-{number}.rec", std::process::id()));
    let infos: Vec<TaskInfo> = workload.tasks.iter().map(|task| task.info.clone()).collect();
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut writer = RecordingWriter::new(file, &infos, &workload.shared, machine.cpus).unwrap();
    simulate(workload, machine, nudge, policy, vec![&mut writer]);
    writer.finish().unwrap();
    path
}

fn estimated(path: &Path) -> CallEstimates {
    let mut estimator = CallCostEstimator::new(true);
    import::read(path, &ImportOptions::default(), vec![&mut estimator]).unwrap();
    estimator.finish()
}

fn holds(cost: &CallCost, truth: u64) -> bool {
    let (low, high) = cost.median.interval.unwrap_or_else(|| panic!("{cost}"));
    // A histogram distinguishes 0.4 %.
    low.0 as f64 * 0.996 <= truth as f64 && truth as f64 <= high.0 as f64 * 1.004
}

#[test]
fn the_intervals_of_known_costs_hold_them() {
    let workload = scripts(MIXED, 2);
    let mut held = [0; 5];
    for seed in 0..100 {
        let path = record(&workload, &machine(seed), Some(Nudge::new(seed)), "eevdf");
        let Machine { calls: costs, switch_cost, .. } = machine(seed);
        let middle = |spread: &Spread| spread.values()[16].0;
        let found = estimated(&path);
        fs::remove_file(&path).unwrap();
        let pairs = [
            (&found.block, middle(&costs.block)),
            (&found.wake_here, middle(&costs.wake_here)),
            (&found.wake_away, middle(&costs.wake_away)),
            (&found.wake_idle, middle(&costs.wake_idle)),
            (&found.switch, switch_cost.0),
        ];
        for (held, (cost, truth)) in held.iter_mut().zip(pairs) {
            *held += u32::from(holds(cost, truth));
        }
        if seed < 8 {
            println!("{found}; a switch {} for {switch_cost}", found.switch);
        }
    }
    println!("{held:?} of 100 intervals hold the truth");
    assert!(held.iter().all(|held| *held >= 95), "{held:?} of 100");
}

/// Hogs under tasks that sleep and wake each other: CPUs idle for short and long, or are busy.
const CROWDED: &str = r#"{ "pipe": { "p": { "capacity": 65536 } }, "task": [
    { "name": "hog", "count": 2, "phases": [ { "loop": { "times": 60, "phases": [
        { "run": "700us" }, { "sleep": "600us" } ] } } ] },
    { "name": "writer", "count": 2, "phases": [ { "loop": { "times": 400, "phases": [
        { "run": "9us" }, { "write": { "pipe": "p", "bytes": 100 } }, { "run": "30us" },
        { "sleep": "70us" } ] } } ] },
    { "name": "reader", "count": 2, "phases": [ { "loop": { "times": 400, "phases": [
        { "run": "3us" }, { "read": { "pipe": "p", "bytes": 100 } } ] } } ] } ] }"#;

/// How late CPUs choose: other values for each class.
fn late(seed: u64) -> WakeLatency {
    let by_idle_time = |[fresh, short, long]: [u64; 3]| {
        ByIdleTime([fresh, fresh, fresh, fresh, short, short, long].map(around))
    };
    WakeLatency {
        idle_here: by_idle_time([2_000, 2_800, 8_000]),
        idle_away: by_idle_time([8_000, 14_000, 24_000]),
        busy_here: around(2_500),
        busy_away: around(10_000),
        seed,
    }
}

#[test]
fn the_medians_of_known_latencies_are_found_again() {
    let workload = scripts(CROWDED, 2);
    // Of each class, the medians found as shares of the true ones.
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); 2 * IdleTime::COUNT + 2];
    for seed in 0..100 {
        let machine = Machine { latency: late(seed), ..machine(seed) };
        let path = record(&workload, &machine, Some(Nudge::new(seed)), "eevdf");
        let mut estimator = CostEstimator::new();
        import::read(&path, &ImportOptions::default(), vec![&mut estimator]).unwrap();
        fs::remove_file(&path).unwrap();
        let latency = estimator.latencies().latency;
        let all: Vec<&Spread> = latency.spreads().collect();
        for (class, (spread, truth)) in latency.spreads().zip(machine.latency.spreads()).enumerate()
        {
            // A class without enough samples has the distribution of another.
            let is_own = all.iter().filter(|other| *other == &spread).count() == 1;
            if is_own && !spread.values().is_empty() {
                let of = |spread: &Spread| spread.values()[16].0 as f64;
                found[class].push(of(spread) / of(truth));
            }
        }
    }
    let mut known = 0;
    for (class, shares) in found.iter_mut().enumerate().filter(|(_, of)| of.len() >= 20) {
        shares.sort_by(f64::total_cmp);
        let (low, middle, high) = (shares[0], shares[shares.len() / 2], shares[shares.len() - 1]);
        println!("class {class}: {} found, {low:.2} {middle:.3} {high:.2}", shares.len());
        // Classes of rare wakings have as few as ten samples of a wide distribution each.
        assert!(
            (middle - 1.0).abs() < 0.07 && low > 0.5 && high < 1.6,
            "class {class}: {shares:?}"
        );
        known += 1;
    }
    assert!(known >= 8, "{known}");
}

#[test]
fn the_work_of_tasks_does_not_change_the_costs() {
    let of = |text: &str| {
        let path = record(&scripts(text, 2), &machine(3), None, "eevdf");
        let found = estimated(&path);
        fs::remove_file(&path).unwrap();
        [found.block, found.wake_here, found.wake_away, found.wake_idle].map(|cost| cost.median)
    };
    let usual = of(MIXED);
    for text in [MIXED.replace("40us", "90us"), MIXED.replace("11us", "200us")] {
        for (one, other) in usual.iter().zip(of(&text)) {
            let (low, high) = one.interval.unwrap();
            let value = other.value.unwrap();
            assert!(
                low.0 * 97 / 100 <= value.0 && value.0 <= high.0 * 103 / 100,
                "{one} and {other}"
            );
        }
    }
}

#[test]
fn what_a_recording_cannot_tell_is_unknown() {
    let hogs = r#"{ "task": [ { "name": "hog", "count": 4, "phases": [ { "run": "300ms" } ] } ] }"#;
    let path = record(&scripts(hogs, 2), &machine(1), None, "eevdf");
    let found = estimated(&path);
    fs::remove_file(&path).unwrap();
    for cost in [&found.block, &found.wake_here, &found.wake_away, &found.wake_idle] {
        assert_eq!((cost.median.value, cost.unknown), (None, Some(Unknown::NoCalls)), "{cost}");
    }
    assert!(found.costs().are_free());
    // Two that answer each other: every call blocks or wakes, so that nothing shows what it does
    // besides.
    let Ok(Named::Closed(closed)) = Named::resolve("ping-pong:2?times=2000".as_ref()) else {
        panic!("ping-pong is no closed workload")
    };
    let alone = Machine { cpus: 1, ..machine(1) };
    let path = record(&closed.scripts(1).unwrap(), &alone, None, "fifo");
    let found = estimated(&path);
    fs::remove_file(&path).unwrap();
    assert_eq!(found.block.unknown, Some(Unknown::NothingToCompare), "{found}");
}

/// The replay of a recording with costs, on a machine with the estimated ones, takes as long; one
/// that leaves the costs in the tasks' work takes longer.
#[test]
fn a_replay_pays_for_blocking_and_waking_once() {
    let (workload, machine) = (scripts(MIXED, 2), machine(5));
    let path = record(&workload, &machine, None, "eevdf");
    let found = estimated(&path);
    let replayed = |work: KernelWork| {
        let mut builder = ReplayBuilder::new(ReplayOptions { program: true, ..Default::default() });
        let read = import::read(&path, &ImportOptions::default(), vec![&mut builder]).unwrap();
        builder.share(read.objects);
        builder.take_off(work);
        let end = Time(read.duration.0);
        let switch_cost = found.switch.median.value.unwrap();
        builder.finish(Recorded { tasks: &read.tasks, cpus: 2, end, switch_cost, recorders: &[] })
    };
    let on = Machine {
        switch_cost: found.switch.median.value.unwrap(),
        calls: found.costs(),
        ..machine.clone()
    };
    let ((once, report), (twice, _)) =
        (replayed(found.kernel_work()), replayed(KernelWork::default()));
    fs::remove_file(&path).unwrap();
    let mean = |workload: &Workload, machine: &Machine| {
        let end = |seed| {
            let nudge = Nudge::new(seed);
            simulate(workload, &nudge.machine(machine), Some(nudge), "eevdf", vec![]).0
        };
        (0..32).map(end).sum::<u64>() as f64 / 32.0
    };
    let truth = mean(&workload, &machine);
    let (once, twice) = (mean(&once, &on) / truth, mean(&twice, &on) / truth);
    println!("once {once:.4}, twice {twice:.4}, taken off {}", report.kernel_time);
    // What is taken off is one mean of all wakings, which cost from 0.9 to 5 us.
    assert!((once - 1.0).abs() < 0.015, "{once}");
    assert!(twice > 1.05, "{twice}");
}

/// Time is conserved, no task runs while asleep, and none is lost, with costs in calls.
#[test]
fn costs_in_calls_pass_the_checks_under_all_policies() {
    let workload = scripts(MIXED, 2);
    let locks = scripts(
        r#"{ "mutex": { "m": { "handoff": true } }, "task": [
        { "name": "worker", "count": 3, "phases": [ { "loop": { "times": 60, "phases": [
            { "run": "13us" }, { "lock": "m" }, { "run": "9us" }, { "unlock": "m" },
            { "sleep": "4us" }, { "barrier": "meet" } ] } } ] },
        { "name": "waiter", "phases": [ { "loop": { "times": 40, "phases": [
            { "lock": "n" }, { "wait": { "condition": "c", "mutex": "n" } }, { "run": "2us" },
            { "unlock": "n" } ] } } ] },
        { "name": "signaller", "phases": [ { "loop": { "times": 300, "phases": [
            { "sleep": "3us" }, { "lock": "n" }, { "signal": "c" }, { "unlock": "n" } ] } } ] } ] }"#,
        2,
    );
    for policy in ["eevdf", "cfs", "take:rr", "central:rr", "fifo", "initial:rr"] {
        for (seed, workload) in [(1, &workload), (2, &locks), (3, &workload), (4, &locks)] {
            let (nudge, spec) = (Nudge::new(seed), parse_policy(policy).unwrap());
            let machine = nudge.machine(&Machine { latency: late(seed), ..machine(seed) });
            let mut checks =
                Checks::new(workload, &machine, spec.promises(2)).with_nudge(Some(nudge));
            let options = Options { seed: 1, until: Time::NEVER };
            let outcome = simulate_named(
                (workload, Some(nudge)),
                &machine,
                &spec,
                options,
                Trace::new(vec![&mut checks]),
            )
            .unwrap();
            let violations = checks.finish(&outcome);
            assert!(violations.is_empty(), "{policy}: {violations:?}");
        }
    }
}

/// A task that computes, and is preempted five times.
const PREEMPTED: &str = r#"{ "task": [
    { "name": "low", "policy": "fifo", "priority": 10, "phases": [ { "run": "1ms" } ] },
    { "name": "high", "policy": "fifo", "priority": 20, "phases": [ { "loop": { "times": 5, "phases": [
        { "sleep": "100us" }, { "run": "10us" } ] } } ] } ] }"#;

#[test]
fn a_preempted_task_pays_each_time() {
    let end = |preempt: Spread| {
        let calls = CallCosts { preempt, ..CallCosts::default() };
        let machine = Machine { calls, ..Machine::ideal(1) };
        simulate(&scripts(PREEMPTED, 1), &machine, None, "eevdf", Vec::new())
    };
    let (free, paid) = (end(Spread::default()), end(Spread::always(Nanos(3_000))));
    assert_eq!(paid.since(free), Nanos(15_000));
}

/// Two children, one after the other; the parent waits for each.
const FORKS: &str = r#"{ "task": [
    { "name": "parent", "phases": [ { "loop": { "times": 2, "phases": [
        { "run": "10us" }, { "fork": "child" }, { "join": "child" } ] } } ] },
    { "name": "child", "count": 2, "forked": true, "phases": [ { "run": "100us" } ] } ] }"#;

/// The parent is woken before its child pays for its exit; what tasks pay is CPU time of theirs.
#[test]
fn an_exiting_task_pays_while_its_parent_waits() {
    let run = |exit: Spread| {
        let calls = CallCosts { exit, ..CallCosts::default() };
        let machine = Machine { calls, ..Machine::ideal(1) };
        let mut metrics = Metrics::new(0);
        let end = simulate(&scripts(FORKS, 1), &machine, None, "eevdf", vec![&mut metrics]);
        let summary = metrics.finish(end);
        let of = |id: &str| summary.get(id).unwrap_or(0.0);
        (end, of("cpu_time_ns"), of("wakeup_latency_ns_max"), of("overhead_ns"))
    };
    let (free, paid) = (run(Spread::default()), run(Spread::always(Nanos(7_000))));
    // The run is over as the parent, the last task, has ended.
    assert_eq!(paid.0.since(free.0), Nanos(14_000));
    assert_eq!((free.1, paid.1), (220_000.0, 234_000.0));
    assert_eq!((free.2, paid.2), (0.0, 7_000.0));
    assert_eq!(paid.3, 14_000.0);
}
