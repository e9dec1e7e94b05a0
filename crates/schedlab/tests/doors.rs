//! Every reader of a file returns its content or an error that names the file: without a panic, in
//! bounded memory and time.
//!
//! A small file of each format is changed byte by byte, cut at every position, and filled with
//! extreme numbers.

#![cfg(target_os = "linux")]

#[path = "../../formats/tests/import_support/mod.rs"]
mod import_support;

use formats::export;
use formats::export::{Occupancy, QueueLengths};
use formats::import::{Options, read};
use formats::trace_file::{Header, Task, Writer};
use formats::trace_source::TraceSource;
use formats::workload::{Parameters, Workload};
use import_support::contents;
use laboratory::sweep::Sweep;
use program::Error;
use rustix::process::{Resource, Rlimit, setrlimit};
use schedsim::metrics::Metrics;
use schedsim::trace::{Call, Event, Observer, TraceHash};
use schedsim::workload::{CostEstimator, Recorded, ReplayBuilder, ReplayOptions};
use schedsim::{Machine, Nanos, Time};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};
use worlds::experiment::{Subject, parse_policy, simulate};

/// The files here have a few KiB each.
const MOST_MEMORY: u64 = 256 << 20;
const MOST_TIME: Duration = Duration::from_secs(10);

/// One measurement at a time: memory is counted for all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test measures. A table that is allocated and not touched, which does not
/// count as memory yet, must also fit: otherwise the process aborts.
fn alone() -> MutexGuard<'static, ()> {
    static LIMITED: Once = Once::new();
    LIMITED.call_once(|| {
        let most = Some(status("VmSize:") + 3 * MOST_MEMORY);
        setrlimit(Resource::As, Rlimit { current: most, maximum: most }).expect("a limit");
    });
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A number of the process's own, in bytes.
fn status(name: &str) -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("Linux's status of the process");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.trim().trim_end_matches(" kB").parse::<u64>().expect(name) << 10
}

/// The most memory that the process has had since [`memory_now`] said `before`, less that. Linux
/// counts pages per CPU, so the peak may lie some pages below what the process had when the peak
/// began anew.
fn grown_since(before: u64) -> u64 {
    status("VmHWM:").saturating_sub(before)
}

/// The memory of the process. The peak begins anew: what an earlier test took would hide what the
/// next one takes.
fn memory_now() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux lets a process forget its peak");
    status("VmHWM:")
}

/// A file of one format, and its reader.
struct Door {
    /// The file name; its extension sets the format.
    file: &'static str,
    /// Whether it is text, with numbers as digits.
    text: bool,
    open: fn(&Path) -> Result<(), Error>,
}

/// Does everything that consumers of a trace may do with an event.
struct Consumers {
    metrics: Metrics,
    hash: TraceHash,
    costs: CostEstimator,
    replay: ReplayBuilder,
    occupancy: Occupancy,
    lengths: QueueLengths,
}

impl Observer for Consumers {
    fn events(&mut self, chunk: &[Event]) {
        let observers: [&mut dyn Observer; 4] =
            [&mut self.metrics, &mut self.hash, &mut self.costs, &mut self.replay];
        observers.into_iter().for_each(|observer| observer.events(chunk));
        for event in chunk {
            self.occupancy.event(event);
            self.lengths.event(event, |_| ());
        }
    }

    fn hears_calls(&self) -> bool {
        true
    }

    fn call(&mut self, call: &Call) {
        self.replay.call(call);
    }
}

fn recording(path: &Path) -> Result<(), Error> {
    let mut consumers = Consumers {
        metrics: Metrics::new(0),
        hash: TraceHash::new(),
        costs: CostEstimator::new(),
        replay: ReplayBuilder::new(ReplayOptions { program: true, ..ReplayOptions::default() }),
        occupancy: Occupancy::new(),
        lengths: QueueLengths::new(0),
    };
    let recording =
        read(path, &Options { allow_lost: true, ..Options::default() }, vec![&mut consumers])?;
    let end = Time(recording.duration.0);
    consumers.metrics.finish(end);
    let recorded = Recorded {
        tasks: &recording.tasks,
        cpus: recording.cpus,
        end,
        switch_cost: Nanos::ZERO,
        recorders: recording.report.format.recorders(),
    };
    consumers.replay.share(recording.objects);
    consumers.replay.finish(recorded);
    Ok(())
}

fn trace(path: &Path) -> Result<(), Error> {
    let source = TraceSource::open(path)?;
    for format in [export::Format::Perfetto, export::Format::Chrome, export::Format::PerfScript] {
        export::export(&source, format, &path.with_extension("exported"))?;
    }
    Ok(())
}

fn workload(path: &Path) -> Result<(), Error> {
    match Workload::resolve(path.as_os_str())? {
        Workload::Closed(closed) => {
            let scripts = closed.scripts(closed.cpus())?;
            scripts.demand();
            closed.headline();
            // Not to its end, which may be far.
            // A run of many tasks takes long, and shows no more.
            if scripts.tasks.len() > 1000 {
                Ok(())
            } else {
                run(&scripts, closed.cpus(), Time(closed.until().0.min(100_000)), None)
            }
        }
        Workload::Stochastic(template) => template.with(&Parameters::default()).map(drop),
        Workload::Recording(_) => Ok(()),
    }
}

fn run(
    workload: &schedsim::workload::Workload,
    cpus: u16,
    until: Time,
    observer: Option<&mut dyn Observer>,
) -> Result<(), Error> {
    let (machine, policy) = (Machine::ideal(cpus), parse_policy("fifo").expect("a policy"));
    let subject = Subject {
        name: "w",
        workload,
        machine: &machine,
        mips: None,
        ended: &[],
        until,
        beside: &[],
        parts: false,
    };
    simulate(subject, &machine, &policy, (1, None), false, observer).map(drop)
}

fn machine(path: &Path) -> Result<(), Error> {
    worlds::host::topology::machine(path.as_os_str())
        .map(|file| drop(file.apply(&Machine::ideal(1))))
}

fn grid(path: &Path) -> Result<(), Error> {
    Sweep::read(path).map(drop)
}

impl Door {
    /// Reads `bytes` as the file, which may be refused.
    fn knock(&self, bytes: &[u8], what: &str) -> Result<(), String> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "door-{}-{}",
            std::process::id(),
            self.file
        ));
        std::fs::write(&path, bytes).expect("a file");
        let (before, begin) = (memory_now(), Instant::now());
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.open)(&path)))
            .unwrap_or_else(|_| panic!("{}: {what}: it panics", self.file));
        let (memory, time) = (grown_since(before), begin.elapsed());
        assert!(memory < MOST_MEMORY, "{}: {what}: {} MB", self.file, memory >> 20);
        assert!(time < MOST_TIME, "{}: {what}: {time:?}", self.file);
        let message = outcome.map_err(|error| {
            assert!(
                error.exit_code() == 3
                    || error.exit_code() == 1 && error.to_string().contains("stalls"),
                "{}: {what}: {error}",
                self.file
            );
            error.to_string()
        });
        if let Err(message) = &message {
            let is_named = message.contains(self.file)
                || message.contains("stalls")
                || message.contains("longest run");
            assert!(
                is_named,
                "{}: {what}: the message does not name the file: {message}",
                self.file
            );
        }
        message
    }

    /// Reads the file with all changes, but changes bytes only at every `step`th position.
    fn rattle(&self, bytes: &[u8], step: usize) {
        let _alone = alone();
        std::panic::set_hook(Box::new(|_| {}));
        let result = catch_unwind(AssertUnwindSafe(|| {
            assert_eq!(self.knock(bytes, "as it is"), Ok(()), "{}: as it is", self.file);
            for at in (0..bytes.len()).step_by(step) {
                for mask in [0x01, 0x10, 0x80, 0xff] {
                    let mut changed = bytes.to_vec();
                    changed[at] ^= mask;
                    let _ = self.knock(&changed, &format!("byte {at} ^ {mask:#x}"));
                }
                let _ = self.knock(&bytes[..at], &format!("cut at {at}"));
                if !self.text {
                    for width in [2, 4, 8] {
                        for fill in [
                            &[0xff; 8],
                            &[0; 8],
                            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
                            &[0, 0, 0x10, 0, 0, 0, 0, 0],
                        ] {
                            let mut changed = bytes.to_vec();
                            let end = (at + width).min(bytes.len());
                            changed[at..end].copy_from_slice(&fill[8 - (end - at)..]);
                            let _ =
                                self.knock(&changed, &format!("bytes {at}..{end} as {fill:x?}"));
                        }
                    }
                }
            }
            if self.text {
                self.with_other_numbers(bytes);
            }
        }));
        let _ = std::panic::take_hook();
        // The hook was silent.
        if let Err(message) = result {
            let formatted = message.downcast_ref::<String>().map(String::as_str);
            panic!("{}", formatted.or(message.downcast_ref().copied()).unwrap_or("no message"));
        }
    }

    /// Replaces every number, one at a time, by extreme ones.
    fn with_other_numbers(&self, bytes: &[u8]) {
        const NUMBERS: [&str; 19] = [
            "0",
            "-1",
            "4096",
            "4097",
            "65535",
            "65536",
            "1048577",
            "2147483648",
            "4294967295",
            "4294967296",
            "1000000000000",
            "9223372036854775807",
            "18446744073709551615",
            "99999999999999999999",
            "1e308",
            "nan",
            "inf",
            "-0.0",
            "0.000000001",
        ];
        let text = std::str::from_utf8(bytes).expect("text");
        let mut rest = 0;
        while let Some(start) = text[rest..].find(|c: char| c.is_ascii_digit()).map(|at| rest + at)
        {
            let end = text[start..]
                .find(|c: char| !c.is_ascii_digit())
                .map_or(text.len(), |length| start + length);
            for number in NUMBERS {
                let changed = format!("{}{number}{}", &text[..start], &text[end..]);
                let _ = self.knock(changed.as_bytes(), &format!("{number} at byte {start}"));
            }
            rest = end;
        }
    }
}

/// Two tasks that fork, lock, talk and sleep.
const CLOSED: &str = r#"cpus = 2
duration = "50ms"
[[task]]
name = "a"
count = 3
nice = 5
affinity = [0, 1]
start = "10us"
phases = [
    { lock = "m" }, { run = "1ms" }, { unlock = "m" },
    { loop = { times = 3, phases = [{ sleep = "20us" }, { write = { pipe = "p", bytes = 10 } }] } },
    { barrier = "b" },
]
[[task]]
name = "b"
phases = [
    { read = { pipe = "p", bytes = 90 } }, { timer = { period = "2ms" } },
    { io = { device = "d", service = "30us", bytes = 4096 } }, "yield",
]
[barrier.b]
tasks = 3
[pipe.p]
capacity = 100
[device.d]
channels = 2
"#;

const STOCHASTIC: &str = r#"load = 0.7
cpus = 4
tasks = 20
warm-up = 5
quantum = "10ms"
tmc = "1ms"
smc = 0.05
population-limit = 100
[[class]]
bursts = { geometric = 50 }
burst = { octaves = { first = "125us", weights = [1, 2, 3] } }
pause = { exponential = "70ms" }
priorities = [{ priority = 120, share = 0.5 }, { priority = 100, share = 0.5 }]
"#;

const GRID: &str = r#"workload = "unix1990"
policies = ["initial:rr", "take:rr"]
seeds = 3
[parameters]
tasks = 50
[axes]
load = [0.3, 0.5]
cpus = [1, 2]
"#;

const RT_APP: &str = r#"{
  "tasks" : {
    "tick" : { "instance" : 2, "priority" : 5, "cpus" : [0, 1], "delay" : 30, "phases" : {
      "p1" : { "loop" : 3, "run" : 10, "resume" : "tock",
               "timer" : { "ref" : "unique", "period" : 100 } },
      "p2" : { "run1" : 5, "barrier" : "b", "mem" : 1000 } } },
    "tock" : { "policy" : "SCHED_FIFO", "loop" : 4, "suspend" : "tock", "run" : 7, "barrier" : "b" }
  },
  "global" : { "duration" : 2 }
}
"#;

const MACHINE: &str = r#"nodes = [["big", "big"], ["little"]]
distances = [[10, 21], [21, 10]]
smt = 1.25
switch-cost = "1us"
[cluster.big]
cores = 4
threads = 2
[cluster.little]
like = "big"
threads = 1
speed = 0.4
[migration]
node = "20us"
"#;

#[test]
fn workload_files() {
    Door { file: "closed.toml", text: true, open: workload }.rattle(CLOSED.as_bytes(), 7);
    Door { file: "stochastic.toml", text: true, open: workload }.rattle(STOCHASTIC.as_bytes(), 5);
    Door { file: "rt-app.json", text: true, open: workload }.rattle(RT_APP.as_bytes(), 5);
}

#[test]
fn machines_and_grids() {
    Door { file: "machine.toml", text: true, open: machine }.rattle(MACHINE.as_bytes(), 3);
    Door { file: "grid.toml", text: true, open: grid }.rattle(GRID.as_bytes(), 3);
}

#[test]
fn perf_script() {
    let text = contents("sort.perf-script.txt.zst");
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').take(12).collect();
    Door { file: "perf.txt", text: true, open: recording }.rattle(&lines.concat(), 3);
}

#[test]
fn perf_data() {
    let bytes = contents("sort-z.perf.data");
    let door = Door { file: "perf.data", text: false, open: recording };
    door.rattle(&bytes, 4_999);
    // The header, and what stands at its places: the sections' offsets and sizes, and the
    // description of events.
    let _alone = alone();
    let data = u64::from_le_bytes(bytes[40..48].try_into().expect("eight bytes")) as usize;
    let end = data + u64::from_le_bytes(bytes[48..56].try_into().expect("eight bytes")) as usize;
    for at in (8..104).chain(data..data + 40).chain((end..bytes.len().min(end + 200)).step_by(3)) {
        for value in [0x00, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let _ = door.knock(&changed, &format!("byte {at} = {value:#x}"));
        }
    }
}

/// The unpacked content of a trace file.
fn small_trace() -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("door-whole-{}", std::process::id()));
    let Workload::Closed(closed) = formats::workload::built_in::find("two-threads?loops=twice")
        .expect("a name")
        .expect("a workload")
    else {
        panic!("two-threads is closed")
    };
    let scripts = closed.scripts(2).expect("scripts");
    let tasks = scripts.tasks.iter().map(|task| Task::from(&task.info)).collect();
    let header = Header {
        workload: "w".into(),
        candidate: "p".into(),
        cpus: 2,
        seed: 1,
        version: "0".into(),
        tasks,
    };
    let mut writer = Writer::create(&path, &header).expect("a file");
    run(&scripts, 2, Time(200_000), Some(&mut writer)).expect("a run");
    writer.finish().expect("a whole file");
    zstd::decode_all(&std::fs::read(&path).expect("the file")[..]).expect("zstd data")
}

#[test]
fn trace_files() {
    let whole = small_trace();
    let packed = zstd::encode_all(&whole[..], 1).expect("zstd data");
    Door { file: "packed.trace", text: false, open: trace }.rattle(&packed, 1);
    let door = Door { file: "unpacked.trace", text: false, open: trace };
    let pack = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("zstd data");
    let _alone = alone();
    for at in 0..whole.len() {
        for mask in [0x01, 0x40, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= mask;
            let _ = door.knock(&pack(&changed), &format!("byte {at} ^ {mask:#x}"));
        }
        let message = door
            .knock(&pack(&whole[..at]), &format!("cut at {at}"))
            .expect_err("a part of a trace is none");
        assert!(message.contains("unpacked.trace"), "{message}");
    }
    // One changed byte once caused an allocation of 412 GB.
    let event = whole.iter().position(|&byte| byte == b'\n').and_then(|first| {
        whole[first + 1..].iter().position(|&byte| byte == b'\n').map(|second| first + second + 2)
    });
    let mut changed = whole.clone();
    changed[event.expect("two lines") + 8 + 3] = 0x60;
    let message =
        door.knock(&pack(&changed), "a task of a large number").expect_err("there is no such task");
    assert!(
        message.contains(": event 0: the task 16106")
            && message.contains("is out of range: give a whole number from 0 to 2"),
        "{message}"
    );
}

#[test]
fn a_small_file_that_unpacks_to_much_data_is_refused() {
    let _alone = alone();
    // A comment for ever, 2 GB of it.
    let line = format!("# {}\n", "x".repeat(1021));
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    (0..2 << 20)
        .for_each(|_| std::io::Write::write_all(&mut encoder, line.as_bytes()).expect("memory"));
    let bomb = encoder.finish().expect("zstd data");
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let text = Door { file: "bomb.txt.zst", text: false, open: recording };
    assert!(
        text.knock(&bomb, "a bomb")
            .is_err_and(|message| message.contains("unpacks to more than 1000 times its size"))
    );
    // A header that never ends.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    std::io::Write::write_all(&mut encoder, b"schedlab trace 1\n").expect("memory");
    (0..200 << 10)
        .for_each(|_| std::io::Write::write_all(&mut encoder, &[b' '; 1024]).expect("memory"));
    let door = Door { file: "bomb.trace", text: false, open: trace };
    assert!(door.knock(&encoder.finish().expect("zstd data"), "a long header").is_err());
    // Files that have a size, and no blocks.
    for (file, open) in [
        ("sparse.toml", workload as fn(&Path) -> Result<(), Error>),
        ("sparse.json", workload),
        ("sparse.txt", recording),
    ] {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{file}", std::process::id()));
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 41)).expect("a sparse file");
        let (before, begin) = (memory_now(), Instant::now());
        let message = open(&path).expect_err(file).to_string();
        std::fs::remove_file(&path).expect("the file");
        assert!(
            message.contains(file)
                && begin.elapsed() < MOST_TIME
                && grown_since(before) < MOST_MEMORY,
            "{message} after {:?}",
            begin.elapsed()
        );
    }
    // Lists in lists, as deep as a file is long.
    let nested = [
        ("deep.toml", format!("a = {}{}\n", "[".repeat(100_000), "]".repeat(100_000))),
        ("deep.json", format!("{{\"tasks\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000))),
    ];
    for (file, text) in nested {
        let message = Door { file, text: true, open: workload }
            .knock(text.as_bytes(), "lists in lists")
            .expect_err(file);
        assert!(message.contains("recur") || message.contains("nest"), "{message}");
    }
}

#[test]
fn a_reader_that_uses_too_much_is_detected() {
    let _alone = alone();
    let take_too_much = |_: &Path| {
        std::hint::black_box(vec![1u8; MOST_MEMORY as usize + (64 << 20)]);
        Ok(())
    };
    let greedy = Door { file: "greedy.toml", text: true, open: take_too_much };
    let broken = Door { file: "broken.toml", text: true, open: |_| panic!("broken") };
    let nameless = Door {
        file: "nameless.toml",
        text: true,
        open: |_| Err(Error::Input("it is wrong".to_string())),
    };
    for (door, words) in
        [(greedy, " MB"), (broken, "it panics"), (nameless, "does not name the file")]
    {
        let caught = catch_unwind(AssertUnwindSafe(|| door.knock(b"", "a canary")))
            .expect_err("it must be caught");
        let message = caught.downcast_ref::<String>().expect("a message");
        assert!(message.contains(words), "{message}");
    }
}
