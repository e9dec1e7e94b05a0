//! Sets of CPUs, as the kernel's `cpumask`.

use schedsim::{CpuId, CpuSet};

/// A set of CPUs in 64-bit words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// No CPU, of `cpus`.
    pub fn none(cpus: u16) -> Mask {
        Mask(vec![0; usize::from(cpus).div_ceil(64)])
    }

    /// All `cpus` CPUs.
    pub fn all(cpus: u16) -> Mask {
        let mut mask = Mask::none(cpus);
        (0..cpus).for_each(|cpu| mask.set(cpu));
        mask
    }

    /// The CPUs of `set`.
    pub fn of(cpus: u16, set: &CpuSet) -> Mask {
        let mut mask = Mask::none(cpus);
        set.iter().for_each(|cpu| mask.set(cpu.0));
        mask
    }

    /// The set that a program has in its memory; CPUs that do not exist are left out.
    pub fn of_bytes(cpus: u16, bytes: &[u8]) -> Mask {
        let mut mask = Mask::none(cpus);
        let has = |cpu: u16| {
            bytes.get(usize::from(cpu / 8)).is_some_and(|byte| byte >> (cpu % 8) & 1 == 1)
        };
        (0..cpus).filter(|&cpu| has(cpu)).for_each(|cpu| mask.set(cpu));
        mask
    }

    /// Its words, for the memory of a program.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn set(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] |= 1 << (cpu % 64);
    }

    pub fn clear(&mut self, cpu: u16) {
        self.0[usize::from(cpu / 64)] &= !(1 << (cpu % 64));
    }

    pub fn has(&self, cpu: u16) -> bool {
        self.0.get(usize::from(cpu / 64)).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn weight(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The CPUs that are in both.
    pub fn and(&self, other: &Mask) -> Mask {
        Mask(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    /// The CPUs that are in either.
    pub fn or(&self, other: &Mask) -> Mask {
        Mask(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    /// The CPUs that are in just one.
    pub fn xor(&self, other: &Mask) -> Mask {
        Mask(self.0.iter().zip(&other.0).map(|(a, b)| a ^ b).collect())
    }

    pub fn intersects(&self, other: &Mask) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether all its CPUs are in `other`.
    pub fn is_within(&self, other: &Mask) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// The first CPU from `start` on, around the end.
    pub fn next(&self, start: u16) -> Option<u16> {
        let bits = (self.0.len() * 64) as u16;
        let (first, last) = ((start..bits), (0..start.min(bits)));
        first.chain(last).find(|&cpu| self.has(cpu))
    }

    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..(self.0.len() * 64) as u16).filter(|&cpu| self.has(cpu)).map(CpuId)
    }
}
