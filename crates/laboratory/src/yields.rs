//! The growth of the cost of a yield with the number of tasks that only yield: `base + per_doubling
//! · log2 N`.

use super::Section;
use results::{Metric, Row};
use std::collections::BTreeMap;

/// A line in the logarithm.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Fit {
    /// The value for one task.
    base: f64,
    /// The increase for each doubling of the number of tasks.
    per_doubling: f64,
}

/// The costs of yields under one candidate.
struct Costs {
    /// The index of the last workload.
    last: usize,
    /// One of the results.
    row: Row,
    /// The numbers of tasks, and the cost of a yield with each.
    points: Vec<(u32, f64)>,
}

impl Fit {
    /// Least-squares fit of `(tasks, cost)`; `None` unless there are two numbers of tasks.
    fn of(points: &[(u32, f64)]) -> Option<Fit> {
        let count = points.len() as f64;
        let logs = || points.iter().map(|&(tasks, _)| f64::from(tasks).log2());
        let mean_log = logs().sum::<f64>() / count;
        let mean_cost = points.iter().map(|&(_, cost)| cost).sum::<f64>() / count;
        let spread: f64 = logs().map(|log| (log - mean_log).powi(2)).sum();
        let together: f64 =
            logs().zip(points).map(|(log, &(_, cost))| (log - mean_log) * (cost - mean_cost)).sum();
        let per_doubling = together / spread;
        (spread > 0.0).then_some(Fit { base: mean_cost - per_doubling * mean_log, per_doubling })
    }
}

/// Adds the fit of each candidate that yielded with several numbers of tasks, to the last of these
/// workloads.
pub fn fit(sections: &mut [Section<'_>]) {
    let mut costs: BTreeMap<String, Costs> = BTreeMap::new();
    for (index, section) in sections.iter().enumerate() {
        for row in section.rows.iter().filter(|row| row.metric == Metric::instructions_per_yield) {
            let tasks = row.workload.rsplit(':').next().and_then(|tasks| tasks.parse().ok());
            let of = costs.entry(row.candidate.clone()).or_insert_with(|| Costs {
                last: index,
                row: row.clone(),
                points: Vec::new(),
            });
            of.last = index;
            of.points.extend(tasks.zip(row.value));
        }
    }
    for Costs { last, row, points } in costs.into_values() {
        let Some(Fit { base, per_doubling }) = Fit::of(&points) else { continue };
        let of = |metric, value| Row {
            workload: "yield:*".to_string(),
            metric,
            value: Some(value),
            note: Some("fitted: base + per_doubling * log2 tasks".to_string()),
            ..row.clone()
        };
        let rows = [
            of(Metric::instructions_per_yield_base, base),
            of(Metric::instructions_per_yield_per_doubling, per_doubling),
        ];
        sections[last].rows.extend(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_finds_a_line_in_the_logarithm() {
        let points = [1, 4, 64].map(|tasks: u32| (tasks, 2000.0 + 30.0 * f64::from(tasks).log2()));
        let fit = Fit::of(&points).expect("a fit");
        assert!(
            (fit.base - 2000.0).abs() < 1e-6 && (fit.per_doubling - 30.0).abs() < 1e-6,
            "{fit:?}"
        );
        assert_eq!(Fit::of(&points[..1]), None);
    }
}
