//! Traces as tables: one row for each event, and one for each task.

use crate::table::Table;
use crate::work::work;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, StringArray, UInt8Array, UInt16Array, UInt32Array,
    UInt64Array,
};
use formats::columns::{COLUMNS, Kind, cells};
use formats::trace_file::Header;
use formats::trace_source::TraceSource;
use pyo3::prelude::*;
use schedsim::trace::{Event, Observer};
use std::path::PathBuf;
use std::sync::Arc;

/// A recording or a run, event by event.
#[pyclass(frozen, get_all, module = "schedlab")]
pub struct Trace {
    /// The workload.
    workload: String,
    /// The policy; `recorded` for a recording.
    policy: String,
    /// The number of CPUs.
    cpus: u16,
    /// The seed of a run.
    seed: u64,
    /// The time of the last event.
    end_ns: u64,
    /// The events, in order of time.
    events: Py<Table>,
    /// The tasks.
    tasks: Py<Table>,
}

/// Reads a recording of perf or a trace that `schedlab run --trace` wrote.
#[pyfunction]
pub fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
    let (header, end, columns) = work(py, None, move || {
        let source = TraceSource::open(&path)?;
        let mut columns = Columns::new();
        let end = source.feed(vec![&mut columns])?;
        Ok((source.header, end, columns))
    })?;
    let (events, tasks) = (Py::new(py, columns.table(py)?)?, Py::new(py, tasks(py, &header)?)?);
    let Header { workload, candidate, cpus, seed, .. } = header;
    Ok(Trace { workload, policy: candidate, cpus, seed, end_ns: end.0, events, tasks })
}

fn tasks(py: Python<'_>, header: &Header) -> PyResult<Table> {
    let all = &header.tasks;
    let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..all.len() as u32));
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values(all.iter().map(|task| &task.name)));
    let pids: ArrayRef = Arc::new(UInt32Array::from_iter_values(all.iter().map(|task| task.pid)));
    let tgids: ArrayRef = Arc::new(UInt32Array::from_iter_values(all.iter().map(|task| task.tgid)));
    let prios: ArrayRef =
        Arc::new(UInt16Array::from_iter_values(all.iter().map(|task| u16::from(task.prio))));
    let columns = [("task", ids), ("name", names), ("pid", pids), ("tgid", tgids), ("prio", prios)];
    Table::of(py, columns.map(|(name, column)| (name.to_string(), column)).into())
}

/// Events by column, as [`COLUMNS`] says.
struct Columns(Vec<Cells>);

/// The cells of a column.
enum Cells {
    U8(Vec<Option<u8>>),
    U16(Vec<Option<u16>>),
    U32(Vec<Option<u32>>),
    U64(Vec<Option<u64>>),
    Words(Vec<Option<i8>>, &'static [&'static str]),
}

impl Columns {
    fn new() -> Columns {
        Columns(
            COLUMNS
                .iter()
                .map(|column| match column.kind {
                    Kind::Whole(8) => Cells::U8(Vec::new()),
                    Kind::Whole(16) => Cells::U16(Vec::new()),
                    Kind::Whole(32) => Cells::U32(Vec::new()),
                    Kind::Whole(_) => Cells::U64(Vec::new()),
                    Kind::Word(words) => Cells::Words(Vec::new(), words),
                })
                .collect(),
        )
    }

    fn table(self, py: Python<'_>) -> PyResult<Table> {
        let columns = COLUMNS.iter().zip(self.0);
        Table::of(
            py,
            columns.map(|(column, cells)| (column.name.to_string(), cells.array())).collect(),
        )
    }
}

impl Observer for Columns {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            let row = cells(event);
            self.0.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        }
    }
}

impl Cells {
    /// The cell fits: it comes from a field of the column's width.
    fn push(&mut self, cell: Option<u64>) {
        match self {
            Cells::U8(cells) => cells.push(cell.map(|cell| cell as u8)),
            Cells::U16(cells) => cells.push(cell.map(|cell| cell as u16)),
            Cells::U32(cells) => cells.push(cell.map(|cell| cell as u32)),
            Cells::U64(cells) => cells.push(cell),
            Cells::Words(cells, _) => cells.push(cell.map(|cell| cell as i8)),
        }
    }

    fn array(self) -> ArrayRef {
        match self {
            Cells::U8(cells) => Arc::new(UInt8Array::from(cells)),
            Cells::U16(cells) => Arc::new(UInt16Array::from(cells)),
            Cells::U32(cells) => Arc::new(UInt32Array::from(cells)),
            Cells::U64(cells) => Arc::new(UInt64Array::from(cells)),
            Cells::Words(cells, words) => {
                let words = Arc::new(StringArray::from_iter_values(words));
                Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(cells), words))
            }
        }
    }
}
