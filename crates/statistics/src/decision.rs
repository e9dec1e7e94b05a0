//! The decision rule: whether a candidate is better than its baseline, worse or equivalent.
//!
//! *Better* and *worse* need all of four conditions. An interval of the paired differences excludes
//! zero. The difference is above the replay's own error. All runs but one of sixteen have one sign.
//! The result survives multiple comparisons over all rows shown together. *Equivalent* needs two
//! one-sided tests against a margin, and wins inside the margin. Every other case is undecided,
//! with the reason.
//!
//! Sources: Student (1908) and Wilcoxon (1945) for the tests, Schuirmann (1987) for two one-sided
//! tests, Holm (1979) for multiple comparisons.

use super::{Estimate, Paired, Ranks, Verdict, holm, median};
use std::fmt;

/// A candidate against its baseline in one metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Candidate and baseline of each run. Both values of a pair come from the same seed.
    pub pairs: Vec<(f64, f64)>,
    /// Whether a few runs can dominate the mean; then ranks decide.
    pub heavy_tailed: bool,
    /// Whether the lower value is better.
    pub lower_is_better: bool,
    /// A smaller difference does not matter.
    pub margin: Margin,
    /// The error of the replay.
    pub replay: Replay,
}

/// The difference that is too small to matter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Margin {
    /// A share of the baseline.
    Share(f64),
    /// An absolute difference in the metric's unit, for metrics that are shares.
    Fixed(f64),
}

/// The error of a replay against its recording, in one metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Replay {
    /// The run is not a replay.
    None,
    /// As a share of the recorded value.
    Share(f64),
    /// In the metric's unit, if the recorded value is zero.
    Fixed(f64),
    /// The recording lacks this metric.
    Unknown,
}

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided.
    pub reason: Option<Reason>,
    /// The difference, in the metric's unit; absent if there are too few runs.
    pub difference: Option<Effect>,
    /// The difference as a share of the baseline; absent if it is ten times the baseline or more.
    pub effect: Option<Effect>,
}

/// A difference, with its own 95 % interval (not corrected for multiple comparisons).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// The difference.
    pub size: f64,
    /// The ends of the interval; absent if there are too few runs.
    pub interval: Option<(f64, f64)>,
}

/// From this multiple on, a share of the baseline has no meaning: the baseline is almost zero. The
/// difference itself is shown.
pub const BEYOND_SHARES: f64 = 10.0;

/// Why a difference is undecided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reason {
    /// Too few runs for an interval.
    Runs(usize),
    /// The recording lacks the metric, so the replay's error is unknown.
    NotRecorded,
    /// The difference is within the replay's error; as a share, if it is one.
    Replay(Option<f64>),
    /// The interval includes zero.
    Interval,
    /// Runs with the opposite sign, and all runs.
    Sign(usize, usize),
    /// Not significant among this number of comparisons.
    Comparisons(usize),
}

/// The numbers that decide one comparison.
struct Evidence {
    /// The centre of the difference, and its interval.
    centre: f64,
    interval: Option<(f64, f64)>,
    /// The baseline.
    base: f64,
    p_different: f64,
    p_beyond: f64,
}

/// Decides all `comparisons` that are shown together: with probability `1 - alpha` no verdict among
/// them is wrong by chance. Each of the two families of tests gets half of `alpha`.
pub fn decide(comparisons: &[Comparison], alpha: f64) -> Vec<Decision> {
    let evidence: Vec<Option<Evidence>> = comparisons.iter().map(Comparison::evidence).collect();
    let of = |probability: fn(&Evidence) -> f64| -> Vec<f64> {
        holm(
            &evidence
                .iter()
                .map(|evidence| evidence.as_ref().map_or(1.0, probability))
                .collect::<Vec<f64>>(),
        )
    };
    let (different, beyond) =
        (of(|evidence| evidence.p_different), of(|evidence| evidence.p_beyond));
    let one = |((comparison, evidence), (different, beyond)): (
        (&Comparison, &Option<Evidence>),
        (&f64, &f64),
    )| {
        let Some(evidence) = evidence else {
            return Decision::without_runs(comparison.pairs.len());
        };
        let decided = |verdict| Decision {
            verdict,
            reason: None,
            difference: Some(evidence.difference()),
            effect: evidence.effect(),
        };
        if *beyond <= alpha / 2.0 {
            return decided(Verdict::Equivalent);
        }
        match comparison.doubt(evidence, *different > alpha / 2.0, comparisons.len()) {
            Some(reason) => Decision { reason: Some(reason), ..decided(Verdict::Undecided) },
            None if (evidence.centre < 0.0) == comparison.lower_is_better => {
                decided(Verdict::Better)
            }
            None => decided(Verdict::Worse),
        }
    };
    comparisons.iter().zip(&evidence).zip(different.iter().zip(&beyond)).map(one).collect()
}

/// The error of a replay with one error per run: the quantile that at most one run of ten exceeds.
/// Of sixteen runs it is the second largest.
pub fn error_of_replay(errors: &[f64]) -> Option<f64> {
    let mut sorted = errors.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get((9 * sorted.len()).div_ceil(10).checked_sub(1)?).copied()
}

impl Comparison {
    /// Absent if there are fewer than two runs.
    fn evidence(&self) -> Option<Evidence> {
        let differences: Vec<f64> = self.pairs.iter().map(|(value, base)| value - base).collect();
        let mut bases: Vec<f64> = self.pairs.iter().map(|(_, base)| *base).collect();
        let paired = Paired::of(&self.pairs)?;
        let base = if self.heavy_tailed { median(&mut bases) } else { Estimate::of(&bases)?.mean };
        let margin = self.margin.at(base);
        if differences.iter().all(|difference| *difference == 0.0) {
            return Some(Evidence {
                centre: 0.0,
                interval: Some((0.0, 0.0)),
                base,
                p_different: 1.0,
                p_beyond: 0.0,
            });
        }
        Some(if self.heavy_tailed {
            let ranks = Ranks::of(&differences);
            let (p_different, p_beyond) = (ranks.p_different(), ranks.p_beyond(margin));
            Evidence {
                centre: ranks.centre(),
                interval: ranks.interval(),
                base,
                p_different,
                p_beyond,
            }
        } else {
            let half_width = paired.half_width(0.95);
            let interval = Some((paired.mean - half_width, paired.mean + half_width));
            Evidence {
                centre: paired.mean,
                interval,
                base,
                p_different: paired.p_different(),
                p_beyond: paired.p_beyond(margin),
            }
        })
    }

    /// The reason against a verdict. A reason that more runs cannot remove comes first.
    fn doubt(&self, evidence: &Evidence, is_chance: bool, comparisons: usize) -> Option<Reason> {
        let allowed = match self.replay {
            Replay::None => 0.0,
            Replay::Share(share) => share * evidence.base.abs(),
            Replay::Fixed(error) => error,
            Replay::Unknown => return Some(Reason::NotRecorded),
        };
        let others = self
            .pairs
            .iter()
            .filter(|(value, base)| (value - base) * evidence.centre <= 0.0)
            .count();
        let is_within = evidence.centre.abs() <= allowed;
        match evidence.interval {
            _ if is_within && allowed > 0.0 => Some(Reason::Replay(self.replay.share())),
            None => Some(Reason::Runs(self.pairs.len())),
            Some((low, high)) if low <= 0.0 && high >= 0.0 => Some(Reason::Interval),
            Some(_) if others > self.pairs.len() / 16 => {
                Some(Reason::Sign(others, self.pairs.len()))
            }
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
    /// The error as a share, if it is one.
    pub fn share(self) -> Option<f64> {
        if let Replay::Share(share) = self { Some(share) } else { None }
    }
}

impl Decision {
    fn without_runs(runs: usize) -> Decision {
        Decision {
            verdict: Verdict::Undecided,
            reason: Some(Reason::Runs(runs)),
            difference: None,
            effect: None,
        }
    }
}

impl Evidence {
    /// In the metric's unit.
    fn difference(&self) -> Effect {
        Effect { size: self.centre, interval: self.interval }
    }

    /// As a share of the baseline.
    fn effect(&self) -> Option<Effect> {
        // No metric is below zero, so a loss cannot exceed the baseline.
        let share = |difference: f64| (difference / self.base.abs()).max(-1.0);
        (self.base != 0.0 && self.centre.abs() < BEYOND_SHARES * self.base.abs()).then(|| Effect {
            size: share(self.centre),
            interval: self.interval.map(|(low, high)| (share(low), share(high))),
        })
    }
}

/// The text of a row's reason.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Runs(1) => write!(f, "one run is too few"),
            Reason::Runs(runs) => write!(f, "{runs} runs are too few"),
            Reason::NotRecorded => {
                write!(f, "the recording lacks this metric, so the replay's error is unknown")
            }
            Reason::Replay(Some(share)) => {
                write!(f, "within the replay's error of {:.1} %", 100.0 * share)
            }
            Reason::Replay(None) => write!(f, "within the replay's error"),
            Reason::Interval => write!(f, "the interval includes zero"),
            Reason::Sign(others, runs) => write!(f, "{others} of {runs} runs do not show it"),
            Reason::Comparisons(1) => write!(f, "not beyond chance"),
            Reason::Comparisons(all) => write!(f, "not beyond chance among {all} comparisons"),
        }
    }
}

#[cfg(test)]
mod tests;
