//! Explains a run that cannot continue: which task waits for which.

use super::source::Load;
use super::{Engine, Error, sync::Sync};
use crate::admission::LAST;
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Action, Operation, Script, Shared, Workload};
use crate::{Nanos, TaskId, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Tasks that wait for something that no task will provide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When the run stalled.
    pub time: Time,
    /// The number of waiting tasks with work left.
    pub waiting: usize,
    /// A cycle of tasks, each of which waits for the next and the last for the first; or a single
    /// task that nothing can wake.
    pub tasks: Vec<StalledTask>,
    /// Whether the last waits for the first: a deadlock.
    pub is_cycle: bool,
}

/// A task that waits for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StalledTask {
    /// Which.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// What it waits for: a phrase that continues with the name of the next task of a cycle, or
    /// that ends the sentence.
    pub wants: String,
}

/// What a waiting task needs from another task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Token(TaskId),
    Mutex(u32),
    Signal(u32),
    Barrier(u32),
    Data(u32),
    Room(u32),
    /// A message from this end.
    Message(u32),
    /// Events of a counter, or room for more.
    Events(u32),
    Fewer(u32),
    /// That a message is received which was sent from this end.
    Receipt(u32),
    End(u32),
}

/// A waiting task: the action at which it waits, and the next step of its script.
#[derive(Clone, Copy)]
struct Waiter {
    task: TaskId,
    then: Action,
    cursor: u32,
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Nothing is left to happen: an error if tasks still wait. With a time limit, a task may wait
    /// for one that has ended, but tasks may not wait for each other.
    pub(super) fn expect_no_stall(&self) -> Result<(), Error> {
        let Load::Scripts(scripts) = &self.load else { return Ok(()) };
        let workload = scripts.workload;
        if self.timers.earliest().min(self.cpu_times.earliest().0) != Time::NEVER {
            return Ok(());
        }
        let waiter = |task: TaskId| {
            let state = &self.tasks[task.index()];
            Waiter { task, then: state.then, cursor: state.cursor }
        };
        let wants_more = |waiter: &Waiter| {
            let group = workload.shared.group_of(waiter.task);
            let has_steps = || {
                workload.tasks[waiter.task.index()]
                    .script
                    .steps_from(waiter.cursor)
                    .next()
                    .is_some()
            };
            !group.is_some_and(|group| workload.shared.groups[group].daemon)
                && (waiter.then != Action::Wait || has_steps())
        };
        let waiting = workload.ids().filter(|task| self.tasks[task.index()].waits).map(waiter);
        let waiting: Vec<Waiter> = waiting.filter(wants_more).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let stall = explain(workload, &self.sync, self.now(), &waiting);
        if stall.is_cycle || self.until == LAST { Err(Error::Stalled(stall)) } else { Ok(()) }
    }
}

/// Why `waiting` wait for ever.
fn explain(workload: &Workload, sync: &Sync, time: Time, waiting: &[Waiter]) -> Stall {
    let helpers = helpers(workload, sync, waiting);
    let helped_by =
        |index: usize| need(waiting[index]).and_then(|need| helpers.get(&need)).copied();
    let mut path: Vec<usize> = Vec::new();
    let mut seen = vec![false; waiting.len()];
    let mut cycle = None;
    for start in 0..waiting.len() {
        let mut at = start;
        path.clear();
        while !std::mem::replace(&mut seen[at], true) {
            path.push(at);
            let Some(next) = helped_by(at) else { break };
            at = next;
        }
        if let Some(first) = path
            .iter()
            .position(|&index| index == at)
            .filter(|_| helped_by(path[path.len() - 1]) == Some(at))
        {
            cycle = Some(path.split_off(first));
            break;
        }
    }
    let is_cycle = cycle.is_some();
    let end = |mut at: usize| {
        while let Some(next) = helped_by(at) {
            at = next;
        }
        at
    };
    let named = cycle.unwrap_or_else(|| vec![end(0)]);
    let stalled = |&index: &usize| {
        let Waiter { task, then, .. } = waiting[index];
        let wants =
            if is_cycle { of_another(workload, then) } else { of_nobody(workload, sync, then) };
        StalledTask { task, name: workload.tasks[task.index()].info.name.clone(), wants }
    };
    Stall { time, waiting: waiting.len(), tasks: named.iter().map(stalled).collect(), is_cycle }
}

/// For each need of the waiting tasks, one of them that could provide it if it continued.
fn helpers(workload: &Workload, sync: &Sync, waiting: &[Waiter]) -> BTreeMap<Need, usize> {
    let mut helpers = BTreeMap::new();
    for (index, waiter) in waiting.iter().enumerate() {
        let script = &workload.tasks[waiter.task.index()].script;
        let own = need(*waiter);
        let gives = script
            .steps_from(first_step_to_come(&workload.shared, script, waiter.cursor))
            .filter_map(|step| gift(step.then));
        for gift in gives.filter(|&gift| own != Some(gift)) {
            helpers.entry(gift).or_insert(index);
        }
        if let Some(group) = workload.shared.group_of(waiter.task) {
            helpers.entry(Need::End(group as u32)).or_insert(index);
        }
        for (mutex, _) in
            sync.mutexes.iter().enumerate().filter(|(_, state)| state.owner == waiter.task)
        {
            helpers.insert(Need::Mutex(mutex as u32), index);
        }
    }
    helpers
}

/// The earliest step that a task at `cursor` may reach; loops lead back.
fn first_step_to_come(shared: &Shared, script: &Script, cursor: u32) -> u32 {
    let back = |action: Action| match action {
        Action::Do(Operation::Repeat { begin, .. } | Operation::Exec { begin }) => Some(begin),
        Action::Do(Operation::Handle(serve)) => {
            shared.serves[serve as usize].handlers.iter().copied().min()
        }
        _ => None,
    };
    script.steps_from(cursor).filter_map(|step| back(step.then)).fold(cursor, u32::min)
}

fn need(waiter: Waiter) -> Option<Need> {
    Some(match waiter.then {
        Action::Wait => Need::Token(waiter.task),
        Action::Do(Operation::Lock(mutex)) => Need::Mutex(mutex),
        Action::Do(Operation::Await { condition, .. }) => Need::Signal(condition),
        Action::Do(Operation::Arrive(barrier)) => Need::Barrier(barrier),
        Action::Do(Operation::Read { pipe, .. }) => Need::Data(pipe),
        Action::Do(Operation::Write { pipe, .. }) => Need::Room(pipe),
        Action::Do(Operation::Receive { end, .. }) => Need::Message(end ^ 1),
        Action::Do(Operation::Send { end, .. }) => Need::Receipt(end),
        Action::Do(Operation::Take(eventfd)) => Need::Events(eventfd),
        Action::Do(Operation::Post { eventfd, .. }) => Need::Fewer(eventfd),
        Action::Do(Operation::Join(group)) => Need::End(group),
        _ => return None,
    })
}

/// What a step provides to other tasks.
fn gift(action: Action) -> Option<Need> {
    Some(match action {
        Action::Wake(task) => Need::Token(task),
        Action::Do(Operation::Signal(condition) | Operation::Broadcast(condition)) => {
            Need::Signal(condition)
        }
        Action::Do(Operation::Arrive(barrier)) => Need::Barrier(barrier),
        Action::Do(Operation::Write { pipe, .. }) => Need::Data(pipe),
        Action::Do(Operation::Read { pipe, .. }) => Need::Room(pipe),
        Action::Do(Operation::Send { end, .. }) => Need::Message(end),
        Action::Do(Operation::Post { eventfd, .. }) => Need::Events(eventfd),
        Action::Do(Operation::Take(eventfd)) => Need::Fewer(eventfd),
        Action::Do(Operation::Receive { end, .. }) => Need::Receipt(end ^ 1),
        _ => return None,
    })
}

/// What a task needs from the task that the message names next.
fn of_another(workload: &Workload, then: Action) -> String {
    let shared = &workload.shared;
    match then {
        Action::Do(Operation::Lock(mutex)) => {
            format!("the mutex {}, held by", shared.mutexes[mutex as usize].name)
        }
        Action::Do(Operation::Await { condition, .. }) => {
            format!("a signal on {} by", shared.conditions[condition as usize])
        }
        Action::Do(Operation::Arrive(barrier)) => {
            format!("the barrier {}, not yet reached by", shared.barriers[barrier as usize].name)
        }
        Action::Do(Operation::Read { pipe, .. }) => {
            format!("data in the pipe {} from", shared.pipes[pipe as usize].name)
        }
        Action::Do(Operation::Write { pipe, .. }) => {
            format!("room in the pipe {}, read by", shared.pipes[pipe as usize].name)
        }
        Action::Do(Operation::Receive { end, .. }) => {
            format!("a message in the socket {} from", shared.sockets[end as usize / 2].name)
        }
        Action::Do(Operation::Send { end, .. }) => {
            format!("room in the socket {}, read by", shared.sockets[end as usize / 2].name)
        }
        Action::Do(Operation::Take(eventfd)) => {
            format!("an event of {} from", shared.eventfds[eventfd as usize].name)
        }
        Action::Do(Operation::Post { eventfd, .. }) => {
            format!("room in the counter {}, taken by", shared.eventfds[eventfd as usize].name)
        }
        Action::Do(Operation::Join(_)) => "the end of".to_string(),
        _ => "a wakeup by".to_string(),
    }
}

/// What a task needs that no task can provide any more.
fn of_nobody(workload: &Workload, sync: &Sync, then: Action) -> String {
    let shared = &workload.shared;
    match then {
        Action::Do(Operation::Lock(mutex)) => {
            let owner = sync.mutexes[mutex as usize].owner;
            let name = workload.tasks.get(owner.index()).map_or("", |task| &task.info.name);
            format!(
                "the mutex {}, which task {} ({name}) has taken and will not give back",
                shared.mutexes[mutex as usize].name, owner.0
            )
        }
        Action::Do(Operation::Await { condition, .. }) => {
            format!(
                "a signal on {} that no other task has left to give",
                shared.conditions[condition as usize]
            )
        }
        Action::Do(Operation::Arrive(barrier)) => {
            let (here, barrier) =
                (sync.barriers[barrier as usize].len(), &shared.barriers[barrier as usize]);
            format!(
                "the barrier {}, to which {here} of {} tasks have come and no other will",
                barrier.name, barrier.tasks
            )
        }
        Action::Do(Operation::Read { pipe, .. }) => {
            format!(
                "data in the pipe {}, to which no task writes any more",
                shared.pipes[pipe as usize].name
            )
        }
        Action::Do(Operation::Write { pipe, .. }) => {
            format!(
                "room in the pipe {}, which no task reads any more",
                shared.pipes[pipe as usize].name
            )
        }
        Action::Do(Operation::Receive { end, .. }) => {
            format!(
                "a message in the socket {}, to which no task sends any more",
                shared.sockets[end as usize / 2].name
            )
        }
        Action::Do(Operation::Send { end, .. }) => {
            format!(
                "room in the socket {}, from which no task receives any more",
                shared.sockets[end as usize / 2].name
            )
        }
        Action::Do(Operation::Take(eventfd)) => {
            format!(
                "an event of {}, to which no task posts any more",
                shared.eventfds[eventfd as usize].name
            )
        }
        Action::Do(Operation::Post { eventfd, .. }) => {
            format!(
                "room in the counter {}, from which no task takes any more",
                shared.eventfds[eventfd as usize].name
            )
        }
        Action::Do(operation @ (Operation::Serve(_) | Operation::Poll(_))) => {
            let epoll = match operation {
                Operation::Serve(serve) => shared.serves[serve as usize].epoll,
                Operation::Poll(epoll) => epoll,
                _ => unreachable!("it is one of the two"),
            };
            format!(
                "an object of the set {} to be ready, which no task makes so any more",
                shared.epolls[epoll as usize].name
            )
        }
        Action::Do(Operation::Join(group)) => {
            format!("the end of a daemon, {}", shared.groups[group as usize].name)
        }
        _ => "a wakeup that no other task has left to give".to_string(),
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, verb) = if self.waiting == 1 { ("", "waits") } else { ("s", "wait") };
        write!(
            f,
            "the workload stalls at {}: {} task{s} {verb} for ever; ",
            Nanos(self.time.0),
            self.waiting
        )?;
        for (place, StalledTask { task, name, wants }) in self.tasks.iter().enumerate() {
            write!(
                f,
                "{}task {} ({name}){} waits for {wants}",
                if place > 0 { " " } else { "" },
                task.0,
                if place > 0 { ", which" } else { "" }
            )?;
        }
        match &self.tasks[..] {
            [first, ..] if self.is_cycle => write!(f, " task {} again", first.task.0),
            _ => Ok(()),
        }
    }
}
