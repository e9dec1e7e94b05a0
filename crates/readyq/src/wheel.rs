//! Wheel: the exact virtual clock in FIFO buckets, one per instant of virtual time, with a mask of
//! those that are not empty.
//!
//! Waiting tasks lie within the longest stride of the clock. With more buckets than that, each
//! bucket holds one key only. So a FIFO per bucket gives the exact order of
//! [`RbTree`](crate::RbTree); a rotation and a count of zeros find the next bucket. Right for
//! proportional rates with bounded strides, at any number of tasks. Bad when strides must be long:
//! [`Wheel`] takes strides up to 63, [`WideWheel`] up to 4095 for 32 KiB per queue.
//!
//! Cost: O(1) in every operation. Source: ours; the order is Porter 2021, structure (4).

use crate::clock::Clock;
use crate::list::{List, find_from};
use crate::{Level, Nodes, ReadyQueue, Strides, TaskId};

/// A wheel of 64 buckets, for strides up to 63: 63 linear levels, or 6 that double.
pub type Wheel = Buckets<1>;

/// A wheel of 4096 buckets, for strides up to 4095: 4095 linear levels, or 12 that double.
pub type WideWheel = Buckets<64>;

/// A wheel of `WORDS` × 64 buckets. `WORDS` is a power of two, at most 64; [`Wheel`] and
/// [`WideWheel`] are the two useful sizes.
#[derive(Clone, Debug)]
pub struct Buckets<const WORDS: usize> {
    clock: Clock,
    /// Bit w: `waiting[w]` is not 0.
    words: u64,
    /// Bit k % 64 of word k / 64 (modulo `WORDS`): the bucket of key k is not empty.
    waiting: [u64; WORDS],
    buckets: [[List; 64]; WORDS],
}

impl<const WORDS: usize> Buckets<WORDS> {
    /// An empty queue.
    pub const fn new(strides: Strides) -> Self {
        const { assert!(WORDS.is_power_of_two() && WORDS <= 64) };
        Buckets {
            clock: Clock::new(strides),
            words: 0,
            waiting: [0; WORDS],
            buckets: [[List::EMPTY; 64]; WORDS],
        }
    }

    /// The bucket of the minimum key.
    #[inline(always)]
    fn first(&self) -> Option<Bucket> {
        let now = Bucket::of::<WORDS>(self.clock.now);
        if WORDS == 1 {
            if self.waiting[0] == 0 {
                return None;
            }
            let ahead = self.waiting[0].rotate_right(now.bit as u32).trailing_zeros();
            return Some(Bucket { word: 0, bit: (now.bit + ahead as usize) % 64 });
        }
        let rest_of_word = self.waiting[now.word] >> now.bit << now.bit;
        if rest_of_word != 0 {
            return Some(Bucket { word: now.word, bit: rest_of_word.trailing_zeros() as usize });
        }
        if self.words == 0 {
            return None;
        }
        // This word comes last: its remaining bits have wrapped around.
        let ahead = self.words.rotate_right(now.word as u32 + 1).trailing_zeros() as usize;
        let word = (now.word + 1 + ahead) % 64 % WORDS;
        Some(Bucket { word, bit: self.waiting[word].trailing_zeros() as usize % 64 })
    }

    #[inline(always)]
    fn mark_empty(&mut self, bucket: Bucket) {
        self.waiting[bucket.word] &= !(1 << bucket.bit);
        if WORDS > 1 && self.waiting[bucket.word] == 0 {
            self.words &= !(1 << bucket.word);
        }
    }
}

impl<const WORDS: usize> ReadyQueue for Buckets<WORDS> {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        let Bucket { word, bit } = Bucket::of::<WORDS>(key);
        if self.buckets[word][bit].push_back(nodes, task) {
            self.waiting[word] |= 1 << bit;
            if WORDS > 1 {
                self.words |= 1 << word;
            }
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let bucket = self.first()?;
        let (task, emptied) = self.buckets[bucket.word][bucket.bit].pop_front(nodes)?;
        if emptied {
            self.mark_empty(bucket);
        }
        self.clock.now = nodes[task].key;
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.first().map(|Bucket { word, bit }| self.buckets[word][bit].head)
    }

    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        let bucket = Bucket::of::<WORDS>(nodes[task].key);
        let list = &mut self.buckets[bucket.word][bucket.bit];
        list.unlink(nodes, task);
        if list.is_empty() {
            self.mark_empty(bucket);
        }
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        let now = Bucket::of::<WORDS>(self.clock.now);
        for step in 0..=WORDS {
            let word = (now.word + step) % WORDS;
            let mut bits = self.waiting[word];
            // The clock's word comes twice: first its bits from the clock on, last those that have
            // wrapped around.
            if step == 0 {
                bits &= u64::MAX << now.bit;
            } else if step == WORDS {
                bits &= !(u64::MAX << now.bit);
            }
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                if let Some(task) = find_from(nodes, self.buckets[word][bit].head, &mut accept) {
                    return Some(task);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        if WORDS == 1 { self.waiting[0] == 0 } else { self.words == 0 }
    }

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(64 * WORDS as u64 - 1)
    }
}

/// The position of the tasks of one key.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    word: usize,
    bit: usize,
}

impl Bucket {
    #[inline(always)]
    fn of<const WORDS: usize>(key: u64) -> Bucket {
        Bucket { word: (key / 64) as usize % WORDS, bit: (key % 64) as usize }
    }
}
