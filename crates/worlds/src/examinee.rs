//! Candidates that are judged: each run has limits, and a run that has no number ends with a typed
//! failure.
//!
//! A policy of this program runs here, and so does a compiled scheduler, whose machine is one of
//! this program: it reaches nothing else. A stranger's policy, a crate or a class in Python, is in a
//! sandboxed process of its own for each run. It only answers callbacks
//! ([`stranger`](crate::stranger)).

pub use crate::failure::{Failure, Limits, late};

use crate::compiled::{self, Compiled};
use crate::experiment::Candidate;
use crate::stranger::Stranger;
use schedlab_runner::class::Class;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::{PolicySpec, Promises};
use schedsim::seat::Rule;
use schedsim::trace::{CHUNK, Event, Observer, Trace};
use schedsim::{Machine, QueueCost, Time};
use std::cell::RefCell;
use std::fmt;
use std::time::Instant;

/// A policy to judge.
#[derive(Clone, Debug)]
pub enum Examinee {
    /// One of this program.
    Named(PolicySpec),
    /// A stranger's.
    Stranger(Stranger),
    /// A scheduling class of a guest's kernel.
    Class(Class),
    /// A scheduler in BPF, as in `--policy`: of a guest's kernel, or a compiled one in the simulator.
    Bpf(String),
}

/// A run of an examinee.
pub struct Attempt<'a> {
    examinee: &'a Examinee,
    limits: Limits,
    failure: RefCell<Option<Failure>>,
}

impl<'a> Attempt<'a> {
    /// A run within `limits`.
    pub fn new(examinee: &'a Examinee, limits: Limits) -> Attempt<'a> {
        Attempt { examinee, limits, failure: RefCell::new(None) }
    }

    /// It in a guest's kernel, if it can be there.
    pub fn in_guest(&self) -> Option<crate::Candidate<'a>> {
        match self.examinee {
            Examinee::Named(policy) => Some(crate::Candidate::Policy(policy.clone())),
            Examinee::Class(class) => Some(crate::Candidate::Class(*class)),
            Examinee::Bpf(name) => Some(crate::Candidate::Bpf(name.clone())),
            Examinee::Stranger(_) => None,
        }
    }

    fn refuse(&self, why: Failure) -> Result<Outcome, engine::Error> {
        *self.failure.borrow_mut() = Some(why);
        Err(engine::Error::Enough { time: Time::ZERO })
    }

    /// Why it failed, if it did.
    pub fn failure(self) -> Option<Failure> {
        self.failure.into_inner()
    }
}

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.examinee.fmt(f)
    }
}

impl fmt::Display for Examinee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Examinee::Named(policy) => policy.fmt(f),
            Examinee::Stranger(stranger) => stranger.fmt(f),
            Examinee::Class(class) => write!(f, "kernel:{class}"),
            Examinee::Bpf(name) => f.write_str(name),
        }
    }
}

impl Candidate for Attempt<'_> {
    fn cost(&self, mips: f64) -> Option<QueueCost> {
        match self.examinee {
            Examinee::Named(policy) => policy.cost(mips),
            _ => None,
        }
    }

    fn promises(&self, cpus: u16) -> Promises {
        match self.examinee {
            Examinee::Named(policy) => policy.promises(cpus),
            _ => Promises::default(),
        }
    }

    fn migrates(&self, cpus: u16) -> bool {
        match self.examinee {
            Examinee::Named(policy) => policy.migrates(cpus),
            _ => true,
        }
    }

    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        mut trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error> {
        let mut meter = Meter { limits: self.limits, events: 0, had: None };
        let metered = Trace::new(vec![&mut trace, &mut meter]);
        let outcome = match self.examinee {
            Examinee::Named(policy) => Candidate::run(policy, source, machine, options, metered),
            Examinee::Stranger(stranger) => stranger
                .run(source, machine, options, metered, self.limits)
                .map_err(|(error, failure)| {
                    *self.failure.borrow_mut() = failure;
                    error
                }),
            Examinee::Bpf(name) if compiled::is_one(name) => match Compiled::find(name) {
                Ok(found) => Candidate::run(&*found, source, machine, options, metered),
                Err(program::Error::Missing(why)) => self.refuse(Failure::Missing(why)),
                Err(error) => self.refuse(Failure::NotAPolicy(error.to_string())),
            },
            kernels => self.refuse(Failure::Refused(format!(
                "{kernels} runs in a kernel: give the suite kernel = \"6.18\""
            ))),
        };
        if let Err(error) = &outcome {
            self.failure.borrow_mut().get_or_insert_with(|| failure(error, meter.had));
        }
        outcome
    }
}

/// The failure behind the error of a run; `had` is what its meter had enough of.
fn failure(error: &engine::Error, had: Option<Failure>) -> Failure {
    let text = error.to_string();
    match error {
        engine::Error::Enough { .. } => had.unwrap_or(Failure::Limit(text)),
        engine::Error::Policy(breach) => match breach.rule {
            Rule::GivesUp { .. } if text.contains("MemoryError") => Failure::OutOfMemory(text),
            Rule::GivesUp { .. } => Failure::Crash(text),
            _ => Failure::Contract(text),
        },
        engine::Error::Task { .. } => Failure::Refused(text),
        engine::Error::Stalled(_) => Failure::Contract(text),
    }
}

/// Counts the events of a run, and looks at the clock.
struct Meter {
    limits: Limits,
    events: u64,
    had: Option<Failure>,
}

impl Observer for Meter {
    fn events(&mut self, chunk: &[Event]) {
        self.events += chunk.len() as u64;
        // The last chunk is short: a run that has ended is not stopped.
        if self.had.is_some() || chunk.len() < CHUNK {
            return;
        }
        if self.events > self.limits.events {
            self.had = Some(Failure::Limit(format!(
                "a run has more than the {} events that the suite allows",
                self.limits.events
            )));
        } else if Instant::now() > self.limits.deadline {
            self.had = Some(late());
        }
    }

    fn has_enough(&self) -> bool {
        self.had.is_some()
    }
}
