//! The machine: its CPUs, and what scheduling costs on them.

mod queue_cost;
mod topology;

use crate::{CpuId, Nanos, Random, Time};
pub use queue_cost::QueueCost;
use std::collections::{BTreeMap, BTreeSet};
pub use topology::{Distance, MigrationCosts, Place, Topology};

/// N CPUs and the costs of moving work between tasks and between CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    /// How many CPUs.
    pub cpus: u16,
    /// Spent by a CPU each time it goes from one task to another; cannot be preempted and is not part of the slice.
    pub switch_cost: Nanos,
    /// Added to a task's CPU burst when it runs on another CPU than the time before (Curran & Stumm's TMC); part of the slice.
    pub migration_cost: Nanos,
    /// The part of `switch_cost` of which the policy knows nothing, so that it charges nobody for it: what a policy takes that decides in a program of its own, between the tasks.
    /// If there is any, a task that stops and is chosen again is switched to as others are: the program ran.
    pub unseen: Nanos,
    /// From the wakeup of an idle CPU by another one until it switches to the woken task.
    pub idle_exit: Nanos,
    /// From a waking until a CPU that is awake switches to the woken task: it was interrupted while idle, or shall preempt the task that it runs, which
    /// goes on until then. What is left of the interrupt, and the way through the scheduler.
    pub wake_cost: Nanos,
    /// For how long a waking, or a tick that the policy is told of, keeps its CPU from what it runs and goes on with: what a policy takes that decides in a program of its own, to which the CPU
    /// switches and back; nothing more while it keeps the CPU already, or the CPU goes from one task to the next. Part of the slice.
    pub interruption: Nanos,
    /// For how long the interrupt of a timer that wakes a task keeps its CPU from what it runs and goes on with. Part of the slice.
    pub timer_cost: Nanos,
    /// What it costs that the CPUs share memory.
    pub sharing: Sharing,
    /// What each dispatch costs for the insert and the pop that it took; by default nothing. It is paid by the CPU that dispatches, like a switch and also where the
    /// task goes on that ran; the number of tasks is that in the queue from which this CPU is served.
    pub queue_cost: Option<QueueCost>,
    /// For so long a dispatch holds the lock of the queue that its task comes from, for each entry that it examines there; who wants the same lock spins.
    /// By default nothing, as Curran & Stumm assume; what Ni & Wu say limits a central queue. Insertions hold no lock.
    pub lock_hold: Nanos,
    /// How CPUs lie to one another, of as many as there are. By default all are alike and share one cache.
    pub topology: Option<Topology>,
    /// When its ticks are; by default it has none but those that a policy asks for, and a slice ends when it is used up.
    pub ticks: Option<Ticks>,
}

/// The ticks of a kernel. Only then it looks whether a slice is over: one of 4 ms that begins between two ticks 4 ms apart ends with the second. A policy that needs ticks is told of the last of each so many.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticks {
    /// From one tick to the next.
    pub period: Nanos,
    /// When the first one is.
    pub first: Time,
    /// How late a tick may be, on each CPU and each time by another part of this: which of two CPUs comes to it first is left to chance. Less than the period.
    pub lateness: Nanos,
    /// When else a CPU looks whether a slice is over, as somebody comes whom no policy schedules: after a task of its own, say, who is gone at once.
    pub looks: BTreeSet<(CpuId, Time)>,
    /// For how long a tick keeps its CPU from what it runs.
    pub cost: Nanos,
    /// The same of those that cost more or less, by their number from 0.
    pub others: BTreeMap<u64, Nanos>,
}

impl Ticks {
    /// A tick each `period` from `first` on, on time and for nothing.
    pub fn new(period: Nanos, first: Time) -> Ticks {
        Ticks { period, first, lateness: Nanos::ZERO, looks: BTreeSet::new(), cost: Nanos::ZERO, others: BTreeMap::new() }
    }

    /// Whether any costs anything.
    pub fn have_costs(&self) -> bool {
        self.cost > Nanos::ZERO || !self.others.is_empty()
    }

    /// What the tick costs that was last at `time`.
    pub(crate) fn cost_at(&self, time: Time) -> Nanos {
        self.cost_of(time.0.saturating_sub(self.first.0) / self.period.0)
    }

    /// When `cpu` finds that a slice was over at `due`.
    fn look(&self, cpu: CpuId, due: Time) -> Time {
        let tick = self.number(cpu, due.0.saturating_sub(self.first.0).div_ceil(self.period.0));
        let (_, other) = self.looks.range((cpu, due)..(cpu, tick)).next().copied().unwrap_or((cpu, tick));
        other
    }

    /// The most that one costs.
    pub fn most(&self) -> Nanos {
        self.others.values().copied().max().unwrap_or_default().max(self.cost)
    }

    /// When a tick is, by its number from 0, unless it is late.
    pub fn time_of(&self, tick: u64) -> Time {
        Time(tick.saturating_mul(self.period.0).saturating_add(self.first.0))
    }

    /// What a tick costs, by its number from 0.
    pub fn cost_of(&self, tick: u64) -> Nanos {
        self.others.get(&tick).copied().unwrap_or(self.cost)
    }

    /// How many ticks come no later than `time` where none is late.
    pub fn until(&self, time: Time) -> u64 {
        if time < self.first { 0 } else { (time - self.first).0 / self.period.0 + 1 }
    }

    /// The first tick of `cpu` behind `time` that ends a round of `every`.
    pub(crate) fn after(&self, cpu: CpuId, time: Time, every: u64) -> Time {
        let passed = time.0.saturating_sub(self.first.0) / self.period.0;
        let next = passed - passed % every + every - 1;
        let tick = self.number(cpu, next);
        if tick > time { tick } else { self.number(cpu, next + every) }
    }

    /// Whether what happens at `time` is a tick that ends a round of `every`.
    pub(crate) fn is_one_of(&self, time: Time, every: u64) -> bool {
        (time.0.saturating_sub(self.first.0) / self.period.0 + 1).is_multiple_of(every)
    }

    /// How many of these ticks make one of `period`, the nearest number; at least one.
    pub(crate) fn within(&self, period: Nanos) -> u64 {
        ((period.0 + self.period.0 / 2) / self.period.0).max(1)
    }

    fn number(&self, cpu: CpuId, tick: u64) -> Time {
        let late = match self.lateness {
            Nanos::ZERO => 0,
            Nanos(most) => Random::new((tick << 16) | u64::from(cpu.0)).below(most + 1),
        };
        Time(self.time_of(tick).0.saturating_add(late))
    }
}

/// What migrations cost beyond `migration_cost`, by source (Curran & Stumm 1990, §2). Nothing by default.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sharing {
    /// The share by which CPU bursts lengthen because the bus is shared with tasks that migrate (their SMC; 0.05 in the Baseline System).
    pub slowdown: f64,
    /// Which bursts that is.
    pub slows: Slows,
    /// If set, a task that comes back to its CPU has to fetch again what it has lost: `migration_cost` × (1 − 2^(−time away / half-life)).
    pub refill_half_life: Option<Nanos>,
    /// By how much each migration delays what the other CPUs run (invalidations and updates on the bus).
    pub bus: Nanos,
    /// The share by which a burst lengthens that begins on another CPU than the task's first, near which its memory lies.
    pub remote: f64,
}

/// Which bursts pay for migrations being possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slows {
    /// All bursts under a policy that may migrate tasks, whether or not it does: as in the paper.
    #[default]
    EveryBurst,
    /// What is left of a burst when its task migrates.
    MigratedBursts,
}

impl Machine {
    /// `cpus` CPUs on which scheduling costs nothing.
    pub fn ideal(cpus: u16) -> Machine {
        Machine {
            cpus,
            switch_cost: Nanos::ZERO,
            unseen: Nanos::ZERO,
            migration_cost: Nanos::ZERO,
            idle_exit: Nanos::ZERO,
            wake_cost: Nanos::ZERO,
            interruption: Nanos::ZERO,
            timer_cost: Nanos::ZERO,
            sharing: Sharing::default(),
            queue_cost: None,
            lock_hold: Nanos::ZERO,
            topology: None,
            ticks: None,
        }
    }

    /// How far `to` is from `from`: in the same cluster, unless there is a topology that says otherwise.
    pub fn distance(&self, from: CpuId, to: CpuId) -> Distance {
        match &self.topology {
            Some(topology) => topology.distance(from, to),
            None if from == to => Distance::Itself,
            None => Distance::Cluster,
        }
    }

    /// What a migration adds to the burst of the task that comes from `from` to `to`.
    #[inline]
    pub fn migration_cost(&self, from: CpuId, to: CpuId) -> Nanos {
        self.topology.as_ref().map_or(self.migration_cost, |topology| topology.migration_cost(from, to, self.migration_cost))
    }

    /// When a slice ends that is used up on `cpu` at `due`.
    #[inline]
    pub fn slice_end(&self, cpu: CpuId, due: Time) -> Time {
        self.ticks.as_ref().map_or(due, |ticks| ticks.look(cpu, due))
    }

    /// All CPUs, in order.
    pub fn all(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus).map(CpuId)
    }
}

/// A set of CPUs with a summary word per 64 of them, so that the lowest is found without a scan (up to 4,096 CPUs).
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

    /// The members that are in `other` too, in order.
    pub fn intersection<'a>(&'a self, other: &'a CpuSet) -> impl Iterator<Item = CpuId> + 'a {
        bits(self.summary & other.summary).flat_map(|word| members(word, self.words[word] & other.words[word]))
    }

    /// How many members are in `other` too.
    pub fn overlap(&self, other: &CpuSet) -> usize {
        bits(self.summary & other.summary).map(|word| (self.words[word] & other.words[word]).count_ones() as usize).sum()
    }
}

/// The places of the ones in `word`, in order.
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

/// The CPUs that `word`, the one with this index, stands for.
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
        fn sets_agree_with_lists(a in members_below(200), b in members_below(4096), cpu in 0u16..4096) {
            let (one, other) = (set_of(&a), set_of(&b));
            let both: Vec<u16> = a.intersection(&b).copied().collect();
            prop_assert_eq!(one.intersection(&other).map(|cpu| cpu.0).collect::<Vec<_>>(), both.clone());
            prop_assert_eq!((one.overlap(&other), other.overlap(&one), other.len()), (both.len(), both.len(), b.len()));
            prop_assert_eq!(other.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), b.iter().copied().collect::<Vec<_>>());
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
