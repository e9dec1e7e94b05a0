//! A closed workload as it is written: tasks that go through phases, the ranges of its numbers, and what may be wrong with it.
//!
//! Real threads and simulated tasks do what the same description says. The runner of a guest is made of this crate and its own code, so its bytes do not move with the
//! simulator.
#![forbid(unsafe_code)]

pub mod admission;
mod closed;
mod invalid;
mod time;

pub use closed::{
    BarrierOptions, CgroupOptions, Closed, DeviceOptions, IoOperation, IoPhase, LoopPhase, MutexOptions, Phase, PipeOptions, Place,
    ReservationOptions, SchedulingPolicy, Tasks, TimerMode, TimerPhase,
};
pub use invalid::Invalid;
pub use time::{DurationError, Nanos, Time};
