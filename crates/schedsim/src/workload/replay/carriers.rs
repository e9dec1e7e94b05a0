//! Which objects carried what they should have.
//!
//! A pipe, a pair of sockets or an event counter explains sleeps only if the recording has both
//! sides of it. A task that reads more than was written has another source. What is never read goes
//! to a task that was not recorded, and would fill the buffer. Likewise a mutex explains sleeps
//! only if every task that unlocks it has locked it.

use super::ReplayBuilder;
use super::log::{Deed, Did};
use super::monitors::Monitors;
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
    /// The ends of a range of tasks.
    Ends(u32),
}

/// Of a hundred uses of an object, this many tokens that tasks wait for between them are given up.
const MOST_GIVEN_UP: usize = 1;

/// What explains a sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reason {
    Carrier(Carrier),
    /// The wait of a task for several objects, by its place in the log.
    Wait(TaskId, u32),
}

/// A sleep and the waking that ended it, explained by what an object has in it. An interrupt is no
/// task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub reason: Reason,
    pub sleeper: TaskId,
    pub slept_at: u32,
    pub waker: TaskId,
    pub woken_at: u32,
}

/// A token for which a task waits: `number` counts those of this waker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Token {
    sleeper: TaskId,
    place: u32,
    waker: TaskId,
    number: usize,
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
        Did::Operation(Operation::Join(range)) => Some(Carrier::Ends(range)),
        Did::Operation(Operation::Watch { object, .. }) => Some(carried_by(object)),
        Did::Operation(operation) => carrier(operation),
        Did::Joined(task) => Some(Carrier::End(task)),
        Did::Yield | Did::Passed(_) | Did::Took(_) | Did::Paged(_) => None,
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

/// The room that an operation needs which puts data into a carrier.
pub(super) fn room_for(operation: Operation) -> Option<Watched> {
    match operation {
        Operation::Write { pipe, .. } => Some(Watched::PipeRoom(pipe)),
        Operation::Send { end, .. } => Some(Watched::Room(end)),
        _ => None,
    }
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

/// Who uses a carrier one way, and how.
#[derive(Debug, Default)]
struct Users {
    way: Way,
    /// The size of all that was put in, if it was always the same.
    size: Option<u64>,
    sizes_differ: bool,
    /// Where in its log each task first and last took something, or put something in.
    takers: BTreeMap<TaskId, (u32, u32)>,
    putters: BTreeMap<TaskId, (u32, u32)>,
    /// How often it is used.
    times: usize,
}

impl Users {
    fn add(&mut self, task: TaskId, place: u32, operation: Operation) {
        self.way.add(operation);
        self.times += 1;
        let users = if taken_from(operation).is_some() {
            &mut self.takers
        } else {
            if let Operation::Write { bytes, .. } | Operation::Send { bytes, .. } = operation {
                self.sizes_differ |= self.size.is_some_and(|size| size != bytes);
                self.size = Some(bytes);
            }
            &mut self.putters
        };
        users.entry(task).or_insert((place, place)).1 = place;
    }

    /// Whether who takes what depends on the order of several tasks, so that in another order one
    /// may wait for what another has.
    fn depends_on_order(&self) -> bool {
        self.takers.len() > 1 || self.putters.len() > 1 && self.sizes_differ
    }
}

impl ReplayBuilder {
    /// The carriers of which the recording does not have both sides, and those whose order is that
    /// of tokens.
    pub(super) fn doubt(
        &mut self,
        shared: &Shared,
        tasks: &[TaskInfo],
        monitors: &Monitors,
    ) -> Doubted {
        let mut all: BTreeMap<(Carrier, u32), Users> = BTreeMap::new();
        for (task, state) in (0..).map(TaskId).zip(&self.tasks) {
            for (place, _, deed) in state.log.places() {
                let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
                for operation in monitors.done(task, place, operation) {
                    let Some(carrier) = carrier(operation) else { continue };
                    let way = match operation {
                        Operation::Send { end, .. } => end & 1,
                        Operation::Receive { end, .. } => end & 1 ^ 1,
                        _ => 0,
                    };
                    all.entry((carrier, way)).or_default().add(task, place, operation);
                }
            }
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
        for ((carrier, _), users) in &all {
            let mut way = users.way;
            way.put = way.put.saturating_add(initial(*carrier));
            if way.is_odd(capacity(*carrier)) && doubted.0.insert(Reason::Carrier(*carrier)) {
                self.report.doubted_objects += 1;
            }
        }
        let mutexes =
            if shared.mutexes.is_empty() { BTreeSet::new() } else { self.unpaired_mutexes() };
        let endless = self.endless(shared);
        let mutexes = mutexes.iter().chain(&monitors.doubted_mutexes).copied().map(Carrier::Mutex);
        let counters = monitors.doubted.iter().copied().map(Carrier::Eventfd);
        for carrier in mutexes.chain(counters).chain(endless.into_iter().map(Carrier::Ends)) {
            let is_new = doubted.0.insert(Reason::Carrier(carrier));
            self.report.doubted_objects += u64::from(is_new);
        }
        doubted.0.extend(self.doubtful_waits(shared, tasks).into_iter().map(Reason::Carrier));
        self.explain_waits(&doubted);
        all.retain(|_, users| users.depends_on_order());
        loop {
            self.doubt_waits(shared, &mut doubted);
            self.doubt_edges(&doubted);
            if !self.doubt_ordered(&all, &mut doubted) {
                return doubted;
            }
        }
    }

    /// Takes back what the doubted explained.
    fn doubt_edges(&mut self, doubted: &Doubted) {
        let tasks = &mut self.tasks;
        self.edges.retain(|edge| {
            let is_doubted = doubted.contains(edge.reason);
            if is_doubted {
                tasks[edge.sleeper.index()].log.doubt_sleep(edge.slept_at);
                if let Some(waker) = tasks.get_mut(edge.waker.index()) {
                    waker.log.doubt_waking(edge.woken_at);
                }
            }
            !is_doubted
        });
    }

    /// Doubts the carriers whose users wait for tokens while they use them. Tokens keep the
    /// recorded order, and in any other one tasks might wait for each other. A few tokens among
    /// many uses are given up instead: the task pauses as long as it did. Whether there are any.
    fn doubt_ordered(
        &mut self,
        ordered: &BTreeMap<(Carrier, u32), Users>,
        doubted: &mut Doubted,
    ) -> bool {
        let mut of_tasks: BTreeMap<TaskId, Vec<Token>> = BTreeMap::new();
        let (mut found, mut given_up) = (BTreeSet::new(), BTreeSet::new());
        for ((carrier, _), users) in ordered {
            if doubted.contains(Reason::Carrier(*carrier)) {
                continue;
            }
            let mut tokens: BTreeSet<Token> = BTreeSet::new();
            for (task, (first, last)) in users.takers.iter().chain(&users.putters) {
                let all = of_tasks.entry(*task).or_insert_with(|| self.tokens(*task));
                let begin = all.partition_point(|token| token.place < *first);
                tokens.extend(all[begin..].iter().take_while(|token| token.place <= *last));
            }
            if tokens.len() * 100 > users.times * MOST_GIVEN_UP {
                found.insert(Reason::Carrier(*carrier));
            } else {
                given_up.extend(tokens);
            }
        }
        self.give_up(&given_up);
        self.report.ordered_objects += found.len() as u64;
        let is_new = !found.is_empty();
        doubted.0.extend(found);
        is_new
    }

    /// The tokens for which a task waits, in order.
    fn tokens(&self, sleeper: TaskId) -> Vec<Token> {
        let mut earlier: BTreeMap<TaskId, usize> = BTreeMap::new();
        let places = self.tasks[sleeper.index()].log.places();
        let token = |(place, _, deed)| match deed {
            Deed::Slept { waker, .. } if waker != TaskId::NONE => {
                let number = earlier.entry(waker).or_default();
                *number += 1;
                Some(Token { sleeper, place, waker, number: *number })
            }
            _ => None,
        };
        places.filter_map(token).collect()
    }

    /// Waits for tokens become pauses, and their wakings nothing.
    fn give_up(&mut self, tokens: &BTreeSet<Token>) {
        let mut of_wakers: BTreeMap<TaskId, BTreeMap<(TaskId, usize), u32>> = BTreeMap::new();
        for Token { sleeper, place, waker, number } in tokens {
            of_wakers.entry(*waker).or_default().insert((*sleeper, *number), *place);
        }
        for (waker, tokens) in of_wakers {
            let mut numbers: BTreeMap<TaskId, usize> = BTreeMap::new();
            let mut found = Vec::new();
            for (woken_at, _, deed) in self.tasks[waker.index()].log.places() {
                let Deed::Woke { task, .. } = deed else { continue };
                let number = numbers.entry(task).or_default();
                *number += 1;
                found.extend(tokens.get(&(task, *number)).map(|place| (woken_at, task, *place)));
            }
            for (woken_at, sleeper, slept_at) in found {
                self.tasks[waker.index()].log.forget_waking(woken_at);
                self.tasks[sleeper.index()].log.name_waker(slept_at, TaskId::NONE);
            }
        }
    }

    /// The waits for several objects after which the task takes nothing from any of them. Nor does
    /// it put anything into one with room that it waits for. Another event ended them, or one that
    /// is not recorded. Of one object there is no doubt.
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
                .is_some_and(|one| !doubted.contains(Reason::Carrier(carried_by(one.object)))),
            _ => false,
        };
        let (mut found, mut waits) = (Vec::new(), Vec::new());
        for (index, task) in self.tasks.iter().enumerate() {
            let mut open: Option<(u32, Operation)> = None;
            for (place, _, deed) in task.log.places() {
                let Deed::Called { did, .. } = deed else { continue };
                if doubted.contains(Reason::Wait(TaskId(index as u32), place)) {
                    continue;
                }
                if let Did::Operation(wait @ (Operation::Serve(_) | Operation::Poll(_))) = did {
                    found.extend(open.take().filter(|of| !is_sure(of.1, doubted)));
                    open = Some((place, wait));
                    continue;
                }
                let Some((_, of)) = open else { continue };
                let room = |operation| {
                    room_for(operation).filter(|room| set(of).is_some_and(|set| set.has(*room)))
                };
                let (taken, is_data) = match did {
                    Did::Operation(operation) => {
                        (taken_from(operation).or_else(|| room(operation)), true)
                    }
                    Did::Passed(latch) => (self.latches.ended(latch), false),
                    _ => continue,
                };
                let Some(taken) = taken else { continue };
                let is_member = set(of).is_some_and(|set| set.has(taken));
                let is_known = is_member && !doubted.contains(Reason::Carrier(carried_by(taken)));
                let explains = match (is_data, did, of) {
                    (false, Did::Passed(latch), of) => {
                        let is_array = matches!(of, Operation::Poll(_));
                        is_member
                            && self.latches.opens(latch)
                            && (is_array || self.latches.has_one_wait(latch))
                    }
                    (false, ..) => false,
                    (true, ..) => is_known || is_sure(of, doubted),
                };
                let wait = open.take();
                found.extend(wait.filter(|_| !explains));
            }
            found.extend(open.filter(|of| !is_sure(of.1, doubted)));
            let index = index as u32;
            waits.extend(found.drain(..).map(|(place, _)| Reason::Wait(TaskId(index), place)));
        }
        self.report.doubted_waits += waits.len() as u64;
        doubted.0.extend(waits);
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

/// What an object of a set is.
pub(super) fn carried_by(source: Watched) -> Carrier {
    match source {
        Watched::Pipe(pipe) | Watched::PipeRoom(pipe) => Carrier::Pipe(pipe),
        Watched::End(end) | Watched::Room(end) => Carrier::Pair(end / 2),
        Watched::Eventfd(eventfd) => Carrier::Eventfd(eventfd),
    }
}

/// The most bytes that a socket of one way holds unreceived, by the kernel's default limits.
const IN_A_SOCKET: u64 = 212_992;
