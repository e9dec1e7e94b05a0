//! The CPUs of a guest in lockstep, which QEMU's plugin sees to.

use crate::{attributes, clock};

/// Has the plugin run the CPUs `0..cpus` in lockstep from here on. Each is visited, as one that is
/// halted takes part only when it runs.
pub fn begin(cpus: u32) {
    clock::begin_lockstep();
    let all: Vec<u16> = (0..cpus).filter_map(|cpu| u16::try_from(cpu).ok()).collect();
    for &cpu in &all {
        attributes::set_affinity(&[cpu]);
    }
    attributes::set_affinity(&all);
}
