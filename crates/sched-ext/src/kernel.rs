//! The kernel as a program finds it that calls it.

use super::callbacks::{Callback, Places};
use super::core::{Answer, Core};
use super::cost::Costs;
use bpf::Machine;
use schedsim::policy::Context;

/// The kernel during a call of a program.
pub struct Kernel<'a> {
    pub core: &'a mut Core,
    pub cx: &'a mut Context,
    /// The functions, by their numbers in the object.
    pub functions: &'a [Option<Known>],
    /// What these take.
    pub costs: &'a Costs,
    /// The callback that runs.
    pub callback: Callback,
}

/// A function of the kernel.
pub type Function = fn(&mut Kernel<'_>, &mut Machine, [u64; 5]) -> Answer<u64>;

/// A function that an object calls.
#[derive(Clone, Copy)]
pub struct Known {
    pub call: Function,
    /// Where it may call it.
    pub places: Places,
}

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
