//! The baseline against itself, and against itself unobserved: the smallest visible difference, and
//! the cost of the observation.

use super::{Case, RoundSettings, shuffled};
use crate::samples::ALPHA;
use indicatif::ProgressBar;
use program::Error;
use results::{Metric, Verdict};
use schedsim::Random;
use statistics::{Comparison, Estimate, Margin, Paired, Replay, decide};
use worlds::{Observed, Session, Trial, World};

/// The makespans of one candidate, run three ways in rotation. Shares are relative to its mean.
#[derive(Clone, Copy, Debug)]
pub struct Itself {
    /// The number of rounds.
    pub runs: u32,
    /// The spread of single runs: half the width of the interval of their mean.
    pub spread: Estimate,
    /// The difference of the candidate from itself; its true value is zero.
    pub difference: Estimate,
    /// The verdict on this difference.
    pub verdict: Verdict,
    /// The cost of the observation.
    pub overhead: Estimate,
}

impl Itself {
    /// Runs the required number of rounds, in at most a quarter of the time, but at least two.
    pub fn run(
        baseline: &Trial<'_>,
        world: &mut dyn World,
        settings: RoundSettings,
        seed: u64,
        progress: &ProgressBar,
    ) -> Result<Itself, Error> {
        let mut cases =
            [(); 3].map(|()| Case { trial: baseline.clone(), runs: Vec::new(), refused: None });
        let mut random = Random::new(seed ^ 1);
        let begin = world.clock();
        while cases[0].runs.len() < 2
            || (cases[0].runs.len() < settings.stopping.min_runs as usize
                && settings
                    .stopping
                    .max_time
                    .is_none_or(|max_time| world.clock().saturating_sub(begin) < max_time / 4))
        {
            let order = shuffled(cases.len(), &mut random);
            let observed =
                |index: usize| if index == 2 { Observed::Bare } else { Observed::Measured };
            let sessions: Vec<Session<'_>> =
                order.iter().map(|&index| cases[index].session(seed, observed(index))).collect();
            let runs = world.run(&sessions, progress)?;
            drop(sessions);
            order.into_iter().zip(runs).for_each(|(index, run)| cases[index].runs.push(run));
        }
        Ok(Itself::of(&cases, settings.margin))
    }

    fn of([one, other, bare]: &[Case<'_>; 3], margin: f64) -> Itself {
        const METRIC: Metric = Metric::makespan_ns;
        let mean = one.estimate(METRIC).map_or(f64::NAN, |estimate| estimate.mean);
        let share = |paired: Option<Paired>| {
            paired.map_or(Estimate { mean: f64::NAN, half_width: None }, |paired| Estimate {
                mean: paired.mean / mean,
                half_width: Some(paired.half_width(0.95) / mean),
            })
        };
        let paired = other.against(one, METRIC);
        let pairs = other.pairs(one, METRIC);
        let comparison = Comparison {
            pairs,
            heavy_tailed: false,
            lower_is_better: true,
            margin: Margin::Share(margin),
            replay: Replay::None,
        };
        let estimate = one.estimate(METRIC).unwrap_or(Estimate::exact(f64::NAN));
        Itself {
            runs: one.runs.len() as u32,
            spread: Estimate {
                mean: estimate.mean,
                half_width: estimate.half_width.map(|width| width / mean),
            },
            difference: share(paired),
            verdict: decide(&[comparison], ALPHA)[0].verdict,
            overhead: share(one.against(bare, METRIC)),
        }
    }

    /// Whether the candidate is called different from itself.
    pub fn is_wrong(&self) -> bool {
        matches!(self.verdict, Verdict::Better | Verdict::Worse)
    }
}
