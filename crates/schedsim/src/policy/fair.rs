//! The common part of Linux's fair schedulers: a queue per CPU, wakeup placement, and load
//! balancing.
//!
//! A [`Discipline`] chooses which of one CPU's tasks runs next and when it is preempted; [`Fair`]
//! does the rest and is a [`Policy`]. Real-time tasks (priorities 0…99, including the stop class)
//! run before all fair ones. The fair server, an option, keeps fair tasks from starving.
//!
//! Source: Linux 6.18, `kernel/sched/core.c` (`schedule`, `try_to_wake_up`, `sched_tick`) and
//! `fair.c`; see [`placement`] and [`balance`].

mod balance;
mod discipline;
pub mod groups;
mod placement;

pub use discipline::{Discipline, Join, Leave, class_preempts};

use super::descriptor::Given;
use super::options::OptionSpec;
use super::realtime::{self, PERIOD, RealTime};
use super::weights::weight;
use super::{
    Context, Dispatch, Effect, Enqueue, Kept, LEVELS, Needs, Policy, Promises, Reweight, Stop,
    VirtualTimes, Wake,
};
use crate::workload::Affinity;
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use readyq::{Level, Node, Nodes, ReadyQueue, RoundRobin};

/// Options common to the fair schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The period of the tick (`1 / CONFIG_HZ`).
    pub tick: Nanos,
    /// A task that ran less than this ago has a warm cache and does not move
    /// (`sysctl_sched_migration_cost`).
    pub cache_hot: Nanos,
    /// The real-time class: quanta, throttling.
    pub realtime: realtime::Options,
    /// How long fair tasks run after real-time tasks kept them from running for a second, this time
    /// included. It is the fair server's `runtime`, 50 ms since Linux 6.12.
    pub server: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tick: Nanos::from_millis(4),
            cache_hot: Nanos::from_micros(500),
            realtime: realtime::Options::default(),
            server: None,
        }
    }
}

/// The options of every fair scheduler.
pub(super) const TICK: OptionSpec =
    OptionSpec::duration("tick", "the period of the tick").by_default("4ms");
pub(super) const HOT: OptionSpec =
    OptionSpec::duration("hot", "a task that ran less than this ago is not moved to another CPU")
        .by_default("500us");
pub(super) const QUANTUM: OptionSpec =
    OptionSpec::duration("quantum", "how long a real-time task runs before its equals")
        .unset("endless; 100ms for SCHED_RR tasks");
pub(super) const SERVER: OptionSpec = OptionSpec::duration(
    "server",
    "for how long fair tasks run in each second in which real-time tasks leave them no time",
)
.unset("0");

/// Reads the options above.
impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options {
            tick: given.duration(TICK.name),
            cache_hot: given.duration(HOT.name),
            realtime: realtime::Options {
                quantum: given.duration_if_set(QUANTUM.name),
                throttle: given.duration_if_set(realtime::THROTTLE.name),
                ..realtime::Options::default()
            },
            server: given.duration_if_set(SERVER.name),
        }
    }
}

/// A fair scheduler on several CPUs, with real-time tasks above it.
#[derive(Clone, Debug)]
pub struct Fair<D> {
    discipline: D,
    options: Options,
    queues: Vec<RunQueue>,
    tasks: Vec<Task>,
    /// The links of the lists in `RunQueue::by_age`.
    nodes: Vec<Node>,
    /// CPUs with waiting fair tasks.
    crowded: CpuSet,
    /// The real-time class.
    realtime: RealTime,
    /// When a busy CPU may next ask an idle one for help (`nohz.next_balance`).
    next_help: Time,
}

/// One CPU.
#[derive(Clone, Debug)]
struct RunQueue {
    /// The fair tasks of this CPU that run or wait, the least recently run first.
    by_age: RoundRobin,
    /// The number of these tasks.
    runnable: u32,
    /// The number of those that wait.
    waiting: u32,
    /// The sum of their weights.
    load: u64,
    /// How long, in ticks, fair tasks have waited here for real-time ones.
    starved: Nanos,
    /// Until when fair tasks run before real-time ones, if they do.
    served_until: Option<Time>,
    /// The request to an idle CPU that is sent at the next opportunity.
    help: Option<Help>,
    /// Whether a busy CPU has requested that this idle CPU takes a task.
    is_requested: bool,
    /// The next balancing time in each domain of this CPU.
    next_balance: [Time; LEVELS],
    /// The earliest of these.
    balance_due: Time,
    /// Consecutive balancing attempts that moved nothing although the load was uneven.
    failed: u32,
}

/// A busy CPU's request to an idle one.
#[derive(Clone, Copy, Debug)]
enum Help {
    /// Look for a waiting task on this CPU.
    Take(CpuId),
    /// Run the task that is about to be stopped.
    Run(CpuId),
}

/// A task. Half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Task {
    /// Whether it is in the real-time class, which a fair task can enter by inheritance.
    is_real_time: bool,
    /// Whether the discipline has initialised it: it has been a fair task before.
    is_known: bool,
    /// Whether the load of `cpu` includes its weight.
    is_counted: bool,
    weight: u32,
    /// The CPU on which it runs, waits, or last did so.
    cpu: CpuId,
    /// Its CPU before it last woke on another one.
    recent: CpuId,
    /// When it last stopped running on `cpu`, if it has run there.
    ran: Option<Time>,
}

impl<D: Discipline> Fair<D> {
    /// A scheduler for `cpus` CPUs that runs tasks in the order of `discipline`.
    pub fn with_discipline(discipline: D, cpus: u16, options: Options) -> Self {
        let queue = RunQueue {
            by_age: RoundRobin::new(),
            runnable: 0,
            waiting: 0,
            load: 0,
            starved: Nanos::ZERO,
            served_until: None,
            help: None,
            is_requested: false,
            next_balance: [Time::ZERO; LEVELS],
            balance_due: Time::ZERO,
            failed: 0,
        };
        Fair {
            discipline,
            options,
            queues: vec![queue; usize::from(cpus)],
            tasks: Vec::new(),
            nodes: Vec::new(),
            crowded: CpuSet::empty(cpus),
            realtime: RealTime::new(cpus, options.realtime),
            next_help: Time::ZERO,
        }
    }

    /// Whether there is another CPU to balance with. If not, `RunQueue::by_age` is unused.
    fn balances(&self) -> bool {
        self.queues.len() > 1
    }

    /// Whether `task` is in the real-time class.
    fn is_real_time(&self, task: TaskId) -> bool {
        self.tasks[task.index()].is_real_time
    }

    /// Sets the class of `task` by its priority. The task is on no queue, or in delayed dequeue.
    fn classify(&mut self, cx: &Context, task: TaskId) {
        let is_real_time = self.realtime.has(cx, task);
        if std::mem::replace(&mut self.tasks[task.index()].is_real_time, is_real_time)
            != is_real_time
        {
            match is_real_time {
                true => {
                    self.finish_delayed_dequeue(cx, task);
                    self.realtime.init_task(cx, task);
                }
                false => {
                    self.realtime.exit_task(cx, task);
                    if !std::mem::replace(&mut self.tasks[task.index()].is_known, true) {
                        self.discipline.init_task(task, cx.task(task));
                    }
                }
            }
        }
    }

    /// The nice value of `task` has changed; `cpu` is its CPU if it is on a queue.
    fn reweigh(&mut self, cx: &Context, task: TaskId, cpu: CpuId) {
        let view = cx.task(task);
        let entry = &mut self.tasks[task.index()];
        let before = std::mem::replace(&mut entry.weight, weight(view.prio, view.attributes.class));
        if entry.is_counted {
            let load = &mut self.queues[cpu.index()].load;
            *load = *load - u64::from(before) + u64::from(entry.weight);
        }
        if entry.is_known {
            self.discipline.charge(cpu, cx.now());
            self.discipline.set_weight(cpu, task, view);
        }
    }

    /// `task` is no longer a fair one. If it is in delayed dequeue, it rejoins there and leaves, as
    /// it may run and sleep on another CPU now.
    fn finish_delayed_dequeue(&mut self, cx: &Context, task: TaskId) {
        if self.tasks[task.index()].is_known && self.discipline.in_delayed_dequeue(task) {
            let cpu = self.tasks[task.index()].cpu;
            self.discipline.charge(cpu, cx.now());
            self.discipline.join(cpu, task, Join::Wakes, cx.now());
            self.discipline.leave(cpu, task, Leave::Exits, cx.now());
        }
    }

    /// The priority of `task` changed while it ran on `cpu`: enqueues it there in its new class
    /// (`rt_mutex_setprio`).
    fn enqueue_changed(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId) -> Effect {
        let was_real_time = self.is_real_time(task);
        match (was_real_time, self.realtime.has(cx, task)) {
            (true, true) => self.realtime.enqueue(cx, task, cpu, Enqueue::PrioChanged),
            (false, false) => self.enqueue(cx, task, cpu, Enqueue::Preempted),
            (true, false) => {
                self.realtime.leave(task);
                self.classify(cx, task);
                self.enqueue(cx, task, cpu, Enqueue::Wakeup)
            }
            (false, true) => {
                self.subtract(cpu, task);
                self.discipline.leave(cpu, task, Leave::Exits, cx.now());
                self.classify(cx, task);
                self.realtime.join(cx, task, cpu);
                self.realtime.enqueue(cx, task, cpu, Enqueue::PrioChanged)
            }
        }
    }

    /// Counts a fair task as runnable on `cpu`.
    fn add(&mut self, cpu: CpuId, task: TaskId) {
        let balances = self.balances();
        let queue = &mut self.queues[cpu.index()];
        if balances {
            queue.by_age.insert(Nodes::from_mut(&mut self.nodes), task, Level(0));
        }
        queue.runnable += 1;
        let entry = &mut self.tasks[task.index()];
        entry.is_counted = true;
        queue.load += u64::from(entry.weight);
    }

    /// Counts a fair task as no longer runnable on `cpu`.
    fn subtract(&mut self, cpu: CpuId, task: TaskId) {
        let balances = self.balances();
        let queue = &mut self.queues[cpu.index()];
        if balances {
            queue.by_age.remove(Nodes::from_mut(&mut self.nodes), task);
        }
        queue.runnable -= 1;
        let entry = &mut self.tasks[task.index()];
        entry.is_counted = false;
        queue.load -= u64::from(entry.weight);
    }

    /// A runnable fair task starts to wait on `cpu`.
    fn wait(&mut self, cpu: CpuId) {
        self.queues[cpu.index()].waiting += 1;
        self.crowded.insert(cpu);
    }

    /// A fair task no longer waits on `cpu`.
    fn end_wait(&mut self, cpu: CpuId) {
        let waiting = &mut self.queues[cpu.index()].waiting;
        *waiting -= 1;
        if *waiting == 0 {
            self.crowded.remove(cpu);
        }
    }

    /// A woken or new fair task joins `cpu`.
    fn wake_fair(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, how: Join) -> Effect {
        self.discipline.refresh(cx.now());
        // The kernel charges before it places a task, but not before the wakeup of a task in
        // delayed dequeue.
        let is_over =
            !self.discipline.in_delayed_dequeue(task) && self.discipline.charge(cpu, cx.now());
        self.discipline.join(cpu, task, how, cx.now());
        self.add(cpu, task);
        let Some(running) = cx.current(cpu) else {
            let held_until =
                self.discipline.wakes_at(cpu).filter(|_| self.discipline.is_held(task));
            return held_until.map_or(Effect::Kick(cpu), |time| Effect::KickAt(cpu, time));
        };
        if self.realtime.has(cx, running) || self.realtime.is_kicked(cpu) {
            return Effect::Nothing;
        }
        if is_over || self.discipline.charge(cpu, cx.now()) || self.discipline.preempts(cpu, task) {
            return self.realtime.kick(cpu);
        }
        Effect::Nothing
    }

    /// A tick while `cpu` runs a real-time task. Returns whether fair tasks have waited so long
    /// that the fair server runs them.
    fn serve(&mut self, cx: &Context, cpu: CpuId) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let Some(runtime) = self.options.server.filter(|_| queue.waiting > 0) else {
            return false;
        };
        queue.starved += self.options.tick;
        let is_due = queue.starved + runtime >= PERIOD;
        if is_due {
            queue.served_until = Some(cx.now() + runtime);
            self.realtime.lend(cpu, true);
        }
        is_due
    }

    /// Ends the fair server's service on `cpu`, if its runtime is over or no fair task is left.
    fn end_service(&mut self, cx: &Context, cpu: CpuId) {
        let queue = &mut self.queues[cpu.index()];
        if queue.served_until.is_some_and(|until| until <= cx.now() || queue.runnable == 0) {
            queue.served_until = None;
            self.realtime.lend(cpu, false);
        }
    }
}

impl<D: Discipline> Policy for Fair<D> {
    fn needs(&self) -> Needs {
        let alarm = self.options.realtime.throttle.is_some();
        Needs {
            tick: Some(self.options.tick),
            blocking: true,
            alarm,
            most_cpus: Some(self.queues.len() as u16),
            ..Needs::default()
        }
    }

    fn promises(&self) -> Promises {
        Promises {
            work_conserving: false, // see `balance`; a delayed task wakes on its old CPU
            locally_work_conserving: self.options.realtime.throttle.is_none(),
            starvation_free: true,
            inherits: true,
            shares: self.discipline.shares(),
            ..if self.options.server.is_none() {
                self.realtime.promises()
            } else {
                Promises::default()
            }
        }
    }

    fn virtual_times(&self, task: TaskId, now: Time) -> Option<VirtualTimes> {
        let Task { cpu, is_real_time, .. } = *self.tasks.get(task.index())?;
        if is_real_time { None } else { self.discipline.virtual_times(cpu, task, now) }
    }

    fn keep(&mut self, task: TaskId, kept: Kept) {
        self.discipline.keep(self.tasks[task.index()].cpu, task, kept);
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        self.queues[cpu.index()].waiting + self.realtime.waiting_on(cpu)
    }

    fn init_task(&mut self, cx: &mut Context, task: TaskId) {
        if self.tasks.is_empty() {
            self.discipline.set_groups(cx.cgroups());
        }
        let len = self.tasks.len().max(task.index() + 1);
        let view = cx.task(task);
        let is_real_time = self.realtime.has(cx, task);
        let weight = weight(view.prio, view.attributes.class);
        let new = Task {
            is_real_time,
            is_known: !is_real_time,
            is_counted: false,
            weight,
            cpu: view.cpu,
            recent: view.cpu,
            ran: None,
        };
        self.tasks.resize(len, new);
        self.nodes.resize(len, Node::NEW);
        self.tasks[task.index()] = new;
        self.nodes[task.index()] = Node::NEW;
        if is_real_time {
            self.realtime.init_task(cx, task);
        } else {
            self.discipline.init_task(task, cx.task(task));
        }
    }

    fn exit_task(&mut self, cx: &mut Context, task: TaskId) {
        if self.is_real_time(task) {
            self.realtime.exit_task(cx, task);
        }
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        self.classify(cx, task);
        if self.is_real_time(task) {
            return self.realtime.select_cpu(cx, task);
        }
        let last = self.tasks[task.index()].cpu;
        if self.discipline.in_delayed_dequeue(task) {
            return last;
        }
        let cpu = match cx.pinned(task) {
            Some(only) => only,
            None if wake.new => self.fork_cpu(cx, task, wake.waker),
            None => self.wake_cpu(cx, task, wake),
        };
        let entry = &mut self.tasks[task.index()];
        entry.cpu = cpu;
        if cpu != last {
            entry.ran = None;
        }
        cpu
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if why == Enqueue::Restored {
            self.classify(cx, task);
        } else if why == Enqueue::PrioChanged
            || !why.comes() && self.is_real_time(task) != self.realtime.has(cx, task)
        {
            return self.enqueue_changed(cx, task, cpu);
        }
        if self.is_real_time(task) {
            return self.realtime.enqueue(cx, task, cpu, why);
        }
        // It may not have waited where it was placed: loads are balanced.
        let own = self.tasks[task.index()].cpu;
        let cpu = if why == Enqueue::Restored && cx.allowed(task, own) { own } else { cpu };
        self.tasks[task.index()].cpu = cpu;
        self.wait(cpu);
        match why {
            Enqueue::New => self.wake_fair(cx, task, cpu, Join::New),
            Enqueue::Wakeup => self.wake_fair(cx, task, cpu, Join::Wakes),
            Enqueue::Restored => self.wake_fair(cx, task, cpu, Join::Restored),
            // It is still on the queue.
            Enqueue::SliceOver | Enqueue::Preempted | Enqueue::Yielded | Enqueue::PrioChanged => {
                match self.queues[cpu.index()].help.take() {
                    None => Effect::Nothing,
                    Some(Help::Take(idle)) => Effect::Kick(idle),
                    Some(Help::Run(idle)) => {
                        self.transfer(cx, task, cpu, idle);
                        Effect::Kick(idle)
                    }
                }
            }
        }
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        if self.is_real_time(task) {
            return self.realtime.dequeue(task);
        }
        let cpu = self.tasks[task.index()].cpu;
        self.end_wait(cpu);
        self.discipline.charge(cpu, cx.now());
        self.discipline.leave(cpu, task, Leave::Saved, cx.now());
        self.subtract(cpu, task);
    }

    fn set_weight(&mut self, cx: &mut Context, task: TaskId, old: u8, why: Reweight) -> Effect {
        if why == Reweight::Inherited {
            // Its weight follows its own nice value, and its class changes at `enqueue`.
            return Effect::Nothing;
        }
        let runs = cx.runs_on(task);
        self.reweigh(cx, task, self.tasks[task.index()].cpu);
        let was_real_time = self.is_real_time(task);
        match (was_real_time, self.realtime.has(cx, task), runs) {
            (true, true, _) => self.realtime.set_weight(cx, task),
            // It changed class, or got worse while others wait: the next task is chosen again
            // (`prio_changed_fair`).
            (true, false, Some(cpu)) | (false, true, Some(cpu)) => self.realtime.kick(cpu),
            (false, false, Some(cpu))
                if cx.task(task).prio > old && self.queues[cpu.index()].waiting > 0 =>
            {
                self.realtime.kick(cpu)
            }
            _ => Effect::Nothing,
        }
    }

    fn set_cpumask(&mut self, cx: &mut Context, task: TaskId, old: Affinity) -> Effect {
        if self.is_real_time(task) {
            self.realtime.set_cpumask(cx, task, old);
        } else {
            self.finish_delayed_dequeue(cx, task);
        }
        Effect::Nothing
    }

    fn disable(&mut self, cx: &mut Context, task: TaskId) {
        self.finish_delayed_dequeue(cx, task);
    }

    fn dispatch(&mut self, cx: &mut Context, cpu: CpuId) -> Option<Dispatch> {
        self.realtime.chooses(cpu);
        self.end_service(cx, cpu);
        self.queues[cpu.index()].help = None;
        if let Some(real_time) = self.realtime.pick(cx, cpu) {
            self.discipline.put_back(cpu);
            return Some(real_time);
        }
        self.discipline.refresh(cx.now());
        let task = match self.discipline.pick(cpu) {
            None if self.pull_one(cx, cpu) => self.discipline.pick(cpu),
            picked => picked,
        }?;
        self.discipline.start(cpu, task, cx.now());
        if self.balances() {
            let (by_age, nodes) =
                (&mut self.queues[cpu.index()].by_age, Nodes::from_mut(&mut self.nodes));
            by_age.remove(nodes, task);
            by_age.insert(nodes, task, Level(0));
        }
        self.end_wait(cpu);
        let queue = &mut self.queues[cpu.index()];
        queue.starved = Nanos::ZERO;
        Some(Dispatch {
            task,
            slice: queue.served_until.map_or(Nanos::MAX, |until| until.since(cx.now())),
        })
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        if self.is_real_time(task) {
            return self.realtime.stopping(cx, cpu, task, why);
        }
        self.tasks[task.index()].ran = Some(cx.now());
        self.discipline.charge(cpu, cx.now());
        match why {
            Stop::SliceOver | Stop::Preempted => {}
            Stop::Yielded => self.discipline.yield_task(cpu),
            Stop::Blocked => {
                self.subtract(cpu, task);
                self.discipline.leave(cpu, task, Leave::Sleeps, cx.now());
            }
            Stop::Exited | Stop::OtherClass => {
                self.subtract(cpu, task);
                self.discipline.leave(cpu, task, Leave::Exits, cx.now());
            }
        }
    }

    fn update_idle(&mut self, cx: &mut Context, cpu: CpuId, idle: bool) -> Effect {
        match (self.realtime.update_idle(cx, cpu, idle), self.discipline.wakes_at(cpu)) {
            (Effect::Nothing, Some(time)) if idle => Effect::KickAt(cpu, time),
            (effect, _) => effect,
        }
    }

    fn tick(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId) -> Effect {
        let is_real_time = self.is_real_time(task);
        if is_real_time && self.serve(cx, cpu) {
            return self.realtime.kick(cpu);
        }
        if self.realtime.needs_ticks() {
            match self.realtime.tick(cx, cpu) {
                Effect::Nothing => {}
                effect => return effect,
            }
        }
        self.discipline.refresh(cx.now());
        let slice_is_over = !is_real_time
            && (self.discipline.charge(cpu, cx.now()) || self.discipline.expires(cpu));
        let stop = (self.balance_busy(cx, cpu) || slice_is_over) && !is_real_time;
        let Some(helper) = self.find_help(cx, cpu) else {
            return if stop { self.realtime.kick(cpu) } else { Effect::Nothing };
        };
        let gives_away = self.is_desperate(cx, cpu, helper);
        if is_real_time || !stop && !gives_away {
            return Effect::Kick(helper);
        }
        self.queues[cpu.index()].help =
            Some(if gives_away { Help::Run(helper) } else { Help::Take(helper) });
        self.realtime.kick(cpu)
    }
}
