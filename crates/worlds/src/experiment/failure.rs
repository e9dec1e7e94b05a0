//! The error of a run that the engine ended.

use program::Error;
use schedsim::engine;
use std::fmt::Display;

/// The error of a run under `policy`; `where_to` completes "under POLICY".
pub fn of_run(error: &engine::Error, policy: &dyn Display, where_to: &str) -> Error {
    match error {
        engine::Error::Policy(breach) => Error::Policy(format!(
            "the policy {policy} broke its contract{where_to}, so there is no result: {breach}"
        )),
        error => Error::Input(format!("under {policy}{where_to}: {error}")),
    }
}
