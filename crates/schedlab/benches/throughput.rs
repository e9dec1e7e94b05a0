//! Measures events per second of reading, simulating and observing. Prints only; `make bench` runs
//! it.
//!
//! Each figure is the best and the median of several runs in one process, because other work on the
//! machine can only slow a run down.

use formats::import;
use formats::import::Options;
use schedsim::engine::{self, Outcome};
use schedsim::metrics::Metrics;
use schedsim::policy::{
    AnyPolicy, Context, Dispatch, Effect, Enqueue, Needs, Policy, PolicySpec, Promises, Stop, Wake,
};
use schedsim::trace::{Event, Observer, Trace, TraceHash};
use schedsim::workload::{Action, Affinity, Attributes, Script, Start, TaskSpec, Workload};
use schedsim::{CpuId, Machine, Nanos, Random, TaskId, Time};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Instant;
use worlds::experiment::{CostOverrides, Reading, Recorded, simulate};

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
    if let Some(path) =
        std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).map(PathBuf::from)
    {
        let events = import::read(&path, &Options::default(), vec![])
            .expect("a recording")
            .report
            .events
            .total();
        report(&format!("import {}, no observer", path.display()), events, || {
            drop(import::read(&path, &Options::default(), vec![]))
        });
        report(&format!("import {}, as a workload with metrics", path.display()), events, || {
            drop(load(&path))
        });
    }
    for policy in ["take:rr", "cfs", "eevdf"] {
        crowd(policy);
    }
    costs_per_event();
    costs_of_the_policy_seam();
}

/// Ten thousand tasks of eleven weights on one CPU, all runnable until they end, that yield every
/// 50 to 100 us.
fn crowd(policy: &str) {
    let spec = PolicySpec::parse(policy).expect("a policy");
    let task = |id: u32| {
        let script: Script = (0..20)
            .map(|turn| {
                (Nanos(50_000 + u64::from(id * 104_729 + turn * 17) % 50_000), Action::Yield)
            })
            .collect();
        let info = schedsim::trace::TaskInfo {
            name: format!("task{id}"),
            pid: id,
            tgid: id,
            prio: 115 + (id % 11) as u8,
        };
        TaskSpec {
            info,
            attributes: Attributes::default(),
            affinity: Affinity::Any,
            cpu: CpuId(0),
            start: Start::At(Time::ZERO),
            script,
        }
    };
    let workload = Workload { tasks: (0..10_000).map(task).collect(), ..Workload::default() };
    let run = || {
        let options = engine::Options { seed: 1, until: Time::NEVER };
        engine::simulate_named(&workload, &Machine::ideal(1), &spec, options, Trace::new(vec![]))
            .expect("a run")
            .events
    };
    let events = run();
    report(&format!("10,000 runnable tasks under {policy}"), events, || assert_eq!(run(), events));
}

fn load(path: &Path) -> Recorded {
    let read = |path: &Path, options: Options, observers: Vec<&mut dyn Observer>| {
        Ok(import::read(path, &options, observers)?)
    };
    Recorded::load(path, Reading::default(), CostOverrides::default(), read).expect("a recording")
}

fn replay(recorded: &Recorded, policy: &str) {
    let spec = PolicySpec::parse(policy).expect("a policy");
    let machine = recorded.machine.clone();
    let run =
        || simulate(recorded.subject(), &machine, &spec, (1, None), false, None).expect("a run");
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

/// The cost of an event without observers, and the cost of each observer.
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
    println!(
        "{:<52} {:>10.1}",
        "engine with take:rr on 4 CPUs, per simulated event",
        bare / simulated
    );
    println!("{:<52} {:>10.2}", "trace events per simulated event", traced / simulated);
    let adds = |what: &str, with: f64| {
        println!("{:<52} {:>10.1}", format!("{what}, per trace event"), (with - bare) / traced)
    };
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

/// The cost of an engine that is not compiled for its policy: one indirect call per callback, and
/// no inlining.
fn costs_of_the_policy_seam() {
    let workload = synthetic(200, 5_000);
    let machine = Machine { switch_cost: Nanos(1500), ..Machine::ideal(4) };
    println!(
        "\n{:<20} {:>20} {:>16} {:>16}",
        "policy seam", "callbacks per event", "ns compiled in", "ns by reference"
    );
    for name in ["central:rr", "take:rr", "eevdf"] {
        let spec = PolicySpec::parse(name).expect("a policy");
        let options = engine::Options { seed: 1, until: Time::NEVER };
        let compiled_in = || observed(&spec, &workload, &machine, vec![]);
        let by_reference = || {
            let policy = spec.policy(machine.cpus);
            engine::simulate(&workload, &machine, policy, options, Trace::new(vec![]))
                .expect("a run")
        };
        let calls = Cell::new(0);
        let counted = Counted { policy: spec.policy(machine.cpus), calls: &calls };
        let events = engine::simulate(&workload, &machine, counted, options, Trace::new(vec![]))
            .expect("a run")
            .events as f64;
        let (mut compiled, mut distant) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            compiled = compiled.min(best(|| _ = compiled_in()));
            distant = distant.min(best(|| _ = by_reference()));
        }
        let callbacks = calls.get() as f64 / events;
        println!(
            "{name:<20} {callbacks:>20.2} {:>16.1} {:>16.1}",
            compiled / events,
            distant / events
        );
    }
}

/// A policy whose callbacks are counted.
struct Counted<'c> {
    policy: AnyPolicy,
    calls: &'c Cell<u64>,
}

impl Counted<'_> {
    fn call(&mut self) -> &mut AnyPolicy {
        self.calls.set(self.calls.get() + 1);
        &mut self.policy
    }
}

impl Policy for Counted<'_> {
    fn needs(&self) -> Needs {
        self.policy.needs()
    }
    fn promises(&self) -> Promises {
        self.policy.promises()
    }
    fn migrates(&self) -> bool {
        self.policy.migrates()
    }
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.call().init_task(cx, task);
    }
    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.call().exit_task(cx, task);
    }
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        self.call().select_cpu(cx, task, wake)
    }
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        self.call().enqueue(cx, task, cpu, why)
    }
    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.call().dequeue(cx, task);
    }
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.call().dispatch(cx, cpu)
    }
    fn running(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) {
        self.call().running(cx, cpu, task);
    }
    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.call().stopping(cx, cpu, task, why);
    }
    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.call().update_idle(cx, cpu, idle)
    }
    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        self.call().tick(cx, cpu, task)
    }
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
        let info =
            schedsim::trace::TaskInfo { name: format!("task{id}"), pid: id, tgid: id, prio: 120 };
        TaskSpec {
            info,
            attributes: Attributes::default(),
            affinity: Affinity::Any,
            cpu: CpuId(0),
            start: Start::At(Time::ZERO),
            script,
        }
    };
    Workload { tasks: (0..tasks).map(&mut task).collect(), ..Workload::default() }
}

fn observed(
    spec: &PolicySpec,
    workload: &Workload,
    machine: &Machine,
    observers: Vec<&mut dyn Observer>,
) -> Outcome {
    let options = engine::Options { seed: 1, until: Time::NEVER };
    engine::simulate_named(workload, machine, spec, options, Trace::new(observers)).expect("a run")
}
