//! pslist, a fair scheduler that does not sort: the partially sorted list, per CPU, and a running task that does the sorting.
//!
//! Waiting tasks stand in a list of which only the middle is compared with: a task whose virtual run time is less than that of the middle one goes in front
//! of the middle, any other to the tail. The head runs next, and runs until its virtual run time is greater than that of the new head. So every task passes
//! the one behind it before it leaves, which keeps virtual run times together without a tree. Right where a decision shall cost the same for two tasks
//! and for ten thousand. It does badly at latencies, as a task that has had little waits behind half of the list; and it is fair only as long
//! as tasks run until they have passed the next one: those that yield, or that real-time tasks stop early, do not, and fall behind without bound.
//!
//! Source: the post "Partial sorted list scheduler – pslist" (Linux 3.6). What it leaves open is decided so:
//!
//! - *Stop rule.* "Running as long as the vruntime is not more than the next one's" and "as long as the next element has a bigger vruntime" differ among
//!   equals: the first holds here. It is looked at when a tick comes, so that whoever starts runs to the next tick at least.
//! - *Head and tail.* Tasks leave at the head. Who stops running is placed like any other: in front of the middle or at the tail.
//! - *Middle.* The first task of the back half, which is as long as the front half or one longer; every task knows in which half it stands, so that
//!   any may be removed in O(1) ([`readyq::PsList`]).
//! - *Sleepers.* A woken, new or moved task has the virtual run time that it had, but no less than the clock of the CPU: the virtual run time of the task that
//!   began to run there last, which never goes back. Between CPUs a task keeps its distance from the clock. Nothing is credited for sleep.
//! - *Preemption.* None, but that `SCHED_IDLE` tasks are preempted by all others; with `preempt`, also whoever is ahead of a woken task, which keeps the bound.
//!   Who is stopped early goes back to the list like any other.
//!
//! How far from fair: of N tasks that stay runnable on one CPU, whose turns are not cut short, no two differ in virtual run time by more than
//! `(N + 1) / 2` ticks of the lightest, which was seen in a search and is not proven, the tests hold it to that; with equal weights and equal begins by one, which is. Proof:
//! let a tick be 1, all have had m or m + 1, and the list be ascending; whoever starts has had no more than the head. If both have had the same, m, it stops after
//! a tick with m + 1. If it has had m and the head m + 1, it was the last with m, and stops after two ticks with m + 2 where all others have m + 1. Either way nobody has had more
//! than it, so that it goes to the tail, the list is ascending, and all have had one of two neighbouring numbers again.
//!
//! Cost: O(1) per decision.
//!
//! Deviations: where a task runs, and real-time tasks, are the business of `fair`, after Linux 6.18.

use super::descriptor::{Descriptor, Given, Make};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::realtime;
use super::weights::Weight;
use super::{ShareMeasure, Shares, TaskView};
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
    /// What all schedulers of Linux share here.
    pub fair: fair::Options,
}

impl PsList {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> PsList {
        Fair::with_discipline(Partial::new(cpus, options), cpus, options.fair)
    }
}

/// pslist's order: a list and virtual run times.
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
    /// Who waits.
    list: readyq::PsList,
    running: Option<TaskId>,
    /// Until when the running task has been charged.
    charged: Time,
    /// The virtual run time at which the last turn began; it never goes back.
    clock: i64,
    /// Whether the running task has given up the rest of its turn.
    is_over: bool,
    /// Who shall run next because it preempts the running task.
    next: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    class: TaskClass,
    /// CPU time by weight, in ns of nice 0.
    vruntime: i64,
    /// By whose clock, once it has taken part anywhere.
    cpu: Option<CpuId>,
}

impl Partial {
    fn new(cpus: u16, options: Options) -> Partial {
        let queue =
            Queue { list: readyq::PsList::new(Strides::Linear), running: None, charged: Time::ZERO, clock: 0, is_over: false, next: None };
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
        let precedes = |middle: TaskId| entities[task.index()].vruntime < entities[middle.index()].vruntime;
        self.queues[cpu.index()].list.insert_by(Nodes::from_mut(&mut self.nodes), task, precedes);
    }

    fn first(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].list.peek(Nodes::from_ref(&self.nodes))
    }

    /// Whether the running task has passed the next one.
    fn has_passed(&self, cpu: CpuId) -> bool {
        let ends = |running| self.first(cpu).is_some_and(|next| self.vruntime(running) > self.vruntime(next));
        self.queues[cpu.index()].running.is_some_and(ends)
    }
}

impl Discipline for Partial {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let new = Entity { weight: Weight::of(view.prio, view.attributes.class), class: view.attributes.class, vruntime: 0, cpu: None };
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
            entity.vruntime += entity.weight.virtual_time(now.since(queue.charged).0);
        }
        queue.charged = now;
        false // only a tick ends a turn
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
                if how == Join::Moves { here } else { here.max(clock) }
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

    fn lingers(&self, _task: TaskId) -> bool {
        false
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let Queue { running, is_over, next, .. } = self.queues[cpu.index()];
        let goes_on = running.filter(|_| !is_over && !self.has_passed(cpu));
        next.or(goes_on).or_else(|| self.first(cpu)).or(running)
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
        (queue.running, queue.charged) = (Some(task), now);
        (queue.is_over, queue.next) = (false, None);
    }

    fn put_back(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running.take() {
            self.insert(cpu, task);
        }
    }

    fn yield_turn(&mut self, cpu: CpuId) {
        self.queues[cpu.index()].is_over = true;
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let Some(running) = self.queues[cpu.index()].running else {
            return false;
        };
        let class = |task: TaskId| self.entities[task.index()].class;
        let by_class = fair::class_preempts(class(task), class(running));
        let preempts = by_class.unwrap_or(self.preempt && self.vruntime(task) < self.vruntime(running));
        if preempts {
            self.queues[cpu.index()].next = Some(task);
        }
        preempts
    }

    fn shares(&self) -> Option<Shares> {
        let half = Nanos(self.tick.0.div_ceil(2));
        Some(Shares { measure: ShareMeasure::Spread { fixed: half, per_task: half }, undisturbed: true })
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        self.queues[cpu.index()].next != Some(task)
    }
}

/// The partially sorted list.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "pslist",
    summary: "the partially sorted list: virtual run times, O(1), a task runs on until it has passed the next",
    source: "the post \"Partial sorted list scheduler - pslist\" (Linux 3.6)",
    options: &[
        OptionSpec::flag("preempt", "whether a woken task stops a running one that is ahead of it").by_default("no"),
        fair::TICK,
        fair::HOT,
        fair::SYNC,
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
