//! Take: a queue per CPU, and an idle CPU takes a task from the CPU with most waiting.
//!
//! Migrates only when a CPU would idle otherwise: the load is balanced and busy CPUs leave each
//! other alone. Right for most machines; it does not balance waiting tasks while all CPUs are busy.
//! Source: Curran & Stumm 1990, §3.4 (TK). A task arrives at the CPU with the fewest ready tasks.
//! `Count::Level` follows §5.3: arrivals go to the CPU with the fewest tasks of an equal or better
//! level. An idle CPU steals where most tasks of the best waiting level wait.
//!
//! Choices where the paper is silent: an idle CPU looks when it becomes idle. With `polling` it
//! also looks whenever a task starts to wait on any CPU. That is the default; the text can be read
//! either way. It steals the task that the other CPU would run next (`taken`). A running task
//! counts as ready (`ready`). Ties between CPUs are broken at random, for arrivals and for steals
//! (`ties`). `steal=near` is ours: an idle CPU steals from the nearest CPUs with waiting tasks, on
//! a machine with a topology.
//!
//! Cost: finding the least and the most loaded CPU takes the same time for any number of CPUs,
//! except with `Count::Level`, which examines all CPUs.

use super::descriptor::{Descriptor, Given};
use super::loads::{Loads, Ties, pick};
use super::options::OptionSpec;
use super::topology::{self, Count, Orders, Ready, Taken, Topology};
use super::{
    Context, Dispatch, Effect, Enqueue, Levels, Needs, Policy, Promises, Scan, Stop, Wake, fetch,
    renew, take_out,
};
use crate::workload::Affinity;
use crate::{CpuId, Distance, Nanos, TaskId};
use readyq::{Node, Nodes, ReadyQueue};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

/// A ready queue of order `Q` per CPU, from which idle CPUs steal.
#[derive(Clone, Debug)]
pub struct Take<Q> {
    queues: Vec<Q>,
    /// Tasks waiting in each queue.
    waiting: Loads,
    /// Those and the running one, with `Ready::Running`.
    ready: Loads,
    /// Tasks waiting per CPU and level, with `Count::Level`.
    by_level: Vec<u32>,
    /// The queue in which each task waits, if it waits.
    queued_on: Vec<CpuId>,
    nodes: Vec<Node>,
    options: Options,
    restricted: usize,
    /// Where the last dispatch found its task.
    scan: Scan,
}

/// Parameters of [`Take`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a task runs before it goes back to a queue.
    pub quantum: Nanos,
    /// The mapping of priorities to levels.
    pub levels: Levels,
    /// Whether an idle CPU keeps looking while it idles, or looks only once, when it becomes idle.
    pub polling: bool,
    /// Whether a woken task preempts a running task of a worse level.
    pub preempt: bool,
    /// Which task of a queue is stolen.
    pub taken: Taken,
    /// Whether the running task counts when a new one is placed.
    pub ready: Ready,
    /// Which tasks count, for placement and for steals.
    pub count: Count,
    /// How ties between CPUs are broken.
    pub ties: Ties,
    /// Whether an idle CPU steals from the nearest CPUs with waiting tasks, or else from the
    /// longest queue of all.
    pub near: bool,
}

impl Options {
    /// The paper's Baseline System, with this quantum.
    pub fn baseline(quantum: Nanos) -> Options {
        let (levels, taken, ready) = (Levels::new(1), Taken::Head, Ready::Running);
        Options {
            quantum,
            levels,
            polling: true,
            preempt: false,
            taken,
            ready,
            count: Count::All,
            ties: Ties::Random,
            near: false,
        }
    }
}

impl<Q: ReadyQueue + Clone> Take<Q> {
    /// The policy for `cpus` CPUs, each with a copy of the empty `queue`.
    pub fn new(queue: Q, cpus: u16, options: Options) -> Self {
        let levels = if options.count == Count::Level { options.levels.count() } else { 0 };
        Take {
            queues: vec![queue; usize::from(cpus)],
            waiting: Loads::new(cpus),
            ready: Loads::new(cpus),
            by_level: vec![0; usize::from(cpus) * levels],
            queued_on: Vec::new(),
            nodes: Vec::new(),
            options,
            restricted: 0,
            scan: Scan { queue: CpuId(0), entries: 1 },
        }
    }

    fn level(&self, cx: &Context, task: TaskId) -> usize {
        usize::from(self.options.levels.of(cx.task(task).prio).0)
    }

    /// The number of tasks that wait on `cpu` at level `at`.
    fn waiting_at(&self, cpu: CpuId, at: usize) -> u32 {
        self.by_level[cpu.index() * self.options.levels.count() + at]
    }

    /// The CPU for a new task.
    fn place(&self, cx: &mut Context, task: TaskId) -> CpuId {
        let Options { count, ready, ties, .. } = self.options;
        match count {
            Count::Level => {
                let level = self.level(cx, task);
                cx.least(task, ties, |cx, cpu| {
                    let waiting: u32 = (0..=level).map(|at| self.waiting_at(cpu, at)).sum();
                    let competes =
                        |running| ready == Ready::Running && self.level(cx, running) <= level;
                    u64::from(waiting) + u64::from(cx.current(cpu).is_some_and(competes))
                })
            }
            Count::All => {
                let loads = if ready == Ready::Running { &self.ready } else { &self.waiting };
                if cx.is_restricted(task) {
                    cx.least(task, ties, |_, cpu| u64::from(loads.of(cpu)))
                } else {
                    loads.least(ties, cx.random())
                }
            }
        }
    }

    /// Steals a task that may run on `cpu` from the longest queue that has one.
    fn steal(&mut self, cx: &mut Context, cpu: CpuId) -> Option<TaskId> {
        let (task, scan) = if self.restricted > 0 {
            self.first_allowed(cx, cpu)?
        } else {
            let queue = self.longest(cx, cpu)?;
            self.taken(queue)?
        };
        self.scan = scan;
        self.take_out(cx, task, scan.queue);
        self.move_ready(scan.queue, cpu);
        Some(task)
    }

    /// The queue from which `cpu` steals if every task may run there.
    fn longest(&self, cx: &mut Context, cpu: CpuId) -> Option<CpuId> {
        if self.options.near {
            return self.waiting.loaded().min_by_key(|&queue| self.rank(cx, cpu, queue));
        }
        match self.options.count {
            Count::All => self.waiting.greatest(self.options.ties, cx.random()),
            Count::Level => self.most_at_best_level(cx),
        }
    }

    /// Which task is stolen from `queue`.
    fn taken(&self, queue: CpuId) -> Option<(TaskId, Scan)> {
        let (nodes, mut scan) = (Nodes::from_ref(&self.nodes), Scan { queue, entries: 0 });
        let queue = &self.queues[queue.index()];
        let task = match self.options.taken {
            Taken::Head => {
                scan.entries = 1;
                queue.peek(nodes)
            }
            Taken::Tail => {
                let mut last = None;
                queue.find(nodes, |task| {
                    last = Some(task);
                    scan.entries += 1;
                    false
                });
                last
            }
        };
        task.map(|task| (task, scan))
    }

    /// Examines each CPU, as the first queue may hold no task that may run on `cpu`.
    fn first_allowed(&self, cx: &Context, cpu: CpuId) -> Option<(TaskId, Scan)> {
        let nodes = Nodes::from_ref(&self.nodes);
        let mut others: BinaryHeap<_> =
            self.waiting.loaded().map(|queue| Reverse(self.rank(cx, cpu, queue))).collect();
        std::iter::from_fn(|| others.pop()).find_map(|Reverse((.., queue))| {
            let mut scan = Scan { queue, entries: 0 };
            let fits = |task| {
                scan.entries += 1;
                cx.allowed(task, cpu)
            };
            let task = self.queues[queue.index()].find(nodes, fits)?;
            Some((task, scan))
        })
    }

    /// The sort key of CPUs from which `cpu` steals: the nearest if `near`, then the longest queue,
    /// then the lowest number.
    fn rank(&self, cx: &Context, cpu: CpuId, other: CpuId) -> (Distance, Reverse<u32>, CpuId) {
        let distance =
            if self.options.near { cx.machine().distance(other, cpu) } else { Distance::Itself };
        (distance, Reverse(self.waiting.of(other)), other)
    }

    /// The CPU with the most waiting tasks of the best level at which any waits.
    fn most_at_best_level(&self, cx: &mut Context) -> Option<CpuId> {
        let best = (0..self.options.levels.count())
            .find(|&at| cx.machine().all().any(|cpu| self.waiting_at(cpu, at) > 0))?;
        let most = cx.machine().all().map(|cpu| self.waiting_at(cpu, best)).max()?;
        let equals: Vec<CpuId> =
            cx.machine().all().filter(|&cpu| self.waiting_at(cpu, best) == most).collect();
        Some(pick(&equals, self.options.ties, cx.random()))
    }

    /// `task` no longer waits on `cpu`.
    fn take_out(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        take_out(&mut self.queues[cpu.index()], Nodes::from_mut(&mut self.nodes), task);
        self.uncount(cx, task, cpu);
    }

    /// A task that waited on one CPU is about to run on another.
    fn move_ready(&mut self, from: CpuId, to: CpuId) {
        if self.options.ready == Ready::Running {
            self.ready.subtract(from);
            self.ready.add(to);
        }
    }

    #[inline]
    fn uncount(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        self.waiting.subtract(cpu);
        if self.options.count == Count::Level {
            let cell = cpu.index() * self.options.levels.count() + self.level(cx, task);
            self.by_level[cell] -= 1;
        }
    }
}

impl<Q: ReadyQueue + Clone> Policy for Take<Q> {
    fn needs(&self) -> Needs {
        Needs { most_cpus: Some(self.queues.len() as u16), ..Needs::default() }
    }

    fn promises(&self) -> Promises {
        Promises {
            work_conserving: self.options.polling,
            locally_work_conserving: true,
            inherits: true,
            ..Promises::default()
        }
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.waiting.of(cpu)
    }

    fn scan(&self, _cpu: CpuId) -> Scan {
        self.scan
    }

    fn fetch(&self, task: TaskId) {
        fetch(&self.nodes, task);
        fetch(&self.queued_on, task);
    }

    #[inline]
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
        if task.index() >= self.queued_on.len() {
            self.queued_on.resize(task.index() + 1, CpuId(0));
        }
        self.restricted += usize::from(cx.is_restricted(task));
    }

    #[inline]
    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.restricted -= usize::from(cx.is_restricted(task));
    }

    #[inline]
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        let last = cx.task(task).cpu;
        if wake.new || self.restricted > 0 && !cx.allowed(task, last) {
            self.place(cx, task)
        } else {
            last
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let level = self.options.levels.of(cx.task(task).prio);
        self.queues[cpu.index()].insert(Nodes::from_mut(&mut self.nodes), task, level);
        self.waiting.add(cpu);
        if self.options.ready == Ready::Running {
            self.ready.add(cpu);
        }
        if self.options.count == Count::Level {
            self.by_level[cpu.index() * self.options.levels.count() + usize::from(level.0)] += 1;
        }
        self.queued_on[task.index()] = cpu;
        if self.waiting.of(cpu) == 1 && matches!(why, Enqueue::SliceOver | Enqueue::Yielded) {
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

    #[inline]
    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        // The CPU may have been kicked for another task than it took. If all tasks run everywhere,
        // that task gets the CPU kicked for this one.
        if idle || !self.options.polling || self.restricted == 0 || cx.idle().is_empty() {
            return Effect::Nothing;
        }
        let nodes = Nodes::from_mut(&mut self.nodes);
        let passed_over = self
            .queues
            .iter()
            .find_map(|queue| queue.find(nodes, |task| cx.idle_cpu_for(task).is_some()));
        passed_over.and_then(|task| cx.idle_cpu_for(task)).map_or(Effect::Nothing, Effect::Kick)
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        self.restricted += usize::from(cx.is_restricted(task));
        self.restricted -= usize::from(old != Affinity::Any);
        Effect::Nothing
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        let cpu = self.queued_on[task.index()];
        self.take_out(cx, task, cpu);
        if self.options.ready == Ready::Running {
            self.ready.subtract(cpu);
        }
    }

    #[inline]
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let slice = self.options.quantum;
        let task = match self.queues[cpu.index()].pop(Nodes::from_mut(&mut self.nodes)) {
            Some(task) => {
                self.scan = Scan { queue: cpu, entries: 1 };
                self.uncount(cx, task, cpu);
                task
            }
            None => self.steal(cx, cpu)?,
        };
        Some(Dispatch { task, slice })
    }

    #[inline]
    fn stopping(&mut self, _cx: &mut Context, cpu: CpuId, _task: TaskId, _why: Stop) {
        if self.options.ready == Ready::Running {
            self.ready.subtract(cpu);
        }
    }
}

/// A ready queue per CPU, from which idle CPUs take.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "take",
    summary: "a ready queue per CPU; an idle CPU takes a task from the longest (TK)",
    source: "Curran & Stumm 1990, 3.4 (TK) and 5.3",
    options: &[
        topology::QUANTUM,
        topology::LEVELS,
        topology::STRIDES,
        topology::PREEMPT,
        OptionSpec::choice(
            "idle",
            &["polling", "once"],
            "whether an idle CPU looks for work all the time or only when it becomes idle",
        )
        .by_default("polling"),
        OptionSpec::choice("taken", &["head", "tail"], "which task an idle CPU takes from a queue")
            .by_default("head"),
        OptionSpec::choice(
            "ready",
            &["running", "waiting"],
            "whether the running task counts for a new one (running) or not (waiting)",
        )
        .by_default("running"),
        topology::COUNT,
        OptionSpec::choice(
            "steal",
            &["longest", "near"],
            "where an idle CPU takes a task: the longest queue, or the longest of the nearest \
             CPUs where any waits",
        )
        .by_default("longest")
        .formerly("raid"),
        topology::TIES,
    ],
    structure: None,
    scheduler: &Orders(PhantomData::<TakeFromOthers>),
};

/// [`Take`] over any order.
struct TakeFromOthers;

impl Topology for TakeFromOthers {
    type Over<Q: ReadyQueue + Clone + 'static> = Take<Q>;

    fn over<Q: ReadyQueue + Clone + 'static>(queue: Q, given: &Given) -> Take<Q> {
        let options = Options {
            quantum: given.duration("quantum"),
            levels: given.levels(),
            polling: given.word("idle") == Some("polling"),
            preempt: given.preempts(),
            taken: if given.word("taken") == Some("tail") { Taken::Tail } else { Taken::Head },
            ready: if given.word("ready") == Some("waiting") {
                Ready::Waiting
            } else {
                Ready::Running
            },
            count: given.counted(),
            ties: given.ties(),
            near: given.word("steal") == Some("near"),
        };
        Take::new(queue, given.cpus(), options)
    }
}
