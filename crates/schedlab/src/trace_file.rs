//! schedlab's own trace files: every event of a run, exactly, and who the tasks are.
//!
//! A zstd stream of: the line `schedlab trace 1`, a line of JSON (the [`Header`]), then per event three little-endian words
//! ([`Event::to_words`]), and at the end a record of three words `u64::MAX, number of events, hash`, so that a file that was cut short is noticed.

use crate::Error;
use schedsim::trace::{Event, Observer, TaskInfo, TraceHash};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &str = "schedlab trace 1\n";

/// What a trace file says about its run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The workload's name.
    pub workload: String,
    /// The policy's name.
    pub policy: String,
    /// How many CPUs.
    pub cpus: u16,
    /// The seed.
    pub seed: u64,
    /// The program's version.
    pub version: String,
    /// The tasks by id.
    pub tasks: Vec<Task>,
}

/// A task of a trace file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its thread id where it was recorded.
    pub pid: u32,
    /// Its process id there.
    pub tgid: u32,
    /// Linux's kernel priority.
    pub prio: u8,
}

impl From<&TaskInfo> for Task {
    fn from(info: &TaskInfo) -> Task {
        Task { name: info.name.clone(), pid: info.pid, tgid: info.tgid, prio: info.prio }
    }
}

/// Writes the events that it observes; [`finish`](Self::finish) makes the file whole.
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
        Ok(Writer { path: path.to_path_buf(), file, events: 0, hash: TraceHash::new(), failure: None })
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), Error> {
        let failed = |error| Error::output(&self.path, error);
        if let Some(error) = self.failure.take() {
            return Err(failed(error));
        }
        write_words(&mut self.file, [u64::MAX, self.events, self.hash.value()])
            .and_then(|()| self.file.finish()?.into_inner().map_err(|error| error.into_error())?.sync_all())
            .map_err(|error| Error::output(&self.path, error))
    }
}

impl Observer for Writer {
    fn events(&mut self, chunk: &[Event]) {
        self.events += chunk.len() as u64;
        self.hash.events(chunk);
        let written = chunk.iter().try_for_each(|event| write_words(&mut self.file, event.to_words()));
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
    file: BufReader<zstd::Decoder<'static, BufReader<File>>>,
    header: Header,
    events: u64,
    hash: TraceHash,
    ended: bool,
}

impl Reader {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let input = |message: String| Error::Input(format!("{}: {message}", path.display()));
        let not_ours = "this is no trace of schedlab's; write one with `schedlab run WORKLOAD --policy P --trace FILE`";
        let file = File::open(path).map_err(|error| input(error.to_string()))?;
        let mut file = BufReader::new(zstd::Decoder::new(file).map_err(|error| input(error.to_string()))?);
        let mut magic = vec![0; MAGIC.len()];
        file.read_exact(&mut magic).map_err(|_| input(not_ours.to_string()))?;
        if magic != MAGIC.as_bytes() {
            return Err(input(not_ours.to_string()));
        }
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line).map_err(|error| input(error.to_string()))?;
        let header = serde_json::from_slice(&line).map_err(|error| input(format!("its header cannot be read: {error}")))?;
        Ok(Reader { path: path.to_path_buf(), file, header, events: 0, hash: TraceHash::new(), ended: false })
    }

    /// Whether the file at `path` begins like a trace of schedlab's.
    pub fn recognises(path: &Path) -> bool {
        let begin = || {
            let mut magic = vec![0; MAGIC.len()];
            zstd::Decoder::new(File::open(path).ok()?).ok()?.read_exact(&mut magic).ok()?;
            Some(magic == MAGIC.as_bytes())
        };
        begin().unwrap_or(false)
    }

    /// What the file says about its run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next event, or `None` after the last.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        if self.ended {
            return Ok(None);
        }
        let at = self.events;
        let wrong = |what: &str| Error::Input(format!("{}: event {at}: {what}; write the trace again", self.path.display()));
        let mut bytes = [0; 24];
        self.file.read_exact(&mut bytes).map_err(|_| wrong("the file is cut off"))?;
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]);
        }
        if words[0] == u64::MAX {
            self.ended = true;
            return if words[1..] == [self.events, self.hash.value()] {
                Ok(None)
            } else {
                Err(wrong("the file is damaged: its hash differs"))
            };
        }
        let event = Event::from_words(words).ok_or_else(|| wrong("not an event"))?;
        self.events += 1;
        self.hash.events(&[event]);
        Ok(Some(event))
    }
}
