//! Between which values a series can physically lie.

use crate::Paper;
use crate::binding::Binding;
use crate::queues::binding::{Binding as Queue, Measure, MeasuredColumn};
use formats::toml_file::TomlFile;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The limits of a series at a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The point.
    pub x: f64,
    /// The smallest possible value.
    pub low: f64,
    /// The largest possible value.
    pub high: f64,
}

/// The limits of a paper's series.
pub struct Limits {
    declared: Vec<Declared>,
    pub measured: Vec<Measured>,
}

/// `limits.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    limit: Vec<Declared>,
}

/// Limits with their reason; the first entry that matches a series applies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    /// A column of a table, a command or a grid, or `queues`, `grids` or `commands` for all of
    /// them.
    of: String,
    /// The metric or the measure; any if absent.
    metric: Option<String>,
    /// How the policy or the structure begins.
    policy: Option<String>,
    low: f64,
    high: f64,
    /// What each unit of x adds to the limits.
    #[serde(default)]
    low_per_x: f64,
    #[serde(default)]
    high_per_x: f64,
    because: String,
}

/// The smallest and the largest value of policies that were simulated: a row of `limits.csv`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub command: String,
    pub metric: String,
    pub x: f64,
    pub low: f64,
    pub low_under: String,
    pub high: f64,
    pub high_under: String,
}

/// What limits know of a series.
struct Kind {
    family: &'static str,
    of: String,
    metric: String,
    policy: String,
}

impl Limits {
    /// The limits of a built-in paper.
    pub fn of(paper: &Paper) -> Limits {
        let read = |file: &str| std::fs::read_to_string(path(&paper.name, file)).ok();
        let measured = read("limits.csv").unwrap_or_default();
        let measured = csv::Reader::from_reader(measured.as_bytes())
            .into_deserialize()
            .collect::<Result<_, _>>()
            .unwrap_or_else(|why| panic!("{}: limits.csv: {why}", paper.name));
        Limits::read(&read("limits.toml").unwrap_or_default(), measured)
    }

    pub fn read(declared: &str, measured: Vec<Measured>) -> Limits {
        let file: File =
            TomlFile::of("limits.toml", declared).parse().unwrap_or_else(|why| panic!("{why}"));
        assert!(file.limit.iter().all(|limit| !limit.because.is_empty()), "a limit has a reason");
        Limits { declared: file.limit, measured }
    }

    /// The limits of a series at `x`.
    ///
    /// # Errors
    /// If it has none.
    pub fn range(&self, binding: &Binding, x: f64) -> Result<Range, String> {
        let kind = Kind::of(binding);
        if let Some(limit) = self.declared.iter().find(|limit| limit.applies_to(&kind)) {
            return Ok(Range {
                x,
                low: limit.low + limit.low_per_x * x,
                high: limit.high + limit.high_per_x * x,
            });
        }
        self.measured
            .iter()
            .find(|one| one.command == kind.of && one.metric == kind.metric && one.x == x)
            .map(|one| Range { x, low: one.low, high: one.high })
            .ok_or_else(|| {
                let Kind { of, metric, policy, .. } = kind;
                format!("there is no limit of {metric} of {of}, {policy}, at {x}")
            })
    }
}

impl Declared {
    fn applies_to(&self, kind: &Kind) -> bool {
        (self.of == kind.of || self.of == kind.family)
            && self.metric.as_ref().is_none_or(|metric| *metric == kind.metric)
            && self.policy.as_ref().is_none_or(|policy| kind.policy.starts_with(policy.as_str()))
    }
}

impl Kind {
    fn of(binding: &Binding) -> Kind {
        let measure = |measure: &Measure| format!("{measure:?}").to_lowercase();
        let (family, of, metric, policy) = match binding {
            Binding::Grid(grid) => {
                ("grids", &grid.grid, grid.metric.clone(), Some(grid.policy.clone()))
            }
            Binding::Command(command) => {
                let metric = command.metric.id().to_string();
                ("commands", &command.command, metric, command.policy.clone())
            }
            Binding::Queue(Queue::Column(id)) => {
                ("queues", id, measure(&Measure::Instructions), None)
            }
            Binding::Queue(Queue::Measured(MeasuredColumn { column, measure: what })) => {
                ("queues", column, measure(what), None)
            }
            Binding::Queue(Queue::Load(load)) => {
                let queue = &load.load.queue;
                ("queues", queue, measure(&load.measure), Some(queue.clone()))
            }
        };
        Kind { family, of: of.clone(), metric, policy: policy.unwrap_or_default() }
    }
}

/// A file of a built-in paper in the repository.
pub fn path(paper: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(paper).join(file)
}
