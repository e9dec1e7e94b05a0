//! Take: a queue per CPU, and an idle CPU takes a task from the CPU with most waiting.
//!
//! Migrates only when a CPU would idle otherwise: the load is balanced and busy CPUs leave each other alone. Right for most machines; it
//! does not balance what waits while all CPUs are busy. Source: Curran & Stumm 1990, §3.4 (TK). A task arrives at the CPU with the fewest ready tasks.
//!
//! What the paper leaves open: an idle CPU looks when it becomes idle and, with `polling`, at any later time at which a task waits somewhere
//! (default; the text can be read either way). It takes the task which the other CPU would run next. A running task counts as ready.
//! Equal CPUs are drawn at random for arrivals; of equally long queues the lowest-numbered is raided.

use super::{Context, Dispatch, Effect, Enqueue, Levels, Policy, Promises, Wake, renew};
use crate::{CpuId, Nanos, TaskId};
use readyq::{Node, Nodes, ReadyQueue};

/// A ready queue of order `Q` per CPU, which idle CPUs raid.
#[derive(Clone, Debug)]
pub struct Take<Q> {
    queues: Vec<Q>,
    /// Tasks waiting in each queue.
    waiting: Vec<u32>,
    /// In which queue each task waits, if it waits.
    queued_on: Vec<CpuId>,
    nodes: Vec<Node>,
    options: Options,
    restricted: usize,
}

/// Parameters of [`Take`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a task runs before it goes back to a queue.
    pub quantum: Nanos,
    /// How priorities become levels.
    pub levels: Levels,
    /// Whether an idle CPU goes on looking while it idles, or looks once, when it becomes idle.
    pub polling: bool,
    /// Whether a woken task stops a running task of a worse level at once.
    pub preempt: bool,
}

impl<Q: ReadyQueue + Clone> Take<Q> {
    /// The policy for `cpus` CPUs, each with a copy of the empty `queue`.
    pub fn new(queue: Q, cpus: u16, options: Options) -> Self {
        let cpus = usize::from(cpus);
        Take { queues: vec![queue; cpus], waiting: vec![0; cpus], queued_on: Vec::new(), nodes: Vec::new(), options, restricted: 0 }
    }

    /// Takes a task that may run on `cpu` out of the longest queue that has one.
    fn raid(&mut self, cx: &Context, cpu: CpuId) -> Option<TaskId> {
        let nodes = Nodes::from_mut(&mut self.nodes);
        let longest = |queues: &[u32]| {
            (0..queues.len()).filter(|&other| queues[other] > 0).max_by_key(|&other| (queues[other], std::cmp::Reverse(other)))
        };
        if self.restricted == 0 {
            let other = longest(&self.waiting)?;
            self.waiting[other] -= 1;
            return self.queues[other].pop(nodes);
        }
        let mut left = self.waiting.clone();
        while let Some(other) = longest(&left) {
            if let Some(task) = self.queues[other].find(nodes, |task| cx.allowed(task, cpu)) {
                self.queues[other].remove(nodes, task);
                self.waiting[other] -= 1;
                return Some(task);
            }
            left[other] = 0;
        }
        None
    }
}

impl<Q: ReadyQueue + Clone> Policy for Take<Q> {
    fn promises(&self) -> Promises {
        Promises { work_conserving: self.options.polling, locally_work_conserving: true }
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
        if task.index() >= self.queued_on.len() {
            self.queued_on.resize(task.index() + 1, CpuId(0));
        }
        self.restricted += usize::from(cx.is_restricted(task));
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.restricted -= usize::from(cx.is_restricted(task));
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        if wake.new { cx.least(task, |cx, cpu| self.waiting[cpu.index()] + u32::from(!cx.idle().contains(cpu))) } else { cx.task(task).cpu }
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let level = self.options.levels.of(cx.task(task).prio);
        self.queues[cpu.index()].insert(Nodes::from_mut(&mut self.nodes), task, level);
        self.waiting[cpu.index()] += 1;
        self.queued_on[task.index()] = cpu;
        if self.waiting[cpu.index()] == 1 && matches!(why, Enqueue::SliceOver | Enqueue::Yielded) {
            return Effect::Nothing; // `cpu` itself is about to dispatch and finds it
        }
        if cx.idle().contains(cpu) {
            return Effect::Kick(cpu);
        }
        if self.options.polling
            && let Some(idle) = cx.idle_cpu_for(task)
        {
            return Effect::Kick(idle);
        }
        let woken = matches!(why, Enqueue::New | Enqueue::Wakeup);
        match cx.current(cpu) {
            Some(running) if self.options.preempt && woken && self.options.levels.of(cx.task(running).prio) > level => Effect::Preempt(cpu),
            _ => Effect::Nothing,
        }
    }

    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        // The CPU may have been kicked for another task than it took. If all tasks run everywhere, that one gets the CPU kicked for this one.
        if idle || !self.options.polling || self.restricted == 0 || cx.idle().is_empty() {
            return Effect::Nothing;
        }
        let nodes = Nodes::from_mut(&mut self.nodes);
        let passed_over = self.queues.iter().find_map(|queue| queue.find(nodes, |task| cx.idle_cpu_for(task).is_some()));
        passed_over.and_then(|task| cx.idle_cpu_for(task)).map_or(Effect::Nothing, Effect::Kick)
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        let cpu = self.queued_on[task.index()].index();
        self.queues[cpu].remove(Nodes::from_mut(&mut self.nodes), task);
        self.waiting[cpu] -= 1;
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let slice = self.options.quantum;
        let task = match self.queues[cpu.index()].pop(Nodes::from_mut(&mut self.nodes)) {
            Some(task) => {
                self.waiting[cpu.index()] -= 1;
                task
            }
            None => self.raid(cx, cpu)?,
        };
        Some(Dispatch { task, slice })
    }
}
