//! Waiting tasks ranked by a virtual time, the minimum first, FIFO among equals.
//!
//! A fair scheduler needs only the minimum. A heap in one array touches a third of the memory of a
//! balanced tree through the tasks, and late insertions cost almost nothing. A task that is removed
//! from the middle stays as a stale entry, until it comes first or half of the entries are stale.
//!
//! Cost: O(log n), amortised. Source: the textbook's heap, from the standard library. A 32-bit
//! sequence number breaks ties: equals are FIFO while fewer than 2^32 tasks start to wait in
//! between.

use crate::TaskId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tasks by virtual time.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Time, sequence number and task as one number. The first entry is not stale.
    entries: BinaryHeap<Reverse<u128>>,
    /// With more entries than this, stale ones are removed.
    limit: usize,
}

/// A task and its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The time by which it is ranked.
    pub time: i64,
    /// Its sequence number in the waiting order; the smaller comes first among equals.
    pub sequence: u32,
    /// The task.
    pub task: TaskId,
}

/// Assigns sequence numbers to tasks that start to wait. A task keeps its number while it waits,
/// and has [`NOT_WAITING`] otherwise: an entry with another number is stale.
#[derive(Clone, Debug, Default)]
pub struct Sequences {
    last: u32,
}

/// The number of a task that does not wait.
pub const NOT_WAITING: u32 = 0;

const FEW: usize = 64;

impl Sequences {
    /// The number of a task that starts to wait now.
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
        u128::from(time) << 64 | u128::from(self.sequence) << 32 | u128::from(self.task.0)
    }

    #[inline(always)]
    fn unpack(packed: u128) -> Entry {
        Entry {
            time: ((packed >> 64) as u64 ^ 1 << 63) as i64,
            sequence: (packed >> 32) as u32,
            task: TaskId(packed as u32),
        }
    }

    #[inline(always)]
    fn is_stale(&self, sequence: impl Fn(TaskId) -> u32) -> bool {
        sequence(self.task) != self.sequence
    }
}

/// In all methods, `sequence` returns the sequence number of a task.
impl Ranking {
    /// Inserts a task.
    #[inline]
    pub fn insert(&mut self, sequence: impl Fn(TaskId) -> u32, entry: Entry) {
        self.entries.push(Reverse(entry.pack()));
        if self.entries.len() > self.limit {
            self.clean(sequence);
        }
    }

    #[cold]
    fn clean(&mut self, sequence: impl Fn(TaskId) -> u32) {
        self.entries.retain(|&Reverse(packed)| !Entry::unpack(packed).is_stale(&sequence));
        self.limit = FEW + 2 * self.entries.len();
    }

    /// The minimum.
    #[inline]
    pub fn first(&self) -> Option<Entry> {
        self.entries.peek().map(|&Reverse(packed)| Entry::unpack(packed))
    }

    /// The second smallest.
    pub fn second(&mut self, sequence: impl Fn(TaskId) -> u32) -> Option<Entry> {
        // It is a child of the minimum in the heap, unless that child is stale.
        let below = self
            .entries
            .as_slice()
            .get(1..)?
            .iter()
            .take(2)
            .max()
            .map(|&Reverse(packed)| Entry::unpack(packed))?;
        if !below.is_stale(&sequence) {
            return Some(below);
        }
        let Reverse(first) = self.entries.pop()?;
        self.settle(sequence);
        let second = self.first();
        self.entries.push(Reverse(first));
        second
    }

    /// Removes the minimum.
    #[inline]
    pub fn pop(&mut self, sequence: impl Fn(TaskId) -> u32) {
        self.entries.pop();
        self.settle(sequence);
    }

    /// Removes stale entries at the front. Call this whenever a task has stopped waiting.
    #[inline]
    pub fn settle(&mut self, sequence: impl Fn(TaskId) -> u32) {
        while self.first().is_some_and(|first| first.is_stale(&sequence)) {
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
        let (mut ranking, mut sequences, mut naive) =
            (Ranking::default(), Sequences::default(), BTreeSet::new());
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
                    let (time, sequence) = (random.below(500) as i64 - 250, sequences.next());
                    numbers[task.index()] = sequence;
                    ranking.insert(|task| numbers[task.index()], Entry { time, sequence, task });
                    waits[task.index()] = Some((time, sequence, task));
                    naive.insert((time, sequence, task));
                }
            }
            let mut expected =
                naive.iter().map(|&(time, sequence, task)| Entry { time, sequence, task });
            assert_eq!(ranking.first(), expected.next());
            assert_eq!(ranking.second(|task| numbers[task.index()]), expected.next());
        }
        assert!(
            ranking.entries.len() <= FEW + 2 * TASKS as usize,
            "{} entries",
            ranking.entries.len()
        );
    }
}
