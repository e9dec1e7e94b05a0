//! Synchronisation during a run: mutexes, conditions, barriers, timers, devices, groups of forked
//! tasks, and loop counters.
//!
//! A task that cannot continue blocks in one queue. Either it receives what it waited for and wakes
//! with its next step, or it wakes to try again. Another task may be faster, as with futexes and
//! pipes. Pipes are in [`pipes`](super::pipes), sockets in [`sockets`](super::sockets), event
//! counters in [`eventfds`](super::eventfds), sets of objects in [`epolls`](super::epolls).

use super::Engine;
use super::epolls::state::Epolls;
use super::eventfds::EventfdState;
use super::pipes::PipeState;
use super::sockets::EndState;
use super::spinning::Spinner;
use super::step::{Done, Off};
use super::wait_queue::Who;
use crate::policy::{Policy, Wake};
use crate::trace::{EventKind, Sink};
use crate::workload::{Action, Late, Operation, Shared, Start, Workload};
use crate::{CpuId, Nanos, TaskId, Time};
use std::collections::{BTreeMap, VecDeque};

/// The state of all shared objects; empty for a workload that shares nothing.
#[derive(Debug, Default)]
pub struct Sync {
    pub mutexes: Vec<MutexState>,
    /// The tasks that wait for a signal, in order of arrival.
    conditions: Vec<VecDeque<TaskId>>,
    /// The tasks that have arrived at a barrier.
    pub barriers: Vec<Vec<TaskId>>,
    pub pipes: Vec<PipeState>,
    /// The two ends of each pair of sockets.
    pub ends: Vec<EndState>,
    pub eventfds: Vec<EventfdState>,
    pub epolls: Epolls,
    /// When each channel of a device becomes free.
    devices: Vec<Vec<Time>>,
    /// The last time of each timer.
    timers: Vec<Option<Time>>,
    groups: Vec<GroupState>,
    /// The iterations of each loop that a task is in, `depth` numbers for each task.
    rounds: Vec<u64>,
    /// The number of tasks that are alive, or will start by themselves, and are no daemons.
    awaited: u64,
    /// Empty memory for those who are woken together.
    pub woken: Vec<Who>,
    /// The current priority of each task, if any mutex has priority inheritance.
    pub prios: Vec<u8>,
}

#[derive(Debug)]
pub struct MutexState {
    pub owner: TaskId,
    pub waiters: VecDeque<TaskId>,
    pub spinners: BTreeMap<TaskId, Spinner>,
}

#[derive(Debug, Default)]
struct GroupState {
    /// The number of forked tasks.
    forked: u32,
    alive: u32,
    /// The tasks that wait until none is alive.
    joining: Vec<TaskId>,
}

impl Sync {
    pub fn new(workload: &Workload) -> Sync {
        let Shared {
            mutexes,
            conditions,
            barriers,
            pipes,
            sockets,
            eventfds,
            epolls: _,
            serves: _,
            devices,
            timers,
            groups,
            depth,
        } = &workload.shared;
        let daemon =
            |task: TaskId| workload.shared.group_of(task).is_some_and(|group| groups[group].daemon);
        let comes =
            |task: &TaskId| workload.tasks[task.index()].start != Start::Forked && !daemon(*task);
        let mut sync = Sync {
            mutexes: mutexes
                .iter()
                .map(|_| MutexState {
                    owner: TaskId::NONE,
                    waiters: VecDeque::new(),
                    spinners: BTreeMap::new(),
                })
                .collect(),
            conditions: vec![VecDeque::new(); conditions.len()],
            barriers: vec![Vec::new(); barriers.len()],
            pipes: pipes.iter().map(|pipe| PipeState::new(pipe.capacity)).collect(),
            ends: sockets
                .iter()
                .flat_map(|socket| [EndState::new(socket.kind), EndState::new(socket.kind)])
                .collect(),
            epolls: Epolls::default(),
            eventfds: eventfds.iter().map(EventfdState::new).collect(),
            devices: devices
                .iter()
                .map(|device| vec![Time::ZERO; usize::from(device.channels)])
                .collect(),
            timers: timers.iter().map(|timer| timer.origin).collect(),
            groups: groups.iter().map(|_| GroupState::default()).collect(),
            rounds: vec![0; usize::from(*depth) * workload.tasks.len()],
            awaited: workload.ids().filter(comes).count() as u64,
            woken: Vec::new(),
            prios: workload
                .shared
                .inheriting()
                .map_or(Vec::new(), |_| workload.tasks.iter().map(|task| task.info.prio).collect()),
        };
        sync.watch(&workload.shared);
        sync
    }

    /// Whether starts and ends of tasks have to be counted.
    pub fn counts_tasks(&self) -> bool {
        !self.groups.is_empty()
    }
}

impl<'w, P: Policy, S: Sink> Engine<'w, P, S> {
    /// The task that runs on `cpu` performs an operation on a shared object.
    pub(super) fn perform(&mut self, cpu: CpuId, task: TaskId, operation: Operation) -> Done {
        match operation {
            Operation::Lock(mutex) => return self.lock(cpu, task, mutex),
            Operation::Unlock(mutex) => return self.unlock(cpu, task, mutex),
            Operation::Await { condition, mutex } => {
                if let Done::Never = self.unlock(cpu, task, mutex) {
                    return Done::Never;
                }
                self.sync.conditions[condition as usize].push_back(task);
                return Done::Blocks(Off::Waits);
            }
            Operation::Signal(condition) => {
                if let Some(first) = self.sync.conditions[condition as usize].pop_front() {
                    self.signalled(first, cpu);
                }
            }
            Operation::Broadcast(condition) => {
                let all = std::mem::take(&mut self.sync.conditions[condition as usize]);
                all.into_iter().for_each(|waiter| self.signalled(waiter, cpu));
            }
            Operation::Arrive(barrier) => return self.arrive_at(cpu, task, barrier),
            Operation::Read { pipe, bytes, until, call } => {
                return self.read(cpu, task, pipe, bytes, (until, call));
            }
            Operation::Write { pipe, bytes, call } => {
                return self.write(cpu, task, pipe, bytes, call);
            }
            Operation::Send { end, bytes } => return self.send(cpu, task, end, bytes),
            Operation::Receive { end, bytes, until } => {
                return self.receive(cpu, task, end, bytes, until);
            }
            Operation::Post { eventfd, count } => return self.post(cpu, task, eventfd, count),
            Operation::Take(eventfd) => return self.take(cpu, task, eventfd),
            Operation::Serve(serve) => return self.serve(cpu, task, serve),
            Operation::Handle(serve) => self.handle(task, serve),
            Operation::Poll(set) => return self.poll(task, set),
            Operation::Watch { epoll, object, on } => self.watch(cpu, (epoll, object), on),
            Operation::SleepUntil(time) if time <= self.now() => {}
            Operation::SleepUntil(time) => {
                self.timers.insert(time, task);
                return Done::Blocks(Off::Sleeps);
            }
            Operation::Timer { timer, period } => {
                return self.sleep_until_next(task, timer, period);
            }
            Operation::Io { service: Nanos::ZERO, .. } => {}
            Operation::Io { device, service } => {
                let now = self.now();
                let channels = &mut self.sync.devices[device as usize];
                let Some(free) = channels.iter_mut().min() else {
                    return self.misuse(task, "uses a device without channels");
                };
                *free = now.max(*free) + service;
                self.timers.insert(*free, task);
                return Done::Blocks(Off::Sleeps);
            }
            Operation::Fork(group) => return self.fork_next(cpu, task, group),
            Operation::Join(group) => {
                if self.sync.groups[group as usize].alive > 0 {
                    self.sync.groups[group as usize].joining.push(task);
                    return Done::Blocks(Off::Waits);
                }
            }
            Operation::Exec { begin } => {
                self.trace.push(self.now(), cpu, EventKind::SchedProcessExec { task });
                self.tasks[task.index()].cursor = begin;
                let depth = usize::from(self.shared().depth);
                self.sync.rounds[task.index() * depth..][..depth].fill(0);
            }
            Operation::Repeat { begin, depth, times } => self.repeat(task, begin, depth, times),
        }
        Done::Yes
    }

    fn lock(&mut self, cpu: CpuId, task: TaskId, mutex: u32) -> Done {
        let of = &self.shared().mutexes[mutex as usize];
        let state = &mut self.sync.mutexes[mutex as usize];
        if state.owner == TaskId::NONE {
            state.owner = task;
            if of.spin.is_some() {
                state.spinners.remove(&task);
            }
            return Done::Yes;
        }
        if let Some(spin) = of.spin
            && let Some(done) = self.spin(task, mutex, spin)
        {
            return done;
        }
        let state = &mut self.sync.mutexes[mutex as usize];
        state.waiters.push_back(task);
        let owner = state.owner;
        self.trace.push(self.now(), cpu, EventKind::ContentionBegin { task, owner, mutex });
        if of.inherit {
            self.inherit(owner);
        }
        Done::Blocks(Off::Waits)
    }

    fn unlock(&mut self, cpu: CpuId, task: TaskId, mutex: u32) -> Done {
        let shared = self.shared();
        let state = &mut self.sync.mutexes[mutex as usize];
        let owner = state.owner;
        let name = &shared.mutexes[mutex as usize].name;
        if owner == TaskId::NONE {
            return self.misuse(task, &format!("unlocks the mutex {name}, which is not locked"));
        } else if owner != task {
            return self.misuse(
                task,
                &format!("gives back the mutex {name}, which {} has taken", self.load.name(owner)),
            );
        }
        state.owner = TaskId::NONE;
        if shared.mutexes[mutex as usize].inherit {
            self.bequeath(cpu, task, mutex);
            return Done::Yes;
        }
        if shared.mutexes[mutex as usize].spin.is_some() {
            self.let_spinners_look(cpu, mutex);
        }
        let state = &mut self.sync.mutexes[mutex as usize];
        match state.waiters.pop_front() {
            Some(first) if shared.mutexes[mutex as usize].handoff => {
                state.owner = first;
                self.wake(first, Some(cpu));
            }
            Some(first) => self.wake_to_retry(first, cpu),
            None => {}
        }
        Done::Yes
    }

    /// A task has received its signal, and locks its mutex again.
    fn signalled(&mut self, task: TaskId, waker: CpuId) {
        if let Action::Do(Operation::Await { mutex, .. }) = self.tasks[task.index()].then {
            self.tasks[task.index()].then = Action::Do(Operation::Lock(mutex));
        }
        self.wake_to_retry(task, waker);
    }

    fn arrive_at(&mut self, cpu: CpuId, task: TaskId, barrier: u32) -> Done {
        let tasks = self.shared().barriers[barrier as usize].tasks;
        let here = &mut self.sync.barriers[barrier as usize];
        if here.len() as u32 + 1 < tasks {
            here.push(task);
            return Done::Blocks(Off::Waits);
        }
        let others = std::mem::take(here);
        others.into_iter().for_each(|other| self.wake(other, Some(cpu)));
        Done::Yes
    }

    fn sleep_until_next(&mut self, task: TaskId, timer: u32, period: Nanos) -> Done {
        let last = self.sync.timers[timer as usize].unwrap_or(self.now());
        let next = last + period;
        let is_late = next <= self.now();
        let restarts = self.shared().timers[timer as usize].late == Late::Restart;
        self.sync.timers[timer as usize] =
            Some(if is_late && restarts { self.now() } else { next });
        // A job of a task with a reservation ends here all the same, and the next one is released.
        if is_late && self.seat.cx().reservation(task).is_none() {
            return Done::Yes;
        }
        self.timers.insert(next.max(self.now()), task);
        Done::Blocks(Off::Sleeps)
    }

    fn fork_next(&mut self, cpu: CpuId, parent: TaskId, group: u32) -> Done {
        let of = &self.shared().groups[group as usize];
        let forked = &mut self.sync.groups[group as usize].forked;
        if *forked >= of.count {
            return self.misuse(
                parent,
                &format!("forks more than the {} tasks that {} can be", of.count, of.name),
            );
        }
        let child = TaskId(of.first.0 + *forked);
        *forked += 1;
        self.fork(cpu, parent, child);
        Done::Yes
    }

    fn repeat(&mut self, task: TaskId, begin: u32, depth: u8, times: u64) {
        let place = task.index() * usize::from(self.shared().depth) + usize::from(depth);
        let rounds = &mut self.sync.rounds[place];
        *rounds += 1;
        if *rounds < times {
            self.tasks[task.index()].cursor = begin;
        } else {
            *rounds = 0;
        }
    }

    /// A task of a group is created.
    pub(super) fn born(&mut self, task: TaskId, is_forked: bool) {
        let Some(group) = self.shared().group_of(task) else { return };
        self.sync.groups[group].alive += 1;
        self.sync.awaited += u64::from(is_forked && !self.shared().groups[group].daemon);
    }

    /// A task has ended on `cpu`. If only daemons are left, so has the run.
    pub(super) fn ended(&mut self, task: TaskId, cpu: CpuId) {
        let group = self.shared().group_of(task);
        if let Some(group) = group {
            let state = &mut self.sync.groups[group];
            state.alive -= 1;
            if state.alive == 0 {
                let joining = std::mem::take(&mut state.joining);
                joining.into_iter().for_each(|waiter| self.wake(waiter, Some(cpu)));
            }
        }
        if !group.is_some_and(|group| self.shared().groups[group].daemon) {
            self.sync.awaited -= 1;
            if self.sync.awaited == 0 {
                self.until = self.until.min(self.now());
            }
        }
    }

    /// `task` wakes to try its operation again.
    pub(super) fn wake_to_retry(&mut self, task: TaskId, waker: CpuId) {
        self.wake_from(task, waker, false);
    }

    /// The same. With `sync` the task on `waker` announces that it sleeps soon.
    pub(super) fn wake_from(&mut self, task: TaskId, waker: CpuId, sync: bool) {
        self.events += 1;
        self.make_ready(task, Wake { sync, ..Wake::by(Some(waker)) });
    }

    pub(super) fn shared(&self) -> &'w Shared {
        self.load.shared()
    }

    /// `task` does something that no task may do.
    #[cold]
    pub(super) fn misuse(&mut self, task: TaskId, what: &str) -> Done {
        self.seat.refuse(format!("{} {what}", self.load.name(task)));
        Done::Never
    }
}
