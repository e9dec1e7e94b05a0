//! Parses the text of `perf script`, line by line. The kernel's own `trace` file in tracefs, alone or
//! in a page of systrace, and what `trace-cmd report` prints are similar and are read too.

mod fields;
mod header;
mod lines;
mod page;

use schedsim::admission::{CpuNumber, Cpus, OutOfRange, Pid};
use std::io::Read;

use super::error::{Place, Problem, excerpt};
use super::input::Around;
use super::record::{self, Record, Tracepoint};
use super::recorder::{Lost, Recorder};
use header::{Header, number, split_perf_record};
use lines::Lines;

/// Reads all lines into `recorder`.
pub(super) fn read(
    reader: impl Read,
    around: Around,
    recorder: &mut Recorder<'_>,
) -> Result<(), (Place, Problem)> {
    let mut lines = Lines::new(reader);
    let outcome = match around {
        Around::Page => page::page(&mut lines, recorder),
        Around::Nothing => lines_until(&mut lines, Form::File, recorder).map(drop),
        Around::Atrace => page::behind_trace(&mut lines)
            .and_then(|()| lines_until(&mut lines, Form::File, recorder).map(drop)),
    };
    recorder.report.lines = lines.number;
    outcome.map_err(|problem| (Place::Line(lines.number), problem))
}

/// How lines end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// With the file.
    File,
    /// With an element of HTML, which is for other tools if its first line is no line of a trace.
    Element,
    /// With a text of JavaScript, whose newlines are spelled.
    Literal,
}

impl Form {
    /// The line as ftrace wrote it, and whether it is the last one.
    #[inline]
    fn line(self, text: &[u8]) -> (&[u8], bool) {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if self == Form::File {
            return (text, false);
        }
        if let Some(end) = memchr::memmem::find(text, b"</script>") {
            return (&text[..end], true);
        }
        let spelled = if self == Form::Literal { text } else { return (text, false) };
        let is_last = spelled.ends_with(b"\";");
        let rest = spelled.strip_suffix(if is_last { &b"\";"[..] } else { b"\\" });
        let rest = rest.unwrap_or(spelled);
        (rest.strip_suffix(b"\\n").unwrap_or(rest), is_last)
    }
}

/// Parses lines; whether their end was found.
fn lines_until(
    lines: &mut Lines<impl Read>,
    form: Form,
    recorder: &mut Recorder<'_>,
) -> Result<bool, Problem> {
    let mut in_callchain = false;
    let mut is_trace = form != Form::Element;
    while let Some(text) = lines.next_line()? {
        let (text, is_last) = form.line(text);
        if !is_trace && !text.trim_ascii().is_empty() {
            if text.first() != Some(&b'#') && Header::parse(text).is_none() {
                recorder.skip(b"trace-data of another tool", 1);
                return Ok(is_last || lines.seek(&[b"</script>"])?.is_some());
            }
            is_trace = true;
        }
        line(text, &mut in_callchain, recorder)?;
        if is_last {
            return Ok(true);
        }
    }
    Ok(form == Form::File)
}

/// Parses one line: an event, a line of a call chain, a comment, or an empty line.
#[inline]
fn line(text: &[u8], in_callchain: &mut bool, recorder: &mut Recorder<'_>) -> Result<(), Problem> {
    if text.first() == Some(&b'\t') {
        *in_callchain = true;
        return Ok(());
    }
    let Some(header) = Header::parse(text) else {
        return no_event(text, *in_callchain, recorder);
    };
    *in_callchain = false;
    let Some(tracepoint) = Tracepoint::named(header.event) else {
        other_event(header.event, header.fields, recorder);
        return Ok(());
    };
    let Some(what) = fields::parse(tracepoint, header.fields) else {
        if tracepoint == Tracepoint::Switch && fields::has_raw_state(header.fields) {
            return Err(Problem::Foreign {
                what: "text of `trace-cmd report -R`, whose states are numbers that mean another \
                       thing in each kernel",
                instead: "give the trace.dat itself, or print it without -R",
            });
        }
        let fields =
            || Problem::Fields { event: tracepoint.name(), fields: excerpt(header.fields) };
        return Err(out_of_range(header.fields).unwrap_or_else(fields));
    };
    let current = if tracepoint == Tracepoint::Switch { header.current() } else { None };
    recorder.record(&Record {
        time: header.time,
        cpu: header.cpu,
        context: header.context,
        current,
        what,
    })
}

/// Handles a line without the columns of an event.
#[cold]
fn no_event(text: &[u8], in_callchain: bool, recorder: &mut Recorder<'_>) -> Result<(), Problem> {
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return Ok(());
    }
    if text[0] == b'#' {
        return comment(text, recorder);
    }
    if let Some(start) = memchr::memmem::find(text, b"PERF_RECORD_") {
        let (name, rest) = split_perf_record(&text[start..]);
        other_event(name, rest, recorder);
        return Ok(());
    }
    if let Some(lost) = lost_by_ftrace(trimmed) {
        recorder.lose(Lost::Records(lost));
        return Ok(());
    }
    // The first lines of `trace-cmd report`.
    if trimmed.strip_prefix(b"version = ").is_some_and(|version| version.len() == 1) {
        return Ok(());
    }
    if let Some((_, b" is empty")) = trimmed.strip_prefix(b"CPU ").and_then(number) {
        return Ok(());
    }
    if let Some((cpus, b"")) = trimmed.strip_prefix(b"cpus=").and_then(number) {
        return cpus_online(cpus, recorder);
    }
    if in_callchain && text[0] == b' ' && is_source_line(trimmed) {
        return Ok(());
    }
    Err(out_of_range(text).unwrap_or_else(|| Problem::Line(excerpt(text))))
}

/// The first number in an unreadable line that cannot be a CPU or a pid.
#[cold]
fn out_of_range(text: &[u8]) -> Option<Problem> {
    let cpu = |number| record::cpu(number).is_none().then(|| CpuNumber::refuse(number));
    let pid = |number| record::pid(number).is_none().then(|| Pid::refuse(number));
    type Refuse<'a> = &'a dyn Fn(u64) -> Option<OutOfRange>;
    let known: [(&[u8], &'static str, Refuse<'_>); 6] = [
        (b" [", "the CPU", &cpu),
        (b"target_cpu=", "the CPU", &cpu),
        (b"orig_cpu=", "the CPU", &cpu),
        (b"dest_cpu=", "the CPU", &cpu),
        (b" CPU:", "the CPU", &cpu),
        (b"pid=", "the pid", &pid),
    ];
    known.into_iter().find_map(|(before, what, refuse)| {
        let mut places = memchr::memmem::find_iter(text, before);
        places.find_map(|place| {
            let (number, _) = number(text.get(place.saturating_add(before.len())..)?)?;
            refuse(number).map(|wrong| Problem::Range { what, wrong })
        })
    })
}

/// `CPU:1 [LOST 42 EVENTS]` from the kernel's own `trace` file, whose other lines are like those of
/// perf. `CPU:1 [42 EVENTS DROPPED]` from trace-cmd, or without a number if the kernel gave none.
fn lost_by_ftrace(text: &[u8]) -> Option<u64> {
    let (_, rest) = number(text.strip_prefix(b"CPU:")?)?;
    match rest.strip_prefix(b" [")?.strip_suffix(b"]")? {
        b"EVENTS DROPPED" => Some(1),
        rest => match number(rest.strip_prefix(b"LOST ").unwrap_or(rest))? {
            (lost, b" EVENTS" | b" EVENTS DROPPED") => Some(lost),
            _ => None,
        },
    }
}

/// `file:line`, which `-F +srcline` prints below each line of a call chain.
fn is_source_line(text: &[u8]) -> bool {
    memchr::memrchr(b':', text).is_some_and(|colon| {
        matches!(text.get(colon.saturating_add(1)..).and_then(number), Some((_, b"")))
    })
}

/// The comment with the number of CPUs: `# nrcpus online : 4` of `perf script --header`, and ftrace's
/// `#P:4` at the end of a line.
fn comment(text: &[u8], recorder: &mut Recorder<'_>) -> Result<(), Problem> {
    let of_perf =
        text.strip_prefix(b"# nrcpus online :").and_then(|rest| number(rest.trim_ascii_start()));
    let of_ftrace = || {
        let place = memchr::memmem::rfind(text, b" #P:")?;
        number(&text[place.saturating_add(4)..]).filter(|(_, rest)| rest.trim_ascii().is_empty())
    };
    let online = of_perf.or_else(of_ftrace);
    online.map_or(Ok(()), |(cpus, _)| cpus_online(cpus, recorder))
}

fn cpus_online(cpus: u64, recorder: &mut Recorder<'_>) -> Result<(), Problem> {
    recorder.cpus_online = Cpus::admit(cpus.into())
        .map_err(|wrong| Problem::Range { what: "the number of CPUs", wrong })?
        .get();
    Ok(())
}

/// Counts an event that is not imported, or lost events: `PERF_RECORD_LOST lost 42`.
#[cold]
fn other_event(name: &[u8], rest: &[u8], recorder: &mut Recorder<'_>) {
    if matches!(name, b"PERF_RECORD_LOST" | b"PERF_RECORD_LOST_SAMPLES") {
        let count = memchr::memmem::find(rest, b"lost ")
            .and_then(|at| number(rest.split_at(at).1.strip_prefix(b"lost ")?));
        let count = count.map_or(1, |(count, _)| count);
        recorder.lose(if name == b"PERF_RECORD_LOST" {
            Lost::Records(count)
        } else {
            Lost::Samples(count)
        });
    } else {
        recorder.skip(name, 1);
    }
}
