//! A correct policy with one fault.

use schedsim::policy::{Context, Dispatch, Effect, Enqueue, Needs, Policy, Scan, Stop, Wake};
use schedsim::seat::Callback;
use schedsim::{CpuId, Nanos, TaskId, Time};

/// The fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    SelectsNoCpu,
    KicksNoCpu,
    PreemptsNoCpu,
    KicksNoCpuLater,
    KicksInThePast,
    KicksLaterUndeclared,
    KicksNoCpuWhenIdle,
    PreemptsNoCpuAtTick,
    DispatchesNoTask,
    DispatchesSleeper,
    DispatchesRunning,
    DispatchesWhereItMayNot,
    GivesNoTime,
    Loses,
    GivesUp,
    TicksWithoutPause,
    SearchesNoQueue,
}

impl Fault {
    pub const ALL: [Fault; 17] = [
        Fault::SelectsNoCpu,
        Fault::KicksNoCpu,
        Fault::PreemptsNoCpu,
        Fault::KicksNoCpuLater,
        Fault::KicksInThePast,
        Fault::KicksLaterUndeclared,
        Fault::KicksNoCpuWhenIdle,
        Fault::PreemptsNoCpuAtTick,
        Fault::DispatchesNoTask,
        Fault::DispatchesSleeper,
        Fault::DispatchesRunning,
        Fault::DispatchesWhereItMayNot,
        Fault::GivesNoTime,
        Fault::Loses,
        Fault::GivesUp,
        Fault::TicksWithoutPause,
        Fault::SearchesNoQueue,
    ];
}

/// One queue for all CPUs, first come, first served.
#[derive(Clone)]
pub struct Canary {
    fault: Fault,
    queue: Vec<TaskId>,
}

const NOWHERE: CpuId = CpuId(99);

impl Canary {
    pub fn new(fault: Fault) -> Canary {
        Canary { fault, queue: Vec::new() }
    }
}

impl Policy for Canary {
    fn needs(&self) -> Needs {
        let tick = Nanos(if self.fault == Fault::TicksWithoutPause { 0 } else { 4_000_000 });
        let alarm = matches!(self.fault, Fault::KicksInThePast | Fault::KicksNoCpuLater);
        Needs { tick: Some(tick), alarm, ..Needs::default() }
    }

    fn scan(&self, _cpu: CpuId) -> Scan {
        Scan {
            queue: if self.fault == Fault::SearchesNoQueue { NOWHERE } else { CpuId(0) },
            entries: 1,
        }
    }

    fn init_task(&mut self, _cx: &mut Context, _task: TaskId) {}

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        if self.fault == Fault::SelectsNoCpu {
            NOWHERE
        } else {
            cx.idle_cpu_for(task).unwrap_or(CpuId(0))
        }
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, _cpu: CpuId, _why: Enqueue) -> Effect {
        self.queue.push(task);
        match self.fault {
            Fault::KicksNoCpu => return Effect::Kick(NOWHERE),
            Fault::PreemptsNoCpu => return Effect::Preempt(NOWHERE),
            Fault::KicksNoCpuLater => return Effect::KickAt(NOWHERE, Time::NEVER),
            Fault::KicksInThePast if cx.now() > Time(1) => {
                return Effect::KickAt(CpuId(0), Time(1));
            }
            Fault::KicksLaterUndeclared => return Effect::KickAt(CpuId(0), Time::NEVER),
            Fault::GivesUp => cx.fail(Callback::Enqueue, "no more"),
            _ => {}
        }
        // The second task shall find CPU 1 awake.
        let idle = if self.fault == Fault::DispatchesWhereItMayNot {
            cx.idle().first()
        } else {
            cx.idle_cpu_for(task)
        };
        idle.map_or(Effect::Nothing, Effect::Kick)
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.queue.retain(|&other| other != task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let found = self.queue.iter().position(|&task| {
            cx.allowed(task, cpu) || self.fault == Fault::DispatchesWhereItMayNot
        });
        let task = found.map(|at| self.queue.remove(at));
        let slice = Nanos(if self.fault == Fault::GivesNoTime { 0 } else { 100_000_000 });
        let task = match self.fault {
            Fault::Loses => None,
            Fault::DispatchesNoTask => Some(TaskId(99)),
            Fault::DispatchesSleeper if task.is_none() => Some(TaskId(0)),
            Fault::DispatchesRunning if cpu == CpuId(1) => Some(TaskId(0)),
            _ => task,
        };
        task.map(|task| Dispatch { task, slice })
    }

    fn stopping(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId, _why: Stop) {}

    fn update_idle(&mut self, _cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        if self.fault == Fault::KicksNoCpuWhenIdle && idle {
            Effect::Kick(NOWHERE)
        } else {
            Effect::Nothing
        }
    }

    fn tick(&mut self, _cx: &mut Context, _cpu: CpuId, _task: TaskId) -> Effect {
        if self.fault == Fault::PreemptsNoCpuAtTick {
            Effect::Preempt(NOWHERE)
        } else {
            Effect::Nothing
        }
    }
}
