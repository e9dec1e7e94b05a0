//! A compiled scheduler of sched_ext in the simulator: `scx:FILE.bpf.o`, a source of it, or a program
//! that has it within. Constants follow as `NAME=VALUE`. What a program sets
//! before it loads its object is not known: constants have the values of the object.

pub mod traced;

use super::experiment::Candidate;
use super::vm::bare_scheduler::{self, BareScheduler};
use super::vm::elf;
use super::vm::foreign::{self, PREFIX};
use program::Error;
use sched_ext::{Loaded, Unfit};
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::{AnyPolicy, Promises};
use schedsim::trace::Trace;
use schedsim::{Machine, QueueCost};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A scheduler that was read, by the name that users write.
#[derive(Clone)]
pub struct Compiled {
    name: String,
    loaded: Loaded,
}

/// Those that were found: one that is compiled is so once.
static FOUND: Mutex<BTreeMap<String, Arc<Compiled>>> = Mutex::new(BTreeMap::new());

/// Whether a candidate of this name is a scheduler of sched_ext.
pub fn is_one(name: &str) -> bool {
    name.starts_with(PREFIX)
}

impl Compiled {
    /// The scheduler of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if it names a constant that there is not. [`Error::Input`] if it is no
    /// scheduler. [`Error::Missing`] with the name of what the simulator does not have.
    pub fn find(name: &str) -> Result<Arc<Compiled>, Error> {
        let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(Compiled::look_for(name)?);
        known().insert(name.to_string(), Arc::clone(&found));
        Ok(found)
    }

    fn look_for(name: &str) -> Result<Compiled, Error> {
        let rest = name.strip_prefix(PREFIX).unwrap_or(name);
        let mut words = rest.split_whitespace();
        let path = words.next().unwrap_or_default();
        let constants = words
            .map(|word| match word.split_once('=') {
                Some((name, value)) => Ok((name.to_string(), value.to_string())),
                None => Err(Error::Usage(format!(
                    "{name}: `{word}` is no constant of the object, and the program that loads it \
                     does not run here: write NAME=VALUE, as in slice_ns=5ms"
                ))),
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let read = |from: &Path| {
            std::fs::read(from).map_err(|error| {
                Error::Input(format!("{}: {error}: give an object, FILE.bpf.o", from.display()))
            })
        };
        let loaded = |bytes: &[u8]| Loaded::read(bytes, &constants);
        let loaded = if path.ends_with(bare_scheduler::OBJECT) {
            loaded(&read(Path::new(path))?)
        } else if bare_scheduler::is_one(path) {
            loaded(&read(&BareScheduler::find(path, &[])?.object)?)
        } else {
            let program = foreign::program(path)?;
            let bytes = read(&program)?;
            let objects = elf::embedded_bpf(&bytes);
            let found = objects.iter().map(|bytes| loaded(bytes));
            let of = |found: &Result<Loaded, Unfit>| !matches!(found, Err(Unfit::Tables(0)));
            found.into_iter().find(of).ok_or_else(|| {
                Error::Input(format!(
                    "{path}: no object of a scheduler is within this program: give its object, \
                     FILE.bpf.o, or give --on vm"
                ))
            })?
        };
        let loaded = loaded.map_err(|unfit| match unfit {
            Unfit::Constant(what) => Error::Usage(format!("scx:{path}: {what}")),
            Unfit::Missing(what) => {
                Error::Missing(format!("{path} cannot be simulated: {what}; --on vm runs it"))
            }
            what => Error::Input(format!("{path}: {what}")),
        })?;
        Ok(Compiled { name: name.to_string(), loaded })
    }

    /// What it is made of.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The policy, which knows the tasks of `source` by name.
    fn policy_for(&self, source: Source<'_>, cpus: u16) -> sched_ext::Compiled {
        let policy = sched_ext::Compiled::new(self.loaded.clone(), cpus);
        match source {
            Source::Scripts(workload, _) => {
                policy.of_tasks(workload.tasks.iter().map(|task| &task.info))
            }
            Source::Model(_) => policy,
        }
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Candidate for Compiled {
    fn cost(&self, mips: f64) -> Option<QueueCost> {
        Some(QueueCost::of_instructions(mips))
    }

    fn promises(&self, _cpus: u16) -> Promises {
        Promises::default()
    }

    fn migrates(&self, _cpus: u16) -> bool {
        true
    }

    fn policy(&self, cpus: u16) -> Option<AnyPolicy> {
        Some(AnyPolicy::new(sched_ext::Compiled::new(self.loaded.clone(), cpus)))
    }

    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error> {
        let policy = self.policy_for(source, machine.cpus);
        engine::simulate(source, machine, policy, options, trace)
    }
}
