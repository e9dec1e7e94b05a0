//! Policies that are broken on purpose.

use schedsim::policy::{
    Context, Dispatch, Effect, Enqueue, InKernel, Kept, Needs, Policy, Promises, Reweight, Scan,
    Stop, VirtualTimes, Wake,
};
use schedsim::workload::Affinity;
use schedsim::{CpuId, Nanos, TaskId, Time};
/// The fault of a [`Broken`] policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fault {
    NeverKicks,
    /// Drops the kicks of even-numbered wakeups.
    ForgetsKicks,
    /// Never queues this task again once it was preempted or its slice was over.
    Forgets(TaskId),
    /// Promises what it does not keep.
    Promises(Promises),
    /// The same, and ignores priority changes.
    Deaf(Promises),
    /// Lets every task run on for this much longer than its slice.
    Overruns(Nanos),
    /// Stops every task after this at the latest.
    Cuts(Nanos),
    /// Never preempts for a waking task.
    NeverPreempts,
    /// Does nothing at ticks.
    NeverTicks,
}

/// A policy with a fault.
pub(crate) struct Broken<P> {
    pub(crate) policy: P,
    pub(crate) fault: Fault,
    pub(crate) wakeups: u32,
}

// A callback that is not forwarded here would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl<P: Policy> Policy for Broken<P> {
    fn needs(&self) -> Needs {
        self.policy.needs()
    }
    fn promises(&self) -> Promises {
        match self.fault {
            Fault::Promises(promises) | Fault::Deaf(promises) => promises,
            _ => self.policy.promises(),
        }
    }
    fn virtual_times(&self, task: TaskId, now: Time) -> Option<VirtualTimes> {
        self.policy.virtual_times(task, now)
    }
    fn keep(&mut self, task: TaskId, kept: Kept) {
        self.policy.keep(task, kept);
    }
    fn correct(&mut self, task: TaskId, kernel: InKernel) -> Option<InKernel> {
        self.policy.correct(task, kernel)
    }
    fn timer(&mut self, cx: &mut Context) {
        self.policy.timer(cx);
    }
    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.policy.queue_length(cpu)
    }
    fn take_work(&mut self, cpu: CpuId) -> u64 {
        self.policy.take_work(cpu)
    }
    fn scan(&self, cpu: CpuId) -> Scan {
        self.policy.scan(cpu)
    }
    fn migrates(&self) -> bool {
        self.policy.migrates()
    }
    fn fetch(&self, task: TaskId) {
        self.policy.fetch(task);
    }
    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8, why: Reweight) -> Effect {
        if matches!(self.fault, Fault::Deaf(_)) {
            Effect::Nothing
        } else {
            self.policy.set_weight(cx, task, old, why)
        }
    }
    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        self.policy.set_cpumask(cx, task, old)
    }
    fn disable(&mut self, cx: &mut Context, task: TaskId) {
        self.policy.disable(cx, task);
    }
    fn enable(&mut self, cx: &mut Context, task: TaskId) {
        self.policy.enable(cx, task);
    }
    fn cpu_offline(&mut self, cx: &mut Context, cpu: CpuId) {
        self.policy.cpu_offline(cx, cpu);
    }
    fn cpu_online(&mut self, cx: &mut Context, cpu: CpuId) {
        self.policy.cpu_online(cx, cpu);
    }
    fn cpu_release(&mut self, cx: &mut Context, cpu: CpuId) {
        self.policy.cpu_release(cx, cpu);
    }
    fn cpu_acquire(&mut self, cx: &mut Context, cpu: CpuId) {
        self.policy.cpu_acquire(cx, cpu);
    }
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.policy.init_task(cx, task);
    }
    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.policy.exit_task(cx, task);
    }
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        self.policy.select_cpu(cx, task, wake)
    }
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if self.fault == Fault::Forgets(task) && !why.comes() {
            return Effect::Nothing;
        }
        let effect = self.policy.enqueue(cx, task, cpu, why);
        self.wakeups += u32::from(why == Enqueue::Wakeup);
        match self.fault {
            Fault::NeverKicks => Effect::Nothing,
            Fault::NeverPreempts if matches!(effect, Effect::Preempt(cpu) if cx.current(cpu).is_some()) => {
                Effect::Nothing
            }
            Fault::ForgetsKicks if why == Enqueue::Wakeup && self.wakeups.is_multiple_of(2) => {
                Effect::Nothing
            }
            _ => effect,
        }
    }
    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.policy.update_idle(cx, cpu, idle)
    }
    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.policy.dequeue(cx, task);
    }
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let Dispatch { task, slice } = self.policy.dispatch(cx, cpu)?;
        let slice = match self.fault {
            Fault::Overruns(longer) => slice + longer,
            Fault::Cuts(most) => slice.min(most),
            _ => slice,
        };
        Some(Dispatch { task, slice })
    }
    fn running(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) {
        self.policy.running(cx, cpu, task);
    }
    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.policy.stopping(cx, cpu, task, why);
    }
    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        let effect = self.policy.tick(cx, cpu, task);
        if self.fault == Fault::NeverTicks { Effect::Nothing } else { effect }
    }
}
