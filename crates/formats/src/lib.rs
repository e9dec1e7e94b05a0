//! Reads and writes files: recordings, traces, machines and workloads.
//!
//! Values from files are checked by [`schedsim::admission`]. A bad file gives an error with file,
//! line and next step.

pub mod columns;
pub mod export;
pub mod import;
pub mod machine_file;
pub mod selection;
mod system_calls;
pub mod toml_file;
pub mod trace_file;
pub mod trace_source;
pub mod workload;
