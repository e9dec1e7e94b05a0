//! Linux's real-time class, `SCHED_FIFO` and `SCHED_RR`: tasks that run before all others, by
//! priority.
//!
//! This is not a policy: `fifo` and `rr` consist of this class alone, and the fair schedulers run
//! below it. A running task stays in the list of its priority, so a preempted one is still at its
//! head. A task that wakes, yields or has used its quantum goes to the tail. A quantum that was
//! interrupted, by preemption, sleep or yielding, continues. Its [`TaskClass`], or an option for
//! tasks without one, selects between the two policies.
//!
//! Each CPU has its own lists. A task wakes on its last CPU, if it can run there at once, else on
//! the CPU that runs the least important task. A CPU that dispatches takes more important tasks
//! from other CPUs. When a task has to wait and a CPU runs a less important one, that CPU is
//! preempted. So no task waits while a less important one runs on a CPU that it may use. A task for
//! which a CPU was woken or is about to stop another one stays there.
//!
//! Source: POSIX.1-2024, 2.8.4 (Process Scheduling); Linux 6.18, `kernel/sched/rt.c`:
//! `enqueue_rt_entity`, `requeue_task_rt`, `yield_task_rt`, `task_tick_rt`, `select_task_rq_rt`,
//! `find_lowest_rq`, `wakeup_preempt_rt`, `push_rt_task`, `pull_rt_task`,
//! `sched_rt_runtime_exceeded`, `do_sched_rt_period_timer`. Priority 0, which the kernel shows for
//! its stop class (`migration/N`), is the best of them.
//!
//! Deviations: a quantum is exact, where the kernel counts ticks (up to 4 ms shorter or longer). It
//! includes the cost of the switch to the task if it is interrupted. A waking task does not push a
//! running equal to another CPU (`check_preempt_equal_prio`). Among CPUs that run fair tasks, the
//! one with the worst nice value is preempted. A push that affinity makes necessary, and that the
//! kernel misses until its next chance, happens at once. Throttling counts in seconds since the
//! start, per CPU, as without `RT_GROUP_SCHED`.

mod placement;
mod throttle;

use super::options::OptionSpec;
use super::{Context, Dispatch, Effect, Enqueue, Promises, Stop, renew};
use crate::workload::{Affinity, TaskClass};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use placement::Best;
use readyq::{Level, Node, Nodes, Priority, ReadyQueue};
use throttle::Throttle;

/// The period of throttling and of the fair server (`sched_rt_period_us`).
pub const PERIOD: Nanos = Nanos::from_millis(1000);

/// The quantum of a `SCHED_RR` task, unless an option sets it (`RR_TIMESLICE`).
pub const QUANTUM: Nanos = Nanos::from_millis(100);
/// The option of every scheduler with real-time tasks.
pub(super) const THROTTLE: OptionSpec = OptionSpec::duration(
    "throttle",
    "for how long real-time tasks may run in each second on each CPU",
)
.unset("no limit");

/// Parameters of the real-time classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tasks with a smaller kernel priority are real-time: 100 in Linux, 140 if all tasks are.
    pub below: u8,
    /// The quantum (`sched_rr_timeslice_ms`); `None` means `SCHED_FIFO` for all tasks that are not
    /// `SCHED_RR`.
    pub quantum: Option<Nanos>,
    /// The time per second that real-time tasks may run on each CPU (`sched_rt_runtime_us`). A
    /// throttled CPU without other tasks idles.
    pub throttle: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options { below: 100, quantum: None, throttle: None }
    }
}

/// The real-time tasks of all CPUs.
#[derive(Clone, Debug)]
pub struct RealTime {
    options: Options,
    queues: Vec<Queue>,
    tasks: Vec<Task>,
    nodes: Vec<Node>,
    /// CPUs that have received a kick or preemption and have not dispatched since.
    kicked: CpuSet,
    /// The number of waiting tasks on all CPUs.
    waiting: u32,
    /// The number of tasks with restricted affinity.
    restricted: u32,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// The tasks that run or wait here.
    tasks: Priority,
    waiting: u32,
    running: Option<TaskId>,
    /// The running task has been charged until this time.
    exec_start: Time,
    /// Whether other classes run here even if real-time tasks wait.
    is_lent: bool,
    throttle: Throttle,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// The CPU on which it runs or waits.
    cpu: CpuId,
    /// Its quantum; `Nanos::MAX` is `SCHED_FIFO`.
    quantum: Nanos,
    /// What is left of the quantum.
    left: Nanos,
}

impl Queue {
    /// Whether real-time tasks may not run here now.
    fn is_closed(&self, now: Time) -> bool {
        self.is_lent || self.throttle.is_on(now)
    }
}

impl RealTime {
    /// No tasks, `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> RealTime {
        let queue = Queue {
            tasks: Priority::new(),
            waiting: 0,
            running: None,
            exec_start: Time::ZERO,
            is_lent: false,
            throttle: Throttle::new(options.throttle),
        };
        let queues = vec![queue; usize::from(cpus)];
        RealTime {
            options,
            queues,
            tasks: Vec::new(),
            nodes: Vec::new(),
            kicked: CpuSet::empty(cpus),
            waiting: 0,
            restricted: 0,
        }
    }

    /// Whether `task` is in this class.
    #[inline]
    pub fn has(&self, cx: &Context, task: TaskId) -> bool {
        cx.task(task).prio < self.options.below
    }

    /// The promises of this class, unless it is throttled.
    pub fn promises(&self) -> Promises {
        match self.options {
            Options { below, quantum, throttle: None } => {
                Promises { strict_below: below, quantum, ..Promises::default() }
            }
            _ => Promises::default(),
        }
    }

    /// The number of waiting tasks on `cpu`.
    #[inline]
    pub fn waiting_on(&self, cpu: CpuId) -> u32 {
        self.queues[cpu.index()].waiting
    }

    /// Whether ticks have any effect.
    pub fn needs_ticks(&self) -> bool {
        self.options.throttle.is_some()
    }

    /// Preempts the task on `cpu`, or kicks the CPU if it idles.
    #[inline]
    pub fn kick(&mut self, cpu: CpuId) -> Effect {
        self.kicked.insert(cpu);
        Effect::Preempt(cpu)
    }

    /// Whether `cpu` has received a kick or preemption and has not dispatched since.
    #[inline]
    pub fn is_kicked(&self, cpu: CpuId) -> bool {
        self.kicked.contains(cpu)
    }

    /// `cpu` dispatches.
    #[inline]
    pub fn chooses(&mut self, cpu: CpuId) {
        self.kicked.remove(cpu);
    }

    /// Lends `cpu` to other classes, or takes it back.
    pub fn lend(&mut self, cpu: CpuId, lend: bool) {
        self.queues[cpu.index()].is_lent = lend;
    }

    pub fn init_task(&mut self, cx: &Context, task: TaskId) {
        renew(&mut self.nodes, task);
        let quantum = self.quantum(cx, task);
        let new = Task { cpu: cx.task(task).cpu, quantum, left: quantum };
        let len = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(len, new);
        self.tasks[task.index()] = new;
        self.restricted += u32::from(cx.is_restricted(task));
    }

    pub fn exit_task(&mut self, cx: &Context, task: TaskId) {
        self.restricted -= u32::from(cx.is_restricted(task));
    }

    /// `task`, which ran on `cpu` in another class, joins this one.
    pub fn join(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        self.insert(cx, task, cpu);
    }

    /// `task`, which has just stopped running, leaves this class.
    pub fn leave(&mut self, task: TaskId) {
        self.take_out(task);
    }

    /// `task` starts to wait.
    pub fn enqueue(&mut self, cx: &Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let entry = &mut self.tasks[task.index()];
        let slice_is_over = entry.left == Nanos::ZERO;
        if slice_is_over {
            entry.left = entry.quantum;
        }
        let is_here = !why.comes();
        let goes_to_tail = slice_is_over || why != Enqueue::Preempted;
        if is_here && goes_to_tail {
            self.take_out(task);
        }
        if goes_to_tail {
            self.insert(cx, task, cpu);
        }
        self.queues[cpu.index()].waiting += 1;
        self.waiting += 1;
        if is_here && self.best(cx, cpu).is_some_and(|best| best.task == task) {
            // It continues. If it became more important, the task that was to get its CPU needs
            // another one.
            let takes_back = why == Enqueue::PrioChanged && self.is_kicked(cpu);
            return if takes_back { self.push(cx, Some(task)) } else { Effect::Nothing };
        }
        if !is_here && self.runs_less(cx, cpu, cx.task(task).prio) {
            return self.kick(cpu);
        }
        if let Some(victim) = self.victim(cx, task) {
            return self.kick(victim);
        }
        if self.restricted > 0 && self.waiting > 1 {
            return self.push(cx, None); // it may take the CPU that was meant for another
        }
        self.alarm(cx, cpu)
    }

    /// The priority of `task`, which does not wait, has changed. A running task goes to the tail of
    /// its new list, and is preempted if another comes first now.
    pub fn set_weight(&mut self, cx: &Context, task: TaskId) -> Effect {
        let Some(cpu) = cx.runs_on(task) else { return Effect::Nothing };
        self.take_out(task);
        self.insert(cx, task, cpu);
        let is_first = self.best(cx, cpu).is_none_or(|best| best.task == task);
        if is_first || self.is_kicked(cpu) { Effect::Nothing } else { self.kick(cpu) }
    }

    /// The affinity of `task`, which does not wait, has changed.
    pub fn set_cpumask(&mut self, cx: &Context, task: TaskId, old: Affinity) {
        self.restricted += u32::from(cx.is_restricted(task));
        self.restricted -= u32::from(old != Affinity::Any);
    }

    /// `task` no longer waits.
    pub fn dequeue(&mut self, task: TaskId) {
        self.take_out(task);
        self.queues[self.tasks[task.index()].cpu.index()].waiting -= 1;
        self.waiting -= 1;
    }

    /// The task that `cpu` runs next, with its slice.
    pub fn pick(&mut self, cx: &Context, cpu: CpuId) -> Option<Dispatch> {
        let Best { task, from, .. } = self.best(cx, cpu)?;
        self.queues[from.index()].waiting -= 1;
        self.waiting -= 1;
        if from != cpu {
            self.take_out(task);
            self.insert(cx, task, cpu);
        }
        let queue = &mut self.queues[cpu.index()];
        (queue.running, queue.exec_start) = (Some(task), cx.now());
        Some(Dispatch { task, slice: self.tasks[task.index()].left })
    }

    /// A task of this class stops running on `cpu`.
    pub fn stopping(&mut self, cx: &Context, cpu: CpuId, task: TaskId, why: Stop) {
        self.charge(cpu, cx.now());
        if why == Stop::SliceOver {
            self.tasks[task.index()].left = Nanos::ZERO;
        }
        if !why.is_runnable() {
            self.take_out(task);
        }
        self.queues[cpu.index()].running = None;
    }

    /// `cpu` has become idle or has left idle: a task that was passed over may need another CPU.
    pub fn update_idle(&mut self, cx: &Context, cpu: CpuId, idle: bool) -> Effect {
        match self.waiting {
            0 => Effect::Nothing,
            _ if idle => self.alarm(cx, cpu),
            _ => self.push(cx, None),
        }
    }

    /// The tick: throttles and releases `cpu`.
    pub fn tick(&mut self, cx: &Context, cpu: CpuId) -> Effect {
        self.charge(cpu, cx.now());
        let queue = &mut self.queues[cpu.index()];
        let is_over = queue.running.is_some() && queue.throttle.is_due(cx.now());
        let is_released =
            queue.running.is_none() && queue.waiting > 0 && self.best(cx, cpu).is_some();
        if (is_over || is_released) && !self.is_kicked(cpu) {
            self.kick(cpu)
        } else {
            Effect::Nothing
        }
    }

    /// The quantum of a task: by its class, or by the option for tasks without one.
    fn quantum(&self, cx: &Context, task: TaskId) -> Nanos {
        match cx.task(task).attributes.class {
            TaskClass::Fifo => Nanos::MAX,
            TaskClass::RoundRobin => self.options.quantum.unwrap_or(QUANTUM),
            TaskClass::ByPriority | TaskClass::Batch | TaskClass::Idle => {
                self.options.quantum.unwrap_or(Nanos::MAX)
            }
        }
    }

    fn insert(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        let level = Level(u16::from(cx.task(task).prio));
        self.queues[cpu.index()].tasks.insert(Nodes::from_mut(&mut self.nodes), task, level);
        self.tasks[task.index()].cpu = cpu;
    }

    fn take_out(&mut self, task: TaskId) {
        let cpu = self.tasks[task.index()].cpu;
        self.queues[cpu.index()].tasks.remove(Nodes::from_mut(&mut self.nodes), task);
    }

    /// Charges the running task of `cpu` until `now`.
    fn charge(&mut self, cpu: CpuId, now: Time) {
        let queue = &mut self.queues[cpu.index()];
        if let Some(task) = queue.running {
            let ran = now.since(queue.exec_start);
            queue.exec_start = now;
            queue.throttle.spend(ran, now);
            let entry = &mut self.tasks[task.index()];
            if entry.quantum < Nanos::MAX {
                entry.left = entry.left.saturating_sub(ran);
            }
        }
    }

    /// When the idle `cpu` must check again because its waiting tasks are throttled until then.
    fn alarm(&self, cx: &Context, cpu: CpuId) -> Effect {
        let queue = &self.queues[cpu.index()];
        if queue.throttle.is_on(cx.now()) && queue.waiting > 0 && cx.idle().contains(cpu) {
            return Effect::KickAt(cpu, queue.throttle.until());
        }
        Effect::Nothing
    }
}
