//! The baseline against itself, and against itself unmeasured: what this machine can show, and what it costs to look.

use super::{ALPHA, HostCase, Plan, shuffled};
use crate::Error;
use crate::host::run::{Conditions, Place};
use crate::statistics::{Estimate, Paired, Question, Verdict, judge};
use indicatif::ProgressBar;
use schedsim::Random;
use std::time::Instant;

/// The makespans of one and the same, run three ways in turn. Shares are of its mean.
#[derive(Clone, Copy, Debug)]
pub struct Same {
    /// Rounds.
    pub runs: u32,
    /// The spread of single runs: half the width of the interval of their mean.
    pub spread: Estimate,
    /// The difference between the same and the same, which is none.
    pub difference: Estimate,
    /// What its verdict would have been.
    pub verdict: Verdict,
    /// What measuring adds: counters of migrations and the reading of run delays.
    pub overhead: Estimate,
}

impl Same {
    /// Runs it as often as rounds are wanted, in at most a quarter of the time, and at least twice.
    pub(super) fn run(plan: &Plan<'_>, place: &mut Place, progress: &ProgressBar) -> Result<Same, Error> {
        let mut cases = [0, 1, 2].map(|_| HostCase::new(plan.classes[0]));
        let bare = Conditions { bare: true, ..plan.conditions.clone() };
        let mut random = Random::new(plan.seed ^ 1);
        let begin = Instant::now();
        while cases[0].runs.len() < 2
            || (cases[0].runs.len() < plan.stopping.min_runs as usize && begin.elapsed() < plan.stopping.max_time / 4)
        {
            for index in shuffled(cases.len(), &mut random) {
                progress.set_message(format!("the baseline against itself, round {}", cases[index].runs.len() + 1));
                let conditions = if index == 2 { &bare } else { &plan.conditions };
                cases[index].runs.push(place.run(plan.name, plan.subject, cases[index].class, conditions)?);
                progress.inc(1);
            }
        }
        Ok(Same::of(&cases, plan.margin))
    }

    fn of([one, other, bare]: &[HostCase; 3], margin: f64) -> Same {
        const METRIC: &str = "makespan_ns";
        let mean = one.estimate(METRIC).map_or(f64::NAN, |estimate| estimate.mean);
        let share = |paired: Option<Paired>| {
            paired.map_or(Estimate { mean: f64::NAN, half_width: None }, |paired| Estimate {
                mean: paired.mean / mean,
                half_width: Some(paired.half_width(0.95) / mean),
            })
        };
        let paired = other.against(one, METRIC);
        let question = paired.map(|paired| Question { paired, margin: margin * mean, lower_is_better: true });
        let estimate = one.estimate(METRIC).unwrap_or(Estimate::exact(f64::NAN));
        Same {
            runs: one.runs.len() as u32,
            spread: Estimate { mean: estimate.mean, half_width: estimate.half_width.map(|width| width / mean) },
            difference: share(paired),
            verdict: judge(question.as_slice(), ALPHA).first().copied().unwrap_or(Verdict::Undecided),
            overhead: share(one.against(bare, METRIC)),
        }
    }

    /// Whether it says of the same that it differs.
    pub fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }
}
