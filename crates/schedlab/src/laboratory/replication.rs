//! Runs that repeat themselves: once where the seed makes no difference, else with further seeds until the intervals are narrow.
//!
//! A candidate whose tasks are scripts stops by its own intervals. Candidates over drawn tasks get the same draws: all of them have as many runs.

use super::plan::Plan;
use super::{Context, Fidelity, Rule, Section, aggregate, yields};
use crate::output::{headline, registered};
use crate::results_directory::{Distribution, distributions};
use crate::statistics::Estimate;
use crate::world::{Determinism, Observed, Program, Run, Session, Trial, World};
use crate::{Error, progress};
use indicatif::ProgressBar;
use results::{Metric, Row};
use std::time::Duration;

/// How often runs are repeated that differ by their seed.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// At least so many runs.
    pub min_runs: u32,
    /// Until the 95 % half-width of the metrics that must be narrow is at most this share of their mean.
    pub half_width: f64,
    /// Or until this much time is over.
    pub max_time: Duration,
}

/// Of drawn tasks the intervals of these must be narrow; parts of the tasks, such as a priority's, need not be.
const NARROW: [Metric; 3] = [Metric::grr, Metric::ngrr, Metric::apr];
const CUT_SHORT: &str = "inconclusive: the time was up before the interval was narrow enough";

/// A trial and its runs.
struct Sample<'p> {
    trial: Trial<'p>,
    /// Whether the events of its first run are kept.
    is_traced: bool,
    runs: Vec<Run>,
}

/// Trials that get the same number of runs.
struct Family {
    /// By their numbers.
    trials: Vec<usize>,
    /// If their tasks are drawn: what they are compared with.
    drawn: Option<Option<String>>,
    /// How many runs each is to have.
    wanted: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Done,
    CutShort,
}

/// What `world` makes of each workload of `plan`.
///
/// # Errors
/// If a run fails, or does not repeat itself.
pub fn sections<'p>(world: &mut dyn World, plan: &Plan<'p>, context: &Context<'_>) -> Result<Vec<Section<'p>>, Error> {
    let bar = progress::bar("running", 0);
    let made = Replication { world, context, bar: &bar }.all(plan);
    bar.finish_and_clear();
    let mut sections = made?;
    yields::fit(&mut sections);
    Ok(sections)
}

/// Makes a single run, and if runs are to be held against the rules once more, to see that it repeats itself.
///
/// # Errors
/// If it fails, or does not repeat itself.
pub fn once(world: &mut dyn World, session: Session<'_>, context: &Context<'_>) -> Result<Run, Error> {
    let bar = progress::bar("running", 1);
    let mut replication = Replication { world, context, bar: &bar };
    let sessions = [session];
    let mut runs = replication.runs(&sessions)?;
    if context.settings.check {
        replication.expect_the_same(&sessions, &runs)?;
    }
    bar.finish_and_clear();
    runs.pop().ok_or_else(|| Error::Internal("a world gave no run".to_string()))
}

/// Runs what is planned in one world.
struct Replication<'a> {
    world: &'a mut dyn World,
    context: &'a Context<'a>,
    bar: &'a ProgressBar,
}

impl Replication<'_> {
    fn all<'p>(&mut self, plan: &Plan<'p>) -> Result<Vec<Section<'p>>, Error> {
        let programs = plan.by_program();
        // A recording is replayed as it was, too, under the policy nearest to the recorded kernel's: that shows the error of the replay.
        let originals: Vec<(usize, Program)> = programs
            .iter()
            .filter_map(|(index, trials)| Some((*index, Program::Replay(Box::new(trials.first()?.program.recorded()?.0)))))
            .collect();
        let judged = self.world.capabilities().judged;
        let replays: Vec<(Trial<'_>, bool)> =
            originals.iter().filter(|_| judged).filter_map(|(index, program)| replay(plan, *index, program)).collect();
        let mut samples: Vec<Sample<'_>> = replays.iter().map(|(trial, is_traced)| Sample::new(trial.clone(), *is_traced)).collect();
        samples.extend(plan.trials.iter().map(|trial| Sample::new(trial.clone(), true)));
        let mut families: Vec<Family> = (0..replays.len()).map(Family::apart).collect();
        let mut next = replays.len();
        for (index, trials) in &programs {
            let own: Vec<usize> = (next..next + trials.len()).collect();
            next += trials.len();
            let baseline = plan.baselines[*index].as_ref().map(ToString::to_string);
            if trials.first().is_some_and(|trial| trial.program.is_drawn()) {
                let wanted = u64::from(self.context.settings.repetition.min_runs);
                families.push(Family { trials: own, drawn: Some(baseline), wanted, state: State::Open });
            } else {
                families.extend(own.into_iter().map(Family::apart));
            }
        }
        self.repeat(&mut samples, &mut families)?;
        let mut sections = Vec::new();
        let mut next = replays.len();
        for (program, trials) in &programs {
            let own = next..next + trials.len();
            next = own.end;
            let original = originals.iter().position(|(index, _)| index == program);
            let fidelity = original.and_then(|at| Some(fidelity(&originals[at].1, samples[..replays.len()].get(at)?)));
            let is_cut = families.iter().filter(|family| family.state == State::CutShort).flat_map(|family| &family.trials);
            let cut: Vec<&Trial<'_>> = is_cut.filter(|trial| own.contains(trial)).map(|trial| &samples[*trial].trial).collect();
            let baseline = plan.baselines[*program].as_ref().map(ToString::to_string);
            let section = self.section(&samples[own], baseline, fidelity.unwrap_or_default(), &cut);
            sections.push(Section { program: *program, trials: trials.clone(), ..section });
        }
        Ok(sections)
    }

    /// Runs all families until none needs more.
    fn repeat(&mut self, samples: &mut [Sample<'_>], families: &mut [Family]) -> Result<(), Error> {
        let begin = self.world.clock();
        while families.iter().any(|family| family.state == State::Open) {
            let mut wanted: Vec<(usize, u64)> = Vec::new();
            for family in families.iter().filter(|family| family.state == State::Open) {
                let done = samples[family.trials[0]].runs.len() as u64;
                wanted.extend(family.trials.iter().flat_map(|trial| (done..family.wanted).map(move |number| (*trial, number))));
            }
            self.bar.inc_length(wanted.len() as u64);
            let sessions: Vec<Session<'_>> =
                wanted.iter().map(|(trial, number)| self.session(&samples[*trial], *number)).collect::<Result<_, _>>()?;
            let runs = self.runs(&sessions)?;
            if self.context.settings.check {
                self.expect_the_same(&sessions, &runs)?;
            }
            drop(sessions);
            wanted.into_iter().zip(runs).for_each(|((trial, _), run)| samples[trial].runs.push(run));
            let elapsed = self.world.clock().saturating_sub(begin);
            for family in families.iter_mut().filter(|family| family.state == State::Open) {
                self.decide(family, samples, elapsed);
            }
        }
        Ok(())
    }

    fn session<'s>(&self, sample: &Sample<'s>, number: u64) -> Result<Session<'s>, Error> {
        let settings = self.context.settings;
        let trial = sample.trial.clone();
        let is_first = number == 0;
        let trace = if is_first && sample.is_traced { self.context.trace(&*self.world, &trial)? } else { None };
        // Scripts are the same with every seed; of drawn tasks one draw is held against the rules.
        let check = settings.check && (is_first || !trial.program.is_drawn());
        Ok(Session { trial, seed: settings.seed + number, check, observed: Observed::Measured, trace })
    }

    fn runs(&mut self, sessions: &[Session<'_>]) -> Result<Vec<Run>, Error> {
        let of = |(session, run): (&Session<'_>, Result<Run, String>)| {
            run.map_err(|message| Error::Input(format!("{}: {message}", session.trial)))
        };
        sessions.iter().zip(self.world.run(sessions, self.bar)?).map(of).collect()
    }

    /// Runs each first session once more where the world did not: where runs repeat themselves the second is the first.
    fn expect_the_same(&mut self, sessions: &[Session<'_>], runs: &[Run]) -> Result<(), Error> {
        let seed = self.context.settings.seed;
        let once = sessions.iter().zip(runs).filter(|(session, run)| session.seed == seed && run.repeats == 1);
        let (again, first): (Vec<Session<'_>>, Vec<&Run>) =
            once.map(|(session, run)| (Session { trace: None, check: false, ..session.clone() }, run)).unzip();
        self.bar.inc_length(again.len() as u64);
        for ((session, first), second) in again.iter().zip(first).zip(self.runs(&again)?) {
            if let Some(difference) = first.difference(&second) {
                return Err(Error::Irreproducible(format!("{} did not repeat itself: {difference}", session.trial)));
            }
        }
        Ok(())
    }

    /// Whether a family has enough runs, and how many it is to have next.
    fn decide(&self, family: &mut Family, samples: &[Sample<'_>], elapsed: Duration) {
        let Repetition { min_runs, half_width, max_time } = self.context.settings.repetition;
        let own = || family.trials.iter().map(|trial| &samples[*trial]);
        let done = family.wanted;
        let widest = match &family.drawn {
            None if own().all(|sample| !sample.runs[0].random) => 0.0,
            None if done < u64::from(min_runs) => {
                family.wanted = u64::from(min_runs);
                return;
            }
            None => {
                let is_narrow = |sample: &Sample<'_>, metric| sample.estimate(metric).is_none_or(|estimate| estimate.is_within(half_width));
                let all = own().all(|sample| headline().all(|(metric, _)| is_narrow(sample, registered(metric.id))));
                if all { 0.0 } else { f64::INFINITY }
            }
            Some(baseline) => {
                let runs: Vec<Row> = own().flat_map(|sample| sample.rows(self)).collect();
                let rows = aggregate(&runs, baseline.as_deref(), Rule::Paired);
                let narrow = rows.iter().filter(|row| NARROW.contains(&row.metric) && row.subject.is_none());
                narrow.filter_map(relative_half_width).fold(0.0, f64::max)
            }
        };
        if widest <= half_width {
            family.state = State::Done;
        } else if elapsed >= max_time {
            family.state = State::CutShort;
        } else if family.drawn.is_some() {
            // A half-width shrinks with the root of the number of runs; no more than twice as many at a time, as it is a guess.
            let guess = (done as f64 * (widest / half_width).powi(2)).ceil() as u64;
            family.wanted = guess.clamp(done + 1, 2 * done);
        } else {
            family.wanted = done + 1;
        }
    }

    /// What the runs of a workload come to; `cut` are the trials for which the time was up.
    fn section<'p>(&self, samples: &[Sample<'_>], baseline: Option<String>, fidelity: Vec<Fidelity>, cut: &[&Trial<'_>]) -> Section<'p> {
        let rule = match samples.first() {
            Some(sample) if sample.trial.program.is_drawn() => Rule::Paired,
            Some(_) if self.world.capabilities().judged => Rule::Apart(&fidelity),
            _ => Rule::Nothing,
        };
        let runs: Vec<Row> = samples.iter().flat_map(|sample| sample.rows(self)).collect();
        let mut rows = aggregate(&runs, baseline.as_deref(), rule);
        let is_cut = |row: &Row| cut.iter().any(|trial| trial.cpus == row.cpus && trial.candidate.to_string() == row.candidate);
        for row in rows.iter_mut().filter(|row| row.note.is_none() && is_cut(row)) {
            if relative_half_width(row).is_some_and(|width| width > self.context.settings.repetition.half_width) {
                row.note = Some(CUT_SHORT.to_string());
            }
        }
        let distributions = samples.iter().flat_map(|sample| sample.distributions(&*self.world)).collect();
        let end = match cut.first() {
            None => Ok(()),
            Some(trial) => {
                Err(Error::Inconclusive(format!("{trial}: {CUT_SHORT}; give more with --max-time, or be content with less: --ci 5%")))
            }
        };
        Section { rows, baseline, distributions, fidelity, is_repeatable: cut.is_empty(), end, ..Section::new() }
    }
}

/// The replay of a recording as it was, and whether its events are kept: not if it is one of the trials as well, as one trace is enough.
fn replay<'o>(plan: &Plan<'o>, index: usize, program: &'o Program) -> Option<(Trial<'o>, bool)> {
    let Program::Replay(original) = program else { return None };
    let (cpus, candidate) = (original.recorded.recording.cpus, plan.baselines[index].clone()?);
    let own = || plan.trials.iter().zip(&plan.programs).filter(|(_, of)| **of == index).map(|(trial, _)| trial);
    let is_trial = own().any(|trial| trial.cpus == cpus || trial.program.is_changed());
    Some((Trial { program, candidate, cpus, member: None }, !is_trial))
}

/// The metrics of a replay beside those of its recording.
fn fidelity(original: &Program, replayed: &Sample<'_>) -> Vec<Fidelity> {
    let recorded = original.recorded().map(|(_, rows)| rows).unwrap_or_default();
    let of = |row: &Row| Some(Fidelity { metric: row.metric, recorded: row.value?, replayed: replayed.estimate(row.metric)?.mean });
    recorded.iter().filter_map(of).collect()
}

fn relative_half_width(row: &Row) -> Option<f64> {
    let (low, high) = row.ci_low.zip(row.ci_high)?;
    Some((high - low) / 2.0 / row.value?.abs())
}

impl Family {
    fn apart(trial: usize) -> Family {
        Family { trials: vec![trial], drawn: None, wanted: 1, state: State::Open }
    }
}

impl<'p> Sample<'p> {
    fn new(trial: Trial<'p>, is_traced: bool) -> Sample<'p> {
        Sample { trial, is_traced, runs: Vec::new() }
    }

    fn estimate(&self, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().map(|run| run.value(metric)).collect::<Option<Vec<f64>>>()?)
    }

    /// The numbers of each run.
    fn rows(&self, replication: &Replication<'_>) -> Vec<Row> {
        let is_seeded = replication.world.capabilities().determinism == Determinism::Seeded;
        let seeds = (replication.context.settings.seed..).map(|seed| is_seeded.then_some(seed));
        let of_run =
            |(run, seed): (&Run, Option<u64>)| run.rows.iter().map(|row| self.trial.stamp(row, seed, run.repeats)).collect::<Vec<_>>();
        self.runs.iter().zip(seeds).flat_map(of_run).collect()
    }

    fn distributions(&self, world: &dyn World) -> Vec<Distribution> {
        let summaries: Vec<_> = self.runs.iter().filter_map(|run| run.summary.as_ref()).collect();
        if summaries.is_empty() {
            return Vec::new();
        }
        let (workload, policy, backend) = (self.trial.program.name(), self.trial.title(), world.name().to_string());
        Distribution::of_case(
            distributions::Case { workload: &workload, policy: &policy, backend: &backend, cpus: self.trial.cpus },
            &summaries,
        )
    }
}
