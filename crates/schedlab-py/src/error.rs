//! Errors of the program as exceptions of the package, by exit code.

use program::Error;
use pyo3::prelude::*;

/// The exception for `error`: the class of `schedlab.errors` for its exit code.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    named(py, class(error), &error.to_string())
}

/// The class of `schedlab.errors` for `error`.
pub fn class(error: &Error) -> &'static str {
    match error {
        Error::Cells(_) => return "CellsFailed",
        Error::Policy(_) => return "PolicyError",
        _ => {}
    }
    match error.exit_code() {
        2 => "UsageError",
        3 => "InputError",
        4 => "CheckFailed",
        5 => "Inconclusive",
        77 => "Missing",
        _ => "InternalError",
    }
}

/// An exception of the class `class` of `schedlab.errors`.
pub fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let raised =
        py.import("schedlab.errors").and_then(|module| module.getattr(class)?.call1((message,)));
    raised.map_or_else(|error| error, PyErr::from_value)
}
