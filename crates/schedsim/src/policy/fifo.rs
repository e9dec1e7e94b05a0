//! First in, first out, by priority: `SCHED_FIFO` for every task.
//!
//! The most important task runs until it sleeps, yields or a more important one wakes; equals run
//! in the order in which they became ready. Right where every task's priority was chosen with care:
//! control loops, interrupt threads, audio. Bad at everything else: a task that does not sleep
//! keeps its CPU for good. Tasks behind it starve, including those that could stop it.
//!
//! Source and rules: [`realtime`](super::realtime), POSIX and Linux 6.18. Static priorities are
//! those of the workload: 0…99 real-time, 0 the best (POSIX 99 is 0 here), and after them nice
//! −20…19 as forty more.
//!
//! Deviation: in Linux a nice value is no real-time priority. To keep only priorities 0…99
//! real-time, with a fair scheduler below them, use `cfs` or `eevdf`.

use super::descriptor::{Descriptor, Make};
use super::realtime::{self, RealTime};
use super::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Promises, Reweight, Stop, Wake};
use crate::workload::Affinity;
use crate::{CpuId, Nanos, TaskId};

/// Real-time scheduling of all tasks.
#[derive(Clone, Debug)]
pub struct Fifo {
    class: RealTime,
    needs: Needs,
    is_throttled: bool,
}

impl Fifo {
    /// The scheduler for `cpus` CPUs. `throttle`: the time per second that tasks may run on each
    /// CPU.
    pub fn new(cpus: u16, throttle: Option<Nanos>) -> Fifo {
        Fifo::with(cpus, realtime::Options { below: u8::MAX, quantum: None, throttle })
    }

    pub(super) fn with(cpus: u16, options: realtime::Options) -> Fifo {
        let is_throttled = options.throttle.is_some();
        let tick = is_throttled.then_some(Nanos::from_millis(4));
        let needs = Needs {
            tick,
            blocking: true,
            alarm: is_throttled,
            most_cpus: Some(cpus),
            ..Needs::default()
        };
        Fifo { class: RealTime::new(cpus, options), needs, is_throttled }
    }
}

impl Policy for Fifo {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn promises(&self) -> Promises {
        Promises {
            // A task preempts a worse one although another CPU idles; that one moves there after
            // the switch to it, if it needs one.
            work_conserving: false,
            locally_work_conserving: !self.is_throttled,
            inherits: true,
            ..self.class.promises()
        }
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.class.waiting_on(cpu)
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        self.class.init_task(cx, task);
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.class.exit_task(cx, task);
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        self.class.select_cpu(cx, task)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        self.class.enqueue(cx, task, cpu, why)
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, _old: u8, _why: Reweight) -> Effect {
        self.class.set_weight(cx, task)
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        self.class.set_cpumask(cx, task, old);
        Effect::Nothing
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.class.dequeue(task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.class.chooses(cpu);
        self.class.pick(cx, cpu)
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.class.stopping(cx, cpu, task, why);
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        self.class.update_idle(cx, cpu, idle)
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, _task: TaskId) -> Effect {
        self.class.tick(cx, cpu)
    }
}

/// `SCHED_FIFO` for every task.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "fifo",
    summary: "SCHED_FIFO for every task: strict priorities, first in first out, no task is \
              stopped for an equal",
    source: "POSIX.1-2024, 2.8.4; Linux 6.18, kernel/sched/rt.c",
    options: &[realtime::THROTTLE],
    structure: Some("priority"),
    scheduler: &Make(|given| {
        Fifo::new(given.cpus(), given.duration_if_set(realtime::THROTTLE.name))
    }),
};
