//! What a task does, eight bytes a step: run for a while, then act.

use crate::{Nanos, TaskId};

/// Run, then do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// CPU time first.
    pub run: Nanos,
    /// Then this.
    pub then: Action,
}

/// What a task does when it has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Goes on with the next step.
    Continue,
    /// Sleeps for a time: a timer, a device, a person.
    Sleep(Nanos),
    /// Waits for a token; each [`Action::Wake`] that names this task is one. A token that comes first is kept.
    Wait,
    /// Gives `task` a token, and wakes it if it waits for one.
    Wake(TaskId),
    /// Brings a task into being.
    Fork(TaskId),
    /// Gives up the rest of its slice.
    Yield,
    /// Ends.
    Exit,
}

impl Action {
    /// Whether the CPU burst is over: the task leaves the CPU and is not runnable.
    pub fn ends_burst(self) -> bool {
        matches!(self, Action::Sleep(_) | Action::Wait | Action::Exit)
    }
}

/// A sequence of [`Step`]s, packed.
///
/// A word is `action (3 bits) | argument (29 bits) | run (32 bits)`. A run of 4.3 s or more is a `Continue` word of its own, whose run has 61
/// bits; a sleep of 0.54 s or more stands in a second word.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    words: Vec<u64>,
}

const ARGUMENT_BITS: u32 = 29;
const ARGUMENT_LIMIT: u64 = 1 << ARGUMENT_BITS;
const RUN_LIMIT: u64 = 1 << 32;

const CONTINUE: u64 = 0;
const SLEEP: u64 = 1;
const SLEEP_LONG: u64 = 2;
const WAIT: u64 = 3;
const WAKE: u64 = 4;
const FORK: u64 = 5;
const YIELD: u64 = 6;
const EXIT: u64 = 7;

impl Script {
    /// An empty script: the task ends at once.
    pub fn new() -> Script {
        Script::default()
    }

    /// Appends a step.
    ///
    /// # Panics
    /// If a task id is 2^29 or more, or a run is 2^61 ns or more.
    pub fn push(&mut self, run: Nanos, then: Action) {
        let mut run = run.0;
        let (tag, argument, second) = match then {
            Action::Continue => (CONTINUE, 0, None),
            Action::Sleep(pause) if pause.0 < ARGUMENT_LIMIT => (SLEEP, pause.0, None),
            Action::Sleep(pause) => (SLEEP_LONG, 0, Some(pause.0)),
            Action::Wait => (WAIT, 0, None),
            Action::Wake(task) => (WAKE, u64::from(task.0), None),
            Action::Fork(task) => (FORK, u64::from(task.0), None),
            Action::Yield => (YIELD, 0, None),
            Action::Exit => (EXIT, 0, None),
        };
        assert!(argument < ARGUMENT_LIMIT, "a script can name tasks below 2^29 only, not {argument}");
        if run >= RUN_LIMIT || tag == CONTINUE {
            assert!(run < 1 << 61, "a run of {run} ns does not fit a script");
            self.words.push(run);
            run = 0;
            if tag == CONTINUE {
                return;
            }
        }
        self.words.push(tag << 61 | argument << 32 | run);
        self.words.extend(second);
    }

    /// Gives back the memory that growing has reserved.
    pub fn shrink(&mut self) {
        self.words.shrink_to_fit();
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The step at `cursor`, which moves on; `None` at the end. A cursor starts at 0.
    #[inline]
    pub fn next(&self, cursor: &mut u32) -> Option<Step> {
        let word = *self.words.get(*cursor as usize)?;
        *cursor += 1;
        let argument = word >> 32 & (ARGUMENT_LIMIT - 1);
        let run = Nanos(word & (RUN_LIMIT - 1));
        let then = match word >> 61 {
            CONTINUE => {
                return Some(Step { run: Nanos(word), then: Action::Continue });
            }
            SLEEP => Action::Sleep(Nanos(argument)),
            SLEEP_LONG => {
                *cursor += 1;
                Action::Sleep(Nanos(self.words[*cursor as usize - 1]))
            }
            WAIT => Action::Wait,
            WAKE => Action::Wake(TaskId(argument as u32)),
            FORK => Action::Fork(TaskId(argument as u32)),
            YIELD => Action::Yield,
            _ => Action::Exit,
        };
        Some(Step { run, then })
    }

    /// All steps.
    pub fn steps(&self) -> Steps<'_> {
        self.steps_from(0)
    }

    /// The steps from `cursor` on.
    pub fn steps_from(&self, cursor: u32) -> Steps<'_> {
        Steps { script: self, cursor }
    }

    /// The CPU time of all steps.
    pub fn demand(&self) -> Nanos {
        self.steps().map(|step| step.run).sum()
    }

    /// What the steps occupy in memory.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

impl FromIterator<(Nanos, Action)> for Script {
    fn from_iter<I: IntoIterator<Item = (Nanos, Action)>>(steps: I) -> Script {
        let mut script = Script::new();
        steps.into_iter().for_each(|(run, then)| script.push(run, then));
        script
    }
}

/// Iterates over the steps of a script.
pub struct Steps<'a> {
    script: &'a Script,
    cursor: u32,
}

impl Iterator for Steps<'_> {
    type Item = Step;
    fn next(&mut self) -> Option<Step> {
        self.script.next(&mut self.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_comes_back_as_it_was_pushed() {
        let actions = [
            Action::Sleep(Nanos(0)),
            Action::Sleep(Nanos(ARGUMENT_LIMIT - 1)),
            Action::Sleep(Nanos(ARGUMENT_LIMIT)),
            Action::Sleep(Nanos(u64::MAX)),
            Action::Wait,
            Action::Wake(TaskId(0)),
            Action::Wake(TaskId(ARGUMENT_LIMIT as u32 - 1)),
            Action::Fork(TaskId(7)),
            Action::Yield,
            Action::Exit,
        ];
        for run in [0, 1, RUN_LIMIT - 1, RUN_LIMIT, (1 << 61) - 1].map(Nanos) {
            for then in actions {
                let script: Script = [(run, then)].into_iter().collect();
                let steps: Vec<Step> = script.steps().collect();
                assert_eq!(steps.iter().map(|step| step.run).sum::<Nanos>(), run);
                assert_eq!(steps.last().map(|step| step.then), Some(then));
                assert!(steps[..steps.len() - 1].iter().all(|step| step.then == Action::Continue));
            }
        }
    }

    #[test]
    fn a_short_burst_costs_eight_bytes() {
        let mut script: Script = (0..1000).map(|n| (Nanos(n), Action::Wait)).collect();
        script.shrink();
        assert_eq!(script.bytes(), 8 * 1000);
    }
}
