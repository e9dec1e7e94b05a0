//! The checks that every event of a trace file passes.

use super::header::{ADVICE, Header};
use crate::import::Problem;
use schedsim::admission::{LAST, OutOfRange};
use schedsim::trace::{Event, EventKind, Observer, TraceHash};
use schedsim::{CpuId, Nanos, TaskId, Time};

/// The events of a file so far.
pub(super) struct Checked {
    cpus: u16,
    tasks: u64,
    /// The number of events.
    pub(super) events: u64,
    /// The time of the last one.
    time: Time,
    hash: TraceHash,
}

impl Checked {
    /// Nothing yet of a file with this header.
    pub(super) fn new(header: &Header) -> Checked {
        Checked {
            cpus: header.cpus,
            tasks: u64::try_from(header.tasks.len()).unwrap_or(u64::MAX),
            events: 0,
            time: Time::ZERO,
            hash: TraceHash::new(),
        }
    }

    /// Compares all events with what the file says about them.
    ///
    /// # Errors
    /// If they differ.
    pub(super) fn end(&self, events: u64, hash: u64) -> Result<(), Problem> {
        if (events, hash) == (self.events, self.hash.value()) {
            Ok(())
        } else {
            Err(Problem::Damaged(format!("its hash differs; {ADVICE}")))
        }
    }

    /// Takes the next event. Time never goes backwards, and CPUs and tasks are those of the header.
    ///
    /// # Errors
    /// If it refers to something that does not exist.
    pub(super) fn take(&mut self, event: &Event) -> Result<(), Problem> {
        self.admit(event)?;
        self.time = event.time;
        self.events = self.events.saturating_add(1);
        self.hash.events(&[*event]);
        Ok(())
    }

    fn admit(&self, event: &Event) -> Result<(), Problem> {
        let refuse = |what, value: u64, least: u64, most: u64| {
            let expected = format!("a whole number from {least} to {most}");
            Err(Problem::Range { what, wrong: OutOfRange { value: value.to_string(), expected } })
        };
        if !(self.time..=LAST).contains(&event.time) {
            return refuse("the time", event.time.0, self.time.0, LAST.0);
        }
        let Named { tasks, cpus, span } = Named::by(&event.kind);
        let most = self.cpus.saturating_sub(1);
        if let Some(cpu) = [event.cpu].into_iter().chain(cpus).find(|cpu| cpu.0 > most) {
            return refuse("the CPU", cpu.0.into(), 0, most.into());
        }
        // If tasks are drawn during the run, the header has none. Then each event adds at most one
        // task, and one more task may come ahead of its event.
        let most = self.tasks.checked_sub(1).unwrap_or(self.events.saturating_add(1));
        if let Some(task) =
            tasks.into_iter().find(|&task| task != TaskId::NONE && u64::from(task.0) > most)
        {
            return refuse("the task", task.0.into(), 0, most);
        }
        if span.0 > LAST.0 { refuse("the duration", span.0, 0, LAST.0) } else { Ok(()) }
    }
}

/// The CPUs and tasks that an event names besides its own CPU.
struct Named {
    tasks: [TaskId; 2],
    cpus: [CpuId; 2],
    span: Nanos,
}

impl Named {
    fn by(kind: &EventKind) -> Named {
        let of =
            |task| Named { tasks: [task, TaskId::NONE], cpus: [CpuId(0); 2], span: Nanos::ZERO };
        match *kind {
            EventKind::SchedSwitch { prev, next, .. } => Named { tasks: [prev, next], ..of(prev) },
            EventKind::SchedWaking { task, target, .. }
            | EventKind::SchedWakeup { task, target }
            | EventKind::SchedWakeupNew { task, target } => Named { cpus: [target; 2], ..of(task) },
            EventKind::SchedProcessFork { parent, child } => {
                Named { tasks: [parent, child], ..of(child) }
            }
            EventKind::SchedMigrateTask { task, from, to } => {
                Named { cpus: [from, to], ..of(task) }
            }
            EventKind::JobComplete { task, demand: span }
            | EventKind::Overhead { task, spent: span, .. } => Named { span, ..of(task) },
            EventKind::ContentionBegin { task, owner, .. } => {
                Named { tasks: [task, owner], ..of(task) }
            }
            EventKind::SchedProcessExec { task }
            | EventKind::SchedProcessExit { task }
            | EventKind::JobRelease { task }
            | EventKind::SchedPiSetprio { task, .. } => of(task),
        }
    }
}
