//! Waiting tasks ranked by a virtual time, the least first and the first come first among equals.
//!
//! What a fair scheduler asks of its queue is the least. A heap in one array touches a third of the memory of a balanced tree through the tasks, and inserts who comes
//! late in the order at almost no cost. Who is taken out of its midst stays there as a stale entry, until that comes first or there are as many stale ones as others.
//!
//! Cost: O(log n), amortised. Source: the textbook's heap, as the standard library has it. Ties are broken by a 32-bit number: first come is first served among
//! equals while fewer than 2^32 tasks begin to wait meanwhile.

use crate::TaskId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tasks by virtual time.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Time, turn and task as one number. The first one is not stale.
    entries: BinaryHeap<Reverse<u128>>,
    /// With more entries than this, stale ones are looked for.
    limit: usize,
}

/// A task and where it ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it is ranked by.
    pub time: i64,
    /// When it began to wait; the smaller comes first among equals.
    pub turn: u32,
    /// Who.
    pub task: TaskId,
}

/// Numbers those who begin to wait. Each task keeps its number while it waits, and [`NOT_WAITING`] otherwise: an entry with another number is stale.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    last: u32,
}

/// The number of a task that does not wait.
pub const NOT_WAITING: u32 = 0;

const FEW: usize = 64;

impl Turns {
    /// The number of who begins to wait now.
    #[inline]
    pub fn next(&mut self) -> u32 {
        self.last = if self.last == u32::MAX { NOT_WAITING + 1 } else { self.last + 1 };
        self.last
    }
}

impl Entry {
    #[inline(always)]
    fn pack(self) -> u128 {
        let time = self.time as u64 ^ 1 << 63; // in the order of signed numbers
        u128::from(time) << 64 | u128::from(self.turn) << 32 | u128::from(self.task.0)
    }

    #[inline(always)]
    fn unpack(packed: u128) -> Entry {
        Entry { time: ((packed >> 64) as u64 ^ 1 << 63) as i64, turn: (packed >> 32) as u32, task: TaskId(packed as u32) }
    }

    #[inline(always)]
    fn is_stale(&self, turn: impl Fn(TaskId) -> u32) -> bool {
        turn(self.task) != self.turn
    }
}

/// In all that follows, `turn` is the number of a task.
impl Ranking {
    /// Ranks somebody.
    #[inline]
    pub fn insert(&mut self, turn: impl Fn(TaskId) -> u32, entry: Entry) {
        self.entries.push(Reverse(entry.pack()));
        if self.entries.len() > self.limit {
            self.clean(turn);
        }
    }

    #[cold]
    fn clean(&mut self, turn: impl Fn(TaskId) -> u32) {
        self.entries.retain(|&Reverse(packed)| !Entry::unpack(packed).is_stale(&turn));
        self.limit = FEW + 2 * self.entries.len();
    }

    /// The least.
    #[inline]
    pub fn first(&self) -> Option<Entry> {
        self.entries.peek().map(|&Reverse(packed)| Entry::unpack(packed))
    }

    /// The least but one.
    pub fn second(&mut self, turn: impl Fn(TaskId) -> u32) -> Option<Entry> {
        // The heap has it right below the least, unless that one is stale.
        let below = self.entries.as_slice().get(1..)?.iter().take(2).max().map(|&Reverse(packed)| Entry::unpack(packed))?;
        if !below.is_stale(&turn) {
            return Some(below);
        }
        let Reverse(first) = self.entries.pop()?;
        self.settle(turn);
        let second = self.first();
        self.entries.push(Reverse(first));
        second
    }

    /// Takes out the least.
    #[inline]
    pub fn pop(&mut self, turn: impl Fn(TaskId) -> u32) {
        self.entries.pop();
        self.settle(turn);
    }

    /// Forgets who does not wait any more, as far as they come first. To be called whenever somebody has ceased to wait.
    #[inline]
    pub fn settle(&mut self, turn: impl Fn(TaskId) -> u32) {
        while self.first().is_some_and(|first| first.is_stale(&turn)) {
            self.entries.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_sorted_set() {
        const TASKS: u32 = 300;
        let mut random = Random::new(7);
        let (mut ranking, mut turns, mut naive) = (Ranking::default(), Turns::default(), BTreeSet::new());
        let mut waits = vec![None; TASKS as usize];
        let mut numbers = vec![NOT_WAITING; TASKS as usize];
        for _ in 0..100_000 {
            let task = TaskId(random.below(TASKS.into()) as u32);
            match waits[task.index()].take() {
                Some(place) => {
                    numbers[task.index()] = NOT_WAITING;
                    ranking.settle(|task| numbers[task.index()]);
                    naive.remove(&place);
                }
                None => {
                    let (time, turn) = (random.below(500) as i64 - 250, turns.next());
                    numbers[task.index()] = turn;
                    ranking.insert(|task| numbers[task.index()], Entry { time, turn, task });
                    waits[task.index()] = Some((time, turn, task));
                    naive.insert((time, turn, task));
                }
            }
            let mut expected = naive.iter().map(|&(time, turn, task)| Entry { time, turn, task });
            assert_eq!(ranking.first(), expected.next());
            assert_eq!(ranking.second(|task| numbers[task.index()]), expected.next());
        }
        assert!(ranking.entries.len() <= FEW + 2 * TASKS as usize, "{} entries", ranking.entries.len());
    }
}
