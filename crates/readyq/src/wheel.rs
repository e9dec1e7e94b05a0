//! Wheel: the exact virtual clock in FIFO buckets, one per instant of virtual time, with a mask of
//! those that are not empty.
//!
//! Waiting tasks lie within the longest stride of the clock. With more buckets than that, each
//! bucket holds one key only. So a FIFO per bucket gives the exact order of
//! [`RbTree`](crate::RbTree); a rotation and a count of zeros find the next bucket. Right for
//! proportional rates with bounded strides, at any number of tasks. Bad when strides must be long:
//! [`Wheel`] takes strides up to 63, [`WideWheel`] up to 4095 for 32 KiB per queue.
//!
//! Cost: O(1) in every operation. At most 5 accesses to words of the mask (2 in an insertion, 2 in a
//! removal), and writes to two nodes. Source: ours; the order is Porter 2021, structure (4).

use crate::clock::Clock;
use crate::list::{List, find_from};
use crate::mask::{Levels, Mask, Masked};
use crate::{Id, Key, Level, Nodes, Probe, ReadyQueue, Strides, TaskId};

/// A wheel of 64 buckets, for strides up to 63: 63 linear levels, or 6 that double.
pub type Wheel<I = TaskId, K = u64> = Buckets<64, I, K>;

/// A wheel of 4096 buckets, for strides up to 4095: 4095 linear levels, or 12 that double.
pub type WideWheel<I = TaskId, K = u64> = Buckets<4096, I, K>;

/// A wheel of `BUCKETS` buckets: 32, 64, 128, 256 or 4096, one more than its longest stride.
#[derive(Clone, Debug)]
pub struct Buckets<const BUCKETS: usize, I = TaskId, K = u64, P = ()>
where
    Levels<BUCKETS>: Masked,
{
    clock: Clock<K>,
    /// Bit k modulo `BUCKETS`: the bucket of key k is not empty.
    waiting: <Levels<BUCKETS> as Masked>::Mask,
    buckets: [List<I>; BUCKETS],
    probe: P,
}

impl<const BUCKETS: usize, I: Id, K: Key> Buckets<BUCKETS, I, K>
where
    Levels<BUCKETS>: Masked,
{
    /// An empty queue.
    pub const fn new(strides: Strides) -> Self {
        Buckets::with_probe(strides, ())
    }
}

impl<const BUCKETS: usize, I: Id, K: Key, P: Probe> Buckets<BUCKETS, I, K, P>
where
    Levels<BUCKETS>: Masked,
{
    /// An empty queue whose `probe` counts the accesses to words of the mask.
    pub const fn with_probe(strides: Strides, probe: P) -> Self {
        // Below 32 a word has more bits than there are buckets, and does not turn with them.
        const { assert!(BUCKETS >= 32) };
        Buckets {
            clock: Clock::new(strides),
            waiting: Mask::EMPTY,
            buckets: [List::EMPTY; BUCKETS],
            probe,
        }
    }

    /// The bucket of `key`.
    #[inline(always)]
    fn bucket(key: K) -> usize {
        key.low_bits() % BUCKETS
    }
}

impl<const BUCKETS: usize, I: Id, K: Key, P: Probe> ReadyQueue<I, K> for Buckets<BUCKETS, I, K, P>
where
    Levels<BUCKETS>: Masked,
{
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes<I, K>, task: I, level: Level) {
        debug_assert!((level.0 as u32) < self.levels(), "level {} is out of range", level.0);
        let key = self.clock.key(nodes[task].key, level);
        nodes[task].key = key;
        let bucket = Self::bucket(key);
        if self.buckets[bucket].push_back(nodes, task) {
            self.waiting.insert(bucket, &mut self.probe);
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes<I, K>) -> Option<I> {
        let now = Self::bucket(self.clock.now);
        let bucket = self.waiting.first_from(now, &mut self.probe)? % BUCKETS;
        let (task, emptied) = self.buckets[bucket].pop_front(nodes)?;
        if emptied {
            self.waiting.remove(bucket, &mut self.probe);
        }
        self.clock.now = nodes[task].key;
        Some(task)
    }

    fn peek(&self, _nodes: &Nodes<I, K>) -> Option<I> {
        let now = Self::bucket(self.clock.now);
        self.waiting.first_from(now, &mut ()).map(|bucket| self.buckets[bucket % BUCKETS].head)
    }

    fn remove(&mut self, nodes: &mut Nodes<I, K>, task: I) {
        let bucket = Self::bucket(nodes[task].key);
        self.buckets[bucket].unlink(nodes, task);
        if self.buckets[bucket].is_empty() {
            self.waiting.remove(bucket, &mut self.probe);
        }
    }

    fn find(&self, nodes: &Nodes<I, K>, mut accept: impl FnMut(I) -> bool) -> Option<I> {
        self.waiting.find(Self::bucket(self.clock.now), |bucket| {
            find_from(nodes, self.buckets[bucket % BUCKETS].head, &mut accept)
        })
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn levels(&self) -> u32 {
        self.clock.strides.levels_up_to(BUCKETS as u64 - 1)
    }

    fn steps(&self) -> u64 {
        self.probe.steps()
    }
}
