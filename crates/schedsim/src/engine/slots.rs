//! A calendar queue for many timers.

use crate::Time;

/// The bits of a timer's task id. A timer is one number, its time in front of its task: one
/// comparison.
pub const TASK_BITS: u32 = u32::BITS;

pub const FEW: usize = 64;

/// Timers as numbers, time before task, the earliest first.
///
/// Up to `FEW` timers are a heap. With more, the heap holds those of the near future, and the time
/// after it is divided into slots. A slot is unordered until it is the next one. When all slots are
/// empty, new ones are laid out for the remaining timers. There are as many as the timers need,
/// over at least the nearer half of them. So each timer moves a few times, however many there are,
/// and a crowded slot costs as much as a heap of its timers. After Brown's calendar queue (1988)
/// and the ladder queue of Tang, Goh & Thng (2005), of which this is one rung.
pub struct Slots {
    /// All timers before `horizon`; empty only if there are no timers.
    near: Heap,
    /// Later than all timers while there are no slots.
    horizon: u128,
    /// When the first slot begins.
    start: Time,
    /// A slot lasts 2 to this power, at most 32.
    shift: u32,
    /// Per slot: the time since the slot's start, in front of 32 bits for the task.
    slots: Vec<Vec<u64>>,
    /// A bit for each slot that is not empty.
    occupied: Vec<u64>,
    /// All slots before this one are empty.
    next_slot: usize,
    /// The number of timers in slots.
    count: usize,
    /// Timers after the last slot.
    far: Vec<Far>,
    /// Whether timers have come near since the last call of [`came_near`](Self::came_near).
    came_near: bool,
}

/// A timer in 12 bytes instead of 16: time and task, the upper digits first.
type Far = [u32; 3];

fn to_far(timer: u128) -> Far {
    [(timer >> (2 * TASK_BITS)) as u32, (timer >> TASK_BITS) as u32, timer as u32]
}

fn from_far(timer: Far) -> u128 {
    timer.into_iter().fold(0, |number, digit| number << TASK_BITS | u128::from(digit))
}

/// The number of timers that a slot is laid out for, and at which more slots are needed.
const PER_SLOT: usize = 8;
const CROWDED: usize = 4 * PER_SLOT;
const MOST_SLOTS: usize = 1 << 16;

impl Slots {
    pub fn new() -> Slots {
        Slots {
            near: Heap(Vec::new()),
            horizon: u128::MAX,
            start: Time::ZERO,
            shift: 0,
            slots: Vec::new(),
            occupied: Vec::new(),
            next_slot: 0,
            count: 0,
            far: Vec::new(),
            came_near: false,
        }
    }

    /// The earliest timer, if any.
    #[inline(always)]
    pub fn first(&self) -> Option<u128> {
        self.near.0.first().copied()
    }

    /// Whether there are no slots.
    #[inline(always)]
    pub fn are_few(&self) -> bool {
        self.horizon == u128::MAX
    }

    /// The timers of the near future, unordered. These are all timers if there are few.
    pub fn near(&self) -> impl Iterator<Item = u128> {
        self.near.0.iter().copied()
    }

    /// Whether a slot of timers came near since the last call.
    #[inline(always)]
    pub fn came_near(&mut self) -> bool {
        std::mem::take(&mut self.came_near)
    }

    /// Removes all near timers.
    pub fn drain_near(&mut self) -> impl Iterator<Item = u128> {
        self.near.0.drain(..)
    }

    #[inline(always)]
    pub fn insert(&mut self, timer: u128) {
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

    /// Removes the earliest timer; there must be one.
    #[inline(always)]
    pub fn pop(&mut self) -> u128 {
        let first = self.near.pop();
        if self.near.0.is_empty() && self.horizon != u128::MAX {
            self.refill();
        }
        first
    }

    /// Puts a timer after the horizon into its slot.
    #[inline]
    fn put_off(&mut self, timer: u128) {
        if !self.put_into_slot(timer) {
            self.far.push(to_far(timer));
        } else if self.count > CROWDED * self.slots.len() && self.slots.len() < MOST_SLOTS {
            self.lay_out_anew();
        }
    }

    /// Returns whether there is a slot for it.
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

    /// The heap is empty: moves the next slot into it.
    #[inline(never)]
    fn refill(&mut self) {
        if self.count == 0 {
            self.lay_out();
        }
        if let Some(index) = self.next_occupied() {
            let begin = self.begin(index);
            let slot = std::mem::take(&mut self.slots[index]); // with its memory, which others need
            self.count -= slot.len();
            slot.into_iter().for_each(|timer| self.near.insert(begin + u128::from(timer)));
            self.came_near = true;
            self.horizon = begin + (1 << self.shift << TASK_BITS);
        }
    }

    /// Lays out slots for the far timers.
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
        (self.start, self.shift, self.next_slot) =
            (Time(first), (u64::BITS - per_slot.leading_zeros()).min(TASK_BITS), 0);
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

    /// More timers have come than the slots were laid out for.
    #[cold]
    fn lay_out_anew(&mut self) {
        while let Some(index) = self.next_occupied() {
            let begin = self.begin(index);
            self.far
                .extend(self.slots[index].drain(..).map(|timer| to_far(begin + u128::from(timer))));
        }
        self.count = 0;
        self.lay_out();
    }

    /// The next slot that is not empty.
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

/// A heap in which a node has four children: half as deep as a binary one, and four children are 64
/// bytes. Two timers are compared without a branch.
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

    /// Removes the earliest timer, or returns `NONE`.
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
                ref few => few
                    .iter()
                    .enumerate()
                    .map(|(place, &timer)| (place, timer))
                    .fold((0, u128::MAX), lesser),
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
