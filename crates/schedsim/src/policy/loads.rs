//! A count per CPU that finds its minimum and maximum without a scan.

use crate::{CpuId, Random};

/// Loads that change by one.
///
/// Few CPUs are scanned. More are kept in order, so that every operation takes the same time on a
/// hundred CPUs and on a thousand.
#[derive(Clone, Debug)]
pub struct Loads {
    loads: Vec<u32>,
    sum: u64,
    order: Option<Order>,
}

/// Up to this number of CPUs a scan is faster.
const FEW: u16 = 16;

/// CPUs sorted by load; CPUs with equal loads are adjacent, in any order. A CPU whose load changes
/// by one swaps places with the first or the last of its equals. It is then at the border to the
/// next group.
#[derive(Clone, Debug)]
struct Order {
    /// The CPUs, least loaded first.
    cpus: Vec<CpuId>,
    /// The index of each CPU.
    places: Vec<u16>,
    /// For each load, the number of CPUs with less; up to one above the maximum load so far.
    below: Vec<u16>,
}

/// How ties between CPUs are broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ties {
    /// Any, drawn at random.
    #[default]
    Random,
    /// The one with the lowest number.
    Lowest,
}

impl Loads {
    /// No load on `cpus` CPUs.
    pub fn new(cpus: u16) -> Loads {
        let order = || Order {
            cpus: (0..cpus).map(CpuId).collect(),
            places: (0..cpus).collect(),
            below: vec![0, cpus],
        };
        Loads { loads: vec![0; usize::from(cpus)], sum: 0, order: (cpus > FEW).then(order) }
    }

    /// The load of `cpu`.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> u32 {
        self.loads[cpu.index()]
    }

    /// Adds one to `cpu`.
    #[inline(always)]
    pub fn add(&mut self, cpu: CpuId) {
        self.sum += 1;
        let load = &mut self.loads[cpu.index()];
        if let Some(order) = &mut self.order {
            order.add(cpu, *load as usize);
        }
        *load += 1;
    }

    /// Subtracts one from `cpu`, which has a load.
    #[inline(always)]
    pub fn subtract(&mut self, cpu: CpuId) {
        self.sum -= 1;
        let load = &mut self.loads[cpu.index()];
        assert!(*load > 0, "there is nothing on CPU {}", cpu.0);
        if let Some(order) = &mut self.order {
            order.subtract(cpu, *load as usize);
        }
        *load -= 1;
    }

    /// The least loaded CPU.
    pub fn least(&self, ties: Ties, random: &mut Random) -> CpuId {
        match &self.order {
            Some(order) => {
                let load = self.of(order.cpus[0]) as usize;
                pick(&order.cpus[..usize::from(order.below[load + 1])], ties, random)
            }
            None => self.pick_with(self.loads.iter().copied().min().unwrap_or(0), ties, random),
        }
    }

    /// The most loaded CPU, if any has a load.
    #[inline]
    pub fn greatest(&self, ties: Ties, random: &mut Random) -> Option<CpuId> {
        if self.sum == 0 {
            return None;
        }
        match &self.order {
            Some(order) => {
                let load = self.of(*order.cpus.last()?) as usize;
                Some(pick(&order.cpus[usize::from(order.below[load])..], ties, random))
            }
            None => {
                let load = self.loads.iter().copied().max()?;
                Some(self.pick_with(load, ties, random))
            }
        }
    }

    /// The CPUs that have a load, in no particular order.
    pub fn loaded(&self) -> impl Iterator<Item = CpuId> + '_ {
        let (few, ordered) = match &self.order {
            Some(order) => (0, &order.cpus[usize::from(order.below[1])..]),
            None => (self.loads.len(), &[][..]),
        };
        ordered
            .iter()
            .copied()
            .chain((0..few).map(|cpu| CpuId(cpu as u16)).filter(|&cpu| self.of(cpu) > 0))
    }

    /// One of the few CPUs that have this load.
    fn pick_with(&self, load: u32, ties: Ties, random: &mut Random) -> CpuId {
        let (mut equals, mut count) = ([CpuId(0); FEW as usize], 0);
        for (cpu, &other) in self.loads.iter().enumerate() {
            equals[count % equals.len()] = CpuId(cpu as u16);
            count += usize::from(other == load); // and no branch, as it is anybody's guess
        }
        pick(&equals[..count], ties, random)
    }
}

impl Order {
    #[inline(never)]
    fn add(&mut self, cpu: CpuId, load: usize) {
        if load + 2 == self.below.len() {
            self.below.push(self.cpus.len() as u16);
        }
        self.below[load + 1] -= 1;
        self.swap(cpu, self.below[load + 1]);
    }

    #[inline(never)]
    fn subtract(&mut self, cpu: CpuId, load: usize) {
        self.swap(cpu, self.below[load]);
        self.below[load] += 1;
    }

    /// Swaps `cpu` with the CPU at `place`.
    #[inline]
    fn swap(&mut self, cpu: CpuId, place: u16) {
        let other = self.cpus[usize::from(place)];
        let from = std::mem::replace(&mut self.places[cpu.index()], place);
        self.places[other.index()] = from;
        self.cpus[usize::from(from)] = other;
        self.cpus[usize::from(place)] = cpu;
        self.places[cpu.index()] = place;
    }
}

/// One of `equals`, which is not empty.
#[inline]
pub fn pick(equals: &[CpuId], ties: Ties, random: &mut Random) -> CpuId {
    match (equals, ties) {
        ([only], _) => *only,
        (_, Ties::Random) => equals[random.below(equals.len() as u64) as usize],
        (_, Ties::Lowest) => equals.iter().copied().min().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_order_agrees_with_a_scan(
            cpus in 1u16..40,
            steps in proptest::collection::vec((0u16..40, any::<bool>()), 1..300),
        ) {
            let (mut loads, mut scan) = (Loads::new(cpus), vec![0u32; usize::from(cpus)]);
            let mut random = Random::new(1);
            for (cpu, more) in steps {
                let cpu = CpuId(cpu % cpus);
                if more {
                    loads.add(cpu);
                    scan[cpu.index()] += 1;
                } else if scan[cpu.index()] > 0 {
                    loads.subtract(cpu);
                    scan[cpu.index()] -= 1;
                }
                let (least, most) = (*scan.iter().min().unwrap(), *scan.iter().max().unwrap());
                let first =
                    |load: u32| CpuId(scan.iter().position(|&other| other == load).unwrap() as u16);
                prop_assert_eq!(loads.least(Ties::Lowest, &mut random), first(least));
                prop_assert_eq!(
                    loads.greatest(Ties::Lowest, &mut random),
                    (most > 0).then(|| first(most))
                );
                prop_assert_eq!(scan[loads.least(Ties::Random, &mut random).index()], least);
                prop_assert_eq!(
                    loads.greatest(Ties::Random, &mut random).map_or(0, |cpu| scan[cpu.index()]),
                    most
                );
                let loaded: BTreeSet<usize> = loads.loaded().map(CpuId::index).collect();
                prop_assert_eq!(loaded, (0..scan.len()).filter(|&cpu| scan[cpu] > 0).collect());
            }
        }
    }

    #[test]
    fn equals_are_drawn_alike() {
        let (loads, mut random, mut counts) = (Loads::new(3), Random::new(2), [0u32; 3]);
        (0..30_000).for_each(|_| counts[loads.least(Ties::Random, &mut random).index()] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }
}
