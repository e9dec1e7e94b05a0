//! The simulator as a world: the same session is the same run on every machine, and all cores work.

use super::{
    Baseline, Candidate, Capabilities, Defaults, Determinism, Measure, Observed, Program, Replay,
    Run, Session, Trial, World, rows_of,
};
use crate::compiled::traced::{BpfTrace, Traced};
use crate::compiled::{self, Compiled};
use crate::experiment::{
    Candidate as Scheduler, Subject, check_candidate, not_simulated, parse_policy, simulate,
    simulate_candidate,
};
use crate::setting;
use crate::setting::Deployment;
use formats::trace_file::{Header, Writer};
use formats::workload::Stochastic;
use indicatif::ProgressBar;
use program::{Error, progress};
use rayon::prelude::*;
use results::{
    Metric, Row, SubjectKind, World as Name, counted, headline, open_headline, registered,
};
use schedsim::Nanos;
use schedsim::checks::Violation;
use schedsim::metrics::{CATALOGUE, OPEN_CATALOGUE};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Observer, TraceHash};
use schedsim::workload::{Nudge, Workload};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The simulator.
#[derive(Clone, Debug)]
pub struct Simulator {
    begin: Instant,
    trace: Option<Arc<BpfTrace>>,
}

/// The default size of an ensemble.
pub const ENSEMBLE: u32 = 16;
/// The most CPUs of a simulated machine.
const CPUS: u16 = 4096;
/// The default policies of a comparison.
pub const POLICIES: [&str; 6] =
    ["eevdf", "take:rr", "take:multilist2", "take:priority", "central:rr", "initial:rr"];
/// Their baseline.
pub const BASELINE: &str = "eevdf";
/// The default policies of a comparison over drawn tasks.
pub const OPEN_POLICIES: [&str; 3] = ["central:rr", "initial:rr", "take:rr"];
/// Their baseline.
pub const OPEN_BASELINE: &str = "initial:rr";

impl Simulator {
    /// It needs nothing.
    pub fn new() -> Simulator {
        Simulator { begin: Instant::now(), trace: None }
    }

    /// It with the first run of a compiled scheduler written down.
    #[must_use]
    pub fn tracing(self, trace: Arc<BpfTrace>) -> Simulator {
        Simulator { trace: Some(trace), ..self }
    }

    /// Refuses a trace of a candidate that is not compiled, or of what that does not have.
    fn expect_traceable(&self, trial: &Trial<'_>) -> Result<(), Error> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let compiled = match &trial.candidate {
            Candidate::Bpf(name) if compiled::is_one(name) => Compiled::find(name)?,
            other => {
                return Err(Error::Usage(format!(
                    "--trace-bpf shows what a compiled scheduler does, and {other} is none: give \
                     --policy scx:FILE.bpf.o"
                )));
            }
        };
        let name = trial.program.name();
        let names = trial.program.subject(&name).map_or(Vec::new(), |subject| {
            subject.workload.tasks.iter().map(|task| task.info.name.clone()).collect()
        });
        trace.filter().expect_for(&compiled, &names)
    }
}

impl Default for Simulator {
    fn default() -> Simulator {
        Simulator::new()
    }
}

impl World for Simulator {
    fn name(&self) -> Name {
        Name::Sim
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            determinism: Determinism::Seeded,
            cpus: CPUS,
            candidates: "policies, as eevdf or take:rr: `schedlab list policies` shows them all",
            workloads: "recordings, workloads of tasks, and those drawn at random",
            ensemble: ENSEMBLE,
        }
    }

    fn measures(&self, program: &Program, _cpus: u16) -> Vec<Measure> {
        let named = |id: &str, titles: &[(&str, &'static str)]| {
            let (metric, title) =
                (registered(id), titles.iter().find(|(of, _)| *of == id).map(|(_, title)| *title));
            Measure { metric, direction: metric.description().direction, title, missing: None }
        };
        if program.is_drawn() {
            let titles: Vec<_> = open_headline().collect();
            // In the order of the titles, so that a ratio stands beside its numerator.
            let others =
                OPEN_CATALOGUE.iter().map(|metric| metric.id).chain(["warm_up", "saturated"]);
            let others: Vec<&str> =
                others.filter(|id| titles.iter().all(|(of, _)| of != id)).collect();
            return titles
                .iter()
                .map(|(id, _)| *id)
                .chain(others)
                .map(|id| named(id, &titles))
                .collect();
        }
        let titles: Vec<_> = headline().map(|(metric, title)| (metric.id(), title)).collect();
        CATALOGUE.iter().map(|metric| named(metric.id, &titles)).collect()
    }

    fn defaults(&self, program: &Program) -> Result<Defaults, Error> {
        let policy = |name: &&str| parse_policy(name).map(Candidate::Policy).map_err(Error::Usage);
        if let Program::Replay(replay) = program {
            return of_recording(replay);
        }
        let (candidates, baseline) = if program.is_drawn() {
            (&OPEN_POLICIES[..], OPEN_BASELINE)
        } else {
            (&POLICIES[..], BASELINE)
        };
        Ok(Defaults {
            candidates: candidates.iter().map(policy).collect::<Result<_, _>>()?,
            baseline: Baseline::Named(policy(&baseline)?),
        })
    }

    fn cpus(&self, program: &Program, asked: Option<u16>) -> Result<u16, Error> {
        let own = match program {
            Program::Open(workload) => return Ok(workload.machine.cpus),
            Program::Replay(replay) => replay
                .changed
                .as_ref()
                .map_or(replay.recorded.recording.cpus, |changed| changed.machine.cpus),
            Program::Closed(closed) | Program::Yields(_, closed) => closed.machine.cpus,
            Program::Command(_) => 1,
        };
        Ok(asked.unwrap_or(own))
    }

    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error> {
        if let Program::Command(words) = trial.program {
            let command = words.join(" ");
            return Err(Error::Usage(format!(
                "{command}: a command runs on this machine only: add --on host"
            )));
        }
        self.expect_traceable(trial)?;
        match &trial.candidate {
            Candidate::Policy(policy) => match trial.program {
                Program::Open(workload) => workload
                    .policy(policy)
                    .map(drop)
                    .map_err(|error| Error::Usage(error.to_string())),
                _ => Ok(()),
            },
            Candidate::Own(_) => Ok(()),
            Candidate::Applied(deployment) => {
                trial.candidate.expect_for(trial.program, trial.cpus)?;
                match &deployment.under {
                    Some(policy) => deployment.expect_under(policy),
                    None => Err(Error::Usage(format!(
                        "--apply '{deployment}' needs a policy that it changes: give --baseline \
                         eevdf"
                    ))),
                }
            }
            Candidate::Bpf(name) if compiled::is_one(name) => {
                let found = Compiled::find(name)?;
                match trial.program {
                    Program::Closed(closed) | Program::Yields(_, closed) => {
                        closed.workload.expect_for_sched_ext(&*found)
                    }
                    _ => Ok(()),
                }
            }
            Candidate::Class(_) | Candidate::Bpf(_) => {
                Err(Error::Usage(not_simulated(&trial.candidate.to_string()).unwrap_or_default()))
            }
        }
    }

    fn run(
        &mut self,
        sessions: &[Session<'_>],
        progress: &ProgressBar,
    ) -> Result<Vec<Result<Run, Error>>, Error> {
        let by_name = sessions.iter().enumerate().filter_map(|(index, session)| {
            let policy = match &session.trial.candidate {
                Candidate::Policy(policy) => Ok(Simulated::Policy(policy)),
                Candidate::Applied(deployment) => Ok(Simulated::Policy(deployment.under.as_ref()?)),
                Candidate::Bpf(name) => Compiled::find(name).map(Simulated::Compiled),
                _ => return None,
            };
            Some(policy.map(|policy| (index, policy, Job::of(session))))
        });
        let by_name = by_name.collect::<Result<Vec<(usize, Simulated<'_>, Job<'_>)>, Error>>()?;
        let run = |(index, policy, job): (usize, Simulated<'_>, Job<'_>)| {
            let run = of_candidate(match policy {
                Simulated::Policy(policy) => job.run_named(policy),
                Simulated::Compiled(compiled) => match &self.trace {
                    Some(trace) => job.run(&Traced { scheduler: &compiled, trace }),
                    None => job.run(&*compiled),
                },
            })?;
            progress::step(progress)?;
            Ok((index, run))
        };
        let runs = by_name.into_par_iter().map(run);
        let mut runs = runs.collect::<Result<Vec<(usize, Result<Run, Error>)>, Error>>()?;
        // A policy of the caller runs on the caller's thread.
        for (index, session) in sessions.iter().enumerate() {
            if let Candidate::Own(policy) = session.trial.candidate {
                runs.push((index, of_candidate(Job::of(session).run(policy))?));
                progress::step(progress)?;
            }
        }
        runs.sort_by_key(|(index, _)| *index);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    fn clock(&self) -> Duration {
        self.begin.elapsed()
    }

    fn about(&self, trials: &[Trial<'_>]) -> String {
        let machine = trials.first().and_then(|trial| trial.program.machine());
        machine.map_or(String::new(), |machine| format!("Machine: {machine}\n"))
    }
}

/// A policy that breaks a rule fails alone. Any other error ends the comparison.
fn of_candidate(run: Result<Run, Error>) -> Result<Result<Run, Error>, Error> {
    match run {
        Err(error @ (Error::Policy(_) | Error::Check(_))) => Ok(Err(error)),
        run => run.map(Ok),
    }
}

/// The settings to try, by what its programs do.
fn of_recording(replay: &Replay) -> Result<Defaults, Error> {
    let under = parse_policy(BASELINE).map_err(Error::Usage)?;
    let cpus = replay
        .changed
        .as_ref()
        .map_or(replay.recorded.recording.cpus, |changed| changed.machine.cpus);
    let recorded = &replay.recorded;
    let beside = &recorded.replay.outside.recorder;
    let usual = setting::usual(&recorded.workload, beside, cpus, &under);
    let mut candidates: Vec<Candidate<'static>> =
        usual.into_iter().map(|deployment| Candidate::Applied(Arc::new(deployment))).collect();
    for (_, twin) in setting::IN_BPF {
        candidates.push(Candidate::Policy(parse_policy(twin).map_err(Error::Usage)?));
    }
    Ok(Defaults { candidates, baseline: Baseline::Named(Candidate::Policy(under)) })
}

/// A candidate that any thread may run.
enum Simulated<'a> {
    Policy(&'a PolicySpec),
    Compiled(Arc<Compiled>),
}

/// A session without its candidate, which other threads may not have.
struct Job<'a> {
    program: &'a Program,
    applied: Option<&'a Deployment>,
    cpus: u16,
    seed: u64,
    nudge: Option<Nudge>,
    check: bool,
    observed: Observed,
    trace: Option<&'a Path>,
}

impl<'a> Job<'a> {
    fn of(session: &'a Session<'_>) -> Job<'a> {
        let Session { trial, seed, member, check, observed, trace } = session;
        let nudge = member.map(|_| Nudge::new(*seed));
        Job {
            program: trial.program,
            applied: trial.candidate.deployment(),
            cpus: trial.cpus,
            seed: *seed,
            nudge,
            check: *check,
            observed: *observed,
            trace: trace.as_deref(),
        }
    }

    fn run_named(&self, policy: &PolicySpec) -> Result<Run, Error> {
        match self.program {
            Program::Open(workload) => {
                let with_quantum =
                    workload.policy(policy).map_err(|error| Error::Usage(error.to_string()))?;
                self.open(workload, &with_quantum, &policy.to_string())
            }
            _ => self.scripts(policy),
        }
    }

    fn run(&self, policy: &dyn Scheduler) -> Result<Run, Error> {
        match self.program {
            Program::Open(workload) => self.open(workload, policy, &policy.to_string()),
            _ => self.scripts(policy),
        }
    }

    fn scripts(&self, policy: &dyn Scheduler) -> Result<Run, Error> {
        let name = self.program.name();
        let Some(subject) = self.program.subject(&name) else {
            return Err(Error::Internal(format!("{name} is nothing that is simulated")));
        };
        let changed = self.applied.map(|applied| applied.to_workload(subject.workload));
        let parts = matches!(self.observed, Observed::Parts | Observed::Events);
        let subject =
            Subject { workload: changed.as_ref().unwrap_or(subject.workload), parts, ..subject };
        let machine = subject.machine(self.cpus);
        let header = subject.header(policy, self.cpus, self.seed);
        let mut writer = self.trace.map(|to| Writer::create(to, &header)).transpose()?;
        let observer = writer.as_mut().map(|writer| writer as &mut dyn Observer);
        let run =
            simulate(subject, &machine, policy, (self.seed, self.nudge), self.check, observer)?;
        writer.map(Writer::finish).transpose()?;
        self.refuse(policy, &run.violations)?;
        let mut rows = rows_of(&run.summary, &Name::Sim);
        if self.observed == Observed::Events {
            rows.extend(reservations(&run.summary, subject.workload));
        }
        let trace = Some((run.outcome.events, run.hash));
        let tasks = subject.workload.tasks.iter().map(|task| task.info.clone()).collect();
        Ok(Run {
            rows,
            random: run.outcome.random,
            repeats: 1,
            resolution: Nanos::ZERO,
            ended: None,
            summary: Some(run.summary),
            tasks,
            trace,
            recorded: None,
        })
    }

    fn open(
        &self,
        workload: &Stochastic,
        policy: &dyn Scheduler,
        shown: &str,
    ) -> Result<Run, Error> {
        if self.check {
            self.refuse(policy, &check_candidate(workload, policy, self.seed)?)?;
        }
        let mut hash = TraceHash::new();
        let header = Header {
            workload: workload.name.clone(),
            candidate: shown.to_string(),
            cpus: workload.machine.cpus,
            seed: self.seed,
            version: env!("CARGO_PKG_VERSION").to_string(),
            tasks: Vec::new(),
        };
        let mut writer = self.trace.map(|path| Writer::create(path, &header)).transpose()?;
        let mut others: Vec<&mut dyn Observer> = Vec::new();
        let is_seen = self.observed == Observed::Events || writer.is_some();
        if is_seen {
            others.push(&mut hash);
        }
        others.extend(writer.as_mut().map(|writer| writer as &mut dyn Observer));
        let run = simulate_candidate(workload, policy, self.seed, others)?;
        writer.map(Writer::finish).transpose()?;
        let trace = is_seen.then(|| (run.outcome.events, hash.value()));
        Ok(Run {
            rows: run.rows(workload, shown, self.seed),
            random: true,
            repeats: 1,
            resolution: Nanos::ZERO,
            ended: None,
            summary: None,
            tasks: Vec::new(),
            trace,
            recorded: None,
        })
    }

    fn refuse(&self, policy: &dyn Scheduler, violations: &[Violation]) -> Result<(), Error> {
        if violations.is_empty() {
            return Ok(());
        }
        let list: Vec<String> =
            violations.iter().take(10).map(|violation| format!("  {violation}")).collect();
        let (name, cpus, seed, list) =
            (self.program.name(), counted(self.cpus.into(), "CPU"), self.seed, list.join("\n"));
        Err(Error::Check(format!(
            "{name}: {policy} on {cpus}, seed {seed}: {} checks failed:\n{list}",
            violations.len()
        )))
    }
}

/// For each task with a reservation: its jobs, missed deadlines, longest response time, and how
/// much of its reservation it used.
fn reservations<'a>(
    summary: &'a schedsim::metrics::Summary,
    workload: &'a Workload,
) -> impl Iterator<Item = Row> + 'a {
    summary.deadlines.iter().flat_map(|task| {
        let name = format!("{} {}", task.task.0, workload.tasks[task.task.index()].info.name);
        let numbers = [
            (Metric::task_jobs, task.jobs as f64),
            (Metric::task_deadline_misses, task.missed as f64),
            (Metric::task_response_ns_max, task.response.0 as f64),
            (Metric::task_reservation_used, task.used),
        ];
        numbers.map(|(metric, value)| {
            Row { value: Some(value), ..Row::new(Name::Sim, metric) }
                .of(SubjectKind::Task, name.clone())
        })
    })
}
