//! Formats numbers for people.

use crate::{Metric, Printed, Row, Verdict};
use phases::Nanos;
use program::no_such;

/// The metrics in tables for people, with short titles. JSON and CSV have the others too.
///
/// No mean of ratios is among them, because a few short tasks dominate it. Also no metric is among
/// them that a policy wins by its construction.
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

/// What is measured of the callbacks of a scheduler in BPF, each with its title.
pub const CALLBACKS: [(Metric, &str); 5] = [
    (Metric::callback_calls, "calls"),
    (Metric::callback_instructions_mean, "mean"),
    (Metric::callback_instructions_p50, "p50"),
    (Metric::callback_instructions_p99, "p99"),
    (Metric::callback_instructions_max, "max"),
];

/// The metrics in tables for people, each with its title.
pub fn headline() -> impl Iterator<Item = (Metric, &'static str)> {
    HEADLINE.iter().filter_map(|&(id, title)| Some((Metric::named(id)?, title)))
}

/// The metric with this name: its id, its title in tables (`wake_p99` of "wake p99"), or what a
/// command prints, one of `printed`.
///
/// # Errors
/// The nearest name.
pub fn find_metric(
    name: &str,
    printed: impl IntoIterator<Item = &'static Printed>,
) -> Result<Metric, String> {
    let short = |title: &str| title.to_lowercase().replace('.', "").replace(['/', ' '], "_");
    let ids = Metric::ALL.iter().map(|metric| (metric.id().to_string(), *metric));
    let titles = headline().map(|(metric, title)| (short(title), metric));
    let printed = printed.into_iter().flat_map(|printed| {
        [printed.name(), printed.id()].map(|name| (name.to_string(), Metric::printed(printed)))
    });
    let known: Vec<(String, Metric)> = ids.chain(titles).chain(printed).collect();
    if let Some((_, metric)) = known.iter().find(|(known, _)| known == name) {
        return Ok(*metric);
    }
    let names: Vec<String> = known.into_iter().map(|(name, _)| name).collect();
    Err(no_such("metric", name, &names, "docs/results.schema.json describes all of them."))
}

/// Whether tables for people show this metric.
pub fn is_headline(metric: Metric) -> bool {
    HEADLINE
        .iter()
        .map(|(id, _)| *id)
        .chain(open_headline().map(|(id, _)| id))
        .any(|id| id == metric.id())
}

/// The metrics of a stochastic workload in tables for people: id and title.
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

/// A row's value for a table: with its spread if that is above 1 %, and with the mark of its
/// verdict.
pub fn open_cell(row: &Row) -> String {
    let Some(value) = row.value else { return "- ".to_string() };
    let half_width =
        row.ci_low.zip(row.ci_high).map_or(0.0, |(low, high)| (high - low) / 2.0 / value.abs());
    let spread = if half_width > 0.01 && half_width.is_finite() {
        format!(" ±{:.0}%", (100.0 * half_width).ceil())
    } else {
        String::new()
    };
    format!("{}{spread} {}", quantity(value, row.unit()), mark(row))
}

/// The mark of a verdict, with the effect size.
fn mark(row: &Row) -> String {
    match row.verdict {
        Some(Verdict::Better | Verdict::Worse) => row
            .effect
            .map_or_else(|| signed_difference(row), |effect| format!("{:+.0}%", 100.0 * effect)),
        Some(Verdict::Equivalent) => "=".to_string(),
        Some(Verdict::Undecided) => "~".to_string(),
        _ => " ".to_string(),
    }
}

/// `+1.20ms`: a difference in the metric's unit, for rows where a share of the baseline has no
/// meaning.
pub fn signed_difference(row: &Row) -> String {
    let Some(difference) = row.difference else { return "from 0".to_string() };
    format!(
        "{}{}",
        if difference < 0.0 { '-' } else { '+' },
        quantity(difference.abs(), row.unit())
    )
}

/// How many nanoseconds a unit of time has; 0 for other units.
pub fn nanoseconds(unit: &str) -> f64 {
    match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => 0.0,
    }
}

/// A value with its unit, in three or four digits.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Nanos(value.round().max(0.0) as u64).to_string(),
        "us" | "ms" | "s" => quantity(value * nanoseconds(unit), "ns"),
        "1" => format!("{value:.4}"),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_headline_metric_is_in_the_list_and_its_prediction_is_tested() {
        assert_eq!(headline().count(), HEADLINE.len());
        assert!(headline().all(|(metric, _)| metric.prediction_error().is_some()));
    }

    /// `initial:rr` never migrates, and a FIFO policy rarely switches. Neither number shows that
    /// the policy is good.
    #[test]
    fn no_headline_metric_is_a_mean_of_ratios_or_favours_one_design() {
        let refused = [
            "apr",
            "job_apr",
            "migrations",
            "migration_rate",
            "migrations_per_cpu_second",
            "switches",
            "dispatches",
        ];
        let shown =
            headline().map(|(metric, _)| metric.id()).chain(open_headline().map(|(id, _)| id));
        let wrong: Vec<&str> = shown.filter(|id| refused.contains(id)).collect();
        assert_eq!(wrong, Vec::<&str>::new());
    }

    #[test]
    fn a_difference_without_a_share_is_shown_with_its_unit() {
        let row = |effect, difference| Row {
            value: Some(2e6),
            verdict: Some(Verdict::Worse),
            effect,
            difference: Some(difference),
            ..Row::new(crate::World::Sim, Metric::wakeup_latency_ns_p99)
        };
        assert_eq!(mark(&row(Some(0.5), 1e6)), "+50%");
        assert_eq!(
            [mark(&row(None, 1_990_000.0)), mark(&row(None, -500.0))],
            ["+1.99ms", "-500ns"]
        );
    }

    #[test]
    fn quantities_carry_their_unit() {
        assert_eq!(quantity(1_500_000.0, "ns"), "1.50ms");
        assert_eq!(quantity(0.25, "1"), "0.2500");
        assert_eq!(quantity(12.0, "count"), "12");
        assert_eq!(quantity(12.25, "count"), "12.2");
    }
}
