//! Changes of existing tasks and CPUs: priority, affinity and class of a task, CPUs that go and
//! return, a restart of the policy.

use super::{Arrival, Decision, Live};
use crate::policy::{Effect, Enqueue, Policy, Reweight, Stop};
use crate::seat::TaskState;
use crate::workload::Affinity;
use crate::{CpuId, CpuSet, Nanos, TaskId};

impl<P: Policy> Live<P> {
    /// `policy` takes over in its initial state; only the running or chosen task, if any, is
    /// reported to it. Possible while no task waits and, on several CPUs, none runs. Returns
    /// whether it was possible.
    pub fn begin_anew(&mut self, policy: P, seed: u64) -> bool {
        let runs = self.machine().all().find_map(|cpu| Some((cpu, self.current(cpu)?)));
        let is_anyone_waiting =
            self.seat.cx().tasks.iter().any(|view| view.state == TaskState::Waiting);
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

    /// Changes a task's priority. A waiting task leaves its queue for this and returns.
    pub fn set_weight(&mut self, task: TaskId, prio: u8) {
        let prio = prio.min(139);
        if self.seat.state(task) == TaskState::Absent || self.seat.cx().task(task).prio == prio {
            return;
        }
        self.while_in_no_queue(task, |live| {
            let effect = live.seat.set_weight(task, prio, Reweight::Own);
            live.apply(effect);
        });
    }

    /// Changes the CPUs of a task, one bit for each. A waiting task leaves its queue for this and
    /// returns; one that runs on another CPU is stopped and waits.
    pub fn set_cpumask(&mut self, task: TaskId, cpus: u64) {
        let affinity = self.affinity(cpus);
        if self.seat.state(task) == TaskState::Absent
            || self.seat.cx().task(task).affinity == affinity
        {
            return;
        }
        let outside = self.seat.cx().runs_on(task).filter(|&cpu| !self.allows(affinity, cpu));
        let set = |live: &mut Self| {
            let effect = live.seat.set_cpumask(task, affinity);
            live.apply(effect);
        };
        match outside {
            None => self.while_in_no_queue(task, set),
            Some(cpu) => {
                self.decisions.push(Decision::Stop(cpu));
                let effect = self.withdraw_from(cpu, task);
                set(self);
                self.apply(effect);
                self.restored(task);
                self.choose(cpu);
            }
        }
    }

    /// A task changes to another scheduling class, whatever its state.
    pub fn disable(&mut self, task: TaskId) {
        match self.seat.state(task) {
            TaskState::Absent | TaskState::Elsewhere => return,
            TaskState::Waiting => self.seat.dequeue(task),
            TaskState::New => drop(self.place(task, None)),
            TaskState::Asleep => {}
            TaskState::Chosen | TaskState::Running => {
                return self.stopped(self.seat.cx().task(task).cpu, Stop::OtherClass);
            }
        }
        self.seat.disable(task);
    }

    /// A task returns from another class with these attributes, asleep.
    pub fn enable(&mut self, task: TaskId, arrival: Arrival) {
        if self.seat.state(task) == TaskState::Elsewhere {
            self.seat.enable(task);
            self.set_weight(task, arrival.prio);
            self.set_cpumask(task, arrival.cpus);
        }
    }

    /// A waiting or chosen task is removed for a moment; [`restored`](Self::restored) follows.
    pub fn withdraw(&mut self, task: TaskId) {
        match self.seat.state(task) {
            TaskState::Waiting => self.seat.dequeue(task),
            TaskState::Chosen | TaskState::Running => {
                let cpu = self.seat.cx().task(task).cpu;
                let effect = self.withdraw_from(cpu, task);
                self.apply(effect);
                self.choose(cpu);
            }
            TaskState::Absent | TaskState::New | TaskState::Asleep | TaskState::Elsewhere => {}
        }
    }

    /// A task that was removed while it waited waits again, on the same CPU if it may run there.
    pub fn restored(&mut self, task: TaskId) {
        if self.seat.state(task) != TaskState::Asleep {
            return;
        }
        let cpu = self.seat.cx().task(task).cpu;
        let stays = self.seat.cx().allowed(task, cpu) && self.seat.cx().is_available(cpu);
        if let Some(cpu) = if stays { Some(cpu) } else { self.place(task, None) } {
            self.enqueue(task, cpu, Enqueue::Restored);
        }
    }

    /// `cpu` goes offline. Its running task waits for another CPU. A policy that would leave tasks
    /// behind is refused.
    pub fn cpu_offline(&mut self, cpu: CpuId) {
        if cpu.0 >= self.machine().cpus || self.seat.is_away(cpu) {
            return;
        }
        if !self.seat.policy().promises().hotplug {
            return self.seat.refuse(format!(
                "CPU {} goes offline, and this policy has queues of single CPUs: keep all CPUs \
                 online, or take one with a queue for all, as central:rr",
                cpu.0
            ));
        }
        let task = self.current(cpu);
        let effect = task.map_or(Effect::Nothing, |task| self.withdraw_from(cpu, task));
        self.seat.cpu_offline(cpu);
        self.apply(effect);
        task.into_iter().for_each(|task| self.restored(task));
    }

    /// `cpu` is online again.
    pub fn cpu_online(&mut self, cpu: CpuId) {
        if self.seat.is_away(cpu) {
            self.seat.cpu_online(cpu);
            self.choose(cpu);
        }
    }

    /// A better class takes `cpu`. Its task is interrupted, and chosen again as for
    /// [`paused`](Self::paused).
    pub fn cpu_release(&mut self, cpu: CpuId) {
        if cpu.0 < self.machine().cpus && !self.seat.is_away(cpu) {
            self.seat.cpu_release(cpu);
        }
    }

    /// The policy has `cpu` again.
    pub fn cpu_acquire(&mut self, cpu: CpuId) {
        if self.seat.is_away(cpu) {
            self.seat.cpu_acquire(cpu);
            if self.current(cpu).is_none() {
                self.choose(cpu);
            }
        }
    }

    /// Does `change` while `task` is in no queue of the policy.
    fn while_in_no_queue(&mut self, task: TaskId, change: impl FnOnce(&mut Self)) {
        let waits = self.seat.state(task) == TaskState::Waiting;
        if waits {
            self.seat.dequeue(task);
        }
        change(self);
        if waits {
            self.restored(task);
        }
    }

    /// The task of `cpu` stops, waits, and is removed. Returns the effect of the wait.
    fn withdraw_from(&mut self, cpu: CpuId, task: TaskId) -> Effect {
        self.end_run(cpu, task, Stop::Preempted);
        let effect = self.seat.enqueue(task, cpu, Enqueue::Preempted);
        self.seat.dequeue(task);
        effect
    }

    fn allows(&self, affinity: Affinity, cpu: CpuId) -> bool {
        match affinity {
            Affinity::Any => true,
            Affinity::Pinned(only) => only == cpu,
            Affinity::Set(set) => self.seat.cx().cpu_sets[set as usize].contains(cpu),
        }
    }

    /// The affinity of these bits.
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
