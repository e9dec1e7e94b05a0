//! Sets of objects that tasks wait for together: those of `epoll`, and the arrays of `poll`.

use super::{Calls, Ended, Place, add};
use ::recording::Class::{InternetSocket, UnixSocket};
use ::recording::socket;
use ::recording::watch::{ADD, DELETE, EDGE, EXCLUSIVE, IN, ONCE, OUT};
use schedsim::workload::{Epoll, Operation, Serve, Shared, Source, Trigger, Watched};
use std::collections::{BTreeSet, HashMap};

/// The operation of an entry of `poll`, which is none of `epoll_ctl`.
const POLL: u8 = 0;
/// A wait for a set of which the recording does not say how much it returns.
const EVENTS: u16 = 64;
/// The result of a write for which there is no room: `EAGAIN`.
pub(super) const FULL: i64 = -11;

/// What a task waits for at an object: data, or room.
pub(super) type Wanted = (u64, Wants);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wants {
    Data,
    Room,
}

/// What a call of `epoll_ctl` changes.
#[derive(Clone, Copy)]
pub(super) struct Member {
    set: u64,
    object: u64,
    events: u32,
    op: u8,
}

/// All sets.
#[derive(Default)]
pub(super) struct Sets {
    /// By the set's object.
    of_epoll: HashMap<u64, Set>,
    /// By their objects: the arrays.
    arrays: HashMap<Vec<Wanted>, u32>,
    /// By object: a set that is edge-triggered when it has room.
    rooms: HashMap<u64, u64>,
}

/// A set of `epoll`.
#[derive(Default)]
struct Set {
    /// All that ever were in it, in order.
    members: Vec<Wanted>,
    states: HashMap<Wanted, State>,
    /// The most that a wait returns.
    events: u16,
    epoll: Option<u32>,
    /// The wait for it.
    serve: Option<u32>,
}

/// How a set watches an object.
#[derive(Clone, Copy)]
struct State {
    trigger: Trigger,
    is_exclusive: bool,
    /// Whether it was not watched at the beginning.
    is_off: bool,
    is_on: bool,
}

impl Calls {
    /// The call that begins names an object: one that it polls, or that a set gets.
    pub(super) fn joins(&mut self, tid: u32, (set, object): (u64, u64), (events, op): (u32, u8)) {
        if object == 0 {
            return;
        }
        let task = self.tasks.entry(tid).or_default();
        if op != POLL {
            let earlier = task.changed.replace(Member { set, object, events, op });
            earlier.and_then(|earlier| self.has_been(earlier));
        } else if set == 0 {
            let wants = [(IN, Wants::Data), (OUT, Wants::Room)];
            let wanted = wants.into_iter().filter(|(bit, _)| events & bit != 0);
            task.polled.extend(wanted.map(|(_, wants)| (object, wants)));
        }
    }

    /// A set had something before the recording began, or of its change only this was recorded.
    pub(super) fn has_been(&mut self, member: Member) -> Option<Member> {
        let is_simulated = self.is_simulated;
        let set = self.sets.of_epoll.entry(member.set).or_default();
        for wants in [Wants::Data, Wants::Room] {
            let of = (member.object, wants);
            let Some(on) = member.says(wants) else { continue };
            if on || set.states.contains_key(&of) {
                let is_edge = member.is_edge(wants, is_simulated);
                let state = set.join(member, of, on.then(|| member.trigger(wants, is_simulated)));
                (state.is_off, state.is_on) = (!on || is_edge, on && !is_edge);
                if is_edge {
                    self.sets.rooms.insert(member.object, member.set);
                }
            }
        }
        None
    }

    /// A call of `epoll_ctl` ends. What is read is watched from the beginning, as nothing comes before
    /// it is; room is there before, so each change of that counts.
    pub(super) fn changes(&mut self, call: &Ended, member: Member) -> Option<Operation> {
        if call.result < 0 {
            return None;
        }
        let is_simulated = self.is_simulated;
        let set = self.sets.of_epoll.entry(member.set).or_default();
        let mut change = None;
        for wants in [Wants::Data, Wants::Room] {
            let of = (member.object, wants);
            let Some(on) = member.says(wants) else { continue };
            let is_room = wants == Wants::Room;
            let is_new = !set.states.contains_key(&of);
            if is_new && !on {
                continue;
            }
            let state = set.join(member, of, on.then(|| member.trigger(wants, is_simulated)));
            if is_new {
                (state.is_off, state.is_on) = (is_room, !is_room);
            }
            if member.is_edge(wants, is_simulated) {
                self.sets.rooms.insert(member.object, member.set);
                continue;
            }
            // It hears again of what is ready.
            let is_again = on && !is_new && state.trigger != Trigger::Level;
            if on != state.is_on || is_again {
                // One change for each call: that of room counts.
                if is_room || change.is_none() {
                    change = Some((of, on));
                }
            }
        }
        let ((object, wants), on) = change?;
        let set = self.sets.of_epoll.get_mut(&member.set)?;
        set.states.get_mut(&(object, wants))?.is_on = on;
        self.watch(member.set, (object, wants), on)
    }

    /// A write has found no room, and a set is to say when there is some.
    pub(super) fn wants_room(&mut self, call: &Ended) -> Option<Operation> {
        let set = *self.sets.rooms.get(&call.object)?;
        self.watch(set, (call.object, Wants::Room), true)
    }

    fn watch(&mut self, set: u64, of: Wanted, on: bool) -> Option<Operation> {
        self.carrier(of.0)?;
        let object = self.watched(of)?;
        self.epoll(set).map(|epoll| Operation::Watch { epoll, object, on })
    }

    /// A poll has found something.
    pub(super) fn polls(&mut self, call: &Ended, mut objects: Vec<Wanted>) -> Option<Operation> {
        if call.result <= 0 || objects.is_empty() {
            return None;
        }
        let mut seen = std::collections::HashSet::new();
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
        if let Some(serve) = set.serve {
            return Some(Operation::Serve(serve));
        }
        let epoll = self.epoll(call.object)?;
        let new = Serve { epoll, handlers: Vec::new(), after: 0, rounds: None };
        let serve = add(&mut self.shared.serves, new)?;
        self.sets.of_epoll.get_mut(&call.object)?.serve = Some(serve);
        Some(Operation::Serve(serve))
    }

    /// The number of a set of `epoll`.
    fn epoll(&mut self, object: u64) -> Option<u32> {
        let set = self.sets.of_epoll.get_mut(&object)?;
        if set.epoll.is_none() {
            let name = format!("epoll set {object}");
            let new = Epoll { name, sources: Vec::new(), events: EVENTS };
            set.epoll = add(&mut self.shared.epolls, new);
        }
        set.epoll
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

    /// What a task waits for at an object that has a place.
    fn watched(&self, (object, wants): Wanted) -> Option<Watched> {
        Some(match (self.place_of(object)?, wants) {
            (Place::Pipe(pipe), Wants::Data) => Watched::Pipe(pipe),
            (Place::Pipe(pipe), Wants::Room) => Watched::PipeRoom(pipe),
            (Place::End(end), Wants::Data) => Watched::End(end),
            (Place::End(end), Wants::Room) => Watched::Room(end),
            (Place::Eventfd(eventfd), Wants::Data) => Watched::Eventfd(eventfd),
            _ => return None,
        })
    }

    /// The objects of all operations. What a set has in it is known at the end only; what carried
    /// nothing is never ready.
    pub fn finish(&mut self) -> Shared {
        let open: Vec<Member> =
            self.tasks.values_mut().filter_map(|task| task.changed.take()).collect();
        for member in open {
            self.has_been(member);
        }
        let mut shared = std::mem::take(&mut self.shared);
        // Two objects may turn out to be one: an array that has both ends of a pipe in it.
        let once = |sources: &mut dyn Iterator<Item = Source>| {
            let mut seen = BTreeSet::new();
            sources.filter(|source| seen.insert(source.object)).collect::<Vec<Source>>()
        };
        for set in self.sets.of_epoll.values() {
            let Some(epoll) = set.epoll.and_then(|at| shared.epolls.get_mut(at as usize)) else {
                continue;
            };
            let source = |of: &Wanted| {
                let (object, state) = (self.watched(*of)?, set.states.get(of)?);
                let State { trigger, is_exclusive, is_off, .. } = *state;
                // Of pipes that is not simulated.
                let is_pipe = matches!(object, Watched::Pipe(_) | Watched::PipeRoom(_));
                let is_exclusive = is_exclusive && !is_off && trigger != Trigger::Once && !is_pipe;
                Some(Source { object, trigger, is_exclusive, is_off })
            };
            epoll.sources = once(&mut set.members.iter().filter_map(source));
            epoll.events = if set.events > 0 { set.events } else { EVENTS };
        }
        for (objects, place) in &self.sets.arrays {
            if let Some(epoll) = shared.epolls.get_mut(*place as usize) {
                let sources = objects.iter().filter_map(|of| self.watched(*of).map(Source::from));
                epoll.sources = once(&mut { sources });
            }
        }
        shared
    }
}

impl Member {
    /// Whether it is watched for this from now on; `None` if that does not change.
    fn says(&self, wants: Wants) -> Option<bool> {
        let bit = if wants == Wants::Room { OUT } else { IN };
        match (self.op, self.events & bit != 0) {
            // What is deleted and has data is closed, or added again before anybody waits.
            (DELETE, _) => (wants == Wants::Room).then_some(false),
            (ADD, false) => None,
            (_, on) => Some(on),
        }
    }

    /// Whether a real program waits for an edge of room: it does when a write has found none.
    fn is_edge(&self, wants: Wants, is_simulated: bool) -> bool {
        wants == Wants::Room && self.events & EDGE != 0 && !is_simulated
    }

    fn trigger(&self, wants: Wants, is_simulated: bool) -> Trigger {
        match (self.events & ONCE != 0, self.events & EDGE != 0) {
            (true, _) => Trigger::Once,
            (false, false) => Trigger::Level,
            _ if self.is_edge(wants, is_simulated) => Trigger::Once,
            // The recording has what the program took: all that there was.
            _ if wants == Wants::Data => Trigger::Drained,
            _ => Trigger::Edge,
        }
    }
}

impl Set {
    /// The state of a member. `trigger` is how it is watched from now on, if it is.
    fn join(&mut self, member: Member, of: Wanted, trigger: Option<Trigger>) -> &mut State {
        let members = &mut self.members;
        let state = self.states.entry(of).or_insert_with(|| {
            members.push(of);
            State { trigger: Trigger::Level, is_exclusive: false, is_off: false, is_on: true }
        });
        if let Some(trigger) = trigger.filter(|trigger| *trigger != Trigger::Level) {
            state.trigger = trigger;
        }
        state.is_exclusive |= trigger.is_some() && member.events & EXCLUSIVE != 0;
        state
    }
}
