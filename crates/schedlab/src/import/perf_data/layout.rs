//! Whether a perf.data is whole: everything its header and records promise lies in the file.
//!
//! The parser crate trusts sizes; a damaged file would make it allocate without bound or look complete when it is not. This pass reads the
//! file once before it and knows at which byte it breaks.

use std::io::{self, Read, Seek, SeekFrom};

use super::damaged;
use super::tracepoint::Bytes;
use crate::import::error::{Place, Problem};
use crate::import::input::read_problem;

/// Feature sections by their bit in the header.
const EVENT_DESCRIPTIONS: u64 = 12;

/// The record that is followed by data outside of it.
const AUXTRACE: u64 = 71;

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// Reads a whole file and checks its structure.
pub(super) fn check(reader: impl Read + Seek) -> Result<()> {
    let mut file = File { reader, position: 0, big_endian: false };
    file.big_endian = file.bytes(8)? == b"2ELIFREP";
    let header = Header::read(&mut file)?;
    records(&mut file, header.data)?;

    let mut sections = Vec::new();
    for bit in (0..256).filter(|bit| header.features[bit / 64] >> (bit % 64) & 1 == 1) {
        sections.push((bit as u64, Section::read(&mut file)?));
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
fn records(file: &mut File<impl Read + Seek>, data: Section) -> Result<()> {
    file.go_to(data.offset)?;
    let end = data.offset + data.size;
    while file.position < end {
        let start = file.position;
        let broken = || (Place::Byte(start), damaged("a record's size makes no sense here"));
        let kind = file.number(4)?;
        file.number(2)?;
        let mut body = file.number(2)?.checked_sub(8).ok_or_else(broken)?;
        if kind == AUXTRACE {
            let trailing = file.number(8)?;
            body = body.checked_sub(8).and_then(|body| body.checked_add(trailing)).ok_or_else(broken)?;
        }
        if file.position.checked_add(body).is_none_or(|after| after > end) {
            return Err(broken());
        }
        file.skip(body)?;
    }
    Ok(())
}

/// The parts of the file's header that matter.
struct Header {
    data: Section,
    features: [u64; 4],
}

impl Header {
    fn read(file: &mut File<impl Read + Seek>) -> Result<Self> {
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
    fn read(file: &mut File<impl Read + Seek>) -> Result<Self> {
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
    let number = |at: usize| bytes.unsigned(at, 4).map(|number| number as usize);
    let (count, attribute_size) = (number(0)?, number(4)?);
    let mut at = 8usize;
    for _ in 0..count {
        at = at.checked_add(attribute_size)?;
        let (ids, text) = (number(at)?, number(at.checked_add(4)?)?);
        at = at.checked_add(8)?.checked_add(text)?.checked_add(ids.checked_mul(8)?)?;
    }
    (count <= length && at <= length).then_some(())
}

/// A file with its position, whose end is a [`Problem::Truncated`].
struct File<R> {
    reader: R,
    position: u64,
    big_endian: bool,
}

impl<R: Read + Seek> File<R> {
    fn go_to(&mut self, offset: u64) -> Result<()> {
        if offset != self.position {
            self.position = self.reader.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(error))?;
        }
        if self.position == offset { Ok(()) } else { Err(self.cut()) }
    }

    fn number(&mut self, size: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes[..size]).map_err(|error| self.failed(error))?;
        self.position += size as u64;
        Bytes::new(&bytes[..size], self.big_endian).unsigned(0, size).ok_or_else(|| self.cut())
    }

    fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(size).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        self.position += read as u64;
        if read as u64 == size { Ok(bytes) } else { Err(self.cut()) }
    }

    fn skip(&mut self, size: u64) -> Result<()> {
        let read = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink()).map_err(|error| self.failed(error))?;
        self.position += read;
        if read == size { Ok(()) } else { Err(self.cut()) }
    }

    fn skip_all(&mut self) -> Result<()> {
        self.position += io::copy(&mut self.reader, &mut io::sink()).map_err(|error| self.failed(error))?;
        Ok(())
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
