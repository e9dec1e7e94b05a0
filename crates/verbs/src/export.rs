//! `schedlab export`: converts a trace to another program's format.

use clap::Args;
use formats::export::{Format, Omitted, export};
use formats::trace_source::TraceSource;
use program::Error;
use std::path::PathBuf;

/// Writes a trace in another program's format: Perfetto, Chrome JSON or the text of perf script
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  schedlab export workloads/redis.perf-script.txt.zst -o redis.pftrace\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.json\n  \
                  schedlab export redis-eevdf.trace -o redis-eevdf.txt.zst\n\n\
                  Open a .pftrace at https://ui.perfetto.dev; it stays in the browser. The \
                  extension sets the format: .pftrace, .json, .txt; add .zst to compress.")]
pub struct Export {
    /// A trace of schedlab (`schedlab run … --trace FILE`), or a recording of perf
    trace: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// The format, if the file's extension does not determine it
    #[arg(long, value_enum)]
    to: Option<Format>,
}

impl Export {
    /// Converts the trace.
    pub fn run(self) -> Result<(), Error> {
        let format = self.to.or_else(|| Format::of_name(&self.output)).ok_or_else(|| {
            let name = self.output.display();
            Error::Usage(format!(
                "the format of {name} is unknown; use the extension .pftrace, .json or .txt, or \
                 say --to perfetto|chrome|perf-script"
            ))
        })?;
        let omitted = export(&TraceSource::open(&self.trace)?, format, &self.output)?;
        let Omitted { jobs, overheads } = omitted;
        if jobs + overheads > 0 {
            eprintln!(
                "schedlab: left out {overheads} overhead and {jobs} job events, which perf has no \
                 words for; .pftrace and .json have them"
            );
        }
        Ok(())
    }
}
