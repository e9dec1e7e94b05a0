//! Tables in Arrow's memory layout, passed to other libraries without a copy (Arrow PyCapsule
//! interface).

use crate::error::named;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt16Array,
    UInt32Array, UInt64Array,
};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use results::{Coordinate, Row, SubjectKind, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Columns of equal length. pandas, polars, DuckDB and pyarrow read it directly:
/// `polars.DataFrame(table)`.
#[pyclass(frozen, module = "schedlab")]
pub struct Table(RecordBatch);

#[pymethods]
impl Table {
    /// The names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<schedlab.Table of {} rows: {}>", self.0.num_rows(), self.columns().join(", "))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref())
            .map_err(|error| failed(py, &error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The requested schema is only a wish; the interface allows a producer to ignore it.
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(
            [Ok(self.0.clone())],
            self.0.schema(),
        )));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    /// A table of these columns.
    pub fn of(py: Python<'_>, columns: Vec<(String, ArrayRef)>) -> PyResult<Table> {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .map(Table)
        .map_err(|error| failed(py, &error))
    }

    /// Results: a column for each field of a row, and one for each coordinate.
    pub fn of_rows(py: Python<'_>, rows: &[Row]) -> PyResult<Table> {
        let text = |of: fn(&Row) -> Option<&str>| {
            Arc::new(StringArray::from_iter(rows.iter().map(of))) as ArrayRef
        };
        let number = |of: fn(&Row) -> Option<f64>| {
            Arc::new(Float64Array::from_iter(rows.iter().map(of))) as ArrayRef
        };
        let cpus: ArrayRef = Arc::new(UInt16Array::from_iter(
            rows.iter().map(|row| Some(row.cpus).filter(|cpus| *cpus > 0)),
        ));
        let seeds: ArrayRef = Arc::new(UInt64Array::from_iter(rows.iter().map(|row| row.seed)));
        let runs: ArrayRef =
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.runs)));
        let worlds: Vec<String> = rows.iter().map(|row| row.world.to_string()).collect();
        let fixed = [
            ("workload", text(|row| Some(&row.workload))),
            ("world", Arc::new(StringArray::from(worlds)) as ArrayRef),
            ("cpus", cpus),
            ("baseline", text(|row| row.baseline.as_deref())),
            ("candidate", text(|row| Some(&row.candidate))),
            ("subject_kind", text(|row| row.subject_kind.map(SubjectKind::word))),
            ("subject", text(|row| row.subject.as_deref())),
            ("metric", text(|row| Some(row.metric.id()))),
            ("unit", text(|row| Some(row.unit()))),
            ("value", number(|row| row.value)),
            ("ci_low", number(|row| row.ci_low)),
            ("ci_high", number(|row| row.ci_high)),
            ("runs", runs),
            ("difference", number(|row| row.difference)),
            ("difference_low", number(|row| row.difference_low)),
            ("difference_high", number(|row| row.difference_high)),
            ("effect", number(|row| row.effect)),
            ("effect_low", number(|row| row.effect_low)),
            ("effect_high", number(|row| row.effect_high)),
            ("verdict", text(|row| row.verdict.map(Verdict::word))),
            ("reason", text(|row| row.reason.as_deref())),
            ("seed", seeds),
            ("provenance", text(|row| row.provenance.as_deref())),
            ("note", text(|row| row.note.as_deref())),
        ];
        let names: BTreeSet<&str> = rows.iter().flat_map(|row| row.point.names()).collect();
        let coordinates = names.into_iter().map(|name| {
            let title = if fixed.iter().any(|(fixed, _)| *fixed == name) {
                format!("point.{name}")
            } else {
                name.to_string()
            };
            (title, coordinates(rows, name))
        });
        let coordinates: Vec<(String, ArrayRef)> = coordinates.collect();
        Table::of(
            py,
            fixed
                .into_iter()
                .map(|(name, column)| (name.to_string(), column))
                .chain(coordinates)
                .collect(),
        )
    }
}

/// A column of a coordinate: numbers if it is a number without a unit in every row that has it,
/// else text.
fn coordinates(rows: &[Row], name: &str) -> ArrayRef {
    let values = || rows.iter().map(|row| row.point.get(name));
    if values().flatten().all(|value| matches!(value, Coordinate::Count(_) | Coordinate::Number(_)))
    {
        return Arc::new(Float64Array::from_iter(
            values().map(|value| value.and_then(Coordinate::number)),
        ));
    }
    Arc::new(StringArray::from_iter(values().map(|value| value.map(Coordinate::to_string))))
}

fn failed(py: Python<'_>, error: &ArrowError) -> PyErr {
    named(py, "InternalError", &format!("cannot make an Arrow table: {error}"))
}
