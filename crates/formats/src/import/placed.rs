//! A file that is read in places, with the position in it.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::error::{Place, Problem};
use super::input::{Pieces, read_problem};

/// A file with its position.
pub(super) struct Placed<'a> {
    reader: BufReader<Pieces<'a>>,
    position: u64,
}

impl<'a> Placed<'a> {
    pub fn new(reader: BufReader<Pieces<'a>>) -> Self {
        Placed { reader, position: 0 }
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn go_to(&mut self, offset: u64) -> Result<(), (Place, Problem)> {
        let place = Place::Byte(offset);
        let failed = |error| (place, read_problem(error));
        let distance = i128::from(offset).saturating_sub(self.position.into());
        match i64::try_from(distance) {
            Ok(distance) => self.reader.seek_relative(distance).map_err(failed)?,
            Err(_) => drop(self.reader.seek(SeekFrom::Start(offset)).map_err(failed)?),
        }
        self.position = offset;
        Ok(())
    }

    /// The next bytes, fewer at the end of the file; memory grows only with those that exist.
    pub fn bytes_up_to(&mut self, size: u64) -> Result<Vec<u8>, (Place, Problem)> {
        let mut bytes = Vec::new();
        self.read_up_to(size, &mut bytes)?;
        Ok(bytes)
    }

    /// The same into `bytes`, in the place of what they were.
    pub fn read_up_to(&mut self, size: u64, bytes: &mut Vec<u8>) -> Result<(), (Place, Problem)> {
        bytes.clear();
        let here = usize::try_from(size).ok().and_then(|size| self.reader.buffer().get(..size));
        if let Some(here) = here {
            bytes.extend_from_slice(here);
            self.reader.consume(bytes.len());
        } else {
            let read = self.reader.by_ref().take(size).read_to_end(bytes);
            read.map_err(|error| (Place::Byte(self.position), read_problem(error)))?;
        }
        self.advance(bytes.len());
        Ok(())
    }

    /// The next byte; `None` at the end of the file.
    pub fn byte(&mut self) -> Result<Option<u8>, (Place, Problem)> {
        let next = self.reader.fill_buf();
        let next = next.map_err(|error| (Place::Byte(self.position), read_problem(error)))?;
        let byte = next.first().copied();
        if byte.is_some() {
            self.reader.consume(1);
            self.advance(1);
        }
        Ok(byte)
    }

    fn advance(&mut self, by: usize) {
        self.position = self.position.saturating_add(u64::try_from(by).unwrap_or(u64::MAX));
    }
}
