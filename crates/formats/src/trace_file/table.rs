//! A trace as a Parquet file: a row for each event, with the columns of [`crate::columns`].
//!
//! The metadata have the version of the columns (`schedlab.trace`), the [`Header`] as JSON
//! (`schedlab.header`), and the hash of all events. The header has the tasks, whose numbers the
//! rows have.

use super::checked::Checked;
use super::header::{ADVICE, Header};
use crate::columns::{COLUMNS, Cells, Column, Kind, VERSION, WIDTH, cells, event};
use crate::import::Problem;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use schedsim::trace::{Event, Observer, TraceHash};
use std::fs::File;
use std::io::{Error as IoError, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const TRACE: &str = "schedlab.trace";
const HEADER: &str = "schedlab.header";
const HASH: &str = "schedlab.hash";

/// How many events a group of rows has.
const GROUP: usize = 1 << 16;

/// How many rows are read at a time.
const BATCH: usize = 1 << 12;

/// Writes events as rows.
pub struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<Cells>,
    hash: TraceHash,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, header: &Header) -> Result<TableWriter<W>, IoError> {
        let entry = |key: &str, value: String| KeyValue::new(key.to_string(), value);
        let header = serde_json::to_string(header)?;
        let metadata = vec![entry(TRACE, VERSION.to_string()), entry(HEADER, header)];
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by("schedlab".to_string())
            .set_key_value_metadata(Some(metadata))
            .build();
        let columns: String = COLUMNS.iter().map(declaration).collect();
        let begin = || {
            let schema = Arc::new(parse_message_type(&format!("message event {{ {columns} }}"))?);
            SerializedFileWriter::new(out, schema, Arc::new(properties))
        };
        let file = begin().map_err(failed)?;
        Ok(TableWriter { file, rows: Vec::with_capacity(GROUP), hash: TraceHash::new() })
    }

    /// Writes the next events.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, events: &[Event]) -> Result<(), IoError> {
        self.hash.events(events);
        for event in events {
            self.rows.push(cells(event));
            if self.rows.len() == GROUP {
                self.group().map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(), IoError> {
        self.group().map_err(failed)?;
        let hash = format!("{:016x}", self.hash.value());
        self.file.append_key_value_metadata(KeyValue::new(HASH.to_string(), hash));
        self.file.into_inner().map_err(failed)?.flush()
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for (place, column) in COLUMNS.iter().enumerate() {
            let cells = self.rows.iter().map(|row| row[place]);
            match column.kind {
                Kind::Whole(64) => write_column::<Int64Type>(
                    &mut group,
                    cells.map(|cell| cell.map(u64::cast_signed)),
                    column.optional,
                ),
                Kind::Whole(_) => write_column::<Int32Type>(
                    &mut group,
                    cells.map(|cell| cell.and_then(narrow)),
                    column.optional,
                ),
                Kind::Word(words) => {
                    let words: Vec<ByteArray> = words.iter().map(|&word| word.into()).collect();
                    let word = |place: u64| words.get(usize::try_from(place).ok()?).cloned();
                    write_column::<ByteArrayType>(
                        &mut group,
                        cells.map(|cell| cell.and_then(word)),
                        column.optional,
                    )
                }
            }?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

fn failed(error: ParquetError) -> IoError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<IoError>() {
            Ok(error) => *error,
            Err(other) => IoError::other(other),
        },
        other => IoError::other(other),
    }
}

/// The bits of a number of at most 32 bits.
fn narrow(value: u64) -> Option<i32> {
    u32::try_from(value).ok().map(u32::cast_signed)
}

/// Writes the next column. An optional column has a definition level for each row: 1 if there is a
/// value.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    cells: impl Iterator<Item = Option<T::T>>,
    optional: bool,
) -> Result<(), ParquetError> {
    let mut levels = Vec::with_capacity(GROUP);
    let values: Vec<T::T> =
        cells.inspect(|cell| levels.push(i16::from(cell.is_some()))).flatten().collect();
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, optional.then_some(&levels), None)?;
    column.close()
}

fn declaration(Column { name, kind, optional, .. }: &Column) -> String {
    let kind = match kind {
        Kind::Word(_) => format!("binary {name} (UTF8)"),
        Kind::Whole(bits) => format!("int{} {name} (INTEGER({bits},false))", bits.max(&32)),
    };
    format!("{} {kind}; ", if *optional { "optional" } else { "required" })
}

/// Reads a file that [`TableWriter`] wrote.
pub(super) struct TableReader {
    file: SerializedFileReader<File>,
    /// The group that is read, from 1 on.
    group: usize,
    columns: Vec<ColumnReader>,
    /// Rows of the group that are not read yet.
    left: usize,
    batch: Vec<Cells>,
    /// The next row of the batch.
    next: usize,
    hash: u64,
    checked: Checked,
}

impl TableReader {
    /// Opens the file.
    ///
    /// # Errors
    /// If it is no trace, or its metadata are damaged.
    pub(super) fn open(file: File) -> Result<(Header, TableReader), Problem> {
        let length = file.metadata()?.len();
        let file = guarded(|| SerializedFileReader::new(file))?;
        let metadata = file.metadata();
        let entries = metadata.file_metadata().key_value_metadata();
        let value = |key: &str| {
            let mut entries = entries.into_iter().flatten();
            entries.find(|entry| entry.key == key).and_then(|entry| entry.value.clone())
        };
        match value(TRACE) {
            Some(version) if version == VERSION.to_string() => {}
            Some(version) => {
                return damaged(&format!(
                    "this is a trace of version {version}; this program reads version {VERSION}"
                ));
            }
            None => {
                return Err(Problem::NotATrace(format!(
                    "a Parquet file without {TRACE} in its metadata"
                )));
            }
        }
        let names = metadata.file_metadata().schema_descr().columns();
        if !names.iter().map(|column| column.name()).eq(COLUMNS.iter().map(|column| column.name)) {
            return damaged("its columns are others than those of a trace");
        }
        let header = value(HEADER).unwrap_or_default();
        let header = Header::read(header.as_bytes()).map_err(Problem::Damaged)?;
        let hash = value(HASH).and_then(|hash| u64::from_str_radix(&hash, 16).ok());
        let Some(hash) = hash else { return damaged(&format!("it has no {HASH}")) };
        if let Some(column) = metadata.row_groups().iter().find_map(|group| outside(group, length))
        {
            return damaged(&format!("{column} lies outside of the file"));
        }
        let checked = Checked::new(&header);
        let reader = TableReader {
            file,
            group: 0,
            columns: Vec::new(),
            left: 0,
            batch: Vec::new(),
            next: 0,
            hash,
            checked,
        };
        Ok((header, reader))
    }

    /// The number of events so far.
    pub(super) fn events(&self) -> u64 {
        self.checked.events
    }

    /// The next event, or `None` after the last.
    ///
    /// # Errors
    /// If the file is damaged, or an event refers to something that does not exist.
    pub(super) fn next_event(&mut self) -> Result<Option<Event>, Problem> {
        while self.next == self.batch.len() {
            if self.left == 0 {
                if self.group == self.file.num_row_groups() {
                    self.checked.end(self.checked.events, self.hash)?;
                    return Ok(None);
                }
                self.begin_group()?;
                continue;
            }
            self.read_batch()?;
        }
        let Some(event) = event(&self.batch[self.next]) else {
            return damaged("this is not an event");
        };
        self.checked.take(&event)?;
        self.next = self.next.saturating_add(1);
        Ok(Some(event))
    }

    fn begin_group(&mut self) -> Result<(), Problem> {
        let (file, group) = (&self.file, self.group);
        (self.left, self.columns) = guarded(|| {
            let group = file.get_row_group(group)?;
            let columns = (0..WIDTH).map(|place| group.get_column_reader(place));
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            Ok((rows, columns.collect::<Result<Vec<_>, _>>()?))
        })?;
        self.group = self.group.saturating_add(1);
        Ok(())
    }

    fn read_batch(&mut self) -> Result<(), Problem> {
        let wanted = self.left.min(BATCH);
        let (columns, batch) = (&mut self.columns, &mut self.batch);
        batch.clear();
        batch.resize(wanted, [None; WIDTH]);
        guarded(|| {
            for (place, (reader, column)) in columns.iter_mut().zip(&COLUMNS).enumerate() {
                let whole = match (reader, column.kind) {
                    (ColumnReader::Int64ColumnReader(reader), Kind::Whole(64)) => {
                        read_column(reader, place, batch, |value| Some(value.cast_unsigned()))
                    }
                    (ColumnReader::Int32ColumnReader(reader), Kind::Whole(_)) => {
                        read_column(reader, place, batch, |value| {
                            Some(value.cast_unsigned().into())
                        })
                    }
                    (ColumnReader::ByteArrayColumnReader(reader), Kind::Word(words)) => {
                        read_column(reader, place, batch, |value: &ByteArray| {
                            let place =
                                words.iter().position(|word| word.as_bytes() == value.data());
                            place.and_then(|place| u64::try_from(place).ok())
                        })
                    }
                    _ => Ok(false),
                }?;
                if !whole {
                    let name = column.name;
                    return Err(ParquetError::General(format!("the column {name} is not whole")));
                }
            }
            Ok(())
        })?;
        self.left = self.left.saturating_sub(wanted);
        self.next = 0;
        Ok(())
    }
}

/// Reads the cells of a column for all rows of `batch`; `false` if there are fewer, or one is no
/// value of this column.
fn read_column<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    place: usize,
    batch: &mut [Cells],
    cell: impl Fn(&T::T) -> Option<u64>,
) -> Result<bool, ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0usize;
    while read < batch.len() {
        let wanted = batch.len().saturating_sub(read);
        let (records, _, _) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(false);
        }
        read = read.saturating_add(records);
    }
    let always = !COLUMNS[place].optional;
    let mut values = values.iter();
    for (row, cells) in batch.iter_mut().enumerate() {
        if always || levels.get(row) == Some(&1) {
            let value = values.next().and_then(&cell);
            if value.is_none() {
                return Ok(false);
            }
            cells[place] = value;
        }
    }
    Ok(values.next().is_none())
}

fn damaged<T>(what: &str) -> Result<T, Problem> {
    Err(Problem::Damaged(format!("{what}; {ADVICE}")))
}

/// Calls the library, which panics on some damaged pages.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Problem> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => damaged(&format!("its Parquet is damaged ({error})")),
        Err(_) => damaged("its Parquet is damaged"),
    }
}

/// A column outside of the file, on which the library panics.
fn outside(group: &RowGroupMetaData, length: u64) -> Option<String> {
    let lies_outside = |begin: i64, size: i64| {
        let end = begin.checked_add(size).and_then(|end| u64::try_from(end).ok());
        begin < 0 || size < 0 || end.is_none_or(|end| end > length)
    };
    let column = group.columns().iter().find(|column| {
        let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        lies_outside(begin, column.compressed_size())
    })?;
    Some(column.column_path().to_string())
}
