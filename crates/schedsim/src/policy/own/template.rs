//! `template`: one queue for all CPUs, first come, first served.
//!
//! Right where …; it does badly at ….

use crate::policy::{Context, Dispatch, Effect, Enqueue, Policy, Promises, Wake};
use crate::{CpuId, Nanos, TaskId};
use std::collections::VecDeque;

/// How long a task runs before the next one has its turn.
const SLICE: Nanos = Nanos::from_millis(4);

/// Who waits, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Template {
    waiting: VecDeque<TaskId>,
}

impl Template {
    /// For a machine of `cpus` CPUs.
    pub fn new(_cpus: u16) -> Template {
        Template::default()
    }
}

impl Policy for Template {
    fn promises(&self) -> Promises {
        Promises { work_conserving: true, locally_work_conserving: true, starvation_free: true, ..Promises::default() }
    }

    fn init_task(&mut self, _cx: &mut Context, _task: TaskId) {}

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, _cpu: CpuId, _why: Enqueue) -> Effect {
        self.waiting.push_back(task);
        cx.idle_cpu_for(task).map_or(Effect::Nothing, Effect::Kick)
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.waiting.retain(|&other| other != task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let next = self.waiting.iter().position(|&task| cx.allowed(task, cpu))?;
        self.waiting.remove(next).map(|task| Dispatch { task, slice: SLICE })
    }

    /// A CPU that was kicked for one task may have taken another: whoever was passed over needs the next idle one.
    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        let passed_over = self.waiting.iter().filter(|_| !idle).find_map(|&task| cx.idle_cpu_for(task));
        passed_over.map_or(Effect::Nothing, Effect::Kick)
    }
}
