//! The agreement of some boots with the simulator as a table: real, simulated, difference, and
//! whether it is within the limit.

use super::{Bursts, KEPT, Own, Pair};
use results::{Align, Metric, Table, quantity};
use schedsim::live::{Divergence, Judgement};
use schedsim::{Machine, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;
use worlds::vm::conformance::{Conformance, Difference};

/// Minimum share of decisions, or of dispatches, that must match.
const EQUAL: f64 = 0.99;
/// Maximum error of a task's CPU share.
const SHARE_ERROR: f64 = 0.02;

/// A number of each boot, and its simulated value.
struct Both {
    real: Vec<f64>,
    simulated: Vec<f64>,
}

impl Both {
    fn of(
        boots: &[&Pair],
        real: impl Fn(&Pair) -> Option<f64>,
        simulated: impl Fn(&Pair) -> Option<f64>,
    ) -> Option<Both> {
        let real = boots.iter().map(|pair| real(pair)).collect::<Option<Vec<f64>>>()?;
        Some(Both {
            real,
            simulated: boots.iter().map(|pair| simulated(pair)).collect::<Option<Vec<f64>>>()?,
        })
    }

    /// The difference of the means.
    fn apart(&self) -> f64 {
        (mean(&self.real) - mean(&self.simulated)).abs()
    }

    fn line(
        &self,
        title: String,
        allowed: f64,
        show: impl Fn(f64) -> String + Copy,
        goals: &mut Goals,
    ) -> [String; 6] {
        let off = self.apart();
        let verdict = goals.held(off <= allowed, &title);
        [
            title,
            spread(&self.real, show),
            spread(&self.simulated, show),
            show(off),
            show(allowed),
            verdict,
        ]
    }
}

/// The goals for an agreement: shares, latencies and decisions. Orders of dispatches are shown, but
/// are not a goal (ADR 8).
#[derive(Default)]
pub(super) struct Goals {
    /// The missed goals.
    pub missed: Vec<String>,
}

impl Goals {
    /// Records whether a goal was reached, and returns the word for it.
    fn held(&mut self, holds: bool, what: &str) -> String {
        if !holds {
            self.missed.push(what.to_string());
        }
        if holds { "holds" } else { "does not hold" }.to_string()
    }
}

/// The agreement of `boots` as text; `own` is their agreement with each other.
pub(super) fn agreement(boots: &[&Pair], own: &[Own], goals: &mut Goals) -> String {
    let Some(first) = boots.first() else { return String::new() };
    let mut table = Table::new(
        ["", "real", "simulated", "off by", "allowed", ""].map(|title| (title, Align::Left)),
    );
    let share = |task: usize| {
        Both::of(
            boots,
            |pair| Some(pair.recorded.get(task)?.1),
            |pair| Some(pair.shares().nth(task)?.1),
        )
    };
    let tasks =
        first.shares().enumerate().filter_map(|(task, (name, _))| Some((name, share(task)?)));
    if let Some((task, both)) =
        tasks.max_by(|(_, one), (_, other)| one.apart().total_cmp(&other.apart()))
    {
        table.row(both.line(format!("CPU share of {task}"), SHARE_ERROR, percent, goals));
    }
    let slice = if first.policy == "cfs" { Nanos(3_000_000) } else { Nanos(700_000) };
    // Events at the start gate are not wakeups of the workload.
    let wakeups = Pair::value(&first.simulated, Metric::wakeups);
    let wakes = wakeups.is_some_and(|wakeups| wakeups > 2.0 * first.shares().count() as f64);
    let latencies = [
        ("median wakeup latency", Metric::wakeup_latency_ns_p50),
        ("99th percentile of it", Metric::wakeup_latency_ns_p99),
    ];
    for (title, metric) in latencies.into_iter().filter(|_| wakes) {
        let both = Both::of(
            boots,
            |pair| Pair::value(&pair.real, metric),
            |pair| Pair::value(&pair.simulated, metric),
        );
        let Some(both) = both else { continue };
        let is_median = metric == Metric::wakeup_latency_ns_p50;
        let allowed =
            if is_median { (0.2 * mean(&both.real)).max(5_000.0) } else { slice.0 as f64 };
        table.row(both.line(title.to_string(), allowed, |value| quantity(value, "ns"), goals));
    }
    let mut differences = String::new();
    decisions(boots, &mut table, &mut differences, goals);
    let own: Vec<f64> = own.iter().map(|own| own.share).collect();
    [Bursts::Described, Bursts::Recorded]
        .into_iter()
        .for_each(|bursts| orders(boots, bursts, &own, &mut table, &mut differences));
    if !own.is_empty() {
        let _ = writeln!(
            differences,
            "In two boots of the kernel {} of the dispatches are equal.",
            spread(&own, percent)
        );
    }
    let Machine { switch_cost, wake_cost, idle_exit, interruption, timer_cost, .. } =
        &first.machine;
    let interruption = if *interruption > Nanos::ZERO {
        format!(", an interruption {interruption}")
    } else {
        String::new()
    };
    let many = if boots.len() == 1 { String::new() } else { format!(", {} boots", boots.len()) };
    format!(
        "\n{}, simulated, against {}{many}; the simulated machine has the guest's costs: switch \
         {switch_cost}, a waking {wake_cost}, leaving idle {idle_exit}, a timer \
         {timer_cost}{interruption}\n\n{table}\n{differences}",
        first.policy, first.name
    )
}

/// Compares each decision of the kernel with the policy's, in the kernel's situation.
fn decisions(boots: &[&Pair], table: &mut Table, differences: &mut String, goals: &mut Goals) {
    let judgements: Vec<&Judgement> =
        boots.iter().filter_map(|pair| pair.judgement.as_ref()).collect();
    if judgements.is_empty() {
        return;
    }
    let shares: Vec<f64> = judgements.iter().map(|judgement| judgement.share()).collect();
    table.row([
        "decisions, one by one".to_string(),
        spread_of_counts(judgements.iter().map(|judgement| judgement.decisions)),
        String::new(),
        format!("{} equal", spread(&shares, percent)),
        percent(EQUAL),
        goals.held(mean(&shares) >= EQUAL, "decisions"),
    ]);
    let kept: Option<Vec<f64>> =
        judgements.iter().map(|judgement| judgement.kept_alike(KEPT)).collect();
    if let Some(kept) = kept {
        table.row([
            "slices and virtual times".to_string(),
            spread_of_counts(judgements.iter().map(|judgement| judgement.states)),
            String::new(),
            format!("{} equal", spread(&kept, percent)),
            percent(EQUAL),
            goals.held(mean(&kept) >= EQUAL, "slices and virtual times"),
        ]);
    }
    if let Some(classes) =
        by_class(judgements.iter().flat_map(|judgement| judgement.by_class()), Divergence::name)
    {
        let _ = writeln!(differences, "Decisions in which the simulated policy differs: {classes}");
    }
}

/// Compares the orders of dispatches.
fn orders(
    boots: &[&Pair],
    bursts: Bursts,
    own: &[f64],
    table: &mut Table,
    differences: &mut String,
) {
    let of_all = boots
        .iter()
        .flat_map(|pair| &pair.conformance)
        .filter(|(of, _)| *of == bursts)
        .map(|(_, of)| of);
    let of_all: Vec<&Conformance> = of_all.collect();
    if of_all.is_empty() {
        return;
    }
    let (allowed, why) = allowed(own);
    let shares: Vec<f64> = of_all.iter().map(|conformance| conformance.share()).collect();
    let turns = |of: fn(&Conformance) -> usize| {
        format!("{} turns", spread_of_counts(of_all.iter().map(|conformance| of(conformance))))
    };
    table.row([
        bursts.names().1.to_string(),
        turns(|conformance| conformance.real),
        turns(|conformance| conformance.simulated),
        format!("{} equal", spread(&shares, percent)),
        percent(allowed) + why,
        if mean(&shares) >= allowed { "reaches it" } else { "does not reach it" }.to_string(),
    ]);
    let all = of_all
        .iter()
        .flat_map(|conformance| &conformance.differences)
        .map(|(class, count)| (*class, *count));
    if let Some(classes) = by_class(all, Difference::name) {
        let _ = writeln!(differences, "Dispatches that differ in {}: {classes}", bursts.names().1);
    }
}

/// The number of differences of each class, in words; `None` if there are none.
fn by_class<C: Ord + Copy>(
    counts: impl Iterator<Item = (C, usize)>,
    name: fn(C) -> &'static str,
) -> Option<String> {
    let mut classes: BTreeMap<C, usize> = BTreeMap::new();
    counts.for_each(|(class, count)| *classes.entry(class).or_default() += count);
    let words: Vec<String> =
        classes.into_iter().map(|(class, count)| format!("{count} {}", name(class))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// The minimum share of equal dispatches, and its reason: at most the share of the two boots that
/// differ most.
fn allowed(own: &[f64]) -> (f64, &'static str) {
    let least = own.iter().copied().fold(f64::INFINITY, f64::min);
    if least < EQUAL { (least, ", as two boots") } else { (EQUAL, "") }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The mean, and the smallest and largest value if they differ.
fn spread(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let (least, most) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &value| {
            (least.min(value), most.max(value))
        });
    let (least, most) = (show(least), show(most));
    if least == most { least } else { format!("{} ({least} to {most})", show(mean(values))) }
}

/// The smallest and the largest count.
fn spread_of_counts(counts: impl Iterator<Item = usize> + Clone) -> String {
    match (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0)) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_may_differ_from_a_boot_as_much_as_another_boot_does() {
        assert_eq!(allowed(&[]), (0.99, ""));
        assert_eq!(allowed(&[1.0, 0.995]), (0.99, ""));
        assert_eq!(allowed(&[1.0, 0.7, 0.8]), (0.7, ", as two boots"));
    }

    #[test]
    fn several_boots_show_mean_and_range_and_one_boot_its_value() {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        assert_eq!(spread(&[0.25], percent), "25.0%");
        assert_eq!(spread(&[0.25, 0.35, 0.30], percent), "30.0% (25.0% to 35.0%)");
        assert_eq!(
            (spread_of_counts([5, 5].into_iter()), spread_of_counts([7, 5].into_iter())),
            ("5".to_string(), "5 to 7".to_string())
        );
        assert!(Both { real: vec![0.2, 0.4], simulated: vec![0.1, 0.3] }.apart() - 0.1 < 1e-9);
    }
}
