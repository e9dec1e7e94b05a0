//! Real-time scheduling with reservations: earliest deadline first with constant bandwidth servers
//! (`SCHED_DEADLINE`), and rate monotonic priorities.
//!
//! A task with a [`Reservation`] of `runtime` in each `period` gets a deadline when it wakes, and
//! the earliest deadline runs. Its server lets it run for at most `runtime` until its next period
//! starts. A task that needs more than it reserved is throttled and disturbs no other. A task set
//! that exceeds the capacity is not admitted. Right where periods and run times are known; on one
//! CPU no feasible deadline is missed. Bad where run times are estimated too short. Also on several
//! CPUs with `placement=global`, where Dhall's effect occurs: a heavy task can miss its deadline
//! beside a few light ones.
//!
//! `rm` is the same with fixed priorities, the shortest period first, without servers and by
//! default with a limit of a full CPU. Right for small systems, because it is known which task
//! misses first; it cannot use all of a CPU.
//!
//! Tasks without a reservation run in the remaining time, one quantum each.
//!
//! Sources: Liu & Layland 1973. Abeni & Buttazzo 1998, "Integrating Multimedia Applications in Hard
//! Real-Time Systems" (CBS). Linux 6.18, `kernel/sched/deadline.c`: `setup_new_dl_entity`,
//! `update_dl_entity`, `dl_entity_overflow`, `update_dl_revised_wakeup`, `dl_check_constrained_dl`,
//! `start_dl_timer`, `replenish_dl_entity`, `yield_task_dl`. Also `sched_dl_overflow` in
//! `syscalls.c` (95 % of each CPU may be reserved).
//!
//! Cost: O(log n) per decision, beside the CPUs where one has to be found.
//!
//! Deviations: a budget ends exactly, where the kernel checks at ticks (`HRTICK` is off) and
//! subtracts the overrun from the next budget. No reclaiming (GRUB), no inheritance, no real-time
//! and fair classes below. `placement=partitioned` puts each new task on the first CPU with room
//! for it; Linux leaves this to the author of cpusets. Affinity is supported, where Linux refuses
//! it for such tasks.

use super::descriptor::{Descriptor, Given, Make};
use super::options::OptionSpec;
use super::{Context, Deadlines, Dispatch, Effect, Enqueue, Needs, Policy, Promises, Stop, Wake};
use crate::workload::{Affinity, Reservation, reservable};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Parameters of [`Deadline`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The order of tasks.
    pub order: Order,
    /// The CPUs on which tasks may run.
    pub placement: Placement,
    /// The share of each CPU that may be reserved, in percent.
    pub limit: u16,
    /// The quantum of tasks without a reservation.
    pub quantum: Nanos,
}

/// The order of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The earliest deadline first. With servers, no task gets more than its reservation.
    Edf {
        /// As in `SCHED_DEADLINE`.
        served: bool,
    },
    /// The shortest period first.
    RateMonotonic,
}

/// The CPUs on which tasks may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On every CPU: with n CPUs the first n tasks run.
    Global,
    /// On the first CPU with room for the task when it arrives.
    Partitioned,
}

impl Options {
    /// The defaults of `SCHED_DEADLINE`.
    pub const DEADLINE: Options = Options {
        order: Order::Edf { served: true },
        placement: Placement::Global,
        limit: 95,
        quantum: Nanos::from_millis(4),
    };
    /// Rate monotonic: reservations may fill a CPU, and no server enforces them.
    pub const RATE_MONOTONIC: Options =
        Options { order: Order::RateMonotonic, limit: 100, ..Options::DEADLINE };
}

/// A scheduler of reservations.
#[derive(Clone, Debug)]
pub struct Deadline {
    options: Options,
    cpus: u16,
    /// One, or one per CPU.
    queues: Vec<Queue>,
    tasks: Vec<Task>,
    /// CPUs that have received a kick or preemption and have not dispatched since.
    kicked: CpuSet,
    /// The sequence number of the next task at the tail of its equals.
    tail: u64,
}

/// Tasks that are ready on a CPU, or on all of them.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The waiting tasks: by rank, then by sequence number.
    ready: BTreeSet<(Rank, u64, TaskId)>,
    /// The throttled tasks, each with the end of its throttling.
    throttled: BTreeSet<(Time, TaskId)>,
    /// The reserved bandwidth.
    bandwidth: u64,
}

/// A deadline or a period, and the order among equals.
type Rank = (u64, u32);

#[derive(Clone, Copy, Debug)]
struct Task {
    reservation: Option<Reservation>,
    /// The index of its queue.
    queue: usize,
    /// Until when it should be done.
    deadline: Time,
    /// The remaining run time until its next period, or in its quantum. `Nanos::MAX` without a
    /// server.
    budget: Nanos,
    /// When it started to run.
    since: Time,
    place: u64,
}

impl Deadline {
    /// The scheduler for `cpus` CPUs.
    pub fn new(cpus: u16, options: Options) -> Deadline {
        let queues = if options.placement == Placement::Global { 1 } else { usize::from(cpus) };
        let queues = vec![Queue::default(); queues];
        Deadline { options, cpus, queues, tasks: Vec::new(), kicked: CpuSet::empty(cpus), tail: 0 }
    }

    fn queue_of(&self, cpu: CpuId) -> usize {
        if self.options.placement == Placement::Global { 0 } else { cpu.index() }
    }

    fn has_server(&self, task: TaskId) -> bool {
        self.tasks[task.index()].reservation.is_some()
            && self.options.order == Order::Edf { served: true }
    }

    /// The sort key of tasks, the smallest first. Under fixed priorities no two are equal.
    fn rank(&self, task: TaskId) -> Rank {
        let Task { reservation, deadline, .. } = self.tasks[task.index()];
        match (reservation, self.options.order) {
            (None, _) => (u64::MAX, 0),
            (Some(_), Order::Edf { .. }) => (deadline.0, 0),
            (Some(reservation), Order::RateMonotonic) => (reservation.period.0, task.0),
        }
    }

    fn key(&self, task: TaskId) -> (Rank, u64, TaskId) {
        (self.rank(task), self.tasks[task.index()].place, task)
    }

    /// The queue with room for `reservation`, if any.
    fn admit(
        &mut self,
        cx: &Context,
        task: TaskId,
        reservation: Option<Reservation>,
    ) -> Option<usize> {
        let own = reservation.map_or(0, |reservation| reservation.bandwidth());
        let cpus = if self.options.placement == Placement::Global { self.cpus } else { 1 };
        let room = reservable(cpus, self.options.limit);
        let suits = |&queue: &usize| {
            let allowed = self.options.placement == Placement::Global
                || cx.allowed(task, CpuId(queue as u16));
            allowed && (reservation.is_none() || self.queues[queue].bandwidth + own <= room)
        };
        let mut queues = (0..self.queues.len()).filter(suits);
        // A task without a reservation goes to the queue with the smallest reserved bandwidth.
        let found = if reservation.is_some() {
            queues.next()
        } else {
            queues.min_by_key(|&queue| self.queues[queue].bandwidth)
        };
        if let Some(queue) = found {
            self.queues[queue].bandwidth += own;
        }
        found
    }

    /// Refuses `task`, for which there is no room.
    fn refuse(
        &self,
        cx: &mut Context,
        task: TaskId,
        Reservation { runtime, period, .. }: Reservation,
    ) {
        let limit = self.options.limit;
        let (machine, where_to) = match self.options.placement {
            Placement::Global => (self.cpus, "is left"),
            Placement::Partitioned => (1, "is left on any CPU where it may run"),
        };
        cx.refuse(format!(
            "task {} reserves {runtime} of every {period}, and less than that {where_to} of the \
             {limit} % of {machine} CPU that may be reserved: it is not admitted, as the kernel \
             would say EBUSY; let it ask for less, or give more CPUs or a higher limit, as in \
             limit=100",
            task.0
        ));
    }

    /// Starts a new period.
    fn renew(&mut self, task: TaskId, now: Time) {
        let has_server = self.has_server(task);
        let (entry, quantum) = (&mut self.tasks[task.index()], self.options.quantum);
        entry.budget = match entry.reservation {
            Some(reservation) if has_server => reservation.runtime,
            Some(_) => Nanos::MAX,
            None => quantum,
        };
        entry.deadline =
            entry.reservation.map_or(Time::NEVER, |reservation| now + reservation.deadline);
    }

    /// The start of the server's next period.
    fn next_period(&self, task: TaskId) -> Time {
        let Task { reservation, deadline, .. } = self.tasks[task.index()];
        reservation
            .map_or(Time::NEVER, |own| Time(deadline.0.saturating_sub(own.deadline.0)) + own.period)
    }

    /// `task` wakes. It continues its period if that gives it no more than its share of the
    /// remaining time.
    fn wake(&mut self, task: TaskId, now: Time) {
        let Task { reservation, deadline, budget, .. } = self.tasks[task.index()];
        let Some(own) = reservation.filter(|_| self.has_server(task)) else {
            return self.renew(task, now);
        };
        if deadline <= now {
            let is_early = own.deadline < own.period && now < self.next_period(task);
            return if is_early {
                self.tasks[task.index()].budget = Nanos::ZERO
            } else {
                self.renew(task, now)
            };
        }
        let left = deadline - now;
        let overflows = u128::from(budget.0) * u128::from(own.deadline.0)
            > u128::from(left.0) * u128::from(own.runtime.0);
        if overflows && own.deadline >= own.period {
            self.renew(task, now);
        } else if overflows {
            let fits = u128::from(left.0) * u128::from(own.runtime.0) / u128::from(own.deadline.0);
            self.tasks[task.index()].budget = Nanos(fits as u64);
        }
    }

    /// Starts the server's next period, at `now` or earlier: new budget and deadline.
    fn replenish(&mut self, task: TaskId, now: Time) {
        let entry = &mut self.tasks[task.index()];
        if let Some(own) = entry.reservation {
            (entry.deadline, entry.budget) = (entry.deadline + own.period, own.runtime);
            if entry.deadline <= now {
                self.renew(task, now);
            }
        }
    }

    /// Makes throttled tasks ready whose next period has started.
    fn release(&mut self, queue: usize, now: Time) {
        while let Some(&(time, task)) = self.queues[queue].throttled.first()
            && time <= now
        {
            self.queues[queue].throttled.pop_first();
            self.replenish(task, now);
            self.make_ready(task, true);
        }
    }

    fn make_ready(&mut self, task: TaskId, at_tail: bool) {
        if at_tail {
            self.tail += 1;
            self.tasks[task.index()].place = self.tail;
        }
        let key = self.key(task);
        self.queues[self.tasks[task.index()].queue].ready.insert(key);
    }

    /// The first waiting task that may run on `cpu`.
    fn first(&self, cx: &Context, cpu: CpuId) -> Option<TaskId> {
        let ready = &self.queues[self.queue_of(cpu)].ready;
        ready.iter().map(|&(_, _, task)| task).find(|&task| cx.allowed(task, cpu))
    }

    /// A CPU for `task`, which waits: an idle one, or the one that runs the last task in the order,
    /// if `task` precedes that.
    fn cpu_for(&self, cx: &Context, task: TaskId) -> Option<CpuId> {
        let home = (self.options.placement == Placement::Partitioned)
            .then(|| CpuId(self.tasks[task.index()].queue as u16));
        let idle = match home {
            Some(home) => Some(home).filter(|&home| cx.idle().contains(home)),
            None => cx.idle_cpu_for(task),
        };
        if idle.is_some() {
            return idle;
        }
        let suits =
            |&cpu: &CpuId| home.is_none_or(|home| cpu == home) && !self.kicked.contains(cpu);
        let running = cx
            .allowed_cpus(task)
            .filter(suits)
            .filter_map(|cpu| Some((self.rank(cx.current(cpu)?), Reverse(cpu))));
        running.max().filter(|&(rank, _)| rank > self.rank(task)).map(|(_, Reverse(cpu))| cpu)
    }

    /// Makes `cpu` dispatch, and remembers it.
    fn kick(&mut self, cx: &Context, cpu: Option<CpuId>) -> Effect {
        match cpu {
            Some(cpu) if cx.idle().contains(cpu) => Effect::Kick(cpu),
            Some(cpu) => {
                self.kicked.insert(cpu);
                Effect::Preempt(cpu)
            }
            None => Effect::Nothing,
        }
    }

    /// A CPU for the first waiting task that `cpu`, which is about to dispatch, will not take.
    fn help(&mut self, cx: &Context, cpu: CpuId) -> Effect {
        let first = self.first(cx, cpu);
        let ready = &self.queues[self.queue_of(cpu)].ready;
        let mut others = ready.iter().map(|&(_, _, task)| task).filter(|&task| Some(task) != first);
        // If a task that may run everywhere finds no CPU, no later task does.
        let found = others.by_ref().find_map(|task| match self.cpu_for(cx, task) {
            None if cx.is_restricted(task) => None,
            cpu => Some(cpu),
        });
        self.kick(cx, found.flatten())
    }
}

impl Policy for Deadline {
    fn needs(&self) -> Needs {
        Needs {
            tick: None,
            blocking: true,
            alarm: self.options.order == Order::Edf { served: true },
            most_cpus: Some(self.cpus),
            ..Needs::default()
        }
    }

    fn promises(&self) -> Promises {
        let deadlines = match self.options.order {
            Order::Edf { served: true } => Deadlines::Served,
            Order::Edf { served: false } => Deadlines::Edf,
            Order::RateMonotonic => Deadlines::RateMonotonic,
        };
        let keeps_nobody_waiting = deadlines != Deadlines::Served;
        Promises {
            work_conserving: keeps_nobody_waiting && self.options.placement == Placement::Global,
            locally_work_conserving: keeps_nobody_waiting,
            starvation_free: true,
            hotplug: self.options.placement == Placement::Global,
            deadlines: Some(deadlines),
            ..Promises::default()
        }
    }

    fn migrates(&self) -> bool {
        self.options.placement == Placement::Global
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.queues[self.queue_of(cpu)].ready.len() as u32
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        let reservation = cx.reservation(task);
        let queue = self.admit(cx, task, reservation);
        let new = Task {
            reservation,
            queue: queue.unwrap_or(0),
            deadline: Time::ZERO,
            budget: Nanos::ZERO,
            since: cx.now(),
            place: 0,
        };
        let len = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(len, new);
        self.tasks[task.index()] = new;
        if let (None, Some(reservation)) = (queue, reservation) {
            self.refuse(cx, task, reservation);
        }
    }

    fn exit_task(&mut self, _cx: &mut Context, task: TaskId) {
        let Task { queue, reservation, .. } = self.tasks[task.index()];
        self.queues[queue].bandwidth -=
            reservation.map_or(0, |reservation| reservation.bandwidth());
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _wake: Wake) -> CpuId {
        if self.options.placement == Placement::Partitioned {
            return CpuId(self.tasks[task.index()].queue as u16);
        }
        cx.idle_cpu_for(task).or_else(|| cx.pinned(task)).unwrap_or(cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        let now = cx.now();
        self.release(self.queue_of(cpu), now);
        let is_here = !why.comes();
        match why {
            Enqueue::New => self.renew(task, now),
            Enqueue::Wakeup => self.wake(task, now),
            Enqueue::Yielded if self.has_server(task) => {
                self.tasks[task.index()].budget = Nanos::ZERO
            }
            Enqueue::Yielded
            | Enqueue::SliceOver
            | Enqueue::Preempted
            | Enqueue::PrioChanged
            | Enqueue::Restored => {}
        }
        let is_over = self.tasks[task.index()].budget == Nanos::ZERO;
        if is_over && self.has_server(task) {
            let next = self.next_period(task);
            if next > now {
                self.queues[self.tasks[task.index()].queue].throttled.insert((next, task));
                // The running task's slice did not account for this task's next period.
                return match is_here {
                    true => self.help(cx, cpu),
                    false if cx.idle().contains(cpu) => self.alarm(cx, cpu),
                    false => self.kick(cx, Some(cpu)),
                };
            }
            self.replenish(task, now);
        } else if is_over {
            self.renew(task, now);
        }
        self.make_ready(task, is_over || !is_here || why == Enqueue::Yielded);
        if is_here { self.help(cx, cpu) } else { self.kick(cx, self.cpu_for(cx, task)) }
    }

    fn dequeue(&mut self, _cx: &mut Context, task: TaskId) {
        let (key, queue) = (self.key(task), self.tasks[task.index()].queue);
        self.queues[queue].ready.remove(&key);
        self.queues[queue].throttled.retain(|&(_, other)| other != task);
    }

    /// A task that may not run on the CPU of its queue moves to another, or is refused (EBUSY).
    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, _old: Affinity) -> Effect {
        let Task { queue, reservation, .. } = self.tasks[task.index()];
        if self.options.placement == Placement::Global || cx.allowed(task, CpuId(queue as u16)) {
            return Effect::Nothing;
        }
        self.queues[queue].bandwidth -=
            reservation.map_or(0, |reservation| reservation.bandwidth());
        match (self.admit(cx, task, reservation), reservation) {
            (Some(queue), _) => self.tasks[task.index()].queue = queue,
            (None, Some(reservation)) => self.refuse(cx, task, reservation),
            (None, None) => {}
        }
        Effect::Nothing
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.kicked.remove(cpu);
        let queue = self.queue_of(cpu);
        self.release(queue, cx.now());
        let task = self.first(cx, cpu)?;
        let key = self.key(task);
        self.queues[queue].ready.remove(&key);
        let entry = &mut self.tasks[task.index()];
        entry.since = cx.now();
        // Nothing else checks when throttling ends.
        let release = self.queues[queue]
            .throttled
            .first()
            .map_or(Nanos::MAX, |&(time, _)| time.since(cx.now()));
        Some(Dispatch { task, slice: entry.budget.min(release) })
    }

    fn stopping(&mut self, cx: &mut Context, _cpu: CpuId, task: TaskId, _why: Stop) {
        let entry = &mut self.tasks[task.index()];
        if entry.budget < Nanos::MAX {
            entry.budget = entry.budget.saturating_sub(cx.now().since(entry.since));
        }
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        if idle {
            return self.alarm(cx, cpu);
        }
        if cx.idle().is_empty() {
            return Effect::Nothing;
        }
        // The CPU may have been kicked for another task than it took.
        let queue = self.queue_of(cpu);
        let waiting = self.queues[queue].ready.iter().map(|&(_, _, task)| task);
        let passed_over = waiting
            .filter_map(|task| cx.idle_cpu_for(task))
            .find(|&idle| self.queue_of(idle) == queue);
        passed_over.map_or(Effect::Nothing, Effect::Kick)
    }
}

impl Deadline {
    /// When the idle `cpu` must check again because a task's throttling ends.
    fn alarm(&self, cx: &Context, cpu: CpuId) -> Effect {
        match self.queues[self.queue_of(cpu)].throttled.first() {
            Some(&(time, _)) if cx.idle().contains(cpu) => Effect::KickAt(cpu, time),
            _ => Effect::Nothing,
        }
    }
}

const PLACEMENT: OptionSpec = OptionSpec::choice(
    "placement",
    &["global", "partitioned"],
    "where tasks may run: on every CPU, or on the first with room for them",
)
.by_default("global");
const QUANTUM: OptionSpec =
    OptionSpec::duration("quantum", "how long a task without a reservation runs at a time")
        .by_default("4ms");
const LIMIT: OptionSpec =
    OptionSpec::count("limit", 1, 1000, "%", "how much of each CPU may be reserved");

/// Rate monotonic priorities.
pub static RATE_MONOTONIC: Descriptor = Descriptor {
    name: "rm",
    summary: "rate monotonic: of tasks that reserve CPU time, the shortest period runs; the \
              others in what is left",
    source: "Liu & Layland 1973",
    options: &[PLACEMENT, LIMIT.by_default("100"), QUANTUM],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Deadline::new(given.cpus(), Options::rate_monotonic(given))),
};

/// Earliest deadline first.
pub static DEADLINE: Descriptor = Descriptor {
    name: "deadline",
    summary: "SCHED_DEADLINE: of tasks that reserve CPU time, the earliest deadline runs, each \
              held to what it reserved; the others in what is left",
    source: "Liu & Layland 1973; Abeni & Buttazzo 1998 (CBS); Linux 6.18, kernel/sched/deadline.c",
    options: &[
        PLACEMENT,
        LIMIT.by_default("95"),
        OptionSpec::flag("cbs", "whether a server stops a task that exceeds its reservation")
            .by_default("yes"),
        QUANTUM,
    ],
    structure: Some("rbtree"),
    scheduler: &Make(|given| Deadline::new(given.cpus(), Options::deadline(given))),
};

impl Options {
    pub(super) fn rate_monotonic(given: &Given) -> Options {
        Options::ordered(Order::RateMonotonic, given)
    }

    pub(super) fn deadline(given: &Given) -> Options {
        Options::ordered(Order::Edf { served: given.flag("cbs") }, given)
    }

    fn ordered(order: Order, given: &Given) -> Options {
        let placement = if given.word(PLACEMENT.name) == Some("partitioned") {
            Placement::Partitioned
        } else {
            Placement::Global
        };
        Options {
            order,
            placement,
            limit: given.count(LIMIT.name),
            quantum: given.duration(QUANTUM.name),
        }
    }
}
