//! The scheduler of tasks in a real kernel. It is a scheduling class of its own, one of our
//! policies through sched_ext, or any other scheduler of sched_ext.

use crate::Candidate;
use crate::compiled::Compiled;
use crate::experiment::{Candidate as Simulated, parse_policy};
use crate::vm::{Foreign, Guest, Kernel, Scheduler, Transcript, foreign};
use program::Error;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A scheduler of tasks in a real kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// A scheduling class of the kernel.
    Class(Class),
    /// One of our schedulers.
    Ours(Scheduler),
    /// Any scheduler of sched_ext.
    Foreign(Foreign),
}

impl Driver {
    /// The driver for `candidate`.
    ///
    /// # Errors
    /// If it cannot be there.
    pub fn of(candidate: &Candidate<'_>) -> Result<Driver, Error> {
        match candidate {
            Candidate::Class(class) => Ok(Driver::Class(*class)),
            Candidate::Applied(_) => Ok(Driver::Class(Class::Other)),
            Candidate::Bpf(name) if name.starts_with(foreign::PREFIX) => {
                Foreign::find(name).map(Driver::Foreign)
            }
            Candidate::Bpf(name) => Scheduler::find(name).map(Driver::Ours),
            Candidate::Policy(policy) => Scheduler::find(&policy.to_string()).map(Driver::Ours),
            Candidate::Own(policy) => Err(Error::Usage(format!(
                "{policy} is written in Python, and no Python runs in a guest: write it in Rust \
                 (`schedlab new policy`), or give --on sim"
            ))),
        }
    }

    /// The class of the tasks. sched_ext takes over those of `other`.
    pub fn class(&self) -> Class {
        if let Driver::Class(class) = self { *class } else { Class::Other }
    }

    /// Checks that the kernel has what it needs.
    ///
    /// # Errors
    /// If it has not.
    pub fn require(&self, kernel: &Kernel) -> Result<(), Error> {
        match self {
            Driver::Class(_) => kernel.require(&[]),
            Driver::Ours(scheduler) => scheduler.require(kernel),
            Driver::Foreign(foreign) => foreign.require(kernel),
        }
    }

    /// Puts what it needs into the guest, with a witness where it can have one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn install(&self, guest: &mut Guest, witness: bool) -> Result<(), Error> {
        match self {
            Driver::Class(_) => Ok(()),
            Driver::Ours(scheduler) => scheduler.install(guest),
            Driver::Foreign(foreign) => foreign.install(guest, witness),
        }
    }

    /// Lets a session on this machine start it.
    pub fn start_in(&self, session: &mut Session) {
        match self {
            Driver::Class(_) => {}
            Driver::Ours(scheduler) => session.services.push(scheduler.command()),
            Driver::Foreign(foreign) => session.scheduler = foreign.command(),
        }
    }

    /// Checks that it scheduled until the end, by what the runner reported and the kernel wrote.
    ///
    /// # Errors
    /// The rule that it broke.
    pub fn judge(&self, events: &[Event], console: &str) -> Result<(), Error> {
        match self {
            Driver::Class(_) => Ok(()),
            Driver::Ours(scheduler) => scheduler.judge(events),
            Driver::Foreign(foreign) => foreign.judge(events, console),
        }
    }

    /// Writes down what the scheduler and the kernel said in a guest, if it is one of sched_ext.
    ///
    /// # Errors
    /// [`Error::Output`] if `to` cannot be written.
    pub(crate) fn keep(&self, to: &Path, of: &Transcript) -> Result<(), Error> {
        if !self.is_sched_ext() {
            return Ok(());
        }
        let mut text = String::new();
        for event in &of.events {
            text += &match event {
                Event::Service { line, .. } => format!("{line}\n"),
                Event::ServiceEnd { status, early, .. } => {
                    let who = if *early { "by itself" } else { "by the runner" };
                    format!("# ended {who}: {status}\n")
                }
                Event::SchedExt { now } => format!("# sched_ext: {}, {}\n", now.state, now.ops),
                _ => continue,
            };
        }
        for line in foreign::kernels_words(&of.console) {
            text += &format!("# the kernel: {}\n", line.trim());
        }
        let folder = to.parent().unwrap_or(to);
        std::fs::create_dir_all(folder).map_err(|error| Error::output(folder, error))?;
        program::write_whole(to, text.as_bytes())
    }

    /// The SHA-256 of the program that loads it, if one does.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn sha256(&self) -> Result<Option<String>, Error> {
        match self {
            Driver::Class(_) => Ok(None),
            Driver::Ours(scheduler) => scheduler.sha256().map(Some),
            Driver::Foreign(foreign) => foreign.sha256().map(Some),
        }
    }

    /// `error` of a guest that it had alone: what ends the guest of an unknown scheduler counts as
    /// that scheduler's fault.
    pub(crate) fn failed(&self, error: Error) -> Error {
        match (self, error) {
            (Driver::Foreign(foreign), Error::Input(message)) => {
                Error::Check(format!("{foreign}: {message}"))
            }
            (_, error) => error,
        }
    }

    /// Whether it is a scheduler of sched_ext, which a guest has alone.
    pub fn is_sched_ext(&self) -> bool {
        !matches!(self, Driver::Class(_))
    }

    /// Whether it is one of our policies, whose slices sched_ext enforces. The simulated policies
    /// of the kernel have ticks of their own.
    pub fn is_ours(&self) -> bool {
        matches!(self, Driver::Ours(_))
    }

    /// The name of the tasks of the program that has loaded the scheduler, if one has.
    pub fn program(&self) -> Option<String> {
        match self {
            Driver::Class(_) => None,
            Driver::Ours(scheduler) => Some(scheduler.task_name()),
            Driver::Foreign(foreign) => Some(foreign.task_name()),
        }
    }

    /// The name of the task that decides, if there is one: it does not schedule itself.
    pub fn in_user_space(&self) -> Option<String> {
        if let Driver::Ours(scheduler) = self { scheduler.in_user_space() } else { None }
    }

    /// The policy of the simulator that matches it.
    ///
    /// # Errors
    /// If there is none.
    pub fn simulated(&self, kernel: &Kernel) -> Result<Arc<dyn Simulated + Send + Sync>, Error> {
        Ok(match self {
            Driver::Class(_) => {
                Arc::new(parse_policy(kernel.fair_model()).map_err(Error::Internal)?)
            }
            Driver::Ours(scheduler) => Arc::new(scheduler.original()?),
            Driver::Foreign(foreign) => Compiled::find(&foreign.to_string())?,
        })
    }

    /// The name for people: that of the fair scheduler for its class.
    pub fn title(&self, kernel: &Kernel) -> String {
        match self {
            Driver::Class(Class::Other) => kernel.fair_scheduler(),
            Driver::Class(class) => class.to_string(),
            Driver::Ours(scheduler) => scheduler.to_string(),
            Driver::Foreign(foreign) => foreign.to_string(),
        }
    }

    /// Refuses a deadline task whose yields take longer than the guest's watchdog waits: each waits
    /// for its next period.
    pub(crate) fn expect_short_period(&self, longest: u64) -> Result<(), Error> {
        match self.class() {
            class @ Class::Deadline { period, .. } if period > longest => {
                Err(Error::Usage(format!(
                    "a task of kernel:{class} yields once in each period: give one of at most \
                     500us, as in kernel:deadline:50us/100us/100us"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The outcome of a guest. What goes wrong in one that a scheduler of sched_ext has alone, is that
/// scheduler's failure, and others continue; elsewhere it ends the comparison.
///
/// # Errors
/// The outer one if the comparison cannot continue.
pub(crate) fn alone<T>(is_alone: bool, made: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match made {
        Err(error @ (Error::Internal(_) | Error::Stopped | Error::Output { .. })) => Err(error),
        Err(error) if !is_alone => Err(error),
        made => Ok(made),
    }
}

/// The name as in `--policy`.
impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Driver::Class(class) => write!(f, "kernel:{class}"),
            Driver::Ours(scheduler) => scheduler.fmt(f),
            Driver::Foreign(foreign) => foreign.fmt(f),
        }
    }
}
