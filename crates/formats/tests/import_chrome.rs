//! Chrome's JSON: what `schedlab export` writes, and the text of ftrace in it.

mod import_support;

use std::collections::BTreeMap;
use std::path::Path;

use formats::export::{self, export};
use formats::import::{Format, Place};
use formats::trace_source::TraceSource;
use import_support::{Imported, Temporary, complaint, contents, data, import, import_bytes};
use schedsim::trace::{EventKind, PrevState, WakeContext};
use schedsim::{CpuId, TaskId};

/// A recording as JSON.
fn exported(path: &Path) -> Vec<u8> {
    let to = Temporary::new(b"");
    export(&TraceSource::open(path).unwrap(), export::Format::Chrome, &to.0).unwrap();
    std::fs::read(&to.0).unwrap()
}

/// Switches and wakings, with pids in place of tasks, up to the last moment.
fn happened(imported: &Imported) -> Vec<(u64, CpuId, &'static str, u32, u32)> {
    let pid = |task: TaskId| match task {
        TaskId::NONE => 0,
        task => imported.recording.tasks[task.index()].pid,
    };
    let end = imported.recording.duration.0;
    let events = imported.events.iter().filter(|event| event.time.0 < end);
    let mut all: Vec<_> = events
        .filter_map(|event| {
            let (name, a, b) = match event.kind {
                EventKind::SchedSwitch { prev, next, .. } => ("switch", pid(prev), pid(next)),
                EventKind::SchedWaking { task, .. } => ("waking", pid(task), 0),
                EventKind::SchedWakeup { task, .. } => ("wakeup", pid(task), 0),
                EventKind::SchedProcessFork { parent, child } => ("fork", pid(parent), pid(child)),
                EventKind::SchedProcessExit { task } => ("exit", pid(task), 0),
                _ => return None,
            };
            Some((event.time.0, event.cpu, name, a, b))
        })
        .collect();
    all.sort();
    all
}

/// Of a recording with all its switches.
#[test]
fn an_export_is_read_back() {
    let original = import(&data("ls.6.trace.dat.zst")).unwrap();
    let back = import_bytes(&exported(&data("ls.6.trace.dat.zst"))).unwrap();
    assert_eq!(back.recording.report.format, Format::ChromeJson);
    assert_eq!(back.recording.duration, original.recording.duration);
    let (expected, got) = (happened(&original), happened(&back));
    // What ran when the recording began has a switch of its own in the export.
    let first: Vec<_> = got.iter().filter(|event| !expected.contains(event)).collect();
    assert!(first.iter().all(|event| (event.0, event.2, event.3) == (0, "switch", 0)), "{first:?}");
    // What ends when the recording begins has no run.
    let missing = expected.iter().filter(|event| event.0 > 0 && !got.contains(event));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// An event a line is the form that we write. Any other form of the same JSON says the same.
#[test]
fn ends_of_lines_mean_nothing() {
    let text = String::from_utf8(exported(&data("sort.perf.data.zst"))).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = import_bytes(text.as_bytes()).unwrap();
    assert!(text.contains("{\"ph\":\"C\"") && expected.events.len() > 300);
    let others = [
        text.replace('\n', ""),
        text.replace(",\n", "\r\n , "),
        // Other events behind those that are passed over, and before them.
        text.replace("}},\n{\"ph\":\"X\"", "}},{\"ph\":\"X\""),
        text.replace("}},\n{\"ph\":\"C\"", "}},{\"ph\":\"C\""),
        text.replace("{\"ph\"", "{\n\"ph\""),
        serde_json::to_string_pretty(&value).unwrap(),
    ];
    for other in others {
        assert_ne!(other, text);
        let got = import_bytes(other.as_bytes()).unwrap();
        assert_eq!(got.events, expected.events, "{}", &other[..300]);
    }
    // A line that is cut within is refused, with the number of its event.
    let cut = text.replacen("\"args\":{\"tasks\":1}}", "\"args\":{\"tasks\":1}", 1);
    let refused = complaint(cut.as_bytes());
    assert!(refused.contains("JSON is damaged"), "{refused}");
}

/// Whatever switches a recording lacks: what is read back has the same runs, to the nanosecond.
#[test]
fn the_export_of_an_export_has_the_same_runs() {
    for name in ["ls.6.trace.dat.zst", "sort.perf.data.zst", "sort-z.perf.data"] {
        let once = exported(&data(name));
        let file = Temporary::new(&once);
        let runs = |json: &[u8]| -> Vec<String> {
            let lines =
                json.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"ph\""));
            let runs = lines.filter(|line| !line.starts_with(b"{\"ph\":\"C\""));
            let text = |line: &[u8]| String::from_utf8_lossy(line).trim_end_matches(',').to_owned();
            let mut runs: Vec<_> = runs.map(text).collect();
            runs.sort();
            runs
        };
        let (once, twice) = (runs(&once), runs(&exported(&file.0)));
        assert!(once.len() > 150, "{name}: {}", once.len());
        let only = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|line| !b.contains(line)).cloned().collect()
        };
        assert_eq!((only(&once, &twice), only(&twice, &once)), (vec![], vec![]), "{name}");
    }
}

/// What the file does not say is derived, and most of it is what was recorded.
#[test]
fn states_and_targets_are_derived() {
    let original = import(&data("sort.perf.data.zst")).unwrap();
    let back = import_bytes(&exported(&data("sort.perf.data.zst"))).unwrap();
    let states = |imported: &Imported| -> BTreeMap<(u64, CpuId), (u32, PrevState)> {
        let events = imported.events.iter().filter_map(|event| match event.kind {
            EventKind::SchedSwitch { prev, prev_state, .. } if prev != TaskId::NONE => {
                let pid = imported.recording.tasks[prev.index()].pid;
                Some(((event.time.0, event.cpu), (pid, prev_state)))
            }
            _ => None,
        });
        events.collect()
    };
    let (expected, got) = (states(&original), states(&back));
    let same = expected.iter().filter(|(place, state)| got.get(place) == Some(state)).count();
    assert!(same * 100 >= expected.len() * 97, "{same} of {}", expected.len());
    let report = back.recording.report.to_string();
    assert!(report.contains("says neither priorities nor processes"), "{report}");
    assert_eq!(back.recording.tasks.iter().map(|task| task.prio).max(), Some(120));
}

/// Small enough to see through: A wakes B from CPU 0, B waits for the end of A's slice.
#[test]
fn each_rule_shows_in_a_small_export() {
    let json = include_str!("data/runs.chrome.json");
    let imported = import_bytes(json.as_bytes()).unwrap();
    let (a, b) = (TaskId(0), TaskId(1));
    let switch = |prev, next, prev_state| EventKind::SchedSwitch { prev, next, prev_state };
    let waking = |target| EventKind::SchedWaking {
        task: b,
        target: CpuId(target),
        context: WakeContext::Unknown,
    };
    let got: Vec<_> =
        imported.events.iter().map(|event| (event.time.0, event.cpu.0, event.kind)).collect();
    assert_eq!(
        got,
        [
            (0, 0, switch(TaskId::NONE, a, PrevState::Runnable)),
            (1000, 0, waking(0)),
            (2000, 0, switch(a, b, PrevState::Runnable)),
            (3001, 0, switch(b, a, PrevState::Blocked)),
            (3500, 0, EventKind::SchedProcessExit { task: a }),
            (4000, 0, switch(a, TaskId::NONE, PrevState::Dead)),
            (5000, 1, waking(1)),
            (5000, 1, switch(TaskId::NONE, b, PrevState::Runnable)),
            (6000, 1, switch(b, TaskId::NONE, PrevState::Runnable)),
        ]
    );
    assert_eq!(imported.recording.report.skipped["switch"], 1);
    // Cut anywhere it has no end, and a changed byte gives no panic.
    for length in 2..json.len() - 2 {
        let message = complaint(&json.as_bytes()[..length]);
        assert!(message.contains("cut off"), "{length}: {message}");
    }
    for at in 0..json.len() {
        let mut changed = json.as_bytes().to_vec();
        changed[at] ^= 1 << (at % 8);
        let _ = import_bytes(&changed);
    }
    let refused = |from: &str, to: &str| complaint(json.replace(from, to).as_bytes());
    let message = refused("\"task\":8}},\n{\"ph\":\"C\"", "\"task\":99999999}},\n{\"ph\":\"C\"");
    assert!(message.contains(": event 1: this JSON is damaged: an event has no task"), "{message}");
    let message = refused("\"ts\":3.500", "\"ts\":0.500");
    assert!(message.contains(": event 6: time goes backwards"), "{message}");
    let message = refused("\"tid\":1,\"ts\":5.000,\"dur\"", "\"tid\":4096,\"ts\":5.000,\"dur\"");
    assert!(message.contains("an event has no CPU, or a wrong one"), "{message}");
}

fn chrome(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    format!(
        "{{\"traceEvents\":[{{\"args\":{{\"name\":\"x\"}},\"ph\":\"M\",\"pid\":1}},\
         {{\"pid\":\"y\",\"ts\":1}}],\"metadata\":{{\"a\":[]}},\"systemTraceEvents\":{quoted}}}"
    )
}

#[test]
fn the_text_of_ftrace_in_it_is_read() {
    let text = String::from_utf8(contents("ls.report.txt.zst")).unwrap();
    let expected = import_bytes(text.as_bytes()).unwrap();
    // The last line of such a text often has no end of its own.
    for text in [text.as_str(), text.trim_end()] {
        let json = chrome(text);
        for bytes in [json.clone().into_bytes(), zstd::encode_all(json.as_bytes(), 1).unwrap()] {
            let imported = import_bytes(&bytes).unwrap();
            assert_eq!(imported.events, expected.events);
            assert_eq!(imported.recording.report.format, Format::ChromeJson);
            assert_eq!(imported.recording.report.skipped["Chrome's own events"], 2);
        }
        for length in (20..json.len()).step_by(1000).chain([json.len() - 1]) {
            let message = complaint(&json.as_bytes()[..length]);
            assert!(message.contains("cut off: its JSON has no end"), "{length}: {message}");
        }
    }
    let bad = chrome(&text.replacen("orig_cpu", "orig", 1));
    let error = import_bytes(bad.as_bytes()).err().unwrap();
    assert_eq!(error.place, Place::SystemTrace(3), "{error}");
    let lost = chrome(&text.replacen('\n', "\nCPU:1 [LOST 40 EVENTS]\n", 1));
    assert!(complaint(lost.as_bytes()).contains("40 events were lost"));
}

/// JSON is also what rt-app's workloads are written in: the content decides.
#[test]
fn a_trace_in_json_is_no_workload() {
    let named = |name: &str, text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        formats::workload::Workload::resolve(path.as_os_str())
    };
    for text in [include_str!("data/runs.chrome.json"), "[{\"ph\":\"X\"}]"] {
        let resolved = named("a-trace.json", text).unwrap();
        assert!(matches!(resolved, formats::workload::Workload::Recording(_)), "{text}");
    }
    let rt_app = "{\"tasks\":{\"a\":{\"loop\":2,\"run\":1000}},\"global\":{\"duration\":1}}";
    let resolved = named("a-workload.json", rt_app).map(drop);
    assert!(resolved.is_ok(), "{resolved:?}");
    assert!(matches!(named("a-workload.json", rt_app), Ok(formats::workload::Workload::Closed(_))));
}

#[test]
fn json_without_scheduling_events_is_refused() {
    let files = [
        "{\"traceEvents\":[{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":1,\"dur\":1,\"cat\":\"run\"}]}",
        "[{\"name\":\"Asub\",\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":829}]",
        "{\"traceEvents\":[],\"systemTraceEvents\":\"SystemTraceData\"}",
        "{\"traceEvents\":[],\"systemTraceEvents\":{\"type\":\"fuchsia\",\"events\":[]}}",
        "{\"tasks\":{}}",
        "[]",
        "{}",
    ];
    for file in files {
        let message = complaint(file.as_bytes());
        assert!(message.contains("this is JSON without scheduling events"), "{file}: {message}");
        assert!(message.contains("record with systrace, with Perfetto"), "{message}");
    }
}

#[test]
fn deep_and_long_json_takes_no_memory() {
    let deep = format!("{{\"traceEvents\":[{}", "{\"a\":[".repeat(1 << 20));
    assert!(complaint(deep.as_bytes()).contains("it nests more than 128 values"));
    // More than a small file may unpack to: one text.
    let long = std::io::Read::chain(
        &b"{\"a\":\""[..],
        std::io::Read::take(std::io::repeat(b'x'), 100 << 20),
    );
    let packed = zstd::stream::encode_all(long, 1).unwrap();
    assert!(complaint(&packed).contains("unpacks to more than"));
    for wrong in ["{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":1}}", "{\"a\":[}", "[{]"] {
        let message = complaint(wrong.as_bytes());
        assert!(message.contains("JSON is damaged"), "{wrong}: {message}");
    }
}
