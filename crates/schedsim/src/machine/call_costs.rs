//! The kernel's work in tasks' calls: what blocking and waking take.

use crate::Nanos;

/// The cost of blocking, of waking, of exiting and of being preempted, each a distribution. Nothing
/// by default.
///
/// They are CPU time of the task that does it or is preempted. What is drawn depends on `seed`
/// alone, not on the policy's random numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallCosts {
    /// From when a task finds that it has to wait until it leaves its CPU. A task that is woken in
    /// between does not leave.
    pub block: Spread,
    /// Waking a task that is placed on the waker's own CPU.
    pub wake_here: Spread,
    /// Waking a task that is placed on another CPU.
    pub wake_away: Spread,
    /// The same if that CPU idles, so that it must be interrupted; if it is empty, `wake_away`
    /// holds.
    pub wake_idle: Spread,
    /// Exiting: from when those who wait for a task's end are woken until it leaves its CPU.
    pub exit: Spread,
    /// Being preempted: from when the task should leave its CPU until it does.
    pub preempt: Spread,
    /// Seeds the draws.
    pub seed: u64,
}

/// A distribution of durations: values that are equally likely; always zero if there are none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread(Vec<Nanos>);

impl CallCosts {
    /// Whether all are free.
    pub fn are_free(&self) -> bool {
        let CallCosts { block, wake_here, wake_away, wake_idle, exit, preempt, seed: _ } = self;
        [block, wake_here, wake_away, wake_idle, exit, preempt]
            .iter()
            .all(|spread| spread.is_zero())
    }

    /// Of waking a task that is placed on another CPU.
    pub fn wake_other(&self, idles: bool) -> &Spread {
        if idles && !self.wake_idle.0.is_empty() { &self.wake_idle } else { &self.wake_away }
    }
}

impl Spread {
    /// These values, each as likely as another.
    pub fn of(values: Vec<Nanos>) -> Spread {
        Spread(values)
    }

    /// One value.
    pub fn always(value: Nanos) -> Spread {
        Spread(if value == Nanos::ZERO { Vec::new() } else { vec![value] })
    }

    /// The values.
    pub fn values(&self) -> &[Nanos] {
        &self.0
    }

    /// Whether it is always zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == Nanos::ZERO)
    }

    /// The mean.
    pub fn mean(&self) -> Nanos {
        let sum: u128 = self.0.iter().map(|value| u128::from(value.0)).sum();
        Nanos((sum / (self.0.len() as u128).max(1)) as u64)
    }

    /// The value that 64 random bits choose.
    pub fn draw(&self, bits: u64) -> Nanos {
        let place = (u128::from(bits) * self.0.len() as u128) >> 64;
        self.0.get(place as usize).copied().unwrap_or(Nanos::ZERO)
    }

    /// Each value changed by `change`.
    pub(crate) fn each(&mut self, change: impl Fn(Nanos) -> Nanos) {
        self.0.iter_mut().for_each(|value| *value = change(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_as_likely_as_another() {
        let spread = Spread::of([1, 2, 3, 10].map(Nanos).to_vec());
        assert_eq!(spread.mean(), Nanos(4));
        assert_eq!(spread.draw(0), Nanos(1));
        assert_eq!(spread.draw(1 << 62), Nanos(2));
        assert_eq!(spread.draw(u64::MAX), Nanos(10));
    }

    #[test]
    fn nothing_is_always_zero() {
        assert!(Spread::default().is_zero() && Spread::always(Nanos::ZERO).is_zero());
        assert_eq!((Spread::default().draw(7), Spread::default().mean()), (Nanos(0), Nanos(0)));
        assert!(CallCosts { seed: 3, ..CallCosts::default() }.are_free());
    }
}
