//! The columns of a table of rows, derived from the row type. CSV and Parquet share them.

use crate::Row;
use schemars::{Schema, schema_for};
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// One column.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Whether a cell can be null.
    pub optional: bool,
}

/// The type of a column's cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    /// A point: an object, written as JSON text.
    Object,
    /// A 64-bit float.
    Number,
    /// An unsigned integer with this number of bits.
    Whole(u8),
}

/// The cells of a row by column name. No cell is an object.
pub type Cells = Map<String, Value>;

/// The columns, in the order of a row's fields.
pub static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let schema = schema_for!(Row);
    let mut names: &[&str] = &[];
    let read = Row::deserialize(Names(&mut names));
    assert!(read.is_err() && !names.is_empty(), "a row is a structure");
    names.iter().map(|name| Column::of(name, &schema)).collect()
});

/// A deserializer that reads no data: it only records the names of a structure's fields, in order.
/// A JSON Schema does not keep that order.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("only the field names are read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a structure"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl Column {
    fn of(name: &'static str, schema: &Schema) -> Column {
        let property = schema.pointer(&format!("/properties/{name}")).cloned().unwrap_or_default();
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|one| one == name));
        let has = |word: &str| {
            property["type"] == word
                || property["type"]
                    .as_array()
                    .is_some_and(|types| types.iter().any(|one| one == word))
        };
        let bits = property["format"]
            .as_str()
            .and_then(|format| format.strip_prefix("uint")?.parse().ok());
        let kind = match (has("integer"), has("number"), name) {
            (true, ..) => Kind::Whole(bits.unwrap_or(64)),
            (_, true, _) => Kind::Number,
            (.., "point") => Kind::Object,
            _ => Kind::Text,
        };
        Column { name, kind, optional: !required }
    }
}

/// Converts a row to cells.
pub fn cells(row: &Row) -> Result<Cells, String> {
    let Ok(Value::Object(mut cells)) = serde_json::to_value(row) else {
        return Err("a row is not a structure".to_string());
    };
    for column in COLUMNS.iter().filter(|column| column.kind == Kind::Object) {
        if let Some(object) = cells.get_mut(column.name) {
            *object = Value::String(object.to_string());
        }
    }
    Ok(cells)
}

/// Converts cells to a row; a missing cell is null.
pub fn row(mut cells: Cells) -> Result<Row, String> {
    for column in COLUMNS.iter().filter(|column| column.kind == Kind::Object) {
        if let Some(Value::String(text)) = cells.get(column.name) {
            let object =
                serde_json::from_str(text).map_err(|error| format!("{}: {error}", column.name))?;
            cells.insert(column.name.to_string(), object);
        }
    }
    serde_json::from_value(Value::Object(cells)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_fields_of_a_row_with_their_types() {
        let of = |name: &str| {
            let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
            (column.kind, column.optional)
        };
        assert_eq!(
            COLUMNS.iter().map(|column| column.name).take(4).collect::<Vec<_>>(),
            ["workload", "world", "cpus", "baseline"]
        );
        assert_eq!(
            [of("world"), of("point"), of("verdict")],
            [(Kind::Text, false), (Kind::Object, false), (Kind::Text, true)]
        );
        assert_eq!(
            [of("cpus"), of("runs"), of("seed")],
            [(Kind::Whole(16), true), (Kind::Whole(32), false), (Kind::Whole(64), true)]
        );
        assert_eq!([of("value"), of("effect")], [(Kind::Number, true); 2]);
        assert_eq!(COLUMNS.len(), 25);
    }
}
