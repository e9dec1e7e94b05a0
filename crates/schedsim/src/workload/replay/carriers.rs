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
use crate::workload::{Operation, Shared, Until};
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
    /// The ends of a range of tasks.
    Ends(u32),
}

/// A sleep and the waking that ended it, explained by what a carrier has in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub carrier: Carrier,
    pub sleeper: TaskId,
    pub slept_at: u32,
    pub waker: TaskId,
    pub woken_at: u32,
}

/// The carriers that explain nothing.
#[derive(Debug, Default)]
pub(super) struct Doubted(BTreeSet<Carrier>);

impl Doubted {
    pub fn contains(&self, carrier: Carrier) -> bool {
        self.0.contains(&carrier)
    }
}

/// The object that an operation needs.
pub(super) fn carrier(did: Did) -> Option<Carrier> {
    let operation = match did {
        Did::Operation(operation) => operation,
        Did::Joined(task) => return Some(Carrier::End(task)),
        Did::Yield => return None,
    };
    Some(match operation {
        Operation::Lock(mutex) | Operation::Unlock(mutex) | Operation::Await { mutex, .. } => {
            Carrier::Mutex(mutex)
        }
        Operation::Arrive(barrier) => Carrier::Barrier(barrier),
        Operation::Join(range) => Carrier::Ends(range),
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
            let Deed::Called { did: did @ Did::Operation(operation), .. } = deed else { continue };
            let Some(carrier) = carrier(did) else { continue };
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
        let mut doubted = BTreeSet::new();
        for ((carrier, _), mut way) in ways {
            way.put = way.put.saturating_add(initial(carrier));
            if way.is_odd(capacity(carrier)) && doubted.insert(carrier) {
                self.report.doubted_objects += 1;
            }
        }
        let mutexes =
            if shared.mutexes.is_empty() { BTreeSet::new() } else { self.unpaired_mutexes() };
        for mutex in mutexes {
            self.report.doubted_objects += 1;
            doubted.insert(Carrier::Mutex(mutex));
        }
        for range in self.endless(shared) {
            self.report.doubted_objects += 1;
            doubted.insert(Carrier::Ends(range));
        }
        doubted.extend(self.doubtful_waits(shared, tasks));
        let doubted = Doubted(doubted);
        for edge in std::mem::take(&mut self.edges) {
            if doubted.contains(edge.carrier) {
                self.tasks[edge.sleeper.index()].log.doubt_sleep(edge.slept_at);
                self.tasks[edge.waker.index()].log.doubt_waking(edge.woken_at);
            }
        }
        self.explain_waits(&doubted);
        doubted
    }
}

/// The most bytes that a socket of one way holds unreceived, by the kernel's default limits.
const IN_A_SOCKET: u64 = 212_992;
