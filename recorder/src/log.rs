//! Events on their way into the file: in order, and counted.

use crate::ring::Ring;
use recording::{Counts, Event, RECORDER, What, Writer};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// How long an event may be on its way, from its time to its place in the buffer.
const SLACK: u64 = 5_000_000;

/// Events that are not written yet, and what was counted.
#[derive(Default)]
pub struct Log {
    waiting: Vec<Event>,
    /// When the recording began; nothing is kept before.
    start: Option<u64>,
    latest: u64,
    late: u64,
    unknown: u64,
    written: [u64; 16],
    discarded: [u64; 16],
    /// Events of the log's own: names at the beginning.
    own: [u64; 16],
    /// Which task runs on each CPU, by its latest switch.
    running: BTreeMap<u16, u32>,
    /// Switches that did not come: by the task that left a CPU unseen.
    unseen: BTreeMap<u32, u64>,
    /// The last while, if only that is wanted.
    ring: Option<Ring>,
    /// The number of each name, if names are hidden.
    hidden: Option<BTreeMap<[u8; 16], usize>>,
}

impl Log {
    /// An empty one, which has `program-N` for the names of tasks if they are to be hidden.
    pub fn new(hide_names: bool) -> Log {
        Log { hidden: hide_names.then(BTreeMap::new), ..Log::default() }
    }

    /// The same, which keeps the last `length` nanoseconds until [`Log::save`].
    pub fn of_the_last(length: u64, hide_names: bool) -> Log {
        Log { ring: Some(Ring::new(length)), ..Log::new(hide_names) }
    }

    /// Takes an event from the buffer.
    pub fn take(&mut self, bytes: &[u8]) {
        match bytes.try_into().ok().and_then(Event::parse) {
            Some(event) => {
                let event = self.named(event);
                self.waiting.push(event);
            }
            None => self.unknown += 1,
        }
    }

    /// Begins: what was before is discarded, but for names.
    pub fn begin(&mut self, start: u64, tasks: Vec<Event>) {
        self.start = Some(start);
        tasks.iter().for_each(|task| self.own[usize::from(task.what.kind())] += 1);
        // A name of an event is newer than one of the list.
        let tasks = tasks.into_iter().map(|task| self.named(task)).collect();
        let events = std::mem::replace(&mut self.waiting, tasks);
        self.waiting.extend(events);
    }

    /// The event without a name, if names are hidden. Tasks of one name still have one name.
    fn named(&mut self, mut event: Event) -> Event {
        if let (Some(hidden), What::Task { comm, .. }) = (&mut self.hidden, &mut event.what)
            && !comm.starts_with(RECORDER.as_bytes())
        {
            let next = hidden.len() + 1;
            let number = *hidden.entry(*comm).or_insert(next);
            *comm = [0; 16];
            let name = format!("program-{number}");
            comm.iter_mut().zip(name.bytes().take(15)).for_each(|(place, byte)| *place = byte);
        }
        event
    }

    /// Writes, in order of time, all that is older than `until` by the slack.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write<W: Write>(&mut self, until: u64, writer: &mut Writer<W>) -> io::Result<()> {
        let events = self.ordered(until);
        self.put(&events, writer)
    }

    /// Keeps the same in the ring, and drops what is too old by now.
    pub fn keep(&mut self, until: u64, now: u64) {
        let events = self.ordered(until);
        let (ring, discarded) = (&mut self.ring, &mut self.discarded);
        if let Some(ring) = ring {
            ring.push(events, now, |event| discarded[usize::from(event.what.kind())] += 1);
        }
    }

    /// When the ring begins.
    pub fn first(&self, now: u64) -> u64 {
        let start = self.start.unwrap_or(0);
        self.ring.as_ref().map_or(start, |ring| ring.first(now).max(start))
    }

    /// Writes the ring, as if the recording had begun with its first event.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save<W: Write>(&mut self, first: u64, writer: &mut Writer<W>) -> io::Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let (mut before, events) = ring.take();
        before.iter_mut().for_each(|event| event.time = first);
        self.put(&before, writer)?;
        self.put(&events, writer)
    }

    fn put<W: Write>(&mut self, events: &[Event], writer: &mut Writer<W>) -> io::Result<()> {
        for event in events {
            self.written[usize::from(event.what.kind())] += 1;
        }
        if events.is_empty() { Ok(()) } else { writer.events(events) }
    }

    /// All that is older than `until` by the slack, in order of time.
    fn ordered(&mut self, until: u64) -> Vec<Event> {
        let start = self.start.unwrap_or(0);
        for event in &mut self.waiting {
            if matches!(event.what, What::Task { .. } | What::Object { .. }) {
                event.time = event.time.max(start);
            }
        }
        let discarded = &mut self.discarded;
        self.waiting.retain(|event| {
            let before = event.time < start;
            discarded[usize::from(event.what.kind())] += u64::from(before);
            !before
        });
        self.waiting.sort_by_key(|event| event.time);
        let until = if until == u64::MAX { until } else { until.saturating_sub(SLACK) };
        let count = self.waiting.partition_point(|event| event.time <= until);
        let mut events: Vec<Event> = self.waiting.drain(..count).collect();
        for event in &mut events {
            self.late += u64::from(event.time < self.latest);
            event.time = event.time.max(self.latest);
            self.latest = event.time;
            if let What::Switch { next, .. } = event.what {
                let came = self.running.insert(event.cpu, next);
                if let Some(came) = came.filter(|came| *came != event.tid) {
                    *self.unseen.entry(came).or_default() += 1;
                }
            }
        }
        events
    }

    /// Adds what was counted here to what was counted in the kernel.
    pub fn counts(&self, mut counts: Counts) -> Counts {
        counts.written = by_name(&self.written);
        counts.discarded = by_name(&self.discarded);
        for (name, count) in by_name(&self.own) {
            *counts.emitted.entry(name).or_default() += count;
        }
        counts.late = self.late;
        for (task, count) in &self.unseen {
            *counts.lost_by_task.entry(*task).or_default() += count;
        }
        let forgotten = self.ring.as_ref().map_or(0, |ring| ring.forgotten);
        for (what, count) in [
            ("switches that the kernel did not hand over", self.unseen.values().sum()),
            ("objects that were seen too long before the snapshot to be in it", forgotten),
        ] {
            if count > 0 {
                counts.unresolved.insert(what.to_string(), count);
            }
        }
        if self.unknown > 0 {
            counts.unresolved.insert("events of unknown kinds".to_string(), self.unknown);
        }
        counts
    }
}

/// Counts by the names of their kinds; zeros are left out.
pub fn by_name(counts: &[u64; 16]) -> BTreeMap<String, u64> {
    let named = |(kind, count): (u8, &u64)| Some((What::name_of(kind)?.to_string(), *count));
    (0..).zip(counts).filter(|(_, count)| **count > 0).filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::{End, Machine, Outcome, Reader};

    #[test]
    fn events_are_written_in_order_and_what_comes_late_is_counted() {
        let exit = |time| {
            let what = What::Exit { task: 1, prio: 120 };
            Event { time, cpu: 0, context: 0, tid: 1, what }.bytes()
        };
        let (mut log, second) = (Log::new(false), 1_000_000_000);
        log.take(&exit(second - 1));
        log.begin(second, Vec::new());
        let mut writer = Writer::new(Vec::new(), &Machine::default()).unwrap();
        log.take(&exit(second + 9));
        log.take(&exit(second + 3));
        log.write(2 * second, &mut writer).unwrap();
        log.take(&exit(second + 5));
        log.write(u64::MAX, &mut writer).unwrap();
        let counts = log.counts(Counts::default());
        assert_eq!((counts.written["exit"], counts.discarded["exit"], counts.late), (3, 1, 1));
        let bytes = writer.end(&End { counts, status: None }).unwrap();
        let mut times = Vec::new();
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let outcome = reader.read(|_, event| times.push(event.time - second)).unwrap();
        assert!(matches!(outcome, Outcome::Complete(_)) && times == [3, 9, 9], "{times:?}");
    }
}
