//! A series of the cost atlas in a claim or a figure.

use crate::Paper;
use crate::expression::Known;
use crate::fault::Fault;
use crate::table::{Column, Load, Source as ColumnSource, TableData, part};
use program::no_such;
use serde::{Deserialize, de};
use toml::Value;

/// A series of a claim.
#[derive(Clone, Debug)]
pub enum Binding {
    /// `T07/Linked List`: a column, with its printed numbers.
    Column(String),
    /// A column, with another measure.
    Measured(MeasuredColumn),
    /// A separate load.
    Load(MeasuredLoad),
}

/// A column, with another measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredColumn {
    /// The column.
    pub column: String,
    /// The measure.
    pub measure: Measure,
}

/// A separate load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredLoad {
    /// The measure.
    #[serde(default)]
    pub measure: Measure,
    /// Numbers of tasks; x.
    pub tasks: Vec<u32>,
    /// The structure, levels, mix and rates.
    pub load: Load,
}

/// The measured quantity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Instructions per operation, without the loop.
    #[default]
    Instructions,
    /// List elements, schedule entries or tree levels per operation.
    Examined,
    /// The longest wait of the most important level, in slices.
    FirstWait,
    /// Slices by level, for a single number of tasks; x is the level.
    Turns,
    /// The level of each slice from the first; x counts slices from 0.
    Order,
    /// First-level data cache misses per operation.
    D1Misses,
    /// Nanoseconds per operation.
    Time,
}

/// The name of a measured quantity.
pub fn key(id: &str, measure: Measure) -> String {
    format!("{id} by {measure:?}")
}

impl Binding {
    /// Parses a series that is neither of a grid nor of a command.
    ///
    /// # Errors
    /// If it is not a series of the cost atlas either.
    pub fn read<E: de::Error>(value: Value) -> Result<Binding, E> {
        const FORMS: &str = "a series is { grid, policy, metric, x }, { command, metric }, a \
                             column as in \"T07/Linked List\", { column, measure } or { load, \
                             tasks }";
        match value {
            Value::String(column) => Ok(Binding::Column(column)),
            Value::Table(ref table) if table.contains_key("column") => {
                part(value).map(Binding::Measured)
            }
            Value::Table(ref table) if table.contains_key("load") => part(value).map(Binding::Load),
            Value::Table(table) => Err(E::custom(format!(
                "{FORMS}; this has {}",
                table.keys().cloned().collect::<Vec<_>>().join(", ")
            ))),
            _ => Err(E::custom(FORMS)),
        }
    }

    /// What is known of it before it is measured.
    ///
    /// # Errors
    /// If it names something that does not exist: a key, and a message.
    pub fn known(&self, paper: &Paper) -> Result<Known, Fault> {
        let along = |measure: &Measure, axis: Vec<f64>| {
            (!matches!(measure, Measure::Turns | Measure::Order)).then_some(axis)
        };
        match self {
            Binding::Column(id) => {
                let (table, column) = paper.column(id).map_err(|why| (String::new(), why))?;
                Ok(Known { axis: Some(paper.axis(table, column)), is_printed: true })
            }
            Binding::Measured(MeasuredColumn { column, measure }) => {
                let wrong = |why| (".column".to_string(), why);
                let (table, column) = paper.column(column).map_err(wrong)?;
                table.measured(&column.name).map_err(wrong)?;
                Ok(Known { axis: along(measure, paper.axis(table, column)), is_printed: false })
            }
            Binding::Load(MeasuredLoad { measure, tasks, load }) => {
                load.fault().map_or(Ok(()), |(key, why)| Err((format!(".load.{key}"), why)))?;
                Ok(Known {
                    axis: along(measure, tasks.iter().map(|&tasks| f64::from(tasks)).collect()),
                    is_printed: false,
                })
            }
        }
    }

    /// The name of the measured quantity.
    pub fn key(&self) -> String {
        match self {
            Binding::Column(id) => key(id, Measure::Instructions),
            Binding::Measured(MeasuredColumn { column, measure }) => key(column, *measure),
            load => format!("{load:?}"),
        }
    }
}

impl Paper {
    /// The column with this id, such as `T07/Linked List`.
    pub fn column(&self, id: &str) -> Result<(&TableData, &Column), String> {
        let found = id.split_once('/').and_then(|(table, name)| {
            let table = self.table(table)?;
            Some((table, table.column.iter().find(|column| column.name == name)?))
        });
        found.ok_or_else(|| {
            let of = |table: &TableData| {
                table
                    .column
                    .iter()
                    .map(|column| format!("{}/{}", table.id, column.name))
                    .collect::<Vec<_>>()
            };
            let names: Vec<String> = self.experiments.table.iter().flat_map(of).collect();
            no_such(
                "column",
                id,
                &names,
                "The columns are the `[[table.column]]`s of experiments.toml.",
            )
        })
    }

    /// Every x at which a column has a number.
    pub(super) fn axis(&self, table: &TableData, column: &Column) -> Vec<f64> {
        let printed = |name: &str| {
            self.printed.series(table, name).into_iter().map(|(x, _)| x).collect::<Vec<f64>>()
        };
        match &column.source {
            ColumnSource::Measured(_) | ColumnSource::Slices(_) => printed(&column.name),
            ColumnSource::Difference([one, other]) => {
                let other = printed(other);
                printed(one).into_iter().filter(|x| other.contains(x)).collect()
            }
            ColumnSource::Delta(part) => printed(part).into_iter().skip(1).collect(),
        }
    }
}
