//! Exports agree with the metrics: intervals and CPU time to the nanosecond, and perf script text
//! that imports to the same numbers.

use formats::export::{Format, Interval, Occupancy, QueueLengths, export};
use formats::import;
use formats::trace_file::{Header, Task, Writer};
use formats::trace_source::TraceSource;
use schedsim::metrics::{CATALOGUE, Metrics, Summary};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, Observer, TraceHash};
use schedsim::{Nanos, Time};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use worlds::experiment::{CostOverrides, Reading, Recorded, simulate};

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
const RECORDINGS: [&str; 4] = [
    "cargo-build.perf-script.txt.zst",
    "hackbench.perf-script.txt.zst",
    "redis.perf-script.txt.zst",
    "sqlite-and-xz.perf.data.zst",
];

/// A directory of this test's own, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir =
            std::env::temp_dir().join(format!("schedlab-export-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The four recordings, and hackbench simulated with overhead of all kinds.
fn traces(scratch: &Scratch) -> Vec<TraceSource> {
    let open = |path: &Path| TraceSource::open(path).expect("a trace");
    let simulated = scratch.0.join("hackbench-eevdf.trace");
    simulate_hackbench(&simulated);
    let recordings = RECORDINGS.iter().map(|name| open(&Path::new(WORKLOADS).join(name)));
    recordings.chain([open(&simulated)]).collect()
}

fn simulate_hackbench(to: &Path) {
    let costs = CostOverrides {
        mips: None,
        switch: Some(Nanos(1_500)),
        migration: Some(Nanos(2_500)),
        idle_exit: Some(Nanos(3_500)),
        wake: Some(Nanos(2_000)),
    };
    let path = Path::new(WORKLOADS).join(RECORDINGS[1]);
    let recorded = Recorded::load(&path, Reading::default(), costs, |path, options, observers| {
        Ok(import::read(path, &options, observers)?)
    })
    .expect("a recording");
    let machine = recorded.subject().machine(3);
    let tasks = recorded.recording.tasks.iter().map(Task::from).collect();
    let (workload, policy) = (recorded.name.clone(), "eevdf".to_string());
    let header = Header {
        workload,
        candidate: policy,
        cpus: machine.cpus,
        seed: 1,
        version: "test".to_string(),
        tasks,
    };
    let mut writer = Writer::create(to, &header).expect("a trace file");
    let policy = PolicySpec::parse("eevdf").expect("a policy");
    simulate(recorded.subject(), &machine, &policy, (1, None), false, Some(&mut writer))
        .expect("a run");
    writer.finish().expect("a whole file");
}

fn summary(source: &TraceSource) -> Summary {
    let mut metrics = Metrics::new(source.header.cpus);
    let end = source.feed(vec![&mut metrics]).expect("a whole trace");
    metrics.finish(end)
}

#[derive(Default)]
struct Collect(Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

#[test]
fn intervals_add_up_to_the_metrics_cpu_time_of_every_task() {
    for source in traces(&Scratch::new("intervals")) {
        let mut collected = Collect::default();
        let end = source.feed(vec![&mut collected]).expect("a whole trace");
        let mut occupancy = Occupancy::new();
        let mut on_cpu: BTreeMap<u32, Nanos> = BTreeMap::new();
        let mut add = |intervals: &[Interval]| {
            intervals.iter().for_each(|interval| {
                *on_cpu.entry(interval.task.0).or_default() += interval.end - interval.start
            });
        };
        collected.0.iter().for_each(|event| add(occupancy.event(event)));
        add(occupancy.finish(end));
        let summary = summary(&source);
        for task in &summary.tasks {
            let ours = task.cpu_time + task.overhead;
            assert_eq!(
                on_cpu.remove(&task.task.0).unwrap_or_default(),
                ours,
                "{}: task {}",
                source.header.workload,
                task.task.0
            );
        }
        assert!(on_cpu.is_empty(), "tasks that the metrics do not know: {on_cpu:?}");
    }
}

#[test]
fn queue_lengths_over_time_have_the_metrics_mean_and_maximum() {
    let mut exact = 0;
    for source in traces(&Scratch::new("queues")) {
        let mut collected = Collect::default();
        let end = source.feed(vec![&mut collected]).expect("a whole trace");
        let cpus = usize::from(source.header.cpus);
        let (mut area, mut largest) = (vec![0u128; cpus], vec![0; cpus]);
        let mut latest = vec![(Time::ZERO, 0u32); cpus];
        let mut lengths = QueueLengths::new(source.header.cpus);
        let mut changes = Vec::new();
        collected.0.iter().for_each(|event| lengths.event(event, |change| changes.push(change)));
        lengths.finish(|change| changes.push(change));
        for change in changes {
            let (since, length) =
                std::mem::replace(&mut latest[change.cpu.index()], (change.time, change.length));
            area[change.cpu.index()] += u128::from(length) * u128::from((change.time - since).0);
            if change.time < end {
                largest[change.cpu.index()] = largest[change.cpu.index()].max(change.length);
            }
        }
        let summary = summary(&source);
        for cpu in &summary.cpus {
            let (since, length) = latest[cpu.cpu.index()];
            let area = area[cpu.cpu.index()] + u128::from(length) * u128::from((end - since).0);
            // A switch that is inferred later removes waiting time that was already reported.
            let (reported, ours) = (area as f64, cpu.waiting_mean * end.0 as f64);
            let taken_back = summary.totals.time_unseen.0 as f64;
            assert!(
                ours <= reported + 1.0 && reported <= ours + taken_back + 1.0,
                "{}: CPU {}: {reported} for {ours}",
                source.header.workload,
                cpu.cpu.0
            );
            exact += usize::from(taken_back == 0.0);
            assert_eq!(largest[cpu.cpu.index()], cpu.waiting_max);
        }
    }
    assert!(exact > 0, "the simulation lacks no switch");
}

/// All events, the metrics and the tasks of a trace that was written and read again.
#[test]
fn what_is_written_is_read_again_event_by_event() {
    let scratch = Scratch::new("round-trip");
    let formats = [
        (Format::PerfScript, "txt.zst"),
        (Format::Ftrace, "ftrace.txt.zst"),
        (Format::Perfetto, "pftrace"),
        (Format::Parquet, "parquet"),
    ];
    for (source, (format, ending)) in
        traces(&scratch).iter().flat_map(|source| formats.map(|format| (source, format)))
    {
        let name = format!("{} as {ending}", source.header.workload);
        let file = scratch.0.join(format!("again.{ending}"));
        assert_eq!(Format::of_name(&file), Some(format));
        let omitted = export(source, format, &file).expect("an export");
        let again = TraceSource::open(&file).expect("our own export is a trace");
        let is_simulated = source.header.candidate != "recorded";
        let is_text = matches!(format, Format::PerfScript | Format::Ftrace);
        assert_eq!(omitted.overheads > 0, is_simulated && is_text, "{name}");
        assert_eq!(again.header.cpus, source.header.cpus, "{name}");
        if is_simulated && format != Format::Parquet {
            continue; // Linux has no tracepoint for overhead, so it is CPU time there.
        }
        let (mut before, mut after) = (Collect::default(), Collect::default());
        let ends = [source.feed(vec![&mut before]), again.feed(vec![&mut after])];
        let [end, end_again] = ends.map(|end| end.expect("a whole trace"));
        if let Some((was, is)) = before.0.iter().zip(&after.0).find(|(was, is)| was != is) {
            panic!("{name}: {was:?} became {is:?}");
        }
        assert_eq!((end, hash(&before.0)), (end_again, hash(&after.0)), "{name}");
        let (before, after) = (summary(source), summary(&again));
        CATALOGUE.iter().for_each(|metric| {
            assert_eq!(metric.read(&before), metric.read(&after), "{name}: {}", metric.id)
        });
        if format == Format::Parquet {
            assert_eq!(again.header, source.header);
        }
    }
}

fn hash(events: &[Event]) -> u64 {
    let mut hash = TraceHash::new();
    hash.events(events);
    hash.value()
}

#[test]
fn chrome_json_has_every_nanosecond_of_every_task() {
    let scratch = Scratch::new("chrome");
    for source in traces(&scratch) {
        let file = scratch.0.join("trace.json");
        export(&source, Format::Chrome, &file).expect("an export");
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).expect("the file")).expect("JSON");
        let nanos =
            |value: &serde_json::Value| (value.as_f64().expect("a number") * 1000.0).round() as u64;
        let mut on_cpu = 0;
        for event in json["traceEvents"].as_array().expect("events") {
            if event["cat"] == "run" {
                on_cpu += nanos(&event["dur"]);
            }
        }
        let summary = summary(&source);
        assert_eq!(
            on_cpu,
            summary.sum(|task| task.cpu_time + task.overhead).0,
            "{}",
            source.header.workload
        );
    }
}

#[test]
fn names_and_endings_choose_the_format() {
    let of = |name: &str| Format::of_name(Path::new(name));
    assert_eq!(of("a.pftrace"), Some(Format::Perfetto));
    assert_eq!(of("dir.json/a.txt.zst"), Some(Format::PerfScript));
    assert_eq!(of("a.json"), Some(Format::Chrome));
    assert_eq!(of("a.ftrace.txt"), Some(Format::Ftrace));
    assert_eq!(of("a.parquet"), Some(Format::Parquet));
    assert_eq!((of("a.trace"), of("a.parquet.zst")), (None, None));
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let source = TraceSource::open(&Path::new(WORKLOADS).join(RECORDINGS[2])).expect("a trace");
    let error = export(&source, Format::Perfetto, Path::new("/nowhere/at/all.pftrace"))
        .expect_err("there is no such directory");
    assert!(error.to_string().contains("/nowhere/at/all.pftrace"), "{error}");
}
