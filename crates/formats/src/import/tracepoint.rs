//! Decodes the binary fields of the imported tracepoints, at the offsets that the recording kernel
//! describes.

use std::collections::HashMap;

use schedsim::CpuId;

use super::bytes::Bytes;
use crate::import::record::{self, NamedTask, Sched, Tracepoint, prev_state};
use schedsim::trace::{PrevState, WakeContext};

/// The context from `common_flags`, the kernel's `TRACE_FLAG_…` bits.
pub(super) fn context(flags: u64) -> WakeContext {
    const HARDIRQ: u64 = 0x08;
    const SOFTIRQ: u64 = 0x10;
    const NMI: u64 = 0x40;
    match flags {
        _ if flags & (HARDIRQ | NMI) != 0 => WakeContext::Hardirq,
        _ if flags & SOFTIRQ != 0 => WakeContext::Softirq,
        _ => WakeContext::Task,
    }
}

/// The location of a field in a tracepoint's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    pub offset: usize,
    pub size: usize,
    pub kind: FieldKind,
}

/// The kind of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldKind {
    /// The value.
    Value,
    /// The offset of the value from the start of the record (`__data_loc`).
    Location,
    /// The offset of the value from the end of this field (`__rel_loc`).
    RelativeLocation,
}

impl Field {
    #[inline]
    pub fn signed(&self, raw: Bytes<'_>) -> Option<i64> {
        let used =
            u32::try_from(self.size).ok().filter(|size| (1..=8).contains(size))?.checked_mul(8)?;
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
                let from = if self.kind == FieldKind::Location {
                    0
                } else {
                    self.offset.checked_add(4)?
                };
                (from.checked_add(location & 0xffff)?, location >> 16)
            }
        };
        let text = raw.part(offset, size)?.get();
        Some(&text[..memchr::memchr(0, text).unwrap_or(size)])
    }
}

/// Decodes the records of one tracepoint.
#[derive(Debug)]
pub(super) enum Decoder {
    Switch { prev: WhoFields, prev_state: Field, letters: StateLetters, next: WhoFields },
    Woken { tracepoint: Tracepoint, task: WhoFields, target: Field },
    Fork { parent: Field, comm: Field, child: Field },
    Exec { pid: Field, old_pid: Field },
    Exit { task: WhoFields },
    Migrate { task: WhoFields, from: Field, to: Field },
    Frequency { khz: Field, of: Field },
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
    fn read<'a>(&self, raw: Bytes<'a>) -> Option<NamedTask<'a>> {
        let prio = i32::try_from(self.prio.signed(raw)?).ok()?;
        Some(NamedTask { comm: self.comm.text(raw)?, pid: self.pid.pid(raw)?, prio })
    }
}

impl Decoder {
    /// A decoder for records with these fields; `None` if one is missing.
    pub fn new(
        tracepoint: Tracepoint,
        fields: &HashMap<&str, Field>,
        print_format: &str,
    ) -> Option<Self> {
        let field = |name: &str| fields.get(name).copied();
        let task_fields = |prefix: &str| {
            let of = |name: &str| field(&format!("{prefix}{name}"));
            Some(WhoFields { comm: of("comm")?, pid: of("pid")?, prio: of("prio")? })
        };
        Some(match tracepoint {
            Tracepoint::Switch => Decoder::Switch {
                prev: task_fields("prev_")?,
                prev_state: field("prev_state")?,
                letters: StateLetters::parse(print_format),
                next: task_fields("next_")?,
            },
            Tracepoint::Waking | Tracepoint::Wakeup | Tracepoint::WakeupNew => {
                Decoder::Woken { tracepoint, task: task_fields("")?, target: field("target_cpu")? }
            }
            Tracepoint::Fork => Decoder::Fork {
                parent: field("parent_pid")?,
                comm: field("child_comm")?,
                child: field("child_pid")?,
            },
            Tracepoint::Exec => Decoder::Exec { pid: field("pid")?, old_pid: field("old_pid")? },
            Tracepoint::Exit => Decoder::Exit { task: task_fields("")? },
            Tracepoint::Migrate => Decoder::Migrate {
                task: task_fields("")?,
                from: field("orig_cpu")?,
                to: field("dest_cpu")?,
            },
            Tracepoint::Frequency => {
                Decoder::Frequency { khz: field("state")?, of: field("cpu_id")? }
            }
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
            Decoder::Frequency { .. } => Tracepoint::Frequency,
        }
    }

    /// Why [`decode`](Self::decode) gave nothing.
    pub fn misfit(&self) -> String {
        format!(
            "the fields of a {} do not fit, or name a CPU above 4095 or a pid above 4194304",
            self.tracepoint().name()
        )
    }

    /// Decodes `raw`; `None` if it is too short or a value is impossible.
    #[inline]
    pub fn decode<'a>(&self, raw: Bytes<'a>) -> Option<Sched<'a>> {
        Some(match self {
            Decoder::Switch { prev, prev_state: state, letters, next } => Sched::Switch {
                prev: prev.read(raw)?,
                prev_state: letters.read(state.signed(raw)?.cast_unsigned()),
                next: next.read(raw)?,
            },
            Decoder::Woken { tracepoint, task, target } => {
                let (task, target) = (task.read(raw)?, target.cpu(raw)?);
                match tracepoint {
                    Tracepoint::Waking => Sched::Waking { task, target },
                    Tracepoint::WakeupNew => Sched::WakeupNew { task, target },
                    _ => Sched::Wakeup { task, target },
                }
            }
            Decoder::Fork { parent, comm, child } => Sched::Fork {
                parent: parent.pid(raw)?,
                child: child.pid(raw)?,
                comm: comm.text(raw)?,
            },
            Decoder::Exec { pid, old_pid } => {
                Sched::Exec { pid: pid.pid(raw)?, old_pid: old_pid.pid(raw)? }
            }
            Decoder::Exit { task } => Sched::Exit { task: task.read(raw)? },
            Decoder::Migrate { task, from, to } => {
                Sched::Migrate { task: task.read(raw)?, from: from.cpu(raw)?, to: to.cpu(raw)? }
            }
            Decoder::Frequency { khz, of } => {
                Sched::Frequency { of: of.cpu(raw)?, khz: raw.unsigned(khz.offset, khz.size)? }
            }
        })
    }
}

/// The meaning of the bits of `prev_state` in the recording kernel; it changed between versions.
#[derive(Debug)]
pub(super) struct StateLetters {
    pairs: Vec<(u64, u8)>,
    /// The meaning of the states below [`USUAL`], in order.
    usual: Vec<PrevState>,
}

/// States of one or two bits are below this value.
const USUAL: u64 = 1 << 10;

impl StateLetters {
    /// From the pairs `{ 0x0001, "S" }` in the tracepoint's print format; without them, as in Linux
    /// 4.14 and later.
    pub fn parse(print_format: &str) -> Self {
        let pair = |text: &str| {
            let (bits, letter) = text.split_once('}')?.0.split_once(',')?;
            let bits = bits.trim();
            let bits = bits
                .strip_prefix("0x")
                .map_or_else(|| bits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())?;
            Some((bits, *letter.trim().trim_matches('"').as_bytes().first()?))
        };
        let pairs: Vec<_> = print_format.split('{').skip(1).filter_map(pair).collect();
        let pairs = match pairs.is_empty() {
            true => vec![
                (1, b'S'),
                (2, b'D'),
                (4, b'T'),
                (8, b't'),
                (16, b'X'),
                (32, b'Z'),
                (64, b'P'),
                (128, b'I'),
            ],
            false => pairs,
        };
        let usual = (0..USUAL).map(|state| spelled(&pairs, state)).collect();
        StateLetters { pairs, usual }
    }

    #[inline]
    pub fn read(&self, state: u64) -> PrevState {
        let usual = usize::try_from(state).ok().and_then(|state| self.usual.get(state));
        usual.copied().unwrap_or_else(|| spelled(&self.pairs, state))
    }
}

/// Reads `state` as the kernel prints it: its letters, or `R` without any, and `+` (preempted) for
/// the bit above them.
fn spelled(pairs: &[(u64, u8)], state: u64) -> PrevState {
    let mut spelled = [0; 66];
    let (mut length, mut known) = (0, 0);
    for &(bits, letter) in pairs.iter().take(64) {
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
