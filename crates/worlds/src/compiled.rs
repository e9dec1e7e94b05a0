//! A compiled scheduler of sched_ext in the simulator: `scx:FILE.bpf.o`, or a source from which it
//! is compiled, with constants as `NAME=VALUE`.

use super::experiment::Candidate;
use super::vm::bare_scheduler::{self, BareScheduler};
use super::vm::foreign::PREFIX;
use program::Error;
use sched_ext::Loaded;
use schedsim::Machine;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::{AnyPolicy, Promises};
use schedsim::trace::Trace;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
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
    /// [`Error::Usage`] if it names no object or source, or a constant that there is not;
    /// [`Error::Input`] if that is no scheduler; [`Error::Missing`] if it needs what the simulator
    /// does not have, by name.
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
        if !bare_scheduler::is_one(path) {
            return Err(Error::Usage(format!(
                "{name}: the simulator runs the compiled object of a scheduler, not the program \
                 that loads it: give FILE.bpf.o or FILE.bpf.c, as in scx:./main.bpf.o, or give \
                 --on vm"
            )));
        }
        let constants = words
            .map(|word| match word.split_once('=') {
                Some((name, value)) => Ok((name.to_string(), value.to_string())),
                None => Err(Error::Usage(format!(
                    "{name}: `{word}` is no constant: write NAME=VALUE, as in slice_ns=5ms"
                ))),
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let object = match path.ends_with(bare_scheduler::OBJECT) {
            true => PathBuf::from(path),
            false => BareScheduler::find(path, &[])?.object,
        };
        let bytes = std::fs::read(&object).map_err(|error| {
            Error::Input(format!("{path}: {error}: give the file of an object"))
        })?;
        let loaded = Loaded::read(&bytes, &constants).map_err(|unfit| match unfit {
            sched_ext::Unfit::Constant(what) => Error::Usage(format!("scx:{path}: {what}")),
            sched_ext::Unfit::Missing(what) => {
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
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Candidate for Compiled {
    fn structure(&self) -> Option<&str> {
        None
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
        let policy = sched_ext::Compiled::new(self.loaded.clone(), machine.cpus);
        engine::simulate(source, machine, policy, options, trace)
    }
}
