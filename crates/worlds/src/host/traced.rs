//! Runs a workload while perf records the scheduler's events: the same stream of events and the
//! same metrics as everywhere.
//!
//! perf records everything on the machine. Here only the workload's own tasks count. Other tasks
//! count as idle time, so latencies, delays and switches are those of the workload. The time that
//! others took from it is in its run delay.

use super::record::record_into;
use super::run::{Conditions, Place, Subject, session};
use super::runner::events;
use crate::driver::Driver;
use formats::import;
use formats::import::{Options, Recording};
use program::{Error, Scratch};
use schedlab_runner::event::Event as Report;
use schedsim::TaskId;
use schedsim::trace::{CHUNK, Event, EventKind, Observer};
use std::collections::BTreeSet;
use std::path::Path;

/// A recorded run, with its own tasks among the recorded ones.
pub struct Traced {
    /// What the runner reported.
    pub reports: Vec<Report>,
    own: Vec<bool>,
}

impl Traced {
    /// Runs `subject` once and records it into `file`.
    ///
    /// # Errors
    /// [`Error::Missing`] if perf or a permission is missing; [`Error::Input`] if the run failed.
    pub fn record(
        place: &mut Place,
        name: &str,
        subject: &Subject,
        driver: &Driver,
        conditions: &Conditions,
        file: &Path,
    ) -> Result<Traced, Error> {
        let scratch = Scratch::new()?;
        let orders = scratch.path().join("session.json");
        let failed = |error: &dyn std::fmt::Display| {
            Error::Internal(format!("the run cannot be recorded: {error}"))
        };
        let text = serde_json::to_vec(&session(name, subject, driver, conditions))
            .map_err(|error| failed(&error))?;
        std::fs::write(&orders, text).map_err(|error| Error::output(&orders, error))?;
        let command = [place.runner.path().into(), orders.into_os_string()];
        let output = record_into(&command, file)?;
        let reports = events(&output[..]);
        driver.judge(&reports, "")?;
        if let Some(message) = reports.iter().find_map(|report| match report {
            Report::Failed { message } => Some(message),
            _ => None,
        }) {
            return Err(Error::Input(format!("{name} under {driver}, recorded: {message}")));
        }
        let own = own_tasks(file, &reports)?;
        Ok(Traced { reports, own })
    }

    /// Passes the events of the run's own tasks to `observers`.
    ///
    /// # Errors
    /// If the recording cannot be read.
    pub fn read(
        &self,
        file: &Path,
        options: &Options,
        observers: Vec<&mut dyn Observer>,
    ) -> Result<Recording, import::Error> {
        let mut only = OnlyOwn { own: &self.own, observers, chunk: Vec::with_capacity(CHUNK) };
        import::read(file, options, vec![&mut only])
    }
}

/// The tasks of a run: those that the runner reported; for a command, all descendants of the
/// reported process.
fn own_tasks(file: &Path, reports: &[Report]) -> Result<Vec<bool>, Error> {
    let mut told = BTreeSet::new();
    for report in reports {
        match report {
            Report::JobEnd { tasks, .. } if !tasks.is_empty() => {
                told = tasks.iter().map(|task| task.tid).collect()
            }
            Report::Usage { pid, .. } if told.is_empty() => drop(told.insert(*pid)),
            _ => {}
        }
    }
    let mut births = Births::default();
    let recording =
        import::read(file, &Options { allow_lost: true, ..Options::default() }, vec![&mut births])?;
    let mut own: Vec<bool> = recording.tasks.iter().map(|task| told.contains(&task.pid)).collect();
    // In order of time: a parent is known before its child.
    for (parent, child) in births.0 {
        if own.get(parent.index()) == Some(&true) && child.index() < own.len() {
            own[child.index()] = true;
        }
    }
    Ok(own)
}

#[derive(Default)]
struct Births(Vec<(TaskId, TaskId)>);

impl Observer for Births {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend(chunk.iter().filter_map(|event| match event.kind {
            EventKind::SchedProcessFork { parent, child } => Some((parent, child)),
            _ => None,
        }));
    }
}

/// Forwards events of own tasks, and replaces others by the idle task.
struct OnlyOwn<'a, 'o> {
    own: &'a [bool],
    observers: Vec<&'o mut dyn Observer>,
    chunk: Vec<Event>,
}

impl OnlyOwn<'_, '_> {
    fn is_own(&self, task: TaskId) -> bool {
        self.own.get(task.index()) == Some(&true)
    }

    fn own(&self, event: &Event) -> Option<Event> {
        let of = |task| self.is_own(task).then_some(*event);
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let [prev, next] =
                    [prev, next].map(|task| if self.is_own(task) { task } else { TaskId::NONE });
                (prev != next).then_some(Event {
                    kind: EventKind::SchedSwitch { prev, next, prev_state },
                    ..*event
                })
            }
            EventKind::SchedWaking { task, .. }
            | EventKind::SchedWakeup { task, .. }
            | EventKind::SchedWakeupNew { task, .. }
            | EventKind::SchedProcessExec { task }
            | EventKind::SchedProcessExit { task }
            | EventKind::SchedMigrateTask { task, .. }
            | EventKind::SchedPiSetprio { task, .. }
            | EventKind::ContentionBegin { task, .. } => of(task),
            EventKind::SchedProcessFork { child, .. } => of(child),
            EventKind::JobRelease { task }
            | EventKind::JobComplete { task, .. }
            | EventKind::Overhead { task, .. } => of(task),
        }
    }
}

impl Observer for OnlyOwn<'_, '_> {
    fn events(&mut self, chunk: &[Event]) {
        let mut own = std::mem::take(&mut self.chunk);
        own.clear();
        own.extend(chunk.iter().filter_map(|event| self.own(event)));
        for observer in &mut self.observers {
            observer.events(&own);
        }
        self.chunk = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::trace::PrevState;
    use schedsim::{CpuId, Time};

    #[derive(Default)]
    struct Seen(Vec<EventKind>);

    impl Observer for Seen {
        fn events(&mut self, chunk: &[Event]) {
            self.0.extend(chunk.iter().map(|event| event.kind));
        }
    }

    #[test]
    fn time_of_other_tasks_is_idle_time() {
        let switch =
            |prev, next| EventKind::SchedSwitch { prev, next, prev_state: PrevState::Blocked };
        let (foreign, other, own) = (TaskId(0), TaskId(1), TaskId(2));
        let kinds = [
            switch(TaskId::NONE, foreign),
            switch(foreign, other),
            EventKind::SchedProcessExec { task: other },
            switch(other, own),
            EventKind::SchedProcessExit { task: own },
            switch(own, foreign),
        ];
        let mut seen = Seen::default();
        let events = kinds.map(|kind| Event { time: Time::ZERO, cpu: CpuId(0), kind });
        OnlyOwn { own: &[false, false, true], observers: vec![&mut seen], chunk: Vec::new() }
            .events(&events);
        assert_eq!(
            seen.0,
            [
                switch(TaskId::NONE, own),
                EventKind::SchedProcessExit { task: own },
                switch(own, TaskId::NONE)
            ]
        );
    }
}
