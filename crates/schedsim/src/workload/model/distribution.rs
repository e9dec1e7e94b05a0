//! Distributions of bursts, pauses, counts and gaps.

use super::Stream;
use crate::admission::LONGEST;

/// A distribution of positive numbers: nanoseconds or counts. The constructors check their
/// arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution(Shape);

#[derive(Clone, PartialEq, Debug)]
enum Shape {
    Constant(f64),
    Uniform {
        low: f64,
        high: f64,
    },
    Exponential {
        mean: f64,
    },
    /// `log_miss` is the logarithm of 1 − 1/mean, which is negative.
    Geometric {
        mean: f64,
        log_miss: f64,
    },
    Hyperexponential {
        choice: Choice,
        means: Vec<f64>,
    },
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Histogram {
        choice: Choice,
        bins: Vec<Bin>,
    },
    Empirical(Vec<f64>),
}

/// A bin of a histogram, uniform inside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bin {
    /// The smallest number in it.
    pub low: f64,
    /// The low end of the next bin.
    pub high: f64,
    /// Its probability, in proportion to the other bins.
    pub weight: f64,
}

impl Distribution {
    /// Always `value`.
    pub fn constant(value: f64) -> Result<Distribution, String> {
        Ok(Distribution(Shape::Constant(positive("a constant", value)?)))
    }

    /// Uniform from `low` to `high`.
    pub fn uniform(low: f64, high: f64) -> Result<Distribution, String> {
        let low = not_negative("the lower end", low)?;
        if positive("the upper end", high)? <= low {
            return Err(format!(
                "a uniform distribution needs an upper end above {low}, not {high}"
            ));
        }
        Ok(Distribution(Shape::Uniform { low, high }))
    }

    /// Exponential.
    pub fn exponential(mean: f64) -> Result<Distribution, String> {
        Ok(Distribution(Shape::Exponential { mean: positive("a mean", mean)? }))
    }

    /// Geometric, from 1 on: the number of tries if each succeeds with probability 1 / `mean`.
    pub fn geometric(mean: f64) -> Result<Distribution, String> {
        if positive("a mean", mean)? < 1.0 {
            return Err(format!(
                "a geometric distribution counts from 1, so its mean cannot be {mean}"
            ));
        }
        Ok(Distribution(Shape::Geometric { mean, log_miss: libm::log1p(-1.0 / mean) }))
    }

    /// Exponential with one of several means: `(probability, mean)` of each.
    pub fn hyperexponential(phases: &[(f64, f64)]) -> Result<Distribution, String> {
        let probabilities: Vec<f64> = phases.iter().map(|&(probability, _)| probability).collect();
        expect_sum_of_one(&probabilities)?;
        let means =
            phases.iter().map(|&(_, mean)| positive("a mean", mean)).collect::<Result<_, _>>()?;
        Ok(Distribution(Shape::Hyperexponential { choice: Choice::new(&probabilities)?, means }))
    }

    /// Log-normal, by its mean and its coefficient of variation (standard deviation over mean).
    pub fn log_normal(mean: f64, variation: f64) -> Result<Distribution, String> {
        let variation = not_negative("a coefficient of variation", variation)?;
        let sigma = libm::sqrt(libm::log1p(variation * variation));
        Ok(Distribution(Shape::LogNormal {
            mu: libm::log(positive("a mean", mean)?) - sigma * sigma / 2.0,
            sigma,
        }))
    }

    /// Uniform inside each bin.
    pub fn histogram(bins: &[Bin]) -> Result<Distribution, String> {
        for bin in bins {
            not_negative("the lower end of a bin", bin.low)?;
            if positive("the upper end of a bin", bin.high)? <= bin.low {
                return Err(format!("a bin from {} to {} is empty", bin.low, bin.high));
            }
        }
        let weights: Vec<f64> = bins.iter().map(|bin| bin.weight).collect();
        Ok(Distribution(Shape::Histogram { choice: Choice::new(&weights)?, bins: bins.to_vec() }))
    }

    /// Octaves: uniform from `first` to twice that with the first weight, from there to twice that
    /// with the second, and so on. The last octave must end within the longest duration.
    pub fn octaves(first: f64, weights: &[f64]) -> Result<Distribution, String> {
        let first = positive("the first octave", first)?;
        let end = first * libm::exp2(weights.len() as f64);
        if end > LONGEST.0 as f64 {
            return Err(format!(
                "{} octaves from {first} on end at {end:.1e}, and {} is the most: give fewer \
                 weights",
                weights.len(),
                LONGEST.0
            ));
        }
        let bin = |(octave, &weight)| Bin {
            low: first * libm::exp2(octave as f64),
            high: first * libm::exp2(octave as f64 + 1.0),
            weight,
        };
        Distribution::histogram(&weights.iter().enumerate().map(bin).collect::<Vec<_>>())
    }

    /// One of `samples`, with equal probability.
    pub fn empirical(samples: &[f64]) -> Result<Distribution, String> {
        if samples.is_empty() {
            return Err("an empirical distribution needs at least one sample".to_string());
        }
        let samples: Vec<f64> = samples
            .iter()
            .map(|&sample| not_negative("a sample", sample))
            .collect::<Result<_, _>>()?;
        positive("the largest sample", samples.iter().copied().fold(0.0, f64::max))?;
        Ok(Distribution(Shape::Empirical(samples)))
    }

    /// This distribution with every number multiplied by `factor`. A geometric distribution becomes
    /// one of another mean.
    pub fn scaled(&self, factor: f64) -> Result<Distribution, String> {
        let factor = positive("a factor", factor)?;
        Ok(Distribution(match self.0.clone() {
            Shape::Constant(value) => Shape::Constant(value * factor),
            Shape::Uniform { low, high } => {
                Shape::Uniform { low: low * factor, high: high * factor }
            }
            Shape::Exponential { mean } => Shape::Exponential { mean: mean * factor },
            Shape::Geometric { mean, .. } => return Distribution::geometric(mean * factor),
            Shape::Hyperexponential { choice, means } => Shape::Hyperexponential {
                choice,
                means: means.iter().map(|mean| mean * factor).collect(),
            },
            Shape::LogNormal { mu, sigma } => {
                Shape::LogNormal { mu: mu + libm::log(factor), sigma }
            }
            Shape::Histogram { choice, bins } => {
                let bins = bins
                    .iter()
                    .map(|bin| Bin { low: bin.low * factor, high: bin.high * factor, ..*bin })
                    .collect();
                Shape::Histogram { choice, bins }
            }
            Shape::Empirical(samples) => {
                Shape::Empirical(samples.iter().map(|sample| sample * factor).collect())
            }
        }))
    }

    /// Draws a number.
    #[inline(always)]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match &self.0 {
            Shape::Exponential { mean } => mean * stream.exponential(),
            Shape::Constant(value) => *value,
            Shape::Histogram { choice, bins } => {
                let bin = &bins[choice.draw(stream)];
                bin.low + (bin.high - bin.low) * stream.unit()
            }
            _ => self.draw_seldom(stream),
        }
    }

    /// Draws from a distribution that bursts and pauses seldom use.
    fn draw_seldom(&self, stream: &mut Stream) -> f64 {
        match &self.0 {
            Shape::Uniform { low, high } => low + (high - low) * stream.unit(),
            Shape::Geometric { log_miss, .. } => {
                1.0 + libm::floor(-stream.exponential() / log_miss)
            }
            Shape::Hyperexponential { choice, means } => {
                means[choice.draw(stream)] * stream.exponential()
            }
            Shape::LogNormal { mu, sigma } => libm::exp(mu + sigma * stream.normal()),
            Shape::Empirical(samples) => samples[(stream.unit() * samples.len() as f64) as usize],
            Shape::Constant(_) | Shape::Exponential { .. } | Shape::Histogram { .. } => {
                self.draw(stream)
            }
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.moments().0
    }

    /// The squared coefficient of variation: variance over the square of the mean.
    pub fn variation_squared(&self) -> f64 {
        let (mean, square) = self.moments();
        square / (mean * mean) - 1.0
    }

    /// The first two moments.
    fn moments(&self) -> (f64, f64) {
        match &self.0 {
            Shape::Constant(value) => (*value, value * value),
            Shape::Uniform { low, high } => uniform_moments(*low, *high),
            Shape::Exponential { mean } => (*mean, 2.0 * mean * mean),
            Shape::Geometric { mean, .. } => (*mean, mean * (2.0 * mean - 1.0)),
            Shape::Hyperexponential { choice, means } => {
                choice.moments(means.iter().map(|mean| (*mean, 2.0 * mean * mean)))
            }
            Shape::LogNormal { mu, sigma } => {
                let half = sigma * sigma / 2.0;
                (libm::exp(mu + half), libm::exp(2.0 * mu + 4.0 * half))
            }
            Shape::Histogram { choice, bins } => {
                choice.moments(bins.iter().map(|bin| uniform_moments(bin.low, bin.high)))
            }
            Shape::Empirical(samples) => {
                let n = samples.len() as f64;
                (
                    samples.iter().sum::<f64>() / n,
                    samples.iter().map(|sample| sample * sample).sum::<f64>() / n,
                )
            }
        }
    }
}

fn uniform_moments(low: f64, high: f64) -> (f64, f64) {
    ((low + high) / 2.0, (low * low + low * high + high * high) / 3.0)
}

/// A weighted choice in constant time (Walker 1977, with Vose's tables of 1991).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Choice {
    probabilities: Vec<f64>,
    /// Per slot: the probability of its own index, and the alternative.
    slots: Vec<(f64, u32)>,
}

impl Choice {
    /// `weights` need not sum to one.
    pub(super) fn new(weights: &[f64]) -> Result<Choice, String> {
        if weights.is_empty() {
            return Err("there is nothing to choose from".to_string());
        }
        for &weight in weights {
            not_negative("a weight", weight)?;
        }
        let sum = positive("the sum of the weights", weights.iter().sum())?;
        let probabilities: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let count = weights.len() as f64;
        let mut slots: Vec<(f64, u32)> =
            probabilities.iter().enumerate().map(|(index, p)| (p * count, index as u32)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..slots.len()).partition(|&slot| slots[slot].0 < 1.0);
        while let (Some(&over), Some(under)) = (large.last(), small.pop()) {
            slots[under].1 = over as u32;
            slots[over].0 -= 1.0 - slots[under].0;
            if slots[over].0 < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        // Slots left over by rounding keep their own index.
        small.into_iter().chain(large).for_each(|slot| slots[slot] = (1.0, slot as u32));
        Ok(Choice { probabilities, slots })
    }

    #[inline]
    pub(super) fn draw(&self, stream: &mut Stream) -> usize {
        if self.slots.len() == 1 {
            return 0;
        }
        let place = stream.unit() * self.slots.len() as f64;
        let slot = place as usize;
        let (own, other) = self.slots[slot];
        // A table lookup and no branch, because the outcome is unpredictable.
        [other as usize, slot][usize::from(place - (slot as f64) < own)]
    }

    /// The mean of the chosen value.
    pub(super) fn mean(&self, values: impl Iterator<Item = f64>) -> f64 {
        self.probabilities.iter().zip(values).map(|(p, value)| p * value).sum()
    }

    fn moments(&self, moments: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
        let weighted = self
            .probabilities
            .iter()
            .zip(moments)
            .map(|(p, (mean, square))| (p * mean, p * square));
        weighted.fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1))
    }
}

/// Checks that given probabilities sum to one, within rounding.
pub(super) fn expect_sum_of_one(probabilities: &[f64]) -> Result<(), String> {
    let sum = probabilities.iter().fold(0.0, |sum, p| sum + p);
    if (sum - 1.0).abs() <= 1e-6 {
        Ok(())
    } else {
        Err(format!("the probabilities sum to {sum}, not to one"))
    }
}

fn positive(what: &str, value: f64) -> Result<f64, String> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(format!("{what} must be a number above zero, not {value}"))
    }
}

fn not_negative(what: &str, value: f64) -> Result<f64, String> {
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(format!("{what} must be zero or more, not {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(&'static str, Distribution)> {
        let bins =
            [Bin { low: 1.0, high: 3.0, weight: 2.0 }, Bin { low: 10.0, high: 20.0, weight: 1.0 }];
        let of = |name, made: Result<Distribution, String>| (name, made.unwrap());
        vec![
            of("constant", Distribution::constant(5.0)),
            of("uniform", Distribution::uniform(2.0, 8.0)),
            of("exponential", Distribution::exponential(4.0)),
            of("geometric", Distribution::geometric(50.0)),
            of("geometric of 1", Distribution::geometric(1.0)),
            of("hyperexponential", Distribution::hyperexponential(&[(0.9, 0.5), (0.1, 5.5)])),
            of("log-normal", Distribution::log_normal(3.0, 1.5)),
            of("histogram", Distribution::histogram(&bins)),
            of("octaves", Distribution::octaves(1.0, &[0.2, 0.7, 0.1])),
            of("empirical", Distribution::empirical(&[1.0, 2.0, 2.0, 7.0])),
        ]
    }

    #[test]
    fn samples_have_the_mean_and_the_variation_that_is_claimed() {
        const N: usize = 200_000;
        for (name, distribution) in all() {
            let mut stream = Stream::new(1, 7);
            let samples: Vec<f64> = (0..N).map(|_| distribution.draw(&mut stream)).collect();
            let mean = samples.iter().sum::<f64>() / N as f64;
            let square = samples.iter().map(|sample| sample * sample).sum::<f64>() / N as f64;
            let (exact, exact_square) = distribution.moments();
            // Five standard errors of the mean; the error of the square is assumed ten times that.
            let error = 5.0 * libm::sqrt((exact_square - exact * exact).max(0.0) / N as f64) + 1e-9;
            assert!((mean - exact).abs() <= error, "{name}: {mean}, not {exact} ± {error}");
            assert!(
                (square / exact_square - 1.0).abs() <= 0.1,
                "{name}: {square}, not {exact_square}"
            );
            assert!(samples.iter().all(|&sample| sample >= 0.0 && sample.is_finite()), "{name}");
        }
    }

    #[test]
    fn scaling_scales_the_mean_and_keeps_the_variation() {
        for (name, distribution) in
            all().into_iter().filter(|(name, _)| !name.starts_with("geometric"))
        {
            let scaled = distribution.scaled(3.0).unwrap();
            assert!((scaled.mean() / distribution.mean() - 3.0).abs() < 1e-12, "{name}");
            assert!(
                (scaled.variation_squared() - distribution.variation_squared()).abs() < 1e-9,
                "{name}"
            );
        }
    }

    #[test]
    fn choices_come_with_their_weights() {
        let choice = Choice::new(&[1.0, 0.0, 5.0, 4.0]).unwrap();
        let mut counts = [0u32; 4];
        let mut stream = Stream::new(3, 0);
        (0..100_000).for_each(|_| counts[choice.draw(&mut stream)] += 1);
        assert_eq!(counts[1], 0);
        assert!(
            counts
                .iter()
                .zip([10_000i64, 0, 50_000, 40_000])
                .all(|(&n, expected)| (i64::from(n) - expected).abs() < 700),
            "{counts:?}"
        );
    }

    #[test]
    fn an_invalid_distribution_is_refused() {
        let nan = f64::NAN;
        for (refused, why) in [
            (Distribution::constant(-1.0), "above zero"),
            (Distribution::constant(nan), "above zero"),
            (Distribution::exponential(f64::INFINITY), "above zero"),
            (Distribution::uniform(3.0, 3.0), "above 3"),
            (Distribution::geometric(0.5), "counts from 1"),
            (Distribution::hyperexponential(&[(0.5, 1.0), (0.4, 2.0)]), "sum to 0.9"),
            (Distribution::hyperexponential(&[]), "sum to 0"),
            (Distribution::log_normal(1.0, nan), "zero or more"),
            (Distribution::histogram(&[]), "nothing to choose"),
            (Distribution::octaves(1.0, &[0.0, 0.0]), "above zero"),
            // Found by fuzzing: a run of tasks of 2^80 ns.
            (Distribution::octaves(1.0, &[1.0; 61]), "61 octaves from 1 on end at 2.3e18"),
            (Distribution::empirical(&[]), "at least one sample"),
            (Distribution::empirical(&[0.0]), "above zero"),
        ] {
            let message = refused.unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }
}
