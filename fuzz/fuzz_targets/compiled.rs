//! Any bytes as the object of a scheduler of sched_ext: refused, ejected or simulated, but never a
//! panic, a hang or much memory. That a scheduler has the policy break the simulator's rules is
//! found here as well.

#![no_main]

#[path = "../../crates/sched-ext/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    common::simulate(bytes, 2000);
});
