//! What a policy guarantees, for the checks to hold it to and for the documentation to say.

use crate::Nanos;

/// Guarantees. By default none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    /// No CPU idles while a task that may run there waits anywhere.
    pub work_conserving: bool,
    /// No CPU idles while a task waits that was placed on this CPU.
    pub locally_work_conserving: bool,
    /// A task with a kernel priority below this never waits while a less important one runs where it could.
    pub strict_below: u8,
    /// Those tasks, but for `SCHED_FIFO` ones, take turns with equals that wait on their CPU, each after exactly so much CPU time. `None`: only those do that
    /// ask for `SCHED_RR`, after 100 ms.
    pub quantum: Option<Nanos>,
    /// How far from their shares tasks can be.
    pub shares: Option<Shares>,
    /// Nobody who is ready waits for ever, whatever the others do, as long as there are finitely many and none is a real-time task.
    pub starvation_free: bool,
}

/// How far tasks get from their shares by weight on a machine of one CPU, in a time in which no task becomes runnable or ceases to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// In terms of what.
    pub measure: Measure,
    /// Only if no task yields and no real-time task interferes.
    pub undisturbed: bool,
}

/// What is bounded. In such a time a task's distance can change from one end of the bound to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// The difference between what a task was served and what an ideal machine would have served it.
    Lag {
        /// How much CPU time a task requests at a time that does not say.
        request: Nanos,
        /// By how much a request can be overrun.
        tick: Nanos,
    },
    /// The difference between the virtual run times of two tasks, as CPU time of the lightest: `fixed` and so much more for each task.
    Spread {
        /// With however many tasks.
        fixed: Nanos,
        /// For each.
        per_task: Nanos,
    },
}

impl Measure {
    /// How far ahead a task can get of what an ideal machine would have served it, and how far behind, if `least` and `most` are requested at a time.
    ///
    /// With equal weights and requests that is a request and a tick either way. With unequal ones a light task that overruns its request by a tick is in
    /// debt for so long in virtual time that others with later deadlines pass those that are due: the factor is that of the overrun.
    pub fn lag_bounds(tick: Nanos, least: Nanos, most: Nanos, alike: bool) -> (Nanos, Nanos) {
        let ahead = most + tick;
        let overrun = u128::from(ahead.0) * u128::from(ahead.0) / u128::from(least.0.max(1));
        (ahead, if alike { ahead } else { Nanos(u64::try_from(overrun).unwrap_or(u64::MAX)) })
    }
}
