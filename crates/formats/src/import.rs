//! Reads recordings of Linux, `perf script` text, `perf.data`, `trace.dat`, Perfetto's, systrace's or
//! Chrome's, as a stream of events.
//!
//! The events go to the same [`Observer`]s as those of a simulation; memory grows with the number
//! of tasks, not of events. The format is recognised by content, and all formats may be compressed
//! with zstd. A bad file gives an [`Error`] with the place and the next step. A recording is
//! imported completely or not at all.
//!
//! ```no_run
//! use formats::import::{Options, read};
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
//! let path = "workloads/redis.perf-script.txt.zst".as_ref();
//! let recording = read(path, &Options::default(), vec![&mut count])?;
//! println!("{} events of {} tasks in {}", count.0, recording.tasks.len(), recording.duration);
//! # Ok::<(), formats::import::Error>(())
//! ```
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod bytes;
mod chrome;
mod error;
mod foreign;
mod input;
mod json;
mod perf_data;
mod perf_script;
mod perfetto;
mod placed;
mod record;
mod recorder;
mod recording;
mod report;
mod speeds;
mod tasks;
mod trace_dat;
mod tracepoint;
mod tracing_data;

use std::collections::BTreeMap;
use std::path::Path;

use ::recording::Calibration;
use schedsim::trace::{Observer, TaskInfo, Trace};
use schedsim::workload::Shared;
use schedsim::{Nanos, Topology};

pub use ::recording::RECORDER;
pub use error::{Error, Place, Problem};
pub use perf_data::calls_used;
pub use report::{CpuReport, EventCounts, Format, Report, WakeContexts};
pub use speeds::CpuSpeed;

use input::{Around, Content, Input};
pub(crate) use input::{Unpacked, is_trace_json, largest_unpacked, read_problem};
pub(crate) use perfetto::INFERRED;
use recorder::Recorder;

/// Import options.
#[derive(Default)]
pub struct Options {
    /// Accept a recording that lost more than one event in a hundred.
    pub allow_lost: bool,
    /// Called about once for each MiB of the file.
    pub progress: Option<Box<dyn Fn(Progress)>>,
}

/// The progress of reading.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes read so far, of the file on disk.
    pub bytes_read: u64,
    /// The file's size.
    pub bytes_total: u64,
}

/// The data of a recording besides its events.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The task of each [`TaskId`](schedsim::TaskId), by index. A pid that is reused after its task
    /// ended gets a new id.
    pub tasks: Vec<TaskInfo>,
    /// By task: its priority changed after it had run. `tasks` has the last one.
    pub reprioritised: Vec<bool>,
    /// The number of CPUs that the file shows: the highest CPU number plus one, or the number in
    /// the file's header if that is larger.
    pub cpus: u16,
    /// From the first event to the last.
    pub duration: Nanos,
    /// The speed of each CPU, if they differ and the file shows it; else empty.
    pub speeds: Vec<CpuSpeed>,
    /// The objects of the operations in its calls; empty if it has none, or a schedule is read.
    pub objects: Shared,
    /// The names of the objects of its calls, by the number in [`CallKind::Within`](schedsim::trace::CallKind::Within).
    pub object_names: BTreeMap<u32, String>,
    /// What the recorder measured about itself and the machine.
    pub measurements: Vec<Measurement>,
    /// The costs of scheduling that were measured on the machine before the recording.
    pub calibrations: Vec<Calibration>,
    /// Numbers of read, skipped and lost events, and warnings.
    pub report: Report,
}

impl Recording {
    /// Its CPUs, if the file shows that their speeds differ.
    pub fn topology(&self) -> Option<Topology> {
        speeds::topology(&self.speeds, self.cpus)
    }
}

/// A number that the recorder measured beside the recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// What.
    pub of: Measured,
    /// The median of the samples.
    pub median: f64,
    /// Of calls the quartiles. Of ratios the smallest and the largest pair. Of calibrations the
    /// ends of the middle 90 %. `None` where the recording does not have them.
    pub range: Option<(f64, f64)>,
    /// The number of samples.
    pub samples: u64,
}

/// What the recorder measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measured {
    /// Nanoseconds that recording takes for each call.
    Call,
    /// The same for each call of a lock.
    Lock,
    /// Elapsed time, recorded ÷ not recorded.
    Time,
    /// CPU time, recorded ÷ not recorded.
    CpuTime,
    /// CPU time of the recorder ÷ that of the command.
    OwnCpuTime,
    /// Nanoseconds that scheduling takes: the name of a [`Calibration`].
    Calibrated(String),
}

/// Reads the recording at `path` and passes its events to `observers`.
///
/// After an error the observers may have received some of the events; discard their results.
pub fn read(
    path: &Path,
    options: &Options,
    observers: Vec<&mut dyn Observer>,
) -> Result<Recording, Error> {
    let mut recorder = Recorder::new(Trace::new(observers));
    let input = Input::open(path, options.progress.as_deref())?;
    recorder.report.compressed = input.compressed;
    let outcome = match input.content {
        Content::Text(around, reader) => {
            recorder.report.format = match around {
                Around::Nothing => Format::PerfScript,
                Around::Atrace | Around::Page => Format::Systrace,
            };
            perf_script::read(reader, around, &mut recorder)
        }
        Content::Json(reader) => {
            recorder.report.format = Format::ChromeJson;
            chrome::read(reader, &mut recorder)
        }
        Content::Recording(reader) => {
            recorder.report.format = Format::Recording;
            recording::read(reader, &mut recorder)
        }
        Content::Pieces(format, source) => {
            recorder.report.format = format;
            match format {
                Format::TraceDat => trace_dat::read(&source, &mut recorder),
                Format::Perfetto => perfetto::read(&source, &mut recorder),
                _ => perf_data::read(&source, &mut recorder),
            }
        }
    };
    outcome
        .and_then(|()| recorder.finish(options.allow_lost))
        .map_err(|(place, problem)| Error::new(path, place, problem))
}
