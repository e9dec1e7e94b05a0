//! From the calls of a recording to operations.
//!
//! A sleep is explained if it happened in a call about an object, and the task that ended it was in
//! a call about the same object. What a call did stands in the place of the sleeps and wakings that
//! it explains: in a replay under another order of events the same operation may block where it had
//! not, or find what it needs.

use super::log::{Deed, Did};
use super::sleeps::Sleep;
use super::task::{Status, Task};
use super::{ReplayBuilder, log};
use crate::trace::{Call, CallKind, Returned};
use crate::workload::{Operation, Shared, Until};
use crate::{TaskId, Time};
use std::collections::BTreeMap;

/// A sleep and the waking that ended it, explained by what a pipe has in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pipe: u32,
    sleeper: TaskId,
    slept_at: u32,
    waker: TaskId,
    woken_at: u32,
}

impl ReplayBuilder {
    /// The object of the call in which `task` is at this event, which it takes.
    pub(super) fn object_of(&mut self, task: TaskId) -> Option<u32> {
        self.within.take().filter(|(of, _)| *of == task).map(|(_, object)| object)
    }

    pub(super) fn called(&mut self, call: &Call) {
        let Call { time, cpu, task, kind } = *call;
        match kind {
            CallKind::Within(object) => self.within = Some((task, object)),
            CallKind::Ends { since, returned, recording, .. } if self.meet(task) => {
                self.is_on_if_new(cpu, task, time);
                let state = &mut self.tasks[task.index()];
                state.charge(time);
                self.report.recording_time += state.take_off(recording);
                self.returned(task, since, returned);
            }
            CallKind::Ends { .. } | CallKind::Performs(_) | CallKind::Done | CallKind::Yields => {}
        }
    }

    /// A call shows that `task` runs on `cpu`, too.
    fn is_on_if_new(&mut self, cpu: crate::CpuId, task: TaskId, time: Time) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, super::Cpu::default);
        }
        self.is_on(cpu, task, time);
    }

    fn returned(&mut self, task: TaskId, since: Time, returned: Returned) {
        let state = &mut self.tasks[task.index()];
        state.calls.traced = true;
        let sleeps = std::mem::take(&mut state.calls.sleeps);
        let first = state.calls.first.take();
        let inside = || sleeps.iter().filter(|sleep| sleep.start >= since);
        let did = match returned {
            Returned::Unknown => return,
            Returned::Slept => {
                let by_interrupts = inside().filter(|sleep| sleep.waker == TaskId::NONE);
                state.calls.timed += by_interrupts.count() as u64;
                return;
            }
            Returned::Yielded => Did::Yield,
            Returned::Did(operation) => Did::Operation(operation),
        };
        let mut at = first;
        for sleep in inside() {
            let explains = match did {
                Did::Yield => false,
                Did::Operation(Operation::Timer { .. } | Operation::Io { .. }) => {
                    sleep.waker == TaskId::NONE
                }
                Did::Operation(Operation::Join(_)) => sleep.waker != TaskId::NONE,
                Did::Operation(_) => sleep.same_object,
            };
            if explains {
                self.explain(task, sleep, did);
                at.get_or_insert(sleep.at);
            }
        }
        self.report.operations += 1;
        let state = &mut self.tasks[task.index()];
        let at = at.unwrap_or(u32::MAX);
        state.put(Deed::Called { at, did });
        state.calls.sleeps = sleeps;
        state.calls.sleeps.clear();
    }

    fn explain(&mut self, sleeper: TaskId, sleep: &Sleep, did: Did) {
        let Sleep { at: slept_at, waker, woken_at, .. } = *sleep;
        self.tasks[sleeper.index()].log.explain_sleep(slept_at);
        if waker != TaskId::NONE {
            self.tasks[waker.index()].log.explain_waking(woken_at);
            if let Did::Operation(Operation::Read { pipe, .. } | Operation::Write { pipe, .. }) =
                did
            {
                self.edges.push(Edge { pipe, sleeper, slept_at, waker, woken_at });
            }
        }
    }

    /// Pipes from which more was read than written: something else wrote to them, or was lost. They
    /// explain nothing.
    pub(super) fn doubt_pipes(&mut self, shared: &Shared) -> Vec<bool> {
        let mut balance: BTreeMap<u32, i128> = BTreeMap::new();
        for (_, _, deed) in self.tasks.iter().flat_map(|task| task.log.places()) {
            let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
            match operation {
                Operation::Write { pipe, bytes, .. } => {
                    *balance.entry(pipe).or_default() += i128::from(bytes);
                }
                Operation::Read { pipe, bytes, until, .. } => {
                    let least = if until == Until::Any { 1 } else { bytes };
                    *balance.entry(pipe).or_default() -= i128::from(least);
                }
                _ => {}
            }
        }
        let mut doubted = vec![false; shared.pipes.len()];
        for (pipe, _) in balance.into_iter().filter(|(_, balance)| *balance < 0) {
            if let Some(place) = doubted.get_mut(pipe as usize) {
                *place = true;
                self.report.doubted_objects += 1;
            }
        }
        for edge in std::mem::take(&mut self.edges) {
            if doubted.get(edge.pipe as usize).copied().unwrap_or(true) {
                self.tasks[edge.sleeper.index()].log.doubt_sleep(edge.slept_at);
                self.tasks[edge.waker.index()].log.doubt_waking(edge.woken_at);
            }
        }
        doubted
    }
}

/// The operations of a log, each with the place of the entry before which it takes place.
pub(super) fn operations(log: &log::Log, doubted: &[bool]) -> Vec<(u32, Did)> {
    let is_doubted = |did: Did| match did {
        Did::Operation(Operation::Read { pipe, .. } | Operation::Write { pipe, .. }) => {
            doubted.get(pipe as usize).copied().unwrap_or(true)
        }
        _ => false,
    };
    log.places()
        .filter_map(|(place, _, deed)| match deed {
            Deed::Called { at, did } if !is_doubted(did) => Some((at.min(place), did)),
            _ => None,
        })
        .collect()
}

impl Task {
    /// Whether it sleeps, or has not been seen running.
    pub(super) fn may_sleep(&self) -> bool {
        matches!(self.status, Status::Unknown | Status::Unborn | Status::Asleep)
    }
}
