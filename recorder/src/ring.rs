//! The last seconds of a recording, in memory, with all that is needed to read them.

use recording::{Event, What};
use std::collections::{BTreeMap, VecDeque};

/// The most objects that are remembered. The kernel's half knows a quarter of that at a time.
const OBJECTS: usize = 1 << 18;

/// Events of the last while, and names, objects, members of sets and settings from before.
pub struct Ring {
    length: u64,
    events: VecDeque<Event>,
    names: BTreeMap<u32, Event>,
    objects: BTreeMap<u64, Event>,
    members: BTreeMap<(u64, u64), Event>,
    settings: BTreeMap<(u32, u8), Event>,
    /// Objects that were forgotten because there were too many.
    pub forgotten: u64,
}

impl Ring {
    /// An empty one for `length` nanoseconds.
    pub fn new(length: u64) -> Ring {
        Ring {
            length,
            events: VecDeque::new(),
            names: BTreeMap::new(),
            objects: BTreeMap::new(),
            members: BTreeMap::new(),
            settings: BTreeMap::new(),
            forgotten: 0,
        }
    }

    /// When it begins, now.
    pub fn first(&self, now: u64) -> u64 {
        let oldest = self.events.front().map_or(now, |event| event.time);
        oldest.min(now).max(now.saturating_sub(self.length))
    }

    /// Takes events in order of time; what is older than the length by now is dropped, and passed
    /// to `dropped` unless it is needed later.
    pub fn push(&mut self, events: Vec<Event>, now: u64, mut dropped: impl FnMut(&Event)) {
        self.events.extend(events);
        let first = now.saturating_sub(self.length);
        while let Some(event) = self.events.pop_front_if(|event| event.time < first) {
            self.pass(event, &mut dropped);
        }
    }

    /// What was true before the first event, and the events.
    pub fn take(&mut self) -> (Vec<Event>, Vec<Event>) {
        let before = std::mem::take(&mut self.names).into_values();
        let before = before.chain(std::mem::take(&mut self.settings).into_values());
        let before = before.chain(std::mem::take(&mut self.objects).into_values());
        let before = before.chain(std::mem::take(&mut self.members).into_values());
        (before.collect(), std::mem::take(&mut self.events).into())
    }

    /// An event leaves the ring. It or what it replaces is dropped.
    fn pass(&mut self, event: Event, dropped: &mut impl FnMut(&Event)) {
        let replaced = match event.what {
            What::Task { .. } => self.names.insert(event.tid, event),
            What::Object { id, .. } => {
                let replaced = self.objects.insert(id, event);
                if self.objects.len() > OBJECTS
                    && let Some((_, oldest)) = self.objects.pop_first()
                {
                    self.forgotten += 1;
                    dropped(&oldest);
                }
                replaced
            }
            // An entry of epoll_ctl: added, removed, changed.
            What::Member { set, object, op: 1 | 3, .. } => {
                self.members.insert((set, object), event)
            }
            What::Member { set, object, op: 2, .. } => {
                self.members.remove(&(set, object)).iter().for_each(&mut *dropped);
                Some(event)
            }
            What::Setting { task, which, .. } => self.settings.insert((task, which), event),
            What::Exit { task, .. } => {
                self.names.remove(&task).iter().for_each(&mut *dropped);
                for which in 0..3 {
                    self.settings.remove(&(task, which)).iter().for_each(&mut *dropped);
                }
                Some(event)
            }
            _ => Some(event),
        };
        replaced.iter().for_each(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::Class;

    #[test]
    fn what_is_needed_to_read_the_last_while_outlives_it() {
        let at = |time: u64, tid: u32, what| Event { time, cpu: 0, context: 0, tid, what };
        let name = |text: &[u8; 16]| What::Task { comm: *text, tgid: 1 };
        let exit = What::Exit { task: 2, prio: 120 };
        let member = |object, op| What::Member { set: 5, object, events: 1, op };
        let object = What::Object { id: 5, class: Class::Epoll, inode: 1, peer: 0 };
        let (mut ring, mut dropped) = (Ring::new(100), Vec::new());
        let events = vec![
            at(1, 1, name(b"old             ")),
            at(2, 1, name(b"new             ")),
            at(3, 2, name(b"ended           ")),
            at(4, 1, object),
            at(5, 1, member(6, 1)),
            at(6, 1, member(7, 1)),
            at(7, 1, member(6, 2)),
            at(8, 2, exit),
            at(950, 1, exit),
        ];
        ring.push(events, 1000, |event| dropped.push(event.time));
        dropped.sort_unstable();
        assert_eq!(dropped, [1, 3, 5, 7, 8]);
        let (before, events) = ring.take();
        let times = |events: &[Event]| events.iter().map(|event| event.time).collect::<Vec<_>>();
        assert_eq!((times(&before), times(&events)), (vec![2, 4, 6], vec![950]));
    }
}
