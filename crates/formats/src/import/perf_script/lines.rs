//! Splits a stream into lines without a copy of each line.

use std::io::{self, Read};

use crate::import::error::Problem;
use crate::import::input::read_problem;
use crate::import::record::count;

/// More than any line of a trace has.
const LONGEST_LINE: usize = 1 << 20;

/// The lines of a stream.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes that are read but not yet returned.
    start: usize,
    end: usize,
    /// The number of returned lines.
    pub number: u64,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Lines { reader, buffer: vec![0; 1 << 18], start: 0, end: 0, number: 0 }
    }

    /// The next line without its newline; `None` at the end of the file. A last line without a
    /// newline is cut off.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Problem> {
        let mut searched = self.start;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched.saturating_add(length);
                self.start = line.end.saturating_add(1);
                count(&mut self.number);
                return Ok(Some(&self.buffer[line]));
            }
            searched = self.end.saturating_sub(self.start);
            if !self.fill()? {
                return match self.end.saturating_sub(self.start) {
                    0 => Ok(None),
                    _ => {
                        count(&mut self.number);
                        Err(Problem::Truncated("its last line has no end".to_owned()))
                    }
                };
            }
        }
    }

    /// Goes behind the first of `texts`, and returns which; `None` at the end of the file. Lines
    /// between may have any length: they are not kept.
    pub fn seek(&mut self, texts: &[&[u8]]) -> Result<Option<usize>, Problem> {
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        loop {
            let unread = &self.buffer[self.start..self.end];
            let places = texts.iter().enumerate().filter_map(|(which, text)| {
                Some((memchr::memmem::find(unread, text)?, text.len(), which))
            });
            let found = places.min();
            let passed = match found {
                Some((place, length, _)) => place.saturating_add(length),
                None => unread.len().saturating_sub(longest.saturating_sub(1)),
            };
            let newlines = memchr::memchr_iter(b'\n', &unread[..passed]).count();
            self.number = self.number.saturating_add(u64::try_from(newlines).unwrap_or(u64::MAX));
            self.start = self.start.saturating_add(passed);
            if let Some((_, _, which)) = found {
                return Ok(Some(which));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Moves the remaining bytes to the front of the buffer and reads more. Returns false at the
    /// end of the file.
    #[cold]
    fn fill(&mut self) -> Result<bool, Problem> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end.saturating_sub(self.start));
        if self.end == self.buffer.len() {
            if self.end >= LONGEST_LINE {
                count(&mut self.number);
                return Err(Problem::NotATrace(
                    "a file with longer lines than any trace".to_owned(),
                ));
            }
            self.buffer.resize(self.end.saturating_mul(2), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(more) => {
                    self.end = self.end.saturating_add(more);
                    return Ok(more > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(read_problem(error)),
            }
        }
    }
}
