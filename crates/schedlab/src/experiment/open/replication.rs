//! From rows of single runs to rows over runs: means with intervals, verdicts and normalised ratios, each from runs with the same seed.

use crate::output::{Metric, Point, Row, SubjectKind};
use crate::statistics::{self, Estimate, Verdict};
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

/// Everything of a row but its candidate and what was measured.
type Place<'r> = (&'r str, u16, &'r Point, Option<(SubjectKind, &'r str)>, Metric);

/// Sums up `runs`, which are rows of single runs, over their seeds. With a `baseline` the other policies are held against it: verdicts are of the mean paired
/// difference, and for each `grr` there is an `ngrr`, the mean over pairs of the ratio of the two (Curran & Stumm's NGRR if the baseline is `initial`).
///
/// The rows come in the order in which their first runs came.
pub fn aggregate(runs: &[Row], baseline: Option<&str>) -> Vec<Row> {
    let mut order: Vec<(Place<'_>, &str)> = Vec::new();
    let mut groups: BTreeMap<(Place<'_>, &str), Group<'_>> = BTreeMap::new();
    for row in runs {
        let key = (place(row), row.candidate.as_str());
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
        let baseline = base.and(baseline).map(str::to_string);
        rows.push(Row { baseline: baseline.clone(), verdict: base.and_then(|base| group.verdict(base)), ..group.row() });
        if let Some(base) = base.filter(|_| group.first.metric == Metric::grr) {
            rows.push(Row { baseline, ..group.normalised(base) });
        }
    }
    rows
}

fn place(row: &Row) -> Place<'_> {
    (&row.workload, row.cpus, &row.point, row.subject_kind.zip(row.subject.as_deref()), row.metric)
}

impl Group<'_> {
    fn row(&self) -> Row {
        let values: Option<Vec<f64>> = self.values.values().copied().collect();
        self.row_of(self.first.metric, values.and_then(|values| Estimate::of(&values)))
    }

    fn row_of(&self, metric: Metric, estimate: Option<Estimate>) -> Row {
        let runs = self.values.len();
        let note =
            self.note.map(|note| if self.noted == runs { note.to_string() } else { format!("{} of {runs} runs: {note}", self.noted) });
        let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
        Row {
            metric,
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
        let lower_is_better = match OPEN_CATALOGUE.iter().find(|metric| metric.id == self.first.metric.id())?.better {
            Better::Lower => true,
            Better::Higher => false,
            Better::Neither => return None,
        };
        let differences: Vec<f64> = self.pairs(base).map(|(value, base)| value - base).collect();
        let estimate = Estimate::of(&differences).filter(|_| self.is_paired(base))?;
        // From a single pair there is no telling.
        let error = if estimate.half_width.is_none() { f64::INFINITY } else { 0.0 };
        Some(statistics::verdict(estimate, 0.0, error, lower_is_better))
    }

    fn normalised(&self, base: &Group<'_>) -> Row {
        let ratios: Vec<f64> = self.pairs(base).map(|(value, base)| value / base).collect();
        let row = self.row_of(Metric::ngrr, Estimate::of(&ratios).filter(|_| self.is_paired(base)));
        let of_base = base.note.map(|note| format!("{}: {note}", base.first.candidate));
        Row { note: row.note.clone().or(of_base), ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::World;

    fn run(policy: &str, seed: u64, value: Option<f64>) -> Row {
        Row {
            workload: "w".to_string(),
            candidate: policy.to_string(),
            cpus: 4,
            seed: Some(seed),
            value,
            runs: 1,
            note: value.is_none().then(|| "saturated".to_string()),
            ..Row::new(World::Sim, Metric::grr)
        }
    }

    #[test]
    fn pairs_with_the_same_seed_decide_what_means_alone_do_not() {
        // Runs differ by far more than the policies do, which differ in each pair by a tenth.
        let runs: Vec<Row> = (0..5)
            .flat_map(|seed| [run("base", seed, Some(10.0 + seed as f64)), run("new", seed, Some(0.9 * (10.0 + seed as f64)))])
            .collect();
        let rows = aggregate(&runs, Some("base"));
        let of = |policy: &str, metric: Metric| rows.iter().find(|row| row.candidate == policy && row.metric == metric).unwrap();
        assert_eq!((of("base", Metric::grr).value, of("base", Metric::grr).runs), (Some(12.0), 5));
        assert!(of("new", Metric::grr).ci_high > of("base", Metric::grr).ci_low, "the intervals overlap");
        assert_eq!(of("new", Metric::grr).verdict, Some(Verdict::Better));
        let ngrr = of("new", Metric::ngrr);
        assert!((ngrr.value.unwrap() - 0.9).abs() < 1e-12 && ngrr.ci_high.unwrap() - ngrr.ci_low.unwrap() < 1e-9);
        assert!(aggregate(&runs, None).iter().all(|row| row.metric == Metric::grr && row.verdict.is_none()));
    }

    #[test]
    fn a_saturated_run_is_no_number_in_any_mean() {
        let runs = [run("base", 1, Some(2.0)), run("base", 2, Some(2.0)), run("new", 1, Some(1.0)), run("new", 2, None)];
        let rows = aggregate(&runs, Some("base"));
        assert_eq!((rows[1].value, rows[1].note.as_deref(), rows[1].verdict), (None, Some("1 of 2 runs: saturated"), None));
        assert_eq!((rows[2].metric, rows[2].value), (Metric::ngrr, None));
        let other_way = aggregate(&runs, Some("new"));
        let ngrr = other_way.iter().find(|row| row.metric == Metric::ngrr).unwrap();
        assert_eq!((ngrr.value, ngrr.note.as_deref()), (None, Some("new: saturated")));
    }
}
