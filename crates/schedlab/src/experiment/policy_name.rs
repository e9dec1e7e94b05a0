//! Policies by the names that users write.

use crate::no_such;
use crate::program::catalog;
use schedsim::policy::{PolicyError, PolicySpec};

/// The policy that `text` names, or a message with the nearest name.
pub fn parse_policy(text: &str) -> Result<PolicySpec, String> {
    let see = "`schedlab list policies` shows them all.";
    catalog().parse(text).map_err(|error| match &error {
        PolicyError::UnknownName(name) => no_such("policy", name, &catalog().names(), see),
        PolicyError::UnknownOption { policy, option, known } if !known.is_empty() => {
            no_such(&format!("option of {policy}"), option, known, &format!("It has {}.", known.join(", ")))
        }
        _ => error.to_string(),
    })
}

/// All of them, as they are by default: every order under every topology, and every scheduler.
pub fn all_policies() -> Vec<PolicySpec> {
    catalog().all()
}
