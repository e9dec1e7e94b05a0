//! What a paper did: its printed tables and what each column measures.

use super::commands::CommandData;
use super::figure::FigureData;
use super::grids::Regime;
use super::series::Series;
use crate::Error;
use crate::atlas::mix::Mix;
use crate::atlas::rig::Body;
use crate::atlas::structure::StrideRule;
use crate::atlas::threads::Part;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What stands in `experiments.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiments {
    /// Tables, in the order of the paper.
    #[serde(default)]
    pub table: Vec<TableData>,
    /// Figures.
    #[serde(default)]
    pub figure: Vec<FigureData>,
    /// How long simulations are.
    #[serde(default)]
    pub regime: Vec<Regime>,
    /// What is run.
    #[serde(default)]
    pub command: Vec<CommandData>,
}

/// A printed table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableData {
    /// As in `tables.csv`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What its rows vary.
    #[serde(default)]
    pub rows: Rows,
    /// How many tasks, where rows vary something else.
    #[serde(default)]
    pub tasks: u32,
    /// Its columns.
    pub column: Vec<Column>,
}

/// What the rows of a table vary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rows {
    /// The number of tasks.
    #[default]
    Tasks,
    /// The mix; x is its number.
    Mix,
    /// The run length; x is in seconds of the paper.
    Length,
}

impl Rows {
    /// What an axis over them is called.
    pub fn label(self) -> &'static str {
        match self {
            Rows::Tasks => "tasks",
            Rows::Mix => "mix (A = 1)",
            Rows::Length => "seconds",
        }
    }
}

/// A column of a table.
#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    /// As in `tables.csv`.
    pub name: String,
    /// What was measured.
    #[serde(flatten)]
    pub source: Source,
}

/// Where the numbers of a column come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// A measurement.
    Measured(Load),
    /// One column minus another.
    Difference {
        /// The two.
        difference: [String; 2],
    },
    /// A column minus itself one row above.
    Delta {
        /// Which.
        delta: String,
    },
    /// The number of slices that were run: given, not measured.
    Slices {
        /// Per second of the paper.
        slices_per_second: f64,
    },
}

/// A structure under a load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The structure.
    pub queue: String,
    /// How many levels.
    #[serde(default = "one")]
    pub levels: u16,
    /// The mix.
    #[serde(default = "first_level")]
    pub mix: Mix,
    /// The rates.
    #[serde(default)]
    pub strides: StrideRule,
    /// Real threads instead of the loop: what happens between two slices.
    pub threads: Option<Part>,
    /// How many rounds of work a thread does.
    #[serde(default)]
    pub work: u32,
    /// The loop, but with the structure called as between threads, not inlined.
    #[serde(default)]
    pub called: bool,
}

impl Load {
    /// What runs in a slice.
    pub fn body(&self) -> Body {
        self.threads.map_or(if self.called { Body::Called } else { Body::Nothing }, |part| Body::Thread { part, work: self.work })
    }
}

fn one() -> u16 {
    1
}

fn first_level() -> Mix {
    Mix::One(0)
}

/// The printed numbers by table and column, with what the row says.
#[derive(Default)]
pub struct Printed(BTreeMap<(String, String), Vec<(String, f64)>>);

impl Printed {
    /// From `tables.csv`: `table,source_line,row,column,value`.
    ///
    /// # Errors
    /// A number that is missing or none, with its line.
    pub fn read(path: &str, text: &str) -> Result<Printed, Error> {
        let mut columns: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
        for (index, record) in csv::Reader::from_reader(text.as_bytes()).records().enumerate() {
            let broken = |error: csv::Error| Error::Input(format!("{path}: {error}"));
            let record = record.map_err(broken)?;
            let line = index + 2;
            let field = |index: usize| record.get(index).unwrap_or_default().trim().to_string();
            let (table, row, column, value) = (field(0), field(2), field(3), field(4));
            let value = value.parse().map_err(|_| {
                let wrong = if value.is_empty() { "is missing".to_string() } else { format!("is `{value}`, which is no number") };
                Error::Input(format!("{path}:{line}: value: the value of {table}/{column}, row `{row}`, {wrong}"))
            })?;
            columns.entry((table, column)).or_default().push((row, value));
        }
        Ok(Printed(columns))
    }

    /// The rows of a column: what each says, and its number.
    pub fn rows(&self, table: &str, column: &str) -> &[(String, f64)] {
        self.0.get(&(table.to_string(), column.to_string())).map_or(&[], Vec::as_slice)
    }

    /// The column as a series.
    pub fn series(&self, table: &TableData, column: &str) -> Series {
        self.rows(&table.id, column).iter().enumerate().map(|(index, (row, value))| (table.x(index, row), *value)).collect()
    }

    /// How many numbers there are.
    pub fn numbers(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

impl TableData {
    /// `P-TAB07` for `T07`.
    pub fn claim_id(&self) -> String {
        format!("P-TAB{}", self.id.trim_start_matches('T'))
    }

    /// How many slices a second of the paper has, where the table says so.
    pub fn slices_per_second(&self) -> f64 {
        let given = |column: &Column| if let Source::Slices { slices_per_second } = column.source { Some(slices_per_second) } else { None };
        self.column.iter().find_map(given).unwrap_or(f64::NAN)
    }

    /// Where a row stands: its number of tasks or seconds, or its place.
    pub fn x(&self, index: usize, row: &str) -> f64 {
        let number = row.split_whitespace().next().and_then(|word| word.parse().ok());
        match self.rows {
            Rows::Mix => (index + 1) as f64,
            Rows::Tasks | Rows::Length => number.unwrap_or(f64::NAN),
        }
    }
}

impl Column {
    /// The structure that was measured, if one was.
    pub fn queue(&self) -> &str {
        match &self.source {
            Source::Measured(load) => &load.queue,
            _ => "",
        }
    }
}
