//! One run of a stochastic workload under a policy, and its rows.

mod warm_up;

use super::Candidate;
use formats::workload::Stochastic;
use formats::workload::format::{Saturation as Rule, WarmUp};
use program::Error;
use results::{Metric, Point, Row, SubjectKind, World, registered};
use schedsim::Time;
use schedsim::checks::{Checks, Violation};
use schedsim::engine::{self, Options, Outcome};
use schedsim::metrics::{Group, OPEN_CATALOGUE, OpenSummary, OpenSystem, Saturation, slowdown};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Observer, Trace};
use schedsim::workload::Model;
use std::fmt::Display;
use warm_up::ResponseRatios;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct OpenRun {
    /// Its metrics.
    pub summary: OpenSummary,
    /// Its end and its events.
    pub outcome: Outcome,
    /// The number of tasks before the measured ones.
    pub warm_up: u64,
    /// The reason why it is saturated, if it is.
    pub saturated: Option<&'static str>,
}

/// Runs `workload` under `policy`; `others` receive the events.
///
/// # Errors
/// If the policy fails.
pub fn simulate_open(
    workload: &Stochastic,
    policy: &PolicySpec,
    seed: u64,
    others: Vec<&mut dyn Observer>,
) -> Result<OpenRun, Error> {
    let policy = workload.policy(policy).map_err(|error| Error::Usage(error.to_string()))?;
    simulate_candidate(workload, &policy, seed, others)
}

/// As [`simulate_open`], but the policy keeps its own quantum, whatever the workload states.
///
/// # Errors
/// If the policy fails.
pub fn simulate_candidate(
    workload: &Stochastic,
    policy: &dyn Candidate,
    seed: u64,
    others: Vec<&mut dyn Observer>,
) -> Result<OpenRun, Error> {
    let job = Job { workload, policy, seed };
    let mut warmed = None;
    if workload.warm_up == WarmUp::Mser5 {
        let mut ratios = ResponseRatios::new(workload.model.length().measured);
        job.run(&workload.model, vec![&mut ratios])?;
        let mut length = workload.model.length();
        length.warm_up = ratios.mser5();
        length.measured -= length.warm_up;
        warmed = Some(workload.model.clone().with_length(length));
    }
    let model = warmed.as_ref().unwrap_or(&workload.model);
    let mut open = OpenSystem::new(model, seed, workload.machine.cpus);
    let outcome = if others.is_empty() {
        job.run_open(model, &mut open)?
    } else {
        let mut observers: Vec<&mut dyn Observer> = vec![&mut open];
        // One by one: each reference may live longer than this list.
        others.into_iter().for_each(|other| observers.push(other));
        job.run(model, observers)?
    };
    let summary = open.finish();
    let saturated = job.saturated(&summary);
    Ok(OpenRun { summary, outcome, warm_up: model.length().warm_up, saturated })
}

/// Runs the same tasks, written as scripts, under all checks; nothing arrives after the last
/// measured task. The policy keeps its own quantum, whatever the workload states.
///
/// # Errors
/// If the policy fails.
pub fn check_candidate(
    workload: &Stochastic,
    policy: &dyn Candidate,
    seed: u64,
) -> Result<Vec<Violation>, Error> {
    let length = workload.model.length();
    let scripts = workload.model.scripts(seed, (length.warm_up + length.measured) as usize);
    let machine = &workload.machine;
    let mut checks = Checks::new(&scripts, machine, policy.promises(machine.cpus));
    let options = Options { seed, until: Time::NEVER };
    let outcome = policy
        .run((&scripts).into(), machine, options, Trace::new(vec![&mut checks]))
        .map_err(|error| super::of_run(&error, &policy, &format!(" with seed {seed}")))?;
    Ok(checks.finish(&outcome))
}

/// A run without its policy.
struct Job<'a> {
    workload: &'a Stochastic,
    policy: &'a dyn Candidate,
    seed: u64,
}

impl Job<'_> {
    fn run(&self, model: &Model, observers: Vec<&mut dyn Observer>) -> Result<Outcome, Error> {
        let trace = Trace::new(observers);
        self.policy
            .run(model.into(), &self.workload.machine, self.options(), trace)
            .map_err(|error| self.failed(&error))
    }

    fn run_open(&self, model: &Model, open: &mut OpenSystem) -> Result<Outcome, Error> {
        self.policy
            .run_open(model, &self.workload.machine, self.options(), open)
            .map_err(|error| self.failed(&error))
    }

    fn options(&self) -> Options {
        Options { seed: self.seed, until: Time::NEVER }
    }

    fn failed(&self, error: &engine::Error) -> Error {
        super::of_run(error, &self.policy, &format!(" with seed {}", self.seed))
    }

    fn saturated(&self, summary: &OpenSummary) -> Option<&'static str> {
        match (self.workload.saturation, summary.saturated) {
            (_, Some(Saturation::Limit)) => {
                Some("saturated: more tasks were alive than population-limit allows")
            }
            (Rule::Drift | Rule::ClosedForm, Some(Saturation::Drift)) => {
                Some("saturated: the number of tasks alive grew all the time")
            }
            (Rule::ClosedForm, None)
                if self
                    .workload
                    .saturates(self.policy, self.policy.migrates(self.workload.machine.cpus)) =>
            {
                Some("saturated: the load is above what the CPUs can bear in closed form")
            }
            _ => None,
        }
    }
}

impl OpenRun {
    /// One row per metric; for response times also one per priority and class, if there is more
    /// than one. A row that means nothing in a saturated run has no value.
    pub fn rows(
        &self,
        workload: &Stochastic,
        policy: &(impl Display + ?Sized),
        seed: u64,
    ) -> Vec<Row> {
        let row = |metric: Metric, value: Option<f64>, note: Option<&str>| Row {
            workload: workload.name.clone(),
            candidate: policy.to_string(),
            cpus: workload.machine.cpus,
            seed: Some(seed),
            point: Point::read(&workload.parameters),
            value,
            runs: 1,
            note: note.map(str::to_string),
            ..Row::new(World::Sim, metric)
        };
        let mut rows: Vec<Row> = Vec::new();
        for metric in OPEN_CATALOGUE {
            let value =
                metric.read(&self.summary).filter(|_| !(metric.steady && self.saturated.is_some()));
            let note = self.saturated.or(value.is_none().then_some("not known of this run"));
            rows.push(row(registered(metric.id), value, note));
        }
        for (name, samples) in self.summary.slowdowns.classes() {
            for (metric, percent) in [
                (Metric::slowdown_p50, 50.0),
                (Metric::slowdown_p95, 95.0),
                (Metric::slowdown_p99, 99.0),
            ] {
                let read = slowdown(samples, percent, "");
                let note = self.saturated.or(read.note);
                rows.push(
                    row(metric, read.value.filter(|_| self.saturated.is_none()), note)
                        .of(SubjectKind::Class, name),
                );
            }
        }
        rows.push(row(Metric::warm_up, Some(self.warm_up as f64), None));
        rows.push(row(
            Metric::saturated,
            Some(f64::from(u8::from(self.saturated.is_some()))),
            self.saturated,
        ));
        for part in parts(&workload.model) {
            let chosen = |group: &Group| part.has(group);
            for (metric, value) in
                [(Metric::grr, self.summary.grr(chosen)), (Metric::apr, self.summary.apr(chosen))]
            {
                let value = value.filter(|_| self.saturated.is_none());
                let note =
                    self.saturated.or(value.is_none().then_some("no task of it was measured"));
                let (kind, name) = part.subject(&workload.model);
                rows.push(row(metric, value, note).of(kind, name));
            }
        }
        rows
    }
}

/// A part of the tasks, for a row of its own.
#[derive(Clone, Copy)]
enum Part {
    Priority(u8),
    Class(u8),
}

impl Part {
    fn has(self, group: &Group) -> bool {
        match self {
            Part::Priority(prio) => group.kind.prio == prio,
            Part::Class(class) => group.kind.class == class,
        }
    }

    fn subject(self, model: &Model) -> (SubjectKind, String) {
        match self {
            Part::Priority(prio) => (SubjectKind::Priority, prio.to_string()),
            Part::Class(class) => {
                (SubjectKind::Class, model.classes()[usize::from(class)].name.clone())
            }
        }
    }
}

/// The parts of the tasks that have rows.
pub fn subjects(model: &Model) -> Vec<(SubjectKind, String)> {
    parts(model).into_iter().map(|part| part.subject(model)).collect()
}

/// The priorities and the classes, where there is more than one.
fn parts(model: &Model) -> Vec<Part> {
    let mut priorities: Vec<u8> = model
        .classes()
        .iter()
        .flat_map(|class| class.priorities.iter().map(|&(prio, _)| prio))
        .collect();
    priorities.sort_unstable();
    priorities.dedup();
    let mut parts = Vec::new();
    if priorities.len() > 1 {
        parts.extend(priorities.into_iter().map(Part::Priority));
    }
    if model.classes().len() > 1 {
        parts.extend((0..model.classes().len()).map(|class| Part::Class(class as u8)));
    }
    parts
}
