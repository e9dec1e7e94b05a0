//! Words for metrics and numbers in sentences.

use results::Metric;

/// The noun for a metric.
pub fn noun(metric: Metric) -> String {
    let known = match metric {
        Metric::makespan_ns => "makespan",
        Metric::grr => "global response ratio",
        Metric::ngrr => "normalised response ratio",
        Metric::apr => "mean response ratio",
        Metric::run_delay_ns => "run delay",
        Metric::jain_fairness => "fairness (Jain's index)",
        Metric::throughput => "throughput",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_string();
    }
    // Ids are in snake_case: the name, the unit, then the statistic.
    let words = metric.id().replace("_ns", "").replace('_', " ");
    let words =
        words.strip_prefix("task ").or_else(|| words.strip_prefix("program ")).unwrap_or(&words);
    match words.rsplit_once(' ') {
        Some((rest, "max")) => format!("longest {rest}"),
        Some((rest, "mean")) => format!("mean {rest}"),
        Some((rest, "p50")) => format!("median {rest}"),
        Some((rest, statistic))
            if statistic.starts_with('p') && statistic[1..].parse::<u8>().is_ok() =>
        {
            format!("{rest} ({}th percentile)", &statistic[1..])
        }
        _ => words.to_string(),
    }
}

/// The words for less, for more, and for `times as …`.
pub fn by(metric: Metric) -> (&'static str, &'static str, &'static str) {
    match metric.unit() {
        "ns" => ("shorter", "longer", "long"),
        "count" | "tasks" => ("less", "more", "much"),
        _ => ("lower", "higher", "high"),
    }
}

/// `12 %`, with one more digit below 2 %.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() < 1.95 {
        true => format!("{} %", (10.0 * percent).round() / 10.0 + 0.0),
        false => format!("{:.0} %", percent),
    }
}

/// The factor of a growth by `share`.
pub fn times(share: f64) -> String {
    let factor = 1.0 + share;
    if factor < 9.95 { format!("{factor:.1}") } else { format!("{factor:.0}") }
}

/// `a, b and c`.
pub fn and(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_readable_names() {
        for (metric, name) in [
            (Metric::wakeup_latency_ns_p99, "wakeup latency (99th percentile)"),
            (Metric::wakeup_latency_ns_p50, "median wakeup latency"),
            (Metric::wakeup_latency_ns_max, "longest wakeup latency"),
            (Metric::task_run_delay_ns, "run delay"),
            (Metric::makespan_ns, "makespan"),
            (Metric::response_time_ns_mean, "mean response time"),
        ] {
            assert_eq!(noun(metric), name);
        }
        for metric in Metric::ALL {
            assert!(!noun(*metric).contains('_'), "{metric}");
        }
    }

    #[test]
    fn small_shares_have_one_more_digit() {
        assert_eq!(
            [0.12, 0.019, -0.001, 0.0, 0.0204, 1.5].map(percent),
            ["12 %", "1.9 %", "-0.1 %", "0 %", "2 %", "150 %"]
        );
        assert_eq!([1.0, 1.04, 11.4].map(times), ["2.0", "2.0", "12"]);
    }
}
