//! Sets of objects that tasks wait for together.
//!
//! An object that has news puts itself on the set's list and wakes one task, the last that has come
//! to wait. The task takes the list, as far as one wait returns it, and leaves out what is not ready
//! any more. What is level-triggered is on the list again at once, behind the rest, and if the list
//! is not empty the next task is woken. So several tasks that wait for one set may wake for the same
//! object. What is edge-triggered comes again with its next news; what is watched once, after the
//! task has said so.
//!
//! A task that polls stands in the queues of all objects itself, and is woken with all others that
//! do, the last to come first.
//!
//! Source: Linux 6.18, `fs/eventpoll.c`, `fs/select.c`.

pub mod state;

use super::Engine;
use super::step::{Done, Off};
use super::sync::Sync;
use super::wait_queue::{News, Who};
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Serve, Shared, Source, Trigger, Watched};
use crate::{CpuId, TaskId};
use state::{EpollState, SourceState, Waiter};
use std::collections::VecDeque;

impl Sync {
    /// Adds all objects to their sets.
    pub fn watch(&mut self, shared: &Shared) {
        for (set, epoll) in (0..).zip(&shared.epolls) {
            let first = self.epolls.sources.len() as u32;
            let mut ready = VecDeque::new();
            for (source, &of) in (first..).zip(&epoll.sources) {
                self.hear(Who::Source(source), of);
                let is_listed = !of.is_off && self.is_ready(of.object);
                if is_listed {
                    ready.push_back(source);
                }
                self.epolls.numbers.insert((set, of.object), source);
                self.epolls.sources.push(SourceState { set, of, is_on: !of.is_off, is_listed });
            }
            let (events, waiters) = (epoll.events.into(), VecDeque::new());
            self.epolls.sets.push(EpollState { first, events, ready, waiters });
        }
    }

    /// `who` hears of news of an object.
    fn hear(&mut self, who: Who, of: Source) {
        let (queue, news) = match of.object {
            Watched::Pipe(pipe) => return self.pipes[pipe as usize].watch(who, News::In),
            Watched::PipeRoom(pipe) => return self.pipes[pipe as usize].watch(who, News::Out),
            Watched::End(end) => (self.ends[end as usize].waiters(), News::In),
            Watched::Room(end) => (self.ends[end as usize].waiters(), News::Out),
            Watched::Eventfd(eventfd) => (self.eventfds[eventfd as usize].waiters(), News::In),
        };
        match of.is_exclusive {
            true => queue.watch_exclusive(who, news),
            false => queue.watch(who, news),
        }
    }

    /// `task` stands in the queues of all objects of a set (`is_polling`), or in none.
    fn poll_all(&mut self, shared: &Shared, set: u32, task: TaskId, is_polling: bool) {
        for source in &shared.epolls[set as usize].sources {
            match source.object {
                object if is_polling => self.hear(Who::Poller(task), Source::from(object)),
                Watched::Pipe(pipe) | Watched::PipeRoom(pipe) => {
                    self.pipes[pipe as usize].leave(task);
                }
                Watched::End(end) | Watched::Room(end) => {
                    self.ends[end as usize].waiters().leave(task);
                }
                Watched::Eventfd(eventfd) => self.eventfds[eventfd as usize].waiters().leave(task),
            }
        }
    }

    fn is_ready(&self, object: Watched) -> bool {
        match object {
            Watched::Pipe(pipe) => self.pipes[pipe as usize].has_data(),
            Watched::PipeRoom(pipe) => self.pipes[pipe as usize].has_room(),
            Watched::End(end) => self.ends[end as usize].has_data(),
            Watched::Room(end) => self.ends[end as usize].has_room(),
            Watched::Eventfd(eventfd) => self.eventfds[eventfd as usize].has_data(),
        }
    }

    /// Takes up to `events` sources that are ready from a set's list, unless `is_over` leaves them
    /// there.
    fn take_ready(&mut self, set: usize, is_over: impl Fn(u32) -> bool) -> VecDeque<u32> {
        let mut listed = std::mem::take(&mut self.epolls.sets[set].ready);
        let (mut taken, mut rest) = (VecDeque::new(), VecDeque::new());
        while let Some(source) = listed.pop_front() {
            if taken.len() == self.epolls.sets[set].events {
                listed.push_front(source);
                break;
            }
            let state = &self.epolls.sources[source as usize];
            let (is_ready, trigger) =
                (state.is_on && self.is_ready(state.of.object), state.of.trigger);
            let is_over = is_ready && is_over(source);
            if is_ready && !is_over {
                taken.push_back(source);
            }
            let stays = is_over || is_ready && trigger == Trigger::Level;
            let state = &mut self.epolls.sources[source as usize];
            state.is_listed = stays;
            state.is_on &= is_over || !is_ready || trigger != Trigger::Once;
            if stays {
                rest.push_back(source);
            }
        }
        listed.append(&mut rest);
        self.epolls.sets[set].ready = listed;
        taken
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Waits until an object of a set is ready.
    pub(super) fn serve(&mut self, cpu: CpuId, task: TaskId, serve: u32) -> Done {
        let number = serve;
        let serve = &self.shared().serves[number as usize];
        let set = serve.epoll as usize;
        let drained = self.sync.epolls.draining.remove(&(task, serve.epoll));
        drained.into_iter().flatten().for_each(|source| self.look_at(source, cpu));
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
            self.wake_waiter(set, None, cpu, false);
        }
        if taken.is_empty() {
            self.sync.epolls.sets[set].waiters.push_front(Waiter { task, serve: number });
            return Done::Blocks(Off::Waits);
        }
        let is_drained = |source: &u32| {
            self.sync.epolls.sources[*source as usize].of.trigger == Trigger::Drained
        };
        let draining: Vec<u32> = taken.iter().copied().filter(is_drained).collect();
        if !draining.is_empty() {
            self.sync.epolls.draining.insert((task, serve.epoll), draining);
        }
        self.sync.epolls.returned.insert(task, taken);
        Done::Yes
    }

    /// Whether a source of a set is watched changes.
    pub(super) fn watch(&mut self, cpu: CpuId, of: (u32, Watched), on: bool) {
        let Some(&source) = self.sync.epolls.numbers.get(&of) else { return };
        self.sync.epolls.sources[source as usize].is_on = on;
        self.look_at(source, cpu);
    }

    /// A source that is ready is news, as after a change.
    fn look_at(&mut self, source: u32, cpu: CpuId) {
        let state = &self.sync.epolls.sources[source as usize];
        if state.is_on && !state.is_listed && self.sync.is_ready(state.of.object) {
            self.tell(Who::Source(source), cpu, false);
        }
    }

    /// Waits until an object of a set is ready. The task stands in the queues of all of them until
    /// then: it does not lose its places when it wakes in vain.
    pub(super) fn poll(&mut self, task: TaskId, set: u32) -> Done {
        let shared = self.shared();
        let mut sources = shared.epolls[set as usize].sources.iter();
        let is_ready = sources.any(|source| self.sync.is_ready(source.object));
        let is_polling = self.sync.epolls.polling.contains_key(&task);
        if is_ready {
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

    /// `who` hears that something has happened to an object, from a task that announces to sleep
    /// soon or not.
    pub(super) fn tell(&mut self, who: Who, cpu: CpuId, sync: bool) {
        let source = match who {
            Who::Task(task) => return self.wake_from(task, cpu, sync),
            Who::Source(source) => source,
            // One that is awake looks at its objects anyway.
            Who::Poller(task) => {
                if let Some(sleeps @ true) = self.sync.epolls.polling.get_mut(&task) {
                    *sleeps = false;
                    self.wake_from(task, cpu, sync);
                }
                return;
            }
        };
        let state = &mut self.sync.epolls.sources[source as usize];
        if !state.is_on {
            return;
        }
        let set = state.set as usize;
        if !std::mem::replace(&mut state.is_listed, true) {
            self.sync.epolls.sets[set].ready.push_back(source);
        }
        self.wake_waiter(set, Some(source), cpu, sync);
    }

    /// Wakes the first task that waits for `source` of a set, or for any on its list.
    fn wake_waiter(&mut self, set: usize, source: Option<u32>, cpu: CpuId, sync: bool) {
        let EpollState { ready, waiters, .. } = &self.sync.epolls.sets[set];
        let hears = |waiter: &Waiter| match source {
            Some(source) => !self.is_over(waiter.serve, source),
            None => ready.iter().any(|&source| !self.is_over(waiter.serve, source)),
        };
        let first = waiters.iter().position(hears);
        if let Some(first) = first.and_then(|at| self.sync.epolls.sets[set].waiters.remove(at)) {
            self.wake_from(first.task, cpu, sync);
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
