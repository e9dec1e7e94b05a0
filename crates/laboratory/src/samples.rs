//! Summarises rows of single runs: location with interval, normalised ratios, and the comparisons
//! to decide.

use results::fidelity::ReplayError;
use results::{Better, Metric, Point, Row, SubjectKind, World, is_headline};
use statistics::{
    Comparison, Estimate, Margin, Replay, decide, error_of_replay, median, median_interval,
};
use std::collections::BTreeMap;
use worlds::{By, Program, Run};

/// The probability that any verdict of a table is wrong by chance.
pub const ALPHA: f64 = 0.05;
/// A smaller difference, as a share of the baseline, does not matter.
const MARGIN: f64 = 0.02;

/// The distance of a replay from its recording in one metric.
#[derive(Clone, Debug)]
pub struct Fidelity {
    /// The metric.
    pub metric: Metric,
    /// The part; absent for the complete run.
    pub subject: Option<String>,
    /// The recorded value.
    pub recorded: f64,
    /// The replayed values, by member.
    pub replayed: Vec<f64>,
}

impl Fidelity {
    /// The metrics of `runs`, which replay `original` unchanged, with those of its recording; also
    /// those of its parts if `by` is given.
    pub fn of(original: &Program, runs: &[Run], by: Option<By>) -> Vec<Fidelity> {
        let recorded = original.recorded().map(|(_, rows)| rows).unwrap_or_default();
        let parts: Vec<Vec<Row>> =
            runs.iter().map(|run| by.map_or(Vec::new(), |by| run.parts(by, &World::Sim))).collect();
        let of_run = |(run, parts): (&Run, &Vec<Row>), row: &Row| match &row.subject {
            None => run.value(row.metric),
            Some(_) => {
                parts
                    .iter()
                    .find(|part| part.metric == row.metric && part.subject == row.subject)?
                    .value
            }
        };
        let of = |row: &Row| {
            let replayed: Option<Vec<f64>> =
                runs.iter().zip(&parts).map(|run| of_run(run, row)).collect();
            Some(Fidelity {
                metric: row.metric,
                subject: row.subject.clone(),
                recorded: row.value?,
                replayed: replayed?,
            })
        };
        let recorded_parts = by.map_or(Vec::new(), |by| original.recorded_parts(by));
        recorded.iter().chain(&recorded_parts).filter_map(of).collect()
    }

    /// The relative error of each member's replay; the absolute error if the recorded value is
    /// zero.
    pub fn errors(&self) -> Vec<f64> {
        let scale = if self.recorded == 0.0 { 1.0 } else { self.recorded.abs() };
        self.replayed.iter().map(|replayed| (replayed - self.recorded).abs() / scale).collect()
    }

    /// The replay's error: nine of ten members are at most this far off.
    pub fn error(&self) -> Replay {
        match error_of_replay(&self.errors()) {
            None => Replay::Unknown,
            Some(error) if self.recorded == 0.0 => Replay::Fixed(error),
            Some(error) => Replay::Share(error),
        }
    }

    /// The same in a few numbers.
    pub fn summary(&self) -> ReplayError {
        let error = if let Replay::Share(error) = self.error() { Some(error) } else { None };
        let least = self.errors().into_iter().reduce(f64::min);
        ReplayError {
            metric: self.metric,
            recorded: self.recorded,
            replayed: median(&mut self.replayed.clone()),
            least: least.filter(|_| error.is_some()),
            error,
        }
    }
}

/// Rows over runs, and the comparisons to decide.
#[derive(Debug, Default)]
pub struct Summed {
    /// In order of their first runs.
    pub rows: Vec<Row>,
    /// The comparison of each row with a baseline, by row index.
    pub compared: Vec<(usize, Comparison)>,
}

/// The runs of one candidate in one metric.
struct Group<'r> {
    /// The row of the first run.
    first: &'r Row,
    /// The value of each run, by member.
    values: BTreeMap<u64, Option<f64>>,
    runs: u32,
    /// The first note, and the number of runs with a note.
    note: Option<&'r str>,
    noted: usize,
}

/// All fields of a row except the candidate and the measured values.
type Place<'r> = (&'r str, &'r World, u16, &'r Point, Option<SubjectKind>, Option<&'r str>, Metric);

/// Summarises `runs`, rows of single runs with their member numbers, and pairs the candidates with
/// `baseline` by member. Each `grr` also gives an `ngrr`, the mean over pairs of the ratio of the
/// two (Curran & Stumm's NGRR if the baseline is `initial`). In a replay, a difference must exceed
/// the replay's error.
pub fn sum_up(runs: &[(u64, Row)], baseline: Option<&str>, fidelity: &[Fidelity]) -> Summed {
    let mut order: Vec<(Place<'_>, &str)> = Vec::new();
    let mut groups: BTreeMap<(Place<'_>, &str), Group<'_>> = BTreeMap::new();
    for (member, row) in runs {
        let key = (place(row), row.candidate.as_str());
        let group = groups.entry(key).or_insert_with(|| {
            order.push(key);
            Group { first: row, values: BTreeMap::new(), runs: 0, note: None, noted: 0 }
        });
        group.values.insert(*member, row.value);
        group.runs += row.runs;
        group.note = group.note.or(row.note.as_deref());
        group.noted += usize::from(row.note.is_some());
    }
    let mut summed = Summed::default();
    for (place, candidate) in order {
        let group = &groups[&(place, candidate)];
        let base =
            baseline.filter(|base| *base != candidate).and_then(|base| groups.get(&(place, base)));
        let baseline = base.map(|base| base.first.candidate.clone());
        if let Some(comparison) = base.and_then(|base| group.comparison(base, fidelity)) {
            summed.compared.push((summed.rows.len(), comparison));
        }
        summed.rows.push(Row { baseline, ..group.row() });
        if let Some(base) = base.filter(|_| group.first.metric == Metric::grr) {
            summed.rows.push(group.normalised(base));
        }
    }
    summed
}

/// Decides all comparisons of tables that are shown together. The rows in their text are one family
/// of comparisons, all other rows are another.
pub fn settle<'a>(tables: impl IntoIterator<Item = (&'a mut [Row], &'a [(usize, Comparison)])>) {
    let (mut shown, mut others): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for (rows, compared) in tables {
        let mut of: BTreeMap<usize, &Comparison> =
            compared.iter().map(|(at, comparison)| (*at, comparison)).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            if let Some(comparison) = of.remove(&at) {
                let family = if row.subject.is_none() && is_headline(row.metric) {
                    &mut shown
                } else {
                    &mut others
                };
                family.push((row, comparison.clone()));
            }
        }
    }
    for family in [shown, others] {
        let (rows, comparisons): (Vec<&mut Row>, Vec<Comparison>) = family.into_iter().unzip();
        rows.into_iter()
            .zip(decide(&comparisons, ALPHA))
            .for_each(|(row, decision)| write(decision, row));
    }
}

/// The difference that does not matter in a metric: 2 % of the baseline, or 0.02 if the metric is
/// itself a share.
pub fn margin(metric: Metric) -> Margin {
    match metric {
        Metric::utilisation
        | Metric::migration_rate
        | Metric::idle_waste
        | Metric::idle_waste_min
        | Metric::idle_waste_of_idle
        | Metric::jain_fairness
        | Metric::completion_inversions
        | Metric::unused_cpu
        | Metric::idle_cpu
        | Metric::cpu_share => Margin::Fixed(MARGIN),
        _ => Margin::Share(MARGIN),
    }
}

/// The location of a metric with a 95 % interval: the mean, or the median if a few runs can
/// dominate the mean.
pub(crate) fn location(metric: Metric, mut values: Vec<f64>) -> Option<(f64, Option<(f64, f64)>)> {
    if metric.is_heavy_tailed() {
        let interval = median_interval(&mut values);
        return (!values.is_empty()).then(|| (median(&mut values), interval));
    }
    let Estimate { mean, half_width } = Estimate::of(&values)?;
    Some((mean, half_width.map(|half| (mean - half, mean + half))))
}

fn place(row: &Row) -> Place<'_> {
    (
        &row.workload,
        &row.world,
        row.cpus,
        &row.point,
        row.subject_kind,
        row.subject.as_deref(),
        row.metric,
    )
}

impl Group<'_> {
    fn row(&self) -> Row {
        let values: Option<Vec<f64>> = self.values.values().copied().collect();
        self.row_of(self.first.metric, values.unwrap_or_default())
    }

    fn row_of(&self, metric: Metric, values: Vec<f64>) -> Row {
        let runs = self.values.len();
        let note = self.note.map(|note| {
            if self.noted == runs {
                note.to_string()
            } else {
                format!("{} of {runs} runs: {note}", self.noted)
            }
        });
        let location = location(metric, values);
        let interval = location.and_then(|(_, interval)| interval);
        Row {
            metric,
            value: location.map(|(value, _)| value),
            ci_low: interval.map(|(low, _)| low),
            ci_high: interval.map(|(_, high)| high),
            runs: self.runs,
            note,
            ..self.first.clone()
        }
    }

    /// The runs of members that both have.
    fn pairs<'a>(&'a self, base: &'a Group<'_>) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.values
            .iter()
            .filter_map(|(member, value)| Some(((*value)?, (*base.values.get(member)?)?)))
    }

    /// Whether both have the same members.
    fn is_paired(&self, base: &Group<'_>) -> bool {
        self.pairs(base).count() == self.values.len().max(base.values.len())
    }

    /// Absent if the metric has no direction, a run has no value, or there is only one run.
    fn comparison(&self, base: &Group<'_>, fidelity: &[Fidelity]) -> Option<Comparison> {
        let metric = self.first.metric;
        let lower_is_better = match metric.description().direction {
            Better::Lower => true,
            Better::Higher => false,
            Better::Neither => return None,
        };
        let of_metric = fidelity
            .iter()
            .find(|fidelity| fidelity.metric == metric && fidelity.subject == self.first.subject);
        let replay = match of_metric {
            Some(fidelity) => fidelity.error(),
            None if fidelity.is_empty() => Replay::None,
            None => Replay::Unknown,
        };
        let pairs: Vec<(f64, f64)> = self.pairs(base).collect();
        (pairs.len() > 1 && self.is_paired(base)).then(|| Comparison {
            pairs,
            heavy_tailed: metric.is_heavy_tailed(),
            lower_is_better,
            margin: margin(metric),
            replay,
        })
    }

    fn normalised(&self, base: &Group<'_>) -> Row {
        let ratios = if self.is_paired(base) {
            self.pairs(base).map(|(value, base)| value / base).collect()
        } else {
            Vec::new()
        };
        let row = self.row_of(Metric::ngrr, ratios);
        let of_base = base.note.map(|note| format!("{}: {note}", base.first.candidate));
        Row {
            note: row.note.clone().or(of_base),
            baseline: Some(base.first.candidate.clone()),
            ..row
        }
    }
}

/// Writes `decision` into `row`.
pub(crate) fn write(decision: statistics::Decision, row: &mut Row) {
    let interval = decision.effect.and_then(|effect| effect.interval);
    let in_units = decision.difference.and_then(|difference| difference.interval);
    row.difference = decision.difference.map(|difference| difference.size);
    row.difference_low = in_units.map(|(low, _)| low);
    row.difference_high = in_units.map(|(_, high)| high);
    row.verdict = Some(decision.verdict);
    row.reason = decision.reason.map(|reason| reason.to_string());
    row.effect = decision.effect.map(|effect| effect.size);
    row.effect_low = interval.map(|(low, _)| low);
    row.effect_high = interval.map(|(_, high)| high);
}

#[cfg(test)]
mod tests;
