//! Starts and ends of sleeps: what happens next to those who do not run.

use crate::{TaskId, Time};

/// Timers, earliest first, equal times in order of task id. A task is in here at most once.
///
/// A few are a heap. Of many, only those of the near future are: time behind it is cut into slots, whose timers are in no order until their slot is the next.
/// When all slots are empty, as many slots are laid out again as the remaining timers need, over at least the nearer half of them; so each timer is moved
/// a few times, however many there are, and a slot that proves too crowded costs what a heap of its timers costs. After Brown's calendar queue (1988) and
/// the ladder queue of Tang, Goh & Thng (2005), of which this is one rung.
pub struct Timers {
    /// All timers before `horizon`; empty only if there are no others.
    near: Heap,
    /// Time and task as one number, as in `near`; above all of them while there are no slots.
    horizon: u128,
    /// When the first slot begins.
    start: Time,
    /// A slot lasts 2 to this power, at most 32.
    shift: u32,
    /// In each the time since the slot's beginning, and behind it 32 bits for the task.
    slots: Vec<Vec<u64>>,
    /// A bit for each slot that is not empty.
    occupied: Vec<u64>,
    /// Those before this one are empty.
    next_slot: usize,
    /// How many are in slots.
    count: usize,
    /// Those behind the last slot.
    far: Vec<Far>,
}

/// A timer in 12 bytes instead of 16: time and task, the upper digits first.
type Far = [u32; 3];

fn to_far(timer: u128) -> Far {
    [(timer >> (2 * TASK_BITS)) as u32, (timer >> TASK_BITS) as u32, timer as u32]
}

fn from_far(timer: Far) -> u128 {
    timer.into_iter().fold(0, |number, digit| number << TASK_BITS | u128::from(digit))
}

const TASK_BITS: u32 = u32::BITS;
/// With more timers than this, there are slots.
const FEW: usize = 64;
/// How many timers a slot is laid out for, and with how many there should be more slots.
const PER_SLOT: usize = 8;
const CROWDED: usize = 4 * PER_SLOT;
const MOST_SLOTS: usize = 1 << 16;

impl Timers {
    pub fn new() -> Timers {
        Timers {
            near: Heap(Vec::new()),
            horizon: u128::MAX,
            start: Time::ZERO,
            shift: 0,
            slots: Vec::new(),
            occupied: Vec::new(),
            next_slot: 0,
            count: 0,
            far: Vec::new(),
        }
    }

    #[inline(always)]
    pub fn earliest(&self) -> Time {
        self.near.0.first().map_or(Time::NEVER, |timer| Time((timer >> TASK_BITS) as u64))
    }

    #[inline(always)]
    pub fn insert(&mut self, time: Time, task: TaskId) {
        let timer = u128::from(time.0) << TASK_BITS | u128::from(task.0);
        if timer >= self.horizon {
            self.put_off(timer);
        } else {
            self.near.insert(timer);
            if self.near.0.len() > FEW && self.horizon == u128::MAX {
                self.far.extend(self.near.0.drain(..).map(to_far));
                self.refill();
            }
        }
    }

    /// Takes out the task whose time comes first; there must be one.
    #[inline(always)]
    pub fn pop(&mut self) -> TaskId {
        let first = self.near.pop();
        if self.near.0.is_empty() && self.horizon != u128::MAX {
            self.refill();
        }
        TaskId(first as u32)
    }

    /// Puts a timer behind the horizon into its slot.
    #[inline]
    fn put_off(&mut self, timer: u128) {
        if !self.put_into_slot(timer) {
            self.far.push(to_far(timer));
        } else if self.count > CROWDED * self.slots.len() && self.slots.len() < MOST_SLOTS {
            self.lay_out_anew();
        }
    }

    /// Says whether there is a slot for it.
    #[inline(always)]
    fn put_into_slot(&mut self, timer: u128) -> bool {
        let since = (timer >> TASK_BITS) as u64 - self.start.0;
        let index = (since >> self.shift) as usize;
        let Some(slot) = self.slots.get_mut(index) else { return false };
        slot.push((since & ((1 << self.shift) - 1)) << TASK_BITS | u64::from(timer as u32));
        self.occupied[index / 64] |= 1 << (index % 64);
        self.count += 1;
        true
    }

    /// Nothing is near any more: the next slot is.
    #[inline(never)]
    fn refill(&mut self) {
        if self.count == 0 {
            self.lay_out();
        }
        if let Some(index) = self.next_occupied() {
            let begin = self.begin(index);
            let slot = &mut self.slots[index];
            self.count -= slot.len();
            slot.drain(..).for_each(|timer| self.near.insert(begin + u128::from(timer)));
            self.horizon = begin + (1 << self.shift << TASK_BITS);
        }
    }

    /// Lays out slots for the timers that are far.
    fn lay_out(&mut self) {
        if self.far.len() <= FEW / 2 {
            self.far.drain(..).for_each(|timer| self.near.insert(from_far(timer)));
            self.horizon = u128::MAX;
            return;
        }
        let half = self.far.len() / 2;
        let time = |timer: Far| (from_far(timer) >> TASK_BITS) as u64;
        let median = time(*self.far.select_nth_unstable(half).1);
        let first = self.far[..=half].iter().min().map_or(median, |&timer| time(timer));
        let slots = (self.far.len() / PER_SLOT).next_power_of_two().clamp(64, MOST_SLOTS);
        let per_slot = (median - first).saturating_mul(2) / slots as u64;
        (self.start, self.shift, self.next_slot) = (Time(first), (u64::BITS - per_slot.leading_zeros()).min(TASK_BITS), 0);
        self.horizon = u128::from(first) << TASK_BITS;
        self.slots.resize_with(slots, Vec::new);
        self.occupied.resize(slots / 64, 0);
        let mut index = 0;
        while let Some(&timer) = self.far.get(index) {
            if self.put_into_slot(from_far(timer)) {
                self.far.swap_remove(index);
            } else {
                index += 1;
            }
        }
        self.far.shrink_to_fit();
    }

    /// There have come to be more timers than the slots were laid out for.
    #[cold]
    fn lay_out_anew(&mut self) {
        while let Some(index) = self.next_occupied() {
            let begin = self.begin(index);
            self.far.extend(self.slots[index].drain(..).map(|timer| to_far(begin + u128::from(timer))));
        }
        self.count = 0;
        self.lay_out();
    }

    /// The next slot that is not empty, which will be.
    fn next_occupied(&mut self) -> Option<usize> {
        let from = self.next_slot / 64;
        let word = self.occupied.get(from..)?.iter().position(|&word| word != 0)? + from;
        let bit = self.occupied[word].trailing_zeros() as usize;
        self.occupied[word] &= self.occupied[word] - 1;
        self.next_slot = word * 64 + bit;
        Some(self.next_slot)
    }

    /// The first moment of a slot.
    fn begin(&self, slot: usize) -> u128 {
        u128::from(self.start.0 + ((slot as u64) << self.shift)) << TASK_BITS
    }
}

/// A heap in which a node has four children: half as deep as a binary one, and four children are 64 bytes. Two timers are compared without a branch.
struct Heap(Vec<u128>);

const CHILDREN: usize = 4;

impl Heap {
    #[inline]
    fn insert(&mut self, timer: u128) {
        let mut hole = self.0.len();
        self.0.push(timer);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.0[parent] <= timer {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = timer;
    }

    /// Takes out the least, or gives no timer at all.
    #[inline]
    fn pop(&mut self) -> u128 {
        let Some(last) = self.0.pop() else { return u128::MAX };
        let Some(&first) = self.0.first() else { return last };
        let mut hole = 0;
        loop {
            let begin = hole * CHILDREN + 1;
            let (place, least) = match self.0[begin.min(self.0.len())..] {
                [a, b, c, d, ..] => {
                    let (left, right) = (lesser((0, a), (1, b)), lesser((2, c), (3, d)));
                    lesser(left, right)
                }
                [] => break,
                ref few => few.iter().enumerate().map(|(place, &timer)| (place, timer)).fold((0, u128::MAX), lesser),
            };
            if last <= least {
                break;
            }
            self.0[hole] = least;
            hole = begin + place;
        }
        self.0[hole] = last;
        first
    }
}

#[inline(always)]
fn lesser(one: (usize, u128), other: (usize, u128)) -> (usize, u128) {
    let first = one.1 < other.1;
    (if first { one.0 } else { other.0 }, if first { one.1 } else { other.1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Sleeps of all lengths, short ones among long ones and many equal ones, so that slots are laid out too wide, too narrow and again.
    fn pause() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, (0u32..60).prop_map(|octave| 1 << octave), 1_000u64..2_000, Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn timers_come_out_in_order_of_time_and_task(steps in proptest::collection::vec((0.0..1.0, pause()), 1..1500), grow in 0.45..0.9) {
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
                prop_assert_eq!(timers.earliest(), set.first().map_or(Time::NEVER, |&(time, _)| time));
            }
            while let Some((_, task)) = set.pop_first() {
                prop_assert_eq!(timers.pop(), task);
            }
        }
    }

    #[test]
    fn crowds_that_nobody_expected_come_out_in_order() {
        // 100 timers a second apart, for which slots are laid out; then 100,000 within one of them, and as many in pairs behind the last slot.
        let (mut timers, mut all) = (Timers::new(), Vec::new());
        let times = (0..100).map(|n| n * 1_000_000_000).chain((0..100_000).map(|n| 5_500_000_000 + n * 7919 % 100_003));
        for (task, time) in times.chain((0..100_000).map(|n| 1_000_000_000_000 + n / 2)).enumerate() {
            timers.insert(Time(time), TaskId(task as u32));
            all.push((time, task as u32));
        }
        all.sort_unstable();
        assert!(all.iter().all(|&(time, task)| timers.earliest() == Time(time) && timers.pop() == TaskId(task)));
        assert_eq!(timers.earliest(), Time::NEVER);
    }
}
