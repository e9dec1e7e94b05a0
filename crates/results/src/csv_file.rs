//! Writes rows as CSV and reads them back. A point is a JSON object.

use crate::columns::{COLUMNS, Cells, Column, Kind, cells, row};
use crate::{Row, SCHEMA};
use serde_json::{Number, Value};
use std::fmt::Display;

/// Writes the rows as CSV, with the column names as the first line.
///
/// # Errors
/// If a row cannot be written; this is not expected.
pub fn to_csv(rows: &[Row]) -> Result<String, String> {
    let failed = |error: &dyn Display| format!("cannot write CSV: {error}");
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(COLUMNS.iter().map(|column| column.name))
        .map_err(|error| failed(&error))?;
    for row in rows {
        let cells = cells(row)?;
        let text = |name: &str| match cells.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => guarded(text),
            // No exponent, and no decimal point for a whole number.
            Some(value) => value.as_u64().map_or_else(
                || value.as_f64().unwrap_or(f64::NAN).to_string(),
                |whole| whole.to_string(),
            ),
        };
        writer
            .write_record(COLUMNS.iter().map(|column| text(column.name)))
            .map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

/// Stands before text that a spreadsheet would take for a formula.
const GUARD: char = '\'';

/// Text that no spreadsheet takes for a formula; [`from_csv`] takes the guard off again.
fn guarded(text: &str) -> String {
    const FORMULA: [char; 7] = ['=', '+', '-', '@', '\t', '\r', GUARD];
    if text.starts_with(FORMULA) { format!("{GUARD}{text}") } else { text.to_string() }
}

/// Reads a file that [`to_csv`] wrote.
///
/// # Errors
/// If the columns are those of another version, or a cell does not fit its column. The message
/// names the line.
pub fn from_csv(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    if !header.iter().eq(COLUMNS.iter().map(|column| column.name)) {
        let known = |name: &&str| COLUMNS.iter().any(|column| column.name == *name);
        let differs = match header.iter().find(|name| !known(name)) {
            Some(name) => format!("`{name}` is not one of them"),
            None => "some are missing, repeated or in another order".to_string(),
        };
        return Err(format!(
            "line 1: these are not the columns of results version {SCHEMA}: {differs}; write the \
             file again with this program"
        ));
    }
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |(column, text): (&Column, &str)| {
            column.read(text).map(|value| (column.name.to_string(), value))
        };
        let cells = COLUMNS.iter().zip(&record).map(cell).collect::<Result<Cells, String>>();
        rows.push(cells.and_then(row).map_err(|why| format!("line {line}: {why}"))?);
    }
    Ok(rows)
}

impl Column {
    /// Reads one cell.
    fn read(&self, text: &str) -> Result<Value, String> {
        let refused = |what: &str| format!("{}: `{text}` is not {what}", self.name);
        match self.kind {
            _ if self.optional && text.is_empty() => Ok(Value::Null),
            Kind::Text => Ok(text.strip_prefix(GUARD).unwrap_or(text).into()),
            Kind::Object => Ok(text.into()),
            Kind::Number => text
                .parse()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| refused("a number")),
            Kind::Whole(bits) => {
                let fits = |whole: &u64| bits >= 64 || whole >> bits == 0;
                text.parse()
                    .ok()
                    .filter(fits)
                    .map(Value::from)
                    .ok_or_else(|| refused(&format!("a whole number of {bits} bits")))
            }
        }
    }
}
