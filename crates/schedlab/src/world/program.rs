//! What runs: a workload that is ready, with the machine that the simulator runs it on.

use super::By;
use crate::Error;
use crate::experiment::{Recorded, Subject};
use crate::results_directory::{Distribution, distributions};
use crate::workload::{ClosedWorkload, Stochastic};
use results::{Point, Row, World};
use schedsim::{Machine, Time, workload};
use std::path::PathBuf;
use std::sync::Arc;

/// A workload.
#[derive(Clone, Debug)]
pub enum Program {
    /// A recording, to be replayed.
    Replay(Box<Replay>),
    /// Tasks that go through phases.
    Closed(Box<Closed>),
    /// So many tasks that only yield: `yield:8`. In a guest the instructions of a yield are counted; elsewhere it is what its tasks are.
    Yields(u32, Box<Closed>),
    /// Tasks drawn from distributions.
    Open(Arc<Stochastic>),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// A recording, as it was or changed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Where the recording is.
    pub path: PathBuf,
    /// What was recorded.
    pub recorded: Arc<Recorded>,
    /// The machine in a sentence.
    pub told: String,
    /// In what the replay differs from it.
    pub changed: Option<Changed>,
}

/// A recorded workload in other conditions.
#[derive(Clone, Debug)]
pub struct Changed {
    /// What its tasks do.
    pub workload: workload::Workload,
    /// On what.
    pub machine: Machine,
    /// When it is stopped.
    pub until: Time,
    /// The changes, as coordinates of results.
    pub point: Point,
    /// The same in a sentence.
    pub told: String,
}

/// Tasks that go through phases.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The workload.
    pub workload: ClosedWorkload,
    /// What its tasks do.
    pub scripts: workload::Workload,
    /// What the simulator runs it on.
    pub machine: Machine,
    /// The machine in a sentence.
    pub told: String,
    /// How many million instructions per second its CPUs do, if operations on ready queues are to be charged.
    pub mips: Option<f64>,
    /// Further coordinates of results.
    pub point: Point,
}

impl Program {
    /// What to call it.
    pub fn name(&self) -> String {
        match self {
            Program::Replay(replay) => replay.recorded.name.clone(),
            Program::Closed(closed) | Program::Yields(_, closed) => closed.workload.name().to_string(),
            Program::Open(workload) => workload.name.clone(),
            Program::Command(words) => words.join(" "),
        }
    }

    /// The names of its tasks, each once, in order; empty if its tasks have no names of their own.
    pub fn programs(&self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Program::Replay(replay) => {
                let workload = replay.changed.as_ref().map_or(&replay.recorded.workload, |changed| &changed.workload);
                workload.tasks.iter().map(|task| task.info.name.clone()).collect()
            }
            Program::Closed(closed) | Program::Yields(_, closed) => {
                closed.workload.description().tasks.iter().map(|tasks| tasks.name.clone()).collect()
            }
            Program::Open(_) | Program::Command(_) => Vec::new(),
        };
        names.sort();
        names.dedup();
        names
    }

    /// The coordinates of its results.
    pub fn point(&self) -> Point {
        match self {
            Program::Replay(replay) => replay.changed.as_ref().map(|changed| changed.point.clone()).unwrap_or_default(),
            Program::Closed(closed) | Program::Yields(_, closed) => closed.point.clone(),
            Program::Open(workload) => Point::read(&workload.parameters),
            Program::Command(_) => Point::new(),
        }
    }

    /// What a reader must know first.
    pub fn headline(&self) -> String {
        match self {
            Program::Replay(replay) => replay.recorded.headline(),
            Program::Closed(closed) | Program::Yields(_, closed) => closed.workload.headline(),
            Program::Open(workload) => format!("{workload}\n"),
            Program::Command(_) => format!("{}\n", self.name()),
        }
    }

    /// What the simulator runs it on, in a sentence.
    pub fn machine(&self) -> Option<&str> {
        match self {
            Program::Replay(replay) => Some(&replay.told),
            Program::Closed(closed) | Program::Yields(_, closed) => Some(&closed.told),
            Program::Open(_) | Program::Command(_) => None,
        }
    }

    /// Whether it is a recording in other conditions than its own.
    pub fn is_changed(&self) -> bool {
        self.change().is_some()
    }

    /// In what a replay differs from its recording, in a sentence.
    pub fn change(&self) -> Option<&str> {
        match self {
            Program::Replay(replay) => replay.changed.as_ref().map(|changed| changed.told.as_str()),
            _ => None,
        }
    }

    /// The tasks that go through phases, if it is made of such.
    pub fn closed(&self) -> Option<&ClosedWorkload> {
        match self {
            Program::Closed(closed) | Program::Yields(_, closed) => Some(&closed.workload),
            _ => None,
        }
    }

    /// Whether its tasks are drawn: candidates are compared over equal draws then.
    pub fn is_drawn(&self) -> bool {
        matches!(self, Program::Open(_))
    }

    /// What is simulated, if it is scripts.
    pub fn subject<'a>(&'a self, name: &'a str) -> Option<Subject<'a>> {
        match self {
            Program::Replay(replay) => Some(match &replay.changed {
                None => replay.recorded.subject(),
                Some(Changed { workload, machine, until, .. }) => Subject { workload, machine, until: *until, ..replay.recorded.subject() },
            }),
            Program::Closed(closed) | Program::Yields(_, closed) => {
                let Closed { workload, scripts, machine, mips, .. } = &**closed;
                Some(Subject { name, ..Subject::of_closed(workload, scripts, machine, *mips) })
            }
            Program::Open(_) | Program::Command(_) => None,
        }
    }

    /// The recording that a replay is of, as rows.
    pub fn recorded(&self) -> Option<(Replay, Vec<Row>)> {
        let Program::Replay(replay) = self else { return None };
        let recorded = &replay.recorded;
        let of = |row: Row| Row {
            workload: recorded.name.clone(),
            candidate: "recorded".to_string(),
            cpus: recorded.recording.cpus,
            runs: 1,
            ..row
        };
        let rows = super::rows_of(&recorded.summary, &World::Recorded).into_iter().map(of).collect();
        Some((Replay { changed: None, ..(**replay).clone() }, rows))
    }

    /// The rows of the parts of the recording that it is a replay of.
    pub fn recorded_parts(&self, by: By) -> Vec<Row> {
        let Program::Replay(replay) = self else { return Vec::new() };
        let Recorded { name, recording, summary, .. } = &*replay.recorded;
        let rows = super::parts::rows(summary, &recording.tasks, by, &World::Recorded).into_iter();
        rows.map(|row| Row { workload: name.clone(), candidate: "recorded".to_string(), cpus: recording.cpus, runs: 1, ..row }).collect()
    }

    /// How durations are distributed in the recording that it is a replay of.
    pub fn distributions(&self) -> Vec<Distribution> {
        let Program::Replay(replay) = self else { return Vec::new() };
        let recorded = &replay.recorded;
        let case =
            distributions::Case { workload: &recorded.name, candidate: "recorded", world: "recorded", cpus: recorded.recording.cpus };
        Distribution::of_case(case, &[&recorded.summary])
    }

    /// Refuses what only real tasks can be asked to do.
    pub(crate) fn expect_closed(&self, refusal: impl FnOnce(&str) -> Error) -> Result<&ClosedWorkload, Error> {
        self.closed().ok_or_else(|| refusal(&self.name()))
    }
}
