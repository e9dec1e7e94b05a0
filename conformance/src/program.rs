//! What the tasks of a scenario do.

use crate::format::{MAX_TIME, MAX_WEIGHT, within};

/// The most events that a scenario can have.
const MAX_EVENTS: i128 = 1_000_000;

/// What a task of a scenario does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Uses this CPU time, in ns.
    Run(i64),
    /// Sleeps, in ns.
    Sleep(i64),
    /// Calls `sched_yield`.
    Yield,
    /// Gets this weight.
    Weight(u32),
}

impl Action {
    /// The action of this name and number.
    pub(crate) fn read(name: &str, number: i64) -> Result<Action, String> {
        let time = || within(name, number, 1, MAX_TIME);
        match name {
            "run" => Ok(Action::Run(time()?)),
            "sleep" => Ok(Action::Sleep(time()?)),
            "yield" => Ok(Action::Yield),
            "weight" => Ok(Action::Weight(within(name, number, 1, i64::from(MAX_WEIGHT))? as u32)),
            _ => Err("an action is none of run, sleep, yield, weight; give one".into()),
        }
    }
}

/// A task of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its line in the file.
    pub line: usize,
    /// Its number.
    pub task: u32,
    /// Its weight at the beginning.
    pub weight: u32,
    /// Its request, in ns.
    pub slice: i64,
    /// Its virtual run time at the beginning, for CFS.
    pub vruntime: i64,
    /// The lag that it keeps from before, in virtual ns.
    pub lag: i64,
    /// When it joins, in ns.
    pub begin: i64,
    /// What it does, again and again. There is a [`Run`](Action::Run) among it.
    pub actions: Vec<Action>,
}

impl Program {
    /// Whether it never sleeps.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.actions.iter().any(|action| matches!(action, Action::Sleep(_)))
    }

    /// The most events that it can cause until `until`.
    pub(crate) fn most_events(&self, until: i64) -> i128 {
        let time = self.actions.iter().map(|action| match action {
            Action::Run(time) | Action::Sleep(time) => i128::from(*time),
            _ => 0,
        });
        let cycles = i128::from(until) / time.sum::<i128>().max(1) + 1;
        cycles * (3 * self.actions.len() as i128)
    }
}

/// Whether these programs end within reason. The error is a sentence.
pub(crate) fn check(programs: &[Program], until: i64, tick: i64) -> Result<(), String> {
    let events: i128 = programs.iter().map(|program| program.most_events(until)).sum();
    match events + 2 * i128::from(until / tick) > MAX_EVENTS {
        true => Err(format!("this can take more than {MAX_EVENTS} events; lower `until`")),
        false => Ok(()),
    }
}
