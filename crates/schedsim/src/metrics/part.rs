//! Metrics of a subset of tasks: a program, or one task. The definitions are those of the complete
//! trace.

use super::reading::{nanos, percentile, ratio, tail};
use super::slowdown::slowdown;
use super::value::Better::{self, Higher, Lower, Neither};
use super::value::{NO_ACTIVATIONS, NO_PARTS, NO_TASKS, NO_WAKINGS, Value};
use super::{Histogram, Samples, Summary, TaskSummary};
use crate::{Nanos, TaskId};

/// A subset of the tasks.
#[derive(Clone, Debug)]
pub struct Part {
    /// The tasks, in order of id.
    pub tasks: Vec<TaskSummary>,
    /// Their samples, if these were gathered.
    pub samples: Option<Samples>,
    /// The CPU time of all tasks of the run.
    pub cpu_time_of_all: Nanos,
}

/// A metric of a [`Part`]. Its name is that of the same metric of the complete trace.
#[derive(Clone, Copy, Debug)]
pub struct PartMetric {
    /// Its name.
    pub id: &'static str,
    /// Which direction is better.
    pub better: Better,
    read: fn(&Part) -> Value,
}

impl PartMetric {
    /// Its value.
    pub fn read(&self, part: &Part) -> Value {
        if part.tasks.is_empty() { Value::or(None, NO_TASKS) } else { (self.read)(part) }
    }
}

/// All metrics of a part, in the order in which they are printed.
pub static PART_CATALOGUE: &[PartMetric] = &[
    PartMetric {
        id: "cpu_time_ns",
        better: Neither,
        read: |part| Value::of(nanos(part.sum(|task| task.cpu_time))),
    },
    PartMetric {
        id: "cpu_share",
        better: Neither,
        read: |part| {
            Value::or(
                ratio(nanos(part.sum(|task| task.cpu_time)), part.cpu_time_of_all.0),
                NO_TASKS,
            )
        },
    },
    PartMetric {
        id: "run_delay_ns",
        better: Lower,
        read: |part| Value::of(nanos(part.sum(|task| task.run_delay))),
    },
    PartMetric {
        id: "run_delay_ns_max",
        better: Lower,
        read: |part| Value::of(nanos(part.wait_max())),
    },
    PartMetric {
        id: "run_delay_per_cpu_time",
        better: Lower,
        read: |part| {
            Value::or(
                ratio(nanos(part.sum(|task| task.run_delay)), part.sum(|task| task.cpu_time).0),
                NO_TASKS,
            )
        },
    },
    PartMetric {
        id: "wakeup_latency_ns_p50",
        better: Lower,
        read: |part| part.latency(|samples| Value::or(percentile(samples, 50.0), NO_WAKINGS)),
    },
    PartMetric {
        id: "wakeup_latency_ns_p99",
        better: Lower,
        read: |part| part.latency(|samples| tail(samples, NO_WAKINGS)),
    },
    PartMetric {
        id: "wakeup_latency_ns_max",
        better: Lower,
        read: |part| part.latency(|samples| Value::or(samples.max().map(nanos), NO_WAKINGS)),
    },
    PartMetric {
        id: "activation_ns_mean",
        better: Lower,
        read: |part| part.activation(|samples| Value::or(samples.mean(), NO_ACTIVATIONS)),
    },
    PartMetric {
        id: "activation_ns_p99",
        better: Lower,
        read: |part| part.activation(|samples| tail(samples, NO_ACTIVATIONS)),
    },
    PartMetric { id: "slowdown_p50", better: Lower, read: |part| part.slowdown(50.0) },
    PartMetric { id: "slowdown_p99", better: Lower, read: |part| part.slowdown(99.0) },
    PartMetric {
        id: "service_rate",
        better: Higher,
        read: |part| {
            Value::or(ratio(nanos(part.sum(|task| task.cpu_time)), part.elapsed().0), NO_TASKS)
        },
    },
    PartMetric {
        id: "wakeups",
        better: Neither,
        read: |part| Value::of(part.count(|task| task.wakeups)),
    },
    PartMetric {
        id: "dispatches",
        better: Neither,
        read: |part| Value::of(part.count(|task| task.dispatches)),
    },
    PartMetric {
        id: "migrations",
        better: Lower,
        read: |part| Value::of(part.count(|task| task.migrations)),
    },
    PartMetric {
        id: "unfinished_tasks",
        better: Lower,
        read: |part| Value::of(part.count(|task| u32::from(task.is_unfinished))),
    },
];

impl Part {
    /// From the first start of its tasks to the last end, or to the last time that one was running
    /// or runnable.
    pub fn elapsed(&self) -> Nanos {
        let first = self.tasks.iter().map(|task| task.first).min();
        let last = self.tasks.iter().map(|task| task.last).max();
        first.zip(last).map_or(Nanos::ZERO, |(first, last)| last.since(first))
    }

    /// The longest uninterrupted wait of one of its tasks.
    pub fn wait_max(&self) -> Nanos {
        self.tasks.iter().map(|task| task.wait_max).max().unwrap_or(Nanos::ZERO)
    }

    /// The sum of a duration over its tasks.
    pub fn sum(&self, of: impl Fn(&TaskSummary) -> Nanos) -> Nanos {
        self.tasks.iter().map(of).sum()
    }

    fn count(&self, of: impl Fn(&TaskSummary) -> u32) -> f64 {
        self.tasks.iter().map(|task| u64::from(of(task))).sum::<u64>() as f64
    }

    fn latency(&self, read: impl Fn(&Histogram) -> Value) -> Value {
        self.samples
            .as_ref()
            .map_or(Value::or(None, NO_PARTS), |samples| read(&samples.wakeup_latency))
    }

    fn activation(&self, read: impl Fn(&Histogram) -> Value) -> Value {
        self.samples.as_ref().map_or(Value::or(None, NO_PARTS), |samples| read(&samples.activation))
    }

    fn slowdown(&self, percent: f64) -> Value {
        self.samples.as_ref().map_or(Value::or(None, NO_PARTS), |samples| {
            slowdown(&samples.slowdown, percent, NO_ACTIVATIONS)
        })
    }
}

impl Summary {
    /// The subset of these tasks; tasks that were not seen are ignored.
    pub fn part(&self, tasks: impl IntoIterator<Item = TaskId>) -> Part {
        let seen = |task: TaskId| self.tasks.binary_search_by_key(&task, |known| known.task).ok();
        let tasks: Vec<TaskSummary> =
            tasks.into_iter().filter_map(seen).map(|at| self.tasks[at]).collect();
        let samples =
            self.parts.as_ref().map(|parts| parts.together(tasks.iter().map(|task| task.task)));
        Part { tasks, samples, cpu_time_of_all: self.sum(|task| task.cpu_time) }
    }
}
