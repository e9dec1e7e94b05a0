//! Messages: how words are written, read, and sent.

use super::super::{Dispatch, Effect};
use crate::{CpuId, Nanos, TaskId, Time};
use std::io::{self, ErrorKind, Read, Write};

/// The most words of a message. A machine of 4,096 CPUs takes less.
const MOST: u32 = 1 << 20;
/// The longest text in bytes; the rest is left out.
const LONGEST_TEXT: usize = 4096;

/// Sends a message.
///
/// # Errors
/// As `to`.
pub fn send(to: &mut impl Write, words: &[u64]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 + 8 * words.len());
    bytes.extend((words.len() as u32).to_le_bytes());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    to.write_all(&bytes)
}

/// Receives a message.
///
/// # Errors
/// As `from`, or if it is too long.
pub fn receive(from: &mut impl Read) -> io::Result<Vec<u64>> {
    let mut count = [0; 4];
    from.read_exact(&mut count)?;
    let count = u32::from_le_bytes(count);
    if count > MOST {
        return Err(io::Error::new(ErrorKind::InvalidData, "a message is too long"));
    }
    let mut bytes = vec![0; 8 * count as usize];
    from.read_exact(&mut bytes)?;
    let word = |bytes: &[u8]| {
        u64::from_le_bytes([
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
        ])
    };
    Ok(bytes.chunks_exact(8).map(word).collect())
}

/// Writes a text, as its length and its bytes.
pub(super) fn put_text(to: &mut Vec<u64>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(LONGEST_TEXT)];
    to.push(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        to.push(u64::from_le_bytes(word));
    }
}

/// Writes an effect.
pub(super) fn put_effect(to: &mut Vec<u64>, effect: Effect) {
    let (kind, cpu, time) = match effect {
        Effect::Nothing => (0, 0, 0),
        Effect::Kick(cpu) => (1, cpu.0, 0),
        Effect::KickAt(cpu, time) => (2, cpu.0, time.0),
        Effect::Preempt(cpu) => (3, cpu.0, 0),
    };
    to.extend([kind, cpu.into(), time]);
}

/// Writes what a dispatch chose.
pub(super) fn put_dispatch(to: &mut Vec<u64>, dispatch: Option<Dispatch>) {
    let (is_some, task, slice) =
        dispatch.map_or((0, 0, 0), |dispatch| (1, dispatch.task.0, dispatch.slice.0));
    to.extend([is_some, task.into(), slice]);
}

/// Reads a message, which may be a stranger's: whatever it has, nothing fails but the reading.
pub(super) struct Reader<'a> {
    words: &'a [u64],
}

impl<'a> Reader<'a> {
    pub fn new(words: &'a [u64]) -> Reader<'a> {
        Reader { words }
    }

    /// The next word.
    pub fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    /// The next word, as a number of this size.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.next()?.try_into().ok()
    }

    /// The next `count` words.
    pub fn take(&mut self, count: usize) -> Option<&'a [u64]> {
        let (first, rest) = self.words.split_at_checked(count)?;
        self.words = rest;
        Some(first)
    }

    pub fn text(&mut self) -> Option<String> {
        let length: usize = self.number()?;
        if length > LONGEST_TEXT {
            return None;
        }
        let bytes: Vec<u8> =
            self.take(length.div_ceil(8))?.iter().flat_map(|word| word.to_le_bytes()).collect();
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    pub fn effect(&mut self) -> Option<Effect> {
        let (kind, cpu, time) = (self.next()?, CpuId(self.number()?), Time(self.next()?));
        match kind {
            0 => Some(Effect::Nothing),
            1 => Some(Effect::Kick(cpu)),
            2 => Some(Effect::KickAt(cpu, time)),
            3 => Some(Effect::Preempt(cpu)),
            _ => None,
        }
    }

    #[expect(clippy::option_option, reason = "a wrong message, or the answer that there is none")]
    pub fn dispatch(&mut self) -> Option<Option<Dispatch>> {
        let (is_some, task, slice) = (self.next()?, self.number()?, self.next()?);
        match is_some {
            0 => Some(None),
            1 => Some(Some(Dispatch { task: TaskId(task), slice: Nanos(slice) })),
            _ => None,
        }
    }
}
