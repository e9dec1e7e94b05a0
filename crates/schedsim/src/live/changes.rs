//! What is another one from now on, with the same name: a task whose attributes change, and the policy itself when it begins anew.

use super::Live;
use crate::policy::{Enqueue, Policy, TaskView};
use crate::seat::TaskState;
use crate::workload::Affinity;
use crate::{CpuId, CpuSet, Nanos, TaskId};

impl<P: Policy> Live<P> {
    /// `policy` takes over as if nothing had happened so far but the coming of the task that runs, or is about to, if there is one. Possible while nobody waits, on several CPUs while nobody runs
    /// either: whether it did.
    pub fn begin_anew(&mut self, policy: P, seed: u64) -> bool {
        let runs = self.machine().all().find_map(|cpu| Some((cpu, self.current(cpu)?)));
        let is_anyone_waiting = self.seat.cx().tasks.iter().any(|view| view.state == TaskState::Waiting);
        if is_anyone_waiting || runs.is_some() && self.cpus.len() > 1 {
            return false;
        }
        self.begin += Nanos(self.now().0);
        let is_running = runs.is_some_and(|(_, task)| self.seat.state(task) == TaskState::Running);
        self.seat.begin_anew(policy, seed);
        if let Some((cpu, task)) = runs
            && self.place(task, None).is_some()
        {
            let _ = self.seat.enqueue(task, cpu, Enqueue::New);
            match self.seat.dispatch(cpu) {
                Some(dispatch) => self.cpus[cpu.index()].left = dispatch.slice,
                None => {
                    self.seat.expect_none_lost();
                    return false;
                }
            }
            self.seat.occupy(cpu, task);
            let now = self.now();
            let since = &mut self.cpus[cpu.index()].since;
            *since = since.map(|_| now);
            if is_running {
                self.seat.running(cpu);
            }
        }
        true
    }

    /// A task's nice value changes.
    pub fn set_prio(&mut self, task: TaskId, prio: u8) {
        self.change(task, |view| view.prio = prio.min(139));
    }

    /// A task may run elsewhere from now on.
    pub fn set_affinity(&mut self, task: TaskId, cpus: u64) {
        let affinity = self.affinity(cpus);
        self.change(task, |view| view.affinity = affinity);
    }

    /// For the policy a task whose attributes change is another one then, with the same id: at once, or when it stops if it is a CPU's. It must not be waiting: take it away first.
    fn change(&mut self, task: TaskId, change: impl FnOnce(&mut TaskView)) {
        let Some(&is) = self.seat.cx().tasks.get(task.index()) else { return };
        let mut view = self.changes.get(&task).copied().unwrap_or(is);
        change(&mut view);
        match self.seat.state(task) {
            TaskState::New | TaskState::Asleep if view != is => {
                self.end_sleep(task);
                self.become_another(task, view);
            }
            TaskState::Chosen | TaskState::Running => drop(self.changes.insert(task, view)),
            TaskState::New | TaskState::Asleep | TaskState::Absent | TaskState::Waiting => {}
        }
    }

    /// A policy may keep something of who sleeps, as EEVDF does of its lag: before such a task is gone, it waits for a moment and is taken away.
    fn end_sleep(&mut self, task: TaskId) {
        let Some(cpu) = self.place(task, None) else { return };
        let _ = self.seat.enqueue(task, cpu, Enqueue::Wakeup);
        self.seat.dequeue(task);
    }

    pub(super) fn become_another(&mut self, task: TaskId, view: TaskView) {
        self.forget(task);
        let cpu = self.seat.cx().task(task).cpu;
        self.seat.admit(task, TaskView { cpu, ..view });
        self.seat.init_task(task);
        // It is no reason to go elsewhere: it is placed while it may run nowhere else.
        if self.seat.cx().allowed(task, cpu) {
            self.seat.place_where_it_is(task);
        }
    }

    /// The affinity that these bits mean.
    pub(super) fn affinity(&mut self, cpus: u64) -> Affinity {
        let machine = self.machine();
        let all = u64::MAX >> (64 - machine.cpus);
        let cpus = cpus & all;
        if cpus == all || cpus == 0 {
            return Affinity::Any;
        }
        if cpus.is_power_of_two() {
            return Affinity::Pinned(CpuId(cpus.trailing_zeros() as u16));
        }
        let mut set = CpuSet::empty(machine.cpus);
        machine.all().filter(|cpu| cpus >> cpu.0 & 1 == 1).for_each(|cpu| set.insert(cpu));
        self.seat.affinity_of(set)
    }
}
