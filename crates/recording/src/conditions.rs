//! What a recording finds when it begins: what its tasks have open and where they may run, and
//! what the kernel and the hardware are set to.

use crate::{Calibrated, Calibration};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is set on the machine. What the machine does not say is absent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The CPUs that are online, as the kernel writes them: `0-3,5`.
    pub online: Option<String>,
    /// By CPU: how its frequency is governed.
    pub frequencies: BTreeMap<u16, Frequency>,
    /// What the scheduler does, as `/sys/kernel/debug/sched/features` says; `NO_` is off.
    pub features: Option<Vec<String>>,
    /// By vulnerability of the CPU: what the kernel does about it.
    pub mitigations: BTreeMap<String, String>,
    /// XXH3-128 of the kernel's configuration (`/proc/config.gz` or `/boot/config-RELEASE`), in
    /// hexadecimal digits.
    pub kernel_config: Option<String>,
    /// The control groups (version 2) of the tasks whose causes are recorded.
    pub cgroups: Vec<Cgroup>,
    /// What the processes whose causes are recorded have open.
    pub descriptors: Vec<Descriptor>,
    /// What operations of the scheduler cost on this machine, measured before the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calibrations: Vec<Calibration>,
}

impl Conditions {
    /// The calibrations that are understood, in the order of the file. One of another unit, of an
    /// operation that only another version knows, or without samples is left out.
    pub fn calibrated(&self) -> impl Iterator<Item = Calibrated> {
        self.calibrations.iter().filter_map(Calibration::read)
    }
}

/// How the frequency of a CPU is governed, in kHz.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of Linux")]
pub struct Frequency {
    pub governor: String,
    pub min_khz: u64,
    pub max_khz: u64,
    pub current_khz: u64,
}

/// A control group. It has a number and no name: names of groups say whose they are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// The inode of its folder, by which BPF knows it.
    pub id: u64,
    /// How many folders it is below the root.
    pub level: u32,
    /// `cpu.weight`, `cpu.max` and `cpuset.cpus.effective`, where it has them.
    pub settings: BTreeMap<String, String>,
    /// Its tasks at the beginning whose causes are recorded.
    pub tasks: Vec<u32>,
}

/// An open descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Descriptor {
    /// The process.
    pub tgid: u32,
    /// Its number there.
    pub number: u32,
    /// `pipe`, `socket`, `file`, `device`, or the kernel's name of an object without a file, such
    /// as `eventfd`.
    pub class: String,
    /// The inode, as of [`What::Object`](crate::What::Object).
    pub inode: u64,
    /// The path, if paths are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording from before has none, and is read.
    #[test]
    fn calibrations_may_be_absent() {
        let old: Conditions = serde_json::from_str("{\"online\":\"0-1\"}").unwrap();
        assert!(old.calibrations.is_empty());
    }
}
