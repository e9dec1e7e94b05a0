//! Which objects carried what they should have.
//!
//! A pipe, a pair of sockets or an event counter explains sleeps only if the recording has both
//! sides of it. Who reads more than was written has another source; what is never read goes to a
//! task that was not recorded, and would fill the buffer. Likewise a mutex explains sleeps only if
//! every task that unlocks it has locked it.

use super::ReplayBuilder;
use super::log::{Deed, Did};
use crate::TaskId;
use crate::trace::TaskInfo;
use crate::workload::{Epoll, Operation, Shared, Until, Watched};
use std::collections::{BTreeMap, BTreeSet};

/// An object that carries data from task to task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Carrier {
    Pipe(u32),
    /// A pair of sockets.
    Pair(u32),
    Eventfd(u32),
    Mutex(u32),
    Barrier(u32),
    /// The end of a task.
    End(TaskId),
}

/// What explains a sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reason {
    Carrier(Carrier),
    /// The wait of a task for several objects, by its place in the log.
    Wait(TaskId, u32),
}

/// A sleep and the waking that ended it, explained by what an object has in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub reason: Reason,
    pub sleeper: TaskId,
    pub slept_at: u32,
    pub waker: TaskId,
    pub woken_at: u32,
}

/// What explains nothing.
#[derive(Debug, Default)]
pub(super) struct Doubted(BTreeSet<Reason>);

impl Doubted {
    pub fn contains(&self, reason: Reason) -> bool {
        self.0.contains(&reason)
    }
}

/// What an operation or the end of a task needs, to explain a sleep.
pub(super) fn needed(did: Did) -> Option<Carrier> {
    match did {
        Did::Operation(
            Operation::Lock(mutex) | Operation::Unlock(mutex) | Operation::Await { mutex, .. },
        ) => Some(Carrier::Mutex(mutex)),
        Did::Operation(Operation::Arrive(barrier)) => Some(Carrier::Barrier(barrier)),
        Did::Operation(operation) => carrier(operation),
        Did::Joined(task) => Some(Carrier::End(task)),
        Did::Yield => None,
    }
}

/// The carrier that an operation puts data into, or takes it from.
pub(super) fn carrier(operation: Operation) -> Option<Carrier> {
    Some(match operation {
        Operation::Read { pipe, .. } | Operation::Write { pipe, .. } => Carrier::Pipe(pipe),
        Operation::Send { end, .. } | Operation::Receive { end, .. } => Carrier::Pair(end / 2),
        Operation::Post { eventfd, .. } | Operation::Take(eventfd) => Carrier::Eventfd(eventfd),
        _ => return None,
    })
}

/// What went one way through a carrier, in bytes; of datagrams and counters in units.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    put: u64,
    /// At least this much was taken.
    taken: u64,
    /// Whether more may have been taken.
    is_open: bool,
}

impl Way {
    fn add(&mut self, operation: Operation) {
        let (put, taken) = match operation {
            Operation::Write { bytes, .. } | Operation::Send { bytes, .. } => (bytes, 0),
            Operation::Post { count, .. } => (count, 0),
            Operation::Read { until: Until::Any, .. }
            | Operation::Receive { until: Until::Any, .. }
            | Operation::Take(_) => {
                self.is_open = true;
                (0, 1)
            }
            Operation::Read { bytes, .. } | Operation::Receive { bytes, .. } => (0, bytes),
            _ => (0, 0),
        };
        self.put = self.put.saturating_add(put);
        self.taken = self.taken.saturating_add(taken);
    }

    /// Whether something is missing: what was taken, or who took it.
    fn is_odd(self, capacity: u64) -> bool {
        self.taken > self.put || !self.is_open && self.put - self.taken > capacity
    }
}

impl ReplayBuilder {
    /// The carriers of which the recording does not have both sides.
    pub(super) fn doubt(&mut self, shared: &Shared, tasks: &[TaskInfo]) -> Doubted {
        let mut ways: BTreeMap<(Carrier, u32), Way> = BTreeMap::new();
        for (_, _, deed) in self.tasks.iter().flat_map(|task| task.log.places()) {
            let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
            let Some(carrier) = carrier(operation) else { continue };
            let way = match operation {
                Operation::Send { end, .. } => end & 1,
                Operation::Receive { end, .. } => end & 1 ^ 1,
                _ => 0,
            };
            ways.entry((carrier, way)).or_default().add(operation);
        }
        let capacity = |carrier: Carrier| match carrier {
            Carrier::Pipe(pipe) => shared.pipes.get(pipe as usize).map_or(0, |pipe| pipe.capacity),
            Carrier::Pair(_) => IN_A_SOCKET,
            _ => u64::MAX,
        };
        let initial = |carrier: Carrier| match carrier {
            Carrier::Eventfd(of) => shared.eventfds.get(of as usize).map_or(0, |of| of.count),
            _ => 0,
        };
        let mut doubted = Doubted::default();
        for ((carrier, _), mut way) in ways {
            way.put = way.put.saturating_add(initial(carrier));
            if way.is_odd(capacity(carrier)) && doubted.0.insert(Reason::Carrier(carrier)) {
                self.report.doubted_objects += 1;
            }
        }
        self.doubt_waits(shared, &mut doubted);
        let mutexes =
            if shared.mutexes.is_empty() { BTreeSet::new() } else { self.unpaired_mutexes() };
        for mutex in mutexes {
            self.report.doubted_objects += 1;
            doubted.0.insert(Reason::Carrier(Carrier::Mutex(mutex)));
        }
        doubted.0.extend(self.doubtful_waits(shared, tasks).into_iter().map(Reason::Carrier));
        for edge in std::mem::take(&mut self.edges) {
            if doubted.contains(edge.reason) {
                self.tasks[edge.sleeper.index()].log.doubt_sleep(edge.slept_at);
                self.tasks[edge.waker.index()].log.doubt_waking(edge.woken_at);
            }
        }
        self.explain_waits(&doubted);
        doubted
    }
}

impl ReplayBuilder {
    /// The waits for several objects after which the task takes nothing from any of them: something
    /// else ended them, or what is not recorded. Of one object there is no doubt.
    fn doubt_waits(&mut self, shared: &Shared, doubted: &mut Doubted) {
        let set = |operation: Operation| {
            let epoll = match operation {
                Operation::Poll(epoll) => Some(epoll),
                Operation::Serve(serve) => shared.serves.get(serve as usize).map(|of| of.epoll),
                _ => None,
            };
            epoll.and_then(|epoll| shared.epolls.get(epoll as usize))
        };
        let is_sure = |operation: Operation, doubted: &Doubted| match (operation, set(operation)) {
            // An array of one object.
            (Operation::Poll(_), Some(Epoll { sources, events: 1, .. })) => sources
                .first()
                .is_some_and(|one| !doubted.contains(Reason::Carrier(carried_by(*one)))),
            _ => false,
        };
        let mut found = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let mut open: Option<(u32, Operation)> = None;
            for (place, _, deed) in task.log.places() {
                let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
                if matches!(operation, Operation::Serve(_) | Operation::Poll(_)) {
                    found.extend(open.take().map(|(place, _)| (index, place)));
                    open = Some((place, operation)).filter(|_| !is_sure(operation, doubted));
                } else if let Some((wait, of)) = open
                    && let Some(taken) = taken_from(operation)
                {
                    open = None;
                    let is_member = set(of).is_some_and(|set| set.sources.contains(&taken));
                    if !is_member || doubted.contains(Reason::Carrier(carried_by(taken))) {
                        found.push((index, wait));
                    }
                }
            }
            found.extend(open.map(|(place, _)| (index, place)));
        }
        self.report.doubted_waits += found.len() as u64;
        let wait = |(index, place): (usize, u32)| Reason::Wait(TaskId(index as u32), place);
        doubted.0.extend(found.into_iter().map(wait));
    }
}

/// Where an operation takes data from.
pub(super) fn taken_from(operation: Operation) -> Option<Watched> {
    Some(match operation {
        Operation::Read { pipe, .. } => Watched::Pipe(pipe),
        Operation::Receive { end, .. } => Watched::End(end),
        Operation::Take(eventfd) => Watched::Eventfd(eventfd),
        _ => return None,
    })
}

/// What an object with data is.
pub(super) fn carried_by(source: Watched) -> Carrier {
    match source {
        Watched::Pipe(pipe) => Carrier::Pipe(pipe),
        Watched::End(end) => Carrier::Pair(end / 2),
        Watched::Eventfd(eventfd) => Carrier::Eventfd(eventfd),
    }
}

/// The most bytes that a socket of one way holds unreceived, by the kernel's default limits.
const IN_A_SOCKET: u64 = 212_992;
