//! Tracks which task waits or runs on which CPU, and since when.

use crate::{CpuId, TaskId, Time};

/// The queues and CPUs of a machine, as a trace shows them.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The waiting tasks, unordered.
    pub waiting: Vec<Waiting>,
    /// The index of each task in `waiting`, if it waits.
    positions: Vec<u32>,
    /// Per CPU.
    pub running: Vec<Option<Running>>,
}

/// A task that waits on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub task: TaskId,
    pub cpu: CpuId,
    pub since: Time,
    /// The start of the wait, or when a CPU last took another task instead.
    pub passed_over: Time,
}

/// A task that runs.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    pub task: TaskId,
    pub since: Time,
}

impl Scene {
    pub fn new(cpus: u16, tasks: usize) -> Scene {
        Scene {
            waiting: Vec::new(),
            positions: vec![0; tasks],
            running: vec![None; usize::from(cpus)],
        }
    }

    pub fn wait_begins(&mut self, task: TaskId, cpu: CpuId, since: Time) {
        self.positions[task.index()] = self.waiting.len() as u32;
        self.waiting.push(Waiting { task, cpu, since, passed_over: since });
    }

    /// A CPU has taken a task; `might` returns for which waiting tasks it could have been woken.
    pub fn pass_over(&mut self, now: Time, might: impl Fn(TaskId) -> bool) {
        self.waiting
            .iter_mut()
            .filter(|waiting| might(waiting.task))
            .for_each(|waiting| waiting.passed_over = now);
    }

    /// `task` restarts its wait at `now`, with other attributes. Returns the wait so far.
    pub fn waits_anew(&mut self, task: TaskId, now: Time) -> Waiting {
        let waiting = &mut self.waiting[self.positions[task.index()] as usize];
        std::mem::replace(waiting, Waiting { passed_over: now, ..*waiting })
    }

    /// `task` waits no longer. Returns the wait.
    pub fn wait_ends(&mut self, task: TaskId) -> Waiting {
        let position = self.positions[task.index()];
        let ended = self.waiting.swap_remove(position as usize);
        if let Some(moved) = self.waiting.get(position as usize) {
            self.positions[moved.task.index()] = position;
        }
        ended
    }
}
