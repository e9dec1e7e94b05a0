//! Runs a workload once on this machine, under a scheduling class of the kernel or a scheduler of
//! sched_ext, which is there for that run.

use super::cpus::Ticks;
use super::guard::Guard;
use super::measured::Measured;
use super::runner::Runner;
use crate::driver::Driver;
use program::Error;
use schedlab_runner::session::{Host, Job, Session};
use schedsim::workload::Closed;
use std::time::Duration;

/// What runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// Tasks that go through phases.
    Closed(Box<Closed>),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// The conditions of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditions {
    /// The CPUs that it may use: a restriction unless they are all that there are.
    pub cpus: Vec<u16>,
    /// Whether to restrict it to them.
    pub pinned: bool,
    /// The nice value of tasks that request none.
    pub nice: i32,
    /// A run that takes longer is killed.
    pub limit: Duration,
    /// Whether to leave out everything that takes time to measure.
    pub bare: bool,
    /// Whether what a command writes is wanted.
    pub keeps_output: bool,
}

/// This machine, ready for runs.
pub struct Place {
    /// The runner.
    pub runner: Runner,
    /// The guard.
    pub guard: Guard,
}

impl Place {
    /// Starts the guard and prepares the runner.
    ///
    /// # Errors
    /// [`Error::Missing`] if this program was built without the runner.
    pub fn new() -> Result<Place, Error> {
        let runner = Runner::new()?;
        let guard = Guard::start(runner.command())?;
        Ok(Place { runner, guard })
    }

    /// Runs `subject` once.
    ///
    /// # Errors
    /// The outer one if nothing can run at all; the inner one is that of a run that failed.
    pub fn run(
        &mut self,
        name: &str,
        subject: &Subject,
        driver: &Driver,
        conditions: &Conditions,
    ) -> Result<Result<Measured, Error>, Error> {
        let session = session(name, subject, driver, conditions);
        let (before, clocks) = (Ticks::of(&conditions.cpus), Clocks::now());
        let events = self.runner.run(&session, &mut self.guard)?;
        let shares = Ticks::of(&conditions.cpus).shares_since(before);
        if let Err(broken) = driver.judge(&events, "") {
            return Ok(Err(broken));
        }
        let measured = Measured::of(&events, conditions.cpus.len()).and_then(|mut measured| {
            clocks.check()?;
            if let Some((idle, stolen)) = shares {
                measured.values.extend([("idle_cpu", idle), ("stolen_cpu", stolen)]);
            }
            Ok(measured)
        });
        Ok(measured.map_err(Error::Input))
    }
}

/// The session for the runner.
pub fn session(name: &str, subject: &Subject, driver: &Driver, conditions: &Conditions) -> Session {
    let class = driver.class();
    let mut host = Host {
        limit_ms: conditions.limit.as_millis().try_into().unwrap_or(u64::MAX),
        cpus: if conditions.pinned { conditions.cpus.clone() } else { Vec::new() },
        nice: conditions.nice,
        bare: conditions.bare,
        command: Vec::new(),
        keeps_output: conditions.keeps_output,
        class,
    };
    let mut jobs = Vec::new();
    match subject {
        Subject::Closed(workload) => {
            jobs.push(Job::new(name, (**workload).clone(), class));
        }
        Subject::Command(command) => host.command.clone_from(command),
    }
    let mut session = Session { jobs, host: Some(host), ..Session::default() };
    driver.start_in(&mut session);
    session
}

/// The clock that times runs, and two that it is compared with.
#[derive(Clone, Copy)]
struct Clocks {
    monotonic: f64,
    raw: f64,
    boot: f64,
}

impl Clocks {
    fn now() -> Clocks {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        Clocks {
            monotonic: read(ClockId::Monotonic),
            raw: read(ClockId::MonotonicRaw),
            boot: read(ClockId::Boottime),
        }
    }

    /// Whether the clocks agree on the time since then.
    fn check(&self) -> Result<(), String> {
        self.compare(Clocks::now())
    }

    fn compare(&self, now: Clocks) -> Result<(), String> {
        const ALLOWED: f64 = 0.001;
        let (time, raw, boot) =
            (now.monotonic - self.monotonic, now.raw - self.raw, now.boot - self.boot);
        if boot - time > 0.001 {
            return Err(format!("the machine slept for {:.3} s during the run", boot - time));
        }
        // 500 parts in a million is the most by which time keeping may adjust the clock.
        if (time - raw).abs() > ALLOWED * raw + 0.001 {
            return Err(format!(
                "the clock jumped during the run: it went on by {time:.3} s while {raw:.3} s went \
                 by"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_or_a_machine_that_sleeps_spoils_a_run() {
        let begin = Clocks { monotonic: 10.0, raw: 5.0, boot: 10.0 };
        let after =
            |monotonic: f64, raw: f64, boot: f64| begin.compare(Clocks { monotonic, raw, boot });
        assert_eq!(after(12.0, 7.0, 12.0), Ok(()));
        assert!(after(12.0, 7.0, 72.0).unwrap_err().contains("slept for 60.000 s"));
        assert!(after(13.0, 7.0, 13.0).unwrap_err().contains("jumped"));
    }
}
