//! Plans the trials of each world, and collects what a world refuses.

use super::Against;
use program::Error;
use results::{Metric, Row, World as Name};
use worlds::{Baseline, Candidate, Program, Trial, World};

/// The requested experiment.
pub struct Asked<'a, 'c> {
    pub programs: &'a [Program],
    pub candidates: &'a [Candidate<'c>],
    pub against: &'a Against,
    pub cpus: &'a [u16],
}

/// The trials of one world.
#[derive(Default)]
pub struct Plan<'p> {
    /// By workload, number of CPUs and candidate; the baseline comes first.
    pub trials: Vec<Trial<'p>>,
    /// The baseline of each workload.
    pub baselines: Vec<Option<Candidate<'p>>>,
    /// The workload index of each trial.
    pub programs: Vec<usize>,
    /// What this world refuses but another world runs.
    pub refusals: Vec<Refusal>,
}

/// A refused trial.
#[derive(Debug)]
pub struct Refusal {
    /// The world.
    pub world: Name,
    /// The workload.
    pub workload: String,
    /// The candidate.
    pub candidate: String,
    /// The reason, and the next step.
    pub error: Error,
    program: usize,
}

impl<'p> Plan<'p> {
    /// The trials of each workload that has any, with the workload's index.
    pub fn by_program(&self) -> Vec<(usize, Vec<Trial<'p>>)> {
        let mut all: Vec<(usize, Vec<Trial<'p>>)> = Vec::new();
        for (program, trial) in self.programs.iter().zip(&self.trials) {
            match all.last_mut() {
                Some((last, trials)) if last == program => trials.push(trial.clone()),
                _ => all.push((*program, vec![trial.clone()])),
            }
        }
        all
    }
}

impl Refusal {
    /// A row without a number, with the reason.
    pub fn row(&self) -> Row {
        Row {
            workload: self.workload.clone(),
            candidate: self.candidate.clone(),
            note: Some(format!("not run: {}", self.error)),
            ..Row::new(self.world.clone(), Metric::makespan_ns)
        }
    }
}

impl<'p, 'c: 'p> Asked<'p, 'c> {
    /// Makes a plan for each world.
    ///
    /// # Errors
    /// The first refusal of a trial that no world runs.
    pub fn plans<'w>(&self, worlds: &[Box<dyn World + 'w>]) -> Result<Vec<Plan<'p>>, Error> {
        let mut plans = worlds
            .iter()
            .map(|world| self.plan(&**world))
            .collect::<Result<Vec<Plan<'p>>, Error>>()?;
        if let Against::Named(given) = self.against
            && !plans
                .iter()
                .any(|plan| plan.baselines.iter().flatten().any(|baseline| baseline == given))
        {
            return Err(Error::Usage(format!(
                "nothing is compared with {given}: leave --baseline out"
            )));
        }
        // A trial that one world refuses runs in another world or nowhere.
        let runs_elsewhere = |here: usize, refusal: &Refusal| {
            let is_it = |plan: &Plan<'_>| {
                let mut trials = plan.trials.iter().zip(&plan.programs);
                trials.any(|(trial, program)| {
                    *program == refusal.program
                        && (self.candidates.is_empty()
                            || trial.candidate.to_string() == refusal.candidate)
                })
            };
            plans.iter().enumerate().any(|(index, plan)| index != here && is_it(plan))
        };
        let nowhere = |(index, plan): (usize, &Plan<'_>)| {
            Some((index, plan.refusals.iter().position(|refusal| !runs_elsewhere(index, refusal))?))
        };
        let place = plans.iter().enumerate().find_map(nowhere);
        match place {
            Some((plan, refusal)) => Err(plans[plan].refusals.swap_remove(refusal).error),
            None => Ok(plans),
        }
    }

    fn plan(&self, world: &dyn World) -> Result<Plan<'p>, Error> {
        let mut plan = Plan::default();
        for (index, program) in self.programs.iter().enumerate() {
            let refused = |candidate: &str, error: Error| Refusal {
                world: world.name(),
                workload: program.name(),
                candidate: candidate.to_string(),
                error,
                program: index,
            };
            let (candidates, baseline) = self.candidates(world, program)?;
            plan.baselines.push(baseline);
            let counts: Result<Vec<u16>, Error> = match self.cpus {
                asked if asked.is_empty() || program.is_drawn() => {
                    world.cpus(program, None).map(|cpus| vec![cpus])
                }
                asked => asked.iter().map(|&cpus| world.cpus(program, Some(cpus))).collect(),
            };
            let counts = match counts {
                Ok(counts) => counts,
                Err(error) => {
                    plan.refusals.push(refused("*", error));
                    continue;
                }
            };
            for cpus in counts {
                for candidate in &candidates {
                    let trial = Trial { program, candidate: candidate.clone(), cpus };
                    match world.admit(&trial) {
                        Ok(()) => {
                            plan.trials.push(trial);
                            plan.programs.push(index);
                        }
                        Err(error) => plan.refusals.push(refused(&candidate.to_string(), error)),
                    }
                }
            }
        }
        Ok(plan)
    }

    /// The candidates of `program` in `world`, each once, and the baseline, which comes first.
    fn candidates(
        &self,
        world: &dyn World,
        program: &Program,
    ) -> Result<(Vec<Candidate<'p>>, Option<Candidate<'p>>), Error> {
        let defaults = world.defaults(program)?;
        let mut all: Vec<Candidate<'p>> = Vec::new();
        let is_first = matches!(defaults.baseline, Baseline::First)
            && !matches!(self.against, Against::Nothing);
        let baseline = match (defaults.baseline, self.against) {
            (Baseline::Named(_) | Baseline::First, Against::Named(given)) => Some(given.clone()),
            (Baseline::Named(own), Against::Usual) => Some(own),
            _ => None,
        };
        all.extend(baseline.clone());
        // Settings alone are compared with the scheduler without them.
        let only_settings =
            self.candidates.iter().all(|candidate| candidate.deployment().is_some());
        let given: Vec<Candidate<'p>> = match self.candidates {
            [] => defaults.candidates,
            given if only_settings && all.is_empty() => {
                defaults.candidates.into_iter().take(1).chain(given.iter().cloned()).collect()
            }
            given => given.to_vec(),
        };
        let under = baseline.clone();
        for candidate in given.into_iter().map(|candidate| match &under {
            Some(baseline) => candidate.under(baseline),
            None => candidate,
        }) {
            if !all.contains(&candidate) {
                all.push(candidate);
            }
        }
        let baseline = baseline.or_else(|| all.first().filter(|_| is_first).cloned());
        Ok((all, baseline))
    }
}
