//! How long a CPU takes from a waking to the choice of its next task, as distributions.

use super::Spread;
use crate::Nanos;

/// The time from a waking until its CPU chooses again, by what that CPU does and who wakes.
/// Where a spread is empty, [`Machine::idle_exit`](super::Machine::idle_exit) and
/// [`Machine::wake_cost`](super::Machine::wake_cost) hold. Nothing by default.
///
/// It is no CPU time of a task: a busy CPU works on for its task until then. What is drawn depends
/// on `seed` alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WakeLatency {
    /// An idle CPU that an interrupt of its own wakes.
    pub idle_here: ByIdleTime,
    /// An idle CPU that another CPU wakes.
    pub idle_away: ByIdleTime,
    /// A busy CPU that is to stop its task, which woke the other or was interrupted.
    pub busy_here: Spread,
    /// A busy CPU that another CPU interrupts.
    pub busy_away: Spread,
    /// Seeds the draws.
    pub seed: u64,
}

/// A distribution for each class of the time that a CPU has been idle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByIdleTime(pub [Spread; IdleTime::COUNT]);

/// A class of the time that a CPU has been idle. One that has hardly begun to idle looks once more
/// for work. In the first microseconds it gets ready to sleep. A guest polls for 200 us before it
/// halts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct IdleTime(usize);

impl IdleTime {
    /// Where the classes end; the last one has no end.
    const ENDS: [Nanos; 6] =
        [Nanos(500), Nanos(1_000), Nanos(3_000), Nanos(5_000), Nanos(10_000), Nanos(200_000)];
    /// The number of classes.
    pub const COUNT: usize = IdleTime::ENDS.len() + 1;

    /// The class of a time.
    pub fn of(time: Nanos) -> IdleTime {
        IdleTime(IdleTime::ENDS.iter().take_while(|&&end| end <= time).count())
    }

    /// The number of the class, from the shortest time on.
    pub fn index(self) -> usize {
        self.0
    }
}

impl ByIdleTime {
    /// The same distribution however long the CPU was idle.
    pub fn always(spread: &Spread) -> ByIdleTime {
        ByIdleTime(std::array::from_fn(|_| spread.clone()))
    }

    /// The distribution of a class.
    pub fn of(&self, idle: IdleTime) -> &Spread {
        &self.0[idle.index()]
    }
}

impl WakeLatency {
    /// Whether no distribution is known.
    pub fn is_unknown(&self) -> bool {
        self.spreads().all(|spread| spread.values().is_empty())
    }

    /// The longest time.
    pub fn most(&self) -> Nanos {
        self.spreads().flat_map(Spread::values).copied().max().unwrap_or(Nanos::ZERO)
    }

    /// These, but none where a number holds: of leaving idle, or of waking a CPU that is awake.
    #[must_use]
    pub fn beside(mut self, idle_exit: Option<Nanos>, wake_cost: Option<Nanos>) -> WakeLatency {
        if idle_exit.is_some() {
            self.idle_away = ByIdleTime::default();
        }
        if wake_cost.is_some() {
            self.idle_here = ByIdleTime::default();
            (self.busy_here, self.busy_away) = (Spread::default(), Spread::default());
        }
        self
    }

    /// These, with each time changed by `change`.
    #[must_use]
    pub fn each(mut self, change: impl Fn(Nanos) -> Nanos) -> WakeLatency {
        self.spreads_mut().for_each(|spread| spread.each(&change));
        self
    }

    /// All distributions, in a fixed order.
    pub fn spreads(&self) -> impl Iterator<Item = &Spread> {
        let WakeLatency { idle_here, idle_away, busy_here, busy_away, seed: _ } = self;
        idle_here.0.iter().chain(&idle_away.0).chain([busy_here, busy_away])
    }

    /// The same, to change them.
    pub(crate) fn spreads_mut(&mut self) -> impl Iterator<Item = &mut Spread> {
        let WakeLatency { idle_here, idle_away, busy_here, busy_away, seed: _ } = self;
        idle_here.0.iter_mut().chain(&mut idle_away.0).chain([busy_here, busy_away])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_class() {
        let of = |time| IdleTime::of(Nanos(time)).index();
        assert_eq!([of(0), of(499), of(500), of(4_999), of(5_000)], [0, 0, 1, 3, 4]);
        assert_eq!([of(199_999), of(200_000), of(u64::MAX)], [5, 6, IdleTime::COUNT - 1]);
    }

    #[test]
    fn the_longest_of_all_is_the_most() {
        let mut latency = WakeLatency::default();
        assert!(latency.is_unknown() && latency.most() == Nanos::ZERO);
        latency.idle_away.0[2] = Spread::always(Nanos(70));
        latency.busy_here = Spread::always(Nanos(9));
        assert!(!latency.is_unknown() && latency.most() == Nanos(70));
    }
}
