//! Round robin, by priority: `SCHED_RR` for every task.
//!
//! As [`fifo`](super::fifo), but a task that has used its quantum goes behind its equals. Right
//! where several real-time tasks of one priority do not sleep. Bad as a fair scheduler, for which
//! it is often taken: between priorities there is no fairness. A quantum of 100 ms is longer than
//! most tasks ever run, so among short tasks it has no effect.
//!
//! A preempted, sleeping or yielding task keeps the rest of its quantum, as in Linux (POSIX leaves
//! it open for the latter two). Source and deviations: [`realtime`](super::realtime).

use super::descriptor::{Descriptor, Given, Make};
use super::options::OptionSpec;
use super::{Fifo, realtime};
use crate::Nanos;

/// Builds real-time schedulers with quanta.
#[derive(Clone, Copy, Debug)]
pub struct Rr;

/// Parameters of [`Rr`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How long a task runs before its equals (`sched_rr_timeslice_ms`).
    pub quantum: Nanos,
    /// The time per second that tasks may run on each CPU.
    pub throttle: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options { quantum: realtime::QUANTUM, throttle: None }
    }
}

impl Rr {
    /// The scheduler for `cpus` CPUs.
    #[allow(clippy::new_ret_no_self, reason = "the class is the same, with quanta")]
    pub fn new(cpus: u16, options: Options) -> Fifo {
        Fifo::with(
            cpus,
            realtime::Options {
                below: u8::MAX,
                quantum: Some(options.quantum),
                throttle: options.throttle,
            },
        )
    }
}

/// `SCHED_RR` for every task.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "rr",
    summary: "SCHED_RR for every task: strict priorities, equals alternate every 100 ms",
    source: "POSIX.1-2024, 2.8.4; Linux 6.18, kernel/sched/rt.c",
    options: &[
        OptionSpec::duration("quantum", "how long a task runs before its equals")
            .by_default("100ms"),
        realtime::THROTTLE,
    ],
    structure: Some("priority"),
    scheduler: &Make(|given| Rr::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options {
            quantum: given.duration("quantum"),
            throttle: given.duration_if_set(realtime::THROTTLE.name),
        }
    }
}
