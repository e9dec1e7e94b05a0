//! Tests predictions: replays a recording under changed conditions, and compares with a real run
//! under those conditions.
//!
//! In each round a world that can record runs the workload unchanged, and once more under each
//! change. The simulator replays the first recording with the same change. Both sides are events of
//! the same tasks, and their metrics have one definition. The replay without a change is tested
//! too: its error does not come from any change.

use indicatif::ProgressBar;
use program::Error;
use results::{Metric, Row, World as Name};
use schedlab_runner::class::Class;
use schedsim::policy::PolicySpec;
use schedsim::workload::{SchedulingPolicy, Setting};
use statistics::Estimate;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use worlds::experiment::Recorded;
use worlds::setting::{Assignment, Deployment};
use worlds::{Candidate, Measure, Observed, Program, Replay, Run, Session, Trial, World};

/// The change from the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// No change: the error of the replay itself.
    Nothing,
    /// The number of CPUs.
    Cpus(u16),
    /// The nice value of the second half of the workload's programs.
    Nice(i8),
    /// `SCHED_FIFO` with this priority for all tasks.
    Fifo(u8),
}

/// The settings of a test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The policy that models the kernel's fair scheduler.
    pub policy: PolicySpec,
    /// The changes, each made alone; `Nothing` is the first.
    pub changes: Vec<Change>,
    /// The CPUs of the recording.
    pub cpus: u16,
    /// The number of rounds.
    pub rounds: u32,
}

/// The two worlds.
pub struct Sides<'w> {
    /// Records the workload.
    pub recording: &'w mut dyn World,
    /// Replays the recordings.
    pub replaying: &'w mut dyn World,
}

/// A workload with its predictions.
pub struct Prediction {
    /// The workload's name.
    pub name: String,
    /// The compared metrics.
    pub measures: Vec<Measure>,
    /// By change.
    pub tested: Vec<Tested>,
    worlds: [Name; 2],
}

/// A change, and both sides by round.
pub struct Tested {
    /// The change.
    pub change: Change,
    predicted: Vec<Run>,
    measured: Vec<Run>,
}

impl Test {
    /// The recorded runs of `program`, by change.
    ///
    /// # Errors
    /// [`Error::Usage`] if the workload has no tasks, or the policy does not support a change.
    pub fn trials<'p>(&self, program: &'p Program) -> Result<Vec<Trial<'p>>, Error> {
        let later = later(program)?;
        let trial = |change: &Change| {
            change
                .replayed(&self.policy, &later)
                .deployment()
                .map_or(Ok(()), |deployment| deployment.expect_under(&self.policy))?;
            Ok(Trial { program, candidate: change.recorded(&later), cpus: change.cpus(self.cpus) })
        };
        self.changes.iter().map(trial).collect()
    }

    /// Tests all changes on `program`; both worlds must be ready.
    ///
    /// # Errors
    /// If a run fails, is not recorded, or cannot be replayed.
    pub fn run(
        &self,
        program: &Program,
        sides: &mut Sides<'_>,
        progress: &ProgressBar,
    ) -> Result<Prediction, Error> {
        let (trials, later) = (self.trials(program)?, later(program)?);
        let tested =
            |&change: &Change| Tested { change, predicted: Vec::new(), measured: Vec::new() };
        let mut tested: Vec<Tested> = self.changes.iter().map(tested).collect();
        for _ in 0..self.rounds {
            let sessions: Vec<Session<'_>> =
                trials.iter().cloned().map(|trial| session(trial, Observed::Recorded)).collect();
            let runs = sides.recording.run(&sessions, progress)?;
            let runs = runs.into_iter().collect::<Result<Vec<Run>, Error>>()?;
            let recorded = runs.first().and_then(|run| run.recorded.clone()).ok_or_else(|| {
                Error::Usage(format!(
                    "{} makes no recordings that can be replayed; predictions are tested on this \
                     machine",
                    sides.recording.name()
                ))
            })?;
            for (one, predicted) in tested.iter_mut().zip(self.replays(
                recorded,
                &later,
                &mut *sides.replaying,
                progress,
            )?) {
                one.predicted.push(predicted);
            }
            for (one, measured) in tested.iter_mut().zip(runs) {
                one.measured.push(Run { recorded: None, ..measured });
            }
        }
        let measures = sides
            .replaying
            .measures(program, self.cpus)
            .into_iter()
            .filter(|measure| measure.title.is_some())
            .collect();
        Ok(Prediction {
            name: program.name(),
            measures,
            tested,
            worlds: [sides.replaying.name(), sides.recording.name()],
        })
    }

    /// The predicted results of the recording under each change.
    fn replays(
        &self,
        recorded: Arc<Recorded>,
        later: &[String],
        world: &mut dyn World,
        progress: &ProgressBar,
    ) -> Result<Vec<Run>, Error> {
        let replay = Replay { path: PathBuf::new(), recorded, told: String::new(), changed: None };
        let program = Program::Replay(Box::new(replay));
        // The kernel keeps the first bytes of a name.
        let later: Vec<String> = later.iter().map(|name| comm(name)).collect();
        let trial = |change: &Change| Trial {
            program: &program,
            candidate: change.replayed(&self.policy, &later),
            cpus: change.cpus(self.cpus),
        };
        let trials: Vec<Trial<'_>> = self.changes.iter().map(trial).collect();
        trials.iter().try_for_each(|trial| world.admit(trial))?;
        let sessions: Vec<Session<'_>> =
            trials.into_iter().map(|trial| session(trial, Observed::Measured)).collect();
        world.run(&sessions, progress)?.into_iter().collect()
    }
}

/// A single session without nudges.
fn session(trial: Trial<'_>, observed: Observed) -> Session<'_> {
    Session { trial, seed: 1, member: None, check: false, observed, trace: None }
}

fn comm(name: &str) -> String {
    const LONGEST: usize = 15;
    let end = (0..=LONGEST.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name[..end.unwrap_or(0)].to_string()
}

/// The second half of the workload's programs, without those that have no fair task.
fn later(program: &Program) -> Result<Vec<String>, Error> {
    let closed = program.closed().ok_or_else(|| {
        let name = program.name();
        Error::Usage(format!(
            "the tasks of {name} cannot be run again under other conditions; give a \
             workload of tasks, as hackbench:1 or a file with [[task]]s"
        ))
    })?;
    let tasks = &closed.description().tasks;
    let mut programs: Vec<&str> = Vec::new();
    for name in tasks.iter().map(|tasks| tasks.program()) {
        if !programs.contains(&name) {
            programs.push(name);
        }
    }
    let mut later = programs.split_off(programs.len() / 2);
    later.retain(|name| {
        let mut own = tasks.iter().filter(|tasks| tasks.program() == *name);
        own.any(|tasks| tasks.policy == SchedulingPolicy::Other)
    });
    later.sort_unstable();
    Ok(later.into_iter().map(str::to_string).collect())
}

impl Change {
    fn cpus(self, recorded: u16) -> u16 {
        if let Change::Cpus(cpus) = self { cpus } else { recorded }
    }

    fn class(self) -> Class {
        if let Change::Fifo(priority) = self { Class::Fifo(priority.into()) } else { Class::Other }
    }

    /// The candidate for the real tasks.
    fn recorded(self, later: &[String]) -> Candidate<'static> {
        match self {
            Change::Nice(nice) if !later.is_empty() => {
                Candidate::Applied(Arc::new(deployment(later, Setting::Nice(nice), None)))
            }
            _ => Candidate::Class(self.class()),
        }
    }

    /// The candidate for the replayed tasks.
    fn replayed(self, policy: &PolicySpec, later: &[String]) -> Candidate<'static> {
        let set = |names: &[String], setting| {
            Candidate::Applied(Arc::new(deployment(names, setting, Some(policy))))
        };
        match self {
            Change::Nice(nice) if !later.is_empty() => set(later, Setting::Nice(nice)),
            Change::Fifo(priority) => set(&["*".to_string()], Setting::Fifo(priority)),
            _ => Candidate::Policy(policy.clone()),
        }
    }
}

fn deployment(names: &[String], setting: Setting, under: Option<&PolicySpec>) -> Deployment {
    let assignment =
        |name: &String| Assignment { program: name.clone(), settings: vec![setting.clone()] };
    Deployment { assignments: names.iter().map(assignment).collect(), under: under.cloned() }
}

impl Prediction {
    /// For each change and metric: the predicted value, the measured value, and the error.
    pub fn rows(&self, test: &Test) -> Vec<Row> {
        let [replaying, recording] = &self.worlds;
        let of = |tested: &Tested, metric: Metric| {
            let row =
                |world: &Name, candidate: String, metric: Metric, estimate: Option<Estimate>| {
                    let bound = |sign: f64| {
                        estimate
                            .and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?))
                    };
                    Row {
                        workload: self.name.clone(),
                        candidate,
                        cpus: tested.change.cpus(test.cpus),
                        value: estimate.map(|estimate| estimate.mean),
                        ci_low: bound(-1.0),
                        ci_high: bound(1.0),
                        runs: test.rounds,
                        ..Row::new(world.clone(), metric)
                    }
                    .at("change", tested.change.to_string())
                };
            let (policy, class) =
                (test.policy.to_string(), format!("kernel:{}", tested.change.class()));
            let error =
                metric.prediction_error().map(|of| (of, tested.error(metric).map(Estimate::exact)));
            let both = [
                row(replaying, policy.clone(), metric, tested.predicted(metric)),
                row(recording, class, metric, tested.measured(metric)),
            ];
            both.into_iter()
                .chain(error.map(|(of, error)| row(replaying, policy, of, error)))
                .collect::<Vec<Row>>()
        };
        self.tested
            .iter()
            .flat_map(|tested| {
                self.measures.iter().flat_map(move |measure| of(tested, measure.metric))
            })
            .collect()
    }
}

impl Tested {
    /// The predicted value of a metric.
    pub fn predicted(&self, metric: Metric) -> Option<Estimate> {
        estimate(&self.predicted, metric)
    }

    /// The measured value of a metric.
    pub fn measured(&self, metric: Metric) -> Option<Estimate> {
        estimate(&self.measured, metric)
    }

    /// By which share of what was measured the prediction is too high.
    pub fn error(&self, metric: Metric) -> Option<f64> {
        let (predicted, measured) = (self.predicted(metric)?.mean, self.measured(metric)?.mean);
        (measured != 0.0).then(|| predicted / measured - 1.0)
    }
}

fn estimate(runs: &[Run], metric: Metric) -> Option<Estimate> {
    Estimate::of(&runs.iter().map(|run| run.value(metric)).collect::<Option<Vec<f64>>>()?)
}

/// As a heading.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Nothing => write!(f, "as recorded"),
            Change::Cpus(1) => write!(f, "1 CPU"),
            Change::Cpus(cpus) => write!(f, "{cpus} CPUs"),
            Change::Nice(nice) => write!(f, "nice {nice}"),
            Change::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
        }
    }
}

#[cfg(test)]
mod tests;
