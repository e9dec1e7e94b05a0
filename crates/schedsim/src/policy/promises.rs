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
    /// Those tasks, but for `SCHED_FIFO` ones, take turns with equals that wait on their CPU, each after exactly so much CPU time. `None`: only those
    /// do that ask for `SCHED_RR`, after 100 ms.
    pub quantum: Option<Nanos>,
    /// How far from their shares tasks can be.
    pub shares: Option<Shares>,
    /// Whose deadlines are kept, on one CPU and if reservations fit.
    pub deadlines: Option<Deadlines>,
    /// The priority of a task may change in its life, as that of a holder of a mutex does with priority inheritance, and counts from then on.
    pub inherits: bool,
    /// Nobody who is ready waits for ever, whatever the others do, as long as there are finitely many and none is a real-time task.
    pub starvation_free: bool,
}

/// Whose deadlines are kept on a machine of one CPU on which scheduling costs nothing, if [`Schedulability`](crate::workload::Schedulability) says
/// that they can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadlines {
    /// Those of tasks that keep to their reservation, whatever the others do; and nobody gets more than it reserved.
    Served,
    /// All, as long as all keep to their reservations and EDF can keep them.
    Edf,
    /// The same where rate monotonic can.
    RateMonotonic,
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

/// A task, as far as its lag depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its weight.
    pub weight: u32,
    /// How much CPU time it requests at a time.
    pub length: Nanos,
}

impl Measure {
    /// How far ahead a task can get of what an ideal machine would have served it: it starts only if it is not ahead, and ends its request at a tick.
    pub fn most_ahead(tick: Nanos, own: Request) -> Nanos {
        own.length + tick
    }

    /// How far behind a task can fall beside `others`, if all were as far as they should be when they came.
    ///
    /// Let `r`, `w`, `d`, `v` be requests, weights, virtual deadlines and virtual run times, `T` the tick, `W` the sum of weights, and look at task
    /// `k` from the time when it last was not behind. Since then it was eligible, so that whoever started in its place had no later a deadline, and
    /// ended at most `T` after that: its `v` is at most `d(k) + T/w`, where `d(k) = v(k) + r(k)/w(k)`. Whoever has not started since is ahead by at
    /// most `r + T`. So the others were served no more than the sum of `T + max(r, r(k) w/w(k))`, beside what `k` itself was served by its weight;
    /// and `w(k)/W` of that is what `k` is behind. With equal weights and requests that is less than a request and a tick.
    pub fn most_behind(tick: Nanos, own: Request, others: impl Iterator<Item = Request>) -> Nanos {
        let (mut sum, mut weights) = (0u128, u128::from(own.weight));
        for Request { weight, length } in others {
            let held = (u128::from(own.length.0) * u128::from(weight)).div_ceil(u128::from(own.weight.max(1)));
            sum += u128::from(tick.0) + u128::from(length.0).max(held);
            weights += u128::from(weight);
        }
        let behind = (sum * u128::from(own.weight)).div_ceil(weights.max(1));
        Nanos(u64::try_from(behind).unwrap_or(u64::MAX))
    }
}
