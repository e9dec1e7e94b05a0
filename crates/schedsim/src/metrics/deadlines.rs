//! Counts jobs and missed deadlines of tasks with reservations.
//!
//! A job lasts from a task's waking or creation to its next sleep or its end; waiting for a mutex
//! is no sleep. A task that is woken at the moment it goes to sleep is late for its period. That
//! job was released one period after the last one. A job that is not done at the end of the trace
//! counts if its deadline has passed.

use crate::trace::{Event, EventKind, PrevState};
use crate::workload::Reservation;
use crate::{Nanos, TaskId, Time};

/// Tracks the jobs of tasks with reservations.
#[derive(Clone, Debug)]
pub struct Jobs {
    tasks: Vec<Option<Task>>,
}

/// A task and its current job, if any.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub reservation: Reservation,
    /// When the job was released.
    pub release: Option<Time>,
    /// Whether it waits for a mutex, in the middle of its job.
    contends: bool,
    /// Since when it runs, if it does.
    pub runs: Option<Time>,
    /// How long the job has run.
    pub served: Nanos,
    /// The same since the task was first seen.
    pub served_ever: Nanos,
    /// When it was first seen.
    pub first: Option<Time>,
    /// When it last went to sleep.
    pub slept: Option<Time>,
    /// The minimum distance between two releases.
    pub closest: Nanos,
}

/// A job that is done.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub task: TaskId,
    pub reservation: Reservation,
    /// From its release to its end.
    pub response: Nanos,
    /// How long it ran.
    pub served: Nanos,
}

impl Jobs {
    pub fn new(reservations: impl IntoIterator<Item = Option<Reservation>>) -> Jobs {
        let task = |reservation| Task {
            reservation,
            release: None,
            contends: false,
            runs: None,
            served: Nanos::ZERO,
            served_ever: Nanos::ZERO,
            first: None,
            slept: None,
            closest: Nanos::MAX,
        };
        Jobs { tasks: reservations.into_iter().map(|reservation| reservation.map(task)).collect() }
    }

    /// The state of `task`, if it has a reservation.
    pub fn task(&self, task: TaskId) -> Option<&Task> {
        self.tasks.get(task.index())?.as_ref()
    }

    /// All tasks with reservations.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks
            .iter()
            .enumerate()
            .filter_map(|(index, task)| Some((TaskId(index as u32), task.as_ref()?)))
    }

    /// The job that ends with this event, if one does.
    pub fn event(&mut self, event: &Event) -> Option<Job> {
        match event.kind {
            EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                self.release(task, event.time);
                None
            }
            EventKind::ContentionBegin { task, .. } => {
                if let Some(Some(task)) = self.tasks.get_mut(task.index()) {
                    task.contends = true;
                }
                None
            }
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let done = self.stop(prev, prev_state, event.time);
                if let Some(Some(task)) = self.tasks.get_mut(next.index()) {
                    task.runs = Some(event.time);
                }
                done
            }
            _ => None,
        }
    }

    fn release(&mut self, task: TaskId, now: Time) {
        let Some(Some(task)) = self.tasks.get_mut(task.index()) else { return };
        if std::mem::take(&mut task.contends) {
            return; // it has its mutex, and continues its job
        }
        let mut release = now;
        if let Some(last) = task.release {
            if task.slept == Some(now) {
                release = now.min(last + task.reservation.period);
            }
            task.closest = task.closest.min(release.since(last));
        }
        task.first.get_or_insert(now);
        (task.release, task.served) = (Some(release), Nanos::ZERO);
    }

    fn stop(&mut self, id: TaskId, why: PrevState, now: Time) -> Option<Job> {
        let task = self.tasks.get_mut(id.index())?.as_mut()?;
        if let Some(since) = task.runs.take() {
            task.served += now.since(since);
            task.served_ever += now.since(since);
        }
        if why == PrevState::Runnable || task.contends {
            return None;
        }
        task.slept = Some(now);
        let release = task.release?;
        // The release stays, for the distance to the next one.
        let job = Job {
            task: id,
            reservation: task.reservation,
            response: now.since(release),
            served: task.served,
        };
        task.served = Nanos::ZERO;
        Some(job)
    }
}

/// Jobs and deadlines over a whole trace.
#[derive(Clone, Debug)]
pub struct Deadlines {
    jobs: Jobs,
    done: Vec<Done>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    jobs: u64,
    missed: u64,
    response: Nanos,
    /// Whether the last job is done.
    is_idle: bool,
}

/// The deadlines of one task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskDeadlines {
    /// Which task.
    pub task: TaskId,
    /// What it reserved.
    pub reservation: Reservation,
    /// How many jobs were done.
    pub jobs: u64,
    /// How many deadlines were missed.
    pub missed: u64,
    /// The longest time from release to completion.
    pub response: Nanos,
    /// The used part of its reservation: CPU time over the time reserved since its first release.
    pub used: f64,
}

impl Deadlines {
    pub fn new(reservations: impl IntoIterator<Item = Option<Reservation>>) -> Deadlines {
        let jobs = Jobs::new(reservations);
        Deadlines { done: vec![Done::default(); jobs.tasks.len()], jobs }
    }

    pub fn event(&mut self, event: &Event) {
        if let EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } =
            event.kind
            && let Some(done) = self.done.get_mut(task.index())
        {
            done.is_idle = false;
        }
        if let Some(job) = self.jobs.event(event) {
            let done = &mut self.done[job.task.index()];
            done.jobs += 1;
            done.missed += u64::from(job.response > job.reservation.deadline);
            done.response = done.response.max(job.response);
            done.is_idle = true;
        }
    }

    pub fn finish(self, end: Time) -> Vec<TaskDeadlines> {
        let of_task = |(id, task): (TaskId, &Task)| {
            let done = self.done[id.index()];
            let running = task.runs.map_or(Nanos::ZERO, |since| end.since(since));
            let is_late = !done.is_idle
                && task
                    .release
                    .is_some_and(|release| end.since(release) > task.reservation.deadline);
            let reserved = task
                .first
                .map_or(0.0, |first| end.since(first).0 as f64 * task.reservation.utilisation());
            TaskDeadlines {
                task: id,
                reservation: task.reservation,
                jobs: done.jobs,
                missed: done.missed + u64::from(is_late),
                response: done.response,
                used: if reserved > 0.0 {
                    (task.served_ever + running).0 as f64 / reserved
                } else {
                    0.0
                },
            }
        };
        self.jobs.tasks().map(of_task).collect()
    }
}
