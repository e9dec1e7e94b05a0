//! schedlab's own trace files: every event of a run, exactly, and the tasks.
//!
//! A file is a zstd stream: the line `schedlab trace 1`; a line of JSON (the [`Header`]); three
//! little-endian words for each event ([`Event::to_words`]); and a last record of three words
//! `u64::MAX, number of events, hash`. The last record shows that the file is complete.
//!
//! A file may come from an untrusted source: an event may refer only to what its header names, and
//! memory grows only with the bytes read.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use crate::import;
use crate::import::{Place, Problem, Unpacked};
use program::Error;
use schedsim::admission::{Cpus, LAST, OutOfRange, Pid, Priority, admitted};
use schedsim::trace::{Event, EventKind, Observer, TaskInfo, TraceHash};
use schedsim::{CpuId, Nanos, TaskId, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &str = "schedlab trace 1\n";

/// The longest header: more than a million tasks need.
const LONGEST_HEADER: u64 = 96 << 20;

/// The next step for a damaged file.
const ADVICE: &str = "write it again with `schedlab run WORKLOAD --policy P --trace FILE`";

/// The description of the run in a trace file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The workload's name.
    pub workload: String,
    /// The candidate's name.
    pub candidate: String,
    /// The number of CPUs.
    #[serde(deserialize_with = "admitted::<_, Cpus, _>")]
    pub cpus: u16,
    /// The seed.
    pub seed: u64,
    /// The version of schedlab.
    pub version: String,
    /// The tasks, by id.
    pub tasks: Vec<Task>,
}

/// The field that identifies a header of an older version.
#[derive(Deserialize)]
struct OldHeader {
    #[serde(rename = "policy")]
    _policy: String,
}

/// A task of a trace file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The recorded thread id.
    #[serde(deserialize_with = "admitted::<_, Pid, _>")]
    pub pid: u32,
    /// The recorded process id.
    #[serde(deserialize_with = "admitted::<_, Pid, _>")]
    pub tgid: u32,
    /// Linux's kernel priority.
    #[serde(deserialize_with = "admitted::<_, Priority, _>")]
    pub prio: u8,
}

impl From<&TaskInfo> for Task {
    fn from(info: &TaskInfo) -> Task {
        Task { name: info.name.clone(), pid: info.pid, tgid: info.tgid, prio: info.prio }
    }
}

/// Writes the events that it observes; [`finish`](Self::finish) completes the file.
pub struct Writer {
    path: PathBuf,
    file: zstd::Encoder<'static, BufWriter<File>>,
    events: u64,
    hash: TraceHash,
    failure: Option<std::io::Error>,
}

impl Writer {
    /// Begins the file at `path`.
    pub fn create(path: &Path, header: &Header) -> Result<Writer, Error> {
        let begin = || {
            let mut file = zstd::Encoder::new(BufWriter::new(File::create(path)?), 3)?;
            file.write_all(MAGIC.as_bytes())?;
            serde_json::to_writer(&mut file, header)?;
            file.write_all(b"\n")?;
            Ok(file)
        };
        let file = begin().map_err(|error| Error::output(path, error))?;
        Ok(Writer {
            path: path.to_path_buf(),
            file,
            events: 0,
            hash: TraceHash::new(),
            failure: None,
        })
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), Error> {
        let failed = |error| Error::output(&self.path, error);
        if let Some(error) = self.failure.take() {
            return Err(failed(error));
        }
        write_words(&mut self.file, [u64::MAX, self.events, self.hash.value()])
            .and_then(|()| {
                self.file.finish()?.into_inner().map_err(|error| error.into_error())?.sync_all()
            })
            .map_err(|error| Error::output(&self.path, error))
    }
}

impl Observer for Writer {
    fn events(&mut self, chunk: &[Event]) {
        self.events = self.events.saturating_add(chunk.len().try_into().unwrap_or(u64::MAX));
        self.hash.events(chunk);
        let written =
            chunk.iter().try_for_each(|event| write_words(&mut self.file, event.to_words()));
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

fn write_words(out: &mut impl Write, words: [u64; 3]) -> std::io::Result<()> {
    let mut bytes = [0; 24];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    out.write_all(&bytes)
}

/// Reads a trace file event by event.
pub struct Reader {
    path: PathBuf,
    file: BufReader<Unpacked<zstd::Decoder<'static, BufReader<File>>>>,
    header: Header,
    /// The number of events read.
    events: u64,
    /// The time of the last event.
    time: Time,
    hash: TraceHash,
    ended: bool,
}

impl Reader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If it is not a trace, or its header is invalid.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let wrong = |place, problem| Error::from(import::Error::new(path, place, problem));
        let in_file = |problem| wrong(Place::File, problem);
        let file = File::open(path).map_err(|error| in_file(error.into()))?;
        let most =
            import::largest_unpacked(&file.metadata().map_err(|error| in_file(error.into()))?);
        let not_ours =
            || in_file(Problem::Damaged(format!("this is not a trace of schedlab; {ADVICE}")));
        let decoder = zstd::Decoder::new(file).map_err(|_| not_ours())?;
        let mut file = BufReader::new(Unpacked::new(decoder, most));
        let mut magic = vec![0; MAGIC.len()];
        file.read_exact(&mut magic).map_err(|_| not_ours())?;
        if magic != MAGIC.as_bytes() {
            return Err(not_ours());
        }
        let in_header = |problem| wrong(Place::Line(2), problem);
        let mut line = Vec::new();
        let read = file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line);
        read.map_err(|error| in_header(import::read_problem(error)))?;
        if line.last() != Some(&b'\n') {
            return Err(in_header(Problem::Damaged(format!(
                "its header does not end within {LONGEST_HEADER} bytes; {ADVICE}"
            ))));
        }
        let damaged = |error: serde_json::Error| {
            let is_old = serde_json::from_slice::<OldHeader>(&line).is_ok();
            let renamed = if is_old {
                " (an older version wrote it: `policy` is `candidate` now)"
            } else {
                ""
            };
            in_header(Problem::Damaged(format!(
                "its header cannot be read: {error}{renamed}; {ADVICE}"
            )))
        };
        let header = serde_json::from_slice(&line).map_err(damaged)?;
        Ok(Reader {
            path: path.to_path_buf(),
            file,
            header,
            events: 0,
            time: Time::ZERO,
            hash: TraceHash::new(),
            ended: false,
        })
    }

    /// Whether the file at `path` begins like a trace of schedlab.
    pub fn recognises(path: &Path) -> bool {
        let begin = || {
            let mut magic = vec![0; MAGIC.len()];
            zstd::Decoder::new(File::open(path).ok()?).ok()?.read_exact(&mut magic).ok()?;
            Some(magic == MAGIC.as_bytes())
        };
        begin().unwrap_or(false)
    }

    /// The description of the run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next event, or `None` after the last. Time never goes backwards, and CPUs and tasks are
    /// those of the header.
    ///
    /// # Errors
    /// If the file is cut off or damaged, or an event refers to something that does not exist.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        if self.ended {
            return Ok(None);
        }
        self.read_event().map_err(|problem| {
            Error::from(import::Error::new(&self.path, Place::Event(self.events), problem))
        })
    }

    fn read_event(&mut self) -> Result<Option<Event>, Problem> {
        let mut words = [0; 3];
        for word in &mut words {
            let mut bytes = [0; 8];
            self.file.read_exact(&mut bytes).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    Problem::Truncated("its last record is missing".to_string())
                }
                _ => import::read_problem(error),
            })?;
            *word = u64::from_le_bytes(bytes);
        }
        let [time, events, hash] = words;
        if time == u64::MAX {
            self.ended = true;
            let is_whole = (events, hash) == (self.events, self.hash.value());
            return if is_whole {
                Ok(None)
            } else {
                Err(Problem::Damaged(format!("its hash differs; {ADVICE}")))
            };
        }
        let event = Event::from_words(words)
            .ok_or_else(|| Problem::Damaged(format!("this is not an event; {ADVICE}")))?;
        self.admit(&event)?;
        self.time = event.time;
        self.events = self.events.saturating_add(1);
        self.hash.events(&[event]);
        Ok(Some(event))
    }

    /// Refuses an event that refers to something that does not exist.
    fn admit(&self, event: &Event) -> Result<(), Problem> {
        let refuse = |what, value: u64, least: u64, most: u64| {
            let expected = format!("a whole number from {least} to {most}");
            Err(Problem::Range { what, wrong: OutOfRange { value: value.to_string(), expected } })
        };
        if !(self.time..=LAST).contains(&event.time) {
            return refuse("the time", event.time.0, self.time.0, LAST.0);
        }
        let Named { tasks, cpus, span } = Named::by(&event.kind);
        let most = self.header.cpus.saturating_sub(1);
        if let Some(cpu) = [event.cpu].into_iter().chain(cpus).find(|cpu| cpu.0 > most) {
            return refuse("the CPU", cpu.0.into(), 0, most.into());
        }
        // If tasks are drawn during the run, the header has none. Then each event adds at most one
        // task, and one more task may come ahead of its event.
        let known = u64::try_from(self.header.tasks.len()).unwrap_or(u64::MAX);
        let most = known.checked_sub(1).unwrap_or(self.events.saturating_add(1));
        if let Some(task) =
            tasks.into_iter().find(|&task| task != TaskId::NONE && u64::from(task.0) > most)
        {
            return refuse("the task", task.0.into(), 0, most);
        }
        if span.0 > LAST.0 { refuse("the duration", span.0, 0, LAST.0) } else { Ok(()) }
    }
}

/// The CPUs and tasks that an event names besides its own CPU.
struct Named {
    tasks: [TaskId; 2],
    cpus: [CpuId; 2],
    span: Nanos,
}

impl Named {
    fn by(kind: &EventKind) -> Named {
        let of =
            |task| Named { tasks: [task, TaskId::NONE], cpus: [CpuId(0); 2], span: Nanos::ZERO };
        match *kind {
            EventKind::SchedSwitch { prev, next, .. } => Named { tasks: [prev, next], ..of(prev) },
            EventKind::SchedWaking { task, target, .. }
            | EventKind::SchedWakeup { task, target }
            | EventKind::SchedWakeupNew { task, target } => Named { cpus: [target; 2], ..of(task) },
            EventKind::SchedProcessFork { parent, child } => {
                Named { tasks: [parent, child], ..of(child) }
            }
            EventKind::SchedMigrateTask { task, from, to } => {
                Named { cpus: [from, to], ..of(task) }
            }
            EventKind::JobComplete { task, demand: span }
            | EventKind::Overhead { task, spent: span, .. } => Named { span, ..of(task) },
            EventKind::ContentionBegin { task, owner, .. } => {
                Named { tasks: [task, owner], ..of(task) }
            }
            EventKind::SchedProcessExec { task }
            | EventKind::SchedProcessExit { task }
            | EventKind::JobRelease { task }
            | EventKind::SchedPiSetprio { task, .. } => of(task),
        }
    }
}
