//! The pages of a CPU's ring buffer, one at a time, and their events.

use super::damaged;
use super::layout::{File, Layout, OfCpu, Packing, Result};
use crate::import::bytes::Bytes;
use crate::import::error::Place;

/// What a page says beside the number of its bytes: events before it are missing, and how many is
/// stored behind its last event.
const MISSED: u64 = 1 << 31;
const COUNTED: u64 = 1 << 30;
const BYTES: u64 = (1 << 27) - 1;

/// The events of a CPU, in order.
pub(super) struct Pages {
    page_size: usize,
    commit: (usize, usize),
    data: usize,
    big_endian: bool,
    packing: Packing,
    /// Where the next page, or the next packed part, begins, and where the last one ends.
    next: u64,
    end: u64,
    /// Packed parts that are left; only where pages are packed.
    parts: Option<u64>,
    /// Pages that are read.
    buffer: Vec<u8>,
    /// Where the next page begins in the buffer, and what is left of the events of the current one.
    next_page: usize,
    at: usize,
    until: usize,
    time: u64,
    /// The current event.
    event: (usize, usize),
    /// Events that are missing.
    pub missed: u64,
}

impl Pages {
    pub fn new(layout: &Layout, of: &OfCpu) -> Self {
        Pages {
            page_size: layout.page_size,
            commit: layout.commit,
            data: layout.data,
            big_endian: layout.big_endian,
            packing: layout.packing,
            next: of.offset,
            end: of.offset.saturating_add(of.size),
            parts: None,
            buffer: Vec::new(),
            next_page: 0,
            at: 0,
            until: 0,
            time: 0,
            event: (0, 0),
            missed: 0,
        }
    }

    /// About where it is in the file.
    pub fn place(&self) -> u64 {
        self.next
    }

    /// The bytes of the current event.
    pub fn fields<'b>(&'b self, layout: &Layout) -> Bytes<'b> {
        let (from, to) = self.event;
        Bytes::new(self.buffer.get(from..to).unwrap_or_default(), layout.big_endian)
    }

    /// Goes to the next event, and returns its time; `None` at the end.
    pub fn advance(&mut self, file: &mut File<'_>) -> Result<Option<u64>> {
        /// Sizes of words of 4 bytes up to here are those of an event.
        const LONGEST: u64 = 28;
        loop {
            if self.at >= self.until && !self.turn(file)? {
                return Ok(None);
            }
            let (head, word) =
                (self.word(self.at)?, |pages: &Pages| pages.word(pages.at.saturating_add(4)));
            let (kind, delta) = match self.big_endian {
                false => (head & 0x1f, head >> 5),
                true => (head >> 27, head & BYTES),
            };
            let (skip, length) = match kind {
                0 => {
                    let length = word(self)?.saturating_sub(4);
                    (8, usize::try_from(length.next_multiple_of(4)).unwrap_or(usize::MAX))
                }
                1..=LONGEST => (4, usize::try_from(kind.saturating_mul(4)).unwrap_or(usize::MAX)),
                // The rest of the page, or an event that was taken back.
                29 if delta == 0 => {
                    self.at = self.until;
                    continue;
                }
                29 => {
                    let length = usize::try_from(word(self)?).unwrap_or(usize::MAX);
                    self.time = self.time.saturating_add(delta);
                    self.step(4usize.saturating_add(length));
                    continue;
                }
                30 => {
                    let more = word(self)?.saturating_mul(1 << 27);
                    self.time = self.time.saturating_add(delta).saturating_add(more);
                    self.step(8);
                    continue;
                }
                // An absolute time, but for its five highest bits.
                _ => {
                    let low = word(self)?.saturating_mul(1 << 27) | delta;
                    self.time = self.time & !((1 << 59) - 1) | low & ((1 << 59) - 1);
                    self.step(8);
                    continue;
                }
            };
            self.time = self.time.saturating_add(delta);
            let from = self.at.saturating_add(skip);
            let to = from.saturating_add(length);
            if to > self.until {
                return Err((Place::Byte(self.next), damaged("an event reaches beyond its page")));
            }
            self.event = (from, to);
            self.at = to;
            return Ok(Some(self.time));
        }
    }

    fn step(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn word(&self, at: usize) -> Result<u64> {
        let word = Bytes::new(&self.buffer, self.big_endian).unsigned(at, 4);
        word.filter(|_| at < self.until)
            .ok_or_else(|| (Place::Byte(self.next), damaged("a page ends within an event")))
    }

    /// Goes to the next page with events; whether there is one.
    fn turn(&mut self, file: &mut File<'_>) -> Result<bool> {
        loop {
            if self.next_page.saturating_add(self.page_size) > self.buffer.len() {
                if !self.fill(file)? {
                    return Ok(false);
                }
                self.next_page = 0;
            }
            let begin = self.next_page;
            self.next_page = begin.saturating_add(self.page_size);
            let page = Bytes::new(&self.buffer, self.big_endian);
            let at = |offset: usize| begin.saturating_add(offset);
            let number = |offset: usize, size: usize| page.unsigned(at(offset), size);
            let (Some(time), Some(commit)) = (number(0, 8), number(self.commit.0, self.commit.1))
            else {
                return Err((Place::Byte(self.next), damaged("a page is cut off")));
            };
            let bytes = usize::try_from(commit & BYTES).unwrap_or(usize::MAX);
            let until = at(self.data).saturating_add(bytes);
            if until > at(self.page_size) {
                return Err((Place::Byte(self.next), damaged("a page has more events than room")));
            }
            if commit & MISSED != 0 {
                let stored = page.unsigned(until, self.commit.1).filter(|_| commit & COUNTED != 0);
                self.missed = self.missed.saturating_add(stored.unwrap_or(1));
            }
            (self.time, self.at, self.until) = (time, at(self.data), until);
            if bytes > 0 {
                return Ok(true);
            }
        }
    }

    /// Reads the next page, or unpacks the next part; whether there is one.
    fn fill(&mut self, file: &mut File<'_>) -> Result<bool> {
        let place = Place::Byte(self.next);
        if self.packing == Packing::None {
            let size = u64::try_from(self.page_size).unwrap_or(u64::MAX);
            let after = self.next.saturating_add(size);
            if after > self.end {
                return Ok(false);
            }
            file.go_to(self.next)?;
            self.buffer = file.bytes(size)?;
            self.next = after;
            return Ok(true);
        }
        file.go_to(self.next)?;
        let left = match self.parts {
            Some(parts) => parts,
            None => {
                self.next = self.next.saturating_add(4);
                file.number(4)?
            }
        };
        self.parts = Some(left.saturating_sub(1));
        if left == 0 {
            return Ok(false);
        }
        let (packed, unpacked) = (file.number(4)?, file.number(4)?);
        self.buffer = self.packing.unpack(&file.bytes(packed)?, unpacked, place)?;
        self.next = self.next.saturating_add(8).saturating_add(packed);
        Ok(true)
    }
}
