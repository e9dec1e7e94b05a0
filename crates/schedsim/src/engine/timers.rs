//! Timers: starts of tasks and ends of sleeps.

use super::slots::{FEW, Slots, TASK_BITS};
use crate::{TaskId, Time};

/// Timers, earliest first, ties in order of task id. A task has at most one timer.
///
/// Few timers are in a sorted list, many in slots.
pub struct Timers {
    earliest: Time,
    /// Whether `many` holds all timers; otherwise `few` does.
    are_many: bool,
    few: Few,
    many: Slots,
}

impl Timers {
    pub fn new() -> Timers {
        Timers { earliest: Time::NEVER, are_many: false, few: Few::new(), many: Slots::new() }
    }

    #[inline(always)]
    pub fn earliest(&self) -> Time {
        self.earliest
    }

    #[inline(always)]
    pub fn insert(&mut self, time: Time, task: TaskId) {
        self.earliest = self.earliest.min(time);
        if self.are_many {
            self.many.insert(number(time, task));
        } else if self.few.len < FEW && is_short(time, task) {
            self.few.insert(time, task);
        } else {
            self.spread(number(time, task));
        }
    }

    /// Removes the task with the earliest timer; there must be one.
    #[inline(always)]
    pub fn pop(&mut self) -> TaskId {
        if !self.are_many {
            let task = self.few.pop();
            self.earliest = self.few.earliest();
            return task;
        }
        let task = TaskId(self.many.pop() as u32);
        self.earliest = self.many.first().map_or(Time::NEVER, time_of);
        if self.many.are_few() {
            self.gather();
        }
        task
    }

    /// The tasks that come next, where there are many and this has not returned them before.
    #[inline(always)]
    pub fn came_near(&mut self) -> Option<impl Iterator<Item = TaskId>> {
        (self.are_many && self.many.came_near())
            .then(|| self.many.near().map(|timer| TaskId(timer as u32)))
    }

    /// Moves all timers to the slots; `timer` does not fit the list any more.
    #[cold]
    fn spread(&mut self, timer: u128) {
        while self.few.len > 0 {
            let time = self.few.earliest();
            self.many.insert(number(time, self.few.pop()));
        }
        self.many.insert(timer);
        self.are_many = true;
    }

    /// Moves the timers back to the list, if few are left and they fit it.
    #[cold]
    fn gather(&mut self) {
        if self.many.near().all(|timer| is_short(time_of(timer), TaskId(timer as u32))) {
            self.many
                .drain_near()
                .for_each(|timer| self.few.insert(time_of(timer), TaskId(timer as u32)));
            self.are_many = false;
        }
    }
}

#[inline(always)]
fn number(time: Time, task: TaskId) -> u128 {
    u128::from(time.0) << TASK_BITS | u128::from(task.0)
}

#[inline(always)]
fn time_of(number: u128) -> Time {
    Time((number >> TASK_BITS) as u64)
}

/// Whether the list can hold the timer: its time and its task fit into 64 bits.
#[inline(always)]
fn is_short(time: Time, task: TaskId) -> bool {
    time.0 < SHORT_TIME && task.0 < SHORT_TASK
}

/// At most `FEW` timers, sorted, the earliest at the end, where it is removed. Each is one number,
/// its time in front of its task.
///
/// The place of an insertion cannot be predicted. Neither the search nor the move has a branch that
/// depends on it.
struct Few {
    /// `len` timers; the rest is scratch space for an insertion.
    timers: [u64; 2 * FEW],
    len: usize,
}

const SHORT_TASK_BITS: u32 = 12;
const SHORT_TASK: u32 = 1 << SHORT_TASK_BITS;
/// 52 days.
const SHORT_TIME: u64 = 1 << (u64::BITS - SHORT_TASK_BITS);

impl Few {
    fn new() -> Few {
        Few { timers: [0; 2 * FEW], len: 0 }
    }

    #[inline(always)]
    fn earliest(&self) -> Time {
        if self.len == 0 { Time::NEVER } else { Time(self.timers[self.len - 1] >> SHORT_TASK_BITS) }
    }

    #[inline(always)]
    fn insert(&mut self, time: Time, task: TaskId) {
        let timer = time.0 << SHORT_TASK_BITS | u64::from(task.0);
        let place = self.timers[..self.len].partition_point(|&other| other > timer);
        if place < self.len {
            // Always the same number, so that there is no branch on `len`.
            self.timers.copy_within(place..place + FEW - 1, place + 1);
        }
        self.timers[place] = timer;
        self.len += 1;
    }

    #[inline(always)]
    fn pop(&mut self) -> TaskId {
        self.len -= 1;
        TaskId(self.timers[self.len] as u32 % SHORT_TASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Pauses of all lengths, mixed and with many ties, so that slots are laid out too wide, too
    /// narrow, and again.
    fn pause() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..4,
            (0u32..60).prop_map(|octave| 1 << octave),
            1_000u64..2_000,
            Just(u64::MAX),
            Just(1 << 53)
        ]
    }

    proptest! {
        #[test]
        fn timers_come_out_in_order_of_time_and_task(
            steps in proptest::collection::vec((0.0..1.0, pause()), 1..1500),
            grow in 0.45..0.9,
        ) {
            let (mut timers, mut set, mut now) = (Timers::new(), BTreeSet::new(), 0u64);
            for (task, (step, pause)) in steps.into_iter().enumerate() {
                if step < grow {
                    let time = Time(now.saturating_add(pause));
                    timers.insert(time, TaskId(task as u32));
                    set.insert((time, TaskId(task as u32)));
                } else if let Some((time, task)) = set.pop_first() {
                    prop_assert_eq!(timers.pop(), task);
                    now = time.0;
                }
                prop_assert_eq!(
                    timers.earliest(),
                    set.first().map_or(Time::NEVER, |&(time, _)| time)
                );
            }
            while let Some((_, task)) = set.pop_first() {
                prop_assert_eq!(timers.pop(), task);
            }
        }
    }

    #[test]
    fn timers_beyond_the_planned_number_come_out_in_order() {
        // 100 timers a second apart, for which slots are laid out; then 100,000 within one slot,
        // and as many in pairs after the last slot.
        let (mut timers, mut all) = (Timers::new(), Vec::new());
        let times = (0..100)
            .map(|n| n * 1_000_000_000)
            .chain((0..100_000).map(|n| 5_500_000_000 + n * 7919 % 100_003));
        for (task, time) in times.chain((0..100_000).map(|n| 1_000_000_000_000 + n / 2)).enumerate()
        {
            timers.insert(Time(time), TaskId(task as u32));
            all.push((time, task as u32));
        }
        all.sort_unstable();
        assert!(
            all.iter().all(
                |&(time, task)| timers.earliest() == Time(time) && timers.pop() == TaskId(task)
            )
        );
        assert_eq!(timers.earliest(), Time::NEVER);
    }
}
