//! Events on their way into the file: in order, and counted.

use recording::{Counts, Event, What, Writer};
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
    /// The number of each name, if names are hidden.
    hidden: Option<BTreeMap<[u8; 16], usize>>,
}

impl Log {
    /// An empty one, which has `program-N` for the names of tasks if they are to be hidden.
    pub fn new(hide_names: bool) -> Log {
        Log { hidden: hide_names.then(BTreeMap::new), ..Log::default() }
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
        if let (Some(hidden), What::Task { comm, .. }) = (&mut self.hidden, &mut event.what) {
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
            self.written[usize::from(event.what.kind())] += 1;
        }
        if events.is_empty() { Ok(()) } else { writer.events(&events) }
    }

    /// Adds what was counted here to what was counted in the kernel.
    pub fn counts(&self, mut counts: Counts) -> Counts {
        counts.written = by_name(&self.written);
        counts.discarded = by_name(&self.discarded);
        for (name, count) in by_name(&self.own) {
            *counts.emitted.entry(name).or_default() += count;
        }
        counts.late = self.late;
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
