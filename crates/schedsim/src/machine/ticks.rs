//! The times and costs of a kernel's ticks.

use crate::{CpuId, Nanos, Random, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The ticks of a kernel, numbered from 0. The kernel checks only at ticks whether a slice is over.
/// One of 4 ms that begins between two ticks 4 ms apart ends with the second. A policy with a
/// longer tick receives the last tick of each of its periods.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticks {
    /// The distance between ticks; above zero.
    pub period: Nanos,
    /// When tick 0 comes.
    pub first: Time,
    /// The maximum lateness of a tick. Each tick of each CPU is late by a random part of this, so
    /// that the order of two CPUs is random. Less than the period.
    pub lateness: Nanos,
    /// Other times at which a CPU checks whether a slice is over, because a task of another class
    /// ran.
    pub looks: BTreeSet<(CpuId, Time)>,
    /// For how long a tick interrupts the task of its CPU.
    pub cost: Nanos,
    /// The costs of ticks that differ from `cost`, by number.
    pub others: BTreeMap<u64, Nanos>,
}

impl Ticks {
    /// A tick each `period` from `first` on, punctual and free.
    ///
    /// # Panics
    /// If the period is zero.
    pub fn new(period: Nanos, first: Time) -> Ticks {
        assert!(period > Nanos::ZERO, "ticks come some time apart");
        Ticks {
            period,
            first,
            lateness: Nanos::ZERO,
            looks: BTreeSet::new(),
            cost: Nanos::ZERO,
            others: BTreeMap::new(),
        }
    }

    /// Checks that ticks come one after another.
    ///
    /// # Panics
    /// If the period is zero, or a tick may be late by a period or more.
    pub(crate) fn expect_in_order(&self) {
        let Ticks { period, lateness, .. } = self;
        assert!(
            lateness < period,
            "a tick that comes every {period} is late by less than that, not by {lateness}"
        );
    }

    /// When tick `number` comes if it is not late.
    pub fn time_of(&self, number: u64) -> Time {
        Time(number.saturating_mul(self.period.0).saturating_add(self.first.0))
    }

    /// The number of ticks up to `time` if none is late.
    pub fn until(&self, time: Time) -> u64 {
        if time < self.first { 0 } else { self.last_at(time) + 1 }
    }

    /// What tick `number` costs.
    pub fn cost_of(&self, number: u64) -> Nanos {
        self.others.get(&number).copied().unwrap_or(self.cost)
    }

    /// What the last tick at `time` costs.
    pub(crate) fn cost_at(&self, time: Time) -> Nanos {
        self.cost_of(self.last_at(time))
    }

    /// Whether any tick costs time.
    pub fn have_costs(&self) -> bool {
        self.cost > Nanos::ZERO || !self.others.is_empty()
    }

    /// The maximum cost of a tick.
    pub fn most(&self) -> Nanos {
        self.others.values().copied().max().unwrap_or_default().max(self.cost)
    }

    /// The number of ticks per `period`, rounded to the nearest, at least one.
    pub(crate) fn within(&self, period: Nanos) -> u64 {
        ((period.0 + self.period.0 / 2) / self.period.0).max(1)
    }

    /// The first tick of `cpu` after `time` that ends a round of `every` ticks.
    pub(crate) fn after(&self, cpu: CpuId, time: Time, every: u64) -> Time {
        let passed = self.last_at(time);
        let next = passed - passed % every + every - 1;
        let tick = self.on(cpu, next);
        if tick > time { tick } else { self.on(cpu, next + every) }
    }

    /// Whether the last tick at `time` ends a round of `every` ticks.
    pub(crate) fn is_one_of(&self, time: Time, every: u64) -> bool {
        (self.last_at(time) + 1).is_multiple_of(every)
    }

    /// When `cpu` finds that a slice was over at `due`: at its next tick, or at an earlier check.
    pub(super) fn slice_end(&self, cpu: CpuId, due: Time) -> Time {
        let tick = self.on(cpu, due.0.saturating_sub(self.first.0).div_ceil(self.period.0));
        self.looks.range((cpu, due)..(cpu, tick)).next().map_or(tick, |&(_, look)| look)
    }

    /// The number of the last tick up to `time`; 0 also before that.
    fn last_at(&self, time: Time) -> u64 {
        time.0.saturating_sub(self.first.0) / self.period.0
    }

    /// When tick `number` comes on `cpu`.
    fn on(&self, cpu: CpuId, number: u64) -> Time {
        let late = match self.lateness {
            Nanos::ZERO => 0,
            Nanos(most) => Random::new((number << 16) | u64::from(cpu.0)).below(most + 1),
        };
        Time(self.time_of(number).0.saturating_add(late))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(1);

    fn ticks() -> Ticks {
        Ticks::new(Nanos(100), Time(30))
    }

    #[test]
    fn a_slice_ends_with_a_tick_or_where_the_cpu_looks_before() {
        let looking =
            Ticks { looks: BTreeSet::from([(CPU, Time(150)), (CpuId(0), Time(140))]), ..ticks() };
        let ends = |due| [ticks().slice_end(CPU, Time(due)).0, looking.slice_end(CPU, Time(due)).0];
        assert_eq!(
            [10, 30, 31, 150, 151].map(ends),
            [[30, 30], [30, 30], [130, 130], [230, 150], [230, 230]]
        );
    }

    #[test]
    fn rounds_are_counted_from_the_first_tick() {
        let of = |time| {
            (
                ticks().until(Time(time)),
                ticks().after(CPU, Time(time), 2).0,
                ticks().is_one_of(Time(time), 2),
            )
        };
        assert_eq!(
            [0, 30, 130, 229, 230].map(of),
            [(0, 130, false), (1, 130, false), (2, 330, true), (2, 330, true), (3, 330, false)]
        );
        assert_eq!([1, 149, 150, 400].map(|period| ticks().within(Nanos(period))), [1, 1, 2, 4]);
    }

    #[test]
    fn a_late_tick_is_less_than_a_period_late_and_the_same_each_time() {
        let late = Ticks { lateness: Nanos(99), ..ticks() };
        let times: Vec<u64> = (0..50).map(|number| late.on(CPU, number).0).collect();
        assert!(
            times
                .iter()
                .zip(0..)
                .all(|(&time, number)| (30 + 100 * number..=129 + 100 * number).contains(&time)),
            "{times:?}"
        );
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] != 100), "{times:?}");
        assert_eq!(times, (0..50).map(|number| late.on(CPU, number).0).collect::<Vec<_>>());
        late.expect_in_order();
    }

    #[test]
    #[should_panic(
        expected = "a tick that comes every 100ns is late by less than that, not by 100ns"
    )]
    fn a_tick_that_is_a_period_late_is_refused() {
        Ticks { lateness: Nanos(100), ..ticks() }.expect_in_order();
    }
}
