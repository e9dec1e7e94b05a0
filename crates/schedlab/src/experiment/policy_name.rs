//! Policies by the names that users write.

use crate::no_such;
use schedsim::policy::{self, PolicyError, PolicySpec};

/// The policy that `text` names, or a message with the nearest name.
pub fn parse_policy(text: &str) -> Result<PolicySpec, String> {
    PolicySpec::parse(text).map_err(|error| match error {
        PolicyError::UnknownName(name) => no_such("policy", &name, &policy::names(), "`schedlab list policies` shows them all."),
        PolicyError::UnknownOption(option) => no_such(
            "policy option",
            &option,
            &policy::options().map(|option| option.name.to_string()).collect::<Vec<_>>(),
            "`schedlab list policies` shows them all.",
        ),
        PolicyError::BadValue { .. } => error.to_string(),
    })
}

/// All of them, as they are by default: every order under every topology, and every whole scheduler.
pub fn all_policies() -> Vec<PolicySpec> {
    policy::names().iter().filter_map(|name| PolicySpec::parse(name).ok()).collect()
}
