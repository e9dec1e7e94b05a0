//! Writes the scripts of a workload as a closed workload, as people write one. It is what a
//! recorded program does, to be read, changed and run without the recording.
//!
//! A token becomes an event counter of the task that waits for it. A timer that keeps its period
//! becomes sleeps until its expiries, and a wait for the ends of many tasks one for each in turn. What
//! the format has no words for is an error that names it.
//! Not written are the CPU on which a task was first, and the pids: names have them.

use program::{Error, write_whole};
use schedsim::admission::LARGEST_TEXT;
use schedsim::workload::{
    Action, Affinity, BarrierOptions, Closed, DeviceOptions, EpollObject, EpollOptions,
    EpollSource, EventLoopPhase, EventfdOptions, IoPhase, Late, LoopPhase, MutexOptions, Operation,
    Phase, PipeOptions, SchedulingPolicy, Serve, ServePhase, Shared, SocketOptions, Source, Start,
    Step, TaskClass, TaskSpec, Tasks, TimerMode, TimerPhase, Until, WatchPhase, Watched, Workload,
};
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// `workload` as a closed workload. The run ends when `ended` have; if there are none, when all have.
///
/// # Errors
/// If the format has no words for something.
pub fn described(workload: &Workload, ended: &[TaskId], cpus: u16) -> Result<Closed, String> {
    let ended: BTreeSet<TaskId> = ended.iter().copied().collect();
    let mut describing = Describing {
        workload,
        names: names(workload),
        forked: forked(workload),
        closed: Closed { cpus: Some(cpus), ..Closed::default() },
    };
    for (task, spec) in workload.ids().zip(&workload.tasks) {
        let is_daemon = !ended.is_empty() && !ended.contains(&task);
        let tasks = describing.task(task, spec, is_daemon)?;
        // A task that the recording only mentions does nothing.
        if !tasks.phases.is_empty() {
            describing.closed.tasks.push(tasks);
        }
    }
    Ok(describing.closed)
}

/// Writes a workload as TOML to the file `to`, compressed with zstd if its name ends in `.zst`.
///
/// # Errors
/// If it cannot be written, or is too large to be read again.
pub fn write_description(closed: &Closed, to: &Path) -> Result<(), Error> {
    let text = toml::to_string(closed)
        .map_err(|error| Error::Input(format!("{}: {error}", to.display())))?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LARGEST_TEXT) {
        return Err(Error::Input(format!(
            "the program has {} bytes as a workload, and no more than {LARGEST_TEXT} are read: \
             record less of it, or run the recording itself",
            text.len()
        )));
    }
    write_text(&text, to)
}

/// Writes a text to the file `to`, compressed with zstd if its name ends in `.zst`.
///
/// # Errors
/// If it cannot be written.
pub fn write_text(text: &str, to: &Path) -> Result<(), Error> {
    let is_compressed = to.extension().is_some_and(|extension| extension == "zst");
    let bytes = if is_compressed { zstd::encode_all(text.as_bytes(), 19) } else { Ok(text.into()) };
    write_whole(to, &bytes.map_err(|error| Error::output(to, error))?)
}

/// The tasks that another one forks.
fn forked(workload: &Workload) -> BTreeSet<TaskId> {
    let child = |step: Step| if let Action::Fork(child) = step.then { Some(child) } else { None };
    workload.tasks.iter().flat_map(|task| task.script.steps()).filter_map(child).collect()
}

/// A name for each task that no other has: its own with its pid.
fn names(workload: &Workload) -> Vec<String> {
    let mut known = BTreeSet::new();
    let name = |(number, task): (usize, &TaskSpec)| {
        let info = &task.info;
        let name = format!("{}/{}", info.name, info.pid);
        let name = if known.contains(&name) { format!("{name}/{number}") } else { name };
        known.insert(name.clone());
        name
    };
    workload.tasks.iter().enumerate().map(name).collect()
}

struct Describing<'w> {
    workload: &'w Workload,
    names: Vec<String>,
    forked: BTreeSet<TaskId>,
    closed: Closed,
}

/// The phases of a task so far.
#[derive(Default)]
struct Script {
    phases: Vec<Phase>,
    /// Where each phase begins in the words of the script.
    begins: Vec<u32>,
    /// The next expiry of each of its timers is one period after this.
    timers: BTreeMap<u32, Time>,
}

impl Script {
    fn push(&mut self, begin: u32, phase: Phase) {
        if let (Phase::Run(more), Some(Phase::Run(run))) = (&phase, self.phases.last_mut())
            && self.begins.last().is_some_and(|last| *last != begin)
        {
            *run = run.saturating_add(*more);
            return;
        }
        self.begins.push(begin);
        self.phases.push(phase);
    }
}

impl Describing<'_> {
    fn task(&mut self, task: TaskId, spec: &TaskSpec, daemon: bool) -> Result<Tasks, String> {
        let name = self.names[task.index()].clone();
        let mut script = Script::default();
        let mut cursor = 0;
        self.steps((task, spec), &mut cursor, &mut script, |then| then == Action::Exit)
            .map_err(|what| format!("{name}: {what}"))?;
        if script.phases.is_empty() && self.forked.contains(&task) {
            script.phases.push(Phase::Run(Nanos::ZERO)); // it ended at once
        }
        let real_time = spec.info.prio < 100;
        let policy = match (spec.attributes.class, real_time) {
            (TaskClass::RoundRobin, true) => SchedulingPolicy::Rr,
            (_, true) => SchedulingPolicy::Fifo,
            (TaskClass::Batch, _) => SchedulingPolicy::Batch,
            (TaskClass::Idle, _) => SchedulingPolicy::Idle,
            _ => SchedulingPolicy::Other,
        };
        let prio = i32::from(spec.info.prio);
        Ok(Tasks {
            name,
            program: Some(spec.info.name.clone()).filter(|name| !name.is_empty()),
            count: 1,
            policy,
            nice: Some(prio.saturating_sub(120)).filter(|nice| !real_time && *nice != 0),
            priority: real_time.then_some(99_i32.saturating_sub(prio).max(1)),
            slice: spec.attributes.slice.length(),
            reservation: None,
            cgroup: None,
            affinity: self.affinity(spec.affinity),
            start: match spec.start {
                Start::At(time) | Start::Asleep(time) => Nanos(time.0),
                Start::Forked => Nanos::ZERO,
            },
            forked: spec.start == Start::Forked,
            process: spec.info.tgid == spec.info.pid,
            daemon,
            phases: script.phases,
        })
    }

    /// Adds the steps from `cursor` on, up to one that is the last.
    fn steps(
        &mut self,
        (task, spec): (TaskId, &TaskSpec),
        cursor: &mut u32,
        script: &mut Script,
        is_last: impl Fn(Action) -> bool,
    ) -> Result<(), String> {
        loop {
            let begin = *cursor;
            let Some(Step { run, then }) = spec.script.next(cursor) else { return Ok(()) };
            if run > Nanos::ZERO {
                script.push(begin, Phase::Run(run));
            }
            if is_last(then) {
                return Ok(());
            }
            let phases = match then {
                Action::Do(Operation::Serve(serve)) => {
                    vec![self.serve((task, spec), serve, cursor)?]
                }
                _ => self.phases(task, spec, then, script)?,
            };
            phases.into_iter().for_each(|phase| script.push(begin, phase));
        }
    }

    /// A wait for a set with all its handlers; `cursor` is then behind them.
    fn serve(
        &mut self,
        of: (TaskId, &TaskSpec),
        number: u32,
        cursor: &mut u32,
    ) -> Result<Phase, String> {
        let serve = self.workload.shared.serves.get(number as usize);
        let Serve { epoll, handlers, after, rounds } =
            serve.ok_or_else(|| format!("there is no wait {number}"))?;
        let name = self.set(*epoll)?;
        let handled = Action::Do(Operation::Handle(number));
        let mut handler = |cursor: &mut u32| -> Result<Vec<Phase>, String> {
            let mut script = Script::default();
            self.steps(of, cursor, &mut script, |then| then == handled)?;
            Ok(script.phases)
        };
        let round = of.1.script.next(&mut { *cursor }).map_or(Nanos::ZERO, |step| step.run);
        if !handlers.is_empty() {
            *cursor = *after;
        }
        let Some(rounds) = rounds else {
            let handle =
                handlers.iter().map(|&begin| handler(&mut { begin })).collect::<Result<_, _>>()?;
            return Ok(Phase::Serve(ServePhase { epoll: name, handle }));
        };
        let mut handle = Vec::new();
        for (&begin, &end) in handlers.iter().zip(&rounds.ends) {
            let (mut at, mut of_one) = (begin, Vec::new());
            while at < end {
                of_one.push(handler(&mut at)?);
            }
            handle.push(of_one);
        }
        Ok(Phase::EventLoop(EventLoopPhase { epoll: name, round, handle }))
    }

    fn affinity(&self, affinity: Affinity) -> Option<Vec<u16>> {
        match affinity {
            Affinity::Any => None,
            Affinity::Pinned(CpuId(cpu)) => Some(vec![cpu]),
            Affinity::Set(set) => {
                Some(self.workload.cpu_sets.get(set as usize)?.iter().map(|cpu| cpu.0).collect())
            }
        }
    }

    fn phases(
        &mut self,
        task: TaskId,
        spec: &TaskSpec,
        then: Action,
        script: &mut Script,
    ) -> Result<Vec<Phase>, String> {
        let name = |of: TaskId| self.names.get(of.index()).cloned().unwrap_or_default();
        Ok(vec![match then {
            Action::Continue | Action::Exit => return Ok(Vec::new()),
            Action::Sleep(span) => Phase::Sleep(span),
            Action::Yield => Phase::Yield,
            Action::Fork(child) => Phase::Fork(name(child)),
            Action::Wait => Phase::Take { eventfd: self.tokens(task) },
            Action::Wake(other) => Phase::Post { eventfd: self.tokens(other), count: 1 },
            Action::Do(Operation::Join(group)) => {
                let group = self.workload.shared.groups.get(group as usize);
                let tasks =
                    group.map_or(0..0, |of| of.first.0..of.first.0.saturating_add(of.count));
                return Ok(tasks.map(|task| Phase::Join(name(TaskId(task)))).collect());
            }
            Action::Do(Operation::Timer { timer, period }) => {
                self.timer(spec, (timer, period), script)
            }
            Action::Do(Operation::Repeat { begin, times, .. }) => {
                let first = script.begins.iter().position(|at| *at >= begin);
                let first = first.ok_or("a loop without phases")?;
                script.begins.truncate(first);
                let phases = script.phases.split_off(first);
                let times = Some(times).filter(|times| *times != Operation::FOREVER);
                Phase::Loop(LoopPhase { times, phases })
            }
            Action::Do(operation) => self.operation(operation)?,
        }])
    }

    /// The counter of the tokens of a task.
    fn tokens(&mut self, task: TaskId) -> String {
        let name = format!("tokens of {}", self.names[task.index()]);
        let options = EventfdOptions { semaphore: true, ..EventfdOptions::default() };
        self.closed.eventfds.insert(name.clone(), options);
        name
    }

    fn timer(&self, spec: &TaskSpec, (timer, period): (u32, Nanos), script: &mut Script) -> Phase {
        let shared = self.workload.shared.timers.get(timer as usize);
        let (origin, late) = shared.map_or((None, Late::Restart), |of| (of.origin, of.late));
        let known = script.timers.get(&timer).copied();
        let is_new = known.is_none();
        let next = known.or(origin).map(|last| last + period);
        if let Some(next) = next {
            script.timers.insert(timer, next);
        }
        match (next, spec.start) {
            // Its expiries do not depend on when the task waits for them.
            (Some(next), _) if late == Late::CatchUp => Phase::SleepUntil(Nanos(next.0)),
            // The first expiry is a time; the others follow from it.
            (Some(next), Start::Forked) if is_new => Phase::SleepUntil(Nanos(next.0)),
            (Some(next), Start::At(start) | Start::Asleep(start)) if is_new => {
                timer_phase(timer, next.since(start), late)
            }
            _ => timer_phase(timer, period, late),
        }
    }

    /// The name of a set.
    fn set(&mut self, number: u32) -> Result<String, String> {
        let (shared, closed) = (&self.workload.shared, &mut self.closed);
        let of = of(&shared.epolls, number)?;
        let name = unique(&of.name, "set", number);
        if closed.epolls.contains_key(&name) {
            return Ok(name);
        }
        let source = |source: &Source| {
            let (trigger, exclusive) = (source.trigger, source.is_exclusive);
            let object = object(shared, closed, source.object)?;
            Ok::<_, String>(EpollSource { object, trigger, exclusive, off: source.is_off })
        };
        let sources = of.sources.iter().map(source).collect::<Result<_, _>>()?;
        closed.epolls.insert(name.clone(), EpollOptions { sources, events: of.events });
        Ok(name)
    }

    fn operation(&mut self, operation: Operation) -> Result<Phase, String> {
        if let Operation::Poll(set) = operation {
            return Ok(Phase::Poll(self.set(set)?));
        }
        if let Operation::Watch { epoll, object: of, on } = operation {
            let epoll = self.set(epoll)?;
            let source = object(&self.workload.shared, &mut self.closed, of)?;
            return Ok(Phase::Watch(WatchPhase { epoll, source, off: !on }));
        }
        let Shared { mutexes, conditions, barriers, devices, .. } = &self.workload.shared;
        let shared = &self.workload.shared;
        let closed = &mut self.closed;
        let mut mutex = |number: u32| -> Result<String, String> {
            let of = of(mutexes, number)?;
            let name = unique(&of.name, "mutex", number);
            let options = MutexOptions { handoff: of.handoff, inherit: of.inherit, spin: of.spin };
            closed.mutexes.insert(name.clone(), options);
            Ok(name)
        };
        let condition = |number: u32| -> Result<String, String> {
            Ok(unique(of(conditions, number)?, "condition", number))
        };
        Ok(match operation {
            Operation::Lock(of) => Phase::Lock(mutex(of)?),
            Operation::Unlock(of) => Phase::Unlock(mutex(of)?),
            Operation::Await { condition: of, mutex: held } => {
                Phase::Wait { condition: condition(of)?, mutex: mutex(held)? }
            }
            Operation::Signal(of) => Phase::Signal(condition(of)?),
            Operation::Broadcast(of) => Phase::Broadcast(condition(of)?),
            Operation::Arrive(number) => {
                let of = of(barriers, number)?;
                let name = unique(&of.name, "barrier", number);
                let options = BarrierOptions { tasks: Some(of.tasks) };
                closed.barriers.insert(name.clone(), options);
                Phase::Barrier(name)
            }
            Operation::Read { pipe: of, bytes, until, .. } => {
                Phase::Read { pipe: pipe(shared, closed, of)?, bytes, partial: until == Until::Any }
            }
            Operation::Write { pipe: of, bytes, .. } => {
                Phase::Write { pipe: pipe(shared, closed, of)?, bytes }
            }
            Operation::Send { end, bytes } => {
                Phase::Send { socket: socket(shared, closed, end)?, bytes, reply: end & 1 == 1 }
            }
            Operation::Receive { end, bytes, until } => Phase::Receive {
                socket: socket(shared, closed, end)?,
                bytes,
                partial: until == Until::Any,
                reply: end & 1 == 0,
            },
            Operation::Post { eventfd: of, count } => {
                Phase::Post { eventfd: eventfd(shared, closed, of)?, count }
            }
            Operation::Take(of) => Phase::Take { eventfd: eventfd(shared, closed, of)? },
            Operation::SleepUntil(time) => Phase::SleepUntil(Nanos(time.0)),
            Operation::Io { device, service } => {
                let of = of(devices, device)?;
                let name = unique(&of.name, "device", device);
                let options = DeviceOptions {
                    channels: of.channels,
                    interrupts: of.interrupts.map(|cpu| cpu.0),
                };
                closed.devices.insert(name.clone(), options);
                let operation = Default::default();
                Phase::Io(IoPhase { device: name, service, bytes: 0, operation })
            }
            other => return Err(format!("a closed workload cannot say {other:?}")),
        })
    }
}

fn object(shared: &Shared, closed: &mut Closed, of: Watched) -> Result<EpollObject, String> {
    Ok(match of {
        Watched::Pipe(of) => EpollObject::Pipe(pipe(shared, closed, of)?),
        Watched::PipeRoom(of) => EpollObject::PipeRoom(pipe(shared, closed, of)?),
        Watched::Eventfd(of) => EpollObject::Eventfd(eventfd(shared, closed, of)?),
        Watched::End(end) if end & 1 == 0 => EpollObject::Reply(socket(shared, closed, end)?),
        Watched::End(end) => EpollObject::Socket(socket(shared, closed, end)?),
        Watched::Room(end) if end & 1 == 0 => EpollObject::SendRoom(socket(shared, closed, end)?),
        Watched::Room(end) => EpollObject::ReplyRoom(socket(shared, closed, end)?),
    })
}

fn pipe(shared: &Shared, closed: &mut Closed, number: u32) -> Result<String, String> {
    let of = of(&shared.pipes, number)?;
    let name = unique(&of.name, "pipe", number);
    closed.pipes.insert(name.clone(), PipeOptions { capacity: of.capacity });
    Ok(name)
}

fn socket(shared: &Shared, closed: &mut Closed, end: u32) -> Result<String, String> {
    let of = of(&shared.sockets, end / 2)?;
    let name = unique(&of.name, "socket", end / 2);
    closed.sockets.insert(name.clone(), SocketOptions { kind: of.kind });
    Ok(name)
}

fn eventfd(shared: &Shared, closed: &mut Closed, number: u32) -> Result<String, String> {
    let of = of(&shared.eventfds, number)?;
    let name = unique(&of.name, "eventfd", number);
    let count = of.count.try_into().map_err(|_| "an event counter above 2^32")?;
    let options = EventfdOptions { semaphore: of.is_semaphore, count, wakes_one: of.wakes_one };
    closed.eventfds.insert(name.clone(), options);
    Ok(name)
}

fn timer_phase(timer: u32, period: Nanos, late: Late) -> Phase {
    let mode = if late == Late::CatchUp { TimerMode::Absolute } else { TimerMode::Relative };
    Phase::Timer(TimerPhase { period, name: format!("timer {timer}"), mode, shared: false })
}

fn of<T>(list: &[T], number: u32) -> Result<&T, String> {
    list.get(number as usize).ok_or_else(|| format!("there is no object {number}"))
}

/// A name that no other object of its kind has. Objects of two processes may have one name.
fn unique(name: &str, kind: &str, number: u32) -> String {
    if name.is_empty() { format!("{kind} {number}") } else { format!("{name} ({number})") }
}
