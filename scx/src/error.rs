//! The errors of the program and their exit codes, which are those of `schedlab`.

use std::fmt;

/// The reason why the program failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The fault is in this program.
    Internal(String),
    /// The request makes no sense.
    Usage(String),
    /// A file cannot be used.
    Input(String),
    /// The policy broke a rule, and the kernel or the bridge ejected it.
    Ejected(String),
    /// Something required is missing.
    Missing(String),
}

impl Error {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Internal(_) => 1,
            Error::Usage(_) => 2,
            Error::Input(_) => 3,
            Error::Ejected(_) => 4,
            Error::Missing(_) => 77,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Internal(text)
        | Error::Usage(text)
        | Error::Input(text)
        | Error::Ejected(text)
        | Error::Missing(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Error {}
