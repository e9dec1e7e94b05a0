//! CFS, Linux's fair scheduler until 6.5: whoever has had the least CPU time for its weight runs.
//!
//! Every task has a virtual run time, which advances more slowly the more it weighs. The least advanced runs for its share of a period in which
//! everybody shall run once (6 ms, or 0.75 ms for each task where they are more than eight). Right as a general-purpose scheduler, and as the
//! baseline of most studies of the last fifteen years. It does badly at latencies that somebody asks for, because it has no word for them: a woken task gets
//! ahead by having slept, not by needing little, and how far is a heuristic.
//!
//! Source: Linux 6.1 (as of 6.1.113), `kernel/sched/fair.c`: `update_curr`, `update_min_vruntime`, `sched_slice`, `place_entity`, `check_preempt_tick`,
//! `check_preempt_wakeup`, `wakeup_gran`, `pick_next_entity`, `yield_task_fair`, `migrate_task_rq_fair`. Features as by default:
//! `GENTLE_FAIR_SLEEPERS`, `START_DEBIT`, `LAST_BUDDY`, `CACHE_HOT_BUDDY`, `WAKEUP_PREEMPTION` and `BASE_SLICE` are on, `NEXT_BUDDY` and `HRTICK` off.
//!
//! What that means here: a sleeper comes back at most half a latency behind the least advanced. It preempts if it is more than the wakeup
//! granularity behind the running task, and is then preferred (`next`) unless somebody is further behind than that. A new task begins a slice ahead. Who yields
//! is passed over once, if the next one is not too far ahead. Slices end at ticks only.
//!
//! How far from fair: tasks that stay runnable on one CPU differ in virtual run time by no more than a latency and a tick of the lightest, more
//! only while sleepers are being made up to.
//!
//! Cost: O(log n) per decision, in a heap ordered by virtual run time.
//!
//! Deviations: no core scheduling or `yield_to`; groups are in `fair::groups`. Virtual times are divided exactly where the kernel
//! multiplies by a reciprocal (below 2 millionths). A new task is placed by the queue it begins on, not by its parent's, which differs where it begins on another busy
//! CPU, by a few ms once. One whose script begins with a pause counts as a sleeper. Where a task runs is the business of `fair`, written after Linux 6.18, with deviations of its own.

use super::descriptor::{Descriptor, Given, Make};
use super::fair::groups::{Grouped, Nested};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::ranking::{Entry, NOT_WAITING, Ranking, Turns};
use super::realtime;
use super::weights::Weight;
use super::{ShareMeasure, Shares, TaskView};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};

/// Linux's fair class before EEVDF, on several CPUs.
pub type Cfs = Fair<Grouped<VirtualRunTimes>>;

/// Parameters of [`Cfs`], for one CPU. On `n` CPUs the first three are `1 + log2(min(n, 8))` times as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The period in which everybody shall run once (`sched_latency_ns`).
    pub latency: Nanos,
    /// The shortest slice (`sched_min_granularity_ns`): with more tasks than fit, the period grows.
    pub min_granularity: Nanos,
    /// How far behind the running task a woken one must be to preempt it (`sched_wakeup_granularity_ns`).
    pub wakeup_granularity: Nanos,
    /// What all fair schedulers share.
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
        Fair::with_discipline(Grouped::new(VirtualRunTimes::new(cpus, options), cpus), cpus, options.fair)
    }
}

/// CFS' order: virtual run times, and a few tasks that are preferred or passed over.
#[derive(Clone, Debug)]
pub struct VirtualRunTimes {
    latency: u64,
    min_granularity: u64,
    wakeup_granularity: u64,
    tick: Nanos,
    /// How many tasks fit into a period.
    fitting: u64,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    turns: Turns,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    /// Who waits, by virtual run time.
    waiting: Ranking,
    /// Who takes part: those who wait and the running one.
    len: u64,
    /// What they weigh.
    weight: u64,
    /// The least virtual run time so far (`min_vruntime`); it never goes back.
    least: i64,
    running: Option<TaskId>,
    /// Until when the running task has been charged.
    charged: Time,
    /// How long it has run in this turn.
    ran: Nanos,
    /// Who shall run next because it preempted somebody, if it is not too far ahead.
    next: Option<TaskId>,
    /// Who was preempted by a woken task and shall come back, likewise.
    last: Option<TaskId>,
    /// Who has yielded.
    skip: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    weight: Weight,
    class: TaskClass,
    /// CPU time by weight, in ns of nice 0.
    vruntime: i64,
    /// Where that counts from.
    clock: Clock,
    /// When it began to wait, if it waits.
    turn: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clock {
    /// It has not been placed yet.
    New,
    /// It takes part on this CPU, or slept there.
    Of(CpuId),
    /// It is on its way: from the least of the CPU that it left.
    Relative,
}

impl VirtualRunTimes {
    fn new(cpus: u16, options: Options) -> Self {
        let queue = Queue {
            waiting: Ranking::default(),
            len: 0,
            weight: 0,
            least: 0,
            running: None,
            charged: Time::ZERO,
            ran: Nanos::ZERO,
            next: None,
            last: None,
            skip: None,
        };
        let scaled = |time: Nanos| time.0.max(1).saturating_mul(u64::from(1 + cpus.clamp(1, 8).ilog2()));
        let (latency, min_granularity) = (scaled(options.latency), scaled(options.min_granularity));
        VirtualRunTimes {
            latency,
            min_granularity,
            wakeup_granularity: scaled(options.wakeup_granularity),
            tick: options.fair.tick,
            fitting: latency.div_ceil(min_granularity),
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            turns: Turns::default(),
        }
    }

    fn vruntime(&self, task: TaskId) -> i64 {
        self.entities[task.index()].vruntime
    }

    /// The share of the period that belongs to `own` of `weight`, for one of `len` tasks.
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

    /// The least virtual run time moves on with the tasks.
    fn advance(&mut self, cpu: CpuId) {
        let queue = &self.queues[cpu.index()];
        let running = queue.running.map(|task| self.vruntime(task));
        if let Some(least) = running.into_iter().chain(queue.waiting.first().map(|first| first.time)).min() {
            let queue = &mut self.queues[cpu.index()];
            queue.least = queue.least.max(least);
        }
    }

    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        let entity = &mut self.entities[task.index()];
        entity.turn = self.turns.next();
        let entry = Entry { time: entity.vruntime, turn: entity.turn, task };
        self.queues[cpu.index()].waiting.insert(|task| self.entities[task.index()].turn, entry);
    }

    fn remove(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].turn = NOT_WAITING;
        self.queues[cpu.index()].waiting.settle(|task| self.entities[task.index()].turn);
    }

    /// `task` is neither preferred nor passed over any more.
    fn forget_wishes(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        for wish in [&mut queue.next, &mut queue.last, &mut queue.skip] {
            *wish = wish.filter(|&other| other != task);
        }
    }

    /// The least advanced of all but `task`, which is the least advanced.
    fn second(&mut self, cpu: CpuId, task: TaskId) -> Option<TaskId> {
        let queue = &mut self.queues[cpu.index()];
        if queue.running == Some(task) {
            return queue.waiting.first().map(|entry| entry.task);
        }
        let (running, waiting) = (queue.running, queue.waiting.second(|task| self.entities[task.index()].turn).map(|entry| entry.task));
        self.less_advanced(running, waiting)
    }

    /// Of a running and a waiting task. Among equals the one that waits.
    fn less_advanced(&self, running: Option<TaskId>, waiting: Option<TaskId>) -> Option<TaskId> {
        match (running, waiting) {
            (Some(running), Some(waiting)) if self.vruntime(running) < self.vruntime(waiting) => Some(running),
            (running, waiting) => waiting.or(running),
        }
    }
}

impl Nested for VirtualRunTimes {
    fn is_empty(&self, cpu: CpuId) -> bool {
        self.queues[cpu.index()].len == 0
    }

    fn set_weight(&mut self, task: TaskId, weight: u32) {
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
            turn: NOT_WAITING,
        };
        let len = self.entities.len().max(task.index() + 1);
        self.entities.resize(len, new);
        self.entities[task.index()] = new;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let ran = now.since(queue.charged);
        if let Some(task) = queue.running
            && ran > Nanos::ZERO
        {
            queue.charged = now;
            queue.ran += ran;
            let entity = &mut self.entities[task.index()];
            entity.vruntime += entity.weight.virtual_time(ran.0);
            self.advance(cpu);
        }
        false // only a tick ends a turn
    }

    fn expires(&mut self, cpu: CpuId) -> bool {
        let queue = &self.queues[cpu.index()];
        let (Some(running), Some(Entry { time: first, .. })) = (queue.running, queue.waiting.first()) else {
            return false;
        };
        let slice = self.slice(queue.len, queue.weight, self.entities[running.index()].weight.get()).min(self.latency);
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
                let slice = self.slice(queue.len + 1, queue.weight + u64::from(weight.get()), weight.get());
                let parent = queue.running.map_or(0, |running| self.vruntime(running));
                parent.max(queue.least + weight.virtual_time(slice))
            }
            Clock::Of(old) if old != cpu => vruntime - self.queues[old.index()].least + queue.least,
            Clock::Of(_) => vruntime,
            Clock::Relative => vruntime + queue.least,
        };
        let credit = if class == TaskClass::Idle { self.min_granularity } else { self.latency };
        let earliest = if how == Join::Wakes { queue.least - (credit / 2) as i64 } else { i64::MIN };
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
            entity.vruntime -= queue.least;
            entity.clock = Clock::Relative;
        }
        self.advance(cpu);
    }

    fn lingers(&self, _task: TaskId) -> bool {
        false
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        let queue = &self.queues[cpu.index()];
        let least = self.less_advanced(queue.running, queue.waiting.first().map(|entry| entry.task))?;
        let acceptable = |this: &Self, task: &TaskId| !this.is_too_far_ahead(*task, least);
        let preferred = [queue.next, queue.last].into_iter().flatten().find(|task| acceptable(self, task));
        if preferred.is_some() || queue.skip != Some(least) {
            return preferred.or(Some(least));
        }
        self.second(cpu, least).filter(|task| acceptable(self, task)).or(Some(least))
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.queues[cpu.index()].charged = now;
        if self.queues[cpu.index()].running == Some(task) {
            return; // and its turn goes on
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

    fn yield_turn(&mut self, cpu: CpuId) {
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
            Some(preempts) => return preempts, // and nobody is preferred for it
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

    fn shares(&self) -> Option<Shares> {
        // A latency and a tick; more while sleepers, which come back up to half a latency behind, are made up to.
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
    summary: "Linux 6.1's fair scheduler: weights, virtual run times, wakeup preemption, load balancing",
    source: "Linux 6.1, kernel/sched/fair.c",
    options: &[
        OptionSpec::duration("latency", "the period in which every task runs once, on one CPU").by_default("6ms"),
        OptionSpec::duration("granularity", "the shortest slice, on one CPU").by_default("750us"),
        OptionSpec::duration("wakeup", "how far behind a woken task must be to preempt, on one CPU").by_default("1ms"),
        fair::TICK,
        fair::HOT,
        fair::SYNC,
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
        assert_eq!([0, 1, 2].map(|task| order.vruntime(TaskId(task))), [32_000_000, 112_000_000, 6_000_000]);
        // Nobody here is less advanced than task 2; after it, task 0.
        order.leave(here, TaskId(2), Leave::Moves, Time::ZERO);
        order.join(there, TaskId(2), Join::Moves, Time::ZERO);
        assert_eq!(order.vruntime(TaskId(2)), 112_000_000);
        order.leave(there, TaskId(2), Leave::Sleeps, Time::ZERO);
        order.charge(there, ms(110));
        // It wakes here again: 10 ms behind there, but no more than half a latency behind here.
        order.join(here, TaskId(2), Join::Wakes, Time::ZERO);
        assert_eq!(order.vruntime(TaskId(2)), 32_000_000 - 6_000_000);
    }
}
