//! What a recording finds when it begins: what its tasks have open and where they may run, and
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

/// The cost of an operation, from repeated samples.
///
/// | name | one operation |
/// |---|---|
/// | `yield` | two tasks on one CPU yield in turn: a call of `sched_yield` with its switch |
/// | `pipe-same-cpu` | half a round trip of a byte through two pipes, both tasks on one CPU |
/// | `pipe-other-cpu` | the same, on two CPUs |
/// | `futex-same-cpu` | half a round trip by `FUTEX_WAIT` and `FUTEX_WAKE`, both tasks on one CPU |
/// | `futex-other-cpu` | the same, on two CPUs |
/// | `fork-and-wait` | a `fork` of a small process that exits at once, and the wait for its end |
/// | `sleep-late` | how long after its time a `clock_nanosleep` until 200 µs ahead returns |
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// What was measured, as in the table above.
    pub name: String,
    /// `ns`.
    pub unit: String,
    /// `cpu` if it is CPU time of the tasks (what others do meanwhile does not count), `wall` if it
    /// is elapsed time.
    pub clock: String,
    /// Whether the recorder's probes were attached meanwhile, with these tasks traced.
    pub recorded: bool,
    /// Operations in one sample; the sample is the mean over them.
    pub batch: u32,
    /// The number of samples.
    pub n: u64,
    /// Quantiles of the samples: pairs of a share (0 the smallest, 0.5 the median, 1 the largest)
    /// and a value, in order.
    pub quantiles: Vec<(f64, f64)>,
}

impl Calibration {
    /// The shares that the recorder writes.
    pub const SHARES: [f64; 9] = [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0];

    /// The quantiles of some samples, at [`Calibration::SHARES`]; empty without samples.
    pub fn quantiles_of(mut samples: Vec<f64>) -> Vec<(f64, f64)> {
        samples.sort_by(f64::total_cmp);
        let Some(last) = samples.len().checked_sub(1) else { return Vec::new() };
        let at = |share: f64| samples[(share * last as f64).round() as usize];
        Calibration::SHARES.iter().map(|share| (*share, at(*share))).collect()
    }

    /// The value at a share, if the recording has it.
    pub fn at(&self, share: f64) -> Option<f64> {
        let found = self.quantiles.iter().find(|(of, _)| (of - share).abs() < 1e-9);
        found.map(|(_, value)| *value)
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
    fn quantiles_are_in_order_and_found_by_their_share() {
        let quantiles = Calibration::quantiles_of((0..=100).rev().map(f64::from).collect());
        let of = Calibration { quantiles, ..Calibration::default() };
        assert_eq!((of.at(0.0), of.at(0.5), of.at(0.99)), (Some(0.0), Some(50.0), Some(99.0)));
        assert_eq!((of.at(0.6), of.quantiles.len()), (None, Calibration::SHARES.len()));
        assert_eq!(Calibration::quantiles_of(Vec::new()), []);
    }

    /// A recording from before has none, and is read.
    #[test]
    fn calibrations_may_be_absent() {
        let old: Conditions = serde_json::from_str("{\"online\":\"0-1\"}").unwrap();
        assert!(old.calibrations.is_empty());
    }
}
