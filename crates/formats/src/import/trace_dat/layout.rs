//! Reads everything but the events: where the pages of each CPU lie, and what their bytes mean.
//!
//! No size in the file is trusted. A part is read up to a limit, and a part beyond the end of the
//! file means that the file is cut off.

use std::io::{BufReader, Read};

use schedsim::CpuId;

use super::damaged;
use crate::import::bytes::Bytes;
use crate::import::error::{Place, Problem};
use crate::import::input::Pieces;
use crate::import::placed::Placed;
use crate::import::record;
use crate::import::tracing_data::{Events, MAGIC, Rest};

/// The largest part that is read at once, packed or not.
const LARGEST: u64 = 64 << 20;

pub(super) type Result<T> = std::result::Result<T, (Place, Problem)>;

/// What an import needs to know before the events.
pub(super) struct Layout {
    pub big_endian: bool,
    pub page_size: usize,
    /// Where the number of bytes of a page's events stands in it, and how long that number is.
    pub commit: (usize, usize),
    /// Where its events begin.
    pub data: usize,
    pub events: Events,
    pub packing: Packing,
    pub clock: Clock,
    /// Its name, as an option gives it.
    clock_name: String,
    pub cpus: Vec<OfCpu>,
    pub cpus_online: u16,
    /// Events that the kernel overwrote, by its own count.
    pub overrun: u64,
    pub warnings: Vec<String>,
}

/// The pages of a CPU in the file.
pub(super) struct OfCpu {
    pub cpu: CpuId,
    pub offset: u64,
    pub size: u64,
}

/// How parts of the file are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packing {
    None,
    Zstd,
    Zlib,
}

/// What a time stamp counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clock {
    Nanoseconds,
    /// Of the CPU, with what makes nanoseconds of them.
    Cycles {
        multiplier: u64,
        shift: u32,
    },
}

impl Clock {
    pub fn ns(self, stamp: u64) -> u64 {
        match self {
            Clock::Nanoseconds => stamp,
            Clock::Cycles { multiplier, shift } => {
                let product = u128::from(stamp).saturating_mul(multiplier.into());
                product.checked_shr(shift).unwrap_or(0).try_into().unwrap_or(u64::MAX)
            }
        }
    }
}

impl Packing {
    /// Unpacks a part, which may not be larger than `size`.
    pub fn unpack(self, packed: &[u8], size: u64, place: Place) -> Result<Vec<u8>> {
        let why = |why: &dyn std::fmt::Display| {
            (place, damaged(&format!("a part cannot be unpacked: {why}")))
        };
        let expected = usize::try_from(size).ok().filter(|_| size <= LARGEST);
        let expected = expected.ok_or_else(|| why(&"it is too large"))?;
        let mut unpacked = Vec::new();
        let read = match self {
            Packing::None => return Ok(packed.to_vec()),
            Packing::Zstd => zstd::stream::read::Decoder::new(packed)
                .and_then(|decoder| decoder.take(size).read_to_end(&mut unpacked)),
            Packing::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut unpacked)
            }
        };
        match read {
            Ok(read) if read == expected => Ok(unpacked),
            Ok(_) => Err(why(&"it is shorter than it says")),
            Err(error) => Err(why(&error)),
        }
    }
}

impl Layout {
    /// Reads a file up to its events.
    pub fn read(file: &mut File<'_>) -> Result<Layout> {
        let start = file.placed.bytes_up_to(LARGEST)?;
        let cut = || (Place::File, Problem::Truncated("its description ends in the middle".into()));
        let mut rest = Rest::new(start.get(MAGIC.len()..).ok_or_else(cut)?, false);
        let version = rest.text().ok_or_else(cut)?;
        rest.big_endian = rest.take(1).ok_or_else(cut)? == [1];
        file.big_endian = rest.big_endian;
        rest.take(1).ok_or_else(cut)?;
        let page_size = rest.number(4).ok_or_else(cut)?;
        let mut layout = Layout {
            big_endian: rest.big_endian,
            page_size,
            commit: (8, 8),
            data: 16,
            events: Events::read(&mut Rest::new(&[0; 4], false)).ok_or_else(cut)?,
            packing: Packing::None,
            clock: Clock::Nanoseconds,
            clock_name: String::new(),
            cpus: Vec::new(),
            cpus_online: 0,
            overrun: 0,
            warnings: Vec::new(),
        };
        match version {
            "6" => {
                layout.read_6(rest).ok_or_else(cut)?;
                // Behind all options: one of them makes nanoseconds of cycles.
                layout.expect_clock(&layout.clock_name)?;
            }
            "7" => {
                let name = rest.text().ok_or_else(cut)?;
                rest.text().ok_or_else(cut)?;
                layout.packing = match name {
                    "none" => Packing::None,
                    "zstd" => Packing::Zstd,
                    "zlib" => Packing::Zlib,
                    other => {
                        return Err((Place::File, damaged(&format!("it is packed by {other}"))));
                    }
                };
                let options = rest.number(8).ok_or_else(cut)?;
                layout.read_7(file, options as u64)?;
            }
            other => {
                let why = format!("it is of version {other}, and versions 6 and 7 are known");
                return Err((Place::File, damaged(&why)));
            }
        }
        // What the kernel calls a page is 4 to 64 KiB.
        if !(layout.data..=1 << 20).contains(&layout.page_size) {
            let why = format!("its pages have {} bytes", layout.page_size);
            return Err((Place::File, damaged(&why)));
        }
        if layout.events.len() == 0 {
            let saw = ": it describes no tracepoints at all".to_owned();
            return Err((Place::File, Problem::NoSchedEvents { saw }));
        }
        Ok(layout)
    }

    /// The parts of version 6 stand one behind the other.
    fn read_6(&mut self, mut rest: Rest<'_>) -> Option<()> {
        self.page(rest.header_page()?)?;
        rest.own_events()?;
        self.events = Events::read(&mut rest)?;
        // Addresses of functions, formats of printk, names of processes.
        for width in [4, 4, 8] {
            let size = rest.number(width)?;
            rest.take(size)?;
        }
        let cpus = rest.number(4)?;
        loop {
            match rest.take(10)? {
                b"options  \0" => while self.option_6(&mut rest)? {},
                b"flyrecord\0" => break,
                // The text of a tracer of latencies.
                _ => return None,
            }
        }
        for cpu in 0..cpus {
            let (offset, size) = (rest.number(8)?, rest.number(8)?);
            let cpu = record::cpu(u64::try_from(cpu).ok()?)?;
            self.cpus.push(OfCpu { cpu, offset: offset as u64, size: size as u64 });
        }
        self.cpus_online = u16::try_from(cpus).ok()?;
        Some(())
    }

    fn option_6(&mut self, rest: &mut Rest<'_>) -> Option<bool> {
        let id = rest.number(2)?;
        if id == 0 {
            return Some(false);
        }
        let size = rest.number(4)?;
        self.option(id, Rest { data: rest.take(size)?, ..*rest });
        Some(true)
    }

    /// The options of version 7 say where its parts lie.
    fn read_7(&mut self, file: &mut File<'_>, first: u64) -> Result<()> {
        let mut at = first;
        let mut buffers = Vec::new();
        // Each list of options names the next one. More than these are a circle.
        for _ in 0..64 {
            if at == 0 {
                break;
            }
            let place = Place::Byte(at);
            let cut = || (place, damaged("its options end in the middle"));
            let section = self.section(file, at)?;
            let mut rest = Rest::new(&section, self.big_endian);
            loop {
                let (id, size) = (rest.number(2).ok_or_else(cut)?, rest.number(4).ok_or_else(cut)?);
                let mut value = Rest { data: rest.take(size).ok_or_else(cut)?, ..rest };
                let offset = Rest { ..value }.number(8).unwrap_or(0) as u64;
                match id {
                    0 => {
                        at = offset;
                        break;
                    }
                    3 => buffers.push(buffer(&mut value).ok_or_else(cut)?),
                    16 => {
                        let section = self.section(file, offset)?;
                        let page = Rest::new(&section, self.big_endian).header_page();
                        self.page(page.ok_or_else(cut)?).ok_or_else(cut)?;
                    }
                    18 => {
                        let section = self.section(file, offset)?;
                        let mut rest = Rest::new(&section, self.big_endian);
                        self.events = Events::read(&mut rest).ok_or_else(|| {
                            (
                                Place::Byte(offset),
                                damaged("its tracepoint descriptions are damaged"),
                            )
                        })?;
                    }
                    _ => self.option(id, value),
                }
            }
        }
        if buffers.iter().filter(|buffer| !buffer.cpus.is_empty()).count() > 1 {
            let names: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            self.warnings.push(format!(
                "it has the buffers of several instances ({}), and the first is read",
                names.join(", ")
            ));
        }
        let Some(buffer) = buffers.into_iter().find(|buffer| !buffer.cpus.is_empty()) else {
            return Err((Place::File, damaged("it has no buffer with events")));
        };
        self.expect_clock(&buffer.clock)?;
        self.page_size = buffer.page_size;
        let is_packed = file.section_header(buffer.offset)?.is_packed;
        self.packing = if is_packed { self.packing } else { Packing::None };
        self.cpus = buffer.cpus;
        Ok(())
    }

    /// The content of a section, unpacked.
    fn section(&self, file: &mut File<'_>, offset: u64) -> Result<Vec<u8>> {
        let header = file.section_header(offset)?;
        if !header.is_packed {
            return file.bytes(header.size);
        }
        let (packed, unpacked) = (file.number(4)?, file.number(4)?);
        self.packing.unpack(&file.bytes(packed)?, unpacked, Place::Byte(offset))
    }

    /// An option that both versions have. Those that shift all times of the file, as for a guest
    /// beside its host, change nothing here: only this file is read.
    fn option(&mut self, id: usize, mut value: Rest<'_>) {
        let text = |value: Rest<'_>| String::from_utf8_lossy(value.data).into_owned();
        match id {
            // The counts of a CPU's buffer.
            2 => {
                let of_line =
                    |line: &str| line.strip_prefix("overrun: ")?.trim().parse::<u64>().ok();
                let overrun: u64 = text(value).lines().filter_map(of_line).sum();
                self.overrun = self.overrun.saturating_add(overrun);
            }
            // All clocks, that of the trace in brackets.
            4 => {
                let text = text(value);
                self.clock_name = text.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
            }
            8 => {
                self.cpus_online =
                    value.number(4).and_then(|cpus| cpus.try_into().ok()).unwrap_or(0)
            }
            14 => {
                let numbers = value.number(4).zip(value.number(4));
                if let Some((multiplier, shift)) = numbers {
                    let shift = u32::try_from(shift).unwrap_or(u32::MAX);
                    self.clock = Clock::Cycles { multiplier: multiplier as u64, shift };
                }
            }
            _ => {}
        }
    }

    /// Refuses a clock that does not count nanoseconds.
    fn expect_clock(&self, name: &str) -> Result<()> {
        let counts_ns = ["", "local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
        if counts_ns.contains(&name) || matches!(self.clock, Clock::Cycles { .. }) {
            return Ok(());
        }
        let why = format!(
            "its clock `{name}` does not count nanoseconds; record with `trace-cmd record -C mono`"
        );
        Err((Place::File, damaged(&why)))
    }

    /// The format of a page.
    fn page(&mut self, format: &str) -> Option<()> {
        let number = |name: &str, key: &str| -> Option<usize> {
            let is_field = |line: &&str| line.split(';').next().is_some_and(|f| f.ends_with(name));
            let line = format.lines().find(is_field)?;
            line.split(key).nth(1)?.split(';').next()?.trim().parse().ok()
        };
        self.commit = (number(" commit", "offset:")?, number(" commit", "size:")?);
        self.data = number(" data", "offset:")?;
        let end = self.commit.0.saturating_add(self.commit.1);
        ([4, 8].contains(&self.commit.1) && end <= self.data && self.data < 128).then_some(())
    }
}

/// A buffer of version 7.
struct Buffer {
    offset: u64,
    name: String,
    clock: String,
    page_size: usize,
    cpus: Vec<OfCpu>,
}

fn buffer(value: &mut Rest<'_>) -> Option<Buffer> {
    let offset = value.number(8)? as u64;
    let (name, clock) = (value.text()?.to_owned(), value.text()?.to_owned());
    let (page_size, count) = (value.number(4)?, value.number(4)?);
    let mut cpus = Vec::new();
    for _ in 0..count {
        let (cpu, offset, size) = (value.number(4)?, value.number(8)?, value.number(8)?);
        let cpu = record::cpu(cpu as u64)?;
        if size > 0 {
            cpus.push(OfCpu { cpu, offset: offset as u64, size: size as u64 });
        }
    }
    Some(Buffer { offset, name, clock, page_size, cpus })
}

/// What stands before each section of version 7.
struct SectionHeader {
    is_packed: bool,
    size: u64,
}

/// A file with its byte order. An unexpected end is a [`Problem::Truncated`].
pub(super) struct File<'a> {
    placed: Placed<'a>,
    big_endian: bool,
}

impl<'a> File<'a> {
    pub fn new(reader: BufReader<Pieces<'a>>) -> Self {
        File { placed: Placed::new(reader), big_endian: false }
    }

    pub fn go_to(&mut self, offset: u64) -> Result<()> {
        self.placed.go_to(offset)
    }

    fn section_header(&mut self, offset: u64) -> Result<SectionHeader> {
        self.go_to(offset)?;
        self.number(2)?;
        let flags = self.number(2)?;
        self.number(4)?;
        Ok(SectionHeader { is_packed: flags & 1 == 1, size: self.number(8)? })
    }

    pub fn number(&mut self, size: u64) -> Result<u64> {
        let place = Place::Byte(self.placed.position());
        let bytes = self.bytes(size)?;
        let value = Bytes::new(&bytes, self.big_endian).unsigned(0, bytes.len());
        value.ok_or_else(|| (place, damaged("a number is cut off")))
    }

    /// The next `size` bytes.
    pub fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let place = Place::Byte(self.placed.position());
        if size > LARGEST {
            return Err((place, damaged(&format!("a part says that it has {size} bytes"))));
        }
        let bytes = self.placed.bytes_up_to(size)?;
        if u64::try_from(bytes.len()) == Ok(size) {
            return Ok(bytes);
        }
        let what = "it describes more data than it has".to_owned();
        Err((Place::Byte(self.placed.position()), Problem::Truncated(what)))
    }
}
