//! One row of results.

use crate::{Coordinate, Metric, Point, Verdict, World};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use strum::{Display, IntoStaticStr, VariantArray};

/// One number: a metric of a workload under a candidate, in a world.
///
/// Its fields are the columns of every file, in this order. In a file an absent value is null, and
/// a point in a table is JSON text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// The world that the number comes from.
    pub world: World,
    /// The number of CPUs; 0 where that has no meaning (null in a file).
    #[serde(default, with = "cpus")]
    #[schemars(with = "Option<u16>")]
    pub cpus: u16,
    /// The baseline, if the row is a comparison.
    pub baseline: Option<String>,
    /// The policy, scheduler or ready queue that is measured.
    pub candidate: String,
    /// The kind of part that the number describes; absent if it describes the complete run.
    pub subject_kind: Option<SubjectKind>,
    /// The name of that part.
    pub subject: Option<String>,
    /// More coordinates.
    pub point: Point,
    /// The metric.
    pub metric: Metric,
    /// The metric's unit: `ns`, `1` for ratios, or what is counted.
    pub unit: Unit,
    /// The mean over the runs; absent if it cannot be measured: the note says why.
    pub value: Option<f64>,
    /// Lower end of the 95 % confidence interval.
    pub ci_low: Option<f64>,
    /// Upper end of the 95 % confidence interval.
    pub ci_high: Option<f64>,
    /// The number of runs.
    pub runs: u32,
    /// The difference from the baseline, in the metric's unit.
    pub difference: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub difference_low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    pub difference_high: Option<f64>,
    /// The difference as a share of the baseline; absent if the baseline is less than a tenth of
    /// the difference.
    pub effect: Option<f64>,
    /// Lower end of its 95 % confidence interval.
    pub effect_low: Option<f64>,
    /// Upper end of its 95 % confidence interval.
    pub effect_high: Option<f64>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// Why the verdict is undecided.
    pub reason: Option<String>,
    /// The seed of the first run.
    pub seed: Option<u64>,
    /// The hash of all inputs, if all are known.
    pub provenance: Option<String>,
    /// A remark that a reader must know.
    pub note: Option<String>,
}

/// The unit that a file states beside its metric. A row is written with its metric's unit, and a
/// file with another unit is refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Unit(Cow<'static, str>);

/// Writes 0 CPUs as null.
mod cpus {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(cpus: &u16, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*cpus).filter(|cpus| *cpus > 0).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        Option::deserialize(deserializer).map(Option::unwrap_or_default)
    }
}

/// Writes empty text and numbers that are not finite as absent: no file format can tell them apart.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = self.clone();
        for text in [&mut row.baseline, &mut row.reason, &mut row.provenance, &mut row.note] {
            text.take_if(|text| text.is_empty());
        }
        let intervals = [
            &mut row.value,
            &mut row.ci_low,
            &mut row.ci_high,
            &mut row.effect,
            &mut row.effect_low,
            &mut row.effect_high,
        ];
        for number in intervals.into_iter().chain([
            &mut row.difference,
            &mut row.difference_low,
            &mut row.difference_high,
        ]) {
            number.take_if(|number| !number.is_finite());
        }
        row.unit = Unit::of(row.metric);
        Row::serialize(&row, serializer)
    }
}

/// Refuses a unit that is not the metric's: the number would have another meaning.
impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        let row = Row::deserialize(deserializer)?;
        if row.unit != Unit::of(row.metric) {
            return Err(D::Error::custom(format!(
                "the unit of {} is `{}`, not `{}`",
                row.metric,
                row.metric.unit(),
                row.unit.0
            )));
        }
        if row.subject_kind.is_none() && row.subject.is_some() {
            return Err(D::Error::custom("a subject needs a subject_kind"));
        }
        // The name of a task can be empty.
        let subject = row.subject_kind.and(Some(row.subject.unwrap_or_default()));
        Ok(Row { subject, ..row })
    }
}

impl Unit {
    fn of(metric: Metric) -> Unit {
        Unit(Cow::Borrowed(metric.unit()))
    }
}

/// The kind of part that a row describes.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SubjectKind {
    /// A program.
    Program,
    /// A task, or all tasks with one name.
    Task,
    /// A function of a kernel.
    Function,
    /// Whose code it is: the kernel's, sched_ext's, the scheduler's, the tasks'.
    Side,
    /// A callback of a policy, or of a scheduler in BPF.
    Callback,
    /// The tasks of one class of the workload.
    Class,
    /// The tasks of one priority.
    Priority,
    /// A CPU.
    Cpu,
    /// A pipe, socket, futex or another object of system calls.
    Object,
    /// A kind of difference between two runs.
    Difference,
}

impl SubjectKind {
    /// All of them.
    pub const ALL: &'static [SubjectKind] = SubjectKind::VARIANTS;

    /// The word for this kind in results.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl Row {
    /// The number of tasks of the workload `yield:N`, as in rows of the cost atlas.
    pub fn tasks_of_yield(&self) -> Option<u32> {
        self.workload.strip_prefix("yield:")?.parse().ok()
    }

    /// A row without a number and without runs.
    pub fn new(world: World, metric: Metric) -> Row {
        Row {
            workload: String::new(),
            world,
            cpus: 0,
            baseline: None,
            candidate: String::new(),
            subject_kind: None,
            subject: None,
            point: Point::new(),
            metric,
            unit: Unit::of(metric),
            value: None,
            ci_low: None,
            ci_high: None,
            runs: 0,
            difference: None,
            difference_low: None,
            difference_high: None,
            effect: None,
            effect_low: None,
            effect_high: None,
            verdict: None,
            reason: None,
            seed: None,
            provenance: None,
            note: None,
        }
    }

    /// Sets the part that the row describes.
    pub fn of(self, kind: SubjectKind, subject: impl Into<String>) -> Row {
        Row { subject_kind: Some(kind), subject: Some(subject.into()), ..self }
    }

    /// Adds a coordinate.
    pub fn at(mut self, name: impl Into<String>, value: impl Into<Coordinate>) -> Row {
        self.point.set(name, value);
        self
    }

    /// The metric's unit.
    pub fn unit(&self) -> &'static str {
        self.metric.unit()
    }

    /// The name of the part, if it is of this kind.
    pub fn subject_of(&self, kind: SubjectKind) -> Option<&str> {
        self.subject.as_deref().filter(|_| self.subject_kind == Some(kind))
    }

    /// A coordinate by name. The kind of the subject counts as a coordinate.
    pub fn coordinate(&self, name: &str) -> Option<Cow<'_, Coordinate>> {
        let subject = || {
            self.subject
                .as_ref()
                .filter(|_| self.subject_kind.is_some_and(|kind| kind.word() == name))
        };
        self.point
            .get(name)
            .map(Cow::Borrowed)
            .or_else(|| subject().map(|subject| Cow::Owned(Coordinate::read(subject))))
    }

    /// A text coordinate; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.point.get(name).and_then(Coordinate::text).unwrap_or_default()
    }
}
