//! Pipes: bytes that some tasks write and others read.
//!
//! As in Linux, a write of up to `PIPE_BUF` bytes is atomic and waits for room; a larger one goes
//! in piece by piece. A write wakes the reader that has waited longest, a read the writer. A task
//! that finishes and leaves data or room wakes the next one of its own kind. A woken task tries
//! again, and goes to the end of the queue if another was faster.

use super::Engine;
use super::step::{Done, Off};
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Action, Operation};
use crate::{CpuId, TaskId};
use std::collections::VecDeque;

const PIPE_BUF: u64 = 4096;

#[derive(Debug)]
pub struct PipeState {
    capacity: u64,
    held: u64,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
}

impl PipeState {
    pub fn new(capacity: u64) -> PipeState {
        PipeState { capacity, held: 0, readers: VecDeque::new(), writers: VecDeque::new() }
    }

    /// The part of `bytes` that fits now.
    fn fits(&self, bytes: u64) -> u64 {
        let room = self.capacity - self.held;
        let as_a_whole = bytes <= PIPE_BUF.min(self.capacity);
        if as_a_whole && room < bytes { 0 } else { bytes.min(room) }
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    pub(super) fn read(&mut self, cpu: CpuId, task: TaskId, pipe: u32, bytes: u64) -> Done {
        let state = &mut self.sync.pipes[pipe as usize];
        let taken = bytes.min(state.held);
        state.held -= taken;
        let writer = if taken > 0 { state.writers.pop_front() } else { None };
        let reader =
            if taken == bytes && state.held > 0 { state.readers.pop_front() } else { None };
        if taken < bytes {
            state.readers.push_back(task);
        }
        writer.into_iter().chain(reader).for_each(|other| self.wake_to_retry(other, cpu));
        self.done_but_for(task, bytes - taken, Operation::Read { pipe, bytes: bytes - taken })
    }

    pub(super) fn write(&mut self, cpu: CpuId, task: TaskId, pipe: u32, bytes: u64) -> Done {
        let state = &mut self.sync.pipes[pipe as usize];
        let put = state.fits(bytes);
        state.held += put;
        let reader = if put > 0 { state.readers.pop_front() } else { None };
        let writer = if put == bytes && state.held < state.capacity {
            state.writers.pop_front()
        } else {
            None
        };
        if put < bytes {
            state.writers.push_back(task);
        }
        reader.into_iter().chain(writer).for_each(|other| self.wake_to_retry(other, cpu));
        self.done_but_for(task, bytes - put, Operation::Write { pipe, bytes: bytes - put })
    }

    fn done_but_for(&mut self, task: TaskId, left: u64, rest: Operation) -> Done {
        if left == 0 {
            return Done::Yes;
        }
        self.tasks[task.index()].then = Action::Do(rest);
        Done::Blocks(Off::Waits)
    }
}
