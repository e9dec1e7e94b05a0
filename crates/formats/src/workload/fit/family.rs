//! Chooses the distribution that fits a sample of durations.
//!
//! Exponential, log-normal and two-phase hyperexponential (balanced means) are fitted by mean and
//! variance. The Kolmogorov-Smirnov distance measures them: the largest difference between the
//! cumulative shares of sample and distribution. The nearest is chosen if its distance is at most
//! [`NEAR`]; else a histogram of octaves, as in Curran & Stumm's figure 2.1.

use schedsim::Nanos;
use schedsim::metrics::Histogram;
use statrs::function::erf::erf;
use std::fmt;

/// The largest distance at which a distribution is accepted.
pub const NEAR: f64 = 0.05;

/// The start of the lowest octave; shorter durations belong to it.
const FIRST_OCTAVE: u64 = 125;

/// A distribution of durations.
#[derive(Clone, PartialEq, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Family {
    /// A constant.
    Constant(f64),
    /// By mean.
    Exponential(f64),
    /// By mean and coefficient of variation.
    LogNormal(f64, f64),
    /// The share and mean of each phase.
    Hyperexponential([(f64, f64); 2]),
    /// The start of the first octave, and the number of samples in each.
    Octaves(u64, Vec<u64>),
}

/// A distribution and its distance from the sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The distribution.
    pub family: Family,
    /// The Kolmogorov-Smirnov distance.
    pub distance: f64,
}

/// All candidates for `sample`, the chosen one first; empty for an empty sample.
pub fn candidates(sample: &Histogram) -> Vec<Candidate> {
    let Some(mean) = sample.mean().filter(|&mean| mean > 0.0) else { return Vec::new() };
    let squared = variation_squared(sample, mean);
    if squared < 1e-4 {
        // Equal within the resolution of the histogram.
        return vec![Candidate { family: Family::Constant(mean), distance: 0.0 }];
    }
    let mut families = vec![Family::Exponential(mean), Family::LogNormal(mean, squared.sqrt())];
    if squared > 1.0 {
        let first = (1.0 + ((squared - 1.0) / (squared + 1.0)).sqrt()) / 2.0;
        families.push(Family::Hyperexponential([
            (first, mean / (2.0 * first)),
            (1.0 - first, mean / (2.0 * (1.0 - first))),
        ]));
    }
    let judge = |family: Family| Candidate { distance: distance(sample, &family), family };
    let mut all: Vec<Candidate> = families.into_iter().map(judge).collect();
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let octaves = judge(octaves(sample));
    let place = if all[0].distance <= NEAR { all.len() } else { 0 };
    all.insert(place, octaves);
    all
}

/// The squared coefficient of variation, from the middles of buckets.
pub fn variation_squared(sample: &Histogram, mean: f64) -> f64 {
    let middle = |low: Nanos, high: Nanos| (low.0 + high.0) as f64 / 2.0;
    let squares: f64 = sample
        .buckets()
        .map(|bucket| (middle(bucket.low, bucket.high) - mean).powi(2) * bucket.count as f64)
        .sum();
    squares / sample.count() as f64 / (mean * mean)
}

fn octaves(sample: &Histogram) -> Family {
    let octave = |duration: Nanos| (duration.0.max(FIRST_OCTAVE) / FIRST_OCTAVE).ilog2() as usize;
    let mut counts: Vec<u64> = Vec::new();
    for bucket in sample.buckets() {
        let octave = octave(bucket.low);
        counts.resize(counts.len().max(octave + 1), 0);
        counts[octave] += bucket.count;
    }
    let empty = counts.iter().take_while(|&&count| count == 0).count();
    Family::Octaves(FIRST_OCTAVE << empty, counts.split_off(empty))
}

fn distance(sample: &Histogram, family: &Family) -> f64 {
    let (all, mut seen, mut greatest) = (sample.count() as f64, 0, 0.0f64);
    for bucket in sample.buckets() {
        greatest =
            greatest.max((family.share_up_to(bucket.low.0 as f64) - seen as f64 / all).abs());
        seen += bucket.count;
        greatest = greatest
            .max((family.share_up_to(bucket.high.0 as f64 + 1.0) - seen as f64 / all).abs());
    }
    greatest
}

impl Family {
    /// The share of durations of at most `x` nanoseconds.
    fn share_up_to(&self, x: f64) -> f64 {
        let exponential = |mean: f64| -(-x / mean).exp_m1();
        match self {
            Family::Constant(value) => f64::from(u8::from(x > *value)),
            Family::Exponential(mean) => exponential(*mean),
            Family::Hyperexponential(phases) => {
                phases.iter().map(|&(share, mean)| share * exponential(mean)).sum()
            }
            Family::LogNormal(mean, variation) => {
                let sigma = (variation * variation).ln_1p().sqrt();
                let mu = mean.ln() - sigma * sigma / 2.0;
                if x <= 0.0 {
                    0.0
                } else {
                    (1.0 + erf((x.ln() - mu) / (sigma * std::f64::consts::SQRT_2))) / 2.0
                }
            }
            Family::Octaves(first, counts) => {
                let all: u64 = counts.iter().sum();
                let below = |(octave, &count): (usize, &u64)| {
                    let low = (*first as f64) * (octave as f64).exp2();
                    count as f64 * ((x - low) / low).clamp(0.0, 1.0)
                };
                counts.iter().enumerate().map(below).sum::<f64>() / all as f64
            }
        }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// In the syntax of a workload file.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |nanoseconds: f64| duration(nanoseconds.round().max(1.0) as u64);
        match self {
            Family::Constant(value) => write!(f, "{{ constant = \"{}\" }}", span(*value)),
            Family::Exponential(mean) => write!(f, "{{ exponential = \"{}\" }}", span(*mean)),
            Family::LogNormal(mean, variation) => {
                write!(
                    f,
                    "{{ log-normal = {{ mean = \"{}\", variation = {variation:.4} }} }}",
                    span(*mean)
                )
            }
            Family::Hyperexponential([(share, mean), (_, other)]) => {
                let share = (share * 1e6).round() / 1e6;
                let (mean, other, rest) =
                    (span(*mean), span(*other), ((1.0 - share) * 1e6).round() / 1e6);
                write!(
                    f,
                    "{{ hyperexponential = [{{ share = {share}, mean = \"{mean}\" }}, {{ share = \
                     {rest}, mean = \"{other}\" }}] }}"
                )
            }
            Family::Octaves(first, counts) => write!(
                f,
                "{{ octaves = {{ first = \"{}\", weights = {counts:?} }} }}",
                duration(*first)
            ),
        }
    }
}

/// An exact duration, in the largest unit that keeps it short.
pub fn duration(nanoseconds: u64) -> String {
    let (unit, name) = match nanoseconds {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (nanoseconds / unit, nanoseconds % unit);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = unit.ilog10() as usize;
    format!("{whole}.{}{name}", format!("{rest:0digits$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::workload::{Distribution, Stream};

    fn sample(distribution: &Distribution) -> Histogram {
        let (mut stream, mut sample) = (Stream::new(1, 1), Histogram::default());
        (0..20_000).for_each(|_| sample.record(Nanos(distribution.draw(&mut stream) as u64)));
        sample
    }

    #[test]
    fn a_fit_recovers_the_family_and_its_parameters() {
        for (distribution, name) in [
            (Distribution::constant(5e6), "constant"),
            (Distribution::exponential(5e6), "exponential"),
            (Distribution::log_normal(5e6, 2.0), "log-normal"),
            (Distribution::hyperexponential(&[(0.9, 1e6), (0.1, 9e6)]), "hyperexponential"),
            (Distribution::octaves(2e6, &[6.0, 1.0, 0.0, 3.0]), "octaves"),
        ] {
            let distribution = distribution.unwrap();
            let chosen = &candidates(&sample(&distribution))[0];
            assert_eq!(chosen.family.name(), name, "{chosen:?}");
            assert!(chosen.distance <= NEAR, "{chosen:?}");
            let text = format!("value = {}", chosen.family);
            #[derive(serde::Deserialize)]
            struct Written {
                value: crate::workload::format::Distribution<crate::workload::format::Span>,
            }
            let read = toml::from_str::<Written>(&text).unwrap().value.build().unwrap();
            assert!(
                (read.mean() / distribution.mean() - 1.0).abs() < 0.1,
                "{text}: {}",
                read.mean()
            );
        }
        assert!(candidates(&Histogram::default()).is_empty());
    }

    #[test]
    fn durations_are_written_exactly() {
        assert_eq!(
            [0, 999, 1_000, 1_500, 4_800_000, 1_000_000_001].map(duration),
            ["0ns", "999ns", "1us", "1.5us", "4.8ms", "1.000000001s"]
        );
    }
}
