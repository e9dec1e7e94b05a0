//! Samples per task, from which those of a program are combined.

use super::{Histogram, slowdown};
use crate::{Nanos, TaskId};

/// Samples per task, gathered if requested.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    tasks: Vec<Gathered>,
}

/// The samples of a task. The last ones are a plain list, because most tasks have few and a
/// histogram takes kilobytes; earlier ones are in a histogram.
#[derive(Clone, Debug, Default)]
struct Gathered {
    latencies: Vec<Nanos>,
    /// Response and demand of activations.
    activations: Vec<(Nanos, Nanos)>,
    before: Samples,
}

/// The maximum length of the plain list.
const KEPT: usize = 1024;

/// The samples of one task, or of several.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// From `sched_waking` to the switch that runs the task.
    pub wakeup_latency: Histogram,
    /// From when the task becomes runnable to when it blocks or exits.
    pub activation: Histogram,
    /// The same over the CPU time used in it, in thousandths.
    pub slowdown: Histogram,
}

impl Parts {
    /// The combined samples of these tasks.
    pub(super) fn together(&self, tasks: impl Iterator<Item = TaskId>) -> Samples {
        let mut together = Samples::default();
        tasks
            .filter_map(|task| self.tasks.get(task.index()))
            .for_each(|samples| together.merge(samples));
        together
    }

    #[inline]
    pub(super) fn wakeup(&mut self, task: TaskId, latency: Nanos) {
        let own = self.of(task);
        own.latencies.push(latency);
        if own.latencies.len() == KEPT {
            own.settle();
        }
    }

    #[inline]
    pub(super) fn activation(&mut self, task: TaskId, response: Nanos, demand: Nanos) {
        let own = self.of(task);
        own.activations.push((response, demand));
        if own.activations.len() == KEPT {
            own.settle();
        }
    }

    #[inline]
    fn of(&mut self, task: TaskId) -> &mut Gathered {
        if task.index() >= self.tasks.len() {
            self.grow(task);
        }
        &mut self.tasks[task.index()]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, task: TaskId) {
        self.tasks.resize_with(task.index() + 1, Gathered::default);
    }
}

impl Gathered {
    /// Moves the plain list into the histogram.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) {
        let Gathered { latencies, activations, before } = self;
        before.add(latencies, activations);
        latencies.clear();
        activations.clear();
    }
}

impl Samples {
    fn add(&mut self, latencies: &[Nanos], activations: &[(Nanos, Nanos)]) {
        latencies.iter().for_each(|latency| self.wakeup_latency.record(*latency));
        for &(response, demand) in activations {
            self.activation.record(response);
            if demand > Nanos::ZERO {
                self.slowdown.record(Nanos(slowdown::ratio(response, demand)));
            }
        }
    }

    fn merge(&mut self, other: &Gathered) {
        self.wakeup_latency.merge(&other.before.wakeup_latency);
        self.activation.merge(&other.before.activation);
        self.slowdown.merge(&other.before.slowdown);
        self.add(&other.latencies, &other.activations);
    }
}
