//! Reads Chrome's trace-event JSON: the text of ftrace in its `systemTraceEvents`, or the runs of
//! tasks that `schedlab export` wrote.
//!
//! The file is read as a stream. Events of other programs' own are passed over, whatever their size.

mod runs;

use std::io::Read;

use super::error::{Place, Problem};
use super::input::Around;
use super::json::{Json, Text, damaged};
use super::perf_script;
use super::recorder::Recorder;
use runs::Runs;

/// The longest of our own events, and of names of members.
const LONGEST: usize = 1 << 12;

/// More than the name of a placeholder has, which stands where no text of ftrace is.
const PLACEHOLDER: usize = 64;

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// Reads all events into `recorder`, in order of time.
pub(super) fn read(reader: impl Read, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut json = Json::new(reader);
    let mut file = File { runs: None, others: 0, has_text: false };
    let outcome = file.all(&mut json, recorder);
    let place = Place::Byte(json.place());
    outcome.map_err(|(within, problem)| (within.unwrap_or(place), problem))?;
    let File { runs, others, has_text } = file;
    if others > 0 {
        recorder.skip(b"Chrome's own events", others);
    }
    match runs {
        _ if has_text => Ok(()),
        Some(runs) => runs.finish(recorder),
        None => Err((
            Place::File,
            Problem::Foreign {
                what: "JSON without scheduling events",
                instead: "record with systrace, with Perfetto, or with Chrome's `Record system \
                          tracing`, which puts the text of ftrace into `systemTraceEvents`",
            },
        )),
    }
}

/// What a file has.
struct File {
    /// Of files that schedlab wrote.
    runs: Option<Runs>,
    others: u64,
    has_text: bool,
}

/// A problem with its place, if that is not where the reader is.
type Inner<T> = std::result::Result<T, (Option<Place>, Problem)>;

impl File {
    fn all<R: Read>(&mut self, json: &mut Json<R>, recorder: &mut Recorder<'_>) -> Inner<()> {
        let here = |problem| (None, problem);
        let mut name = Vec::new();
        json.skip_mark().map_err(here)?;
        if json.next().map_err(here)? == Some(b'[') {
            self.events(json)?;
        } else {
            json.expect(b'{').map_err(here)?;
            let mut first = true;
            while json.another(first, b'}').map_err(here)? {
                first = false;
                if json.next().map_err(here)?.is_some_and(|byte| byte != b'"') {
                    return Err(here(damaged("a member has no name")));
                }
                json.value(&mut name, LONGEST).map_err(here)?;
                json.expect(b':').map_err(here)?;
                let begin = json.next().map_err(here)?;
                match (&*name, begin) {
                    (b"\"traceEvents\"", Some(b'[')) => self.events(json)?,
                    (b"\"systemTraceEvents\"", Some(b'"')) => {
                        self.text(json.text().map_err(here)?, recorder)?;
                    }
                    (b"\"otherData\"", _) => {
                        let is_whole = json.value(&mut name, LONGEST).map_err(here)?;
                        if is_whole && is_ours(&name) {
                            self.runs = Some(Runs::default());
                        }
                    }
                    _ => drop(json.value(&mut name, 0).map_err(here)?),
                }
            }
        }
        match json.next().map_err(here)? {
            None => Ok(()),
            Some(_) => Err(here(damaged("something follows its end"))),
        }
    }

    fn events<R: Read>(&mut self, json: &mut Json<R>) -> Inner<()> {
        let here = |problem| (None, problem);
        json.expect(b'[').map_err(here)?;
        let (mut event, mut number, mut first) = (Vec::new(), 0u64, true);
        while json.another(first, b']').map_err(here)? {
            first = false;
            let Some(runs) = &mut self.runs else {
                json.value(&mut event, 0).map_err(here)?;
                self.others = self.others.saturating_add(1);
                continue;
            };
            json.next().map_err(here)?;
            // We write an event a line.
            let line = json.line().filter(|line| line.len() <= LONGEST);
            let length = line.map_or(0, <[u8]>::len);
            let took = match line.map_or(Ok(false), |line| runs.takes(line)) {
                Ok(true) => {
                    json.pass(length);
                    Ok(())
                }
                Ok(false) if json.value(&mut event, LONGEST).map_err(here)? => runs.take(&event),
                Ok(false) => Err(damaged("an event is too long")),
                Err(problem) => Err(problem),
            };
            took.map_err(|problem| (Some(Place::Event(number)), problem))?;
            number = number.saturating_add(1);
        }
        Ok(())
    }

    /// Reads the text of ftrace.
    fn text<R: Read>(&mut self, mut text: Text<'_, R>, recorder: &mut Recorder<'_>) -> Inner<()> {
        let mut start = Vec::new();
        let most = u64::try_from(PLACEHOLDER).unwrap_or(u64::MAX);
        let read = (&mut text).take(most).read_to_end(&mut start);
        let mut outcome = Ok(());
        if read.is_ok() && start.len() == PLACEHOLDER {
            self.has_text = true;
            // What ends the text also ends its last line.
            let whole = start.as_slice().chain(&mut text).chain(&b"\n"[..]);
            outcome = perf_script::read(whole, Around::Nothing, recorder);
        }
        let outcome = outcome.map_err(|(place, problem)| match place {
            Place::Line(line) => (Some(Place::SystemTrace(line)), problem),
            _ => (None, problem),
        });
        match text.failed.take() {
            Some(problem) => Err((None, problem)),
            None => outcome.and_then(|()| text.finish().map_err(|problem| (None, problem))),
        }
    }
}

/// Whether `otherData` says that we wrote the file.
fn is_ours(json: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Other {
        writer: String,
    }
    serde_json::from_slice(json).is_ok_and(|Other { writer }| writer.starts_with("schedlab "))
}
