//! Tests the simulator against queueing theory, and against exact recursions on the same arrivals
//! and services.
//!
//! Each mean comes from [`RUNS`] independent runs, the first tenth of the tasks of each left out.
//! It passes if the value of theory lies in its 99 % interval (Student's t) *and* it is off by no
//! more than [`TOLERANCE`], so that a wide interval does not pass for a right one. Seeds are fixed.
//! Sources: Erlang C and Little's law as in Kleinrock 1975; Pollaczek 1930 and Khinchine 1932;
//! processor sharing: Kleinrock 1967, Sakata et al. 1971.

mod support;

use schedsim::metrics::{Metrics, Summary};
use schedsim::trace::{Event, EventKind, Observer, PrevState};
use schedsim::workload::{Action, Workload};
use schedsim::{Machine, Nanos, Random, Time};
use support::{Run, at, task, workload};

const RUNS: u64 = 20;
/// The 99.5th percentile of Student's t with `RUNS` − 1 = 19 degrees of freedom.
const T99: f64 = 2.861;
const JOBS: usize = if cfg!(debug_assertions) { 5_000 } else { 50_000 };
const TOLERANCE: f64 = if cfg!(debug_assertions) { 0.05 } else { 0.02 };

/// The mean service time, in nanoseconds.
const SERVICE: f64 = 1e6;
/// Longer than any service.
const FIRST_COME_FIRST_SERVED: &str = "central:rr?quantum=100s";

type Draw = fn(&mut Random) -> f64;

fn exponential(random: &mut Random) -> f64 {
    -(1.0 - random.unit()).ln()
}

fn constant(_: &mut Random) -> f64 {
    1.0
}

/// Mostly short, some long: nine tenths with mean 0.5, one tenth with mean 5.5; mean 1, second
/// moment 6.5.
fn hyperexponential(random: &mut Random) -> f64 {
    let mean = if random.below(10) == 0 { 5.5 } else { 0.5 };
    mean * exponential(random)
}

/// Tasks of one burst each, arriving at random: `(arrival, service)`.
fn arrivals(seed: u64, load: f64, cpus: u16, service: Draw) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed);
    let (mut now, gap) = (0.0, SERVICE / (load * f64::from(cpus)));
    let mut job = || {
        now += gap * exponential(&mut random);
        (now as u64, (SERVICE * service(&mut random)).max(1.0) as u64)
    };
    (0..JOBS).map(|_| job()).collect()
}

fn load_of(jobs: &[(u64, u64)]) -> Workload {
    workload(
        jobs.iter().map(|&(time, service)| task(at(time), [(service, Action::Exit)])).collect(),
    )
}

fn run(policy: &str, cpus: u16, workload: &Workload) -> (Summary, Population) {
    let (mut metrics, mut population) = (Metrics::new(cpus), Population::default());
    let machine = Machine::ideal(cpus);
    let run = Run {
        workload,
        machine: &machine,
        until: Time::NEVER,
        observers: vec![&mut metrics, &mut population],
    };
    let outcome = run.under(policy).unwrap();
    (metrics.finish(outcome.end), population)
}

/// Counts tasks in the system, independently of the metrics.
#[derive(Default)]
struct Population {
    tasks: u64,
    since: Time,
    /// Tasks × nanoseconds.
    area: u64,
}

impl Observer for Population {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            self.area += self.tasks * (event.time - self.since).0;
            self.since = event.time;
            match event.kind {
                EventKind::SchedWakeupNew { .. } => self.tasks += 1,
                EventKind::SchedSwitch { prev_state: PrevState::Dead, .. } => self.tasks -= 1,
                _ => {}
            }
        }
    }
}

/// The mean time in the system after the warm-up, in mean services.
fn response(summary: &Summary) -> f64 {
    let steady = &summary.tasks[JOBS / 10..];
    steady.iter().map(|task| task.elapsed().0 as f64).sum::<f64>() / steady.len() as f64 / SERVICE
}

/// Checks that the mean of `sample(seed)` over all runs agrees with theory.
fn expect(what: &str, theory: f64, sample: impl FnMut(u64) -> f64) {
    let samples: Vec<f64> = (1..=RUNS).map(sample).collect();
    let mean = samples.iter().sum::<f64>() / RUNS as f64;
    let variance =
        samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
    let half_width = T99 * (variance / RUNS as f64).sqrt();
    println!("{what}: theory {theory:.4}, simulated {mean:.4} ± {half_width:.4}");
    assert!(
        (mean - theory).abs() <= half_width,
        "{what}: theory {theory} is outside {mean} ± {half_width}"
    );
    assert!((mean / theory - 1.0).abs() <= TOLERANCE, "{what}: {mean} is too far from {theory}");
}

/// The probability of waiting in M/M/c with `c` servers at utilisation `load` (Erlang C).
fn erlang_c(servers: u32, load: f64) -> f64 {
    let offered = f64::from(servers) * load;
    let (mut term, mut sum) = (1.0, 0.0);
    for n in 1..=servers {
        sum += term;
        term *= offered / f64::from(n);
    }
    term / (1.0 - load) / (sum + term / (1.0 - load))
}

/// Mean waiting time in M/G/1, first come first served (Pollaczek–Khinchine), for services with
/// mean 1.
fn pollaczek_khinchine(load: f64, second_moment: f64) -> f64 {
    load * second_moment / (2.0 * (1.0 - load))
}

#[test]
fn the_formulas_have_their_textbook_values() {
    assert!((erlang_c(1, 0.6) - 0.6).abs() < 1e-12);
    // Two servers at utilisation 0.75: 9/14.
    assert!((erlang_c(2, 0.75) - 9.0 / 14.0).abs() < 1e-12);
    assert!((pollaczek_khinchine(0.5, 2.0) - 1.0).abs() < 1e-12);
}

#[test]
fn first_come_first_served_is_exact_to_the_nanosecond() {
    // Kiefer & Wolfowitz 1955: the next arrival is served by the CPU that is free first. For one
    // CPU this is Lindley's recursion.
    for (cpus, service) in
        [(1, exponential as Draw), (1, hyperexponential), (4, exponential), (7, hyperexponential)]
    {
        let jobs = arrivals(5, 0.8, cpus, service);
        let (summary, _) = run(FIRST_COME_FIRST_SERVED, cpus, &load_of(&jobs));
        let mut free = vec![0u64; usize::from(cpus)];
        for (&(arrival, service), task) in jobs.iter().zip(&summary.tasks) {
            let first = free.iter_mut().min().unwrap();
            *first = arrival.max(*first) + service;
            assert_eq!((task.first, task.last), (Time(arrival), Time(*first)));
        }
    }
}

#[test]
fn m_m_1_waits_as_theory_says() {
    let load = 0.6;
    let summary =
        |seed| run(FIRST_COME_FIRST_SERVED, 1, &load_of(&arrivals(seed, load, 1, exponential))).0;
    expect("M/M/1 response time", 1.0 / (1.0 - load), |seed| response(&summary(seed)));
    expect("M/M/1 utilisation", load, |seed| summary(seed).get("utilisation").unwrap());
}

#[test]
fn m_m_4_waits_as_erlang_says() {
    let load = 0.7;
    let summary =
        |seed| run(FIRST_COME_FIRST_SERVED, 4, &load_of(&arrivals(seed, load, 4, exponential))).0;
    expect("M/M/4 response time", 1.0 + erlang_c(4, load) / (4.0 * (1.0 - load)), |seed| {
        response(&summary(seed))
    });
    expect("M/M/4 utilisation", load, |seed| summary(seed).get("utilisation").unwrap());
}

#[test]
fn m_g_1_waits_as_pollaczek_and_khinchine_say() {
    let load = 0.6;
    for (what, service, second_moment, load) in
        [("M/D/1", constant as Draw, 1.0, load), ("M/H/1", hyperexponential, 6.5, 0.4)]
    {
        let summary =
            |seed| run(FIRST_COME_FIRST_SERVED, 1, &load_of(&arrivals(seed, load, 1, service))).0;
        expect(what, 1.0 + pollaczek_khinchine(load, second_moment), |seed| {
            response(&summary(seed))
        });
    }
}

#[test]
fn round_robin_shares_the_processor_as_the_quantum_vanishes() {
    // Processor sharing is insensitive to the distribution of services, and a task takes 1/(1 − ρ)
    // times its service, short or long. With a quantum, a task waits for about half a round more
    // than its share; two quanta on the same arrivals give a line, whose value at zero is compared.
    let (load, theory) = (0.5, 2.0);
    let jobs = |seed| load_of(&arrivals(seed, load, 1, hyperexponential));
    let pair = |seed| {
        ["100us", "200us"]
            .map(|quantum| run(&format!("central:rr?quantum={quantum}"), 1, &jobs(seed)).0)
    };
    let pairs: Vec<[Summary; 2]> = (1..=RUNS).map(pair).collect();
    let at_zero = |seed: u64, of: &dyn Fn(&Summary) -> f64| {
        let [fine, coarse] = &pairs[seed as usize - 1];
        2.0 * of(fine) - of(coarse)
    };
    let middling = 2 * SERVICE as u64..4 * SERVICE as u64;
    let middling_grr =
        |s: &Summary| s.response_ratios(|task| middling.contains(&task.cpu_time.0)).unwrap().grr;
    expect("M/H/1 round robin, response time", theory, |seed| at_zero(seed, &response));
    expect("M/H/1 round robin, GRR", theory, |seed| at_zero(seed, &|s| s.get("grr").unwrap()));
    expect("M/H/1 round robin, GRR of the middling", theory, |seed| at_zero(seed, &middling_grr));
}

#[test]
fn littles_law_holds_exactly_from_empty_to_empty() {
    for policy in ["central:rr?quantum=100us", "take:rr?quantum=100us", "initial:rr?quantum=100us"]
    {
        let (summary, population) =
            run(policy, 3, &load_of(&arrivals(9, 0.8, 3, hyperexponential)));
        assert_eq!(population.area, summary.sum(|task| task.elapsed()).0, "{policy}");
        // And for the queue alone: tasks that wait, averaged over time, are the rate of arrivals
        // times the mean wait.
        let waiting = summary.get("ready_length_mean").unwrap();
        let waited = summary.get("run_delay_ns").unwrap() / summary.end.0 as f64;
        assert!((waiting - waited).abs() < 1e-9 * waited, "{policy}: {waiting} {waited}");
    }
}

#[test]
fn a_central_queue_of_bursts_and_pauses_has_the_response_ratio_of_its_network() {
    // Curran & Stumm's model without costs: a geometric number of exponential bursts with
    // exponential pauses between them, on 4 CPUs. Bursts arrive as in M/M/4 (Jackson 1957),
    // whatever the quantum.
    let (load, cpus, bursts, pause) = (0.7, 4u16, 5.0, 3.0);
    let wait = erlang_c(u32::from(cpus), load) / (f64::from(cpus) * (1.0 - load));
    let theory =
        (bursts * (1.0 + wait) + (bursts - 1.0) * pause) / (bursts + (bursts - 1.0) * pause);
    let grr = |seed| {
        let mut random = Random::new(seed);
        let (mut now, gap) = (0.0, SERVICE * bursts / (load * f64::from(cpus)));
        let mut tasks = Vec::new();
        while tasks.len() < JOBS / 4 {
            now += gap * exponential(&mut random);
            let mut steps = Vec::new();
            loop {
                let burst = (SERVICE * exponential(&mut random)).max(1.0) as u64;
                if random.unit() < 1.0 / bursts {
                    steps.push((burst, Action::Exit));
                    break;
                }
                steps.push((
                    burst,
                    Action::Sleep(Nanos((SERVICE * pause * exponential(&mut random)) as u64)),
                ));
            }
            tasks.push(task(at(now as u64), steps));
        }
        let (summary, _) = run("central:rr", cpus, &workload(tasks));
        summary.response_ratios(|task| task.task.index() >= JOBS / 40).unwrap().grr
    };
    expect("network of 4 CPUs and pauses, GRR", theory, grr);
}
