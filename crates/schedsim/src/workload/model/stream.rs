//! A random stream for each task, so that a task is equal under every policy.

use std::sync::LazyLock;

/// SplitMix64 (Steele, Lea & Flood 2014): eight bytes, so that each of a million tasks can have
/// one.
///
/// The stream of task `number` in the run with `seed` starts at a hash of both. So a task depends
/// neither on the policy nor on other tasks (common random numbers). Two of a million streams of
/// 200 numbers overlap with a probability below 10⁻⁴.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The streams of the tasks of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams(u64);

impl Streams {
    /// Those of the run with `seed`.
    pub(super) fn new(seed: u64) -> Streams {
        Streams(mix(seed.wrapping_add(GOLDEN)))
    }

    /// That of task `number`.
    #[inline]
    pub(super) fn of(self, number: u64) -> Stream {
        Stream(mix(self.0.wrapping_add(number.wrapping_mul(GOLDEN))))
    }
}

impl Stream {
    /// The stream of task `number` in the run with `seed`.
    #[inline]
    pub fn new(seed: u64, number: u64) -> Stream {
        Streams::new(seed).of(number)
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

    /// Exponential with mean 1, by the ziggurat method.
    #[inline(always)]
    pub fn exponential(&mut self) -> f64 {
        let layers: &[Layer; LAYERS] = &ZIGGURAT;
        loop {
            // The lowest eight bits select the layer, the highest 53 the place in it.
            let bits = self.bits();
            let Layer { width, inner, .. } = layers[bits as u8 as usize];
            let x = (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64) * width;
            if x < inner {
                return x;
            }
            if let Some(x) = self.at_the_edge(&layers[bits as u8 as usize], x) {
                return x;
            }
        }
    }

    /// `x` is in a layer, but may be above the curve: once in a hundred draws.
    #[cold]
    fn at_the_edge(&mut self, layer: &Layer, x: f64) -> Option<f64> {
        if layer.bottom == 0.0 {
            return Some(TAIL - libm::log(1.0 - self.unit()));
        }
        let y = layer.bottom + (layer.top - layer.bottom) * self.unit();
        (y < libm::exp(-x)).then_some(x)
    }

    /// Standard normal (Box & Muller 1958; the second number is discarded).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}

/// A horizontal layer of the area under e^−x. All 256 layers have the same area (Marsaglia & Tsang
/// 2000); the lowest one contains the tail.
#[derive(Clone, Copy)]
struct Layer {
    /// Its width.
    width: f64,
    /// The width that is certainly under the curve.
    inner: f64,
    bottom: f64,
    top: f64,
}

const LAYERS: usize = 256;
/// Where the tail begins, and the area of a layer: the values for which 256 layers fit exactly.
const TAIL: f64 = 7.697_117_470_131_05;
const AREA: f64 = 0.003_949_659_822_581_557;

static ZIGGURAT: LazyLock<[Layer; LAYERS]> = LazyLock::new(|| {
    let lowest =
        Layer { width: AREA * libm::exp(TAIL), inner: TAIL, bottom: 0.0, top: libm::exp(-TAIL) };
    let mut layers = [lowest; LAYERS];
    for above in 1..LAYERS {
        let Layer { inner: width, top: bottom, .. } = layers[above - 1];
        let top = if above == LAYERS - 1 { 1.0 } else { bottom + AREA / width };
        layers[above] = Layer { width, inner: -libm::log(top), bottom, top };
    }
    layers
});

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
        assert_eq!(
            [stream.bits(), stream.bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn layers_have_the_same_area_and_reach_the_top() {
        let last = ZIGGURAT[LAYERS - 1];
        assert!(
            (last.bottom + AREA / last.width - 1.0).abs() < 1e-12,
            "{}",
            last.bottom + AREA / last.width
        );
        assert_eq!((last.top, last.inner), (1.0, 0.0));
    }

    #[test]
    fn exponential_numbers_are_exponential_from_the_head_to_the_tail() {
        const N: usize = 1_000_000;
        let mut stream = Stream::new(1, 1);
        let mut numbers: Vec<f64> = (0..N).map(|_| stream.exponential()).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        // Kolmogorov & Smirnov: the maximum distance exceeds 1.95/√N once in a thousand times.
        let distance =
            |(index, &x): (usize, &f64)| (-libm::expm1(-x) - (index as f64 + 0.5) / N as f64).abs();
        let greatest = numbers.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(greatest < 1.95 / libm::sqrt(N as f64), "{greatest}");
        // The same for the tail: 454 in a million are beyond TAIL.
        let tail: Vec<f64> = numbers.iter().filter(|&&x| x > TAIL).map(|x| x - TAIL).collect();
        assert!((380..530).contains(&tail.len()), "{}", tail.len());
        let mean = tail.iter().sum::<f64>() / tail.len() as f64;
        assert!((mean - 1.0).abs() < 0.2, "{mean}");
    }

    #[test]
    fn neighbouring_tasks_and_seeds_have_unrelated_streams() {
        let mean = |streams: &mut dyn Iterator<Item = Stream>| {
            streams.map(|mut stream| stream.unit()).sum::<f64>() / 10_000.0
        };
        for mean in [
            mean(&mut (0..10_000).map(|n| Stream::new(1, n))),
            mean(&mut (0..10_000).map(|seed| Stream::new(seed, 1))),
        ] {
            assert!((mean - 0.5).abs() < 5.0 * libm::sqrt(1.0 / 12.0 / 10_000.0), "{mean}");
        }
    }
}
