//! The catalogue of metrics of an open system: name, meaning and definition of each.

use super::super::Better::{self, Higher, Lower, Neither};
use super::super::slowdown;
use super::OpenSummary;

/// A number that summarises a run of a stochastic workload.
#[derive(Clone, Copy, Debug)]
pub struct OpenMetric {
    /// Its name, the same as in [`CATALOGUE`](super::super::CATALOGUE) if that has the metric.
    pub id: &'static str,
    /// `1` for ratios, or what is counted.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Whether it requires a steady state, because it grows with the length of the run.
    pub steady: bool,
    /// What it means, in a sentence.
    pub definition: &'static str,
    read: fn(&OpenSummary) -> Option<f64>,
}

impl OpenMetric {
    /// Its value; `None` if the run does not have it.
    pub fn read(&self, summary: &OpenSummary) -> Option<f64> {
        (self.read)(summary)
    }
}

/// All of them, in the order in which they are printed.
pub static OPEN_CATALOGUE: &[OpenMetric] = &[
    OpenMetric {
        id: "grr",
        unit: "1",
        better: Lower,
        steady: true,
        definition: "Global response ratio: time from arrival to end over bursts and pauses, each \
                     summed over the measured tasks.",
        read: |s| s.grr(|_| true),
    },
    OpenMetric {
        id: "apr",
        unit: "1",
        better: Lower,
        steady: true,
        definition: "Average per-task response ratio: the mean over the measured tasks of time \
                     from arrival to end over bursts and pauses.",
        read: |s| s.apr(|_| true),
    },
    OpenMetric {
        id: "response_time_ns_mean",
        unit: "ns",
        better: Lower,
        steady: true,
        definition: "Time from arrival to end, mean over the measured tasks.",
        read: |s| s.mean(|group| group.elapsed.0),
    },
    OpenMetric {
        id: "queueing_ns_mean",
        unit: "ns",
        better: Lower,
        steady: true,
        definition: "Time from arrival to exit, minus bursts, pauses and overhead: the wait for \
                     CPUs, mean over the measured tasks.",
        read: |s| {
            s.mean(|group| group.elapsed.0.saturating_sub(group.task_time.0 + group.overhead.0))
        },
    },
    OpenMetric {
        id: "slowdown_p50",
        unit: "1",
        better: Lower,
        steady: true,
        definition: "Time from arrival to end over bursts and pauses of the measured tasks, \
                     median.",
        read: |s| slowdown(&s.slowdowns.all(), 50.0, "").value,
    },
    OpenMetric {
        id: "slowdown_p95",
        unit: "1",
        better: Lower,
        steady: true,
        definition: "Time from arrival to end over bursts and pauses of the measured tasks, 95th \
                     percentile; none below 1,000 tasks.",
        read: |s| slowdown(&s.slowdowns.all(), 95.0, "").value,
    },
    OpenMetric {
        id: "slowdown_p99",
        unit: "1",
        better: Lower,
        steady: true,
        definition: "Time from arrival to end over bursts and pauses of the measured tasks, 99th \
                     percentile; none below 1,000 tasks.",
        read: |s| slowdown(&s.slowdowns.all(), 99.0, "").value,
    },
    OpenMetric {
        id: "utilisation",
        unit: "1",
        better: Neither,
        steady: false,
        definition: "Share of the CPU time in which a CPU runs a task, overhead included, from \
                     the first measured arrival to the last.",
        read: |s| Some(s.utilisation),
    },
    OpenMetric {
        id: "idle_waste",
        unit: "1",
        better: Lower,
        steady: false,
        definition: "Share of the CPU time in which CPUs idle while any task waits anywhere.",
        read: |s| Some(s.idle_waste),
    },
    OpenMetric {
        id: "idle_waste_min",
        unit: "1",
        better: Lower,
        steady: false,
        definition: "The same, counting no more idle CPUs than there are waiting tasks.",
        read: |s| Some(s.idle_waste_min),
    },
    OpenMetric {
        id: "idle_waste_of_idle",
        unit: "1",
        better: Lower,
        steady: false,
        definition: "Share of the CPUs' idle time in which any task waits anywhere.",
        read: |s| (s.utilisation < 1.0).then(|| s.idle_waste / (1.0 - s.utilisation)),
    },
    OpenMetric {
        id: "migration_rate",
        unit: "1",
        better: Lower,
        steady: false,
        definition: "Migrations per dispatch.",
        read: OpenSummary::migration_rate,
    },
    OpenMetric {
        id: "cpu_inflation",
        unit: "1",
        better: Lower,
        steady: false,
        definition: "Overhead charged to the measured tasks over their bursts and pauses.",
        read: OpenSummary::inflation,
    },
    OpenMetric {
        id: "dispatches",
        unit: "count",
        better: Neither,
        steady: false,
        definition: "Switches to a task.",
        read: |s| Some(s.dispatches as f64),
    },
    OpenMetric {
        id: "population",
        unit: "tasks",
        better: Lower,
        steady: true,
        definition: "Mean number of tasks in the system when a measured task arrives.",
        read: |s| Some(s.population),
    },
    OpenMetric {
        id: "population_growth",
        unit: "tasks",
        better: Neither,
        steady: false,
        definition: "Growth of the number of tasks in the system, along a fitted straight line; \
                     none below 4,000 measured tasks.",
        read: |s| s.growth,
    },
    OpenMetric {
        id: "tasks",
        unit: "tasks",
        better: Higher,
        steady: false,
        definition: "Measured tasks that have exited.",
        read: |s| Some(s.tasks() as f64),
    },
];
