//! Rows as Parquet: one column per field of a row, provenance and schema version in the file's metadata.

use crate::Error;
use crate::output::{Point, Record, Results, Row, SubjectKind, Verdict, World};
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Row as Columns, RowAccessor};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// `point` is a JSON object; what is null in JSON is null here.
const COLUMNS: &str = "message row {
    required binary workload (UTF8);
    required binary world (UTF8);
    optional int32 cpus;
    optional binary baseline (UTF8);
    required binary candidate (UTF8);
    optional binary subject_kind (UTF8);
    optional binary subject (UTF8);
    required binary point (JSON);
    required binary metric (UTF8);
    required binary unit (UTF8);
    optional double value;
    optional double ci_low;
    optional double ci_high;
    required int32 runs;
    optional double effect;
    optional binary verdict (UTF8);
    optional binary reason (UTF8);
    optional int64 seed;
    optional binary provenance (UTF8);
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
        ("schedlab.command", results.command.clone()),
        ("schedlab.reproduce", results.reproduce.clone().unwrap_or_default()),
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
    let json = |point: &Point| serde_json::to_string(point).map_err(|error| ParquetError::External(Box::new(error)));
    let points: Vec<String> = rows.iter().map(|row| json(&row.point)).collect::<Result<_, _>>()?;
    let worlds: Vec<String> = rows.iter().map(|row| row.world.to_string()).collect();
    texts(&mut group, rows.iter().map(|row| &*row.workload))?;
    texts(&mut group, worlds.iter().map(String::as_str))?;
    column::<Int32Type>(&mut group, rows.iter().map(|row| Some(i32::from(row.cpus)).filter(|cpus| *cpus > 0)), false)?;
    optional_texts(&mut group, rows.iter().map(|row| row.baseline.as_deref()))?;
    texts(&mut group, rows.iter().map(|row| &*row.candidate))?;
    optional_texts(&mut group, rows.iter().map(|row| row.subject_kind.map(SubjectKind::word)))?;
    optional_texts(&mut group, rows.iter().map(|row| row.subject.as_deref()))?;
    texts(&mut group, points.iter().map(String::as_str))?;
    texts(&mut group, rows.iter().map(|row| row.metric.id()))?;
    texts(&mut group, rows.iter().map(Row::unit))?;
    column::<DoubleType>(&mut group, rows.iter().map(|row| row.value), false)?;
    column::<DoubleType>(&mut group, rows.iter().map(|row| row.ci_low), false)?;
    column::<DoubleType>(&mut group, rows.iter().map(|row| row.ci_high), false)?;
    column::<Int32Type>(&mut group, rows.iter().map(|row| i32::try_from(row.runs).ok()), true)?;
    column::<DoubleType>(&mut group, rows.iter().map(|row| row.effect), false)?;
    optional_texts(&mut group, rows.iter().map(|row| row.verdict.map(Verdict::word)))?;
    optional_texts(&mut group, rows.iter().map(|row| row.reason.as_deref()))?;
    column::<Int64Type>(&mut group, rows.iter().map(|row| row.seed.map(|seed| seed as i64)), false)?;
    optional_texts(&mut group, rows.iter().map(|row| row.provenance.as_deref()))?;
    optional_texts(&mut group, rows.iter().map(|row| row.note.as_deref()))?;
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

fn row(record: &Columns) -> Result<Row, ParquetError> {
    let damaged = |why: String| ParquetError::General(format!("not a row: {why}"));
    let text = |column| record.get_string(column).cloned();
    // An empty column is an error to the reader of a value.
    let word = |column| record.get_string(column).map_or(serde_json::Value::Null, |word| word.clone().into());
    let of_words = |error: serde_json::Error| damaged(error.to_string());
    let record = Record {
        workload: text(0)?,
        world: World::named(&text(1)?).map_err(damaged)?,
        cpus: record.get_int(2).ok().map(u16::try_from).transpose().map_err(|error| damaged(error.to_string()))?,
        baseline: text(3).ok(),
        candidate: text(4)?,
        subject_kind: serde_json::from_value(word(5)).map_err(of_words)?,
        subject: text(6).ok(),
        point: serde_json::from_str(&text(7)?).map_err(of_words)?,
        metric: serde_json::from_value(word(8)).map_err(of_words)?,
        unit: text(9)?,
        value: record.get_double(10).ok(),
        ci_low: record.get_double(11).ok(),
        ci_high: record.get_double(12).ok(),
        runs: u32::try_from(record.get_int(13)?).map_err(|error| damaged(error.to_string()))?,
        effect: record.get_double(14).ok(),
        verdict: serde_json::from_value(word(15)).map_err(of_words)?,
        reason: text(16).ok(),
        seed: record.get_long(17).ok().map(|seed| seed as u64),
        provenance: text(18).ok(),
        note: text(19).ok(),
    };
    Row::try_from(record).map_err(damaged)
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn texts<'t>(group: &mut Group<'_>, texts: impl Iterator<Item = &'t str>) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, texts.map(|text| Some(ByteArray::from(text))), true)
}

fn optional_texts<'t>(group: &mut Group<'_>, texts: impl Iterator<Item = Option<&'t str>>) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, texts.map(|text| text.map(ByteArray::from)), false)
}

/// Writes the next column. A column that is not `required` has a definition level per row: 1 where there is a value.
fn column<T: DataType>(group: &mut Group<'_>, cells: impl Iterator<Item = Option<T::T>>, required: bool) -> Result<(), ParquetError> {
    let cells: Vec<Option<T::T>> = cells.collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    let missing = || ParquetError::General("there are fewer columns in the schema than in a row".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, (!required).then_some(&levels), None)?;
    column.close()
}
