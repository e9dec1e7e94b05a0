//! Reads the layout of a perf.data and its header, before any record: the event descriptions come
//! after the records.
//!
//! No size in the file is trusted. A section is read up to a limit, and a section beyond the end of
//! the file means that the file is cut off. [`records`](super::records) reads the records
//! themselves, once.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use schedsim::admission::Cpus;

use super::damaged;
use crate::import::bytes::Bytes;
use crate::import::error::{Place, Problem};
use crate::import::input::{Pieces, read_problem};

/// Feature sections by their bit in the header.
const TRACING_DATA: u64 = 1;
const ARCHITECTURE: u64 = 6;
const NUMBER_OF_CPUS: u64 = 7;
const EVENT_DESCRIPTIONS: u64 = 12;

/// The largest total size of the feature sections.
const LARGEST_SECTIONS: u64 = 64 << 20;

type Result<T> = std::result::Result<T, (Place, Problem)>;

/// The offsets of the parts, and the sections that an import needs.
pub(super) struct Layout {
    pub big_endian: bool,
    /// The place of the records.
    pub data: Section,
    /// The event descriptions and their place.
    pub event_descriptions: (Place, Vec<u8>),
    /// The formats of the tracepoints; empty if there are none.
    pub tracing_data: Vec<u8>,
    /// The number of CPUs that were online; 0 if the file does not say.
    pub cpus_online: u16,
    /// The architecture, as `uname -m` prints it; empty if the file does not say.
    pub architecture: String,
}

impl Layout {
    /// Reads a file completely, except the records of an uncompressed one.
    pub fn read(reader: BufReader<Pieces<'_>>) -> Result<Layout> {
        let length = reader.get_ref().plain_length();
        let mut file = File { reader, length, position: 0, big_endian: false };
        file.big_endian = file.bytes(8)? == b"2ELIFREP";
        let header = Header::read(&mut file)?;
        file.go_to(header.data.offset)?;
        file.skip(header.data.size)?;

        let mut sections = Vec::new();
        for (word, bits) in (0u64..).zip(header.features) {
            for bit in (0u64..64).filter(|bit| {
                bits.checked_shr(u32::try_from(*bit).unwrap_or(u32::MAX))
                    .is_some_and(|bits| bits & 1 == 1)
            }) {
                sections
                    .push((word.saturating_mul(64).saturating_add(bit), Section::read(&mut file)?));
            }
        }
        let all =
            sections.iter().fold(0, |sum: u64, (_, section)| sum.saturating_add(section.size));
        if all > LARGEST_SECTIONS {
            return Err((
                Place::File,
                damaged(&format!(
                    "its feature sections have {all} bytes; the limit is {LARGEST_SECTIONS}"
                )),
            ));
        }
        sections.sort_by_key(|(_, section)| section.offset);
        let (mut described, mut tracing_data, mut cpus_online) = (None, Vec::new(), 0);
        let mut architecture = String::new();
        for (bit, section) in sections {
            file.go_to(section.offset)?;
            match bit {
                EVENT_DESCRIPTIONS => {
                    described = Some((Place::Byte(section.offset), file.bytes(section.size)?))
                }
                ARCHITECTURE => {
                    // `u32 length`, and a text that is filled up with zeros.
                    let text = file.bytes(section.size)?;
                    let text = text.get(4..).unwrap_or_default().split(|byte| *byte == 0).next();
                    architecture = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
                }
                TRACING_DATA => tracing_data = file.bytes(section.size)?,
                NUMBER_OF_CPUS => {
                    let numbers = file.bytes(section.size)?;
                    // `u32 available, u32 online`.
                    let online = Bytes::new(&numbers, file.big_endian).unsigned(4, 4);
                    cpus_online = online
                        .map_or(Ok(0), cpus)
                        .map_err(|problem| (Place::Byte(section.offset), problem))?;
                }
                _ => file.skip(section.size)?,
            }
        }
        // Only the end of a compressed file shows that it is complete.
        file.skip_all()?;
        let event_descriptions =
            described.ok_or_else(|| (Place::File, damaged("it does not describe its events")))?;
        Ok(Layout {
            big_endian: file.big_endian,
            data: header.data,
            event_descriptions,
            tracing_data,
            cpus_online,
            architecture,
        })
    }
}

fn cpus(online: u64) -> std::result::Result<u16, Problem> {
    Cpus::admit(online.into())
        .map(Cpus::get)
        .map_err(|wrong| Problem::Range { what: "the number of CPUs", wrong })
}

/// The relevant parts of the file's header.
struct Header {
    data: Section,
    features: [u64; 4],
}

impl Header {
    fn read(file: &mut File<'_>) -> Result<Self> {
        let wrong = |what: &str| (Place::Byte(8), damaged(what));
        match file.number(8)? {
            104 => {}
            16 => {
                return Err(wrong(
                    "it was written to a pipe; record into a file with `perf record -o FILE`",
                ));
            }
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
            let what = "its header says that it holds no records (perf record was killed before \
                        it could finish); record again"
                .to_owned();
            return Err((Place::File, Problem::Truncated(what)));
        }
        Ok(Header { data, features })
    }
}

/// A part of the file. Its end is checked for overflow.
#[derive(Clone, Copy)]
pub(super) struct Section {
    pub offset: u64,
    pub size: u64,
}

impl Section {
    fn read(file: &mut File<'_>) -> Result<Self> {
        let place = Place::Byte(file.position);
        let (offset, size) = (file.number(8)?, file.number(8)?);
        match offset.checked_add(size) {
            Some(end) if end < 1 << 60 => Ok(Section { offset, size }),
            _ => Err((place, damaged("a section lies outside of any file"))),
        }
    }
}

/// A file with its position. An unexpected end is a [`Problem::Truncated`].
struct File<'a> {
    reader: BufReader<Pieces<'a>>,
    /// The length of an uncompressed file; it allows seeking instead of reading.
    length: Option<u64>,
    position: u64,
    big_endian: bool,
}

impl File<'_> {
    fn go_to(&mut self, offset: u64) -> Result<()> {
        if offset != self.position {
            self.position =
                self.reader.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(error))?;
        }
        if self.position == offset { Ok(()) } else { Err(self.cut()) }
    }

    fn number(&mut self, size: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        self.reader.read_exact(&mut bytes[..size]).map_err(|error| self.failed(error))?;
        self.advance(size.try_into().unwrap_or(u64::MAX));
        Bytes::new(&bytes[..size], self.big_endian).unsigned(0, size).ok_or_else(|| self.cut())
    }

    /// The next bytes; memory grows only with the bytes that exist.
    fn bytes(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(size)
            .read_to_end(&mut bytes)
            .map_err(|error| self.failed(error))?;
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
        let read = io::copy(&mut self.reader.by_ref().take(size), &mut io::sink())
            .map_err(|error| self.failed(error))?;
        self.advance(read);
        if read == size { Ok(()) } else { Err(self.cut()) }
    }

    fn skip_all(&mut self) -> Result<()> {
        if self.length.is_none() {
            let read =
                io::copy(&mut self.reader, &mut io::sink()).map_err(|error| self.failed(error))?;
            self.advance(read);
        }
        Ok(())
    }

    fn advance(&mut self, count: u64) {
        self.position = self.position.saturating_add(count);
    }

    fn cut(&self) -> (Place, Problem) {
        (
            Place::Byte(self.position),
            Problem::Truncated("its header describes more data than the file has".to_owned()),
        )
    }

    /// The end of an uncompressed file means that it is cut off; a decoder reports its own error.
    fn failed(&self, error: io::Error) -> (Place, Problem) {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.cut(),
            _ => (Place::Byte(self.position), read_problem(error)),
        }
    }
}
