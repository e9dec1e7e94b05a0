//! Known files that have no schedule, or one that is not read here, and what to record instead.

use std::path::Path;

use memchr::memmem::find;

use super::error::Problem;

/// The events behind a summary.
const EVENTS: &str = "it sums events up: record the events themselves, with \
                      `schedlab record -o F.rec -- COMMAND` or \
                      `perf record -a -e 'sched:*' -- COMMAND`";
const PERF_SCRIPT: &str = "it is made of a perf.data: give that file itself";
const LTTNG: &str = "record with `trace-cmd record -e sched -- COMMAND` or \
                     `perf record -a -e 'sched:*' -- COMMAND` instead: both use the tracepoints \
                     that LTTng's kernel events come from";
const KUTRACE: &str = "it says who ran and not why: record with `schedlab record -o F.rec -- COMMAND` \
                       or `perf record -a -e 'sched:*' -- COMMAND` beside it";
const WINDOWS: &str = "schedulers of Linux are compared here: record the load on Linux, with \
                       `schedlab record -o F.rec -- COMMAND`";
const UNPACK: &str = "unpack it, and name the recording in it";

/// Why a file that begins with `sample` is refused, if it is known.
pub(super) fn recognise(sample: &[u8]) -> Option<Problem> {
    let (what, instead) = match sample {
        _ if sample.starts_with(b"PK\x03\x04") => ("a zip archive", UNPACK),
        // The magic number of a packet of metadata, and that of one of events.
        [0x57, 0x1d, 0xd1, 0x75, ..] | [0x75, 0xd1, 0x1d, 0x57, ..] => ("metadata of CTF", LTTNG),
        [0xc1, 0x1f, 0xfc, 0xc1, ..] | [0xc1, 0xfc, 0x1f, 0xc1, ..] => ("a stream of CTF", LTTNG),
        [0x1e, b'{', ..] => ("metadata of CTF", LTTNG),
        _ if is_windows(sample) => ("a trace of Windows (ETL)", WINDOWS),
        _ if sample.contains(&0) => return None,
        _ => text(sample)?,
    };
    Some(Problem::Foreign { what, instead })
}

/// Why a directory is refused, if it is known.
pub(super) fn recognise_directory(path: &Path) -> Problem {
    let has = |file: &str| path.join(file).is_file();
    if has("metadata") || has("kernel/metadata") || has("ust/metadata") {
        return Problem::Foreign { what: "a trace of LTTng (CTF)", instead: LTTNG };
    }
    Problem::Directory
}

/// A buffer of a log begins with its size, and its first event is the log's own header.
fn is_windows(sample: &[u8]) -> bool {
    let size = sample.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let is_size = size.is_some_and(|size| (1024..=16 << 20).contains(&size) && size & 1023 == 0);
    // `WMI_BUFFER_HEADER` has 72 bytes; then version, kind of header, flags.
    is_size
        && sample.get(74).is_some_and(|kind| [1, 2].contains(kind))
        && sample.get(75) == Some(&0xc0)
}

/// What a line of a text says.
fn text(sample: &[u8]) -> Option<(&'static str, &'static str)> {
    let has = |text: &str| find(sample, text.as_bytes()).is_some();
    if sample.trim_ascii_start().starts_with(b"{") {
        let is_kutrace = has("\"tracebase\"") || has("\"axisLabelX\"");
        return is_kutrace.then_some(("KUtrace's JSON", KUTRACE));
    }
    if sample.starts_with(b"/* CTF ") {
        return Some(("metadata of CTF", LTTNG));
    }
    sample.split(|byte| *byte == b'\n').take(40).find_map(line)
}

fn line(line: &[u8]) -> Option<(&'static str, &'static str)> {
    let has = |text: &str| find(line, text.as_bytes()).is_some();
    Some(match line.trim_ascii() {
        [b'[', .., b'|'] if has(" |") => ("a histogram of bpftrace", EVENTS),
        _ if has(": count") && has("distribution") => ("a histogram of BCC, as runqlat's", EVENTS),
        _ if has("COMM") && has("LAT(us)") => ("a list of latencies, as runqslower's", EVENTS),
        _ if has("delay ms") && has("Runtime ms") => {
            ("a table of `perf sched latency`", PERF_SCRIPT)
        }
        _ if has("task name") && has("sch delay") => {
            ("a table of `perf sched timehist`", PERF_SCRIPT)
        }
        [b'*', ..] if has(" secs ") => ("a map of `perf sched map`", PERF_SCRIPT),
        trimmed if is_perf_trace(trimmed) => (
            "text of `perf trace`",
            "it has calls and no switches: record with `schedlab record -o F.rec -- COMMAND`",
        ),
        [b'[', ..] if has("{ cpu_id = ") => ("text of babeltrace", LTTNG),
        _ => return None,
    })
}

/// `12.345 ( 0.012 ms): comm/123 read(…`.
fn is_perf_trace(line: &[u8]) -> bool {
    let Some(open) = find(line, b" (") else { return false };
    let is_number = |text: &[u8]| {
        !text.is_empty() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    let (before, behind) = line.split_at(open);
    let duration = find(behind, b" ms): ").map(|end| behind[2..end].trim_ascii());
    is_number(before) && duration.is_some_and(|duration| duration.is_empty() || is_number(duration))
}
