//! Writes a simulation as a recording with causes, as schedlab's recorder writes one of a real
//! machine.
//!
//! An operation becomes a system call on an object, or a call of a library of locks. A replay of
//! the file must do what the simulated workload does, under any policy; the tests hold it to that.

mod watched;

use crate::system_calls::{self, Name, X86_64};
use ::recording::{
    Class, Counts, End, Event as Recorded, Machine, What, Writer, eventfd, lock, member, read,
    socket,
};
use schedsim::trace::{
    Call, CallKind, Event, EventKind, Observer, OverheadKind, PrevState, TaskInfo, WakeContext,
};
use schedsim::workload::{
    Affinity, Late, Operation, Shared, SocketKind, TaskClass, Until, Watched, Workload,
};
use schedsim::{CpuId, Nanos, TaskId, Time};
use std::collections::BTreeMap;
use std::io::{self, Write};
use watched::Sources;

/// The architecture by whose numbers calls are written.
const ARCHITECTURE: &str = "x86_64";

/// Writes the events and calls of one simulation.
pub struct RecordingWriter<'w, W: Write> {
    writer: Option<Writer<W>>,
    tasks: Vec<TaskInfo>,
    shared: &'w Shared,
    /// By object: its number.
    objects: BTreeMap<(Class, u32), u64>,
    /// Which sources of sets are watched.
    watched: Sources,
    /// The last expiry of each timer.
    timers: Vec<Option<Time>>,
    /// By CPU: the task that runs.
    running: Vec<TaskId>,
    /// By task: the call in which it is.
    calls: Vec<Option<InCall>>,
    /// Calls that have done all, and may still have to pay for what they woke.
    ending: Vec<Ending>,
    events: Vec<Recorded>,
    counts: BTreeMap<String, u64>,
    failure: Option<io::Error>,
}

/// The end of a call.
#[derive(Clone, Copy)]
struct Ending {
    end: Time,
    cpu: CpuId,
    task: TaskId,
    what: What,
}

#[derive(Clone, Copy)]
struct InCall {
    begun: Time,
    /// What it was called for.
    operation: Operation,
    /// What it tries now: a task that was signalled locks its mutex again.
    tries: Operation,
    /// Whether it left its CPU in this call.
    has_blocked: bool,
}

impl<'w, W: Write> RecordingWriter<'w, W> {
    /// A recording of tasks that share these objects, on this many CPUs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(to: W, tasks: &[TaskInfo], shared: &'w Shared, cpus: u16) -> io::Result<Self> {
        if let Some(mutex) = shared.mutexes.iter().find(|mutex| mutex.spin.is_some()) {
            return Err(io::Error::other(format!(
                "tasks spin for the mutex {}, which is no call, so that a recording has nothing of \
                 it; write the trace in another format",
                mutex.name
            )));
        }
        let machine = Machine {
            release: "simulated".to_string(),
            architecture: ARCHITECTURE.to_string(),
            cpus,
            topology: (0..u32::from(cpus)).map(|cpu| (cpu, 0)).collect(),
            scheduler: "simulated".to_string(),
            causes_of: "all".to_string(),
            start: START,
            ..Machine::default()
        };
        let mut writer = RecordingWriter {
            writer: Some(Writer::new(to, &machine)?),
            tasks: tasks.to_vec(),
            shared,
            objects: BTreeMap::new(),
            watched: Sources::default(),
            timers: shared.timers.iter().map(|timer| timer.origin).collect(),
            running: vec![TaskId::NONE; usize::from(cpus)],
            calls: vec![None; tasks.len()],
            ending: Vec::new(),
            events: Vec::new(),
            counts: BTreeMap::new(),
            failure: None,
        };
        for (index, info) in tasks.iter().enumerate() {
            let mut comm = [0; 16];
            comm.iter_mut().zip(info.name.bytes().take(15)).for_each(|(to, from)| *to = from);
            let tid = tid(TaskId(index as u32));
            writer.emit(Time::ZERO, CpuId(0), 0, tid, What::Task { comm, tgid: info.tgid });
        }
        Ok(writer)
    }

    /// Writes what is set for the tasks of `workload`, before the first event: `SCHED_BATCH` and the
    /// like, and up to 64 CPUs.
    pub fn settings(&mut self, workload: &Workload) {
        for (index, task) in workload.tasks.iter().enumerate() {
            let cpus = match task.affinity {
                Affinity::Any => None,
                Affinity::Pinned(cpu) => Some(1 << (cpu.index() % self.running.len().clamp(1, 64))),
                Affinity::Set(set) => {
                    let set = &workload.cpu_sets[set as usize];
                    Some(
                        (0..64)
                            .filter(|cpu| set.contains(CpuId(*cpu)))
                            .fold(0, |mask, cpu| mask | 1 << cpu),
                    )
                }
            };
            let policy = match task.attributes.class {
                TaskClass::ByPriority => None,
                TaskClass::Fifo => Some(1),
                TaskClass::RoundRobin => Some(2),
                TaskClass::Batch => Some(3),
                TaskClass::Idle => Some(5),
            };
            for (which, value) in [(0, cpus), (1, policy)] {
                if let Some(value) = value {
                    let task = tid(TaskId(index as u32));
                    let what = What::Setting { task, which, value };
                    self.emit(Time::ZERO, CpuId(0), 0, task, what);
                }
            }
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_until(Time::NEVER);
        self.hand_over();
        let counts =
            Counts { emitted: self.counts.clone(), written: self.counts, ..Counts::default() };
        match (self.failure, self.writer) {
            (Some(failure), _) => Err(failure),
            (None, Some(writer)) => writer.end(&End { counts, status: Some(0) }),
            (None, None) => Err(io::Error::other("the recording has ended")),
        }
    }

    fn emit(&mut self, time: Time, cpu: CpuId, context: u8, tid: u32, what: What) {
        if !self.ending.is_empty() {
            self.end_until(time);
        }
        self.write(time, cpu, context, tid, what);
    }

    /// Writes the ends of calls up to `time`, in order.
    fn end_until(&mut self, time: Time) {
        self.ending.sort_by_key(|ending| ending.end);
        let due = self.ending.partition_point(|ending| ending.end <= time);
        for Ending { end, cpu, task, what } in self.ending.drain(..due).collect::<Vec<_>>() {
            self.write(end, cpu, 0, tid(task), what);
        }
    }

    /// The call that `task` has just ended lasts longer: the scheduler works in it.
    fn lasts_longer(&mut self, task: TaskId, now: Time, by: Nanos) {
        let ended = self.call_of(task).is_none();
        let ending = self.ending.iter_mut().rev().find(|of| of.task == task && of.end == now);
        if let (true, Some(Ending { end, what: What::Call { duration, .. }, .. })) = (ended, ending)
        {
            *end += by;
            *duration = duration.saturating_add(by.0);
        }
    }

    fn write(&mut self, time: Time, cpu: CpuId, context: u8, tid: u32, what: What) {
        *self.counts.entry(what.name().to_string()).or_default() += 1;
        self.events.push(Recorded { time: clock(time), cpu: cpu.0, context, tid, what });
        if self.events.len() >= 4096 {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let events = std::mem::take(&mut self.events);
        if let (Some(writer), None) = (&mut self.writer, &self.failure)
            && let Err(failure) = writer.events(&events)
        {
            self.failure = Some(failure);
        }
    }

    fn event(&mut self, event: &Event) {
        let Event { time, cpu, kind } = *event;
        let current = self.running[cpu.index()];
        match kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                let object = self.leaves(prev, prev_state, time, cpu);
                let state = match prev_state {
                    PrevState::Runnable => 0,
                    PrevState::Blocked => 1,
                    PrevState::Dead => 2,
                };
                let what = What::Switch {
                    state,
                    prev_prio: self.prio(prev),
                    next: tid(next),
                    next_prio: self.prio(next),
                    prev_tgid: self.tgid(prev),
                    object,
                };
                self.emit(time, cpu, 0, tid(prev), what);
                self.running[cpu.index()] = next;
                self.comes_back(next, time, cpu);
            }
            EventKind::SchedWaking { task, target, context } => {
                let by_task = context == WakeContext::Task;
                let of = self.call_of(current).filter(|_| by_task);
                let (call, object) = of.map_or((0, 0), |call| {
                    // A task that waits for a signal wakes only those that wait for the mutex.
                    let tries = match call.tries {
                        Operation::Await { mutex, .. } => Operation::Unlock(mutex),
                        tries => tries,
                    };
                    let object = self.object_of(InCall { tries, ..call }, time, cpu);
                    (number(call.operation).saturating_add(1), object)
                });
                let what = What::Waking {
                    task: tid(task),
                    target: target.0,
                    prio: self.prio(task),
                    call,
                    object,
                };
                self.emit(time, cpu, if by_task { 0 } else { 2 }, tid(current), what);
            }
            EventKind::SchedWakeupNew { task, target } => {
                let what =
                    What::WakeupNew { task: tid(task), target: target.0, prio: self.prio(task) };
                self.emit(time, cpu, 0, tid(current), what);
            }
            EventKind::SchedProcessFork { parent, child } => {
                let child_tgid = self.tgid(child);
                let (parent, child) = (tid(parent), tid(child));
                let what = What::Fork { parent, child, child_tgid, number: 0, namespace: 0 };
                self.emit(time, cpu, 0, parent, what);
            }
            EventKind::SchedProcessExec { task } => {
                let what = What::Exec { task: tid(task), old: tid(task) };
                self.emit(time, cpu, 0, tid(task), what);
            }
            EventKind::SchedProcessExit { task } => {
                let what = What::Exit { task: tid(task), prio: self.prio(task) };
                self.emit(time, cpu, 0, tid(task), what);
            }
            EventKind::SchedMigrateTask { task, from, to } => {
                let what = What::Migrate {
                    task: tid(task),
                    prio: self.prio(task),
                    from: from.0,
                    to: to.0,
                };
                self.emit(time, cpu, 0, tid(current), what);
            }
            EventKind::SchedWakeup { .. }
            | EventKind::SchedPiSetprio { .. }
            | EventKind::ContentionBegin { .. }
            | EventKind::JobRelease { .. }
            | EventKind::JobComplete { .. } => {}
            EventKind::Overhead {
                task,
                kind: OverheadKind::Calls | OverheadKind::Switch,
                spent,
            } => self.lasts_longer(task, time, spent),
            EventKind::Overhead { .. } => {}
        }
    }

    /// A task leaves its CPU. Returns the object that its call is about.
    fn leaves(&mut self, task: TaskId, state: PrevState, time: Time, cpu: CpuId) -> u64 {
        if state != PrevState::Blocked {
            return 0;
        }
        let Some(call) = self.calls.get_mut(task.index()).and_then(Option::as_mut) else {
            return 0;
        };
        call.has_blocked = true;
        let call = *call;
        self.object_of(call, time, cpu)
    }

    /// A task runs again. If it has received what it waited for, its call ends.
    fn comes_back(&mut self, task: TaskId, time: Time, cpu: CpuId) {
        let Some(call) = self.call_of(task).filter(|call| call.has_blocked) else { return };
        let receives = match call.tries {
            Operation::Lock(mutex) => {
                let mutex = &self.shared.mutexes[mutex as usize];
                mutex.handoff || mutex.inherit
            }
            Operation::Arrive(_)
            | Operation::Join(_)
            | Operation::Timer { .. }
            | Operation::SleepUntil(_)
            | Operation::Io { .. } => true,
            _ => false,
        };
        if receives {
            self.ends(task, time, cpu);
        }
    }

    fn call_of(&self, task: TaskId) -> Option<InCall> {
        self.calls.get(task.index()).copied().flatten()
    }

    fn begins(&mut self, task: TaskId, operation: Operation, time: Time, cpu: CpuId) {
        match operation {
            Operation::Fork(_)
            | Operation::Exec { .. }
            | Operation::Repeat { .. }
            | Operation::Handle(_) => return,
            Operation::Io { service: Nanos::ZERO, .. } => return,
            _ => {}
        }
        let Some(place) = self.calls.get_mut(task.index()) else { return };
        if let Some(call) = place {
            call.tries = operation;
            return;
        }
        let call = InCall { begun: time, operation, tries: operation, has_blocked: false };
        *place = Some(call);
        let object = self.object_of(call, time, cpu);
        match operation {
            Operation::Await { mutex, .. } => {
                let mutex = self.object(Class::Futex, mutex, time, cpu);
                let what =
                    What::Member { set: object, object: mutex, events: 0, op: member::SECOND };
                self.emit(time, cpu, 0, tid(task), what);
            }
            Operation::Timer { timer, period } => {
                let what = What::Timer {
                    object: 0,
                    expiry: clock(self.expiry(timer, period, time)),
                    interval: 0,
                };
                self.emit(time, cpu, 0, tid(task), what);
            }
            Operation::SleepUntil(until) => {
                let what = What::Timer { object: 0, expiry: clock(until), interval: 0 };
                self.emit(time, cpu, 0, tid(task), what);
            }
            Operation::Io { service, .. } => {
                let what = What::Timer { object, expiry: u64::MAX, interval: service.0 };
                self.emit(time, cpu, 0, tid(task), what);
            }
            Operation::Poll(set) => {
                let shared = self.shared;
                for source in &shared.epolls[set as usize].sources {
                    let object = self.source(source.object, time, cpu);
                    let events = watched::news(source.object);
                    let what = What::Member { set: 0, object, events, op: 0 };
                    self.emit(time, cpu, 0, tid(task), what);
                }
            }
            Operation::Watch { epoll, object: of, on } => {
                let set = self.object(Class::Epoll, epoll, time, cpu);
                let object = self.source(of, time, cpu);
                let (events, op) = self.watched.change((epoll, of), on);
                let what = What::Member { set, object, events, op };
                self.emit(time, cpu, 0, tid(task), what);
            }
            Operation::Join(group) => {
                let group = &self.shared.groups[group as usize];
                let first = u64::from(tid(group.first));
                let last = (first + u64::from(group.count)).saturating_sub(1);
                let what =
                    What::Member { set: first, object: last, events: 0, op: member::AWAITED };
                self.emit(time, cpu, 0, tid(task), what);
            }
            _ => {}
        }
    }

    /// The next expiry of a timer, as the engine has it.
    fn expiry(&mut self, timer: u32, period: Nanos, now: Time) -> Time {
        let last = &mut self.timers[timer as usize];
        let next = last.unwrap_or(now) + period;
        let restarts = next <= now && self.shared.timers[timer as usize].late == Late::Restart;
        *last = Some(if restarts { now } else { next });
        next
    }

    fn ends(&mut self, task: TaskId, time: Time, cpu: CpuId) {
        let Some(call) = self.calls.get_mut(task.index()).and_then(Option::take) else { return };
        let object = self.object_of(InCall { tries: call.operation, ..call }, time, cpu);
        let (result, op) = match call.operation {
            Operation::Read { bytes, until, .. } | Operation::Receive { bytes, until, .. } => {
                let op = if until == Until::Any { read::UP_TO } else { 0 };
                (bytes.try_into().unwrap_or(i64::MAX), op)
            }
            Operation::Write { bytes, .. } | Operation::Send { bytes, .. } => {
                (bytes.try_into().unwrap_or(i64::MAX), 0)
            }
            Operation::Post { count, .. } => (IN_A_COUNTER, count.try_into().unwrap_or(u16::MAX)),
            Operation::Take(_) => (IN_A_COUNTER, 0),
            // At least one object has data.
            Operation::Serve(serve) => {
                let epoll = self.shared.serves.get(serve as usize).map_or(0, |of| of.epoll);
                (1, self.shared.epolls[epoll as usize].events.min(0x3ff))
            }
            Operation::Poll(_) => (1, 0),
            Operation::Lock(_) => (0, lock::LOCK),
            Operation::Unlock(_) => (0, lock::UNLOCK),
            Operation::Await { .. } => (0, lock::WAIT),
            Operation::Signal(_) => (0, lock::SIGNAL),
            Operation::Broadcast(_) => (0, lock::BROADCAST),
            Operation::Arrive(_) => (0, lock::ARRIVE),
            Operation::Timer { .. } | Operation::SleepUntil(_) => (0, 1),
            _ => (0, 0),
        };
        let duration = time.since(call.begun).0;
        let what = What::Call { object, result, number: number(call.operation), op, duration };
        self.ending.push(Ending { end: time, cpu, task, what });
    }

    /// The number of the object that a call is about; 0 if it is about none.
    fn object_of(&mut self, call: InCall, time: Time, cpu: CpuId) -> u64 {
        // Mutexes, conditions and barriers are futexes: their places do not overlap.
        let (class, place) = match call.tries {
            Operation::Lock(mutex) | Operation::Unlock(mutex) => (Class::Futex, mutex),
            Operation::Await { condition, .. }
            | Operation::Signal(condition)
            | Operation::Broadcast(condition) => (Class::Futex, self.conditions() + condition),
            Operation::Arrive(barrier) => (Class::Futex, self.barriers() + barrier),
            Operation::Read { pipe, .. } | Operation::Write { pipe, .. } => (Class::Pipe, pipe),
            Operation::Send { end, .. } | Operation::Receive { end, .. } => {
                (Class::UnixSocket, end)
            }
            Operation::Post { eventfd, .. } | Operation::Take(eventfd) => (Class::Eventfd, eventfd),
            Operation::Watch { epoll, .. } => (Class::Epoll, epoll),
            Operation::Serve(serve) => {
                (Class::Epoll, self.shared.serves.get(serve as usize).map_or(0, |of| of.epoll))
            }
            Operation::Io { device, .. } => (Class::Device, device),
            _ => return 0,
        };
        self.object(class, place, time, cpu)
    }

    fn conditions(&self) -> u32 {
        self.shared.mutexes.len() as u32
    }

    fn barriers(&self) -> u32 {
        self.conditions() + self.shared.conditions.len() as u32
    }

    fn object(&mut self, class: Class, place: u32, time: Time, cpu: CpuId) -> u64 {
        if let Some(known) = self.objects.get(&(class, place)) {
            return *known;
        }
        if class == Class::UnixSocket && !self.objects.contains_key(&(class, place ^ 1)) {
            self.announce(class, place ^ 1, time, cpu);
        }
        self.announce(class, place, time, cpu)
    }

    /// The object of a source of a set.
    fn source(&mut self, of: Watched, time: Time, cpu: CpuId) -> u64 {
        match of {
            Watched::Pipe(pipe) | Watched::PipeRoom(pipe) => {
                self.object(Class::Pipe, pipe, time, cpu)
            }
            Watched::End(end) | Watched::Room(end) => {
                self.object(Class::UnixSocket, end, time, cpu)
            }
            Watched::Eventfd(eventfd) => self.object(Class::Eventfd, eventfd, time, cpu),
        }
    }

    fn announce(&mut self, class: Class, place: u32, time: Time, cpu: CpuId) -> u64 {
        let id = self.objects.len() as u64 + 1;
        self.objects.insert((class, place), id);
        let shared = self.shared;
        let peer = match class {
            Class::Pipe => shared.pipes[place as usize].capacity,
            Class::Epoll => 0,
            Class::Device => shared.devices[place as usize].channels.into(),
            Class::Eventfd => {
                let of = &shared.eventfds[place as usize];
                let flag = |is: bool, flag: u64| if is { flag } else { 0 };
                of.count.min(eventfd::COUNT) << 1
                    | flag(of.is_semaphore, eventfd::SEMAPHORE)
                    | flag(of.wakes_one, eventfd::WAKES_ONE)
            }
            Class::UnixSocket => {
                let kind = match shared.sockets[place as usize / 2].kind {
                    SocketKind::Stream => socket::STREAM,
                    SocketKind::Datagram => socket::DATAGRAM,
                };
                // The first end that is announced does not know the other one's number.
                let peer = self.objects.get(&(class, place ^ 1)).copied().unwrap_or_default();
                peer | kind << socket::TYPE.trailing_zeros()
            }
            _ if place < self.conditions() => {
                let mutex = &shared.mutexes[place as usize];
                u64::from(mutex.handoff) | u64::from(mutex.inherit) << 1
            }
            _ if place < self.barriers() => 0,
            _ => shared.barriers[(place - self.barriers()) as usize].tasks.into(),
        };
        let what = What::Object { id, class, inode: id, peer };
        let tid = tid(self.running[cpu.index()]);
        self.emit(time, cpu, 0, tid, what);
        if class == Class::Epoll {
            for source in &shared.epolls[place as usize].sources {
                let object = self.source(source.object, time, cpu);
                for (events, op) in self.watched.begin(place, source) {
                    let what = What::Member { set: id, object, events, op };
                    self.emit(time, cpu, 0, tid, what);
                }
            }
        }
        id
    }

    fn prio(&self, task: TaskId) -> u16 {
        self.tasks.get(task.index()).map_or(120, |task| u16::from(task.prio))
    }

    fn tgid(&self, task: TaskId) -> u32 {
        self.tasks.get(task.index()).map_or(0, |task| task.tgid)
    }
}

impl<W: Write> Observer for RecordingWriter<'_, W> {
    fn events(&mut self, chunk: &[Event]) {
        chunk.iter().for_each(|event| self.event(event));
    }

    fn hears_calls(&self) -> bool {
        true
    }

    fn call(&mut self, call: &Call) {
        let Call { time, cpu, task, kind } = *call;
        match kind {
            CallKind::Performs(operation) => self.begins(task, operation, time, cpu),
            CallKind::Done => self.ends(task, time, cpu),
            CallKind::Yields => {
                let number = system_calls::number(&X86_64, Name::Yield);
                let what = What::Call { object: 0, result: 0, number, op: 0, duration: 0 };
                self.emit(time, cpu, 0, tid(task), what);
            }
            CallKind::Within { .. } | CallKind::Sets(_) | CallKind::Ends { .. } => {}
        }
    }
}

/// What a call reads from an event counter, or writes to it.
const IN_A_COUNTER: i64 = 8;

/// The clock at the beginning; 0 would be unknown.
const START: u64 = 1;

fn clock(time: Time) -> u64 {
    time.0.saturating_add(START)
}

/// The thread id of a task: its number, from 1 on.
fn tid(task: TaskId) -> u32 {
    if task == TaskId::NONE { 0 } else { task.0 + 1 }
}

/// The number of the call that does an operation.
fn number(operation: Operation) -> u16 {
    let name = match operation {
        Operation::Read { .. } | Operation::Take(_) => Name::Read,
        Operation::Write { .. } | Operation::Post { .. } => Name::Write,
        Operation::Serve(_) => Name::EpollWait,
        Operation::Poll(_) => Name::Poll,
        Operation::Watch { .. } => Name::EpollCtl,
        Operation::Send { .. } => Name::Send,
        Operation::Receive { .. } => Name::Receive,
        Operation::Io { .. } => Name::ReadAt,
        Operation::Timer { .. } | Operation::SleepUntil(_) => Name::ClockNanosleep,
        Operation::Join(_) => Name::Waitid,
        _ => Name::Futex,
    };
    system_calls::number(&X86_64, name)
}
