//! The native half of the Python package `schedlab`: the program's commands, with results as Arrow
//! tables, and the interface for policies written in Python.
//!
//! It contains no logic. A call of the package is a command line without printing, so that names,
//! defaults, messages and digits are those of `schedlab` itself.

mod answer;
mod context;
mod error;
mod events;
mod judge;
mod policy;
mod serve;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;
use schedlab_sources::BUILD;

/// The basis of `import schedlab`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answer::{Answer, evaluate, fit, joined, to_toml};
    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::events::{Trace, read_trace};
    #[pymodule_export]
    use super::judge::Referee;
    #[pymodule_export]
    use super::policy::Effect;
    #[pymodule_export]
    use super::serve::serve;
    #[pymodule_export]
    use super::sweep::Sweep;
    #[pymodule_export]
    use super::table::Table;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        program::set_identity(None, BUILD.to_string())
            .map_err(pyo3::exceptions::PyRuntimeError::new_err)?;
        module.add("BUILD", BUILD)
    }
}
