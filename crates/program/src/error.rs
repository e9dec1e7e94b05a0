//! The failures of the program and their exit codes.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// A failure of the program.
#[derive(thiserror::Error, Clone, Debug)]
pub enum Error {
    /// The command line is wrong, or names something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be used.
    #[error("{0}")]
    Input(String),
    /// The output cannot be written.
    #[error("cannot write {path}: {source}; give a place that can be written to")]
    Output {
        /// The path.
        path: String,
        /// The cause.
        source: Arc<io::Error>,
    },
    /// A check failed.
    #[error("{0}")]
    Check(String),
    /// A policy broke its contract; the run gives no number.
    #[error("{0}")]
    Policy(String),
    /// A limit was reached before the intervals were narrow enough. Results exist.
    #[error("{0}")]
    Inconclusive(String),
    /// A guest did not repeat itself; the message gives the first difference.
    #[error("{0}")]
    Irreproducible(String),
    /// Something that is needed is missing; the message says what, and what installs it.
    #[error("{0}")]
    Missing(String),
    /// Cells of a sweep failed; the other cells have results.
    #[error("{0}")]
    Cells(String),
    /// The caller stopped the work.
    #[error("stopped before the end")]
    Stopped,
    /// A simulation reached an impossible state.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// The exit code: 1 internal error, 2 usage, 3 unusable input. 4 a check failed or a policy
    /// broke its contract. 5 inconclusive, 6 not reproducible, 77 something needed is missing.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Internal(_) | Error::Stopped => 1,
            Error::Usage(_) | Error::Output { .. } => 2,
            Error::Input(_) => 3,
            Error::Check(_) | Error::Policy(_) | Error::Cells(_) => 4,
            Error::Inconclusive(_) => 5,
            Error::Irreproducible(_) => 6,
            Error::Missing(_) => 77,
        }
    }

    /// This build of the program lacks `what`, because the feature `part` of the package `schedlab`
    /// is off.
    pub fn not_built(part: &str, what: &str) -> Error {
        Error::Missing(format!(
            "this build of {} has no {what}: its feature `{part}` is off; build it with all \
             default features: cargo build --release -p schedlab",
            crate::name()
        ))
    }

    /// The file at `path` cannot be read; `wanted` is what it should be and where such a file comes
    /// from, as in "a grid file".
    pub fn unreadable(path: &Path, error: &io::Error, wanted: &str) -> Error {
        let next = match error.kind() {
            ErrorKind::NotFound => format!("there is no such file; give {wanted}"),
            ErrorKind::IsADirectory => format!("this is a directory; give {wanted}"),
            ErrorKind::InvalidData => format!("this is not text; give {wanted}"),
            ErrorKind::PermissionDenied => {
                "no permission to read it; change its mode, or read it as its owner".to_string()
            }
            _ => format!("it cannot be read: {error}; give {wanted}"),
        };
        Error::Input(format!("{}: {next}", path.display()))
    }

    /// The file at `path` cannot be written.
    pub fn output(path: &Path, source: io::Error) -> Error {
        Error::Output { path: path.display().to_string(), source: Arc::new(source) }
    }
}

/// The message for a name that does not exist, with the nearest existing name.
pub fn no_such(what: &str, wrong: &str, names: &[String], see: &str) -> String {
    let distance = |name: &&String| strsim::damerau_levenshtein(name, wrong);
    let nearest = names
        .iter()
        .min_by_key(distance)
        .filter(|name| distance(name) <= name.len().max(wrong.len()) / 2);
    let hint = nearest.map_or(String::new(), |name| format!(" Did you mean `{name}`?"));
    format!("there is no {what} named `{wrong}`.{hint} {see}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_what_to_give() {
        let of = |path: &str| {
            let error = std::fs::read_to_string(path).expect_err(path);
            Error::unreadable(Path::new(path), &error, "a grid file").to_string()
        };
        assert_eq!(of("/none"), "/none: there is no such file; give a grid file");
        assert_eq!(of("/"), "/: this is a directory; give a grid file");
    }

    #[test]
    fn a_close_name_gets_a_suggestion_and_nonsense_gets_none() {
        let names = ["central:rr", "take:rr", "eevdf"].map(String::from);
        assert!(no_such("policy", "takerr", &names, "").contains("`take:rr`"));
        assert!(no_such("policy", "eevfd", &names, "").contains("`eevdf`"));
        assert!(!no_such("policy", "xyzzyxyzzy", &names, "").contains("Did you mean"));
    }
}
