//! What Linux's fair schedulers share, whatever order they run tasks in: a queue per CPU, which CPU a task wakes on, and load balancing.
//!
//! A [`Discipline`] says which of one CPU's tasks runs next and when it is preempted; [`Fair`] does the rest and is a [`Policy`]. Real-time
//! tasks (priorities 0…99, the stop class among them) run before all fair ones; the fair server, an option, keeps them from starving those.
//!
//! Source: Linux 6.18, `kernel/sched/core.c` (`schedule`, `try_to_wake_up`, `sched_tick`) and `fair.c`; see [`placement`] and [`balance`].

mod balance;
pub mod groups;
mod placement;

use super::descriptor::Given;
use super::options::OptionSpec;
use super::realtime::{self, PERIOD, RealTime};
use super::weights::weight;
use super::{Context, Dispatch, Effect, Enqueue, LEVELS, Needs, Policy, Promises, Shares, Stop, TaskView, Wake};
use crate::workload::{Cgroup, TaskClass};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use readyq::{Level, Node, Nodes, ReadyQueue, RoundRobin};

/// In which order a CPU runs its fair tasks. All times charged and compared are the caller's; a discipline has no clock.
///
/// A CPU's *running* task takes part in everything although it waits in no queue. It is set by [`start`](Self::start), and stays so until it leaves
/// or another starts, through the moment in which the CPU chooses anew.
pub trait Discipline {
    /// There are these groups, and no task yet. By default nobody asks in which a task is.
    fn set_groups(&mut self, _groups: &[Cgroup]) {}

    /// A task comes into being.
    fn init_task(&mut self, task: TaskId, view: &TaskView);

    /// Charges the running task of `cpu` for its time until `now`. Returns whether its turn is over.
    fn charge(&mut self, cpu: CpuId, now: Time) -> bool;

    /// A tick: whether the turn of the running task of `cpu`, which has just been charged, is over for a reason that only ticks look for.
    fn expires(&mut self, _cpu: CpuId) -> bool {
        false
    }

    /// Time has gone on: somebody may take part again that had used up what it may use.
    fn refresh(&mut self, _now: Time) {}

    /// When that will be on `cpu`, if somebody waits for it there.
    fn wakes_at(&self, _cpu: CpuId) -> Option<Time> {
        None
    }

    /// Whether `task` may not run on any CPU until then.
    fn is_held(&self, _task: TaskId) -> bool {
        false
    }

    /// `task`, which is on no queue, takes part on `cpu` from now on. The running task has been charged.
    fn join(&mut self, cpu: CpuId, task: TaskId, how: Join, now: Time);

    /// `task` takes part on `cpu` no longer. The running task has been charged.
    fn leave(&mut self, cpu: CpuId, task: TaskId, how: Leave, now: Time);

    /// Whether `task` still takes part although it sleeps. If it wakes, it does so on the same CPU, by [`Join::Wakes`].
    fn lingers(&self, task: TaskId) -> bool;

    /// The task that shall run on `cpu`, the running one among them.
    fn pick(&mut self, cpu: CpuId) -> Option<TaskId>;

    /// `task`, which was picked, runs on `cpu` from `now` on; whoever ran there waits.
    fn start(&mut self, cpu: CpuId, task: TaskId, now: Time);

    /// Whoever ran on `cpu` waits, because a task of a better class runs.
    fn put_back(&mut self, cpu: CpuId);

    /// The running task has been charged and gives up the rest of its turn.
    fn yield_turn(&mut self, cpu: CpuId);

    /// Whether `task`, which has just joined `cpu`, shall run instead of the running task, which has been charged.
    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool;

    /// What it promises of shares.
    fn shares(&self) -> Option<Shares>;

    /// Whether `task`, which waits on `cpu`, may be moved to a CPU where others wait without being held back there.
    fn may_move(&self, cpu: CpuId, task: TaskId) -> bool;
}

/// Whether a task that wakes preempts the running one because of what they are; `None` if virtual times decide. Idle tasks are preempted by
/// all others, and neither those nor batch tasks preempt anybody else.
pub fn class_preempts(waking: TaskClass, running: TaskClass) -> Option<bool> {
    match (running, waking) {
        (TaskClass::Idle, waking) if waking != TaskClass::Idle => Some(true),
        (_, TaskClass::Idle | TaskClass::Batch) => Some(false),
        _ => None,
    }
}

/// How a task comes to take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// It is new.
    New,
    /// It woke.
    Wakes,
    /// It comes from another CPU.
    Moves,
}

/// How a task ceases to take part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// It sleeps.
    Sleeps,
    /// It goes to another CPU.
    Moves,
    /// It has ended.
    Exits,
}

/// Parameters common to the fair schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The period of the tick (`1 / CONFIG_HZ`).
    pub tick: Nanos,
    /// A task that ran less than this ago has a warm cache and is not moved (`sysctl_sched_migration_cost`).
    pub cache_hot: Nanos,
    /// Whether a waking task announces that the waker is about to sleep (`WF_SYNC`, as pipes do and futexes do not).
    pub sync_wakeups: bool,
    /// The class above: quanta, throttling.
    pub realtime: realtime::Options,
    /// For how long fair tasks run once they have been kept from running for a second, this time included (the fair server's `runtime`, 50 ms since Linux 6.12).
    pub server: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tick: Nanos::from_millis(4),
            cache_hot: Nanos::from_micros(500),
            sync_wakeups: false,
            realtime: realtime::Options::default(),
            server: None,
        }
    }
}

/// The options of every fair scheduler.
pub(super) const TICK: OptionSpec = OptionSpec::duration("tick", "the period of the tick").by_default("4ms");
pub(super) const HOT: OptionSpec =
    OptionSpec::duration("hot", "a task that ran less than this ago is not moved to another CPU").by_default("500us");
pub(super) const SYNC: OptionSpec = OptionSpec::flag("sync", "whether wakeups announce that the waker is about to sleep").by_default("no");
pub(super) const QUANTUM: OptionSpec =
    OptionSpec::duration("quantum", "how long a real-time task runs before its equals").unset("endless; 100ms for SCHED_RR tasks");
pub(super) const SERVER: OptionSpec =
    OptionSpec::duration("server", "for how long fair tasks run in each second in which real-time tasks leave them no time").unset("0");

/// As the options above say.
impl From<&Given<'_>> for Options {
    fn from(given: &Given) -> Options {
        Options {
            tick: given.duration(TICK.name),
            cache_hot: given.duration(HOT.name),
            sync_wakeups: given.flag(SYNC.name),
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
    /// CPUs on which fair tasks wait.
    crowded: CpuSet,
    /// The class above.
    realtime: RealTime,
    /// When a busy CPU may next ask an idle one to help.
    next_help: Time,
}

/// One CPU.
#[derive(Clone, Debug)]
struct RunQueue {
    /// Fair tasks that run or wait here, the one that has not run for longest first.
    by_age: RoundRobin,
    /// How many these are.
    runnable: u32,
    /// How many of them wait.
    waiting: u32,
    /// What they weigh together.
    load: u64,
    /// For how long, in ticks, fair tasks have waited here for real-time ones.
    starved: Nanos,
    /// Until when fair tasks run before real-time ones, if they do.
    served_until: Option<Time>,
    /// What an idle CPU is to be asked as soon as there is an occasion.
    help: Option<Help>,
    /// Whether another CPU has asked this one, which idles, to take a task.
    asked: bool,
    /// In each domain of this CPU.
    next_balance: [Time; LEVELS],
    /// The first of these.
    balance_due: Time,
    /// Attempts to balance in a row that moved nothing though the load was uneven.
    failed: u32,
}

/// What a busy CPU asks of an idle one.
#[derive(Clone, Copy, Debug)]
enum Help {
    /// To look for a waiting task.
    Take(CpuId),
    /// To run the task that is about to be stopped.
    Run(CpuId),
}

/// A task. Half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Task {
    /// Whether it is of the class above, which a fair task can be for a time if it inherits.
    is_real_time: bool,
    weight: u32,
    /// Where it runs or waits, or did so last.
    cpu: CpuId,
    /// Where it was before it last woke somewhere else.
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
            asked: false,
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

    /// Whether there is another CPU to give tasks to. If not, nobody looks at `RunQueue::by_age`.
    fn balances(&self) -> bool {
        self.queues.len() > 1
    }

    /// Whether `task` is of the class above.
    fn is_real_time(&self, task: TaskId) -> bool {
        self.tasks[task.index()].is_real_time
    }

    /// `task`, which takes part nowhere or lingers, is of the class that its priority says from now on.
    fn classify(&mut self, cx: &Context, task: TaskId) {
        let is_real_time = self.realtime.has(cx, task);
        if std::mem::replace(&mut self.tasks[task.index()].is_real_time, is_real_time) != is_real_time {
            match is_real_time {
                true => {
                    self.end_lingering(cx, task);
                    self.realtime.init_task(cx, task);
                }
                false => self.realtime.exit_task(cx, task),
            }
        }
    }

    /// `task` is not a fair one any more: if it still takes part although it sleeps, it comes back there and leaves, as it may run and sleep elsewhere now.
    fn end_lingering(&mut self, cx: &Context, task: TaskId) {
        if self.discipline.lingers(task) {
            let cpu = self.tasks[task.index()].cpu;
            self.discipline.charge(cpu, cx.now());
            self.discipline.join(cpu, task, Join::Wakes, cx.now());
            self.discipline.leave(cpu, task, Leave::Exits, cx.now());
        }
    }

    /// The priority of `task` has changed while it ran on `cpu`: it takes part there, as one of its class (`rt_mutex_setprio`).
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

    /// A fair task counts as runnable on `cpu` from now on.
    fn add(&mut self, cpu: CpuId, task: TaskId) {
        let balances = self.balances();
        let queue = &mut self.queues[cpu.index()];
        if balances {
            queue.by_age.insert(Nodes::from_mut(&mut self.nodes), task, Level(0));
        }
        queue.runnable += 1;
        queue.load += u64::from(self.tasks[task.index()].weight);
    }

    /// A fair task is not runnable on `cpu` any more.
    fn subtract(&mut self, cpu: CpuId, task: TaskId) {
        let balances = self.balances();
        let queue = &mut self.queues[cpu.index()];
        if balances {
            queue.by_age.remove(Nodes::from_mut(&mut self.nodes), task);
        }
        queue.runnable -= 1;
        queue.load -= u64::from(self.tasks[task.index()].weight);
    }

    /// A runnable fair task waits on `cpu` from now on.
    fn wait(&mut self, cpu: CpuId) {
        self.queues[cpu.index()].waiting += 1;
        self.crowded.insert(cpu);
    }

    /// A fair task does not wait on `cpu` any more.
    fn end_wait(&mut self, cpu: CpuId) {
        let waiting = &mut self.queues[cpu.index()].waiting;
        *waiting -= 1;
        if *waiting == 0 {
            self.crowded.remove(cpu);
        }
    }

    /// A woken or new fair task takes part on `cpu`.
    fn wake_fair(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, how: Join) -> Effect {
        self.discipline.refresh(cx.now());
        // The kernel charges before it places a task, but not before it takes one back that lingered.
        let is_over = !self.discipline.lingers(task) && self.discipline.charge(cpu, cx.now());
        self.discipline.join(cpu, task, how, cx.now());
        self.add(cpu, task);
        let Some(running) = cx.current(cpu) else {
            let held_until = self.discipline.wakes_at(cpu).filter(|_| self.discipline.is_held(task));
            return held_until.map_or(Effect::Kick(cpu), |time| Effect::KickAt(cpu, time));
        };
        if self.realtime.has(cx, running) || self.realtime.is_told(cpu) {
            return Effect::Nothing;
        }
        if is_over || self.discipline.charge(cpu, cx.now()) || self.discipline.preempts(cpu, task) {
            return self.realtime.tell(cpu);
        }
        Effect::Nothing
    }

    /// A tick in which `cpu` runs a real-time task. Whether fair ones have waited for so long that it is their turn.
    fn serve(&mut self, cx: &Context, cpu: CpuId) -> bool {
        let queue = &mut self.queues[cpu.index()];
        let Some(turn) = self.options.server.filter(|_| queue.waiting > 0) else {
            return false;
        };
        queue.starved += self.options.tick;
        let is_due = queue.starved + turn >= PERIOD;
        if is_due {
            queue.served_until = Some(cx.now() + turn);
            self.realtime.lend(cpu, true);
        }
        is_due
    }

    /// Takes `cpu` back from the fair tasks if they have had their turn, or there are none.
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
        Needs { tick: Some(self.options.tick), blocking: true, alarm: self.options.realtime.throttle.is_some() }
    }

    fn promises(&self) -> Promises {
        Promises {
            work_conserving: false, // see `balance`; and a task that lingers wakes where it sleeps
            locally_work_conserving: self.options.realtime.throttle.is_none(),
            starvation_free: true,
            inherits: true,
            shares: self.discipline.shares(),
            ..if self.options.server.is_none() { self.realtime.promises() } else { Promises::default() }
        }
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
        let new = Task { is_real_time, weight: weight(view.prio, view.attributes.class), cpu: view.cpu, recent: view.cpu, ran: None };
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
        if self.discipline.lingers(task) {
            return last;
        }
        let cpu = match cx.pinned(task) {
            Some(only) => only,
            None if wake.new => self.fork_cpu(cx, task, wake.waker),
            None => self.wake_cpu(cx, task, wake.waker),
        };
        let entry = &mut self.tasks[task.index()];
        entry.cpu = cpu;
        if cpu != last {
            entry.ran = None;
        }
        cpu
    }

    fn enqueue(&mut self, cx: &mut Context, task: TaskId, cpu: CpuId, why: Enqueue) -> Effect {
        if why == Enqueue::PrioChanged {
            return self.enqueue_changed(cx, task, cpu);
        }
        if self.is_real_time(task) {
            return self.realtime.enqueue(cx, task, cpu, why);
        }
        self.tasks[task.index()].cpu = cpu;
        self.wait(cpu);
        match why {
            Enqueue::New => self.wake_fair(cx, task, cpu, Join::New),
            Enqueue::Wakeup => self.wake_fair(cx, task, cpu, Join::Wakes),
            // It takes part still.
            Enqueue::SliceOver | Enqueue::Preempted | Enqueue::Yielded | Enqueue::PrioChanged => match self.queues[cpu.index()].help.take()
            {
                None => Effect::Nothing,
                Some(Help::Take(idle)) => Effect::Kick(idle),
                Some(Help::Run(idle)) => {
                    self.transfer(cx, task, cpu, idle);
                    Effect::Kick(idle)
                }
            },
        }
    }

    fn dequeue(&mut self, cx: &mut Context, task: TaskId) {
        if self.is_real_time(task) {
            return self.realtime.dequeue(task);
        }
        let cpu = self.tasks[task.index()].cpu;
        self.end_wait(cpu);
        self.discipline.charge(cpu, cx.now());
        self.discipline.leave(cpu, task, Leave::Exits, cx.now());
        self.subtract(cpu, task);
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
            let (by_age, nodes) = (&mut self.queues[cpu.index()].by_age, Nodes::from_mut(&mut self.nodes));
            by_age.remove(nodes, task);
            by_age.insert(nodes, task, Level(0));
        }
        self.end_wait(cpu);
        let queue = &mut self.queues[cpu.index()];
        queue.starved = Nanos::ZERO;
        Some(Dispatch { task, slice: queue.served_until.map_or(Nanos::MAX, |until| until.since(cx.now())) })
    }

    fn stopping(&mut self, cx: &mut Context, cpu: CpuId, task: TaskId, why: Stop) {
        if self.is_real_time(task) {
            return self.realtime.stopping(cx, cpu, task, why);
        }
        self.tasks[task.index()].ran = Some(cx.now());
        self.discipline.charge(cpu, cx.now());
        match why {
            Stop::SliceOver | Stop::Preempted => {}
            Stop::Yielded => self.discipline.yield_turn(cpu),
            Stop::Blocked => {
                self.subtract(cpu, task);
                self.discipline.leave(cpu, task, Leave::Sleeps, cx.now());
            }
            Stop::Exited => {
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
            return self.realtime.tell(cpu);
        }
        if self.realtime.needs_ticks() {
            match self.realtime.tick(cx, cpu) {
                Effect::Nothing => {}
                effect => return effect,
            }
        }
        self.discipline.refresh(cx.now());
        let turn_is_over = !is_real_time && (self.discipline.charge(cpu, cx.now()) || self.discipline.expires(cpu));
        let stop = (self.balance_busy(cx, cpu) || turn_is_over) && !is_real_time;
        let Some(helper) = self.find_help(cx, cpu) else {
            return if stop { self.realtime.tell(cpu) } else { Effect::Nothing };
        };
        let gives_away = self.is_desperate(cx, cpu, helper);
        if is_real_time || !stop && !gives_away {
            return Effect::Kick(helper);
        }
        self.queues[cpu.index()].help = Some(if gives_away { Help::Run(helper) } else { Help::Take(helper) });
        self.realtime.tell(cpu)
    }
}
