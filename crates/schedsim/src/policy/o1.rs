//! O(1), Linux's scheduler from 2.6.0 to 2.6.22: two arrays of lists by priority, and a bonus for
//! tasks that sleep.
//!
//! Each CPU runs the first task of the best list of its *active* array. A task whose slice is over
//! goes to the *expired* array; when the active one is empty they are swapped. Slices are 800 ms at
//! nice −20, 100 ms at 0, 5 ms at 19. A task that slept much in the last second is better by up to
//! five priorities, one that did not is worse by as many. An *interactive* task, one with enough
//! bonus, returns to the active array. Right for an interactive machine where every decision must
//! cost the same. Bad where its rules misjudge: a hog that sleeps now and then counts as
//! interactive. Tasks of nice 19 wait for seconds behind hogs of nice 0. Shares are proportional to
//! slices, so one step of nice is worth 5 % at one end and half at the other.
//!
//! Source: Linux 2.6.22, `kernel/sched.c`: `static_prio_timeslice`, `effective_prio`,
//! `recalc_task_prio`, `activate_task`, `schedule`, `task_running_tick`, `expired_starving`,
//! `sys_sched_yield`, `TASK_INTERACTIVE`, `INTERACTIVE_SLEEP`, `TIMESLICE_GRANULARITY`; I. Molnar
//! 2002, `Documentation/sched-design.txt`.
//!
//! In effect: a task pays for each tick that finds it running. Two kinds of tasks in the expired
//! array keep interactive tasks from returning to the active one. They have waited long (a second
//! per runnable task), or have a better nice value than the running one. A task that yields goes to
//! the expired array.
//!
//! Cost: O(1) per decision: a bitmap and a list.
//!
//! Deviations: every sleep counts as interruptible (`SLEEP_INTERACTIVE`), since scripts do not
//! distinguish disks from users; all tasks have their own memory (`p->mm`). A new task starts with
//! a full slice and no bonus. The kernel gives it half of its parent's slice and most of its
//! parent's bonus. `fair`, after Linux 6.18, places tasks and runs real-time tasks. `SCHED_IDLE`,
//! which came with CFS, counts as `SCHED_BATCH`.

use super::descriptor::{Descriptor, Given, Make};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::{Shares, TaskView, realtime};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};
use readyq::{Level, Node, Nodes, Priority, ReadyQueue};

/// Linux's scheduler before CFS, on several CPUs.
pub type O1 = Fair<Arrays>;

/// Parameters of [`O1`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The options common to Linux's schedulers.
    pub fair: fair::Options,
}

impl O1 {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> O1 {
        Fair::with_discipline(Arrays::new(cpus, options.fair.tick), cpus, options.fair)
    }
}

/// The maximum bonus (`MAX_BONUS`); half of it is neutral.
const MOST_BONUS: u64 = 10;
/// The sleep that earns the maximum (`MAX_SLEEP_AVG`).
const MOST_SLEEP: Nanos = Nanos::from_millis(1000);
/// How long an interactive task with the maximum bonus runs before its equals (`GRANULARITY`).
const GRANULARITY: Nanos = Nanos::from_millis(10);
/// The part of the time between waking and running that counts as sleep, in 128ths
/// (`ON_RUNQUEUE_WEIGHT`).
const CREDIT: u64 = 30 * 128 / 100;
/// The best priority of a fair task; the worst follows.
const BEST: i32 = 100;
const NONE: i32 = 140;

/// The order of O(1): the active and the expired array of each CPU.
#[derive(Clone, Debug)]
pub struct Arrays {
    tick: Nanos,
    cpus: u64,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    nodes: Vec<Node>,
}

/// One CPU. The running task is in a list like the others.
#[derive(Clone, Debug)]
struct Queue {
    arrays: [Priority; 2],
    /// The index of the active array.
    active: usize,
    len: u64,
    running: Option<TaskId>,
    /// The running task has been charged until this time.
    exec_start: Time,
    /// How long it has run since it started.
    ran: Nanos,
    /// Since when the expired array has a task.
    expired_since: Option<Time>,
    /// The best static priority there (`best_expired_prio`).
    best_expired: i32,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    class: TaskClass,
    /// Its static priority, from its nice value.
    fixed: i32,
    /// With its bonus, when last computed.
    prio: i32,
    /// What is left of its slice.
    left: Nanos,
    /// Its recent sleep less its run time (`sleep_avg`).
    slept: Nanos,
    /// When it fell asleep, or woke.
    since: Time,
    /// When it woke, while it is saved.
    woke: Time,
    /// Whether it has not run since it woke.
    is_fresh: bool,
    /// The array of its CPU that holds it.
    array: usize,
}

impl Entity {
    /// From 0 to [`MOST_BONUS`] (`CURRENT_BONUS`).
    fn bonus(&self) -> u64 {
        self.slept.0 * MOST_BONUS / MOST_SLEEP.0
    }

    /// `effective_prio`.
    fn effective(&self) -> i32 {
        (self.fixed - (self.bonus() as i32 - MOST_BONUS as i32 / 2)).clamp(BEST, NONE - 1)
    }

    /// How much better than its static priority a task must be to count as interactive (`DELTA`).
    fn delta(&self) -> i32 {
        (self.fixed - BEST) * MOST_BONUS as i32 / 40 - MOST_BONUS as i32 / 2 + 2
    }

    fn is_interactive(&self) -> bool {
        self.prio <= self.fixed - self.delta()
    }

    /// The length of its slices (`static_prio_timeslice`).
    fn slice(&self) -> Nanos {
        let unit = if self.fixed < 120 { 4 * 100 } else { 100 };
        Nanos::from_millis((unit * (NONE - self.fixed) as u64 / 20).max(5))
    }

    /// Credits this much sleep or waiting (`recalc_task_prio`).
    fn credit(&mut self, sleep: Nanos, tick: Nanos) {
        if self.class != TaskClass::ByPriority || sleep == Nanos::ZERO {
            return;
        }
        // One long sleep makes a task just interactive and no better.
        let share = (MOST_BONUS as i32 / 2 + self.delta() + 1).max(0) as u64;
        let ceiling = Nanos(MOST_SLEEP.0 * share / MOST_BONUS).saturating_sub(tick);
        if sleep > ceiling && self.slept < ceiling {
            (self.slept, self.is_fresh) = (ceiling, false);
        } else {
            self.slept = (self.slept + sleep).min(MOST_SLEEP);
        }
    }
}

impl Arrays {
    fn new(cpus: u16, tick: Nanos) -> Arrays {
        let queue = Queue {
            arrays: [Priority::new(), Priority::new()],
            active: 0,
            len: 0,
            running: None,
            exec_start: Time::ZERO,
            ran: Nanos::ZERO,
            expired_since: None,
            best_expired: NONE,
        };
        Arrays {
            tick,
            cpus: u64::from(cpus),
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Puts `task` at the tail of its list in the active or the expired array.
    fn insert(&mut self, cpu: CpuId, task: TaskId, expired: bool) {
        let (queue, entity) = (&mut self.queues[cpu.index()], &mut self.entities[task.index()]);
        entity.array = queue.active ^ usize::from(expired);
        queue.arrays[entity.array].insert(
            Nodes::from_mut(&mut self.nodes),
            task,
            Level(entity.prio as u16),
        );
    }

    fn remove(&mut self, cpu: CpuId, task: TaskId) {
        let array = self.entities[task.index()].array;
        self.queues[cpu.index()].arrays[array].remove(Nodes::from_mut(&mut self.nodes), task);
    }

    /// Charges the running task's bonus for its run time: the better the bonus, the less.
    fn settle(&mut self, cpu: CpuId) {
        let queue = &mut self.queues[cpu.index()];
        let ran = std::mem::take(&mut queue.ran).min(MOST_SLEEP);
        if let Some(task) = queue.running.take() {
            let entity = &mut self.entities[task.index()];
            entity.slept = entity.slept.saturating_sub(Nanos(ran.0 / entity.bonus().max(1)));
        }
    }

    /// Whether tasks in the expired array have waited too long, or one of them waits for a less
    /// important task (`expired_starving`).
    fn starves(&self, cpu: CpuId, running: &Entity, now: Time) -> bool {
        let queue = &self.queues[cpu.index()];
        let limit = Nanos(MOST_SLEEP.0.saturating_mul(queue.len));
        running.fixed > queue.best_expired
            || queue.expired_since.is_some_and(|since| now.since(since) > limit)
    }

    /// The slice of `task`, which runs, is over.
    fn renew(&mut self, cpu: CpuId, task: TaskId) {
        self.remove(cpu, task);
        let now = self.queues[cpu.index()].exec_start;
        let entity = &mut self.entities[task.index()];
        (entity.prio, entity.left) = (entity.effective(), entity.slice());
        let entity = *entity;
        let queue = &mut self.queues[cpu.index()];
        queue.expired_since.get_or_insert(now);
        let expires = !entity.is_interactive() || self.starves(cpu, &entity, now);
        if expires {
            let best = &mut self.queues[cpu.index()].best_expired;
            *best = entity.fixed.min(*best);
        }
        self.insert(cpu, task, expires);
    }

    /// Whether an interactive task has run long enough that its equals run next
    /// (`TIMESLICE_GRANULARITY`).
    fn ends_granule(&self, entity: &Entity) -> bool {
        let doublings = (MOST_BONUS - entity.bonus()).max(1) - 1;
        let granularity = Nanos((GRANULARITY.0 << doublings) * self.cpus);
        let used = entity.slice().saturating_sub(entity.left);
        entity.is_interactive()
            && entity.left >= granularity
            && used.0 % granularity.0 < self.tick.0
    }
}

impl Discipline for Arrays {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let class = if view.attributes.class == TaskClass::Idle {
            TaskClass::Batch
        } else {
            view.attributes.class
        };
        let (slept, since) = (Nanos::ZERO, Time::NEVER); // its earlier life does not count
        let fixed = i32::from(view.prio);
        let mut new = Entity {
            class,
            fixed,
            prio: fixed,
            left: Nanos::ZERO,
            slept,
            since,
            woke: since,
            is_fresh: false,
            array: 0,
        };
        (new.prio, new.left) = (new.effective(), new.slice());
        let len = self.entities.len().max(task.index() + 1);
        self.entities.resize(len, new);
        self.nodes.resize(len, Node::NEW);
        self.entities[task.index()] = new;
        self.nodes[task.index()] = Node::NEW;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        if queue.running.is_some() {
            queue.ran += now.since(queue.exec_start);
        }
        queue.exec_start = now;
        false // only a tick ends a slice
    }

    fn expires(&mut self, cpu: CpuId) -> bool {
        let Queue { running: Some(task), active, .. } = self.queues[cpu.index()] else {
            return false;
        };
        let entity = &mut self.entities[task.index()];
        if entity.array != active {
            return true;
        }
        entity.left = entity.left.saturating_sub(self.tick);
        if entity.left == Nanos::ZERO {
            self.renew(cpu, task);
            return true;
        }
        let entity = *entity;
        let ends_granule = self.ends_granule(&entity);
        if ends_granule {
            self.remove(cpu, task);
            self.insert(cpu, task, false);
        }
        ends_granule
    }

    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, now: Time) {
        let expired = match how {
            Join::Moves | Join::Restored => {
                let entity = &mut self.entities[task.index()];
                if how == Join::Restored {
                    entity.since = entity.woke;
                }
                entity.array == 1
            }
            Join::New | Join::Wakes => {
                let tick = self.tick;
                let entity = &mut self.entities[task.index()];
                if how == Join::Wakes {
                    entity.is_fresh = true;
                    entity.credit(now.since(entity.since), tick);
                    entity.prio = entity.effective();
                }
                entity.since = now;
                entity.class == TaskClass::Batch
            }
        };
        self.insert(cpu, task, expired);
        self.queues[cpu.index()].len += 1;
    }

    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, now: Time) {
        if self.queues[cpu.index()].running == Some(task) {
            self.settle(cpu);
        }
        self.remove(cpu, task);
        let queue = &mut self.queues[cpu.index()];
        queue.len -= 1;
        let entity = &mut self.entities[task.index()];
        match how {
            Leave::Moves | Leave::Saved => {
                if how == Leave::Saved {
                    (entity.woke, entity.since) = (entity.since, now);
                }
                entity.array = usize::from(entity.array != queue.active); // 1 if it had expired
            }
            Leave::Sleeps | Leave::Exits => entity.since = now,
        }
    }

    fn in_delayed_dequeue(&self, _task: TaskId) -> bool {
        false
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let queue = &mut self.queues[cpu.index()];
        if queue.len == 0 {
            queue.expired_since = None;
            return None;
        }
        if queue.arrays[queue.active].is_empty() {
            queue.active ^= 1;
            (queue.expired_since, queue.best_expired) = (None, NONE);
        }
        queue.arrays[queue.active].peek(Nodes::from_ref(&self.nodes))
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.settle(cpu);
        let entity = &mut self.entities[task.index()];
        if std::mem::take(&mut entity.is_fresh) {
            let waited = now.since(entity.since).0.saturating_mul(CREDIT) / 128;
            entity.credit(Nanos(waited), self.tick);
            let prio = entity.effective();
            if prio != entity.prio {
                let expired = entity.array != self.queues[cpu.index()].active;
                self.remove(cpu, task);
                self.entities[task.index()].prio = prio;
                self.insert(cpu, task, expired);
            }
        }
        let queue = &mut self.queues[cpu.index()];
        (queue.running, queue.exec_start) = (Some(task), now);
    }

    fn put_back(&mut self, cpu: CpuId) {
        self.settle(cpu);
    }

    fn yield_task(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running {
            self.remove(cpu, task);
            self.insert(cpu, task, true);
        }
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let queue = &self.queues[cpu.index()];
        let entity = |task: TaskId| &self.entities[task.index()];
        queue.running.is_some_and(|running| {
            entity(task).prio < entity(running).prio && entity(task).array == queue.active
        })
    }

    /// The slice continues; the bonus stays (`set_user_nice`).
    fn set_weight(&mut self, cpu: CpuId, task: TaskId, view: &TaskView) {
        let runs = self.queues[cpu.index()].running == Some(task);
        if runs {
            self.remove(cpu, task);
        }
        let entity = &mut self.entities[task.index()];
        entity.fixed = i32::from(view.prio);
        entity.prio = entity.effective();
        if runs {
            let expired = self.entities[task.index()].array != self.queues[cpu.index()].active;
            self.insert(cpu, task, expired);
        }
    }

    fn shares(&self) -> Option<Shares> {
        None
    }

    fn may_move(&self, _cpu: CpuId, _task: TaskId) -> bool {
        true
    }
}

/// Linux' scheduler from 2.6.0 to 2.6.22.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "o1",
    summary: "Linux 2.6.22's scheduler: active and expired arrays, a bonus for sleepers, slices \
              by nice value",
    source: "Linux 2.6.22, kernel/sched.c; I. Molnar 2002, Documentation/sched-design.txt",
    options: &[fair::TICK, fair::HOT, fair::QUANTUM, realtime::THROTTLE, fair::SERVER],
    structure: Some("priority"),
    scheduler: &Make(|given| O1::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options { fair: given.into() }
    }
}
