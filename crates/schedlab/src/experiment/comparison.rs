//! Policies against a baseline on a recorded workload, with the error of the replay as the yardstick.

use super::{Recorded, Run, Setup, simulate};
use crate::Error;
use crate::output::{Row, headline};
use crate::results_directory::{Distribution, distributions};
use crate::statistics::{Estimate, Verdict};
use crate::trace_file::Writer;
use indicatif::ProgressBar;
use rayon::prelude::*;
use schedsim::metrics::{Better, CATALOGUE, Metric};
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
use std::collections::BTreeMap;
use std::time::Instant;

/// A policy on a number of CPUs, and its runs.
pub struct Case {
    /// The policy.
    pub policy: PolicySpec,
    /// How many CPUs.
    pub cpus: u16,
    /// One run, or several if they differ by seed.
    pub runs: Vec<Run>,
    /// Whether the time was up before the intervals were narrow enough.
    pub inconclusive: bool,
}

/// How close the replay comes to the recording in one metric.
#[derive(Clone, Copy, Debug)]
pub struct Fidelity {
    /// Which metric.
    pub metric: &'static Metric,
    /// As recorded.
    pub recorded: f64,
    /// As replayed.
    pub replayed: f64,
}

/// A finished comparison.
pub struct Comparison {
    /// The policy that stands for the recorded kernel's, against which the others are held.
    pub baseline: PolicySpec,
    /// The replay against the recording, on the recorded CPUs.
    pub fidelity: Vec<Fidelity>,
    /// All cases, by CPUs and then in the order asked for; the baseline's among them.
    pub cases: Vec<Case>,
}

impl Fidelity {
    /// The relative error of the replay; the absolute one where the recording has zero.
    pub fn error(&self) -> f64 {
        let difference = (self.replayed - self.recorded).abs();
        if self.recorded == 0.0 { difference } else { difference / self.recorded.abs() }
    }

    /// The difference that decides nothing around the value `at`.
    fn band(&self, at: f64) -> f64 {
        if self.recorded == 0.0 { self.error() } else { self.error() * at.abs() }
    }
}

impl Case {
    /// The metric over the runs.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| metric.read(&run.summary).value).collect();
        Estimate::of(&values?)
    }
}

impl Comparison {
    /// Runs `policies` and the baseline on each of `cpus`, all cores at work.
    ///
    /// # Errors
    /// If a run fails, or a check finds a violation.
    pub fn run(
        recorded: &Recorded,
        baseline: &PolicySpec,
        policies: &[PolicySpec],
        cpus: &[u16],
        setup: &Setup<'_>,
        progress: &ProgressBar,
    ) -> Result<Comparison, Error> {
        let mut wanted: Vec<(u16, PolicySpec)> = vec![(recorded.recording.cpus, baseline.clone())];
        for &cpus in cpus {
            let others = policies.iter().filter(|policy| *policy != baseline).cloned();
            wanted.extend(std::iter::once(baseline.clone()).chain(others).map(|policy| (cpus, policy)));
        }
        progress.set_length(wanted.len() as u64);
        let begin = Instant::now();
        let mut cases = wanted
            .into_par_iter()
            .enumerate()
            .map(|(index, (case_cpus, policy))| {
                // The replay that shows the fidelity is a case as well if the recorded CPUs were asked for: one trace is enough.
                let again = index == 0 && cpus.contains(&case_cpus);
                let setup = Setup { traces: setup.traces.filter(|_| !again), ..*setup };
                let case = repeat(recorded, policy, case_cpus, &setup, begin);
                progress.inc(1);
                case
            })
            .collect::<Result<Vec<Case>, Error>>()?;
        let replay = cases.remove(0);
        let fidelity = CATALOGUE.iter().filter_map(|metric| {
            Some(Fidelity { metric, recorded: metric.read(&recorded.summary).value?, replayed: replay.estimate(metric)?.mean })
        });
        Ok(Comparison { baseline: baseline.clone(), fidelity: fidelity.collect(), cases })
    }

    /// The verdict on `case` in `metric`; `None` on the baseline itself and where a value or a direction is missing.
    pub fn verdict(&self, case: &Case, metric: &Metric) -> Option<Verdict> {
        if case.policy == self.baseline {
            return None;
        }
        let base = self.cases.iter().find(|other| other.cpus == case.cpus && other.policy == self.baseline)?;
        let base = base.estimate(metric)?;
        let lower_is_better = match metric.better {
            Better::Lower => true,
            Better::Higher => false,
            Better::Neither => return None,
        };
        // Without the metric in the recording there is no telling how far off the replay is.
        let Some(fidelity) = self.fidelity.iter().find(|fidelity| fidelity.metric.id == metric.id) else { return Some(Verdict::Undecided) };
        let error = fidelity.band(base.mean) + base.half_width.unwrap_or(0.0);
        Some(Verdict::of(case.estimate(metric)?, base.mean, error, lower_is_better))
    }

    /// The case that is best in `metric` on `cpus` CPUs, if any is better than the baseline beyond doubt.
    pub fn best(&self, cpus: u16, metric: &Metric) -> Option<&Case> {
        let value = |case: &&Case| case.estimate(metric).map_or(f64::NAN, |estimate| estimate.mean);
        let better = self.cases.iter().filter(|case| case.cpus == cpus && self.verdict(case, metric) == Some(Verdict::Better));
        match metric.better {
            Better::Higher => better.max_by(|a, b| value(a).total_cmp(&value(b))),
            _ => better.min_by(|a, b| value(a).total_cmp(&value(b))),
        }
    }

    /// How durations are distributed, in the recording and in each case.
    pub fn distributions(&self, recorded: &Recorded) -> Vec<Distribution> {
        let workload = &recorded.name;
        let case = distributions::Case { workload, policy: "recorded", backend: "recorded", cpus: recorded.recording.cpus };
        let mut all = Distribution::of_case(case, &[&recorded.summary]);
        for simulated in &self.cases {
            let runs: Vec<_> = simulated.runs.iter().map(|run| &run.summary).collect();
            let policy = simulated.policy.to_string();
            all.extend(Distribution::of_case(
                distributions::Case { workload, policy: &policy, backend: "sim", cpus: simulated.cpus },
                &runs,
            ));
        }
        all
    }

    /// All numbers, the recording's first.
    pub fn rows(&self, recorded: &Recorded, seed: u64) -> Vec<Row> {
        let row = |policy: &str, backend: &str, cpus, metric: &Metric| Row {
            workload: recorded.name.clone(),
            policy: policy.to_string(),
            backend: backend.to_string(),
            cpus,
            seed: (backend == "sim").then_some(seed),
            params: BTreeMap::new(),
            metric: metric.id.to_string(),
            unit: metric.unit.to_string(),
            value: None,
            ci_low: None,
            ci_high: None,
            runs: 1,
            verdict: None,
            note: None,
        };
        let recorded_rows = CATALOGUE.iter().map(|metric| Row {
            value: metric.read(&recorded.summary).value,
            note: metric.read(&recorded.summary).note.map(str::to_string),
            ..row("recorded", "recorded", recorded.recording.cpus, metric)
        });
        let simulated_rows = self.cases.iter().flat_map(|case| CATALOGUE.iter().map(move |metric| (case, metric))).map(|(case, metric)| {
            let estimate = case.estimate(metric);
            let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
            let inconclusive = case.inconclusive.then(|| "inconclusive: the time was up before the interval was narrow enough".to_string());
            Row {
                value: estimate.map(|estimate| estimate.mean),
                ci_low: bound(-1.0),
                ci_high: bound(1.0),
                runs: case.runs.len() as u32,
                verdict: self.verdict(case, metric).map(|verdict| verdict.word().to_string()),
                note: case.runs.iter().find_map(|run| metric.read(&run.summary).note).map(str::to_string).or(inconclusive),
                ..row(&case.policy.to_string(), "sim", case.cpus, metric)
            }
        });
        recorded_rows.chain(simulated_rows).collect()
    }
}

/// Runs a case until its intervals are narrow; once, if the seed makes no difference.
fn repeat(recorded: &Recorded, policy: PolicySpec, cpus: u16, setup: &Setup<'_>, begin: Instant) -> Result<Case, Error> {
    let machine = recorded.machine(cpus);
    let repetition = setup.repetition;
    let mut case = Case { policy, cpus, runs: Vec::new(), inconclusive: false };
    loop {
        let seed = repetition.seed + case.runs.len() as u64;
        let traces = setup.traces.filter(|_| case.runs.is_empty());
        let to = traces.map(|dir| dir.trace(&case.policy.to_string(), cpus)).transpose()?;
        let mut writer = to.map(|to| Writer::create(&to, &recorded.header(&case.policy, cpus, seed))).transpose()?;
        let observer = writer.as_mut().map(|writer| writer as &mut dyn Observer);
        let run = simulate(recorded, &machine, &case.policy, seed, setup.check, observer)?;
        writer.map(Writer::finish).transpose()?;
        if let Some(violation) = run.violations.first() {
            let more = run.violations.len() - 1;
            return Err(Error::Check(format!("{} on {cpus} CPUs, seed {seed}: {violation} ({more} more violations)", case.policy)));
        }
        let random = run.outcome.random;
        case.runs.push(run);
        if !random {
            return Ok(case);
        }
        let enough = case.runs.len() >= repetition.min_runs as usize;
        let narrow =
            || headline().all(|(metric, _)| case.estimate(metric).is_none_or(|estimate| estimate.is_within(repetition.half_width)));
        if enough && narrow() {
            return Ok(case);
        }
        if enough && begin.elapsed() >= repetition.max_time {
            case.inconclusive = true;
            return Ok(case);
        }
    }
}
