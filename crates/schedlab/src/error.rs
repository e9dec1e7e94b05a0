//! What can go wrong, and with which exit code the program says so.

use std::path::Path;

/// A failure of the program as a whole.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The command line asks for something that there is not.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be used.
    #[error("{0}")]
    Input(String),
    /// A recording cannot be used.
    #[error(transparent)]
    Import(#[from] crate::import::Error),
    /// The output cannot be written.
    #[error("cannot write {path}: {source}; give a place that can be written to")]
    Output {
        /// Where to.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A check found a violation.
    #[error("{0}")]
    Check(String),
    /// A policy broke its contract: the run gives no number.
    #[error("{0}")]
    Policy(String),
    /// The time was up before intervals were narrow enough; the results are there.
    #[error("{0}")]
    Inconclusive(String),
    /// A guest that must repeat itself did not; the message has the first difference.
    #[error("{0}")]
    Irreproducible(String),
    /// Something that is needed is missing; the message says what, and what installs it.
    #[error("{0}")]
    Missing(String),
    /// Cells of a sweep failed; all others are there.
    #[error("{0}")]
    Cells(String),
    /// Whoever watched the work has had enough of it.
    #[error("stopped before the end")]
    Stopped,
    /// A simulation did what cannot be.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// The exit code: 1 internal error, 2 usage, 3 unusable input, 4 a check failed or a policy broke its contract, 5 inconclusive, 6 not reproducible, 77 something needed is missing.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Internal(_) | Error::Stopped => 1,
            Error::Usage(_) | Error::Output { .. } => 2,
            Error::Input(_) | Error::Import(_) => 3,
            Error::Check(_) | Error::Policy(_) | Error::Cells(_) => 4,
            Error::Inconclusive(_) => 5,
            Error::Irreproducible(_) => 6,
            Error::Missing(_) => 77,
        }
    }

    /// The error of a run under `policy` that the engine ended; `where_to` completes "under POLICY".
    pub(crate) fn of_run(error: &schedsim::engine::Error, policy: &dyn std::fmt::Display, where_to: &str) -> Error {
        match error {
            schedsim::engine::Error::Policy(breach) => {
                Error::Policy(format!("the policy {policy} broke its contract{where_to}, so there is no result: {breach}"))
            }
            error => Error::Input(format!("under {policy}{where_to}: {error}")),
        }
    }

    pub(crate) fn output(path: &Path, source: std::io::Error) -> Error {
        Error::Output { path: path.display().to_string(), source }
    }
}

/// `wrong` is not among `names`: the message for it, with the nearest of them.
pub fn no_such(what: &str, wrong: &str, names: &[String], see: &str) -> String {
    let distance = |name: &&String| strsim::damerau_levenshtein(name, wrong);
    let nearest = names.iter().min_by_key(distance).filter(|name| distance(name) <= name.len().max(wrong.len()) / 2);
    let hint = nearest.map_or(String::new(), |name| format!(" Did you mean `{name}`?"));
    format!("there is no {what} named `{wrong}`.{hint} {see}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_nonsense_is_not() {
        let names = ["central:rr", "take:rr", "eevdf"].map(String::from);
        assert!(no_such("policy", "takerr", &names, "").contains("`take:rr`"));
        assert!(no_such("policy", "eevfd", &names, "").contains("`eevdf`"));
        assert!(!no_such("policy", "xyzzyxyzzy", &names, "").contains("Did you mean"));
    }
}
