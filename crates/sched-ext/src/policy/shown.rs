//! Tasks as the scheduler sees them, and those that have waited too long.

use super::Compiled;
use crate::callbacks::Op;
use crate::core::{Answer, Task};
use crate::masks::Mask;
use crate::memory;
use bpf::Address;
use schedsim::policy::{Context, weight_of};
use schedsim::{Nanos, TaskId, Time};

impl Compiled {
    /// A task is of the class from now on (`scx_enable_task`).
    pub(super) fn join(&mut self, cx: &mut Context, task: TaskId) {
        let weight = self.tried(|own| own.show_weight(task, cx.task(task).prio));
        self.core.tasks[task.index()].is_enabled = true;
        self.tell(cx, Op::Enable, task, &[]);
        self.tell(cx, Op::SetWeight, task, &[weight]);
    }

    /// A task leaves the class, unless it has before (`scx_disable_task`).
    pub(super) fn leave(&mut self, cx: &mut Context, task: TaskId) {
        let state = &mut self.core.tasks[task.index()];
        (state.runnable_at, state.direct, state.is_restored) = (None, None, false);
        let is_last = |of: &&mut crate::core::Cpu| of.slept == Some(task);
        self.core.cpus.iter_mut().filter(is_last).for_each(|of| of.slept = None);
        if std::mem::take(&mut self.core.tasks[task.index()].is_enabled) {
            self.tell(cx, Op::Disable, task, &[]);
        }
    }

    /// Sets what the scheduler sees of a task's priority.
    pub(super) fn show_weight(&mut self, task: TaskId, prio: u8) -> Answer<u64> {
        let weight = (u64::from(weight_of(prio)) * 100 + 512) / 1024;
        let weight = weight.clamp(1, 10_000);
        let (address, layout) = (self.address(task), &self.core.layout);
        memory::set(&mut self.machine, address, layout.weight, weight)?;
        for &field in &layout.prios {
            memory::set(&mut self.machine, address, Some(field), prio.into())?;
        }
        Ok(weight)
    }

    /// Sets what the scheduler sees of a task's CPUs.
    pub(super) fn show_cpus(&mut self, cx: &Context, task: TaskId) -> Answer {
        let mut mask = Mask::none(self.cpus);
        cx.allowed_cpus(task).for_each(|cpu| mask.set(cpu.0));
        let (address, at) = (self.address(task), self.core.tasks[task.index()].mask);
        self.machine.write(Address(at), &mask.to_bytes())?;
        if let Some(own) = self.core.layout.cpus_mask {
            let bytes = mask.to_bytes();
            let shown = &bytes[..bytes.len().min(own.size as usize)];
            self.machine.write(Address(address).plus(own.offset.into()), shown)?;
        }
        let count = u64::from(mask.weight());
        memory::set(&mut self.machine, address, self.core.layout.nr_cpus_allowed, count)
    }

    /// A task is created, with its `task_struct`.
    pub(super) fn create(&mut self, cx: &Context, task: TaskId) -> Answer {
        self.core.admit(&mut self.machine, task, cx.task(task).cpu.0)?;
        self.show_weight(task, cx.task(task).prio)?;
        self.show_cpus(cx, task)
    }

    /// A task that has waited too long ends the scheduler (`check_rq_for_timeouts`).
    pub(super) fn watch(&mut self, cx: &Context) {
        let (now, timeout) = (cx.now(), self.loaded.timeout());
        self.watch_at = Time(now.0.saturating_add(timeout.0 / 2));
        let waits = |task: &Task| task.runnable_at.map(|since| now.since(since));
        let late = self.core.tasks.iter().position(|task| waits(task) > Some(timeout));
        if let Some(late) = late {
            let (name, waited) =
                (self.core.name(TaskId(late as u32)), waits(&self.core.tasks[late]));
            let ms = waited.unwrap_or(Nanos::ZERO).0 / 1_000_000;
            let (s, ms) = (ms / 1000, ms % 1000);
            self.core.error(format!("runnable task stall: {name} failed to run for {s}.{ms:03}s"));
        }
    }
}
