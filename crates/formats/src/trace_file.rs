//! schedlab's own trace files: every event of a run, exactly, and the tasks.
//!
//! A file is a zstd stream: the line `schedlab trace 1`, then a line of JSON (the [`Header`]).
//! Three little-endian words follow for each event ([`Event::to_words`]). The last record has three
//! words, `u64::MAX, number of events, hash`. It shows that the file is complete.
//!
//! The same trace as a table of Parquet's is read, too: `TableWriter` writes it.
//!
//! A file may come from an untrusted source. So an event may refer only to what its header names,
//! and memory grows only with the bytes read.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod checked;
mod header;
#[cfg(feature = "parquet")]
mod table;

pub use header::{Header, Task};
#[cfg(feature = "parquet")]
pub use table::TableWriter;

use crate::import;
use crate::import::{Place, Problem, Unpacked};
use checked::Checked;
use header::ADVICE;
use program::{Error, Whole};
use schedsim::trace::{Event, Observer, TraceHash};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &str = "schedlab trace 1\n";

/// The first bytes of a Parquet file.
const TABLE: [u8; 4] = *b"PAR1";

/// The longest header: more than a million tasks need.
const LONGEST_HEADER: u64 = 96 << 20;

/// Writes the events that it observes; [`finish`](Self::finish) completes the file.
pub struct Writer {
    path: PathBuf,
    file: zstd::Encoder<'static, BufWriter<Whole>>,
    events: u64,
    hash: TraceHash,
    failure: Option<std::io::Error>,
}

impl Writer {
    /// Begins the file at `path`.
    pub fn create(path: &Path, header: &Header) -> Result<Writer, Error> {
        let begin = || {
            let mut file = zstd::Encoder::new(BufWriter::new(Whole::create(path)?), 3)?;
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
                self.file
                    .finish()?
                    .into_inner()
                    .map_err(|error| error.into_error())?
                    .finish_on_disk()
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
    header: Header,
    events: Events,
    ended: bool,
}

enum Events {
    Words(Words),
    #[cfg(feature = "parquet")]
    Table(Box<table::TableReader>),
}

impl Reader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If it is not a trace, or its header is invalid.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let wrong = |(place, problem)| Error::from(import::Error::new(path, place, problem));
        let in_file = |problem| wrong((Place::File, problem));
        let file = File::open(path).map_err(|error| in_file(error.into()))?;
        let (header, events) = if is_table(&file) {
            of_table(file, path)?
        } else {
            let (header, words) = Words::open(file).map_err(wrong)?;
            (header, Events::Words(words))
        };
        Ok(Reader { path: path.to_path_buf(), header, events, ended: false })
    }

    /// Whether the file at `path` begins like a trace of schedlab.
    pub fn recognises(path: &Path) -> bool {
        let begin = || {
            let file = File::open(path).ok()?;
            Some(
                is_table(&file)
                    || begins_with(&mut zstd::Decoder::new(file).ok()?, MAGIC.as_bytes()),
            )
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
        let (next, number) = match &mut self.events {
            Events::Words(words) => (words.next_event(), words.checked.events),
            #[cfg(feature = "parquet")]
            Events::Table(table) => (table.next_event(), table.events()),
        };
        self.ended = matches!(next, Ok(None));
        next.map_err(|problem| {
            Error::from(import::Error::new(&self.path, Place::Event(number), problem))
        })
    }
}

#[cfg(feature = "parquet")]
fn of_table(file: File, path: &Path) -> Result<(Header, Events), Error> {
    let (header, table) = table::TableReader::open(file)
        .map_err(|problem| import::Error::new(path, Place::File, problem))?;
    Ok((header, Events::Table(Box::new(table))))
}

#[cfg(not(feature = "parquet"))]
fn of_table(_: File, _: &Path) -> Result<(Header, Events), Error> {
    Err(Error::not_built("parquet", "Parquet"))
}

fn is_table(file: &File) -> bool {
    let mut begin = [0; TABLE.len()];
    file.read_exact_at(&mut begin, 0).is_ok() && begin == TABLE
}

/// Whether the next bytes of the stream are these.
fn begins_with(stream: &mut impl Read, magic: &[u8]) -> bool {
    let mut begin = vec![0; magic.len()];
    stream.read_exact(&mut begin).is_ok() && begin == magic
}

/// The events of a zstd stream, three words each.
struct Words {
    file: BufReader<Unpacked<zstd::Decoder<'static, BufReader<File>>>>,
    checked: Checked,
}

impl Words {
    fn open(file: File) -> Result<(Header, Words), (Place, Problem)> {
        let in_file = |problem| (Place::File, problem);
        let most =
            import::largest_unpacked(&file.metadata().map_err(|error| in_file(error.into()))?);
        let not_ours =
            || in_file(Problem::Damaged(format!("this is not a trace of schedlab; {ADVICE}")));
        let decoder = zstd::Decoder::new(file).map_err(|_| not_ours())?;
        let mut file = BufReader::new(Unpacked::new(decoder, most));
        if !begins_with(&mut file, MAGIC.as_bytes()) {
            return Err(not_ours());
        }
        let in_header = |problem| (Place::Line(2), problem);
        let mut line = Vec::new();
        let read = file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line);
        read.map_err(|error| in_header(import::read_problem(error)))?;
        if line.last() != Some(&b'\n') {
            return Err(in_header(Problem::Damaged(format!(
                "its header does not end within {LONGEST_HEADER} bytes; {ADVICE}"
            ))));
        }
        let header = Header::read(&line).map_err(|why| in_header(Problem::Damaged(why)))?;
        let checked = Checked::new(&header);
        Ok((header, Words { file, checked }))
    }

    fn next_event(&mut self) -> Result<Option<Event>, Problem> {
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
            self.checked.end(events, hash)?;
            return Ok(None);
        }
        let event = Event::from_words(words)
            .ok_or_else(|| Problem::Damaged(format!("this is not an event; {ADVICE}")))?;
        self.checked.take(&event)?;
        Ok(Some(event))
    }
}
