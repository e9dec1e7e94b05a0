//! Writes a file, a chunk at a time.

use crate::{
    COUNTS, Counts, END, EVENTS, End, Event, LARGEST_CHUNK, MACHINE, MAGIC, Machine, VERSION,
    checksum,
};
use serde::Serialize;
use std::io::{self, Write};

/// A file that is being written. Each chunk is handed to the system in one piece.
pub struct Writer<W> {
    file: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header and the first chunk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut file: W, machine: &Machine) -> io::Result<Writer<W>> {
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        file.write_all(&header)?;
        let mut writer = Writer { file };
        writer.json(MACHINE, machine)?;
        Ok(writer)
    }

    /// Writes events, which must be in order of time and not before those of earlier calls.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn events(&mut self, events: &[Event]) -> io::Result<()> {
        for events in events.chunks(LARGEST_CHUNK / Event::SIZE) {
            let mut chunk = with_head(events.len() * Event::SIZE);
            events.iter().for_each(|event| chunk.extend_from_slice(&event.bytes()));
            self.chunk(EVENTS, chunk)?;
        }
        Ok(())
    }

    /// Writes the counters so far.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn counts(&mut self, counts: &Counts) -> io::Result<()> {
        self.json(COUNTS, counts)
    }

    /// Writes the last chunk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self, end: &End) -> io::Result<W> {
        self.json(END, end)?;
        self.file.flush()?;
        Ok(self.file)
    }

    fn json(&mut self, kind: u32, value: &impl Serialize) -> io::Result<()> {
        let mut chunk = with_head(0);
        serde_json::to_writer(&mut chunk, value)?;
        self.chunk(kind, chunk)
    }

    /// Writes a chunk whose content comes after room for its head.
    fn chunk(&mut self, kind: u32, mut chunk: Vec<u8>) -> io::Result<()> {
        let (head, content) = chunk.split_at_mut(HEAD);
        let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= LARGEST_CHUNK);
        let length = length.ok_or_else(|| io::Error::other("a chunk is too large"))?;
        head[..4].copy_from_slice(&kind.to_le_bytes());
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..].copy_from_slice(&checksum(kind, length, content).to_le_bytes());
        self.file.write_all(&chunk)
    }
}

/// The kind, length and checksum of a chunk.
const HEAD: usize = 16;

/// A chunk that begins with room for its head.
fn with_head(content: usize) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(HEAD + content);
    chunk.resize(HEAD, 0);
    chunk
}
