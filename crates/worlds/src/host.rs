//! Everything that uses the Linux on which this program runs.
//!
//! - [`runner`]: workloads as real tasks, each run in a session of its own; [`guard`]: restores the
//!   machine after a run, whatever happens.
//! - [`measured`]: the result of a run; [`cpus`]: the CPUs that it ran on; [`limits`]: how many
//!   tasks there may be.
//! - [`run`]: one run under a scheduling class of the kernel.
//! - [`mod@record`]: recordings, with perf; [`traced`]: a run, recorded.
//! - [`topology`]: the topology of its CPUs.
//! - [`doctor`]: what can be measured on this machine, and the commands that change that.

pub mod cpus;
pub mod doctor;
pub mod guard;
pub mod limits;
pub mod measured;
pub mod record;
pub mod recorder;
pub mod run;
pub mod runner;
pub mod topology;
pub mod traced;
mod tracefs;
