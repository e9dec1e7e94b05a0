//! The script of a task: run for a time, then act; eight bytes a step.

use super::Operation;
use crate::{Nanos, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// A run and an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The CPU time.
    pub run: Nanos,
    /// The action after it.
    pub then: Action,
}

/// A task's action after a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Continues with the next step.
    Continue,
    /// Sleeps for a time: a timer, a device, a person.
    Sleep(Nanos),
    /// Waits for a token; each [`Action::Wake`] that names this task gives one. An early token is
    /// kept.
    Wait,
    /// Gives `task` a token, and wakes it if it waits for one.
    Wake(TaskId),
    /// Creates a task.
    Fork(TaskId),
    /// Gives up the rest of its slice.
    Yield,
    /// Ends.
    Exit,
    /// An operation on shared objects, or on the order of the task's own steps.
    Do(Operation),
}

impl Action {
    /// Whether the task blocks or may block: its CPU burst ends.
    pub fn ends_burst(self) -> bool {
        match self {
            Action::Sleep(_) | Action::Wait | Action::Exit => true,
            Action::Do(operation) => operation.may_block(),
            Action::Continue | Action::Wake(_) | Action::Fork(_) | Action::Yield => false,
        }
    }
}

/// A sequence of [`Step`]s, packed.
///
/// A word is `action (3 bits) | argument (29 bits) | run (32 bits)`. A run of 4.3 s or more is a
/// separate `Continue` word, whose run has 61 bits. A sleep of 0.54 s or more is in a second word.
/// A yield and all [`Operation`]s, which recordings do not need, share one action. Most have a
/// second word; their argument is `code (5 bits) | index (24 bits)`, and a jump has its target in
/// place of the run.
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
const OTHER: u64 = 6;
const EXIT: u64 = 7;

const CODE_SHIFT: u32 = 24;
/// The code of a yield; operations have higher ones.
const YIELD: u64 = 0;

impl Script {
    /// An empty script: the task ends at once.
    pub fn new() -> Script {
        Script::default()
    }

    /// Appends a step.
    ///
    /// # Panics
    /// If a task id is 2^29 or more, or a run is 2^61 ns or more. If a shared object has a number
    /// of 2^24 or more.
    pub fn push(&mut self, run: Nanos, then: Action) {
        let mut run = run.0;
        let (tag, argument, second) = match then {
            Action::Continue => (CONTINUE, 0, None),
            Action::Sleep(pause) if pause.0 < ARGUMENT_LIMIT => (SLEEP, pause.0, None),
            Action::Sleep(pause) => (SLEEP_LONG, 0, Some(pause.0)),
            Action::Wait => (WAIT, 0, None),
            Action::Wake(task) => (WAKE, u64::from(task.0), None),
            Action::Fork(task) => (FORK, u64::from(task.0), None),
            Action::Yield => (OTHER, YIELD << CODE_SHIFT, None),
            Action::Exit => (EXIT, 0, None),
            Action::Do(operation) => {
                let packed = operation.pack();
                assert!(
                    packed.index < 1 << CODE_SHIFT,
                    "a script can name what has a number below 2^24, not {}",
                    packed.index
                );
                (
                    OTHER,
                    u64::from(packed.code) << CODE_SHIFT | u64::from(packed.index),
                    packed.second,
                )
            }
        };
        let jumps_to = if let Action::Do(operation) = then { operation.jumps_to() } else { None };
        assert!(
            argument < ARGUMENT_LIMIT,
            "a script can name tasks below 2^29 only, not {argument}"
        );
        if run >= RUN_LIMIT || tag == CONTINUE || jumps_to.is_some() && run > 0 {
            assert!(run < 1 << 61, "a run of {run} ns does not fit a script");
            self.words.push(run);
            run = 0;
            if tag == CONTINUE {
                return;
            }
        }
        self.words.push(tag << 61 | argument << 32 | jumps_to.map_or(run, u64::from));
        self.words.extend(second);
    }

    /// The cursor of the step that will be appended next.
    pub fn end(&self) -> u32 {
        self.words.len() as u32
    }

    /// Releases unused memory.
    pub fn shrink(&mut self) {
        self.words.shrink_to_fit();
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The steps as words.
    #[inline]
    pub fn words(&self) -> Words<'_> {
        Words(&self.words)
    }

    /// The step at `cursor`, which advances; `None` at the end. A cursor starts at 0.
    #[inline]
    pub fn next(&self, cursor: &mut u32) -> Option<Step> {
        self.words().next(cursor)
    }

    /// All steps.
    pub fn steps(&self) -> Steps<'_> {
        self.steps_from(0)
    }

    /// The steps from `cursor` on.
    pub fn steps_from(&self, cursor: u32) -> Steps<'_> {
        Steps { script: self, cursor }
    }

    /// The CPU time of the script with all loop iterations, and each handler of a set once a wait; [`Nanos::MAX`] if it is infinite.
    pub fn demand(&self) -> Nanos {
        let repeat = |step: Step| {
            if let Action::Do(Operation::Repeat { begin, .. }) = step.then {
                Some(begin)
            } else {
                None
            }
        };
        let mut at_begins: BTreeMap<u32, Nanos> =
            self.steps().filter_map(repeat).map(|begin| (begin, Nanos::ZERO)).collect();
        let (mut cursor, mut demand, mut jumps) = (0, Nanos::ZERO, BTreeSet::new());
        loop {
            at_begins.entry(cursor).and_modify(|before| *before = demand);
            let Some(step) = self.next(&mut cursor) else { return demand };
            demand += step.run;
            match step.then {
                Action::Exit => return demand,
                Action::Do(Operation::Repeat { begin, times, .. }) => {
                    if times == Operation::FOREVER {
                        return Nanos::MAX;
                    }
                    let body = demand - at_begins[&begin];
                    demand += Nanos(body.0.saturating_mul(times - 1));
                }
                Action::Do(Operation::Exec { begin }) if !jumps.insert(begin) => return Nanos::MAX,
                Action::Do(Operation::Exec { begin }) => cursor = begin,
                _ => {}
            }
        }
    }

    /// The memory of the steps.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// The steps of a script, without the script: the engine reads a table of these.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [u64]);

impl Words<'_> {
    /// The step at `cursor`, which advances; `None` at the end. A cursor starts at 0.
    #[inline]
    pub fn next(self, cursor: &mut u32) -> Option<Step> {
        let word = *self.0.get(*cursor as usize)?;
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
                Action::Sleep(Nanos(self.0[*cursor as usize - 1]))
            }
            WAIT => Action::Wait,
            WAKE => Action::Wake(TaskId(argument as u32)),
            FORK => Action::Fork(TaskId(argument as u32)),
            OTHER if argument >> CODE_SHIFT == YIELD => Action::Yield,
            OTHER => {
                let second = self.0.get(*cursor as usize).copied();
                let (operation, words) = Operation::unpack(
                    (argument >> CODE_SHIFT) as u8,
                    argument as u32 & ((1 << CODE_SHIFT) - 1),
                    word as u32,
                    second,
                );
                *cursor += words;
                let run = if operation.jumps_to().is_some() { Nanos::ZERO } else { run };
                return Some(Step { run, then: Action::Do(operation) });
            }
            _ => Action::Exit,
        };
        Some(Step { run, then })
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
    use super::super::{Call, Until, Watched};
    use super::*;
    use crate::Time;

    #[test]
    fn every_step_is_read_as_it_was_pushed() {
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
        let most = (1 << CODE_SHIFT) - 1;
        let operations = [
            Operation::Lock(most),
            Operation::Unlock(0),
            Operation::Await { condition: most, mutex: u32::MAX },
            Operation::Signal(1),
            Operation::Broadcast(2),
            Operation::Arrive(3),
            Operation::Read { pipe: 4, bytes: u64::MAX, until: Until::All, call: Call::Begins },
            Operation::Read { pipe: 4, bytes: 9, until: Until::Any, call: Call::Begins },
            Operation::Write { pipe: 5, bytes: 1, call: Call::Begins },
            Operation::Send { end: most, bytes: 1 },
            Operation::Post { eventfd: 6, count: u64::MAX - 1 },
            Operation::Take(7),
            Operation::Serve(most),
            Operation::Handle(0),
            Operation::Poll(most),
            Operation::Watch { epoll: most, object: Watched::Room(u32::MAX), on: true },
            Operation::Watch { epoll: 0, object: Watched::Pipe(0), on: false },
            Operation::SleepUntil(Time(u64::MAX)),
            Operation::Receive { end: 2, bytes: u64::MAX, until: Until::All },
            Operation::Receive { end: 3, bytes: 1, until: Until::Any },
            Operation::Timer { timer: 6, period: Nanos(u64::MAX) },
            Operation::Io { device: 7, service: Nanos(1) },
            Operation::Fork(8),
            Operation::Join(9),
            Operation::Exec { begin: u32::MAX },
            Operation::Repeat { begin: u32::MAX, depth: u8::MAX, times: 1 },
            Operation::Repeat { begin: 0, depth: 0, times: Operation::FOREVER },
        ];
        let actions: Vec<Action> = actions.into_iter().chain(operations.map(Action::Do)).collect();
        for run in [0, 1, RUN_LIMIT - 1, RUN_LIMIT, (1 << 61) - 1].map(Nanos) {
            for &then in &actions {
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

    #[test]
    fn a_loop_asks_for_its_work_each_time_and_an_endless_one_for_ever() {
        let repeat =
            |begin, depth, times| (Nanos(0), Action::Do(Operation::Repeat { begin, depth, times }));
        let run = |ns| (Nanos(ns), Action::Yield);
        let script: Script =
            [run(5), run(7), repeat(1, 1, 3), repeat(0, 0, 2), (Nanos(1), Action::Exit)]
                .into_iter()
                .collect();
        assert_eq!(script.demand(), Nanos(2 * (5 + 3 * 7) + 1));
        let script: Script = [run(5), repeat(0, 0, Operation::FOREVER)].into_iter().collect();
        assert_eq!(script.demand(), Nanos::MAX);
    }
}
