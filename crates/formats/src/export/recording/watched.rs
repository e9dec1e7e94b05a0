//! The sources of sets as `epoll_ctl` names them: an object with all that is wanted of it.

use ::recording::watch::{ADD, CHANGE, EDGE, EXCLUSIVE, IN, ONCE, OUT};
use schedsim::workload::{Source, Trigger, Watched};
use std::collections::BTreeMap;

/// What a task waits for at an object.
pub fn news(object: Watched) -> u32 {
    match object {
        Watched::PipeRoom(_) | Watched::Room(_) => OUT,
        Watched::Pipe(_) | Watched::End(_) | Watched::Eventfd(_) => IN,
    }
}

/// All sources by set and object: with what they are watched, and whether they are.
#[derive(Default)]
pub struct Sources(BTreeMap<(u32, Watched), (u32, bool)>);

impl Sources {
    /// A source is added to its set: events and operations of `epoll_ctl`.
    pub fn begin(&mut self, set: u32, source: &Source) -> Vec<(u32, u8)> {
        let trigger = match source.trigger {
            Trigger::Level => 0,
            Trigger::Edge | Trigger::Drained => EDGE,
            Trigger::Once => ONCE,
        };
        let shared = if source.is_exclusive { EXCLUSIVE } else { 0 };
        let events = news(source.object) | trigger | shared;
        self.0.insert((set, source.object), (events, true));
        let added = (events, ADD);
        match source.is_off {
            true => vec![added, self.change((set, source.object), false)],
            false => vec![added],
        }
    }

    /// A source is watched from now on, or is not. What is added does not change what was there; a
    /// change leaves what is wanted of the same object otherwise.
    pub fn change(&mut self, of: (u32, Watched), on: bool) -> (u32, u8) {
        let (set, object) = of;
        let Some((events, is_on)) = self.0.get_mut(&of) else { return (0, CHANGE) };
        *is_on = on;
        if on {
            return (*events, ADD);
        }
        let other = match object {
            Watched::Pipe(pipe) => Some(Watched::PipeRoom(pipe)),
            Watched::PipeRoom(pipe) => Some(Watched::Pipe(pipe)),
            Watched::End(end) => Some(Watched::Room(end)),
            Watched::Room(end) => Some(Watched::End(end)),
            Watched::Eventfd(_) => None,
        };
        let other = other.and_then(|other| self.0.get(&(set, other))).filter(|(_, on)| *on);
        (other.map_or(0, |(events, _)| *events), CHANGE)
    }
}
