//! The kernel's functions that programs call (kfuncs), by name.

mod inserts;
mod masks;
mod picks;
mod plain;

pub use inserts::Cursor;

use super::core::{Answer, Core};
use bpf::Machine;
use schedsim::policy::Context;

/// The kernel during a call of a program.
pub struct Kernel<'a> {
    pub core: &'a mut Core,
    pub cx: &'a mut Context,
}

/// A function of the kernel.
pub type Function = fn(&mut Kernel<'_>, &mut Machine, [u64; 5]) -> Answer<u64>;

/// A failed call: `-errno`.
pub const fn errno(number: i32) -> u64 {
    -(number as i64) as u64
}

pub const ENOENT: i32 = 2;
pub const E2BIG: i32 = 7;
pub const ENOMEM: i32 = 12;
pub const EBUSY: i32 = 16;
pub const EEXIST: i32 = 17;
pub const EINVAL: i32 = 22;

/// The function of this name, without the suffix `___…` by which programs tell versions apart.
pub fn named(name: &str) -> Option<Function> {
    let plain = name.split_once("___").map_or(name, |(plain, _)| plain);
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
