//! Policies against a baseline on a stochastic workload: replications with common random numbers, until the intervals are narrow.

use super::{aggregate, simulate_open};
use crate::experiment::Repetition;
use crate::output::{Metric, Row};
use crate::workload::Stochastic;
use crate::{Error, progress};
use indicatif::ProgressBar;
use rayon::prelude::*;
use schedsim::policy::PolicySpec;
use std::time::Instant;

/// The metrics whose intervals must be narrow.
const NARROW: [Metric; 3] = [Metric::grr, Metric::ngrr, Metric::apr];

/// What `policies` and the `baseline` come to on each of `workloads`, which are variants of one.
///
/// Every policy runs with the same seeds. A workload's runs are repeated until the 95 % half-width of GRR, NGRR and APR is narrow for all policies that are not
/// saturated, or until the time is up, which a note in its rows then says.
///
/// # Errors
/// If a policy fails.
pub fn compare_open(
    workloads: &[Stochastic],
    baseline: &PolicySpec,
    policies: &[PolicySpec],
    repetition: Repetition,
    progress: &ProgressBar,
) -> Result<Vec<Row>, Error> {
    let others = policies.iter().filter(|policy| *policy != baseline);
    let policies: Vec<&PolicySpec> = std::iter::once(baseline).chain(others).collect();
    progress.set_length((workloads.len() * policies.len()) as u64 * u64::from(repetition.min_runs));
    let begin = Instant::now();
    let variants = workloads.par_iter().map(|workload| replicate(workload, baseline, &policies, repetition, begin, progress));
    Ok(variants.collect::<Result<Vec<Vec<Row>>, Error>>()?.concat())
}

fn replicate(
    workload: &Stochastic,
    baseline: &PolicySpec,
    policies: &[&PolicySpec],
    repetition: Repetition,
    begin: Instant,
    progress: &ProgressBar,
) -> Result<Vec<Row>, Error> {
    let mut runs: Vec<Row> = Vec::new();
    let (mut done, mut wanted) = (0, u64::from(repetition.min_runs));
    loop {
        let seeds = repetition.seed + done..repetition.seed + wanted;
        let jobs: Vec<(&PolicySpec, u64)> = policies.iter().flat_map(|policy| seeds.clone().map(move |seed| (*policy, seed))).collect();
        let round = jobs.into_par_iter().map(|(policy, seed)| {
            let run = simulate_open(workload, policy, seed, Vec::new())?;
            progress::step(progress)?;
            Ok(run.rows(workload, policy, seed))
        });
        runs.extend(round.collect::<Result<Vec<Vec<Row>>, Error>>()?.concat());
        done = wanted;
        let mut rows = aggregate(&runs, Some(&baseline.to_string()));
        let widest = rows.iter().filter_map(relative_half_width).fold(0.0, f64::max);
        if widest <= repetition.half_width {
            return Ok(rows);
        }
        if begin.elapsed() >= repetition.max_time {
            let wide = |row: &&mut Row| relative_half_width(row).is_some_and(|width| width > repetition.half_width);
            rows.iter_mut()
                .filter(wide)
                .for_each(|row| row.note = Some("inconclusive: the time was up before the interval was narrow enough".to_string()));
            return Ok(rows);
        }
        // A half-width shrinks with the root of the number of runs; no more than twice as many at a time, as it is a guess.
        let guess = (done as f64 * (widest / repetition.half_width).powi(2)).ceil() as u64;
        wanted = guess.clamp(done + 1, 2 * done);
        progress.inc_length(policies.len() as u64 * (wanted - done));
    }
}

/// Of a metric whose interval must be narrow; parts of the tasks, such as a priority's, need not be.
fn relative_half_width(row: &Row) -> Option<f64> {
    let (low, high) = row.ci_low.zip(row.ci_high).filter(|_| NARROW.contains(&row.metric) && row.subject.is_none())?;
    Some((high - low) / 2.0 / row.value?.abs())
}
