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
    /// `sendto`, `sendmsg`.
    Send,
    /// `recvfrom`, `recvmsg`.
    Receive,
    Close,
    Connect,
    Poll,
    Ppoll,
    /// `select`, `pselect6`.
    Select,
    /// `epoll_wait`, `epoll_pwait`.
    EpollWait,
    EpollCtl,
    /// `accept`, `accept4`.
    Accept,
    Futex,
    /// Changes a file system by a path, or writes all of it to its device: `unlink`, `rename`,
    /// `sync`.
    FileSystem,
    Nanosleep,
    ClockNanosleep,
    /// `rt_sigtimedwait`: its result is the signal.
    SignalWait,
    TimerfdSettime,
    Yield,
    /// `wait4`: its result is the task that ended.
    Wait4,
    Waitid,
}

use Name::{
    Accept, ClockNanosleep, Close, Connect, EpollCtl, EpollWait, FileSystem, Futex, Nanosleep,
    Poll, Ppoll, Read, ReadAt, Receive, Select, Send, SignalWait, TimerfdSettime, Wait4, Waitid,
    Write, Yield,
};

pub const X86_64: [(u16, Name); 37] = [
    (0, Read),
    (1, Write),
    (3, Close),
    (7, Poll),
    (17, ReadAt),
    (19, Read),
    (20, Write),
    (23, Select),
    (24, Yield),
    (35, Nanosleep),
    (42, Connect),
    (43, Accept),
    (44, Send),
    (45, Receive),
    (46, Send),
    (47, Receive),
    (61, Wait4),
    (76, FileSystem),
    (82, FileSystem),
    (83, FileSystem),
    (84, FileSystem),
    (87, FileSystem),
    (128, SignalWait),
    (162, FileSystem),
    (202, Futex),
    (230, ClockNanosleep),
    (232, EpollWait),
    (233, EpollCtl),
    (247, Waitid),
    (258, FileSystem),
    (263, FileSystem),
    (270, Select),
    (271, Ppoll),
    (281, EpollWait),
    (286, TimerfdSettime),
    (288, Accept),
    (316, FileSystem),
];

/// Of arm64, riscv64 and other architectures with the generic table.
const GENERIC: [(u16, Name); 30] = [
    (21, EpollCtl),
    (22, EpollWait),
    (34, FileSystem),
    (35, FileSystem),
    (45, FileSystem),
    (57, Close),
    (63, Read),
    (64, Write),
    (65, Read),
    (66, Write),
    (67, ReadAt),
    (72, Select),
    (73, Ppoll),
    (81, FileSystem),
    (86, TimerfdSettime),
    (95, Waitid),
    (98, Futex),
    (101, Nanosleep),
    (115, ClockNanosleep),
    (124, Yield),
    (137, SignalWait),
    (202, Accept),
    (203, Connect),
    (206, Send),
    (207, Receive),
    (211, Send),
    (212, Receive),
    (242, Accept),
    (260, Wait4),
    (276, FileSystem),
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
