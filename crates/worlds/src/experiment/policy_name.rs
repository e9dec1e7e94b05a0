//! The policies of this program, by the names that users write.

use program::no_such;
use schedsim::policy::{Catalog, PolicyError, PolicySpec};
use std::sync::OnceLock;

static CATALOG: OnceLock<Catalog> = OnceLock::new();

/// Sets the policies, at the start of the command line. Until then there are the built-in ones.
///
/// # Errors
/// If that was said already.
pub fn set_catalog(catalog: Catalog) -> Result<(), String> {
    CATALOG.set(catalog).map_err(|_| "schedlab::main was called twice".to_string())
}

/// The policies in this program.
pub fn catalog() -> &'static Catalog {
    CATALOG.get_or_init(Catalog::built_in)
}

/// The policy that `text` names, or a message with the nearest name.
pub fn parse_policy(text: &str) -> Result<PolicySpec, String> {
    if let Some(why) = not_simulated(text) {
        return Err(why);
    }
    let see = "`schedlab list policies` shows them all.";
    catalog().parse(text).map_err(|error| match &error {
        PolicyError::UnknownName(name) => no_such("policy", name, &catalog().names(), see),
        PolicyError::UnknownOption { policy, option, known } if !known.is_empty() => no_such(
            &format!("option of {policy}"),
            option,
            known,
            &format!("It has {}.", known.join(", ")),
        ),
        _ => error.to_string(),
    })
}

/// Why a policy of this name is not simulated, if it is one of real kernels.
pub fn not_simulated(name: &str) -> Option<String> {
    match name.split_once(':')? {
        ("kernel", _) => Some(format!(
            "{name} is a class of a real kernel, which is not simulated: `compare` measures it with \
             --on vm or --on host; eevdf and cfs are simulated"
        )),
        ("bpf" | "scx", _) => Some(format!(
            "{name} is a scheduler of sched_ext, which this command does not simulate: `compare --on \
             vm` measures it, and `conform` checks it; `schedlab list policies` shows what is \
             simulated"
        )),
        _ => None,
    }
}

/// All of them with default options: every order under every topology, and every scheduler.
pub fn all_policies() -> Vec<PolicySpec> {
    catalog().all()
}
