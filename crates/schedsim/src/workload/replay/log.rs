//! The recorded deeds of a task, in order. The scripts are written at the end, when all wakings are
//! classified as dependencies or delays.

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
    /// Slept, until `waker` ended it (`NONE`: an interrupt, or an unrecorded event).
    Slept { waker: TaskId, kind: Kind, pause: Nanos },
}

/// The log of one task.
///
/// A word is `tag (3 bits) | argument (29 bits) | run (32 bits)`; a sleep has a second word, `kind
/// (2 bits) | pause (62 bits)`; a run of 4.3 s or more stands in a word of its own before the deed.
#[derive(Debug, Default)]
pub(super) struct Log {
    words: Vec<u64>,
}

const NOBODY: u32 = (1 << 29) - 1;
const RUN_LIMIT: u64 = 1 << 32;
const PAUSE_LIMIT: u64 = 1 << 62;

const RAN: u64 = 0;
const RAN_LONG: u64 = 1;
const WOKE: u64 = 2; // + kind
const FORKED: u64 = 5;
const SLEPT: u64 = 6;

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
            Deed::Ran { switches } => (RAN, switches.min(NOBODY)),
            Deed::Woke { task, kind } => (WOKE + kind as u64, task.0),
            Deed::Forked(task) => (FORKED, task.0),
            Deed::Slept { waker, .. } => (SLEPT, waker.0.min(NOBODY)),
        };
        debug_assert!(argument <= NOBODY);
        let at = self.words.len() as u32;
        self.words.push(tag << 61 | u64::from(argument) << 32 | run);
        if let Deed::Slept { kind, pause, .. } = deed {
            self.words.push((kind as u64) << 62 | pause.0.min(PAUSE_LIMIT - 1));
        }
        at
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
        let mut words = self.words.iter();
        std::iter::from_fn(move || {
            let word = *words.next()?;
            let argument = (word >> 32) as u32 & NOBODY;
            let deed = match word >> 61 {
                RAN => Deed::Ran { switches: argument },
                RAN_LONG => {
                    return Some((Nanos(word & ((1 << 61) - 1)), Deed::Ran { switches: 0 }));
                }
                FORKED => Deed::Forked(TaskId(argument)),
                SLEPT => {
                    let second = words.next().copied().unwrap_or(0);
                    Deed::Slept {
                        waker: if argument == NOBODY { TaskId::NONE } else { TaskId(argument) },
                        kind: Kind::from_bits(second >> 62),
                        pause: Nanos(second & (PAUSE_LIMIT - 1)),
                    }
                }
                tag => Deed::Woke { task: TaskId(argument), kind: Kind::from_bits(tag - WOKE) },
            };
            Some((Nanos(word & (RUN_LIMIT - 1)), deed))
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

    #[test]
    fn every_deed_is_read_as_it_was_pushed() {
        let kinds = [Kind::Task, Kind::Softirq, Kind::Unknown];
        let mut deeds = vec![
            Deed::Ran { switches: 3 },
            Deed::Forked(TaskId(7)),
            Deed::Slept { waker: TaskId::NONE, kind: Kind::Task, pause: Nanos(PAUSE_LIMIT - 1) },
        ];
        for kind in kinds {
            let (task, pause) = (TaskId(TASK_LIMIT - 1), Nanos(0));
            deeds.extend([Deed::Woke { task, kind }, Deed::Slept { waker: task, kind, pause }]);
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
        let slept = log.push(
            Nanos(6),
            Deed::Slept { waker: TaskId::NONE, kind: Kind::Unknown, pause: Nanos(9) },
        );
        log.forget_waking(woke);
        log.name_waker(slept, TaskId(4));
        let expected = Deed::Slept { waker: TaskId(4), kind: Kind::Unknown, pause: Nanos(9) };
        assert_eq!(
            log.entries().collect::<Vec<_>>(),
            [(Nanos(5), Deed::Ran { switches: 0 }), (Nanos(6), expected)]
        );
    }
}
