//! Rows as CSV, and back. The point is an object of JSON.

use crate::columns::{COLUMNS, cells, row};
use crate::{Record, Row, SCHEMA};
use serde_json::Value;
use std::fmt::Display;

/// The rows as CSV, under the names of the columns.
///
/// # Errors
/// If a row cannot be written, which none of them should be.
pub fn to_csv(rows: &[Row]) -> Result<String, String> {
    let failed = |error: &dyn Display| format!("cannot write CSV: {error}");
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|column| &column.name)).map_err(|error| failed(&error))?;
    for row in rows {
        let cells = cells(row)?;
        let text = |name: &String| match cells.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Without an exponent, and without a point where the number is whole.
            Some(value) => value.as_u64().map_or_else(|| value.as_f64().unwrap_or(f64::NAN).to_string(), |whole| whole.to_string()),
        };
        writer.write_record(COLUMNS.iter().map(|column| text(&column.name))).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

/// The rows of a file that [`to_csv`] made.
///
/// # Errors
/// If its columns are those of another version, or a cell is not what its column has; with the line.
pub fn from_csv(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if !header.iter().eq(COLUMNS.iter().map(|column| column.name.as_str())) {
        let known = |name: &&str| COLUMNS.iter().any(|column| column.name == **name);
        let differs = match header.iter().find(|name| !known(name)) {
            Some(name) => format!("`{name}` is none of them"),
            None => "some are missing, twice there, or in another order".to_string(),
        };
        return Err(format!(
            "line 1: its columns are not those of results of version {SCHEMA}: {differs}; write the file again with this program"
        ));
    }
    let mut rows = Vec::new();
    let mut cells = csv::StringRecord::new();
    while reader.read_record(&mut cells).map_err(|error| error.to_string())? {
        let line = cells.position().map_or(0, csv::Position::line);
        let record: Record<String> = cells.deserialize(Some(&header)).map_err(|error| match error.kind() {
            csv::ErrorKind::Deserialize { err, .. } => {
                let column = err.field().and_then(|field| COLUMNS.get(usize::try_from(field).ok()?));
                format!("line {line}: {}{}", column.map_or(String::new(), |column| format!("{}: ", column.name)), err.kind())
            }
            _ => format!("line {line}: {error}"),
        })?;
        rows.push(row(record).map_err(|why| format!("line {line}: {why}"))?);
    }
    Ok(rows)
}
