//! Policies on this machine: interleaved runs in random order, as many as it takes, and what comes of them.
//!
//! A replicate is a run. A round runs every policy once, in an order drawn anew; the difference of a policy from the baseline is taken within each round, so that what the
//! machine did meanwhile drops out. First the baseline is compared with itself: what that shows is the smallest difference this machine can show.

mod recorded;
mod rows;
mod same;
mod stopping;

pub use recorded::Recorded as RecordedRun;
pub use same::Same;
pub use stopping::{Precision, Stopping};

use crate::Error;
use crate::host::measured::{METRICS, Measured};
use crate::host::run::{Conditions, Place, Subject};
use crate::statistics::{Estimate, Paired, Question, Verdict, judge, spent_at};
use indicatif::ProgressBar;
use schedlab_runner::class::Class;
use schedsim::Random;
use schedsim::metrics::Better;
use std::time::Instant;

/// What is compared, and how.
pub struct Plan<'a> {
    /// The workload's name.
    pub name: &'a str,
    /// What runs.
    pub subject: &'a Subject,
    /// The kernel's classes; the first is the baseline.
    pub classes: &'a [Class],
    /// How it runs.
    pub conditions: Conditions,
    /// Draws the orders.
    pub seed: u64,
    /// Rounds that are not counted.
    pub warm_up: u32,
    /// Whether the baseline is run against itself first.
    pub against_itself: bool,
    /// When it is enough.
    pub stopping: Stopping,
    /// A difference smaller than this share of the baseline's mean makes none.
    pub margin: f64,
}

/// A class, and its runs.
pub struct HostCase {
    /// The class.
    pub class: Class,
    /// By round; a run that failed is none.
    pub runs: Vec<Result<Measured, String>>,
    /// Why it is not run at all.
    pub refused: Option<String>,
}

/// A finished comparison on one number of CPUs.
pub struct HostComparison {
    /// The baseline's first.
    pub cases: Vec<HostCase>,
    /// The baseline against itself; `None` if it was not run.
    pub same: Option<Same>,
    /// How often the runs were looked at.
    pub looks: u32,
    /// Whether the time was up before the intervals were narrow enough or all was decided.
    pub inconclusive: bool,
    /// What is judged, by case and metric.
    verdicts: Vec<(usize, &'static str, Verdict)>,
}

/// All verdicts together are wrong with at most this probability.
pub const ALPHA: f64 = 0.05;

impl HostCase {
    fn new(class: Class) -> HostCase {
        HostCase { class, runs: Vec::new(), refused: None }
    }

    /// A metric by round.
    pub fn values<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = Option<f64>> + 'a {
        self.runs.iter().map(move |run| run.as_ref().ok().and_then(|run| run.value(metric)))
    }

    /// A metric over the runs that have it.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(&self.values(metric).flatten().collect::<Vec<_>>())
    }

    /// How its runs differ from the baseline's in the same rounds.
    pub fn against(&self, baseline: &HostCase, metric: &str) -> Option<Paired> {
        let pairs = self.values(metric).zip(baseline.values(metric)).filter_map(|(value, base)| Some((value?, base?)));
        Paired::of(&pairs.collect::<Vec<_>>())
    }

    /// The messages of the runs that failed, by round.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &str)> {
        self.runs.iter().enumerate().filter_map(|(round, run)| Some((round, run.as_ref().err()?.as_str())))
    }
}

impl HostComparison {
    /// Runs `plan`.
    ///
    /// # Errors
    /// If nothing can be run at all. A class that the kernel refuses, or a run that fails, is told in its case.
    pub fn run(plan: &Plan<'_>, place: &mut Place, progress: &ProgressBar) -> Result<HostComparison, Error> {
        let mut cases: Vec<HostCase> = plan.classes.iter().copied().map(HostCase::new).collect();
        for case in &mut cases {
            progress.set_message(format!("trying kernel:{}", case.class));
            let first = place.run(plan.name, plan.subject, case.class, &plan.conditions)?;
            case.refused = first.err();
        }
        let is_there = cases.first().is_some_and(|baseline| baseline.refused.is_none());
        let same = if is_there && plan.against_itself { Some(Same::run(plan, place, progress)?) } else { None };
        let mut comparison = HostComparison { cases, same, looks: 0, inconclusive: false, verdicts: Vec::new() };
        comparison.rounds(plan, place, progress)?;
        Ok(comparison)
    }

    /// Runs rounds until it is enough.
    fn rounds(&mut self, plan: &Plan<'_>, place: &mut Place, progress: &ProgressBar) -> Result<(), Error> {
        let mut random = Random::new(plan.seed);
        let begin = Instant::now();
        let mut rounds = 0;
        while self.cases.iter().any(|case| case.refused.is_none()) {
            let counts = rounds >= plan.warm_up;
            for index in shuffled(self.cases.len(), &mut random) {
                let case = &mut self.cases[index];
                if case.refused.is_some() {
                    continue;
                }
                progress.set_message(format!("round {}: kernel:{}", rounds + 1, case.class));
                let run = place.run(plan.name, plan.subject, case.class, &plan.conditions)?;
                progress.inc(1);
                if counts {
                    case.runs.push(run);
                    case.give_up();
                }
            }
            rounds += 1;
            let done = rounds.saturating_sub(plan.warm_up);
            let is_over = plan.stopping.is_over(done, begin.elapsed());
            if is_over || plan.stopping.is_time_to_look(done, self.looks, begin.elapsed()) {
                let is_enough = self.look(plan);
                self.inconclusive = is_over && !is_enough;
                if is_over || is_enough {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Judges what there is so far; true if that is enough.
    fn look(&mut self, plan: &Plan<'_>) -> bool {
        self.looks += 1;
        let (mut asked, mut questions) = (Vec::new(), Vec::new());
        let baseline = &self.cases[0];
        for (index, case) in self.cases.iter().enumerate().skip(1) {
            for metric in METRICS.iter().filter(|metric| metric.better != Better::Neither) {
                let base = baseline.estimate(metric.id).filter(|base| base.mean > 0.0);
                let Some((paired, base)) = case.against(baseline, metric.id).zip(base) else { continue };
                asked.push((index, metric.id));
                questions.push(Question { paired, margin: plan.margin * base.mean, lower_is_better: metric.better == Better::Lower });
            }
        }
        let verdicts = judge(&questions, spent_at(self.looks, ALPHA));
        self.verdicts = asked.into_iter().zip(verdicts).map(|((case, metric), verdict)| (case, metric, verdict)).collect();
        let is_decided = |index: usize| self.verdict(index, "makespan_ns").is_some_and(|verdict| verdict != Verdict::Undecided);
        let is_precise = |index: usize| plan.stopping.is_precise(&self.cases[index], &self.cases[0]);
        let running = |index: &usize| self.cases[*index].refused.is_none();
        (0..self.cases.len()).filter(running).all(|index| is_precise(index) || (index > 0 && is_decided(index)))
    }

    /// The verdict on a case in a metric.
    pub fn verdict(&self, case: usize, metric: &str) -> Option<Verdict> {
        self.verdicts.iter().find(|(of, id, _)| *of == case && *id == metric).map(|(_, _, verdict)| *verdict)
    }
}

impl HostCase {
    /// Three failures, one after another, are enough to know.
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
