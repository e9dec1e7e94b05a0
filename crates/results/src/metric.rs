//! Every metric that the program can print.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What is known of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// `ns`, `1` for ratios, or what is counted.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// What it means, in a sentence.
    pub summary: &'static str,
}

/// Which of two values is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The higher one.
    Higher,
    /// The lower one.
    Lower,
    /// Neither: the number describes the load, or can be good or bad.
    Neither,
}

/// The one list of metrics. A name stands for the variant and the id, so that neither a duplicate nor an unknown id compiles.
macro_rules! metrics {
    ($($id:ident: $unit:literal, $direction:ident, $summary:literal;)*) => {
        /// What a number says.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        #[expect(non_camel_case_types, reason = "the name of a variant is the metric's id")]
        pub enum Metric {
            $(#[doc = $summary] $id,)*
        }

        impl Metric {
            /// All of them, by source.
            pub const ALL: &'static [Metric] = &[$(Metric::$id,)*];

            /// Its name: `snake_case`, the unit last, then the statistic.
            pub fn id(self) -> &'static str {
                match self {
                    $(Metric::$id => stringify!($id),)*
                }
            }

            /// What is known of it.
            pub fn description(self) -> Description {
                match self {
                    $(Metric::$id => Description { unit: $unit, direction: Direction::$direction, summary: $summary },)*
                }
            }
        }
    };
}

metrics! {
    // Of a trace, simulated or recorded: `schedsim::metrics::CATALOGUE`.
    makespan_ns: "ns", Lower, "From the first event to the last time a task leaves a CPU, or to the end of the trace if one still runs.";
    cpu_time_ns: "ns", Neither, "Time that tasks are on a CPU, less overhead on their account.";
    utilisation: "1", Neither, "Share of all CPU time, from zero to the end of the trace, in which a CPU runs a task, overhead included.";
    grr: "1", Lower, "Global response ratio: elapsed time over task time (CPU bursts and pauses without queueing and overhead), each summed over all tasks.";
    apr: "1", Lower, "Average per-task response ratio: the mean over tasks of elapsed time over task time.";
    wakeup_latency_ns_mean: "ns", Lower, "From sched_waking to the switch that runs the task, mean.";
    wakeup_latency_ns_p50: "ns", Lower, "From sched_waking to the switch that runs the task, median.";
    wakeup_latency_ns_p99: "ns", Lower, "From sched_waking to the switch that runs the task, 99th percentile; none below 1,000 samples.";
    wakeup_latency_ns_max: "ns", Lower, "From sched_waking to the switch that runs the task, longest.";
    run_delay_ns: "ns", Lower, "Time that tasks are runnable and wait, after a waking, a wakeup_new or a switch-out while runnable, summed over all tasks.";
    run_delay_ns_mean: "ns", Lower, "run_delay_ns per dispatch.";
    run_delay_ns_max: "ns", Lower, "The longest time that a task waits at a stretch.";
    switches: "count", Lower, "sched_switch events on all CPUs, to and from idle among them, as Linux's nr_switches.";
    dispatches: "count", Neither, "Switches to a task. A task whose slice ends and that goes on at once was not switched.";
    migrations: "count", Lower, "Dispatches on another CPU than the one that the task last ran on.";
    migration_rate: "1", Lower, "Migrations per dispatch.";
    turn_ns_mean: "ns", Neither, "How finely tasks interleave: CPU time per turn. A CPU's next turn begins when it runs another task than the one it last ran, idling in between or not.";
    completion_inversions: "1", Neither, "Share of pairs of tasks that exit in the other order than they began in: 0 if one after the other, 1 if reversed. Tasks that made others are left out.";
    idle_waste: "1", Lower, "Share of all CPU time that CPUs idle, leaving idle included, while any task waits anywhere, whether or not it may run there.";
    idle_waste_min: "1", Lower, "The same, counting no more idle CPUs than there are waiting tasks.";
    jain_fairness: "1", Higher, "(Σx)²/(nΣx²) over tasks, x = CPU time over time running or waiting: 1 if all get the same share of what they want, 1/n if one gets all.";
    lag_ns_max: "ns", Lower, "The furthest that a fair task falls behind what a machine that serves all at once by weight would have served it since it became runnable.";
    lead_ns_max: "ns", Lower, "The furthest that a fair task gets ahead of the same.";
    vruntime_spread_ns_max: "ns", Lower, "The greatest difference between two runnable fair tasks in CPU time by weight (ns of nice 0) since a task last became runnable or ceased to be.";
    priority_inversion_ns: "ns", Lower, "Time in which a task runs while one with a better kernel priority of its own, nice values among them, waits anywhere, for a CPU or for a mutex.";
    starvation_ns: "ns", Lower, "Time that tasks wait beyond the first 100 ms of each wait, summed over all tasks.";
    slowdown_p50: "1", Lower, "Time from when a task becomes runnable until it blocks or exits over the CPU time it uses in it, median.";
    slowdown_p95: "1", Lower, "The same, 95th percentile; none below 1,000 samples.";
    slowdown_p99: "1", Lower, "The same, 99th percentile; none below 1,000 samples.";
    activation_ns_mean: "ns", Lower, "Time from when a task becomes runnable until it blocks or exits, mean.";
    activation_ns_p99: "ns", Lower, "Time from when a task becomes runnable until it blocks or exits, 99th percentile; none below 1,000 samples.";
    service_rate: "1", Higher, "CPU time that tasks get, overhead left out, per time from the first event to the last: how many CPUs' work is done.";
    run_delay_per_cpu_time: "1", Lower, "run_delay_ns per CPU time that tasks get.";
    switches_per_cpu_second: "1/s", Lower, "Context switches per second of CPU time that tasks get.";
    migrations_per_cpu_second: "1/s", Lower, "Migrations per second of CPU time that tasks get. A policy that never moves a task has none by construction.";
    unfinished_tasks: "tasks", Lower, "Tasks that run, or could run, when the trace ends.";
    ready_length_mean: "tasks", Lower, "Tasks that wait, on all CPUs together, averaged over time.";
    overhead_ns: "ns", Lower, "CPU time spent on scheduling itself, of all kinds.";
    switch_overhead_ns: "ns", Lower, "CPU time spent on switching between tasks.";
    migration_overhead_ns: "ns", Lower, "CPU time spent on refilling caches after migrations.";
    idle_exit_overhead_ns: "ns", Lower, "CPU time from wakings of idle CPUs to their switches; in terms of tasks these CPUs still idle.";
    sharing_overhead_ns: "ns", Lower, "CPU time by which bursts are longer because memory is shared with tasks that migrate (their SMC).";
    queue_overhead_ns: "ns", Lower, "CPU time spent on inserting tasks into ready queues and taking them out.";
    slow_cpu_ns: "ns", Lower, "CPU time that tasks took more than on the fastest CPU alone on its core.";
    response_time_ns_mean: "ns", Lower, "From job_release to job_complete, mean.";
    response_time_ns_p50: "ns", Lower, "From job_release to job_complete, median.";
    response_time_ns_p99: "ns", Lower, "From job_release to job_complete, 99th percentile; none below 1,000 samples.";
    job_grr: "1", Lower, "Response time over demand, each summed over completed jobs: the GRR against what jobs say they need, before any inflation.";
    job_apr: "1", Lower, "The mean of response time over demand of completed jobs that have a demand.";
    deadline_jobs: "count", Neither, "Completed jobs of tasks with a reservation: from waking to sleep.";
    deadline_misses: "count", Lower, "Jobs that were not done by their deadline. One that is late for the next period and goes on without sleeping counts once.";
    deadline_tardiness_ns_max: "ns", Lower, "How late a completed job was at most.";
    reservation_used_max: "1", Neither, "CPU time over what was reserved for that time, the largest of all tasks: at most 1 and what a server gives at once, if servers hold tasks to what they reserved.";
    wakeups: "count", Neither, "Times that a task was woken; new tasks are not.";
    burst_ns_p50: "ns", Neither, "CPU bursts (CPU time from a wakeup to the next block or exit; preemption does not end one), median.";
    burst_ns_p99: "ns", Neither, "CPU bursts, 99th percentile; none below 1,000 samples.";
    pause_ns_p50: "ns", Neither, "Pauses (from a block to the waking that ends it), median.";
    pause_ns_p99: "ns", Neither, "Pauses, 99th percentile; none below 1,000 samples.";
    // Of an open system: `schedsim::metrics::OPEN_CATALOGUE` and what is made of its runs.
    idle_waste_of_idle: "1", Lower, "Share of the CPUs' idle time in which any task waits anywhere.";
    cpu_inflation: "1", Lower, "Overhead on the account of the measured tasks over their bursts and pauses: by how much CPU time inflates tasks.";
    population: "tasks", Lower, "Mean number of tasks that a measured one finds alive when it arrives.";
    population_growth: "tasks", Neither, "By how much the number of tasks alive grew along a straight line; none below 4,000 measured tasks.";
    tasks: "tasks", Higher, "Measured tasks that have left.";
    ngrr: "1", Lower, "GRR over the GRR of the baseline with the same seed, mean over seeds.";
    warm_up: "tasks", Neither, "Tasks that came before the measured ones.";
    saturated: "1", Neither, "1 if the load is more than the CPUs can serve, else 0.";
    // Of a run on this machine.
    user_ns: "ns", Neither, "CPU time in programs (getrusage); kernels that sample by the tick split it from the kernel's roughly.";
    system_ns: "ns", Neither, "CPU time in the kernel (getrusage).";
    voluntary_switches: "count", Neither, "Switches because a task waited for something (getrusage).";
    involuntary_switches: "count", Neither, "Switches because something else was to run (getrusage).";
    throughput: "1/s", Higher, "Phases that all tasks completed in a second.";
    unused_cpu: "1", Neither, "Share of the time of the CPUs that the workload may use in which none of its tasks ran: 1 - CPU time / (makespan * CPUs).";
    idle_cpu: "1", Neither, "Share of the time of these CPUs in which nothing at all ran (/proc/stat, in ticks of 10 ms).";
    stolen_cpu: "1", Neither, "Share of the time of these CPUs that a hypervisor gave to others (/proc/stat).";
    makespan_ns_median: "ns", Lower, "Median of makespan_ns over the runs.";
    makespan_difference: "1", Lower, "Mean difference of makespan_ns from the baseline in the same rounds, as a share of the mean of the baseline.";
    same_makespan_difference: "1", Neither, "The same of the baseline against itself.";
    measurement_overhead: "1", Neither, "What measuring adds to makespan_ns, as a share of it.";
    // Of one task or CPU.
    task_cpu_time_ns: "ns", Neither, "CPU time of the task.";
    task_began_ns: "ns", Neither, "When the task began, from the release of the tasks.";
    task_ended_ns: "ns", Neither, "When the task ended, from the release of the tasks.";
    task_run_delay_ns: "ns", Lower, "Time that the task is runnable and waits.";
    task_bursts: "count", Neither, "CPU bursts of the task.";
    task_jobs: "count", Neither, "Completed jobs of the task.";
    task_deadline_misses: "count", Lower, "Jobs of the task that were not done by their deadline.";
    task_response_ns_max: "ns", Lower, "Longest response time of a job of the task.";
    task_reservation_used: "1", Neither, "CPU time of the task over what was reserved for that time.";
    cpu_share: "1", Neither, "CPU time of the task over that of all tasks.";
    cpu_busy_ns: "ns", Neither, "Time in which the CPU runs a task.";
    cpu_ready_length_mean: "tasks", Lower, "Tasks that wait on the CPU, averaged over time.";
    cpu_ready_length_max: "tasks", Lower, "The most tasks that wait on the CPU.";
    wakes: "count", Neither, "Times that one task wakes another.";
    lost_events: "count", Lower, "Events that the recording lost.";
    // Of a description of a workload.
    offered_load: "1", Neither, "CPU time that arrives per time of all CPUs.";
    gap_ns_mean: "ns", Neither, "Mean time between two arrivals.";
    share_of_tasks: "1", Neither, "Tasks of the class over all tasks.";
    share_of_load: "1", Neither, "CPU time of the class over that of all tasks.";
    bursts_mean: "count", Neither, "Mean number of CPU bursts of a task.";
    burst_ns_mean: "ns", Neither, "Mean CPU burst.";
    burst_cv_squared: "1", Neither, "Squared coefficient of variation of CPU bursts.";
    pause_ns_mean: "ns", Neither, "Mean pause.";
    pause_cv_squared: "1", Neither, "Squared coefficient of variation of pauses.";
    cpu_time_ns_mean: "ns", Neither, "Mean CPU time of a task.";
    // Of yields in a guest kernel.
    instructions_per_yield: "instructions", Lower, "Instructions from one yield to the next, all code included.";
    instructions_per_yield_in_function: "instructions", Lower, "Those of them in one function.";
    instructions_per_yield_base: "instructions", Lower, "The constant of the fit base + per_doubling * log2 tasks.";
    instructions_per_yield_per_doubling: "instructions", Lower, "The slope of that fit.";
    // Of two runs that should be alike.
    equal_decisions: "1", Higher, "Share of the recorded decisions that the policy takes, too, each in the recorded situation.";
    equal_dispatches: "1", Higher, "Share of the dispatches whose order is the same in the simulation of the described bursts.";
    equal_dispatches_recorded: "1", Higher, "The same in the simulation of the recorded bursts.";
    equal_dispatches_itself: "1", Higher, "Share of the dispatches whose order is the same in two boots.";
    decision_differences: "1", Lower, "Decisions that differ, of one kind.";
    dispatch_differences: "1", Lower, "Dispatches that differ, of one kind.";
    decisions_until_divergence: "decisions", Neither, "Decisions that are the same before two runs differ first.";
    false_verdicts: "1", Lower, "Share of the rows of two that are alike that are called better or worse.";
    found_differences: "1", Higher, "Share of the differences beyond margin and replay error that are called by their right name.";
    failed_workloads: "workloads", Lower, "Random workloads that the policy failed.";
    // The difference of a prediction from what was measured, as a share of what was measured; of each headline metric.
    makespan_ns_prediction_error: "1", Lower, "Error of the predicted makespan_ns.";
    grr_prediction_error: "1", Lower, "Error of the predicted grr.";
    apr_prediction_error: "1", Lower, "Error of the predicted apr.";
    slowdown_p50_prediction_error: "1", Lower, "Error of the predicted slowdown_p50.";
    slowdown_p99_prediction_error: "1", Lower, "Error of the predicted slowdown_p99.";
    run_delay_per_cpu_time_prediction_error: "1", Lower, "Error of the predicted run_delay_per_cpu_time.";
    switches_per_cpu_second_prediction_error: "1", Lower, "Error of the predicted switches_per_cpu_second.";
    wakeup_latency_ns_p50_prediction_error: "1", Lower, "Error of the predicted wakeup_latency_ns_p50.";
    wakeup_latency_ns_p99_prediction_error: "1", Lower, "Error of the predicted wakeup_latency_ns_p99.";
    wakeup_latency_ns_max_prediction_error: "1", Lower, "Error of the predicted wakeup_latency_ns_max.";
    run_delay_ns_prediction_error: "1", Lower, "Error of the predicted run_delay_ns.";
    switches_prediction_error: "1", Lower, "Error of the predicted switches.";
    migrations_prediction_error: "1", Lower, "Error of the predicted migrations.";
    idle_waste_prediction_error: "1", Lower, "Error of the predicted idle_waste.";
    jain_fairness_prediction_error: "1", Lower, "Error of the predicted jain_fairness.";
    // Of a ready queue alone.
    instructions_per_op: "instructions", Lower, "Instructions per operation, without the loop around it.";
    instructions_per_op_gross: "instructions", Lower, "The same with the loop.";
    data_accesses_per_op: "1", Lower, "Loads and stores per operation.";
    d1_misses_per_op: "1", Lower, "Misses of the first-level data cache per operation.";
    i1_misses_per_op: "1", Lower, "Misses of the first-level instruction cache per operation.";
    ll_misses_per_op: "1", Lower, "Misses of the last-level cache per operation.";
    time_ns_per_op: "ns", Lower, "Time per operation, with the loop.";
    thread_instructions_per_slice: "instructions", Lower, "Instructions that a part of a switch of user-level threads adds to a slice.";
    elements_walked_per_op: "1", Lower, "List elements examined per operation.";
    entries_examined_per_op: "1", Lower, "Schedule entries examined per operation.";
    tree_levels_per_op: "1", Lower, "Levels of a tree descended per operation.";
    longest_wait_slices: "slices", Lower, "Most slices from one slice of a task to its next.";
    crossover_tasks: "tasks", Neither, "Number of tasks from which on the other structure is the cheaper one.";
    cheapest_instructions_per_op: "instructions", Lower, "instructions_per_op of the cheapest structure that serves a need.";
    cheapest_time_ns_per_op: "ns", Lower, "time_ns_per_op of the cheapest structure that serves a need.";
    // Of a paper.
    check: "1", Neither, "The value that a check of a claim compares.";
    slices: "1", Neither, "Time slices, as a paper gives them.";
}

impl Metric {
    /// The metric with this id.
    pub fn named(id: &str) -> Option<Metric> {
        Metric::ALL.iter().copied().find(|metric| metric.id() == id)
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.description().unit
    }

    /// Whether one run of many may rule its mean: an extreme, a quantile far out, or a mean of ratios, whose variance is infinite for exponential demand.
    /// Medians and ranks say more of it.
    pub fn is_heavy_tailed(self) -> bool {
        let is_ratio = matches!(self, Metric::apr | Metric::job_apr | Metric::starvation_ns);
        is_ratio || ["_max", "_p95", "_p99"].iter().any(|end| self.id().ends_with(end))
    }

    /// The metric of a prediction's error in this one, if predictions of it are tested.
    pub fn prediction_error(self) -> Option<Metric> {
        Metric::named(&format!("{}_prediction_error", self.id()))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> String {
        metric.id().to_string()
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(id: String) -> Result<Metric, String> {
        Metric::named(&id).ok_or_else(|| format!("there is no metric `{id}`"))
    }
}

impl JsonSchema for Metric {
    fn schema_name() -> Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |metric: &Metric| {
            let Description { unit, summary, .. } = metric.description();
            json_schema!({ "const": metric.id(), "description": format!("{summary} Unit: {unit}.") })
        };
        json_schema!({ "description": "What a number says.", "oneOf": Metric::ALL.iter().map(one).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_id_and_described() {
        for &metric in Metric::ALL {
            let Description { unit, summary, .. } = metric.description();
            assert_eq!(Metric::named(metric.id()), Some(metric));
            assert!(!unit.is_empty() && summary.ends_with('.'), "{metric}");
            assert!(!metric.id().contains("_ns") || unit == "ns" || unit == "1", "{metric} is in {unit}");
        }
        assert_eq!(Metric::named("makespan"), None);
    }
}
