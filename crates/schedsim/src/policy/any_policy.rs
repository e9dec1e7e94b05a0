//! A policy whose type is erased.
//!
//! The engine is compiled for each policy (see [`descriptor`](super::descriptor)). Other drivers,
//! which do not count tens of nanoseconds per event, use this box. They are the bridge to a kernel,
//! the replay of a recorded schedule, and tests.

use super::{
    Context, Dispatch, Effect, Enqueue, InKernel, Kept, Needs, Policy, Promises, Reweight, Scan,
    Stop, VirtualTimes, Wake,
};
use crate::workload::Affinity;
use crate::{CpuId, TaskId, Time};

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

/// A policy that can be cloned without its type.
trait Boxed: Policy {
    fn boxed_clone(&self) -> AnyPolicy;
}

impl<P: Policy + Clone + 'static> Boxed for P {
    fn boxed_clone(&self) -> AnyPolicy {
        AnyPolicy::new(self.clone())
    }
}

/// Callbacks that are forwarded with their arguments.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $(fn $name(&mut self, cx: &mut Context, $($argument: $type),*) $(-> $answer)? {
            self.0.$name(cx, $($argument),*)
        })*
    };
}

// A callback that is not forwarded here would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl Policy for AnyPolicy {
    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn promises(&self) -> Promises {
        self.0.promises()
    }

    fn virtual_times(&self, task: TaskId, now: Time) -> Option<VirtualTimes> {
        self.0.virtual_times(task, now)
    }

    fn keep(&mut self, task: TaskId, kept: Kept) {
        self.0.keep(task, kept);
    }

    fn correct(&mut self, task: TaskId, kernel: InKernel) -> Option<InKernel> {
        self.0.correct(task, kernel)
    }

    fn timer(&mut self, cx: &mut Context) {
        self.0.timer(cx);
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.0.queue_length(cpu)
    }

    fn take_work(&mut self, cpu: CpuId) -> u64 {
        self.0.take_work(cpu)
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

    passed_on! {
        init_task(task: TaskId);
        exit_task(task: TaskId);
        select_cpu(task: TaskId, wake: Wake) -> CpuId;
        enqueue(task: TaskId, cpu: CpuId, why: Enqueue) -> Effect;
        dequeue(task: TaskId);
        set_weight(task: TaskId, old: u8, why: Reweight) -> Effect;
        set_cpumask(task: TaskId, old: Affinity) -> Effect;
        disable(task: TaskId);
        enable(task: TaskId);
        cpu_offline(cpu: CpuId);
        cpu_online(cpu: CpuId);
        cpu_release(cpu: CpuId);
        cpu_acquire(cpu: CpuId);
        dispatch(cpu: CpuId) -> Option<Dispatch>;
        running(cpu: CpuId, task: TaskId);
        stopping(cpu: CpuId, task: TaskId, why: Stop);
        update_idle(cpu: CpuId, idle: bool) -> Effect;
        tick(cpu: CpuId, task: TaskId) -> Effect;
    }
}
