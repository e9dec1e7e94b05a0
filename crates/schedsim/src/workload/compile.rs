//! Compiles a closed workload to the scripts that the engine runs.
//!
//! A run uses no more CPU time than the workload states. The cost of the system calls themselves is
//! not included, unless a phase states it.
//!
//! ```
//! use schedsim::workload::{Closed, Workload};
//!
//! let text = r#"{ "task": [ { "name": "polite", "count": 2, "phases": [
//!     { "loop": { "times": 3, "phases": [ { "run": "1ms" }, "yield" ] } } ] } ] }"#;
//! let closed: Closed = serde_json::from_str(text).unwrap();
//! assert_eq!(Workload::of(&closed, 4).unwrap().demand().to_string(), "6.00ms");
//! ```
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use crate::admission::LONGEST;
use crate::trace::TaskInfo;
use crate::workload::shared::{
    Barrier, Device, Epoll, Eventfd, Group, Late, Mutex, Pipe, Rounds, Serve, Shared, Socket,
    Source, Timer, Watched,
};
use crate::workload::{
    Action, Affinity, Attributes, Bandwidth, Call, Cgroup, CgroupOptions, Closed, DeviceOptions,
    EpollObject, EventLoopPhase, EventfdOptions, Invalid, Membership, MutexOptions, Operation,
    Phase, Reservation, SchedulingPolicy, Script, ServePhase, Slice, SocketOptions, Start,
    TaskClass, TaskSpec, Tasks, TimerMode, TimerPhase, Until, WatchPhase, Workload,
};
use crate::{CpuId, CpuSet, Nanos, TaskId, Time};
use phases::Place;
use std::collections::{BTreeMap, BTreeSet};

impl Workload {
    /// The scripts of `closed` for a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// If it cannot run there; the key names the place, as in `task[1].phases[0].loop.phases[2]`.
    pub fn of(closed: &Closed, cpus: u16) -> Result<Workload, Invalid> {
        closed.check(cpus)?;
        let mut compiler = Compiler::new(closed);
        for tasks in &closed.tasks {
            compiler.add(tasks);
        }
        Ok(compiler.workload)
    }
}

/// How many tasks meet at each barrier: all that name it, each counted once.
fn comers(closed: &Closed) -> BTreeMap<&str, u32> {
    let mut comers = BTreeMap::new();
    for tasks in &closed.tasks {
        let phases = closed.reached_by(tasks, "").into_iter().map(|Place { phase, .. }| phase);
        let names: BTreeSet<&str> = phases
            .filter_map(
                |phase| if let Phase::Barrier(name) = phase { Some(name.as_str()) } else { None },
            )
            .collect();
        for name in names {
            let count: &mut u32 = comers.entry(name).or_default();
            *count = count.saturating_add(tasks.count);
        }
    }
    comers
}

struct Compiler<'c> {
    closed: &'c Closed,
    /// How many tasks meet at each barrier without an explicit number.
    comers: BTreeMap<&'c str, u32>,
    workload: Workload,
    numbers: Numbers<'c>,
}

/// The numbers of named objects.
#[derive(Default)]
struct Numbers<'c> {
    mutexes: BTreeMap<&'c str, u32>,
    conditions: BTreeMap<&'c str, u32>,
    barriers: BTreeMap<&'c str, u32>,
    pipes: BTreeMap<&'c str, u32>,
    sockets: BTreeMap<&'c str, u32>,
    eventfds: BTreeMap<&'c str, u32>,
    epolls: BTreeMap<&'c str, u32>,
    devices: BTreeMap<&'c str, u32>,
    shared_timers: BTreeMap<&'c str, u32>,
    groups: BTreeMap<&'c str, u32>,
    sets: BTreeMap<&'c [u16], u32>,
}

/// The number of a name; a new name gets the next one, at the end of `list`.
fn number<'c, T>(
    numbers: &mut BTreeMap<&'c str, u32>,
    list: &mut Vec<T>,
    name: &'c str,
    new: impl FnOnce() -> T,
) -> u32 {
    *numbers.entry(name).or_insert_with(|| add(list, new()))
}

/// Appends to a list and returns the new index. There are no more entries than phases, of which
/// there are less than 2^32.
fn add<T>(list: &mut Vec<T>, new: T) -> u32 {
    let number = list.len().try_into().unwrap_or(u32::MAX);
    list.push(new);
    number
}

impl<'c> Compiler<'c> {
    fn new(closed: &'c Closed) -> Compiler<'c> {
        let mut numbers = Numbers::default();
        let mut groups = Vec::new();
        let mut first = 0;
        for tasks in &closed.tasks {
            let group = Group {
                name: tasks.name.clone(),
                first: TaskId(first),
                count: tasks.count,
                daemon: tasks.daemon,
            };
            number(&mut numbers.groups, &mut groups, &tasks.name, || group);
            first = first.saturating_add(tasks.count);
        }
        let cgroups =
            closed.cgroups.iter().map(|(name, &CgroupOptions { weight, max, period })| {
                let max = max.map(|quota| Bandwidth { quota, period });
                Cgroup { name: name.clone(), weight, max }
            });
        let shared = Shared { groups, ..Shared::NOTHING };
        let workload = Workload { shared, cgroups: cgroups.collect(), ..Workload::default() };
        Compiler { closed, comers: comers(closed), workload, numbers }
    }

    fn add(&mut self, tasks: &'c Tasks) {
        let own_timer = |phase: &Phase| matches!(phase, Phase::Timer(timer) if !timer.shared);
        let all_alike =
            !self.closed.reached_by(tasks, "").iter().any(|place| own_timer(place.phase));
        let affinity = self.affinity(tasks);
        let begin = self.workload.tasks.len();
        let mut last: Option<Script> = None;
        for _ in 0..tasks.count {
            let script = match last.take().filter(|_| all_alike) {
                Some(script) => script,
                None => self.script(tasks),
            };
            let pid =
                u32::try_from(self.workload.tasks.len()).unwrap_or(u32::MAX).saturating_add(1);
            self.workload.tasks.push(TaskSpec {
                info: TaskInfo {
                    name: tasks.program().to_string(),
                    pid,
                    tgid: if tasks.process { pid } else { 1 },
                    prio: prio(tasks),
                },
                attributes: attributes(tasks, &self.closed.cgroups),
                affinity,
                cpu: CpuId(tasks.affinity.iter().flatten().copied().min().unwrap_or(0)),
                start: if tasks.forked { Start::Forked } else { Start::At(Time(tasks.start.0)) },
                script: script.clone(),
            });
            last = Some(script);
        }
        if let Some(own) = tasks.reservation {
            let reservation = Reservation {
                runtime: own.runtime,
                deadline: own.deadline.unwrap_or(own.period),
                period: own.period,
            };
            self.workload.reservations.resize(begin, None);
            self.workload.reservations.resize(self.workload.tasks.len(), Some(reservation));
        }
    }

    fn affinity(&mut self, tasks: &'c Tasks) -> Affinity {
        match tasks.affinity.as_deref() {
            None => Affinity::Any,
            Some(&[only]) => Affinity::Pinned(CpuId(only)),
            Some(cpus) => {
                let sets = &mut self.workload.cpu_sets;
                let set = || cpus.iter().copied().map(CpuId).collect::<CpuSet>();
                Affinity::Set(*self.numbers.sets.entry(cpus).or_insert_with(|| add(sets, set())))
            }
        }
    }

    /// The script of one task: its own phases, then the lists that it may continue with. It is
    /// written twice, because the first pass finds where the lists begin.
    fn script(&mut self, tasks: &'c Tasks) -> Script {
        let lists: Vec<&'c str> = self.closed.lists_of(tasks).into_iter().collect();
        let origin = (!tasks.forked).then_some(Time(tasks.start.0));
        let mut writer = Writer {
            compiler: self,
            origin,
            timers: BTreeMap::new(),
            begins: BTreeMap::new(),
            serves: Vec::new(),
            served: 0,
            script: Script::new(),
            run: Nanos::ZERO,
        };
        for _ in 0..2 {
            (writer.script, writer.served) = (Script::new(), 0);
            writer.list(&tasks.phases);
            for &name in &lists {
                writer.begins.insert(name, writer.script.end());
                writer.list(&writer.compiler.closed.lists[name]);
            }
        }
        writer.script.shrink();
        writer.script
    }
}

/// Writes the script of a task.
struct Writer<'a, 'c> {
    compiler: &'a mut Compiler<'c>,
    /// The origin of its timers.
    origin: Option<Time>,
    /// Its own timers.
    timers: BTreeMap<&'c str, u32>,
    /// The cursors of the lists.
    begins: BTreeMap<&'c str, u32>,
    /// Its waits for sets, in order.
    serves: Vec<u32>,
    /// How many of them are written.
    served: usize,
    script: Script,
    /// The run time since the last step.
    run: Nanos,
}

impl<'c> Writer<'_, 'c> {
    fn list(&mut self, phases: &'c [Phase]) {
        self.phases(phases, 0);
        self.step(Action::Exit);
    }

    fn phases(&mut self, phases: &'c [Phase], depth: u8) {
        for phase in phases {
            match phase {
                Phase::Run(span) => {
                    if self.run.saturating_add(*span) > LONGEST {
                        self.step(Action::Continue); // a step holds one of the longest
                    }
                    self.run = self.run.saturating_add(*span);
                }
                Phase::Sleep(span) => self.step(Action::Sleep(*span)),
                Phase::Yield => self.step(Action::Yield),
                Phase::Loop(inner) => {
                    if self.run > Nanos::ZERO {
                        self.step(Action::Continue);
                    }
                    let begin = self.script.end();
                    let inside = depth.saturating_add(1);
                    self.phases(&inner.phases, inside);
                    self.step(Action::Do(Operation::Repeat {
                        begin,
                        depth,
                        times: inner.times.unwrap_or(Operation::FOREVER),
                    }));
                    let deepest = &mut self.compiler.workload.shared.depth;
                    *deepest = (*deepest).max(inside);
                }
                Phase::Serve(serve) => self.serve(serve, depth),
                Phase::EventLoop(event_loop) => self.event_loop(event_loop, depth),
                phase => {
                    let operation = self.operation(phase);
                    self.step(Action::Do(operation));
                }
            }
        }
    }

    /// A wait, and behind it the handlers, each of which continues with the next.
    fn serve(&mut self, phase: &'c ServePhase, depth: u8) {
        let epoll = self.epoll(&phase.epoll);
        let serve = self.wait(epoll);
        self.step(Action::Do(Operation::Serve(serve)));
        if !phase.handle.is_empty() {
            self.step(Action::Do(Operation::Handle(serve)));
        }
        let mut handlers = Vec::new();
        for phases in &phase.handle {
            handlers.push(self.script.end());
            self.phases(phases, depth);
            self.step(Action::Do(Operation::Handle(serve)));
        }
        let after = self.script.end();
        if let Some(of) = self.compiler.workload.shared.serves.get_mut(serve as usize) {
            *of = Serve { epoll, handlers, after, rounds: None };
        }
    }

    /// A wait, and behind it for each object its rounds, each of which continues with the next
    /// object. The last object of a wait leads back to the wait.
    fn event_loop(&mut self, phase: &'c EventLoopPhase, depth: u8) {
        if self.run > Nanos::ZERO {
            self.step(Action::Continue);
        }
        let epoll = self.epoll(&phase.epoll);
        let serve = self.wait(epoll);
        let begin = self.script.end();
        self.step(Action::Do(Operation::Serve(serve)));
        self.run = phase.round;
        self.step(Action::Do(Operation::Handle(serve)));
        let (mut handlers, mut ends) = (Vec::new(), Vec::new());
        for rounds in &phase.handle {
            handlers.push(self.script.end());
            for phases in rounds {
                self.phases(phases, depth);
                self.step(Action::Do(Operation::Handle(serve)));
            }
            ends.push(self.script.end());
        }
        let after = self.script.end();
        if let Some(of) = self.compiler.workload.shared.serves.get_mut(serve as usize) {
            *of = Serve { epoll, handlers, after, rounds: Some(Rounds { begin, ends }) };
        }
    }

    /// The number of the next wait for a set in the script. The first pass over the script makes it.
    fn wait(&mut self, epoll: u32) -> u32 {
        let known = self.serves.get(self.served).copied();
        self.served = self.served.saturating_add(1);
        known.unwrap_or_else(|| {
            let new = Serve { epoll, handlers: Vec::new(), after: 0, rounds: None };
            let serve = add(&mut self.compiler.workload.shared.serves, new);
            self.serves.push(serve);
            serve
        })
    }

    fn epoll(&mut self, name: &'c str) -> u32 {
        if let Some(&known) = self.compiler.numbers.epolls.get(name) {
            return known;
        }
        let closed = self.compiler.closed;
        let options = closed.epolls.get(name);
        let sources = options.iter().flat_map(|options| &options.sources).map(|source| Source {
            object: self.watched(&source.object),
            trigger: source.trigger,
            is_exclusive: source.exclusive,
            is_off: source.off,
        });
        let sources = sources.collect();
        let events = options.map_or(1, |options| options.events);
        let new = Epoll { name: name.to_string(), sources, events };
        let number = add(&mut self.compiler.workload.shared.epolls, new);
        self.compiler.numbers.epolls.insert(name, number);
        number
    }

    fn watched(&mut self, object: &'c EpollObject) -> Watched {
        match object {
            EpollObject::Pipe(pipe) => Watched::Pipe(self.pipe(pipe)),
            EpollObject::PipeRoom(pipe) => Watched::PipeRoom(self.pipe(pipe)),
            EpollObject::Socket(socket) => Watched::End(self.end(socket, true)),
            EpollObject::Reply(socket) => Watched::End(self.end(socket, false)),
            EpollObject::SendRoom(socket) => Watched::Room(self.end(socket, false)),
            EpollObject::ReplyRoom(socket) => Watched::Room(self.end(socket, true)),
            EpollObject::Eventfd(eventfd) => Watched::Eventfd(self.eventfd(eventfd)),
        }
    }

    fn step(&mut self, then: Action) {
        self.script.push(std::mem::take(&mut self.run), then);
    }

    fn operation(&mut self, phase: &'c Phase) -> Operation {
        match phase {
            Phase::Lock(mutex) => Operation::Lock(self.mutex(mutex)),
            Phase::Unlock(mutex) => Operation::Unlock(self.mutex(mutex)),
            Phase::Wait { condition, mutex } => {
                Operation::Await { condition: self.condition(condition), mutex: self.mutex(mutex) }
            }
            Phase::Signal(condition) => Operation::Signal(self.condition(condition)),
            Phase::Broadcast(condition) => Operation::Broadcast(self.condition(condition)),
            Phase::Barrier(barrier) => Operation::Arrive(self.barrier(barrier)),
            Phase::Read { pipe, bytes, partial } => Operation::Read {
                pipe: self.pipe(pipe),
                bytes: *bytes,
                until: if *partial { Until::Any } else { Until::All },
                call: Call::Begins,
            },
            Phase::Write { pipe, bytes } => {
                Operation::Write { pipe: self.pipe(pipe), bytes: *bytes, call: Call::Begins }
            }
            Phase::Send { socket, bytes, reply } => {
                Operation::Send { end: self.end(socket, *reply), bytes: *bytes }
            }
            Phase::Receive { socket, bytes, partial, reply } => Operation::Receive {
                end: self.end(socket, !*reply),
                bytes: *bytes,
                until: if *partial { Until::Any } else { Until::All },
            },
            Phase::Post { eventfd, count } => {
                Operation::Post { eventfd: self.eventfd(eventfd), count: *count }
            }
            Phase::Take { eventfd } => Operation::Take(self.eventfd(eventfd)),
            Phase::Poll(epoll) => Operation::Poll(self.epoll(epoll)),
            Phase::Watch(WatchPhase { epoll, source, off }) => Operation::Watch {
                epoll: self.epoll(epoll),
                object: self.watched(source),
                on: !off,
            },
            Phase::SleepUntil(after) => Operation::SleepUntil(Time(after.0)),
            Phase::Timer(timer) => {
                Operation::Timer { timer: self.timer(timer), period: timer.period }
            }
            Phase::Io(io) => Operation::Io { device: self.device(&io.device), service: io.service },
            Phase::Fork(tasks) => Operation::Fork(self.compiler.numbers.groups[tasks.as_str()]),
            Phase::Join(tasks) => Operation::Join(self.compiler.numbers.groups[tasks.as_str()]),
            Phase::Exec(list) => {
                Operation::Exec { begin: self.begins.get(list.as_str()).copied().unwrap_or(0) }
            }
            Phase::Run(_)
            | Phase::Sleep(_)
            | Phase::Yield
            | Phase::Loop(_)
            | Phase::Serve(_)
            | Phase::EventLoop(_) => unreachable!("these are no operations"),
        }
    }

    fn mutex(&mut self, name: &'c str) -> u32 {
        let Compiler { closed, workload, numbers, .. } = &mut *self.compiler;
        let MutexOptions { handoff, inherit, spin } =
            closed.mutexes.get(name).copied().unwrap_or_default();
        number(&mut numbers.mutexes, &mut workload.shared.mutexes, name, || Mutex {
            name: name.to_string(),
            handoff,
            inherit,
            spin,
        })
    }

    fn condition(&mut self, name: &'c str) -> u32 {
        let Compiler { workload, numbers, .. } = &mut *self.compiler;
        number(&mut numbers.conditions, &mut workload.shared.conditions, name, || name.to_string())
    }

    fn barrier(&mut self, name: &'c str) -> u32 {
        let Compiler { closed, comers, workload, numbers } = &mut *self.compiler;
        let given = closed.barriers.get(name).copied().unwrap_or_default().tasks;
        let tasks = given.or_else(|| comers.get(name).copied()).unwrap_or_default();
        let new = || Barrier { name: name.to_string(), tasks };
        number(&mut numbers.barriers, &mut workload.shared.barriers, name, new)
    }

    fn pipe(&mut self, name: &'c str) -> u32 {
        let Compiler { closed, workload, numbers, .. } = &mut *self.compiler;
        let capacity = closed.pipes.get(name).copied().unwrap_or_default().capacity;
        number(&mut numbers.pipes, &mut workload.shared.pipes, name, || Pipe {
            name: name.to_string(),
            capacity,
        })
    }

    /// An end of a pair of sockets.
    fn end(&mut self, name: &'c str, is_second: bool) -> u32 {
        let Compiler { closed, workload, numbers, .. } = &mut *self.compiler;
        let SocketOptions { kind } = closed.sockets.get(name).copied().unwrap_or_default();
        let new = || Socket { name: name.to_string(), kind };
        let pair = number(&mut numbers.sockets, &mut workload.shared.sockets, name, new);
        pair.saturating_mul(2).saturating_add(is_second.into())
    }

    fn eventfd(&mut self, name: &'c str) -> u32 {
        let Compiler { closed, workload, numbers, .. } = &mut *self.compiler;
        let EventfdOptions { semaphore, count, wakes_one } =
            closed.eventfds.get(name).copied().unwrap_or_default();
        number(&mut numbers.eventfds, &mut workload.shared.eventfds, name, || Eventfd {
            name: name.to_string(),
            is_semaphore: semaphore,
            count: count.into(),
            wakes_one,
        })
    }

    fn device(&mut self, name: &'c str) -> u32 {
        let Compiler { closed, workload, numbers, .. } = &mut *self.compiler;
        let DeviceOptions { channels, interrupts } =
            closed.devices.get(name).copied().unwrap_or_default();
        number(&mut numbers.devices, &mut workload.shared.devices, name, || Device {
            name: name.to_string(),
            channels,
            interrupts: interrupts.map(CpuId),
        })
    }

    fn timer(&mut self, timer: &'c TimerPhase) -> u32 {
        let late = if timer.mode == TimerMode::Absolute { Late::CatchUp } else { Late::Restart };
        let new = Timer { origin: self.origin, late };
        let Compiler { workload, numbers, .. } = &mut *self.compiler;
        let known = if timer.shared { &mut numbers.shared_timers } else { &mut self.timers };
        number(known, &mut workload.shared.timers, &timer.name, || new)
    }
}

/// Linux's kernel priority.
fn prio(tasks: &Tasks) -> u8 {
    let prio = match tasks.policy {
        SchedulingPolicy::Fifo | SchedulingPolicy::Rr => {
            99i32.saturating_sub(tasks.priority.unwrap_or(1))
        }
        SchedulingPolicy::Other | SchedulingPolicy::Batch | SchedulingPolicy::Idle => {
            tasks.nice.unwrap_or(0).saturating_add(120)
        }
    };
    prio.try_into().unwrap_or(120)
}

fn attributes(tasks: &Tasks, cgroups: &BTreeMap<String, CgroupOptions>) -> Attributes {
    let class = match tasks.policy {
        SchedulingPolicy::Other => TaskClass::ByPriority,
        SchedulingPolicy::Batch => TaskClass::Batch,
        SchedulingPolicy::Idle => TaskClass::Idle,
        SchedulingPolicy::Fifo => TaskClass::Fifo,
        SchedulingPolicy::Rr => TaskClass::RoundRobin,
    };
    let membership =
        tasks.cgroup.as_ref().and_then(|name| cgroups.keys().position(|key| key == name));
    let membership = membership.map_or(Membership::default(), Membership::of);
    Attributes { class, slice: tasks.slice.map_or(Slice::DEFAULT, Slice::new), membership }
}
