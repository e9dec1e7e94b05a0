//! A guest kernel as a world: real tasks in an unmodified kernel under an emulator whose clock
//! counts instructions.
//!
//! A guest is booted once for each number of CPUs and each loaded scheduler; when it has settled,
//! its state is saved. Every session begins with this state, so its digits depend on the session
//! alone. Each guest is booted twice, and the first session of each candidate is run in both and
//! compared byte for byte. Members of an ensemble differ by [`nudges`], which their seeds draw.

mod changes;
mod command;
pub mod nudges;
pub mod overseen;
mod purpose;
mod reduce;

pub use changes::Changes;
pub use nudges::Nudges;
pub use reduce::real;

use super::{
    Baseline, Candidate, Capabilities, Defaults, Determinism, Measure, Program, Run, Session,
    Trial, World,
};
use crate::driver::{self, Driver};
use crate::printed::Reader;
use crate::vm::functions::{self, Split};
use crate::vm::lockstep::VALIDATED;
use crate::vm::program_files::{Origin, Packed};
use crate::vm::{
    Guest, Identity, Kernel, Lockstep, Orders, Proved, Qemu, Settled, Shape, closed, initramfs,
    kernel, newer_qemu, pins, prove_each, qemu, shape, yields,
};
use indicatif::ProgressBar;
use program::{Error, progress};
use purpose::{Purpose, Purposes};
use results::{Better, Input, InputLock, Metric, World as Name, counted, headline, registered};
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::nudge::Nudge;
use schedlab_runner::session::{Job, ROOT, Session as RunnerSession};
use schedsim::Nanos;
use schedsim::metrics::CATALOGUE;
use schedsim::workload::Closed;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How guests are booted.
#[derive(Clone, Debug)]
pub struct GuestSettings {
    /// The kernel: a series of Debian, or the path of a bzImage.
    pub kernel: String,
    /// How long it is left alone after its boot, on its own clock.
    pub settle: Nanos,
    /// Its memory in MiB, if its CPUs do not need more.
    pub memory: u32,
    /// The number of its NUMA nodes, where no machine is described.
    pub nodes: u16,
    /// The machine, if it is described.
    pub shape: Option<Shape>,
    /// By how many instructions the CPUs of a guest that has several are interleaved.
    pub interleave: u32,
    /// What is changed of its kernel.
    pub changes: Changes,
    /// Whether the instructions of yields are split by the kernel's functions.
    pub functions: bool,
    /// Whether what the kernel keeps of tasks is written into its trace, where our loader has loaded
    /// the scheduler.
    pub witness: bool,
    /// What members of an ensemble differ by.
    pub nudges: Nudges,
    /// Whether only the first member of an ensemble runs, and once: for numbers that a record is
    /// held against.
    pub is_first_member: bool,
    /// What its guests must be made of, if that is given.
    pub lock: Option<Arc<InputLock>>,
    /// Where the files of a command come from.
    pub origin: Origin,
    /// Where what schedulers of sched_ext write is kept, if anywhere.
    pub kept: Option<PathBuf>,
    /// How long a command may take, on the guest's clock.
    pub limit: Nanos,
    /// Whether a command runs a second time, with the kernel's scheduling events.
    pub has_events: bool,
    /// The numbers that commands print themselves.
    pub printed: Vec<Reader>,
}

/// Guests of one kernel.
pub struct GuestWorld {
    settings: GuestSettings,
    found: Option<Found>,
    /// The files of each command.
    packed: BTreeMap<Vec<String>, Packed>,
    begin: Instant,
    /// Whether it has run members of an ensemble.
    has_members: bool,
    /// What its guests are made of.
    inputs: Vec<Input>,
}

/// What guests are made of.
#[derive(Clone)]
struct Found {
    kernel: Kernel,
    /// For one CPU.
    qemu: Option<Qemu>,
    /// For several CPUs.
    lockstep: Option<Qemu>,
}

/// A finished session, with the output of its guest.
pub struct Booted<'s> {
    /// What it was.
    pub session: &'s Session<'s>,
    /// What scheduled it.
    pub driver: Driver,
    /// The guest, as it was before.
    pub settled: Arc<Settled>,
    /// What its digits depend on. It is kept, because it takes a hash of all that lies in the
    /// guest.
    pub identity: Arc<Identity>,
    /// The jobs of the session.
    pub jobs: Vec<Job>,
    /// What it differs by from other members of its ensemble.
    pub nudges: Option<Nudges>,
    /// What the guest reported.
    pub proved: Proved,
    /// What it reported when a command ran again, with the kernel's scheduling events.
    pub traced: Option<Proved>,
}

/// The usual memory of a guest in MiB.
pub const MEMORY: u32 = 512;
/// The least memory in MiB for each CPU: recording takes half of it.
const MEMORY_PER_CPU: u32 = 32;
/// The limit on this machine's clock, after which a guest is ended.
const WALL_LIMIT: Duration = Duration::from_secs(900);
/// The delay between the begins of two members of [`GuestWorld::boot`]'s calibrated sessions. Ticks
/// are 4 ms apart, so each begins at another place between two of them.
const LATER: Nanos = Nanos(7_000_000);
/// The most CPUs of a guest.
pub const CPUS: u16 = 64;
/// What can be said of more CPUs than [`VALIDATED`]: the scheduler's decisions.
pub(crate) const UNTIMED: [&str; 4] = ["migrations", "switches", "dispatches", "wakeups"];
/// Why the rest cannot.
pub(crate) const NO_TIME: &str = "times of guests were validated on up to 8 CPUs";
/// The most tasks that yield in a guest.
const MOST_YIELDING: u32 = 10_000;
/// A deadline task yields once in each period, and the guest's watchdog does not wait for longer
/// ones.
const LONGEST_PERIOD: u64 = 500_000;

impl GuestWorld {
    /// Guests with these settings; nothing is searched for yet.
    pub fn new(settings: GuestSettings) -> GuestWorld {
        GuestWorld {
            settings,
            found: None,
            packed: BTreeMap::new(),
            begin: Instant::now(),
            has_members: false,
            inputs: Vec::new(),
        }
    }

    /// Boots what `sessions` need, twice each, and runs each session from the settled state: the
    /// first member of each candidate in both boots. With `calibrated`, each session that is no
    /// yield also measures the cost of a switch, and members differ only by when they begin.
    ///
    /// # Errors
    /// If a guest fails or does not repeat itself. The inner one is that of a scheduler of
    /// sched_ext, which has its guests alone: others continue.
    pub fn boot<'s>(
        &self,
        sessions: &'s [Session<'s>],
        calibrated: bool,
        progress: &ProgressBar,
    ) -> Result<Vec<Result<Booted<'s>, Error>>, Error> {
        let mut purposes = Purposes::default();
        let mut orders: Vec<Orders> = Vec::with_capacity(sessions.len());
        let mut drivers = Vec::with_capacity(sessions.len());
        for session in sessions {
            let purpose = Purpose::of(&session.trial)?;
            let (cpus, words) = (purpose.cpus, purpose.command);
            let driver = purpose.driver.clone();
            if let Err(unmet) = self.expect_met(&driver) {
                drivers.push(Err(unmet));
                continue;
            }
            let at = purposes.place(purpose);
            let jobs = self.jobs_of(session, driver.class(), calibrated)?;
            // The members of one state differ by their jobs alone: one of them proves it.
            let member = self.member(session);
            let is_repeated =
                !self.settings.is_first_member && member.is_none_or(|member| member == 1);
            let drawn = member.filter(|_| !calibrated && cpus > 1);
            let interleave = drawn
                .map(|_| self.settings.nudges.interleave(session.seed, self.settings.interleave));
            // A program may leave files behind: each of its jobs begins with the saved state.
            let runs = if words.is_some() {
                jobs.into_iter().map(|job| vec![job]).collect()
            } else {
                vec![jobs]
            };
            let orders_of = |jobs| Orders { guest: at, jobs, interleave, is_repeated };
            orders.extend(runs.into_iter().map(orders_of));
            drivers.push(Ok(driver));
        }
        let guests =
            purposes.0.iter().map(|of| self.guest(of)).collect::<Result<Vec<Guest>, Error>>()?;
        let steps = orders.iter().map(|of| of.runs() * (2 * of.jobs.len() + 1)).sum::<usize>();
        progress.set_length((6 * guests.len() + steps) as u64);
        let (settled, proved) = prove_each(&guests, &orders, &|guest, event| {
            show(progress, &guests[guest].kernel.name, event)
        });
        let settled: Vec<Result<Arc<Settled>, Error>> =
            settled.into_iter().map(|settled| settled.map(Arc::new)).collect();
        let identities: Vec<Arc<Identity>> =
            guests.iter().map(|guest| Arc::new(Identity::of(guest))).collect();
        let mut runs = orders.into_iter().zip(proved);
        let booted = sessions.iter().zip(drivers).map(|(session, driver)| {
            let driver = match driver {
                Ok(driver) => driver,
                Err(unmet) => return driver::alone(true, Err(unmet)),
            };
            let none = || Error::Internal("a session did not run".to_string());
            let (Orders { guest, jobs, is_repeated, .. }, proved) = runs.next().ok_or_else(none)?;
            let is_command = session.trial.program.command().is_some();
            let is_traced = is_command && self.settings.has_events;
            let traced = if is_traced { runs.next().map(|(_, proved)| proved) } else { None };
            let (settled, identity) = (settled[guest].clone(), identities[guest].clone());
            let nudges = self.member(session).filter(|_| !calibrated);
            let nudges = nudges.map(|_| self.nudges(session.trial.program));
            let blamed = driver.clone();
            let (is_alone, made) = (driver.is_sched_ext(), || {
                let (settled, proved) = (settled?, proved?);
                let traced = traced.transpose()?;
                if let Some(folder) = self.settings.kept.as_ref().filter(|_| is_repeated) {
                    let file = file_name(&session.trial, &guests[guest].kernel.name);
                    driver.keep(&folder.join(file), &proved.transcript)?;
                }
                driver.judge(&proved.transcript.events, &proved.transcript.console)?;
                Ok(Booted { session, driver, settled, identity, jobs, nudges, proved, traced })
            });
            driver::alone(is_alone, made().map_err(|error| blamed.failed(error)))
        });
        booted.collect()
    }

    /// Refuses a scheduler of sched_ext for which the kernel lacks something.
    fn expect_met(&self, driver: &Driver) -> Result<(), Error> {
        match &self.found {
            Some(found) if driver.is_sched_ext() => driver.require(&found.kernel),
            _ => Ok(()),
        }
    }

    /// The number of the member of an ensemble that a session is.
    fn member(&self, session: &Session<'_>) -> Option<u64> {
        session.member.or(self.settings.is_first_member.then_some(1))
    }

    /// What members of an ensemble of `program` differ by.
    fn nudges(&self, program: &Program) -> Nudges {
        match program.command() {
            None => self.settings.nudges.clone(),
            Some(_) => self.settings.nudges.of_command(),
        }
    }

    /// The number of NUMA nodes.
    fn nodes(&self) -> u16 {
        self.settings.shape.as_ref().map_or(self.settings.nodes, Shape::nodes)
    }

    /// Refuses CPUs that nodes cannot share.
    fn expect_nodes(&self, cpus: u16) -> Result<(), Error> {
        let nodes = self.nodes();
        match self.settings.shape.is_some() || cpus.is_multiple_of(nodes) {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "{} cannot be cut into {nodes} NUMA nodes: give --cpus {}",
                counted(cpus.into(), "CPU"),
                2 * nodes
            ))),
        }
    }

    /// A guest for a purpose.
    fn guest(&self, purpose: &Purpose<'_>) -> Result<Guest, Error> {
        let Purpose { driver, cpus, command } = purpose;
        let cpus = *cpus;
        let unready = || Error::Internal("no guest was made ready".to_string());
        let Found { kernel, qemu, lockstep: newer } = self.found.clone().ok_or_else(unready)?;
        let has_several = cpus > 1;
        let qemu = if has_several { newer } else { qemu }.ok_or_else(unready)?;
        let interleave = self.settings.interleave;
        let lockstep = has_several.then_some(Lockstep { cpus, interleave });
        let settle_ms = self.settings.settle.0 / 1_000_000;
        let session = RunnerSession { settle_ms, ..RunnerSession::default() };
        let shape = self.settings.shape.clone();
        let mut guest = Guest {
            qemu,
            kernel,
            cpus,
            lockstep,
            memory: self.settings.memory.max(u32::from(cpus) * MEMORY_PER_CPU),
            nodes: self.nodes(),
            shape,
            session,
            files: Vec::new(),
            wall_limit: WALL_LIMIT,
        };
        driver.install(&mut guest, self.settings.witness)?;
        guest.session.scheduler_code = self.settings.functions && driver.is_sched_ext();
        self.settings.changes.install(&mut guest)?;
        if let Some(packed) = command.and_then(|words| self.packed.get(words)) {
            // First, so that a file system of its own may have another.
            guest.files.extend(guest.kernel.configuration_file(ROOT));
            guest.files.extend(packed.files.iter().cloned());
        }
        Ok(guest)
    }
}

impl GuestWorld {
    /// The jobs of the runner in a session.
    fn jobs_of(
        &self,
        session: &Session<'_>,
        class: Class,
        calibrated: bool,
    ) -> Result<Vec<Job>, Error> {
        let (trial, program) = (&session.trial, session.trial.program);
        let mut jobs = if let Some(words) = program.command() {
            self.jobs_of_command(words, class)?
        } else if let Program::Yields(tasks, _) = program
            && !calibrated
        {
            vec![yields::job(*tasks, class)]
        } else {
            let workload = program
                .closed()
                .ok_or_else(|| Error::Internal(format!("{} has no tasks", program.name())))?;
            let workload = trial.candidate.applied_to(workload);
            let switching = calibrated.then(|| closed::switching(class));
            let mut jobs = closed::jobs(workload.name(), workload.description(), class);
            jobs[0].marked = self.settings.functions && !calibrated;
            jobs.into_iter().chain(switching).collect()
        };
        let interleave = (trial.cpus > 1).then_some(self.settings.interleave);
        let nudge = match self.member(session) {
            None => Nudge::default(),
            Some(member) if calibrated => {
                Nudge { start_ns: (member - 1) * LATER.0, ..Nudge::default() }
            }
            Some(_) => self.nudges(program).of(session.seed, interleave),
        };
        jobs.iter_mut().for_each(|job| job.nudge = nudge);
        if let Some(shape) = &self.settings.shape {
            jobs.iter_mut().for_each(|job| pin(&mut job.workload, &shape.online()));
        }
        Ok(jobs)
    }
}

impl World for GuestWorld {
    fn name(&self) -> Name {
        Name::Vm { kernel: Kernel::name_of(&self.settings.kernel) }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            determinism: Determinism::Chaotic,
            cpus: CPUS,
            candidates: "kernel:other, batch, idle, fifo:PRIORITY, rr:PRIORITY, \
                         deadline:RUNTIME/DEADLINE/PERIOD, schedulers in BPF, as bpf:rr, and \
                         policies by name, which decide in user space",
            workloads: "workloads of tasks, as yield:8, hackbench:1 or a file with [[task]]s, and \
                        commands behind --",
            ensemble: if self.settings.is_first_member { 1 } else { 16 },
        }
    }

    fn measures(&self, program: &Program, cpus: u16) -> Vec<Measure> {
        if let Program::Yields(..) = program {
            return vec![Measure {
                metric: Metric::instructions_per_yield,
                direction: Better::Lower,
                title: Some("instructions per yield"),
                missing: None,
            }];
        }
        let measure = |metric: &schedsim::metrics::Metric| {
            let title = headline().find(|(of, _)| of.id() == metric.id).map(|(_, title)| title);
            let missing = (cpus > VALIDATED && !UNTIMED.contains(&metric.id)).then_some(NO_TIME);
            let metric = registered(metric.id);
            Measure { metric, direction: metric.description().direction, title, missing }
        };
        let printed = Reader::of(&self.settings.printed, program).iter().map(|reader| {
            let measure = reader.measure();
            let missing = if cpus > VALIDATED { Some(NO_TIME) } else { measure.missing };
            Measure { missing, ..measure }
        });
        CATALOGUE.iter().map(measure).chain(printed).collect()
    }

    fn defaults(&self, _program: &Program) -> Result<Defaults, Error> {
        Ok(Defaults { candidates: vec![Candidate::Class(Class::Other)], baseline: Baseline::First })
    }

    fn cpus(&self, _program: &Program, asked: Option<u16>) -> Result<u16, Error> {
        let described = self.settings.shape.as_ref().map(Shape::cpus);
        match asked.or(described).unwrap_or(1) {
            cpus if described.is_some_and(|described| described != cpus) => Err(Error::Usage(
                "the described machine has a number of CPUs: leave --cpus out".to_string(),
            )),
            cpus @ 1..=CPUS => Ok(cpus),
            cpus => Err(Error::Usage(format!("a guest has from 1 to {CPUS} CPUs, not {cpus}"))),
        }
    }

    fn admit(&self, trial: &Trial<'_>) -> Result<(), Error> {
        let Trial { program, candidate, cpus } = trial;
        let driver = Driver::of(candidate)?;
        self.expect_nodes(*cpus)?;
        if let Some(words) = program.command() {
            return self.admit_command(words, trial);
        }
        let workload = program.expect_closed(|name| {
            Error::Usage(format!(
                "`{name}` does not run in a real kernel, which takes tasks that go through \
                 phases: a file with [[task]]s, or one of those that `schedlab list workloads` \
                 shows, as yield:8, hackbench:1 or unix1990:100; or any program, behind --"
            ))
        })?;
        match program {
            Program::Yields(tasks, _) => {
                if !(1..=MOST_YIELDING).contains(tasks) {
                    return Err(Error::Usage(format!(
                        "yield:{tasks}: give numbers of tasks from 1 to {MOST_YIELDING}, as in \
                         yield:2,8,32,128"
                    )));
                }
                if *cpus != 1 {
                    return Err(Error::Usage(
                        "with more than one virtual CPU the clock counts all instructions and \
                         says nothing of one: give --cpus 1"
                            .to_string(),
                    ));
                }
                if let Some(deployment) = candidate.deployment() {
                    return Err(Error::Usage(format!(
                        "--apply '{deployment}': the tasks of yield:{tasks} are all alike, and \
                         their yields are counted: give --policy kernel:batch, or another workload"
                    )));
                }
                driver.expect_short_period(LONGEST_PERIOD)?;
            }
            _ if driver.is_sched_ext() => workload.expect_for_sched_ext(&driver)?,
            _ => {}
        }
        if self.settings.functions && *cpus != 1 {
            return Err(Error::Usage(
                "--functions counts the instructions of one virtual CPU: give --cpus 1".to_string(),
            ));
        }
        candidate.expect_for(program, *cpus)?;
        candidate.applied_to(workload).scripts(*cpus)?;
        Ok(())
    }

    fn prepare(&mut self, trials: &[Trial<'_>]) -> Result<(), Error> {
        initramfs::runner()?;
        let qemu = trials.iter().any(|trial| trial.cpus == 1).then(Qemu::find).transpose()?;
        let has_several = trials.iter().any(|trial| trial.cpus > 1);
        let lockstep = has_several.then(|| newer_qemu::find(&program::say)).transpose()?;
        let lock = self.settings.lock.clone();
        let kernel = pins::kernel(lock.as_deref(), &self.settings.kernel, &program::say)?;
        for trial in trials {
            kernel.require(if self.nodes() > 1 { &kernel::NUMA } else { &[] })?;
            let shape = self.settings.shape.as_ref();
            kernel.require(if shape.is_some() { &shape::DOMAINS } else { &[] })?;
            let has_offline = shape.is_some_and(|shape| !shape.offline().is_empty());
            kernel.require(if has_offline { &shape::OFFLINE } else { &[] })?;
            let is_grouped =
                |workload| !trial.candidate.applied_to(workload).description().cgroups.is_empty();
            let has_groups = trial.program.closed().is_some_and(is_grouped);
            kernel.require(if has_groups { &kernel::CGROUPS } else { &[] })?;
            if let Some(words) = trial.program.command() {
                kernel.require(&kernel::LIMITS)?;
                self.pack(words, trial.cpus)?;
            }
        }
        self.found = Some(Found { kernel, qemu, lockstep });
        let purposes = trials.iter().map(Purpose::of).collect::<Result<Vec<_>, Error>>()?;
        let (met, unmet): (Vec<_>, Vec<_>) =
            purposes.into_iter().partition(|purpose| self.expect_met(&purpose.driver).is_ok());
        if let (true, Some(purpose)) = (met.is_empty(), unmet.first()) {
            self.expect_met(&purpose.driver)?;
        }
        let purposes: Purposes<'_> = met.into_iter().collect();
        for purpose in purposes.0 {
            let guest = self.guest(&purpose)?;
            lock.as_deref().map_or(Ok(()), |lock| pins::expect(lock, &guest))?;
            self.inputs.extend(pins::of(&guest));
        }
        Ok(())
    }

    fn run(
        &mut self,
        sessions: &[Session<'_>],
        progress: &ProgressBar,
    ) -> Result<Vec<Result<Run, Error>>, Error> {
        self.has_members |= sessions.iter().any(|session| session.member.is_some());
        let booted = self.boot(sessions, false, progress)?;
        let run = |one: Result<Booted<'_>, Error>| {
            let one = match one {
                Ok(one) => one,
                Err(failed) => return Ok(Err(failed)),
            };
            let made = match one.session.trial.program {
                Program::Yields(tasks, _) => one.yields(*tasks, self.settings.functions),
                Program::Command(_) => match one.command(&self.settings.printed) {
                    Ok(ended) => return Ok(ended),
                    Err(error) => Err(error),
                },
                _ => one.closed(self.settings.functions),
            };
            driver::alone(one.driver.is_sched_ext(), made)
        };
        booted.into_iter().map(run).collect()
    }

    fn inputs(&self) -> String {
        let GuestSettings { settle, nodes, interleave, changes, nudges, shape, memory, .. } =
            &self.settings;
        let member = if self.settings.is_first_member { ", the first member" } else { "" };
        let shape = shape.as_ref().map_or(String::new(), |shape| format!(", {shape:?}"));
        let memory =
            if *memory == MEMORY { String::new() } else { format!(", memory {memory} MiB") };
        let settle = settle.0;
        format!(
            "settle {settle}, {nodes} nodes, interleave {interleave}, nudges \
             {nudges}{member}{changes}{shape}{memory}, plugins {}",
            qemu::plugins_sha256()
        )
    }

    fn made_of(&self) -> Vec<Input> {
        self.inputs.clone()
    }

    fn clock(&self) -> Duration {
        self.begin.elapsed()
    }

    fn about(&self, trials: &[Trial<'_>]) -> String {
        let mut text = String::new();
        if trials.iter().any(|trial| matches!(trial.program, Program::Yields(..))) {
            text += "Instructions per yield, one virtual CPU\n";
        }
        text += if self.settings.is_first_member {
            "The first member of each ensemble, run once: hold it against a record\n"
        } else {
            "Booted twice, the first run of each candidate in both boots: the same bytes\n"
        };
        if self.has_members {
            let mut kinds: Vec<String> =
                trials.iter().map(|trial| self.nudges(trial.program).to_string()).collect();
            kinds.dedup();
            text += &format!("Members differ by {}\n", kinds.join("; "));
        }
        let several: BTreeSet<u16> =
            trials.iter().map(|trial| trial.cpus).filter(|&cpus| cpus > 1).collect();
        for cpus in several {
            let lockstep = Lockstep { cpus, interleave: self.settings.interleave };
            text += &format!(
                "{cpus} virtual CPUs in lockstep: an instruction takes {} on each, and times \
                 below {} are not shown\n",
                lockstep.instruction(),
                lockstep.resolution()
            );
            if cpus > VALIDATED {
                text +=
                    &format!("Only shares and the scheduler's decisions are shown: {NO_TIME}\n");
            }
        }
        if let Some(shape) = &self.settings.shape {
            text += &format!(
                "The machine {}, read back as the kernel's scheduling domains: no cache, thread or \
                 memory is slower for it\n",
                shape.name
            );
        } else if self.settings.nodes > 1 {
            text += &format!(
                "NUMA nodes: {}, artificial: the kernel takes them for nodes, and no memory is \
                 slower.\n",
                self.settings.nodes
            );
        }
        if !self.settings.changes.is_none() {
            text += &format!("Kernel{}; each was read back there\n", self.settings.changes);
        }
        let purposes: Purposes<'_> = trials.iter().flat_map(Purpose::of).collect();
        let guests = purposes.0.iter().flat_map(|purpose| self.guest(purpose));
        let mut identities: Vec<String> =
            guests.map(|guest| Identity::of(&guest).to_string()).collect();
        identities.sort();
        identities.dedup();
        identities.iter().for_each(|identity| text += &format!("{identity}\n"));
        text
    }
}

/// Numbers the CPUs of pinned tasks as the kernel does, which counts those that are offline.
fn pin(workload: &mut Closed, online: &[u16]) {
    for cpu in workload.tasks.iter_mut().filter_map(|task| task.affinity.as_mut()).flatten() {
        *cpu = online.get(usize::from(*cpu)).copied().unwrap_or(*cpu);
    }
}

fn show(bar: &ProgressBar, kernel: &str, event: &Event) {
    let what = match event {
        Event::Boot { .. } => "booted".to_string(),
        Event::Settled { .. } => "settled".to_string(),
        Event::JobStart { name, .. } => format!("runs {name}"),
        Event::JobEnd { .. } | Event::CommandEnd { .. } => "has measured".to_string(),
        Event::PowerOff { .. } => "is off".to_string(),
        Event::Failed { message } => message.clone(),
        Event::ServiceEnd { status, early: true, .. } => {
            format!("has lost its scheduler ({status})")
        }
        _ => return,
    };
    bar.set_message(format!("{kernel} {what}"));
    // Guests cannot be stopped between two steps.
    let _ = progress::step(bar);
}

impl Booted<'_> {
    /// The guest.
    pub fn guest(&self) -> &Guest {
        self.settled.guest()
    }

    /// The instructions of its yields by function, counted in a session of its own with the same
    /// output.
    fn functions(&self) -> Result<Split, Error> {
        let said = &self.proved.transcript;
        let symbols = functions::Symbols::of(self.guest(), said)?;
        let counted = functions::count(&self.settled, &self.jobs, &symbols, said)?;
        Ok(functions::split(&counted, &symbols, 0))
    }
}

/// A name for a file about a candidate's run, of letters that file systems take.
fn file_name(trial: &Trial<'_>, kernel: &str) -> String {
    const LONGEST: usize = 200;
    let (workload, candidate, cpus) = (trial.program.name(), &trial.candidate, trial.cpus);
    let name = program::plain(&format!("{candidate}-{workload}-{kernel}-{cpus}cpu"));
    let begin = name.len().saturating_sub(LONGEST);
    format!("{}.txt", name[begin..].trim_start_matches(['.', '_']))
}
