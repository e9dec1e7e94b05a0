//! The printed tables of a paper, and what each column measures.

use super::series::Series;
use atlas::measure;
use atlas::mix::Mix;
use atlas::rig::Body;
use atlas::structure::StrideRule;
use atlas::threads::Part;
use program::{Error, no_such};
use serde::{Deserialize, de};
use std::collections::BTreeMap;

/// A printed table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableData {
    /// The id, as in `tables.csv`.
    pub id: String,
    /// The title.
    pub title: String,
    /// What its rows vary.
    #[serde(default)]
    pub rows: Rows,
    /// The number of tasks, if rows vary something else.
    #[serde(default)]
    pub tasks: u32,
    /// The columns.
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
    /// The label of an axis over the rows.
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
#[serde(from = "ColumnKeys")]
pub struct Column {
    /// The name, as in `tables.csv`.
    pub name: String,
    /// The source of its numbers.
    pub source: Source,
    /// Why its keys do not give exactly one source.
    unclear: Option<String>,
}

/// The source of a column's numbers.
#[derive(Clone, Debug)]
pub enum Source {
    /// A measurement: the keys of a [`Load`].
    Measured(Load),
    /// One column minus another: `difference = ["A", "B"]`.
    Difference([String; 2]),
    /// A column minus itself one row above: `delta = "A"`.
    Delta(String),
    /// The number of slices in a run of the paper's length: `slices_per_second`, with the keys of
    /// a [`Load`] of real threads.
    Slices(Run),
}

/// A run of real threads for a number of the paper's seconds.
#[derive(Clone, Debug)]
pub struct Run {
    /// The threads and their structure.
    pub load: Load,
    /// The instructions in a second.
    pub instructions_per_second: f64,
    /// For how many slices a second is measured: as many as the paper counted in one.
    pub slices_per_second: f64,
}

/// A column with all possible keys, so that an unknown key gives an error at its position.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnKeys {
    name: String,
    difference: Option<[String; 2]>,
    delta: Option<String>,
    slices_per_second: Option<f64>,
    instructions_per_second: Option<f64>,
    #[serde(default)]
    queue: String,
    levels: Option<u16>,
    mix: Option<Mix>,
    strides: Option<StrideRule>,
    threads: Option<Part>,
    work: Option<u32>,
    called: Option<bool>,
}

impl From<ColumnKeys> for Column {
    fn from(keys: ColumnKeys) -> Column {
        let ColumnKeys {
            name,
            difference,
            delta,
            slices_per_second,
            instructions_per_second,
            queue,
            levels,
            mix,
            strides,
            threads,
            work,
            called,
        } = keys;
        let is_load = levels.is_some()
            || mix.is_some()
            || strides.is_some()
            || threads.is_some()
            || work.is_some()
            || called.is_some();
        let run = slices_per_second.zip(instructions_per_second);
        let is_run = slices_per_second.is_some() || instructions_per_second.is_some();
        let sources =
            [difference.is_some(), delta.is_some(), is_load || is_run || !queue.is_empty()];
        let unclear = if is_run && (run.is_none() || threads.is_none()) {
            Some("`slices_per_second` needs `instructions_per_second`, `queue` and `threads`")
        } else {
            (sources.iter().filter(|&&is_there| is_there).count() != 1).then_some(
                "give one of `queue` (with levels, mix, strides, …), `difference` and `delta`",
            )
        };
        let load = Load {
            queue,
            levels: levels.unwrap_or(one()),
            mix: mix.unwrap_or(first_level()),
            strides: strides.unwrap_or_default(),
            threads,
            work: work.unwrap_or_default(),
            called: called.unwrap_or_default(),
        };
        let source = match (difference, delta, run) {
            (Some(parts), ..) => Source::Difference(parts),
            (_, Some(part), _) => Source::Delta(part),
            (.., Some((slices_per_second, instructions_per_second))) => {
                Source::Slices(Run { load, instructions_per_second, slices_per_second })
            }
            _ => Source::Measured(load),
        };
        let unclear = unclear.map(str::to_string);
        Column { name, source, unclear }
    }
}

/// Parses a value; errors keep serde's own words.
pub fn part<T: de::DeserializeOwned, E: de::Error>(value: toml::Value) -> Result<T, E> {
    value.try_into().map_err(|error: toml::de::Error| E::custom(error.message()))
}

/// A structure under a load.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The structure.
    pub queue: String,
    /// The number of levels.
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
    /// The rounds of work of a thread.
    #[serde(default)]
    pub work: u32,
    /// The loop, but with calls to the structure as between threads, not inlined.
    #[serde(default)]
    pub called: bool,
}

impl Load {
    /// An error in it: a key, and a message.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        if self.levels == 0 {
            return Some(("levels", "a structure needs at least one level".to_string()));
        }
        let queue =
            measure::select(std::slice::from_ref(&self.queue)).err().map(|why| ("queue", why));
        queue.or_else(|| self.mix.levels(self.levels).err().map(|why| ("mix", why)))
    }

    /// What runs in a slice.
    pub fn body(&self) -> Body {
        self.threads.map_or(if self.called { Body::Called } else { Body::Nothing }, |part| {
            Body::Thread { part, work: self.work }
        })
    }
}

fn one() -> u16 {
    1
}

fn first_level() -> Mix {
    Mix::One(0)
}

/// The printed numbers.
#[derive(Default)]
pub struct Printed {
    path: String,
    /// The row text and the number, by table and column.
    columns: BTreeMap<(String, String), Vec<(String, f64)>>,
    /// The line, table, column and row of each number.
    places: Vec<(usize, String, String, String)>,
}

/// The first columns of every `tables.csv`; a paper may add columns.
const HEADER: [&str; 5] = ["table", "source_line", "row", "column", "value"];

impl Printed {
    /// Reads `tables.csv`: `table,source_line,row,column,value`.
    ///
    /// # Errors
    /// Another header, or a missing or bad number, with its line.
    pub fn read(path: &str, text: &str) -> Result<Printed, Error> {
        let mut printed = Printed { path: path.to_string(), ..Printed::default() };
        let broken = |error: csv::Error| Error::Input(format!("{path}: {error}"));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = reader
            .headers()
            .map_err(broken)?
            .iter()
            .take(HEADER.len())
            .map(str::to_string)
            .collect();
        if header != HEADER {
            return Err(Error::Input(format!(
                "{path}:1: the columns are {}, and must be {}",
                header.join(","),
                HEADER.join(",")
            )));
        }
        for (index, record) in reader.records().enumerate() {
            let record = record.map_err(broken)?;
            let line = index + 2;
            let field = |index: usize| record.get(index).unwrap_or_default().trim().to_string();
            let (table, row, column, value) = (field(0), field(2), field(3), field(4));
            let value = value.parse().map_err(|_| {
                let wrong = if value.is_empty() {
                    "is missing".to_string()
                } else {
                    format!("is `{value}`, which is not a number")
                };
                Error::Input(format!(
                    "{path}:{line}: value: the value of {table}/{column}, row `{row}`, {wrong}"
                ))
            })?;
            printed.places.push((line, table.clone(), column.clone(), row.clone()));
            printed.columns.entry((table, column)).or_default().push((row, value));
        }
        Ok(printed)
    }

    /// Checks that each number belongs to a column of these tables, in a row with a position.
    ///
    /// # Errors
    /// The first number that does not, with its line.
    pub fn check(&self, tables: &[TableData]) -> Result<(), Error> {
        for (line, id, column, row) in &self.places {
            let wrong = |key: &str, message: String| {
                Err(Error::Input(format!("{}:{line}: {key}: {message}", self.path)))
            };
            let Some(table) = tables.iter().find(|table| table.id == *id) else {
                let names: Vec<String> = tables.iter().map(|table| table.id.clone()).collect();
                return wrong(
                    "table",
                    no_such("table", id, &names, "The `[[table]]`s are in experiments.toml."),
                );
            };
            if !table.column.iter().any(|own| own.name == *column) {
                let names: Vec<String> =
                    table.column.iter().map(|column| column.name.clone()).collect();
                return wrong(
                    "column",
                    no_such(
                        "column",
                        column,
                        &names,
                        &format!("The columns of {id} are in experiments.toml."),
                    ),
                );
            }
            if table.rows == Rows::Mix {
                if let Err(why) = table.mix(row) {
                    return wrong("row", why);
                }
            } else if table.x(0, row).is_nan() {
                return wrong(
                    "row",
                    format!("`{row}` does not begin with a number of {}", table.rows.label()),
                );
            }
        }
        Ok(())
    }

    /// The rows of a column: text and number.
    pub fn rows(&self, table: &str, column: &str) -> &[(String, f64)] {
        self.columns.get(&(table.to_string(), column.to_string())).map_or(&[], Vec::as_slice)
    }

    /// The column as a series.
    pub fn series(&self, table: &TableData, column: &str) -> Series {
        self.rows(&table.id, column)
            .iter()
            .enumerate()
            .map(|(index, (row, value))| (table.x(index, row), *value))
            .collect()
    }

    /// The number of printed numbers.
    pub fn numbers(&self) -> usize {
        self.columns.values().map(Vec::len).sum()
    }
}

impl TableData {
    /// `P-TAB07` for `T07`.
    pub fn claim_id(&self) -> String {
        format!("P-TAB{}", self.id.trim_start_matches('T'))
    }

    /// The number of slices in a second of the paper, if the table gives it.
    pub fn slices_per_second(&self) -> f64 {
        let given = |column: &Column| {
            if let Source::Slices(run) = &column.source {
                Some(run.slices_per_second)
            } else {
                None
            }
        };
        self.column.iter().find_map(given).unwrap_or(f64::NAN)
    }

    /// The mix of a row: its first letter.
    ///
    /// # Errors
    /// If there is no such mix.
    pub fn mix(&self, row: &str) -> Result<Mix, String> {
        row.chars().take(1).collect::<String>().parse()
    }

    /// The column with this name, which must be measured.
    ///
    /// # Errors
    /// If there is none.
    pub fn measured(&self, name: &str) -> Result<&Column, String> {
        let mut measured =
            self.column.iter().filter(|column| matches!(column.source, Source::Measured(_)));
        measured.clone().find(|column| column.name == name).ok_or_else(|| {
            let names: Vec<String> = measured.by_ref().map(|column| column.name.clone()).collect();
            no_such(
                "column",
                name,
                &names,
                &format!("The measured columns of {} are {}.", self.id, names.join(", ")),
            )
        })
    }

    /// The x of a row: its number of tasks or seconds, or its index.
    pub fn x(&self, index: usize, row: &str) -> f64 {
        let number = row.split_whitespace().next().and_then(|word| word.parse().ok());
        match self.rows {
            Rows::Mix => (index + 1) as f64,
            Rows::Tasks | Rows::Length => number.unwrap_or(f64::NAN),
        }
    }
}

impl Column {
    /// An error in it, as a column of `table`: a key, and a message.
    pub fn fault(&self, table: &TableData) -> Option<(String, String)> {
        if let Some(why) = &self.unclear {
            return Some(("name".to_string(), why.clone()));
        }
        let part = |key: String, name: &str| table.measured(name).err().map(|why| (key, why));
        match &self.source {
            Source::Measured(load) | Source::Slices(Run { load, .. }) => {
                load.fault().map(|(key, why)| (key.to_string(), why))
            }
            Source::Difference([one, other]) => part("difference[0]".to_string(), one)
                .or_else(|| part("difference[1]".to_string(), other)),
            Source::Delta(name) => part("delta".to_string(), name),
        }
    }

    /// The measured structure, if there is one.
    pub fn queue(&self) -> &str {
        match &self.source {
            Source::Measured(load) | Source::Slices(Run { load, .. }) => &load.queue,
            Source::Difference(_) | Source::Delta(_) => "",
        }
    }
}
