//! The value of a metric, the direction that is better, and the reason for a missing value.

/// The better of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// The higher one.
    Higher,
    /// The lower one.
    Lower,
    /// Neither: it describes the load, or can be good or bad.
    Neither,
}

/// The value of a metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Value {
    /// The number, or `None` if the trace does not have it.
    pub value: Option<f64>,
    /// The reason for a missing value.
    pub note: Option<&'static str>,
}

impl Value {
    /// A number that every trace has.
    pub(super) fn of(value: f64) -> Value {
        Value { value: Some(value), note: None }
    }

    /// `value`, or `note` if there is none.
    pub(super) fn or(value: Option<f64>, note: &'static str) -> Value {
        Value { value, note: value.is_none().then_some(note) }
    }
}

pub const NO_SWITCHES: &str = "no sched_switch events";
pub const NO_WAKINGS: &str = "no sched_waking events that a dispatch answered";
pub const NO_WAKEUPS: &str = "no sched_waking, sched_wakeup or sched_wakeup_new events";
pub const NO_OVERHEAD: &str =
    "no overhead events: a recording, or a machine on which scheduling is free";
pub const NO_JOBS: &str = "no completed jobs";
pub const NO_BURSTS: &str = "no CPU burst ended";
pub const NO_PAUSES: &str = "no pause ended";
pub const NO_ACTIVATIONS: &str = "no task was seen from becoming runnable to a block or exit";
pub const NO_PARTS: &str = "samples of single tasks were not gathered";
pub const NO_SERVICE: &str = "no task got CPU time";
pub const TOO_FEW: &str = "fewer than 1,000 samples";
pub const NO_TASKS: &str = "no task was seen at work";
pub const UNSEEN: &str = "switches from idle are missing, over 1 % of CPU time";
pub const NO_ORDER: &str = "fewer than two tasks exited that made no others";
pub const NO_SLICES: &str = "no task started to run";
pub const NO_RESERVATIONS: &str = "no task reserves CPU time in periods";
pub const NO_SPINNING: &str = "no task spun for a mutex";
pub const NO_PRIORITIES: &str = "the priorities of the tasks were not given";
