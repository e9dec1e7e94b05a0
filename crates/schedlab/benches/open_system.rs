//! Measures the simulation speed of stochastic workloads. Prints only; `make bench` runs it.
//!
//! Speeds are in events per second of CPU time: dispatches, ends of bursts and quanta, ends of
//! pauses, and arrivals. Compared variants run alternately in one process. Each figure is the best
//! of several runs, because other work on the machine can only slow a run down. `open_system
//! FILTER` runs the benchmarks whose names contain FILTER. For the cost of the parts see [ADR
//! 5](../../../docs/adr/0005-cost-of-an-event.md).

use schedlab as _; // its allocator
use schedsim::engine::{self, Options, Outcome};
use schedsim::metrics::OpenSystem;
use schedsim::policy::PolicySpec;
use schedsim::trace::{Observer, Trace};
use schedsim::workload::{After, Class, Distribution, Model, RunLength, Stream, Unix1990};
use schedsim::{Machine, MigrationCosts, Place, Time, Topology};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

const TURNS: usize = 5;
/// A million tasks.
const MANY: u64 = 1_000_000;
const SERVICE: f64 = 1e6;

fn main() {
    let filter =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let wanted = |name: &str| name.contains(&filter);
    println!("{:<60} {:>12}", "", "M events/s");
    if wanted("unix1990") {
        unix1990(4, 100_000);
    }
    if wanted("mm4") {
        against_textbook();
    }
    if wanted("cpus") {
        unix1990(1024, 200_000);
    }
    if wanted("domains") {
        domains();
    }
    if wanted("blocked") {
        a_million_blocked();
    }
    if wanted("ready") {
        a_million_ready();
    }
}

fn print(what: &str, speed: f64) {
    println!("{what:<60} {speed:>12.1}");
}

fn unix1990(cpus: u16, tasks: u64) {
    let length = RunLength { measured: tasks, ..Unix1990::FROM_EMPTY };
    let unix = Unix1990 { cpus, length, ..Unix1990::default() };
    let (model, machine) = (unix.model().expect("a model"), unix.machine());
    for policy in ["central:rr", "initial:rr", "take:rr"] {
        let policy = PolicySpec::parse(&format!("{policy}?quantum=100ms")).expect("a policy");
        let job = Job { model: &model, machine: &machine, until: Time::NEVER };
        let [with, chunks, without] = by_turns([
            &|| job.observed(&policy).events,
            &|| job.observed_in_chunks(&policy).events,
            &|| job.run(&policy, vec![]).events,
        ]);
        print(&format!("unix1990 at 0.7, {cpus} CPUs, {policy}, with metrics"), with);
        print(
            &format!("unix1990 at 0.7, {cpus} CPUs, {policy}, metrics of events in chunks"),
            chunks,
        );
        print(&format!("unix1990 at 0.7, {cpus} CPUs, {policy}, no observer"), without);
    }
}

/// The same machine flat, and as 8 nodes of 8 clusters of 16 CPUs, where balancing and stealing
/// begin with near CPUs.
fn domains() {
    const CPUS: u16 = 1024;
    let length = RunLength { measured: 200_000, ..Unix1990::FROM_EMPTY };
    let unix = Unix1990 { cpus: CPUS, length, ..Unix1990::default() };
    let (model, flat) = (unix.model().expect("a model"), unix.machine());
    let places = (0..CPUS)
        .map(|cpu| Place { core: cpu, cluster: cpu / 16, node: cpu / 128, speed: 1.0 })
        .collect();
    let topology =
        Topology::new(places, vec![], 1.0, MigrationCosts::default()).expect("a topology");
    let clusters = Machine { topology: Some(topology), ..flat.clone() };
    for [near_flat, policy] in [
        ["take:rr?quantum=100ms", "take:rr?quantum=100ms&steal=near"],
        ["eevdf", "eevdf"],
        ["cfs", "cfs"],
    ] {
        let run = |policy: &str, machine: &Machine| {
            let policy = PolicySpec::parse(policy).expect("a policy");
            Job { model: &model, machine, until: Time::NEVER }.run(&policy, vec![]).events
        };
        let [flat, near] = by_turns([&|| run(near_flat, &flat), &|| run(policy, &clusters)]);
        print(&format!("unix1990 at 0.7, {CPUS} CPUs, flat, {near_flat}"), flat);
        print(&format!("unix1990 at 0.7, {CPUS} CPUs in clusters, {policy}"), near);
    }
}

/// One burst per task, FIFO: a comparison with a few lines of code.
fn against_textbook() {
    const JOBS: u64 = 2_000_000;
    let class = Class {
        name: "job".into(),
        share: 1.0,
        intensive: false,
        priorities: vec![(120, 1.0)],
        bursts: Distribution::constant(1.0).expect("a count"),
        burst: Distribution::exponential(SERVICE).expect("a burst"),
        pause: Distribution::constant(1.0).expect("a pause"),
    };
    let gap = Distribution::exponential(SERVICE / (0.7 * 4.0)).expect("a gap");
    let length =
        RunLength { warm_up: 0, measured: JOBS, after: After::Drain, population_limit: u32::MAX };
    let model = Model::new("M/M/4", gap, vec![class], length).expect("a model");
    let machine = Machine::ideal(4);
    let policy = PolicySpec::parse("central:rr?quantum=100s").expect("a policy");
    let job = Job { model: &model, machine: &machine, until: Time::NEVER };
    let [with, textbook_with, without, textbook_without] = by_turns([
        &|| job.observed(&policy).events,
        &|| textbook::<true>(JOBS, 4),
        &|| job.run(&policy, vec![]).events,
        &|| textbook::<false>(JOBS, 4),
    ]);
    print("M/M/4 at 0.7, engine with metrics", with);
    print("M/M/4 at 0.7, textbook loop with the same statistics", textbook_with);
    print("M/M/4 at 0.7, engine, no observer", without);
    print("M/M/4 at 0.7, textbook loop without statistics", textbook_without);
    println!(
        "{:<60} {:>11.2}x",
        "engine over textbook, both with statistics",
        with / textbook_with
    );
    println!(
        "{:<60} {:>11.2}x",
        "engine with metrics over textbook without any",
        with / textbook_without
    );
    println!("{:<60} {:>11.2}x", "engine over textbook, both without", without / textbook_without);
}

/// The textbook's M/M/c: a heap of events, a queue, and the statistics of `OpenSystem` if
/// `STATISTICS`. Counts events as the engine does.
fn textbook<const STATISTICS: bool>(jobs: u64, cpus: usize) -> u64 {
    let (mut stream, mut heap, mut queue) = (Stream::new(1, 0), BinaryHeap::new(), VecDeque::new());
    let (mut idle, mut events, mut last) = ((0..cpus).collect::<Vec<usize>>(), 0u64, 0u64);
    let (mut idle_area, mut waste, mut waste_min) = (0u64, 0u64, 0u64);
    let (mut elapsed, mut demand, mut ratios, mut left) = (0u64, 0u64, 0.0f64, 0u64);
    // The window, and the population in twenty batches of arrivals, which shows saturation.
    let (mut born, mut alive, mut room, mut sums, mut dispatches, mut window) =
        (0u64, 0u64, 0u64, Vec::new(), 0u64, [(0, 0, 0, 0); 2]);
    let (gap, arrival) = (SERVICE / (0.7 * cpus as f64), usize::MAX);
    let exponential = |stream: &mut Stream| -(1.0 - stream.unit()).ln();
    heap.push(Reverse(((gap * exponential(&mut stream)) as u64, arrival, 0, 0)));
    while let Some(Reverse((now, cpu, came, burst))) = heap.pop() {
        events += 1;
        if STATISTICS {
            let (passed, idling, waiting) = (now - last, idle.len() as u64, queue.len() as u64);
            idle_area += passed * idling;
            waste += if waiting > 0 { passed * idling } else { 0 };
            waste_min += passed * idling.min(waiting);
            last = now;
        }
        if cpu == arrival {
            if STATISTICS {
                if born == 0 || born == jobs - 1 {
                    window[usize::from(born > 0)] = (now, idle_area, waste, dispatches);
                }
                if room == 0 {
                    sums.push(0);
                    room = jobs.div_ceil(20);
                }
                room -= 1;
                if let Some(sum) = sums.last_mut() {
                    *sum += alive;
                }
                born += 1;
                alive += 1;
            }
            queue.push_back((now, ((SERVICE * exponential(&mut stream)) as u64).max(1)));
            if events < 3 * jobs {
                heap.push(Reverse((now + (gap * exponential(&mut stream)) as u64, arrival, 0, 0)));
            }
        } else {
            idle.push(cpu);
            if STATISTICS {
                left += 1;
                alive -= 1;
                elapsed += now - came;
                demand += burst;
                ratios += (now - came) as f64 / burst as f64;
            }
        }
        while let (Some(&cpu), Some(&(came, burst))) = (idle.last(), queue.front()) {
            idle.pop();
            queue.pop_front();
            events += 1;
            dispatches += u64::from(STATISTICS);
            heap.push(Reverse((now + burst, cpu, came, burst)));
        }
    }
    black_box((
        idle_area, waste, waste_min, elapsed, demand, ratios, left, sums, dispatches, window,
    ));
    events
}

/// Tasks that arrive one after another within one mean pause, so that the load is 0.7 from the
/// start, and never end.
fn a_million_blocked() {
    let baseline = Unix1990::default().model().expect("a model");
    let burst = baseline.classes()[0].burst.clone();
    let cycle = MANY as f64 * burst.mean() / (0.7 * 4.0);
    let class = Class {
        bursts: Distribution::constant(1e6).expect("a count"),
        pause: Distribution::exponential(cycle - burst.mean()).expect("a pause"),
        burst,
        ..baseline.classes()[0].clone()
    };
    let gap = Distribution::constant(cycle / MANY as f64).expect("a gap");
    let length =
        RunLength { warm_up: 0, measured: MANY, after: After::Drain, population_limit: u32::MAX };
    let model = Model::new("blocked", gap, vec![class], length).expect("a model");
    // From the second to the fourth pause.
    many("a million tasks, most of them blocked", &model, [1.5 * cycle, 3.5 * cycle]);
}

/// Tasks that all arrive at once and never block.
fn a_million_ready() {
    let class = Class {
        burst: Distribution::constant(1e15).expect("a burst"),
        bursts: Distribution::constant(1.0).expect("a count"),
        ..Unix1990::default().model().expect("a model").classes()[0].clone()
    };
    let gap = Distribution::constant(1.0).expect("a gap");
    let length =
        RunLength { warm_up: 0, measured: MANY, after: After::Drain, population_limit: u32::MAX };
    let model = Model::new("ready", gap, vec![class], length).expect("a model");
    // Five and twenty-five rounds of 100 ms for each task on 4 CPUs.
    let round = MANY as f64 * 1e8 / 4.0;
    many("a million tasks, all of them ready", &model, [2.0 * round, 10.0 * round]);
}

/// The speed between two times, when all tasks are present, and the memory that they need besides
/// the program itself.
fn many(what: &str, model: &Model, until: [f64; 2]) {
    let machine = Unix1990::default().machine();
    let program = peak_bytes();
    for policy in ["central:rr", "take:rr"] {
        let policy = PolicySpec::parse(&format!("{policy}?quantum=100ms")).expect("a policy");
        let [early, late] = until.map(|until| {
            let job = Job { model, machine: &machine, until: Time(until as u64) };
            (0..TURNS.div_ceil(2))
                .map(|_| timed(|| job.observed(&policy).events))
                .fold((0, f64::INFINITY), |best, (events, seconds)| (events, seconds.min(best.1)))
        });
        print(
            &format!("{what}, {policy}, with metrics"),
            (late.0 - early.0) as f64 / (late.1 - early.1) / 1e6,
        );
    }
    println!(
        "{:<60} {:>10} B",
        "  memory per task, all tables and queues",
        (peak_bytes() - program) / MANY
    );
}

/// The peak memory of the process (Linux), or 0.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
        * 1024
}

/// Runs the `works` alternately, each of which returns its number of events, and returns the best
/// speed of each in M events/s.
fn by_turns<const N: usize>(works: [&dyn Fn() -> u64; N]) -> [f64; N] {
    let mut best = [0.0f64; N];
    for _ in 0..TURNS {
        for (best, work) in best.iter_mut().zip(works) {
            let (events, seconds) = timed(work);
            *best = best.max(events as f64 / seconds / 1e6);
        }
    }
    best
}

fn timed(work: impl Fn() -> u64) -> (u64, f64) {
    let begin = seconds();
    let events = black_box(work());
    (events, seconds() - begin)
}

/// CPU time of this thread, so that other work on the machine does not count; wall-clock time if
/// the system does not provide it.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let on_cpu = times.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok());
    on_cpu.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// A model on a machine.
struct Job<'a> {
    model: &'a Model,
    machine: &'a Machine,
    until: Time,
}

impl Job<'_> {
    /// As sweeps and comparisons run it.
    fn observed(&self, policy: &PolicySpec) -> Outcome {
        let mut open = OpenSystem::new(self.model, 1, self.machine.cpus);
        let outcome =
            engine::simulate_open(self.model, self.machine, policy, self.options(), &mut open)
                .expect("a run");
        black_box(open.finish());
        outcome
    }

    /// As in a run with several observers.
    fn observed_in_chunks(&self, policy: &PolicySpec) -> Outcome {
        let mut open = OpenSystem::new(self.model, 1, self.machine.cpus);
        let outcome = self.run(policy, vec![&mut open]);
        black_box(open.finish());
        outcome
    }

    fn run(&self, policy: &PolicySpec, observers: Vec<&mut dyn Observer>) -> Outcome {
        engine::simulate_named(
            self.model,
            self.machine,
            policy,
            self.options(),
            Trace::new(observers),
        )
        .expect("a run")
    }

    fn options(&self) -> Options {
        Options { seed: 1, until: self.until }
    }
}
