//! Background load is found again: simulates a program beside known noise, writes a recording of
//! it, and replays that with the noise drawn from the fit, or without it.

use formats::export::RecordingWriter;
use formats::import::{self, Options as ImportOptions, RECORDER};
use schedsim::engine::{Options, simulate_named};
use schedsim::metrics::Metrics;
use schedsim::trace::{Event, EventKind, Observer, TaskInfo, Trace};
use schedsim::workload::{
    Affinity, Attributes, Background, BackgroundOf, Noise, NoiseClass, Nudge, Recorded,
    ReplayBuilder, ReplayOptions, ReplayReport, Script, Start, TaskSpec, UntilEnded, Workload,
};
use schedsim::{CpuId, Machine, Nanos, Spread, TaskId, Time};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::sync::atomic::{AtomicU32, Ordering};
use worlds::experiment::parse_policy;

const PROGRAM: &str = r#"{ "pipe": { "p": { "capacity": 4096 } }, "task": [
    { "name": "writer", "count": 2, "phases": [ { "loop": { "times": 1500, "phases": [
        { "run": "31us" }, { "write": { "pipe": "p", "bytes": 100 } } ] } } ] },
    { "name": "reader", "count": 2, "phases": [ { "loop": { "times": 1500, "phases": [
        { "run": "17us" }, { "read": { "pipe": "p", "bytes": 100 } } ] } } ] } ] }"#;

const CPUS: u16 = 2;

fn program() -> Workload {
    Workload::of(&serde_json::from_str(PROGRAM).unwrap(), CPUS).unwrap()
}

/// The program beside a kernel thread of CPU 0 and a task of another program.
fn beside_noise() -> Workload {
    let mut workload = program();
    let program = workload.tasks.len() as u32;
    let quantiles = |mean: f64| {
        let value = |n: u32| -mean * (1.0 - (f64::from(n) + 0.5) / 64.0).ln();
        Spread::of((0..64).map(|n| Nanos(value(n) as u64)).collect())
    };
    let noises = [
        ("kworker/0:1", NoiseClass::KernelThread, Affinity::Pinned(CpuId(0)), 900e3, 60e3),
        ("neighbour", NoiseClass::Program, Affinity::Any, 700e3, 200e3),
    ];
    for (name, class, affinity, pause, burst) in noises {
        let task = TaskId(workload.tasks.len() as u32);
        let pid = task.0 + 1;
        workload.tasks.push(TaskSpec {
            info: TaskInfo { name: name.to_string(), pid, tgid: pid, prio: 120 },
            attributes: Attributes::default(),
            affinity,
            cpu: CpuId(0),
            start: Start::At(Time::ZERO),
            script: Script::new(),
        });
        let (pause, burst) = (quantiles(pause), quantiles(burst));
        workload.background.noise.push(Noise { task, class, pause, burst });
    }
    workload.background = Background {
        awaited: (0..program).map(TaskId).collect(),
        until: Time(10_000_000_000),
        ..workload.background
    };
    workload
}

fn simulate(workload: &Workload, seed: u64, observer: &mut dyn Observer) -> Time {
    let options = Options { seed: 1, until: Time::NEVER };
    let (policy, trace) = (parse_policy("eevdf").unwrap(), Trace::new(vec![observer]));
    let nudge = Some(Nudge::new(seed));
    simulate_named((workload, nudge), &Machine::ideal(CPUS), &policy, options, trace).unwrap().end
}

/// What a recording of one run says.
fn replay(of: &Workload, background: BackgroundOf) -> (Workload, ReplayReport) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir()
        .join(format!("schedlab-background-{}-{number}.rec", std::process::id()));
    let infos: Vec<TaskInfo> = of.tasks.iter().map(|task| task.info.clone()).collect();
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut writer = RecordingWriter::new(file, &infos, &of.shared, CPUS).unwrap();
    simulate(of, 1, &mut writer);
    writer.finish().unwrap();
    let options = ReplayOptions { program: true, background, ..Default::default() };
    let mut builder = ReplayBuilder::new(options);
    let read = import::read(&path, &ImportOptions::default(), vec![&mut builder]).unwrap();
    fs::remove_file(&path).unwrap();
    builder.share(read.objects);
    builder.finish(Recorded {
        tasks: &read.tasks,
        cpus: CPUS,
        end: Time(read.duration.0),
        switch_cost: Nanos::ZERO,
        recorders: &[RECORDER],
    })
}

/// The run delay of the program's tasks and its makespan, in each of 32 runs, sorted.
fn runs(workload: &Workload) -> [Vec<f64>; 2] {
    let is_program = |task: &TaskSpec| ["writer", "reader"].contains(&&*task.info.name);
    let ids: Vec<TaskId> =
        workload.ids().filter(|task| is_program(&workload.tasks[task.index()])).collect();
    let mut both = [Vec::new(), Vec::new()];
    for seed in 100..132 {
        let mut metrics = Metrics::new(CPUS);
        let mut until = UntilEnded::new(&ids, &mut metrics);
        simulate(workload, seed, &mut until);
        let end = until.end().unwrap();
        let summary = metrics.finish(end);
        let delay = |task: &&schedsim::metrics::TaskSummary| ids.contains(&task.task);
        let delays = summary.tasks.iter().filter(delay).map(|task| task.run_delay);
        both[0].push(delays.sum::<Nanos>().0 as f64);
        both[1].push(end.0 as f64);
    }
    both.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
    both
}

#[test]
fn a_replay_beside_the_fitted_noise_has_the_run_delay_of_the_original() {
    let original = beside_noise();
    let (replayed, report) = replay(&original, BackgroundOf::Fitted);
    assert_eq!((report.outside.kernel_threads.0, report.outside.programs.0), (1, 1));
    let names: Vec<&str> = replayed
        .background
        .noise
        .iter()
        .map(|noise| &*replayed.tasks[noise.task.index()].info.name)
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let (truth, found) = (runs(&original), runs(&replayed));
    let alone = runs(&program());
    for (of, (truth, found)) in ["run delay", "makespan"].into_iter().zip(truth.iter().zip(&found))
    {
        let at = |values: &[f64], share: f64| values[(share * values.len() as f64) as usize];
        for quartile in [0.25, 0.5, 0.75] {
            let (truth, found) = (at(truth, quartile), at(found, quartile));
            println!(
                "{of} at {quartile}: {found} for {truth}: {:+.1} %",
                100.0 * (found / truth - 1.0)
            );
            assert!((found / truth - 1.0).abs() < 0.05, "{of} at {quartile}: {found} for {truth}");
        }
    }
    // The noise matters: without it the program waits less.
    assert!(alone[0][16] < 0.9 * truth[0][16], "{} and {}", alone[0][16], truth[0][16]);
    // Each member meets another noise.
    assert!(found[0].windows(2).any(|pair| pair[0] != pair[1]));
}

/// The events of the program's tasks, by thread id.
struct Events<'w>(&'w Workload, Vec<(u64, u16, u32, u32)>);

impl Observer for Events<'_> {
    fn events(&mut self, chunk: &[Event]) {
        let pid = |task: TaskId| self.0.tasks.get(task.index()).map_or(0, |task| task.info.pid);
        for event in chunk {
            if let EventKind::SchedSwitch { prev, next, .. } = event.kind {
                self.1.push((event.time.0, event.cpu.0, pid(prev), pid(next)));
            }
        }
    }
}

#[test]
fn without_background_a_replay_is_the_program_alone() {
    let (original, alone) = (beside_noise(), program());
    let (replayed, report) = replay(&original, BackgroundOf::Nothing);
    assert_eq!((report.outside.tasks(), replayed.background.noise.len()), (2, 0));
    let events = |workload: &Workload, nudged: bool| {
        let mut events = Events(workload, Vec::new());
        let nudge = nudged.then_some(Nudge::new(1));
        let options = Options { seed: 1, until: Time::NEVER };
        let policy = parse_policy("eevdf").unwrap();
        let trace = Trace::new(vec![&mut events]);
        simulate_named((workload, nudge), &Machine::ideal(CPUS), &policy, options, trace).unwrap();
        events.1
    };
    assert_eq!(events(&replayed, false), events(&alone, true));
    // The same of the noise itself.
    let without = original.without_background();
    assert_eq!(events(&without, true), events(&alone, true));
}

/// What made the recording is no background, whatever it does.
#[test]
fn the_recorder_is_no_background() {
    let of = |name: &str| {
        let mut original = beside_noise();
        original.tasks.last_mut().unwrap().info.name = name.to_string();
        replay(&original, BackgroundOf::Fitted)
    };
    let drawn = |workload: &Workload| -> BTreeSet<String> {
        let name = |noise: &Noise| workload.tasks[noise.task.index()].info.name.clone();
        workload.background.noise.iter().map(name).collect()
    };
    let of_names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let (replayed, report) = of(RECORDER);
    assert_eq!(drawn(&replayed), of_names(&["kworker/0:1"]));
    assert_eq!((report.outside.tasks(), report.outside.recorder.len()), (1, 1));
    let (replayed, report) = of("schedlab-recon");
    assert_eq!(drawn(&replayed), of_names(&["kworker/0:1", "schedlab-recon"]));
    assert_eq!((report.outside.tasks(), report.outside.recorder.len()), (2, 0));
}

#[test]
fn a_program_alone_has_no_background() {
    let (replayed, report) = replay(&program(), BackgroundOf::Fitted);
    assert_eq!((replayed.background.noise.len(), report.outside.tasks()), (0, 0));
}
