//! Writes results as one HTML file that needs no other file and no network.
//!
//! Tables are written here, so that they are readable without a script. `report.js` sorts them and
//! draws the plots with uPlot, which is part of the file. The data comes from the results
//! directory: rows, distributions and traces.

mod atlas;
mod contents;
mod critical_path;
mod curves;
mod effects;
mod findings;
mod functions;
mod lead;
mod objects;
mod page;
pub mod papers;
mod place;
mod programs;
mod scheduler_path;
mod tables;
mod timeline;
mod trust;

pub use timeline::Window;

use contents::Contents;
use program::{Error, write_whole};
use std::path::{Path, PathBuf};

/// Writes `report.html` into the directory of results `dir`; its timelines are exact in `window`,
/// or around the middle of the run.
///
/// # Errors
/// If the results cannot be used, the window lies outside the run, or the file cannot be written.
pub fn write(dir: &Path, window: Option<Window>) -> Result<PathBuf, Error> {
    let contents = Contents::read(dir)?;
    let timelines = timeline::Timelines::read(&contents.traces, window)?;
    let html = page::render(&contents, &timelines)?;
    let path = dir.join("report.html");
    write_whole(&path, html.as_bytes())?;
    Ok(path)
}
