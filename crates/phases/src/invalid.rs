//! The error of an invalid workload.

use std::fmt;

/// Why a workload is invalid, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    /// The key, as in `class[1].share`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl std::error::Error for Invalid {}
