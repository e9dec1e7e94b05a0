//! `schedlab export`: converts a trace to another program's format, or writes out what a recorded
//! program does.

use crate::programs::written_out;
use crate::read_with_progress;
use clap::Args;
use formats::export::{Format, Omitted, export, write_description};
use formats::selection::Selection;
use formats::trace_source::TraceSource;
use program::Error;
use std::path::{Path, PathBuf};
use worlds::experiment::{CostOverrides, Reading, Recorded};

/// Writes a trace in another program's format, or a recording's program as a workload
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  schedlab export workloads/redis.perf-script.txt.zst -o redis.pftrace\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.json\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.txt.zst\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.parquet\n  \
                  schedlab export perf.data --window 1s..2s --comm redis-server -o part.txt\n  \
                  schedlab export program.rec -o program.toml\n\n\
                  Open a .pftrace at https://ui.perfetto.dev; it stays in the browser. The \
                  extension sets the format: .pftrace, .json, .txt, .ftrace.txt, .parquet; .toml is a workload \
                  that does what the recorded tasks do; add .zst to compress.")]
pub struct Export {
    /// A trace of schedlab (`schedlab run … --trace FILE`, or Parquet), or a recording
    trace: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// The format, if the file's extension does not determine it
    #[arg(long, value_enum)]
    to: Option<Format>,
    #[command(flatten, next_help_heading = "A part of the trace")]
    part: Selection,
}

impl Export {
    /// Converts the trace.
    pub fn run(self) -> Result<(), Error> {
        if self.to.is_none() && names_a_workload(&self.output) {
            return self.describe();
        }
        let format = self.to.or_else(|| Format::of_name(&self.output)).ok_or_else(|| {
            let name = self.output.display();
            Error::Usage(format!(
                "the format of {name} is unknown; use the extension .pftrace, .json, .txt, \
                 .ftrace.txt, .parquet or .toml, or say \
                 --to perfetto|chrome|perf-script|ftrace|parquet"
            ))
        })?;
        let source = TraceSource::open(&self.trace)?.select(self.part)?;
        let omitted = export(&source, format, &self.output)?;
        let Omitted { jobs, overheads } = omitted;
        if jobs + overheads > 0 {
            eprintln!(
                "schedlab: left out {overheads} overhead and {jobs} job events, which perf has no \
                 words for; .pftrace, .json and .parquet have them"
            );
        }
        Ok(())
    }

    /// Writes what the recorded tasks do as a workload.
    fn describe(self) -> Result<(), Error> {
        if !self.part.is_all() {
            let reason = "a program has no parts: what its tasks do later follows from what they did before. Leave out --window, --cpus and --comm, or write the part as .txt: as a schedule it can be replayed";
            return Err(Error::Usage(reason.to_string()));
        }
        let costs = CostOverrides::default();
        let recorded = Recorded::load(&self.trace, Reading::default(), costs, read_with_progress)?;
        let closed = written_out(&recorded, &self.trace)?;
        write_description(&closed, &self.output)
    }
}

fn names_a_workload(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".zst").unwrap_or(name).ends_with(".toml")
}
