//! What a recording says beside its events.

use crate::Conditions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where and how it was recorded.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The architecture, by which call numbers are to be read.
    pub architecture: String,
    /// CPUs that exist, online or not.
    pub cpus: u16,
    /// By CPU: its core and its package, as `topology/core_id` and `physical_package_id` say.
    pub topology: Vec<(u32, u32)>,
    /// `fair`, or the name of the `sched_ext` scheduler.
    pub scheduler: String,
    /// Whose causes are recorded: `command`, `pid` or `all`.
    pub causes_of: String,
    /// `CLOCK_MONOTONIC` when the recording began, in nanoseconds.
    pub start: u64,
    /// What one recorded call costs, measured before the recording.
    pub overhead: Option<Overhead>,
    /// What recording does to the whole command, if it was run without the recorder, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light: Option<LightRun>,
    /// What the machine was set to, and what the tasks had open, when the recording began.
    pub conditions: Conditions,
}

/// The cost of recording, from repeated batches of a calibrated loop.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// Nanoseconds that one recorded call adds: the median of all batches.
    pub call_ns: f64,
    /// The first quartile.
    pub call_ns_q1: f64,
    /// The third quartile.
    pub call_ns_q3: f64,
    /// The number of batches.
    pub batches: u32,
    /// The same of one recorded call of the C library's locks, if they are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_ns: Option<f64>,
}

/// The command with and without the recorder: what of the second is how much of the first. Pairs of
/// runs before the recording.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LightRun {
    /// The number of pairs.
    pub pairs: u32,
    /// Elapsed time, recorded ÷ not recorded.
    pub wall: Ratio,
    /// CPU time of the command and its children, recorded ÷ not recorded.
    pub cpu: Ratio,
    /// CPU time of the recorder itself, in a recorded run, ÷ that of the command without it.
    pub own_cpu: Ratio,
}

/// A ratio over pairs of runs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ratio {
    /// The median of the pairs.
    pub median: f64,
    /// The smallest of the pairs: with [`Ratio::high`] an interval that holds the true median with a
    /// probability of 1 − 2^(1 − pairs): 97 % with six pairs. One pair has no interval: all three
    /// are equal.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Ratio {
    /// Of some pairs; 0 without any.
    pub fn of(mut pairs: Vec<f64>) -> Ratio {
        pairs.sort_by(f64::total_cmp);
        let at = |place: usize| pairs.get(place).copied().unwrap_or(0.0);
        let (last, half) = (pairs.len().saturating_sub(1), pairs.len() / 2);
        let median = if pairs.len() % 2 == 1 {
            at(half)
        } else {
            f64::midpoint(at(half.saturating_sub(1)), at(half))
        };
        Ratio { median, low: at(0), high: at(last) }
    }
}

/// The recorder's counters. Counts by kind have the names of [`What::name`](crate::What::name).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Events that the kernel handed over, by kind.
    pub emitted: BTreeMap<String, u64>,
    /// Events in the file, by kind.
    pub written: BTreeMap<String, u64>,
    /// Events before the recording began (of calibration, among others), by kind.
    pub discarded: BTreeMap<String, u64>,
    /// Events that found the buffer full, by kind; `missed` are those of an interrupt that came
    /// while an event of the same kind was taken.
    pub lost: BTreeMap<String, u64>,
    /// The same, by CPU.
    pub lost_by_cpu: BTreeMap<u16, u64>,
    /// The same, by task.
    pub lost_by_task: BTreeMap<u32, u64>,
    /// What was left out to stay within a budget, and from when on: nanoseconds after the start.
    pub shed: BTreeMap<String, u64>,
    /// Events that came after a later one was written; they have that one's time.
    pub late: u64,
    /// Calls whose object was not resolved, calls of 32-bit tasks, tasks beyond the table's size,
    /// members of a poll beyond the first 64: by name.
    pub unresolved: BTreeMap<String, u64>,
}

impl Counts {
    /// All events that were lost.
    pub fn lost(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The kind of which more or fewer events arrived than the kernel handed over, if any.
    pub fn disagreement(&self) -> Option<(&str, u64, u64)> {
        let of =
            |counts: &BTreeMap<String, u64>, kind: &str| counts.get(kind).copied().unwrap_or(0);
        let kinds = self.emitted.keys().chain(self.written.keys());
        kinds.map(String::as_str).find_map(|kind| {
            let arrived = of(&self.written, kind).saturating_add(of(&self.discarded, kind));
            let emitted = of(&self.emitted, kind);
            (arrived != emitted).then_some((kind, emitted, arrived))
        })
    }
}

/// The last chunk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// The final counters.
    pub counts: Counts,
    /// The wait status of the command, as `waitpid` gives it; absent without a command.
    pub status: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_the_median_of_its_pairs_and_their_range() {
        let of = |pairs: &[f64]| {
            let Ratio { median, low, high } = Ratio::of(pairs.to_vec());
            (median, low, high)
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0));
        assert_eq!((of(&[1.5]), of(&[])), ((1.5, 1.5, 1.5), (0.0, 0.0, 0.0)));
    }
}
