//! What operations of the scheduler cost on a machine, measured before a recording.
//!
//! A file has [`Calibration`]s with names. [`Conditions::calibrated`](crate::Conditions::calibrated) reads them as [`Calibrated`]:
//! which operation, on which clock, and how its samples are distributed.
//!
//! ```
//! use recording::{Calibration, Clock, Conditions, Measured};
//!
//! let quantiles = Calibration::quantiles_of((0..=400).map(f64::from).collect());
//! let [name, unit, clock] = ["yield", "ns", "cpu"].map(String::from);
//! let of = Calibration { name, unit, clock, recorded: false, batch: 64, n: 401, quantiles };
//! let conditions = Conditions { calibrations: vec![of], ..Conditions::default() };
//! let all: Vec<_> = conditions.calibrated().collect();
//! assert_eq!((all[0].measured, all[0].clock), (Measured::Yield, Clock::Cpu));
//! assert_eq!((all[0].ns.at(0.5), all[0].ns.at(0.625)), (200.0, 250.0));
//! ```

use serde::{Deserialize, Serialize};

/// The cost of an operation, from repeated samples.
///
/// | name | one operation |
/// |---|---|
/// | `yield` | two tasks on one CPU yield in turn: a call of `sched_yield` with its switch |
/// | `pipe-same-cpu` | half a round trip of a byte through two pipes, both tasks on one CPU |
/// | `pipe-other-cpu` | the same, on two CPUs |
/// | `futex-same-cpu` | half a round trip by `FUTEX_WAIT` and `FUTEX_WAKE`, both tasks on one CPU |
/// | `futex-other-cpu` | the same, on two CPUs |
/// | `fork-and-wait` | a `fork` of a small process that exits at once, and the wait for its end |
/// | `sleep-late` | how long after its time a `clock_nanosleep` until 200 µs ahead returns |
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// What was measured, as in the table above.
    pub name: String,
    /// `ns`.
    pub unit: String,
    /// `cpu` if it is CPU time of the tasks (what others do meanwhile does not count), `wall` if it
    /// is elapsed time.
    pub clock: String,
    /// Whether the recorder's probes were attached meanwhile, with these tasks traced.
    pub recorded: bool,
    /// Operations in one sample; the sample is the mean over them.
    pub batch: u32,
    /// The number of samples.
    pub n: u64,
    /// Quantiles of the samples: pairs of a share (0 the smallest, 0.5 the median, 1 the largest)
    /// and a value, in order.
    pub quantiles: Vec<(f64, f64)>,
}

impl Calibration {
    /// The shares that the recorder writes.
    pub const SHARES: [f64; 9] = [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0];

    /// The quantiles of some samples, at [`Calibration::SHARES`]; empty without samples.
    pub fn quantiles_of(mut samples: Vec<f64>) -> Vec<(f64, f64)> {
        samples.sort_by(f64::total_cmp);
        let Some(last) = samples.len().checked_sub(1) else { return Vec::new() };
        let at = |share: f64| samples[(share * last as f64).round() as usize];
        Calibration::SHARES.iter().map(|share| (*share, at(*share))).collect()
    }

    /// The value at a share, if the recording has it.
    pub fn at(&self, share: f64) -> Option<f64> {
        let found = self.quantiles.iter().find(|(of, _)| (of - share).abs() < 1e-9);
        found.map(|(_, value)| *value)
    }
}

/// A calibration of which the operation, the clock and the unit are known.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibrated {
    /// What was measured.
    pub measured: Measured,
    /// On which clock.
    pub clock: Clock,
    /// Whether the recorder's probes were attached meanwhile, with these tasks traced.
    pub recorded: bool,
    /// Operations in one sample; the sample is their mean.
    pub batch: u32,
    /// The number of samples.
    pub samples: u64,
    /// Nanoseconds that one operation takes.
    pub ns: Distribution,
}

/// What a calibration measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Measured {
    /// A `sched_yield` with its switch to another task.
    Yield,
    /// Half a round trip of a byte through two pipes: a write that wakes, a read that blocks, and
    /// what is between.
    Pipe(Between),
    /// The same by `FUTEX_WAKE` and `FUTEX_WAIT`.
    Futex(Between),
    /// A `fork` of a small process that ends at once, and the wait for it.
    ForkAndWait,
    /// How long after its time a sleep until a time returns.
    SleepLate,
}

/// Where two tasks are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Between {
    /// On one CPU.
    SameCpu,
    /// On two.
    OtherCpu,
}

/// What a calibration reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// CPU time of the tasks: what others do meanwhile does not count.
    Cpu,
    /// Elapsed time.
    Wall,
}

/// Quantiles of samples. Between two known ones it is linear.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution(Vec<(f64, f64)>);

impl Measured {
    /// All, with their names in files.
    pub const ALL: [(Measured, &str); 7] = [
        (Measured::Yield, "yield"),
        (Measured::Pipe(Between::SameCpu), "pipe-same-cpu"),
        (Measured::Pipe(Between::OtherCpu), "pipe-other-cpu"),
        (Measured::Futex(Between::SameCpu), "futex-same-cpu"),
        (Measured::Futex(Between::OtherCpu), "futex-other-cpu"),
        (Measured::ForkAndWait, "fork-and-wait"),
        (Measured::SleepLate, "sleep-late"),
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        Measured::ALL.iter().find(|(of, _)| *of == self).map_or("", |(_, name)| name)
    }
}

impl Distribution {
    /// From pairs of a share and a value; `None` if they are no quantiles: they must be finite, from
    /// share 0 to share 1, and rise in both.
    pub fn of(quantiles: Vec<(f64, f64)>) -> Option<Distribution> {
        let ends = quantiles.first().zip(quantiles.last());
        let is_whole = ends.is_some_and(|((first, _), (last, _))| *first == 0.0 && *last == 1.0);
        let rises =
            quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let is_finite = quantiles.iter().all(|(_, value)| value.is_finite());
        (is_whole && rises && is_finite).then_some(Distribution(quantiles))
    }

    /// The value at a share from 0 to 1.
    pub fn at(&self, share: f64) -> f64 {
        let after = self.0.partition_point(|(of, _)| *of < share).clamp(1, self.0.len() - 1);
        let ((low, from), (high, to)) = (self.0[after - 1], self.0[after]);
        from + (to - from) * ((share - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// The mean of what lies between two shares, `low` below `high`.
    pub fn mean(&self, low: f64, high: f64) -> f64 {
        let inside = self.0.iter().map(|(share, _)| *share).filter(|of| low < *of && *of < high);
        let ends: Vec<f64> = [low].into_iter().chain(inside).chain([high]).collect();
        let piece =
            |pair: &[f64]| (pair[1] - pair[0]) * f64::midpoint(self.at(pair[0]), self.at(pair[1]));
        ends.windows(2).map(piece).sum::<f64>() / (high - low)
    }
}

impl Calibration {
    /// What it says, if that is understood.
    pub(crate) fn read(&self) -> Option<Calibrated> {
        let clock = match self.clock.as_str() {
            "cpu" => Clock::Cpu,
            "wall" => Clock::Wall,
            _ => return None,
        };
        let (measured, _) = Measured::ALL.into_iter().find(|(_, name)| *name == self.name)?;
        let ns = Distribution::of(self.quantiles.clone())?;
        let is_known = self.unit == "ns" && self.n > 0;
        is_known.then_some(Calibrated {
            measured,
            clock,
            recorded: self.recorded,
            batch: self.batch,
            samples: self.n,
            ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_order_and_found_by_their_share() {
        let quantiles = Calibration::quantiles_of((0..=100).rev().map(f64::from).collect());
        let of = Calibration { quantiles, ..Calibration::default() };
        assert_eq!((of.at(0.0), of.at(0.5), of.at(0.99)), (Some(0.0), Some(50.0), Some(99.0)));
        assert_eq!((of.at(0.6), of.quantiles.len()), (None, Calibration::SHARES.len()));
        assert_eq!(Calibration::quantiles_of(Vec::new()), []);
    }

    fn yields() -> Calibration {
        let quantiles = Calibration::quantiles_of((0..=100).map(f64::from).collect());
        let [name, unit, clock] = ["yield", "ns", "cpu"].map(String::from);
        Calibration { name, unit, clock, recorded: true, batch: 64, n: 101, quantiles }
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        let mut calibrations = vec![yields()];
        let changes: [fn(&mut Calibration); 6] = [
            |of| of.name = "fly".into(),
            |of| of.unit = "us".into(),
            |of| of.clock = "sun".into(),
            |of| of.n = 0,
            |of| of.quantiles.clear(),
            |of| of.quantiles[3].1 = f64::NAN,
        ];
        calibrations.extend(changes.map(|change| {
            let mut other = yields();
            change(&mut other);
            other
        }));
        let all: Vec<Calibrated> = calibrations.iter().filter_map(Calibration::read).collect();
        let [Calibrated { measured: Measured::Yield, clock: Clock::Cpu, samples: 101, ns, .. }] =
            all.as_slice()
        else {
            panic!("{all:?}")
        };
        assert_eq!((ns.at(0.0), ns.at(0.625), ns.at(1.0)), (0.0, 62.5, 100.0));
        assert!((ns.mean(0.0, 1.0) - 50.0).abs() < 1e-9);
        assert!((ns.mean(0.25, 0.75) - 50.0).abs() < 1e-9);
        assert!((ns.mean(0.0, 0.5) - 25.0).abs() < 1e-9);
    }

    #[test]
    fn names_are_those_of_the_operations() {
        for (measured, name) in Measured::ALL {
            assert_eq!(measured.name(), name);
        }
    }
}
