//! The decision rule: which differences between a candidate and its baseline are called better, worse or equivalent.
//!
//! *Better* and *worse* need all of: an interval of the paired differences that excludes zero; a difference above the replay's own error; one sign in all but one run of
//! sixteen; survival of multiple comparisons over everything shown together. *Equivalent* needs two one-sided tests against a margin, and inside the margin it wins over the
//! other two. The rest is undecided, with the reason.
//!
//! Sources: Student (1908) and Wilcoxon (1945) for the tests, Schuirmann (1987) for two one-sided ones, Holm (1979) for many at once.

use super::{Estimate, Paired, Ranks, Verdict, holm, median};
use std::fmt;

/// A candidate against its baseline in one metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Candidate and baseline, by run: the same run of both saw the same world.
    pub pairs: Vec<(f64, f64)>,
    /// Whether a few runs may rule the mean: ranks decide then.
    pub heavy_tailed: bool,
    /// Whether the lower value is better.
    pub lower_is_better: bool,
    /// A difference below this makes none.
    pub margin: Margin,
    /// How far the replay is from what it replays.
    pub replay: Replay,
}

/// What is too small to matter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Margin {
    /// A share of the baseline.
    Share(f64),
    /// The same everywhere, in the metric's unit: for shares of a whole.
    Fixed(f64),
}

/// How far a replay is from its recording in a metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Replay {
    /// Nothing is replayed.
    None,
    /// As a share of the recorded value.
    Share(f64),
    /// In the metric's unit, where the recorded value is zero.
    Fixed(f64),
    /// The recording does not have the metric.
    Unknown,
}

/// What was decided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// Better, worse, equivalent or undecided.
    pub verdict: Verdict,
    /// Why it is undecided.
    pub reason: Option<Reason>,
    /// The difference as a share of the baseline; none where the baseline is zero.
    pub effect: Option<Effect>,
}

/// A difference as a share of the baseline, with the 95 % interval of this one alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// The difference.
    pub size: f64,
    /// The interval's ends; none where there are too few runs.
    pub interval: Option<(f64, f64)>,
}

/// Why a difference is undecided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// There are too few runs for any interval.
    Runs(usize),
    /// The recording does not have the metric, so the error of its replay is unknown.
    NotRecorded,
    /// The replay is as far from the recording; the share, where it is one.
    Replay(Option<f64>),
    /// The interval holds zero.
    Interval,
    /// How many runs have another sign than the difference, and how many runs there are.
    Sign(usize, usize),
    /// Among these comparisons one such difference is likely by chance.
    Comparisons(usize),
}

/// The numbers that decide one comparison.
struct Evidence {
    /// The difference, and its interval.
    centre: f64,
    interval: Option<(f64, f64)>,
    /// The baseline.
    base: f64,
    p_different: f64,
    p_beyond: f64,
}

/// Decides all `comparisons` that are shown together, so that with probability `1 - alpha` no verdict among them is wrong by chance. Each of the two families of tests has half
/// of `alpha`.
pub fn decide(comparisons: &[Comparison], alpha: f64) -> Vec<Decision> {
    let evidence: Vec<Option<Evidence>> = comparisons.iter().map(Comparison::evidence).collect();
    let of = |probability: fn(&Evidence) -> f64| -> Vec<f64> {
        holm(&evidence.iter().map(|evidence| evidence.as_ref().map_or(1.0, probability)).collect::<Vec<f64>>())
    };
    let (different, beyond) = (of(|evidence| evidence.p_different), of(|evidence| evidence.p_beyond));
    let one = |((comparison, evidence), (different, beyond)): ((&Comparison, &Option<Evidence>), (&f64, &f64))| {
        let Some(evidence) = evidence else { return Decision::undecided(Reason::Runs(comparison.pairs.len()), None) };
        let effect = evidence.effect();
        if *beyond <= alpha / 2.0 {
            return Decision { verdict: Verdict::Equivalent, reason: None, effect };
        }
        match comparison.doubt(evidence, *different > alpha / 2.0, comparisons.len()) {
            Some(reason) => Decision::undecided(reason, effect),
            None if (evidence.centre < 0.0) == comparison.lower_is_better => Decision { verdict: Verdict::Better, reason: None, effect },
            None => Decision { verdict: Verdict::Worse, reason: None, effect },
        }
    };
    comparisons.iter().zip(&evidence).zip(different.iter().zip(&beyond)).map(one).collect()
}

/// The error of a replay that has one error per run: at most one run of ten is further off. Of sixteen it is the second largest.
pub fn error_of_replay(errors: &[f64]) -> Option<f64> {
    let mut sorted = errors.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get((9 * sorted.len()).div_ceil(10).checked_sub(1)?).copied()
}

impl Comparison {
    /// None from less than two runs.
    fn evidence(&self) -> Option<Evidence> {
        let differences: Vec<f64> = self.pairs.iter().map(|(value, base)| value - base).collect();
        let mut bases: Vec<f64> = self.pairs.iter().map(|(_, base)| *base).collect();
        let paired = Paired::of(&self.pairs)?;
        let base = if self.heavy_tailed { median(&mut bases) } else { Estimate::of(&bases)?.mean };
        let margin = self.margin.at(base);
        if differences.iter().all(|difference| *difference == 0.0) {
            return Some(Evidence { centre: 0.0, interval: Some((0.0, 0.0)), base, p_different: 1.0, p_beyond: 0.0 });
        }
        Some(if self.heavy_tailed {
            let ranks = Ranks::of(&differences);
            let (p_different, p_beyond) = (ranks.p_different(), ranks.p_beyond(margin));
            Evidence { centre: ranks.centre(), interval: ranks.interval(), base, p_different, p_beyond }
        } else {
            let half_width = paired.half_width(0.95);
            let interval = Some((paired.mean - half_width, paired.mean + half_width));
            Evidence { centre: paired.mean, interval, base, p_different: paired.p_different(), p_beyond: paired.p_beyond(margin) }
        })
    }

    /// What stands against a verdict, what more runs cannot mend first.
    fn doubt(&self, evidence: &Evidence, is_chance: bool, comparisons: usize) -> Option<Reason> {
        let allowed = match self.replay {
            Replay::None => 0.0,
            Replay::Share(share) => share * evidence.base.abs(),
            Replay::Fixed(error) => error,
            Replay::Unknown => return Some(Reason::NotRecorded),
        };
        let others = self.pairs.iter().filter(|(value, base)| (value - base) * evidence.centre <= 0.0).count();
        let is_within = evidence.centre.abs() <= allowed;
        match evidence.interval {
            _ if is_within && allowed > 0.0 => Some(Reason::Replay(self.replay.share())),
            None => Some(Reason::Runs(self.pairs.len())),
            Some((low, high)) if low <= 0.0 && high >= 0.0 => Some(Reason::Interval),
            Some(_) if others > self.pairs.len() / 16 => Some(Reason::Sign(others, self.pairs.len())),
            Some(_) => is_chance.then_some(Reason::Comparisons(comparisons)),
        }
    }
}

impl Margin {
    fn at(self, base: f64) -> f64 {
        match self {
            Margin::Share(share) => share * base.abs(),
            Margin::Fixed(margin) => margin,
        }
    }
}

impl Replay {
    /// The error as a share, where it is one.
    fn share(self) -> Option<f64> {
        if let Replay::Share(share) = self { Some(share) } else { None }
    }
}

impl Decision {
    fn undecided(reason: Reason, effect: Option<Effect>) -> Decision {
        Decision { verdict: Verdict::Undecided, reason: Some(reason), effect }
    }
}

impl Evidence {
    fn effect(&self) -> Option<Effect> {
        // No metric is below zero: no more than all of the baseline can be lost.
        let share = |difference: f64| (difference / self.base.abs()).max(-1.0);
        (self.base != 0.0)
            .then(|| Effect { size: share(self.centre), interval: self.interval.map(|(low, high)| (share(low), share(high))) })
    }
}

/// As a row's reason.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Runs(1) => write!(f, "one run decides nothing"),
            Reason::Runs(runs) => write!(f, "{runs} runs are too few"),
            Reason::NotRecorded => write!(f, "the recording lacks this metric, so the replay's error is unknown"),
            Reason::Replay(Some(share)) => write!(f, "within the replay's error of {:.1} %", 100.0 * share),
            Reason::Replay(None) => write!(f, "within the replay's error"),
            Reason::Interval => write!(f, "the interval holds zero"),
            Reason::Sign(others, runs) => write!(f, "{others} of {runs} runs do not show it"),
            Reason::Comparisons(1) => write!(f, "not beyond chance"),
            Reason::Comparisons(all) => write!(f, "not beyond chance among {all} comparisons"),
        }
    }
}

#[cfg(test)]
mod tests;
