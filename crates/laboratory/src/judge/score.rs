//! How metrics make one score.

use super::rule::metric;
use super::{Base, Cases, value};
use crate::{settle, sum_up};
use formats::toml_file::TomlFile;
use program::Error;
use results::judge::{Measured, Set, Side};
use results::{Better, Metric, Row};
use worlds::Run;

/// A metric of the score.
#[derive(Clone, PartialEq, Debug)]
pub struct Weighted {
    metric: Metric,
    weight: f64,
    is_less_better: bool,
    key: String,
}

/// A metric of a candidate in a workload, with its weight.
#[derive(Clone, Debug)]
pub struct Ratio {
    pub measured: Measured,
    weight: f64,
}

/// A candidate is at most this many times better or worse: of a metric near zero, the ratio says
/// nothing.
const MOST: f64 = 1000.0;

/// The parts of a suite's score.
///
/// # Errors
/// If one is of an unknown metric, has no positive weight, or no better side.
pub fn parts(cases: &Cases) -> Result<Vec<Weighted>, Error> {
    let Cases { file, suite, .. } = cases;
    let part = |(index, part): (usize, &results::judge::Part)| {
        let key = format!("score[{index}].metric");
        let metric = metric(&part.metric).map_err(|message| file.wrong(&key, &message))?;
        if !(part.weight > 0.0 && part.weight.is_finite()) {
            return Err(
                file.wrong(&format!("score[{index}].weight"), "give a weight above 0, as in 2.0")
            );
        }
        let is_less_better = match (part.better, metric.description().direction) {
            (Some(side), _) => side == Side::Less,
            (None, Better::Lower) => true,
            (None, Better::Higher) => false,
            (None, Better::Neither) => {
                return Err(file.wrong(
                    &key,
                    &format!("{metric} has no better side: add better = \"less\" or \"more\""),
                ));
            }
        };
        Ok(Weighted { metric, weight: part.weight, is_less_better, key })
    };
    suite.score.iter().enumerate().map(part).collect()
}

impl Weighted {
    /// Refuses a metric by which the baseline cannot be compared with in a workload.
    pub(super) fn expect_in(&self, base: &Base, file: &TomlFile) -> Result<(), Error> {
        let (name, metric) = (base.case.program.name(), self.metric);
        match value(metric, &base.runs) {
            Some(value) if value > 0.0 => Ok(()),
            Some(value) => Err(file.wrong(
                &self.key,
                &format!("{metric} is {value} in {name} under the baseline: nothing is so many times better"),
            )),
            None => Err(file.wrong(
                &self.key,
                &format!("{metric} has no value in {name}, also under the baseline: no candidate can have one"),
            )),
        }
    }
}

/// The parts of the score in a workload.
pub(super) fn ratios(
    base: &Base,
    rows: &[(u64, Row)],
    runs: &[Run],
    parts: &[Weighted],
) -> Vec<Ratio> {
    let is_part = |row: &Row| parts.iter().any(|part| part.metric == row.metric);
    let of_base = base
        .rows
        .iter()
        .map(|(member, row)| (*member, Row { candidate: BASELINE.to_string(), ..row.clone() }));
    let both: Vec<(u64, Row)> =
        of_base.chain(rows.iter().cloned()).filter(|(_, row)| is_part(row)).collect();
    let mut summed = sum_up(&both, Some(BASELINE), &base.fidelity);
    settle([(&mut summed.rows[..], &summed.compared[..])]);
    let verdict = |metric: Metric| {
        let mut own = summed.rows.iter().filter(|row| row.metric == metric);
        own.find(|row| row.candidate != BASELINE)?.verdict
    };
    let of = |part: &Weighted| {
        let (value, baseline) = (value(part.metric, runs), value(part.metric, &base.runs));
        let ratio = value.zip(baseline).map(|(value, baseline)| {
            let better = if part.is_less_better { baseline / value } else { value / baseline };
            if better.is_nan() { 1.0 } else { better.clamp(1.0 / MOST, MOST) }
        });
        let is_usual =
            part.is_less_better == (part.metric.description().direction == Better::Lower);
        Ratio {
            weight: part.weight,
            measured: Measured {
                set: base.case.set,
                workload: base.case.program.name(),
                cpus: base.case.cpus,
                metric: part.metric,
                value,
                baseline,
                ratio,
                verdict: verdict(part.metric).filter(|_| is_usual),
            },
        }
    };
    parts.iter().map(of).collect()
}

/// The name under which the baseline is paired: a candidate may be the baseline itself.
const BASELINE: &str = "the baseline";

/// The weighted geometric mean of the ratios of a set; none if the set is empty. By a portable
/// logarithm: it has the same digits on every machine.
pub fn of(ratios: &[Ratio], set: Set) -> Option<f64> {
    let own = || ratios.iter().filter(|ratio| ratio.measured.set == set);
    let sum: Option<f64> =
        own().map(|ratio| Some(ratio.weight * libm::log(ratio.measured.ratio?))).sum();
    let weight: f64 = own().map(|ratio| ratio.weight).sum();
    (weight > 0.0).then_some(sum? / weight).map(libm::exp)
}
