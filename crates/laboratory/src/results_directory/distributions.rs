//! The distributions of latencies, CPU bursts and pauses of each case: percentiles with intervals
//! over runs, and the histogram.

use program::{Error, write_whole};
use results::SCHEMA;
use schedsim::metrics::{self, Histogram, Summary};
use serde::{Deserialize, Serialize};
use statistics::bootstrap;
use std::collections::BTreeMap;
use std::path::Path;

/// The number of samples that a percentile needs beyond it: p99 needs 1,000 samples.
const SAMPLES_BEYOND: f64 = 10.0;

/// All distributions of a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Distributions {
    /// The version of this schema, the same as that of the results.
    pub schema: u32,
    /// The version of schedlab.
    pub version: String,
    /// One for each case and quantity.
    pub distributions: Vec<Distribution>,
}

/// The distribution of a duration under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// The workload's name.
    pub workload: String,
    /// The candidate's name.
    pub candidate: String,
    /// The world, as in results.
    pub world: String,
    /// The number of CPUs.
    pub cpus: u16,
    /// `wakeup_latency`, `burst`, `pause` or `response_time`.
    pub of: String,
    /// Always `ns`.
    pub unit: String,
    /// The number of runs.
    pub runs: u32,
    /// The number of samples in all runs together.
    pub samples: u64,
    /// Percentiles, as high as the number of samples allows.
    pub percentiles: Vec<Percentile>,
    /// The samples of all runs: lowest and highest value of a bucket, and its count.
    pub buckets: Vec<[u64; 3]>,
}

/// A percentile: the mean over runs of the percentile of each run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Percentile {
    /// The percentage, from 0 to 100.
    pub percent: f64,
    /// Its value.
    pub value: f64,
    /// Lower end of the 95 % interval, by bootstrap over runs; null for a single run.
    pub ci_low: Option<f64>,
    /// Upper end of the interval.
    pub ci_high: Option<f64>,
}

/// The case of the distributions.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The candidate's name.
    pub candidate: &'a str,
    /// The world, as in results.
    pub world: &'a str,
    /// The number of CPUs.
    pub cpus: u16,
}

impl Distributions {
    /// With the version of this program.
    pub fn new(distributions: Vec<Distribution>) -> Distributions {
        Distributions {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            distributions,
        }
    }

    /// Writes `distributions.json` into `dir`.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let json = serde_json::to_string(self)
            .map_err(|error| Error::Internal(format!("cannot write JSON: {error}")))?;
        write_whole(&dir.join("distributions.json"), (json + "\n").as_bytes())
    }
}

impl Distribution {
    /// All distributions with samples in the runs of a case.
    pub fn of_case(case: Case<'_>, runs: &[&Summary]) -> Vec<Distribution> {
        type Choose = fn(&metrics::Distributions) -> &Histogram;
        let kinds: [(&str, Choose); 4] = [
            ("wakeup_latency", |all| &all.wakeup_latency),
            ("burst", |all| &all.burst),
            ("pause", |all| &all.pause),
            ("response_time", |all| &all.response_time),
        ];
        let of = |(name, choose): (&str, Choose)| {
            let histograms: Vec<&Histogram> =
                runs.iter().map(|run| choose(&run.distributions)).collect();
            Distribution::new(case, name, &histograms)
        };
        kinds.into_iter().map(of).filter(|distribution| distribution.samples > 0).collect()
    }

    fn new(case: Case<'_>, of: &str, runs: &[&Histogram]) -> Distribution {
        let fewest = runs.iter().map(|run| run.count()).min().unwrap_or(0);
        let bearable = |&percent: &f64| (100.0 - percent) / 100.0 * fewest as f64 >= SAMPLES_BEYOND;
        let percentiles = percents().into_iter().filter(bearable).filter_map(|percent| {
            let values: Option<Vec<f64>> =
                runs.iter().map(|run| Some(run.percentile(percent)?.0 as f64)).collect();
            let values = values?;
            let interval = bootstrap(&values);
            let value = values.iter().sum::<f64>() / values.len() as f64;
            Some(Percentile {
                percent,
                value,
                ci_low: interval.map(|(low, _)| low),
                ci_high: interval.map(|(_, high)| high),
            })
        });
        let mut buckets: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for bucket in runs.iter().flat_map(|run| run.buckets()) {
            *buckets.entry((bucket.low.0, bucket.high.0)).or_default() += bucket.count;
        }
        Distribution {
            workload: case.workload.to_string(),
            candidate: case.candidate.to_string(),
            world: case.world.to_string(),
            cpus: case.cpus,
            of: of.to_string(),
            unit: "ns".to_string(),
            runs: runs.len() as u32,
            samples: runs.iter().map(|run| run.count()).sum(),
            percentiles: percentiles.collect(),
            buckets: buckets.into_iter().map(|((low, high), count)| [low, high, count]).collect(),
        }
    }
}

/// The percentiles to keep: twenty for each decade of the rest beyond them, up to 99.999.
fn percents() -> Vec<f64> {
    (0..=100).map(|step| 100.0 - 100.0 * power(step)).collect()
}

/// 10^(-step/20).
fn power(step: i32) -> f64 {
    10f64.powf(-f64::from(step) / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Nanos;

    const CASE: Case<'_> = Case { workload: "w", candidate: "p", world: "sim", cpus: 2 };

    #[test]
    fn percentiles_stop_where_there_are_too_few_samples() {
        let mut histogram = Histogram::default();
        (0..999).for_each(|sample| histogram.record(Nanos(sample)));
        let distribution = Distribution::new(CASE, "burst", &[&histogram]);
        assert!(distribution.percentiles.iter().all(|percentile| percentile.percent < 99.0));
        histogram.record(Nanos(1_000));
        let distribution = Distribution::new(CASE, "burst", &[&histogram]);
        let p99 = distribution
            .percentiles
            .iter()
            .find(|percentile| (percentile.percent - 99.0).abs() < 1e-9)
            .expect("1,000 samples bear p99");
        assert!((p99.value - 989.0).abs() < 4.0, "{p99:?}");
        assert_eq!((p99.ci_low, distribution.samples), (None, 1_000));
    }

    #[test]
    fn intervals_come_from_runs() {
        let run = |shift: u64| {
            let mut histogram = Histogram::default();
            (0..100).for_each(|sample| histogram.record(Nanos(sample + shift)));
            histogram
        };
        let runs = [run(0), run(10), run(20)];
        let distribution = Distribution::new(CASE, "burst", &runs.iter().collect::<Vec<_>>());
        let lowest = distribution.percentiles[0];
        assert_eq!((lowest.percent, lowest.value), (0.0, 10.0));
        assert!(lowest.ci_low < Some(10.0) && lowest.ci_high > Some(10.0), "{lowest:?}");
        assert_eq!((distribution.runs, distribution.samples), (3, 300));
        assert_eq!(distribution.buckets.iter().map(|bucket| bucket[2]).sum::<u64>(), 300);
    }
}
