//! One result.

use crate::{Coordinate, Metric, Point, Record, Verdict, World};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// One number: a metric of a workload under a candidate, in a world.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Record", try_from = "Record")]
pub struct Row {
    /// The workload's name.
    pub workload: String,
    /// Where the number comes from.
    pub world: World,
    /// How many CPUs; 0 where that means nothing.
    pub cpus: u16,
    /// What the candidate is compared with, if it is.
    pub baseline: Option<String>,
    /// The policy, scheduler or ready queue that is measured.
    pub candidate: String,
    /// What kind of part the number is of; none if it is of all.
    pub subject_kind: Option<SubjectKind>,
    /// Its name.
    pub subject: Option<String>,
    /// Further coordinates.
    pub point: Point,
    /// What the number says.
    pub metric: Metric,
    /// The mean over the runs; none where the metric cannot be had, and the note says why.
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

/// A part of what ran, or of what was measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A program.
    Program,
    /// A task, or all tasks of one name.
    Task,
    /// A function of a kernel.
    Function,
    /// A callback of a policy.
    Callback,
    /// The tasks of a class of the workload.
    Class,
    /// The tasks of a priority.
    Priority,
    /// A CPU.
    Cpu,
    /// A kind of difference between two runs.
    Difference,
}

impl SubjectKind {
    /// All of them.
    pub const ALL: [SubjectKind; 8] = [
        SubjectKind::Program,
        SubjectKind::Task,
        SubjectKind::Function,
        SubjectKind::Callback,
        SubjectKind::Class,
        SubjectKind::Priority,
        SubjectKind::Cpu,
        SubjectKind::Difference,
    ];

    /// The word for it in results.
    pub fn word(self) -> &'static str {
        match self {
            SubjectKind::Program => "program",
            SubjectKind::Task => "task",
            SubjectKind::Function => "function",
            SubjectKind::Callback => "callback",
            SubjectKind::Class => "class",
            SubjectKind::Priority => "priority",
            SubjectKind::Cpu => "cpu",
            SubjectKind::Difference => "difference",
        }
    }
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Row {
    /// A row about nothing yet: no number, no run.
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
            value: None,
            ci_low: None,
            ci_high: None,
            runs: 0,
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

    /// The same of a part.
    pub fn of(self, kind: SubjectKind, subject: impl Into<String>) -> Row {
        Row { subject_kind: Some(kind), subject: Some(subject.into()), ..self }
    }

    /// The same with one coordinate more.
    pub fn at(mut self, name: impl Into<String>, value: impl Into<Coordinate>) -> Row {
        self.point.set(name, value);
        self
    }

    /// The metric's unit.
    pub fn unit(&self) -> &'static str {
        self.metric.unit()
    }

    /// The name of the part that it is of, if it is of one of this kind.
    pub fn subject_of(&self, kind: SubjectKind) -> Option<&str> {
        self.subject.as_deref().filter(|_| self.subject_kind == Some(kind))
    }

    /// A coordinate by its name; the kind of the subject is the name of one, too.
    pub fn coordinate(&self, name: &str) -> Option<Cow<'_, Coordinate>> {
        let subject = || self.subject.as_ref().filter(|_| self.subject_kind.is_some_and(|kind| kind.word() == name));
        self.point.get(name).map(Cow::Borrowed).or_else(|| subject().map(|subject| Cow::Owned(Coordinate::read(subject))))
    }

    /// A coordinate that is text; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.point.get(name).and_then(Coordinate::text).unwrap_or_default()
    }
}
