//! Reads a vector, and refuses what is none with file, line and what to do.

use crate::format::{Answer, Event, Flat, MAX_TIME, Op, not_json, within};
use crate::header::{Header, Kind};
use crate::ledger::Ledger;
use crate::lines::line;
use crate::program::{self, Action, Program};
use crate::property::Property;
use std::fmt;
use std::io::BufRead;
use std::path::Path;

/// The most lines of a vector.
const MAX_LINES: usize = 1_000_000;

/// A vector.
#[derive(Clone, PartialEq, Debug)]
pub struct Vector {
    /// Its first line.
    pub header: Header,
    /// The others.
    pub body: Body,
}

/// The lines after the header.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// Events, in order of time.
    History(Vec<Step>),
    /// Tasks, at least one.
    Scenario(Vec<Program>),
}

/// A line of a history.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Its number in the file.
    pub line: usize,
    /// What the subject receives.
    pub event: Event,
    /// What the kernel did.
    pub then: Answer,
}

/// A file that is no vector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unusable {
    /// The file.
    pub file: String,
    /// Its line, from 1; 0 if none is meant.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.file, self.what),
            line => write!(out, "{}:{line}: {}", self.file, self.what),
        }
    }
}

impl std::error::Error for Unusable {}

impl Vector {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Vector, Unusable> {
        Vector::parse(&path.display().to_string(), open(path)?)
    }

    /// Reads the lines of a vector; `file` is for errors.
    pub fn parse(file: &str, input: impl BufRead) -> Result<Vector, Unusable> {
        parse(file, input, Picks::Sound)
    }

    /// Reads a file to [judge](crate::judge()) it: what was picked may be wrong.
    pub fn read_to_judge(path: &Path) -> Result<Vector, Unusable> {
        Vector::parse_to_judge(&path.display().to_string(), open(path)?)
    }

    /// Reads lines to [judge](crate::judge()) them; `file` is for errors.
    ///
    /// The last step is the first pick of a sleeper, or of no task while one is ready. What
    /// follows it is not looked at.
    pub fn parse_to_judge(file: &str, input: impl BufRead) -> Result<Vector, Unusable> {
        parse(file, input, Picks::Any)
    }
}

/// Which picks a history may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Picks {
    /// Of ready tasks, and of none only where none is ready.
    Sound,
    Any,
}

fn open(path: &Path) -> Result<impl BufRead, Unusable> {
    std::fs::File::open(path).map(std::io::BufReader::new).map_err(|why| Unusable {
        file: path.display().to_string(),
        line: 0,
        what: format!("{why}; give a readable file"),
    })
}

fn parse(file: &str, mut input: impl BufRead, picks: Picks) -> Result<Vector, Unusable> {
    let mut line = 0;
    lines(&mut line, &mut input, picks).map_err(|what| Unusable { file: file.into(), line, what })
}

/// Reads all lines; `number` is that of the last one read.
fn lines(number: &mut usize, input: &mut impl BufRead, picks: Picks) -> Result<Vector, String> {
    let mut text = String::new();
    *number = 1;
    if !line(input, &mut text)? {
        return Err("the file is empty; its first line is the header of README.md".into());
    }
    let header: Header = serde_json::from_str(&text)
        .map_err(|why| format!("this is no header: {}", not_json(&why)))?;
    header.check()?;
    let (mut steps, mut programs, mut ledger) = (Vec::new(), Vec::new(), Ledger::default());
    while line(input, &mut text)? {
        *number += 1;
        if *number > MAX_LINES {
            return Err(format!("more than {MAX_LINES} lines; cut the vector"));
        }
        let mut flat: Flat = serde_json::from_str(&text).map_err(|why| not_json(&why))?;
        match header.kind {
            Kind::History => {
                if steps.last().is_some_and(|last: &Step| last.then.runs == Some(0)) {
                    return Err("the history is over when nobody runs; cut it there".into());
                }
                let step = step(*number, &mut flat)?;
                let wrong = step.then.runs.filter(|runs| ledger.wrong_pick(*runs).is_some());
                take(&mut ledger, &step)?;
                match (picks, wrong) {
                    (Picks::Sound, Some(0)) => {
                        return Err(
                            "nobody runs though a task is ready; end the history here".into()
                        );
                    }
                    (Picks::Sound, Some(task)) => {
                        return Err(format!("task {task} is not ready; pick a ready task"));
                    }
                    _ => steps.push(step),
                }
                if wrong.is_some() {
                    break;
                }
            }
            Kind::Scenario => programs.push(program(*number, &mut flat, &header, &programs)?),
        }
    }
    match header.kind {
        Kind::History if steps.is_empty() => Err("no event follows; add `reset`".into()),
        Kind::History => Ok(Vector { header, body: Body::History(steps) }),
        Kind::Scenario if programs.is_empty() => Err("no task follows; add one".into()),
        Kind::Scenario => {
            program::check(&programs, header.until.unwrap_or(1), header.tick.unwrap_or(1))?;
            Ok(Vector { header, body: Body::Scenario(programs) })
        }
    }
}

/// A line of a history.
fn step(line: usize, flat: &mut Flat) -> Result<Step, String> {
    if flat.begin.is_some() || flat.program.is_some() {
        return Err("`begin` and `program` are of scenarios; remove them".into());
    }
    let event = flat.event()?;
    let then = flat.then.take().unwrap_or_default();
    then.check()?;
    if then.error.is_some() {
        return Err("a kernel has no `error`; remove it".into());
    }
    if then.runs.is_some() && event.op != Op::Pick {
        return Err("`runs` is of `pick`; remove it".into());
    }
    if then.resched.is_some() && !event.op.may_resched() {
        return Err(format!("`{}` has no `resched`; remove it", event.op.name()));
    }
    Ok(Step { line, event, then })
}

/// The step happens, if it can.
fn take(ledger: &mut Ledger, step: &Step) -> Result<(), String> {
    ledger.apply(&step.event, step.then.runs)?;
    match step.then.tasks.iter().find(|state| !ledger.knows(state.task)) {
        Some(state) => Err(format!("task {} is unknown; declare it with `task`", state.task)),
        None => Ok(()),
    }
}

/// A task of a scenario.
fn program(
    line: usize,
    flat: &mut Flat,
    header: &Header,
    others: &[Program],
) -> Result<Program, String> {
    if flat.then.is_some() {
        return Err("`then` is of histories; remove it".into());
    }
    let Event { at: 0, op: Op::Task { task, weight, slice, vruntime, lag } } = flat.event()? else {
        return Err("a scenario has only `task` lines, at 0; remove this".into());
    };
    if others.iter().any(|other| other.task == task) {
        return Err(format!("task {task} exists; give each task one line"));
    }
    let begin = flat.begin.ok_or("`begin` is missing; add it")?;
    within("begin", begin, 0, MAX_TIME)?;
    let actions = flat.program.take().ok_or("`program` is missing; add it")?;
    let actions: Vec<Action> = actions
        .iter()
        .map(|(name, number)| Action::read(name, *number))
        .collect::<Result<_, _>>()?;
    if !actions.iter().any(|action| matches!(action, Action::Run(_))) {
        return Err("the program runs never; add [\"run\",ns]".into());
    }
    let is_fluid = actions.iter().all(|action| !matches!(action, Action::Yield));
    if let Some(name) = header
        .properties
        .iter()
        .find(|name| [Property::LagBound, Property::Share].contains(name) && !is_fluid)
    {
        return Err(format!(
            "a task that yields gives up its share, so `{}` says nothing; do not claim it",
            name.name()
        ));
    }
    Ok(Program { line, task, weight, slice, vruntime, lag, begin, actions })
}
