//! Why the recorder ends without a recording.

use std::fmt;

/// An error with the exit code that stands for its kind.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong, or the command or the file cannot be used.
    Usage(String),
    /// A privilege or a feature of the kernel is missing.
    Missing(String),
    /// Something else failed.
    Internal(String),
}

impl Error {
    /// 2, 77 or 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Missing(_) => 77,
            Error::Internal(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Usage(text) | Error::Missing(text) | Error::Internal(text)) = self;
        f.write_str(text)
    }
}
