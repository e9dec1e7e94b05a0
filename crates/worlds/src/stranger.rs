//! Untrusted policies: a crate in Rust or a class in Python, in a sandboxed process for each run.
//!
//! The process answers callbacks over a channel, and gets nothing else: no workload, no seed, no
//! number. The engine runs here. Each run has a new process and nothing that lasts, so that no run
//! knows of another. Its random numbers are of a stream whose seed comes from a secret and the
//! run's seed by SHA-256, so that they tell neither.

mod kit;
mod python;
mod wire;

pub use kit::Kit;
pub use python::Python;

use crate::failure::{Failure, Limits, late};
use crate::sandbox::{Confined, End, Sandbox};
use program::Error;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::remote::{NoPolicy, Remote};
use schedsim::seat::{Breach, Callback, Rule};
use schedsim::trace::Trace;
use schedsim::{Machine, Time};
use sha2::{Digest, Sha256};
use std::fmt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::{Broken, Wire};

/// A stranger's policy, ready to run.
#[derive(Clone, Debug)]
pub struct Stranger {
    name: String,
    sandbox: Sandbox,
    secret: u128,
    /// The folder that has its files; it is removed with the last of them.
    _folder: Arc<TempDir>,
}

/// The terms of untrusted policies: their secret, and their memory in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What the seeds of their random numbers come from.
    pub secret: u128,
    /// The address space of a run.
    pub memory: u64,
    /// When a compilation is given up.
    pub deadline: Instant,
}

/// The error of a run, and the failure if it is known better.
type Ended = (engine::Error, Option<Failure>);

/// How long the process of a broken channel has for its end.
const LAST_WORDS: Duration = Duration::from_secs(2);

impl Stranger {
    /// Runs the tasks of `source` under it.
    ///
    /// # Errors
    /// As [`engine::simulate`].
    pub fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
        limits: Limits,
    ) -> Result<Outcome, Ended> {
        let internal =
            |error: std::io::Error| nothing(Failure::Missing(format!("a channel: {error}")));
        let (here, there) = UnixStream::pair().map_err(internal)?;
        let mut process = self.sandbox.start(Some(there.into())).map_err(|error| {
            nothing(match error {
                Error::Missing(why) => Failure::Missing(why),
                other => Failure::Crash(other.to_string()),
            })
        })?;
        let (wire, broken) = Wire::new(here, limits).map_err(internal)?;
        let remote = match Remote::greet(wire, machine, self.seed(options.seed)) {
            Ok(remote) => remote,
            Err(NoPolicy::Said(why)) => return Err(nothing(Failure::NotAPolicy(why))),
            Err(NoPolicy::Silent(why)) => {
                let failure =
                    broken.get().map_or(Failure::Crash(why), |broken| end(&mut process, broken));
                return Err(nothing(failure));
            }
        };
        engine::simulate(source, machine, remote, options, trace).map_err(|error| {
            let failure = broken.get().map(|broken| end(&mut process, broken));
            (error, failure)
        })
    }

    /// The seed of its random numbers in the run of this seed.
    fn seed(&self, seed: u64) -> u64 {
        let hash =
            Sha256::new().chain_update(self.secret.to_le_bytes()).chain_update(seed.to_le_bytes());
        hash.finalize().iter().take(8).fold(0, |seed, &byte| seed << 8 | u64::from(byte))
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The end of a run that did not begin.
fn nothing(failure: Failure) -> Ended {
    let message = failure.reason().to_string();
    let breach = Breach {
        callback: Callback::Needs,
        rule: Rule::GivesUp { message },
        task: None,
        cpu: None,
        time: Time::ZERO,
    };
    (engine::Error::Policy(breach), Some(failure))
}

/// Why the channel to `process` broke.
fn end(process: &mut Confined, broken: Broken) -> Failure {
    match broken {
        Broken::Late => late(),
        Broken::Often(most) => Failure::Limit(format!(
            "a run called it more than {most} times, eight for each event that the suite allows"
        )),
        Broken::Form => Failure::Crash("it writes on its channel what is no answer".to_string()),
        Broken::Closed => {
            let ended = process.wait(Instant::now() + LAST_WORDS);
            process.kill();
            let said = process.said();
            let last = said.trim().lines().rev().take(3).collect::<Vec<_>>();
            let last = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
            let how = match ended {
                Some(End::Exited(code)) => format!("its process ended with code {code}"),
                Some(End::Signalled(signal)) => format!("signal {signal} ended its process"),
                None => "it closed its channel".to_string(),
            };
            let no_memory = ["memory allocation of", "MemoryError", "annot allocate memory"];
            let last = if last.is_empty() { how } else { format!("{how}: {last}") };
            match no_memory.iter().any(|words| said.contains(words)) {
                true => Failure::OutOfMemory(last),
                false => Failure::Crash(last),
            }
        }
    }
}

#[cfg(test)]
mod tests;
