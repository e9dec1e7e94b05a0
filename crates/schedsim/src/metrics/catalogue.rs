//! What each metric is called, what it means, where it comes from, and how it is read off a summary.

use super::Summary;
use super::reading::*;
use crate::trace::OverheadKind;

/// A number that a trace is summed up in.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name: `snake_case`, the unit last, then the statistic.
    pub id: &'static str,
    /// `ns`, `1` for ratios, or what is counted.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What it means, in a sentence.
    pub definition: &'static str,
    /// Who defined it.
    pub source: &'static str,
    read: fn(&Summary) -> Value,
}

/// Which of two values is better.
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
    /// The number, or `None` if the trace does not tell.
    pub value: Option<f64>,
    /// Why there is none.
    pub note: Option<&'static str>,
}

impl Metric {
    /// Its value for a trace.
    pub fn read(&self, summary: &Summary) -> Value {
        (self.read)(summary)
    }
}

impl Value {
    /// A number that every trace tells.
    pub(super) fn of(value: f64) -> Value {
        Value { value: Some(value), note: None }
    }

    /// `value` if there is one, else `note` says why not.
    pub(super) fn or(value: Option<f64>, note: &'static str) -> Value {
        Value { value, note: value.is_none().then_some(note) }
    }
}

const CURRAN_STUMM: &str = "Curran & Stumm 1990";
const LINUX: &str = "Linux";
const OURS: &str = "schedlab";

use Better::{Higher, Lower, Neither};

/// All metrics, in the order in which they are printed.
///
/// On GRR and APR: Curran & Stumm's task time is "the sum of the length of all I/O pauses and CPU bursts of a task (before migration costs and
/// queueing time are added)", and elapsed time is that plus migration costs and queueing. A task runs, waits or pauses at any time, and overhead is
/// charged while it runs; so elapsed − run delay − overhead is exactly that sum, and no list of bursts is needed. Where tasks wait for one another, a pause
/// also holds the delay of those they wait for, which a better policy shortens without a better ratio: compare makespans then.
pub static CATALOGUE: &[Metric] = &[
    Metric {
        id: "makespan_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "From the first event to the last time a task leaves a CPU, or to the end of the trace if one still runs.",
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
        definition: "Time that tasks are on a CPU, less overhead on their account.",
        read: |s| switches(s, nanos(s.sum(|task| task.cpu_time))),
    },
    Metric {
        id: "utilisation",
        unit: "1",
        better: Neither,
        source: CURRAN_STUMM,
        definition: "Share of all CPU time, from zero to the end of the trace, in which a CPU runs a task, overhead included.",
        read: |s| switches(s, s.cpus.iter().map(|cpu| nanos(cpu.busy)).sum::<f64>() / s.machine_time()),
    },
    Metric {
        id: "grr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Global response ratio: elapsed time over task time (CPU bursts and pauses without queueing and overhead), each summed over all tasks.",
        read: |s| wakeups(s, s.response_ratios(|_| true).map(|ratios| ratios.grr)),
    },
    Metric {
        id: "apr",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Average per-task response ratio: the mean over tasks of elapsed time over task time.",
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
        definition: "From sched_waking to the switch that runs the task, 99th percentile; none below 1,000 samples.",
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
        definition: "Time that tasks are runnable and wait, after a waking, a wakeup_new or a switch-out while runnable, summed over all tasks.",
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
        definition: "The longest time that a task waits at a stretch.",
        read: |s| wakeups(s, Some(nanos(s.totals.run_delay_max))),
    },
    Metric {
        id: "switches",
        unit: "count",
        better: Lower,
        source: LINUX,
        definition: "sched_switch events on all CPUs, to and from idle among them, as Linux's nr_switches.",
        read: |s| switches(s, s.cpus.iter().map(|cpu| cpu.switches).sum::<u64>() as f64),
    },
    Metric {
        id: "dispatches",
        unit: "count",
        better: Neither,
        source: CURRAN_STUMM,
        definition: "Switches to a task. A task whose slice ends and that goes on at once was not switched.",
        read: |s| switches(s, s.count(|task| task.dispatches) as f64),
    },
    Metric {
        id: "migrations",
        unit: "count",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Dispatches on another CPU than the one that the task last ran on.",
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
        id: "turn_ns_mean",
        unit: "ns",
        better: Neither,
        source: "TD-TP",
        definition: "How finely tasks interleave: CPU time per turn. A CPU's next turn begins when it runs another task than the one it last ran, idling in between or not.",
        read: |s| {
            let turns = s.count(|task| task.turns);
            Value::or(ratio(nanos(s.sum(|task| task.cpu_time)), turns), NO_TURNS)
        },
    },
    Metric {
        id: "completion_inversions",
        unit: "1",
        better: Neither,
        source: "Kendall 1938",
        definition: "Share of pairs of tasks that exit in the other order than they began in: 0 if one after the other, 1 if reversed. Tasks that made others are left out.",
        read: order,
    },
    Metric {
        id: "idle_waste",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "Share of all CPU time that CPUs idle, leaving idle included, while any task waits anywhere, whether or not it may run there.",
        read: |s| idle_waste(s, s.totals.idle_waste),
    },
    Metric {
        id: "idle_waste_min",
        unit: "1",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "The same, counting no more idle CPUs than there are waiting tasks.",
        read: |s| idle_waste(s, s.totals.idle_waste_min),
    },
    Metric {
        id: "jain_fairness",
        unit: "1",
        better: Higher,
        source: "Jain, Chiu & Hawe 1984",
        definition: "(Σx)²/(nΣx²) over tasks, x = CPU time over time running or waiting: 1 if all get the same share of what they want, 1/n if one gets all.",
        read: |s| wakeups(s, jain(s)),
    },
    Metric {
        id: "lag_ns_max",
        unit: "ns",
        better: Lower,
        source: "Stoica & Abdel-Wahab 1995",
        definition: "The furthest that a fair task falls behind what a machine that serves all at once by weight would have served it since it became runnable.",
        read: |s| fairness(s, |fairness| fairness.behind_max),
    },
    Metric {
        id: "lead_ns_max",
        unit: "ns",
        better: Lower,
        source: "Stoica & Abdel-Wahab 1995",
        definition: "The furthest that a fair task gets ahead of the same.",
        read: |s| fairness(s, |fairness| fairness.ahead_max),
    },
    Metric {
        id: "vruntime_spread_ns_max",
        unit: "ns",
        better: Lower,
        source: "pslist",
        definition: "The greatest difference between two runnable fair tasks in CPU time by weight (ns of nice 0) since a task last became runnable or ceased to be.",
        read: |s| fairness(s, |fairness| fairness.spread_max),
    },
    Metric {
        id: "priority_inversion_ns",
        unit: "ns",
        better: Lower,
        source: "Lampson & Redell 1980",
        definition: "Time in which a task runs while one with a better kernel priority of its own, nice values among them, waits anywhere, for a CPU or for a mutex.",
        read: |s| fairness(s, |fairness| fairness.inversion),
    },
    Metric {
        id: "starvation_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "Time that tasks wait beyond the first 100 ms of each wait, summed over all tasks.",
        read: |s| wakeups(s, Some(nanos(s.totals.starved))),
    },
    Metric {
        id: "slowdown_p50",
        unit: "1",
        better: Lower,
        source: OURS,
        definition: "Time from when a task becomes runnable until it blocks or exits over the CPU time it uses in it, median.",
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
        definition: "Time from when a task becomes runnable until it blocks or exits, 99th percentile; none below 1,000 samples.",
        read: |s| tail(&s.distributions.activation, NO_ACTIVATIONS),
    },
    Metric {
        id: "service_rate",
        unit: "1",
        better: Higher,
        source: OURS,
        definition: "CPU time that tasks get, overhead left out, per time from the first event to the last: how many CPUs' work is done.",
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
        definition: "run_delay_ns per CPU time that tasks get.",
        read: |s| per_cpu_time(s, wakeups(s, Some(nanos(s.sum(|task| task.run_delay)))).value, 1.0),
    },
    Metric {
        id: "switches_per_cpu_second",
        unit: "1/s",
        better: Lower,
        source: OURS,
        definition: "Context switches per second of CPU time that tasks get.",
        read: |s| per_cpu_time(s, Some(s.cpus.iter().map(|cpu| cpu.switches).sum::<u64>() as f64), 1e9),
    },
    Metric {
        id: "migrations_per_cpu_second",
        unit: "1/s",
        better: Lower,
        source: OURS,
        definition: "Migrations per second of CPU time that tasks get. A policy that never moves a task has none by construction.",
        read: |s| per_cpu_time(s, Some(s.count(|task| task.migrations) as f64), 1e9),
    },
    Metric {
        id: "unfinished_tasks",
        unit: "tasks",
        better: Lower,
        source: OURS,
        definition: "Tasks that run, or could run, when the trace ends.",
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
        definition: "CPU time spent on scheduling itself, of all kinds.",
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
        definition: "CPU time from wakings of idle CPUs to their switches; in terms of tasks these CPUs still idle.",
        read: |s| overhead(s, &[OverheadKind::IdleExit]),
    },
    Metric {
        id: "sharing_overhead_ns",
        unit: "ns",
        better: Lower,
        source: CURRAN_STUMM,
        definition: "CPU time by which bursts are longer because memory is shared with tasks that migrate (their SMC).",
        read: |s| overhead(s, &[OverheadKind::Sharing]),
    },
    Metric {
        id: "queue_overhead_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time spent on inserting tasks into ready queues and taking them out.",
        read: |s| overhead(s, &[OverheadKind::Queue]),
    },
    Metric {
        id: "slow_cpu_ns",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "CPU time that tasks took more than on the fastest CPU alone on its core.",
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
        definition: "Response time over demand, each summed over completed jobs: the GRR against what jobs say they need, before any inflation.",
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
        definition: "Completed jobs of tasks with a reservation: from waking to sleep.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.jobs as f64).sum()),
    },
    Metric {
        id: "deadline_misses",
        unit: "count",
        better: Lower,
        source: OURS,
        definition: "Jobs that were not done by their deadline. One that is late for the next period and goes on without sleeping counts once.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.missed as f64).sum()),
    },
    Metric {
        id: "deadline_tardiness_ns_max",
        unit: "ns",
        better: Lower,
        source: OURS,
        definition: "How late a completed job was at most.",
        read: |s| {
            deadlines(s, |tasks| {
                tasks.iter().map(|task| nanos(task.response.saturating_sub(task.reservation.deadline))).fold(0.0, f64::max)
            })
        },
    },
    Metric {
        id: "reservation_used_max",
        unit: "1",
        better: Neither,
        source: "Abeni & Buttazzo 1998",
        definition: "CPU time over what was reserved for that time, the largest of all tasks: at most 1 and what a server gives at once, if servers hold tasks to what they reserved.",
        read: |s| deadlines(s, |tasks| tasks.iter().map(|task| task.used).fold(0.0, f64::max)),
    },
    Metric {
        id: "wakeups",
        unit: "count",
        better: Neither,
        source: LINUX,
        definition: "Times that a task was woken; new tasks are not.",
        read: |s| wakeups(s, Some(s.count(|task| task.wakeups) as f64)),
    },
    Metric {
        id: "burst_ns_p50",
        unit: "ns",
        better: Neither,
        source: OURS,
        definition: "CPU bursts (CPU time from a wakeup to the next block or exit; preemption does not end one), median.",
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
        definition: "Pauses (from a block to the waking that ends it), median.",
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
