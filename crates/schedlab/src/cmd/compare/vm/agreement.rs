//! How far the simulated scheduler is from the real one, and whether that is within what is asked of it.
//!
//! Whether the simulated policy decides as the kernel did is asked twice: of each decision in the kernel's own situation, and of the orders in which both ran the tasks, where one difference has
//! others behind it.
//!
//! Where several boots differ in nothing but how long the kernel was left alone, means are compared, and of orders also how far the kernel agrees with itself: where sums of
//! run times decide, a microsecond at the begin makes another order of the rest, and no simulation can be nearer to one boot than another boot is.

use super::closed::{Bursts, Outcome};
use crate::output::{self, Align, Row, Table, quantity};
use crate::vm::conformance::{Conformance, Difference};
use schedsim::live::{Judgement, Otherwise};
use schedsim::metrics::CATALOGUE;
use schedsim::{Machine, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A boot, and the same simulated.
pub(super) struct Boot {
    pub real: Outcome,
    /// The shares of CPU time while events were recorded, as the simulated tasks arrive as those of that run did.
    pub recorded: Vec<(String, f64)>,
    /// Whose turns the kernel's were; empty where there are several CPUs.
    pub order: Vec<u32>,
    pub simulated: Outcome,
    pub machine: Machine,
}

/// So many of a hundred decisions, or turns, shall be equal.
const EQUAL: f64 = 0.99;
/// By so much at most a share of the CPU time may be off.
const OFF: f64 = 0.02;

/// The agreement of some boots of the case that is called `name`, which agree like `own` with each other, as text.
pub(super) fn agreement(name: &str, boots: &[Boot], own: &[Own]) -> String {
    let Some(Boot { simulated: first, machine, .. }) = boots.first() else { return String::new() };
    let mut table = Table::new(["", "real", "simulated", "off by", "allowed", ""].map(|title| (title, Align::Left)));
    let each = |of: &dyn Fn(&Boot) -> Option<f64>| -> Option<Vec<f64>> { boots.iter().map(of).collect() };
    let worst = (0..first.shares.len())
        .filter_map(|task| {
            let real = each(&|boot| boot.recorded.get(task).map(|(_, share)| *share))?;
            Some((task, real, each(&|boot| boot.simulated.shares.get(task).map(|(_, share)| *share))?))
        })
        .max_by(|(_, real, simulated), (_, other_real, other)| apart(real, simulated).total_cmp(&apart(other_real, other)));
    if let Some((task, real, simulated)) = worst {
        let off = apart(&real, &simulated);
        let cells = [spread(&real, percent), spread(&simulated, percent), percent(off), percent(OFF), verdict(off <= OFF)];
        table.row(std::iter::once(format!("CPU share of {}", first.shares[task].0)).chain(cells));
    }
    let slice = if first.policy == "cfs" { Nanos(3_000_000) } else { Nanos(700_000) };
    let of = |outcome: &Outcome, id: &str| CATALOGUE.iter().find(|metric| metric.id == id).and_then(|metric| outcome.value(metric).0);
    // Those at the gate are no wakings of the workload's.
    let wakes = of(first, "wakeups").is_some_and(|wakeups| wakeups > 2.0 * first.shares.len() as f64);
    let latencies = [("median wakeup latency", "wakeup_latency_ns_p50"), ("99th percentile of it", "wakeup_latency_ns_p99")];
    for (title, id) in latencies.into_iter().filter(|_| wakes) {
        let values = each(&|boot| of(&boot.real, id)).zip(each(&|boot| of(&boot.simulated, id)));
        let Some((real, simulated)) = values else { continue };
        let allowed = if id.ends_with("p50") { (0.2 * mean(&real)).max(5_000.0) } else { slice.0 as f64 };
        let (off, time) = (apart(&real, &simulated), |value| quantity(value, "ns"));
        let cells = [spread(&real, time), spread(&simulated, time), time(off), time(allowed), verdict(off <= allowed)];
        table.row(std::iter::once(title.to_string()).chain(cells));
    }
    let mut differences = String::new();
    decisions(boots, &mut table, &mut differences);
    let own: Vec<f64> = own.iter().map(|own| own.share).collect();
    let (allowed, why) = allowed(&own);
    for bursts in [Bursts::Described, Bursts::Recorded] {
        let of_all: Vec<&Conformance> =
            boots.iter().flat_map(|boot| &boot.simulated.conformance).filter(|(of, _)| *of == bursts).map(|(_, of)| of).collect();
        if of_all.is_empty() {
            continue;
        }
        let shares: Vec<f64> = of_all.iter().map(|conformance| conformance.share()).collect();
        let turns = |of: fn(&Conformance) -> usize| format!("{} turns", spread_of_counts(of_all.iter().map(|conformance| of(conformance))));
        table.row([
            bursts.names().1.to_string(),
            turns(|conformance| conformance.real),
            turns(|conformance| conformance.simulated),
            format!("{} equal", spread(&shares, percent)),
            percent(allowed) + why,
            verdict(mean(&shares) >= allowed),
        ]);
        let all = of_all.iter().flat_map(|conformance| &conformance.differences).map(|(class, count)| (*class, *count));
        if let Some(classes) = by_class(all, Difference::name) {
            let _ = writeln!(differences, "Turns that differ in {}: {classes}", bursts.names().1);
        }
    }
    if !own.is_empty() {
        let _ = writeln!(differences, "Of two boots of the kernel {} of the turns are equal.", spread(&own, percent));
    }
    let Machine { switch_cost, wake_cost, idle_exit, interruption, timer_cost, .. } = machine;
    let interruption = if *interruption > Nanos::ZERO { format!(", an interruption {interruption}") } else { String::new() };
    let many = match boots.len() {
        1 => String::new(),
        count => format!(", {count} boots"),
    };
    format!(
        "{} against {name}{many}; the simulated machine has the guest's costs: switch {switch_cost}, a waking {wake_cost}, leaving idle {idle_exit}, a timer {timer_cost}{interruption}\n\n{table}\n{differences}",
        first.name
    )
}

/// Whether the policy would have taken the decisions that the kernel took, each in the kernel's situation.
fn decisions(boots: &[Boot], table: &mut Table, differences: &mut String) {
    let judgements: Vec<_> = boots.iter().filter_map(|boot| boot.simulated.judgement.as_ref()).collect();
    if let Some(rule) = judgements.iter().find_map(|judgement| judgement.as_ref().err()) {
        let _ = writeln!(differences, "Decisions are not judged: {} {rule}.", boots[0].simulated.name);
    }
    let judgements: Vec<&Judgement> = judgements.into_iter().flatten().collect();
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
        verdict(mean(&shares) >= EQUAL),
    ]);
    if let Some(classes) = by_class(judgements.iter().flat_map(|judgement| judgement.differences()), Otherwise::name) {
        let _ = writeln!(differences, "Decisions that the simulated policy would have taken otherwise: {classes}");
    }
}

/// How many there are of each class, in words; `None` if there are none.
fn by_class<C: Ord + Copy>(counts: impl Iterator<Item = (C, usize)>, name: fn(C) -> &'static str) -> Option<String> {
    let mut classes: BTreeMap<C, usize> = BTreeMap::new();
    counts.for_each(|(class, count)| *classes.entry(class).or_default() += count);
    let words: Vec<String> = classes.into_iter().map(|(class, count)| format!("{count} {}", name(class))).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn verdict(holds: bool) -> String {
    if holds { "holds" } else { "does not hold" }.to_string()
}

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// Two boots, by their place, and what share of their turns is equal.
pub(super) struct Own {
    boots: [usize; 2],
    share: f64,
}

impl Own {
    /// Each two of `boots` whose orders are known.
    pub fn of(boots: &[Boot]) -> Vec<Own> {
        let pairs = (0..boots.len()).flat_map(|one| (one + 1..boots.len()).map(move |other| [one, other]));
        let known = pairs.filter(|pair| pair.iter().all(|&boot| !boots[boot].order.is_empty()));
        let own = |pair: [usize; 2]| Own { boots: pair, share: Conformance::of(&boots[pair[0]].order, &boots[pair[1]].order).share() };
        known.map(own).collect()
    }

    /// As a result of these boots.
    pub fn row(&self, boots: &[Boot]) -> Row {
        let [one, other] = self.boots;
        boots[one]
            .real
            .row(output::Metric::equal_dispatches_itself, Some(self.share), None)
            .at("boot", format!("{},{}", one + 1, other + 1))
    }
}

/// What share of the turns shall be equal where two boots have these in common, and why: no more than the two that differ most.
fn allowed(own: &[f64]) -> (f64, &'static str) {
    let least = own.iter().copied().fold(f64::INFINITY, f64::min);
    if least < EQUAL { (least, ", as two boots") } else { (EQUAL, "") }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How far the means are apart.
fn apart(real: &[f64], simulated: &[f64]) -> f64 {
    (mean(real) - mean(simulated)).abs()
}

/// The mean, and the least and the most where they differ.
fn spread(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &value| (least.min(value), most.max(value)));
    let (least, most) = (show(least), show(most));
    if least == most { least } else { format!("{} ({least} to {most})", show(mean(values))) }
}

/// From the least to the most.
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
    fn a_simulation_need_not_be_nearer_to_a_boot_than_another_boot_is() {
        assert_eq!(allowed(&[]), (0.99, ""));
        assert_eq!(allowed(&[1.0, 0.995]), (0.99, ""));
        assert_eq!(allowed(&[1.0, 0.7, 0.8]), (0.7, ", as two boots"));
    }

    #[test]
    fn of_several_boots_mean_and_range_are_shown_and_of_one_what_it_was() {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        assert_eq!(spread(&[0.25], percent), "25.0%");
        assert_eq!(spread(&[0.25, 0.35, 0.30], percent), "30.0% (25.0% to 35.0%)");
        assert_eq!((spread_of_counts([5, 5].into_iter()), spread_of_counts([7, 5].into_iter())), ("5".to_string(), "5 to 7".to_string()));
        assert!(apart(&[0.2, 0.4], &[0.1, 0.3]) - 0.1 < 1e-9);
    }
}
