//! Descriptors of processes, and the system calls that make, duplicate and close them.

use ::recording::Class;
use std::collections::BTreeMap;

/// `O_CLOEXEC`, which all flags of calls that make descriptors share.
pub(super) const CLOSES: u64 = 0o2_000_000;

/// What a call does with descriptors, as far as its arguments say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The first argument is one.
    About,
    Close,
    CloseRange,
    /// The result is one; which argument has its flags.
    Open {
        class: Class,
        flags: Option<u8>,
    },
    Socket,
    SocketPair,
    Accept {
        flags: bool,
    },
    Pipe {
        flags: bool,
    },
    Duplicate,
    DuplicateTo {
        flags: bool,
    },
    /// `fcntl`.
    Control,
    EpollControl,
    EpollWait,
    Futex,
    Wait,
    /// None of these: the call may sleep.
    Plain,
}

use Kind::{
    About, Accept, Close, CloseRange, Control, Duplicate, DuplicateTo, EpollControl, EpollWait,
    Futex, Open, Pipe, Plain, Socket, SocketPair, Wait,
};

const fn open(class: Class, flags: u8) -> Kind {
    Open { class, flags: Some(flags) }
}

const fn old(class: Class) -> Kind {
    Open { class, flags: None }
}

const X86_64: &[(u16, Kind)] = &[
    (0, About),
    (1, About),
    (2, open(Class::File, 1)),
    (3, Close),
    (7, Plain),
    (17, About),
    (18, About),
    (19, About),
    (20, About),
    (22, Pipe { flags: false }),
    (23, Plain),
    (24, Plain),
    (32, Duplicate),
    (33, DuplicateTo { flags: false }),
    (34, Plain),
    (35, Plain),
    (40, About),
    (41, Socket),
    (42, About),
    (43, Accept { flags: false }),
    (44, About),
    (45, About),
    (46, About),
    (47, About),
    (48, About),
    (53, SocketPair),
    (58, Plain),
    (61, Wait),
    (72, Control),
    (74, About),
    (75, About),
    (76, Plain),
    (77, About),
    (82, Plain),
    (83, Plain),
    (84, Plain),
    (85, old(Class::File)),
    (87, Plain),
    (128, Plain),
    (130, Plain),
    (162, Plain),
    (202, Futex),
    (213, old(Class::Epoll)),
    (230, Plain),
    (232, EpollWait),
    (233, EpollControl),
    (247, Plain),
    (257, open(Class::File, 2)),
    (258, Plain),
    (263, Plain),
    (270, Plain),
    (271, Plain),
    (281, EpollWait),
    (283, open(Class::Timerfd, 1)),
    (284, old(Class::Eventfd)),
    (285, About),
    (286, About),
    (288, Accept { flags: true }),
    (289, open(Class::Signalfd, 3)),
    (290, open(Class::Eventfd, 1)),
    (291, open(Class::Epoll, 0)),
    (292, DuplicateTo { flags: true }),
    (293, Pipe { flags: true }),
    (295, About),
    (296, About),
    (316, Plain),
    (319, old(Class::File)),
    (434, old(Class::Pidfd)),
    (436, CloseRange),
    (437, old(Class::File)),
];

/// Of arm64, riscv64 and other architectures with the generic table.
const GENERIC: &[(u16, Kind)] = &[
    (19, open(Class::Eventfd, 1)),
    (20, open(Class::Epoll, 0)),
    (21, EpollControl),
    (22, EpollWait),
    (23, Duplicate),
    (24, DuplicateTo { flags: true }),
    (25, Control),
    (34, Plain),
    (35, Plain),
    (45, Plain),
    (46, About),
    (47, About),
    (56, open(Class::File, 2)),
    (57, Close),
    (59, Pipe { flags: true }),
    (63, About),
    (64, About),
    (65, About),
    (66, About),
    (67, About),
    (68, About),
    (69, About),
    (70, About),
    (71, About),
    (72, Plain),
    (73, Plain),
    (74, open(Class::Signalfd, 3)),
    (81, Plain),
    (82, About),
    (83, About),
    (85, open(Class::Timerfd, 1)),
    (86, About),
    (95, Plain),
    (98, Futex),
    (101, Plain),
    (115, Plain),
    (124, Plain),
    (133, Plain),
    (137, Plain),
    (198, Socket),
    (199, SocketPair),
    (202, Accept { flags: false }),
    (203, About),
    (206, About),
    (207, About),
    (210, About),
    (211, About),
    (212, About),
    (242, Accept { flags: true }),
    (260, Wait),
    (276, Plain),
    (279, old(Class::File)),
    (434, old(Class::Pidfd)),
    (436, CloseRange),
    (437, old(Class::File)),
];

/// The calls of an architecture that are used.
fn table(architecture: &str) -> &'static [(u16, Kind)] {
    match architecture {
        "x86_64" => X86_64,
        "aarch64" | "arm64" | "riscv64" => GENERIC,
        _ => &[],
    }
}

/// What a call does; `None` if it is of no use.
pub(super) fn kind(architecture: &str, number: u16) -> Option<Kind> {
    let table = table(architecture);
    let at = table.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    table.get(at).map(|(_, kind)| *kind)
}

/// The numbers of the calls that an import of perf's recordings uses.
pub fn numbers(architecture: &str) -> impl Iterator<Item = u16> {
    table(architecture).iter().map(|(number, _)| *number)
}

/// The open descriptors of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    open: BTreeMap<u32, Descriptor>,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    /// 0 is unknown.
    object: u64,
    /// At `exec`.
    closes: bool,
}

/// No process is expected to have more that came unseen.
const MOST_UNSEEN: u32 = 1024;

impl Table {
    /// A command has its input, output and errors.
    pub fn of_a_command() -> Table {
        let unknown = Descriptor { object: 0, closes: false };
        Table { open: (0..3).map(|fd| (fd, unknown)).collect() }
    }

    /// What a descriptor is; 0 if it is not known.
    pub fn object(&self, fd: u64) -> u64 {
        let open = u32::try_from(fd).ok().and_then(|fd| self.open.get(&fd));
        open.map_or(0, |descriptor| descriptor.object)
    }

    /// The lowest free descriptor gets an object.
    pub fn open_lowest(&mut self, object: u64, closes: bool) {
        let fd = self.lowest(0);
        self.open.insert(fd, Descriptor { object, closes });
    }

    /// The kernel gives this one, which is the lowest free one: those below came unseen.
    pub fn open(&mut self, fd: u32, object: u64, closes: bool) {
        self.open_above(0, fd, object, closes);
    }

    /// The same of those from `least` on.
    pub fn open_above(&mut self, least: u64, fd: u32, object: u64, closes: bool) {
        let least = self.lowest(u32::try_from(least).unwrap_or(u32::MAX));
        for below in (least..fd).take(MOST_UNSEEN as usize) {
            self.open.entry(below).or_insert(Descriptor { object: 0, closes: false });
        }
        self.open.insert(fd, Descriptor { object, closes });
    }

    /// This one, whatever it was.
    pub fn replace(&mut self, fd: u32, object: u64, closes: bool) {
        self.open.insert(fd, Descriptor { object, closes });
    }

    /// Whether it closes at `exec`.
    pub fn set_closes(&mut self, fd: u64, closes: bool) {
        let open = u32::try_from(fd).ok().and_then(|fd| self.open.get_mut(&fd));
        open.into_iter().for_each(|descriptor| descriptor.closes = closes);
    }

    /// Closes some.
    pub fn close(&mut self, first: u64, last: u64) {
        self.open.retain(|fd, _| !(first..=last).contains(&u64::from(*fd)));
    }

    /// They close at `exec`.
    pub fn close_later(&mut self, first: u64, last: u64) {
        let within =
            self.open.iter_mut().filter(|(fd, _)| (first..=last).contains(&u64::from(**fd)));
        within.for_each(|(_, descriptor)| descriptor.closes = true);
    }

    /// What a program begins with that the process executes.
    pub fn after_exec(&self) -> Table {
        let open = self.open.iter().filter(|(_, descriptor)| !descriptor.closes);
        Table { open: open.map(|(fd, descriptor)| (*fd, *descriptor)).collect() }
    }

    /// The lowest free descriptor from `least` on.
    fn lowest(&self, least: u32) -> u32 {
        let mut lowest = least;
        for (fd, _) in self.open.range(least..) {
            if *fd != lowest {
                break;
            }
            lowest = lowest.saturating_add(1);
        }
        lowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_calls;

    #[test]
    fn calls_are_in_order_and_all_that_an_import_understands_are_among_them() {
        for architecture in ["x86_64", "aarch64"] {
            let numbers: Vec<u16> = numbers(architecture).collect();
            assert!(numbers.is_sorted_by(|one, other| one < other), "{architecture}");
            for (number, name) in system_calls::of(architecture).unwrap() {
                assert!(numbers.contains(number), "{architecture}: {name:?} {number}");
            }
        }
        assert_eq!(kind("vax", 0), None);
    }

    #[test]
    fn a_pair_gets_the_lowest_free_descriptors() {
        let mut table = Table::of_a_command();
        table.open(3, 10, true);
        table.open_lowest(20, false);
        table.close(3, 3);
        table.open_lowest(20, false);
        assert_eq!([3, 4, 5].map(|fd| table.object(fd)), [20, 20, 0]);
        // A descriptor came in a message: the next one shows that.
        table.open(6, 30, true);
        table.open_lowest(40, false);
        assert_eq!([5, 6, 7].map(|fd| table.object(fd)), [0, 30, 40]);
        table.close_later(7, u64::MAX);
        let after = table.after_exec();
        assert_eq!([4, 6, 7].map(|fd| after.object(fd)), [20, 0, 0]);
        table.open_above(100, 100, 50, false);
        table.open_lowest(60, false);
        assert_eq!((table.object(100), table.object(8)), (50, 60));
    }
}
