//! The simulator: tasks and workloads, machine, scheduling policies, engine, trace, metrics and
//! checks.
//!
//! Pure: no clock, no thread, no file, no environment, no unordered map. The same seed gives the
//! same trace on every machine.
#![forbid(unsafe_code)]

pub mod checks;
mod counted;
pub mod engine;
pub mod live;
mod machine;
pub mod metrics;
pub mod policy;
mod random;
pub mod seat;
pub mod swarm;
pub mod trace;
pub mod workload;

pub use counted::counted;
pub use machine::{
    ByIdleTime, CallCosts, CpuSet, Distance, IdleTime, Machine, MigrationCosts, Place, QueueCost,
    Sharing, Slows, Spread, Ticks, Topology, WakeLatency,
};
pub use phases::{Nanos, Time, admission};
pub use random::Random;
pub use readyq::{Level, TaskId};

/// A CPU, as an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct CpuId(pub u16);

impl CpuId {
    /// This id as an index into per-CPU tables.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
