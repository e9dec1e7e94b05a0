//! The CPU use of each task, as a measure of load.
//!
//! The source is Curran & Stumm 1990, §6. Imbalance "can be avoided by using load measures that are
//! more closely tied with the actual utilization of the processors by each task". The price is more
//! work at every switch. Here a task's share is its CPU time over its age, updated whenever it
//! stops. For a young task that says little. So each is assumed to have used 5 % of the second
//! before it arrived, about as much as a task of the Baseline System.

use super::Context;
use crate::{CpuId, Nanos, TaskId, Time};

/// Shares in millionths, per task and summed per CPU.
#[derive(Clone, Debug)]
pub struct Utilisation {
    tasks: Vec<Share>,
    cpus: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    born: Time,
    since: Time,
    used: Nanos,
    millionths: u32,
}

/// The assumed age of a new task, and its assumed share in millionths.
const BEFORE: Nanos = Nanos::from_millis(1000);
const UNKNOWN: u32 = 50_000;

impl Utilisation {
    /// No tasks on `cpus` CPUs.
    pub fn new(cpus: u16) -> Utilisation {
        Utilisation { tasks: Vec::new(), cpus: vec![0; usize::from(cpus)] }
    }

    /// `task` is placed on `cpu`.
    pub fn place(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        let new = Share { born: cx.now(), since: cx.now(), used: Nanos::ZERO, millionths: UNKNOWN };
        if task.index() >= self.tasks.len() {
            self.tasks.resize(task.index() + 1, new);
        }
        self.tasks[task.index()] = new;
        self.cpus[cpu.index()] += u64::from(UNKNOWN);
    }

    /// `task` has left for good.
    pub fn remove(&mut self, task: TaskId, cpu: CpuId) {
        self.cpus[cpu.index()] -= u64::from(self.tasks[task.index()].millionths);
    }

    /// `task` starts to run.
    pub fn running(&mut self, cx: &Context, task: TaskId) {
        self.tasks[task.index()].since = cx.now();
    }

    /// `task` stops running on `cpu`.
    pub fn stopping(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        let share = &mut self.tasks[task.index()];
        share.used += cx.now().since(share.since);
        let age = (cx.now().since(share.born) + BEFORE).0 as f64;
        let millionths =
            ((share.used.0 as f64 * 1e6 + BEFORE.0 as f64 * f64::from(UNKNOWN)) / age) as u32;
        self.cpus[cpu.index()] =
            self.cpus[cpu.index()] + u64::from(millionths) - u64::from(share.millionths);
        share.millionths = millionths;
    }

    /// The sum over the tasks on `cpu`, in millionths of a CPU.
    pub fn of(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()]
    }
}
