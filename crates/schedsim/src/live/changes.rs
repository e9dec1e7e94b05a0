//! What is another one from now on, with the same name: a task whose attributes change, and the policy itself when it begins anew.

use super::{Live, Running, State};
use crate::policy::{Enqueue, Policy, TaskView};
use crate::workload::Affinity;
use crate::{CpuId, CpuSet, Nanos, Random, TaskId, Time};

impl<P: Policy> Live<P> {
    /// `policy` takes over as if nothing had happened so far but the coming of the task that runs, or is about to, if there is one. Possible while nobody waits, on several CPUs while nobody runs
    /// either: whether it did.
    pub fn begin_anew(&mut self, policy: P, seed: u64) -> bool {
        let runs = (0..self.cpus.len() as u16).map(CpuId).find_map(|cpu| Some((cpu, self.cx.current(cpu)?)));
        if self.tasks.contains(&State::Waiting) || runs.is_some() && self.cpus.len() > 1 {
            return false;
        }
        self.policy = policy;
        (self.begin, self.cx.now) = (self.begin + Nanos(self.cx.now.0), Time::ZERO);
        self.cx.random = Random::new(seed);
        let known = |task: &TaskId| self.tasks[task.index()] != State::Unknown;
        let known: Vec<TaskId> = (0..self.tasks.len() as u32).map(TaskId).filter(known).collect();
        known.into_iter().for_each(|task| self.init(task));
        if let Some((cpu, task)) = runs {
            self.cx.current[cpu.index()] = TaskId::NONE;
            if self.place(task, None).is_some() {
                let _ = self.policy.enqueue(&mut self.cx, task, cpu, Enqueue::New);
                let state = &mut self.cpus[cpu.index()];
                match self.policy.dispatch(&mut self.cx, cpu) {
                    Some(dispatch) if dispatch.task == task => state.left = dispatch.slice,
                    chosen => self.cx.fail(format!("dispatched {chosen:?} to CPU {}, and only task {} waits", cpu.0, task.0)),
                }
                state.since = state.since.map(|_| self.cx.now);
                self.cx.current[cpu.index()] = task;
                if self.state(task) == State::Chosen(cpu, Running::Yes) {
                    self.policy.running(&mut self.cx, cpu, task);
                }
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
        let Some(&is) = self.cx.tasks.get(task.index()) else { return };
        let mut view = self.changes.get(&task).copied().unwrap_or(is);
        change(&mut view);
        match self.state(task) {
            State::Asleep if view != is => {
                self.end_sleep(task);
                self.become_another(task, view);
            }
            State::Chosen(..) => drop(self.changes.insert(task, view)),
            State::Asleep | State::Unknown | State::Waiting => {}
        }
    }

    /// A policy may keep something of who sleeps, as EEVDF does of its lag: before such a task is gone, it waits for a moment and is taken away.
    fn end_sleep(&mut self, task: TaskId) {
        let Some(cpu) = self.place(task, None) else { return };
        let _ = self.policy.enqueue(&mut self.cx, task, cpu, Enqueue::Wakeup);
        self.policy.dequeue(&mut self.cx, task);
    }

    pub(super) fn become_another(&mut self, task: TaskId, view: TaskView) {
        self.forget(task);
        let cpu = self.cx.tasks[task.index()].cpu;
        self.cx.tasks[task.index()] = TaskView { cpu, ..view };
        self.init(task);
        // It is no reason to go elsewhere: it is placed while it may run nowhere else.
        if self.cx.allowed(task, cpu) {
            self.cx.tasks[task.index()].affinity = Affinity::Pinned(cpu);
            let _ = self.place(task, None);
            self.cx.tasks[task.index()].affinity = view.affinity;
        }
    }

    /// The affinity that these bits mean.
    pub(super) fn affinity(&mut self, cpus: u64) -> Affinity {
        let machine = &self.cx.machine;
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
        let known = self.cx.cpu_sets.iter().position(|known| *known == set);
        Affinity::Set(known.unwrap_or_else(|| {
            self.cx.cpu_sets.push(set);
            self.cx.cpu_sets.len() - 1
        }) as u32)
    }
}
