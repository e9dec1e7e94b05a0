//! The recorded deeds of a task, in order. The scripts are written at the end, when all wakings are
//! classified as dependencies or delays.

use super::within::Within;
use crate::workload::Operation;
use crate::{Nanos, TaskId};

/// The recorded context of a waking, as far as the classification needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The running task did it: a dependency.
    Task,
    /// A softirq in the running task: the task's own packet, or any timer.
    Softirq,
    /// The running task or an interrupt.
    Unknown,
}

/// The end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    /// Nothing; the run continues. It started with this many switches to the task beyond the one
    /// that follows every pause.
    Ran { switches: u32 },
    /// Woke a task, or seems to have.
    Woke { task: TaskId, kind: Kind },
    /// Forked a task.
    Forked(TaskId),
    /// A waking that a call explains, or a sleep (`slept`): the operation stands for it.
    Explained { slept: bool },
    /// Ended a call. Its operation takes place before the entry at `at`.
    Called { at: u32, did: Did },
    /// Slept, until `waker` ended it (`NONE`: an interrupt, or an unrecorded event).
    /// `within` is what it was in, if nothing explains it.
    Slept { waker: TaskId, kind: Kind, pause: Nanos, within: Within },
}

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Did {
    Yield,
    /// Waited for the end of a task.
    Joined(TaskId),
    /// Waited until a latch was open.
    Passed(u32),
    /// Waited for a signal, and took it.
    Took(u32),
    /// Waited for a page.
    Paged(Nanos),
    Operation(Operation),
}

/// The log of one task.
///
/// A word is `tag (3 bits) | argument (29 bits) | run (32 bits)`. A sleep has a second word,
/// `kind (2 bits) | within (3 bits) | pause (59 bits)`. A run of 4.3 s or more stands in a word of
/// its own before the deed. A call has two more words, `at (32 bits) | index (32 bits)` and the
/// operation's second word.
#[derive(Debug, Default)]
pub(super) struct Log {
    words: Vec<u64>,
}

const NOBODY: u32 = (1 << 29) - 1;
const RUN_LIMIT: u64 = 1 << 32;
const PAUSE_LIMIT: u64 = 1 << WITHIN_SHIFT;
const WITHIN_SHIFT: u32 = 59;
const WITHIN_BITS: u64 = 7;
const KIND_SHIFT: u32 = 62;

const RAN: u64 = 0;
const RAN_LONG: u64 = 1;
const WOKE: u64 = 2; // + kind
const FORKED: u64 = 5;
const SLEPT: u64 = 6;
const WOKE_EXPLAINED: u64 = 7;
/// In place of a [`Kind`].
const SLEPT_EXPLAINED: u64 = 3;
/// In the argument of a run: a call ends it.
const CALLED: u32 = 1 << 28;
const MOST_SWITCHES: u32 = CALLED - 1;
const YIELDED: u32 = 0;
/// Operations have lower codes.
const JOINED: u32 = 1 << 8;
const PASSED: u32 = JOINED + 1;
const TOOK: u32 = JOINED + 2;
const PAGED: u32 = JOINED + 3;

/// Task ids from this number on do not fit a word.
pub(super) const TASK_LIMIT: u32 = NOBODY;

impl Log {
    /// Appends a deed after a run. Returns its position.
    pub fn push(&mut self, run: Nanos, deed: Deed) -> u32 {
        let mut run = run.0;
        if run >= RUN_LIMIT {
            self.words.push(RAN_LONG << 61 | run.min((1 << 61) - 1));
            run = 0;
        }
        let (tag, argument) = match deed {
            Deed::Ran { switches } => (RAN, switches.min(MOST_SWITCHES)),
            Deed::Woke { task, kind } => (WOKE + kind as u64, task.0),
            Deed::Forked(task) => (FORKED, task.0),
            Deed::Slept { waker, .. } => (SLEPT, waker.0.min(NOBODY)),
            Deed::Explained { slept: true } => (SLEPT, NOBODY),
            Deed::Explained { slept: false } => (WOKE_EXPLAINED, NOBODY),
            Deed::Called { did: Did::Yield, .. } => (RAN, CALLED | YIELDED),
            Deed::Called { did: Did::Joined(_), .. } => (RAN, CALLED | JOINED),
            Deed::Called { did: Did::Passed(_), .. } => (RAN, CALLED | PASSED),
            Deed::Called { did: Did::Took(_), .. } => (RAN, CALLED | TOOK),
            Deed::Called { did: Did::Paged(_), .. } => (RAN, CALLED | PAGED),
            Deed::Called { did: Did::Operation(operation), .. } => {
                (RAN, CALLED | u32::from(operation.pack().code))
            }
        };
        debug_assert!(argument <= NOBODY);
        let at = self.words.len() as u32;
        self.words.push(tag << 61 | u64::from(argument) << 32 | run);
        if let Deed::Slept { kind, pause, within, .. } = deed {
            let pause = pause.0.min(PAUSE_LIMIT - 1);
            self.words.push((kind as u64) << KIND_SHIFT | (within as u64) << WITHIN_SHIFT | pause);
        }
        if let Deed::Called { at, did } = deed {
            let (index, second) = match did {
                Did::Yield => (0, None),
                Did::Joined(task) => (task.0, None),
                Did::Passed(latch) | Did::Took(latch) => (latch, None),
                Did::Paged(time) => (0, Some(time.0)),
                Did::Operation(operation) => (operation.pack().index, operation.pack().second),
            };
            self.words.push(u64::from(at) << 32 | u64::from(index));
            self.words.push(second.unwrap_or_default());
        }
        if let Deed::Explained { slept: true } = deed {
            self.words.push(SLEPT_EXPLAINED << KIND_SHIFT);
        }
        at
    }

    /// A call explains the waking at `at`.
    pub fn explain_waking(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut(at as usize)
            && (WOKE..FORKED).contains(&(*word >> 61))
        {
            *word |= WOKE_EXPLAINED << 61;
        }
    }

    /// A call explains the sleep at `at`.
    pub fn explain_sleep(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut(at as usize + 1) {
            *word |= SLEPT_EXPLAINED << KIND_SHIFT;
        }
    }

    /// What the sleep at `at` was in.
    pub fn is_within(&mut self, at: u32, within: Within) {
        if let Some(word) = self.words.get_mut(at as usize + 1) {
            *word &= !(WITHIN_BITS << WITHIN_SHIFT);
            *word |= (within as u64) << WITHIN_SHIFT;
        }
    }

    /// Nothing explains the waking at `at` after all; a task did it.
    pub fn doubt_waking(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut(at as usize)
            && *word >> 61 == WOKE_EXPLAINED
        {
            *word = WOKE << 61 | *word & ((1 << 61) - 1);
        }
    }

    /// Nothing explains the sleep at `at` after all.
    pub fn doubt_sleep(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut(at as usize + 1) {
            *word &= (1 << KIND_SHIFT) - 1;
        }
    }

    /// Whether the task has done nothing yet.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The waking at `at` had no effect: only its run remains.
    pub fn forget_waking(&mut self, at: u32) {
        debug_assert!((WOKE..FORKED).contains(&(self.words[at as usize] >> 61)));
        self.words[at as usize] &= RUN_LIMIT - 1;
    }

    /// The sleep at `at`, so far without a waker, was ended by `waker`.
    pub fn name_waker(&mut self, at: u32, waker: TaskId) {
        let word = &mut self.words[at as usize];
        debug_assert_eq!(*word >> 61, SLEPT);
        *word = SLEPT << 61 | u64::from(waker.0.min(NOBODY)) << 32 | *word & (RUN_LIMIT - 1);
    }

    /// All runs with their deeds.
    pub fn entries(&self) -> impl Iterator<Item = (Nanos, Deed)> + '_ {
        self.places().map(|(_, run, deed)| (run, deed))
    }

    /// All runs with their deeds, and where they are.
    pub fn places(&self) -> impl Iterator<Item = (u32, Nanos, Deed)> + '_ {
        let mut words = self.words.iter();
        std::iter::from_fn(move || {
            let at = (self.words.len() - words.as_slice().len()) as u32;
            let word = *words.next()?;
            let argument = (word >> 32) as u32 & NOBODY;
            let deed = match word >> 61 {
                RAN if argument & CALLED != 0 => {
                    let (place, second) = (words.next()?, words.next().copied());
                    let (at, index) = ((place >> 32) as u32, *place as u32);
                    let did = match argument & !CALLED {
                        YIELDED => Did::Yield,
                        JOINED => Did::Joined(TaskId(index)),
                        PASSED => Did::Passed(index),
                        TOOK => Did::Took(index),
                        PAGED => Did::Paged(Nanos(second.unwrap_or_default())),
                        code => Did::Operation(Operation::unpack(code as u8, index, 0, second).0),
                    };
                    Deed::Called { at, did }
                }
                RAN => Deed::Ran { switches: argument },
                RAN_LONG => {
                    return Some((at, Nanos(word & ((1 << 61) - 1)), Deed::Ran { switches: 0 }));
                }
                WOKE_EXPLAINED => Deed::Explained { slept: false },
                FORKED => Deed::Forked(TaskId(argument)),
                SLEPT => {
                    let second = words.next().copied().unwrap_or(0);
                    if second >> KIND_SHIFT == SLEPT_EXPLAINED {
                        let run = Nanos(word & (RUN_LIMIT - 1));
                        return Some((at, run, Deed::Explained { slept: true }));
                    }
                    Deed::Slept {
                        waker: if argument == NOBODY { TaskId::NONE } else { TaskId(argument) },
                        kind: Kind::from_bits(second >> KIND_SHIFT),
                        pause: Nanos(second & (PAUSE_LIMIT - 1)),
                        within: Within::from_bits(second >> WITHIN_SHIFT & WITHIN_BITS),
                    }
                }
                tag => Deed::Woke { task: TaskId(argument), kind: Kind::from_bits(tag - WOKE) },
            };
            Some((at, Nanos(word & (RUN_LIMIT - 1)), deed))
        })
    }
}

impl Kind {
    /// Whether a waking of this kind can be the answer to one of `question`.
    pub fn is_like(self, question: Kind) -> bool {
        question != Kind::Softirq || self != Kind::Task
    }

    /// The inverse of `kind as u64`.
    pub fn from_bits(bits: u64) -> Kind {
        match bits {
            0 => Kind::Task,
            1 => Kind::Softirq,
            _ => Kind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Call, Until};

    fn slept_by(waker: TaskId, kind: Kind) -> Deed {
        Deed::Slept { waker, kind, pause: Nanos(9), within: Within::Nothing }
    }

    #[test]
    fn every_deed_is_read_as_it_was_pushed() {
        let kinds = [Kind::Task, Kind::Softirq, Kind::Unknown];
        let read =
            Operation::Read { pipe: 5, bytes: u64::MAX, until: Until::Any, call: Call::Begins };
        let mut deeds = vec![
            Deed::Ran { switches: 3 },
            Deed::Explained { slept: true },
            Deed::Called { at: 2, did: Did::Operation(read) },
            Deed::Called { at: u32::MAX, did: Did::Operation(Operation::Lock(9)) },
            Deed::Called { at: 0, did: Did::Yield },
            Deed::Called { at: 7, did: Did::Joined(TaskId(TASK_LIMIT - 1)) },
            Deed::Called { at: 8, did: Did::Passed(u32::MAX) },
            Deed::Called { at: 9, did: Did::Took(3) },
            Deed::Called { at: 9, did: Did::Paged(Nanos(u64::MAX)) },
            Deed::Explained { slept: false },
            Deed::Forked(TaskId(7)),
            Deed::Slept {
                waker: TaskId::NONE,
                kind: Kind::Task,
                pause: Nanos(PAUSE_LIMIT - 1),
                within: Within::Nothing,
            },
        ];
        for kind in kinds {
            let (task, pause) = (TaskId(TASK_LIMIT - 1), Nanos(0));
            let slept = Deed::Slept { waker: task, kind, pause, within: Within::Process };
            deeds.extend([Deed::Woke { task, kind }, slept]);
        }
        let mut log = Log::default();
        deeds.iter().for_each(|&deed| _ = log.push(Nanos(RUN_LIMIT - 1), deed));
        log.push(Nanos(RUN_LIMIT), Deed::Forked(TaskId(1)));
        let (runs, back): (Vec<_>, Vec<_>) = log.entries().unzip();
        assert_eq!(back[..deeds.len()], deeds);
        assert_eq!(runs[deeds.len() - 1..], [Nanos(RUN_LIMIT - 1), Nanos(RUN_LIMIT), Nanos::ZERO]);
    }

    #[test]
    fn a_waking_can_be_forgotten_and_a_waker_be_named_later() {
        let mut log = Log::default();
        let woke = log.push(Nanos(5), Deed::Woke { task: TaskId(3), kind: Kind::Unknown });
        let slept = log.push(Nanos(6), slept_by(TaskId::NONE, Kind::Unknown));
        log.forget_waking(woke);
        log.name_waker(slept, TaskId(4));
        let expected = slept_by(TaskId(4), Kind::Unknown);
        assert_eq!(
            log.entries().collect::<Vec<_>>(),
            [(Nanos(5), Deed::Ran { switches: 0 }), (Nanos(6), expected)]
        );
    }

    #[test]
    fn what_a_call_explains_can_be_doubted_later() {
        let mut log = Log::default();
        let woke = log.push(Nanos(5), Deed::Woke { task: TaskId(3), kind: Kind::Task });
        let slept = log.push(Nanos(6), slept_by(TaskId(4), Kind::Task));
        log.is_within(slept, Within::Futex);
        let before: Vec<_> = log.entries().collect();
        log.explain_waking(woke);
        log.explain_sleep(slept);
        assert_eq!(
            log.entries().collect::<Vec<_>>(),
            [
                (Nanos(5), Deed::Explained { slept: false }),
                (Nanos(6), Deed::Explained { slept: true })
            ]
        );
        log.doubt_waking(woke);
        log.doubt_sleep(slept);
        assert_eq!(log.entries().collect::<Vec<_>>(), before);
    }
}
