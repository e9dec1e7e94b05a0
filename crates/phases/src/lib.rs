//! The format of closed workloads: tasks and phases, the ranges of their numbers, and their checks.
//!
//! Real threads and simulated tasks follow the same description. The guest's runner depends on this
//! crate only, so its bytes do not change with the simulator.
#![forbid(unsafe_code)]

pub mod admission;
mod closed;
mod invalid;
mod time;

pub use closed::{
    BarrierOptions, CgroupOptions, Closed, DeviceOptions, EpollObject, EpollOptions, EpollSource,
    EventLoopPhase, EventfdOptions, IoOperation, IoPhase, LoopPhase, MutexOptions, Phase,
    PipeOptions, Place, ReservationOptions, SchedulingPolicy, ServePhase, SocketKind,
    SocketOptions, Spin, Tasks, TimerMode, TimerPhase, Trigger, WatchPhase,
};
pub use invalid::Invalid;
pub use time::{DurationError, Nanos, Time};
