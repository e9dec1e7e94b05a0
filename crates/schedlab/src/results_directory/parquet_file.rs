//! Rows as Parquet: one column per field of a row, provenance and schema version in the file's metadata.

use crate::Error;
use crate::output::{Results, Row};
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Row as Record, RowAccessor};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// `params` is a JSON object; what is null in JSON is null here.
const COLUMNS: &str = "message row {
    required binary workload (UTF8);
    required binary policy (UTF8);
    required binary backend (UTF8);
    required int32 cpus;
    optional int64 seed;
    required binary params (JSON);
    required binary metric (UTF8);
    required binary unit (UTF8);
    optional double value;
    optional double ci_low;
    optional double ci_high;
    required int32 runs;
    optional binary verdict (UTF8);
    optional binary note (UTF8);
}";

/// The results as a Parquet file.
pub fn to_parquet(results: &Results) -> Result<Vec<u8>, Error> {
    write(results).map_err(|error| Error::Internal(format!("cannot write Parquet: {error}")))
}

fn write(results: &Results) -> Result<Vec<u8>, ParquetError> {
    let provenance = [
        ("schedlab.schema", results.schema.to_string()),
        ("schedlab.version", results.version.clone()),
        ("schedlab.reproduce", results.reproduce.clone()),
        ("schedlab.kernel", results.kernel.clone()),
        ("schedlab.cpu", results.cpu.clone()),
    ];
    let provenance = provenance.into_iter().map(|(key, value)| KeyValue::new(key.to_string(), value)).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("schedlab {}", results.version))
        .set_key_value_metadata(Some(provenance))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(COLUMNS)?), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let rows = &results.rows;
    texts(&mut group, rows, |row| Some(&row.workload))?;
    texts(&mut group, rows, |row| Some(&row.policy))?;
    texts(&mut group, rows, |row| Some(&row.backend))?;
    column::<Int32Type>(&mut group, rows, |row| Some(i32::from(row.cpus)), true)?;
    column::<Int64Type>(&mut group, rows, |row| row.seed.map(|seed| seed as i64), false)?;
    let params = |row: &Row| serde_json::to_string(&row.params).ok().map(|json| ByteArray::from(json.into_bytes()));
    column::<ByteArrayType>(&mut group, rows, params, true)?;
    texts(&mut group, rows, |row| Some(&row.metric))?;
    texts(&mut group, rows, |row| Some(&row.unit))?;
    column::<DoubleType>(&mut group, rows, |row| row.value, false)?;
    column::<DoubleType>(&mut group, rows, |row| row.ci_low, false)?;
    column::<DoubleType>(&mut group, rows, |row| row.ci_high, false)?;
    column::<Int32Type>(&mut group, rows, |row| i32::try_from(row.runs).ok(), true)?;
    optional_texts(&mut group, rows, |row| row.verdict.as_ref())?;
    optional_texts(&mut group, rows, |row| row.note.as_ref())?;
    group.close()?;
    writer.into_inner()
}

/// The rows of a Parquet file that [`to_parquet`] made.
pub fn from_parquet(file: Vec<u8>) -> Result<Vec<Row>, Error> {
    read(file).map_err(|error| Error::Input(format!("not rows of schedlab's in Parquet: {error}")))
}

fn read(file: Vec<u8>) -> Result<Vec<Row>, ParquetError> {
    let reader = SerializedFileReader::new(Bytes::from(file))?;
    reader.get_row_iter(None)?.map(|record| row(&record?)).collect()
}

fn row(record: &Record) -> Result<Row, ParquetError> {
    let damaged = |what: &str| ParquetError::General(format!("{what} is not what a row has"));
    let params = serde_json::from_str(record.get_string(5)?).map_err(|_| damaged("params"))?;
    let text = |column| record.get_string(column).cloned();
    Ok(Row {
        workload: text(0)?,
        policy: text(1)?,
        backend: text(2)?,
        cpus: u16::try_from(record.get_int(3)?).map_err(|_| damaged("cpus"))?,
        // An empty column is an error to the reader of a value.
        seed: record.get_long(4).ok().map(|seed| seed as u64),
        params,
        metric: text(6)?,
        unit: text(7)?,
        value: record.get_double(8).ok(),
        ci_low: record.get_double(9).ok(),
        ci_high: record.get_double(10).ok(),
        runs: u32::try_from(record.get_int(11)?).map_err(|_| damaged("runs"))?,
        verdict: text(12).ok(),
        note: text(13).ok(),
    })
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn texts(group: &mut Group<'_>, rows: &[Row], of: impl Fn(&Row) -> Option<&String>) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, rows, |row| of(row).map(|text| ByteArray::from(text.as_str())), true)
}

fn optional_texts(group: &mut Group<'_>, rows: &[Row], of: impl Fn(&Row) -> Option<&String>) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, rows, |row| of(row).map(|text| ByteArray::from(text.as_str())), false)
}

/// Writes the next column. A column that is not `required` has a definition level per row: 1 where there is a value.
fn column<T: DataType>(group: &mut Group<'_>, rows: &[Row], of: impl Fn(&Row) -> Option<T::T>, required: bool) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = rows.iter().map(of).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let missing = || ParquetError::General("there are fewer columns in the schema than in a row".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, (!required).then_some(&levels), None)?;
    column.close()
}
