//! Which line of source an instruction is of (`.BTF.ext`).

use crate::btf::Btf;
use crate::malformed::{Malformed, Reader};
use std::collections::BTreeMap;

/// How the section is called.
pub(crate) const SECTION: &str = ".BTF.ext";

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file as the compiler called it.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The text of the line.
    pub text: String,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The first byte of the section that is of this line.
    from: u32,
    file: u32,
    text: u32,
    line: u32,
}

/// The lines of each section of code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(BTreeMap<String, Vec<Mark>>);

impl Lines {
    /// Reads the section; its relocations are done.
    pub fn read(bytes: &[u8], btf: &Btf) -> Result<Lines, Malformed> {
        let file = Reader { name: SECTION, bytes };
        if file.u16(0)? != 0xeb9f || file.u8(2)? != 1 {
            return Err(file.malformed(0, "this is not version 1 of BTF.ext"));
        }
        let start = u64::from(file.u32(4)?) + u64::from(file.u32(16)?);
        let part = Reader { name: SECTION, bytes: file.slice(start, u64::from(file.u32(20)?))? };
        let mut lines = Lines::default();
        if part.bytes.is_empty() {
            return Ok(lines);
        }
        let size = u64::from(part.u32(0)?);
        if size < 16 {
            return Err(file.malformed(start, format!("lines have {size} bytes, not 16")));
        }
        let mut at = 4;
        while at < part.bytes.len() as u64 {
            let (name, count) = (part.u32(at)?, u64::from(part.u32(at + 4)?));
            let table = part.slice(at + 8, count * size)?;
            let table = Reader { name: SECTION, bytes: table };
            let marks = lines.0.entry(btf.text(name).to_string()).or_default();
            for row in 0..count {
                let row = row * size;
                marks.push(Mark {
                    from: table.u32(row)?,
                    file: table.u32(row + 4)?,
                    text: table.u32(row + 8)?,
                    line: table.u32(row + 12)? >> 10,
                });
            }
            at += 8 + count * size;
        }
        for marks in lines.0.values_mut() {
            marks.sort_by_key(|mark| mark.from);
        }
        Ok(lines)
    }

    /// The line of the instruction at this byte of a section.
    pub fn find(&self, btf: &Btf, section: &str, offset: u32) -> Option<Line> {
        let marks = self.0.get(section)?;
        let behind = marks.partition_point(|mark| mark.from <= offset);
        let mark = marks.get(behind.checked_sub(1)?)?;
        let text = btf.text(mark.text).trim().to_string();
        Some(Line { file: btf.text(mark.file).to_string(), line: mark.line, text })
    }
}

/// A place in all the code of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub(crate) usize);

/// The lines of all instructions of an object, to look up fast.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    lines: Vec<Line>,
    /// The number of its line plus one, of each instruction; 0 if it has none.
    of: Vec<u32>,
}

impl Listing {
    /// Adds the line of the next instruction.
    pub(crate) fn add(&mut self, line: Option<Line>) {
        let number = match line {
            None => 0,
            Some(line) => {
                // Those of an instruction are mostly those of the one before.
                let known = self.lines.iter().rposition(|other| *other == line);
                known.unwrap_or_else(|| {
                    self.lines.push(line);
                    self.lines.len() - 1
                }) as u32
                    + 1
            }
        };
        self.of.push(number);
    }

    /// The number of the line that the instruction at a place is of.
    pub fn number(&self, place: Place) -> Option<u32> {
        self.of.get(place.0).copied().filter(|&number| number > 0)
    }

    /// The line of a number that [`number`](Self::number) gave.
    pub fn line(&self, number: u32) -> Option<&Line> {
        self.lines.get((number as usize).checked_sub(1)?)
    }
}
