//! pslist, a fair scheduler without sorting: the partially sorted list, per CPU.
//!
//! A waiting task is compared only with the middle of the list. If its virtual run time is smaller,
//! it goes before the middle, otherwise to the tail. The head runs next, until its virtual run time
//! exceeds that of the new head. So every task passes the next one before it leaves, which keeps
//! virtual run times together without a tree. Right where a decision must cost the same for two
//! tasks and for ten thousand. Bad at latencies, as a task with little service waits behind half of
//! the list. It is fair only as long as tasks run until they have passed the next one. Tasks that
//! yield, or that real-time tasks stop early, do not, and fall behind without bound.
//!
//! Source: the post "Partial sorted list scheduler – pslist" (Linux 3.6). Choices where the post is
//! silent:
//!
//! - *Stop rule.* The post has two, which differ for equals. The first is "Running as long as the
//!   vruntime is not more than the next one's". The second is "as long as the next element has a
//!   bigger vruntime". The first is implemented. It is checked at ticks, so a task runs at least to
//!   the next tick.
//! - *Head and tail.* Tasks leave at the head. A task that stops is inserted like any other: before
//!   the middle or at the tail.
//! - *Middle.* The first task of the back half, which is as long as the front half or one longer.
//!   Every task stores its half, so that any task can be removed in O(1) ([`readyq::PsList`]).
//! - *Sleepers.* A woken, new or migrated task keeps its virtual run time, but at least the clock
//!   of the CPU. That is the virtual run time of the task that last started to run there. It never
//!   goes back. Between CPUs a task keeps its distance from the clock. Sleep earns no credit.
//! - *Preemption.* None, except that all other tasks preempt `SCHED_IDLE` tasks. With `preempt`, a
//!   woken task also preempts a running one that is ahead of it, which keeps the bound. A task that
//!   is stopped early is inserted like any other.
//!
//! Fairness: consider N tasks that stay runnable on one CPU and whose slices are not cut short. No
//! two of them differ in virtual run time by more than `(N + 1) / 2` ticks of the lightest. This
//! bound was found by a search, and is tested but not proven. With equal weights and equal starts
//! the bound is one tick, which is proven. Let a tick be 1, all have had m or m + 1, and the list
//! be ascending. The task that starts has had at most as much as the head. If both have had m, it
//! stops after a tick with m + 1. If it has had m and the head m + 1, it was the last with m. It
//! stops after two ticks with m + 2 while all others have m + 1. Either way no task has had more,
//! so it goes to the tail. The list is ascending, and all have had one of two neighbouring numbers
//! again.
//!
//! Cost: O(1) per decision.
//!
//! Deviations: `fair`, after Linux 6.18, places tasks and runs real-time tasks.

use super::descriptor::{Descriptor, Given, Make};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::weights::Weight;
use super::{ShareMeasure, Shares, TaskView, realtime};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};
use readyq::{Node, Nodes, ReadyQueue, Strides};

/// The partially sorted list scheduler, on several CPUs.
pub type PsList = Fair<Partial>;

/// Parameters of [`PsList`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether a woken task preempts a running one that is ahead of it.
    pub preempt: bool,
    /// The options common to Linux's schedulers.
    pub fair: fair::Options,
}

impl PsList {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> PsList {
        Fair::with_discipline(Partial::new(cpus, options), cpus, options.fair)
    }
}

/// The order of pslist: a list and virtual run times.
#[derive(Clone, Debug)]
pub struct Partial {
    tick: Nanos,
    preempt: bool,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    nodes: Vec<Node>,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// The waiting tasks.
    list: readyq::PsList,
    running: Option<TaskId>,
    /// The running task has been charged until this time.
    exec_start: Time,
    /// The virtual run time at the start of the last slice; it never goes back.
    clock: i64,
    /// Whether the running task has given up the rest of its slice.
    is_over: bool,
    /// The task that runs next because it preempts the running one.
    next: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    class: TaskClass,
    /// CPU time by weight, in ns of nice 0.
    vruntime: i64,
    /// The CPU whose clock applies, once it has joined any.
    cpu: Option<CpuId>,
}

impl Partial {
    fn new(cpus: u16, options: Options) -> Partial {
        let queue = Queue {
            list: readyq::PsList::new(Strides::Linear),
            running: None,
            exec_start: Time::ZERO,
            clock: 0,
            is_over: false,
            next: None,
        };
        Partial {
            tick: options.fair.tick,
            preempt: options.preempt,
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            nodes: Vec::new(),
        }
    }

    fn vruntime(&self, task: TaskId) -> i64 {
        self.entities[task.index()].vruntime
    }

    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let entities = &self.entities;
        let precedes =
            |middle: TaskId| entities[task.index()].vruntime < entities[middle.index()].vruntime;
        self.queues[cpu.index()].list.insert_by(Nodes::from_mut(&mut self.nodes), task, precedes);
    }

    fn first(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].list.peek(Nodes::from_ref(&self.nodes))
    }

    /// Whether the running task has passed the next one.
    fn has_passed(&self, cpu: CpuId) -> bool {
        let ends = |running| {
            self.first(cpu).is_some_and(|next| self.vruntime(running) > self.vruntime(next))
        };
        self.queues[cpu.index()].running.is_some_and(ends)
    }
}

impl Discipline for Partial {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let new = Entity {
            weight: Weight::of(view.prio, view.attributes.class),
            class: view.attributes.class,
            vruntime: 0,
            cpu: None,
        };
        let len = self.entities.len().max(task.index() + 1);
        self.entities.resize(len, new);
        self.nodes.resize(len, Node::NEW);
        self.entities[task.index()] = new;
        self.nodes[task.index()] = Node::NEW;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        if let Some(task) = queue.running {
            let entity = &mut self.entities[task.index()];
            entity.vruntime += entity.weight.virtual_time(now.since(queue.exec_start).0);
        }
        queue.exec_start = now;
        false // only a tick ends a slice
    }

    fn expires(&mut self, cpu: CpuId) -> bool {
        self.has_passed(cpu)
    }

    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, _now: Time) {
        let clock = self.queues[cpu.index()].clock;
        let entity = &mut self.entities[task.index()];
        entity.vruntime = match entity.cpu.replace(cpu) {
            None => clock,
            Some(old) => {
                let here = entity.vruntime - self.queues[old.index()].clock + clock;
                if matches!(how, Join::Moves | Join::Restored) { here } else { here.max(clock) }
            }
        };
        self.insert(cpu, task);
    }

    fn leave(&mut self, cpu: CpuId, task: TaskId, _how: Leave, _now: Time) {
        let queue = &mut self.queues[cpu.index()];
        queue.next = queue.next.filter(|&next| next != task);
        if queue.running == Some(task) {
            queue.running = None;
        } else {
            queue.list.remove(Nodes::from_mut(&mut self.nodes), task);
        }
    }

    fn in_delayed_dequeue(&self, _task: TaskId) -> bool {
        false
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let Queue { running, is_over, next, .. } = self.queues[cpu.index()];
        let continues = running.filter(|_| !is_over && !self.has_passed(cpu));
        next.or(continues).or_else(|| self.first(cpu)).or(running)
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        if self.queues[cpu.index()].running != Some(task) {
            let vruntime = self.vruntime(task);
            let queue = &mut self.queues[cpu.index()];
            queue.list.remove(Nodes::from_mut(&mut self.nodes), task);
            queue.clock = queue.clock.max(vruntime);
            self.put_back(cpu);
        }
        let queue = &mut self.queues[cpu.index()];
        (queue.running, queue.exec_start) = (Some(task), now);
        (queue.is_over, queue.next) = (false, None);
    }

    fn put_back(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running.take() {
            self.insert(cpu, task);
        }
    }

    fn yield_task(&mut self, cpu: CpuId) {
        self.queues[cpu.index()].is_over = true;
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let Some(running) = self.queues[cpu.index()].running else {
            return false;
        };
        let class = |task: TaskId| self.entities[task.index()].class;
        let by_class = fair::class_preempts(class(task), class(running));
        let preempts =
            by_class.unwrap_or(self.preempt && self.vruntime(task) < self.vruntime(running));
        if preempts {
            self.queues[cpu.index()].next = Some(task);
        }
        preempts
    }

    /// Keeps the virtual run time.
    fn set_weight(&mut self, _cpu: CpuId, task: TaskId, view: &TaskView) {
        self.entities[task.index()].weight = Weight::of(view.prio, view.attributes.class);
    }

    fn shares(&self) -> Option<Shares> {
        let half = Nanos(self.tick.0.div_ceil(2));
        Some(Shares {
            measure: ShareMeasure::Spread { fixed: half, per_task: half },
            undisturbed: true,
        })
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        self.queues[cpu.index()].next != Some(task)
    }
}

/// The partially sorted list.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "pslist",
    summary: "the partially sorted list: virtual run times, O(1), a task runs on until it has \
              passed the next",
    source: "the post \"Partial sorted list scheduler - pslist\" (Linux 3.6)",
    options: &[
        OptionSpec::flag("preempt", "whether a woken task stops a running one that is ahead of it")
            .by_default("no"),
        fair::TICK,
        fair::HOT,
        fair::QUANTUM,
        realtime::THROTTLE,
        fair::SERVER,
    ],
    structure: Some("pslist"),
    scheduler: &Make(|given| PsList::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options { preempt: given.flag("preempt"), fair: given.into() }
    }
}
