//! The cells of a sweep, for computation elsewhere.

use crate::error::{exception, named};
use laboratory::sweep::{Store, Sweep as Cells};
use program::Error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use std::path::PathBuf;

/// The result of a cell: its index, and its encoded rows or the reason of a failure.
type Outcome<'py> = (usize, Option<Bound<'py, PyBytes>>, Option<String>);

/// The cells of a grid file.
#[pyclass(frozen, module = "schedlab")]
pub struct Sweep(Cells);

#[pymethods]
impl Sweep {
    /// Reads the grid file at `path`.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Sweep> {
        raised(py, py.detach(|| Cells::read(&path))).map(Sweep)
    }

    /// Parses the text of a grid file, such as another's `complete` one.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Sweep> {
        raised(py, py.detach(|| Cells::parse("grid.toml", text))).map(Sweep)
    }

    /// The sweep that was started in a directory.
    #[staticmethod]
    fn begun(py: Python<'_>, directory: PathBuf) -> PyResult<Sweep> {
        raised(py, py.detach(|| Cells::begun(&directory))).map(Sweep)
    }

    /// Starts the sweep in a directory.
    fn begin(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        raised(py, self.0.begin(&directory)).map(drop)
    }

    /// The grid file with the content of all files that it names.
    #[getter]
    fn complete(&self) -> &str {
        &self.0.complete
    }

    fn __len__(&self) -> usize {
        self.0.cells.len()
    }

    /// The indexes of the cells that are not finished in a directory.
    fn missing(&self, py: Python<'_>, directory: PathBuf) -> PyResult<Vec<usize>> {
        let store = Store::of(&directory);
        Ok(py.detach(|| {
            (0..self.0.cells.len())
                .into_par_iter()
                .filter(|cell| store.get(&self.0.cells[*cell].key()).is_none())
                .collect()
        }))
    }

    /// Computes these cells, one after another.
    fn compute<'py>(&self, py: Python<'py>, cells: Vec<usize>) -> PyResult<Vec<Outcome<'py>>> {
        cells.iter().try_for_each(|&cell| self.expect(py, cell))?;
        let compute = |cell: usize| {
            let rows = self.0.cells[cell].compute();
            let packed =
                rows.and_then(|rows| Store::pack(&rows).map_err(|error| error.to_string()));
            (cell, packed)
        };
        let outcomes: Vec<_> = py.detach(|| cells.into_iter().map(compute).collect());
        let bytes = |(cell, packed): (usize, Result<Vec<u8>, String>)| match packed {
            Ok(packed) => (cell, Some(PyBytes::new(py, &packed)), None),
            Err(why) => (cell, None, Some(why)),
        };
        Ok(outcomes.into_iter().map(bytes).collect())
    }

    /// Stores a cell that was computed elsewhere in a directory.
    fn keep(&self, py: Python<'_>, directory: PathBuf, cell: usize, packed: &[u8]) -> PyResult<()> {
        self.expect(py, cell)?;
        raised(py, Store::of(&directory).put_file(&self.0.cells[cell].key(), packed))
    }

    /// Stores the reason of a cell's failure.
    fn keep_failure(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        cell: usize,
        why: &str,
    ) -> PyResult<()> {
        self.expect(py, cell)?;
        raised(py, Store::of(&directory).put_failure(&self.0.cells[cell].key(), why))
    }
}

impl Sweep {
    /// Refuses an index without a cell.
    fn expect(&self, py: Python<'_>, cell: usize) -> PyResult<()> {
        let cells = self.0.cells.len();
        if cell < cells {
            Ok(())
        } else {
            Err(named(py, "UsageError", &format!("there is no cell {cell}: there are {cells}")))
        }
    }
}

fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}
