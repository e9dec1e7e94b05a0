//! What if a recorded workload ran on another machine, or with a second workload beside it.

use super::Compare;
use crate::Error;
use crate::cmd::load;
use crate::experiment::{Recorded, Subject};
use crate::output::Point;
use crate::workload::Workload;
use schedsim::{Machine, Time, workload};
use std::ffi::OsStr;
use std::path::Path;

/// A recorded workload, changed.
pub(super) struct WhatIf {
    workload: workload::Workload,
    machine: Machine,
    until: Time,
    /// In what it differs from the recording.
    pub point: Point,
}

impl Compare {
    /// What the command line changes, if anything.
    pub(super) fn what_if(&self, recorded: &Recorded) -> Result<Option<WhatIf>, Error> {
        let file = self.machine.file()?;
        if file.is_none() && self.add_load.is_none() {
            return Ok(None);
        }
        let machine = self.machine.applied(file.as_ref(), &recorded.machine);
        let mut what_if = WhatIf { workload: recorded.workload.clone(), machine, until: Time::NEVER, point: Point::new() };
        if let Some(file) = file {
            what_if.point.set("machine", file.name);
        }
        if let Some(argument) = &self.add_load {
            let (load, until) = self.load_beside(argument, what_if.machine.cpus)?;
            (what_if.workload, what_if.until) = (what_if.workload.beside(&load), until);
            let name = Path::new(argument).file_name().unwrap_or(argument);
            what_if.point.set("load", name.to_string_lossy().into_owned());
        }
        Ok(Some(what_if))
    }

    /// The scripts of a second workload, and when they are stopped.
    fn load_beside(&self, argument: &OsStr, cpus: u16) -> Result<(workload::Workload, Time), Error> {
        match Workload::resolve(argument)? {
            Workload::Closed(closed) => Ok((closed.scripts(cpus)?, closed.until())),
            Workload::Recording(path) => Ok((load(&path, &self.common, &self.machine)?.workload, Time::NEVER)),
            Workload::Stochastic(_) => Err(Error::Usage(format!(
                "{} draws its tasks, and what runs beside a recording has to be a closed workload, as yield:4 is, or another recording",
                argument.to_string_lossy()
            ))),
        }
    }
}

impl WhatIf {
    /// What is simulated.
    pub(super) fn subject<'a>(&'a self, recorded: &'a Recorded) -> Subject<'a> {
        Subject { workload: &self.workload, machine: &self.machine, until: self.until, ..recorded.subject() }
    }

    /// In words.
    pub(super) fn told(&self) -> String {
        let machine = self.point.get("machine").map(|name| format!(" on the machine {name}, with {} CPUs,", self.machine.cpus));
        let load = self.point.get("load").map(|name| format!(" with {name} beside it,"));
        let text = format!("\nWhat if: the recorded workload{}{}", machine.unwrap_or_default(), load.unwrap_or_default());
        format!("{}. Metrics are of all tasks, until those that ended in the recording have.\n", text.trim_end_matches(','))
    }
}
