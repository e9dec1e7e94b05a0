//! Tests the model of Curran & Stumm 1990 against exact results.
//!
//! As in `queueing.rs`, a value of theory must lie in the 99 % interval of the mean over
//! independent runs *and* be near it. Sources: Erlang C for the central queue of a network of
//! bursts and pauses (Jackson 1957); Cobham 1954 for priorities without preemption; for the
//! saturation of Central Queue, the balance of work.

use schedsim::engine::{self, Options};
use schedsim::metrics::{OpenSummary, OpenSystem};
use schedsim::policy::PolicySpec;
use schedsim::trace::Trace;
use schedsim::workload::{After, Bursts, Class, Distribution, Model, RunLength, Unix1990};
use schedsim::{Machine, Nanos, Time};

/// Runs and tasks in each: fewer without optimisation, where they take as long.
const RUNS: u64 = if cfg!(debug_assertions) { 8 } else { 20 };
/// The 99.5th percentile of Student's t with `RUNS` − 1 degrees of freedom.
const T99: f64 = if cfg!(debug_assertions) { 3.499 } else { 2.861 };
const BURST: Nanos = Nanos::from_millis(5);

fn scaled(tasks: u64) -> u64 {
    if cfg!(debug_assertions) { tasks / 4 } else { tasks }
}

/// `measured` tasks in a steady state.
fn steady(measured: u64) -> RunLength {
    RunLength { warm_up: measured / 5, measured, after: After::GoOn, population_limit: 1_000_000 }
}

fn run(policy: &str, model: &Model, machine: &Machine, seed: u64) -> OpenSummary {
    let mut open = OpenSystem::new(model, seed, machine.cpus);
    let policy = PolicySpec::parse(policy).unwrap();
    engine::simulate_named(
        model,
        machine,
        &policy,
        Options { seed, until: Time::NEVER },
        Trace::new(vec![&mut open]),
    )
    .unwrap();
    open.finish()
}

/// The mean over all runs and half of its 99 % interval.
fn estimate(sample: impl FnMut(u64) -> f64) -> (f64, f64) {
    let samples: Vec<f64> = (1..=RUNS).map(sample).collect();
    let mean = samples.iter().sum::<f64>() / RUNS as f64;
    let variance =
        samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
    (mean, T99 * (variance / RUNS as f64).sqrt())
}

/// Checks that the mean of `sample(seed)` agrees with theory, within its interval and within
/// `tolerance`.
fn expect(what: &str, theory: f64, tolerance: f64, sample: impl FnMut(u64) -> f64) {
    let (mean, half_width) = estimate(sample);
    println!("{what}: theory {theory:.5}, simulated {mean:.5} ± {half_width:.5}");
    assert!(
        (mean - theory).abs() <= half_width,
        "{what}: theory {theory} is outside {mean} ± {half_width}"
    );
    assert!((mean / theory - 1.0).abs() <= tolerance, "{what}: {mean} is too far from {theory}");
}

/// The probability of waiting in M/M/c.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let offered = f64::from(servers) * load;
    let (mut term, mut sum) = (1.0, 0.0);
    for n in 1..=servers {
        sum += term;
        term *= offered / f64::from(n);
    }
    term / (1.0 - load) / (sum + term / (1.0 - load))
}

#[test]
fn central_queue_has_the_exact_response_ratio_of_its_network() {
    // Without TMC; SMC lengthens every burst, whatever the quantum and the pauses.
    for (load, smc, quantum) in [(0.5, 0.0, "100ms"), (0.7, 0.05, "100ms"), (0.8, 0.1, "3ms")] {
        let unix = Unix1990 {
            load,
            smc,
            tmc: Nanos::ZERO,
            burst: Bursts::Exponential(BURST),
            length: steady(scaled(4000)),
            ..Unix1990::default()
        };
        let (model, machine) = (unix.model().unwrap(), unix.machine());
        let (bursts, pause, burst, stretched) =
            (unix.bursts, unix.pause.0 as f64, BURST.0 as f64, load * (1.0 + smc));
        let wait = erlang_c(4, stretched) / (4.0 * (1.0 - stretched));
        let alone = bursts * burst + (bursts - 1.0) * pause;
        let theory = (bursts * burst * (1.0 + smc) * (1.0 + wait) + (bursts - 1.0) * pause) / alone;
        // The compared value is the excess over one, which is small.
        let policy = format!("central:rr?quantum={quantum}");
        expect(&format!("GRR − 1 of CQ at {load}, SMC {smc}"), theory - 1.0, 0.1, |seed| {
            run(&policy, &model, &machine, seed).grr(|_| true).unwrap() - 1.0
        });
        expect("utilisation", stretched, 0.02, |seed| {
            run(&policy, &model, &machine, seed).utilisation
        });
    }
}

#[test]
fn under_overload_central_queue_migrates_three_times_in_four_but_for_first_bursts() {
    let unix = Unix1990 {
        load: 1.3,
        smc: 0.0,
        tmc: Nanos::ZERO,
        burst: Bursts::Exponential(BURST),
        length: RunLength { after: After::Drain, ..steady(scaled(8000)) },
        ..Unix1990::default()
    };
    let (model, machine) = (unix.model().unwrap(), unix.machine());
    // All CPUs are busy, and first bursts come as often as tasks: load / K of all dispatches, which
    // is 1/K at the border.
    let theory = 0.75 * (1.0 - unix.load / unix.bursts);
    expect("migration rate", theory, 0.01, |seed| {
        run("central:rr?quantum=10s", &model, &machine, seed).migration_rate().unwrap()
    });
}

#[test]
fn central_queue_is_bounded_below_its_saturation_line_and_grows_above_it() {
    // The cost of a migration at which load 0.7 is all that Central Queue can bear.
    let unix = Unix1990 { burst: Bursts::Exponential(BURST), ..Unix1990::default() };
    let migrations = 0.75 * (1.0 - 1.0 / unix.bursts);
    let line = (1.0 / unix.load - 1.0 - unix.smc) * BURST.0 as f64 / migrations;
    assert!((line / 2.5753e6 - 1.0).abs() < 1e-4, "{line}");
    // Only means matter: tasks arrive at equal distances and have equal numbers of bursts, so that
    // short runs suffice.
    let length = steady(scaled(20_000));
    let class = Class {
        bursts: Distribution::constant(unix.bursts).unwrap(),
        ..unix.model().unwrap().classes()[0].clone()
    };
    let model = Model::new(
        "even",
        Distribution::constant(unix.model().unwrap().gap()).unwrap(),
        vec![class],
        length,
    )
    .unwrap();
    let growth = |factor: f64| {
        let unix = Unix1990 { tmc: Nanos((factor * line) as u64), ..unix };
        assert_eq!(unix.central_saturation_load().unwrap() < unix.load, factor > 1.0);
        estimate(|seed| {
            let summary = run("central:rr?quantum=10s", &model, &unix.machine(), seed);
            // The saturation test on one run needs more growth than a run of this length has at
            // 1.05.
            assert!(
                summary.saturated.is_some() == (factor > 1.0) || factor == 1.05,
                "{factor}: {summary:?}"
            );
            summary.growth.unwrap() / summary.window.0 as f64 * 1e9
        })
    };
    // Tasks per second: arrivals less what all CPUs, always busy, can finish. All tasks progress
    // alike, and those in the system have about half of their bursts left, so the remaining work is
    // that of twice as many.
    let rate = |factor: f64| {
        let work = unix.bursts * (BURST.0 as f64 * (1.0 + unix.smc) + migrations * factor * line);
        2.0 * (unix.load * 4.0 / (unix.bursts * BURST.0 as f64) * 1e9 - 4.0 / work * 1e9)
    };
    let (below, above, far_above) = (growth(0.95), growth(1.05), growth(1.5));
    println!(
        "growth per second: {below:?} below, {above:?} and {far_above:?} above, where {:.3} and \
         {:.3} are due",
        rate(1.05),
        rate(1.5)
    );
    assert!(
        below.0.abs() <= below.1.max(0.05 * rate(1.05)),
        "below the line the population grows at {} ± {}",
        below.0,
        below.1
    );
    assert!(
        (above.0 / rate(1.05) - 1.0).abs() <= 0.25,
        "above it, {} ± {}, not {}",
        above.0,
        above.1,
        rate(1.05)
    );
    assert!(
        (far_above.0 / rate(1.5) - 1.0).abs() <= 0.25,
        "far above it, {} ± {}, not {}",
        far_above.0,
        far_above.1,
        rate(1.5)
    );
}

#[test]
fn priorities_wait_as_cobham_says() {
    const SHARES: [(u8, f64); 4] = [(100, 0.1), (110, 0.2), (120, 0.5), (130, 0.2)];
    let (service, load) = (1e6, 0.8);
    for cpus in [1u16, 4] {
        let class = Class {
            name: "job".into(),
            share: 1.0,
            intensive: false,
            priorities: SHARES.to_vec(),
            bursts: Distribution::constant(1.0).unwrap(),
            burst: Distribution::exponential(service).unwrap(),
            pause: Distribution::constant(1.0).unwrap(),
        };
        let gap = Distribution::exponential(service / (load * f64::from(cpus))).unwrap();
        let model =
            Model::new("M/M/c with priorities", gap, vec![class], steady(scaled(100_000))).unwrap();
        let summaries: Vec<OpenSummary> = (1..=RUNS)
            .map(|seed| {
                run(
                    "central:priority?levels=4&preempt=no&quantum=1000s",
                    &model,
                    &Machine::ideal(cpus),
                    seed,
                )
            })
            .collect();
        // The mean wait at a level: the work in progress, over the capacity that it and better
        // levels leave.
        let under_way = erlang_c(u32::from(cpus), load) / f64::from(cpus);
        let mut better = 0.0;
        for (level, (prio, share)) in SHARES.into_iter().enumerate() {
            let all = better + share * load;
            let theory = under_way / ((1.0 - better) * (1.0 - all));
            better = all;
            expect(&format!("wait at level {level} on {cpus} CPUs"), theory, 0.1, |seed| {
                let group = summaries[seed as usize - 1]
                    .groups
                    .iter()
                    .find(|group| group.kind.prio == prio)
                    .unwrap();
                (group.elapsed - group.task_time).0 as f64 / group.tasks as f64 / service
            });
        }
    }
}
