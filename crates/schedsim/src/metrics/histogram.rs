//! A log-linear histogram of durations: percentiles of any number of samples in constant memory.

use crate::Nanos;

/// Buckets per octave, as a power of two.
const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;

/// Durations counted in buckets: exact below 256 ns, above that 128 buckets per octave. So a
/// percentile is off by at most 1/256 (0.4 %) of itself. Count, sum, smallest and largest are
/// exact. Nothing is allocated before the first sample, then 1 KiB for each octave up to the
/// largest one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// By bucket, to the end of the largest sample's octave, so that equal samples make equal
    /// histograms.
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Counts one sample.
    #[inline]
    pub fn record(&mut self, sample: Nanos) {
        let at = bucket(sample.0);
        if at >= self.counts.len() {
            self.grow(at);
        }
        self.counts[at] += 1;
        self.count += 1;
        self.sum += u128::from(sample.0);
        self.min = self.min.min(sample.0);
        self.max = self.max.max(sample.0);
    }

    /// Counts all samples of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count > 0 {
            let filled = bucket(other.min)..=bucket(other.max);
            if *filled.end() >= self.counts.len() {
                self.grow(*filled.end());
            }
            self.counts[filled.clone()]
                .iter_mut()
                .zip(&other.counts[filled])
                .for_each(|(own, other)| *own += other);
            self.count += other.count;
            self.sum += other.sum;
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }

    /// Extends the counts to this bucket and its octave.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket | (SUB - 1)) + 1, 0);
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all samples, exact up to the range of [`Nanos`].
    pub fn total(&self) -> Nanos {
        Nanos(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    /// The mean in nanoseconds; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.min))
    }

    /// The largest sample.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then_some(Nanos(self.max))
    }

    /// The `percent`th percentile by nearest rank: the smallest sample that at least `percent` % of
    /// the samples do not exceed, within 0.4 %. `None` without samples.
    ///
    /// # Panics
    /// If `percent` is not in 0…100.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        assert!((0.0..=100.0).contains(&percent), "{percent} is no percentage");
        let rank =
            ((percent / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let index = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        })?;
        Some(Nanos(middle(index).clamp(self.min, self.max)))
    }

    /// The buckets that hold samples, in order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(|(index, &count)| {
            let shift = (index >> SUB_BITS).saturating_sub(1) as u32;
            let low = middle(index) - ((1 << shift) >> 1);
            Bucket { low: Nanos(low), high: Nanos(low + ((1 << shift) - 1)), count }
        })
    }
}

/// A range of samples that the histogram does not distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The smallest duration that falls into it.
    pub low: Nanos,
    /// The largest.
    pub high: Nanos,
    /// The number of samples in it.
    pub count: u64,
}

/// The bucket of a sample: its leading eight bits and how many bits follow them.
#[inline]
fn bucket(sample: u64) -> usize {
    let shift = (63 - SUB_BITS).saturating_sub(sample.leading_zeros());
    ((shift as usize) << SUB_BITS) + (sample >> shift) as usize
}

/// The middle of a bucket.
fn middle(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1) as u32;
    let leading = (index - ((shift as usize) << SUB_BITS)) as u64;
    (leading << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous_and_their_middle_is_within_a_256th() {
        assert_eq!(bucket(u64::MAX), (64 - SUB_BITS as usize + 1) * SUB - 1);
        for shift in 0..64 {
            for sample in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + (1 << shift) / 3] {
                let error = middle(bucket(sample)).abs_diff(sample);
                assert!(error as f64 <= sample as f64 / 256.0, "{sample} is off by {error}");
                assert!(bucket(sample.saturating_add(1)) - bucket(sample) <= 1);
            }
        }
    }

    #[test]
    fn equal_samples_make_equal_histograms_in_any_order_and_by_merging() {
        let of = |samples: &[u64]| {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|&sample| histogram.record(Nanos(sample)));
            histogram
        };
        let merged = |one: &[u64], other: &[u64]| {
            let mut sum = of(one);
            sum.merge(&of(other));
            sum
        };
        let all = of(&[3, 70_000, 9_000_000_000, u64::MAX]);
        assert_eq!(all, of(&[u64::MAX, 9_000_000_000, 70_000, 3]));
        assert_eq!(all, merged(&[3, 70_000], &[9_000_000_000, u64::MAX]));
        assert_eq!(all, merged(&[3, u64::MAX], &[9_000_000_000, 70_000]));
        assert_eq!(merged(&[], &[]), Histogram::default());
        assert_ne!(all, of(&[4, 70_000, 9_000_000_000, u64::MAX]));
    }

    proptest! {
        #[test]
        fn a_percentile_is_the_nearest_rank_of_the_sorted_samples(
            mut samples in proptest::collection::vec(0u64..10_000_000, 1..300),
            percent in 0.0..=100.0f64,
        ) {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|&sample| histogram.record(Nanos(sample)));
            samples.sort_unstable();
            let rank = ((percent / 100.0 * samples.len() as f64).ceil() as usize).max(1);
            let exact = samples[rank - 1];
            let found = histogram.percentile(percent).map_or(0, |found| found.0);
            prop_assert!(
                found.abs_diff(exact) as f64 <= exact as f64 / 256.0,
                "{} for {}",
                found,
                exact
            );
            prop_assert_eq!(
                histogram.buckets().map(|bucket| bucket.count).sum::<u64>(),
                samples.len() as u64
            );
            for bucket in histogram.buckets() {
                let inside = |sample: &&u64| (bucket.low.0..=bucket.high.0).contains(*sample);
                prop_assert_eq!(samples.iter().filter(inside).count() as u64, bucket.count);
            }
            prop_assert_eq!(histogram.max(), samples.last().map(|&last| Nanos(last)));
            prop_assert_eq!(histogram.total(), samples.iter().map(|&sample| Nanos(sample)).sum());
        }
    }
}
