//! A laboratory for CPU schedulers: one policy, three worlds, the same numbers every time.
//!
//! The program around [`schedsim`]: reading recordings, running experiments, statistics, output and the command line.

pub mod agreement;
pub mod atlas;
pub mod cmd;
mod error;
pub mod experiment;
pub mod export;
pub mod gate;
pub mod host;
pub mod huge_pages;
pub mod import;
pub mod laboratory;
pub mod machine_file;
pub mod output;
pub mod paper;
pub mod program;
pub mod progress;
pub mod report;
pub mod results_directory;
pub mod setting;
pub mod statistics;
pub mod sweep;
mod toml_file;
pub mod trace_file;
pub mod trace_source;
pub mod vm;
pub mod workload;
pub mod world;

pub use error::{Error, no_such};
pub use program::main;

#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;
