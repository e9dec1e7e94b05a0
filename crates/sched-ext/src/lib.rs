//! Compiled schedulers of sched_ext in the simulator: the core of the kernel's
//! `kernel/sched/ext.c` (Linux 6.18) over a BPF machine, behind the seam of policies.
//!
//! [`Loaded`] is an object that needs nothing that is not here. [`Compiled`] is a policy of it, one
//! for each run. Tasks, CPUs and masks are structures in the machine's memory,
//! laid out by the object's own types.
//!
//! What differs from a kernel:
//!
//! - A program takes no time, unless the machine charges for its instructions (`Machine::queue_cost`).
//!   Then the CPU on which callbacks ran pays for them at its next dispatch.
//! - Wakeups by pipes and sockets are synchronous ones (`SCX_WAKE_SYNC`), those of a recording
//!   without causes never are.
//! - A kick never waits (`SCX_KICK_WAIT`).
//! - Ticks are 4 ms apart, as with `CONFIG_HZ=250`.
//! - There is one cgroup, the root.

#![forbid(unsafe_code)]

mod callbacks;
mod constants;
mod core;
mod cost;
mod functions;
mod helpers;
mod idle;
mod kernel;
mod layout;
mod loaded;
mod masks;
mod memory;
mod policy;
mod queues;
pub mod trace;

pub use callbacks::{Callback, Op};
pub use functions::names as function_names;
pub use loaded::{Limits, Loaded, Unfit};
pub use policy::Compiled;
