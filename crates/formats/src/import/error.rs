//! Import errors: the place, the problem and the next step.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use schedsim::Nanos;
use schedsim::admission::OutOfRange;

/// The largest ratio to which a compressed file may unpack, apart from some slack for small files.
/// Text unpacks to 10 to 50 times its size.
pub(super) const MOST_UNPACKED: u64 = 1000;

/// An unusable file. The program ends with exit code 3.
#[derive(thiserror::Error, Debug)]
#[error("{}{place}: {problem}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// The place in the file.
    pub place: Place,
    /// The problem and the next step.
    pub problem: Problem,
}

impl Error {
    pub(crate) fn new(path: &Path, place: Place, problem: Problem) -> Self {
        Error { path: path.to_owned(), place, problem }
    }
}

impl From<Error> for program::Error {
    fn from(error: Error) -> Self {
        program::Error::Input(error.to_string())
    }
}

/// A place in a file; for a compressed file, a place in its unpacked content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The complete file.
    File,
    /// A line of text, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// An event of a trace file, from 0.
    Event(u64),
    /// A line of the text of ftrace in a JSON file, from 1.
    SystemTrace(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(offset) => write!(f, ": byte {offset}"),
            Place::SystemTrace(line) => write!(f, ": line {line} of systemTraceEvents"),
            Place::Event(number) => write!(f, ": event {number}"),
        }
    }
}

/// What is wrong with a file, and what to do next.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It does not exist.
    #[error(
        "no such file; check the path, or record one with `perf record -a -e 'sched:*' -- COMMAND`"
    )]
    NotFound,
    /// It is a directory.
    #[error("this is a directory; name the recording in it (`schedlab report` shows results)")]
    Directory,
    /// It cannot be read: no permission.
    #[error(
        "no permission to read it (perf writes perf.data for its owner only); change its mode or \
         read it as that user"
    )]
    Permission,
    /// It cannot be read: the system failed.
    #[error("cannot read it: {0}")]
    Read(io::Error),
    /// It is empty.
    #[error("the file is empty; record or copy it again")]
    Empty,
    /// It has another format.
    #[error(
        "this is {0}; expected a recording of schedlab, perf.data, trace.dat, Perfetto's protobuf, \
         a page of systrace, Chrome's JSON, or the text of `perf script`, `trace-cmd report`, \
         atrace or ftrace, plain or compressed with zstd"
    )]
    NotATrace(String),
    /// It is a known file that has no schedule.
    #[error("this is {what}, from which no schedule can be read; {instead}")]
    Foreign {
        /// What it is.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The deflated part of what atrace prints is damaged.
    #[error(
        "the deflated data of atrace is damaged ({0}); `adb shell` changes line ends: capture it \
         again with `adb exec-out atrace -z …`"
    )]
    Deflated(String),
    /// The zstd stream is damaged.
    #[error("the zstd data is damaged ({0}); copy the file again and check it with `zstd -t`")]
    Zstd(String),
    /// It ends too early.
    #[error("the file is cut off: {0}; copy or record it again, a part of a recording is not read")]
    Truncated(String),
    /// It unpacks to more than any real recording.
    #[error(
        "it unpacks to more than {} times its size, which no recording does; check where it comes \
         from, or unpack it with `zstd -d` and name the result",
        MOST_UNPACKED
    )]
    Bomb,
    /// A number out of range.
    #[error("{what} {wrong}; the file is damaged, or comes from a machine that is too large")]
    Range {
        /// The quantity.
        what: &'static str,
        /// The number and its range.
        wrong: OutOfRange,
    },
    /// A trace file that contradicts itself.
    #[error("{0}")]
    Damaged(String),
    /// A line that is not an event.
    #[error(
        "not a line of `perf script`: `{0}`; each event needs task, CPU, time, event and its \
         fields (`perf script --ns -F comm,pid,tid,cpu,time,event,trace`). If the lines before \
         are right, the file was cut or edited here"
    )]
    Line(String),
    /// A scheduling event whose fields do not parse.
    #[error(
        "cannot read the fields of {event}: `{fields}`; make the text again with `perf script \
         --ns`, or import the perf.data itself"
    )]
    Fields {
        /// The event's name.
        event: &'static str,
        /// Its text.
        fields: String,
    },
    /// Events out of order.
    #[error(
        "time goes backwards by {by}; events must be in order of time: make the text again with \
         `perf script` from one perf.data, do not join recordings"
    )]
    TimeBackwards {
        /// The step back from the event before.
        by: Nanos,
    },
    /// A clock that jumped.
    #[error(
        "the clock jumps by {by}, more than any recording lasts; a timestamp is damaged: copy or \
         record the file again"
    )]
    TimeJumps {
        /// The step from the first event.
        by: Nanos,
    },
    /// No events to import.
    #[error("no scheduling events{saw}; record with `perf record -a -e 'sched:*' -- COMMAND`")]
    NoSchedEvents {
        /// `, only …`, or nothing.
        saw: String,
    },
    /// Too many lost events.
    #[error(
        "{lost} events were lost while recording, {percent:.1} % of all; record with larger \
         buffers (`perf record -m 16M`), or accept it with --allow-lost"
    )]
    Lost {
        /// Their number.
        lost: u64,
        /// Their share.
        percent: f64,
    },
    /// A `perf.data` file that contradicts itself or lacks required data.
    #[error("{0}")]
    PerfData(String),
    /// A file of schedlab's recorder that is damaged.
    #[error("{0}")]
    Recording(recording::Damage),
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
    let mut shown: String =
        text.trim().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if bytes.len() > LONGEST {
        shown.push('…');
    }
    shown
}
