//! Reads what Linux recorded, `perf script` text or `perf.data`, as a stream of events.
//!
//! The events go to the same [`Observer`]s that a simulation feeds; memory grows with the number of tasks, not of events. The format is
//! recognised by content, and either may be compressed with zstd. Whatever is wrong with a file is an [`Error`] that says where and what
//! to do: a trace is read whole or not at all.
//!
//! ```no_run
//! use schedlab::import::{Options, read};
//! use schedsim::trace::{Event, Observer};
//!
//! struct Count(usize);
//! impl Observer for Count {
//!     fn events(&mut self, chunk: &[Event]) {
//!         self.0 += chunk.len();
//!     }
//! }
//!
//! let mut count = Count(0);
//! let recording = read("workloads/redis.perf-script.txt.zst".as_ref(), &Options::default(), vec![&mut count])?;
//! println!("{} events of {} tasks in {}", count.0, recording.tasks.len(), recording.duration);
//! # Ok::<(), schedlab::import::Error>(())
//! ```
#![deny(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::arithmetic_side_effects)]

mod error;
mod input;
mod perf_data;
mod perf_script;
mod record;
mod recorder;
mod report;
mod tasks;

use std::path::Path;

use schedsim::Nanos;
use schedsim::trace::{Observer, TaskInfo, Trace};

pub use error::{Error, Place, Problem};
pub use report::{CpuReport, EventCounts, Format, Report, WakeContexts};

use input::{Content, Input};
pub(crate) use input::{Unpacked, largest_unpacked, read_problem};
use recorder::Recorder;

/// How to read a recording.
#[derive(Default)]
pub struct Options {
    /// Accept a recording that lost more than one event in a hundred.
    pub allow_lost: bool,
    /// Called about once per MiB of the file.
    pub progress: Option<Box<dyn Fn(Progress)>>,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of the file read so far, as they lie on the disk.
    pub bytes_read: u64,
    /// The file's size.
    pub bytes_total: u64,
}

/// What a recording holds beside its events.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Who each [`TaskId`](schedsim::TaskId) is, by index. A pid that is used again after its task ended gets a new id.
    pub tasks: Vec<TaskInfo>,
    /// The machine's CPUs as far as the file tells: the larger of the highest one seen plus one and the number in the file's header.
    pub cpus: u16,
    /// From the first event to the last.
    pub duration: Nanos,
    /// What was read, skipped, lost and doubtful.
    pub report: Report,
}

/// Reads the recording at `path` and hands its events to `observers`.
///
/// On an error the observers may have seen a part of the events; what they made of it is to be thrown away.
pub fn read(path: &Path, options: &Options, observers: Vec<&mut dyn Observer>) -> Result<Recording, Error> {
    let mut recorder = Recorder::new(Trace::new(observers));
    let input = Input::open(path, options.progress.as_deref())?;
    recorder.report.compressed = input.compressed;
    let outcome = match input.content {
        Content::Text(reader) => {
            recorder.report.format = Format::PerfScript;
            perf_script::read(reader, &mut recorder)
        }
        Content::PerfData(source) => {
            recorder.report.format = Format::PerfData;
            perf_data::read(&source, &mut recorder)
        }
    };
    outcome.and_then(|()| recorder.finish(options.allow_lost)).map_err(|(place, problem)| Error::new(path, place, problem))
}
