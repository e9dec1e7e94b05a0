//! Central queue: one ready queue for all CPUs.
//!
//! The load is always balanced, and a task runs on whichever CPU is free next. Right when
//! migrations are free. Under load a task migrates at almost every dispatch, so it does badly when
//! migrations cost. Source: Curran & Stumm 1990, §3.4 (CQ). `shortcut` is their variant from Topaz:
//! a woken task whose last CPU is idle continues there. `search` beyond the first is §4.2's search
//! length: an idle CPU examines this many tasks, in order, for one that last ran there.
//! `Search::TopLevel` is §5.3's scan of all tasks of the best level, or of the best group of
//! priorities where several share a level.
//!
//! Deviation: affinity, which the paper does not have; a CPU passes over tasks that may not run
//! there.

use super::descriptor::{Descriptor, Given};
use super::options::OptionSpec;
use super::topology::{self, Orders, Search, Topology};
use super::{
    Context, Dispatch, Effect, Enqueue, Levels, Policy, Promises, Scan, Wake, fetch, renew,
    take_out,
};
use crate::workload::Affinity;
use crate::{CpuId, Nanos, TaskId};
use readyq::{Node, Nodes, ReadyQueue};
use std::marker::PhantomData;

/// One ready queue of order `Q` for all CPUs.
#[derive(Clone, Debug)]
pub struct Central<Q> {
    queue: Q,
    waiting: u32,
    nodes: Vec<Node>,
    options: Options,
    /// The number of live tasks with restricted affinity. While there are none, the head of the
    /// queue suits every CPU.
    restricted: usize,
    /// How many tasks the last dispatch examined.
    examined: u32,
}

/// Parameters of [`Central`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a task runs before it goes back to the queue.
    pub quantum: Nanos,
    /// The mapping of priorities to levels.
    pub levels: Levels,
    /// How far an idle CPU searches for a task that last ran there.
    pub search: Search,
    /// Whether a woken task continues on its last CPU if that is idle.
    pub shortcut: bool,
    /// Whether a woken task preempts a running task of a worse level.
    pub preempt: bool,
}

impl Options {
    /// The paper's Baseline System, with this quantum.
    pub fn baseline(quantum: Nanos) -> Options {
        Options {
            quantum,
            levels: Levels::new(1),
            search: Search::First(1),
            shortcut: true,
            preempt: false,
        }
    }
}

impl<Q: ReadyQueue> Central<Q> {
    /// The policy with an empty `queue`.
    pub fn new(queue: Q, options: Options) -> Self {
        Central { queue, waiting: 0, nodes: Vec::new(), options, restricted: 0, examined: 1 }
    }

    /// The running task of the worst level that `task` may preempt.
    fn victim(&self, cx: &Context, task: TaskId) -> Option<CpuId> {
        let level = |task| self.options.levels.of(cx.task(task).prio);
        let running = cx.allowed_cpus(task).filter_map(|cpu| Some((level(cx.current(cpu)?), cpu)));
        running
            .max_by_key(|&(level, cpu)| (level, std::cmp::Reverse(cpu)))
            .filter(|&(worst, _)| worst > level(task))
            .map(|(_, cpu)| cpu)
    }

    /// Removes from the queue the task that `cpu` runs next.
    #[inline(never)]
    fn search(&mut self, cx: &Context, cpu: CpuId) -> Option<TaskId> {
        let nodes = Nodes::from_mut(&mut self.nodes);
        let level = |task| self.options.levels.of(cx.task(task).prio);
        let (mut first, mut looked_at) = (None, 0);
        // The search ends with a task that last ran here, or at its limit.
        let end = self.queue.find(nodes, |task| {
            if !cx.allowed(task, cpu) {
                return false;
            }
            let first = *first.get_or_insert(task);
            looked_at += 1;
            let too_far = match self.options.search {
                Search::First(search) => looked_at > search,
                Search::TopLevel => level(task) > level(first),
            };
            too_far || cx.task(task).cpu == cpu
        });
        let near = |task: &TaskId| match self.options.search {
            Search::First(search) => looked_at <= search,
            Search::TopLevel => first.is_none_or(|first| level(*task) <= level(first)),
        };
        let task = end.filter(near).or(first)?;
        self.examined = match self.options.search {
            Search::First(search) => looked_at.min(search) as u32,
            Search::TopLevel => looked_at as u32,
        };
        take_out(&mut self.queue, nodes, task);
        Some(task)
    }

    /// A CPU that left idle may have taken another task than the one it was kicked for.
    #[cold]
    fn kick_for_passed_over(&mut self, cx: &Context) -> Effect {
        let passed_over = self
            .queue
            .find(Nodes::from_mut(&mut self.nodes), |task| cx.idle_cpu_for(task).is_some());
        passed_over.and_then(|task| cx.idle_cpu_for(task)).map_or(Effect::Nothing, Effect::Kick)
    }
}

impl<Q: ReadyQueue> Policy for Central<Q> {
    fn promises(&self) -> Promises {
        Promises {
            work_conserving: true,
            locally_work_conserving: true,
            inherits: true,
            hotplug: true,
            ..Promises::default()
        }
    }

    fn queue_length(&self, _cpu: CpuId) -> u32 {
        self.waiting
    }

    fn scan(&self, _cpu: CpuId) -> Scan {
        Scan { queue: CpuId(0), entries: self.examined }
    }

    fn fetch(&self, task: TaskId) {
        fetch(&self.nodes, task);
    }

    #[inline]
    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        renew(&mut self.nodes, task);
        self.restricted += usize::from(cx.is_restricted(task));
    }

    #[inline]
    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        self.restricted -= usize::from(cx.is_restricted(task));
    }

    #[inline(always)]
    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        if !self.options.shortcut
            && !cx.is_restricted(task)
            && let Some(idle) = cx.idle().first()
        {
            return idle;
        }
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    #[inline(always)]
    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let alone = self.queue.is_empty();
        self.waiting += 1;
        self.queue.insert(
            Nodes::from_mut(&mut self.nodes),
            task,
            self.options.levels.of(cx.task(task).prio),
        );
        if alone && matches!(why, Enqueue::SliceOver | Enqueue::Yielded) {
            return Effect::Nothing; // `cpu` itself is about to dispatch and finds it
        }
        if cx.idle().contains(cpu) && cx.allowed(task, cpu) {
            return Effect::Kick(cpu);
        }
        match cx.idle_cpu_for(task) {
            Some(idle) => Effect::Kick(idle),
            None if self.options.preempt && why.comes() => {
                self.victim(cx, task).map_or(Effect::Nothing, Effect::Preempt)
            }
            None => Effect::Nothing,
        }
    }

    #[inline(always)]
    fn update_idle(&mut self, cx: &mut Context, _cpu: CpuId, idle: bool) -> Effect {
        // The CPU may have been kicked for another task than it took. If all tasks run everywhere,
        // that task gets the CPU kicked for this one.
        if idle || self.restricted == 0 || cx.idle().is_empty() {
            Effect::Nothing
        } else {
            self.kick_for_passed_over(cx)
        }
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        self.restricted += usize::from(cx.is_restricted(task));
        self.restricted -= usize::from(old != Affinity::Any);
        Effect::Nothing
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        self.waiting -= 1;
        self.queue.remove(Nodes::from_mut(&mut self.nodes), task);
    }

    #[inline(always)]
    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        let task = if self.restricted == 0 && self.options.search == Search::First(1) {
            self.queue.pop(Nodes::from_mut(&mut self.nodes))
        } else {
            self.search(cx, cpu)
        };
        self.waiting -= u32::from(task.is_some());
        task.map(|task| Dispatch { task, slice: self.options.quantum })
    }
}

/// One ready queue for all CPUs.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "central",
    summary: "one ready queue for all CPUs (Curran & Stumm's CQ)",
    source: "Curran & Stumm 1990, 3.4 (CQ), 4.2 and 5.3",
    options: &[
        topology::QUANTUM,
        topology::LEVELS,
        topology::STRIDES,
        topology::PREEMPT,
        OptionSpec::count(
            "search",
            1,
            1_000_000,
            "tasks",
            "how many tasks a CPU looks at for one that last ran there, or all, or all of the \
             best level (top)",
        )
        .or(&["all", "top"])
        .by_default("1"),
        OptionSpec::flag(
            "shortcut",
            "whether a woken task continues on its last CPU if that is idle",
        )
        .by_default("yes"),
    ],
    structure: None,
    scheduler: &Orders(PhantomData::<CentralQueue>),
};

/// [`Central`] over any order.
struct CentralQueue;

impl Topology for CentralQueue {
    type Over<Q: ReadyQueue + Clone + 'static> = Central<Q>;

    fn over<Q: ReadyQueue + Clone + 'static>(queue: Q, given: &Given) -> Central<Q> {
        let search = match given.word("search") {
            Some("top") => Search::TopLevel,
            Some(_) => Search::First(usize::MAX),
            None => Search::First(given.count("search")),
        };
        let options = Options {
            quantum: given.duration("quantum"),
            levels: given.levels(),
            search,
            shortcut: given.flag("shortcut"),
            preempt: given.preempts(),
        };
        Central::new(queue, options)
    }
}
