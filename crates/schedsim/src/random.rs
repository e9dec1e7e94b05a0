//! Random numbers from a named, portable generator: xoshiro256++ (Blackman & Vigna 2019), seeded
//! through SplitMix64.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded stream of random numbers, the same on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
    drawn: bool,
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Random {
        Random { generator: Xoshiro256PlusPlus::seed_from_u64(seed), drawn: false }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.drawn = true;
        self.generator.next_u64()
    }

    /// A number below `limit`, which is above zero, all equally likely (Lemire 2019, with
    /// rejection).
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        debug_assert!(limit > 0);
        loop {
            let product = u128::from(self.bits()) * u128::from(limit);
            if product as u64 >= limit.wrapping_neg() % limit {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Whether any number was drawn: if not, another seed would have changed nothing.
    pub fn drawn(&self) -> bool {
        self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_is_pinned() {
        let mut random = Random::new(1);
        assert!(!random.drawn());
        assert_eq!([random.bits(), random.bits()], [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d]);
        assert!(random.drawn());
    }

    #[test]
    fn below_is_uniform_enough_to_find_a_bias() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 3];
        (0..30_000).for_each(|_| counts[random.below(3) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_700..10_300).contains(&count)), "{counts:?}");
    }
}
