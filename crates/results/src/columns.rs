//! The columns of a table of rows, read off the type of a record: one shape for CSV and Parquet.

use crate::{Metric, Record, Row, World};
use schemars::{Schema, schema_for};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// A column.
#[derive(Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    /// Whether a cell may be null.
    pub optional: bool,
}

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    /// A float of 64 bits.
    Number,
    /// A whole number without a sign, of so many bits.
    Whole(u8),
}

/// The columns, in the order of a record's fields.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let schema = schema_for!(Record<String>);
    names().into_iter().map(|name| Column::of(name, &schema)).collect()
});

/// The fields of a record in their order, which a JSON Schema does not keep.
fn names() -> Vec<String> {
    let sample = Record::from(Row::new(World::Sim, Metric::ALL[0])).with_point(|_| Ok::<_, String>(String::new()));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = sample.ok().map(|sample| writer.serialize(sample));
    assert!(matches!(written, Some(Ok(()))), "a record is flat");
    let text = writer.into_inner().unwrap_or_default();
    let header = csv::Reader::from_reader(&text[..]).headers().map(|names| names.iter().map(str::to_string).collect());
    header.unwrap_or_default()
}

impl Column {
    fn of(name: String, schema: &Schema) -> Column {
        let property = schema.pointer(&format!("/properties/{name}")).cloned().unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| *one == *name));
        let has =
            |word: &str| property["type"] == word || property["type"].as_array().is_some_and(|types| types.iter().any(|one| one == word));
        let bits = property["format"].as_str().and_then(|format| format.strip_prefix("uint")?.parse().ok());
        let kind = match (has("integer"), has("number")) {
            (true, _) => Kind::Whole(bits.unwrap_or(64)),
            (_, true) => Kind::Number,
            _ => Kind::Text,
        };
        Column { name, kind, optional: !required }
    }
}

/// The cells of a row by column; the point as its text in JSON.
pub fn cells(row: &Row) -> Result<Map<String, Value>, String> {
    let record = Record::from(row.clone()).with_point(|point| serde_json::to_string(&point)).map_err(|error| error.to_string())?;
    match serde_json::to_value(record) {
        Ok(Value::Object(cells)) => Ok(cells),
        Ok(_) => Err("a row is no record".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The row with these cells.
pub fn row(record: Record<String>) -> Result<Row, String> {
    record.with_point(|point| serde_json::from_str(&point)).map_err(|error| format!("point: {error}")).and_then(Row::try_from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_fields_of_a_record_with_their_types() {
        let of = |name: &str| {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            (column.kind, column.optional)
        };
        assert_eq!(
            COLUMNS.iter().map(|column| column.name.as_str()).take(4).collect::<Vec<_>>(),
            ["workload", "world", "cpus", "baseline"]
        );
        assert_eq!([of("world"), of("point"), of("verdict")], [(Kind::Text, false), (Kind::Text, false), (Kind::Text, true)]);
        assert_eq!([of("cpus"), of("runs"), of("seed")], [(Kind::Whole(16), true), (Kind::Whole(32), false), (Kind::Whole(64), true)]);
        assert_eq!([of("value"), of("effect")], [(Kind::Number, true); 2]);
        assert_eq!(COLUMNS.len(), 22);
    }
}
