//! Tests predictions: what the simulator says of a change, against a real kernel.
//!
//! On a machine whose runs can be recorded, each round runs the workload unchanged, and once more
//! under each change. The simulator replays the first recording with the same change. Where runs
//! are not recorded, as in a guest, the simulator runs the workload's description: members of an
//! ensemble on both sides. Both sides are events of the same tasks, and their metrics have one
//! definition. What is predicted without a change is tested too: its error does not come from any
//! change.

mod change;
mod costs;
mod score;

pub use change::{Change, Ground};
pub use costs::{Costs, KernelCosts};
pub use score::{Cell, Effect, Score};

use formats::workload::ClosedWorkload;
use indicatif::ProgressBar;
use program::Error;
use results::{Metric, Row, World as Name};
use schedsim::Nanos;
use schedsim::policy::PolicySpec;
use schedsim::workload::SchedulingPolicy;
use statistics::Estimate;
use std::collections::BTreeMap;
use std::path::PathBuf;
use worlds::compiled::Compiled;
use worlds::{Candidate, Measure, Observed, Program, Replay, Run, Session, Trial, World};

/// What a prediction is made of.
#[derive(Clone, PartialEq, Debug)]
pub enum Basis {
    /// A recording of the same round.
    Recording,
    /// The description of the workload, on machines with the kernels' costs.
    Description(Costs),
}

/// The settings of a test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The policy that models the kernel's fair scheduler.
    pub policy: PolicySpec,
    /// The changes, each made alone; `Nothing` is the first.
    pub changes: Vec<Change>,
    /// The CPUs without a change.
    pub cpus: u16,
    /// The number of rounds, or of members.
    pub rounds: u32,
    /// What the predictions are made of.
    pub basis: Basis,
}

/// The two worlds.
pub struct Sides<'w> {
    /// Runs the workload, and records it if predictions are made of recordings.
    pub real: &'w mut dyn World,
    /// The same on other kernels, by name.
    pub kernels: BTreeMap<String, Box<dyn World + 'w>>,
    /// Predicts.
    pub predicting: &'w mut dyn World,
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

/// By change: the predicted and the measured runs.
type Both = [Vec<Vec<Run>>; 2];

impl Test {
    /// The real runs of `program`, by change.
    ///
    /// # Errors
    /// [`Error::Usage`] if the workload has no tasks, or the policy does not support a change.
    pub fn trials<'p>(&self, program: &'p Program) -> Result<Vec<Trial<'p>>, Error> {
        let later = later(program)?;
        let trial = |change: &Change| {
            match change.predicted(&self.policy, &later) {
                Candidate::Applied(deployment) => deployment.expect_under(&self.policy)?,
                // Read before anything is measured.
                Candidate::Bpf(name) => drop(Compiled::find(&name)?),
                _ => {}
            }
            Ok(Trial { program, candidate: change.real(&later), cpus: change.cpus(self.cpus) })
        };
        self.changes.iter().map(trial).collect()
    }

    /// Tests all changes on `program`; both worlds must be ready.
    ///
    /// # Errors
    /// If a run fails, is not recorded, or cannot be predicted.
    pub fn run(
        &self,
        program: &Program,
        sides: &mut Sides<'_>,
        progress: &ProgressBar,
    ) -> Result<Prediction, Error> {
        let [predicted, measured] = match &self.basis {
            Basis::Recording => self.replayed(program, sides, progress)?,
            Basis::Description(costs) => self.simulated(program, costs, sides, progress)?,
        };
        let tested = self
            .changes
            .iter()
            .zip(predicted.into_iter().zip(measured))
            .map(|(change, (predicted, measured))| Tested {
                change: change.clone(),
                predicted,
                measured,
            })
            .collect();
        let measures = sides
            .predicting
            .measures(program, self.cpus)
            .into_iter()
            .filter(|measure| measure.title.is_some())
            .collect();
        Ok(Prediction {
            name: program.name(),
            measures,
            tested,
            worlds: [sides.predicting.name(), sides.real.name()],
        })
    }

    /// The predicted and the measured runs by change, of recordings.
    fn replayed(
        &self,
        program: &Program,
        sides: &mut Sides<'_>,
        progress: &ProgressBar,
    ) -> Result<Both, Error> {
        let trials = self.trials(program)?;
        // The kernel keeps the first bytes of a name.
        let later: Vec<String> = later(program)?.iter().map(|name| comm(name)).collect();
        let mut both = [(); 2].map(|()| vec![Vec::new(); self.changes.len()]);
        for _ in 0..self.rounds {
            let mut measured =
                runs(&mut *sides.real, &trials, &[None], Observed::Recorded, progress)?;
            let mut recordings = measured.iter_mut().flatten().map(|run| run.recorded.take());
            let recorded = recordings.next().flatten().ok_or_else(|| {
                Error::Usage(format!(
                    "{} makes no recordings that can be replayed; predictions are tested on this \
                     machine",
                    sides.real.name()
                ))
            })?;
            recordings.for_each(drop); // the others are as large, and not used
            let replay =
                Replay { path: PathBuf::new(), recorded, told: String::new(), changed: None };
            let replay = Program::Replay(Box::new(replay));
            let question = |change| self.question(change, &replay, &later, &*sides.predicting);
            let questions: Vec<Trial<'_>> =
                self.changes.iter().map(question).collect::<Result<_, Error>>()?;
            let predicted =
                runs(&mut *sides.predicting, &questions, &[None], Observed::Measured, progress)?;
            for (all, round) in both.iter_mut().zip([predicted, measured]) {
                all.iter_mut().zip(round).for_each(|(of, runs)| of.extend(runs));
            }
        }
        Ok(both)
    }

    /// The same, of the description: first what is said, then what is so.
    fn simulated(
        &self,
        program: &Program,
        costs: &Costs,
        sides: &mut Sides<'_>,
        progress: &ProgressBar,
    ) -> Result<Both, Error> {
        let members: Vec<Option<u64>> = (1..=u64::from(self.rounds)).map(Some).collect();
        let charged = self
            .changes
            .iter()
            .map(|change| costs.charge(program, &change.ground(self.cpus)))
            .collect::<Result<Vec<Program>, Error>>()?;
        let later = later(program)?;
        let question =
            |(change, charged)| self.question(change, charged, &later, &*sides.predicting);
        let questions = self.changes.iter().zip(&charged).map(question);
        let questions: Vec<Trial<'_>> = questions.collect::<Result<_, Error>>()?;
        let ask = |world: &mut dyn World, trials: &[Trial<'_>]| {
            runs(world, trials, &members, Observed::Measured, progress)
        };
        let predicted = ask(&mut *sides.predicting, &questions)?;
        let trials = self.trials(program)?;
        let mut measured: Vec<Vec<Run>> = vec![Vec::new(); trials.len()];
        for kernel in self.kernels() {
            let of = |change: &Change| change.kernel() == kernel;
            let places: Vec<usize> =
                (0..trials.len()).filter(|&place| of(&self.changes[place])).collect();
            let own: Vec<Trial<'_>> = places.iter().map(|&place| trials[place].clone()).collect();
            for (place, runs) in places.into_iter().zip(ask(sides.world(kernel)?, &own)?) {
                measured[place] = runs;
            }
        }
        Ok([predicted, measured])
    }

    /// The real runs of `program` on this kernel, or on that without a change.
    ///
    /// # Errors
    /// As [`Test::trials`].
    pub fn trials_on<'p>(
        &self,
        kernel: Option<&str>,
        program: &'p Program,
    ) -> Result<Vec<Trial<'p>>, Error> {
        let all = self.changes.iter().zip(self.trials(program)?);
        Ok(all.filter(|(change, _)| change.kernel() == kernel).map(|(_, trial)| trial).collect())
    }

    /// The kernel without a change, which has no name here, and then those of changes.
    pub fn kernels(&self) -> Vec<Option<&str>> {
        let mut kernels = vec![None];
        for kernel in self.changes.iter().filter_map(|change| change.kernel()) {
            if !kernels.contains(&Some(kernel)) {
                kernels.push(Some(kernel));
            }
        }
        kernels
    }

    /// What the world that predicts is asked of a change.
    fn question<'p>(
        &self,
        change: &Change,
        program: &'p Program,
        later: &[String],
        world: &dyn World,
    ) -> Result<Trial<'p>, Error> {
        let candidate = change.predicted(&self.policy, later);
        let trial = Trial { program, candidate, cpus: change.cpus(self.cpus) };
        world.admit(&trial).map(|()| trial)
    }
}

impl Sides<'_> {
    /// The real kernel of this name, or that without a change.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is none.
    pub fn world(&mut self, kernel: Option<&str>) -> Result<&mut dyn World, Error> {
        let Some(name) = kernel else { return Ok(&mut *self.real) };
        match self.kernels.get_mut(name) {
            Some(world) => Ok(&mut **world),
            None => Err(Error::Internal(format!("no guest has the kernel {name}"))),
        }
    }
}

/// The runs of each trial: one for each of `members`, with its nudges, or none for a run alone.
fn runs(
    world: &mut dyn World,
    trials: &[Trial<'_>],
    members: &[Option<u64>],
    observed: Observed,
    progress: &ProgressBar,
) -> Result<Vec<Vec<Run>>, Error> {
    let sessions = trials.iter().flat_map(|trial| {
        members.iter().map(|&member| Session {
            trial: trial.clone(),
            seed: member.unwrap_or(1),
            member,
            check: false,
            observed,
            trace: None,
        })
    });
    let runs = world.run(&sessions.collect::<Vec<Session<'_>>>(), progress)?;
    let runs = runs.into_iter().collect::<Result<Vec<Run>, Error>>()?;
    Ok(runs.chunks(members.len()).map(<[Run]>::to_vec).collect())
}

/// The same workload, whose tasks begin all at once in a guest, too. With real-time tasks in a run
/// that is stopped after some time, the runner lets them go at a better priority than theirs. Else
/// the first to go would run before the others may. This one is stopped late.
pub fn all_at_once(workload: &ClosedWorkload) -> ClosedWorkload {
    const LATE: Nanos = Nanos::from_millis(600_000);
    workload.changed(|closed| {
        closed.duration.get_or_insert(LATE);
    })
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

impl Prediction {
    /// The changes of all metrics that both sides have.
    pub fn cells(&self) -> Vec<Cell> {
        let changes = self.tested.iter().filter(|tested| tested.change != Change::Nothing);
        let cell = |tested: &Tested, metric: Metric| {
            let (predicted, measured) = self.effects(tested, metric)?;
            let (workload, change) = (self.name.clone(), tested.change.to_string());
            Some(Cell { workload, change, metric, predicted, measured })
        };
        changes
            .flat_map(|tested| {
                self.measures.iter().filter_map(move |measure| cell(tested, measure.metric))
            })
            .collect()
    }

    /// The predicted and the measured change.
    fn effects(&self, tested: &Tested, metric: Metric) -> Option<(Effect, Effect)> {
        let unchanged = self.tested.iter().find(|tested| tested.change == Change::Nothing)?;
        if tested.change == Change::Nothing {
            return None;
        }
        let of = |without: &[Run], with: &[Run]| {
            Effect::of(&values(without, metric)?, &values(with, metric)?)
        };
        let predicted = of(&unchanged.predicted, &tested.predicted)?;
        Some((predicted, of(&unchanged.measured, &tested.measured)?))
    }

    /// For each change and metric: the predicted value, the measured value, and the error.
    pub fn rows(&self, test: &Test) -> Vec<Row> {
        let [predicting, real] = &self.worlds;
        let of = |tested: &Tested, metric: Metric| {
            let change = &tested.change;
            let kernel = change.kernel().map(|kernel| Name::Vm { kernel: kernel.to_string() });
            let real = kernel.as_ref().unwrap_or(real);
            let scheduler =
                if let Change::Scheduler(name, _) = change { name } else { "kernel:other" };
            let policy = match change {
                Change::Scheduler(name, None) => name.clone(),
                _ => change.policy().as_ref().unwrap_or(&test.policy).to_string(),
            };
            let row =
                |world: &Name, candidate: String, metric: Metric, estimate: Option<Estimate>| {
                    let bound = |sign: f64| {
                        estimate
                            .and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?))
                    };
                    Row {
                        workload: self.name.clone(),
                        candidate,
                        cpus: change.cpus(test.cpus),
                        value: estimate.map(|estimate| estimate.mean),
                        ci_low: bound(-1.0),
                        ci_high: bound(1.0),
                        runs: test.rounds,
                        ..Row::new(world.clone(), metric)
                    }
                    .at("change", change.to_string())
                };
            let changed = |row: Row, effect: Option<Effect>| Row {
                effect: effect.map(|effect| effect.mean),
                effect_low: effect.map(|effect| effect.low),
                effect_high: effect.map(|effect| effect.high),
                ..row
            };
            let (said, so) = self.effects(tested, metric).unzip();
            let error =
                metric.prediction_error().map(|of| (of, tested.error(metric).map(Estimate::exact)));
            let both = [
                changed(row(predicting, policy.clone(), metric, tested.predicted(metric)), said),
                changed(row(real, scheduler.to_string(), metric, tested.measured(metric)), so),
            ];
            both.into_iter()
                .chain(error.map(|(of, error)| row(predicting, policy, of, error)))
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
    Estimate::of(&values(runs, metric)?)
}

/// Its value in each run, if all have one.
fn values(runs: &[Run], metric: Metric) -> Option<Vec<f64>> {
    runs.iter().map(|run| run.value(metric)).collect()
}

#[cfg(test)]
mod tests;
