//! CFS, Linux's fair scheduler until 6.5: the task with the least CPU time for its weight runs.
//!
//! Every task has a virtual run time, which advances more slowly the more the task weighs. The task
//! with the smallest one runs for its share of a period in which every task should run once. The
//! period is 6 ms, or 0.75 ms per task with more than eight. Right as a general-purpose scheduler,
//! and as the baseline of most studies of the last fifteen years. Bad for tasks that need short
//! latencies, because a task cannot request one. A woken task gets ahead because it slept, not
//! because it needs little. How far is a heuristic.
//!
//! Source: Linux 6.1 (as of 6.1.113), `kernel/sched/fair.c`: `update_curr`, `update_min_vruntime`,
//! `sched_slice`, `place_entity`, `check_preempt_tick`, `check_preempt_wakeup`, `wakeup_gran`,
//! `pick_next_entity`, `yield_task_fair`, `migrate_task_rq_fair`. Features as by default:
//! `GENTLE_FAIR_SLEEPERS`, `START_DEBIT`, `LAST_BUDDY`, `CACHE_HOT_BUDDY`, `WAKEUP_PREEMPTION` and
//! `BASE_SLICE` are on, `NEXT_BUDDY` and `HRTICK` off.
//!
//! In effect: a sleeper returns at most half a latency before `min_vruntime`. It preempts if it is
//! more than the wakeup granularity behind the running task. It is then preferred (`next`) unless
//! another task is further behind than that. A new task starts a slice ahead. A task that yields is
//! skipped once, if the next one is not too far ahead. Slices end at ticks only.
//!
//! Fairness: tasks that stay runnable on one CPU differ in virtual run time by at most a latency
//! and a tick of the lightest. They differ by more only while sleepers catch up.
//!
//! Cost: O(log n) per decision, in a heap ordered by virtual run time.
//!
//! Deviations: no core scheduling or `yield_to`; groups are in `fair::groups`. Virtual times are
//! divided exactly where the kernel multiplies by a reciprocal (below 2 millionths). A new task is
//! placed by the queue it starts on, not by its parent's. This differs by a few ms once, if it
//! starts on another busy CPU. A task whose script starts with a pause counts as a sleeper. `fair`,
//! after Linux 6.18, chooses the CPU of a task; its deviations are its own.

use super::descriptor::{Descriptor, Given, Make};
use super::fair::groups::{Grouped, Nested};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::ranking::{Entry, NOT_WAITING, Ranking, Sequences};
use super::weights::Weight;
use super::{Kept, ShareMeasure, Shares, TaskView, VirtualTimes, realtime};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};

/// Linux's fair class before EEVDF, on several CPUs.
pub type Cfs = Fair<Grouped<VirtualRunTimes>>;

/// Parameters of [`Cfs`] for one CPU. On `n` CPUs the first three are `1 + log2(min(n, 8))` times
/// as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The period in which every task should run once (`sched_latency_ns`).
    pub latency: Nanos,
    /// The shortest slice (`sched_min_granularity_ns`). With more tasks than fit, the period
    /// grows.
    pub min_granularity: Nanos,
    /// How far behind the running task a woken one must be to preempt it
    /// (`sched_wakeup_granularity_ns`).
    pub wakeup_granularity: Nanos,
    /// The options of all fair schedulers.
    pub fair: fair::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            latency: Nanos::from_millis(6),
            min_granularity: Nanos::from_micros(750),
            wakeup_granularity: Nanos::from_millis(1),
            fair: fair::Options::default(),
        }
    }
}

impl Cfs {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Cfs {
        Fair::with_discipline(
            Grouped::new(VirtualRunTimes::new(cpus, options), cpus),
            cpus,
            options.fair,
        )
    }
}

/// The order of CFS: virtual run times, and tasks that are preferred or skipped.
#[derive(Clone, Debug)]
pub struct VirtualRunTimes {
    latency: u64,
    min_granularity: u64,
    wakeup_granularity: u64,
    tick: Nanos,
    /// The number of tasks that fit into a period.
    fitting: u64,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    sequences: Sequences,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// The waiting tasks, by virtual run time.
    waiting: Ranking,
    /// The number of waiting and running tasks.
    len: u64,
    /// Their weight.
    weight: u64,
    /// The minimum virtual run time so far (`min_vruntime`); it never goes back.
    min_vruntime: i64,
    running: Option<TaskId>,
    /// The running task has been charged until this time.
    exec_start: Time,
    /// How long it has run in this slice.
    ran: Nanos,
    /// A task that preempted another one and runs next, if it is not too far ahead.
    next: Option<TaskId>,
    /// A task that was preempted by a woken one and returns next, likewise.
    last: Option<TaskId>,
    /// The task that has yielded.
    skip: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    class: TaskClass,
    /// CPU time by weight, in ns of nice 0.
    vruntime: i64,
    /// The reference of `vruntime`.
    clock: Clock,
    /// When it started to wait, if it waits.
    sequence: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    /// Not placed yet.
    New,
    /// Of this CPU, on which it waits, runs or slept.
    Of(CpuId),
    /// Migrating: relative to `min_vruntime` of the CPU that it left.
    Relative,
}

impl VirtualRunTimes {
    fn new(cpus: u16, options: Options) -> Self {
        let queue = Queue {
            waiting: Ranking::default(),
            len: 0,
            weight: 0,
            min_vruntime: 0,
            running: None,
            exec_start: Time::ZERO,
            ran: Nanos::ZERO,
            next: None,
            last: None,
            skip: None,
        };
        let scaled =
            |time: Nanos| time.0.max(1).saturating_mul(u64::from(1 + cpus.clamp(1, 8).ilog2()));
        let (latency, min_granularity) = (scaled(options.latency), scaled(options.min_granularity));
        VirtualRunTimes {
            latency,
            min_granularity,
            wakeup_granularity: scaled(options.wakeup_granularity),
            tick: options.fair.tick,
            fitting: latency.div_ceil(min_granularity),
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            sequences: Sequences::default(),
        }
    }

    fn vruntime(&self, task: TaskId) -> i64 {
        self.entities[task.index()].vruntime
    }

    /// The slice of a task of weight `own`: its share of the period of `len` tasks of total
    /// `weight`.
    fn slice(&self, len: u64, weight: u64, own: u32) -> u64 {
        let period = if len > self.fitting { len * self.min_granularity } else { self.latency };
        let share = u128::from(period) * u128::from(own) / u128::from(weight.max(1));
        (share as u64).max(self.min_granularity)
    }

    /// Whether `task` is so far ahead of `other` that `other` should run instead.
    fn is_too_far_ahead(&self, task: TaskId, other: TaskId) -> bool {
        let granularity = self.entities[other.index()].weight.virtual_time(self.wakeup_granularity);
        self.vruntime(task) - self.vruntime(other) > granularity
    }

    /// Advances `min_vruntime`.
    fn advance(&mut self, cpu: CpuId) {
        let queue = &self.queues[cpu.index()];
        let running = queue.running.map(|task| self.vruntime(task));
        if let Some(least) =
            running.into_iter().chain(queue.waiting.first().map(|first| first.time)).min()
        {
            let queue = &mut self.queues[cpu.index()];
            queue.min_vruntime = queue.min_vruntime.max(least);
        }
    }

    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let entity = &mut self.entities[task.index()];
        entity.sequence = self.sequences.next();
        let entry = Entry { time: entity.vruntime, sequence: entity.sequence, task };
        self.queues[cpu.index()].waiting.insert(|task| self.entities[task.index()].sequence, entry);
    }

    fn remove(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].sequence = NOT_WAITING;
        self.queues[cpu.index()].waiting.settle(|task| self.entities[task.index()].sequence);
    }

    /// `task` is no longer preferred or skipped.
    fn forget_wishes(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        for wish in [&mut queue.next, &mut queue.last, &mut queue.skip] {
            *wish = wish.filter(|&other| other != task);
        }
    }

    /// The task with the second smallest virtual run time; `task` has the smallest.
    fn second(&mut self, cpu: CpuId, task: TaskId) -> Option<TaskId> {
        let queue = &mut self.queues[cpu.index()];
        if queue.running == Some(task) {
            return queue.waiting.first().map(|entry| entry.task);
        }
        let (running, waiting) = (
            queue.running,
            queue
                .waiting
                .second(|task| self.entities[task.index()].sequence)
                .map(|entry| entry.task),
        );
        self.less_advanced(running, waiting)
    }

    /// The smaller of a running and a waiting task. Ties go to the waiting one.
    fn less_advanced(&self, running: Option<TaskId>, waiting: Option<TaskId>) -> Option<TaskId> {
        match (running, waiting) {
            (Some(running), Some(waiting)) if self.vruntime(running) < self.vruntime(waiting) => {
                Some(running)
            }
            (running, waiting) => waiting.or(running),
        }
    }
}

impl Nested for VirtualRunTimes {
    fn is_empty(&self, cpu: CpuId) -> bool {
        self.queues[cpu.index()].len == 0
    }

    fn set_share(&mut self, task: TaskId, weight: u32) {
        self.entities[task.index()].weight = Weight::new(weight);
    }
}

impl Discipline for VirtualRunTimes {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let new = Entity {
            weight: Weight::of(view.prio, view.attributes.class),
            class: view.attributes.class,
            vruntime: 0,
            clock: Clock::New,
            sequence: NOT_WAITING,
        };
        let len = self.entities.len().max(task.index() + 1);
        self.entities.resize(len, new);
        self.entities[task.index()] = new;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let ran = now.since(queue.exec_start);
        if let Some(task) = queue.running
            && ran > Nanos::ZERO
        {
            queue.exec_start = now;
            queue.ran += ran;
            let entity = &mut self.entities[task.index()];
            entity.vruntime += entity.weight.virtual_time(ran.0);
            self.advance(cpu);
        }
        false // only a tick ends a slice
    }

    fn expires(&mut self, cpu: CpuId) -> bool {
        let queue = &self.queues[cpu.index()];
        let (Some(running), Some(Entry { time: first, .. })) =
            (queue.running, queue.waiting.first())
        else {
            return false;
        };
        let slice = self
            .slice(queue.len, queue.weight, self.entities[running.index()].weight.get())
            .min(self.latency);
        if queue.ran.0 > slice {
            self.forget_wishes(cpu, running);
            return true;
        }
        let ahead = self.vruntime(running) - first;
        queue.ran.0 >= self.min_granularity && ahead > i64::try_from(slice).unwrap_or(i64::MAX)
    }

    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, _now: Time) {
        let Entity { weight, vruntime, clock, class, .. } = self.entities[task.index()];
        let queue = &self.queues[cpu.index()];
        let vruntime = match clock {
            Clock::New if how == Join::Wakes => i64::MIN, // it has slept since it came into being
            Clock::New => {
                let slice =
                    self.slice(queue.len + 1, queue.weight + u64::from(weight.get()), weight.get());
                let parent = queue.running.map_or(0, |running| self.vruntime(running));
                parent.max(queue.min_vruntime + weight.virtual_time(slice))
            }
            Clock::Of(old) if old != cpu => {
                vruntime - self.queues[old.index()].min_vruntime + queue.min_vruntime
            }
            Clock::Of(_) => vruntime,
            Clock::Relative => vruntime + queue.min_vruntime,
        };
        let credit = if class == TaskClass::Idle { self.min_granularity } else { self.latency };
        let earliest =
            if how == Join::Wakes { queue.min_vruntime - (credit / 2) as i64 } else { i64::MIN };
        let entity = &mut self.entities[task.index()];
        (entity.vruntime, entity.clock) = (vruntime.max(earliest), Clock::Of(cpu));
        self.insert(cpu, task);
        let queue = &mut self.queues[cpu.index()];
        queue.len += 1;
        queue.weight += u64::from(weight.get());
    }

    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, _now: Time) {
        self.forget_wishes(cpu, task);
        if self.queues[cpu.index()].running == Some(task) {
            self.queues[cpu.index()].running = None;
        } else {
            self.remove(cpu, task);
        }
        let (queue, entity) = (&mut self.queues[cpu.index()], &mut self.entities[task.index()]);
        queue.len -= 1;
        queue.weight -= u64::from(entity.weight.get());
        if how == Leave::Moves {
            entity.vruntime -= queue.min_vruntime;
            entity.clock = Clock::Relative;
        }
        if how != Leave::Saved {
            self.advance(cpu);
        }
    }

    fn virtual_times(&self, cpu: CpuId, task: TaskId, now: Time) -> Option<VirtualTimes> {
        let Entity { vruntime, weight, sequence, .. } = *self.entities.get(task.index())?;
        let queue = &self.queues[cpu.index()];
        let vruntime = match queue.running == Some(task) {
            true => vruntime + weight.virtual_time(now.since(queue.exec_start).0),
            false if sequence == NOT_WAITING => return None,
            false => vruntime,
        };
        Some(VirtualTimes { vruntime, entitlement: None })
    }

    fn keep(&mut self, cpu: CpuId, task: TaskId, kept: Kept) {
        let entity = &mut self.entities[task.index()];
        entity.vruntime = self.queues[cpu.index()].min_vruntime + kept.vruntime;
        entity.clock = Clock::Of(cpu);
    }

    fn in_delayed_dequeue(&self, _task: TaskId) -> bool {
        false
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let queue = &self.queues[cpu.index()];
        let least =
            self.less_advanced(queue.running, queue.waiting.first().map(|entry| entry.task))?;
        let acceptable = |this: &Self, task: &TaskId| !this.is_too_far_ahead(*task, least);
        let preferred =
            [queue.next, queue.last].into_iter().flatten().find(|task| acceptable(self, task));
        if preferred.is_some() || queue.skip != Some(least) {
            return preferred.or(Some(least));
        }
        self.second(cpu, least).filter(|task| acceptable(self, task)).or(Some(least))
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.queues[cpu.index()].exec_start = now;
        if self.queues[cpu.index()].running == Some(task) {
            return; // and its slice continues
        }
        self.forget_wishes(cpu, task);
        self.put_back(cpu);
        self.remove(cpu, task);
        let queue = &mut self.queues[cpu.index()];
        (queue.running, queue.ran) = (Some(task), Nanos::ZERO);
    }

    fn put_back(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running.take() {
            self.insert(cpu, task);
        }
    }

    fn yield_task(&mut self, cpu: CpuId) {
        let queue = &self.queues[cpu.index()];
        if let Some(task) = queue.running.filter(|_| queue.len > 1) {
            self.forget_wishes(cpu, task);
            self.queues[cpu.index()].skip = Some(task);
        }
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let Some(running) = self.queues[cpu.index()].running else {
            return false;
        };
        let class = |task: TaskId| self.entities[task.index()].class;
        match fair::class_preempts(class(task), class(running)) {
            Some(preempts) => return preempts, // without a preference
            None if !self.is_too_far_ahead(running, task) => return false,
            None => {}
        }
        let queue = &mut self.queues[cpu.index()];
        queue.next = Some(task);
        if queue.len >= self.fitting {
            queue.last = Some(running);
        }
        true
    }

    /// Keeps the virtual run time; a running task starts a new slice, as in `set_next_entity`.
    fn set_weight(&mut self, cpu: CpuId, task: TaskId, view: &TaskView) {
        let weight = Weight::of(view.prio, view.attributes.class);
        let old = std::mem::replace(&mut self.entities[task.index()].weight, weight).get();
        let queue = &mut self.queues[cpu.index()];
        if queue.running == Some(task) && weight.get() != old {
            queue.weight = queue.weight - u64::from(old) + u64::from(weight.get());
            queue.ran = Nanos::ZERO;
        }
    }

    fn shares(&self) -> Option<Shares> {
        // A latency and a tick; more while sleepers, which return up to half a latency behind,
        // catch up.
        let fixed = Nanos(self.latency + self.latency / 2 + self.wakeup_granularity) + self.tick;
        let measure = ShareMeasure::Spread { fixed, per_task: Nanos(self.min_granularity) };
        Some(Shares { measure, undisturbed: true })
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        let queue = &self.queues[cpu.index()];
        queue.next != Some(task) && queue.last != Some(task)
    }
}

/// Linux' fair scheduler until 6.5.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "cfs",
    summary: "Linux 6.1's fair scheduler: weights, virtual run times, wakeup preemption, load \
              balancing",
    source: "Linux 6.1, kernel/sched/fair.c",
    options: &[
        OptionSpec::duration("latency", "the period in which every task runs once, on one CPU")
            .by_default("6ms"),
        OptionSpec::duration("granularity", "the shortest slice, on one CPU").by_default("750us"),
        OptionSpec::duration(
            "wakeup",
            "how far behind a woken task must be to preempt, on one CPU",
        )
        .by_default("1ms"),
        fair::TICK,
        fair::HOT,
        fair::QUANTUM,
        realtime::THROTTLE,
        fair::SERVER,
    ],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Cfs::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options {
            latency: given.duration("latency"),
            min_granularity: given.duration("granularity"),
            wakeup_granularity: given.duration("wakeup"),
            fair: given.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice(nice: u8) -> TaskView {
        TaskView::of(120 + nice)
    }

    #[test]
    fn between_cpus_a_task_keeps_its_distance_from_the_least_advanced() {
        let (here, there, ms) = (CpuId(0), CpuId(1), |ms: u64| Time(ms * 1_000_000));
        let mut order = VirtualRunTimes::new(2, Options::default());
        for (task, cpu) in [(0, here), (1, there), (2, here)] {
            order.init_task(TaskId(task), &nice(0));
            order.join(cpu, TaskId(task), Join::New, Time::ZERO);
        }
        // On two CPUs a latency of 12 ms, or half of that for one of two.
        order.start(here, TaskId(0), ms(0));
        order.charge(here, ms(20));
        order.start(there, TaskId(1), ms(0));
        order.charge(there, ms(100));
        assert_eq!(
            [0, 1, 2].map(|task| order.vruntime(TaskId(task))),
            [32_000_000, 112_000_000, 6_000_000]
        );
        // No task here is behind task 2; after it comes task 0.
        order.leave(here, TaskId(2), Leave::Moves, Time::ZERO);
        order.join(there, TaskId(2), Join::Moves, Time::ZERO);
        assert_eq!(order.vruntime(TaskId(2)), 112_000_000);
        order.leave(there, TaskId(2), Leave::Sleeps, Time::ZERO);
        order.charge(there, ms(110));
        // It wakes here again: 10 ms behind there, but at most half a latency behind here.
        order.join(here, TaskId(2), Join::Wakes, Time::ZERO);
        assert_eq!(order.vruntime(TaskId(2)), 32_000_000 - 6_000_000);
    }
}
