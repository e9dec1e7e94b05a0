//! Initial placement: a task is placed on a CPU when it arrives and stays there.
//!
//! No task ever migrates, so caches stay warm and CPUs share nothing; but a CPU may idle while
//! another has a queue. Right when migrations are expensive. Source: Curran & Stumm 1990, §3.4
//! (IP): the CPU with the fewest tasks, ready, blocked or running. Their variants: `heavy` counts
//! processor-intensive tasks several times (§5.2). `count` counts only tasks of an equal or better
//! level (§5.3). `measure` uses utilisation as load (§6).
//!
//! The paper does not say which of several equal CPUs is chosen (`ties`; at random by default).

use super::descriptor::{Descriptor, Given};
use super::loads::{Loads, Ties};
use super::options::OptionSpec;
use super::topology::{self, Count, Measure, Orders, Topology};
use super::utilisation::Utilisation;
use super::{
    Context, Dispatch, Effect, Enqueue, Levels, Needs, Policy, Promises, Reweight, Stop, Wake,
    fetch, renew,
};
use crate::workload::Affinity;
use crate::{CpuId, Nanos, TaskId};
use readyq::{Node, Nodes, ReadyQueue};
use std::marker::PhantomData;

/// A ready queue of order `Q` per CPU, which tasks never leave.
#[derive(Clone, Debug)]
pub struct Initial<Q> {
    queues: Vec<Q>,
    /// The number of waiting tasks in each.
    waiting: Vec<u32>,
    nodes: Vec<Node>,
    /// The CPU of each task.
    homes: Vec<CpuId>,
    /// The number of live tasks on each CPU; a processor-intensive one counts `heavy` times.
    placed: Loads,
    /// The same per CPU and level, with `Count::Level`.
    by_level: Vec<u32>,
    /// With `Measure::Utilisation`.
    utilisation: Utilisation,
    options: Options,
}

/// Parameters of [`Initial`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a task runs before it goes back to its queue.
    pub quantum: Nanos,
    /// The mapping of priorities to levels.
    pub levels: Levels,
    /// Whether a woken task preempts a running task of a worse level.
    pub preempt: bool,
    /// The load that is compared when a task is placed.
    pub measure: Measure,
    /// Which tasks count.
    pub count: Count,
    /// How many tasks a processor-intensive one counts for, at least one; in the paper 25.
    pub heavy: u32,
    /// How ties between CPUs are broken.
    pub ties: Ties,
}

/// The home of a task that has none yet.
const NOT_PLACED: CpuId = CpuId(u16::MAX);

impl Options {
    /// The paper's Baseline System, with this quantum.
    pub fn baseline(quantum: Nanos) -> Options {
        let levels = Levels::new(1);
        Options {
            quantum,
            levels,
            preempt: false,
            measure: Measure::Tasks,
            count: Count::All,
            heavy: 1,
            ties: Ties::Random,
        }
    }
}

impl<Q: ReadyQueue + Clone> Initial<Q> {
    /// The policy for `cpus` CPUs, each with a copy of the empty `queue`.
    pub fn new(queue: Q, cpus: u16, options: Options) -> Self {
        let levels = if options.count == Count::Level { options.levels.count() } else { 0 };
        Initial {
            queues: vec![queue; usize::from(cpus)],
            waiting: vec![0; usize::from(cpus)],
            nodes: Vec::new(),
            homes: Vec::new(),
            placed: Loads::new(cpus),
            by_level: vec![0; usize::from(cpus) * levels],
            utilisation: Utilisation::new(cpus),
            options,
        }
    }

    /// The CPU for a new task.
    fn place(&self, cx: &mut Context, task: TaskId) -> CpuId {
        let Options { measure, count, levels, ties, .. } = self.options;
        match (measure, count) {
            (Measure::Utilisation, _) => cx.least(task, ties, |_, cpu| self.utilisation.of(cpu)),
            (Measure::Tasks, Count::Level) => {
                let level = usize::from(levels.of(cx.task(task).prio).0);
                cx.least(task, ties, |_, cpu| {
                    let row = cpu.index() * levels.count();
                    self.by_level[row..=row + level].iter().map(|&tasks| u64::from(tasks)).sum()
                })
            }
            (Measure::Tasks, Count::All) if cx.is_restricted(task) => {
                cx.least(task, ties, |_, cpu| u64::from(self.placed.of(cpu)))
            }
            (Measure::Tasks, Count::All) => self.placed.least(ties, cx.random()),
        }
    }

    /// The index of `task` in `by_level`, if it is used, and its count.
    fn weigh(&self, cx: &Context, task: TaskId, cpu: CpuId) -> (usize, u32) {
        let level = usize::from(self.options.levels.of(cx.task(task).prio).0);
        (
            cpu.index() * self.options.levels.count() + level,
            if cx.task(task).intensive { self.options.heavy } else { 1 },
        )
    }
}

impl<Q: ReadyQueue + Clone> Initial<Q> {
    /// Places `task` and counts it.
    #[inline]
    fn move_in(&mut self, cx: &mut Context, task: TaskId) -> CpuId {
        let cpu = self.place(cx, task);
        self.homes[task.index()] = cpu;
        let (cell, weight) = self.weigh(cx, task, cpu);
        (0..weight).for_each(|_| self.placed.add(cpu));
        if let Some(tasks) = self.by_level.get_mut(cell) {
            *tasks += weight;
        }
        if self.options.measure == Measure::Utilisation {
            self.utilisation.place(cx, task, cpu);
        }
        cpu
    }

    /// Stops counting `task`.
    #[inline]
    fn move_out(&mut self, cx: &Context, task: TaskId) {
        let cpu = self.homes[task.index()];
        let (cell, weight) = self.weigh(cx, task, cpu);
        (0..weight).for_each(|_| self.placed.subtract(cpu));
        if let Some(tasks) = self.by_level.get_mut(cell) {
            *tasks -= weight;
        }
        if self.options.measure == Measure::Utilisation {
            self.utilisation.remove(task, cpu);
        }
    }
}

impl<Q: ReadyQueue + Clone> Policy for Initial<Q> {
    fn needs(&self) -> Needs {
        Needs { most_cpus: Some(self.queues.len() as u16), ..Needs::default() }
    }

    fn promises(&self) -> Promises {
        Promises { locally_work_conserving: true, inherits: true, ..Promises::default() }
    }

    fn migrates(&self) -> bool {
        false
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.waiting[cpu.index()]
    }

    fn fetch(&self, task: TaskId) {
        fetch(&self.nodes, task);
    }

    #[inline]
    fn init_task(&mut self, _cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
        if task.index() >= self.homes.len() {
            self.homes.resize(task.index() + 1, NOT_PLACED);
        }
        self.homes[task.index()] = NOT_PLACED;
    }

    #[inline]
    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.move_out(cx, task);
    }

    #[inline]
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        if !wake.new {
            return self.homes[task.index()];
        }
        self.move_in(cx, task)
    }

    #[inline(always)]
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        // Its CPU before its affinity changed may no longer be its home.
        let cpu = if why == Enqueue::Restored { self.homes[task.index()] } else { cpu };
        let level = self.options.levels.of(cx.task(task).prio);
        self.queues[cpu.index()].insert(Nodes::from_mut(&mut self.nodes), task, level);
        self.waiting[cpu.index()] += 1;
        if cx.idle().contains(cpu) {
            return Effect::Kick(cpu);
        }
        let woken = why.comes();
        match cx.current(cpu) {
            Some(running)
                if self.options.preempt
                    && woken
                    && self.options.levels.of(cx.task(running).prio) > level =>
            {
                Effect::Preempt(cpu)
            }
            _ => Effect::Nothing,
        }
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8, _why: Reweight) -> Effect {
        let home = self.homes[task.index()];
        if !self.by_level.is_empty() && home != NOT_PLACED {
            let (new, weight) = self.weigh(cx, task, home);
            let old = home.index() * self.options.levels.count()
                + usize::from(self.options.levels.of(old).0);
            self.by_level[old] -= weight;
            self.by_level[new] += weight;
        }
        Effect::Nothing
    }

    /// Places a task anew that may no longer run where it is placed.
    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, _old: Affinity) -> Effect {
        let home = self.homes[task.index()];
        if home != NOT_PLACED && !cx.allowed(task, home) {
            self.move_out(cx, task);
            self.move_in(cx, task);
        }
        Effect::Nothing
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        let cpu = self.homes[task.index()];
        self.queues[cpu.index()].remove(Nodes::from_mut(&mut self.nodes), task);
        self.waiting[cpu.index()] -= 1;
    }

    #[inline]
    fn dispatch(&mut self, _cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let task = self.queues[cpu.index()].pop(Nodes::from_mut(&mut self.nodes))?;
        self.waiting[cpu.index()] -= 1;
        Some(Dispatch { task, slice: self.options.quantum })
    }

    #[inline]
    fn running(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId) {
        if self.options.measure == Measure::Utilisation {
            self.utilisation.running(cx, task);
        }
    }

    #[inline]
    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, _why: Stop) {
        if self.options.measure == Measure::Utilisation {
            self.utilisation.stopping(cx, task, cpu);
        }
    }
}

/// A ready queue per CPU, which tasks never leave.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "initial",
    summary: "a ready queue per CPU; a task stays on the CPU where it is first placed (IP)",
    source: "Curran & Stumm 1990, 3.4 (IP), 5.2, 5.3 and 6",
    options: &[
        topology::QUANTUM,
        topology::LEVELS,
        topology::STRIDES,
        topology::PREEMPT,
        OptionSpec::choice(
            "load",
            &["tasks", "utilisation"],
            "what is compared for a new task: how many tasks a CPU has, or how much CPU time they \
             use",
        )
        .by_default("tasks"),
        OptionSpec::count(
            "heavy",
            1,
            1000,
            "tasks",
            "how many tasks a processor-intensive one counts for; in the paper 25",
        )
        .by_default("1"),
        topology::COUNT,
        topology::TIES,
    ],
    structure: None,
    scheduler: &Orders(PhantomData::<InitialPlacement>),
};

/// [`Initial`] over any order.
struct InitialPlacement;

impl Topology for InitialPlacement {
    type Over<Q: ReadyQueue + Clone + 'static> = Initial<Q>;

    fn over<Q: ReadyQueue + Clone + 'static>(queue: Q, given: &Given) -> Initial<Q> {
        let options = Options {
            quantum: given.duration("quantum"),
            levels: given.levels(),
            preempt: given.preempts(),
            measure: if given.word("load") == Some("utilisation") {
                Measure::Utilisation
            } else {
                Measure::Tasks
            },
            count: given.counted(),
            heavy: given.count("heavy"),
            ties: given.ties(),
        };
        Initial::new(queue, given.cpus(), options)
    }
}
