//! Whether a perf.data is whole: everything its header and records promise lies in the file.
//!
//! The parser crate trusts sizes; a damaged file would make it allocate without bound or look complete when it is not. This pass reads the
//! file once before it and knows at which byte it breaks.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::damaged;
use super::tracepoint::Bytes;
use crate::import::error::{Place, Problem};
use crate::import::input::{Pieces, read_problem};

/// Feature sections by their bit in the header.
const EVENT_DESCRIPTIONS: u64 = 12;

/// The record that is followed by data outside of it.
const AUXTRACE: u64 = 71;

/// The records that hold others, compressed with zstd: `u64 size` stands before the data of the second.
const COMPRESSED: u64 = 81;
const COMPRESSED2: u64 = 83;

/// The largest data of one AUXTRACE, and the largest feature sections together; the parser crate keeps both in memory.
const LARGEST_PART: u64 = 64 << 20;

/// Compressed records unpack to so many times their size at most, and [`SLACK`] bytes more; those of scheduling events to 5 to 10 times.
const MOST_UNPACKED: u64 = 50;
const SLACK: u64 = 4 << 20;

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// Reads a whole file and checks its structure.
pub(super) fn check(reader: BufReader<Pieces<'_>>) -> Result<()> {
    let length = reader.get_ref().plain_length();
    let mut file = File { reader, length, position: 0, big_endian: false };
    file.big_endian = file.bytes(8)? == b"2ELIFREP";
    let header = Header::read(&mut file)?;
    records(&mut file, header.data)?;

    let mut sections = Vec::new();
    for (word, bits) in (0u64..).zip(header.features) {
        for bit in (0u64..64).filter(|bit| bits.checked_shr(u32::try_from(*bit).unwrap_or(u32::MAX)).is_some_and(|bits| bits & 1 == 1)) {
            sections.push((word.saturating_mul(64).saturating_add(bit), Section::read(&mut file)?));
        }
    }
    let all = sections.iter().fold(0, |sum: u64, (_, section)| sum.saturating_add(section.size));
    if all > LARGEST_PART {
        return Err((Place::File, damaged(&format!("its feature sections have {all} bytes, and {LARGEST_PART} are the most"))));
    }
    sections.sort_by_key(|(_, section)| section.offset);
    let mut described = false;
    for (bit, section) in sections {
        file.go_to(section.offset)?;
        if bit == EVENT_DESCRIPTIONS {
            let bytes = file.bytes(section.size)?;
            event_descriptions(Bytes::new(&bytes, file.big_endian), bytes.len())
                .ok_or_else(|| (Place::Byte(section.offset), damaged("its descriptions of events are cut or damaged")))?;
            described = true;
        } else {
            file.skip(section.size)?;
        }
    }
    // A compressed file tells only at its very end whether it is whole.
    file.skip_all()?;
    match described {
        true => Ok(()),
        false => Err((Place::File, damaged("it does not describe its events"))),
    }
}

/// Walks over all records.
fn records(file: &mut File<'_>, data: Section) -> Result<()> {
    file.go_to(data.offset)?;
    let end = data.end();
    let mut compressed = Compressed::default();
    while file.position < end {
        let start = file.position;
        let broken = || (Place::Byte(start), damaged("a record's size makes no sense here"));
        let kind = file.number(4)?;
        file.number(2)?;
        let mut body = file.number(2)?.checked_sub(8).ok_or_else(broken)?;
        if kind == AUXTRACE {
            let trailing = file.number(8)?;
            body = body.checked_sub(8).and_then(|body| body.checked_add(trailing)).ok_or_else(broken)?;
            if trailing > LARGEST_PART {
                let what = format!("a record of {trailing} bytes of hardware trace (AUX), and {LARGEST_PART} are the most");
                return Err((Place::Byte(start), damaged(&what)));
            }
        }
        if file.position.checked_add(body).is_none_or(|after| after > end) {
            return Err(broken());
        }
        match kind {
            COMPRESSED | COMPRESSED2 => {
                let bytes = file.bytes(body)?;
                let data = if kind == COMPRESSED { Some(&bytes[..]) } else { bytes.get(8..) };
                compressed.unpack(data.unwrap_or_default()).map_err(|problem| (Place::Byte(start), problem))?;
            }
            _ => file.skip(body)?,
        }
    }
    Ok(())
}

/// Unpacks compressed records only to see to how much.
#[derive(Default)]
struct Compressed {
    decoder: Option<(Decoder<'static>, Vec<u8>)>,
    packed: u64,
    unpacked: u64,
}

impl Compressed {
    fn unpack(&mut self, data: &[u8]) -> std::result::Result<(), Problem> {
        let (decoder, buffer) = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert((Decoder::new().map_err(read_problem)?, vec![0; 1 << 17])),
        };
        self.packed = self.packed.saturating_add(data.len().try_into().unwrap_or(u64::MAX));
        let most = self.packed.saturating_mul(MOST_UNPACKED).saturating_add(SLACK);
        let mut input = InBuffer::around(data);
        loop {
            let mut output = OutBuffer::around(&mut buffer[..]);
            // What is damaged is left to the parser, which says so.
            let Ok(_) = decoder.run(&mut input, &mut output) else { return Ok(()) };
            let count = output.pos();
            self.unpacked = self.unpacked.saturating_add(count.try_into().unwrap_or(u64::MAX));
            if self.unpacked > most {
                let what = format!("its compressed records unpack to more than {MOST_UNPACKED} times their size");
                return Err(damaged(&what));
            }
            if count < buffer.len() && input.pos() >= data.len() {
                return Ok(());
            }
        }
    }
}

/// The parts of the file's header that matter.
struct Header {
    data: Section,
    features: [u64; 4],
}

impl Header {
    fn read(file: &mut File<'_>) -> Result<Self> {
        let wrong = |what: &str| (Place::Byte(8), damaged(what));
        match file.number(8)? {
            104 => {}
            16 => return Err(wrong("it was written to a pipe; record into a file with `perf record -o FILE`")),
            _ => return Err(wrong("its header has an unknown size")),
        }
        let attribute_size = file.number(8)?;
        if !(64..=4096).contains(&attribute_size) {
            return Err(wrong("its header has an impossible attribute size"));
        }
        Section::read(file)?;
        let data = Section::read(file)?;
        Section::read(file)?;
        let features = [file.number(8)?, file.number(8)?, file.number(8)?, file.number(8)?];
        if data.size == 0 {
            let what = "its header says that it holds no records (perf record was killed before it could finish); record again".to_owned();
            return Err((Place::File, Problem::Truncated(what)));
        }
        Ok(Header { data, features })
    }
}

/// A part of the file. Its end is known not to overflow.
#[derive(Clone, Copy)]
struct Section {
    offset: u64,
    size: u64,
}

impl Section {
    fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    fn read(file: &mut File<'_>) -> Result<Self> {
        let place = Place::Byte(file.position);
        let (offset, size) = (file.number(8)?, file.number(8)?);
        match offset.checked_add(size) {
            Some(end) if end < 1 << 60 => Ok(Section { offset, size }),
            _ => Err((place, damaged("a section lies outside of any file"))),
        }
    }
}

/// Checks the counts in `nr, attr_size, nr × { attr, nr_ids, { len, text }, ids }`.
fn event_descriptions(bytes: Bytes<'_>, length: usize) -> Option<()> {
    let number = |at: usize| bytes.unsigned(at, 4).and_then(|number| usize::try_from(number).ok());
    let (count, attribute_size) = (number(0)?, number(4).filter(|size| (64..=4096).contains(size))?);
    let mut at = 8usize;
    for _ in 0..count {
        at = at.checked_add(attribute_size)?;
        let (ids, text) = (number(at)?, number(at.checked_add(4)?)?);
        at = at.checked_add(8)?.checked_add(text)?.checked_add(ids.checked_mul(8)?)?;
    }
    (count <= length && at <= length).then_some(())
}

/// A file with its position, whose end is a [`Problem::Truncated`].
struct File<'a> {
    reader: BufReader<Pieces<'a>>,
    /// How long it is, if it is not compressed: then what is skipped need not be read.
    length: Option<u64>,
    position: u64,
    big_endian: bool,
}

impl File<'_> {
    fn go_to(&mut self, offset: u64) -> Result<()> {
        if offset != self.position {
            self.position = self.reader.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(error))?;
        }
        if self.position == offset { Ok(()) } else { Err(self.cut()) }
    }

    fn number(&mut self, size: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes[..size]).map_err(|error| self.failed(error))?;
        self.advance(size.try_into().unwrap_or(u64::MAX));
        Bytes::new(&bytes[..size], self.big_endian).unsigned(0, size).ok_or_else(|| self.cut())
    }

    /// The next bytes; memory grows with what there is.
    fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(size).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        let read = read.try_into().unwrap_or(u64::MAX);
        self.advance(read);
        if read == size { Ok(bytes) } else { Err(self.cut()) }
    }

    fn skip(&mut self, size: u64) -> Result<()> {
        if let (Some(length), Ok(distance)) = (self.length, i64::try_from(size)) {
            if self.position.saturating_add(size) > length {
                self.position = length;
                return Err(self.cut());
            }
            self.reader.seek_relative(distance).map_err(|error| self.failed(error))?;
            self.advance(size);
            return Ok(());
        }
        let read = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink()).map_err(|error| self.failed(error))?;
        self.advance(read);
        if read == size { Ok(()) } else { Err(self.cut()) }
    }

    fn skip_all(&mut self) -> Result<()> {
        if self.length.is_none() {
            let read = io::copy(&mut self.reader, &mut io::sink()).map_err(|error| self.failed(error))?;
            self.advance(read);
        }
        Ok(())
    }

    fn advance(&mut self, count: u64) {
        self.position = self.position.saturating_add(count);
    }

    fn cut(&self) -> (Place, Problem) {
        (Place::Byte(self.position), Problem::Truncated("its header promises more than there is".to_owned()))
    }

    /// The end of a plain file is a cut; a decoder's error speaks for itself.
    fn failed(&self, error: io::Error) -> (Place, Problem) {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.cut(),
            _ => (Place::Byte(self.position), read_problem(error)),
        }
    }
}
