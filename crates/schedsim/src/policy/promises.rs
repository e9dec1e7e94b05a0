//! The guarantees of a policy, for the checks and the documentation.

use crate::Nanos;

/// Guarantees. By default none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    /// No CPU idles while a task that may run there waits anywhere.
    pub work_conserving: bool,
    /// No CPU idles while a task waits that was placed on this CPU.
    pub locally_work_conserving: bool,
    /// A task with a kernel priority below this never waits while a less important one runs on a
    /// CPU that it may use.
    pub strict_below: u8,
    /// Tasks of these priorities, except `SCHED_FIFO` ones, alternate with equals that wait on
    /// their CPU, each after exactly this much CPU time. `None`: only `SCHED_RR` tasks do, after
    /// 100 ms.
    pub quantum: Option<Nanos>,
    /// The maximum distance of tasks from their shares.
    pub shares: Option<Shares>,
    /// Which tasks meet their deadlines, on one CPU and if reservations fit.
    pub deadlines: Option<Deadlines>,
    /// The policy supports priority changes of a task, as by priority inheritance, and uses the
    /// new one at once.
    pub inherits: bool,
    /// No task is left behind in the queue of a CPU that goes offline.
    pub hotplug: bool,
    /// No ready task waits for ever, whatever the others do, if their number is finite and none is
    /// a real-time task.
    pub starvation_free: bool,
}

/// Which tasks meet their deadlines on one CPU with free scheduling, if
/// [`Schedulability`](crate::workload::Schedulability) says that they can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadlines {
    /// Tasks that keep to their reservation, whatever the others do. No task gets more than it
    /// reserved.
    Served,
    /// All tasks, if all keep to their reservations and EDF can meet their deadlines.
    Edf,
    /// All tasks, if all keep to their reservations and rate monotonic can meet their deadlines.
    RateMonotonic,
}

/// The maximum distance of tasks from their shares by weight on one CPU. It holds in an interval in
/// which no task becomes runnable or stops being so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares {
    /// The bounded quantity.
    pub measure: Measure,
    /// Only if no task yields and no real-time task interferes.
    pub undisturbed: bool,
}

/// The bounded quantity. In such an interval a task's distance can change from one end of the bound
/// to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// The difference between a task's service and its service on an ideal machine.
    Lag {
        /// The request of a task that does not set one.
        request: Nanos,
        /// The maximum overrun of a request.
        tick: Nanos,
    },
    /// The difference between the virtual run times of two tasks, as CPU time of the lightest:
    /// `fixed`, plus `per_task` for each task.
    Spread {
        /// For any number of tasks.
        fixed: Nanos,
        /// For each.
        per_task: Nanos,
    },
}

/// The attributes of a task on which its lag depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its weight.
    pub weight: u32,
    /// The CPU time that it requests.
    pub length: Nanos,
}

impl Measure {
    /// How far a task can be ahead of its ideal service. It starts only if it is not ahead, and
    /// ends its request at a tick.
    pub fn most_ahead(tick: Nanos, own: Request) -> Nanos {
        own.length + tick
    }

    /// How far behind a task can fall beside `others`, if all had their ideal service when they
    /// joined.
    ///
    /// Let `r`, `w`, `d`, `v` be requests, weights, virtual deadlines and virtual run times, `T`
    /// the tick, `W` the sum of weights. Consider task `k` from the time when it last was not
    /// behind. Since then it was eligible. So any task that started in its place had no later
    /// deadline, and ended at most `T` after that. The `v` of such a task is at most `d(k) + T/w`,
    /// where `d(k) = v(k) + r(k)/w(k)`. A task that has not started since is ahead by at most
    /// `r + T`. So the others were served at most the sum of `T + max(r, r(k) w/w(k))`, beside what
    /// `k` itself was served by its weight. And `k` is behind by `w(k)/W` of that. With equal
    /// weights and requests that is less than a request and a tick.
    pub fn most_behind(tick: Nanos, own: Request, others: impl Iterator<Item = Request>) -> Nanos {
        let (mut sum, mut weights) = (0u128, u128::from(own.weight));
        for Request { weight, length } in others {
            let held = (u128::from(own.length.0) * u128::from(weight))
                .div_ceil(u128::from(own.weight.max(1)));
            sum += u128::from(tick.0) + u128::from(length.0).max(held);
            weights += u128::from(weight);
        }
        let behind = (sum * u128::from(own.weight)).div_ceil(weights.max(1));
        Nanos(u64::try_from(behind).unwrap_or(u64::MAX))
    }
}
