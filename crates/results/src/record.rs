//! A row as a file has it: a column for each field, null for what is absent.

use crate::{Metric, Point, Row, SubjectKind, Verdict, World};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A row as a file has it. `P` is the form of the point: an object in JSON, its text in a table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record<P = Point> {
    /// The workload's name.
    pub workload: String,
    /// Where the number comes from.
    pub world: World,
    /// How many CPUs.
    pub cpus: Option<u16>,
    /// What the candidate is compared with.
    pub baseline: Option<String>,
    /// The policy, scheduler or ready queue that is measured.
    pub candidate: String,
    /// What kind of part the number is of; null if it is of all.
    pub subject_kind: Option<SubjectKind>,
    /// Its name.
    pub subject: Option<String>,
    /// Further coordinates.
    pub point: P,
    /// What the number says.
    pub metric: Metric,
    /// The metric's unit: `ns`, `1` for ratios, or what is counted.
    pub unit: String,
    /// The mean over the runs; null where the metric cannot be had, and the note says why.
    pub value: Option<f64>,
    /// Lower end of the 95 % confidence interval.
    pub ci_low: Option<f64>,
    /// Upper end of it.
    pub ci_high: Option<f64>,
    /// How many runs.
    pub runs: u32,
    /// The difference from the baseline as a share of the baseline.
    pub effect: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub effect_low: Option<f64>,
    /// Upper end of it.
    pub effect_high: Option<f64>,
    /// What was decided.
    pub verdict: Option<Verdict>,
    /// Why it is undecided.
    pub reason: Option<String>,
    /// The seed of the (first) run.
    pub seed: Option<u64>,
    /// The hash of all inputs, where all are known.
    pub provenance: Option<String>,
    /// What a reader must know.
    pub note: Option<String>,
}

impl<P> Record<P> {
    /// The same with another form of the point.
    ///
    /// # Errors
    /// If `form` fails.
    pub fn with_point<Q, E>(self, form: impl FnOnce(P) -> Result<Q, E>) -> Result<Record<Q>, E> {
        Ok(Record {
            workload: self.workload,
            world: self.world,
            cpus: self.cpus,
            baseline: self.baseline,
            candidate: self.candidate,
            subject_kind: self.subject_kind,
            subject: self.subject,
            point: form(self.point)?,
            metric: self.metric,
            unit: self.unit,
            value: self.value,
            ci_low: self.ci_low,
            ci_high: self.ci_high,
            runs: self.runs,
            effect: self.effect,
            effect_low: self.effect_low,
            effect_high: self.effect_high,
            verdict: self.verdict,
            reason: self.reason,
            seed: self.seed,
            provenance: self.provenance,
            note: self.note,
        })
    }
}

/// What no file can tell from what is absent is absent: text of no letters, and numbers that are none.
impl From<Row> for Record {
    fn from(row: Row) -> Record {
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let number = |number: Option<f64>| number.filter(|number| number.is_finite());
        Record {
            workload: row.workload,
            world: row.world,
            cpus: Some(row.cpus).filter(|cpus| *cpus > 0),
            baseline: text(row.baseline),
            candidate: row.candidate,
            subject_kind: row.subject_kind,
            subject: row.subject,
            point: row.point,
            metric: row.metric,
            unit: row.metric.unit().to_string(),
            value: number(row.value),
            ci_low: number(row.ci_low),
            ci_high: number(row.ci_high),
            runs: row.runs,
            effect: number(row.effect),
            effect_low: number(row.effect_low),
            effect_high: number(row.effect_high),
            verdict: row.verdict,
            reason: text(row.reason),
            seed: row.seed,
            provenance: text(row.provenance),
            note: text(row.note),
        }
    }
}

/// Refuses a record whose unit is not the metric's: its number would mean something else.
impl TryFrom<Record> for Row {
    type Error = String;

    fn try_from(record: Record) -> Result<Row, String> {
        if record.unit != record.metric.unit() {
            return Err(format!("{} is in `{}`, and `{}` is given", record.metric, record.metric.unit(), record.unit));
        }
        if record.subject_kind.is_none() && record.subject.is_some() {
            return Err("there is a subject without a subject_kind".to_string());
        }
        Ok(Row {
            workload: record.workload,
            world: record.world,
            cpus: record.cpus.unwrap_or(0),
            baseline: record.baseline,
            candidate: record.candidate,
            subject_kind: record.subject_kind,
            // A task may have no name.
            subject: record.subject_kind.and(Some(record.subject.unwrap_or_default())),
            point: record.point,
            metric: record.metric,
            value: record.value,
            ci_low: record.ci_low,
            ci_high: record.ci_high,
            runs: record.runs,
            effect: record.effect,
            effect_low: record.effect_low,
            effect_high: record.effect_high,
            verdict: record.verdict,
            reason: record.reason,
            seed: record.seed,
            provenance: record.provenance,
            note: record.note,
        })
    }
}
