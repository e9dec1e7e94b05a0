//! Resolves a WORKLOAD of the command line into runnable programs.

use super::{Caller, CommonArguments, MachineArguments, STOCHASTIC_IS_FLAT, load, parameters};
use formats::workload::{ClosedWorkload, Parameters, Template, Workload};
use program::Error;
use results::{Point, counted};
use schedsim::{Nanos, Time, workload};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use toml::Value;
use worlds::Program;
use worlds::experiment::Recorded;
use worlds::load::{Changed, Closed, Replay};

/// The options for all workloads.
pub struct Programs<'a> {
    /// Parameters of stochastic workloads.
    pub set: &'a [Parameters],
    /// Their offered loads.
    pub load: &'a [f64],
    /// Numbers of CPUs.
    pub cpus: &'a [u16],
    /// The simulated machine.
    pub machine: &'a MachineArguments,
    pub common: &'a CommonArguments,
    /// The workload beside a recording.
    pub add_load: Option<&'a OsStr>,
    /// Whether a guest runs them: then a recording is its program, written out.
    pub in_guest: bool,
    pub caller: &'a Caller<'a>,
}

/// Parses a percentage.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok())
        .filter(|&percent| percent > 0.0 && percent <= 100.0);
    number
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "give a percentage above 0% and up to 100%, as in 2%".to_string())
}

/// What the tasks of a recording do, as a workload that a person could have written.
///
/// # Errors
/// [`Error::Missing`] if the format has no words for something.
pub fn written_out(recorded: &Recorded, path: &Path) -> Result<schedsim::workload::Closed, Error> {
    let Recorded { workload, replay, machine, .. } = recorded;
    let described = formats::export::described(workload, &replay.ended, machine.cpus);
    let mut closed = described.map_err(|what| {
        let path = path.display();
        Error::Missing(format!("{path}: {what}: run the recording itself in the simulator"))
    })?;
    let tokens = replay.wakeups.shares().map_or(0.0, |(_, tokens)| 100.0 * tokens);
    let mut text = format!(
        "What the tasks of {} do. {tokens:.1} % of the wake-ups of those with recorded calls are \
         tokens.",
        recorded.name
    );
    if machine.switch_cost > Nanos::ZERO {
        text += &format!(" A switch took {}, which is not in the runs.", machine.switch_cost);
    }
    closed.description = Some(text);
    Ok(closed)
}

impl Programs<'_> {
    /// The program after `--`.
    pub fn command(words: &[String]) -> Program {
        Program::Command(words.to_vec())
    }

    /// The programs for `argument`: several if a workload is varied, for example by load, or has
    /// several numbers of tasks, as `yield:2,8`.
    pub fn of(&self, argument: &OsStr) -> Result<Vec<Program>, Error> {
        if let Some(counts) = argument
            .to_str()
            .and_then(|text| text.strip_prefix("yield:"))
            .filter(|counts| !counts.contains('?'))
        {
            return counts.split(',').map(|count| self.yields(count, counts)).collect();
        }
        match Workload::resolve(&self.located(argument))? {
            Workload::Recording(path) if self.in_guest => Ok(vec![self.written(&path)?]),
            Workload::Recording(path) => self.replay(&path).map(|program| vec![program]),
            Workload::Stochastic(template) => self.variants(&template),
            Workload::Closed(workload) => {
                Ok(vec![Program::Closed(Box::new(self.closed(*workload, argument)?))])
            }
        }
    }

    /// The file with this name in the caller's directory, if there is one.
    fn located<'n>(&self, argument: &'n OsStr) -> Cow<'n, OsStr> {
        let there = self
            .caller
            .directory
            .map(|directory| directory.join(argument))
            .filter(|path| path.is_file());
        there.map_or(Cow::Borrowed(argument), |path| Cow::Owned(path.into_os_string()))
    }

    fn yields(&self, count: &str, counts: &str) -> Result<Program, Error> {
        let name = format!("yield:{count}");
        let resolved =
            Workload::resolve(OsStr::new(&name)).map_err(|error| match counts.contains(',') {
                true => Error::Usage(format!(
                    "`yield:{counts}`: give numbers of tasks from 1 to 10000, as in \
                     yield:2,8,32,128: {error}"
                )),
                false => error,
            })?;
        let (Workload::Closed(workload), Ok(tasks)) = (resolved, count.parse()) else {
            return Err(Error::Usage(format!(
                "`yield:{counts}`: give numbers of tasks from 1 to 10000, as in yield:2,8,32,128"
            )));
        };
        Ok(Program::Yields(tasks, Box::new(self.closed(*workload, OsStr::new(&name))?)))
    }

    fn closed(&self, workload: ClosedWorkload, argument: &OsStr) -> Result<Closed, Error> {
        if !self.load.is_empty() {
            return Err(Error::Usage(format!(
                "{} is a closed workload, whose load is fixed: leave --load out",
                workload.name()
            )));
        }
        if !self.set.is_empty() {
            return Err(Error::Usage(format!(
                "{} is a closed workload, whose options follow its name, as in \
                 yield:8?run=2us: leave --set out",
                argument.to_string_lossy()
            )));
        }
        self.expect_no_added_load()?;
        let cpus = self.machine.cpus(self.cpus, workload.cpus())?;
        let scripts = workload.scripts(cpus.iter().copied().min().unwrap_or(1))?;
        let machine = self.machine.of_closed(workload.cpus())?;
        let (told, point) = (self.machine.describe_closed(&machine), self.machine.point()?);
        Ok(Closed { workload, scripts, machine, told, mips: self.machine.mips, point })
    }

    /// The workload at each given load on each given number of CPUs.
    fn variants(&self, template: &Template) -> Result<Vec<Program>, Error> {
        self.machine.expect_flat(STOCHASTIC_IS_FLAT)?;
        self.expect_no_added_load()?;
        let mut variants = vec![parameters(self.set, self.machine)];
        for (key, values) in [
            ("cpus", self.cpus.iter().map(|&cpus| i64::from(cpus).into()).collect::<Vec<Value>>()),
            ("load", self.load.iter().map(|&load| load.into()).collect()),
        ] {
            if !values.is_empty() {
                variants = variants
                    .iter()
                    .flat_map(|given| {
                        values.iter().map(move |value| given.with(key, value.clone()))
                    })
                    .collect();
            }
        }
        variants
            .iter()
            .map(|parameters| Ok(Program::Open(Arc::new(template.with(parameters)?))))
            .collect()
    }

    /// The program of a recording as tasks that go through phases.
    fn written(&self, path: &Path) -> Result<Program, Error> {
        let recorded = self.recorded(path)?;
        let closed = written_out(&recorded, path)?;
        let (name, file) = (recorded.name.clone(), path.display().to_string());
        let workload = ClosedWorkload::translated(name, closed, &file, BTreeMap::new(), Vec::new());
        Ok(Program::Closed(Box::new(self.closed(workload, path.as_os_str())?)))
    }

    fn recorded(&self, path: &Path) -> Result<Recorded, Error> {
        if !self.load.is_empty() {
            return Err(Error::Usage(format!(
                "{} is a recording, whose load is fixed: leave --load out",
                path.display()
            )));
        }
        if !self.set.is_empty() {
            return Err(Error::Usage(format!(
                "{} is a recording, which has no parameters: leave --set out",
                path.display()
            )));
        }
        load(path, self.common, self.machine)
    }

    fn replay(&self, path: &Path) -> Result<Program, Error> {
        let recorded = self.recorded(path)?;
        self.machine.cpus(self.cpus, recorded.recording.cpus)?;
        let schedsim::Machine { switch_cost, migration_cost, idle_exit, wake_cost, .. } =
            recorded.machine;
        let hint = if self.machine.is_given() { "" } else { " (estimated from the recording)" };
        let switch = match (self.machine.switch_cost, recorded.costs.switch.interval) {
            (Some(_), _) => String::new(),
            (None, Some((low, high))) => format!(" ({low} to {high})"),
            (None, None) => " (the usual cost: not visible in the recording)".to_string(),
        };
        let told = format!(
            "switch {switch_cost}{switch}, migration {migration_cost}, leaving idle {idle_exit}, \
             waking {wake_cost}{hint}"
        );
        let changed = self.changed(&recorded)?;
        Ok(Program::Replay(Box::new(Replay {
            path: path.to_path_buf(),
            recorded: Arc::new(recorded),
            told,
            changed,
        })))
    }

    /// The changes of the command line to a recording, if any.
    fn changed(&self, recorded: &Recorded) -> Result<Option<Changed>, Error> {
        let file = self.machine.file()?;
        if file.is_none() && self.add_load.is_none() {
            return Ok(None);
        }
        let machine = self.machine.applied(file.as_ref(), &recorded.machine);
        let (mut workload, mut until) = (recorded.workload.clone(), Time::NEVER);
        let (mut point, mut told) = (Point::new(), "\nWhat if: the recorded workload".to_string());
        if let Some(file) = file {
            told += &format!(
                " on the machine {}, with {},",
                file.name,
                counted(machine.cpus.into(), "CPU")
            );
            point.set("machine", file.name);
        }
        if let Some(argument) = self.add_load {
            let (load, end) = self.load_beside(argument, machine.cpus)?;
            (workload, until) = (workload.beside(&load), end);
            let name =
                Path::new(argument).file_name().unwrap_or(argument).to_string_lossy().into_owned();
            told += &format!(" with {name} beside it,");
            point.set("load", name);
        }
        let told = format!(
            "{}. Metrics are of all tasks, until those that ended in the recording have.\n",
            told.trim_end_matches(',')
        );
        Ok(Some(Changed { workload, machine, until, point, told }))
    }

    /// The scripts of a second workload, and the time when they are stopped.
    fn load_beside(
        &self,
        argument: &OsStr,
        cpus: u16,
    ) -> Result<(workload::Workload, Time), Error> {
        match Workload::resolve(&self.located(argument))? {
            Workload::Closed(closed) => Ok((closed.scripts(cpus)?, closed.until())),
            Workload::Recording(path) => {
                Ok((load(&path, self.common, self.machine)?.workload, Time::NEVER))
            }
            Workload::Stochastic(_) => Err(Error::Usage(format!(
                "{} draws its tasks; beside a recording give a closed workload, as yield:4, or \
                 another recording",
                argument.to_string_lossy()
            ))),
        }
    }

    /// Refuses a second workload if there is no recording.
    fn expect_no_added_load(&self) -> Result<(), Error> {
        match self.add_load {
            None => Ok(()),
            Some(_) => Err(Error::Usage(
                "--add-load is for simulated recordings: leave it out, or describe both in one \
                 workload"
                    .to_string(),
            )),
        }
    }
}
