//! Reads Perfetto's protobuf: the scheduling events of its bundles of ftrace events, in the compact
//! form and in the plain one.
//!
//! The bundles of a CPU stand in order, those of different CPUs do not. A first pass keeps where
//! each bundle lies. A second one reads one bundle of each CPU at a time and merges their events by
//! time.

mod bundle;
pub(super) mod wire;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;

use schedsim::{CpuId, counted};

use super::error::{Place, Problem};
use super::input::{Announced, Source};
use super::placed::Placed;
use super::record::{self, Record};
use super::recorder::{Lost, Recorder};
pub(crate) use bundle::INFERRED;
use bundle::{Bundle, Running};
use wire::{Field, Fields, numbers};

/// The largest packet, and the largest content of one that is packed.
const LARGEST: usize = 64 << 20;

/// Fields of `TracePacket`.
const FTRACE_EVENTS: u64 = 1;
const SEQUENCE: u64 = 10;
const CPU_INFO: u64 = 67;
const MACHINE: u64 = 98;
const DEFLATED: u64 = 50;
const ZSTD: u64 = 133;

/// A bundle's place: of the packet in the file, and of a packet in it if it is packed.
type At = (u64, usize);

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// Reads all events into `recorder`, in order of time.
pub(super) fn read(source: &Source<'_>, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut file = File::open(source)?;
    let mut places: BTreeMap<(u16, u64), Vec<At>> = BTreeMap::new();
    let (mut lost, mut of_others) = (0u64, 0u64);
    let mut clocks = BTreeMap::new();
    while let Some(at) = file.next()? {
        file.content.each(at, &mut |inner, packet| {
            let (mut sequence, mut machine, mut found, mut info) = (0, 0, None, None);
            for field in Fields::new(packet) {
                match field.map_err(|()| damaged(at))? {
                    (FTRACE_EVENTS, Field::Bytes(bytes)) => found = Some(Bundle::peek(bytes)),
                    (SEQUENCE, Field::Number(number)) => sequence = number,
                    (MACHINE, Field::Number(number)) => machine = number,
                    (CPU_INFO, Field::Bytes(bytes)) => info = Some(bytes),
                    _ => {}
                }
            }
            if let Some(info) = info.filter(|_| machine == 0) {
                describe(info, recorder).ok_or_else(|| damaged(at))?;
            }
            if let Some(of) = found {
                let of = of.ok_or_else(|| damaged(at))?;
                if machine != 0 {
                    record::count(&mut of_others);
                    return Ok(());
                }
                lost = lost.saturating_add(of.lost.into());
                if of.has_scheduling {
                    clocks.entry(of.clock).or_insert(at);
                    places.entry((of.cpu, sequence)).or_default().push((at, inner));
                }
            }
            Ok(())
        })?;
    }
    recorder.lose(Lost::Records(lost));
    if of_others > 0 {
        recorder.report.warnings.push(format!(
            "{of_others} bundles of events are of other machines, as guests, and are left out"
        ));
    }
    expect_one_clock(&clocks, recorder)?;
    // Two sessions that recorded at the same time have the same events.
    let mut cpus: BTreeMap<u16, Vec<At>> = BTreeMap::new();
    let mut others = 0usize;
    for ((cpu, _), of) in places {
        match cpus.get_mut(&cpu) {
            None => drop(cpus.insert(cpu, of)),
            Some(_) => others = others.saturating_add(1),
        }
    }
    if others > 0 {
        recorder.report.warnings.push(format!(
            "it has the events of {} more than once, of several sessions: the first is read",
            counted(others, "CPU")
        ));
    }
    let mut readers = Vec::new();
    let mut next = BinaryHeap::new();
    for (cpu, places) in cpus {
        let mut reader = Reader { places: places.into_iter(), ..Reader::default() };
        if let Some(time) = reader.advance(&mut file)? {
            next.push(Reverse((time, reader.at, readers.len())));
        }
        readers.push((CpuId(cpu), reader));
    }
    // Of one time the order is that of the packets.
    while let Some(Reverse((time, _, index))) = next.pop() {
        let Some((cpu, reader)) = readers.get_mut(index) else { break };
        let place = Place::Byte(reader.at);
        let taken = reader.bundle.take(&mut reader.running);
        if taken.is_none() {
            recorder.begin(time);
        }
        if let Some((context, what)) = taken {
            let what = what.ok_or_else(|| damaged(reader.at))?;
            let record = Record { time, cpu: *cpu, context, current: None, what };
            recorder.record(&record).map_err(|problem| (place, problem))?;
        }
        if let Some(time) = reader.advance(&mut file)? {
            next.push(Reverse((time, reader.at, index)));
        }
    }
    let starts: u64 = readers.iter().map(|(_, reader)| reader.running.starts).sum();
    if starts > 0 {
        recorder.report.warnings.push(format!(
            "{starts} switches do not say from which task, as the first of a CPU in Perfetto's \
             compact form: they only say who runs from then on"
        ));
    }
    for (_, reader) in &readers {
        for (id, count) in &reader.bundle.skipped {
            recorder.skip(format!("ftrace event {id} of Perfetto").as_bytes(), *count);
        }
    }
    Ok(())
}

/// Times of several clocks cannot be put in one order, and those of an unknown one may be no
/// nanoseconds.
fn expect_one_clock(clocks: &BTreeMap<u64, u64>, recorder: &mut Recorder<'_>) -> Result<()> {
    const UNKNOWN: u64 = 1;
    const LOCAL: u64 = 3;
    let refused = |at: u64, what: &str| {
        let why = format!(
            "this trace of Perfetto cannot be used: {what}; record it again, with \
                           the clock that Perfetto chooses, boot"
        );
        Err((Place::Byte(at), Problem::PerfData(why)))
    };
    let mut all = clocks.iter();
    match (all.next(), all.next()) {
        (Some((&UNKNOWN, &at)), None) => refused(at, "its events have times of an unknown clock"),
        (Some(_), Some((_, &at))) => refused(at, "its events have times of several clocks"),
        (Some((&LOCAL, _)), None) => {
            recorder.report.warnings.push(
                "each CPU had a clock of its own (local): what happened at nearly one time on two \
                 CPUs may stand in the wrong order"
                    .to_owned(),
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What a packet says of the CPUs: the frequencies that each has, and its capacity.
fn describe(info: &[u8], recorder: &mut Recorder<'_>) -> Option<()> {
    let cpus = Fields::new(info).filter_map(|field| match field {
        Ok((1, Field::Bytes(cpu))) => Some(cpu),
        _ => None,
    });
    for (number, cpu) in (0u64..).zip(cpus) {
        let (mut frequencies, mut capacity) = (Vec::new(), 0);
        for field in Fields::new(cpu) {
            match field.ok()? {
                (2, field) => numbers(field, &mut frequencies)?,
                (3, field) => capacity = field.number()?,
                _ => {}
            }
        }
        let most = frequencies.into_iter().max().unwrap_or(0);
        recorder.frequencies.describe(record::cpu(number)?, most, capacity);
    }
    Some(())
}

/// The bundles of a CPU.
#[derive(Default)]
struct Reader {
    places: std::vec::IntoIter<At>,
    at: u64,
    bundle: Bundle,
    running: Running,
}

impl Reader {
    /// Goes to the next event, and returns its time.
    fn advance(&mut self, file: &mut File<'_>) -> Result<Option<u64>> {
        loop {
            if let Some(time) = self.bundle.time() {
                return Ok(Some(time));
            }
            let Some((at, inner)) = self.places.next() else { return Ok(None) };
            self.at = at;
            let Some(content) = file.content(at)? else { return Ok(None) };
            content.each(at, &mut |place, packet| {
                if place != inner {
                    return Ok(());
                }
                for field in Fields::new(packet) {
                    if let (FTRACE_EVENTS, Field::Bytes(bytes)) = field.map_err(|()| damaged(at))? {
                        self.bundle.fill(bytes).ok_or_else(|| damaged(at))?;
                    }
                }
                Ok(())
            })?;
        }
    }
}

/// What a packet has: itself, or packets that were packed in it.
#[derive(Default)]
struct Content {
    packet: Vec<u8>,
    unpacked: Vec<u8>,
}

impl Content {
    /// Unpacks what is packed in the packet, which is of this place.
    fn unpack(&mut self, at: u64) -> Result<()> {
        let most = u64::try_from(LARGEST).unwrap_or(u64::MAX);
        self.unpacked.clear();
        for field in Fields::new(&self.packet) {
            let read = match field.map_err(|()| damaged(at))? {
                (DEFLATED, Field::Bytes(packed)) => flate2::read::ZlibDecoder::new(packed)
                    .take(most)
                    .read_to_end(&mut self.unpacked),
                (ZSTD, Field::Bytes(packed)) => zstd::stream::read::Decoder::new(packed)
                    .and_then(|decoder| decoder.take(most).read_to_end(&mut self.unpacked)),
                _ => continue,
            };
            if read.is_err() || self.unpacked.len() >= LARGEST {
                return Err(damaged(at));
            }
        }
        Ok(())
    }

    /// Calls `take` with each packet, and its place.
    fn each(&self, at: u64, take: &mut dyn FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        if self.unpacked.is_empty() {
            return take(0, &self.packet);
        }
        for (place, field) in Fields::new(&self.unpacked).enumerate() {
            if let (1, Field::Bytes(packet)) = field.map_err(|()| damaged(at))? {
                take(place, packet)?;
            }
        }
        Ok(())
    }
}

/// A file as a row of packets.
struct File<'a> {
    placed: Placed<'a>,
    /// Of the packet that was read last, and its place: the CPUs of one that is packed ask for it in
    /// turn.
    content: Content,
    last: Option<u64>,
}

impl<'a> File<'a> {
    fn open(source: &Source<'a>) -> Result<Self> {
        let reader = source.open(Announced::Yes).map_err(|problem| (Place::File, problem))?;
        Ok(File { placed: Placed::new(reader), content: Content::default(), last: None })
    }

    /// The content of the packet at this place; `None` at the end of the file.
    fn content(&mut self, at: u64) -> Result<Option<&Content>> {
        if self.last != Some(at) {
            self.placed.go_to(at)?;
            self.next()?;
        }
        Ok(self.last.map(|_| &self.content))
    }

    /// Reads the next packet, and returns its place; `None` at the end of the file.
    fn next(&mut self) -> Result<Option<u64>> {
        let at = self.placed.position();
        self.last = None;
        let Some(key) = self.varint()? else { return Ok(None) };
        let cut = || {
            let what = "it ends within a packet".to_owned();
            (Place::Byte(at), Problem::Truncated(what))
        };
        // Only packets stand on this level.
        let length = self.varint()?.filter(|_| key == 0x0a).ok_or_else(cut)?;
        let size = usize::try_from(length).ok().filter(|size| *size <= LARGEST);
        let size = size.ok_or_else(|| damaged(at))?;
        self.placed.read_up_to(length, &mut self.content.packet)?;
        if self.content.packet.len() != size {
            return Err(cut());
        }
        self.content.unpack(at)?;
        self.last = Some(at);
        Ok(self.last)
    }

    /// The next number; `None` at the end of the file.
    fn varint(&mut self) -> Result<Option<u64>> {
        let mut value = 0u64;
        for shift in (0..64u32).step_by(7) {
            let byte = match self.placed.byte()? {
                Some(byte) => byte,
                None if shift == 0 => return Ok(None),
                None => break,
            };
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(Some(value));
            }
        }
        let what = "it ends within a packet".to_owned();
        Err((Place::Byte(self.placed.position()), Problem::Truncated(what)))
    }
}

/// The error for a packet that contradicts itself, with the next step.
fn damaged(at: u64) -> (Place, Problem) {
    let what = "this trace of Perfetto cannot be used: a packet is damaged, or names a CPU above \
                4095 or a pid above 4194304; open it in https://ui.perfetto.dev to see whether it \
                is whole, or record again";
    (Place::Byte(at), Problem::PerfData(what.to_owned()))
}
