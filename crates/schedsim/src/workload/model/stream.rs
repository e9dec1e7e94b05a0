//! A small stream of random numbers for each task, so that a task is the same under every policy.

/// SplitMix64 (Steele, Lea & Flood 2014): eight bytes, of which a million tasks can have one each.
///
/// The stream of task `number` in the run with `seed` begins at a hash of both, so that what a task does depends on nothing else: neither on the policy nor
/// on other tasks (common random numbers). Two of a million streams of 200 numbers overlap with a probability below 10⁻⁴.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of task `number` in the run with `seed`.
    #[inline]
    pub fn new(seed: u64, number: u64) -> Stream {
        Stream(mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(number.wrapping_mul(GOLDEN))))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number in [0, 1), a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1, by inversion.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Standard normal (Box & Muller 1958, of which one half is thrown away).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}

/// SplitMix64's output function.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The published test vector for seed 1234567.
        let mut stream = Stream(1_234_567);
        assert_eq!([stream.bits(), stream.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn neighbouring_tasks_and_seeds_have_unrelated_streams() {
        let mean = |streams: &mut dyn Iterator<Item = Stream>| streams.map(|mut stream| stream.unit()).sum::<f64>() / 10_000.0;
        for mean in [mean(&mut (0..10_000).map(|n| Stream::new(1, n))), mean(&mut (0..10_000).map(|seed| Stream::new(seed, 1)))] {
            assert!((mean - 0.5).abs() < 5.0 * libm::sqrt(1.0 / 12.0 / 10_000.0), "{mean}");
        }
    }
}
