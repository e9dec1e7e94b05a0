//! The data of a paper: its tables, figures and claims.

use super::super::mix::Mix;
use super::super::rig::Body;
use super::super::structure::StrideRule;
use super::super::threads::Part;
use super::expression::Check;
use super::series::Series;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What stands in `experiments.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiments {
    /// Tables, in the order of the paper.
    pub table: Vec<TableData>,
    /// Figures.
    pub figure: Vec<Figure>,
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
}

impl Load {
    /// What runs in a slice.
    pub fn body(&self) -> Body {
        self.threads.map_or(Body::Nothing, |part| Body::Thread { part, work: self.work })
    }
}

fn one() -> u16 {
    1
}

fn first_level() -> Mix {
    Mix::One(0)
}

/// A figure: which columns it draws.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// `P-FIG01`, ….
    pub id: String,
    /// What it shows.
    pub title: String,
    /// `T02/…`, the columns.
    #[serde(default)]
    pub series: Vec<String>,
    /// Orders of levels instead: one task at each level of these structures.
    #[serde(default)]
    pub orders: Vec<Load>,
}

/// What stands in `claims.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Claims and checks.
    pub claim: Vec<Claim>,
}

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// `P-CLM01`, ….
    pub id: String,
    /// What it says.
    pub says: String,
    /// The series it speaks about.
    #[serde(default, rename = "let")]
    pub bindings: BTreeMap<String, Binding>,
    /// Comparisons that hold if the claim does.
    #[serde(default)]
    pub check: Vec<String>,
    /// Whether they can be put to the printed numbers too.
    #[serde(default = "yes")]
    pub in_print: bool,
    /// The verdict that is known, where it is not `reproduced`, and why.
    #[serde(default)]
    pub known: BTreeMap<String, Known>,
    /// Why it is not measured at all.
    pub skipped: Option<String>,
    /// What a reader must know.
    pub note: Option<String>,
}

fn yes() -> bool {
    true
}

/// A verdict on record other than `reproduced`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// It.
    pub verdict: String,
    /// Why.
    pub because: String,
}

/// A series of a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Binding {
    /// `T07/Linked List`: a column, with its printed numbers.
    Column(String),
    /// A column, by another measure.
    Measure {
        /// Which.
        column: String,
        /// By what.
        measure: Measure,
    },
    /// A load of its own.
    Load {
        /// By what.
        #[serde(default)]
        measure: Measure,
        /// Numbers of tasks; x.
        tasks: Vec<u32>,
        /// The structure, levels, mix and rates.
        load: Load,
    },
}

/// What is measured.
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
    /// Turns by level, of a single number of tasks; x is the level.
    Turns,
    /// The level of each slice from the first; x counts slices from 0.
    Order,
    /// First-level data cache misses per operation.
    D1Misses,
    /// Nanoseconds per operation.
    Time,
}

/// The printed numbers by table and column, with what the row says.
pub struct Printed(BTreeMap<(String, String), Vec<(String, f64)>>);

impl Printed {
    /// From `tables.csv`.
    pub fn parse(text: &str) -> Result<Printed, String> {
        let mut columns: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
        for record in csv::Reader::from_reader(text.as_bytes()).records() {
            let record = record.map_err(|error| format!("tables.csv: {error}"))?;
            let field = |index: usize| record.get(index).unwrap_or_default().to_string();
            let value = field(4).parse().map_err(|_| format!("tables.csv: `{}` is no number", field(4)))?;
            columns.entry((field(0), field(3))).or_default().push((field(2), value));
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

impl Claim {
    /// Its checks, parsed.
    pub fn checks(&self) -> Result<Vec<Check>, String> {
        self.check.iter().map(|text| Check::parse(text).map_err(|why| format!("{}: {why}", self.id))).collect()
    }
}
