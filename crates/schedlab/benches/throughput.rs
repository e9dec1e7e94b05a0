//! How fast: events per second of reading, simulating and observing. Prints, judges nothing; `make bench` runs it.
//!
//! Each figure is the best and the median of several runs in one process, because other work on the machine only ever slows a run down.

use schedlab::experiment::{CostOverrides, Recorded, simulate};
use schedlab::import::{self, Options};
use schedsim::engine::{self, Outcome};
use schedsim::metrics::Metrics;
use schedsim::policy::{Policy, PolicySpec, PolicyVisitor};
use schedsim::trace::{Event, Observer, Trace, TraceHash};
use schedsim::workload::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, Random, Time};
use std::path::{Path, PathBuf};
use std::time::Instant;

const RUNS: usize = 7;

fn main() {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    println!("{:<52} {:>10} {:>10}", "M events/s", "best", "median");
    for name in ["hackbench", "redis", "cargo-build"] {
        let path = workloads.join(format!("{name}.perf-script.txt.zst"));
        let recorded = load(&path);
        let events = recorded.recording.report.events.total();
        report(&format!("import {name}, text under zstd"), events, || drop(load(&path)));
        for policy in ["take:rr", "eevdf"] {
            replay(&recorded, policy);
        }
    }
    if let Some(path) = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).map(PathBuf::from) {
        let events = import::read(&path, &Options::default(), vec![]).expect("a recording").report.events.total();
        report(&format!("import {}, nobody looking", path.display()), events, || drop(import::read(&path, &Options::default(), vec![])));
        report(&format!("import {}, as a workload with metrics", path.display()), events, || drop(load(&path)));
    }
    costs_per_event();
}

fn load(path: &Path) -> Recorded {
    let read = |path: &Path, options: Options, observers: Vec<&mut dyn Observer>| Ok(import::read(path, &options, observers)?);
    Recorded::load(path, false, CostOverrides::default(), read).expect("a recording")
}

fn replay(recorded: &Recorded, policy: &str) {
    let spec = PolicySpec::parse(policy).expect("a policy");
    let machine = recorded.machine(recorded.recording.cpus);
    let run = || simulate(recorded, &machine, &spec, 1, false, None).expect("a run");
    let events = run().outcome.events;
    report(&format!("replay {} under {policy}", recorded.name), events, || drop(run()));
}

fn report(what: &str, events: u64, mut run: impl FnMut()) {
    let mut speeds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            run();
            events as f64 / begin.elapsed().as_secs_f64() / 1e6
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    println!("{what:<52} {:>10.1} {:>10.1}", speeds[RUNS - 1], speeds[RUNS / 2]);
}

/// What an event costs with nobody looking, and what each observer adds.
fn costs_per_event() {
    let workload = synthetic(200, 5_000);
    let machine = Machine { switch_cost: Nanos(1500), ..Machine::ideal(4) };
    let spec = PolicySpec::parse("take:rr").expect("a policy");
    let mut outcome = None;
    let mut count = Count(0);
    let bare = best(|| outcome = Some(observed(&spec, &workload, &machine, vec![])));
    observed(&spec, &workload, &machine, vec![&mut count]);
    let (simulated, traced) = (outcome.expect("an outcome").events as f64, count.0 as f64);
    println!("\n{:<52} {:>10}", "ns per event", "best");
    println!("{:<52} {:>10.1}", "engine with take:rr on 4 CPUs, per simulated event", bare / simulated);
    println!("{:<52} {:>10.2}", "trace events per simulated event", traced / simulated);
    let adds = |what: &str, with: f64| println!("{:<52} {:>10.1}", format!("{what}, per trace event"), (with - bare) / traced);
    adds(
        "an observer that does nothing adds",
        best(|| {
            observed(&spec, &workload, &machine, vec![&mut Count(0)]);
        }),
    );
    adds(
        "the hash adds",
        best(|| {
            observed(&spec, &workload, &machine, vec![&mut TraceHash::new()]);
        }),
    );
    adds(
        "all metrics add",
        best(|| {
            observed(&spec, &workload, &machine, vec![&mut Metrics::new(4)]);
        }),
    );
}

struct Count(u64);

impl Observer for Count {
    fn events(&mut self, chunk: &[Event]) {
        self.0 += chunk.len() as u64;
    }
}

fn best(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let begin = Instant::now();
        run();
        begin.elapsed().as_nanos() as f64
    };
    (0..RUNS).map(time).fold(f64::INFINITY, f64::min)
}

/// `tasks` tasks with `bursts` bursts each: a load of about 0.8 on four CPUs.
fn synthetic(tasks: u32, bursts: u32) -> Workload {
    let mut random = Random::new(1);
    let mut task = |id: u32| {
        let steps = (0..bursts).map(|_| {
            let (burst, pause) = (1_000 + random.below(400_000), 1_000 + random.below(25_000_000));
            (Nanos(burst), Action::Sleep(Nanos(pause)))
        });
        let script: Script = steps.collect();
        let info = schedsim::trace::TaskInfo { name: format!("task{id}"), pid: id, tgid: id, prio: 120 };
        TaskSpec { info, attributes: Attributes::default(), affinity: Affinity::Any, cpu: CpuId(0), start: Start::At(Time::ZERO), script }
    };
    Workload { tasks: (0..tasks).map(&mut task).collect(), ..Workload::default() }
}

fn observed(spec: &PolicySpec, workload: &Workload, machine: &Machine, observers: Vec<&mut dyn Observer>) -> Outcome {
    struct Job<'a, 't> {
        workload: &'a Workload,
        machine: &'a Machine,
        trace: Trace<'t>,
    }
    impl PolicyVisitor for Job<'_, '_> {
        type Out = Outcome;
        fn visit<P: Policy>(self, policy: P) -> Outcome {
            let options = engine::Options { seed: 1, until: Time::NEVER };
            engine::simulate(self.workload, self.machine, policy, options, self.trace).expect("a run")
        }
    }
    spec.visit(machine.cpus, Job { workload, machine, trace: Trace::new(observers) })
}
