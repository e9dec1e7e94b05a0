//! EEVDF, Linux's fair scheduler: earliest eligible virtual deadline first.
//!
//! Each task is served in proportion to its weight. A task that has had no more than its share is
//! *eligible*. Of the eligible tasks, the one whose request (its slice) is due first in virtual
//! time runs. So a short slice gives latency but no CPU time. Right as a general-purpose scheduler,
//! and to predict what Linux does. Bad at short latencies for tasks that do not request them. With
//! equal slices a woken task does not preempt one that is eligible and within its slice. Slices end
//! at ticks.
//!
//! Sources: Stoica & Abdel-Wahab 1995, "Earliest Eligible Virtual Deadline First". Linux 6.18 (as
//! of 6.18.2), `kernel/sched/fair.c`: `update_curr`, `update_deadline`, `avg_vruntime`,
//! `entity_eligible`, `update_entity_lag`, `place_entity`, `pick_eevdf`, `set_protect_slice`,
//! `dequeue_entity`, `requeue_delayed_entity`, `check_preempt_wakeup_fair`, `yield_task_fair`.
//! Features as by default: `PLACE_LAG`, `PLACE_DEADLINE_INITIAL`, `PLACE_REL_DEADLINE`,
//! `RUN_TO_PARITY`, `PREEMPT_SHORT`, `DELAY_DEQUEUE` and `DELAY_ZERO` are on, `NEXT_BUDDY` and
//! `HRTICK` off.
//!
//! In effect: a task is charged from the switch to it on, including the cost of the switch. A slice
//! that is over ends at the next tick, or when a task joins the same CPU. A task that sleeps while
//! it is not eligible stays in the queue, and in the mean. It stays until its virtual deadline
//! would have let it run. By then it owes nothing.
//!
//! Fairness: no task is served more than a slice and a tick ahead of the ideal. A task is behind by
//! at most `w/W` times a sum over the others. Each adds a tick and the larger of two requests,
//! scaled by their weights: its own, and that of the task. With equal weights this is less than a
//! slice and a tick. With a heavy task beside many light ones whose deadlines coincide, it is
//! nearly a tick for each of them ([`ShareMeasure::most_behind`] has the proof). The paper's bound,
//! the longest request, assumes that no request is overrun, and is broken wherever ticks are longer
//! than requests.
//!
//! Cost: O(log n) per decision, amortised, in two heaps: eligible tasks by deadline, the others by
//! virtual run time (see `timeline`).
//!
//! Deviations: no core scheduling or `yield_to`; groups are in `fair::groups`. Virtual times are
//! divided exactly where the kernel multiplies by a reciprocal (below 2 millionths).
//! `resched_curr_lazy` takes effect at once, as it does for a task in user mode. `fair` chooses the
//! CPU of a task; its deviations are its own.

mod timeline;

use super::descriptor::{Descriptor, Given, Make};
use super::fair::groups::{Grouped, Nested};
use super::fair::{self, Discipline, Fair, Join, Leave};
use super::options::OptionSpec;
use super::ranking::{NOT_WAITING, Sequences};
use super::weights::Weight;
use super::{Entitlement, Kept, ShareMeasure, Shares, TaskView, VirtualTimes, realtime};
use crate::workload::TaskClass;
use crate::{CpuId, Nanos, TaskId, Time};
use timeline::{Key, Mean, Timeline};

/// Linux's fair class on several CPUs.
pub type Eevdf = Fair<Grouped<VirtualDeadlines>>;

/// Parameters of [`Eevdf`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The default request of a task on one CPU (`sysctl_sched_base_slice` before scaling). On `n`
    /// CPUs it is `1 + log2(min(n, 8))` times as long.
    pub base_slice: Nanos,
    /// Whether a task that sleeps while it is not eligible stays in the queue until it is
    /// (`DELAY_DEQUEUE`). If not, it leaves at once and keeps its negative lag.
    pub delay_dequeue: bool,
    /// The options of all fair schedulers.
    pub fair: fair::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            base_slice: Nanos::from_micros(700),
            delay_dequeue: true,
            fair: fair::Options::default(),
        }
    }
}

impl Eevdf {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Eevdf {
        Fair::with_discipline(
            Grouped::new(VirtualDeadlines::new(cpus, options), cpus),
            cpus,
            options.fair,
        )
    }
}

/// The order of EEVDF: eligibility, then virtual deadlines.
#[derive(Clone, Debug)]
pub struct VirtualDeadlines {
    base_slice: u32,
    delay_dequeue: bool,
    tick: u64,
    queues: Vec<Queue>,
    entities: Vec<Entity>,
    sequences: Sequences,
}

/// One CPU.
#[derive(Clone, Debug)]
struct Queue {
    timeline: Timeline,
    /// The number of tasks in the timeline and running.
    len: u32,
    running: Option<TaskId>,
    /// The running task has been charged until this time.
    exec_start: Time,
}

/// A task. One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entity {
    /// Its sort key.
    key: Key,
    class: TaskClass,
    state: State,
    /// Whether `key.deadline` is a distance from `key.vruntime` (`rel_deadline`).
    is_relative: bool,
    /// While away: its lag when it left, in virtual time.
    lag: i64,
    /// While it runs and is eligible: until this virtual run time, no task with as long a request
    /// preempts it.
    protected_until: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not on a queue.
    Away,
    /// On a queue: it waits or runs.
    Present,
    /// Sleeps, and stays on the queue until it is eligible (delayed dequeue).
    Lingers,
}

impl VirtualDeadlines {
    fn new(cpus: u16, options: Options) -> Self {
        let queue =
            Queue { timeline: Timeline::default(), len: 0, running: None, exec_start: Time::ZERO };
        VirtualDeadlines {
            base_slice: as_request(Nanos(
                options.base_slice.0.saturating_mul(u64::from(1 + cpus.clamp(1, 8).ilog2())),
            )),
            delay_dequeue: options.delay_dequeue,
            tick: options.fair.tick.0,
            queues: vec![queue; usize::from(cpus)],
            entities: Vec::new(),
            sequences: Sequences::default(),
        }
    }

    fn mean(&self, cpu: CpuId) -> Mean {
        let queue = &self.queues[cpu.index()];
        queue.timeline.mean(queue.running.map(|task| &self.entities[task.index()].key))
    }

    /// The mean, rounded down; distances are measured from it from now on.
    fn mean_floor(&mut self, cpu: CpuId) -> i64 {
        let mean = self.mean(cpu).floor();
        self.queues[cpu.index()].timeline.rebase(mean);
        mean
    }

    /// `request` of CPU time as virtual time.
    fn virtual_request(&self, task: TaskId, request: u32) -> i64 {
        self.entities[task.index()].key.weight.virtual_time(u64::from(request))
    }

    fn is_eligible(&self, cpu: CpuId, task: TaskId) -> bool {
        self.mean(cpu).is_eligible(self.entities[task.index()].key.vruntime)
    }

    fn insert(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].key.sequence = self.sequences.next();
        self.queues[cpu.index()].timeline.insert(|task| &self.entities[task.index()].key, task);
    }

    fn remove(&mut self, cpu: CpuId, task: TaskId) {
        self.entities[task.index()].key.sequence = NOT_WAITING;
        self.queues[cpu.index()].timeline.remove(|task| &self.entities[task.index()].key, task);
    }

    /// Records the lag of `task`, within limits.
    fn note_lag(&mut self, cpu: CpuId, task: TaskId) {
        let mean = self.mean_floor(cpu);
        let entity = &mut self.entities[task.index()];
        let limit =
            entity.key.weight.virtual_time((2 * u64::from(entity.key.request)).max(self.tick));
        entity.lag = (mean - entity.key.vruntime).clamp(-limit, limit);
    }

    /// Gives `task`, which is not counted yet, a virtual run time and a deadline on `cpu`.
    fn place(&mut self, cpu: CpuId, task: TaskId, how: Join) {
        let mut lag = self.entities[task.index()].lag;
        if self.queues[cpu.index()].len == 0 {
            lag = 0;
        } else if lag != 0 {
            // By joining, the task moves the mean towards itself; this scaling keeps its lag.
            let (others, own) =
                (self.mean(cpu).weight().max(1), self.entities[task.index()].key.weight.get());
            lag =
                (i128::from(lag) * i128::from(others + u64::from(own)) / i128::from(others)) as i64;
        }
        let mean = self.mean_floor(cpu);
        let request = self.virtual_request(task, self.entities[task.index()].key.request);
        let Entity { key, is_relative, .. } = &mut self.entities[task.index()];
        let is_relative = std::mem::take(is_relative);
        key.vruntime = mean - lag;
        key.deadline = match how {
            Join::Moves | Join::Restored if is_relative => key.vruntime + key.deadline,
            Join::Wakes | Join::Moves | Join::Restored => key.vruntime + request,
            // The tasks on the queue are on average halfway through their requests.
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

    /// `task` leaves the queue.
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

    /// `task`, which is on the queue and in no timeline, runs. It is protected as long as its
    /// request or a shorter one lasts (`set_next_entity`).
    fn run(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &mut self.queues[cpu.index()];
        queue.running = Some(task);
        let (least, key) = (queue.timeline.min_request(), self.entities[task.index()].key);
        let until = if least < key.request {
            key.deadline.min(key.vruntime + self.virtual_request(task, least))
        } else {
            key.deadline
        };
        self.entities[task.index()].protected_until = until;
    }

    /// The task that should run. With `protect`, the running task continues within its protected
    /// time.
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

/// A slice as a request: below 4.3 s.
fn as_request(slice: Nanos) -> u32 {
    u32::try_from(slice.0).unwrap_or(u32::MAX)
}

impl Nested for VirtualDeadlines {
    fn is_empty(&self, cpu: CpuId) -> bool {
        self.queues[cpu.index()].len == 0
    }

    fn set_share(&mut self, task: TaskId, weight: u32) {
        self.entities[task.index()].key.weight = Weight::new(weight);
    }
}

impl Discipline for VirtualDeadlines {
    fn init_task(&mut self, task: TaskId, view: &TaskView) {
        let request = view.attributes.slice.length().map_or(self.base_slice, as_request);
        let len = self.entities.len().max(task.index() + 1);
        let key =
            Key { request, weight: Weight::of(view.prio, view.attributes.class), ..Key::default() };
        let new = Entity {
            key,
            class: view.attributes.class,
            state: State::Away,
            is_relative: false,
            lag: 0,
            protected_until: 0,
        };
        self.entities.resize(len, new);
        self.entities[task.index()] = new;
    }

    fn charge(&mut self, cpu: CpuId, now: Time) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let Some(task) = queue.running else {
            return false;
        };
        let ran = now.since(queue.exec_start);
        if ran == Nanos::ZERO {
            return false;
        }
        queue.exec_start = now;
        let Entity { key, protected_until, .. } = &mut self.entities[task.index()];
        let is_due = key.charge(ran);
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
            // It has slept longer than it owed; the surplus is not credited.
            entity.lag = 0;
            // A task in delayed dequeue is not the running one: the CPU has chosen another since.
            self.remove(cpu, task);
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
        if matches!(how, Leave::Moves | Leave::Saved) {
            let entity = &mut self.entities[task.index()];
            entity.key.deadline -= entity.key.vruntime;
            entity.is_relative = true;
        }
    }

    fn virtual_times(&self, cpu: CpuId, task: TaskId, now: Time) -> Option<VirtualTimes> {
        let Entity { mut key, state, .. } = *self.entities.get(task.index())?;
        let queue = &self.queues[cpu.index()];
        let running = queue.running.map(|task| {
            let mut key = self.entities[task.index()].key;
            key.charge(now.since(queue.exec_start));
            key
        });
        if queue.running == Some(task) {
            key = running?;
        }
        let mean = queue.timeline.mean(running.as_ref());
        let entitlement = Entitlement {
            deadline: key.deadline,
            lag: mean.floor() - key.vruntime,
            is_eligible: mean.is_eligible(key.vruntime),
        };
        let times = VirtualTimes { vruntime: key.vruntime, entitlement: Some(entitlement) };
        (state != State::Away).then_some(times)
    }

    fn keep(&mut self, _cpu: CpuId, task: TaskId, kept: Kept) {
        self.entities[task.index()].lag = kept.lag;
    }

    fn in_delayed_dequeue(&self, task: TaskId) -> bool {
        self.entities[task.index()].state == State::Lingers
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let task = self.choose(cpu, true)?;
            if !self.in_delayed_dequeue(task) {
                return Some(task);
            }
            // It owes nothing any more.
            self.go(cpu, task);
            let entity = &mut self.entities[task.index()];
            entity.lag = entity.lag.min(0);
        }
    }

    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.queues[cpu.index()].exec_start = now;
        if self.queues[cpu.index()].running == Some(task) {
            return; // and its protection is not renewed
        }
        self.put_back(cpu);
        self.remove(cpu, task);
        self.run(cpu, task);
    }

    fn put_back(&mut self, cpu: CpuId) {
        if let Some(task) = self.queues[cpu.index()].running.take() {
            self.insert(cpu, task);
        }
    }

    fn yield_task(&mut self, cpu: CpuId) {
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
        if let Some(preempts) = fair::class_preempts(
            self.entities[task.index()].class,
            self.entities[running.index()].class,
        ) {
            if preempts {
                self.entities[running.index()].protected_until =
                    self.entities[running.index()].key.vruntime;
            }
            return preempts;
        }
        let is_short =
            self.entities[task.index()].key.request < self.entities[running.index()].key.request;
        let preempts = self.choose(cpu, !is_short) == Some(task);
        if is_short {
            let least = self.queues[cpu.index()].timeline.min_request();
            let more = if preempts { 0 } else { self.virtual_request(running, least) };
            let until = self.entities[running.index()].key.vruntime + more;
            let entity = &mut self.entities[running.index()];
            entity.protected_until = entity.protected_until.min(until);
        }
        preempts
    }

    /// Keeps the lag in CPU time, so that in virtual time it scales with the weight, and so does
    /// the rest of the request.
    fn set_weight(&mut self, cpu: CpuId, task: TaskId, view: &TaskView) {
        let weight = Weight::of(view.prio, view.attributes.class);
        let (state, old) =
            (self.entities[task.index()].state, self.entities[task.index()].key.weight.get());
        if weight.get() == old {
            return;
        }
        let runs = self.queues[cpu.index()].running == Some(task);
        if state != State::Away {
            self.leave(cpu, task, Leave::Saved, self.queues[cpu.index()].exec_start);
        }
        let entity = &mut self.entities[task.index()];
        let scaled =
            |time: i64| (i128::from(time) * i128::from(old) / i128::from(weight.get())) as i64;
        entity.key.weight = weight;
        entity.lag = scaled(entity.lag);
        if entity.is_relative {
            entity.key.deadline = scaled(entity.key.deadline);
        }
        if state == State::Away {
            return;
        }
        self.place(cpu, task, Join::Restored);
        self.count_in(cpu, task);
        self.entities[task.index()].state = state;
        match runs {
            true => self.run(cpu, task),
            false => self.insert(cpu, task),
        }
    }

    fn shares(&self) -> Option<Shares> {
        let measure = ShareMeasure::Lag {
            request: Nanos(u64::from(self.base_slice)),
            tick: Nanos(self.tick),
        };
        Some(Shares { measure, undisturbed: true })
    }

    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool {
        self.is_eligible(cpu, task)
    }
}

/// Linux' fair scheduler since 6.6.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "eevdf",
    summary: "Linux 6.18's fair scheduler: weights, lag, virtual deadlines, wakeup preemption, \
              load balancing",
    source: "Linux 6.18, kernel/sched/fair.c; Stoica & Abdel-Wahab 1995",
    options: &[
        OptionSpec::duration("slice", "how much a task requests at a time, on one CPU")
            .by_default("700us"),
        OptionSpec::flag(
            "delay",
            "whether a task that sleeps in debt stays in the queue until it has paid",
        )
        .by_default("yes"),
        fair::TICK,
        fair::HOT,
        fair::QUANTUM,
        realtime::THROTTLE,
        fair::SERVER,
    ],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Eevdf::new(given.cpus(), Options::from(given))),
};

impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options {
            base_slice: given.duration("slice"),
            delay_dequeue: given.flag("delay"),
            fair: given.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const CPU: CpuId = CpuId(0);
    const TASKS: u32 = 5;

    /// The lag of `task` in CPU time of nice 0, by the sums of the paper: no incremental mean, and
    /// rounded only here.
    fn lag(order: &VirtualDeadlines, task: TaskId) -> f64 {
        let present = order.entities.iter().filter(|entity| entity.state != State::Away);
        let (sum, weight) = present.fold((0.0, 0.0), |(sum, weight), entity| {
            let own = f64::from(entity.key.weight.get());
            (sum + own * entity.key.vruntime as f64, weight + own)
        });
        let key = &order.entities[task.index()].key;
        f64::from(key.weight.get()) * (sum / weight - key.vruntime as f64)
    }

    #[test]
    fn a_new_weight_keeps_the_lag_and_the_rest_of_the_request() {
        let mut random = Random::new(3);
        for _ in 0..300 {
            let mut order = VirtualDeadlines::new(1, Options::default());
            for task in (0..TASKS).map(TaskId) {
                order.init_task(task, &TaskView::of(110 + random.below(20) as u8));
                order.join(CPU, task, Join::New, Time::ZERO);
            }
            let mut now = Time::ZERO;
            for _ in 0..random.below(20) + 1 {
                let task = order.pick(CPU).unwrap();
                order.start(CPU, task, now);
                now += Nanos(50_000 + random.below(1_000_000));
                order.charge(CPU, now);
            }
            let task = TaskId(random.below(u64::from(TASKS)) as u32);
            let running = order.queues[0].running;
            let before = (lag(&order, task), order.entities[task.index()].key);
            if running != Some(task) {
                order.leave(CPU, task, Leave::Saved, now);
            }
            let view = TaskView::of(110 + random.below(20) as u8);
            order.set_weight(CPU, task, &view);
            if running != Some(task) {
                order.join(CPU, task, Join::Restored, now);
            }
            assert_eq!((order.queues[0].running, order.queues[0].len), (running, TASKS));
            let after = (lag(&order, task), order.entities[task.index()].key);
            let error = (before.0 - after.0).abs();
            assert!(error < 1e4 + before.0.abs() * 0.001, "lag {} becomes {}", before.0, after.0); // in ns of nice 0, times 1024
            let rest =
                |key: Key| (key.deadline - key.vruntime) as f64 * f64::from(key.weight.get());
            assert!(
                (rest(before.1) - rest(after.1)).abs() < 1e6,
                "{} of the request become {}",
                rest(before.1),
                rest(after.1)
            );
        }
    }
}
