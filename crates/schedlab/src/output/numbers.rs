//! Numbers for people.

use super::Row;
use results::Verdict;
use schedsim::Nanos;
use schedsim::metrics::{CATALOGUE, Metric};

/// The metrics that tables for people show, with short titles; the others are in JSON and CSV.
///
/// None is a mean of ratios, which a few short tasks rule, and none is one that a policy wins by its construction.
const HEADLINE: [(&str, &str); 11] = [
    ("makespan_ns", "makespan"),
    ("grr", "GRR"),
    ("slowdown_p50", "slowd. p50"),
    ("slowdown_p99", "slowd. p99"),
    ("wakeup_latency_ns_p50", "wake p50"),
    ("wakeup_latency_ns_p99", "wake p99"),
    ("wakeup_latency_ns_max", "wake max"),
    ("run_delay_per_cpu_time", "wait/CPU"),
    ("switches_per_cpu_second", "switches/s"),
    ("idle_waste", "idle waste"),
    ("jain_fairness", "Jain"),
];

/// The metrics that tables for people show, each with its title.
pub fn headline() -> impl Iterator<Item = (&'static Metric, &'static str)> {
    HEADLINE.iter().filter_map(|&(id, title)| Some((CATALOGUE.iter().find(|metric| metric.id == id)?, title)))
}

/// Whether tables for people show it.
pub fn is_headline(metric: results::Metric) -> bool {
    HEADLINE.iter().map(|(id, _)| *id).chain(open_headline().map(|(id, _)| id)).any(|id| id == metric.id())
}

/// The metrics of a stochastic workload that tables for people show, by id, each with its title.
pub fn open_headline() -> impl Iterator<Item = (&'static str, &'static str)> {
    [
        ("grr", "GRR"),
        ("ngrr", "NGRR"),
        ("slowdown_p50", "slowd. p50"),
        ("slowdown_p95", "slowd. p95"),
        ("slowdown_p99", "slowd. p99"),
        ("utilisation", "utilisation"),
        ("idle_waste", "idle waste"),
        ("cpu_inflation", "inflation"),
        ("population", "population"),
    ]
    .into_iter()
}

/// A row's value for a table: with its spread where that is above 1 %, and the mark of its verdict.
pub fn open_cell(row: &Row) -> String {
    let Some(value) = row.value else { return "- ".to_string() };
    let half_width = row.ci_low.zip(row.ci_high).map_or(0.0, |(low, high)| (high - low) / 2.0 / value.abs());
    let spread =
        if half_width > 0.01 && half_width.is_finite() { format!(" ±{:.0}%", (100.0 * half_width).ceil()) } else { String::new() };
    format!("{}{spread} {}", quantity(value, row.unit()), mark(row))
}

/// What was decided, with its size.
fn mark(row: &Row) -> String {
    match row.verdict {
        Some(Verdict::Better | Verdict::Worse) => row.effect.map_or("from 0".to_string(), |effect| format!("{:+.0}%", 100.0 * effect)),
        Some(Verdict::Equivalent) => "=".to_string(),
        Some(Verdict::Undecided) => "~".to_string(),
        _ => " ".to_string(),
    }
}

/// `1 CPU`, `2 CPUs`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A value with its unit, three or four digits.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Nanos(value.round().max(0.0) as u64).to_string(),
        "1" => format!("{value:.4}"),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_headline_metric_is_in_the_catalogue() {
        assert_eq!(headline().count(), HEADLINE.len());
    }

    /// `initial:rr` never migrates, and a policy that serves in order of arrival switches seldom: neither shows that it is good.
    #[test]
    fn no_headline_is_a_mean_of_ratios_or_won_by_construction() {
        let refused = ["apr", "job_apr", "migrations", "migration_rate", "migrations_per_cpu_second", "switches", "dispatches"];
        let shown = headline().map(|(metric, _)| metric.id).chain(open_headline().map(|(id, _)| id));
        let wrong: Vec<&str> = shown.filter(|id| refused.contains(id)).collect();
        assert_eq!(wrong, Vec::<&str>::new());
    }

    #[test]
    fn quantities_carry_their_unit() {
        assert_eq!(quantity(1_500_000.0, "ns"), "1.50ms");
        assert_eq!(quantity(0.25, "1"), "0.2500");
        assert_eq!(quantity(12.0, "count"), "12");
        assert_eq!(quantity(12.25, "count"), "12.2");
    }
}
