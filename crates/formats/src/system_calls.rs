//! What system calls do, by their numbers on an architecture.

/// A system call that is understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    /// `read`, `readv`.
    Read,
    /// `write`, `writev`.
    Write,
    /// `pread64`.
    ReadAt,
    Futex,
    Nanosleep,
    ClockNanosleep,
    Yield,
    /// `wait4`: its result is the task that ended.
    Wait4,
    Waitid,
}

use Name::{ClockNanosleep, Futex, Nanosleep, Read, ReadAt, Wait4, Waitid, Write, Yield};

pub const X86_64: [(u16, Name); 11] = [
    (0, Read),
    (1, Write),
    (17, ReadAt),
    (19, Read),
    (20, Write),
    (24, Yield),
    (35, Nanosleep),
    (61, Wait4),
    (202, Futex),
    (230, ClockNanosleep),
    (247, Waitid),
];

/// Of arm64, riscv64 and other architectures with the generic table.
const GENERIC: [(u16, Name); 11] = [
    (63, Read),
    (64, Write),
    (65, Read),
    (66, Write),
    (67, ReadAt),
    (95, Waitid),
    (98, Futex),
    (101, Nanosleep),
    (115, ClockNanosleep),
    (124, Yield),
    (260, Wait4),
];

/// The first number of a call in a table.
///
/// # Panics
/// If the table does not have it.
pub fn number(table: &[(u16, Name)], name: Name) -> u16 {
    let entry = table.iter().find(|(_, entry)| *entry == name);
    entry.unwrap_or_else(|| panic!("the table has no {name:?}")).0
}

/// The calls of an architecture; `None` if it is unknown.
pub fn of(architecture: &str) -> Option<&'static [(u16, Name)]> {
    match architecture {
        "x86_64" => Some(&X86_64),
        "aarch64" | "arm64" | "riscv64" => Some(&GENERIC),
        _ => None,
    }
}
