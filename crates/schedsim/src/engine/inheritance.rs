//! Priority inheritance: the holder of such a mutex is as important as the most important task that
//! waits for it.
//!
//! Inheritance follows chains: if the holder waits for another such mutex, its holder inherits,
//! too. An unlock passes the mutex to the most important waiting task, first come first served
//! among equals, and the holder loses what it inherited. The policy receives `set_weight`; before
//! it, the task stops or leaves its queue. A running task changes at its CPU's next event, which is
//! now unless the CPU is in a switch. A waiting or sleeping task changes at once.
//!
//! Source: Sha, Rajkumar & Lehoczky 1990, section III (the basic protocol); Linux 6.18,
//! `kernel/locking/rtmutex.c`: `rt_mutex_adjust_prio_chain`, `rt_mutex_slowunlock`;
//! `kernel/sched/core.c`: `rt_mutex_setprio`; `kernel/futex/pi.c`: `wake_futex_pi`.
//!
//! Deviations: nice values are inherited too, where the kernel counts all fair tasks as equals.
//! Under the fair schedulers that changes nothing, as weights follow a task's own nice value. A
//! more important task that comes between the unlock and the first run of the new holder does not
//! steal the mutex. A task that loses a priority goes to the tail of its list, in the kernel to the
//! head.

use super::Engine;
use super::source::Load;
use super::tasks::Task;
use crate::policy::{Enqueue, Policy, Reweight};
use crate::seat::TaskState;
use crate::trace::{EventKind, Sink};
use crate::workload::{Action, Operation};
use crate::{CpuId, Nanos, TaskId};

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Refuses the workload if the policy does not support inheritance.
    pub(super) fn expect_inheritance(&mut self) {
        if let Some(mutex) = self.load.shared().inheriting()
            && !self.seat.policy().promises().inherits
        {
            self.seat.refuse(format!(
                "the mutex {} inherits priorities, and this policy has none that change: take \
                 fifo, rr, eevdf, cfs, o1, pslist, or a topology with an order, as in \
                 central:priority, or leave `inherit` out",
                mutex.name
            ));
        }
    }

    /// A task starts or stops waiting for what `task` holds. Updates the priority of `task`, then
    /// those along the chain.
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

    /// `task` has unlocked `mutex`. Passes it to the most important waiting task.
    pub(super) fn bequeath(&mut self, cpu: CpuId, task: TaskId, mutex: u32) {
        let waiters = &self.sync.mutexes[mutex as usize].waiters;
        let Some(best) =
            (0..waiters.len()).min_by_key(|&index| self.sync.prios[waiters[index].index()])
        else {
            return;
        };
        let state = &mut self.sync.mutexes[mutex as usize];
        let Some(heir) = state.waiters.remove(best) else { return };
        state.owner = heir;
        self.inherit(heir);
        self.wake(heir, Some(cpu));
        self.inherit(task);
    }

    /// Updates the priority of a task that does not run. Returns whether it changed.
    #[inline(always)]
    pub(super) fn take_prio(&mut self, task: TaskId) -> bool {
        !self.sync.prios.is_empty() && self.take_inherited(task)
    }

    #[cold]
    fn take_inherited(&mut self, task: TaskId) -> bool {
        let new = self.sync.prios[task.index()];
        let (old, cpu) = (self.seat.cx().task(task).prio, self.seat.cx().task(task).cpu);
        if old == new {
            return false;
        }
        let effect = self.seat.set_weight(task, new, Reweight::Inherited);
        self.trace.push(self.now(), cpu, EventKind::SchedPiSetprio { task, old, new });
        self.apply(effect, Nanos::ZERO);
        true
    }

    /// A task that ends inherits nothing any more.
    #[inline(always)]
    pub(super) fn disinherit(&mut self, task: TaskId) {
        if !self.sync.prios.is_empty() {
            self.sync.prios[task.index()] = self.own_prio(task);
            self.take_prio(task);
        }
    }

    /// Sets the new priority of `task`, which does not run. If it waits, it leaves its queue for
    /// this and returns.
    fn requeue_with_prio(&mut self, task: TaskId) {
        if self.seat.state(task) != TaskState::Waiting {
            self.take_prio(task);
            return;
        }
        self.seat.dequeue(task);
        self.take_prio(task);
        self.enqueue(task, self.tasks[task.index()].waits_on, Enqueue::Restored);
    }

    /// The best of its own priority and the priorities of the tasks that wait for what it holds.
    fn prio_with_waiters(&self, task: TaskId) -> u8 {
        let shared = self.load.shared();
        let held = self
            .sync
            .mutexes
            .iter()
            .zip(&shared.mutexes)
            .filter(|(state, mutex)| state.owner == task && mutex.inherit);
        let inherited = held
            .flat_map(|(state, _)| &state.waiters)
            .map(|waiter| self.sync.prios[waiter.index()]);
        inherited.fold(self.own_prio(task), u8::min)
    }

    fn own_prio(&self, task: TaskId) -> u8 {
        match &self.load {
            Load::Scripts(scripts) => scripts.workload.tasks[task.index()].info.prio,
            Load::Drawn(_) => self.seat.cx().task(task).prio,
        }
    }

    /// The holder of the mutex that `task` waits for, if that mutex has priority inheritance.
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
