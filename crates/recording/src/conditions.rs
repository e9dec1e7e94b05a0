//! What a recording finds when it begins: what its tasks have open and where they may run. Also
//! what the kernel and the hardware are set to.

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

/// A cost of scheduling on this machine, from a recording of known operations.
///
/// | name | what |
/// |---|---|
/// | `switch` | a switch between two tasks, from its event to the end of the call |
/// | `block` | blocking in a call, until the switch away, beyond the call's own work |
/// | `wake-here`, `wake-away`, `wake-idle` | waking a task in a call: on the waker's CPU, on another that is busy, on another that is idle |
/// | `preempt` | being preempted: from the end of a call that woke another task to the switch |
/// | `idle-here-N`, `idle-away-N` | from a waking to the switch of an idle CPU, woken by an interrupt of its own or by another CPU. N is the class of its idle time, from 0 on: up to 0.5, 1, 3, 5, 10, 200 µs, longer |
/// | `stop-here`, `stop-away` | the same of a busy CPU that stops its task |
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// What was measured, as in the table above.
    pub name: String,
    /// The number of samples.
    pub n: u64,
    /// The distribution in nanoseconds: at most 32 values, each as likely as another, in order.
    pub values: Vec<u64>,
}

impl Calibration {
    /// The calibrations that JSON text lists.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn of_json(text: &str) -> Result<Vec<Calibration>, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// JSON text that lists them.
    pub fn to_json(all: &[Calibration]) -> String {
        serde_json::json!(all).to_string()
    }

    /// The value at a share of the distribution: 0 the smallest, 0.5 the median, 1 the largest.
    pub fn at(&self, share: f64) -> Option<u64> {
        let last = self.values.len().checked_sub(1)?;
        self.values.get((share * last as f64).round() as usize).copied()
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

    #[test]
    fn a_distribution_is_written_read_and_asked() {
        let of = Calibration { name: "block".into(), n: 300, values: (100..=131).collect() };
        assert_eq!((of.at(0.0), of.at(0.5), of.at(1.0)), (Some(100), Some(116), Some(131)));
        assert_eq!(Calibration::default().at(0.5), None);
        let all = [of, Calibration::default()];
        assert_eq!(Calibration::of_json(&Calibration::to_json(&all)).unwrap(), all);
        assert!(Calibration::of_json("[{\"n\": \"many\"}]").unwrap_err().contains("line 1"));
    }

    /// A recording from before has none, and is read.
    #[test]
    fn calibrations_may_be_absent() {
        let old: Conditions = serde_json::from_str("{\"online\":\"0-1\"}").unwrap();
        assert!(old.calibrations.is_empty());
    }
}
