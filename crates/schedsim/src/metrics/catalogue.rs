//! The catalogue of metrics: name, meaning, source and definition of each.

use super::Summary;
use super::reading::*;
use crate::trace::OverheadKind;

/// A number that summarises a trace.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name: `snake_case`, the unit last, then the statistic.
    pub id: &'static str,
    /// `ns`, `1` for ratios, or what is counted.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// What it means, in a sentence.
    pub definition: &'static str,
    /// The source of the definition.
    pub source: &'static str,
    read: fn(&Summary) -> Value,
}

impl Metric {
    /// Its value for a trace.
    pub fn read(&self, summary: &Summary) -> Value {
        (self.read)(summary)
    }
}

impl Summary {
    /// All metrics with their values, in the order of the catalogue.
    pub fn values(&self) -> impl Iterator<Item = (&'static Metric, Value)> + '_ {
        CATALOGUE.iter().map(|metric| (metric, metric.read(self)))
    }

    /// The value of the metric `id`; `None` if the trace does not have it.
    ///
    /// # Panics
    /// If there is no metric of that name.
    pub fn get(&self, id: &str) -> Option<f64> {
        let metric = CATALOGUE.iter().find(|metric| metric.id == id);
        assert!(metric.is_some(), "there is no metric named {id:?}");
        metric.and_then(|metric| metric.read(self).value)
    }
}

const CURRAN_STUMM: &str = "Curran & Stumm 1990";
const LINUX: &str = "Linux";
const OURS: &str = "schedlab";

use Better::{Higher, Lower, Neither};

/// All metrics, in the order in which they are printed.
///
/// GRR and APR use two times of Curran & Stumm. Task time: "the sum of the length of all I/O pauses
/// and CPU bursts of a task (before migration costs and queueing time are added)". Elapsed time is
/// that plus migration costs and queueing. At any time a task runs, waits or pauses, and overhead
/// is charged while it runs. So elapsed − run delay − overhead is exactly that sum, without a list
/// of bursts. Where tasks wait for one another, a pause also contains the delay of the other tasks,
/// which a better policy shortens without a better ratio. Compare makespans then.
pub static CATALOGUE: &[Metric] = &[
    Metric {
        id: "makespan_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "From the first event to the last time that a task leaves a CPU, or to the \
                     end of the trace if a task still runs.",
        read: |s| {
            let ran = s.cpus.iter().any(|cpu| cpu.switches > 0);
            let first = s.totals.first_event.filter(|_| ran);
            Value::or(first.map(|first| nanos(s.totals.last_stop.since(first))), NO_SWITCHES)
        },
    },
    Metric {
        id: "cpu_time_ns",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "Time that tasks spend on a CPU, with the kernel's work in their calls, and without other \
                     overhead charged to them.",
        read: |s| switches(s, nanos(s.sum(|task| task.cpu_time))),
    },
    Metric {
        id: "utilisation",
        unit: "1",
        better: Neither,
        source: CURRAN_STUMM,
        definition: "Share of all CPU time, from zero to the end of the trace, that CPUs run \
                     tasks, with overhead.",
        read: |s| {
            switches(s, s.cpus.iter().map(|cpu| nanos(cpu.busy)).sum::<f64>() / s.machine_time())
        },
    },
    Metric {
        id: "grr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Global response ratio: elapsed time over task time (CPU bursts and pauses \
                     without queueing and overhead), each summed over all tasks.",
        read: |s| wakeups(s, s.response_ratios(|_| true).map(|ratios| ratios.grr)),
    },
    Metric {
        id: "apr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Average per-task response ratio: the mean over tasks of elapsed time over \
                     task time.",
        read: |s| wakeups(s, s.response_ratios(|_| true).map(|ratios| ratios.apr)),
    },
    Metric {
        id: "wakeup_latency_ns_mean",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "From sched_waking to the switch that runs the task, mean.",
        read: |s| Value::or(s.distributions.wakeup_latency.mean(), NO_WAKINGS),
    },
    Metric {
        id: "wakeup_latency_ns_p50",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "From sched_waking to the switch that runs the task, median.",
        read: |s| Value::or(percentile(&s.distributions.wakeup_latency, 50.0), NO_WAKINGS),
    },
    Metric {
        id: "wakeup_latency_ns_p99",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "From sched_waking to the switch that runs the task, 99th percentile; none \
                     below 1,000 samples.",
        read: |s| tail(&s.distributions.wakeup_latency, NO_WAKINGS),
    },
    Metric {
        id: "wakeup_latency_ns_max",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "From sched_waking to the switch that runs the task, longest.",
        read: |s| Value::or(s.distributions.wakeup_latency.max().map(nanos), NO_WAKINGS),
    },
    Metric {
        id: "run_delay_ns",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "Time that tasks are runnable and wait, after a wakeup, a wakeup_new or a \
                     preemption, summed over all tasks.",
        read: |s| wakeups(s, Some(nanos(s.sum(|task| task.run_delay)))),
    },
    Metric {
        id: "run_delay_ns_mean",
        unit: "ns",
        better: Lower,
        source: LINUX,
        definition: "run_delay_ns per dispatch.",
        read: |s| {
            let dispatches = s.count(|task| task.dispatches);
            wakeups(s, ratio(nanos(s.sum(|task| task.run_delay)), dispatches))
        },
    },
    Metric {
        id: "run_delay_ns_max",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "The longest single wait of a runnable task.",
        read: |s| wakeups(s, Some(nanos(s.totals.run_delay_max))),
    },
    Metric {
        id: "switches",
        unit: "count",
        better: Lower,
        source: LINUX,
        definition: "sched_switch events on all CPUs, including those to and from idle, as \
                     Linux's nr_switches.",
        read: |s| switches(s, s.cpus.iter().map(|cpu| cpu.switches).sum::<u64>() as f64),
    },
    Metric {
        id: "dispatches",
        unit: "count",
        better: Neither,
        source: CURRAN_STUMM,
        definition: "Switches to a task. A task that keeps the CPU after its slice ends is not \
                     counted.",
        read: |s| switches(s, s.count(|task| task.dispatches) as f64),
    },
    Metric {
        id: "migrations",
        unit: "count",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Dispatches on a CPU other than the one on which the task last ran.",
        read: |s| switches(s, s.count(|task| task.migrations) as f64),
    },
    Metric {
        id: "migration_rate",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Migrations per dispatch.",
        read: |s| {
            let migrations = s.count(|task| task.migrations) as f64;
            Value::or(ratio(migrations, s.count(|task| task.dispatches)), NO_SWITCHES)
        },
    },
    Metric {
        id: "slice_ns_mean",
        unit: "ns",
        better: Neither,
        source: "TD-TP",
        definition: "How finely tasks interleave: mean CPU time that a CPU gives to one task \
                     before it runs another. Idle time between does not count as another task.",
        read: |s| {
            let slices = s.count(|task| task.slices);
            Value::or(ratio(nanos(s.sum(|task| task.cpu_time)), slices), NO_SLICES)
        },
    },
    Metric {
        id: "completion_inversions",
        unit: "1",
        better: Neither,
        source: "Kendall 1938",
        definition: "Share of pairs of tasks that exit in the opposite order to their start: 0 if \
                     in order, 1 if reversed. Tasks that create others are left out.",
        read: order,
    },
    Metric {
        id: "idle_waste",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Share of all CPU time that CPUs are idle, with idle exits, while any task \
                     waits anywhere, even if it cannot run there.",
        read: |s| idle_waste(s, s.totals.idle_waste),
    },
    Metric {
        id: "idle_waste_min",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "The same, but never with more idle CPUs than waiting tasks.",
        read: |s| idle_waste(s, s.totals.idle_waste_min),
    },
    Metric {
        id: "jain_fairness",
        unit: "1",
        better: Higher,
        source: "Jain, Chiu & Hawe 1984",
        definition: "(Σx)²/(nΣx²) over tasks, x = CPU time over time running or waiting: 1 if all \
                     tasks get the same share of what they want, 1/n if one task gets everything.",
        read: |s| wakeups(s, jain(s)),
    },
    Metric {
        id: "lag_ns_max",
        unit: "ns",
        better: Lower,
        source: "Stoica & Abdel-Wahab 1995",
        definition: "The largest amount by which a fair task is behind the service that an ideal \
                     machine, which serves all tasks at once by weight, gives it since it became \
                     runnable.",
        read: |s| fairness(s, |fairness| fairness.behind_max),
    },
    Metric {
        id: "lead_ns_max",
        unit: "ns",
        better: Lower,
        source: "Stoica & Abdel-Wahab 1995",
        definition: "The largest amount by which a fair task is ahead of that ideal service.",
        read: |s| fairness(s, |fairness| fairness.ahead_max),
    },
    Metric {
        id: "vruntime_spread_ns_max",
        unit: "ns",
        better: Lower,
        source: "pslist",
        definition: "The largest difference between two runnable fair tasks in weighted CPU time \
                     (ns of nice 0) since the set of runnable tasks last changed.",
        read: |s| fairness(s, |fairness| fairness.spread_max),
    },
    Metric {
        id: "priority_inversion_ns",
        unit: "ns",
        better: Lower,
        source: "Lampson & Redell 1980",
        definition: "Time in which a task runs while a task with a better kernel priority of its \
                     own (nice values count) waits anywhere, for a CPU or a mutex.",
        read: |s| fairness(s, |fairness| fairness.inversion),
    },
    Metric {
        id: "starvation_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "Time that tasks wait beyond the first 100 ms of each wait, summed over all \
                     tasks.",
        read: |s| wakeups(s, Some(nanos(s.totals.starved))),
    },
    Metric {
        id: "slowdown_p50",
        unit: "1",
        better: Lower,
        source: OURS,
        definition: "Time from when a task becomes runnable until it blocks or exits, over the \
                     CPU time that it uses in between, median.",
        read: |s| slowdowns(s, 50.0),
    },
    Metric {
        id: "slowdown_p95",
        unit: "1",
        better: Lower,
        source: OURS,
        definition: "The same, 95th percentile; none below 1,000 samples.",
        read: |s| slowdowns(s, 95.0),
    },
    Metric {
        id: "slowdown_p99",
        unit: "1",
        better: Lower,
        source: OURS,
        definition: "The same, 99th percentile; none below 1,000 samples.",
        read: |s| slowdowns(s, 99.0),
    },
    Metric {
        id: "activation_ns_mean",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "Time from when a task becomes runnable until it blocks or exits, mean.",
        read: |s| Value::or(s.distributions.activation.mean(), NO_ACTIVATIONS),
    },
    Metric {
        id: "activation_ns_p99",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "Time from when a task becomes runnable until it blocks or exits, 99th \
                     percentile; none below 1,000 samples.",
        read: |s| tail(&s.distributions.activation, NO_ACTIVATIONS),
    },
    Metric {
        id: "service_rate",
        unit: "1",
        better: Higher,
        source: OURS,
        definition: "CPU time of tasks, without overhead, over the time from the first event to \
                     the last: the number of CPUs that do useful work.",
        read: |s| {
            let length = s.totals.first_event.map_or(0, |first| s.totals.last_stop.since(first).0);
            Value::or(ratio(nanos(s.sum(|task| task.cpu_time)), length), NO_SWITCHES)
        },
    },
    Metric {
        id: "run_delay_per_cpu_time",
        unit: "1",
        better: Lower,
        source: OURS,
        definition: "run_delay_ns over the CPU time of tasks.",
        read: |s| per_cpu_time(s, wakeups(s, Some(nanos(s.sum(|task| task.run_delay)))).value, 1.0),
    },
    Metric {
        id: "switches_per_cpu_second",
        unit: "1/s",
        better: Lower,
        source: OURS,
        definition: "Context switches per second of CPU time of tasks.",
        read: |s| {
            per_cpu_time(s, Some(s.cpus.iter().map(|cpu| cpu.switches).sum::<u64>() as f64), 1e9)
        },
    },
    Metric {
        id: "migrations_per_cpu_second",
        unit: "1/s",
        better: Lower,
        source: OURS,
        definition: "Migrations per second of CPU time of tasks. A policy that never moves a task \
                     has none by construction.",
        read: |s| per_cpu_time(s, Some(s.count(|task| task.migrations) as f64), 1e9),
    },
    Metric {
        id: "unfinished_tasks",
        unit: "tasks",
        better: Lower,
        source: OURS,
        definition: "Tasks that run or are runnable when the trace ends.",
        read: |s| switches(s, s.tasks.iter().filter(|task| task.is_unfinished).count() as f64),
    },
    Metric {
        id: "ready_length_mean",
        unit: "tasks",
        better: Lower,
        source: OURS,
        definition: "Tasks that wait, on all CPUs together, averaged over time.",
        read: |s| wakeups(s, Some(s.cpus.iter().map(|cpu| cpu.waiting_mean).sum())),
    },
    Metric {
        id: "overhead_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time spent on scheduling itself, of every kind.",
        read: |s| overhead(s, &OverheadKind::OF_SCHEDULING),
    },
    Metric {
        id: "switch_overhead_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time spent on switching between tasks.",
        read: |s| overhead(s, &[OverheadKind::Switch]),
    },
    Metric {
        id: "migration_overhead_ns",
        unit: "ns",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "CPU time spent on refilling caches after migrations.",
        read: |s| overhead(s, &[OverheadKind::Migration]),
    },
    Metric {
        id: "idle_exit_overhead_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time from wakeups of idle CPUs to their switches; task metrics count \
                     these CPUs as idle.",
        read: |s| overhead(s, &[OverheadKind::IdleExit]),
    },
    Metric {
        id: "sharing_overhead_ns",
        unit: "ns",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "CPU time that bursts take longer because memory is shared with tasks that \
                     migrate (their SMC).",
        read: |s| overhead(s, &[OverheadKind::Sharing]),
    },
    Metric {
        id: "queue_overhead_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time spent on inserting tasks into ready queues and removing them.",
        read: |s| overhead(s, &[OverheadKind::Queue]),
    },
    Metric {
        id: "spin_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time that tasks spent on spinning for mutexes.",
        read: spun,
    },
    Metric {
        id: "slow_cpu_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "Extra CPU time of tasks compared with the fastest CPU whose core runs \
                     nothing else.",
        read: |s| overhead(s, &[OverheadKind::Slow]),
    },
    Metric {
        id: "response_time_ns_mean",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "From job_release to job_complete, mean.",
        read: |s| Value::or(s.distributions.response_time.mean(), NO_JOBS),
    },
    Metric {
        id: "response_time_ns_p50",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "From job_release to job_complete, median.",
        read: |s| Value::or(percentile(&s.distributions.response_time, 50.0), NO_JOBS),
    },
    Metric {
        id: "response_time_ns_p99",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "From job_release to job_complete, 99th percentile; none below 1,000 samples.",
        read: |s| tail(&s.distributions.response_time, NO_JOBS),
    },
    Metric {
        id: "job_grr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Response time over demand, each summed over completed jobs: the GRR against \
                     the jobs' stated demand, without inflation.",
        read: |s| {
            let demand = s.distributions.job_demand.0;
            Value::or(ratio(nanos(s.distributions.response_time.total()), demand), NO_JOBS)
        },
    },
    Metric {
        id: "job_apr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "The mean of response time over demand of completed jobs that have a demand.",
        read: |s| {
            let (ratios, jobs) = s.distributions.job_ratios;
            Value::or(ratio(ratios, jobs), NO_JOBS)
        },
    },
    Metric {
        id: "deadline_jobs",
        unit: "count",
        better: Neither,
        source: OURS,
        definition: "Completed jobs of tasks with a reservation, each from wakeup to sleep.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.jobs as f64).sum()),
    },
    Metric {
        id: "deadline_misses",
        unit: "count",
        better: Lower,
        source: OURS,
        definition: "Jobs that were not done by their deadline. A job that is late and continues \
                     into the next period without sleeping counts once.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.missed as f64).sum()),
    },
    Metric {
        id: "deadline_tardiness_ns_max",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "The largest lateness of a completed job.",
        read: |s| {
            deadlines(s, |tasks| {
                tasks
                    .iter()
                    .map(|task| nanos(task.response.saturating_sub(task.reservation.deadline)))
                    .fold(0.0, f64::max)
            })
        },
    },
    Metric {
        id: "reservation_used_max",
        unit: "1",
        better: Neither,
        source: "Abeni & Buttazzo 1998",
        definition: "CPU time over reserved CPU time, the largest of all tasks. It is at most 1, \
                     plus what a server grants at once, if servers enforce reservations.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.used).fold(0.0, f64::max)),
    },
    Metric {
        id: "wakeups",
        unit: "count",
        better: Neither,
        source: LINUX,
        definition: "Number of wakeups of tasks; the start of a new task is not one.",
        read: |s| wakeups(s, Some(s.count(|task| task.wakeups) as f64)),
    },
    Metric {
        id: "burst_ns_p50",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "CPU bursts (CPU time from a wakeup to the next block or exit; preemption \
                     does not end one), median.",
        read: |s| Value::or(percentile(&s.distributions.burst, 50.0), NO_BURSTS),
    },
    Metric {
        id: "burst_ns_p99",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "CPU bursts, 99th percentile; none below 1,000 samples.",
        read: |s| tail(&s.distributions.burst, NO_BURSTS),
    },
    Metric {
        id: "pause_ns_p50",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "Pauses (from a block to the next wakeup), median.",
        read: |s| Value::or(percentile(&s.distributions.pause, 50.0), NO_PAUSES),
    },
    Metric {
        id: "pause_ns_p99",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "Pauses, 99th percentile; none below 1,000 samples.",
        read: |s| tail(&s.distributions.pause, NO_PAUSES),
    },
];
