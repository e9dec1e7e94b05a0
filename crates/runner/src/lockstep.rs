//! The CPUs of a guest in lockstep, which QEMU's plugin sees to.

use crate::{attributes, clock};

/// Has the plugin run `cpus` in lockstep from here on. Each is visited, as one that is halted takes
/// part only when it runs.
pub fn begin(cpus: &[u16]) {
    clock::begin_lockstep();
    for &cpu in cpus {
        attributes::set_affinity(&[cpu]);
    }
    attributes::set_affinity(cpus);
}
