//! What happens once and stays so: a created task runs its program, the last writer of a pipe closes
//! it, a signal is sent.
//!
//! A call may wait for it before or after it has happened, so in a replay it is an event counter. The
//! task that brings it about, at the place in its log where it did, adds to the counter. Of a signal
//! each wait takes one; anything else stays open for all.
//!
//! Who closes an object last shows where a task slept until then. Where none did, it is the only task
//! that ever put data into it: at its first `close` after that, or with its end.

use super::ReplayBuilder;
use super::files::{Request, most_at_once};
use super::log::{Deed, Did};
use super::sleeps::{By, Sleep};
use super::within::Within;
use crate::workload::{Device, Epoll, Eventfd, Operation, Shared, Watched};
use crate::{TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Latch {
    /// A created task runs its own program, or has ended: its creator lent it its memory (`vfork`).
    Runs(TaskId),
    /// Nothing more comes from an object.
    Ends(Watched),
    /// Nothing more is taken from it.
    Breaks(Watched),
    /// A task has received a signal.
    Signals(TaskId),
    /// A child of a task has ended, whichever.
    Children(TaskId),
}

impl Latch {
    /// Whether each wait takes one of those that have happened.
    fn is_counted(self) -> bool {
        matches!(self, Latch::Signals(_) | Latch::Children(_))
    }
}

/// All latches, by number, and where they are opened.
#[derive(Debug, Default)]
pub(super) struct Latches {
    numbers: BTreeMap<Latch, u32>,
    all: Vec<Latch>,
    opened: Vec<Vec<(TaskId, u32)>>,
    /// How often each is waited for.
    waits: Vec<u32>,
    /// Tasks that their creators waited for without a choice: whichever ends first.
    reaped: BTreeMap<TaskId, u32>,
    /// By task and object: where the task closed it.
    closes: BTreeMap<(TaskId, Watched), Vec<u32>>,
}

impl Latches {
    fn number(&mut self, latch: Latch) -> u32 {
        let next = self.opened.len() as u32;
        let number = *self.numbers.entry(latch).or_insert(next);
        if number == next {
            self.all.push(latch);
            self.opened.push(Vec::new());
            self.waits.push(0);
        }
        number
    }

    /// Of a wait for the end of an object: the object.
    pub fn ended(&self, number: u32) -> Option<Watched> {
        match self.all.get(number as usize)? {
            Latch::Ends(object) => Some(*object),
            _ => None,
        }
    }

    /// Whether one wait is all that there is for it: then that one may take it.
    pub fn has_one_wait(&self, number: u32) -> bool {
        self.waits.get(number as usize) == Some(&1)
    }

    /// Whether it ever opens.
    pub fn opens(&self, number: u32) -> bool {
        self.opened.get(number as usize).is_some_and(|places| !places.is_empty())
    }
}

impl ReplayBuilder {
    /// Sleeps before a call that began at `since`: in no recorded call. One that the last created
    /// task ended is that of `vfork`. One that a softirq ended is a page fault.
    pub(super) fn before_call(&mut self, task: TaskId, since: Time) {
        let calls = &mut self.tasks[task.index()].calls;
        let forked = calls.forked;
        let began_before = |time: Time| since < time;
        if !forked.is_some_and(|(_, time)| began_before(time)) {
            calls.forked = None;
        }
        if calls.sleeps.iter().all(|sleep| sleep.is_on_object || sleep.start >= since)
            && calls.forked.is_none()
        {
            return;
        }
        let sleeps = std::mem::take(&mut calls.sleeps);
        let (mut rest, mut explained) = (Vec::new(), Vec::new());
        for sleep in sleeps {
            let is_outside = !sleep.is_on_object && sleep.start < since;
            let child = forked.filter(|(child, time)| {
                sleep.waker == *child
                    && sleep.by == By::Task
                    && sleep.start >= *time
                    && (is_outside || began_before(*time))
            });
            match child {
                Some((child, _)) => explained.push((sleep, Some(child))),
                None if is_outside && sleep.is_by_softirq => explained.push((sleep, None)),
                None if is_outside => {}
                None => rest.push(sleep),
            }
        }
        self.tasks[task.index()].calls.sleeps = rest;
        for (sleep, child) in explained {
            match child {
                Some(child) => self.wait_for(task, sleep, Latch::Runs(child), Did::Passed),
                None => {
                    self.explain(task, sleep, None);
                    self.paged.push(Request::of(&sleep));
                    self.did(task, sleep.at, Did::Paged(sleep.length));
                }
            }
        }
    }

    fn did(&mut self, task: TaskId, at: u32, did: Did) {
        self.report.operations += 1;
        if let Did::Passed(latch) = did {
            self.latches.waits[latch as usize] += 1;
        }
        self.tasks[task.index()].put(Deed::Called { at, did });
    }

    /// A task has waited for the end of any child, and it was this one's. In a replay it may be
    /// another's.
    pub(super) fn reaped(&mut self, task: TaskId, since: Time, child: TaskId) {
        let number = self.latches.number(Latch::Children(task));
        if self.latches.reaped.insert(child, number).is_none() {
            self.latches.opened[number as usize].push((child, u32::MAX));
            let mut at = u32::MAX;
            for sleep in std::mem::take(&mut self.tasks[task.index()].calls.sleeps) {
                if sleep.start >= since && sleep.waker != TaskId::NONE {
                    self.explain(task, sleep, None);
                    at = at.min(sleep.at);
                }
            }
            self.did(task, at, Did::Took(number));
        }
        self.tasks[task.index()].calls.clear();
    }

    /// A sleep was a wait for a latch, which its waker opened.
    fn wait_for(&mut self, task: TaskId, sleep: Sleep, latch: Latch, did: fn(u32) -> Did) {
        let number = self.latches.number(latch);
        let places = &mut self.latches.opened[number as usize];
        if latch.is_counted() || places.is_empty() {
            places.push((sleep.waker, sleep.woken_at));
        }
        self.explain(task, sleep, None);
        self.did(task, sleep.at, did(number));
    }

    /// A call is over because of a signal. The end of a task sends one to its parent.
    pub(super) fn signalled(&mut self, task: TaskId, since: Time) {
        let sleeps = std::mem::take(&mut self.tasks[task.index()].calls.sleeps);
        // Without a sleep it was sent before.
        let ended = self.tasks[task.index()].calls.ended.take();
        if !sleeps.iter().any(|sleep| sleep.start >= since)
            && let Some(child) = ended
        {
            self.did(task, u32::MAX, Did::Joined(child));
        }
        for sleep in sleeps {
            let is_by_task = matches!(sleep.by, By::Task | By::NoObject);
            if sleep.start < since || !is_by_task {
                continue;
            }
            let waker = &self.tasks[sleep.waker.index()];
            if waker.exits && waker.parent == task {
                self.explain(task, sleep, None);
                self.did(task, sleep.at, Did::Joined(sleep.waker));
            } else if waker.calls.traced {
                self.wait_for(task, sleep, Latch::Signals(task), Did::Took);
            } else {
                self.tasks[task.index()].log.is_within(sleep.at, Within::Process);
            }
        }
        self.tasks[task.index()].calls.clear();
    }

    /// A call has found the end of an object (`Latch::Ends`), or none that would take what it has
    /// (`Latch::Breaks`).
    pub(super) fn over(&mut self, task: TaskId, since: Time, latch: Latch) {
        let mut has_slept = false;
        for sleep in std::mem::take(&mut self.tasks[task.index()].calls.sleeps) {
            let is_by_last = match sleep.by {
                By::SameObject | By::NoObject => true,
                By::Softirq => matches!(latch, Latch::Ends(Watched::End(_))),
                _ => false,
            };
            let is_program = |waker: TaskId| self.tasks[waker.index()].calls.traced;
            if sleep.start < since {
                continue;
            }
            if is_by_last && !has_slept && is_program(sleep.waker) {
                has_slept = true;
                self.wait_for(task, sleep, latch, Did::Passed);
            } else {
                self.tasks[task.index()].log.is_within(sleep.at, Within::Carrier);
            }
        }
        self.tasks[task.index()].calls.clear();
        if !has_slept && matches!(latch, Latch::Ends(_)) {
            let number = self.latches.number(latch);
            self.did(task, u32::MAX, Did::Passed(number));
        }
    }

    /// A task has closed a descriptor of an object.
    pub(super) fn closed(&mut self, task: TaskId, object: Watched) {
        let at = self.tasks[task.index()].put(Deed::Ran { switches: 0 });
        self.latches.closes.entry((task, object)).or_default().push(at);
    }

    /// Finds out who opens the latches that no sleep has shown.
    pub(super) fn find_last_users(&mut self) {
        let mut open: BTreeMap<Watched, LastUser> = BTreeMap::new();
        for (latch, number) in &self.latches.numbers {
            if let Latch::Ends(object) = latch
                && !self.latches.opens(*number)
            {
                let latch = *number;
                open.insert(*object, LastUser { latch, last: None, has_several: false });
            }
        }
        if open.is_empty() {
            return;
        }
        for (task, state) in (0..).map(TaskId).zip(&self.tasks) {
            for (place, _, deed) in state.log.places() {
                let Deed::Called { did: Did::Operation(operation), .. } = deed else { continue };
                let Some(object) = put_into(operation) else { continue };
                if let Some(user) = open.get_mut(&object) {
                    user.has_several |= user.last.is_some_and(|(other, _)| other != task);
                    user.last = Some((task, place));
                }
            }
        }
        for (object, LastUser { latch: number, last, has_several }) in open {
            let Some((task, place)) = last.filter(|_| !has_several) else { continue };
            // Who has not ended may have it open still.
            let closes = self.latches.closes.get(&(task, object));
            let closed = closes.and_then(|all| all.iter().find(|at| **at > place)).copied();
            let state = &self.tasks[task.index()];
            if closed.is_some() || state.dead {
                self.latches.opened[number as usize].push((task, closed.unwrap_or(u32::MAX)));
            }
        }
    }
}

/// Who puts data into an object that ends.
struct LastUser {
    latch: u32,
    /// The last task, and where in its log.
    last: Option<(TaskId, u32)>,
    has_several: bool,
}

/// Where what an operation puts in can be taken from.
fn put_into(operation: Operation) -> Option<Watched> {
    match operation {
        Operation::Write { pipe, .. } => Some(Watched::Pipe(pipe)),
        Operation::Send { end, .. } => Some(Watched::End(end ^ 1)),
        _ => None,
    }
}

/// The latches as objects of the workload.
#[derive(Debug, Default)]
pub(super) struct Placed {
    places: Vec<Option<Place>>,
    /// By task: where it opens which counters.
    opened: BTreeMap<TaskId, Vec<(u32, u32)>>,
    /// By task that any wait of another may be for: that other, and the set of that wait.
    reaped: BTreeMap<TaskId, (TaskId, u32)>,
    /// What page faults wait for.
    pages: u32,
}

/// Where a latch is.
#[derive(Clone, Copy, Debug)]
struct Place {
    eventfd: u32,
    /// A set with it alone.
    epoll: u32,
    /// Whether its only wait takes it: a set that it is in is not ready for ever.
    is_taken: bool,
}

impl Placed {
    /// Adds the objects that the latches need. Sets with an object that ends have its end, too: it
    /// can be read.
    pub fn new(
        latches: &Latches,
        (paged, device): (&[Request], Option<u32>),
        shared: &mut Shared,
    ) -> Placed {
        let pages = device.unwrap_or(shared.devices.len() as u32);
        let mut placed = Placed { pages, ..Placed::default() };
        if !paged.is_empty() && device.is_none() {
            let channels = most_at_once(paged);
            let name = "page faults".to_string();
            shared.devices.push(Device { name, channels, interrupts: None });
        }
        let served: BTreeSet<u32> = shared.serves.iter().map(|serve| serve.epoll).collect();
        for (number, latch) in (0..).zip(latches.all.iter().copied()) {
            if !latches.opens(number) {
                placed.places.push(None);
                continue;
            }
            let name = match latch {
                Latch::Runs(task) => format!("program of task {}", task.0),
                Latch::Ends(object) => format!("end of {}", name_of(object, shared)),
                Latch::Breaks(object) => format!("no reader of {}", name_of(object, shared)),
                Latch::Signals(task) => format!("signals to task {}", task.0),
                Latch::Children(task) => format!("ended children of task {}", task.0),
            };
            let eventfd = shared.eventfds.len() as u32;
            let is_semaphore = latch.is_counted();
            shared.eventfds.push(Eventfd {
                name: name.clone(),
                is_semaphore,
                count: 0,
                wakes_one: false,
            });
            let mut is_taken = false;
            if let Latch::Ends(object) = latch {
                let has_one_wait = latches.has_one_wait(number);
                for (epoll, set) in (0..).zip(&mut shared.epolls) {
                    let is_served = served.contains(&epoll);
                    if set.has(object) && (!is_served || has_one_wait) {
                        is_taken |= is_served;
                        set.sources.push(Watched::Eventfd(eventfd).into());
                        // An array returns all.
                        set.events = set.events.saturating_add(u16::from(!is_served));
                    }
                }
            }
            let epoll = shared.epolls.len() as u32;
            let sources = vec![Watched::Eventfd(eventfd).into()];
            shared.epolls.push(Epoll { name, sources, events: 1 });
            placed.places.push(Some(Place { eventfd, epoll, is_taken }));
            for (task, at) in &latches.opened[number as usize] {
                placed.opened.entry(*task).or_default().push((*at, eventfd));
            }
        }
        for (child, latch) in &latches.reaped {
            if let Some(Latch::Children(parent)) = latches.all.get(*latch as usize)
                && let Some(place) = placed.place(*latch)
            {
                placed.reaped.insert(*child, (*parent, place.epoll));
            }
        }
        placed
    }

    fn place(&self, latch: u32) -> Option<Place> {
        self.places.get(latch as usize).copied().flatten()
    }

    /// The operation of a wait; `None` if what it waits for never comes, or is waited for elsewhere.
    pub fn wait(&self, did: Did) -> Option<Operation> {
        match did {
            Did::Passed(latch) => self.place(latch).map(|place| match place.is_taken {
                true => Operation::Take(place.eventfd),
                false => Operation::Poll(place.epoll),
            }),
            Did::Took(latch) => self.place(latch).map(|place| Operation::Take(place.eventfd)),
            Did::Paged(service) => Some(Operation::Io { device: self.pages, service }),
            _ => None,
        }
    }

    /// A wait of `by` for the end of `child`, if it waits for any of its children there. It is for
    /// one more that has ended, which it takes afterwards. Others wait for this end itself.
    pub fn join(&self, by: TaskId, child: TaskId) -> Option<Operation> {
        let (parent, epoll) = self.reaped.get(&child)?;
        (*parent == by).then_some(Operation::Poll(*epoll))
    }

    /// What a wait takes from.
    pub fn taken(&self, did: Did) -> Option<Watched> {
        match self.wait(did)? {
            Operation::Take(eventfd) => Some(Watched::Eventfd(eventfd)),
            _ => None,
        }
    }

    /// Adds what a task opens to its operations, in order.
    pub fn add(&self, task: TaskId, operations: &mut Vec<(u32, Did)>) {
        let Some(opened) = self.opened.get(&task) else { return };
        let posts = opened.iter().map(|(at, eventfd)| {
            (*at, Did::Operation(Operation::Post { eventfd: *eventfd, count: 1 }))
        });
        operations.extend(posts);
        operations.sort_by_key(|(at, _)| *at);
    }
}

/// The name of an object.
pub(super) fn name_of(object: Watched, shared: &Shared) -> String {
    let name = match object {
        Watched::Pipe(pipe) | Watched::PipeRoom(pipe) => {
            shared.pipes.get(pipe as usize).map(|pipe| &pipe.name)
        }
        Watched::End(end) | Watched::Room(end) => {
            shared.sockets.get(end as usize / 2).map(|pair| &pair.name)
        }
        Watched::Eventfd(eventfd) => shared.eventfds.get(eventfd as usize).map(|of| &of.name),
    };
    name.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that joins another does not compete with its parent, which takes the end of any
    /// child. One of the two would wait for ever.
    #[test]
    fn only_who_waits_for_any_child_waits_for_one_more() {
        let (parent, child, thread) = (TaskId(0), TaskId(1), TaskId(2));
        let mut latches = Latches::default();
        let number = latches.number(Latch::Children(parent));
        latches.opened[number as usize].push((child, u32::MAX));
        latches.reaped.insert(child, number);
        let mut shared = Shared::default();
        let placed = Placed::new(&latches, (&[], None), &mut shared);
        assert_eq!(placed.join(parent, child), Some(Operation::Poll(0)));
        assert_eq!(placed.wait(Did::Took(number)), Some(Operation::Take(0)));
        assert_eq!(placed.join(thread, child), None);
        assert_eq!(placed.join(parent, thread), None);
    }
}
