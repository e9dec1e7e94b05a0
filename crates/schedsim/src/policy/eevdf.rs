//! EEVDF, Linux's fair scheduler: earliest eligible virtual deadline first.
//!
//! Each task is served in proportion to its weight. One that has had no more than its share is *eligible*; among those the one whose request
//! (its slice) is due first in virtual time runs. A short slice therefore buys latency and no CPU time. Right as a general-purpose scheduler and for
//! whoever asks what Linux would do. It does badly at keeping latencies short for tasks that do not say they want it: with equal slices a woken task
//! does not preempt one that is eligible and within its slice, and slices end at ticks.
//!
//! Sources: Stoica & Abdel-Wahab 1995, "Earliest Eligible Virtual Deadline First"; Linux 6.18 (as of 6.18.2), `kernel/sched/fair.c`: `update_curr`,
//! `update_deadline`, `avg_vruntime`, `entity_eligible`, `update_entity_lag`, `place_entity`, `pick_eevdf`, `set_protect_slice`, `dequeue_entity`,
//! `requeue_delayed_entity`, `check_preempt_wakeup_fair`, `yield_task_fair`. Features as by default: `PLACE_LAG`, `PLACE_DEADLINE_INITIAL`,
//! `PLACE_REL_DEADLINE`, `RUN_TO_PARITY`, `PREEMPT_SHORT`, `DELAY_DEQUEUE` and `DELAY_ZERO` are on, `NEXT_BUDDY` and `HRTICK` off.
//!
//! What that means here: a task is charged from the switch to it on, the switch's own cost included. A slice that is over ends at the next
//! tick, or when a task joins the same CPU. A task that sleeps while it is not eligible stays in the queue, and in the mean, until its
//! virtual deadline would have let it run, by which time it owes nothing.
//!
//! How far from fair: nobody is served more than a slice and a tick ahead of the ideal. Nobody is further behind than `w/W` times the sum, over the
//! others, of a tick and the larger of their request and of the own one by their weights: less than a slice and a tick if weights are equal, but with
//! a heavy task beside many light ones whose deadlines meet, nearly a tick for each of them ([`ShareMeasure::most_behind`] has the proof). The
//! paper's bound, the longest request, supposes that no request is overrun, and is broken wherever ticks are longer than requests.
//!
//! Cost: O(log n) per decision, amortised, in two heaps: who is eligible by deadline, who is not by virtual run time (see `timeline`).
//!
//! Deviations: no core scheduling or `yield_to`; groups are in `fair::groups`. Virtual times are divided exactly where the kernel
//! multiplies by a reciprocal (below 2 millionths). `resched_curr_lazy` takes effect at once, as it does for a task in user mode. Where a task runs
//! is the business of `fair`, with deviations of its own.

mod timeline;

use super::descriptor::{Descriptor, Given, Make};
use super::fair::groups::{Grouped, Nested};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::ranking::{NOT_WAITING, Turns};
use super::realtime;
use super::weights::Weight;
use super::{ShareMeasure, Shares, TaskView};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};
use timeline::{Key, Mean, Timeline};

/// Linux's fair class on several CPUs.
pub type Eevdf = Fair<Grouped<VirtualDeadlines>>;

/// Parameters of [`Eevdf`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How much a task requests at a time, on one CPU (`sysctl_sched_base_slice` before scaling). On `n` CPUs it is `1 + log2(min(n, 8))` times as
    /// much.
    pub base_slice: Nanos,
    /// Whether a task that sleeps in debt stays in the queue until it has paid (`DELAY_DEQUEUE`), or takes its debt along at once.
    pub delay_dequeue: bool,
    /// What all fair schedulers share.
    pub fair: fair::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options { base_slice: Nanos::from_micros(700), delay_dequeue: true, fair: fair::Options::default() }
    }
}

impl Eevdf {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Eevdf {
        Fair::with_discipline(Grouped::new(VirtualDeadlines::new(cpus, options), cpus), cpus, options.fair)
    }
}

/// EEVDF's order: eligibility, then virtual deadlines.
#[derive(Clone, Debug)]
pub struct VirtualDeadlines {
    base_slice: u32,
    delay_dequeue: bool,
    tick: u64,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    turns: Turns,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    timeline: Timeline,
    /// Who takes part: those in the timeline and the running one.
    len: u32,
    running: Option<TaskId>,
    /// Until when the running task has been charged.
    charged: Time,
}

/// A task. One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entity {
    /// What it is sorted by; `deadline` is a distance from `vruntime` while it moves between CPUs.
    key: Key,
    class: TaskClass,
    state: State,
    /// While away: how much less than the mean it had been served when it left, in virtual time.
    lag: i64,
    /// While it runs: until this virtual run time no task with as long a request preempts it as long as it is eligible.
    protected_until: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Takes part nowhere.
    Away,
    /// Takes part: it waits or runs.
    Present,
    /// Sleeps, and takes part until it has paid for what it was served too much.
    Lingers,
}

impl VirtualDeadlines {
    fn new(cpus: u16, options: Options) -> Self {
        let queue = Queue { timeline: Timeline::default(), len: 0, running: None, charged: Time::ZERO };
        VirtualDeadlines {
            base_slice: as_request(Nanos(options.base_slice.0.saturating_mul(u64::from(1 + cpus.clamp(1, 8).ilog2())))),
            delay_dequeue: options.delay_dequeue,
            tick: options.fair.tick.0,
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            turns: Turns::default(),
        }
    }

    fn mean(&self, cpu: CpuId) -> Mean {
        let queue = &self.queues[cpu.index()];
        queue.timeline.mean(queue.running.map(|task| &self.entities[task.index()].key))
    }

    /// The mean rounded down, from which distances are measured from now on.
    fn mean_floor(&mut self, cpu: CpuId) -> i64 {
        let mean = self.mean(cpu).floor();
        self.queues[cpu.index()].timeline.rebase(mean);
        mean
    }

    /// `request` of CPU time in virtual time.
    fn virtual_request(&self, task: TaskId, request: u32) -> i64 {
        self.entities[task.index()].key.weight.virtual_time(u64::from(request))
    }

    fn is_eligible(&self, cpu: CpuId, task: TaskId) -> bool {
        self.mean(cpu).is_eligible(self.entities[task.index()].key.vruntime)
    }

    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].key.turn = self.turns.next();
        self.queues[cpu.index()].timeline.insert(|task| &self.entities[task.index()].key, task);
    }

    fn remove(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].key.turn = NOT_WAITING;
        self.queues[cpu.index()].timeline.remove(|task| &self.entities[task.index()].key, task);
    }

    /// Notes by how much `task` falls short of the mean, within limits.
    fn note_lag(&mut self, cpu: CpuId, task: TaskId) {
        let mean = self.mean_floor(cpu);
        let entity = &mut self.entities[task.index()];
        let limit = entity.key.weight.virtual_time((2 * u64::from(entity.key.request)).max(self.tick));
        entity.lag = (mean - entity.key.vruntime).clamp(-limit, limit);
    }

    /// Gives `task`, which is not counted yet, a virtual run time and a deadline on `cpu`.
    fn place(&mut self, cpu: CpuId, task: TaskId, how: Join) {
        let mut lag = self.entities[task.index()].lag;
        if self.queues[cpu.index()].len == 0 {
            lag = 0;
        } else if lag != 0 {
            // By joining it moves the mean towards itself; scaled like this it is left with its lag.
            let (others, own) = (self.mean(cpu).weight().max(1), self.entities[task.index()].key.weight.get());
            lag = (i128::from(lag) * i128::from(others + u64::from(own)) / i128::from(others)) as i64;
        }
        let mean = self.mean_floor(cpu);
        let request = self.virtual_request(task, self.entities[task.index()].key.request);
        let key = &mut self.entities[task.index()].key;
        key.vruntime = mean - lag;
        key.deadline = match how {
            Join::Moves => key.vruntime + key.deadline,
            Join::Wakes => key.vruntime + request,
            // Those who are here are halfway through their requests on average.
            Join::New => key.vruntime + request / 2,
        };
    }

    fn count_in(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        queue.len += 1;
        queue.timeline.note_request(self.entities[task.index()].key.request);
    }

    fn count_out(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        queue.len -= 1;
        queue.timeline.forget_request(self.entities[task.index()].key.request);
    }

    /// Lets `task` go away.
    fn go(&mut self, cpu: CpuId, task: TaskId) {
        self.note_lag(cpu, task);
        if self.queues[cpu.index()].running == Some(task) {
            self.queues[cpu.index()].running = None;
        } else {
            self.remove(cpu, task);
        }
        self.count_out(cpu, task);
        self.entities[task.index()].state = State::Away;
    }

    /// Who should run; the running task keeps running within its protected time if `protect` says so.
    fn choose(&mut self, cpu: CpuId, protect: bool) -> Option<TaskId> {
        let mean = self.mean(cpu);
        let queue = &mut self.queues[cpu.index()];
        if queue.len == 1 {
            return queue.running.or(queue.timeline.only());
        }
        let key = |task: TaskId| &self.entities[task.index()].key;
        let running = queue.running.filter(|&task| mean.is_eligible(key(task).vruntime));
        if let Some(task) = running
            && protect
            && key(task).vruntime < self.entities[task.index()].protected_until
        {
            return running;
        }
        match (queue.timeline.first_eligible(key, &mean), running) {
            (Some(best), Some(task)) if key(task).deadline < key(best).deadline => running,
            (Some(best), _) => Some(best),
            (None, running) => running,
        }
    }
}

/// A slice as the length of a request: below 4.3 s.
fn as_request(slice: Nanos) -> u32 {
    u32::try_from(slice.0).unwrap_or(u32::MAX)
}

impl Nested for VirtualDeadlines {
    fn is_empty(&self, cpu: CpuId) -> bool {
        self.queues[cpu.index()].len == 0
    }

    fn set_weight(&mut self, task: TaskId, weight: u32) {
        self.entities[task.index()].key.weight = Weight::new(weight);
    }
}

impl Discipline for VirtualDeadlines {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let request = view.attributes.slice.length().map_or(self.base_slice, as_request);
        let len = self.entities.len().max(task.index() + 1);
        let key = Key { request, weight: Weight::of(view.prio, view.attributes.class), ..Key::default() };
        let new = Entity { key, class: view.attributes.class, state: State::Away, lag: 0, protected_until: 0 };
        self.entities.resize(len, new);
        self.entities[task.index()] = new;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let Some(task) = queue.running else {
            return false;
        };
        let ran = now.since(queue.charged);
        if ran == Nanos::ZERO {
            return false;
        }
        queue.charged = now;
        let Entity { key, protected_until, .. } = &mut self.entities[task.index()];
        key.vruntime += key.weight.virtual_time(ran.0);
        let is_due = key.vruntime >= key.deadline;
        if is_due {
            key.deadline = key.vruntime + key.weight.virtual_time(u64::from(key.request));
        }
        queue.len > 1 && (is_due || key.vruntime >= *protected_until)
    }

    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, _now: Time) {
        if self.entities[task.index()].state == State::Lingers {
            self.note_lag(cpu, task);
            let entity = &mut self.entities[task.index()];
            entity.state = State::Present;
            if entity.lag <= 0 {
                return;
            }
            // It has slept off more than it owed: that is not credited.
            entity.lag = 0;
            self.remove(cpu, task); // a lingering task cannot be the running one: the CPU has chosen anew since
            self.count_out(cpu, task);
        }
        self.place(cpu, task, how);
        self.entities[task.index()].state = State::Present;
        self.insert(cpu, task);
        self.count_in(cpu, task);
    }

    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, _now: Time) {
        if how == Leave::Sleeps && self.delay_dequeue && !self.is_eligible(cpu, task) {
            self.entities[task.index()].state = State::Lingers;
            return;
        }
        self.go(cpu, task);
        if how == Leave::Moves {
            let key = &mut self.entities[task.index()].key;
            key.deadline -= key.vruntime;
        }
    }

    fn lingers(&self, task: TaskId) -> bool {
        self.entities[task.index()].state == State::Lingers
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let task = self.choose(cpu, true)?;
            if !self.lingers(task) {
                return Some(task);
            }
            // It has paid.
            self.go(cpu, task);
            let entity = &mut self.entities[task.index()];
            entity.lag = entity.lag.min(0);
        }
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.queues[cpu.index()].charged = now;
        if self.queues[cpu.index()].running == Some(task) {
            return; // and its protection is not renewed
        }
        self.put_back(cpu);
        self.remove(cpu, task);
        let queue = &mut self.queues[cpu.index()];
        queue.running = Some(task);
        let (least, key) = (queue.timeline.least_request(), self.entities[task.index()].key);
        let until = if least < key.request { key.deadline.min(key.vruntime + self.virtual_request(task, least)) } else { key.deadline };
        self.entities[task.index()].protected_until = until;
    }

    fn put_back(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running.take() {
            self.insert(cpu, task);
        }
    }

    fn yield_turn(&mut self, cpu: CpuId) {
        let queue = &self.queues[cpu.index()];
        let Some(task) = queue.running.filter(|_| queue.len > 1) else {
            return;
        };
        if self.is_eligible(cpu, task) {
            let request = self.virtual_request(task, self.entities[task.index()].key.request);
            let key = &mut self.entities[task.index()].key;
            key.vruntime = key.deadline;
            key.deadline += request;
        }
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let Some(running) = self.queues[cpu.index()].running else {
            return false;
        };
        if let Some(preempts) = fair::class_preempts(self.entities[task.index()].class, self.entities[running.index()].class) {
            if preempts {
                self.entities[running.index()].protected_until = self.entities[running.index()].key.vruntime;
            }
            return preempts;
        }
        let is_short = self.entities[task.index()].key.request < self.entities[running.index()].key.request;
        let preempts = self.choose(cpu, !is_short) == Some(task);
        if is_short {
            let least = self.queues[cpu.index()].timeline.least_request();
            let more = if preempts { 0 } else { self.virtual_request(running, least) };
            let until = self.entities[running.index()].key.vruntime + more;
            let entity = &mut self.entities[running.index()];
            entity.protected_until = entity.protected_until.min(until);
        }
        preempts
    }

    fn shares(&self) -> Option<Shares> {
        let measure = ShareMeasure::Lag { request: Nanos(u64::from(self.base_slice)), tick: Nanos(self.tick) };
        Some(Shares { measure, undisturbed: true })
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        self.is_eligible(cpu, task)
    }
}

/// Linux' fair scheduler since 6.6.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "eevdf",
    summary: "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, load balancing",
    source: "Linux 6.18, kernel/sched/fair.c; Stoica & Abdel-Wahab 1995",
    options: &[
        OptionSpec::duration("slice", "how much a task requests at a time, on one CPU").by_default("700us"),
        OptionSpec::flag("delay", "whether a task that sleeps in debt stays in the queue until it has paid").by_default("yes"),
        fair::TICK,
        fair::HOT,
        fair::SYNC,
        fair::QUANTUM,
        realtime::THROTTLE,
        fair::SERVER,
    ],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Eevdf::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options { base_slice: given.duration("slice"), delay_dequeue: given.flag("delay"), fair: given.into() }
    }
}
