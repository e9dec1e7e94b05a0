//! Values in words, by their types: for people who debug.

use super::{Btf, Kind, TypeId};
use std::fmt::Write;

/// How deep structures are shown, and how many values of one.
const DEEPEST: u32 = 8;
const MOST_VALUES: usize = 24;
/// Of how many elements of an array each is shown.
const MOST_ELEMENTS: usize = 16;
/// Encodings of whole numbers: with a sign, yes or no.
const SIGNED: u32 = 1;
const YES_OR_NO: u32 = 4;

/// A part of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The way to it, as C writes it: `.entity.slice`, `[3].count`.
    pub way: String,
    /// Its type.
    pub kind: TypeId,
    /// Bytes from the start of the whole.
    pub first: u32,
}

impl Btf {
    /// The smallest part of a type that lies at `offset`. Bit-fields are one part.
    pub fn part_at(&self, kind: TypeId, offset: u32) -> Part {
        let mut part = Part { way: String::new(), kind, first: 0 };
        for _ in 0..DEEPEST {
            let (id, at) = (self.resolve(part.kind), offset - part.first);
            match self.kind(id) {
                Kind::Structure | Kind::Union => {
                    let found = self.members(id).find_map(|member| {
                        let first = member.first_bit / 8;
                        let size = self.size(member.kind).unwrap_or(0);
                        let is_there = first <= at && at - first < size;
                        is_there.then(|| (member.name.to_string(), member, first))
                    });
                    let Some((name, member, first)) = found else { break };
                    if member.bits.is_some() {
                        break;
                    }
                    if !name.is_empty() {
                        let _ = write!(part.way, ".{name}");
                    }
                    part.kind = member.kind;
                    part.first += first;
                }
                Kind::Array => {
                    let Some((element, _)) = self.array(id) else { break };
                    let Some(size) = self.size(element).filter(|&size| size > 0) else { break };
                    let _ = write!(part.way, "[{}]", at / size);
                    part.kind = element;
                    part.first += at / size * size;
                }
                _ => break,
            }
        }
        part
    }

    /// A value of a type in words. `named` names addresses that it knows.
    pub fn shown(
        &self,
        kind: TypeId,
        bytes: &[u8],
        named: &dyn Fn(u64) -> Option<String>,
    ) -> String {
        let mut shown = Shown { btf: self, named, text: String::new(), left: MOST_VALUES };
        shown.value(kind, bytes, DEEPEST);
        shown.text
    }

    /// The name of a value of an enumeration.
    fn enumerated(&self, id: TypeId, value: u64) -> Option<&str> {
        let of = self.get(id);
        let is_it = |row: &&[u32; 3]| match of.kind {
            Kind::Enumeration => u64::from(row[1]) == value & 0xffff_ffff,
            _ => (u64::from(row[1]) | u64::from(row[2]) << 32) == value,
        };
        self.rows_of(&of).iter().find(is_it).map(|row| self.text(row[0]))
    }
}

/// A number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// A text that grows.
struct Shown<'a> {
    btf: &'a Btf,
    named: &'a dyn Fn(u64) -> Option<String>,
    text: String,
    /// How many more values are shown.
    left: usize,
}

impl Shown<'_> {
    fn value(&mut self, kind: TypeId, bytes: &[u8], depth: u32) {
        let Some((depth, left)) = depth.checked_sub(1).zip(self.left.checked_sub(1)) else {
            self.text += "…";
            return;
        };
        let id = self.btf.resolve(kind);
        match self.btf.kind(id) {
            Kind::Structure | Kind::Union => self.members(id, bytes, depth),
            Kind::Array => self.elements(id, bytes, depth),
            other => {
                self.left = left;
                let text = self.single(id, other, bytes);
                self.text += &text;
            }
        }
    }

    fn single(&self, id: TypeId, kind: Kind, bytes: &[u8]) -> String {
        let value = number(bytes);
        let bits = 8 * bytes.len().clamp(1, 8) as u32;
        match kind {
            Kind::Pointer if value == 0 => "NULL".to_string(),
            Kind::Pointer => (self.named)(value).unwrap_or_else(|| format!("{value:#x}")),
            Kind::Enumeration | Kind::Enumeration64 => match self.btf.enumerated(id, value) {
                Some(name) => name.to_string(),
                None => value.to_string(),
            },
            Kind::Integer => {
                let of = self.btf.get(id);
                let encoding = self.btf.rows_of(&of).first().map_or(0, |row| row[0] >> 24);
                match encoding {
                    encoding if encoding & YES_OR_NO != 0 && value < 2 => (value == 1).to_string(),
                    encoding if encoding & SIGNED != 0 => {
                        ((value << (64 - bits)).cast_signed() >> (64 - bits)).to_string()
                    }
                    _ => value.to_string(),
                }
            }
            _ => format!("{value:#x}"),
        }
    }

    fn members(&mut self, id: TypeId, bytes: &[u8], depth: u32) {
        let btf = self.btf;
        self.text += "{";
        let mut comma = "";
        for member in btf.members(id) {
            if self.left == 0 {
                self.text = std::mem::take(&mut self.text) + comma + "…";
                break;
            }
            let first = (member.first_bit / 8) as usize;
            let size = btf.size(member.kind).unwrap_or(0) as usize;
            self.text += comma;
            comma = ", ";
            if !member.name.is_empty() {
                let _ = write!(self.text, "{} = ", member.name);
            }
            match member.bits {
                None => {
                    let of = bytes.get(first..first + size).unwrap_or_default();
                    self.value(member.kind, of, depth);
                }
                Some(bits) => {
                    let word = number(bytes.get(first..).unwrap_or_default());
                    let mask = u64::MAX >> (64 - bits.clamp(1, 64));
                    let _ = write!(self.text, "{}", word >> (member.first_bit % 8) & mask);
                    self.left -= 1;
                }
            }
        }
        self.text += "}";
    }

    fn elements(&mut self, id: TypeId, bytes: &[u8], depth: u32) {
        let Some((element, count)) = self.btf.array(id) else { return };
        let size = self.btf.size(element).unwrap_or(0).max(1) as usize;
        let plain = self.btf.resolve(element);
        if size == 1 && self.btf.kind(plain) == Kind::Integer && self.btf.name(plain) == "char" {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            let _ = write!(self.text, "{:?}", String::from_utf8_lossy(&bytes[..end]));
            self.left -= 1;
            return;
        }
        self.text += "{";
        for (place, of) in bytes.chunks(size).take(count as usize).enumerate() {
            self.text += if place == 0 { "" } else { ", " };
            if place == MOST_ELEMENTS || self.left == 0 {
                self.text += "…";
                break;
            }
            self.value(element, of, depth);
        }
        self.text += "}";
    }
}
