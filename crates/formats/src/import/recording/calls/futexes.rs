//! Futex calls: which futexes are barriers.
//!
//! At a barrier of n tasks, in each round n−1 wait and the last one wakes them all, and every task
//! arrives once. A call of a library around a futex call says what it is, and it is not judged here.

use super::{Calls, Ended, add};
use ::recording::Class;
use schedsim::trace::Returned;
use schedsim::workload::Barrier;
use std::collections::{BTreeMap, BTreeSet};

/// Operations of `futex`.
const WAIT: u16 = 0;
const WAKE: u16 = 1;
const WAIT_BITSET: u16 = 9;
const WAKE_BITSET: u16 = 10;
/// The result of a wait that found another value: `EAGAIN`.
const HAS_CHANGED: i64 = -11;

/// After this many calls that woke no two tasks at once, a futex is no barrier.
const TRIALS: usize = 16;

/// What was seen of a futex.
#[derive(Debug, Default)]
pub(super) struct Word {
    barrier: Option<u32>,
    is_none: bool,
    /// By thread id: how often it arrived.
    arrivals: BTreeMap<u32, usize>,
    rounds: Vec<Round>,
    /// Those that woke the others.
    last: BTreeSet<u32>,
    wakes: usize,
    most_woken: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Waits that another call ended.
    slept: u32,
    /// Waits that found the round over.
    late: u32,
    wakes: u32,
    woken: u32,
}

impl Word {
    /// A call by a task. Returns false once the futex is no barrier.
    fn add(&mut self, call: &Ended) -> bool {
        let arrivals = self.arrivals.entry(call.tid).or_default();
        let round = *arrivals;
        *arrivals = round.saturating_add(1);
        if self.rounds.len() <= round {
            self.rounds.resize(round.saturating_add(1), Round::default());
        }
        let round = &mut self.rounds[round];
        match (call.op, u32::try_from(call.result)) {
            (WAIT | WAIT_BITSET, Ok(_)) => round.slept = round.slept.saturating_add(1),
            (WAIT | WAIT_BITSET, _) if call.result == HAS_CHANGED => {
                round.late = round.late.saturating_add(1);
            }
            (WAKE | WAKE_BITSET, Ok(woken)) => {
                round.wakes = round.wakes.saturating_add(1);
                round.woken = round.woken.saturating_add(woken);
                self.wakes = self.wakes.saturating_add(1);
                self.most_woken = self.most_woken.max(woken);
                self.last.insert(call.tid);
            }
            _ => self.refuse(),
        }
        // Of each round one call wakes, and a task is at most one round ahead.
        let is_ahead = self.rounds.len() > self.wakes.saturating_add(TRIALS);
        if is_ahead || self.wakes >= TRIALS && self.most_woken < 2 {
            self.refuse();
        }
        !self.is_none
    }

    fn refuse(&mut self) {
        *self = Word { barrier: self.barrier, is_none: true, ..Word::default() };
    }

    /// The number of tasks of the barrier, if it is one.
    fn tasks(&self) -> Option<u32> {
        let tasks = u32::try_from(self.arrivals.len()).ok().filter(|tasks| *tasks > 2)?;
        let rounds = self.rounds.len();
        // If the same task is always the last, the others may well wait for it alone.
        let all_arrive = self.last.len() > 1 && self.arrivals.values().all(|of| *of == rounds);
        let is_complete = |round: &Round| round.wakes == 1 && round.woken == round.slept;
        (!self.is_none && all_arrive && self.rounds.iter().all(is_complete)).then_some(tasks)
    }
}

impl Calls {
    /// A futex call of the kernel.
    pub(super) fn futex(&mut self, call: &Ended) -> Returned {
        self.tasks.entry(call.tid).or_default().futex = Some((call.object, call.entered));
        let is_futex =
            self.objects.get(&call.object).is_some_and(|object| object.class == Class::Futex);
        if !is_futex {
            return Returned::Futex { barrier: None };
        }
        let word = self.words.entry(call.object).or_default();
        if word.is_none || !word.add(call) {
            return Returned::Futex { barrier: None };
        }
        if word.barrier.is_none() {
            // It has no tasks until it is known to be one.
            let new = Barrier { name: format!("barrier {}", call.object), tasks: 0 };
            word.barrier = add(&mut self.shared.barriers, new);
        }
        Returned::Futex { barrier: word.barrier }
    }

    /// The call of a library ends that a futex call may have been in.
    pub(super) fn is_around(&mut self, call: &Ended) {
        let inner = self.tasks.get(&call.tid).and_then(|task| task.futex);
        if let Some((object, entered)) = inner
            && entered >= call.entered
            && let Some(word) = self.words.get_mut(&object)
        {
            word.refuse();
        }
    }

    /// Says which futexes are barriers, now that all calls are known.
    pub fn judge_futexes(&mut self) {
        for word in self.words.values() {
            let barrier = word.barrier.and_then(|at| self.shared.barriers.get_mut(at as usize));
            if let Some((barrier, tasks)) = barrier.zip(word.tasks()) {
                barrier.tasks = tasks;
            }
        }
    }
}
