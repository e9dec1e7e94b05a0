//! What the runs of an ensemble differ by: what a workload leaves open, and what must not decide
//! what it comes to.

use serde::{Deserialize, Serialize};

/// The differences of one run. Zero changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nudge {
    /// How much later the tasks begin, in nanoseconds: so ticks fall elsewhere.
    pub start_ns: u64,
    /// The seed of the order in which the tasks are made; 0: as described.
    pub order: u64,
    /// The seed of how much later each task's timers are due.
    pub timers: u64,
    /// How much later they are at most, in nanoseconds.
    pub timers_ns: u64,
    /// How many frames deeper the stack of each task begins.
    pub stack: u32,
    /// How many pages of the address space are taken before the job maps anything.
    pub heap: u32,
    /// How many bytes behind the begin of a page the tasks' shared objects lie.
    pub data: u32,
    /// How many instructions run before the tasks begin: so spans of CPUs in lockstep end
    /// elsewhere.
    pub span: u32,
}

impl Nudge {
    /// Whether it changes nothing.
    pub fn is_none(&self) -> bool {
        *self == Nudge::default()
    }

    /// How much later the timers of instance `number` are due.
    pub fn timer_ns(&self, number: usize) -> u64 {
        match self.timers_ns {
            0 => 0,
            most => mixed(self.timers ^ mixed(number as u64)) % most,
        }
    }

    /// Puts `tasks` into the order in which they are made.
    pub fn shuffle<T>(&self, tasks: &mut [T]) {
        if self.order == 0 {
            return;
        }
        let mut state = self.order;
        for end in (1..tasks.len()).rev() {
            state = mixed(state);
            tasks.swap(end, (state % (end as u64 + 1)) as usize);
        }
    }
}

/// The next number of a SplitMix64 sequence.
fn mixed(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nudge_changes_nothing_and_a_seed_gives_the_same_order_again() {
        let order = |order| {
            let mut tasks = [0, 1, 2, 3, 4, 5, 6, 7];
            Nudge { order, ..Nudge::default() }.shuffle(&mut tasks);
            tasks
        };
        assert_eq!(order(0), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(order(7), order(7));
        assert!((1..20).map(order).collect::<std::collections::BTreeSet<_>>().len() > 15);
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, order(0), "each task is made once");
    }

    #[test]
    fn each_tasks_timers_are_late_by_an_amount_of_their_own_below_the_limit() {
        let nudge = Nudge { timers: 5, timers_ns: 50_000, ..Nudge::default() };
        let late: Vec<u64> = (0..100).map(|number| nudge.timer_ns(number)).collect();
        assert!(late.iter().all(|late| *late < 50_000));
        assert!(late.iter().any(|late| *late < 10_000) && late.iter().any(|late| *late > 40_000));
        assert_eq!(Nudge::default().timer_ns(3), 0);
        assert_ne!(late[0], Nudge { timers: 6, ..nudge }.timer_ns(0));
    }
}
