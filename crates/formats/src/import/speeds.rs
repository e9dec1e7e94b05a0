//! How fast the CPUs of a recording were, from their frequencies while they were busy.

use schedsim::{CpuId, MigrationCosts, Place, Topology};

/// The speed of a CPU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CpuSpeed {
    /// What it did in a second while it was busy, of what the fastest CPU did: above 0, at most 1.
    pub relative: f64,
    /// CPUs of one kind have the same highest frequency and the same capacity, if that is known.
    pub kind: u16,
}

/// A machine with such CPUs, if they differ: each is a core, and those of a kind share a cache.
pub(super) fn topology(speeds: &[CpuSpeed], cpus: u16) -> Option<Topology> {
    let last = speeds.last()?;
    let place = |core: u16| {
        let CpuSpeed { relative, kind } = *speeds.get(usize::from(core)).unwrap_or(last);
        Place { core, cluster: kind, node: 0, speed: relative }
    };
    let places = (0..cpus).map(place).collect();
    Topology::new(places, Vec::new(), 1.0, MigrationCosts::default()).ok()
}

/// Frequencies that are nearer than this are one.
const SAME: f64 = 0.01;

/// What a recording says about the frequencies of its CPUs.
#[derive(Default)]
pub(super) struct Frequencies {
    cpus: Vec<OfCpu>,
    /// The number of events.
    pub events: u64,
}

#[derive(Clone, Copy, Default)]
struct OfCpu {
    /// The current frequency in kHz; 0 if it is unknown.
    khz: u64,
    is_busy: bool,
    /// Up to where its time is accounted for.
    since: u64,
    /// Nanoseconds of busy time, before the first frequency and since.
    unknown: u64,
    known: u64,
    /// The sum of busy time × frequency.
    cycles: u128,
    /// The highest frequency that was seen, or that the file lists.
    most: u64,
    /// What the file says the CPU does at its highest frequency, of 1024.
    capacity: u64,
}

impl OfCpu {
    fn settle(&mut self, time: u64) {
        let passed = time.saturating_sub(self.since);
        self.since = time;
        if self.is_busy && self.khz > 0 {
            self.known = self.known.saturating_add(passed);
            self.add(passed, self.khz);
        } else if self.is_busy {
            self.unknown = self.unknown.saturating_add(passed);
        }
    }

    fn add(&mut self, time: u64, khz: u64) {
        let cycles = u128::from(time).saturating_mul(khz.into());
        self.cycles = self.cycles.saturating_add(cycles);
    }

    /// The mean frequency while busy. One that was never busy has its highest.
    fn mean(&self) -> f64 {
        match self.known {
            0 => self.most as f64,
            known => self.cycles as f64 / known as f64,
        }
    }
}

impl Frequencies {
    fn of(&mut self, cpu: CpuId) -> &mut OfCpu {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index().saturating_add(1), OfCpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// The frequency of a CPU changes. Before the first change it had that frequency, too.
    pub fn set(&mut self, cpu: CpuId, khz: u64, time: u64) {
        self.events = self.events.saturating_add(1);
        let of = self.of(cpu);
        of.settle(time);
        if of.khz == 0 {
            let unknown = std::mem::take(&mut of.unknown);
            of.known = unknown;
            of.add(unknown, khz);
        }
        of.khz = khz;
        of.most = of.most.max(khz);
    }

    /// A CPU becomes busy or idle.
    #[inline]
    pub fn switch(&mut self, cpu: CpuId, is_busy: bool, time: u64) {
        let of = self.of(cpu);
        of.settle(time);
        of.is_busy = is_busy;
    }

    /// What a file says of a CPU beside its events.
    pub fn describe(&mut self, cpu: CpuId, most: u64, capacity: u64) {
        let of = self.of(cpu);
        of.most = of.most.max(most);
        of.capacity = capacity;
    }

    /// The speeds of all CPUs, and what they are made of, in words; no speeds if the CPUs are alike
    /// or theirs are unknown. `None` if the file says nothing of them.
    pub fn speeds(mut self, end: u64) -> Option<(Vec<CpuSpeed>, String)> {
        self.cpus.iter_mut().for_each(|cpu| cpu.settle(end));
        let described = self.cpus.iter().all(|cpu| cpu.capacity > 0 && cpu.most > 0);
        if self.events == 0 && !described || self.cpus.is_empty() {
            return None;
        }
        let lacks = |of: &OfCpu| of.unknown > 0 && !(described && self.events == 0);
        if let Some(cpu) = self.cpus.iter().position(lacks) {
            return Some((
                Vec::new(),
                format!(
                    "CPU {cpu} was busy, and its frequency is not recorded: all CPUs count as \
                     equally fast; say with --machine FILE how fast they are"
                ),
            ));
        }
        let most = |of: &OfCpu| of.most.max(1) as f64;
        let speed = |of: &OfCpu| match described {
            true => of.capacity as f64 * of.mean() / most(of),
            false => of.mean(),
        };
        let fastest = self.cpus.iter().map(speed).fold(0.0, f64::max);
        let mut kinds: Vec<(u64, u64)> = Vec::new();
        let speeds: Vec<CpuSpeed> = self
            .cpus
            .iter()
            .map(|of| {
                let kind = (of.most, of.capacity);
                let place = kinds.iter().position(|other| *other == kind);
                let place = place.unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len().saturating_sub(1)
                });
                let relative = if of.most == 0 { 1.0 } else { speed(of) / fastest };
                let relative = relative.clamp(SAME, 1.0);
                CpuSpeed { relative, kind: u16::try_from(place).unwrap_or(u16::MAX) }
            })
            .collect();
        let slowest = speeds.iter().map(|speed| speed.relative).fold(1.0, f64::min);
        if slowest > 1.0 - SAME {
            return Some((Vec::new(), "all CPUs were equally fast, by their frequencies".into()));
        }
        let each: Vec<String> = speeds
            .iter()
            .zip(&self.cpus)
            .map(|(speed, of)| {
                let mhz = |khz: f64| khz / 1000.0;
                format!("{:.2} ({:.0} of {:.0} MHz)", speed.relative, mhz(of.mean()), mhz(most(of)))
            })
            .collect();
        let by = match described {
            true => "capacity and mean frequency while busy",
            false => {
                "mean frequency while busy; what CPUs of different kinds do at one frequency is \
                 unknown: --machine FILE says it"
            }
        };
        Some((speeds, format!("speeds of the CPUs: {}; by {by}", each.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn two() -> Frequencies {
        let mut frequencies = Frequencies::default();
        // CPU 0 is busy for 4 ms at 1 GHz and for 4 ms at 0.5 GHz; CPU 1 for 8 ms at 2 GHz.
        frequencies.switch(CpuId(0), true, 0);
        frequencies.switch(CpuId(1), true, 0);
        frequencies.set(CpuId(0), 1_000_000, 2 * MS);
        frequencies.set(CpuId(1), 2_000_000, 2 * MS);
        frequencies.set(CpuId(0), 500_000, 4 * MS);
        frequencies.switch(CpuId(1), false, 8 * MS);
        frequencies.set(CpuId(1), 100_000, 8 * MS);
        frequencies
    }

    #[test]
    fn a_speed_is_the_mean_frequency_while_busy() {
        let (speeds, words) = two().speeds(8 * MS).unwrap();
        let (slow, fast) = (speeds[0], speeds[1]);
        assert!((slow.relative - 0.375).abs() < 1e-9 && fast.relative == 1.0, "{speeds:?}");
        assert_ne!(slow.kind, fast.kind);
        assert!(words.contains("0.38 (750 of 1000 MHz), 1.00 (2000 of 2000 MHz)"), "{words}");
        assert!(words.contains("--machine FILE"));
    }

    #[test]
    fn capacities_of_the_file_count() {
        let mut frequencies = two();
        frequencies.describe(CpuId(0), 1_500_000, 512);
        frequencies.describe(CpuId(1), 2_000_000, 1024);
        // Half a CPU at half of its highest frequency.
        let (speeds, words) = frequencies.speeds(8 * MS).unwrap();
        assert!((speeds[0].relative - 0.25).abs() < 1e-9, "{speeds:?}");
        assert!(words.ends_with("by capacity and mean frequency while busy"), "{words}");
        // Without an event, a CPU runs at its highest frequency.
        let mut silent = Frequencies::default();
        silent.describe(CpuId(0), 1_500_000, 512);
        silent.describe(CpuId(1), 2_000_000, 1024);
        assert_eq!(silent.speeds(8 * MS).unwrap().0[0].relative, 0.5);
    }

    #[test]
    fn unknown_or_equal_speeds_are_none() {
        assert!(Frequencies::default().speeds(1).is_none());
        let mut unknown = two();
        unknown.switch(CpuId(2), true, 0);
        let (speeds, words) = unknown.speeds(8 * MS).unwrap();
        assert!(speeds.is_empty() && words.contains("CPU 2 was busy"), "{words}");
        let mut equal = Frequencies::default();
        equal.set(CpuId(0), 1_000_000, 0);
        equal.set(CpuId(1), 1_000_000, 0);
        assert!(equal.speeds(8 * MS).unwrap().0.is_empty());
    }
}
