//! Spin locks of programs: a task that finds its mutex taken stays on its CPU and looks again.
//!
//! An unlocked mutex is free for the first task that acts. That is the task that unlocked it, if it
//! locks it again at once. Else it is a task that spins on another CPU. The spinners see the unlock
//! one nanosecond apart, in order of their CPUs from the one behind that of the unlock. A task that
//! was preempted while it spun looks when it runs again.
//!
//! Source: PostgreSQL 17, `src/backend/storage/lmgr/s_lock.c` (spin, then sleep); the C library's
//! `PTHREAD_MUTEX_ADAPTIVE_NP` (spin, then wait).
//!
//! Deviations: PostgreSQL counts looks, not time, draws its sleeps, and lets them grow to 1 s.

use super::Engine;
use super::step::{Done, Off};
use crate::policy::Policy;
use crate::seat::TaskState;
use crate::trace::Sink;
use crate::workload::{Action, Operation, Spin};
use crate::{CpuId, Nanos, TaskId, Time};

/// A task that spins for a mutex, or sleeps before it does again.
#[derive(Clone, Copy, Debug)]
pub struct Spinner {
    /// What it may still spin when it has looked.
    left: Nanos,
    /// When it first looked.
    since: Time,
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// `task` finds `mutex` taken. `None` if it has spun enough and waits.
    pub(super) fn spin(&mut self, task: TaskId, mutex: u32, spin: Spin) -> Option<Done> {
        let now = self.now();
        let whole = spin.limit.unwrap_or(Spin::LONGEST);
        let state = &mut self.sync.mutexes[mutex as usize];
        let entry = state.spinners.entry(task).or_insert(Spinner { left: whole, since: now });
        let left = std::mem::take(&mut entry.left);
        if left > Nanos::ZERO {
            self.tasks[task.index()].drag = left;
            return Some(Done::Spins);
        }
        match spin.sleep {
            Some(pause) if now.since(entry.since) < Spin::LONGEST => {
                entry.left = whole;
                self.timers.insert(now + pause, task);
                Some(Done::Blocks(Off::Sleeps))
            }
            // It spins no more until it has the mutex.
            None if spin.limit.is_some() => None,
            _ => Some(self.never_gets(task, mutex)),
        }
    }

    #[cold]
    fn never_gets(&mut self, task: TaskId, mutex: u32) -> Done {
        let owner = self.sync.mutexes[mutex as usize].owner;
        let does = match self.seat.state(owner) {
            TaskState::Absent => "has ended with it",
            TaskState::Asleep => "sleeps or waits with it",
            TaskState::Running | TaskState::Chosen => "runs with it",
            _ => "has it and waits for a CPU",
        };
        let (name, owner) = (&self.shared().mutexes[mutex as usize].name, self.load.name(owner));
        let what = format!(
            "tries to get the mutex {name} for {}, as long as a task may; {owner} {does}",
            Spin::LONGEST
        );
        self.misuse(task, &what)
    }

    /// `mutex` is free: whoever spins for it sees that.
    pub(super) fn let_spinners_look(&mut self, giver: CpuId, mutex: u32) {
        let mut spinners = std::mem::take(&mut self.sync.mutexes[mutex as usize].spinners);
        let cpus = self.machine().cpus;
        for (&task, entry) in &mut spinners {
            let cpu = self.seat.cx().task(task).cpu;
            let runs = self.current(cpu) == task;
            if runs {
                self.account(cpu);
            }
            // One that is about to look does so in any case.
            let drag = &mut self.tasks[task.index()].drag;
            if *drag == Nanos::ZERO {
                continue;
            }
            entry.left += std::mem::take(drag);
            if runs {
                *drag = Nanos(u64::from((cpu.0 + cpus - giver.0 - 1) % cpus));
                self.plan(cpu);
            }
        }
        self.sync.mutexes[mutex as usize].spinners = spinners;
    }

    /// Whether a timer wakes `task` to spin again.
    #[cold]
    pub(super) fn spins_again(&self, task: TaskId) -> bool {
        let Action::Do(Operation::Lock(mutex)) = self.tasks[task.index()].then else {
            return false;
        };
        self.sync.mutexes[mutex as usize].spinners.contains_key(&task)
    }
}
