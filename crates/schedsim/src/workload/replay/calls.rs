//! From the calls of a recording to operations.
//!
//! A sleep is explained by two calls on one object. The task slept in one, and the task that ended
//! the sleep was in the other. The operation of a call replaces the sleeps and wakings that it
//! explains. In a replay under another order of events the same operation may block where it had
//! not, or find what it needs.

use super::carriers::{Doubted, Edge, Reason, needed};
use super::latches::Latch;
use super::log::{Deed, Did};
use super::monitors::{self, Act, Monitors, SAME, What};
use super::sleeps::{By, Sleep};
use super::task::{Status, Task};
use super::within::Within;
use super::{ReplayBuilder, log};
use crate::trace::{Call, CallKind, Returned};
use crate::workload::Operation;
use crate::{TaskId, Time};

impl ReplayBuilder {
    /// The object of the call in which `task` is at this event, which it takes.
    pub(super) fn object_of(&mut self, task: TaskId) -> Option<u32> {
        self.within.take().filter(|(of, _)| *of == task).map(|(_, object)| object)
    }

    pub(super) fn called(&mut self, call: &Call) {
        let Call { time, cpu, task, kind } = *call;
        match kind {
            CallKind::Within { channel, .. } => self.within = Some((task, channel)),
            CallKind::Ends { since, returned, recording, .. } if self.meet(task) => {
                self.is_on_if_new(cpu, task, time);
                let state = &mut self.tasks[task.index()];
                state.charge(time);
                self.report.recording_time += state.take_off(recording);
                self.returned(task, (since, time), returned);
            }
            CallKind::Sets(set) if self.meet(task) => self.tasks[task.index()].set(set, time),
            CallKind::Sets(_)
            | CallKind::Ends { .. }
            | CallKind::Performs(_)
            | CallKind::Done
            | CallKind::Yields => {}
        }
    }

    /// A call shows that `task` runs on `cpu`, too.
    fn is_on_if_new(&mut self, cpu: crate::CpuId, task: TaskId, time: Time) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, super::Cpu::default);
        }
        self.is_on(cpu, task, time);
    }

    fn returned(&mut self, task: TaskId, (since, now): (Time, Time), returned: Returned) {
        let state = &mut self.tasks[task.index()];
        state.calls.traced = true;
        if !state.calls.sleeps.is_empty() || state.calls.forked.is_some() {
            self.before_call(task, since);
        }
        if let Returned::Futex { barrier } = returned {
            return self.futex_returned(task, since, barrier);
        }
        if let Returned::Waited { mutex, condition: None } = returned {
            return self.waited_in_vain(task, (since, now), mutex);
        }
        if let Returned::Stored { device } = returned {
            return self.stored(task, since, device);
        }
        match returned {
            Returned::Signalled => return self.signalled(task, since),
            Returned::Ended(object) => return self.over(task, since, Latch::Ends(object)),
            Returned::Broken(object) => return self.over(task, since, Latch::Breaks(object)),
            Returned::Reaped(child) if self.meet(child) => return self.reaped(task, since, child),
            Returned::Closed(object) => self.closed(task, object),
            _ => {}
        }
        let state = &mut self.tasks[task.index()];
        let sleeps = std::mem::take(&mut state.calls.sleeps);
        let first = state.calls.first(since);
        state.calls.clear();
        let inside = || sleeps.iter().filter(|sleep| sleep.start >= since);
        let did = match returned {
            Returned::Unknown
            | Returned::Closed(_)
            | Returned::Ended(_)
            | Returned::Broken(_)
            | Returned::Signalled
            | Returned::Reaped(_)
            | Returned::Futex { .. }
            | Returned::Stored { .. }
            | Returned::Waited { condition: None, .. } => {
                for sleep in inside() {
                    state.log.is_within(sleep.at, Within::Call);
                }
                return;
            }
            Returned::Slept => {
                let by_interrupts = inside().filter(|sleep| sleep.waker == TaskId::NONE);
                state.calls.timed += by_interrupts.count() as u64;
                return;
            }
            Returned::Yielded => Did::Yield,
            Returned::Locked { mutex, .. } => Did::Operation(Operation::Lock(mutex)),
            Returned::Waited { condition: Some(condition), .. } => {
                Did::Operation(Operation::Take(condition))
            }
            Returned::Signals { condition, all } => {
                let count = if all { monitors::BROADCAST } else { 1 };
                Did::Operation(Operation::Post { eventfd: condition, count })
            }
            Returned::Did(operation) => Did::Operation(operation),
        };
        let within = match did {
            Did::Operation(Operation::Serve(_) | Operation::Poll(_)) => Within::Set,
            Did::Operation(Operation::Join(_)) => Within::Process,
            _ => Within::Carrier,
        };
        let (mut at, mut explained) = (first, Vec::new());
        for sleep in inside() {
            state.log.is_within(sleep.at, within);
            let explains = match did {
                Did::Yield | Did::Joined(_) | Did::Passed(_) | Did::Took(_) | Did::Paged(_) => {
                    false
                }
                Did::Operation(Operation::Timer { .. } | Operation::Io { .. }) => {
                    sleep.waker == TaskId::NONE
                }
                Did::Operation(Operation::Join(_)) => sleep.waker != TaskId::NONE,
                Did::Operation(Operation::Send { .. } | Operation::Receive { .. }) => {
                    matches!(sleep.by, By::SameObject | By::Softirq)
                }
                // A connection over the loopback is made in a softirq, and that of a Unix socket in
                // a call on another one.
                Did::Operation(Operation::Take(_)) => {
                    matches!(sleep.by, By::SameObject | By::OtherObject | By::Softirq)
                }
                // Who waits for a signal unlocks the mutex, in a call on the condition.
                Did::Operation(Operation::Lock(_)) => {
                    matches!(sleep.by, By::SameObject | By::OtherObject)
                }
                // Its time was over, and yet it has found something: that came before the task ran.
                Did::Operation(Operation::Serve(_) | Operation::Poll(_)) => {
                    matches!(sleep.by, By::SameObject | By::OtherObject | By::Softirq)
                        || sleep.waker == TaskId::NONE && !sleep.is_by_softirq
                }
                Did::Operation(_) => sleep.by == By::SameObject,
            };
            if explains {
                explained.push(*sleep);
                at.get_or_insert(sleep.at);
            }
        }
        self.report.operations += 1;
        let state = &mut self.tasks[task.index()];
        let at = at.unwrap_or(u32::MAX);
        let place = state.put(Deed::Called { at, did });
        let has_slept = explained.iter().any(|sleep| sleep.by == By::SameObject);
        self.acted((task, place), (since, now), returned, has_slept);
        let reason = match did {
            Did::Operation(Operation::Serve(_) | Operation::Poll(_)) => {
                Some(Reason::Wait(task, place))
            }
            _ => needed(did).map(Reason::Carrier),
        };
        for sleep in explained {
            self.explain(task, sleep, reason);
        }
        let state = &mut self.tasks[task.index()];
        state.calls.sleeps = sleeps;
        state.calls.sleeps.clear();
    }

    /// A wait for a signal was over by its time: the task has unlocked the mutex meanwhile.
    fn waited_in_vain(&mut self, task: TaskId, (since, now): (Time, Time), mutex: u32) {
        let state = &mut self.tasks[task.index()];
        let first = state.calls.first(since).unwrap_or(u32::MAX);
        state.calls.clear();
        for (at, operation, time, what) in [
            (first, Operation::Unlock(mutex), since, What::GaveUp(mutex)),
            (u32::MAX, Operation::Lock(mutex), now, What::Locked { mutex, site: SAME }),
        ] {
            let did = Did::Operation(operation);
            let place = self.tasks[task.index()].put(Deed::Called { at, did });
            self.acts.push(Act { time, task, place, what });
            self.report.operations += 1;
        }
    }

    /// Keeps what a call did to a mutex or a condition.
    fn acted(
        &mut self,
        (task, place): (TaskId, u32),
        (since, now): (Time, Time),
        returned: Returned,
        has_slept: bool,
    ) {
        let mut act = |time, what| self.acts.push(Act { time, task, place, what });
        match returned {
            Returned::Locked { mutex, site } => act(now, What::Locked { mutex, site }),
            Returned::Did(Operation::Unlock(mutex)) => act(since, What::Unlocked(mutex)),
            Returned::Did(Operation::Take(semaphore)) => {
                let begins = if has_slept { What::AwaitsPost } else { What::Takes };
                act(since, begins(semaphore));
                act(now, What::Took { semaphore, waited: has_slept });
            }
            Returned::Did(Operation::Post { eventfd, .. }) => {
                act(since, What::Posts(eventfd));
                act(now, What::Posted(eventfd));
            }
            Returned::Signals { condition, all } => act(since, What::Signalled { condition, all }),
            Returned::Waited { mutex, condition: Some(condition) } => {
                act(since, What::Waits { condition, mutex });
                act(now, What::Received { condition, mutex });
            }
            _ => {}
        }
    }

    pub(super) fn explain(&mut self, sleeper: TaskId, sleep: Sleep, reason: Option<Reason>) {
        let Sleep { at: slept_at, waker, woken_at, .. } = sleep;
        self.tasks[sleeper.index()].log.explain_sleep(slept_at);
        if waker != TaskId::NONE {
            self.tasks[waker.index()].log.explain_waking(woken_at);
        }
        if let Some(reason) = reason {
            self.edges.push(Edge { reason, sleeper, slept_at, waker, woken_at });
        }
    }
}

/// The operations of a log, each with the place of the entry before which it takes place.
pub(super) fn operations(
    task: TaskId,
    log: &log::Log,
    (doubted, monitors): (&Doubted, &Monitors),
) -> Vec<(u32, Did)> {
    let is_doubted = |did: Did, place: u32| {
        doubted.contains(Reason::Wait(task, place))
            || needed(did).is_some_and(|of| doubted.contains(Reason::Carrier(of)))
    };
    let mut found = Vec::new();
    for (place, _, deed) in log.places() {
        let Deed::Called { at, did } = deed else { continue };
        if is_doubted(did, place) {
            continue;
        }
        let at = at.min(place);
        match did {
            Did::Operation(operation) => {
                let done = monitors.done(task, place, operation).into_iter().map(Did::Operation);
                let done = done.filter(|did| !is_doubted(*did, place));
                found.extend(done.map(|did| (at, did)));
            }
            did => found.push((at, did)),
        }
    }
    found
}

impl Task {
    /// Whether it sleeps, or has not been seen running.
    pub(super) fn may_sleep(&self) -> bool {
        matches!(self.status, Status::Unknown | Status::Unborn | Status::Asleep)
    }
}
