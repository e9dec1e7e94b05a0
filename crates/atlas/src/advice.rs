//! Advice on which structure to use, from the measured rows.

use super::structure::{self, Service, StrideRule};
use results::{Metric, Row, Verdict};

/// A possible requirement on a ready queue.
struct Need {
    name: &'static str,
    words: &'static str,
    meets: fn(Service, StrideRule) -> bool,
}

const NEEDS: [Need; 4] = [
    Need { name: "alike", words: "all tasks alike", meets: |service, _| service == Service::Alike },
    Need {
        name: "halving",
        words: "each level at half the rate of the one before",
        meets: |service, strides| {
            service == Service::HalvingRates
                || (service == Service::AnyRates && strides == StrideRule::Powers)
        },
    },
    Need { name: "rates", words: "any rates", meets: |service, _| service == Service::AnyRates },
    Need {
        name: "strict",
        words: "strict priorities",
        meets: |service, _| service == Service::Strict,
    },
];

/// For every need and number of tasks a row with the cheapest structure; its note gives the reason.
pub fn advise(rows: &[Row], strides: StrideRule) -> Vec<Row> {
    let rows: Vec<Row> =
        rows.iter().filter(|row| row.point.get("build").is_none()).cloned().collect();
    let rows = rows.as_slice();
    let measured =
        |metric: Metric| rows.iter().any(|row| row.metric == metric && row.value.is_some());
    let known = [
        (Metric::instructions_per_op, Metric::cheapest_instructions_per_op),
        (Metric::time_ns_per_op, Metric::cheapest_time_ns_per_op),
    ];
    let Some((metric, cheapest)) = known.into_iter().find(|(metric, _)| measured(*metric)) else {
        return Vec::new();
    };
    let mut workloads: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == metric) {
        if !workloads.contains(&row.workload.as_str()) {
            workloads.push(&row.workload);
        }
    }
    let advise = |(workload, need): (&str, &Need)| {
        let mut candidates: Vec<&Row> = rows
            .iter()
            .filter(|row| row.metric == metric && row.workload == workload && row.value.is_some())
            .collect();
        candidates.retain(|row| {
            structure::find(&row.candidate)
                .is_some_and(|found| (need.meets)(found.service, strides) && found.is_ours())
        });
        candidates
            .sort_by(|a, b| a.value.partial_cmp(&b.value).unwrap_or(std::cmp::Ordering::Equal));
        let (&best, others) = candidates.split_first()?;
        let note = Some(format!("for {}: {}", need.words, reason(best, others, rows)));
        Some(
            Row { metric: cheapest, verdict: Some(Verdict::Better), note, ..best.clone() }
                .at("need", need.name),
        )
    };
    workloads
        .iter()
        .flat_map(|workload| NEEDS.iter().map(move |need| (*workload, need)))
        .filter_map(advise)
        .collect()
}

fn reason(best: &Row, others: &[&Row], rows: &[Row]) -> String {
    let value = best.value.unwrap_or(f64::NAN);
    let mut text = format!("{} at {value:.1} {}", best.candidate, best.unit());
    let strides = best.text("strides");
    if strides == "powers" || others.iter().any(|row| row.text("strides") != strides) {
        text += &format!(" (rates: {})", if strides.is_empty() { "none" } else { strides });
    }
    match others.first().and_then(|next| Some((next, next.value?))) {
        None => text += ", the only one measured",
        Some((next, other)) if interval_reaches(best, next) => {
            let low = next.ci_low.unwrap_or(other);
            text += &format!(
                ", not told apart from {}: {other:.1} on average, with an interval from {low:.1}",
                next.candidate
            )
        }
        Some((next, other)) => {
            text += &format!(", next {} at {other:.1} ({:.1} times)", next.candidate, other / value)
        }
    }
    let waits = |candidate: &str| {
        let mut waits = rows.iter().filter(|row| {
            row.metric == Metric::longest_wait_slices
                && row.candidate == candidate
                && row.workload == best.workload
        });
        let first = waits.next()?;
        Some((first.coordinate("level")?.to_string(), first.value?))
    };
    if let Some((level, wait)) = waits(&best.candidate) {
        text += &format!("; a task of level {level} waits at most {wait:.0} slices");
        let shorter = others
            .iter()
            .filter_map(|row| Some((&row.candidate, waits(&row.candidate)?.1)))
            .filter(|(_, other)| *other < 0.8 * wait)
            .min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((policy, other)) = shorter {
            text += &format!(" ({policy}: {other:.0})");
        }
    }
    text
}

/// Whether the two intervals overlap.
fn interval_reaches(a: &Row, b: &Row) -> bool {
    a.ci_high.or(a.value) >= b.ci_low.or(b.value)
}

#[cfg(test)]
mod tests {
    use super::super::measure::{Plan, select};
    use super::super::mix::Mix;
    use super::*;
    use results::World;

    fn row(policy: &str, value: f64) -> Row {
        let structures = select(&[policy.to_string()]).unwrap();
        let plan = Plan {
            structures,
            tasks: vec![10],
            mix: Mix::Random,
            levels: 8,
            strides: StrideRule::Linear,
            seed: 1,
            assignments: 1,
            runs: 1,
            slices: None,
        };
        Row {
            value: Some(value),
            ..plan.row(plan.structures[0], 10, World::Callgrind, Metric::instructions_per_op)
        }
    }

    #[test]
    fn the_cheapest_wins_its_class_and_peers_do_not_compete() {
        let rows = [
            row("rr", 11.0),
            row("rbtree", 110.0),
            row("sorted-list", 50.0),
            row("peer:vecdeque", 5.0),
        ];
        let advice = advise(&rows, StrideRule::Linear);
        let chosen: Vec<&str> = advice.iter().map(|row| row.candidate.as_str()).collect();
        assert_eq!(chosen, ["rr", "sorted-list"]);
        assert!(
            advice[1].note.as_ref().unwrap().contains("next rbtree at 110.0 (2.2 times)"),
            "{:?}",
            advice[1].note
        );
    }
}
