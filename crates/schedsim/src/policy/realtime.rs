//! Linux's real-time classes, `SCHED_FIFO` and `SCHED_RR`: a class of tasks that run before all others, by priority.
//!
//! Not a policy: `fifo` and `rr` are this class alone, and the fair schedulers have it above them. Who runs stays in the list of its priority. So a
//! preempted task is still at the head of it; a woken one, one that yields and one whose quantum is over go to the tail. A quantum that was interrupted,
//! by preemption, sleep or yielding, goes on where it was. Which of the two a task is, its [`TaskClass`] says, or an option for all that have none.
//!
//! Several CPUs: each has lists of its own. A task wakes where it last was, if it may run there at once, else on the CPU that runs what matters least. When
//! a CPU chooses, it takes what matters more from others; when a task has to wait and a CPU runs what matters less, that one is told to choose. So no
//! task waits while a less important one runs where it could.
//!
//! Source: POSIX.1-2024, 2.8.4 (Process Scheduling); Linux 6.18, `kernel/sched/rt.c`: `enqueue_rt_entity`, `requeue_task_rt`, `yield_task_rt`, `task_tick_rt`,
//! `select_task_rq_rt`, `find_lowest_rq`, `wakeup_preempt_rt`, `push_rt_task`, `pull_rt_task`, `sched_rt_runtime_exceeded`, `do_sched_rt_period_timer`. Priority 0,
//! which the kernel shows for its stop class (`migration/N`), is the best of them.
//!
//! Deviations: a quantum is exact, where the kernel counts ticks (up to 4 ms shorter or longer); it includes the cost of the switch to the task
//! if it is interrupted. A waking task does not push a running equal to another CPU
//! (`check_preempt_equal_prio`). Among CPUs that run fair tasks, the one with the worst nice value is preempted. A push that affinity makes
//! necessary and the kernel misses until its next chance is made at once. Throttling is counted in seconds since the start; what it throttles is decided per CPU, as without
//! `RT_GROUP_SCHED`.

mod placement;
mod throttle;

use super::options::OptionSpec;
use super::{Context, Dispatch, Effect, Enqueue, Promises, Stop, renew};
use crate::workload::TaskClass;
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use placement::Best;
use readyq::{Level, Node, Nodes, Priority, ReadyQueue};
use throttle::Throttle;

/// The period of throttling and of the fair server (`sched_rt_period_us`).
pub const PERIOD: Nanos = Nanos::from_millis(1000);

/// How long a `SCHED_RR` task runs before its equals, unless an option says (`RR_TIMESLICE`).
pub const QUANTUM: Nanos = Nanos::from_millis(100);
/// The option of every scheduler with real-time tasks.
pub(super) const THROTTLE: OptionSpec =
    OptionSpec::duration("throttle", "for how long real-time tasks may run in each second on each CPU").unset("no limit");

/// Parameters of the real-time classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Tasks with a smaller kernel priority are real-time: 100 in Linux, 140 if all are.
    pub below: u8,
    /// How long a task runs before its equals (`sched_rr_timeslice_ms`); `None` is `SCHED_FIFO` for all that do not ask for `SCHED_RR`.
    pub quantum: Option<Nanos>,
    /// How long real-time tasks may run in each second on each CPU (`sched_rt_runtime_us`). What idles then idles.
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
    /// CPUs that have been told to choose anew and have not done so.
    told: CpuSet,
    /// How many wait, on all CPUs.
    waiting: u32,
    /// Tasks that may not run everywhere.
    restricted: u32,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// Those that run or wait here.
    tasks: Priority,
    waiting: u32,
    running: Option<TaskId>,
    /// Until when the running one has been charged.
    charged: Time,
    /// Whether something else than real-time tasks shall run, whoever waits.
    is_lent: bool,
    throttle: Throttle,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// Where it runs or waits.
    cpu: CpuId,
    /// How long it runs before its equals; `Nanos::MAX` is `SCHED_FIFO`.
    quantum: Nanos,
    /// What is left of that.
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
            charged: Time::ZERO,
            is_lent: false,
            throttle: Throttle::new(options.throttle),
        };
        let queues = vec![queue; usize::from(cpus)];
        RealTime { options, queues, tasks: Vec::new(), nodes: Vec::new(), told: CpuSet::empty(cpus), waiting: 0, restricted: 0 }
    }

    /// Whether `task` is of this class.
    #[inline]
    pub fn has(&self, cx: &Context, task: TaskId) -> bool {
        cx.task(task).prio < self.options.below
    }

    /// What it promises, unless it is throttled.
    pub fn promises(&self) -> Promises {
        match self.options {
            Options { below, quantum, throttle: None } => Promises { strict_below: below, quantum, ..Promises::default() },
            _ => Promises::default(),
        }
    }

    /// How many wait on `cpu`.
    #[inline]
    pub fn waiting_on(&self, cpu: CpuId) -> u32 {
        self.queues[cpu.index()].waiting
    }

    /// Whether a tick has anything to do.
    pub fn needs_ticks(&self) -> bool {
        self.options.throttle.is_some()
    }

    /// What runs on `cpu` shall stop; or it shall choose, if it idles.
    #[inline]
    pub fn tell(&mut self, cpu: CpuId) -> Effect {
        self.told.insert(cpu);
        Effect::Preempt(cpu)
    }

    /// Whether `cpu` has been told to choose anew.
    #[inline]
    pub fn is_told(&self, cpu: CpuId) -> bool {
        self.told.contains(cpu)
    }

    /// `cpu` is choosing.
    #[inline]
    pub fn chooses(&mut self, cpu: CpuId) {
        self.told.remove(cpu);
    }

    /// Gives `cpu` to other classes, or takes it back.
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

    /// `task`, which ran on `cpu` as one of another class, is of this one.
    pub fn join(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        self.insert(cx, task, cpu);
    }

    /// `task`, which has just stopped running, is of this class no longer.
    pub fn leave(&mut self, task: TaskId) {
        self.take_out(task);
    }

    /// `task` waits from now on.
    pub fn enqueue(&mut self, cx: &Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let entry = &mut self.tasks[task.index()];
        let turn_is_over = entry.left == Nanos::ZERO;
        if turn_is_over {
            entry.left = entry.quantum;
        }
        let is_here = !matches!(why, Enqueue::New | Enqueue::Wakeup);
        let goes_to_tail = turn_is_over || why != Enqueue::Preempted;
        if is_here && goes_to_tail {
            self.take_out(task);
        }
        if goes_to_tail {
            self.insert(cx, task, cpu);
        }
        self.queues[cpu.index()].waiting += 1;
        self.waiting += 1;
        if is_here && self.best(cx, cpu).is_some_and(|best| best.task == task) {
            // It goes on. If it matters more than it did, whoever was to have its CPU needs another.
            let takes_back = why == Enqueue::PrioChanged && self.is_told(cpu);
            return if takes_back { self.push(cx, Some(task)) } else { Effect::Nothing };
        }
        if !is_here && self.runs_less(cx, cpu, cx.task(task).prio) {
            return self.tell(cpu);
        }
        if let Some(victim) = self.victim(cx, task) {
            return self.tell(victim);
        }
        if self.restricted > 0 && self.waiting > 1 {
            return self.push(cx, None); // it may take the CPU that was meant for another
        }
        self.alarm(cx, cpu)
    }

    /// `task` waits no longer.
    pub fn dequeue(&mut self, task: TaskId) {
        self.take_out(task);
        self.queues[self.tasks[task.index()].cpu.index()].waiting -= 1;
        self.waiting -= 1;
    }

    /// The task that `cpu` shall run from now on, and for how long at most.
    pub fn pick(&mut self, cx: &Context, cpu: CpuId) -> Option<Dispatch> {
        let Best { task, from, .. } = self.best(cx, cpu)?;
        self.queues[from.index()].waiting -= 1;
        self.waiting -= 1;
        if from != cpu {
            self.take_out(task);
            self.insert(cx, task, cpu);
        }
        let queue = &mut self.queues[cpu.index()];
        (queue.running, queue.charged) = (Some(task), cx.now());
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

    /// `cpu` has become idle, or has left idle: whoever was passed over may need another CPU.
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
        let is_released = queue.running.is_none() && queue.waiting > 0 && self.best(cx, cpu).is_some();
        if (is_over || is_released) && !self.is_told(cpu) { self.tell(cpu) } else { Effect::Nothing }
    }

    /// By its own class, or by the option that says what all are that do not say.
    fn quantum(&self, cx: &Context, task: TaskId) -> Nanos {
        match cx.task(task).attributes.class {
            TaskClass::Fifo => Nanos::MAX,
            TaskClass::RoundRobin => self.options.quantum.unwrap_or(QUANTUM),
            TaskClass::ByPriority | TaskClass::Batch | TaskClass::Idle => self.options.quantum.unwrap_or(Nanos::MAX),
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

    /// What runs on `cpu` pays for its time until `now`.
    fn charge(&mut self, cpu: CpuId, now: Time) {
        let queue = &mut self.queues[cpu.index()];
        if let Some(task) = queue.running {
            let ran = now.since(queue.charged);
            queue.charged = now;
            queue.throttle.spend(ran, now);
            let entry = &mut self.tasks[task.index()];
            if entry.quantum < Nanos::MAX {
                entry.left = entry.left.saturating_sub(ran);
            }
        }
    }

    /// When the idle `cpu` shall look again because those that wait are throttled until then.
    fn alarm(&self, cx: &Context, cpu: CpuId) -> Effect {
        let queue = &self.queues[cpu.index()];
        if queue.throttle.is_on(cx.now()) && queue.waiting > 0 && cx.idle().contains(cpu) {
            return Effect::KickAt(cpu, queue.throttle.until());
        }
        Effect::Nothing
    }
}
