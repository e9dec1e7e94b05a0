//! How right predictions are: the sign of a change, its size, and the stated intervals.

use results::{Metric, Row, World};
use statistics::{Paired, bootstrap_of};
use std::collections::BTreeMap;
use std::fmt;

/// The change of a metric as a share of its value without the change, with a 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// Its mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A metric of a workload under a change: what was predicted, and what was measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The workload's name.
    pub workload: String,
    /// The change, as users write it.
    pub change: String,
    /// The metric.
    pub metric: Metric,
    /// By the simulator.
    pub predicted: Effect,
    /// In the real kernel.
    pub measured: Effect,
}

/// What is said of all cells. Cells of one workload and change share their runs: they are one
/// cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct Score {
    /// The number of cells.
    pub cells: usize,
    /// The number of clusters.
    pub clusters: usize,
    /// Cells whose measured change lies beyond 2 % with its whole interval.
    pub changed: usize,
    /// Those of them whose predicted change has the same sign.
    pub signs: usize,
    /// The median of the errors, in percentage points of the change.
    pub median: f64,
    /// Their 95th percentile.
    pub worst: f64,
    /// The share of cells in which the predicted and the measured interval overlap.
    pub covered: f64,
    /// Its 95 % interval, over clusters; absent for one cluster.
    pub covered_interval: Option<(f64, f64)>,
}

/// A smaller change has no sign worth predicting.
pub const MARGIN: f64 = 0.02;

impl Effect {
    /// Of pairs of runs with a value each, without and with the change. Absent for fewer than two
    /// pairs, and where the value without the change is zero: then no share says how much it is.
    pub fn of(without: &[f64], with: &[f64]) -> Option<Effect> {
        let pairs: Vec<(f64, f64)> = with.iter().copied().zip(without.iter().copied()).collect();
        let base = without.iter().sum::<f64>() / without.len() as f64;
        let paired = Paired::of(&pairs).filter(|_| base > 0.0)?;
        let (mean, half) = (paired.mean / base, paired.half_width(0.95) / base);
        Some(Effect { mean, low: mean - half, high: mean + half })
    }
}

impl Cell {
    /// Whether the measured change is large enough to have a sign.
    fn has_sign(&self) -> bool {
        self.measured.low > MARGIN || self.measured.high < -MARGIN
    }

    /// Whether the predicted change goes the same way.
    fn has_right_sign(&self) -> bool {
        self.predicted.mean * self.measured.mean > 0.0
    }

    /// The error of the predicted change, as a share of the value without the change.
    pub fn error(&self) -> f64 {
        (self.predicted.mean - self.measured.mean).abs()
    }

    fn is_covered(&self) -> bool {
        self.predicted.low <= self.measured.high && self.measured.low <= self.predicted.high
    }

    /// Whether the sign is wrong where there is one.
    pub fn is_miss(&self) -> bool {
        self.has_sign() && !self.has_right_sign()
    }
}

impl Score {
    /// Of these cells; absent if there are none.
    pub fn of(cells: &[Cell]) -> Option<Score> {
        let mut errors: Vec<f64> = cells.iter().map(|cell| 100.0 * cell.error()).collect();
        let last = errors.len().checked_sub(1)?;
        let median = statistics::median(&mut errors); // and sorts them
        let mut clusters: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
        for cell in cells {
            let own = clusters.entry((&cell.workload, &cell.change)).or_default();
            *own = (own.0 + usize::from(cell.is_covered()), own.1 + 1);
        }
        let clusters: Vec<(usize, usize)> = clusters.into_values().collect();
        let share = |of: &mut dyn Iterator<Item = (usize, usize)>| {
            let (covered, all) = of.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            covered as f64 / all as f64
        };
        let numbers: Vec<f64> = (0..clusters.len()).map(|at| at as f64).collect();
        let covered_interval = bootstrap_of(&numbers, |drawn| {
            share(&mut drawn.iter().map(|&at| clusters[at as usize]))
        });
        let changed = cells.iter().filter(|cell| cell.has_sign());
        Some(Score {
            cells: cells.len(),
            clusters: clusters.len(),
            changed: changed.clone().count(),
            signs: changed.filter(|cell| cell.has_right_sign()).count(),
            median,
            worst: errors[(0.95 * last as f64).ceil() as usize],
            covered: share(&mut clusters.iter().copied()),
            covered_interval,
        })
    }
}

impl Score {
    /// As rows; the sign has none where no change has one.
    pub fn rows(&self, world: &World) -> Vec<Row> {
        let row = |metric: Metric, value: f64| Row {
            value: Some(value),
            ..Row::new(world.clone(), metric).at("cells", self.cells).at("clusters", self.clusters)
        };
        let signs = (self.changed > 0).then(|| {
            let share = self.signs as f64 / self.changed as f64;
            row(Metric::change_signs_right, share).at("changed", self.changed)
        });
        let (low, high) = self.covered_interval.unzip();
        let covered = row(Metric::change_intervals_overlap, self.covered);
        let errors = [
            row(Metric::change_error_p50, self.median / 100.0),
            row(Metric::change_error_p95, self.worst / 100.0),
            Row { ci_low: low, ci_high: high, ..covered },
        ];
        signs.into_iter().chain(errors).collect()
    }
}

/// As three sentences.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Score { cells, clusters, changed, signs, median, worst, covered, .. } = self;
        writeln!(
            f,
            "{cells} cells (a workload, a change, a metric) of {clusters} pairs of a workload and a change."
        )?;
        match changed {
            0 => writeln!(f, "No measured change exceeds {:.0} %.", 100.0 * MARGIN)?,
            _ => writeln!(
                f,
                "Sign: right in {signs} of {changed} cells whose measured change exceeds {:.0} % ({:.0} %).",
                100.0 * MARGIN,
                100.0 * *signs as f64 / *changed as f64
            )?,
        }
        writeln!(
            f,
            "Size: the error of the change is {median:.1} points in the median, {worst:.0} in the 95th percentile."
        )?;
        let interval = self.covered_interval.map_or(String::new(), |(low, high)| {
            format!(" ({:.0} to {:.0} %, over pairs)", 100.0 * low, 100.0 * high)
        });
        writeln!(
            f,
            "Intervals: the predicted and the measured one overlap in {:.0} % of the cells{interval}.",
            100.0 * covered
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(mean: f64) -> Effect {
        Effect { mean, low: mean, high: mean }
    }

    fn cell(change: &str, predicted: f64, measured: Effect) -> Cell {
        Cell {
            workload: "w".to_string(),
            change: change.to_string(),
            metric: Metric::makespan_ns,
            predicted: exactly(predicted),
            measured,
        }
    }

    #[test]
    fn a_change_is_a_share_of_the_value_without_it() {
        let effect = Effect::of(&[10.0, 20.0], &[15.0, 25.0]).expect("two pairs");
        assert_eq!(effect, Effect { mean: 1.0 / 3.0, low: 1.0 / 3.0, high: 1.0 / 3.0 });
        let effect = Effect::of(&[10.0, 10.0], &[9.0, 11.0]).expect("two pairs");
        // Student's t of one degree of freedom is 12.706.
        assert!(effect.mean == 0.0 && (effect.high - 1.2706).abs() < 1e-3, "{effect:?}");
        assert_eq!(Effect::of(&[10.0], &[15.0]), None);
        assert_eq!(Effect::of(&[0.0, 0.0], &[1.0, 1.0]), None, "a share of nothing");
    }

    #[test]
    fn signs_count_where_the_whole_interval_lies_beyond_the_margin() {
        let cells = [
            cell("a", 0.1, exactly(0.3)),
            cell("a", -0.1, exactly(0.3)),
            cell("b", 0.0, exactly(-0.5)),
            cell("b", -0.1, Effect { mean: 0.3, low: 0.01, high: 0.59 }),
            cell("c", -0.1, exactly(0.019)),
        ];
        let score = Score::of(&cells).expect("cells");
        assert_eq!((score.cells, score.clusters, score.changed, score.signs), (5, 3, 3, 1));
        assert!((score.median - 40.0).abs() < 1e-9 && (score.worst - 50.0).abs() < 1e-9);
        assert_eq!(score.covered, 0.0);
        assert_eq!(cells.iter().filter(|cell| cell.is_miss()).count(), 2);
        let rows = score.rows(&World::Sim);
        let values: Vec<Option<f64>> = rows.iter().map(|row| row.value).collect();
        assert_eq!(values, [Some(1.0 / 3.0), Some(0.4), Some(0.5), Some(0.0)]);
        assert_eq!(Score::of(&[]), None);
    }

    /// Ten metrics of one run are no ten witnesses.
    #[test]
    fn the_interval_of_the_coverage_is_one_of_clusters() {
        let right = |change: &str| vec![cell(change, 0.3, exactly(0.3)); 10];
        let wrong = |change: &str| vec![cell(change, 0.1, exactly(0.3)); 10];
        let few = Score::of(&[right("a"), wrong("b")].concat()).expect("cells");
        assert_eq!((few.covered, few.covered_interval), (0.5, Some((0.0, 1.0))));
        let many: Vec<Cell> = (0..50)
            .flat_map(|at| [right(&format!("a{at}")), wrong(&format!("b{at}"))].concat())
            .collect();
        let (low, high) = Score::of(&many).expect("cells").covered_interval.expect("clusters");
        assert!(low > 0.38 && high < 0.62, "{low} to {high}");
        assert_eq!(Score::of(&right("a")).expect("cells").covered_interval, None);
    }
}
