//! Reads the records of a perf.data in order, including those in compressed records. Memory does
//! not grow with the file.

use std::io::Read;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::damaged;
use super::layout::Section;
use crate::import::bytes::Bytes;
use crate::import::error::{Place, Problem};
use crate::import::input::read_problem;

/// A record with additional data after it: its own data begins with `u64 size` of that data.
const AUXTRACE: u32 = 71;

/// The records that contain other records, compressed with zstd. In the second type `u64 size`
/// comes before the data.
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// The largest ratio to which compressed records may unpack, plus [`SLACK`] bytes. Scheduling
/// events unpack to 5 to 10 times their size.
const MOST_UNPACKED: u64 = 50;
const SLACK: u64 = 4 << 20;

/// The size of a record's header: `u32 type, u16 misc, u16 size`; this size includes header and
/// data.
const HEADER: usize = 8;

/// The buffer for bytes that are read and not yet used. The largest record has 64 KiB.
const BUFFER: usize = 1 << 18;

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// One record.
pub(super) struct Record<'a> {
    pub kind: u32,
    pub misc: u16,
    pub data: Bytes<'a>,
    /// The byte offset of the record in the file; for a compressed record, the offset of the record
    /// that contains it.
    pub place: u64,
}

/// Passes each record of the section to `take`; `file` is at the start of the section.
pub(super) fn read(
    file: &mut impl Read,
    section: Section,
    big_endian: bool,
    mut take: impl FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    let mut input = Input {
        file,
        buffer: vec![0; BUFFER],
        start: 0,
        end: 0,
        position: section.offset,
        left: section.size,
    };
    let mut unpacked: Option<Unpacked> = None;
    while input.has_more() {
        let place = input.position;
        let at_place = |problem| (Place::Byte(place), problem);
        let broken = || at_place(damaged("a record's size makes no sense here"));
        let size = header(input.next(HEADER)?, big_endian)
            .map(|header| header.size)
            .filter(|size| *size >= HEADER)
            .ok_or_else(broken)?;
        let bytes = input.next(size)?;
        let record = record(bytes, big_endian, place).ok_or_else(broken)?;
        let trailing = match record.kind {
            AUXTRACE => record.data.unsigned(0, 8).ok_or_else(broken)?,
            COMPRESSED | COMPRESSED2 => {
                let unpacked = match &mut unpacked {
                    Some(unpacked) => unpacked,
                    none => none.insert(Unpacked::new().map_err(at_place)?),
                };
                unpacked.take(packed(&record).ok_or_else(broken)?, big_endian, place, &mut take)?;
                0
            }
            _ => {
                take(&record)?;
                0
            }
        };
        input.advance(size);
        input.skip(trailing)?;
    }
    match unpacked {
        Some(unpacked) if unpacked.end > 0 => Err((
            Place::Byte(input.position),
            damaged("its last compressed record ends inside a record"),
        )),
        _ => Ok(()),
    }
}

struct Header {
    kind: u32,
    misc: u16,
    size: usize,
}

#[inline]
fn header(bytes: &[u8], big_endian: bool) -> Option<Header> {
    let bytes = Bytes::new(bytes, big_endian);
    let number = |offset, size| bytes.unsigned(offset, size);
    Some(Header {
        kind: number(0, 4)?.try_into().ok()?,
        misc: number(4, 2)?.try_into().ok()?,
        size: number(6, 2)?.try_into().ok()?,
    })
}

/// The record that fills all of `bytes`.
#[inline]
fn record(bytes: &[u8], big_endian: bool, place: u64) -> Option<Record<'_>> {
    let Header { kind, misc, .. } = header(bytes, big_endian)?;
    Some(Record { kind, misc, data: Bytes::new(bytes.get(HEADER..)?, big_endian), place })
}

/// The compressed content of a record.
fn packed<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    if record.kind == COMPRESSED {
        return Some(record.data.get());
    }
    let size = record.data.unsigned(0, 8)?.try_into().ok()?;
    Some(record.data.part(8, size)?.get())
}

/// A part of a file; each byte is read once.
struct Input<'a, R> {
    file: &'a mut R,
    buffer: Vec<u8>,
    /// The start of the unused bytes in the buffer.
    start: usize,
    end: usize,
    /// The file offset of the byte at `start`, and the number of bytes left in the part.
    position: u64,
    left: u64,
}

impl<R: Read> Input<'_, R> {
    fn has_more(&self) -> bool {
        self.left > 0
    }

    /// The next bytes, without consuming them. A record beyond the end of the part is damaged; a
    /// part beyond the end of the file is cut off.
    #[inline]
    fn next(&mut self, size: usize) -> Result<&[u8]> {
        if count(size) > self.left {
            return Err((
                Place::Byte(self.position),
                damaged("a record's size makes no sense here"),
            ));
        }
        if self.end.saturating_sub(self.start) < size {
            self.fill(size)?;
        }
        Ok(&self.buffer[self.start..self.start.saturating_add(size)])
    }

    #[cold]
    fn fill(&mut self, size: usize) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end = self.end.saturating_sub(self.start);
        self.start = 0;
        while self.end < size {
            let read = self
                .file
                .read(&mut self.buffer[self.end..])
                .map_err(|error| (Place::Byte(self.position), read_problem(error)))?;
            if read == 0 {
                let what = "its header describes more data than the file has".to_owned();
                return Err((
                    Place::Byte(self.position.saturating_add(count(self.end))),
                    Problem::Truncated(what),
                ));
            }
            self.end = self.end.saturating_add(read);
        }
        Ok(())
    }

    /// Consumes bytes that [`next`](Self::next) returned.
    #[inline]
    fn advance(&mut self, size: usize) {
        self.start = self.start.saturating_add(size).min(self.end);
        self.position = self.position.saturating_add(count(size));
        self.left = self.left.saturating_sub(count(size));
    }

    /// Skips bytes.
    fn skip(&mut self, size: u64) -> Result<()> {
        let mut size = size;
        while size > 0 {
            let part = size.min(count(BUFFER));
            self.next(usize::try_from(part).unwrap_or(BUFFER))?;
            self.advance(usize::try_from(part).unwrap_or(BUFFER));
            size = size.saturating_sub(part);
        }
        Ok(())
    }
}

/// The records in compressed ones. A record can begin in one of them and end in the next.
struct Unpacked {
    decoder: Decoder<'static>,
    /// Unpacked bytes that are not yet a complete record, up to `end`.
    buffer: Vec<u8>,
    end: usize,
    packed_bytes: u64,
    unpacked_bytes: u64,
}

impl Unpacked {
    fn new() -> std::result::Result<Unpacked, Problem> {
        Ok(Unpacked {
            decoder: Decoder::new().map_err(read_problem)?,
            buffer: vec![0; BUFFER],
            end: 0,
            packed_bytes: 0,
            unpacked_bytes: 0,
        })
    }

    fn take(
        &mut self,
        packed: &[u8],
        big_endian: bool,
        place: u64,
        take: &mut impl FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        self.packed_bytes = self.packed_bytes.saturating_add(count(packed.len()));
        let most = self.packed_bytes.saturating_mul(MOST_UNPACKED).saturating_add(SLACK);
        let mut input = InBuffer::around(packed);
        loop {
            let mut output = OutBuffer::around(&mut self.buffer[self.end..]);
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|error| (Place::Byte(place), read_problem(error)))?;
            let unpacked = output.pos();
            self.end = self.end.saturating_add(unpacked);
            self.unpacked_bytes = self.unpacked_bytes.saturating_add(count(unpacked));
            if self.unpacked_bytes > most {
                let what = format!(
                    "its compressed records unpack to more than {MOST_UNPACKED} times their size"
                );
                return Err((Place::Byte(place), damaged(&what)));
            }
            let is_full = self.end == self.buffer.len();
            let used = records(&self.buffer[..self.end], big_endian, place, take)?;
            self.buffer.copy_within(used..self.end, 0);
            self.end = self.end.saturating_sub(used);
            if !is_full && input.pos() >= packed.len() {
                return Ok(());
            }
        }
    }
}

/// Passes the complete records in `bytes` to `take`, and returns their size in bytes.
fn records(
    bytes: &[u8],
    big_endian: bool,
    place: u64,
    take: &mut impl FnMut(&Record<'_>) -> Result<()>,
) -> Result<usize> {
    let mut used = 0usize;
    while let Some(Header { size, .. }) =
        bytes.get(used..).and_then(|rest| header(rest, big_endian))
    {
        if size < HEADER {
            return Err((
                Place::Byte(place),
                damaged("the size of a compressed record makes no sense"),
            ));
        }
        let end = used.saturating_add(size);
        let Some(record) = bytes.get(used..end).and_then(|bytes| record(bytes, big_endian, place))
        else {
            break;
        };
        take(&record)?;
        used = end;
    }
    Ok(used)
}

/// A length as a number of bytes.
fn count(length: usize) -> u64 {
    length.try_into().unwrap_or(u64::MAX)
}
