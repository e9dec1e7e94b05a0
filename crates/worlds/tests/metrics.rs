//! Compares the list of all metrics with what the worlds measure.

use results::registered;
use worlds::host::measured::METRICS;

#[test]
fn a_metric_of_this_machine_is_in_the_list_of_all_metrics() {
    // These have another better direction for a program on this machine than in a simulation, where
    // CPU time is given and migrations have a cost.
    const JUDGED_OTHERWISE: [&str; 2] = ["cpu_time_ns", "migrations"];
    for metric in &METRICS {
        let known = registered(metric.id).description();
        assert_eq!(known.unit, metric.unit, "{}", metric.id);
        assert_eq!(
            known.direction != metric.better,
            JUDGED_OTHERWISE.contains(&metric.id),
            "{}",
            metric.id
        );
    }
}
