//! `schedlab report`: a directory of results as one HTML file.

use crate::Error;
use crate::output::print;
use crate::report::{self, Window};
use clap::Args;
use std::path::PathBuf;

/// Writes results as one HTML file: tables, distributions, timelines, the cost atlas
///
/// `compare -o DIR` and `queue -o DIR` do so by themselves; this does it again, for instance to see another window of a long run exactly. The file needs
/// nothing else, not even a network.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab report results/lab\n  schedlab report results/lab --window 100ms..120ms")]
pub struct Report {
    /// A directory that `-o` made
    dir: PathBuf,
    /// Where the timelines show every interval [default: the whole run, or the middle of a long one]
    #[arg(long, value_name = "FROM..TO")]
    window: Option<Window>,
}

impl Report {
    pub fn run(self) -> Result<(), Error> {
        let path = report::write(&self.dir, self.window)?;
        print(&format!("{}\n", path.display()))
    }
}
