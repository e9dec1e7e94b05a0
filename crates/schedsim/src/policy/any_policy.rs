//! A policy whose type is not known where it is used.
//!
//! The engine is compiled for each policy (see [`descriptor`](super::descriptor)). Whoever drives one differently, and is not counted in tens of nanoseconds
//! per event, takes it from this box: the bridge to a kernel, the replay of a recorded schedule, tests.

use super::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Promises, Scan, Stop, Wake};
use crate::{CpuId, TaskId};

/// Some policy.
pub struct AnyPolicy(Box<dyn Boxed>);

impl AnyPolicy {
    /// `policy`, in a box.
    pub fn new(policy: impl Policy + Clone + 'static) -> AnyPolicy {
        AnyPolicy(Box::new(policy))
    }
}

impl Clone for AnyPolicy {
    fn clone(&self) -> AnyPolicy {
        self.0.boxed_clone()
    }
}

/// A policy that can be copied without its type.
trait Boxed: Policy {
    fn boxed_clone(&self) -> AnyPolicy;
}

impl<P: Policy + Clone + 'static> Boxed for P {
    fn boxed_clone(&self) -> AnyPolicy {
        AnyPolicy::new(self.clone())
    }
}

// A callback that is not passed on here would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl Policy for AnyPolicy {
    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn promises(&self) -> Promises {
        self.0.promises()
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.0.queue_length(cpu)
    }

    fn scan(&self, cpu: CpuId) -> Scan {
        self.0.scan(cpu)
    }

    fn migrates(&self) -> bool {
        self.0.migrates()
    }

    fn fetch(&self, task: TaskId) {
        self.0.fetch(task);
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.0.init_task(cx, task);
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.0.exit_task(cx, task);
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        self.0.select_cpu(cx, task, wake)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        self.0.enqueue(cx, task, cpu, why)
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.0.dequeue(cx, task);
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8) {
        self.0.set_weight(cx, task, old);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.0.dispatch(cx, cpu)
    }

    fn running(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) {
        self.0.running(cx, cpu, task);
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.0.stopping(cx, cpu, task, why);
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.0.update_idle(cx, cpu, idle)
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        self.0.tick(cx, cpu, task)
    }
}
