//! The binary fields of the imported tracepoints, at the places that the recording kernel gave them.

use std::collections::HashMap;

use schedsim::CpuId;

use crate::import::record::{self, Sched, Tracepoint, Who, prev_state};

/// Bytes of a known byte order.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Bytes { bytes, big_endian }
    }

    /// The bytes from `offset` on, `size` of them.
    #[inline]
    pub fn part(&self, offset: usize, size: usize) -> Option<Bytes<'a>> {
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        Some(Bytes { bytes, big_endian: self.big_endian })
    }

    /// A number of up to eight bytes.
    #[inline]
    pub fn unsigned(&self, offset: usize, size: usize) -> Option<u64> {
        let part = self.part(offset, size).filter(|_| size <= 8)?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(if self.big_endian { part.bytes.iter().fold(0, add) } else { part.bytes.iter().rev().fold(0, add) })
    }
}

/// Where a field lies in a tracepoint's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub offset: usize,
    pub size: usize,
    pub kind: FieldKind,
}

/// What lies there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldKind {
    /// The value.
    Value,
    /// Where the value lies, from the record's start (`__data_loc`).
    Location,
    /// The same, from this field's end (`__rel_loc`).
    RelativeLocation,
}

impl Field {
    #[inline]
    fn signed(&self, raw: Bytes<'_>) -> Option<i64> {
        let used = u32::try_from(self.size).ok().filter(|size| (1..=8).contains(size))?.checked_mul(8)?;
        let unused = 64u32.checked_sub(used)?;
        let value = raw.unsigned(self.offset, self.size)?.checked_shl(unused)?;
        value.cast_signed().checked_shr(unused)
    }

    #[inline]
    fn pid(&self, raw: Bytes<'_>) -> Option<u32> {
        record::pid(self.signed(raw)?.try_into().ok()?)
    }

    #[inline]
    fn cpu(&self, raw: Bytes<'_>) -> Option<CpuId> {
        record::cpu(self.signed(raw)?.try_into().ok()?)
    }

    /// A text up to its zero byte.
    #[inline]
    fn text<'a>(&self, raw: Bytes<'a>) -> Option<&'a [u8]> {
        let (offset, size) = match self.kind {
            FieldKind::Value => (self.offset, self.size),
            FieldKind::Location | FieldKind::RelativeLocation => {
                let location = usize::try_from(raw.unsigned(self.offset, 4)?).ok()?;
                let from = if self.kind == FieldKind::Location { 0 } else { self.offset.checked_add(4)? };
                (from.checked_add(location & 0xffff)?, location >> 16)
            }
        };
        let text = raw.part(offset, size)?.bytes;
        Some(&text[..memchr::memchr(0, text).unwrap_or(size)])
    }
}

/// Reads one tracepoint's records.
#[derive(Debug)]
pub(super) enum Decoder {
    Switch { prev: WhoFields, prev_state: Field, letters: StateLetters, next: WhoFields },
    Woken { tracepoint: Tracepoint, task: WhoFields, target: Field },
    Fork { parent: Field, comm: Field, child: Field },
    Exec { pid: Field, old_pid: Field },
    Exit { task: WhoFields },
    Migrate { task: WhoFields, from: Field, to: Field },
}

/// The fields that name a task.
#[derive(Debug)]
pub(super) struct WhoFields {
    comm: Field,
    pid: Field,
    prio: Field,
}

impl WhoFields {
    #[inline]
    fn read<'a>(&self, raw: Bytes<'a>) -> Option<Who<'a>> {
        let prio = i32::try_from(self.prio.signed(raw)?).ok()?;
        Some(Who { comm: self.comm.text(raw)?, pid: self.pid.pid(raw)?, prio })
    }
}

impl Decoder {
    /// For records with these fields; `None` if one is missing.
    pub fn new(tracepoint: Tracepoint, fields: &HashMap<&str, Field>, print_format: &str) -> Option<Self> {
        let field = |name: &str| fields.get(name).copied();
        let who = |prefix: &str| {
            let of = |name: &str| field(&format!("{prefix}{name}"));
            Some(WhoFields { comm: of("comm")?, pid: of("pid")?, prio: of("prio")? })
        };
        Some(match tracepoint {
            Tracepoint::Switch => Decoder::Switch {
                prev: who("prev_")?,
                prev_state: field("prev_state")?,
                letters: StateLetters::parse(print_format),
                next: who("next_")?,
            },
            Tracepoint::Waking | Tracepoint::Wakeup | Tracepoint::WakeupNew => {
                Decoder::Woken { tracepoint, task: who("")?, target: field("target_cpu")? }
            }
            Tracepoint::Fork => Decoder::Fork { parent: field("parent_pid")?, comm: field("child_comm")?, child: field("child_pid")? },
            Tracepoint::Exec => Decoder::Exec { pid: field("pid")?, old_pid: field("old_pid")? },
            Tracepoint::Exit => Decoder::Exit { task: who("")? },
            Tracepoint::Migrate => Decoder::Migrate { task: who("")?, from: field("orig_cpu")?, to: field("dest_cpu")? },
        })
    }

    pub fn tracepoint(&self) -> Tracepoint {
        match self {
            Decoder::Switch { .. } => Tracepoint::Switch,
            Decoder::Woken { tracepoint, .. } => *tracepoint,
            Decoder::Fork { .. } => Tracepoint::Fork,
            Decoder::Exec { .. } => Tracepoint::Exec,
            Decoder::Exit { .. } => Tracepoint::Exit,
            Decoder::Migrate { .. } => Tracepoint::Migrate,
        }
    }

    /// The event in `raw`; `None` if it is too short or a value makes no sense.
    #[inline]
    pub fn decode<'a>(&self, raw: Bytes<'a>) -> Option<Sched<'a>> {
        Some(match self {
            Decoder::Switch { prev, prev_state: state, letters, next } => {
                Sched::Switch { prev: prev.read(raw)?, prev_state: letters.read(state.signed(raw)?.cast_unsigned()), next: next.read(raw)? }
            }
            Decoder::Woken { tracepoint, task, target } => {
                let (task, target) = (task.read(raw)?, target.cpu(raw)?);
                match tracepoint {
                    Tracepoint::Waking => Sched::Waking { task, target },
                    Tracepoint::WakeupNew => Sched::WakeupNew { task, target },
                    _ => Sched::Wakeup { task, target },
                }
            }
            Decoder::Fork { parent, comm, child } => {
                Sched::Fork { parent: parent.pid(raw)?, child: child.pid(raw)?, comm: comm.text(raw)? }
            }
            Decoder::Exec { pid, old_pid } => Sched::Exec { pid: pid.pid(raw)?, old_pid: old_pid.pid(raw)? },
            Decoder::Exit { task } => Sched::Exit { task: task.read(raw)? },
            Decoder::Migrate { task, from, to } => Sched::Migrate { task: task.read(raw)?, from: from.cpu(raw)?, to: to.cpu(raw)? },
        })
    }
}

/// What the bits of `prev_state` mean to the recording kernel; they changed several times.
#[derive(Debug)]
pub(super) struct StateLetters(Vec<(u64, u8)>);

impl StateLetters {
    /// From the pairs `{ 0x0001, "S" }` in the tracepoint's print format, or Linux 4.14's and later.
    fn parse(print_format: &str) -> Self {
        let pair = |text: &str| {
            let (bits, letter) = text.split_once('}')?.0.split_once(',')?;
            let bits = bits.trim();
            let bits = bits.strip_prefix("0x").map_or_else(|| bits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())?;
            Some((bits, *letter.trim().trim_matches('"').as_bytes().first()?))
        };
        let pairs: Vec<_> = print_format.split('{').skip(1).filter_map(pair).collect();
        match pairs.is_empty() {
            true => StateLetters(vec![(1, b'S'), (2, b'D'), (4, b'T'), (8, b't'), (16, b'X'), (32, b'Z'), (64, b'P'), (128, b'I')]),
            false => StateLetters(pairs),
        }
    }

    /// Spells `state` as the kernel prints it: its letters, or `R` without any, and `+` for the bit above them: preempted.
    #[inline]
    fn read(&self, state: u64) -> schedsim::trace::PrevState {
        let mut spelled = [0; 66];
        let (mut length, mut known) = (0, 0);
        for &(bits, letter) in self.0.iter().take(64) {
            known |= bits;
            if bits != 0 && state & bits == bits {
                spelled[length] = letter;
                length = usize::saturating_add(length, 1);
            }
        }
        let preempted = state & !known != 0;
        for (letter, present) in [(b'R', length == 0), (b'+', preempted)] {
            if present {
                spelled[length] = letter;
                length = usize::saturating_add(length, 1);
            }
        }
        prev_state(&spelled[..length])
    }
}
