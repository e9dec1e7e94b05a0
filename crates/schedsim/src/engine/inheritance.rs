//! Priority inheritance: who holds a mutex that says so is as important as the most important task that waits for it.
//!
//! And so on along a chain: if the holder waits for another such mutex, so is who holds that. When a task gives a mutex back, the most important of those who
//! wait gets it, the first come among equals, and what was inherited for it is lost. A policy learns of it by `set_weight`, for which the task stops or is taken away:
//! a running task at its CPU's next occasion, which is now unless it is in the middle of a switch; one that waits or sleeps at once.
//!
//! Source: Sha, Rajkumar & Lehoczky 1990, section III (the basic protocol); Linux 6.18, `kernel/locking/rtmutex.c`: `rt_mutex_adjust_prio_chain`,
//! `rt_mutex_slowunlock`; `kernel/sched/core.c`: `rt_mutex_setprio`; `kernel/futex/pi.c`: `wake_futex_pi`.
//!
//! Deviations: nice values are inherited too, where the kernel counts all fair tasks as equals; under the fair schedulers that changes nothing, as weights are
//! of a task's own nice value. A more important task that comes between the giving back and the first run of who has got the mutex does not steal it. Who
//! loses a priority goes to the tail of its list, in the kernel to the head.

use super::Engine;
use super::source::Load;
use super::tasks::Task;
use crate::policy::{Enqueue, Policy, Wake};
use crate::seat::TaskState;
use crate::trace::{EventKind, Sink};
use crate::workload::{Action, Operation};
use crate::{CpuId, Nanos, TaskId};

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Refuses what the policy cannot do.
    pub(super) fn expect_inheritance(&mut self) {
        if let Some(mutex) = self.load.shared().inheriting()
            && !self.seat.policy().promises().inherits
        {
            self.seat.refuse(format!(
                "the mutex {} inherits priorities, and this policy has none that change: take fifo, rr, eevdf, cfs, o1, pslist, or a topology with an \
                 order, as in central:priority, or leave `inherit` out",
                mutex.name
            ));
        }
    }

    /// Somebody begins or ceases to wait for what `task` holds: makes it as important as it shall be, then whom it waits for itself.
    pub(super) fn inherit(&mut self, mut task: TaskId) {
        loop {
            let prio = self.prio_with_waiters(task);
            if std::mem::replace(&mut self.sync.prios[task.index()], prio) == prio {
                return;
            }
            if self.seat.state(task) == TaskState::Running {
                self.preempt(self.seat.cx().task(task).cpu, Nanos::ZERO);
            } else {
                self.requeue_with_prio(task);
            }
            match self.holder_of_wanted(task) {
                Some(holder) => task = holder,
                None => return,
            }
        }
    }

    /// `task` has given back `mutex`: the most important task that waits gets it.
    pub(super) fn bequeath(&mut self, cpu: CpuId, task: TaskId, mutex: u32) {
        let waiters = &self.sync.mutexes[mutex as usize].waiters;
        let Some(best) = (0..waiters.len()).min_by_key(|&index| self.sync.prios[waiters[index].index()]) else { return };
        let state = &mut self.sync.mutexes[mutex as usize];
        let Some(heir) = state.waiters.remove(best) else { return };
        state.owner = heir;
        self.inherit(heir);
        self.wake(heir, Some(cpu));
        self.inherit(task);
    }

    /// The priority of a task that does not run becomes what it shall be. Whether that is another one.
    #[inline(always)]
    pub(super) fn take_prio(&mut self, task: TaskId) -> bool {
        !self.sync.prios.is_empty() && self.take_inherited(task)
    }

    #[cold]
    fn take_inherited(&mut self, task: TaskId) -> bool {
        let new = self.sync.prios[task.index()];
        let (old, cpu) = (self.seat.set_weight(task, new), self.seat.cx().task(task).cpu);
        if old != new {
            self.trace.push(self.now(), cpu, EventKind::SchedPiSetprio { task, old, new });
        }
        old != new
    }

    /// Who ends inherits nothing any more.
    #[inline(always)]
    pub(super) fn disinherit(&mut self, task: TaskId) {
        if !self.sync.prios.is_empty() {
            self.sync.prios[task.index()] = self.own_prio(task);
            self.take_prio(task);
        }
    }

    /// `task`, which does not run, gets the priority that it shall have; if it is ready, the policy places it anew.
    fn requeue_with_prio(&mut self, task: TaskId) {
        if self.seat.state(task) != TaskState::Waiting {
            self.take_prio(task);
            return;
        }
        self.seat.dequeue(task);
        self.take_prio(task);
        let cpu = self.seat.select_cpu(task, Wake { new: false, waker: None });
        let effect = self.seat.enqueue(task, cpu, Enqueue::Wakeup);
        self.apply(effect, Nanos::ZERO);
    }

    /// The best of its own priority and those of the tasks that wait for what it holds.
    fn prio_with_waiters(&self, task: TaskId) -> u8 {
        let shared = self.load.shared();
        let held = self.sync.mutexes.iter().zip(&shared.mutexes).filter(|(state, mutex)| state.owner == task && mutex.inherit);
        let inherited = held.flat_map(|(state, _)| &state.waiters).map(|waiter| self.sync.prios[waiter.index()]);
        inherited.fold(self.own_prio(task), u8::min)
    }

    fn own_prio(&self, task: TaskId) -> u8 {
        match &self.load {
            Load::Scripts(scripts) => scripts.workload.tasks[task.index()].info.prio,
            Load::Drawn(_) => self.seat.cx().task(task).prio,
        }
    }

    /// Who holds the mutex that `task` waits for, if it lets its holder inherit.
    fn holder_of_wanted(&self, task: TaskId) -> Option<TaskId> {
        match self.tasks[task.index()] {
            Task { waits: true, then: Action::Do(Operation::Lock(mutex)), .. } => {
                let is_ours = self.load.shared().mutexes[mutex as usize].inherit;
                is_ours.then_some(self.sync.mutexes[mutex as usize].owner)
            }
            _ => None,
        }
    }
}
