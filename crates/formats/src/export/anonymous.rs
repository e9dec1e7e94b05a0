//! Replaces names and numbers of processes by aliases: the same one gets the same alias.

use crate::trace_file::Header;
use schedsim::workload::{Closed, EpollObject, EventLoopPhase, LoopPhase, Phase, ServePhase};
use std::collections::BTreeMap;

/// Removes the names of commands and of the recording, and the process ids, from the head of a trace.
pub fn anonymise_trace(header: &mut Header) {
    let (mut commands, mut pids) = (Aliases::default(), BTreeMap::from([(0, 0)]));
    header.workload = "anonymous".to_string();
    for task in &mut header.tasks {
        task.name = commands.of("comm", &task.name);
        for pid in [&mut task.tgid, &mut task.pid] {
            let next = pids.len() as u32;
            *pid = *pids.entry(*pid).or_insert(next);
        }
    }
}

/// Removes all names from a program.
pub fn anonymise_program(closed: &mut Closed) {
    closed.name = None;
    closed.description = None;
    let mut aliases = Aliases::default();
    let mut tasks = BTreeMap::new();
    for (number, of) in closed.tasks.iter_mut().enumerate() {
        let program = aliases.of("comm", of.program());
        let alias = format!("{program}/{}", number + 1);
        tasks.insert(std::mem::replace(&mut of.name, alias.clone()), alias);
        of.program = Some(program);
        of.cgroup = of.cgroup.take().map(|name| aliases.of("group", &name));
    }
    let mut names = Names { aliases, tasks };
    for of in &mut closed.tasks {
        names.phases(&mut of.phases);
    }
    for phases in closed.lists.values_mut() {
        names.phases(phases);
    }
    for epoll in closed.epolls.values_mut() {
        epoll.sources.iter_mut().for_each(|source| names.object(&mut source.object));
    }
    let aliases = &mut names.aliases;
    aliases.keys("list", &mut closed.lists);
    aliases.keys("group", &mut closed.cgroups);
    aliases.keys("mutex", &mut closed.mutexes);
    aliases.keys("barrier", &mut closed.barriers);
    aliases.keys("pipe", &mut closed.pipes);
    aliases.keys("socket", &mut closed.sockets);
    aliases.keys("eventfd", &mut closed.eventfds);
    aliases.keys("set", &mut closed.epolls);
    aliases.keys("device", &mut closed.devices);
}

/// Aliases by kind, each with a number.
#[derive(Default)]
struct Aliases(BTreeMap<&'static str, BTreeMap<String, String>>);

impl Aliases {
    fn of(&mut self, kind: &'static str, name: &str) -> String {
        let known = self.0.entry(kind).or_default();
        let next = known.len() + 1;
        known.entry(name.to_string()).or_insert_with(|| format!("{kind}-{next}")).clone()
    }

    fn keys<V>(&mut self, kind: &'static str, table: &mut BTreeMap<String, V>) {
        let old = std::mem::take(table);
        table.extend(old.into_iter().map(|(name, value)| (self.of(kind, &name), value)));
    }
}

struct Names {
    aliases: Aliases,
    tasks: BTreeMap<String, String>,
}

impl Names {
    fn phases(&mut self, phases: &mut [Phase]) {
        phases.iter_mut().for_each(|phase| self.phase(phase));
    }

    fn phase(&mut self, phase: &mut Phase) {
        match phase {
            Phase::Run(_) | Phase::Sleep(_) | Phase::SleepUntil(_) | Phase::Yield => {}
            Phase::Timer(timer) => {
                if !timer.name.is_empty() {
                    self.name("timer", &mut timer.name);
                }
            }
            Phase::Lock(mutex) | Phase::Unlock(mutex) => self.name("mutex", mutex),
            Phase::Wait { condition, mutex } => {
                self.name("condition", condition);
                self.name("mutex", mutex);
            }
            Phase::Signal(name) | Phase::Broadcast(name) => self.name("condition", name),
            Phase::Barrier(name) => self.name("barrier", name),
            Phase::Read { pipe, .. } | Phase::Write { pipe, .. } => self.name("pipe", pipe),
            Phase::Send { socket, .. } | Phase::Receive { socket, .. } => {
                self.name("socket", socket);
            }
            Phase::Post { eventfd, .. } | Phase::Take { eventfd } => self.name("eventfd", eventfd),
            Phase::Io(io) => self.name("device", &mut io.device),
            Phase::Poll(epoll) => self.name("set", epoll),
            Phase::Watch(watch) => {
                self.name("set", &mut watch.epoll);
                self.object(&mut watch.source);
            }
            Phase::Serve(ServePhase { epoll, handle }) => {
                self.name("set", epoll);
                handle.iter_mut().for_each(|phases| self.phases(phases));
            }
            Phase::EventLoop(EventLoopPhase { epoll, handle, .. }) => {
                self.name("set", epoll);
                handle.iter_mut().flatten().for_each(|phases| self.phases(phases));
            }
            Phase::Fork(name) | Phase::Join(name) => {
                if let Some(alias) = self.tasks.get(name) {
                    name.clone_from(alias);
                }
            }
            Phase::Exec(list) => self.name("list", list),
            Phase::Loop(LoopPhase { phases, .. }) => self.phases(phases),
        }
    }

    fn object(&mut self, object: &mut EpollObject) {
        match object {
            EpollObject::Pipe(name) | EpollObject::PipeRoom(name) => self.name("pipe", name),
            EpollObject::Socket(name)
            | EpollObject::Reply(name)
            | EpollObject::SendRoom(name)
            | EpollObject::ReplyRoom(name) => self.name("socket", name),
            EpollObject::Eventfd(name) => self.name("eventfd", name),
        }
    }

    fn name(&mut self, kind: &'static str, name: &mut String) {
        *name = self.aliases.of(kind, name);
    }
}
