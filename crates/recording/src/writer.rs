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
            let content: Vec<u8> = events.iter().flat_map(Event::bytes).collect();
            self.chunk(EVENTS, &content)?;
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
        self.chunk(kind, &serde_json::to_vec(value)?)
    }

    fn chunk(&mut self, kind: u32, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= LARGEST_CHUNK);
        let length = length.ok_or_else(|| io::Error::other("a chunk is too large"))?;
        let mut chunk = Vec::with_capacity(content.len() + 16);
        chunk.extend(kind.to_le_bytes());
        chunk.extend(length.to_le_bytes());
        chunk.extend(checksum(kind, length, content).to_le_bytes());
        chunk.extend(content);
        self.file.write_all(&chunk)
    }
}
