//! The tracepoint descriptions that perf and trace-cmd copy from the kernel into each of their files.

use std::collections::HashMap;

use super::bytes::Bytes;
use super::tracepoint::{Decoder, Field, FieldKind};
use crate::import::record::Tracepoint;
use crate::import::recorder::Recorder;

/// The tracepoints of a file.
pub(super) struct Events {
    events: Vec<Event>,
    /// Event indexes by the 16-bit id at the start of a sample's raw data.
    by_id: Vec<Option<usize>>,
}

/// The kind of a tracepoint.
pub(super) enum Event {
    /// An imported tracepoint.
    Scheduling { decoder: Box<Decoder>, flags: Field },
    /// A system call begins, with six arguments at `values`, or ends, with its result there.
    Call { begins: bool, number: Field, values: Field },
    /// A skipped tracepoint, by name.
    Other(String),
}

impl Event {
    /// Its name, if it may be skipped.
    pub fn name(&self) -> &str {
        match self {
            Event::Scheduling { .. } => "",
            Event::Call { begins: true, .. } => "raw_syscalls:sys_enter",
            Event::Call { begins: false, .. } => "raw_syscalls:sys_exit",
            Event::Other(name) => name,
        }
    }
}

impl Events {
    /// Parses the section; `None` if it contradicts itself.
    ///
    /// It contains a magic number, a version, byte order, word and page size. Then come the formats
    /// of the ring buffer's page and event header, and of ftrace's own events. Then comes, for each
    /// system, the `format` file of each tracepoint.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut rest = Rest::new(data.strip_prefix(MAGIC)?, false);
        rest.text()?;
        rest.big_endian = rest.take(1)? == [1];
        rest.take(1 + 4)?;
        rest.header_page()?;
        rest.own_events()?;
        Events::read(&mut rest)
    }

    /// Parses the part with the systems and their tracepoints.
    pub fn read(rest: &mut Rest<'_>) -> Option<Self> {
        let mut events = Events { events: Vec::new(), by_id: Vec::new() };
        for _ in 0..rest.number(4)? {
            let system = rest.text()?;
            for _ in 0..rest.number(4)? {
                let size = rest.number(8)?;
                let format = String::from_utf8_lossy(rest.take(size)?);
                let (id, event) = event(system, &format)?;
                events.insert(id, event);
            }
        }
        Some(events)
    }

    fn insert(&mut self, id: u16, event: Event) {
        let id = usize::from(id);
        if id >= self.by_id.len() {
            self.by_id.resize(id.saturating_add(1), None);
        }
        self.by_id[id] = Some(self.events.len());
        self.events.push(event);
    }

    /// The event index of the tracepoint with this id.
    #[inline]
    pub fn place(&self, id: u64) -> Option<usize> {
        *self.by_id.get(usize::try_from(id).ok()?)?
    }

    /// The tracepoint with this index.
    #[inline]
    pub fn at(&self, place: usize) -> Option<&Event> {
        self.events.get(place)
    }

    /// Whether system calls were recorded, too.
    pub fn has_calls(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Call { .. }))
    }

    /// Counts events that were not imported, of each tracepoint by its index.
    pub fn skip(&self, counts: Vec<u64>, recorder: &mut Recorder<'_>) {
        for (event, count) in self.events.iter().zip(counts).filter(|(_, count)| *count > 0) {
            recorder.skip(event.name().as_bytes(), count);
        }
    }

    /// The number of tracepoints.
    pub fn len(&self) -> usize {
        self.events.len()
    }
}

/// Parses a tracepoint's `format` file.
fn event(system: &str, format: &str) -> Option<(u16, Event)> {
    let line = |prefix: &str| format.lines().find_map(|line| line.strip_prefix(prefix));
    let name = line("name:")?.trim();
    let id = line("ID:")?.trim().parse().ok()?;
    let full_name = format!("{system}:{name}");
    let fields: HashMap<_, _> = format.lines().filter_map(field).collect();
    let begins = full_name == "raw_syscalls:sys_enter";
    if begins || full_name == "raw_syscalls:sys_exit" {
        let values = *fields.get(if begins { "args" } else { "ret" })?;
        return Some((id, Event::Call { begins, number: *fields.get("id")?, values }));
    }
    let Some(tracepoint) = Tracepoint::named(full_name.as_bytes()) else {
        return Some((id, Event::Other(full_name)));
    };
    let flags = *fields.get("common_flags")?;
    let decoder = Decoder::new(tracepoint, &fields, line("print fmt:").unwrap_or_default())?;
    Some((id, Event::Scheduling { decoder: Box::new(decoder), flags }))
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:0;`.
fn field(line: &str) -> Option<(&str, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse::<usize>().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    let name = declaration.rsplit(' ').next()?;
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let kind = match declaration.split(' ').next()? {
        "__data_loc" => FieldKind::Location,
        "__rel_loc" => FieldKind::RelativeLocation,
        _ => FieldKind::Value,
    };
    // Records are shorter than 64 KiB, so larger numbers are wrong and could overflow later.
    (offset < 1 << 16 && size < 1 << 16).then_some((name, Field { offset, size, kind }))
}

/// What such data begins with; a `trace.dat`, too.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The unread part of the data.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    pub data: &'a [u8],
    pub big_endian: bool,
}

impl<'a> Rest<'a> {
    pub fn new(data: &'a [u8], big_endian: bool) -> Self {
        Rest { data, big_endian }
    }

    /// The format of the ring buffer's page; the one of its events is always the same.
    pub fn header_page(&mut self) -> Option<&'a str> {
        let mut parts = ["header_page", "header_event"].map(|name| {
            let is_there = self.text()? == name;
            let size = self.number(8)?;
            self.take(size).filter(|_| is_there)
        });
        parts[1]?;
        std::str::from_utf8(parts[0].take()?).ok()
    }

    /// Passes over the formats of ftrace's own events.
    pub fn own_events(&mut self) -> Option<()> {
        for _ in 0..self.number(4)? {
            let size = self.number(8)?;
            self.take(size)?;
        }
        Some(())
    }

    pub fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.data.split_at_checked(size)?;
        self.data = rest;
        Some(taken)
    }

    pub fn number(&mut self, size: usize) -> Option<usize> {
        let big_endian = self.big_endian;
        usize::try_from(Bytes::new(self.take(size)?, big_endian).unsigned(0, size)?).ok()
    }

    /// A text that ends with a zero byte.
    pub fn text(&mut self) -> Option<&'a str> {
        let text = self.take(memchr::memchr(0, self.data)?)?;
        self.take(1)?;
        std::str::from_utf8(text).ok()
    }
}
