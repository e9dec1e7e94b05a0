//! Against a naive version, written from `idle.c` with sets of numbers, on random machines.

use super::{Idle, WHOLE_CORE};
use crate::masks::Mask;

use schedsim::{CpuId, Machine, MigrationCosts, Place, Topology};
use std::collections::BTreeSet;

type Cpus = BTreeSet<u16>;

/// What `idle.c` keeps: two masks, and the last CPU that each CPU was given.
struct Naive {
    places: Vec<Place>,
    idle: Cpus,
    smts: Cpus,
    given: Vec<Option<u16>>,
}

impl Naive {
    fn new(places: Vec<Place>) -> Naive {
        let all: Cpus = (0..places.len() as u16).collect();
        Naive { given: vec![None; places.len()], idle: all.clone(), smts: all, places }
    }

    fn like(&self, cpu: u16, of: fn(&Place) -> u16) -> Cpus {
        let mine = of(&self.places[usize::from(cpu)]);
        (0..).zip(&self.places).filter(|(_, place)| of(place) == mine).map(|(cpu, _)| cpu).collect()
    }

    fn core(&self, cpu: u16) -> Cpus {
        self.like(cpu, |place| place.core)
    }

    fn llc(&self, cpu: u16) -> Cpus {
        self.like(cpu, |place| place.cluster)
    }

    fn numa(&self, cpu: u16) -> Cpus {
        self.like(cpu, |place| place.node)
    }

    fn cpus(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.places.len() as u16
    }

    /// `sched_smt_active`.
    fn smt(&self) -> bool {
        self.cpus().any(|cpu| self.core(cpu).len() > 1)
    }

    /// `update_builtin_idle`.
    fn update(&mut self, cpu: u16, idle: bool) {
        let core = self.core(cpu);
        if idle {
            self.idle.insert(cpu);
            if core.is_subset(&self.idle) {
                self.smts.extend(core);
            }
        } else {
            self.idle.remove(&cpu);
            self.smts.retain(|cpu| !core.contains(cpu));
        }
    }

    /// `scx_idle_test_and_clear_cpu`.
    fn test_and_clear(&mut self, cpu: u16) -> bool {
        let core = self.core(cpu);
        self.smts.retain(|cpu| !core.contains(cpu));
        self.idle.remove(&cpu)
    }

    /// `cpumask_any_and_distribute`, which begins at CPU 0 here.
    fn distribute(&mut self, this: u16, a: &Cpus, b: &Cpus) -> Option<u16> {
        let both: Cpus = a & b;
        let last = &mut self.given[usize::from(this)];
        let behind = |cpu: &&u16| last.is_none_or(|last| **cpu > last);
        let found = both.iter().find(behind).or(both.first()).copied();
        *last = found.or(*last);
        found
    }

    /// `pick_idle_cpu_in_node`.
    fn pick(&mut self, this: u16, allowed: &Cpus, whole_core: bool) -> Option<u16> {
        loop {
            let whole = match self.smt() {
                true => self.distribute(this, &self.smts.clone(), allowed),
                false => None,
            };
            if whole.is_none() && self.smt() && whole_core {
                return None;
            }
            let found = whole.or_else(|| self.distribute(this, &self.idle.clone(), allowed))?;
            if self.test_and_clear(found) {
                return Some(found);
            }
        }
    }

    /// `scx_select_cpu_dfl` without `SCX_WAKE_SYNC`.
    fn select(&mut self, this: u16, prev: u16, allowed: &Cpus, whole_core: bool) -> Option<u16> {
        let within = |span: Cpus| Some(&span & allowed).filter(|span| !span.is_empty());
        let online = self.places.len();
        let mismatch = self.cpus().any(|cpu| self.llc(cpu).len() != self.numa(cpu).len());
        let uses_llc = self.llc(0).len() < online;
        let uses_numa = self.numa(0).len() < online && mismatch;
        let llc = if uses_llc { within(self.llc(prev)) } else { None };
        let numa = if uses_numa { within(self.numa(prev)) } else { None };
        if self.smt() {
            if allowed.contains(&prev) && self.smts.contains(&prev) && self.test_and_clear(prev) {
                return Some(prev);
            }
            for span in [&llc, &numa, &Some(allowed.clone())].into_iter().flatten() {
                if let Some(cpu) = self.pick(this, span, true) {
                    return Some(cpu);
                }
            }
            if whole_core {
                return None;
            }
        }
        if allowed.contains(&prev) && self.test_and_clear(prev) {
            return Some(prev);
        }
        if self.smt() {
            for cpu in self.core(prev) {
                if cpu != prev && allowed.contains(&cpu) && self.test_and_clear(cpu) {
                    return Some(cpu);
                }
            }
        }
        for span in [&llc, &numa].into_iter().flatten() {
            if let Some(cpu) = self.pick(this, span, false) {
                return Some(cpu);
            }
        }
        self.pick(this, allowed, whole_core)
    }

    /// The part of `scx_select_cpu_dfl` for `SCX_WAKE_SYNC`.
    fn select_in_sync(&mut self, this: u16, prev: u16, allowed: &Cpus, free: bool) -> Option<u16> {
        if allowed.contains(&prev) && self.llc(this).contains(&prev) && self.test_and_clear(prev) {
            return Some(prev);
        }
        if !free || self.idle.is_empty() || !allowed.contains(&this) {
            return None;
        }
        self.test_and_clear(this);
        Some(this)
    }
}

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> u16 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) % bound as u64) as u16
    }

    /// Nodes of clusters of cores of threads; the numbers of CPUs are in disorder at times.
    fn places(&mut self) -> Vec<Place> {
        let (mut places, mut core, mut cluster) = (Vec::new(), 0, 0);
        for node in 0..=self.below(2) {
            for _ in 0..=self.below(3) {
                for _ in 0..=self.below(4) {
                    for _ in 0..=self.below(2) {
                        places.push(Place { core, cluster, node, speed: 1.0 });
                    }
                    core += 1;
                }
                cluster += 1;
            }
        }
        if self.below(2) == 1 {
            for last in (1..places.len()).rev() {
                let other = usize::from(self.below(last + 1));
                places.swap(last, other);
            }
        }
        places
    }
}

#[test]
fn idle_cpus_are_found_as_by_a_naive_version_of_the_kernels() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let places = random.places();
        let count = places.len();
        let topology =
            Topology::new(places.clone(), Vec::new(), 1.0, MigrationCosts::default()).unwrap();
        let machine = Machine { topology: Some(topology), ..Machine::ideal(count as u16) };
        let (mut idle, mut naive) = (Idle::new(&machine), Naive::new(places));
        for step in 0..200 {
            let (this, cpu) = (random.below(count), random.below(count));
            let chance = 1 + random.below(4);
            let allowed: Cpus = naive.cpus().filter(|_| random.below(4) < chance).collect();
            let mut mask = Mask::none(count as u16);
            allowed.iter().for_each(|&cpu| mask.set(cpu));
            let whole = random.below(4) == 0;
            let flags = if whole { WHOLE_CORE } else { 0 };
            let (ours, theirs) = match random.below(8) {
                0 => (Some(u16::from(idle.claim(cpu))), Some(naive.test_and_clear(cpu).into())),
                1 => (idle.pick(CpuId(this), &mask, flags), naive.pick(this, &allowed, whole)),
                2 | 3 => (
                    idle.choose(CpuId(this), cpu, &mask, flags),
                    naive.select(this, cpu, &allowed, whole),
                ),
                4 => {
                    let (free, all) = (whole, Mask::all(count as u16));
                    (
                        idle.choose_in_sync(CpuId(this), cpu, &mask, (free, &all)),
                        naive.select_in_sync(this, cpu, &allowed, free),
                    )
                }
                what => {
                    idle.update(CpuId(cpu), what < 7);
                    naive.update(cpu, what < 7);
                    (None, None)
                }
            };
            assert_eq!(ours, theirs, "seed {seed}, step {step}");
            let shown = |cpus: &Cpus| {
                let mut mask = Mask::none(count as u16);
                cpus.iter().for_each(|&cpu| mask.set(cpu));
                mask
            };
            let smts = if naive.smt() { shown(&naive.smts) } else { shown(&naive.idle) };
            let masks = [shown(&naive.idle), smts];
            assert_eq!(idle.masks().map(Clone::clone), masks, "seed {seed}, step {step}");
        }
    }
}
