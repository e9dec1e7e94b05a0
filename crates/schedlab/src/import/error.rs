//! Why a recording cannot be used, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use schedsim::Nanos;
use schedsim::admission::OutOfRange;

/// A file that cannot be used. The program ends with exit code 3.
#[derive(thiserror::Error, Debug)]
#[error("{}{place}: {problem}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong, and what to do next.
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(path: &Path, place: Place, problem: Problem) -> Self {
        Error { path: path.to_owned(), place, problem }
    }
}

/// A place in a file; of a compressed one, in what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All of it.
    File,
    /// A line of text, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// A record of a perf.data in order of time, from 1.
    Record(u64),
    /// An event of a trace file, from 0.
    Event(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(offset) => write!(f, ": byte {offset}"),
            Place::Record(number) => write!(f, ": record {number}"),
            Place::Event(number) => write!(f, ": event {number}"),
        }
    }
}

/// What is wrong with a file, and what to do next.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It is not there.
    #[error("no such file; check the path, or record one with `perf record -a -e 'sched:*' -- COMMAND`")]
    NotFound,
    /// It is a directory.
    #[error("this is a directory; name the recording in it")]
    Directory,
    /// It may not be read.
    #[error("no permission to read it (perf writes perf.data for its owner only); change its mode or read it as that user")]
    Permission,
    /// The system failed to read it.
    #[error("cannot read it: {0}")]
    Read(io::Error),
    /// It has no bytes.
    #[error("the file is empty; record or copy it again")]
    Empty,
    /// It is something else.
    #[error("this is {0}; expected `perf script` text or perf.data, either one plain or compressed with zstd")]
    NotATrace(String),
    /// The zstd stream is damaged.
    #[error("the zstd data is damaged ({0}); copy the file again and check it with `zstd -t`")]
    Zstd(String),
    /// It ends too early.
    #[error("the file is cut off: {0}; copy or record it again, a part of a recording is not read")]
    Truncated(String),
    /// It unpacks to more than anything real does.
    #[error(
        "it unpacks to more than {} times its size, which no recording does; check where it comes from, or unpack it with `zstd -d` and name the result",
        super::input::MOST_UNPACKED
    )]
    Bomb,
    /// A number outside of its range.
    #[error("{what} {wrong}; the file is damaged, or of a machine that is too large")]
    Range {
        /// What it is of.
        what: &'static str,
        /// The number, and the range.
        wrong: OutOfRange,
    },
    /// A trace file that contradicts itself.
    #[error("{0}")]
    Damaged(String),
    /// A line that is no record.
    #[error(
        "not a line of `perf script`: `{0}`; each event needs task, CPU, time, event and its fields \
         (`perf script --ns -F comm,pid,tid,cpu,time,event,trace`). If the lines before are right, the file was cut or edited here"
    )]
    Line(String),
    /// A scheduling event whose fields do not parse.
    #[error("cannot read the fields of {event}: `{fields}`; make the text again with `perf script --ns`, or import the perf.data itself")]
    Fields {
        /// The event's name.
        event: &'static str,
        /// What stands there.
        fields: String,
    },
    /// Events out of order.
    #[error(
        "time goes backwards by {by}; events must be in order of time: make the text again with `perf script` from one perf.data, \
         do not join recordings"
    )]
    TimeBackwards {
        /// From the event before.
        by: Nanos,
    },
    /// A clock that jumped.
    #[error("the clock jumps by {by}, more than any recording lasts; a timestamp is damaged: copy or record the file again")]
    TimeJumps {
        /// From the first event.
        by: Nanos,
    },
    /// Nothing to import.
    #[error("no scheduling events{saw}; record with `perf record -a -e 'sched:*' -- COMMAND`")]
    NoSchedEvents {
        /// `, only …`, or nothing.
        saw: String,
    },
    /// Too much is missing.
    #[error(
        "{lost} events were lost while recording, {percent:.1} % of all; record with larger buffers (`perf record -m 16M`), \
         or accept it with --allow-lost"
    )]
    Lost {
        /// How many.
        lost: u64,
        /// Their share.
        percent: f64,
    },
    /// A `perf.data` that contradicts itself or lacks what is needed.
    #[error("{0}")]
    PerfData(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Problem::NotFound,
            io::ErrorKind::PermissionDenied => Problem::Permission,
            io::ErrorKind::IsADirectory => Problem::Directory,
            _ => Problem::Read(error),
        }
    }
}

/// The beginning of `bytes` as text for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const LONGEST: usize = 120;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    let mut shown: String = text.trim().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if bytes.len() > LONGEST {
        shown.push('…');
    }
    shown
}
