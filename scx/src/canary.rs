//! Policies that each break a rule, to show that the breach is caught: `canary:NAME`.
//!
//! They are round robin for two thousand dispatches, so that the machine can boot; then they
//! misbehave.

use schedsim::policy::{Central, CentralOptions, Context, Dispatch, Effect, Enqueue, Policy, Wake};
use schedsim::{CpuId, Nanos, TaskId};

/// The rule that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A waiting task is never dispatched again.
    Forgets,
    /// No task is dispatched.
    Never,
    /// A task is placed on a CPU that does not exist.
    WrongCpu,
    /// A task is dispatched that does not wait.
    Stranger,
    /// It panics.
    Panics,
    /// Its process is killed, as by `kill -9`.
    Killed,
}

/// A policy with a fault.
#[derive(Clone, Debug)]
pub struct Canary {
    fault: Fault,
    sane: Central<readyq::RoundRobin>,
    dispatched: u32,
    forgotten: Option<TaskId>,
}

/// The number of dispatches before the fault.
const PATIENCE: u32 = 2_000;

impl Fault {
    /// The fault of this name.
    pub fn named(name: &str) -> Option<Fault> {
        Some(match name {
            "forgets" => Fault::Forgets,
            "never" => Fault::Never,
            "wrong-cpu" => Fault::WrongCpu,
            "stranger" => Fault::Stranger,
            "panics" => Fault::Panics,
            "killed" => Fault::Killed,
            _ => return None,
        })
    }
}

impl Canary {
    /// Round robin with this fault.
    pub fn new(fault: Fault) -> Canary {
        let sane = Central::new(
            readyq::RoundRobin::new(),
            CentralOptions::baseline(Nanos::from_millis(4)),
        );
        Canary { fault, sane, dispatched: 0, forgotten: None }
    }

    fn fails(&self, fault: Fault) -> bool {
        self.fault == fault && self.dispatched >= PATIENCE
    }
}

impl Policy for Canary {
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.sane.init_task(cx, task);
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.sane.exit_task(cx, task);
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        if self.fails(Fault::WrongCpu) { CpuId(999) } else { self.sane.select_cpu(cx, task, wake) }
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if self.fails(Fault::Forgets) && self.forgotten.is_none() && matches!(why, Enqueue::Yielded)
        {
            self.forgotten = Some(task);
        }
        if self.forgotten == Some(task) {
            Effect::Nothing
        } else {
            self.sane.enqueue(cx, task, cpu, why)
        }
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        if self.forgotten != Some(task) {
            self.sane.dequeue(cx, task);
        }
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.dispatched += 1;
        assert!(!self.fails(Fault::Panics), "the canary panics");
        if self.fails(Fault::Killed) {
            // SAFETY: numbers only.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        if self.fails(Fault::Never) {
            return None;
        }
        let mut next = self.sane.dispatch(cx, cpu)?;
        if self.fails(Fault::Stranger) {
            next.task = TaskId(next.task.0 + 10_000);
        }
        Some(next)
    }
}
