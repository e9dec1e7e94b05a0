//! Worlds: where a workload runs under a candidate.
//!
//! A [`World`] turns [`Session`]s into [`Run`]s. It states what it can supply and refuses by name
//! what it cannot. It knows no statistics. The laboratory decides how often a session is repeated,
//! what runs are compared with and what is printed; it knows no world by name.

pub mod candidate;
pub mod compiled;
pub mod driver;
pub mod examinee;
pub mod experiment;
mod failure;
pub mod guest;
pub mod host;
pub mod load;
pub mod mock;
pub mod parts;
pub mod printed;
pub mod sandbox;
pub mod setting;
pub mod simulator;
pub mod stranger;
pub mod this_machine;
pub mod vm;

pub use candidate::Candidate;
pub use load::{Program, Replay};
pub use parts::By;
pub use vm::any_program::Ended;

use crate::experiment::Recorded;
use formats::trace_file::{Header, Task, Writer};
use indicatif::ProgressBar;
use program::Error;
use results::{Better, Input, Metric, Row, World as Name, counted, registered};
use schedsim::Nanos;
use schedsim::metrics::{CATALOGUE, Summary};
use schedsim::trace::{Event, Observer, TaskInfo};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A place where workloads run: the simulator, this machine, a guest kernel, or a script of a test.
pub trait World {
    /// Its name in results.
    fn name(&self) -> Name;

    /// What it can supply.
    fn capabilities(&self) -> Capabilities;

    /// The metrics of `program` on this many CPUs. A metric with a reason is null there.
    fn measures(&self, program: &Program, cpus: u16) -> Vec<Measure>;

    /// The default candidates, and which of them is the baseline.
    ///
    /// # Errors
    /// If it is not known.
    fn defaults(&self, program: &Program) -> Result<Defaults, Error>;

    /// The numbers of CPUs on which `program` runs: `asked`, or by default as many as it has there.
    ///
    /// # Errors
    /// If there are fewer.
    fn cpus(&self, program: &Program, asked: Option<u16>) -> Result<u16, Error>;

    /// Refuses what it cannot supply, before anything runs.
    ///
    /// # Errors
    /// By name, with what to do.
    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error>;

    /// Prepares itself for all of `trials`, which are admitted.
    ///
    /// # Errors
    /// [`Error::Missing`] if something that it needs is not on this machine.
    fn prepare(&mut self, _trials: &[Trial<'_>]) -> Result<(), Error> {
        Ok(())
    }

    /// Runs the sessions, in any order and in parallel unless [`Capabilities::determinism`] is
    /// [`Determinism::Noisy`]: then one after another.
    ///
    /// # Errors
    /// The outer one if the comparison cannot continue. The inner one is of a run that has no
    /// numbers: its candidate failed, or its workload did. Other candidates continue.
    fn run(
        &mut self,
        sessions: &[Session<'_>],
        progress: &ProgressBar,
    ) -> Result<Vec<Result<Run, Error>>, Error>;

    /// What its numbers depend on beside the session, where its rows do not show it.
    fn inputs(&self) -> String {
        String::new()
    }

    /// The files that its runs were made of, by their hashes, once it is prepared.
    fn made_of(&self) -> Vec<Input> {
        Vec::new()
    }

    /// The time that limits are compared with.
    fn clock(&self) -> Duration;

    /// What a reader of the results must know about it, in sentences.
    fn about(&self, trials: &[Trial<'_>]) -> String;
}

/// What a world can supply.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// How alike two runs of one session are.
    pub determinism: Determinism,
    /// The most CPUs.
    pub cpus: u16,
    /// Which candidates, in words.
    pub candidates: &'static str,
    /// Which workloads, in words.
    pub workloads: &'static str,
    /// The default size of an ensemble.
    pub ensemble: u32,
}

/// How alike two runs of one session are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Determinism {
    /// They are the same. Another seed gives another run if the candidate or the workload draws
    /// random numbers.
    Seeded,
    /// They are the same, but a change of a microsecond gives another run: one run is a sample of
    /// size one.
    Chaotic,
    /// No two runs are the same.
    Noisy,
}

/// A metric that a world knows.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name.
    pub metric: Metric,
    /// Its better direction there.
    pub direction: Better,
    /// Its title in tables for people, if they show it.
    pub title: Option<&'static str>,
    /// The reason why it has no value, or may have none.
    pub missing: Option<&'static str>,
}

/// What runs by default.
pub struct Defaults {
    /// The candidates.
    pub candidates: Vec<Candidate<'static>>,
    /// What they are compared with.
    pub baseline: Baseline,
}

/// What candidates are compared with.
#[derive(Clone, Debug)]
pub enum Baseline {
    /// This one, whether or not it is among them.
    Named(Candidate<'static>),
    /// The first of them.
    First,
    /// Nothing.
    Nothing,
}

/// A candidate and a workload on a number of CPUs.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The workload.
    pub program: &'a Program,
    /// What schedules it.
    pub candidate: Candidate<'a>,
    /// On how many CPUs.
    pub cpus: u16,
}

/// A run to make.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// What it is a run of.
    pub trial: Trial<'a>,
    /// The seed of the random numbers, and of the nudges of a member.
    pub seed: u64,
    /// The number of the member in the ensemble, from 1 on; none if it stands alone and nothing is
    /// nudged.
    pub member: Option<u64>,
    /// Whether all rules are checked.
    pub check: bool,
    /// How much of it is observed.
    pub observed: Observed,
    /// Where its events are written, if anywhere.
    pub trace: Option<PathBuf>,
}

/// How much of a run is observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Observed {
    /// As little as possible, if observing takes time.
    Bare,
    /// The metrics of the world.
    #[default]
    Measured,
    /// The same, and those of single tasks.
    Parts,
    /// Every event.
    Events,
    /// Every event, in a recording that can be replayed.
    Recorded,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Its numbers: metric, subject, point, value and note of each. The laboratory fills in the
    /// rest.
    pub rows: Vec<Row>,
    /// Whether another seed would give another run.
    pub random: bool,
    /// How often it ran, each time with the same digits.
    pub repeats: u32,
    /// The metrics of its events with their distributions, if its times mean something.
    pub summary: Option<Summary>,
    /// How fine its clock is: no shorter time is shown.
    pub resolution: Nanos,
    /// The tasks of the summary, in order of id.
    pub tasks: Vec<TaskInfo>,
    /// The number of its events and their hash, if all were seen.
    pub trace: Option<(u64, u64)>,
    /// Its recording, if one was requested and the world can make one.
    pub recorded: Option<Arc<Recorded>>,
    /// How its program ended and what it wrote, where that is kept.
    pub ended: Option<Ended>,
}

/// `row` without a value that is a time shorter than `resolution`.
fn resolved(row: Row, resolution: Nanos) -> Row {
    match row.value.map(|value| value * results::nanoseconds(row.metric.unit())) {
        Some(ns) if ns > 0.0 && ns < resolution.0 as f64 => {
            let note = format!(
                "below {resolution}: the clocks of two CPUs may be as far apart; --interleave \
                 makes it less"
            );
            Row { value: None, note: Some(note), ..row }
        }
        _ => row,
    }
}

impl Run {
    /// The value of a metric of the whole run.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.rows.iter().find(|row| row.metric == metric && row.subject.is_none())?.value
    }
}

impl Run {
    /// The metric and the values in which `other`, a run of the same session, differs first.
    pub fn difference(&self, other: &Run) -> Option<String> {
        if let (Some((events, hash)), Some((other_events, other_hash))) = (self.trace, other.trace)
            && hash != other_hash
        {
            return Some(format!(
                "{events} events with the hash {hash:016x}, and then {other_events} with \
                 {other_hash:016x}"
            ));
        }
        let pairs = self.rows.iter().zip(&other.rows);
        let value =
            |value: Option<f64>| value.map_or("nothing".to_string(), |value| value.to_string());
        let differs = pairs
            .filter(|(one, other)| one.value.map(f64::to_bits) != other.value.map(f64::to_bits))
            .map(|(one, other)| {
                format!("{} is {}, and then {}", one.metric, value(one.value), value(other.value))
            });
        let count = (self.rows.len() != other.rows.len())
            .then(|| format!("{} numbers, and then {}", self.rows.len(), other.rows.len()));
        differs.chain(count).next()
    }
}

impl Trial<'_> {
    /// A number of one of its runs, with its provenance.
    pub fn stamp(&self, row: &Row, seed: Option<u64>) -> Row {
        let mut point = self.program.point();
        point.extend(row.point.clone());
        Row {
            workload: self.program.name(),
            candidate: self.candidate.to_string(),
            cpus: self.cpus,
            seed,
            runs: 1,
            point,
            ..row.clone()
        }
    }
}

impl Session<'_> {
    /// The candidate, and the member of the ensemble if there is more than one.
    pub fn title(&self) -> String {
        self.member.map_or(self.trial.candidate.to_string(), |member| {
            format!("{}, member {member}", self.trial.candidate)
        })
    }
}

/// `mixed: eevdf on 4 CPUs`.
impl fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} on {}",
            self.program.name(),
            self.candidate,
            counted(self.cpus.into(), "CPU")
        )
    }
}

/// The rows of `summary`, one for each metric of a trace.
pub fn rows_of(summary: &Summary, world: &Name) -> Vec<Row> {
    let row = |metric: &schedsim::metrics::Metric| {
        let read = metric.read(summary);
        Row {
            value: read.value,
            note: read.note.map(str::to_string),
            ..Row::new(world.clone(), registered(metric.id))
        }
    };
    CATALOGUE.iter().map(row).collect()
}

/// Writes `events` of these `tasks` as a trace.
pub(crate) fn write_trace(
    to: &Path,
    session: &Session<'_>,
    tasks: &[TaskInfo],
    events: &[Event],
) -> Result<(), Error> {
    let header = Header {
        workload: session.trial.program.name().to_string(),
        candidate: session.title(),
        cpus: session.trial.cpus,
        seed: session.seed,
        version: env!("CARGO_PKG_VERSION").to_string(),
        tasks: tasks.iter().map(Task::from).collect(),
    };
    let mut writer = Writer::create(to, &header)?;
    writer.events(events);
    writer.finish()
}
