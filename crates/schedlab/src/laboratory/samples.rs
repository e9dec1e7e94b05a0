//! From rows of single runs to rows over runs: means with intervals, verdicts and normalised ratios.

use crate::statistics::{self, Estimate};
use results::{Direction, Metric, Point, Row, SubjectKind, Verdict, World};
use std::collections::BTreeMap;

/// How candidates are held against the baseline.
#[derive(Clone, Copy, Debug)]
pub enum Rule<'a> {
    /// They are not.
    Nothing,
    /// Each by its own interval. A difference must be larger than the error of the replay, if something is replayed.
    Apart(&'a [Fidelity]),
    /// By pairs of runs with the same seed. For each `grr` there is an `ngrr`, the mean over pairs of the ratio of the two (Curran & Stumm's NGRR if the baseline is `initial`).
    Paired,
}

/// How close a replay comes to its recording in one metric.
#[derive(Clone, Copy, Debug)]
pub struct Fidelity {
    /// Which metric.
    pub metric: Metric,
    /// As recorded.
    pub recorded: f64,
    /// As replayed.
    pub replayed: f64,
}

impl Fidelity {
    /// The relative error of the replay; the absolute one where the recording has zero.
    pub fn error(&self) -> f64 {
        let difference = (self.replayed - self.recorded).abs();
        if self.recorded == 0.0 { difference } else { difference / self.recorded.abs() }
    }

    /// The difference that decides nothing around the value `at`.
    fn band(&self, at: f64) -> f64 {
        if self.recorded == 0.0 { self.error() } else { self.error() * at.abs() }
    }
}

/// What the runs of one candidate in one metric came to.
struct Group<'r> {
    /// The row of the first run.
    first: &'r Row,
    /// By seed.
    values: BTreeMap<u64, Option<f64>>,
    runs: u32,
    /// The first note, and how many runs have one.
    note: Option<&'r str>,
    noted: usize,
}

/// Everything of a row but its candidate and what was measured.
type Place<'r> = (&'r str, &'r World, u16, &'r Point, Option<SubjectKind>, Option<&'r str>, Metric);

/// Sums up `runs`, which are rows of single runs, over their seeds, and holds the candidates against `baseline`.
///
/// The rows come in the order in which their first runs came.
pub fn aggregate(runs: &[Row], baseline: Option<&str>, rule: Rule<'_>) -> Vec<Row> {
    let mut order: Vec<(Place<'_>, &str)> = Vec::new();
    let mut groups: BTreeMap<(Place<'_>, &str), Group<'_>> = BTreeMap::new();
    for row in runs {
        let key = (place(row), row.candidate.as_str());
        let group = groups.entry(key).or_insert_with(|| {
            order.push(key);
            Group { first: row, values: BTreeMap::new(), runs: 0, note: None, noted: 0 }
        });
        group.values.insert(row.seed.unwrap_or(0), row.value);
        group.runs += row.runs;
        group.note = group.note.or(row.note.as_deref());
        group.noted += usize::from(row.note.is_some());
    }
    let mut rows = Vec::with_capacity(order.len());
    for (place, candidate) in order {
        let group = &groups[&(place, candidate)];
        let base = baseline.filter(|base| *base != candidate).and_then(|base| groups.get(&(place, base)));
        let verdict = base.and_then(|base| group.verdict(base, rule));
        let mut row = Row { verdict, ..group.row() };
        row.baseline = base.map(|base| base.first.candidate.clone());
        if let (Some(base), Some(_)) = (base, verdict) {
            let of_base = base.estimate().map(|base| base.mean).filter(|mean| *mean != 0.0);
            row.effect = row.value.zip(of_base).map(|(value, base)| (value - base) / base.abs());
        }
        rows.push(row);
        if let (Some(base), Rule::Paired) = (base.filter(|_| group.first.metric == Metric::grr), rule) {
            rows.push(group.normalised(base));
        }
    }
    rows
}

fn place(row: &Row) -> Place<'_> {
    (&row.workload, &row.world, row.cpus, &row.point, row.subject_kind, row.subject.as_deref(), row.metric)
}

impl Group<'_> {
    fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values.values().copied().collect::<Option<Vec<f64>>>()?)
    }

    fn row(&self) -> Row {
        self.row_of(self.first.metric, self.estimate())
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
            runs: self.runs,
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

    fn verdict(&self, base: &Group<'_>, rule: Rule<'_>) -> Option<Verdict> {
        let lower_is_better = match self.first.metric.description().direction {
            Direction::Lower => true,
            Direction::Higher => false,
            Direction::Neither => return None,
        };
        match rule {
            Rule::Nothing => None,
            Rule::Apart(fidelity) => {
                let base = base.estimate()?;
                let of_metric = fidelity.iter().find(|fidelity| fidelity.metric == self.first.metric);
                // Without the metric in the recording nothing says how far off the replay is.
                if of_metric.is_none() && !fidelity.is_empty() {
                    return Some(Verdict::Undecided);
                }
                let error = of_metric.map_or(0.0, |fidelity| fidelity.band(base.mean)) + base.half_width.unwrap_or(0.0);
                Some(statistics::verdict(self.estimate()?, base.mean, error, lower_is_better))
            }
            Rule::Paired => {
                let differences: Vec<f64> = self.pairs(base).map(|(value, base)| value - base).collect();
                let estimate = Estimate::of(&differences).filter(|_| self.is_paired(base))?;
                // A single pair does not tell.
                let error = if estimate.half_width.is_none() { f64::INFINITY } else { 0.0 };
                Some(statistics::verdict(estimate, 0.0, error, lower_is_better))
            }
        }
    }

    fn normalised(&self, base: &Group<'_>) -> Row {
        let ratios: Vec<f64> = self.pairs(base).map(|(value, base)| value / base).collect();
        let row = self.row_of(Metric::ngrr, Estimate::of(&ratios).filter(|_| self.is_paired(base)));
        let of_base = base.note.map(|note| format!("{}: {note}", base.first.candidate));
        Row { note: row.note.clone().or(of_base), baseline: Some(base.first.candidate.clone()), ..row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(candidate: &str, seed: u64, value: Option<f64>) -> Row {
        Row {
            workload: "w".to_string(),
            candidate: candidate.to_string(),
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
        // Runs differ by far more than the candidates do, which differ in each pair by a tenth.
        let runs: Vec<Row> = (0..5)
            .flat_map(|seed| [run("base", seed, Some(10.0 + seed as f64)), run("new", seed, Some(0.9 * (10.0 + seed as f64)))])
            .collect();
        let rows = aggregate(&runs, Some("base"), Rule::Paired);
        let of =
            |candidate: &str, metric: Metric| rows.iter().find(|row| row.candidate == candidate && row.metric == metric).expect("a row");
        assert_eq!((of("base", Metric::grr).value, of("base", Metric::grr).runs), (Some(12.0), 5));
        assert!(of("new", Metric::grr).ci_high > of("base", Metric::grr).ci_low, "the intervals overlap");
        assert_eq!(of("new", Metric::grr).verdict, Some(Verdict::Better));
        assert!((of("new", Metric::grr).effect.expect("a size") + 0.1).abs() < 1e-12);
        let ngrr = of("new", Metric::ngrr);
        assert!((ngrr.value.expect("a ratio") - 0.9).abs() < 1e-12 && ngrr.ci_high.expect("high") - ngrr.ci_low.expect("low") < 1e-9);
        assert!(aggregate(&runs, None, Rule::Paired).iter().all(|row| row.metric == Metric::grr && row.verdict.is_none()));
        let apart = aggregate(&runs, Some("base"), Rule::Apart(&[]));
        assert_eq!(apart[1].verdict, Some(Verdict::Undecided), "each by its own interval nothing is decided");
        assert!(aggregate(&runs, Some("base"), Rule::Nothing).iter().all(|row| row.verdict.is_none()));
    }

    #[test]
    fn a_saturated_run_is_no_number_in_any_mean() {
        let runs = [run("base", 1, Some(2.0)), run("base", 2, Some(2.0)), run("new", 1, Some(1.0)), run("new", 2, None)];
        let rows = aggregate(&runs, Some("base"), Rule::Paired);
        assert_eq!((rows[1].value, rows[1].note.as_deref(), rows[1].verdict), (None, Some("1 of 2 runs: saturated"), None));
        assert_eq!((rows[2].metric, rows[2].value), (Metric::ngrr, None));
        let other_way = aggregate(&runs, Some("new"), Rule::Paired);
        let ngrr = other_way.iter().find(|row| row.metric == Metric::ngrr).expect("a row");
        assert_eq!((ngrr.value, ngrr.note.as_deref()), (None, Some("new: saturated")));
    }
}
