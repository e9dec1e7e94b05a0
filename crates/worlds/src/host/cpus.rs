//! The CPUs of this machine: which may be used, and how busy they were.

use program::Error;
use results::counted;
use schedsim::admission::CpuNumber;
use std::fs;

/// The CPUs that this process may use, in order.
pub fn usable() -> Vec<u16> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| parse_list(list.trim()).ok()).unwrap_or_else(|| vec![0])
}

/// Parses numbers and ranges of CPUs, such as `0,2-3`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_list(text: &str) -> Result<Vec<u16>, String> {
    let wrong = || format!("`{text}` is no list of CPUs; give numbers and ranges, as in 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            CpuNumber::parse(text.trim()).map_err(|error| format!("{}: {error}", wrong()))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The first `count` of those in `allowed`, or of those that this process may use.
///
/// # Errors
/// [`Error::Usage`] if there are fewer.
pub fn choose(allowed: &[u16], count: Option<u16>) -> Result<Vec<u16>, Error> {
    let usable = usable();
    if let Some(cpu) = allowed.iter().find(|cpu| !usable.contains(cpu)) {
        return Err(Error::Usage(format!(
            "CPU {cpu} is not there or may not be used; these may be: {}",
            names(&usable)
        )));
    }
    let mut chosen = if allowed.is_empty() { usable } else { allowed.to_vec() };
    let count = count.map_or(chosen.len(), usize::from);
    if count > chosen.len() {
        return Err(Error::Usage(format!(
            "{} are requested, but only {} may be used: {}",
            counted(count, "CPU"),
            chosen.len(),
            names(&chosen)
        )));
    }
    chosen.truncate(count);
    Ok(chosen)
}

/// `0,1,2`.
pub fn names(cpus: &[u16]) -> String {
    cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

/// What CPUs have done since the boot, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticks {
    /// Idle ticks.
    idle: u64,
    /// Ticks taken by a hypervisor.
    stolen: u64,
    /// All ticks.
    all: u64,
}

impl Ticks {
    /// Of these CPUs, now.
    pub fn of(cpus: &[u16]) -> Ticks {
        Ticks::read(&fs::read_to_string("/proc/stat").unwrap_or_default(), cpus)
    }

    /// `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`, the last two being
    /// part of the first two (proc(5)).
    fn read(stat: &str, cpus: &[u16]) -> Ticks {
        let mut sum = Ticks::default();
        for line in stat.lines() {
            let mut words = line.split_ascii_whitespace();
            let number = words
                .next()
                .and_then(|word| word.strip_prefix("cpu"))
                .and_then(|number| number.parse().ok());
            if number.is_none_or(|number| !cpus.contains(&number)) {
                continue;
            }
            let ticks: Vec<u64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
            if let [_, _, _, idle, waiting, _, _, stolen] = ticks[..] {
                sum.idle += idle + waiting;
                sum.stolen += stolen;
                sum.all += ticks.iter().sum::<u64>();
            }
        }
        sum
    }

    /// The idle and the stolen share since `before`; `None` with too few ticks.
    pub fn shares_since(&self, before: Ticks) -> Option<(f64, f64)> {
        const FEWEST: u64 = 10;
        let all = self.all.saturating_sub(before.all);
        let share = |now: u64, before: u64| now.saturating_sub(before) as f64 / all as f64;
        (all >= FEWEST).then(|| (share(self.idle, before.idle), share(self.stolen, before.stolen)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nonsense_is_refused() {
        assert_eq!(parse_list("0,2-3"), Ok(vec![0, 2, 3]));
        assert_eq!(parse_list("3,1,1-2"), Ok(vec![1, 2, 3]));
        for wrong in ["", "a", "3-1", "1,,2", "-1"] {
            assert!(parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ticks_are_those_of_the_requested_cpus() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 10 70 5 0 0 5 0 0\ncpu1 1 1 1 1 1 1 1 1 1 \
                    1\nintr 5\n";
        let ticks = Ticks::read(stat, &[0]);
        assert_eq!(ticks, Ticks { idle: 75, stolen: 5, all: 100 });
        assert_eq!(ticks.shares_since(Ticks::default()), Some((0.75, 0.05)));
        assert_eq!(ticks.shares_since(Ticks { all: 95, ..ticks }), None);
    }
}
