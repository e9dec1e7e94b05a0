//! Policies against a baseline: on a recorded workload with the error of the replay as the yardstick, on a closed one exactly.

use super::{Recorded, Run, Setup, Subject, simulate};
use crate::output::{Point, Row, World, headline, registered};
use crate::results_directory::{Distribution, distributions};
use crate::statistics::{self, Estimate, Verdict};
use crate::trace_file::Writer;
use crate::{Error, progress};
use indicatif::ProgressBar;
use rayon::prelude::*;
use schedsim::metrics::{Better, CATALOGUE, Metric};
use schedsim::policy::PolicySpec;
use schedsim::trace::Observer;
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
    /// The replay against the recording, on the recorded CPUs. Empty if nothing is replayed: then differences are what they are.
    pub fidelity: Vec<Fidelity>,
    /// All cases, by CPUs and then in the order asked for; the baseline's among them.
    pub cases: Vec<Case>,
    /// What else the results say of them all.
    pub point: Point,
}

/// Which cases there shall be.
#[derive(Clone, Copy)]
pub struct Cases<'a> {
    /// The policy against which the others are held.
    pub baseline: &'a PolicySpec,
    /// The others.
    pub policies: &'a [PolicySpec],
    /// On each of these numbers of CPUs.
    pub cpus: &'a [u16],
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
    /// Replays a recording as it was, and it or what was made of it in all `cases`, all cores at work.
    ///
    /// # Errors
    /// If a run fails, or a check finds a violation.
    pub fn of_replays(
        recorded: &Recorded,
        changed: Option<Subject<'_>>,
        cases: &Cases<'_>,
        setup: &Setup<'_>,
        progress: &ProgressBar,
    ) -> Result<Comparison, Error> {
        let recorded_cpus = recorded.recording.cpus;
        let mut wanted = vec![(recorded.subject(), recorded_cpus, cases.baseline.clone())];
        // The replay that shows the fidelity is a case as well if the recorded CPUs were asked for, or is none: one trace is enough.
        let untraced = (changed.is_some() || cases.cpus.contains(&recorded_cpus)).then_some(0);
        wanted.extend(cases.of(changed.unwrap_or(recorded.subject())));
        let baseline = cases.baseline;
        let mut cases = run_all(wanted, untraced, setup, progress)?;
        let replay = cases.remove(0);
        let fidelity = CATALOGUE.iter().filter_map(|metric| {
            Some(Fidelity { metric, recorded: metric.read(&recorded.summary).value?, replayed: replay.estimate(metric)?.mean })
        });
        Ok(Comparison { baseline: baseline.clone(), fidelity: fidelity.collect(), cases, point: Point::new() })
    }

    /// Runs a closed workload in all `cases`, all cores at work.
    ///
    /// # Errors
    /// If a run fails, or a check finds a violation.
    pub fn of_runs(subject: Subject<'_>, cases: &Cases<'_>, setup: &Setup<'_>, progress: &ProgressBar) -> Result<Comparison, Error> {
        let done = run_all(cases.of(subject).collect(), None, setup, progress)?;
        Ok(Comparison { baseline: cases.baseline.clone(), fidelity: Vec::new(), cases: done, point: Point::new() })
    }

    /// With what else the results shall say.
    pub fn at(self, point: Point) -> Comparison {
        Comparison { point, ..self }
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
        let fidelity = self.fidelity.iter().find(|fidelity| fidelity.metric.id == metric.id);
        // Without the metric in the recording there is no telling how far off the replay is.
        if fidelity.is_none() && !self.fidelity.is_empty() {
            return Some(Verdict::Undecided);
        }
        let error = fidelity.map_or(0.0, |fidelity| fidelity.band(base.mean)) + base.half_width.unwrap_or(0.0);
        Some(statistics::verdict(case.estimate(metric)?, base.mean, error, lower_is_better))
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
        let case = distributions::Case { workload: &recorded.name, policy: "recorded", backend: "recorded", cpus: recorded.recording.cpus };
        let mut all = Distribution::of_case(case, &[&recorded.summary]);
        all.extend(self.simulated_distributions(&recorded.name));
        all
    }

    /// How durations are distributed in each case of the workload of this name.
    pub fn simulated_distributions(&self, workload: &str) -> Vec<Distribution> {
        let mut all = Vec::new();
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
        let recorded_rows = CATALOGUE.iter().map(|metric| Row {
            value: metric.read(&recorded.summary).value,
            note: metric.read(&recorded.summary).note.map(str::to_string),
            ..row(&recorded.name, "recorded", World::Recorded, recorded.recording.cpus, metric)
        });
        recorded_rows.chain(self.simulated_rows(&recorded.name, seed)).collect()
    }

    /// The numbers of each case of the workload of this name.
    pub fn simulated_rows(&self, workload: &str, seed: u64) -> Vec<Row> {
        let rows = self.cases.iter().flat_map(|case| CATALOGUE.iter().map(move |metric| (case, metric))).map(|(case, metric)| {
            let estimate = case.estimate(metric);
            let bound = |sign: f64| estimate.and_then(|estimate| Some(estimate.mean + sign * estimate.half_width?));
            let inconclusive = case.inconclusive.then(|| "inconclusive: the time was up before the interval was narrow enough".to_string());
            Row {
                seed: Some(seed),
                point: self.point.clone(),
                value: estimate.map(|estimate| estimate.mean),
                ci_low: bound(-1.0),
                ci_high: bound(1.0),
                runs: case.runs.len() as u32,
                baseline: (case.policy != self.baseline).then(|| self.baseline.to_string()),
                verdict: self.verdict(case, metric),
                note: case.runs.iter().find_map(|run| metric.read(&run.summary).note).map(str::to_string).or(inconclusive),
                ..row(workload, &case.policy.to_string(), World::Sim, case.cpus, metric)
            }
        });
        rows.collect()
    }
}

/// A row without numbers.
fn row(workload: &str, candidate: &str, world: World, cpus: u16, metric: &Metric) -> Row {
    let (workload, candidate) = (workload.to_string(), candidate.to_string());
    Row { workload, candidate, cpus, runs: 1, ..Row::new(world, registered(metric.id)) }
}

impl Cases<'_> {
    /// The baseline and the other policies on each number of CPUs.
    fn of<'a>(&self, subject: Subject<'a>) -> impl Iterator<Item = (Subject<'a>, u16, PolicySpec)> + use<'a, '_> {
        let others = self.policies.iter().filter(move |policy| *policy != self.baseline).cloned();
        let all: Vec<PolicySpec> = std::iter::once(self.baseline.clone()).chain(others).collect();
        self.cpus.iter().flat_map(move |&cpus| all.clone().into_iter().map(move |policy| (subject, cpus, policy)))
    }
}

/// Runs all that are wanted, all cores at work; the one with the index `untraced` leaves no trace.
fn run_all(
    wanted: Vec<(Subject<'_>, u16, PolicySpec)>,
    untraced: Option<usize>,
    setup: &Setup<'_>,
    progress: &ProgressBar,
) -> Result<Vec<Case>, Error> {
    progress.set_length(wanted.len() as u64);
    let begin = Instant::now();
    let run = |(index, (subject, cpus, policy))| {
        let setup = Setup { traces: setup.traces.filter(|_| untraced != Some(index)), ..*setup };
        let case = repeat(subject, policy, cpus, &setup, begin);
        progress::step(progress)?;
        case
    };
    wanted.into_par_iter().enumerate().map(run).collect()
}

/// Runs a case until its intervals are narrow; once, if the seed makes no difference.
fn repeat(subject: Subject<'_>, policy: PolicySpec, cpus: u16, setup: &Setup<'_>, begin: Instant) -> Result<Case, Error> {
    let machine = subject.machine(cpus);
    let repetition = setup.repetition;
    let mut case = Case { policy, cpus, runs: Vec::new(), inconclusive: false };
    loop {
        let seed = repetition.seed + case.runs.len() as u64;
        let traces = setup.traces.filter(|_| case.runs.is_empty());
        let to = traces.map(|dir| dir.trace(&case.policy.to_string(), cpus)).transpose()?;
        let mut writer = to.map(|to| Writer::create(&to, &subject.header(&case.policy, cpus, seed))).transpose()?;
        let observer = writer.as_mut().map(|writer| writer as &mut dyn Observer);
        let run = simulate(subject, &machine, &case.policy, seed, setup.check, observer)?;
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
