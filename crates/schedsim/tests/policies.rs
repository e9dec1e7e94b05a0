//! Tests `o1`, `pslist`, `mlfq` and the textbook's feedback queue: schedules by hand, and the
//! promises of each.

#[path = "support/play.rs"]
mod play;
#[path = "../examples/timeline/svg.rs"]
mod svg;

use play::*;
use proptest::prelude::*;
use schedsim::checks::Checks;
use schedsim::engine::{self, Options};
use schedsim::metrics::{Metrics, Summary};
use schedsim::policy::{
    Book, Catalog, FairOptions, Mlfq, O1, O1Options, Policy, PolicySpec, Promises, PsList,
    PsListOptions, Request, ShareMeasure, Textbook, Windows,
};
use schedsim::trace::Trace;
use schedsim::workload::{Action, TaskClass, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, QueueCost, Time};

const HOG: [(u64, Action); 1] = [(90_000 * MS, Action::Exit)];

fn hog(prio: u8) -> TaskSpec {
    task(prio, NOW, &HOG)
}

/// The switches on one CPU until `until`, in µs.
fn on_one_cpu<P: Policy>(policy: P, until: u64, tasks: Vec<TaskSpec>) -> Vec<(u64, i64)> {
    let (_, events) = run_until(policy, &Machine::ideal(1), &workload(tasks), Time(until));
    switches(&events).into_iter().map(|(time, task)| (time / US, task)).collect()
}

fn ms<const N: usize>(switches: [(u64, i64); N]) -> Vec<(u64, i64)> {
    switches.map(|(ms, task)| (ms * 1000, task)).into()
}

// O(1).

fn o1() -> O1 {
    O1::new(1, O1Options::default())
}

#[test]
fn o1_slices_are_as_the_nice_values_and_arrays_change_places() {
    // 100 ms at nice 0, 5 ms at nice 19, which two ticks of 4 ms end; 800 ms at nice −20.
    assert_eq!(
        on_one_cpu(o1(), 330 * MS, vec![hog(120), hog(139)]),
        ms([(0, 0), (100, 1), (108, 0), (208, 1), (216, 0), (316, 1), (324, 0)])
    );
    assert_eq!(
        on_one_cpu(o1(), 1_000 * MS, vec![hog(120), hog(100)]),
        ms([(0, 0), (0, 1), (800, 0), (900, 1)])
    );
}

#[test]
fn o1_lets_a_sleeper_run_for_700_ms_before_it_is_no_longer_interactive() {
    // After two seconds of sleep it is credited 796 ms (INTERACTIVE_SLEEP): a bonus of 2, enough to
    // preempt and to return to the active array. Each slice of 100 ms costs a seventh of that;
    // after seven the bonus is 1, which takes effect at the end of the eighth. Then the hog has its
    // slice.
    let sleeper = task(120, NOW, &[(MS, Action::Sleep(Nanos(2_000 * MS))), HOG[0]]);
    let found = on_one_cpu(o1(), 3_000 * MS, vec![hog(120), sleeper]);
    assert_eq!(found[..4], ms([(0, 0), (100, 1), (101, 0), (2101, 1)]));
    let back = found[4];
    assert_eq!(back.1, 0);
    assert!((2101 + 796..=2101 + 804).contains(&(back.0 / 1000)), "{back:?}");
}

#[test]
fn o1_gives_batch_tasks_no_bonus_and_no_preemption() {
    let mut sleeper = task(120, NOW, &[(MS, Action::Sleep(Nanos(2_000 * MS))), (MS, Action::Exit)]);
    sleeper.attributes.class = TaskClass::Batch;
    // It wakes at 2001, in the expired array, and waits for the end of the hog's slice, at a tick.
    assert_eq!(
        on_one_cpu(o1(), 2_150 * MS, vec![sleeper, hog(120)]),
        ms([(0, 0), (1, 1), (2100, 0), (2101, 1)])
    );
}

#[test]
fn o1_yields_into_the_expired_array() {
    // The yielder waits until all other slices are over: 25 ticks each.
    let yielder = task(120, NOW, &[(MS, Action::Yield), (MS, Action::Exit)]);
    assert_eq!(
        on_one_cpu(o1(), 250 * MS, vec![yielder, hog(120), hog(120)]),
        ms([(0, 0), (1, 1), (100, 2), (200, 0), (201, 1)])
    );
}

// pslist.

fn pslist(tick: u64, preempt: bool) -> PsList {
    let fair = FairOptions { tick: Nanos(tick), ..Default::default() };
    PsList::new(1, PsListOptions { preempt, fair })
}

#[test]
fn pslist_runs_until_the_next_task_has_been_passed() {
    // Virtual run times after each slice: 0: 4 > 0; 1: 4 = 4 continues, 8 > 4; 0: 8 = 8, 12 > 8;
    // and so on.
    assert_eq!(
        on_one_cpu(pslist(4 * MS, false), 30 * MS, vec![hog(120), hog(120)]),
        ms([(0, 0), (4, 1), (12, 0), (20, 1), (28, 0)])
    );
    // Three: 0, 1 and 2 to 4 each; 0 is at the head with 4 against 4 of task 1: to 8; 1 to 12, as 8
    // is less than no other.
    let three = on_one_cpu(pslist(4 * MS, false), 30 * MS, vec![hog(120), hog(120), hog(120)]);
    assert_eq!(three[..3], ms([(0, 0), (4, 1), (8, 2)]));
}

/// The largest difference in virtual run time between the first `count` of `tasks`, in ns of the
/// lightest, at any switch until `until`.
fn spread(policy: PsList, count: usize, tasks: Vec<TaskSpec>, until: u64) -> u64 {
    let weights: Vec<u64> =
        tasks[..count].iter().map(|task| NICE_WEIGHTS[usize::from(task.info.prio) - 100]).collect();
    let lightest = *weights.iter().min().unwrap();
    let mut service = Service::new(tasks.len());
    let (_, events) = run_until(policy, &Machine::ideal(1), &workload(tasks), Time(until));
    let mut worst = 0;
    for event in &events {
        service.event(event);
        let virtual_times = || {
            service.served.iter().zip(&weights).map(|(served, weight)| served * lightest / weight)
        };
        worst = worst.max(virtual_times().max().unwrap() - virtual_times().min().unwrap());
    }
    worst
}

#[test]
fn pslist_has_no_bound_where_tasks_yield_or_are_preempted_early() {
    // L-EXP06, L-CLM06: one task that must run ten times as long as the twelve others to keep up
    // with them.
    let hogs = || [vec![hog(110)], vec![hog(120); 12]].concat();
    let after = |preempt, tasks: Vec<TaskSpec>, seconds: u64| {
        spread(pslist(4 * MS, preempt), 13, tasks, seconds * 1_000 * MS)
    };
    assert!(after(false, hogs(), 8) <= 28 * MS);
    // It yields after each ms and never gets the time to catch up.
    let yields =
        || [vec![task(110, NOW, &[(MS, Action::Yield)].repeat(9000))], vec![hog(120); 12]].concat();
    let (short, long) = (after(false, yields(), 2), after(false, yields(), 8));
    assert!(short > 60 * MS && long > 3 * short, "{short}, {long}");
    // A real-time task stops all others after two ms; a fair one that preempts stops only those
    // ahead of it.
    let naps = |prio| {
        [hogs(), vec![task(prio, NOW, &[(100 * US, Action::Sleep(Nanos(1900 * US)))].repeat(9000))]]
            .concat()
    };
    let (short, long) = (after(false, naps(50), 2), after(false, naps(50), 8));
    assert!(short > 30 * MS && long > 3 * short, "{short}, {long}");
    assert!(after(false, naps(100), 8) <= 28 * MS && after(true, naps(100), 8) <= 28 * MS);
}

// Multi-level feedback.

fn mlfq() -> Mlfq {
    Mlfq::new(1, Windows::default())
}

#[test]
fn mlfq_quanta_are_two_ticks_and_three_times_that_in_the_foreground() {
    assert_eq!(
        on_one_cpu(mlfq(), 70 * MS, vec![hog(120), hog(120)]),
        [(0, 0), (31_250, 1), (62_500, 0)]
    );
    let mut background = hog(120);
    background.attributes.class = TaskClass::Batch;
    let stretched = Mlfq::new(1, Windows { stretch: 3, ..Windows::default() });
    assert_eq!(
        on_one_cpu(stretched, 200 * MS, vec![hog(120), background]),
        [(0, 0), (93_750, 1), (125_000, 0)]
    );
}

#[test]
fn mlfq_boosts_a_woken_task_until_the_end_of_its_quantum() {
    // Task 1 has 30.25 ms left when it sleeps, from 32.25 to 42.25 ms. It wakes at priority 9, with
    // a sixth of a quantum less, and preempts; 25.04 ms later it is an equal again, and the hog has
    // the rest of its own quantum, 21.25 ms.
    let sleeper = task(120, NOW, &[(MS, Action::Sleep(Nanos(10 * MS))), HOG[0]]);
    let expected =
        [(0, 0), (31_250, 1), (32_250, 0), (42_250, 1), (67_291, 0), (88_541, 1), (119_791, 0)];
    assert_eq!(on_one_cpu(mlfq(), 120 * MS, vec![hog(120), sleeper.clone()]), expected);
    // Without a boost it waits for the end of the hog's quantum.
    let without = Mlfq::new(1, Windows { boost: 0, ..Windows::default() });
    assert_eq!(
        on_one_cpu(without, 70 * MS, vec![hog(120), sleeper]),
        [(0, 0), (31_250, 1), (32_250, 0), (63_500, 1)]
    );
}

#[test]
fn mlfq_boosts_a_starving_task_for_half_a_quantum_every_four_seconds() {
    // Priorities 15 and 1. At 4 s, where the first one's 128th quantum ends, the second has waited
    // for four: it runs for 15.625 ms. At 8 s it has waited for less.
    assert_eq!(
        on_one_cpu(mlfq(), 9_000 * MS, vec![hog(100), hog(139)]),
        [(0, 0), (4_000_000, 1), (4_015_625, 0)]
    );
    assert_eq!(
        on_one_cpu(mlfq(), 9_500 * MS, vec![hog(100), hog(139)])[3..],
        [(9_015_625, 1), (9_031_250, 0)]
    );
}

#[test]
fn mlfq_never_moves_real_time_priorities() {
    let sleeper = task(90, NOW, &[(MS, Action::Sleep(Nanos(MS))), (5 * MS, Action::Exit)]);
    assert_eq!(on_one_cpu(mlfq(), 50 * MS, vec![hog(50), sleeper]), ms([(0, 0)]));
}

#[test]
fn the_textbook_s_long_job_goes_down_and_the_short_one_passes_it() {
    // Arpaci-Dusseau, figure 8.3: B arrives at 100 ms and needs 20: 10 on top, 10 in the middle,
    // while A has been at the bottom since 20.
    let book = || Textbook::new(1, Book::default());
    let b = task(120, at(100 * MS), &[(20 * MS, Action::Exit)]);
    assert_eq!(on_one_cpu(book(), 200 * MS, vec![hog(120), b]), ms([(0, 0), (100, 1), (120, 0)]));
    // Figure 8.4: B does 1 ms of work and sleeps; A has all the rest.
    let b = task(120, at(50 * MS), &[(MS, Action::Sleep(Nanos(9 * MS)))].repeat(3));
    assert_eq!(
        on_one_cpu(book(), 75 * MS, vec![hog(120), b]),
        ms([(0, 0), (50, 1), (51, 0), (60, 1), (61, 0), (70, 1), (71, 0)])
    );
}

#[test]
fn the_textbook_s_allotment_cannot_be_gamed_and_the_boost_ends_starvation() {
    // Figure 8.6: a task that gives up the CPU just before its quantum is over has used it up all
    // the same (9 + 1 of 10 ms), and then alternates with the others.
    let book = |period| Textbook::new(1, Book { period: Nanos(period * MS), ..Book::default() });
    let gamer = task(120, NOW, &[(9 * MS, Action::Sleep(Nanos(MS)))].repeat(100));
    let found = on_one_cpu(book(1_000), 300 * MS, vec![gamer.clone(), hog(120)]);
    let share: u64 =
        found.windows(2).filter(|pair| pair[0].1 == 0).map(|pair| pair[1].0 - pair[0].0).sum();
    assert!(share < 170_000, "{share} of 300000");
    // As in figure 8.5: without a boost A starves at the bottom, here while a new short job arrives
    // every 10 ms; with one it has a quantum in each period.
    let waits = |period| {
        let short = |n: u64| task(120, at((40 + 10 * n) * MS), &[(10 * MS, Action::Exit)]);
        let tasks = std::iter::once(hog(120)).chain((0..30).map(short)).collect();
        let (_, events) =
            run_until(book(period), &Machine::ideal(1), &workload(tasks), Time(400 * MS));
        dispatches(&events, 0).windows(2).map(|pair| (pair[1].0 - pair[0].0) / MS).max().unwrap()
    };
    assert_eq!(waits(10_000), 340);
    assert!(waits(50) <= 110, "{}", waits(50));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any mix on any number of CPUs.
    #[test]
    fn all_rules_and_promises_are_kept(tasks in mixed_tasks(14), machine in random_machine()) {
        fn check<P: Policy>(
            policy: P,
            machine: &Machine,
            workload: &Workload,
        ) -> Result<(), TestCaseError> {
            let promises = policy.promises();
            let violations = violations(policy, promises, machine, workload);
            prop_assert!(violations.is_empty(), "{violations:?}");
            Ok(())
        }
        let workload = Workload {
            tasks,
            cpu_sets: vec![[CpuId(0), CpuId(2)].into_iter().collect()],
            ..Default::default()
        };
        check(O1::new(machine.cpus, O1Options::default()), &machine, &workload)?;
        check(PsList::new(machine.cpus, PsListOptions::default()), &machine, &workload)?;
        check(
            PsList::new(machine.cpus, PsListOptions { preempt: true, ..Default::default() }),
            &machine,
            &workload,
        )?;
        check(
            Mlfq::new(machine.cpus, Windows { stretch: 2, boost: 2, ..Default::default() }),
            &machine,
            &workload,
        )?;
        let book = Book { period: Nanos(7 * MS), quantum: Nanos(MS), levels: 3 };
        check(Textbook::new(machine.cpus, book), &machine, &workload)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The bound of the header: equal weights, one tick; else `(N + 1) / 2` ticks of the lightest.
    #[test]
    fn pslist_keeps_virtual_run_times_together(
        prios in prop::collection::vec(105..130u8, 2..20),
        equal in any::<bool>(),
    ) {
        let tasks: Vec<TaskSpec> =
            prios.iter().map(|&prio| hog(if equal { 120 } else { prio })).collect();
        let ticks = if equal { 2 } else { prios.len() as u64 + 1 };
        let spread = spread(pslist(MS, false), tasks.len(), tasks, 1_000 * MS);
        prop_assert!(spread <= ticks * MS / 2, "{spread} with {} tasks", prios.len());
    }
}

// The cost of scheduling itself.

/// Instructions of the committed cost atlas, at 3000 MIPS.
fn atlas(structure: &str) -> QueueCost {
    let instructions = match structure {
        "rbtree" => [36.0, 171.0, 273.6, 351.5],
        "priority" => [41.0, 26.0, 26.0, 26.0],
        _ => [14.0, 13.0, 13.0, 13.0],
    };
    QueueCost::new([1, 10, 100, 1000].into_iter().zip(instructions.map(|count| count / 3.0)))
}

/// A run on a machine on which a switch is free and the ready queue is not: its summary.
fn charged(policy: &str, cpus: u16, load: &Workload) -> Summary {
    let spec = PolicySpec::parse(policy).unwrap();
    let machine =
        Machine { queue_cost: Some(atlas(spec.structure().unwrap())), ..Machine::ideal(cpus) };
    let mut metrics = Metrics::new(cpus);
    let mut checks = Checks::new(load, &machine, spec.promises(cpus));
    let options = Options { seed: 1, until: Time::NEVER };
    let outcome = engine::simulate_named(
        load,
        &machine,
        &spec,
        options,
        Trace::new(vec![&mut metrics, &mut checks]),
    )
    .unwrap();
    assert_eq!(checks.finish(&outcome), []);
    metrics.finish(outcome.end)
}

#[test]
fn a_slice_twice_as_long_halves_the_overhead_and_doubles_the_wait() {
    // P-CLM16.
    let load = workload((0..50).map(|_| task(120, NOW, &[(40 * MS, Action::Exit)])).collect());
    let ran = |quantum: &str| {
        let summary = charged(&format!("central:rr?quantum={quantum}"), 1, &load);
        [summary.get("queue_overhead_ns").unwrap(), summary.get("run_delay_ns_max").unwrap()]
    };
    let (short, long) = (ran("1ms"), ran("2ms"));
    // 2000 dispatches of 13 instructions, a third of a ns each; and 49 other slices.
    assert!((short[0] - 2000.0 * 4.0).abs() < 10.0, "{short:?}");
    assert!((long[0] / short[0] - 0.5).abs() < 0.001, "{short:?} {long:?}");
    assert_eq!((short[1] / 1e6).round(), 49.0);
    assert!((long[1] / short[1] - 2.0).abs() < 0.001, "{short:?} {long:?}");
}

/// St Andrews' load: the same work, 400 ms, divided among `threads` threads. Each works for a while
/// and, with `sleeps`, sleeps in the middle.
fn pythagoras(threads: u64, sleeps: bool) -> Workload {
    let work = 400 * MS / threads;
    let steps = [
        (work / 2, if sleeps { Action::Sleep(Nanos(MS)) } else { Action::Continue }),
        (work - work / 2, Action::Exit),
    ];
    workload((0..threads).map(|_| task(120, NOW, &steps)).collect())
}

#[test]
fn trees_cost_more_per_decision_the_more_threads_there_are_and_lists_do_not() {
    // A-CLM01, A-CLM05, A-CLM08: with only the cost of queues, the difference between Linux' tree
    // and Windows' lists.
    let overhead = |policy: &str, threads, sleeps| {
        let summary = charged(policy, 4, &pythagoras(threads, sleeps));
        (
            summary.get("queue_overhead_ns").unwrap() / summary.get("dispatches").unwrap(),
            summary.get("makespan_ns").unwrap(),
        )
    };
    for sleeps in [false, true] {
        let ran = |policy: &str| [100, 3200].map(|threads| overhead(policy, threads, sleeps));
        let [cfs, o1, mlfq] = ["cfs", "o1", "mlfq"].map(ran);
        // The load is spread over four queues under cfs and o1.
        assert!(cfs[1].0 > 1.4 * cfs[0].0, "{sleeps}: {cfs:?}");
        for constant in [o1, mlfq] {
            assert!(constant[1].0 <= 1.1 * constant[0].0, "{sleeps}: {constant:?}");
            assert!(cfs[1].0 > 5.0 * constant[1].0, "{sleeps}: {cfs:?} {constant:?}");
            // And yet the difference in run time is negligible.
            assert!(
                sleeps || (constant[1].1 / cfs[1].1 - 1.0).abs() < 0.01,
                "{cfs:?} {constant:?}"
            );
        }
    }
}

// The documentation.

/// The promises of the policy of this name on one CPU.
fn promises_of(policy: &str) -> Promises {
    PolicySpec::parse(policy).unwrap().promises(1)
}

/// The row of the table of promises for a policy, as its code declares them.
fn row(policy: &str) -> String {
    let promises = promises_of(policy);
    let yes = |promised| if promised { "yes" } else { "no" };
    let work = match promises {
        Promises { work_conserving: true, .. } => "yes",
        Promises { locally_work_conserving: true, .. } => "per CPU",
        _ => "no",
    };
    let strict = match promises.strict_below {
        0 => "no",
        1..=100 => "real-time tasks",
        _ => "yes",
    };
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    let shares = match promises.shares.map(|shares| shares.measure) {
        None => "none".to_string(),
        Some(ShareMeasure::Lag { request, tick }) => {
            let ahead = ShareMeasure::most_ahead(tick, Request { weight: 1024, length: request });
            format!(
                "lag: {0:.1} ms ahead; behind: {0:.1} ms with equal weights, else by a formula",
                ms(ahead)
            )
        }
        Some(ShareMeasure::Spread { fixed, per_task }) => {
            format!("spread: {:.2} ms + {:.2} ms per task", ms(fixed), ms(per_task))
        }
    };
    let structure = PolicySpec::parse(policy).unwrap().structure().unwrap();
    let summary = readyq::catalog::entry(structure).unwrap().summary;
    let order = summary.rsplit("; ").next().unwrap();
    format!(
        "| [{policy}]({}.md) | {work} | {strict} | {} | {shares} | {structure}, {order} |",
        policy.split('-').next().unwrap(),
        yes(promises.starvation_free)
    )
}

#[test]
fn the_table_of_promises_equals_the_declarations_of_policies() {
    let table = include_str!("../../../docs/policies/README.md");
    let catalog = Catalog::built_in();
    let missing: Vec<String> = catalog
        .schedulers()
        .map(|scheduler| row(scheduler.name))
        .filter(|row| !table.contains(row.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/policies/README.md lacks\n{}", missing.join("\n"));
}

#[test]
fn the_pictures_are_those_of_the_policies() {
    let catalog = Catalog::built_in();
    let schedulers =
        catalog.schedulers().map(|scheduler| (scheduler.name, scheduler.name.to_string()));
    let topologies = catalog
        .topologies()
        .map(|topology| (topology.name, format!("{}:rr?quantum=20ms", topology.name)));
    for (name, policy) in schedulers.chain(topologies) {
        let page = |extension| {
            format!("{}/../../docs/policies/{name}.{extension}", env!("CARGO_MANIFEST_DIR"))
        };
        let drawn = std::fs::read_to_string(page("svg")).unwrap_or_default();
        let expected = svg::timeline(&policy).unwrap();
        assert!(
            drawn == expected,
            "docs/policies/{name}.svg is not what `cargo run -p schedsim --example timeline -- \
             {policy}` prints"
        );
    }
    for (name, inherit) in [("no", false), ("yes", true)] {
        let page =
            format!("{}/../../docs/policies/pathfinder-{name}.svg", env!("CARGO_MANIFEST_DIR"));
        let drawn = std::fs::read_to_string(page).unwrap_or_default();
        let expected =
            svg::timeline_of("fifo", include_str!("engine/pathfinder.json"), inherit, 160).unwrap();
        assert!(
            drawn == expected,
            "docs/policies/pathfinder-{name}.svg is not what the example `timeline` prints, see \
             its main.rs"
        );
    }
    assert!(svg::timeline("o2").unwrap_err().contains("no policy named"));
}

#[test]
fn only_policies_that_promise_it_are_free_of_starvation() {
    let until = Time(60_000 * MS);
    for scheduler in Catalog::built_in().schedulers() {
        let load = workload(vec![hog(110), hog(110), hog(139)]);
        let policy = PolicySpec::parse(scheduler.name).unwrap().policy(1);
        let (_, events) = run_until(policy, &Machine::ideal(1), &load, until);
        let turns = dispatches(&events, 2);
        let times = || std::iter::once(0).chain(turns.iter().map(|turn| turn.0)).chain([until.0]);
        let longest = times().zip(times().skip(1)).map(|(from, to)| to - from).max().unwrap();
        assert_eq!(
            longest < 15_000 * MS,
            promises_of(scheduler.name).starvation_free,
            "{}: {longest}",
            scheduler.name
        );
    }
}

// The papers' examples.

/// The first `slices` slices on one CPU, of a ms each, by letter.
fn slices(policy: &str, prios: &[u8], slices: u64) -> String {
    let load = workload(prios.iter().map(|&prio| hog(prio)).collect());
    let turns = on_one_cpu(PolicySpec::parse(policy).unwrap().policy(1), slices * MS, load.tasks);
    let ends = turns.iter().skip(1).map(|turn| turn.0).chain([slices * 1000]);
    let spell = |(turn, end): (&(u64, i64), u64)| {
        ["A", "B", "C", "D", "E"][turn.1 as usize].repeat(((end - turn.0) / 1000) as usize)
    };
    turns.iter().zip(ends).map(spell).collect()
}

#[test]
fn porter_s_rates_in_the_simulator() {
    // P-ALG03: each level at half the rate of the one above, `A AB A ABC A AB A ABCD …`; the levels
    // are five nice values apart.
    let order = slices("central:multilist2?quantum=1ms", &[100, 105, 110, 115, 120], 31);
    assert_eq!(
        order,
        [
            "A", "AB", "A", "ABC", "A", "AB", "A", "ABCD", "A", "AB", "A", "ABC", "A", "AB", "A",
            "ABCDE"
        ]
        .concat()
    );
    assert_eq!(slices("take:ruler?quantum=1ms", &[100, 105, 110, 115, 120], 31), order);
    // P-ALG01: level k runs 1/k as often as level 1, over 60 slices of the first.
    let order =
        slices("central:rbtree?strides=linear&quantum=1ms", &[100, 105, 110, 115, 120], 137);
    let count = |letter| order.chars().filter(|&other| other == letter).count();
    assert_eq!(['A', 'B', 'C', 'D', 'E'].map(count), [60, 30, 20, 15, 12]);
    // P-ALG05: a level's rate is that of each of its tasks, for any number of tasks.
    assert_eq!(slices("central:multilist2?quantum=1ms", &[100, 100, 105], 10), "ABACBABACB");
}

#[test]
fn td_tp_s_two_threads_of_priority_70_on_one_cpu_and_on_four() {
    // POSIX priority 70 is 29 here. 1.6 ms and 3.7 ms of work (T-TAB01, T-TAB02); SCHED_OTHER at
    // nice 0.
    let threads = |prio| {
        workload(vec![
            task(prio, NOW, &[(1600 * US, Action::Exit)]),
            task(prio, NOW, &[(3700 * US, Action::Exit)]),
        ])
    };
    let ran = |policy: &str, prio, cpus| {
        let policy = PolicySpec::parse(policy).unwrap().policy(cpus);
        let (outcome, events) = run(policy, &Machine::ideal(cpus), &threads(prio));
        (outcome.end.0 / US, dispatches(&events, 0), dispatches(&events, 1))
    };
    // On one CPU the first runs to its end and then the second, in every class: a quantum of 100 ms
    // never ends (T-ERR02), nor does a tick of 4 ms fall into the first one's run.
    for (policy, prio) in [("fifo", 29), ("rr", 29), ("eevdf", 29), ("cfs", 120), ("eevdf", 120)] {
        assert_eq!(
            ran(policy, prio, 1),
            (5300, vec![(0, 0)], vec![(1600 * US, 0)]),
            "{policy} {prio}"
        );
        // On four CPUs they do not compete (T-ERR01).
        let (end, first, second) = ran(policy, prio, 4);
        assert_eq!(
            (end, first.len(), second.len(), first[0].0, second[0].0),
            (3700, 1, 1, 0, 0),
            "{policy} {prio}"
        );
        assert_ne!(first[0].1, second[0].1);
    }
    // They do alternate where a slice is shorter than their work: RR with a quantum of half a ms,
    // OTHER with a tick of 1 ms (T-CLM03: smaller slices).
    assert_eq!(ran("rr?quantum=500us", 29, 1).1.len(), 4);
    assert_eq!(ran("cfs?tick=1ms&latency=1ms&granularity=500us", 120, 1).1.len(), 2);
}
