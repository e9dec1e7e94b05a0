//! Writes rows as Parquet and reads them back: one column per field, with the schema version and
//! the provenance in the file's metadata.

use crate::columns::{COLUMNS, Cells, Column, Kind, cells, row};
use crate::{Row, SCHEMA};
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row as Fields};
use parquet::schema::parser::parse_message_type;
use serde_json::{Number, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const VERSION: &str = "schedlab.schema";

/// Returns the rows as a Parquet file, with `metadata` beside the schema version.
///
/// # Errors
/// If a row cannot be written; this is not expected.
pub fn to_parquet(rows: &[Row], metadata: &[(&str, &str)]) -> Result<Vec<u8>, String> {
    let rows = rows.iter().map(cells).collect::<Result<Vec<_>, String>>()?;
    write(&rows, metadata).map_err(|error| format!("cannot write Parquet: {error}"))
}

fn write(rows: &[Cells], metadata: &[(&str, &str)]) -> Result<Vec<u8>, ParquetError> {
    let version = SCHEMA.to_string();
    let metadata = [(VERSION, version.as_str())].into_iter().chain(metadata.iter().copied());
    let metadata =
        metadata.map(|(key, value)| KeyValue::new(key.to_string(), value.to_string())).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("schedlab".to_string())
        .set_key_value_metadata(Some(metadata))
        .build();
    let columns: String = COLUMNS.iter().map(Column::declaration).collect();
    let schema = Arc::new(parse_message_type(&format!("message row {{ {columns} }}"))?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for Column { name, kind, optional } in COLUMNS.iter() {
        let cells = rows.iter().map(|row| row.get(*name).unwrap_or(&Value::Null));
        match kind {
            Kind::Text | Kind::Object => column::<ByteArrayType>(
                &mut group,
                cells.map(|cell| cell.as_str().map(ByteArray::from)),
                *optional,
            ),
            Kind::Number => column::<DoubleType>(&mut group, cells.map(Value::as_f64), *optional),
            Kind::Whole(64) => column::<Int64Type>(
                &mut group,
                cells.map(|cell| cell.as_u64().map(u64::cast_signed)),
                *optional,
            ),
            Kind::Whole(_) => {
                let bits = |cell: &Value| {
                    cell.as_u64().and_then(|whole| u32::try_from(whole).ok()).map(u32::cast_signed)
                };
                column::<Int32Type>(&mut group, cells.map(bits), *optional)
            }
        }?;
    }
    group.close()?;
    writer.into_inner()
}

/// Writes the next column. An optional column has a definition level for each row: 1 if there is a
/// value.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = Option<T::T>>,
    optional: bool,
) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, optional.then_some(&levels), None)?;
    column.close()
}

impl Column {
    fn declaration(&self) -> String {
        let kind = match self.kind {
            Kind::Object => format!("binary {} (JSON)", self.name),
            Kind::Text => format!("binary {} (UTF8)", self.name),
            Kind::Number => format!("double {}", self.name),
            Kind::Whole(bits) => {
                format!("int{} {} (INTEGER({bits},false))", bits.max(32), self.name)
            }
        };
        format!("{} {kind}; ", if self.optional { "optional" } else { "required" })
    }
}

/// Reads a file that [`to_parquet`] wrote.
///
/// # Errors
/// If the file is damaged or has another version.
pub fn from_parquet(file: Vec<u8>) -> Result<Vec<Row>, String> {
    // The library panics on some damaged pages. The closure owns only this file, so a panic leaves
    // no other state half-changed.
    let read = catch_unwind(AssertUnwindSafe(|| rows_of(file)));
    read.unwrap_or_else(|_| Err("not results in Parquet: a page is damaged".to_string()))
}

fn rows_of(file: Vec<u8>) -> Result<Vec<Row>, String> {
    let damaged = |error: ParquetError| format!("not results in Parquet: {error}");
    let length = file.len();
    let reader = SerializedFileReader::new(Bytes::from(file)).map_err(damaged)?;
    expect_within(&reader, length)?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let version = metadata
        .into_iter()
        .flatten()
        .find(|entry| entry.key == VERSION)
        .and_then(|entry| entry.value.clone());
    match version {
        Some(version) if version == SCHEMA.to_string() => {}
        Some(version) => {
            return Err(format!(
                "these are results of version {version}; this program reads version {SCHEMA}: \
                 write the file again with it"
            ));
        }
        None => return Err(format!("not results: its metadata has no {VERSION}")),
    }
    let rows = reader.get_row_iter(None).map_err(damaged)?;
    rows.enumerate()
        .map(|(index, fields)| {
            read(&fields.map_err(damaged)?).map_err(|why| format!("row {}: {why}", index + 1))
        })
        .collect()
}

/// Refuses a file with a column outside of the file; the library panics on one.
fn expect_within(reader: &SerializedFileReader<Bytes>, length: usize) -> Result<(), String> {
    for column in reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = begin.checked_add(column.compressed_size());
        let is_within = begin >= 0
            && column.compressed_size() >= 0
            && end.is_some_and(|end| usize::try_from(end).is_ok_and(|end| end <= length));
        if !is_within {
            return Err(format!(
                "not results in Parquet: {} lies outside of the file",
                column.column_path()
            ));
        }
    }
    Ok(())
}

fn read(fields: &Fields) -> Result<Row, String> {
    row(fields
        .get_column_iter()
        .filter_map(|(name, field)| Some((name.clone(), value(field)?)))
        .collect())
}

/// Converts a cell; null and unknown types give nothing.
fn value(field: &Field) -> Option<Value> {
    match field {
        Field::Str(text) => Some(text.as_str().into()),
        Field::Double(number) => Number::from_f64(*number).map(Value::Number),
        Field::UShort(whole) => Some((*whole).into()),
        Field::UInt(whole) => Some((*whole).into()),
        Field::ULong(whole) => Some((*whole).into()),
        _ => None,
    }
}
