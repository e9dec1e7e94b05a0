//! What touches this very Linux.
//!
//! - [`runner`]: workloads as real tasks, each run in a session of its own; [`guard`]: what puts the machine back as it was, whatever happens.
//! - [`measured`]: what a run came to; [`cpus`]: the CPUs that it ran on; [`limits`]: how many tasks there may be.
//! - [`run`]: one run under one of the kernel's classes.
//! - [`mod@record`]: recordings, with perf; [`traced`]: a run, recorded.
//! - [`topology`]: how its CPUs lie to one another.
//! - [`doctor`]: what this machine lets be measured, and what it takes to change that.

pub mod cpus;
pub mod doctor;
pub mod guard;
pub mod limits;
pub mod measured;
pub mod record;
pub mod run;
pub mod runner;
pub mod topology;
pub mod traced;
mod tracefs;
