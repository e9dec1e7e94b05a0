//! Compiles a workload for the tasks: names become numbers, phases a flat list of ops.

use crate::kind::Kind;
use crate::sync::Heir;
use phases::{
    Closed, EpollObject, EpollSource, EventLoopPhase, EventfdOptions, IoOperation, LoopPhase,
    MutexOptions, Phase, SchedulingPolicy, ServePhase, SocketKind, Tasks, TimerMode, Trigger,
    WatchPhase,
};
use schedlab_runner::class::Class;
use std::collections::BTreeMap;
use std::ffi::CString;

/// The deepest nesting of loops.
pub const MAX_DEPTH: usize = 16;
/// The most timers of one task.
pub const MAX_TIMERS: usize = 16;

/// One operation of a task. Numbers are indices into the tables of [`Program`].
#[derive(Clone, Debug)]
pub enum Op {
    /// Gives up the CPU.
    Yield,
    /// Uses this much CPU time, in nanoseconds.
    Run(u64),
    /// Sleeps for this time, in nanoseconds.
    Sleep(u64),
    /// Sleeps until the timer's next period.
    Timer { period: u64, absolute: bool, timer: TimerSlot },
    /// Locks a mutex.
    Lock(usize),
    /// Unlocks a mutex.
    Unlock(usize),
    /// Waits for a condition under a mutex.
    Wait { condition: usize, mutex: usize },
    /// Wakes one task that waits for a condition.
    Signal(usize),
    /// Wakes all tasks that wait for a condition.
    Broadcast(usize),
    /// Waits until all tasks of a barrier have arrived.
    Barrier(usize),
    /// Writes to a pipe.
    Write { pipe: usize, bytes: usize },
    /// Reads from a pipe: all bytes, or what is there.
    Read { pipe: usize, bytes: usize, partial: bool },
    /// Sends from an end of a pair of sockets.
    Send { end: End, bytes: usize },
    /// Receives at an end of a pair of sockets: all bytes, or what is there.
    Receive { end: End, bytes: usize, partial: bool },
    /// Adds to an event counter.
    Post { eventfd: usize, count: u64 },
    /// Takes from an event counter.
    Take(usize),
    /// Waits until an object of a set is ready.
    Serve(usize),
    /// Goes to the handler of the next object that is, or behind all handlers.
    Handle(usize),
    /// Waits until an object of a set is ready, and takes nothing.
    Poll(usize),
    /// Watches an object of a set from now on, or does not.
    Watch { set: usize, place: usize, on: bool },
    /// Sleeps until this time after the begin of the job, in nanoseconds.
    SleepUntil(u64),
    /// Reads or writes a file.
    Io { file: usize, bytes: usize, write: bool },
    /// Starts the next instance of a task.
    Fork(usize),
    /// Waits until a task has no instance left.
    Join(usize),
    /// Goes to an op.
    Goto(usize),
    /// Jumps back until the loop has run `times` times; `depth` is the number of loops around this
    /// one.
    Repeat { back: usize, times: u64, depth: usize },
    /// Ends.
    End,
}

/// An end of a pair of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The number of the pair.
    pub pair: usize,
    /// 0 or 1.
    pub side: usize,
}

/// What a task waits for at an object of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// Data in a pipe.
    Pipe(usize),
    /// A message at an end of a pair of sockets.
    Socket(End),
    /// An event of a counter.
    Eventfd(usize),
    /// Room to write to a pipe.
    PipeRoom(usize),
    /// Room to send from an end of a pair of sockets.
    Room(End),
}

/// An object in a set.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// What the task waits for.
    pub object: Object,
    /// When a wait returns it.
    pub trigger: Trigger,
    /// Whether it is exclusive.
    pub exclusive: bool,
    /// Whether it is watched only after a [`Op::Watch`].
    pub off: bool,
}

/// A set of objects.
#[derive(Clone, Debug)]
pub struct Epoll {
    /// The objects, in the order in which they are added.
    pub sources: Vec<Source>,
    /// The largest number of objects that one wait returns.
    pub events: usize,
}

/// What a task does for the objects of a set.
#[derive(Clone, Debug)]
pub struct Serve {
    /// The number of the set.
    pub epoll: usize,
    /// For each object, the first op of its handler.
    pub handlers: Vec<usize>,
    /// The op behind all handlers.
    pub after: usize,
    /// Whether handlers differ from round to round.
    pub rounds: Option<Rounds>,
}

/// Handlers of an event loop: each continues where it ended, until it is at its end.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The wait, to which the last handler of a round leads back.
    pub begin: usize,
    /// For each object, the op behind its handler.
    pub ends: Vec<usize>,
}

/// Where the state of a timer is.
#[derive(Clone, Copy, Debug)]
pub enum TimerSlot {
    /// The task's own, by number.
    Own(usize),
    /// One for all tasks.
    Shared(usize),
}

/// A kind of task.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its name in the kernel.
    pub name_of_task: CString,
    /// The number of its first instance.
    pub first: usize,
    /// The number of its instances.
    pub count: usize,
    /// Its class.
    pub class: Class,
    /// Its nice value.
    pub nice: i32,
    /// The slice that it requests, in nanoseconds; 0 for the kernel's default.
    pub slice: u64,
    /// The number of its control group, if it is in one.
    pub cgroup: Option<usize>,
    /// The CPUs that it may use; empty: all.
    pub affinity: Vec<u16>,
    /// When it begins, in nanoseconds.
    pub start: u64,
    /// Whether it begins only when it is forked.
    pub forked: bool,
    /// Whether it is a process.
    pub process: bool,
    /// Whether the job ends without it.
    pub daemon: bool,
    /// Its ops; the last is [`Op::End`].
    pub ops: Vec<Op>,
}

/// All tasks of a workload, and the number of shared things of each kind.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kinds of tasks.
    pub templates: Vec<Template>,
    /// The largest number of instances.
    pub instances: usize,
    /// The task that gets each mutex next.
    pub mutexes: Vec<Heir>,
    /// The number of conditions.
    pub conditions: usize,
    /// The number of tasks of each barrier.
    pub barriers: Vec<u32>,
    /// The capacity of each pipe.
    pub pipes: Vec<u64>,
    /// What each pair of sockets carries.
    pub sockets: Vec<SocketKind>,
    /// The event counters.
    pub eventfds: Vec<EventfdOptions>,
    /// The sets of objects.
    pub epolls: Vec<Epoll>,
    /// What tasks do for the objects of a set.
    pub serves: Vec<Serve>,
    /// The files' names.
    pub files: Vec<String>,
    /// The number of shared timers.
    pub shared_timers: usize,
    /// When the job ends at the latest, in nanoseconds.
    pub duration: Option<u64>,
    /// The phase that makes up a round of the first task; samples count it.
    pub sampled: Kind,
}

impl Program {
    /// Resolves the names of `workload`. `class` and `nice` hold for tasks that request none.
    pub fn new(workload: &Closed, class: Class, nice: i32) -> Result<Program, String> {
        let mut names = Names::new(workload);
        let mut templates = Vec::new();
        let mut instances = 0;
        for task in &workload.tasks {
            let first = instances;
            instances += task.count as usize;
            let ops = names.lay_out(&task.phases)?;
            templates.push(Template {
                name: task.name.clone(),
                name_of_task: CString::new(task.program()).unwrap_or_default(),
                first,
                count: task.count as usize,
                class: class_of(task, class),
                nice: task.nice.unwrap_or(nice),
                slice: task.slice.map_or(0, |slice| slice.0),
                cgroup: task
                    .cgroup
                    .as_ref()
                    .and_then(|name| workload.cgroups.keys().position(|key| key == name)),
                affinity: task.affinity.clone().unwrap_or_default(),
                start: task.start.0,
                forked: task.forked,
                process: task.process,
                daemon: task.daemon,
                ops,
            });
        }
        let epolls = names.sets();
        let barriers = names.barriers.names.iter().map(|name| names.meeting(name)).collect();
        let sampled = templates
            .first()
            .and_then(|first| sampled(&first.ops))
            .ok_or("the workload has no task that does anything")?;
        Ok(Program {
            instances,
            mutexes: names
                .mutexes
                .names
                .iter()
                .map(|name| heir(workload.mutexes.get(name).copied().unwrap_or_default()))
                .collect(),
            conditions: names.conditions.names.len(),
            barriers,
            pipes: names
                .pipes
                .names
                .iter()
                .map(|name| workload.pipes.get(name).copied().unwrap_or_default().capacity)
                .collect(),
            sockets: names
                .sockets
                .names
                .iter()
                .map(|name| workload.sockets.get(name).copied().unwrap_or_default().kind)
                .collect(),
            eventfds: names
                .eventfds
                .names
                .iter()
                .map(|name| workload.eventfds.get(name).copied().unwrap_or_default())
                .collect(),
            epolls,
            serves: names.serves,
            files: names.files.names.clone(),
            shared_timers: names.shared_timers.names.len(),
            duration: workload.duration.map(|duration| duration.0),
            sampled,
            templates,
        })
    }

    /// The template of an instance.
    pub fn template_of(&self, instance: usize) -> &Template {
        &self.templates[self.index_of(instance)]
    }

    /// The number of the template of an instance.
    pub fn index_of(&self, instance: usize) -> usize {
        self.templates.partition_point(|template| template.first <= instance) - 1
    }
}

impl Op {
    /// The kind under which a completed op is counted.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Op::Yield => Kind::Yield,
            Op::Run(_) => Kind::Run,
            Op::Sleep(_) => Kind::Sleep,
            Op::Timer { .. } => Kind::Timer,
            Op::Lock(_) => Kind::Lock,
            Op::Unlock(_) => Kind::Unlock,
            Op::Wait { .. } => Kind::Wait,
            Op::Signal(_) | Op::Broadcast(_) => Kind::Signal,
            Op::Barrier(_) => Kind::Barrier,
            Op::Write { .. } => Kind::Write,
            Op::Read { .. } => Kind::Read,
            Op::Send { .. } => Kind::Send,
            Op::Receive { .. } => Kind::Receive,
            Op::Post { .. } => Kind::Post,
            Op::Take(_) => Kind::Take,
            Op::Serve(_) => Kind::Serve,
            Op::Poll(_) => Kind::Poll,
            Op::Watch { .. } => Kind::Watch,
            Op::SleepUntil(_) => Kind::Sleep,
            Op::Io { .. } => Kind::Io,
            Op::Fork(_) => Kind::Fork,
            Op::Join(_) => Kind::Join,
            Op::Handle(_) | Op::Goto(_) | Op::Repeat { .. } | Op::End => return None,
        })
    }

    /// The size of the buffer that it needs.
    pub fn bytes(&self) -> usize {
        match *self {
            Op::Write { bytes, .. }
            | Op::Read { bytes, .. }
            | Op::Send { bytes, .. }
            | Op::Receive { bytes, .. }
            | Op::Io { bytes, .. } => bytes,
            _ => 0,
        }
    }
}

/// The first phase of the outermost loop; without a loop, the first of all.
fn sampled(ops: &[Op]) -> Option<Kind> {
    let begin = ops
        .iter()
        .find_map(|op| if let Op::Repeat { back, depth: 0, .. } = op { Some(*back) } else { None });
    ops[begin.unwrap_or(0)..].iter().find_map(Op::kind)
}

fn heir(mutex: MutexOptions) -> Heir {
    match mutex {
        MutexOptions { spin: Some(spin), .. } => Heir::FirstToSee(spin),
        MutexOptions { inherit: true, .. } => Heir::HighestPriority,
        MutexOptions { handoff: true, .. } => Heir::FirstWaiter,
        MutexOptions { .. } => Heir::FirstToTry,
    }
}

fn class_of(task: &Tasks, class: Class) -> Class {
    let priority = task.priority.map_or(1, i32::cast_unsigned);
    match task.policy {
        SchedulingPolicy::Other => class,
        SchedulingPolicy::Batch => Class::Batch,
        SchedulingPolicy::Idle => Class::Idle,
        SchedulingPolicy::Fifo => Class::Fifo(priority),
        SchedulingPolicy::Rr => Class::Rr(priority),
    }
}

/// Numbers for names, in the order of their first use.
#[derive(Default)]
struct Numbering {
    names: Vec<String>,
}

impl Numbering {
    fn number(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        })
    }
}

/// The names in a workload.
struct Names<'a> {
    workload: &'a Closed,
    tasks: BTreeMap<&'a str, usize>,
    mutexes: Numbering,
    conditions: Numbering,
    barriers: Numbering,
    pipes: Numbering,
    sockets: Numbering,
    eventfds: Numbering,
    epolls: Numbering,
    serves: Vec<Serve>,
    files: Numbering,
    shared_timers: Numbering,
}

impl<'a> Names<'a> {
    fn new(workload: &'a Closed) -> Names<'a> {
        Names {
            workload,
            tasks: workload
                .tasks
                .iter()
                .enumerate()
                .map(|(index, task)| (task.name.as_str(), index))
                .collect(),
            mutexes: Numbering::default(),
            conditions: Numbering::default(),
            barriers: Numbering::default(),
            pipes: Numbering::default(),
            sockets: Numbering::default(),
            eventfds: Numbering::default(),
            epolls: Numbering::default(),
            serves: Vec::new(),
            files: Numbering::default(),
            shared_timers: Numbering::default(),
        }
    }

    /// The number of tasks of a barrier: as given, or that of the tasks that name it.
    fn meeting(&self, name: &str) -> u32 {
        let names_it = |task: &&Tasks| mentions(&task.phases, name);
        let users = || self.workload.tasks.iter().filter(names_it).map(|task| task.count).sum();
        self.workload.barriers.get(name).and_then(|barrier| barrier.tasks).unwrap_or_else(users)
    }

    /// A wait, and behind it the handlers, each of which continues with the next.
    fn serve(
        &mut self,
        layout: &mut Layout,
        phase: &ServePhase,
        depth: usize,
    ) -> Result<(), String> {
        let (serve, epoll) = (self.serves.len(), self.epolls.number(&phase.epoll));
        self.serves.push(Serve { epoll, handlers: Vec::new(), after: 0, rounds: None });
        layout.ops.push(Op::Serve(serve));
        if !phase.handle.is_empty() {
            layout.ops.push(Op::Handle(serve));
        }
        let mut handlers = Vec::new();
        for phases in &phase.handle {
            handlers.push(layout.ops.len());
            self.append(layout, phases, depth)?;
            layout.ops.push(Op::Handle(serve));
        }
        self.serves[serve] = Serve { epoll, handlers, after: layout.ops.len(), rounds: None };
        Ok(())
    }

    /// A wait, and behind it for each object its rounds, each of which continues with the next
    /// object.
    fn event_loop(
        &mut self,
        layout: &mut Layout,
        phase: &EventLoopPhase,
        depth: usize,
    ) -> Result<(), String> {
        let (serve, epoll) = (self.serves.len(), self.epolls.number(&phase.epoll));
        self.serves.push(Serve { epoll, handlers: Vec::new(), after: 0, rounds: None });
        let begin = layout.ops.len();
        layout.ops.push(Op::Serve(serve));
        if phase.round.0 > 0 {
            layout.ops.push(Op::Run(phase.round.0));
        }
        layout.ops.push(Op::Handle(serve));
        let (mut handlers, mut ends) = (Vec::new(), Vec::new());
        for rounds in &phase.handle {
            handlers.push(layout.ops.len());
            for phases in rounds {
                self.append(layout, phases, depth)?;
                layout.ops.push(Op::Handle(serve));
            }
            ends.push(layout.ops.len());
        }
        let rounds = Some(Rounds { begin, ends });
        self.serves[serve] = Serve { epoll, handlers, after: layout.ops.len(), rounds };
        Ok(())
    }

    /// The sets that tasks wait for.
    fn sets(&mut self) -> Vec<Epoll> {
        let mut sets = Vec::new();
        for name in &self.epolls.names {
            let Some(options) = self.workload.epolls.get(name) else { continue };
            let source = |source: &EpollSource| Source {
                object: object(
                    &source.object,
                    &mut self.pipes,
                    &mut self.sockets,
                    &mut self.eventfds,
                ),
                trigger: source.trigger,
                exclusive: source.exclusive,
                off: source.off,
            };
            let sources = options.sources.iter().map(source).collect();
            sets.push(Epoll { sources, events: options.events.into() });
        }
        sets
    }

    /// The number of a set and the place of a source in it.
    fn watch(&mut self, watch: &WatchPhase) -> Result<Op, String> {
        let of = self.workload.epolls.get(&watch.epoll);
        let place = of.and_then(|of| of.sources.iter().position(|of| of.object == watch.source));
        let place = place.ok_or_else(|| format!("the set {} lacks a source", watch.epoll))?;
        Ok(Op::Watch { set: self.epolls.number(&watch.epoll), place, on: !watch.off })
    }

    fn is_datagram(&self, socket: &str) -> bool {
        let options = self.workload.sockets.get(socket).copied().unwrap_or_default();
        options.kind == SocketKind::Datagram
    }

    /// The ops of a task.
    fn lay_out(&mut self, phases: &[Phase]) -> Result<Vec<Op>, String> {
        let mut layout = Layout {
            ops: Vec::new(),
            own_timers: Numbering::default(),
            lists: Vec::new(),
            jumps: Vec::new(),
        };
        self.append(&mut layout, phases, 0)?;
        layout.ops.push(Op::End);
        if layout.own_timers.names.len() > MAX_TIMERS {
            return Err(format!("a task has more than {MAX_TIMERS} timers of its own"));
        }
        while let Some((at, name)) = layout.jumps.pop() {
            let known =
                layout.lists.iter().find(|(list, _)| *list == name).map(|&(_, begin)| begin);
            let begin = match known {
                Some(begin) => begin,
                None => {
                    let begin = layout.ops.len();
                    layout.lists.push((name.clone(), begin));
                    let phases = self
                        .workload
                        .lists
                        .get(&name)
                        .ok_or_else(|| format!("there is no list named `{name}`"))?;
                    self.append(&mut layout, phases, 0)?;
                    layout.ops.push(Op::End);
                    begin
                }
            };
            layout.ops[at] = Op::Goto(begin);
        }
        Ok(layout.ops)
    }

    fn append(
        &mut self,
        layout: &mut Layout,
        phases: &[Phase],
        depth: usize,
    ) -> Result<(), String> {
        for phase in phases {
            let op = match phase {
                Phase::Loop(LoopPhase { times: Some(0), .. }) => continue,
                Phase::Yield => Op::Yield,
                Phase::Run(time) => Op::Run(time.0),
                Phase::Sleep(time) => Op::Sleep(time.0),
                Phase::Timer(timer) => {
                    let name = timer.name.as_str();
                    let slot = match timer.shared {
                        true => TimerSlot::Shared(self.shared_timers.number(name)),
                        false => TimerSlot::Own(layout.own_timers.number(name)),
                    };
                    Op::Timer {
                        period: timer.period.0,
                        absolute: timer.mode == TimerMode::Absolute,
                        timer: slot,
                    }
                }
                Phase::Lock(name) => Op::Lock(self.mutexes.number(name)),
                Phase::Unlock(name) => Op::Unlock(self.mutexes.number(name)),
                Phase::Wait { condition, mutex } => Op::Wait {
                    condition: self.conditions.number(condition),
                    mutex: self.mutexes.number(mutex),
                },
                Phase::Signal(name) => Op::Signal(self.conditions.number(name)),
                Phase::Broadcast(name) => Op::Broadcast(self.conditions.number(name)),
                Phase::Barrier(name) => Op::Barrier(self.barriers.number(name)),
                Phase::Write { pipe, bytes } => {
                    Op::Write { pipe: self.pipes.number(pipe), bytes: *bytes as usize }
                }
                Phase::Read { pipe, bytes, partial } => Op::Read {
                    pipe: self.pipes.number(pipe),
                    bytes: *bytes as usize,
                    partial: *partial,
                },
                Phase::Send { socket, bytes, reply } => Op::Send {
                    end: End { pair: self.sockets.number(socket), side: usize::from(*reply) },
                    bytes: *bytes as usize,
                },
                Phase::Receive { socket, bytes, partial, reply } => Op::Receive {
                    end: End { pair: self.sockets.number(socket), side: usize::from(!*reply) },
                    bytes: *bytes as usize,
                    partial: *partial || self.is_datagram(socket),
                },
                Phase::Post { eventfd, count } => {
                    Op::Post { eventfd: self.eventfds.number(eventfd), count: *count }
                }
                Phase::Take { eventfd } => Op::Take(self.eventfds.number(eventfd)),
                Phase::Serve(phase) => {
                    self.serve(layout, phase, depth)?;
                    continue;
                }
                Phase::EventLoop(phase) => {
                    self.event_loop(layout, phase, depth)?;
                    continue;
                }
                Phase::Poll(epoll) => Op::Poll(self.epolls.number(epoll)),
                Phase::Watch(watch) => self.watch(watch)?,
                Phase::SleepUntil(after) => Op::SleepUntil(after.0),
                Phase::Io(io) => Op::Io {
                    file: self.files.number(&io.device),
                    bytes: io.bytes as usize,
                    write: io.operation == IoOperation::Write,
                },
                Phase::Fork(name) => Op::Fork(self.task(name)?),
                Phase::Join(name) => Op::Join(self.task(name)?),
                Phase::Exec(name) => {
                    layout.jumps.push((layout.ops.len(), name.clone()));
                    Op::End
                }
                Phase::Loop(LoopPhase { times, phases }) => {
                    if depth == MAX_DEPTH {
                        return Err(format!("loops go more than {MAX_DEPTH} deep"));
                    }
                    let back = layout.ops.len();
                    self.append(layout, phases, depth + 1)?;
                    if layout.ops.len() == back {
                        return Err("a loop has no phases; it would never do anything".to_string());
                    }
                    Op::Repeat { back, times: times.unwrap_or(u64::MAX), depth }
                }
            };
            layout.ops.push(op);
        }
        Ok(())
    }

    fn task(&self, name: &str) -> Result<usize, String> {
        self.tasks.get(name).copied().ok_or_else(|| format!("there is no task named `{name}`"))
    }
}

fn object(
    of: &EpollObject,
    pipes: &mut Numbering,
    sockets: &mut Numbering,
    eventfds: &mut Numbering,
) -> Object {
    let mut end = |socket: &str, side| End { pair: sockets.number(socket), side };
    match of {
        EpollObject::Pipe(pipe) => Object::Pipe(pipes.number(pipe)),
        EpollObject::PipeRoom(pipe) => Object::PipeRoom(pipes.number(pipe)),
        EpollObject::Socket(socket) => Object::Socket(end(socket, 1)),
        EpollObject::Reply(socket) => Object::Socket(end(socket, 0)),
        EpollObject::SendRoom(socket) => Object::Room(end(socket, 0)),
        EpollObject::ReplyRoom(socket) => Object::Room(end(socket, 1)),
        EpollObject::Eventfd(eventfd) => Object::Eventfd(eventfds.number(eventfd)),
    }
}

/// The ops of one task during compilation.
struct Layout {
    ops: Vec<Op>,
    own_timers: Numbering,
    /// Lists that are compiled, and their first ops.
    lists: Vec<(String, usize)>,
    /// Ops that jump to a list.
    jumps: Vec<(usize, String)>,
}

/// Whether `phases` name the barrier.
fn mentions(phases: &[Phase], barrier: &str) -> bool {
    phases.iter().any(|phase| match phase {
        Phase::Barrier(name) => name == barrier,
        Phase::Loop(looped) => mentions(&looped.phases, barrier),
        Phase::Serve(serve) => serve.handle.iter().any(|phases| mentions(phases, barrier)),
        Phase::EventLoop(event_loop) => {
            event_loop.handle.iter().flatten().any(|phases| mentions(phases, barrier))
        }
        _ => false,
    })
}
