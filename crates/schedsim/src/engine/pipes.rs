//! Pipes: bytes that some tasks write and others read.
//!
//! As in Linux, a write of up to `PIPE_BUF` bytes is atomic and waits for a free page. A larger one
//! goes in piece by piece. Readers wait in one queue and writers in another, first come first
//! served, and one is woken at a time. A write to an empty pipe wakes a reader. A read that frees a
//! page of a full one wakes a writer. A task that has waited wakes the next one of its own kind if
//! it leaves data or room. A woken task tries again, and goes to the end of the queue if another
//! was faster.
//!
//! Source: Linux 6.18, `fs/pipe.c`. Up to 6.13 a read of a full pipe wakes a writer even if it frees
//! no page.

mod pages;

use super::Engine;
use super::step::{Done, Off};
use super::wait_queue::{News, Who};
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Action, Call, Operation, Until};
use crate::{CpuId, TaskId};
use pages::Pages;
use std::collections::VecDeque;

#[derive(Debug)]
pub struct PipeState {
    pages: Pages,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
    /// The sources of sets, and the tasks that poll, the last to come first. One list is for data
    /// to read, the other for room.
    watchers: [Vec<Who>; 2],
    /// Whether it was ever polled (`poll_usage`): then each write is news.
    is_polled: bool,
}

impl PipeState {
    pub fn new(capacity: u64) -> PipeState {
        PipeState {
            pages: Pages::new(capacity),
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            watchers: [Vec::new(), Vec::new()],
            is_polled: false,
        }
    }

    pub fn has_data(&self) -> bool {
        !self.pages.is_empty()
    }

    pub fn has_room(&self) -> bool {
        !self.pages.is_full()
    }

    pub fn watch(&mut self, who: Who, news: News) {
        self.watchers[news as usize].insert(0, who);
        self.is_polled = true;
    }

    pub fn leave(&mut self, task: TaskId) {
        for watchers in &mut self.watchers {
            watchers.retain(|who| *who != Who::Poller(task));
        }
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Reads once, and waits if the pipe is empty or if bytes are missing.
    pub(super) fn read(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        pipe: u32,
        bytes: u64,
        (until, call): (Until, Call),
    ) -> Done {
        let state = &mut self.sync.pipes[pipe as usize];
        let taken = state.pages.take(bytes);
        let left = bytes - taken.bytes;
        let is_done = left == 0 || until == Until::Any && taken.bytes > 0;
        let writer = if taken.made_room { state.writers.pop_front() } else { None };
        let has_more = call == Call::HasWaited && !state.pages.is_empty();
        let reader = if has_more { state.readers.pop_front() } else { None };
        let is_watched = (has_more || taken.made_room) && state.is_polled;
        if !is_done {
            state.readers.push_back(task);
        }
        if is_watched {
            if taken.made_room {
                self.tell_watchers(cpu, pipe, News::Out);
            }
            writer.into_iter().for_each(|other| self.wake_from(other, cpu, true));
            if has_more {
                self.tell_watchers(cpu, pipe, News::In);
            }
            reader.into_iter().for_each(|other| self.wake_from(other, cpu, true));
        } else {
            writer.into_iter().chain(reader).for_each(|other| self.wake_from(other, cpu, true));
        }
        if is_done {
            return Done::Yes;
        }
        let rest = Operation::Read { pipe, bytes: left, until, call: Call::HasWaited };
        self.wait_to_go_on(task, rest)
    }

    /// Writes what there is room for, and waits with the rest.
    pub(super) fn write(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        pipe: u32,
        bytes: u64,
        call: Call,
    ) -> Done {
        let state = &mut self.sync.pipes[pipe as usize];
        let was_empty = state.pages.is_empty();
        let merged = if call == Call::Begins { state.pages.merge(bytes) } else { 0 };
        let left = bytes - merged;
        let left = left - state.pages.append(left);
        let is_watched = state.is_polled && (was_empty || left == 0);
        let reader = if was_empty || is_watched { state.readers.pop_front() } else { None };
        let leaves_room = call == Call::HasWaited && left == 0 && !state.pages.is_full();
        let writer = if leaves_room { state.writers.pop_front() } else { None };
        let is_room_watched = leaves_room && state.is_polled;
        if left > 0 {
            state.writers.push_back(task);
        }
        if is_watched {
            self.tell_watchers(cpu, pipe, News::In);
        }
        reader.into_iter().for_each(|other| self.wake_from(other, cpu, true));
        if is_room_watched {
            self.tell_watchers(cpu, pipe, News::Out);
        }
        writer.into_iter().for_each(|other| self.wake_from(other, cpu, true));
        if left == 0 {
            return Done::Yes;
        }
        let rest = Operation::Write { pipe, bytes: left, call: Call::HasWaited };
        self.wait_to_go_on(task, rest)
    }

    /// Who watches a pipe hears that there is something to read, or room.
    #[cold]
    fn tell_watchers(&mut self, cpu: CpuId, pipe: u32, news: News) {
        let watchers =
            |engine: &Self| engine.sync.pipes[pipe as usize].watchers[news as usize].len();
        for index in 0..watchers(self) {
            let who = self.sync.pipes[pipe as usize].watchers[news as usize][index];
            self.tell(who, cpu, true);
        }
    }

    /// `task` blocks, and continues with `rest` when it is woken.
    fn wait_to_go_on(&mut self, task: TaskId, rest: Operation) -> Done {
        self.tasks[task.index()].then = Action::Do(rest);
        Done::Blocks(Off::Waits)
    }
}
