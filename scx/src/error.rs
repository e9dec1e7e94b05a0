//! What can go wrong, and the exit code of that: those of `schedlab`.

use std::fmt;

/// Why the program ends without having done what it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The fault is in this program.
    Internal(String),
    /// What was asked for makes no sense.
    Usage(String),
    /// The policy broke a rule, and the kernel or the bridge took the CPUs from it.
    Ejected(String),
    /// Something that is needed is missing.
    Missing(String),
}

impl Error {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Internal(_) => 1,
            Error::Usage(_) => 2,
            Error::Ejected(_) => 4,
            Error::Missing(_) => 77,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Internal(text) | Error::Usage(text) | Error::Ejected(text) | Error::Missing(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
