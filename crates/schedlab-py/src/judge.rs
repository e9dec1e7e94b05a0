//! A judge of policies that is ready for a search.

use crate::work::work;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use verbs::judge::{Bench, MakerArguments, text};

/// A suite with its judge.
#[pyclass(frozen, module = "schedlab")]
pub struct Referee(Arc<Bench>);

#[pymethods]
impl Referee {
    /// Reads the suite at `suite`; candidates in Rust are compiled against the checkout `sources`,
    /// those in Python run in the interpreter `python`.
    #[new]
    fn new(
        py: Python<'_>,
        suite: PathBuf,
        sources: Option<PathBuf>,
        python: Option<PathBuf>,
    ) -> PyResult<Referee> {
        let makers = MakerArguments { sources, python };
        work(py, None, move || Bench::open(&suite, makers)).map(|bench| Referee(Arc::new(bench)))
    }

    /// Judges the candidate of a line of JSON, the `number`th; gives a line of JSON.
    fn judge(&self, py: Python<'_>, line: String, number: usize) -> PyResult<String> {
        let bench = self.0.clone();
        work(py, None, move || text(&bench.judge_line(&line, number)?))
    }
}
