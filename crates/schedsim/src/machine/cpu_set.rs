//! A set of CPUs that finds its lowest member without a scan.

use crate::CpuId;

/// A set of CPUs with a summary word per 64 of them, so that the lowest is found without a scan (up
/// to 4,096 CPUs).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuSet {
    /// Bit `i` says that `words[i]` is not zero.
    summary: u64,
    words: Vec<u64>,
}

impl CpuSet {
    /// An empty set over `cpus` CPUs.
    pub fn empty(cpus: u16) -> CpuSet {
        assert!(cpus <= 4096, "a CpuSet holds at most 4096 CPUs");
        CpuSet { summary: 0, words: vec![0; usize::from(cpus).div_ceil(64)] }
    }

    /// Adds `cpu`.
    #[inline]
    pub fn insert(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.words[word] |= 1 << (cpu.index() % 64);
        self.summary |= 1 << word;
    }

    /// Takes `cpu` out.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        self.words[word] &= !(1 << (cpu.index() % 64));
        if self.words[word] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|word| word >> (cpu.index() % 64) & 1 == 1)
    }

    /// The lowest member.
    #[inline]
    pub fn first(&self) -> Option<CpuId> {
        (self.summary != 0).then(|| {
            let word = self.summary.trailing_zeros();
            CpuId((word * 64 + self.words[word as usize].trailing_zeros()) as u16)
        })
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.summary == 0
    }

    /// How many members.
    pub fn len(&self) -> usize {
        self.overlap(self)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        bits(self.summary).flat_map(|word| members(word, self.words[word]))
    }

    /// The members above `cpu`, in order.
    pub fn above(&self, cpu: CpuId) -> impl Iterator<Item = CpuId> + '_ {
        let (word, bit) = (cpu.index() / 64, cpu.index() % 64);
        let near = self.words.get(word).map_or(0, |members| members & u64::MAX << bit << 1);
        let far = bits(self.summary & u64::MAX << word << 1);
        members(word, near).chain(far.flat_map(|word| members(word, self.words[word])))
    }

    /// The members that are also in `other`, in order.
    pub fn intersection<'a>(&'a self, other: &'a CpuSet) -> impl Iterator<Item = CpuId> + 'a {
        bits(self.summary & other.summary)
            .flat_map(|word| members(word, self.words[word] & other.words[word]))
    }

    /// The number of members that are also in `other`.
    pub fn overlap(&self, other: &CpuSet) -> usize {
        bits(self.summary & other.summary)
            .map(|word| (self.words[word] & other.words[word]).count_ones() as usize)
            .sum()
    }
}

/// The indices of the one bits in `word`, in order.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
}

/// The CPUs of `word`, the word at `index`.
#[inline]
fn members(index: usize, word: u64) -> impl Iterator<Item = CpuId> {
    bits(word).map(move |bit| CpuId((index * 64 + bit) as u16))
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuSet {
        let cpus: Vec<CpuId> = cpus.into_iter().collect();
        let mut set = CpuSet::empty(cpus.iter().map(|cpu| cpu.0 + 1).max().unwrap_or(0));
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_finds_its_lowest_member_across_words() {
        let mut set = CpuSet::empty(1024);
        assert_eq!(set.first(), None);
        for cpu in [1000, 64, 130] {
            set.insert(CpuId(cpu));
        }
        assert_eq!(set.first(), Some(CpuId(64)));
        assert_eq!(set.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), [64, 130, 1000]);
        set.remove(CpuId(64));
        assert_eq!((set.first(), set.len(), set.contains(CpuId(64))), (Some(CpuId(130)), 2, false));
    }

    proptest! {
        #[test]
        fn sets_agree_with_lists(
            a in members_below(200),
            b in members_below(4096),
            cpu in 0u16..4096,
        ) {
            let (one, other) = (set_of(&a), set_of(&b));
            let both: Vec<u16> = a.intersection(&b).copied().collect();
            prop_assert_eq!(
                one.intersection(&other).map(|cpu| cpu.0).collect::<Vec<_>>(),
                both.clone()
            );
            prop_assert_eq!(
                (one.overlap(&other), other.overlap(&one), other.len()),
                (both.len(), both.len(), b.len())
            );
            prop_assert_eq!(
                other.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
                b.iter().copied().collect::<Vec<_>>()
            );
            let above: Vec<u16> = b.iter().copied().filter(|&member| member > cpu).collect();
            prop_assert_eq!(other.above(CpuId(cpu)).map(|cpu| cpu.0).collect::<Vec<_>>(), above);
        }
    }

    fn members_below(end: u16) -> impl Strategy<Value = BTreeSet<u16>> {
        proptest::collection::btree_set(0..end, 0..60)
    }

    fn set_of(members: &BTreeSet<u16>) -> CpuSet {
        members.iter().map(|&cpu| CpuId(cpu)).collect()
    }
}
