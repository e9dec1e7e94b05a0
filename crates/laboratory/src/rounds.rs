//! Repetition of runs that are never equal: interleaved in rounds, in random order, until there are
//! enough.
//!
//! A replicate is a run. A round runs every candidate once, in a new random order. The difference
//! of a candidate from the baseline is taken within each round, so that changes of the machine over
//! time cancel out. First the baseline is compared with itself: that gives the smallest difference
//! that the machine can show.

mod itself;
mod stopping;
mod table;

pub use stopping::{Precision, Stopping};
pub use table::RAW_HEADER;

use super::plan::Plan;
use super::replication::Limit;
use super::samples::{ALPHA, margin};
use super::{Context, Section};
use indicatif::ProgressBar;
use itself::Itself;
use program::{Error, progress};
use results::{Better, Metric, Verdict};
use schedsim::Random;
use statistics::{Comparison, Decision, Estimate, Margin, Paired, Replay, decide, spent_at};
use worlds::{Measure, Observed, Run, Session, Trial, World};

/// The repetition of runs that are never equal.
#[derive(Clone, Copy, Debug)]
pub struct RoundSettings {
    /// The number of rounds that are not counted.
    pub warm_up: u32,
    /// Whether the baseline first runs against itself.
    pub against_itself: bool,
    /// The stopping rule.
    pub stopping: Stopping,
    /// A smaller difference, as a share of the baseline's mean, does not matter.
    pub margin: f64,
}

/// A candidate and its runs.
pub struct Case<'p> {
    /// The trial.
    pub trial: Trial<'p>,
    /// By round.
    pub runs: Vec<Result<Run, Error>>,
    /// The reason why it cannot run.
    pub refused: Option<Error>,
}

/// The candidates on one number of CPUs.
pub struct Rounds<'p> {
    /// The cases; the baseline's is the first.
    pub cases: Vec<Case<'p>>,
    /// The comparison of the baseline with itself, if it was made.
    itself: Option<Itself>,
    /// The number of looks at the runs.
    looks: u32,
    /// The limit that ended it before it was precise or decided.
    cut: Option<Limit>,
    /// The decisions, by case and metric.
    decisions: Vec<(usize, Metric, Decision)>,
    /// The metrics of the world.
    measures: Vec<Measure>,
    settings: RoundSettings,
    seed: u64,
}

/// Runs each workload of `plan` in `world`.
///
/// # Errors
/// If nothing can be run at all. A refused candidate or a failed run is reported in the results.
pub fn sections<'p>(
    world: &mut dyn World,
    plan: &Plan<'p>,
    context: &Context<'_>,
) -> Result<Vec<Section<'p>>, Error> {
    let mut sections = Vec::new();
    for (program, trials) in plan.by_program() {
        let baseline = plan.baselines[program].as_ref().map(ToString::to_string);
        let mut section = Section {
            program,
            trials: trials.clone(),
            baseline,
            is_repeatable: false,
            ..Section::new()
        };
        let mut counts: Vec<u16> = trials.iter().map(|trial| trial.cpus).collect();
        counts.dedup();
        for cpus in counts {
            let own: Vec<Trial<'p>> =
                trials.iter().filter(|trial| trial.cpus == cpus).cloned().collect();
            let bar = progress::bar("measuring", 0);
            let rounds = Rounds::run(world, own, context, &bar);
            let events = rounds.and_then(|rounds| {
                let events = if context.settings.events {
                    rounds.with_events(world, context, &bar)?
                } else {
                    Vec::new()
                };
                Ok((rounds, events))
            });
            bar.finish_and_clear();
            let (rounds, events) = events?;
            section.rows.extend(rounds.rows(world));
            section.rows.extend(events);
            section.notes += &rounds.notes();
            section.singles += &rounds.singles();
            if section.end.is_ok() {
                section.end = rounds.end();
            }
        }
        sections.push(section);
    }
    Ok(sections)
}

impl<'p> Rounds<'p> {
    fn run(
        world: &mut dyn World,
        trials: Vec<Trial<'p>>,
        context: &Context<'_>,
        progress: &ProgressBar,
    ) -> Result<Rounds<'p>, Error> {
        let (seed, settings) = (context.settings.seed, context.settings.rounds);
        let measures = trials
            .first()
            .map_or(Vec::new(), |baseline| world.measures(baseline.program, baseline.cpus));
        let cases = trials
            .into_iter()
            .map(|trial| Case { trial, runs: Vec::new(), refused: None })
            .collect();
        let mut rounds = Rounds {
            cases,
            itself: None,
            looks: 0,
            cut: None,
            decisions: Vec::new(),
            measures,
            settings,
            seed,
        };
        let first: Vec<Session<'_>> =
            rounds.cases.iter().map(|case| case.session(seed, Observed::Measured)).collect();
        let first = world.run(&first, progress)?;
        rounds.cases.iter_mut().zip(first).for_each(|(case, run)| case.refused = run.err());
        if settings.against_itself
            && rounds.cases.first().is_some_and(|baseline| baseline.refused.is_none())
        {
            rounds.itself =
                Some(Itself::run(&rounds.cases[0].trial, world, settings, seed, progress)?);
        }
        rounds.repeat(world, progress)?;
        Ok(rounds)
    }

    /// Runs rounds until there are enough.
    fn repeat(&mut self, world: &mut dyn World, progress: &ProgressBar) -> Result<(), Error> {
        let mut random = Random::new(self.seed);
        let begin = world.clock();
        let mut rounds = 0;
        while self.cases.iter().any(|case| case.refused.is_none()) {
            let counts = rounds >= self.settings.warm_up;
            let order: Vec<usize> = shuffled(self.cases.len(), &mut random);
            let order: Vec<usize> =
                order.into_iter().filter(|index| self.cases[*index].refused.is_none()).collect();
            let sessions: Vec<Session<'_>> = order
                .iter()
                .map(|index| self.cases[*index].session(self.seed, Observed::Measured))
                .collect();
            let runs = world.run(&sessions, progress)?;
            drop(sessions);
            for (index, run) in order.into_iter().zip(runs).filter(|_| counts) {
                self.cases[index].runs.push(run);
                self.cases[index].give_up();
            }
            rounds += 1;
            let done = rounds.saturating_sub(self.settings.warm_up);
            let elapsed = world.clock().saturating_sub(begin);
            let limit = self.settings.stopping.limit(done, elapsed);
            if limit.is_some() || self.settings.stopping.is_time_to_look(done, self.looks, elapsed)
            {
                let is_enough = self.look() && done >= self.settings.stopping.min_runs;
                self.cut = limit.filter(|_| !is_enough);
                if limit.is_some() || is_enough {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Decides on the runs so far; true if they are enough.
    fn look(&mut self) -> bool {
        self.looks += 1;
        let (mut places, mut comparisons) = (Vec::new(), Vec::new());
        let baseline = &self.cases[0];
        for (index, case) in self.cases.iter().enumerate().skip(1) {
            for Measure { metric, direction, .. } in
                self.measures.iter().copied().filter(|measure| measure.direction != Better::Neither)
            {
                let pairs = case.pairs(baseline, metric);
                if pairs.len() > 1 {
                    places.push((index, metric));
                    let margin = if let Margin::Share(_) = margin(metric) {
                        Margin::Share(self.settings.margin)
                    } else {
                        margin(metric)
                    };
                    let (heavy_tailed, lower_is_better) =
                        (metric.is_heavy_tailed(), direction == Better::Lower);
                    comparisons.push(Comparison {
                        pairs,
                        heavy_tailed,
                        lower_is_better,
                        margin,
                        replay: Replay::None,
                    });
                }
            }
        }
        let decisions = decide(&comparisons, spent_at(self.looks, ALPHA));
        self.decisions = places
            .into_iter()
            .zip(decisions)
            .map(|((case, metric), decision)| (case, metric, decision))
            .collect();
        let is_decided = |index: usize| {
            self.decision(index, Metric::makespan_ns)
                .is_some_and(|decision| decision.verdict != Verdict::Undecided)
        };
        let is_precise =
            |index: usize| self.settings.stopping.is_precise(&self.cases[index], &self.cases[0]);
        let running = |index: &usize| self.cases[*index].refused.is_none();
        (0..self.cases.len())
            .filter(running)
            .all(|index| is_precise(index) || (index > 0 && is_decided(index)))
    }

    /// The decision about a case in a metric.
    fn decision(&self, case: usize, metric: Metric) -> Option<Decision> {
        self.decisions
            .iter()
            .find(|(of, id, _)| *of == case && *id == metric)
            .map(|(_, _, decision)| *decision)
    }

    /// One more run of each runnable candidate, with its events.
    fn with_events(
        &self,
        world: &mut dyn World,
        context: &Context<'_>,
        progress: &ProgressBar,
    ) -> Result<Vec<results::Row>, Error> {
        let mut rows = Vec::new();
        for case in self.cases.iter().filter(|case| case.refused.is_none()) {
            let trace = context.trace(&*world, &case.trial)?;
            let session = Session { trace, ..case.session(self.seed, Observed::Events) };
            for run in world.run(&[session], progress)? {
                let run = run?;
                let parts =
                    context.settings.by.map_or(Vec::new(), |by| run.parts(by, &world.name()));
                rows.extend(
                    run.rows.iter().chain(&parts).map(|row| case.trial.stamp(row, Some(self.seed))),
                );
            }
        }
        Ok(rows)
    }
}

impl<'p> Case<'p> {
    fn session(&self, seed: u64, observed: Observed) -> Session<'p> {
        Session {
            trial: self.trial.clone(),
            seed,
            member: None,
            check: false,
            observed,
            trace: None,
        }
    }

    /// The values of a metric, by round.
    fn values(&self, metric: Metric) -> impl Iterator<Item = Option<f64>> + '_ {
        self.runs.iter().map(move |run| run.as_ref().ok().and_then(|run| run.value(metric)))
    }

    /// The mean of a metric over the runs that have it.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        Estimate::of(&self.values(metric).flatten().collect::<Vec<_>>())
    }

    /// The differences of its runs from the baseline's in the same rounds.
    pub fn against(&self, baseline: &Case<'_>, metric: Metric) -> Option<Paired> {
        Paired::of(&self.pairs(baseline, metric))
    }

    /// The values of both in the same rounds.
    fn pairs(&self, baseline: &Case<'_>, metric: Metric) -> Vec<(f64, f64)> {
        self.values(metric)
            .zip(baseline.values(metric))
            .filter_map(|(value, base)| Some((value?, base?)))
            .collect()
    }

    /// The runs that failed, by round.
    fn failures(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.runs.iter().enumerate().filter_map(|(round, run)| Some((round, run.as_ref().err()?)))
    }

    /// Stops a case after three failures in a row.
    fn give_up(&mut self) {
        const ENOUGH: usize = 3;
        if self.runs.len() >= ENOUGH && self.runs.iter().rev().take(ENOUGH).all(Result::is_err) {
            self.refused = self.runs.last().and_then(|run| run.as_ref().err().cloned());
        }
    }
}

/// The numbers below `count` in random order (Fisher & Yates).
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}
