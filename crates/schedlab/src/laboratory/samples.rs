//! From rows of single runs to rows over runs: location with interval, normalised ratios, and what is to be decided about them.

use crate::output::is_headline;
use crate::statistics::{self, Comparison, Estimate, Margin, Replay, decide, error_of_replay, median, median_interval};
use crate::world::{By, Program, Run};
use results::{Direction, Metric, Point, Row, SubjectKind, World};
use std::collections::BTreeMap;

/// All verdicts of a table together are wrong by chance with at most this probability.
pub const ALPHA: f64 = 0.05;
/// A difference below this share of the baseline makes none.
const MARGIN: f64 = 0.02;

/// How close a replay comes to its recording in one metric.
#[derive(Clone, Debug)]
pub struct Fidelity {
    /// Which metric.
    pub metric: Metric,
    /// Of which part; none if it is of all.
    pub subject: Option<String>,
    /// As recorded.
    pub recorded: f64,
    /// As replayed, by member.
    pub replayed: Vec<f64>,
}

impl Fidelity {
    /// The metrics of `runs`, which replay `original` as it was, beside those of its recording; of its parts as well, if they are wanted.
    pub fn of(original: &Program, runs: &[Run], by: Option<By>) -> Vec<Fidelity> {
        let recorded = original.recorded().map(|(_, rows)| rows).unwrap_or_default();
        let parts: Vec<Vec<Row>> = runs.iter().map(|run| by.map_or(Vec::new(), |by| run.parts(by, &World::Sim))).collect();
        let of_run = |(run, parts): (&Run, &Vec<Row>), row: &Row| match &row.subject {
            None => run.value(row.metric),
            Some(_) => parts.iter().find(|part| part.metric == row.metric && part.subject == row.subject)?.value,
        };
        let of = |row: &Row| {
            let replayed: Option<Vec<f64>> = runs.iter().zip(&parts).map(|run| of_run(run, row)).collect();
            Some(Fidelity { metric: row.metric, subject: row.subject.clone(), recorded: row.value?, replayed: replayed? })
        };
        let recorded_parts = by.map_or(Vec::new(), |by| original.recorded_parts(by));
        recorded.iter().chain(&recorded_parts).filter_map(of).collect()
    }

    /// The relative error of each member's replay; the absolute one where the recording has zero.
    pub fn errors(&self) -> Vec<f64> {
        let scale = if self.recorded == 0.0 { 1.0 } else { self.recorded.abs() };
        self.replayed.iter().map(|replayed| (replayed - self.recorded).abs() / scale).collect()
    }

    /// The replay's error: nine of ten members are no further off.
    pub fn error(&self) -> Replay {
        match error_of_replay(&self.errors()) {
            None => Replay::Unknown,
            Some(error) if self.recorded == 0.0 => Replay::Fixed(error),
            Some(error) => Replay::Share(error),
        }
    }
}

/// Rows over runs, and what is to be decided about them.
#[derive(Debug, Default)]
pub struct Summed {
    /// In the order in which their first runs came.
    pub rows: Vec<Row>,
    /// Of each row by its number that has a baseline how it compares.
    pub compared: Vec<(usize, Comparison)>,
}

/// What the runs of one candidate in one metric came to.
struct Group<'r> {
    /// The row of the first run.
    first: &'r Row,
    /// By member.
    values: BTreeMap<u64, Option<f64>>,
    runs: u32,
    /// The first note, and how many runs have one.
    note: Option<&'r str>,
    noted: usize,
}

/// Everything of a row but its candidate and what was measured.
type Place<'r> = (&'r str, &'r World, u16, &'r Point, Option<SubjectKind>, Option<&'r str>, Metric);

/// Sums up `runs`, rows of single runs with the number of the member, and pairs the candidates with `baseline` by member. Of each `grr` there is an `ngrr` as well, the mean over
/// pairs of the ratio of the two (Curran & Stumm's NGRR if the baseline is `initial`). A difference is to be larger than the error of the replay, if something is replayed.
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
        let base = baseline.filter(|base| *base != candidate).and_then(|base| groups.get(&(place, base)));
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

/// Decides all that is to be decided about the rows of a table, which are shown together. What its text shows is one family of comparisons, all other rows are another.
pub fn settle<'a>(tables: impl IntoIterator<Item = (&'a mut [Row], &'a [(usize, Comparison)])>) {
    let (mut shown, mut others): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for (rows, compared) in tables {
        let mut of: BTreeMap<usize, &Comparison> = compared.iter().map(|(at, comparison)| (*at, comparison)).collect();
        for (at, row) in rows.iter_mut().enumerate() {
            if let Some(comparison) = of.remove(&at) {
                let family = if row.subject.is_none() && is_headline(row.metric) { &mut shown } else { &mut others };
                family.push((row, comparison.clone()));
            }
        }
    }
    for family in [shown, others] {
        let (rows, comparisons): (Vec<&mut Row>, Vec<Comparison>) = family.into_iter().unzip();
        rows.into_iter().zip(decide(&comparisons, ALPHA)).for_each(|(row, decision)| decision.write(row));
    }
}

/// What makes no difference in a metric: a fiftieth of the baseline, or of the whole where the metric is a share of one.
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

/// Where the values of a metric lie, with a 95 % interval: the mean, or the median where a few runs may rule the mean.
fn location(metric: Metric, mut values: Vec<f64>) -> Option<(f64, Option<(f64, f64)>)> {
    if metric.is_heavy_tailed() {
        let interval = median_interval(&mut values);
        return (!values.is_empty()).then(|| (median(&mut values), interval));
    }
    let Estimate { mean, half_width } = Estimate::of(&values)?;
    Some((mean, half_width.map(|half| (mean - half, mean + half))))
}

fn place(row: &Row) -> Place<'_> {
    (&row.workload, &row.world, row.cpus, &row.point, row.subject_kind, row.subject.as_deref(), row.metric)
}

impl Group<'_> {
    fn row(&self) -> Row {
        let values: Option<Vec<f64>> = self.values.values().copied().collect();
        self.row_of(self.first.metric, values.unwrap_or_default())
    }

    fn row_of(&self, metric: Metric, values: Vec<f64>) -> Row {
        let runs = self.values.len();
        let note =
            self.note.map(|note| if self.noted == runs { note.to_string() } else { format!("{} of {runs} runs: {note}", self.noted) });
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
        self.values.iter().filter_map(|(member, value)| Some(((*value)?, (*base.values.get(member)?)?)))
    }

    /// Whether this is all that there is on both sides.
    fn is_paired(&self, base: &Group<'_>) -> bool {
        self.pairs(base).count() == self.values.len().max(base.values.len())
    }

    /// None where no way is better, a run has no number, or there is only one.
    fn comparison(&self, base: &Group<'_>, fidelity: &[Fidelity]) -> Option<Comparison> {
        let metric = self.first.metric;
        let lower_is_better = match metric.description().direction {
            Direction::Lower => true,
            Direction::Higher => false,
            Direction::Neither => return None,
        };
        let of_metric = fidelity.iter().find(|fidelity| fidelity.metric == metric && fidelity.subject == self.first.subject);
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
        let ratios = if self.is_paired(base) { self.pairs(base).map(|(value, base)| value / base).collect() } else { Vec::new() };
        let row = self.row_of(Metric::ngrr, ratios);
        let of_base = base.note.map(|note| format!("{}: {note}", base.first.candidate));
        Row { note: row.note.clone().or(of_base), baseline: Some(base.first.candidate.clone()), ..row }
    }
}

impl statistics::Decision {
    /// Writes it down.
    pub(super) fn write(self, row: &mut Row) {
        let interval = self.effect.and_then(|effect| effect.interval);
        row.verdict = Some(self.verdict);
        row.reason = self.reason.map(|reason| reason.to_string());
        row.effect = self.effect.map(|effect| effect.size);
        row.effect_low = interval.map(|(low, _)| low);
        row.effect_high = interval.map(|(_, high)| high);
    }
}

#[cfg(test)]
mod tests;
