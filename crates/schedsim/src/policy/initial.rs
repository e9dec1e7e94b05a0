//! Initial placement: a task is put on a CPU when it arrives and stays there.
//!
//! No task ever migrates, so caches stay warm and CPUs share nothing; but one CPU idles while another has a queue. Right when migrations are
//! dear. Source: Curran & Stumm 1990, §3.4 (IP): the CPU with the fewest tasks, ready or blocked, running ones among them; equal CPUs are
//! drawn at random, which the paper leaves open.

use super::{Context, Dispatch, Effect, Enqueue, Levels, Policy, Promises, Wake, renew};
use crate::{CpuId, Nanos, TaskId};
use readyq::{Node, Nodes, ReadyQueue};

/// A ready queue of order `Q` per CPU, which tasks never leave.
#[derive(Clone, Debug)]
pub struct Initial<Q> {
    queues: Vec<Q>,
    nodes: Vec<Node>,
    /// Live tasks placed on each CPU.
    placed: Vec<u32>,
    options: Options,
}

/// Parameters of [`Initial`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a task runs before it goes back to its queue.
    pub quantum: Nanos,
    /// How priorities become levels.
    pub levels: Levels,
    /// Whether a woken task stops a running task of a worse level at once.
    pub preempt: bool,
}

impl<Q: ReadyQueue + Clone> Initial<Q> {
    /// The policy for `cpus` CPUs, each with a copy of the empty `queue`.
    pub fn new(queue: Q, cpus: u16, options: Options) -> Self {
        let cpus = usize::from(cpus);
        Initial { queues: vec![queue; cpus], nodes: Vec::new(), placed: vec![0; cpus], options }
    }
}

impl<Q: ReadyQueue + Clone> Policy for Initial<Q> {
    fn promises(&self) -> Promises {
        Promises { work_conserving: false, locally_work_conserving: true }
    }

    fn migrates(&self) -> bool {
        false
    }

    fn init_task(&mut self, _cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.placed[cx.task(task).cpu.index()] -= 1;
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        if !wake.new {
            return cx.task(task).cpu;
        }
        let cpu = cx.least(task, |_, cpu| self.placed[cpu.index()]);
        self.placed[cpu.index()] += 1;
        cpu
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let level = self.options.levels.of(cx.task(task).prio);
        self.queues[cpu.index()].insert(Nodes::from_mut(&mut self.nodes), task, level);
        if cx.idle().contains(cpu) {
            return Effect::Kick(cpu);
        }
        let woken = matches!(why, Enqueue::New | Enqueue::Wakeup);
        match cx.current(cpu) {
            Some(running) if self.options.preempt && woken && self.options.levels.of(cx.task(running).prio) > level => Effect::Preempt(cpu),
            _ => Effect::Nothing,
        }
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        self.queues[cx.task(task).cpu.index()].remove(Nodes::from_mut(&mut self.nodes), task);
    }

    fn dispatch(&mut self, _cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let task = self.queues[cpu.index()].pop(Nodes::from_mut(&mut self.nodes))?;
        Some(Dispatch { task, slice: self.options.quantum })
    }
}
