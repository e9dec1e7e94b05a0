//! Checks that deadlines are met where possible, and that no task exceeds its reservation.
//!
//! Checked on one CPU with free scheduling, where theory says that the reservations are feasible. A
//! task *behaves* if its jobs need no more than its runtime and come no closer than its period.
//! With servers, a task that behaves meets its deadlines whatever the others do, if densities fit.
//! No task gets more than its share in any interval, except for a burst. A server gives this burst
//! at the end of one period and the start of the next: 2 Q (1 - Q/P). Without servers all tasks
//! must behave.

use super::{Finding, Rule};
use crate::metrics::deadlines::{Job, Jobs};
use crate::policy::{Deadlines as Promise, Promises};
use crate::trace::{Event, EventKind};
use crate::workload::{Reservation, Schedulability, Workload};
use crate::{Machine, Nanos, TaskId, Time};

/// Tracks jobs and the time that servers give.
#[derive(Clone, Debug)]
pub struct Deadlines {
    promise: Promise,
    jobs: Jobs,
    tasks: Vec<Account>,
    all_behave: bool,
    /// Whether servers isolate tasks from each other. The kernel's servers do if densities fit. A
    /// task whose deadline is before the end of its period, and which wakes early, runs at its
    /// density.
    isolates: bool,
}

/// A bucket that fills at the reservation's rate and drains while the task runs.
#[derive(Clone, Copy, Debug)]
struct Account {
    misbehaves: bool,
    /// In 2^-20 ns.
    left: i128,
    since: Time,
}

const UNIT: i128 = 1 << 20;

impl Deadlines {
    /// `None` if nothing is promised for this workload and machine.
    pub fn new(workload: &Workload, machine: &Machine, promises: Promises) -> Option<Deadlines> {
        let promise = promises.deadlines?;
        let ids = || workload.ids().map(|task| workload.reservation(task));
        let set: Vec<Reservation> = ids().flatten().collect();
        let is_free = Machine { cpus: 1, ..Machine::ideal(1) } == *machine;
        let known = Schedulability::of(&set, 1);
        let fits = if promise == Promise::RateMonotonic {
            known.rate_monotonic()
        } else {
            known.edf == Some(true)
        };
        // The theory excludes tasks that wait for others.
        let blocks = !workload.shared.mutexes.is_empty();
        let account = |reservation: Option<Reservation>| Account {
            misbehaves: blocks,
            left: reservation.map_or(0, |own| burst(&own)),
            since: Time::ZERO,
        };
        (is_free && fits && !set.is_empty()).then(|| Deadlines {
            promise,
            jobs: Jobs::new(ids()),
            tasks: ids().map(account).collect(),
            all_behave: !blocks,
            isolates: promise == Promise::Served && known.density <= 1.0,
        })
    }

    pub fn event(&mut self, event: &Event) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let EventKind::SchedSwitch { prev, .. } = event.kind {
            findings.extend(self.spend(prev, event.time));
        }
        if let Some(job) = self.jobs.event(event) {
            findings.extend(self.judge(job));
        }
        if let EventKind::SchedSwitch { next, .. } = event.kind {
            self.fill(next, event.time);
        }
        findings
    }

    fn judge(&mut self, job: Job) -> Option<Finding> {
        let Job { task, reservation, response, served } = job;
        let closest = self.jobs.task(task).map_or(Nanos::MAX, |task| task.closest);
        if served > reservation.runtime || closest < reservation.period {
            self.tasks[task.index()].misbehaves = true;
            self.all_behave = false;
        }
        let is_promised = self.all_behave || self.isolates && !self.tasks[task.index()].misbehaves;
        (is_promised && response > reservation.deadline).then(|| Finding {
            rule: Rule::Deadlines,
            task: Some(task),
            cpu: None,
            message: format!(
                "took {response} to be done, and its deadline was after {}",
                reservation.deadline
            ),
        })
    }

    /// `task` has not run until now.
    fn fill(&mut self, task: TaskId, now: Time) {
        let Some(reservation) = self.jobs.task(task).map(|task| task.reservation) else { return };
        let account = &mut self.tasks[task.index()];
        let earned =
            i128::from(now.since(account.since).0) * i128::from(reservation.bandwidth() + 1);
        (account.left, account.since) = ((account.left + earned).min(burst(&reservation)), now);
    }

    /// `task` has run until now.
    fn spend(&mut self, task: TaskId, now: Time) -> Option<Finding> {
        let reservation = self.jobs.task(task)?.reservation;
        let account = &mut self.tasks[task.index()];
        let ran = now.since(account.since);
        account.left -= i128::from(ran.0) * (UNIT - i128::from(reservation.bandwidth()) - 1);
        account.since = now;
        (self.promise == Promise::Served && account.left < 0).then(|| {
            let more = Nanos((-account.left / UNIT) as u64 + 1);
            account.left = 0;
            let message = format!(
                "was served {more} more than its reservation of {} in {}",
                reservation.runtime, reservation.period
            );
            Finding { rule: Rule::Bandwidth, task: Some(task), cpu: None, message }
        })
    }
}

/// 2 Q (1 - Q/P), and a ns.
fn burst(reservation: &Reservation) -> i128 {
    (2 * i128::from(reservation.runtime.0) + 2) * (UNIT - i128::from(reservation.bandwidth()))
        + UNIT
}
