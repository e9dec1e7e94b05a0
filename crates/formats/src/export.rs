//! Writes traces in the formats of other programs: Perfetto's protobuf, Chrome's JSON, Parquet, the
//! text of `perf script` and of ftrace.
//!
//! An [`Export`] observes the event stream. Events that a format cannot express are counted in
//! [`Omitted`], never dropped silently.

mod anonymous;
mod c;
mod chrome;
mod description;
mod language;
mod names;
mod occupancy;
mod perfetto;
mod queue_lengths;
mod reproducer;
mod rt_app;

mod recording;
mod text;
mod vectors;

pub use anonymous::{anonymise_program, anonymise_trace};
pub use description::{described, write_description};
pub use language::Language;
pub use names::Names;
pub use occupancy::{Interval, Occupancy};
pub use queue_lengths::QueueLengths;
pub use recording::RecordingWriter;
pub use vectors::{Written, chosen_cpu, export_vectors};

#[cfg(feature = "parquet")]
use crate::trace_file::TableWriter;
use crate::trace_source::TraceSource;
use program::{Error, Whole};
use schedsim::Time;
use schedsim::trace::{Event, Observer};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

/// An export format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// Perfetto's protobuf, for <https://ui.perfetto.dev>: CPU rows, tasks, ready-queue lengths
    Perfetto,
    /// Chrome's JSON, for chrome://tracing and Perfetto
    Chrome,
    /// The text of `perf script`, which schedlab and most tools that know perf read
    PerfScript,
    /// The text of the kernel's `trace` file, which tools that know ftrace read
    Ftrace,
    /// A table of Parquet's for pandas, polars, DuckDB: a row for each event (docs/trace.md)
    Parquet,
}

impl Format {
    /// The format for a file name.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?;
        if name.ends_with(".parquet") {
            return Some(Format::Parquet);
        }
        let name = name.strip_suffix(".zst").unwrap_or(name);
        match name {
            _ if [".pftrace", ".perfetto-trace"].iter().any(|ending| name.ends_with(ending)) => {
                Some(Format::Perfetto)
            }
            _ if name.ends_with(".json") => Some(Format::Chrome),
            _ if name.ends_with(".ftrace.txt") => Some(Format::Ftrace),
            _ if name.ends_with(".txt") => Some(Format::PerfScript),
            _ => None,
        }
    }
}

/// What `schedlab export` writes: a trace, the program of a recording, or a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A trace.
    Trace(Format),
    /// A program.
    Program(Language),
    /// What happened to one CPU's fair tasks, for `schedlab-vectors`.
    Vectors,
}

impl Target {
    /// The target for a file name.
    pub fn of_name(path: &Path) -> Option<Target> {
        let name = path.file_name()?.to_str()?;
        if name.strip_suffix(".zst").unwrap_or(name).ends_with(".jsonl") {
            return Some(Target::Vectors);
        }
        let program = Language::of_name(path).map(Target::Program);
        program.or_else(|| Format::of_name(path).map(Target::Trace))
    }
}

impl clap::ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Target] {
        &[
            Target::Trace(Format::Perfetto),
            Target::Trace(Format::Chrome),
            Target::Trace(Format::PerfScript),
            Target::Trace(Format::Ftrace),
            Target::Trace(Format::Parquet),
            Target::Program(Language::Workload),
            Target::Program(Language::RtApp),
            Target::Program(Language::C),
            Target::Vectors,
        ]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Target::Trace(format) => format.to_possible_value(),
            Target::Program(language) => language.to_possible_value(),
            Target::Vectors => Some(clap::builder::PossibleValue::new("vectors").help(
                "What happened to one CPU's tasks and who ran, as a history that \
                 schedlab-vectors --judge reads",
            )),
        }
    }
}

/// Events that the format cannot express.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Omitted {
    /// `job_release` and `job_complete`.
    pub jobs: u64,
    /// `overhead`.
    pub overheads: u64,
}

/// Writes events in one format.
pub trait Export {
    /// Writes the next events.
    fn write(&mut self, chunk: &[Event]) -> io::Result<()>;
    /// Ends the file; `end` is the end of the trace.
    fn finish(self: Box<Self>, end: Time) -> io::Result<Omitted>;
}

/// Writes the trace at `source` to the file `to`, compressed with zstd if its name ends in `.zst`.
pub fn export(source: &TraceSource, format: Format, to: &Path) -> Result<Omitted, Error> {
    let failed = |error| Error::output(to, error);
    let compresses = to.extension().is_some_and(|extension| extension == "zst");
    if compresses && format == Format::Parquet {
        let name = to.display();
        return Err(Error::Usage(format!(
            "Parquet is compressed already; leave out the .zst of {name}"
        )));
    }
    if !cfg!(feature = "parquet") && format == Format::Parquet {
        return Err(Error::not_built("parquet", "Parquet"));
    }
    let mut file = BufWriter::with_capacity(1 << 18, Whole::create(to).map_err(failed)?);
    let omitted = if compresses {
        let mut compressed = zstd::Encoder::new(file, 3).map_err(failed)?;
        let omitted = export_to(source, format, &mut compressed, to)?;
        file = compressed.finish().map_err(failed)?;
        omitted
    } else {
        export_to(source, format, &mut file, to)?
    };
    let whole = file.into_inner().map_err(IntoInnerError::into_error);
    whole.and_then(Whole::finish).map_err(failed)?;
    Ok(omitted)
}

fn export_to(
    source: &TraceSource,
    format: Format,
    out: &mut (dyn Write + Send),
    to: &Path,
) -> Result<Omitted, Error> {
    let failed = |error| Error::output(to, error);
    let names = Names::new(&source.header.tasks);
    let cpus = source.header.cpus;
    let mut export: Box<dyn Export + '_> = match format {
        Format::Perfetto => Box::new(perfetto::Perfetto::new(out, names, cpus).map_err(failed)?),
        Format::Chrome => Box::new(chrome::Chrome::new(out, names, cpus).map_err(failed)?),
        Format::PerfScript => {
            Box::new(text::Text::new(out, text::Style::Perf, names, cpus).map_err(failed)?)
        }
        Format::Ftrace => {
            Box::new(text::Text::new(out, text::Style::Ftrace, names, cpus).map_err(failed)?)
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(TableWriter::new(out, &source.header).map_err(failed)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => unreachable!("refused before the file is made"),
    };
    let mut feed = Feed { export: export.as_mut(), failure: None };
    let end = source.feed(vec![&mut feed])?;
    match feed.failure {
        Some(error) => Err(failed(error)),
        None => export.finish(end).map_err(failed),
    }
}

/// Forwards events until writing fails.
struct Feed<'a> {
    export: &'a mut dyn Export,
    failure: Option<io::Error>,
}

impl Observer for Feed<'_> {
    fn events(&mut self, chunk: &[Event]) {
        if self.failure.is_none() {
            self.failure = self.export.write(chunk).err();
        }
    }
}

#[cfg(feature = "parquet")]
impl<W: Write + Send> Export for TableWriter<W> {
    fn write(&mut self, chunk: &[Event]) -> io::Result<()> {
        TableWriter::write(self, chunk)
    }

    fn finish(self: Box<Self>, _: Time) -> io::Result<Omitted> {
        TableWriter::finish(*self).map(|()| Omitted::default())
    }
}
