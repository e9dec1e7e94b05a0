//! `schedlab record`: a recording of a real workload on this machine.

use super::read_with_progress;
use crate::Error;
use crate::host::record;
use crate::import::Options;
use crate::output::print;
use clap::Args;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// Records what this machine's scheduler does while a command runs
///
/// Wraps perf, with exactly the events that schedlab reads, on all CPUs: what else runs is part of the load. Ctrl-C ends the recording and keeps it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  sudo schedlab record -- make -j8\n  \
                        sudo schedlab record -o build.perf.data.zst -- make -j8\n  sudo schedlab record -- sleep 10     # whatever runs in the next ten seconds\n\n\
                        Then: schedlab compare perf.data -o results\n\
                        Exit codes: 2 the command cannot be started or the file not be written, 3 nothing usable was recorded, 77 perf or a permission is missing.")]
pub struct Record {
    /// The file to write; one that ends in .zst is compressed
    #[arg(short, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Record {
    pub fn run(self) -> Result<(), Error> {
        let status = record::record(&self.command, &self.output)?;
        if !status.success() {
            eprintln!("schedlab: the command ended with {status}; its recording is kept");
        }
        let recording = read_with_progress(&self.output, Options { allow_lost: true, ..Options::default() }, vec![])?;
        let (report, file) = (&recording.report, self.output.display());
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{file}: {} on {} CPUs, {} tasks, {} events, {} lost",
            recording.duration,
            recording.cpus,
            recording.tasks.len(),
            report.events.total(),
            report.lost
        );
        report.warnings.iter().for_each(|warning| eprintln!("schedlab: {warning}"));
        if report.lost_percent() > 1.0 {
            eprintln!("schedlab: more than one event in a hundred was lost: record less, or give --allow-lost to the next command");
        }
        let _ = writeln!(text, "Next: schedlab compare {file} -o results");
        print(&text)
    }
}
