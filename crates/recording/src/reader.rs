//! Reads a file, a chunk at a time, and refuses what does not fit.

use crate::{
    COUNTS, Counts, END, EVENTS, End, Event, LARGEST_CHUNK, MACHINE, MAGIC, Machine, VERSION,
    checksum,
};
use serde::de::DeserializeOwned;
use std::io::{self, Read};

/// A file that is being read.
pub struct Reader<R> {
    file: R,
    at: u64,
    machine: Machine,
}

/// How a file ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With its last chunk.
    Complete(End),
    /// Without: the recorder was killed, or the file was cut.
    Cut {
        /// Where the last complete chunk ends.
        at: u64,
        /// The last counters, if there are any.
        counts: Option<Counts>,
    },
}

/// Why a file cannot be read.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Damage {
    /// The system failed.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// It has another format.
    #[error("this is no recording of schedlab's recorder")]
    Magic,
    /// It has another version.
    #[error(
        "this recording has format version {0}, and version {VERSION} is read; use the schedlab \
         that wrote it, or record again"
    )]
    Version(u32),
    /// It ends before its first chunk does.
    #[error("the file is cut off in its head; copy or record it again")]
    Head,
    /// Something does not fit.
    #[error("{what}; the file is damaged: copy or record it again")]
    Chunk {
        /// The byte at which the chunk or the event begins.
        at: u64,
        /// What does not fit.
        what: String,
    },
}

impl Damage {
    /// The byte, if there is one.
    pub fn at(&self) -> Option<u64> {
        match self {
            Damage::Chunk { at, .. } => Some(*at),
            Damage::Version(_) => Some(MAGIC.len() as u64),
            Damage::Read(_) | Damage::Magic | Damage::Head => None,
        }
    }
}

/// A piece of a file.
enum Piece {
    Chunk { at: u64, kind: u32, content: Vec<u8> },
    Cut,
    Nothing,
}

impl<R: Read> Reader<R> {
    /// Reads the header and the first chunk.
    ///
    /// # Errors
    /// [`Damage`] if these are not a recording's.
    pub fn new(file: R) -> Result<Reader<R>, Damage> {
        let mut reader = Reader { file, at: 0, machine: Machine::default() };
        let mut header = [0; 12];
        let count = reader.fill(&mut header)?;
        if header[..count.min(8)] != MAGIC[..count.min(8)] {
            return Err(Damage::Magic);
        }
        if count < header.len() {
            return Err(Damage::Head);
        }
        let version = number(&header[8..]);
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        match reader.piece()? {
            Piece::Chunk { at, kind: MACHINE, content } => reader.machine = json(at, &content)?,
            Piece::Chunk { at, kind, .. } => {
                return Err(damage(at, format!("the first chunk is of kind {kind}")));
            }
            Piece::Cut | Piece::Nothing => return Err(Damage::Head),
        }
        Ok(reader)
    }

    /// Where and how it was recorded.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Passes on all events, each with the byte at which it begins.
    ///
    /// # Errors
    /// [`Damage`] at the first chunk or event that does not fit.
    pub fn read(&mut self, mut take: impl FnMut(u64, &Event)) -> Result<Outcome, Damage> {
        self.try_read(|at, event| {
            take(at, event);
            Ok(())
        })
    }

    /// The same, until `take` gives an error.
    ///
    /// # Errors
    /// [`Damage`], or the error of `take`.
    pub fn try_read<E: From<Damage>>(
        &mut self,
        mut take: impl FnMut(u64, &Event) -> Result<(), E>,
    ) -> Result<Outcome, E> {
        let (mut latest, mut counts) = (0, None);
        loop {
            let end = self.at;
            match self.piece()? {
                Piece::Chunk { at, kind: EVENTS, content } => {
                    events(at, &content, &mut latest, &mut take)?;
                }
                Piece::Chunk { at, kind: COUNTS, content } => counts = Some(json(at, &content)?),
                Piece::Chunk { at, kind: END, content } => {
                    let last = json(at, &content)?;
                    return match self.piece()? {
                        Piece::Nothing => Ok(Outcome::Complete(last)),
                        _ => Err(damage(self.at, "bytes follow the last chunk").into()),
                    };
                }
                Piece::Chunk { at, kind, .. } => {
                    return Err(damage(at, format!("a chunk of the unknown kind {kind}")).into());
                }
                Piece::Cut | Piece::Nothing => return Ok(Outcome::Cut { at: end, counts }),
            }
        }
    }

    fn piece(&mut self) -> Result<Piece, Damage> {
        let at = self.at;
        let mut head = [0; 16];
        match self.fill(&mut head)? {
            0 => return Ok(Piece::Nothing),
            16 => {}
            _ => return Ok(Piece::Cut),
        }
        let (kind, length) = (number(&head), number(&head[4..]));
        let size = usize::try_from(length).ok().filter(|size| *size <= LARGEST_CHUNK);
        let size = size.ok_or_else(|| damage(at, format!("a chunk of {length} bytes")))?;
        let mut content = Vec::new();
        let limit = u64::from(length);
        let count = Read::take(&mut self.file, limit).read_to_end(&mut content)?;
        self.at += count as u64;
        if count < size {
            return Ok(Piece::Cut);
        }
        if head[8..] != checksum(kind, length, &content).to_le_bytes() {
            return Err(damage(at, "the checksum of a chunk is wrong"));
        }
        Ok(Piece::Chunk { at, kind, content })
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.file.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.at += count as u64;
        Ok(count)
    }
}

fn events<E: From<Damage>>(
    at: u64,
    content: &[u8],
    latest: &mut u64,
    take: &mut impl FnMut(u64, &Event) -> Result<(), E>,
) -> Result<(), E> {
    let (events, rest) = content.as_chunks::<{ Event::SIZE }>();
    if !rest.is_empty() {
        return Err(damage(at, "a chunk ends within an event").into());
    }
    let mut place = at + 16;
    for bytes in events {
        let event = Event::parse(bytes)
            .ok_or_else(|| damage(place, format!("an event of the unknown kind {}", bytes[10])))?;
        if event.time < *latest {
            return Err(damage(place, "the time of an event is before the one's before it").into());
        }
        *latest = event.time;
        take(place, &event)?;
        place += Event::SIZE as u64;
    }
    Ok(())
}

fn json<T: DeserializeOwned>(at: u64, content: &[u8]) -> Result<T, Damage> {
    serde_json::from_slice(content).map_err(|error| damage(at, format!("a chunk's text: {error}")))
}

fn damage(at: u64, what: impl Into<String>) -> Damage {
    Damage::Chunk { at, what: what.into() }
}

fn number(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{What, Writer};
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &Machine::default()).unwrap();
        for chunk in 0..3 {
            let event = |number: u64| Event {
                time: chunk * 100 + number,
                cpu: 1,
                context: 0,
                tid: 7,
                what: What::Call { object: 3, result: -11, number: 202, op: 9, duration: number },
            };
            writer.events(&(0..20).map(event).collect::<Vec<_>>()).unwrap();
            writer.counts(&Counts::default()).unwrap();
        }
        writer.end(&End::default()).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<(u64, Outcome), Damage> {
        let mut count = 0;
        let outcome = Reader::new(bytes)?.read(|_, _| count += 1)?;
        Ok((count, outcome))
    }

    #[test]
    fn a_complete_file_gives_all_events() {
        let (count, outcome) = read(&sample()).unwrap();
        assert!(count == 60 && outcome == Outcome::Complete(End::default()), "{outcome:?}");
    }

    #[test]
    fn a_cut_file_gives_its_complete_chunks_and_says_so() {
        let bytes = sample();
        let mut seen = Vec::new();
        for length in 0..bytes.len() {
            match read(&bytes[..length]) {
                Ok((count, Outcome::Cut { at, .. })) => {
                    assert!(at <= length as u64 && count % 20 == 0);
                    seen.push(count);
                }
                Ok((_, outcome)) => panic!("{length}: {outcome:?}"),
                Err(Damage::Head) => assert!(seen.is_empty(), "{length}"),
                Err(damage) => panic!("{length}: {damage}"),
            }
        }
        assert!(seen.is_sorted() && seen.contains(&0) && seen.contains(&60));
    }

    /// Also when a chunk is written every 20 ms, as the recorder does.
    #[test]
    fn a_million_events_take_little_more_than_40_bytes_each() {
        let what = What::Exit { task: 1, prio: 120 };
        let event = Event { time: 0, cpu: 0, context: 0, tid: 1, what };
        for chunk in [1_000_000, 10_000] {
            let mut writer = Writer::new(Vec::new(), &Machine::default()).unwrap();
            let events = vec![event; chunk];
            for _ in 0..1_000_000 / chunk {
                writer.events(&events).unwrap();
            }
            let size = writer.end(&End::default()).unwrap().len();
            assert!((40_000_000..40_010_000).contains(&size), "{size} bytes");
        }
    }

    #[test]
    fn another_version_is_named_and_another_file_refused() {
        let mut bytes = sample();
        bytes[8] = 2;
        let damage = read(&bytes).unwrap_err();
        assert!(damage.to_string().contains("version 2") && damage.at() == Some(8), "{damage}");
        assert!(matches!(read(b"PERFILE2 and more"), Err(Damage::Magic)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// A file with one wrong byte is refused, or read as a shorter one (a longer length).
        #[test]
        fn a_mutated_file_is_never_read_as_complete(at in 0_usize..1_000_000, flip in 1_u8..) {
            let mut bytes = sample();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok((_, outcome)) = read(&bytes) {
                prop_assert!(matches!(outcome, Outcome::Cut { .. }), "byte {at}: {outcome:?}");
            }
        }
    }
}
