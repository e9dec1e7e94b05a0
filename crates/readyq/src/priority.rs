//! Strict priorities: the best level that has waiting tasks runs, FIFO within it.
//!
//! Right for real-time work and wherever unimportant tasks may starve. It does not share: a task
//! that always runs at a good level starves every worse one. One bit per level finds the best level
//! without a search.
//!
//! Cost: O(1) in every operation, up to 256 levels, 2 KiB per queue. Source: the ready queue of
//! Curran & Stumm 1990, section 5.3; the bitmap is that of Linux's O(1) scheduler.

use crate::list::{List, find_from};
use crate::{Level, Nodes, ReadyQueue, TaskId};

const LEVELS: usize = 256;
const WORDS: usize = LEVELS / 64;

/// FIFO lists, the lowest level first.
#[derive(Clone, Debug)]
pub struct Priority {
    /// Bit w: `waiting[w]` is not 0.
    words: u64,
    /// Bit l % 64 of word l / 64: `lists[l]` is not empty.
    waiting: [u64; WORDS],
    lists: [List; LEVELS],
}

impl Priority {
    /// An empty queue.
    pub const fn new() -> Self {
        Priority { words: 0, waiting: [0; WORDS], lists: [List::EMPTY; LEVELS] }
    }

    /// The best level that has waiting tasks.
    #[inline(always)]
    pub fn best_level(&self) -> Option<Level> {
        if self.words == 0 {
            return None;
        }
        let word = self.words.trailing_zeros() as usize % WORDS;
        Some(Level((word * 64) as u16 + self.waiting[word].trailing_zeros() as u16))
    }

    #[inline(always)]
    fn mark_empty(&mut self, level: usize) {
        let word = level / 64;
        self.waiting[word] &= !(1 << (level % 64));
        if self.waiting[word] == 0 {
            self.words &= !(1 << word);
        }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::new()
    }
}

impl ReadyQueue for Priority {
    #[inline]
    fn insert(&mut self, nodes: &mut Nodes, task: TaskId, level: Level) {
        debug_assert!(
            (level.0 as usize) < LEVELS,
            "priority has {LEVELS} levels, not level {}",
            level.0
        );
        let index = level.0 as usize % LEVELS;
        nodes[task].set_list(index);
        if self.lists[index].push_back(nodes, task) {
            self.waiting[index / 64] |= 1 << (index % 64);
            self.words |= 1 << (index / 64);
        }
    }

    #[inline]
    fn pop(&mut self, nodes: &mut Nodes) -> Option<TaskId> {
        let index = self.best_level()?.0 as usize % LEVELS;
        let (task, emptied) = self.lists[index].pop_front(nodes)?;
        if emptied {
            self.mark_empty(index);
        }
        Some(task)
    }

    #[inline]
    fn peek(&self, _nodes: &Nodes) -> Option<TaskId> {
        self.best_level().map(|level| self.lists[level.0 as usize % LEVELS].head)
    }

    #[inline]
    fn remove(&mut self, nodes: &mut Nodes, task: TaskId) {
        let index = nodes[task].list() % LEVELS;
        self.lists[index].unlink(nodes, task);
        if self.lists[index].is_empty() {
            self.mark_empty(index);
        }
    }

    fn find(&self, nodes: &Nodes, mut accept: impl FnMut(TaskId) -> bool) -> Option<TaskId> {
        for (word, &bits) in self.waiting.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let level = word * 64 + bits.trailing_zeros() as usize;
                if let Some(task) = find_from(nodes, self.lists[level].head, &mut accept) {
                    return Some(task);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.words == 0
    }

    fn levels(&self) -> u32 {
        LEVELS as u32
    }
}
