//! How much memory and disk a program from a recording takes, for each of its operations: 16 bytes
//! of memory, beside what each task and each object takes. `SCHEDLAB_OPERATIONS=300000` tries a larger one.
//!
//! The allocator counts, so this file has one test: nothing else may allocate meanwhile.

use formats::export::{RecordingWriter, described, write_description};
use formats::import;
use recording::What;
use schedsim::engine::{Options, simulate_named};
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::{Action, BackgroundOf, Closed, Operation, Script, Workload};
use schedsim::{Machine, Nanos, TaskId, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use worlds::experiment::{CostOverrides, Reading, Recorded, parse_policy};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it passes all on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a program takes.
#[derive(Debug)]
struct Sizes {
    operations: usize,
    tasks: usize,
    objects: usize,
    /// In memory, with tasks and objects.
    bytes: usize,
    /// The most at any time of the import.
    most: usize,
    /// As a compressed file; the same without times; and the compressed recording.
    file: u64,
    structure: u64,
    recording: u64,
}

impl Sizes {
    fn of(path: &Path) -> Sizes {
        let before = HELD.load(Relaxed);
        MOST.store(before, Relaxed);
        let Recorded { workload, replay, .. } = load(path);
        let (ended, cpus) = (replay.ended.clone(), 4);
        drop(replay);
        let held = HELD.load(Relaxed) - before;
        let most = MOST.load(Relaxed) - before;
        let bytes = held - ended.capacity() * size_of::<TaskId>();
        let steps = workload.tasks.iter().flat_map(|task| task.script.steps());
        let operations = steps.filter(|step| step.then != Action::Continue).count();
        let tasks = workload.tasks.len();
        let shared = &workload.shared;
        let objects = shared.pipes.len()
            + shared.sockets.len()
            + shared.eventfds.len()
            + shared.mutexes.len()
            + shared.barriers.len()
            + shared.groups.len()
            + shared.timers.len()
            + shared.epolls.iter().map(|epoll| 1 + epoll.sources.len()).sum::<usize>()
            + shared.serves.iter().map(|serve| 1 + serve.handlers.len()).sum::<usize>();
        let file = written(&workload, &ended, cpus);
        let structure = written(&without_times(workload), &ended, cpus);
        let recording = compressed(path);
        Sizes { operations, tasks, objects, bytes, most, file, structure, recording }
    }

    fn each(&self, bytes: u64) -> f64 {
        bytes as f64 / self.operations as f64
    }
}

fn load(path: &Path) -> Recorded {
    let reading = Reading { background: BackgroundOf::Nothing, ..Reading::default() };
    let read = |path: &Path, options, observers: Vec<&mut dyn Observer>| {
        import::read(path, &options, observers)
            .map_err(|error| program::Error::Input(error.to_string()))
    };
    Recorded::load(path, reading, CostOverrides::default(), read).expect("a recording")
}

/// The size of the program as a compressed file.
fn written(workload: &Workload, ended: &[TaskId], cpus: u16) -> u64 {
    let path = scratch("toml.zst");
    write_description(&described(workload, ended, cpus).expect("a program"), &path).expect("room");
    let size = fs::metadata(&path).expect("it was written").len();
    fs::remove_file(path).expect("it was written");
    size
}

/// The same operations in the same order. Runs, pauses and service times are all one length: what
/// is left is the structure.
fn without_times(mut workload: Workload) -> Workload {
    let some = |time: Nanos| if time > Nanos::ZERO { Nanos(1_000) } else { time };
    for task in &mut workload.tasks {
        // A step of other length would move what jumps point to.
        let jumps = |action: Action| matches!(action, Action::Do(Operation::Serve(_)));
        if task.script.steps().any(|step| jumps(step.then)) {
            continue;
        }
        let mut script = Script::new();
        for step in task.script.steps() {
            let then = match step.then {
                Action::Sleep(pause) => Action::Sleep(some(pause)),
                Action::Do(Operation::Io { device, service }) => {
                    Action::Do(Operation::Io { device, service: some(service) })
                }
                then => then,
            };
            script.push(some(step.run), then);
        }
        task.script = script;
    }
    workload
}

fn compressed(path: &Path) -> u64 {
    let bytes = fs::read(path).expect("a file");
    let is_compressed = path.extension().is_some_and(|extension| extension == "zst");
    let size = if is_compressed {
        bytes.len()
    } else {
        zstd::encode_all(bytes.as_slice(), 19).expect("memory").len()
    };
    size as u64
}

fn scratch(ending: &str) -> PathBuf {
    std::env::temp_dir().join(format!("schedlab-memory-{}.{ending}", std::process::id()))
}

/// Servers and clients that talk over pipes, with work of other lengths each time: a recording of a
/// simulation with about this many operations.
fn simulated(operations: usize) -> PathBuf {
    let rounds = operations / (PAIRS * 2 * 3);
    let pairs = (0..PAIRS).map(|pair| {
        let phases = |first: &str, second: &str| {
            let run = |step: usize| format!(r#"{{"run": "{}us"}}"#, 3 + (pair * 7 + step * 5) % 90);
            format!(
                r#"{{"loop": {{"times": {rounds}, "phases": [{}, {first}, {}, {second}, {}, "yield"]}}}}"#,
                run(1),
                run(2),
                run(3)
            )
        };
        let write = |pipe: &str| format!(r#"{{"write": {{"pipe": "{pipe}-{pair}", "bytes": 64}}}}"#);
        let read = |pipe: &str| format!(r#"{{"read": {{"pipe": "{pipe}-{pair}", "bytes": 64}}}}"#);
        let task = |name: &str, phases: String| {
            format!(r#"{{"name": "{name}-{pair}", "phases": [{phases}]}}"#)
        };
        let client = task("client", phases(&write("there"), &read("back")));
        let server = task("server", phases(&read("there"), &write("back")));
        format!("{client}, {server}")
    });
    let text = format!(r#"{{"task": [{}]}}"#, pairs.collect::<Vec<_>>().join(", "));
    let closed: Closed = serde_json::from_str(&text).expect("a workload");
    let cpus = 4;
    let workload = Workload::of(&closed, cpus).expect("a workload");
    let tasks: Vec<TaskInfo> = workload.tasks.iter().map(|task| task.info.clone()).collect();
    let path = scratch("rec");
    let file = BufWriter::new(File::create(&path).expect("room"));
    let mut writer = RecordingWriter::new(file, &tasks, &workload.shared, cpus).expect("room");
    let (policy, options) =
        (parse_policy("eevdf").expect("a policy"), Options { seed: 1, until: Time::NEVER });
    let machine = Machine::ideal(cpus);
    simulate_named(&workload, &machine, &policy, options, Trace::new(vec![&mut writer]))
        .expect("a run");
    writer.finish().expect("room");
    path
}

const PAIRS: usize = 8;

/// A parent that forks and awaits one process after the other.
fn processes(count: u32) -> PathBuf {
    const PARENT: u32 = 7;
    const FIRST: u32 = 10;
    const WAIT4: u16 = 61;
    let machine =
        recording::Machine { cpus: 1, architecture: "x86_64".into(), ..Default::default() };
    let path = scratch("tasks.rec");
    let file = BufWriter::new(File::create(&path).expect("room"));
    let mut writer = recording::Writer::new(file, &machine).expect("room");
    let mut counts = recording::Counts::default();
    let mut events = Vec::new();
    let mut time = 1_000;
    let switch = |state, next, prev_tgid| What::Switch {
        state,
        prev_prio: 120,
        next,
        next_prio: 120,
        prev_tgid,
        object: 0,
    };
    for child in FIRST..FIRST + count {
        let ended =
            What::Call { object: 0, result: child.into(), number: WAIT4, op: 0, duration: 5_500 };
        for (tid, what) in [
            (
                PARENT,
                What::Fork { parent: PARENT, child, child_tgid: child, number: 0, namespace: 0 },
            ),
            (PARENT, What::WakeupNew { task: child, target: 0, prio: 120 }),
            (PARENT, switch(1, child, PARENT)),
            (child, What::Exit { task: child, prio: 120 }),
            (child, What::Waking { task: PARENT, target: 0, prio: 120, call: 0, object: 0 }),
            (child, switch(2, PARENT, child)),
            (PARENT, ended),
        ] {
            time += 1_000;
            *counts.written.entry(what.name().to_string()).or_default() += 1;
            events.push(recording::Event { time, cpu: 0, context: 0, tid, what });
        }
        if events.len() > 10_000 {
            writer.events(&std::mem::take(&mut events)).expect("room");
        }
    }
    writer.events(&events).expect("room");
    counts.emitted = counts.written.clone();
    writer.end(&recording::End { counts, status: Some(0) }).expect("room");
    path
}

/// Memory grows with the tasks, and no faster. `SCHEDLAB_TASKS=1000000` tries a million.
fn memory_grows_with_tasks() {
    let given = std::env::var("SCHEDLAB_TASKS").ok().and_then(|count| count.parse().ok());
    let count = given.unwrap_or(50_000);
    let mut each = Vec::new();
    for count in [count / 4, count] {
        let path = processes(count);
        let (start, before) = (std::time::Instant::now(), HELD.load(Relaxed));
        MOST.store(before, Relaxed);
        let recorded = load(&path);
        let most = (MOST.load(Relaxed) - before) as f64 / f64::from(count);
        fs::remove_file(&path).expect("it was written");
        println!(
            "{count} processes: {most:.0} bytes each at most, {:.1} s",
            start.elapsed().as_secs_f64()
        );
        assert_eq!(recorded.workload.tasks.len(), count as usize + 1);
        assert_eq!(recorded.recording.report.pids_reused, 0);
        let (explained, _) = recorded.replay.wakeups.shares().expect("calls");
        assert!(explained > 0.99, "{:?}", recorded.replay);
        each.push(most);
    }
    assert!(each[1] < each[0] * 1.3 && each[1] < MOST_OF_A_TASK, "{each:?}");
}

/// Bytes while a recording is read.
const MOST_OF_A_TASK: f64 = 4_096.0;

#[test]
fn an_operation_takes_sixteen_bytes_of_memory_and_less_of_a_file() {
    memory_grows_with_tasks();
    let given = std::env::var("SCHEDLAB_OPERATIONS").ok().and_then(|count| count.parse().ok());
    let large = simulated(given.unwrap_or(100_000));
    let causes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/causes");
    let mut paths: Vec<PathBuf> = fs::read_dir(causes)
        .expect("the recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".rec"))
        .collect();
    paths.sort();
    paths.push(large.clone());
    let mut wrong = Vec::new();
    for path in &paths {
        let sizes = Sizes::of(path);
        let name = path.file_name().expect("a name").to_string_lossy();
        let each = sizes.each(sizes.bytes as u64);
        let costs = sizes.file.saturating_sub(sizes.structure);
        println!(
            "{name}: {} operations of {} tasks on {} objects, {each:.1} bytes in memory ({:.1} at most during the \
             import); file {:.2}, of these structure {:.2} and costs {:.2}; recording {:.2}",
            sizes.operations,
            sizes.tasks,
            sizes.objects,
            sizes.each(sizes.most as u64),
            sizes.each(sizes.file),
            sizes.each(sizes.structure),
            sizes.each(costs),
            sizes.each(sizes.recording)
        );
        if sizes.file > sizes.recording {
            wrong.push(format!("{name}: its program is larger than the recording: {sizes:?}"));
        }
        let most = 16 * sizes.operations + 256 * sizes.tasks + 128 * sizes.objects;
        if sizes.bytes > most {
            wrong.push(format!("{name}: {} bytes in memory, and not {most}", sizes.bytes));
        }
        if path == &large {
            assert!(sizes.operations > 90_000, "{sizes:?}");
            for (what, found, most) in [
                ("in memory", each, 16.0),
                ("structure", sizes.each(sizes.structure), 1.0),
                ("costs", sizes.each(costs), 2.0),
            ] {
                if found > most {
                    wrong.push(format!("{name}: {what} {found:.2} bytes an operation"));
                }
            }
        }
    }
    fs::remove_file(large).expect("it was written");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
