//! Ensembles of repeatable runs: every candidate has the same number of runs. Member k of each gets
//! the same nudge, so that differences are taken member by member.

use super::failed::{Failed, of_run};
use super::plan::Plan;
use super::samples::{Summed, sum_up};
use super::starving::Starving;
use super::unfinished::Unfinished;
use super::{Context, Fidelity, Section, yields};
use crate::results_directory::{Distribution, distributions};
use indicatif::ProgressBar;
use program::{Error, progress};
use results::{Metric, Row, headline};
use statistics::Estimate;
use std::time::Duration;
use worlds::{Determinism, Program, Run, Session, Trial, World};

/// The required width of intervals, and its limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goal {
    /// The largest 95 % half-width of the metrics that must be narrow, as a share of their mean.
    pub half_width: f64,
    /// The largest number of runs.
    pub max_runs: u32,
}

/// For drawn tasks the intervals of these metrics must be narrow. Intervals for parts of the tasks,
/// such as a priority, need not be.
const NARROW: [Metric; 3] = [Metric::grr, Metric::ngrr, Metric::slowdown_p50];

/// A trial and its runs.
struct Sample<'p> {
    trial: Trial<'p>,
    /// Whether the events of its first run are kept.
    is_traced: bool,
    runs: Vec<Run>,
    /// Why its candidate has no numbers; then it has no runs, and makes no more.
    failed: Option<Error>,
}

/// The trials of one workload; all that do not fail get the same number of runs.
struct Family {
    /// The trial indexes.
    trials: Vec<usize>,
    /// The baseline.
    baseline: Option<String>,
    /// The required number of runs.
    wanted: u32,
    state: State,
}

impl Family {
    /// How many runs each trial has that did not fail.
    fn done(&self, samples: &[Sample<'_>]) -> u32 {
        let own = self.trials.iter().map(|trial| samples[*trial].runs.len());
        own.max().unwrap_or_default() as u32
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    Done,
    CutShort(Limit),
}

/// The limit that ended an ensemble early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The time.
    Time,
    /// The number of runs.
    Runs,
}

impl Limit {
    /// The note of a row.
    pub fn note(self) -> &'static str {
        match self {
            Limit::Time => "inconclusive: the time was up before the ensemble was complete",
            Limit::Runs => "inconclusive: the interval is wider than --ci after all runs",
        }
    }

    /// The next step.
    pub fn advice(self) -> &'static str {
        match self {
            Limit::Time => "give more with --max-time, or leave it out",
            Limit::Runs => "give more with --max-runs, or be content with less: --ci 5%",
        }
    }
}

/// Runs each workload of `plan` in `world`.
///
/// # Errors
/// If all candidates fail, or a run does not repeat itself.
pub fn sections<'p>(
    world: &mut dyn World,
    plan: &Plan<'p>,
    context: &Context<'_>,
) -> Result<Vec<Section<'p>>, Error> {
    let bar = progress::bar("running", 0);
    let made = Replication { world, context, bar: &bar }.all(plan);
    bar.finish_and_clear();
    let mut sections = made?;
    yields::fit(&mut sections);
    Ok(sections)
}

/// Makes a single run. If runs are checked against the rules, makes it once more to check that it
/// repeats itself.
///
/// # Errors
/// If it fails, or does not repeat itself.
pub fn once(
    world: &mut dyn World,
    session: Session<'_>,
    context: &Context<'_>,
) -> Result<Run, Error> {
    let bar = progress::bar("running", 1);
    let mut replication = Replication { world, context, bar: &bar };
    let sessions = [session];
    let mut runs = replication.runs(&sessions)?;
    if context.settings.check {
        replication.expect_the_same(&sessions, &runs)?;
    }
    bar.finish_and_clear();
    runs.pop().unwrap_or_else(|| Err(Error::Internal("a world gave no run".to_string())))
}

/// Runs the plan of one world.
struct Replication<'a> {
    world: &'a mut dyn World,
    context: &'a Context<'a>,
    bar: &'a ProgressBar,
}

impl Replication<'_> {
    fn all<'p>(&mut self, plan: &Plan<'p>) -> Result<Vec<Section<'p>>, Error> {
        let programs = plan.by_program();
        // A recording is also replayed unchanged, under the policy nearest to the recorded
        // kernel's. This measures the error of the replay.
        let originals: Vec<(usize, Program)> = programs
            .iter()
            .filter_map(|(index, trials)| {
                Some((*index, Program::Replay(Box::new(trials.first()?.program.recorded()?.0))))
            })
            .collect();
        let replays: Vec<(Trial<'_>, bool)> =
            originals.iter().filter_map(|(index, program)| replay(plan, *index, program)).collect();
        let mut samples: Vec<Sample<'_>> = replays
            .iter()
            .map(|(trial, is_traced)| Sample::new(trial.clone(), *is_traced))
            .collect();
        samples.extend(plan.trials.iter().map(|trial| Sample::new(trial.clone(), true)));
        let mut families: Vec<Family> =
            (0..replays.len()).map(|replay| self.family(vec![replay], None)).collect();
        let mut next = replays.len();
        for (index, trials) in &programs {
            let own: Vec<usize> = (next..next + trials.len()).collect();
            next += trials.len();
            families
                .push(self.family(own, plan.baselines[*index].as_ref().map(ToString::to_string)));
        }
        self.repeat(&mut samples, &mut families)?;
        // Without the replay of a recording its error is not known, and without any run there is
        // nothing to show.
        let without = samples[..replays.len()].iter().find_map(|sample| sample.failed.clone());
        let all = samples.iter().all(|sample| sample.failed.is_some());
        let first = || samples.iter().find_map(|sample| sample.failed.clone());
        if let Some(failed) = without.or_else(|| first().filter(|_| all)) {
            return Err(failed);
        }
        let mut sections = Vec::new();
        let mut next = replays.len();
        // The families of the workloads follow those of the replays, in the same order.
        for ((program, trials), family) in programs.iter().zip(&families[replays.len()..]) {
            let own = next..next + trials.len();
            next = own.end;
            let original = originals.iter().position(|(index, _)| index == program);
            let fidelity = original.and_then(|at| {
                Some(Fidelity::of(
                    &originals[at].1,
                    &samples[..replays.len()].get(at)?.runs,
                    self.context.settings.by,
                ))
            });
            let limit = if let State::CutShort(limit) = family.state { Some(limit) } else { None };
            let baseline = plan.baselines[*program].as_ref().map(ToString::to_string);
            let section =
                self.section(&samples[own], baseline, fidelity.unwrap_or_default(), limit);
            sections.push(Section { program: *program, trials: trials.clone(), ..section });
        }
        Ok(sections)
    }

    fn family(&self, trials: Vec<usize>, baseline: Option<String>) -> Family {
        Family { trials, baseline, wanted: self.members(), state: State::Open }
    }

    /// The smallest number of runs of an ensemble.
    fn members(&self) -> u32 {
        self.context.settings.ensemble.unwrap_or(self.world.capabilities().ensemble)
    }

    /// Runs all families until none needs more runs.
    fn repeat(&mut self, samples: &mut [Sample<'_>], families: &mut [Family]) -> Result<(), Error> {
        let begin = self.world.clock();
        while families.iter().any(|family| family.state == State::Open) {
            let wanted = self.next(samples, families);
            self.bar.inc_length(wanted.len() as u64);
            let sessions: Vec<Session<'_>> = wanted
                .iter()
                .map(|(trial, number)| self.session(&samples[*trial], *number))
                .collect::<Result<_, _>>()?;
            let runs = self.runs(&sessions)?;
            if self.context.settings.check {
                self.expect_the_same(&sessions, &runs)?;
            }
            drop(sessions);
            wanted.into_iter().zip(runs).for_each(|((trial, _), run)| samples[trial].add(run));
            let elapsed = self.world.clock().saturating_sub(begin);
            for family in families.iter_mut().filter(|family| family.state == State::Open) {
                self.decide(family, samples, elapsed);
            }
        }
        Ok(())
    }

    /// The next runs, by trial and number: all required runs, or one for each trial if a time limit
    /// may end them.
    fn next(&self, samples: &[Sample<'_>], families: &[Family]) -> Vec<(usize, u32)> {
        let is_limited = self.context.settings.max_time.is_some();
        let of_family = |family: &Family| {
            let done = family.done(samples);
            let end = if is_limited { done + 1 } else { family.wanted };
            let going = family.trials.iter().filter(|trial| samples[**trial].failed.is_none());
            going
                .flat_map(move |trial| (done..end).map(move |number| (*trial, number)))
                .collect::<Vec<_>>()
        };
        families.iter().filter(|family| family.state == State::Open).flat_map(of_family).collect()
    }

    fn session<'s>(&self, sample: &Sample<'s>, number: u32) -> Result<Session<'s>, Error> {
        let settings = self.context.settings;
        let trial = sample.trial.clone();
        let is_first = number == 0;
        let trace = if is_first && sample.is_traced {
            self.context.trace(&*self.world, &trial)?
        } else {
            None
        };
        // For drawn tasks one draw is checked against the rules.
        let check = settings.check && (is_first || !trial.program.is_drawn());
        let member = (self.members() > 1).then_some(u64::from(number) + 1);
        Ok(Session {
            trial,
            seed: settings.seed + u64::from(number),
            member,
            check,
            observed: settings.observed(),
            trace,
        })
    }

    fn runs(&mut self, sessions: &[Session<'_>]) -> Result<Vec<Result<Run, Error>>, Error> {
        let of = |(session, run): (&Session<'_>, Result<Run, Error>)| {
            run.map_err(|error| of_run(&session.trial, error))
        };
        Ok(sessions.iter().zip(self.world.run(sessions, self.bar)?).map(of).collect())
    }

    /// Repeats each first session if the world did not: in a repeatable world the second run equals
    /// the first.
    fn expect_the_same(
        &mut self,
        sessions: &[Session<'_>],
        runs: &[Result<Run, Error>],
    ) -> Result<(), Error> {
        let seed = self.context.settings.seed;
        let once = sessions
            .iter()
            .zip(runs)
            .filter_map(|(session, run)| Some((session, run.as_ref().ok()?)))
            .filter(|(session, run)| session.seed == seed && run.repeats == 1);
        let (again, first): (Vec<Session<'_>>, Vec<&Run>) = once
            .map(|(session, run)| (Session { trace: None, check: false, ..session.clone() }, run))
            .unzip();
        self.bar.inc_length(again.len() as u64);
        for ((session, first), second) in again.iter().zip(first).zip(self.runs(&again)?) {
            if let Some(difference) = first.difference(&second?) {
                return Err(Error::Irreproducible(format!(
                    "{} did not repeat itself: {difference}",
                    session.trial
                )));
            }
        }
        Ok(())
    }

    /// Decides whether a family has enough runs, and how many it needs next.
    fn decide(&self, family: &mut Family, samples: &[Sample<'_>], elapsed: Duration) {
        let done = family.done(samples);
        if family.trials.iter().all(|trial| samples[*trial].failed.is_some()) {
            family.state = State::Done;
            return;
        }
        if done < family.wanted {
            if self.context.settings.max_time.is_some_and(|max_time| elapsed >= max_time) {
                family.state = State::CutShort(Limit::Time);
            }
            return;
        }
        let Some(Goal { half_width, max_runs }) = self.context.settings.goal else {
            family.state = State::Done;
            return;
        };
        let widest = self.widest(family, samples);
        family.state = match () {
            () if widest <= half_width => State::Done,
            () if done >= max_runs => State::CutShort(Limit::Runs),
            () if self.context.settings.max_time.is_some_and(|max_time| elapsed >= max_time) => {
                State::CutShort(Limit::Time)
            }
            () => State::Open,
        };
        // A half-width shrinks with the root of the number of runs. The guess may be wrong, so the
        // number of runs at most doubles.
        let guess = (f64::from(done) * (widest / half_width).powi(2)).ceil();
        family.wanted = (guess.min(1e9) as u32).clamp(done + 1, 2 * done).min(max_runs);
    }

    /// The widest of the intervals that must be narrow, as half its width over the value.
    fn widest(&self, family: &Family, samples: &[Sample<'_>]) -> f64 {
        let own =
            || family.trials.iter().map(|trial| &samples[*trial]).filter(|of| of.failed.is_none());
        if !own().any(|sample| sample.trial.program.is_drawn()) {
            let narrow =
                || headline().map(|(metric, _)| metric).filter(|metric| !metric.is_heavy_tailed());
            let width = |sample: &Sample<'_>, metric| {
                sample.estimate(metric).map_or(0.0, |estimate| estimate.relative_half_width())
            };
            return own()
                .flat_map(|sample| narrow().map(move |metric| width(sample, metric)))
                .fold(0.0, f64::max);
        }
        let runs: Vec<(u64, Row)> = own().flat_map(|sample| sample.rows(self)).collect();
        let rows = sum_up(&runs, family.baseline.as_deref(), &[]).rows;
        let narrow =
            rows.iter().filter(|row| NARROW.contains(&row.metric) && row.subject.is_none());
        narrow.filter_map(relative_half_width).fold(0.0, f64::max)
    }

    /// The results of a workload; `limit` is what ended its runs early.
    fn section<'p>(
        &self,
        samples: &[Sample<'_>],
        baseline: Option<String>,
        fidelity: Vec<Fidelity>,
        limit: Option<Limit>,
    ) -> Section<'p> {
        let runs: Vec<(u64, Row)> = samples.iter().flat_map(|sample| sample.rows(self)).collect();
        let Summed { mut rows, compared } = sum_up(&runs, baseline.as_deref(), &fidelity);
        let (mut failed, seed) = (Vec::new(), self.context.settings.seed);
        for Sample { trial, failed: why, .. } in samples {
            if let Some(of) = why.as_ref().map(|why| Failed::of(trial, why)) {
                rows.extend(of.rows(trial, &*self.world, baseline.as_deref(), seed));
                failed.push(of);
            }
        }
        let goal = self.context.settings.goal.map_or(0.0, |goal| goal.half_width);
        for row in rows.iter_mut().filter(|row| row.note.is_none()) {
            row.note = limit
                .filter(|_| relative_half_width(row).is_none_or(|width| width > goal))
                .map(|limit| limit.note().to_string());
        }
        let distributions =
            samples.iter().flat_map(|sample| sample.distributions(&*self.world)).collect();
        let end = match (limit, samples.first()) {
            (Some(limit), Some(sample)) => Err(Error::Inconclusive(format!(
                "{}: {}; {}",
                sample.trial.program.name(),
                limit.note(),
                limit.advice()
            ))),
            _ => Ok(()),
        };
        let starving =
            baseline.as_deref().map_or(Vec::new(), |baseline| starving(samples, baseline));
        let unfinished = samples
            .iter()
            .filter_map(|sample| Unfinished::of(&sample.trial, &sample.runs))
            .collect();
        let is_repeatable = limit != Some(Limit::Time);
        let is_ensemble = samples.iter().any(|sample| sample.runs.len() > 1);
        let whole = |(_, row): &&(u64, Row)| is_ensemble && row.subject.is_none();
        let members = runs.iter().filter(whole);
        let members = members.map(|(member, row)| row.clone().at("member", *member)).collect();
        Section {
            rows,
            members,
            compared,
            baseline,
            distributions,
            fidelity,
            failed,
            starving,
            unfinished,
            is_repeatable,
            end,
            ..Section::new()
        }
    }
}

/// The unchanged replay of a recording, and whether its events are kept. They are not kept if it is
/// also one of the trials: one trace is enough.
fn replay<'o>(plan: &Plan<'o>, index: usize, program: &'o Program) -> Option<(Trial<'o>, bool)> {
    let Program::Replay(original) = program else { return None };
    let (cpus, candidate) = (original.recorded.recording.cpus, plan.baselines[index].clone()?);
    let own = || {
        plan.trials
            .iter()
            .zip(&plan.programs)
            .filter(|(_, of)| **of == index)
            .map(|(trial, _)| trial)
    };
    let is_trial = own().any(|trial| trial.cpus == cpus || trial.program.is_changed());
    Some((Trial { program, candidate, cpus }, !is_trial))
}

/// The candidates under which programs starve, compared with the baseline on the same CPUs.
fn starving(samples: &[Sample<'_>], baseline: &str) -> Vec<Starving> {
    let of = |sample: &Sample<'_>| {
        let is_base = |other: &&Sample<'_>| {
            other.trial.cpus == sample.trial.cpus && other.trial.candidate.to_string() == baseline
        };
        let base = samples.iter().find(is_base).filter(|base| !std::ptr::eq(*base, sample))?;
        if base.failed.is_some() || sample.failed.is_some() {
            return None;
        }
        Starving::of(&sample.trial, &sample.runs, &base.runs)
    };
    samples.iter().filter_map(of).collect()
}

fn relative_half_width(row: &Row) -> Option<f64> {
    let (low, high) = row.ci_low.zip(row.ci_high)?;
    Some((high - low) / 2.0 / row.value?.abs())
}

impl<'p> Sample<'p> {
    fn new(trial: Trial<'p>, is_traced: bool) -> Sample<'p> {
        Sample { trial, is_traced, runs: Vec::new(), failed: None }
    }

    /// Adds a run. Once one has failed, the candidate has no numbers.
    fn add(&mut self, run: Result<Run, Error>) {
        match run {
            Ok(run) if self.failed.is_none() => self.runs.push(run),
            Ok(_) => {}
            Err(why) => {
                self.runs.clear();
                self.failed.get_or_insert(why);
            }
        }
    }

    fn estimate(&self, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.runs.iter().map(|run| run.value(metric)).collect::<Option<Vec<f64>>>()?)
    }

    /// The numbers of each run, by member.
    fn rows(&self, replication: &Replication<'_>) -> Vec<(u64, Row)> {
        let is_seeded = replication.world.capabilities().determinism != Determinism::Noisy;
        let name = replication.world.name();
        let of_run = |(number, run): (u64, &Run)| {
            let seed = is_seeded.then_some(replication.context.settings.seed + number);
            let parts =
                replication.context.settings.by.map_or(Vec::new(), |by| run.parts(by, &name));
            run.rows
                .iter()
                .chain(&parts)
                .map(|row| (number + 1, self.trial.stamp(row, seed)))
                .collect::<Vec<_>>()
        };
        (0..).zip(&self.runs).flat_map(of_run).collect()
    }

    fn distributions(&self, world: &dyn World) -> Vec<Distribution> {
        let summaries: Vec<_> = self.runs.iter().filter_map(|run| run.summary.as_ref()).collect();
        if summaries.is_empty() {
            return Vec::new();
        }
        let (workload, candidate, world) =
            (self.trial.program.name(), self.trial.candidate.to_string(), world.name().to_string());
        Distribution::of_case(
            distributions::Case {
                workload: &workload,
                candidate: &candidate,
                world: &world,
                cpus: self.trial.cpus,
            },
            &summaries,
        )
    }
}
