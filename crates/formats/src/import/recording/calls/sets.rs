//! Sets of objects that tasks wait for together: those of `epoll`, and the arrays of `poll`.

use super::{Calls, Ended, Place, add};
use ::recording::Class::{InternetSocket, UnixSocket};
use ::recording::socket;
use schedsim::workload::{Epoll, Operation, Serve, Shared, Watched};
use std::collections::HashMap;

/// `POLLIN` and `EPOLLIN`.
const IN: u32 = 1;
/// Operations of `epoll_ctl` beside its changes.
const POLL: u8 = 0;
const ADD: u8 = 1;
const DELETE: u8 = 2;
/// A wait for a set of which the recording does not say how much it returns.
const EVENTS: u16 = 64;

/// All sets.
#[derive(Default)]
pub(super) struct Sets {
    /// By the set's object.
    of_epoll: HashMap<u64, Set>,
    /// By their objects: the arrays.
    arrays: HashMap<Vec<u64>, u32>,
}

/// A set of `epoll`.
#[derive(Default)]
struct Set {
    /// All that ever were in it, in order.
    members: Vec<u64>,
    /// The most that a wait returns.
    events: u16,
    /// Its number and that of the wait for it.
    place: Option<(u32, u32)>,
}

impl Calls {
    /// The call that begins names an object: one that it polls, or that a set gets.
    pub(super) fn joins(&mut self, tid: u32, (set, object): (u64, u64), (events, op): (u32, u8)) {
        if events & IN == 0 && op != DELETE || object == 0 {
            return;
        }
        match op {
            POLL if set == 0 => self.tasks.entry(tid).or_default().polled.push(object),
            POLL | DELETE => {}
            // A change (3) may be the first time that it wants to read.
            ADD.. => {
                let members = &mut self.sets.of_epoll.entry(set).or_default().members;
                if !members.contains(&object) {
                    members.push(object);
                }
            }
        }
    }

    /// A poll has found something.
    pub(super) fn polls(&mut self, call: &Ended, mut objects: Vec<u64>) -> Option<Operation> {
        if call.result <= 0 || objects.is_empty() {
            return None;
        }
        let mut seen = std::collections::BTreeSet::new();
        objects.retain(|object| seen.insert(*object));
        if let Some(&known) = self.sets.arrays.get(&objects) {
            return Some(Operation::Poll(known));
        }
        let name = format!("array {}", self.sets.arrays.len());
        let events = u16::try_from(objects.len()).unwrap_or(u16::MAX);
        let set = add(&mut self.shared.epolls, Epoll { name, sources: Vec::new(), events })?;
        self.sets.arrays.insert(objects, set);
        Some(Operation::Poll(set))
    }

    /// A wait for a set has found something.
    pub(super) fn waits(&mut self, call: &Ended) -> Option<Operation> {
        if call.result <= 0 {
            return None;
        }
        let set = self.sets.of_epoll.get_mut(&call.object)?;
        set.events = set.events.max(call.op);
        if let Some((_, serve)) = set.place {
            return Some(Operation::Serve(serve));
        }
        let name = format!("epoll set {}", call.object);
        let new = Epoll { name, sources: Vec::new(), events: EVENTS };
        let epoll = add(&mut self.shared.epolls, new)?;
        let new = Serve { epoll, handlers: Vec::new(), after: 0, rounds: None };
        let serve = add(&mut self.shared.serves, new)?;
        set.place = Some((epoll, serve));
        Some(Operation::Serve(serve))
    }

    /// Where an object is, though nothing was read from it: where the other end of its pair is.
    fn place_of(&self, object: u64) -> Option<Place> {
        let object = self.objects.get(&object)?;
        object.place.or_else(|| match self.objects.get(&(object.peer & !socket::TYPE))?.place? {
            Place::End(end) if matches!(object.class, UnixSocket | InternetSocket) => {
                Some(Place::End(end ^ 1))
            }
            _ => None,
        })
    }

    /// The objects of all operations. What a set has in it is known at the end only; what carried
    /// nothing is never ready.
    pub fn finish(&mut self) -> Shared {
        let mut shared = std::mem::take(&mut self.shared);
        let sources = |members: &[u64]| -> Vec<Watched> {
            let watched = |member: &u64| match self.place_of(*member)? {
                Place::Pipe(pipe) => Some(Watched::Pipe(pipe)),
                Place::End(end) => Some(Watched::End(end)),
                Place::Eventfd(eventfd) => Some(Watched::Eventfd(eventfd)),
                _ => None,
            };
            members.iter().filter_map(watched).collect()
        };
        for set in self.sets.of_epoll.values() {
            let Some((place, _)) = set.place else { continue };
            if let Some(epoll) = shared.epolls.get_mut(place as usize) {
                epoll.sources = sources(&set.members);
                epoll.events = if set.events > 0 { set.events } else { EVENTS };
            }
        }
        for (objects, place) in &self.sets.arrays {
            if let Some(epoll) = shared.epolls.get_mut(*place as usize) {
                epoll.sources = sources(objects);
            }
        }
        shared
    }
}
