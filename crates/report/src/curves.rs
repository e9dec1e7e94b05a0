//! Distributions as curves: percentiles over the share of samples beyond them, with intervals.

use laboratory::results_directory::Distribution;
use serde::Serialize;

/// The distribution of one quantity in one case, as columns.
#[derive(Serialize)]
pub struct Curve<'a> {
    policy: &'a str,
    cpus: u16,
    of: &'a str,
    runs: u32,
    samples: u64,
    /// Percentiles, from 0 to 100.
    percent: Vec<f64>,
    value: Vec<f64>,
    ci_low: Vec<Option<f64>>,
    ci_high: Vec<Option<f64>>,
}

impl<'a> Curve<'a> {
    /// All curves, in the order of the distributions.
    pub fn all(distributions: &'a [Distribution]) -> Vec<Curve<'a>> {
        distributions
            .iter()
            .filter(|distribution| !distribution.percentiles.is_empty())
            .map(Curve::new)
            .collect()
    }

    fn new(distribution: &'a Distribution) -> Curve<'a> {
        let percentiles = &distribution.percentiles;
        Curve {
            policy: &distribution.candidate,
            cpus: distribution.cpus,
            of: &distribution.of,
            runs: distribution.runs,
            samples: distribution.samples,
            percent: percentiles.iter().map(|percentile| percentile.percent).collect(),
            value: percentiles.iter().map(|percentile| percentile.value).collect(),
            ci_low: percentiles.iter().map(|percentile| percentile.ci_low).collect(),
            ci_high: percentiles.iter().map(|percentile| percentile.ci_high).collect(),
        }
    }
}
