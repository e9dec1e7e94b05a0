//! The next event of each CPU, and the earliest of all.

use crate::{CpuId, Time};

/// A tournament tree in groups of four.
///
/// A group holds four times and the CPU of each. The lowest groups hold the CPUs themselves; an
/// entry of another group holds the earliest of the group below it. Four CPUs are one group in one
/// cache line, without any level above.
pub struct CpuTimes {
    /// The four groups below the group at `n` are at `4 n + 1` and after.
    groups: Vec<Group>,
    /// Where the group of the first CPU is.
    lowest: usize,
    /// The minimum of the first group, and its CPU.
    earliest: (Time, CpuId),
}

#[derive(Clone, Copy)]
struct Group {
    times: [Time; GROUP],
    cpus: [CpuId; GROUP],
}

const GROUP: usize = 4;

impl CpuTimes {
    pub fn new(cpus: u16) -> CpuTimes {
        let (mut lowest, mut places) = (0, GROUP);
        while places < usize::from(cpus) {
            (lowest, places) = (GROUP * lowest + 1, GROUP * places);
        }
        let nobody = Group { times: [Time::NEVER; GROUP], cpus: [CpuId(0); GROUP] };
        let mut times = CpuTimes {
            groups: vec![nobody; lowest + places / GROUP],
            lowest,
            earliest: (Time::NEVER, CpuId(0)),
        };
        for cpu in (0..cpus).map(CpuId) {
            times.groups[lowest + cpu.index() / GROUP].cpus[cpu.index() % GROUP] = cpu;
        }
        times
    }

    #[inline]
    pub fn earliest(&self) -> (Time, CpuId) {
        self.earliest
    }

    #[inline(always)]
    pub fn set(&mut self, cpu: CpuId, time: Time) {
        let mut index = self.lowest + cpu.index() / GROUP;
        let group = &mut self.groups[index];
        group.times[cpu.index() % GROUP] = time;
        let mut least = group.min();
        while index > 0 {
            let place = (index - 1) % GROUP;
            index = (index - 1) / GROUP;
            let group = &mut self.groups[index];
            if (group.times[place], group.cpus[place]) == least {
                return; // and nothing changes further up
            }
            (group.times[place], group.cpus[place]) = least;
            least = group.min();
        }
        self.earliest = least;
    }
}

impl Group {
    /// The minimum time and its CPU. Ties go to the first entry, which is the CPU with the lowest
    /// number.
    #[inline(always)]
    fn min(&self) -> (Time, CpuId) {
        let [a, b, c, d] = self.times;
        let least = a.min(b).min(c.min(d));
        let behind = if least == c { 2 } else { 3 };
        let place = if least == a {
            0
        } else if least == b {
            1
        } else {
            behind
        };
        (least, self.cpus[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tournament_agrees_with_a_scan(
            cpus in 1u16..70,
            sets in proptest::collection::vec((0u16..70, 0u64..20), 1..200),
        ) {
            let mut times = CpuTimes::new(cpus);
            let mut scan = vec![Time::NEVER; usize::from(cpus)];
            for (cpu, time) in sets {
                let cpu = CpuId(cpu % cpus);
                times.set(cpu, Time(time));
                scan[cpu.index()] = Time(time);
                let first = scan
                    .iter()
                    .enumerate()
                    .min_by_key(|&(index, time)| (time, index))
                    .map(|(index, time)| (*time, CpuId(index as u16)));
                prop_assert_eq!(Some(times.earliest()), first);
            }
        }
    }
}
