//! The native half of the Python package `schedlab`: the program's own verbs, whose results are Arrow tables, and the seam for policies written in Python.
//!
//! There is no logic here. A call of the package is a command line that is not printed, so that names, defaults, messages and digits are those of `schedlab` itself.

mod answer;
mod context;
mod error;
mod events;
mod policy;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;

/// What `import schedlab` builds on.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answer::{Answer, evaluate, fit, joined, to_toml};
    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::events::{Trace, read_trace};
    #[pymodule_export]
    use super::policy::Effect;
    #[pymodule_export]
    use super::sweep::Sweep;
    #[pymodule_export]
    use super::table::Table;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("BUILD", schedlab::sweep::BUILD)
    }
}
