//! The kernel's functions that programs call (kfuncs), by name.

mod inserts;
mod masks;
mod picks;
mod plain;

use super::constants::unversioned;
use super::kernel::{E2BIG, EBUSY, EEXIST, EINVAL, ENOENT, ENOMEM, Function, Kernel, errno};

/// The function of this name, in any version.
pub fn named(name: &str) -> Option<Function> {
    let plain = unversioned(name);
    let tables = [inserts::FUNCTIONS, picks::FUNCTIONS, masks::FUNCTIONS, plain::FUNCTIONS];
    let mut all = tables.into_iter().flatten();
    all.find(|(known, _)| *known == plain).map(|&(_, function)| function)
}

/// All of them, by name.
pub fn names() -> Vec<&'static str> {
    let tables = [inserts::FUNCTIONS, picks::FUNCTIONS, masks::FUNCTIONS, plain::FUNCTIONS];
    let mut names: Vec<&str> = tables.into_iter().flatten().map(|&(name, _)| name).collect();
    names.sort_unstable();
    names
}
