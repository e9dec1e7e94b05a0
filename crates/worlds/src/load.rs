//! Workloads that are ready to run, with the machine for the simulator.

use super::By;
use crate::experiment::{Recorded, Subject};
use formats::workload::{ClosedWorkload, Stochastic};
use program::Error;
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
    /// This many tasks that only yield: `yield:8`. In a guest the instructions of a yield are
    /// counted; elsewhere these are ordinary tasks.
    Yields(u32, Box<Closed>),
    /// Tasks drawn from distributions.
    Open(Arc<Stochastic>),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// A recording, unchanged or in other conditions.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The path of the recording.
    pub path: PathBuf,
    /// What was recorded.
    pub recorded: Arc<Recorded>,
    /// The machine in a sentence.
    pub told: String,
    /// How the replay differs from the recording.
    pub changed: Option<Changed>,
}

/// A recorded workload in other conditions.
#[derive(Clone, Debug)]
pub struct Changed {
    /// What its tasks do.
    pub workload: workload::Workload,
    /// The machine.
    pub machine: Machine,
    /// When it is stopped.
    pub until: Time,
    /// The changes, as coordinates of results.
    pub point: Point,
    /// The changes in a sentence.
    pub told: String,
}

/// Tasks that go through phases.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The workload.
    pub workload: ClosedWorkload,
    /// What its tasks do.
    pub scripts: workload::Workload,
    /// The machine for the simulator.
    pub machine: Machine,
    /// The machine in a sentence.
    pub told: String,
    /// The speed of its CPUs in million instructions per second, if operations on ready queues are
    /// charged.
    pub mips: Option<f64>,
    /// Further coordinates of results.
    pub point: Point,
}

impl Closed {
    /// A workload on a machine, without costs of ready queues.
    ///
    /// # Errors
    /// If it does not fit the machine.
    pub fn on(workload: ClosedWorkload, machine: Machine) -> Result<Closed, Error> {
        let scripts = workload.scripts(machine.cpus)?;
        let (told, point) = (String::new(), Point::new());
        Ok(Closed { workload, scripts, machine, told, mips: None, point })
    }
}

impl Program {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Program::Replay(replay) => replay.recorded.name.clone(),
            Program::Closed(closed) | Program::Yields(_, closed) => {
                closed.workload.name().to_string()
            }
            Program::Open(workload) => workload.name.clone(),
            Program::Command(words) => words.join(" "),
        }
    }

    /// The names of its tasks, each once, in order; empty if its tasks have no names of their own.
    pub fn programs(&self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Program::Replay(replay) => {
                let workload = replay
                    .changed
                    .as_ref()
                    .map_or(&replay.recorded.workload, |changed| &changed.workload);
                workload.tasks.iter().map(|task| task.info.name.clone()).collect()
            }
            Program::Closed(closed) | Program::Yields(_, closed) => closed
                .workload
                .description()
                .tasks
                .iter()
                .map(|tasks| tasks.program().to_string())
                .collect(),
            Program::Open(_) | Program::Command(_) => Vec::new(),
        };
        names.sort();
        names.dedup();
        names
    }

    /// The coordinates of its results.
    pub fn point(&self) -> Point {
        match self {
            Program::Replay(replay) => {
                replay.changed.as_ref().map(|changed| changed.point.clone()).unwrap_or_default()
            }
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

    /// The machine for the simulator, in a sentence.
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

    /// How a replay differs from its recording, in a sentence.
    pub fn change(&self) -> Option<&str> {
        match self {
            Program::Replay(replay) => replay.changed.as_ref().map(|changed| changed.told.as_str()),
            _ => None,
        }
    }

    /// The tasks in phases, if it is made of such.
    pub fn closed(&self) -> Option<&ClosedWorkload> {
        match self {
            Program::Closed(closed) | Program::Yields(_, closed) => Some(&closed.workload),
            _ => None,
        }
    }

    /// The program and its arguments, if it is a command.
    pub fn command(&self) -> Option<&[String]> {
        if let Program::Command(words) = self { Some(words) } else { None }
    }

    /// Whether its tasks are drawn. Candidates are then compared over equal draws.
    pub fn is_drawn(&self) -> bool {
        matches!(self, Program::Open(_))
    }

    /// The scripts that are simulated, if it is made of scripts.
    pub fn subject<'a>(&'a self, name: &'a str) -> Option<Subject<'a>> {
        match self {
            Program::Replay(replay) => Some(match &replay.changed {
                None => replay.recorded.subject(),
                Some(Changed { workload, machine, until, .. }) => {
                    Subject { workload, machine, until: *until, ..replay.recorded.subject() }
                }
            }),
            Program::Closed(closed) | Program::Yields(_, closed) => {
                let Closed { workload, scripts, machine, mips, .. } = &**closed;
                Some(Subject { name, ..Subject::of_closed(workload, scripts, machine, *mips) })
            }
            Program::Open(_) | Program::Command(_) => None,
        }
    }

    /// The rows of the recording that it replays.
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
        let rows =
            super::rows_of(&recorded.summary, &World::Recorded).into_iter().map(of).collect();
        Some((Replay { changed: None, ..(**replay).clone() }, rows))
    }

    /// The rows of the parts of that recording.
    pub fn recorded_parts(&self, by: By) -> Vec<Row> {
        let Program::Replay(replay) = self else { return Vec::new() };
        let Recorded { name, recording, summary, .. } = &*replay.recorded;
        let rows = super::parts::rows(summary, &recording.tasks, by, &World::Recorded).into_iter();
        rows.map(|row| Row {
            workload: name.clone(),
            candidate: "recorded".to_string(),
            cpus: recording.cpus,
            runs: 1,
            ..row
        })
        .collect()
    }

    /// Refuses a workload that only real tasks can run.
    pub(crate) fn expect_closed(
        &self,
        refusal: impl FnOnce(&str) -> Error,
    ) -> Result<&ClosedWorkload, Error> {
        self.closed().ok_or_else(|| refusal(&self.name()))
    }
}
