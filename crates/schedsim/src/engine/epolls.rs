//! Sets of objects that tasks wait for together, level-triggered.
//!
//! An object that has data puts itself on the set's list and wakes one task, the last that has come
//! to wait. The task takes the list, as far as one wait returns it, and leaves out what others have
//! emptied since. What it takes is on the list again at once, behind the rest, and if the list is not empty
//! the next task is woken. So several tasks that wait for one set may wake for the same object.
//!
//! Source: Linux 6.18, `fs/eventpoll.c`.

pub mod state;

use super::Engine;
use super::step::{Done, Off};
use super::sync::Sync;
use super::wait_queue::Who;
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Shared, Watched};
use crate::{CpuId, TaskId};
use state::{EpollState, SourceState};
use std::collections::VecDeque;

impl Sync {
    /// Adds all objects to their sets.
    pub fn watch(&mut self, shared: &Shared) {
        for (set, epoll) in (0..).zip(&shared.epolls) {
            let first = self.epolls.sources.len() as u32;
            let mut ready = VecDeque::new();
            for (source, &object) in (first..).zip(&epoll.sources) {
                match object {
                    Watched::Pipe(pipe) => self.pipes[pipe as usize].watch(source),
                    Watched::End(end) => self.ends[end as usize].watch(source),
                    Watched::Eventfd(eventfd) => self.eventfds[eventfd as usize].watch(source),
                }
                let is_listed = self.has_data(object);
                if is_listed {
                    ready.push_back(source);
                }
                self.epolls.sources.push(SourceState { set, object, is_listed });
            }
            let (events, waiters) = (epoll.events.into(), VecDeque::new());
            self.epolls.sets.push(EpollState { first, events, ready, waiters });
        }
    }

    fn has_data(&self, object: Watched) -> bool {
        match object {
            Watched::Pipe(pipe) => self.pipes[pipe as usize].has_data(),
            Watched::End(end) => self.ends[end as usize].has_data(),
            Watched::Eventfd(eventfd) => self.eventfds[eventfd as usize].has_data(),
        }
    }

    /// Takes up to `events` sources with data from a set's list.
    fn take_ready(&mut self, set: usize) -> VecDeque<u32> {
        let mut listed = std::mem::take(&mut self.epolls.sets[set].ready);
        let (mut taken, mut rest) = (VecDeque::new(), VecDeque::new());
        while let Some(source) = listed.pop_front() {
            if taken.len() == self.epolls.sets[set].events {
                listed.push_front(source);
                break;
            }
            let state = &self.epolls.sources[source as usize];
            let has_data = self.has_data(state.object);
            self.epolls.sources[source as usize].is_listed = has_data;
            if has_data {
                taken.push_back(source);
                rest.push_back(source);
            }
        }
        listed.append(&mut rest);
        self.epolls.sets[set].ready = listed;
        taken
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Waits until an object of a set has data.
    pub(super) fn serve(&mut self, cpu: CpuId, task: TaskId, serve: u32) -> Done {
        let set = self.shared().serves[serve as usize].epoll as usize;
        let taken = self.sync.take_ready(set);
        if !self.sync.epolls.sets[set].ready.is_empty() {
            self.wake_waiter(set, cpu);
        }
        if taken.is_empty() {
            self.sync.epolls.sets[set].waiters.push_front(task);
            return Done::Blocks(Off::Waits);
        }
        self.sync.epolls.returned.insert(task, taken);
        Done::Yes
    }

    /// Continues with the handler of the next object, or behind all handlers.
    pub(super) fn handle(&mut self, task: TaskId, serve: u32) {
        let serve = &self.shared().serves[serve as usize];
        let first = self.sync.epolls.sets[serve.epoll as usize].first;
        let next = self.sync.epolls.returned.get_mut(&task).and_then(VecDeque::pop_front);
        let handler = next.map(|source| serve.handlers[(source - first) as usize]);
        self.tasks[task.index()].cursor = handler.unwrap_or(serve.after);
    }

    /// `who` hears that something has happened to an object.
    pub(super) fn tell(&mut self, who: Who, cpu: CpuId) {
        let source = match who {
            Who::Task(task) => return self.wake_to_retry(task, cpu),
            Who::Source(source) => source,
        };
        let state = &mut self.sync.epolls.sources[source as usize];
        let set = state.set as usize;
        if !std::mem::replace(&mut state.is_listed, true) {
            self.sync.epolls.sets[set].ready.push_back(source);
        }
        self.wake_waiter(set, cpu);
    }

    fn wake_waiter(&mut self, set: usize, cpu: CpuId) {
        if let Some(first) = self.sync.epolls.sets[set].waiters.pop_front() {
            self.wake_to_retry(first, cpu);
        }
    }
}
