//! The calls of a scheduler's callbacks: how many instructions each takes.

use std::collections::BTreeMap;

/// What the trampolines are called by which the kernel calls the callbacks.
const TRAMPOLINE: &str = "bpf__sched_ext_ops_";

/// The calls of one callback.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calls {
    /// As in `struct sched_ext_ops`.
    pub callback: String,
    /// How often a call took each number of instructions.
    times: BTreeMap<u64, u64>,
}

impl Calls {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.times.values().sum()
    }

    /// Instructions of a call, on average.
    pub fn mean(&self) -> f64 {
        let all: u64 = self.times.iter().map(|(instructions, times)| instructions * times).sum();
        all as f64 / self.count() as f64
    }

    /// The number of instructions that this part of the calls, from 0 to 1, takes at most; with 1
    /// the maximum.
    pub fn quantile(&self, part: f64) -> u64 {
        let rank = (self.count() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.times.iter().find(|(_, times)| {
            seen += **times;
            seen >= rank
        });
        reached.map_or(0, |(instructions, _)| *instructions)
    }
}

/// The callback that a symbol of the kernel's is the trampoline of.
pub fn callback(symbol: &str) -> Option<&str> {
    symbol.strip_prefix(TRAMPOLINE)
}

/// The calls in the windows of a job, by callback, in the order of their names. `named` is the
/// callback at an address, `belongs` whether a window is the job's.
pub fn read<'a>(
    counts: &str,
    named: impl Fn(u64) -> Option<&'a str>,
    belongs: impl Fn(usize) -> bool,
) -> Vec<Calls> {
    let mut callbacks: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    for line in counts.lines().filter_map(|line| line.strip_prefix("call ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [window, address, instructions, times] = words[..] else { continue };
        let (Ok(window), Ok(address)) = (window.parse(), u64::from_str_radix(address, 16)) else {
            continue;
        };
        let (Ok(instructions), Ok(times)) = (instructions.parse(), times.parse::<u64>()) else {
            continue;
        };
        if let Some(callback) = named(address).filter(|_| belongs(window)) {
            *callbacks.entry(callback).or_default().entry(instructions).or_default() += times;
        }
    }
    let calls = callbacks.into_iter();
    calls.map(|(callback, times)| Calls { callback: callback.to_string(), times }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_jobs_windows_become_a_distribution_by_callback() {
        let counts = "0 ffffffff81000004 7\ncall 0 c0 10 3\ncall 1 c0 30 1\ncall 1 d0 5 1\ncall 2 c0 \
                      999 1\n";
        let named = |address| (address == 0xc0).then_some("enqueue");
        let calls = read(counts, named, |window| window < 2);
        let [of] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!((of.callback.as_str(), of.count(), of.mean()), ("enqueue", 4, 15.0));
        assert_eq!([0.5, 0.75, 0.76, 1.0].map(|part| of.quantile(part)), [10, 10, 30, 30]);
        assert_eq!(callback("bpf__sched_ext_ops_dispatch"), Some("dispatch"));
        assert_eq!(callback("bpf_trampoline_7"), None);
    }
}
