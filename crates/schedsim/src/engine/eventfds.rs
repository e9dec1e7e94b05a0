//! Event counters: some tasks add to them, others take what there is, or wait.
//!
//! All that wait are woken by each addition, first come first served; who comes too late waits again,
//! behind the others. A semaphore of the C library wakes as many as were added. Sources: Linux 6.18,
//! `fs/eventfd.c`; glibc 2.41, `nptl/sem_waitcommon.c` and `nptl/sem_post.c`.

use super::Engine;
use super::step::{Done, Off};
use super::wait_queue::{News, WaitQueue};
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::Eventfd;
use crate::{CpuId, TaskId};

#[derive(Debug)]
pub struct EventfdState {
    count: u64,
    is_semaphore: bool,
    wakes_one: bool,
    waiters: WaitQueue,
}

impl EventfdState {
    pub fn new(eventfd: &Eventfd) -> EventfdState {
        let &Eventfd { is_semaphore, count, wakes_one, .. } = eventfd;
        EventfdState { count, is_semaphore, wakes_one, waiters: WaitQueue::default() }
    }

    pub fn has_data(&self) -> bool {
        self.count > 0
    }

    pub fn waiters(&mut self) -> &mut WaitQueue {
        &mut self.waiters
    }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    pub(super) fn post(&mut self, cpu: CpuId, task: TaskId, eventfd: u32, count: u64) -> Done {
        let state = &mut self.sync.eventfds[eventfd as usize];
        if u64::MAX - state.count <= count {
            state.waiters.add_last(task);
            return Done::Blocks(Off::Waits);
        }
        state.count += count;
        let times = if state.wakes_one { count.min(state.waiters.len() as u64) } else { 1 };
        for _ in 0..times {
            self.announce(cpu, eventfd, News::In);
        }
        Done::Yes
    }

    pub(super) fn take(&mut self, cpu: CpuId, task: TaskId, eventfd: u32) -> Done {
        let state = &mut self.sync.eventfds[eventfd as usize];
        if state.count == 0 {
            if state.wakes_one {
                state.waiters.add_exclusive(task, News::In);
            } else {
                state.waiters.add_last(task);
            }
            return Done::Blocks(Off::Waits);
        }
        state.count = if state.is_semaphore { state.count - 1 } else { 0 };
        self.announce(cpu, eventfd, News::Out);
        Done::Yes
    }

    fn announce(&mut self, cpu: CpuId, eventfd: u32, news: News) {
        let sync = &mut self.sync;
        let mut woken = std::mem::take(&mut sync.woken);
        let has_waiter = |source| sync.epolls.has_waiter(source);
        sync.eventfds[eventfd as usize].waiters.wake(news, &mut woken, has_waiter);
        woken.drain(..).for_each(|who| self.tell(who, cpu, false));
        self.sync.woken = woken;
    }
}
