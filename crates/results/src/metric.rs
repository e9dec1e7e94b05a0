//! The list of all metrics.

use crate::printed::{Printed, SUMMARY};
use schedsim::metrics::{Better, CATALOGUE, OPEN_CATALOGUE};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The description of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Description {
    /// `ns`, `1` for ratios, or what is counted.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Better,
    /// The meaning, in a sentence.
    pub summary: &'static str,
}

/// The only list of metrics. A name is both the variant and the id, so that neither a duplicate nor
/// an unknown id compiles.
macro_rules! metrics {
    (traced: $($traced:ident),*;
     $($id:ident: $unit:literal, $direction:ident, $summary:literal;)*) => {
        /// What a number measures.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        #[expect(non_camel_case_types, reason = "the name of a variant is the metric's id")]
        pub enum Metric {
            $(#[doc = "Described in `schedsim::metrics`."] $traced,)*
            $(#[doc = $summary] $id,)*
            /// A command prints it itself.
            printed(&'static Printed),
        }

        impl Metric {
            /// All metrics, by source, but those that commands print themselves.
            pub const ALL: &'static [Metric] = &[$(Metric::$traced,)* $(Metric::$id,)*];

            /// The id: `snake_case`, the unit, then the statistic.
            pub fn id(self) -> &'static str {
                match self {
                    $(Metric::$traced => stringify!($traced),)*
                    $(Metric::$id => stringify!($id),)*
                    Metric::printed(printed) => printed.id(),
                }
            }

            /// The description of this metric.
            pub fn description(self) -> Description {
                match self {
                    $(Metric::$traced => traced(stringify!($traced)),)*
                    $(Metric::$id => Description {
                        unit: $unit,
                        direction: Better::$direction,
                        summary: $summary,
                    },)*
                    Metric::printed(printed) => Description {
                        unit: printed.unit(),
                        direction: printed.direction(),
                        summary: SUMMARY,
                    },
                }
            }
        }
    };
}

/// The description of a metric of a trace, or else of an open system.
fn traced(id: &str) -> Description {
    let of_trace = CATALOGUE.iter().map(|one| (one.id, one.unit, one.better, one.definition));
    let of_open = OPEN_CATALOGUE.iter().map(|one| (one.id, one.unit, one.better, one.definition));
    let (_, unit, direction, summary) = of_trace
        .chain(of_open)
        .find(|(known, ..)| *known == id)
        .unwrap_or_else(|| panic!("schedsim has no metric {id}"));
    Description { unit, direction, summary }
}

metrics! {
    // Of a trace or an open system: described in `schedsim::metrics`.
    traced: makespan_ns, cpu_time_ns, utilisation, grr, apr, wakeup_latency_ns_mean,
        wakeup_latency_ns_p50, wakeup_latency_ns_p99, wakeup_latency_ns_max, run_delay_ns,
        run_delay_ns_mean, run_delay_ns_max, switches, dispatches, migrations, migration_rate,
        slice_ns_mean, completion_inversions, idle_waste, idle_waste_min, jain_fairness,
        lag_ns_max, lead_ns_max, vruntime_spread_ns_max, priority_inversion_ns, starvation_ns,
        slowdown_p50, slowdown_p95, slowdown_p99, activation_ns_mean, activation_ns_p99,
        service_rate, run_delay_per_cpu_time, switches_per_cpu_second, migrations_per_cpu_second,
        unfinished_tasks, ready_length_mean, overhead_ns, switch_overhead_ns,
        migration_overhead_ns, idle_exit_overhead_ns, sharing_overhead_ns, queue_overhead_ns,
        spin_ns, slow_cpu_ns, response_time_ns_mean, response_time_ns_p50, response_time_ns_p99, job_grr,
        job_apr, deadline_jobs, deadline_misses, deadline_tardiness_ns_max, reservation_used_max,
        wakeups, burst_ns_p50, burst_ns_p99, pause_ns_p50, pause_ns_p99, idle_waste_of_idle,
        queueing_ns_mean, cpu_inflation, population, population_growth, tasks;
    // Statistics over runs of an open system.
    ngrr: "1", Lower, "GRR over the GRR of the baseline with the same seed, mean over seeds.";
    warm_up: "tasks", Neither, "Tasks before the measured ones.";
    saturated: "1", Neither, "1 if the load exceeds what the CPUs can serve, else 0.";
    // Of a run on this machine.
    user_ns: "ns", Neither,
        "CPU time in programs (getrusage). Kernels with tick-based sampling separate it from \
         kernel time only roughly.";
    system_ns: "ns", Neither, "CPU time in the kernel (getrusage).";
    voluntary_switches: "count", Neither, "Switches because a task blocked (getrusage).";
    involuntary_switches: "count", Neither, "Switches because of a preemption (getrusage).";
    throughput: "1/s", Higher, "Phases that all tasks complete in a second.";
    unused_cpu: "1", Neither,
        "Share of the time of the workload's CPUs in which none of its tasks ran: 1 - CPU time / \
         (makespan * CPUs).";
    idle_cpu: "1", Neither,
        "Share of the time of these CPUs in which nothing ran (/proc/stat, in ticks of 10 ms).";
    stolen_cpu: "1", Neither,
        "Share of the time of these CPUs that a hypervisor gave to other guests (/proc/stat).";
    makespan_ns_median: "ns", Lower, "Median of makespan_ns over the runs.";
    makespan_difference: "1", Lower,
        "Mean difference of makespan_ns from the baseline in the same rounds, as a share of the \
         mean of the baseline.";
    same_makespan_difference: "1", Neither, "The same for the baseline against itself.";
    measurement_overhead: "1", Neither,
        "Increase of makespan_ns by the measurement, as a share of it.";
    // Of one task or CPU.
    task_cpu_time_ns: "ns", Neither, "CPU time of the task.";
    task_began_ns: "ns", Neither, "Start of the task, from the common release of the tasks.";
    task_ended_ns: "ns", Neither, "End of the task, from the common release of the tasks.";
    task_run_delay_ns: "ns", Lower, "Time that the task is runnable and waits.";
    task_run_delay_ns_max: "ns", Lower, "Longest time that the task was runnable and waited.";
    task_bursts: "count", Neither, "CPU bursts of the task.";
    task_dispatches: "count", Neither, "How often the task was switched in.";
    task_migrations: "count", Neither, "How often the task was switched in on another CPU than before.";
    task_jobs: "count", Neither, "Completed jobs of the task.";
    task_deadline_misses: "count", Lower, "Jobs of the task that were not done by their deadline.";
    task_response_ns_max: "ns", Lower, "Longest response time of a job of the task.";
    task_reservation_used: "1", Neither, "CPU time of the task over its reserved CPU time.";
    cpu_share: "1", Neither, "CPU time of the task over that of all tasks.";
    cpu_busy_ns: "ns", Neither, "Time in which the CPU runs a task.";
    cpu_ready_length_mean: "tasks", Lower, "Tasks that wait on the CPU, averaged over time.";
    cpu_ready_length_max: "tasks", Lower, "The largest number of tasks that wait on the CPU.";
    wakes: "count", Neither, "Number of times that one task wakes another.";
    lost_events: "count", Lower, "Events that the recording lost.";
    explained_wakeups: "1", Higher, "Share of wake-ups of which the replay has the cause.";
    token_wakeups: "1", Lower, "Share of wake-ups that are replayed as tokens.";
    recorded_call_ns: "ns", Lower, "Time that recording takes for each call.";
    recorded_lock_ns: "ns", Lower, "Time that recording takes for each call of a lock.";
    recorded_time_ratio: "1", Lower, "Elapsed time of the command recorded over not recorded.";
    recorded_cpu_time_ratio: "1", Lower, "CPU time of the command recorded over not recorded.";
    recorder_cpu_time_ratio: "1", Lower,
        "CPU time of the recorder over that of the command without it.";
    calibrated_ns: "ns", Neither, "Median time of an operation of the scheduler, calibrated.";
    object_sleeps: "count", Neither, "Sleeps of tasks in calls about the object.";
    object_slept_ns: "ns", Neither, "How long tasks slept in calls about the object.";
    critical_path_ns: "ns", Neither, "How long the task does this on the critical path.";
    // Of a description of a workload.
    offered_load: "1", Neither, "CPU time that arrives per unit of time, over the number of CPUs.";
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
    instructions_per_yield: "instructions", Lower,
        "Instructions from one yield to the next, all code included.";
    instructions_per_yield_in_function: "instructions", Lower,
        "The part of these instructions in one function.";
    instructions_in_function: "instructions", Neither,
        "Instructions of a whole workload in one function, on one CPU.";
    instructions_per_yield_of_side: "instructions", Lower,
        "The part of these instructions on one side: kernel, sched_ext, scheduler, tasks.";
    instructions_of_side: "instructions", Neither,
        "Instructions of a whole workload on one side, on one CPU.";
    // Of the callbacks of a scheduler in BPF.
    callback_calls: "count", Neither, "Calls of one callback in the workload, or in one yield.";
    callback_instructions_mean: "instructions", Lower,
        "Instructions of a call of it, with all that it calls, and with interrupts.";
    callback_instructions_p50: "instructions", Lower, "Median of these.";
    callback_instructions_p99: "instructions", Lower, "99th percentile of these.";
    callback_instructions_max: "instructions", Lower, "Largest of these.";
    instructions_per_yield_base: "instructions", Lower,
        "The constant of the fit base + per_doubling * log2 tasks.";
    instructions_per_yield_per_doubling: "instructions", Lower, "The slope of that fit.";
    // Of an image that makes marks.
    window_instructions: "instructions", Lower,
        "Instructions from the begin of a window to its end.";
    window_ns: "ns", Lower, "Time from the begin of a window to its end.";
    event_instructions: "instructions", Neither,
        "Instructions from the image's first mark to the event.";
    event_ns: "ns", Neither, "Time from the image's first mark to the event.";
    // Of two runs that should be equal.
    equal_decisions: "1", Higher,
        "Share of the recorded decisions that the policy also takes, each in the recorded \
         situation.";
    equal_task_states: "1", Higher,
        "Share of the recorded slices and virtual times of tasks that are the policy's too, within \
         10 us of the task's time.";
    equal_dispatches: "1", Higher,
        "Share of the dispatches that come in the same order in the simulation of the described \
         bursts.";
    equal_dispatches_recorded: "1", Higher,
        "Share of the dispatches that come in the same order in the simulation of the recorded \
         bursts.";
    equal_dispatches_itself: "1", Higher,
        "Share of the dispatches that come in the same order in two boots.";
    decision_differences: "1", Lower, "Different decisions of one kind.";
    dispatch_differences: "1", Lower, "Different dispatches of one kind.";
    decisions_until_divergence: "decisions", Neither,
        "Equal decisions before the first difference between two runs.";
    false_verdicts: "1", Lower,
        "Share of rows called better or worse although both candidates are alike.";
    interval_coverage: "1", Neither,
        "Share of the 95 % intervals that include the theoretical value.";
    found_differences: "1", Higher,
        "Share of the differences above margin and replay error that get the right verdict.";
    failed_workloads: "workloads", Lower, "Random workloads on which the policy failed.";
    // Prediction error of each headline metric: (predicted - measured) / measured.
    makespan_ns_prediction_error: "1", Lower, "Error of the predicted makespan_ns.";
    grr_prediction_error: "1", Lower, "Error of the predicted grr.";
    apr_prediction_error: "1", Lower, "Error of the predicted apr.";
    slowdown_p50_prediction_error: "1", Lower, "Error of the predicted slowdown_p50.";
    slowdown_p99_prediction_error: "1", Lower, "Error of the predicted slowdown_p99.";
    run_delay_per_cpu_time_prediction_error: "1", Lower,
        "Error of the predicted run_delay_per_cpu_time.";
    switches_per_cpu_second_prediction_error: "1", Lower,
        "Error of the predicted switches_per_cpu_second.";
    wakeup_latency_ns_p50_prediction_error: "1", Lower,
        "Error of the predicted wakeup_latency_ns_p50.";
    wakeup_latency_ns_p99_prediction_error: "1", Lower,
        "Error of the predicted wakeup_latency_ns_p99.";
    wakeup_latency_ns_max_prediction_error: "1", Lower,
        "Error of the predicted wakeup_latency_ns_max.";
    run_delay_ns_prediction_error: "1", Lower, "Error of the predicted run_delay_ns.";
    switches_prediction_error: "1", Lower, "Error of the predicted switches.";
    migrations_prediction_error: "1", Lower, "Error of the predicted migrations.";
    idle_waste_prediction_error: "1", Lower, "Error of the predicted idle_waste.";
    jain_fairness_prediction_error: "1", Lower, "Error of the predicted jain_fairness.";
    // Of all predicted changes.
    change_signs_right: "1", Higher,
        "Share of the measured changes beyond 2 % whose sign was predicted.";
    change_error_p50: "1", Lower, "Median error of the predicted changes.";
    change_error_p95: "1", Lower, "95th percentile of the errors of the predicted changes.";
    change_intervals_overlap: "1", Higher,
        "Share of the predicted changes whose interval overlaps that of the measured change.";
    kernel_cost_ns: "ns", Lower, "Time of a kernel's work, by call or step.";
    // Of a ready queue alone.
    instructions_per_op: "instructions", Lower,
        "Instructions per operation, without the loop around it.";
    instructions_per_op_gross: "instructions", Lower,
        "Instructions per operation, with the loop around it.";
    data_accesses_per_op: "1", Lower, "Loads and stores per operation.";
    d1_misses_per_op: "1", Lower, "Misses of the first-level data cache per operation.";
    i1_misses_per_op: "1", Lower, "Misses of the first-level instruction cache per operation.";
    ll_misses_per_op: "1", Lower, "Misses of the last-level cache per operation.";
    time_ns_per_op: "ns", Lower, "Time per operation, with the loop.";
    thread_instructions_per_slice: "instructions", Lower,
        "Instructions that one part of a switch of user-level threads adds to a slice.";
    elements_walked_per_op: "1", Lower, "List elements examined per operation.";
    entries_examined_per_op: "1", Lower, "Schedule entries examined per operation.";
    tree_levels_per_op: "1", Lower, "Levels of a tree visited per operation.";
    longest_wait_slices: "slices", Lower,
        "The largest number of slices from one slice of a task to its next.";
    crossover_tasks: "tasks", Neither,
        "The number of tasks from which the other structure is cheaper.";
    cheapest_instructions_per_op: "instructions", Lower,
        "instructions_per_op of the cheapest structure that meets a need.";
    cheapest_time_ns_per_op: "ns", Lower,
        "time_ns_per_op of the cheapest structure that meets a need.";
    // Of a paper.
    check: "1", Neither, "The value that a check of a claim compares.";
    slices: "1", Neither, "Time slices, as in a paper.";
}

impl Metric {
    /// The metric with this id.
    pub fn named(id: &str) -> Option<Metric> {
        let known = Metric::ALL.iter().copied().find(|metric| metric.id() == id);
        known.or_else(|| Printed::named(id).map(Metric::printed))
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.description().unit
    }

    /// Whether one run can dominate the mean: an extreme, an extreme quantile, or a mean of ratios,
    /// whose variance is infinite for exponential demand. Medians and ranks describe it better.
    pub fn is_heavy_tailed(self) -> bool {
        let is_ratio = matches!(self, Metric::apr | Metric::job_apr | Metric::starvation_ns);
        let name = match self {
            Metric::printed(printed) => printed.name(),
            metric => metric.id(),
        };
        is_ratio || ["max", "p95", "p99"].iter().any(|end| name.rsplit('_').next() == Some(end))
    }

    /// The metric for the prediction error of this metric, if predictions of it are tested.
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
            let description = format!("{summary} Unit: {unit}.");
            json_schema!({ "const": metric.id(), "description": description })
        };
        let printed = json_schema!({
            "type": "string",
            "pattern": "^printed:[A-Za-z0-9_.-]+:[^:]+:(lower|higher|neither)$",
            "description": "A metric that the command prints: its name, unit and better direction.",
        });
        let all: Vec<_> = Metric::ALL.iter().map(one).chain([printed]).collect();
        json_schema!({ "description": "What a number measures.", "oneOf": all })
    }
}

/// The metric with an id of the simulator's, the host's or an open system's catalogue.
///
/// # Panics
/// If it is missing from the list; a test compares the lists.
pub fn registered(id: &str) -> Metric {
    Metric::named(id).unwrap_or_else(|| panic!("the metric {id} is not in the list of all metrics"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "the metric makespan is not in the list")]
    fn a_metric_that_is_not_registered_cannot_be_printed() {
        registered("makespan");
    }

    #[test]
    fn every_metric_is_found_by_its_id_and_described() {
        for &metric in Metric::ALL {
            let Description { unit, summary, .. } = metric.description();
            assert_eq!(Metric::named(metric.id()), Some(metric));
            assert!(!unit.is_empty() && summary.ends_with('.'), "{metric}");
            assert!(
                !metric.id().contains("_ns") || unit == "ns" || unit == "1",
                "{metric} is in {unit}"
            );
        }
        assert_eq!(Metric::named("makespan"), None);
    }
}
