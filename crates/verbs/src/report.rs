//! `schedlab report`: writes a directory of results as one HTML file.

use clap::Args;
use program::{Error, print};
use report::Window;
use std::path::PathBuf;

/// Writes results as one HTML file: tables, distributions, timelines, the cost atlas
///
/// `compare -o DIR` and `queue -o DIR` do this themselves. Use this command, for example, to show
/// another window of a long run exactly. The file needs no other file and no network.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab report results/lab\n  schedlab report results/lab \
                        --window 100ms..120ms")]
pub struct Report {
    /// A directory written by `-o`
    dir: PathBuf,
    /// The window in which timelines show every interval [default: the complete run, or the middle
    /// of a long one]
    #[arg(long, value_name = "FROM..TO")]
    window: Option<Window>,
}

impl Report {
    /// Writes the report.
    pub fn run(self) -> Result<(), Error> {
        let path = report::write(&self.dir, self.window)?;
        print(&format!("{}\n", path.display()))
    }
}
