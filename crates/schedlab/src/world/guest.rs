//! A guest kernel as a world: real tasks in an unmodified kernel under an emulator whose clock counts instructions.
//!
//! Sessions with one candidate share a boot, one after another, in their order; every boot is made twice and compared byte for byte. A member of an ensemble is left alone
//! a little longer before it is measured than the one before it.

mod driver;
mod reduce;

pub use driver::Driver;
pub use reduce::real;

use super::{Baseline, Candidate, Capabilities, Defaults, Determinism, Measure, Program, Run, Session, Trial, World};
use crate::output::{headline, registered};
use crate::vm::{Guest, Identity, Kernel, Proved, Qemu, closed, functions, kernel, prove, yields};
use crate::{Error, progress};
use indicatif::ProgressBar;
use reduce::Functions;
use results::{Direction, Metric, World as Name};
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Job, Session as Orders};
use schedsim::Nanos;
use schedsim::metrics::CATALOGUE;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How guests are booted.
#[derive(Clone, Debug)]
pub struct GuestSettings {
    /// The kernel: a series of Debian's, or the path of a bzImage.
    pub kernel: String,
    /// How long it is left alone after its boot, on its own clock.
    pub settle: Nanos,
    /// Into how many NUMA nodes it is cut.
    pub nodes: u16,
    /// Whether the classes of the kernel's own share a boot.
    pub one_boot: bool,
    /// Whether the instructions of yields are split by the kernel's functions.
    pub functions: bool,
}

/// Guests of one kernel.
pub struct GuestWorld {
    settings: GuestSettings,
    found: Option<(Qemu, Kernel)>,
    begin: Instant,
}

/// A session that was run, with what its guest said.
pub struct Booted<'s> {
    /// What was to run.
    pub session: &'s Session<'s>,
    /// What scheduled it.
    pub driver: Driver,
    /// The guest.
    pub guest: Arc<Guest>,
    /// What its digits depend on: kept, as all that lies in the guest is hashed for it.
    pub identity: Arc<Identity>,
    /// What it said.
    pub proved: Arc<Proved>,
    /// The session's first job, of those of its boot.
    pub job: usize,
}

/// The guest's memory in MiB.
const MEMORY: u32 = 512;
/// A guest that takes longer on this machine's clock has gone astray.
const WALL_LIMIT: Duration = Duration::from_secs(900);
/// A member is left alone by so much longer than the one before. Ticks come 4 ms apart, so that each finds another place between two of them.
const LONGER: Nanos = Nanos(7_000_000);
/// The most CPUs of a guest.
const CPUS: u16 = 16;
/// What can be said of several virtual CPUs, which QEMU runs one after another.
pub(crate) const UNTIMED: [&str; 1] = ["migrations"];
/// Why the rest cannot.
pub(crate) const NO_TIME: &str = "with several virtual CPUs, which QEMU runs one after another, times are sums and mean nothing";
/// The most tasks that yield in a guest.
const MOST_YIELDING: u32 = 10_000;
/// A deadline task yields once in each period, and the guest's watchdog does not wait for longer ones.
const LONGEST_PERIOD: u64 = 500_000;

impl GuestWorld {
    /// Guests with these settings; nothing is looked for yet.
    pub fn new(settings: GuestSettings) -> GuestWorld {
        GuestWorld { settings, found: None, begin: Instant::now() }
    }

    /// Boots what `sessions` need, twice each. With `calibrated` each session that is no yield also measures what a switch costs there.
    ///
    /// # Errors
    /// If a guest fails, does not repeat itself, or loses its scheduler.
    pub fn boot<'s>(&self, sessions: &'s [Session<'s>], calibrated: bool, progress: &ProgressBar) -> Result<Vec<Booted<'s>>, Error> {
        let mut guests: Vec<Guest> = Vec::new();
        let mut shared: Vec<(Driver, u16, Option<u64>, usize)> = Vec::new();
        let mut places = Vec::with_capacity(sessions.len());
        for session in sessions {
            let (Trial { candidate, cpus, .. }, member) = (&session.trial, &session.member);
            let driver = Driver::of(candidate)?;
            let is_same = |(of, on, which, _): &&(Driver, u16, Option<u64>, usize)| {
                let shares = *of == driver || (self.settings.one_boot && !of.is_ours() && !driver.is_ours());
                shares && on == cpus && which == member
            };
            let at = match shared.iter().find(is_same) {
                Some((.., at)) => *at,
                None => {
                    guests.push(self.guest(&driver, *cpus, member.unwrap_or(1) - 1)?);
                    shared.push((driver.clone(), *cpus, *member, guests.len() - 1));
                    guests.len() - 1
                }
            };
            let jobs = &mut guests[at].session.jobs;
            places.push((session, driver.clone(), at, jobs.len()));
            jobs.extend(jobs_of(&session.trial, driver.class(), calibrated)?);
        }
        progress.set_length(guests.iter().map(|guest| 2 * (3 + 2 * guest.session.jobs.len()) as u64).sum());
        let proved = prove(&guests, &|guest, event| show(progress, &guests[guest].kernel.name, event))?;
        let proved: Vec<Arc<Proved>> = proved.into_iter().map(Arc::new).collect();
        let identities: Vec<Arc<Identity>> = guests.iter().map(|guest| Arc::new(Identity::of(guest))).collect();
        let guests: Vec<Arc<Guest>> = guests.into_iter().map(Arc::new).collect();
        let booted = places.into_iter().map(|(session, driver, at, job)| {
            driver.judge(&proved[at].transcript)?;
            let (guest, identity) = (guests[at].clone(), identities[at].clone());
            Ok(Booted { session, driver, guest, identity, proved: proved[at].clone(), job })
        });
        booted.collect()
    }

    /// A guest under `driver` that has nothing to do yet.
    fn guest(&self, driver: &Driver, cpus: u16, member: u64) -> Result<Guest, Error> {
        let (qemu, kernel) = self.found.clone().ok_or_else(|| Error::Internal("no guest was made ready".to_string()))?;
        let settle_ms = (self.settings.settle.0 + member * LONGER.0) / 1_000_000;
        let session = Orders { settle_ms, ..Orders::default() };
        let nodes = self.settings.nodes;
        let mut guest =
            Guest { qemu, kernel, cpus, memory: MEMORY, nodes, session, files: Vec::new(), count_addresses: false, wall_limit: WALL_LIMIT };
        driver.install(&mut guest)?;
        Ok(guest)
    }
}

impl World for GuestWorld {
    fn name(&self) -> Name {
        let kernel = self.found.as_ref().map_or(&self.settings.kernel, |(_, kernel)| &kernel.name);
        Name::Vm { kernel: kernel.clone() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            determinism: Determinism::Chaotic,
            cpus: CPUS,
            candidates: "kernel:other, batch, idle, fifo:PRIORITY, rr:PRIORITY, deadline:RUNTIME/DEADLINE/PERIOD, schedulers in BPF, as bpf:rr, \
                         and policies by name, which decide in user space",
            workloads: "workloads of tasks, as yield:8, hackbench:1 or a file with [[task]]s",
            ensemble: 1,
        }
    }

    fn measures(&self, program: &Program, cpus: u16) -> Vec<Measure> {
        if let Program::Yields(..) = program {
            return vec![Measure {
                metric: Metric::instructions_per_yield,
                direction: Direction::Lower,
                title: Some("instructions per yield"),
                missing: None,
            }];
        }
        let measure = |metric: &schedsim::metrics::Metric| {
            let title = headline().find(|(of, _)| of.id == metric.id).map(|(_, title)| title);
            let missing = (cpus > 1 && !UNTIMED.contains(&metric.id)).then_some(NO_TIME);
            let metric = registered(metric.id);
            Measure { metric, direction: metric.description().direction, title, missing }
        };
        CATALOGUE.iter().map(measure).collect()
    }

    fn defaults(&self, _program: &Program) -> Result<Defaults, Error> {
        Ok(Defaults { candidates: vec![Candidate::Class(Class::Other)], baseline: Baseline::First })
    }

    fn cpus(&self, _program: &Program, asked: Option<u16>) -> Result<u16, Error> {
        match asked.unwrap_or(1) {
            cpus @ 1..=CPUS => Ok(cpus),
            cpus => Err(Error::Usage(format!("a guest has from 1 to {CPUS} CPUs, not {cpus}"))),
        }
    }

    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error> {
        let Trial { program, candidate, cpus } = trial;
        let workload = program.expect_closed(|name| {
            Error::Usage(format!(
                "`{name}` does not run in a real kernel, which takes tasks that go through phases: a file with [[task]]s, or one of those \
                 that `schedlab list workloads` shows, as yield:8, hackbench:1 or periodic:4"
            ))
        })?;
        let driver = Driver::of(candidate)?;
        match program {
            Program::Yields(tasks, _) => {
                if !(1..=MOST_YIELDING).contains(tasks) {
                    return Err(Error::Usage(format!(
                        "yield:{tasks}: give numbers of tasks from 1 to {MOST_YIELDING}, as in yield:2,8,32,128"
                    )));
                }
                if *cpus != 1 {
                    return Err(Error::Usage(
                        "with more than one virtual CPU the clock counts all instructions and says nothing of one: give --cpus 1"
                            .to_string(),
                    ));
                }
                if let Some(deployment) = candidate.deployment() {
                    return Err(Error::Usage(format!(
                        "--apply '{deployment}': the tasks of yield:{tasks} are all alike, and their yields are counted: give --policy kernel:batch, or another workload"
                    )));
                }
                driver.expect_short_period(LONGEST_PERIOD)?;
            }
            _ if driver.is_ours() => workload.expect_for_sched_ext(&driver)?,
            _ => {}
        }
        candidate.expect_for(program, *cpus)?;
        candidate.applied_to(workload).scripts(*cpus)?;
        let nodes = self.settings.nodes;
        if !cpus.is_multiple_of(nodes) {
            return Err(Error::Usage(format!("{cpus} CPUs cannot be cut into {nodes} NUMA nodes: give --cpus {}", 2 * nodes)));
        }
        Ok(())
    }

    fn prepare(&mut self, trials: &[Trial<'_>]) -> Result<(), Error> {
        let qemu = Qemu::find()?;
        let kernel = Kernel::find(&self.settings.kernel, &|what| eprintln!("schedlab: {what}"))?;
        for trial in trials {
            kernel.require(trial.cpus, if self.settings.nodes > 1 { &kernel::NUMA } else { &[] })?;
            let is_grouped = |workload| !trial.candidate.applied_to(workload).description().cgroups.is_empty();
            let has_groups = trial.program.closed().is_some_and(is_grouped);
            kernel.require(trial.cpus, if has_groups { &kernel::CGROUPS } else { &[] })?;
            Driver::of(&trial.candidate)?.require(&kernel, trial.cpus)?;
        }
        self.found = Some((qemu, kernel));
        Ok(())
    }

    fn run(&mut self, sessions: &[Session<'_>], progress: &ProgressBar) -> Result<Vec<Result<Run, String>>, Error> {
        let booted = self.boot(sessions, false, progress)?;
        let mut counted: Vec<Functions> = Vec::new();
        let run = |one: &Booted<'_>| match one.session.trial.program {
            Program::Yields(tasks, _) => one.yields(*tasks, self.settings.functions, &mut counted).map(Ok),
            _ => one.closed().map(Ok),
        };
        booted.iter().map(run).collect()
    }

    fn inputs(&self) -> String {
        let GuestSettings { settle, nodes, one_boot, .. } = &self.settings;
        format!("settle {}, {nodes} nodes, one boot: {one_boot}", settle.0)
    }

    fn clock(&self) -> Duration {
        self.begin.elapsed()
    }

    fn about(&self, trials: &[Trial<'_>]) -> String {
        let mut text = String::new();
        if trials.iter().any(|trial| matches!(trial.program, Program::Yields(..))) {
            text += "Instructions per yield, one virtual CPU, each kernel booted twice: the same digits\n";
        }
        if trials.iter().any(|trial| trial.cpus > 1) {
            text += &format!("Only shares and migrations are shown: {NO_TIME}.\n");
        }
        if self.settings.nodes > 1 {
            text +=
                &format!("NUMA nodes: {}, artificial: the kernel takes them for nodes, and no memory is slower.\n", self.settings.nodes);
        }
        let mut identities: Vec<String> = Vec::new();
        for driver in trials.iter().filter_map(|trial| Driver::of(&trial.candidate).ok()) {
            if let Ok(guest) = self.guest(&driver, 1, 0) {
                identities.push(Identity::of(&guest).to_string());
            }
        }
        identities.sort();
        identities.dedup();
        identities.iter().for_each(|identity| text += &format!("{identity}\n"));
        text
    }
}

/// What the runner does of `program`.
fn jobs_of(trial: &Trial<'_>, class: Class, calibrated: bool) -> Result<Vec<Job>, Error> {
    let program = trial.program;
    if let Program::Yields(tasks, _) = program
        && !calibrated
    {
        return Ok(vec![yields::job(*tasks, class)]);
    }
    let workload = program.closed().ok_or_else(|| Error::Internal(format!("{} has no tasks", program.name())))?;
    let workload = trial.candidate.applied_to(workload);
    let switching = calibrated.then(|| closed::switching(class));
    Ok(closed::jobs(workload.name(), workload.description(), class).into_iter().chain(switching).collect())
}

fn show(bar: &ProgressBar, kernel: &str, event: &Event) {
    let what = match event {
        Event::Boot { .. } => "booted".to_string(),
        Event::Settled { .. } => "settled".to_string(),
        Event::JobStart { name, .. } => format!("runs {name}"),
        Event::JobEnd { .. } => "has measured".to_string(),
        Event::PowerOff { .. } => "is off".to_string(),
        Event::Failed { message } => message.clone(),
        Event::ServiceEnd { status, early: true, .. } => format!("has lost its scheduler ({status})"),
        _ => return,
    };
    bar.set_message(format!("{kernel} {what}"));
    // Guests cannot be stopped between two steps.
    let _ = progress::step(bar);
}

impl Booted<'_> {
    /// The instructions of its yields by function, counted in a boot of its own that says the same.
    fn functions<'c>(&self, counted: &'c mut Vec<Functions>) -> Result<&'c Functions, Error> {
        let at = counted.iter().position(|one| Arc::ptr_eq(&one.guest, &self.guest));
        let at = match at {
            Some(at) => at,
            None => {
                let symbols = functions::Symbols::of(&self.guest)?;
                let transcript = functions::count(&self.guest, &self.proved.transcript)?;
                counted.push(Functions { guest: self.guest.clone(), symbols, transcript });
                counted.len() - 1
            }
        };
        Ok(&counted[at])
    }
}
