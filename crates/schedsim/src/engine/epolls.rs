//! Sets of objects that tasks wait for together, level-triggered.
//!
//! An object that has data puts itself on the set's list and wakes one task, the last that has come
//! to wait. The task takes the list, as far as one wait returns it, and leaves out what others have
//! emptied since. What it takes is on the list again at once, behind the rest, and if the list is not empty
//! the next task is woken. So several tasks that wait for one set may wake for the same object.
//!
//! A task that polls stands in the queues of all objects itself, and is woken with all others that
//! do, the last to come first.
//!
//! Source: Linux 6.18, `fs/eventpoll.c`, `fs/select.c`.

pub mod state;

use super::Engine;
use super::step::{Done, Off};
use super::sync::Sync;
use super::wait_queue::Who;
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Serve, Shared, Watched};
use crate::{CpuId, TaskId};
use state::{EpollState, SourceState, Waiter};
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

    /// `task` stands in the queues of all objects of a set (`is_polling`), or in none.
    fn poll_all(&mut self, shared: &Shared, set: u32, task: TaskId, is_polling: bool) {
        for &object in &shared.epolls[set as usize].sources {
            match (object, is_polling) {
                (Watched::Pipe(pipe), true) => self.pipes[pipe as usize].poll(task),
                (Watched::Pipe(pipe), false) => self.pipes[pipe as usize].leave(task),
                (Watched::End(end), true) => self.ends[end as usize].poll(task),
                (Watched::End(end), false) => self.ends[end as usize].leave(task),
                (Watched::Eventfd(eventfd), true) => self.eventfds[eventfd as usize].poll(task),
                (Watched::Eventfd(eventfd), false) => self.eventfds[eventfd as usize].leave(task),
            }
        }
    }

    fn has_data(&self, object: Watched) -> bool {
        match object {
            Watched::Pipe(pipe) => self.pipes[pipe as usize].has_data(),
            Watched::End(end) => self.ends[end as usize].has_data(),
            Watched::Eventfd(eventfd) => self.eventfds[eventfd as usize].has_data(),
        }
    }

    /// Takes up to `events` sources with data from a set's list, unless `is_over` leaves them there.
    fn take_ready(&mut self, set: usize, is_over: impl Fn(u32) -> bool) -> VecDeque<u32> {
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
                rest.push_back(source);
                if !is_over(source) {
                    taken.push_back(source);
                }
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
        let number = serve;
        let serve = &self.shared().serves[number as usize];
        let set = serve.epoll as usize;
        let taken = match &serve.rounds {
            None => self.sync.take_ready(set, |_| false),
            Some(rounds) => {
                let cursors = self.sync.epolls.cursors.entry(number);
                let cursors = cursors.or_insert_with(|| serve.handlers.clone()).clone();
                if cursors == rounds.ends {
                    self.sync.epolls.cursors.remove(&number);
                    self.tasks[task.index()].cursor = serve.after;
                    return Done::Yes;
                }
                let first = self.sync.epolls.sets[set].first;
                let place = |source: u32| (source - first) as usize;
                self.sync.take_ready(set, |of| cursors[place(of)] == rounds.ends[place(of)])
            }
        };
        if !self.sync.epolls.sets[set].ready.is_empty() {
            self.wake_waiter(set, None, cpu);
        }
        if taken.is_empty() {
            self.sync.epolls.sets[set].waiters.push_front(Waiter { task, serve: number });
            return Done::Blocks(Off::Waits);
        }
        self.sync.epolls.returned.insert(task, taken);
        Done::Yes
    }

    /// Waits until an object of a set has data. The task stands in the queues of all of them until
    /// then: it does not lose its places when it wakes in vain.
    pub(super) fn poll(&mut self, task: TaskId, set: u32) -> Done {
        let shared = self.shared();
        let mut sources = shared.epolls[set as usize].sources.iter();
        let has_data = sources.any(|&source| self.sync.has_data(source));
        let is_polling = self.sync.epolls.polling.contains_key(&task);
        if has_data {
            if is_polling {
                self.sync.poll_all(shared, set, task, false);
                self.sync.epolls.polling.remove(&task);
            }
            return Done::Yes;
        }
        if !is_polling {
            self.sync.poll_all(shared, set, task, true);
        }
        self.sync.epolls.polling.insert(task, true);
        Done::Blocks(Off::Waits)
    }

    /// Continues with the handler of the next object, or behind all handlers.
    pub(super) fn handle(&mut self, task: TaskId, serve: u32) {
        let number = serve;
        let serve = &self.shared().serves[number as usize];
        let epolls = &mut self.sync.epolls;
        let first = epolls.sets[serve.epoll as usize].first;
        let next = epolls.returned.get_mut(&task).and_then(VecDeque::pop_front);
        let next = next.map(|source| source - first);
        let cursor = &mut self.tasks[task.index()].cursor;
        let Some(rounds) = &serve.rounds else {
            *cursor = next.map_or(serve.after, |next| serve.handlers[next as usize]);
            return;
        };
        let cursors = epolls.cursors.entry(number).or_insert_with(|| serve.handlers.clone());
        if let Some(last) = epolls.handling.remove(&task) {
            cursors[last as usize] = *cursor;
        }
        *cursor = next.map_or(rounds.begin, |next| cursors[next as usize]);
        epolls.handling.extend(next.map(|next| (task, next)));
    }

    /// `who` hears that something has happened to an object.
    pub(super) fn tell(&mut self, who: Who, cpu: CpuId) {
        let source = match who {
            Who::Task(task) => return self.wake_to_retry(task, cpu),
            Who::Source(source) => source,
            // One that is awake looks at its objects anyway.
            Who::Poller(task) => {
                if let Some(sleeps @ true) = self.sync.epolls.polling.get_mut(&task) {
                    *sleeps = false;
                    self.wake_to_retry(task, cpu);
                }
                return;
            }
        };
        let state = &mut self.sync.epolls.sources[source as usize];
        let set = state.set as usize;
        if !std::mem::replace(&mut state.is_listed, true) {
            self.sync.epolls.sets[set].ready.push_back(source);
        }
        self.wake_waiter(set, Some(source), cpu);
    }

    /// Wakes the first task that waits for `source` of a set, or for any on its list.
    fn wake_waiter(&mut self, set: usize, source: Option<u32>, cpu: CpuId) {
        let EpollState { ready, waiters, .. } = &self.sync.epolls.sets[set];
        let hears = |waiter: &Waiter| match source {
            Some(source) => !self.is_over(waiter.serve, source),
            None => ready.iter().any(|&source| !self.is_over(waiter.serve, source)),
        };
        let first = waiters.iter().position(hears);
        if let Some(first) = first.and_then(|at| self.sync.epolls.sets[set].waiters.remove(at)) {
            self.wake_to_retry(first.task, cpu);
        }
    }

    /// Whether an event loop has done all rounds of an object.
    fn is_over(&self, serve: u32, source: u32) -> bool {
        let Serve { epoll, handlers, rounds, .. } = &self.shared().serves[serve as usize];
        let Some(rounds) = rounds else { return false };
        let place = (source - self.sync.epolls.sets[*epoll as usize].first) as usize;
        let cursors = self.sync.epolls.cursors.get(&serve).unwrap_or(handlers);
        cursors[place] == rounds.ends[place]
    }
}
