//! This machine as a world: real tasks under the kernel's own classes, or a scheduler of sched_ext
//! that is loaded for each run. No two runs are the same, so they are made one after another.

use super::{
    Baseline, Candidate, Capabilities, Defaults, Determinism, Measure, Observed, Program, Run,
    Session, Trial, World, rows_of,
};
use crate::driver::Driver;
use crate::experiment::{CostOverrides, Reading, Recorded};
use crate::host::measured::{HostMetric, METRICS, Measured};
use crate::host::run::{Conditions, Place, Subject};
use crate::host::traced::Traced;
use crate::host::{cpus, limits, record};
use crate::printed::{Reader, Written};
use crate::setting::Deployment;
use formats::import::{Options, Recording};
use formats::trace_file::{Header, Task, Writer};
use indicatif::ProgressBar;
use program::{Error, Scratch};
use results::{Metric, Point, Row, SubjectKind, World as Name, registered};
use schedlab_runner::class::Class;
use schedsim::Time;
use schedsim::metrics::Metrics;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How workloads run on this machine.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The CPUs to use; by default all that may be used.
    pub affinity: Vec<u16>,
    /// The nice value of tasks that request none.
    pub nice: i32,
    /// A run that takes longer is killed.
    pub limit: Duration,
    /// Whether real-time tasks may use all of each CPU during runs.
    pub no_rt_throttling: bool,
    /// Where commands run; by default where this program runs.
    pub directory: Option<PathBuf>,
    /// The numbers that commands print themselves.
    pub printed: Vec<Reader>,
}

/// This machine.
pub struct HostWorld {
    settings: HostSettings,
    place: Option<Place>,
    begin: Instant,
}

/// The default classes of a comparison.
pub const CLASSES: [Class; 5] =
    [Class::Other, Class::Batch, Class::Idle, Class::Fifo(50), Class::Rr(50)];
/// The watchdog and the guard have 99, and must be able to end the tasks.
const HIGHEST: u32 = 98;

impl HostWorld {
    /// With these settings; nothing is started yet.
    pub fn new(settings: HostSettings) -> HostWorld {
        HostWorld { settings, place: None, begin: Instant::now() }
    }

    fn conditions(&self, count: Option<u16>) -> Result<Conditions, Error> {
        let cpus = cpus::choose(&self.settings.affinity, count)?;
        let pinned = cpus.len() < cpus::usable().len();
        Ok(Conditions {
            pinned,
            cpus,
            nice: self.settings.nice,
            limit: self.settings.limit,
            bare: false,
            keeps_output: false,
        })
    }

    /// The numbers that a program prints itself.
    fn printed(&self, program: &Program) -> &[Reader] {
        Reader::of(&self.settings.printed, program)
    }

    fn run_one(&mut self, session: &Session<'_>) -> Result<Result<Run, Error>, Error> {
        let trial = &session.trial;
        let (name, driver) = (trial.program.name(), driver_of(&trial.candidate)?);
        let subject = match trial.program {
            Program::Command(words) => Subject::Command(words.clone()),
            program => {
                let workload =
                    trial.candidate.applied_to(program.expect_closed(not_here)?).into_owned();
                Subject::Closed(Box::new(workload.description().clone()))
            }
        };
        let conditions = Conditions {
            bare: session.observed == Observed::Bare,
            keeps_output: trial.program.command().is_some() && !self.settings.printed.is_empty(),
            ..self.conditions(Some(trial.cpus))?
        };
        let mut point = point(&conditions);
        if let Some(sha256) = driver.sha256()? {
            point.set("scheduler_sha256", sha256);
        }
        let place = self
            .place
            .as_mut()
            .ok_or_else(|| Error::Internal("this machine was not made ready".to_string()))?;
        if session.observed == Observed::Events {
            return recorded(
                place,
                &name,
                &subject,
                &driver,
                &conditions,
                session.trace.as_deref(),
            )
            .map(|run| Ok(stamped(run, &point)));
        }
        if session.observed == Observed::Recorded {
            return kept(place, &name, &subject, &driver, &conditions)
                .map(|run| Ok(stamped(run, &point)));
        }
        Ok(place
            .run(&name, &subject, &driver, &conditions)?
            .map(|measured| stamped(Run::of(&measured, self.printed(trial.program)), &point)))
    }
}

impl World for HostWorld {
    fn name(&self) -> Name {
        Name::Host
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            determinism: Determinism::Noisy,
            cpus: u16::try_from(cpus::usable().len()).unwrap_or(u16::MAX),
            candidates: "the kernel's own classes: kernel:other, kernel:batch, kernel:idle, \
                         kernel:fifo:50, kernel:rr:50, kernel:deadline:2ms/10ms/10ms; where the \
                         kernel has sched_ext, scx:PROGRAM, bpf:rr and policies of the simulator",
            workloads: "workloads of tasks, as hackbench:1 or a file with [[task]]s, and commands \
                        behind --",
            ensemble: 16,
        }
    }

    fn measures(&self, program: &Program, _cpus: u16) -> Vec<Measure> {
        let measure = |metric: &HostMetric| Measure {
            metric: registered(metric.id),
            direction: metric.better,
            title: Some(metric.title),
            missing: Some(metric.missing),
        };
        let printed = self.printed(program).iter().map(Reader::measure);
        METRICS.iter().map(measure).chain(printed).collect()
    }

    fn defaults(&self, _program: &Program) -> Result<Defaults, Error> {
        Ok(Defaults { candidates: CLASSES.map(Candidate::Class).into(), baseline: Baseline::First })
    }

    fn cpus(&self, _program: &Program, asked: Option<u16>) -> Result<u16, Error> {
        self.conditions(asked).map(|conditions| conditions.cpus.len() as u16)
    }

    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error> {
        match &trial.candidate {
            Candidate::Class(Class::Fifo(priority) | Class::Rr(priority))
                if *priority > HIGHEST =>
            {
                return Err(Error::Usage(format!(
                    "priority {priority} is the watchdog's on this machine, which must be able to \
                     end what hangs; give at most {HIGHEST}"
                )));
            }
            Candidate::Class(_) | Candidate::Applied(_) => {}
            candidate => {
                expect_sched_ext(candidate)?;
                driver_of(candidate).map(drop)?;
            }
        }
        if let Some(priority) = trial
            .candidate
            .deployment()
            .and_then(Deployment::highest)
            .filter(|priority| u32::from(*priority) > HIGHEST)
        {
            return Err(Error::Usage(format!(
                "priority {priority} is the watchdog's on this machine, which must be able to end \
                 what hangs; give at most {HIGHEST}"
            )));
        }
        match trial.program {
            Program::Command(_) if trial.candidate.deployment().is_some() => {
                trial.candidate.expect_for(trial.program, trial.cpus)
            }
            Program::Command(words) => words.first().map_or(Ok(()), |program| {
                // A path begins where the command runs.
                let directory = self.settings.directory.as_ref().filter(|_| program.contains('/'));
                let program =
                    directory.map_or(PathBuf::from(program), |directory| directory.join(program));
                record::find_command(program.as_os_str(), "run").map(drop)
            }),
            program => {
                let workload = program.expect_closed(not_here)?;
                trial.candidate.expect_for(program, trial.cpus)?;
                let workload = trial.candidate.applied_to(workload);
                workload.expect_for_host()?;
                limits::require_room(workload.name(), workload.description())
            }
        }
    }

    fn prepare(&mut self, _trials: &[Trial<'_>]) -> Result<(), Error> {
        let mut place = Place::new()?;
        place.runner.directory.clone_from(&self.settings.directory);
        if self.settings.no_rt_throttling {
            place.guard.set("/proc/sys/kernel/sched_rt_runtime_us", "-1")?;
        }
        self.place = Some(place);
        Ok(())
    }

    fn run(
        &mut self,
        sessions: &[Session<'_>],
        progress: &ProgressBar,
    ) -> Result<Vec<Result<Run, Error>>, Error> {
        let mut runs = Vec::with_capacity(sessions.len());
        for session in sessions {
            progress.set_message(format!(
                "{} under {}",
                session.trial.program.name(),
                session.trial.candidate
            ));
            runs.push(self.run_one(session)?);
            program::progress::step(progress)?;
        }
        Ok(runs)
    }

    fn clock(&self) -> Duration {
        self.begin.elapsed()
    }

    fn about(&self, trials: &[Trial<'_>]) -> String {
        let mut all: Vec<Vec<u16>> = Vec::new();
        for cpus in trials
            .iter()
            .filter_map(|trial| self.conditions(Some(trial.cpus)).ok())
            .map(|conditions| conditions.cpus)
        {
            if !all.contains(&cpus) {
                all.push(cpus);
            }
        }
        let named = |cpus: &Vec<u16>| {
            format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, cpus::names(cpus))
        };
        format!("On this machine: {}\n", all.iter().map(named).collect::<Vec<_>>().join("; "))
    }
}

/// What schedules the tasks of a candidate.
fn driver_of(candidate: &Candidate<'_>) -> Result<Driver, Error> {
    match candidate {
        Candidate::Own(policy) => Err(Error::Usage(format!(
            "{policy} is written in Python, and no kernel runs that: write it in Rust (`schedlab new \
             policy`), or give --on sim"
        ))),
        candidate => Driver::of(candidate),
    }
}

/// Checks that this machine lets a scheduler of sched_ext be loaded, and that none is there, as
/// another one could not be put back.
fn expect_sched_ext(candidate: &Candidate<'_>) -> Result<(), Error> {
    let read = |file: &str| std::fs::read_to_string(format!("/sys/kernel/sched_ext/{file}"));
    let Ok(state) = read("state") else {
        return Err(Error::Missing(format!(
            "{candidate} needs sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 6.12 or later), which this \
             machine's kernel has not: give --on vm, or --on sim for a policy of the \
             simulator; here run kernel:other, kernel:batch, \
             kernel:idle, kernel:fifo:50, kernel:rr:50 and kernel:deadline:2ms/10ms/10ms"
        )));
    };
    if state.trim() != "disabled" {
        let ops = read("root/ops").unwrap_or_default();
        return Err(Error::Missing(format!(
            "the scheduler `{}` is in charge of this machine, and {candidate} would replace it; end \
             it first",
            ops.trim()
        )));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Missing(format!(
            "{candidate}: loading a scheduler needs root: run it with sudo"
        )));
    }
    Ok(())
}

fn not_here(name: &str) -> Error {
    Error::Usage(format!(
        "{name} is a recording of what ran, or is drawn at random and runs in the simulator only: \
         it is not something to run on this machine; give a workload of tasks, as \
         pythagoras:3200, hackbench:1 or a file with [[task]]s, or the command itself, as in: \
         schedlab compare --on host -- make -j8"
    ))
}

fn point(conditions: &Conditions) -> Point {
    let mut point = Point::new();
    if conditions.nice != 0 {
        point.set("nice", conditions.nice);
    }
    if conditions.pinned {
        point.set("affinity", cpus::names(&conditions.cpus));
    }
    point
}

fn stamped(mut run: Run, point: &Point) -> Run {
    run.rows.iter_mut().for_each(|row| row.point.extend(point.clone()));
    run
}

impl Run {
    /// The numbers of a run on this machine: its metrics, and those that it printed. For each kind
    /// of task also CPU time, first begin and last end.
    fn of(measured: &Measured, printed: &[Reader]) -> Run {
        let metric = |metric: &HostMetric| {
            let value = measured.value(metric.id).filter(|value| value.is_finite());
            let note = value.is_none().then(|| metric.missing.to_string());
            Row { value, note, ..Row::new(Name::Host, registered(metric.id)) }
        };
        let written = Written { stdout: &measured.stdout, stderr: &measured.stderr };
        let printed = printed.iter().map(|reading| reading.row(Name::Host, written));
        let mut rows: Vec<Row> = METRICS.iter().map(metric).chain(printed).collect();
        let mut tasks: BTreeMap<(&str, Metric), f64> = BTreeMap::new();
        for task in &measured.tasks {
            *tasks.entry((&task.name, Metric::task_cpu_time_ns)).or_default() += task.cpu_ns as f64;
            if let Some(began) = task.began_ns {
                let first =
                    tasks.entry((&task.name, Metric::task_began_ns)).or_insert(f64::INFINITY);
                *first = first.min(began as f64);
            }
            if let Some(ended) = task.ended_ns {
                let last = tasks.entry((&task.name, Metric::task_ended_ns)).or_default();
                *last = last.max(ended as f64);
            }
        }
        rows.extend(tasks.into_iter().map(|((task, metric), value)| {
            Row { value: Some(value), ..Row::new(Name::Host, metric) }.of(SubjectKind::Task, task)
        }));
        Run { rows, random: true, repeats: 1, ..Run::default() }
    }
}

/// A run recorded by perf: the same metrics as those of a simulation, of its own tasks alone. Its
/// trace goes to `trace`, if given.
fn recorded(
    place: &mut Place,
    name: &str,
    subject: &Subject,
    driver: &Driver,
    conditions: &Conditions,
    trace: Option<&Path>,
) -> Result<Run, Error> {
    let scratch = Scratch::new()?;
    let file = scratch.path().join("perf.data");
    let traced = Traced::record(place, name, subject, driver, conditions, &file)?;
    let mut metrics = Metrics::new(conditions.cpus.len() as u16).with_parts();
    let recording = traced.read(&file, &Options::default(), vec![&mut metrics])?;
    if let Some(trace) = trace {
        let header = Header {
            workload: name.to_string(),
            candidate: driver.to_string(),
            cpus: recording.cpus,
            seed: 0,
            version: env!("CARGO_PKG_VERSION").to_string(),
            tasks: recording.tasks.iter().map(Task::from).collect(),
        };
        let mut writer = Writer::create(trace, &header)?;
        traced.read(&file, &Options::default(), vec![&mut writer])?;
        writer.finish()?;
    }
    let summary = metrics.finish(Time(recording.duration.0));
    let rows =
        rows_of(&summary, &Name::Host).into_iter().map(|row| row.at("recorded", "perf")).collect();
    Ok(Run {
        rows,
        random: true,
        repeats: 1,
        summary: Some(summary),
        tasks: recording.tasks,
        ..Run::default()
    })
}

/// The same, with the recording itself. Its numbers cover the time until the tasks that ended have
/// ended, as those of its replays will.
fn kept(
    place: &mut Place,
    name: &str,
    subject: &Subject,
    driver: &Driver,
    conditions: &Conditions,
) -> Result<Run, Error> {
    let scratch = Scratch::new()?;
    let file = scratch.path().join("perf.data");
    let traced = Traced::record(place, name, subject, driver, conditions, &file)?;
    // perf records all CPUs; those that the tasks may not use are no part of this machine.
    let cpus = conditions.cpus.len() as u16;
    let recorded = Recorded::load(
        &file,
        Reading::default(),
        CostOverrides::default(),
        |path, options, observers| {
            Ok(Recording { cpus, ..traced.read(path, &options, observers)? })
        },
    )?;
    let rows = rows_of(&recorded.summary, &Name::Host)
        .into_iter()
        .map(|row| row.at("recorded", "perf"))
        .collect();
    let (summary, tasks) = (Some(recorded.summary.clone()), recorded.recording.tasks.clone());
    Ok(Run {
        rows,
        random: true,
        repeats: 1,
        summary,
        tasks,
        recorded: Some(Arc::new(recorded)),
        ..Run::default()
    })
}
