//! `schedlab export`: a trace in another program's format.

use crate::Error;
use crate::export::{Format, Omitted, export};
use crate::trace_source::TraceSource;
use clap::Args;
use std::path::PathBuf;

/// Writes a trace in another program's format: Perfetto, Chrome JSON or the text of perf script
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab export workloads/redis.perf-script.txt.zst -o redis.pftrace\n  \
                        schedlab export redis-eevdf.trace -o redis-eevdf.json\n  \
                        schedlab export redis-eevdf.trace -o redis-eevdf.txt.zst\n\n\
                        Open a .pftrace at https://ui.perfetto.dev, which keeps it in the browser. The ending chooses the format: .pftrace, .json, .txt; .zst behind it compresses.")]
pub struct Export {
    /// A trace of schedlab's (`schedlab run … --trace FILE`), or a recording of perf's
    trace: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// The format, if the file's ending does not say it
    #[arg(long, value_enum)]
    to: Option<Format>,
}

impl Export {
    pub fn run(self) -> Result<(), Error> {
        let format = self.to.or_else(|| Format::of_name(&self.output)).ok_or_else(|| {
            let name = self.output.display();
            Error::Usage(format!(
                "{name} does not say which format to write; end it in .pftrace, .json or .txt, or say --to perfetto|chrome|perf-script"
            ))
        })?;
        let omitted = export(&TraceSource::open(&self.trace)?, format, &self.output)?;
        let Omitted { jobs, overheads } = omitted;
        if jobs + overheads > 0 {
            eprintln!(
                "schedlab: left out {overheads} overhead and {jobs} job events, which perf has no words for; .pftrace and .json have them"
            );
        }
        Ok(())
    }
}
