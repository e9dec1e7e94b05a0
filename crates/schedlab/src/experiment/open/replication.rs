//! From rows of single runs to rows over runs: means with intervals, verdicts and normalised ratios, each from runs with the same seed.

use crate::output::Row;
use crate::statistics::{Estimate, Verdict};
use schedsim::metrics::{Better, OPEN_CATALOGUE};
use std::collections::BTreeMap;

/// What the runs of one policy in one metric came to.
struct Group<'r> {
    /// The row of the first run.
    first: &'r Row,
    /// By seed.
    values: BTreeMap<u64, Option<f64>>,
    /// The first note, and how many runs have one.
    note: Option<&'r str>,
    noted: usize,
}

/// Everything of a row but its policy and what was measured.
type Place<'r> = (&'r str, u16, &'r BTreeMap<String, String>, &'r str);

/// Sums up `runs`, which are rows of single runs, over their seeds. With a `baseline` the other policies are held against it: verdicts are of the mean paired
/// difference, and for each `grr` there is an `ngrr`, the mean over pairs of the ratio of the two (Curran & Stumm's NGRR if the baseline is `initial`).
///
/// The rows come in the order in which their first runs came.
pub fn aggregate(runs: &[Row], baseline: Option<&str>) -> Vec<Row> {
    let mut order: Vec<(Place<'_>, &str)> = Vec::new();
    let mut groups: BTreeMap<(Place<'_>, &str), Group<'_>> = BTreeMap::new();
    for row in runs {
        let key = (place(row), row.policy.as_str());
        let group = groups.entry(key).or_insert_with(|| {
            order.push(key);
            Group { first: row, values: BTreeMap::new(), note: None, noted: 0 }
        });
        group.values.insert(row.seed.unwrap_or(0), row.value);
        group.note = group.note.or(row.note.as_deref());
        group.noted += usize::from(row.note.is_some());
    }
    let mut rows = Vec::with_capacity(order.len());
    for (place, policy) in order {
        let group = &groups[&(place, policy)];
        let base = baseline.filter(|base| *base != policy).and_then(|base| groups.get(&(place, base)));
        rows.push(Row { verdict: base.and_then(|base| group.verdict(base)).map(|verdict| verdict.word().to_string()), ..group.row() });
        if let Some(base) = base.filter(|_| group.first.metric == "grr") {
            rows.push(group.normalised(base));
        }
    }
    rows
}

fn place(row: &Row) -> Place<'_> {
    (&row.workload, row.cpus, &row.params, &row.metric)
}

impl Group<'_> {
    fn row(&self) -> Row {
        let values: Option<Vec<f64>> = self.values.values().copied().collect();
        self.row_of(&self.first.metric, values.and_then(|values| Estimate::of(&values)))
    }

    fn row_of(&self, metric: &str, estimate: Option<Estimate>) -> Row {
        let runs = self.values.len();
        let note =
            self.note.map(|note| if self.noted == runs { note.to_string() } else { format!("{} of {runs} runs: {note}", self.noted) });
        let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
        Row {
            metric: metric.to_string(),
            value: estimate.map(|estimate| estimate.mean),
            ci_low: bound(-1.0),
            ci_high: bound(1.0),
            runs: runs as u32,
            note,
            ..self.first.clone()
        }
    }

    /// The runs with seeds that both have.
    fn pairs<'a>(&'a self, base: &'a Group<'_>) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.values.iter().filter_map(|(seed, value)| Some(((*value)?, (*base.values.get(seed)?)?)))
    }

    /// Whether this is all that there is on both sides.
    fn is_paired(&self, base: &Group<'_>) -> bool {
        self.pairs(base).count() == self.values.len().max(base.values.len())
    }

    fn verdict(&self, base: &Group<'_>) -> Option<Verdict> {
        let lower_is_better = match OPEN_CATALOGUE.iter().find(|metric| metric.id == self.first.metric)?.better {
            Better::Lower => true,
            Better::Higher => false,
            Better::Neither => return None,
        };
        let differences: Vec<f64> = self.pairs(base).map(|(value, base)| value - base).collect();
        let estimate = Estimate::of(&differences).filter(|_| self.is_paired(base))?;
        // From a single pair there is no telling.
        let error = if estimate.half_width.is_none() { f64::INFINITY } else { 0.0 };
        Some(Verdict::of(estimate, 0.0, error, lower_is_better))
    }

    fn normalised(&self, base: &Group<'_>) -> Row {
        let ratios: Vec<f64> = self.pairs(base).map(|(value, base)| value / base).collect();
        let row = self.row_of("ngrr", Estimate::of(&ratios).filter(|_| self.is_paired(base)));
        let of_base = base.note.map(|note| format!("{}: {note}", base.first.policy));
        Row { note: row.note.clone().or(of_base), ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, seed: u64, value: Option<f64>) -> Row {
        Row {
            workload: "w".to_string(),
            policy: policy.to_string(),
            backend: "sim".to_string(),
            cpus: 4,
            seed: Some(seed),
            metric: "grr".to_string(),
            unit: "1".to_string(),
            value,
            runs: 1,
            note: value.is_none().then(|| "saturated".to_string()),
            ..Row::default()
        }
    }

    #[test]
    fn pairs_with_the_same_seed_decide_what_means_alone_do_not() {
        // Runs differ by far more than the policies do, which differ in each pair by a tenth.
        let runs: Vec<Row> = (0..5)
            .flat_map(|seed| [run("base", seed, Some(10.0 + seed as f64)), run("new", seed, Some(0.9 * (10.0 + seed as f64)))])
            .collect();
        let rows = aggregate(&runs, Some("base"));
        let of = |policy: &str, metric: &str| rows.iter().find(|row| row.policy == policy && row.metric == metric).unwrap();
        assert_eq!((of("base", "grr").value, of("base", "grr").runs), (Some(12.0), 5));
        assert!(of("new", "grr").ci_high > of("base", "grr").ci_low, "the intervals overlap");
        assert_eq!(of("new", "grr").verdict.as_deref(), Some("better"));
        let ngrr = of("new", "ngrr");
        assert!((ngrr.value.unwrap() - 0.9).abs() < 1e-12 && ngrr.ci_high.unwrap() - ngrr.ci_low.unwrap() < 1e-9);
        assert!(aggregate(&runs, None).iter().all(|row| row.metric == "grr" && row.verdict.is_none()));
    }

    #[test]
    fn a_saturated_run_is_no_number_in_any_mean() {
        let runs = [run("base", 1, Some(2.0)), run("base", 2, Some(2.0)), run("new", 1, Some(1.0)), run("new", 2, None)];
        let rows = aggregate(&runs, Some("base"));
        assert_eq!((rows[1].value, rows[1].note.as_deref(), rows[1].verdict.as_deref()), (None, Some("1 of 2 runs: saturated"), None));
        assert_eq!((rows[2].metric.as_str(), rows[2].value), ("ngrr", None));
        let other_way = aggregate(&runs, Some("new"));
        let ngrr = other_way.iter().find(|row| row.metric == "ngrr").unwrap();
        assert_eq!((ngrr.value, ngrr.note.as_deref()), (None, Some("new: saturated")));
    }
}
