//! Android's systrace and atrace: the text of ftrace, in a page or behind other words.

mod import_support;

use std::io::Write;

use formats::import::{Format, Options, Place, Problem};
use import_support::{
    Imported, Temporary, complaint, contents, data, import, import_bytes, import_with,
};
use schedsim::trace::{EventKind, PrevState, WakeContext};
use schedsim::{CpuId, TaskId, Time};

/// As a phone writes it: a column for the process, marks of programs, states of two letters, and a
/// CPU whose buffer begins later.
const PHONE: &str = include_str!("data/phone.ftrace.txt");

fn page(text: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html>\n<script>document.querySelector('.trace-data')</script>\n\
         <!-- BEGIN TRACE -->\n  <script class=\"trace-data\" type=\"application/text\">\n\
         PROCESS DUMP\nUSER PID\n  </script>\n\
         \x20 <script class=\"trace-data\" type=\"application/text\">\n{text}  </script>\n\
         <!-- END TRACE -->\n</body>\n</html>\n"
    )
}

fn literal(text: &str) -> String {
    let text = text.replace('\n', "\\n\\\n");
    format!(
        "<!DOCTYPE HTML>\n<html>\n<body>\n  <script>\n  var linuxPerfData = \"\\\n{text}           \
         dummy-0000  [000] 0.0: 0: trace_event_clock_sync: parent_ts=0.0\\n\";\n  </script>\n\
         </body>\n</html>\n"
    )
}

fn deflated(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    [b"capturing trace... done\nTRACE:\n", &packed.finish().unwrap()[..]].concat()
}

/// All that a phone's tools make of one text.
fn forms(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let raw = format!("capturing trace... done\nTRACE:\n{text}");
    let crlf = page(text).replace('\n', "\r\n");
    let forms = [
        ("page", page(text).into_bytes()),
        ("page with CRLF", crlf.into_bytes()),
        ("old page", literal(text).into_bytes()),
        ("atrace", raw.into_bytes()),
        ("atrace -z", deflated(text)),
    ];
    forms
        .into_iter()
        .flat_map(|(name, bytes)| {
            let packed = zstd::stream::encode_all(&bytes[..], 1).unwrap();
            [(name, bytes), (name, packed)]
        })
        .collect()
}

#[test]
fn every_form_has_the_events_of_the_text() {
    let report = String::from_utf8(contents("ls.report.txt.zst")).unwrap();
    let report = report.replace("cpus=2\n", "# tracer: nop\n");
    for text in [PHONE, &report] {
        let expected = import_bytes(text.as_bytes()).unwrap();
        for (name, bytes) in forms(text) {
            let imported = import_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(imported.events, expected.events, "{name}");
            let (got, report) = (&imported.recording, &expected.recording.report);
            assert_eq!(got.report.format, Format::Systrace, "{name}");
            assert_eq!(got.report.events, report.events, "{name}");
        }
    }
}

/// The files that fuzzing begins with.
#[test]
fn the_files_of_a_phone_are_read() {
    for name in ["phone.ftrace.txt", "phone.atrace", "phone.systrace.html", "phone.chrome.json"] {
        assert_eq!(import(&data(name)).unwrap().events.len(), 5, "{name}");
    }
}

#[test]
fn a_phones_columns_have_their_meaning() {
    let Imported { events, recording } = import_bytes(page(PHONE).as_bytes()).unwrap();
    let (flinger, binder, mmc) = (TaskId(0), TaskId(1), TaskId(2));
    let switch = |prev, next, prev_state| EventKind::SchedSwitch { prev, next, prev_state };
    let kinds: Vec<_> =
        events.iter().map(|event| (event.time.0, event.cpu.0, event.kind)).collect();
    let waking =
        EventKind::SchedWaking { task: flinger, target: CpuId(3), context: WakeContext::Softirq };
    assert_eq!(
        kinds,
        [
            (0, 3, waking),
            (12_000, 3, switch(TaskId::NONE, flinger, PrevState::Runnable)),
            (119_000, 1, switch(binder, TaskId::NONE, PrevState::Blocked)),
            (219_000, 2, switch(mmc, TaskId::NONE, PrevState::Dead)),
            (319_000, 3, switch(flinger, TaskId::NONE, PrevState::Blocked)),
        ]
    );
    let ids: Vec<_> = recording.tasks.iter().map(|task| (task.pid, task.tgid)).collect();
    assert_eq!(ids, [(181, 181), (1340, 1201), (2001, 0)]);
    let skipped: Vec<_> =
        recording.report.skipped.iter().map(|(of, n)| (of.as_str(), *n)).collect();
    assert_eq!(
        skipped,
        [("cpu_idle", 1), ("trace-data of another tool", 1), ("tracing_mark_write", 1)]
    );
}

/// Of a small file every byte: what is left is refused, or has all events before the cut's line.
#[test]
fn a_cut_file_is_refused() {
    let whole = import_bytes(PHONE.as_bytes()).unwrap().events.len();
    for (name, bytes) in forms(PHONE) {
        for length in 0..bytes.len() {
            let Err(error) = import_bytes(&bytes[..length]) else {
                let events = import_bytes(&bytes[..length]).unwrap().events.len();
                // Behind the text, or where a line of a text without an end of its own ends.
                let is_line = name == "atrace" && bytes[..length].ends_with(b"\n");
                assert!(events == whole || is_line, "{name}, {length}");
                continue;
            };
            let message = error.to_string();
            let says = [
                "cut off",
                "is empty",
                "no scheduling events",
                "HTML page",
                "not a line",
                "damaged",
                "this is",
                "cannot read the fields",
            ];
            assert!(says.iter().any(|why| message.contains(why)), "{name}, {length}: {message}");
        }
    }
}

#[test]
fn a_damaged_file_is_refused_where_it_is() {
    let damaged = PHONE.replace("prev_state=D|W ==>", "prev_state=D|W =>");
    for (name, bytes) in forms(&damaged) {
        let error = import_bytes(&bytes).err().unwrap();
        assert!(matches!(error.problem, Problem::Fields { .. }), "{name}: {error}");
        let bytes = if bytes.starts_with(&[0x28, 0xb5]) {
            zstd::stream::decode_all(&bytes[..]).unwrap()
        } else {
            bytes
        };
        let line = bytes.split(|byte| *byte == b'\n').position(|line| line.ends_with(b"D|W =>"));
        if let Some(line) = line {
            assert_eq!(error.place, Place::Line(line as u64 + 1), "{name}: {error}");
        }
    }
    let mut packed = deflated(PHONE);
    let middle = packed.len() - 60;
    packed[middle] ^= 0x10;
    let message = complaint(&packed);
    assert!(message.contains("deflated data of atrace is damaged"), "{message}");
    assert!(message.contains("adb exec-out"), "{message}");
    let message = complaint(&deflated(PHONE)[..200]);
    assert!(message.contains("incomplete deflate stream"), "{message}");
}

#[test]
fn flipped_bits_never_panic() {
    for (_, bytes) in forms(PHONE) {
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let _ = import_bytes(&changed);
        }
    }
}

#[test]
fn pages_without_a_trace_are_refused_with_the_next_step() {
    let message = complaint(b"<html>\n<body>nothing</body>\n</html>\n");
    assert!(message.contains("HTML page without the data of systrace"), "{message}");
    let packed = "<!doctype html><html>\n<script id=\"viewer-data\" type=\"text/plain\">\nH4sI";
    let message = complaint(packed.as_bytes());
    assert!(message.contains("give the trace that it was made of"), "{message}");
}

/// A page has lines of scripts that are longer than any of a trace, and is not kept in memory.
#[test]
fn lines_of_scripts_may_have_any_length() {
    let long = format!("<html><script>{}</script>\n", "x".repeat(5 << 20));
    let imported = import_bytes(page(PHONE).replace("<html>\n", &long).as_bytes()).unwrap();
    assert_eq!(imported.events.len(), 5);
}

#[test]
fn a_bomb_of_atrace_is_refused() {
    // Deflated text is a thousandth of its size at least, and zstd packs that again.
    let line = format!("#{}\n", " ".repeat(4094));
    let bomb = deflated(&format!("{PHONE}{}", line.repeat(80 << 8)));
    let bomb = zstd::stream::encode_all(&bomb[..], 1).unwrap();
    assert!(bomb.len() < 16 << 10, "{}", bomb.len());
    let message = complaint(&bomb);
    assert!(message.contains("unpacks to more than"), "{message}");
}

/// What trace-cmd prints in place of events, and of an empty CPU.
#[test]
fn trace_cmds_own_lines_are_known() {
    let text = format!("version = 6\nCPU 0 is empty\ncpus=4\n{PHONE}");
    assert_eq!(import_bytes(text.as_bytes()).unwrap().recording.cpus, 4);
    for (line, lost) in [("CPU:2 [7 EVENTS DROPPED]", 7), ("CPU:2 [EVENTS DROPPED]", 1)] {
        let message = complaint(format!("{PHONE}{line}\n").as_bytes());
        assert!(message.contains(&format!("{lost} events were lost")), "{message}");
    }
    assert!(
        complaint(format!("{PHONE}CPU:2 [7 EVENTS]\nCPU:2 [x]\n").as_bytes())
            .contains("not a line")
    );
}

/// Old pages that were made again by others spell no newlines.
#[test]
fn an_old_page_may_have_plain_lines() {
    let page =
        format!("<html>\n<script>\n  var linuxPerfData = \"\\\n{PHONE}  </script>\n</html>\n");
    assert_eq!(import_bytes(page.as_bytes()).unwrap().events.len(), 5);
}

#[test]
fn lost_events_are_counted() {
    let lost = PHONE.replace("##### CPU 2", "CPU:2 [LOST 7 EVENTS]\n##### CPU 2");
    let allowed = Options { allow_lost: true, ..Options::default() };
    for (name, bytes) in forms(&lost) {
        let file = Temporary::new(&bytes);
        let refused = import(&file.0).err().unwrap().to_string();
        assert!(refused.contains("7 events were lost while recording"), "{name}: {refused}");
        let imported = import_with(&file.0, &allowed).unwrap();
        assert_eq!((imported.recording.report.lost, imported.events[0].time), (7, Time::ZERO));
    }
}
