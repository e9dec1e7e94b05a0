//! An event of 40 bytes.
//!
//! | bytes | |
//! |---|---|
//! | 0–7 | time, `CLOCK_MONOTONIC` in nanoseconds |
//! | 8–9 | CPU |
//! | 10 | kind |
//! | 11 | context: 0 a task, 1 a softirq, 2 a hardware interrupt or an NMI |
//! | 12–15 | the thread id of the task that runs, or the task that the event is about |
//! | 16–39 | three words, by kind as in [`What`] |
//!
//! An *object* is a number that the recorder gives to a pipe, socket, futex, event counter, epoll
//! set, timer or file. It does so when it first sees it ([`What::Object`]). Duplicated and passed
//! descriptors have the same object; 0 is none.

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: u16,
    /// 0 a task, 1 a softirq, 2 a hardware interrupt or an NMI.
    pub context: u8,
    /// The task that runs, or that the event is about.
    pub tid: u32,
    /// What happened.
    pub what: What,
}

/// What happened. Numbers of tasks are thread ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "fields of the kernel's tracepoints and system calls")]
pub enum What {
    /// `sched_switch` away from [`Event::tid`]. `state` is 0 runnable, 1 blocked, 2 dead; `object`
    /// is what the call of the task that leaves is about.
    Switch { state: u8, prev_prio: u16, next: u32, next_prio: u16, prev_tgid: u32, object: u64 },
    /// `sched_waking`: `call` is the number plus one of the waker's system call, `object` what it
    /// is about; both are 0 outside calls and in interrupts.
    Waking { task: u32, target: u16, prio: u16, call: u16, object: u64 },
    /// `sched_wakeup`.
    Wakeup { task: u32, target: u16, prio: u16 },
    /// `sched_wakeup_new`.
    WakeupNew { task: u32, target: u16, prio: u16 },
    /// `sched_process_fork`. The child may be in another namespace of pids than the first. Then
    /// `namespace` is that one's inode, and `number` the child's number in the parent's one. Older
    /// recorders and kernels leave both at 0.
    Fork { parent: u32, child: u32, child_tgid: u32, number: u32, namespace: u32 },
    /// `sched_process_exec`.
    Exec { task: u32, old: u32 },
    /// `sched_process_exit`.
    Exit { task: u32, prio: u16 },
    /// `sched_migrate_task`.
    Migrate { task: u32, prio: u16, from: u16, to: u16 },
    /// [`Event::tid`] has this name from now on; it is filled up with zeros.
    Task { comm: [u8; 16], tgid: u32 },
    /// The object `id` is seen for the first time, or more is known of it. `peer` is the other end
    /// of a socket pair, of an internet socket its ports (`local << 16 | remote`), both with the
    /// type as in [`socket`]. Of a pipe it is its capacity in bytes, of an event counter what
    /// [`eventfd`] says. Of a simulated device it is the number of requests that it serves at a
    /// time. Of a file or a disk it is what [`storage`] says. 0 is unknown.
    Object { id: u64, class: Class, inode: u64, peer: u64 },
    /// A system call ends: its object, result, number, operation and duration in nanoseconds (44
    /// bits). The operation is that of `futex` and `epoll_ctl`; of `wait4` it is as in [`wait`]. Of
    /// `clock_nanosleep` it is 1 if its time is absolute. Of `epoll_wait` it is the most that it
    /// returns, at most 1,023. Of a simulated `write` to an event counter it is what it adds.
    Call { object: u64, result: i64, number: u16, op: u16, duration: u64 },
    /// What belongs to the call that begins: an entry of `poll` (`op` 0), of `epoll_ctl` (its
    /// operation, 1 to 3), or one of [`member`].
    Member { set: u64, object: u64, events: u32, op: u8 },
    /// A call sleeps, or a timer is armed, until `expiry` (`CLOCK_MONOTONIC`; `u64::MAX` disarms).
    /// Of a simulated device, `interval` is the service time of the request that begins.
    Timer { object: u64, expiry: u64, interval: u64 },
    /// A setting of a task changes: `which` is 0 affinity (the first 64 CPUs), 1 policy, 2 nice.
    Setting { task: u32, which: u8, value: u64 },
}

/// Operations of `futex` calls from this number on are no system calls. They are calls of a library
/// of locks, which makes none unless it must wait. The object is a [`Class::Futex`].
pub mod lock {
    /// Locks a mutex. The result is the address in the program to which the call returns, if it is
    /// known, which distinguishes critical sections. The mutex's `peer` has bit 0 if unlocking
    /// passes it to the longest waiting task, and bit 1 if it has priority inheritance.
    pub const LOCK: u16 = 256;
    /// Unlocks it.
    pub const UNLOCK: u16 = 257;
    /// Waits for a signal; a [`What::Member`](super::What::Member) with `op`
    /// [`SECOND`](super::member::SECOND) names the mutex. The result is not 0 if its time was over.
    pub const WAIT: u16 = 258;
    /// Wakes one waiting task.
    pub const SIGNAL: u16 = 259;
    /// Wakes all.
    pub const BROADCAST: u16 = 260;
    /// Arrives at a barrier; its `peer` is the number of tasks.
    pub const ARRIVE: u16 = 261;
    /// Takes one from a semaphore; its `peer` is the count when it was first seen.
    pub const TAKE: u16 = 262;
    /// Adds one to it.
    pub const POST: u16 = 263;
}

/// The `peer` of a file is the number of its file system's device, that of a disk its own with
/// [`DISK`](storage::DISK). The number is the kernel's `dev_t`: a major number and 20 bits of a
/// minor one.
pub mod storage {
    /// The object is a disk.
    pub const DISK: u64 = 1 << 32;
    /// The bits of a minor number.
    pub const MINOR_BITS: u32 = 20;
    /// All of them.
    pub const MINOR: u64 = (1 << MINOR_BITS) - 1;
}

/// What a [`What::Member`] is, beside an entry of `poll` (0) or of `epoll_ctl`.
pub mod member {
    /// The second address of a futex operation.
    pub const SECOND: u8 = 16;
    /// An accepted socket.
    pub const ACCEPTED: u8 = 17;
    /// The address at which a Unix socket that connects or is accepted was connected, as an object.
    pub const CONNECTED: u8 = 19;
    /// The tasks `set` to `object`, whose end a simulated `waitid` waits for.
    pub const AWAITED: u8 = 18;
}

/// The types of sockets, in the highest byte of their `peer`; 0 is unknown.
pub mod socket {
    /// The bits of the type.
    pub const TYPE: u64 = 0xff << 56;
    /// `SOCK_STREAM`.
    pub const STREAM: u64 = 1;
    /// `SOCK_DGRAM`.
    pub const DATAGRAM: u64 = 2;
    /// `SOCK_SEQPACKET`.
    pub const SEQPACKET: u64 = 5;
}

/// The `peer` of an event counter.
pub mod eventfd {
    /// A task takes one, not all.
    pub const SEMAPHORE: u64 = 1;
    /// The bits of its count, after the first.
    pub const COUNT: u64 = (1 << 62) - 1;
    /// Of a simulated one: adding n wakes n tasks, not all.
    pub const WAKES_ONE: u64 = 1 << 63;
}

/// Operations of `wait4`.
pub mod wait {
    /// It waits for any child. Older recorders do not say it.
    pub const ANY: u16 = 1;
}

/// What `epoll_ctl` and `poll` want of an object, and the operations of `epoll_ctl`.
pub mod watch {
    /// `POLLIN` and `EPOLLIN`.
    pub const IN: u32 = 1;
    /// `POLLOUT` and `EPOLLOUT`.
    pub const OUT: u32 = 4;
    /// `EPOLLET`.
    pub const EDGE: u32 = 1 << 31;
    /// `EPOLLONESHOT`.
    pub const ONCE: u32 = 1 << 30;
    /// `EPOLLEXCLUSIVE`.
    pub const EXCLUSIVE: u32 = 1 << 28;
    /// `EPOLL_CTL_ADD`.
    pub const ADD: u8 = 1;
    /// `EPOLL_CTL_DEL`.
    pub const DELETE: u8 = 2;
    /// `EPOLL_CTL_MOD`.
    pub const CHANGE: u8 = 3;
}

/// Operations of calls that read.
pub mod read {
    /// The result is the size of the buffer: the call took as much as there was. Only simulations
    /// say it.
    pub const UP_TO: u16 = 1;
}

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names of Linux")]
pub enum Class {
    Pipe = 1,
    UnixSocket = 2,
    InternetSocket = 3,
    Socket = 4,
    File = 5,
    Device = 6,
    Eventfd = 7,
    Epoll = 8,
    Timerfd = 9,
    Signalfd = 10,
    Pidfd = 11,
    Anonymous = 12,
    Futex = 13,
}

impl Class {
    /// All, in the order of their numbers from 1.
    pub const ALL: [Class; 13] = [
        Class::Pipe,
        Class::UnixSocket,
        Class::InternetSocket,
        Class::Socket,
        Class::File,
        Class::Device,
        Class::Eventfd,
        Class::Epoll,
        Class::Timerfd,
        Class::Signalfd,
        Class::Pidfd,
        Class::Anonymous,
        Class::Futex,
    ];

    fn numbered(number: u8) -> Option<Class> {
        Class::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The names of the kinds, by number from 1.
const NAMES: [&str; 14] = [
    "switch",
    "waking",
    "wakeup",
    "wakeup_new",
    "fork",
    "exec",
    "exit",
    "migrate",
    "task",
    "object",
    "call",
    "member",
    "timer",
    "setting",
];

impl What {
    /// The name of a kind by its number in the file.
    pub fn name_of(kind: u8) -> Option<&'static str> {
        NAMES.get(usize::from(kind).checked_sub(1)?).copied()
    }

    /// The number of its kind in the file.
    pub fn kind(&self) -> u8 {
        match self {
            What::Switch { .. } => 1,
            What::Waking { .. } => 2,
            What::Wakeup { .. } => 3,
            What::WakeupNew { .. } => 4,
            What::Fork { .. } => 5,
            What::Exec { .. } => 6,
            What::Exit { .. } => 7,
            What::Migrate { .. } => 8,
            What::Task { .. } => 9,
            What::Object { .. } => 10,
            What::Call { .. } => 11,
            What::Member { .. } => 12,
            What::Timer { .. } => 13,
            What::Setting { .. } => 14,
        }
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        NAMES[usize::from(self.kind()) - 1]
    }

    fn words(&self) -> [u64; 3] {
        let wide = u64::from;
        let task = |task: u32, target: u16, prio: u16| {
            wide(task) | u64::from(target) << 32 | u64::from(prio) << 48
        };
        match *self {
            What::Switch { state, prev_prio, next, next_prio, prev_tgid, object } => [
                u64::from(state) | u64::from(prev_prio) << 32 | u64::from(next_prio) << 48,
                wide(next) | wide(prev_tgid) << 32,
                object,
            ],
            What::Waking { task: woken, target, prio, call, object } => {
                [task(woken, target, prio), u64::from(call), object]
            }
            What::Wakeup { task: woken, target, prio }
            | What::WakeupNew { task: woken, target, prio } => [task(woken, target, prio), 0, 0],
            What::Fork { parent, child, child_tgid, number, namespace } => [
                wide(parent) | wide(child) << 32,
                wide(child_tgid),
                wide(number) | wide(namespace) << 32,
            ],
            What::Exec { task, old } => [wide(task) | wide(old) << 32, 0, 0],
            What::Exit { task: ended, prio } => [task(ended, 0, prio), 0, 0],
            What::Migrate { task: moved, prio, from, to } => {
                [task(moved, 0, prio), u64::from(from) | u64::from(to) << 32, 0]
            }
            What::Task { comm, tgid } => [word(&comm, 0), word(&comm, 8), wide(tgid)],
            What::Object { id, class, inode, peer } => [id, class as u64 | inode << 8, peer],
            What::Call { object, result, number, op, duration } => [
                object,
                result.cast_unsigned(),
                u64::from(number) | u64::from(op) << 10 | duration << 20,
            ],
            What::Member { set, object, events, op } => {
                [set, object, wide(events) | u64::from(op) << 32]
            }
            What::Timer { object, expiry, interval } => [object, expiry, interval],
            What::Setting { task, which, value } => [wide(task) | u64::from(which) << 32, value, 0],
        }
    }

    fn parse(kind: u8, tid: u32, [a, b, c]: [u64; 3]) -> Option<What> {
        let (task, target, prio) = (low(a), short(a >> 32), short(a >> 48));
        Some(match kind {
            1 => What::Switch {
                state: u8::try_from(low(a)).ok().filter(|state| *state <= 2)?,
                prev_prio: target,
                next: low(b),
                next_prio: prio,
                prev_tgid: low(b >> 32),
                object: c,
            },
            2 => What::Waking { task, target, prio, call: short(b), object: c },
            3 => What::Wakeup { task, target, prio },
            4 => What::WakeupNew { task, target, prio },
            5 => What::Fork {
                parent: task,
                child: low(a >> 32),
                child_tgid: low(b),
                number: low(c),
                namespace: low(c >> 32),
            },
            6 => What::Exec { task, old: low(a >> 32) },
            7 => What::Exit { task, prio },
            8 => What::Migrate { task, prio, from: short(b), to: short(b >> 32) },
            9 if tid > 0 => {
                let mut comm = [0; 16];
                comm[..8].copy_from_slice(&a.to_le_bytes());
                comm[8..].copy_from_slice(&b.to_le_bytes());
                What::Task { comm, tgid: low(c) }
            }
            10 if a > 0 => {
                What::Object { id: a, class: Class::numbered(byte(b))?, inode: b >> 8, peer: c }
            }
            11 => What::Call {
                object: a,
                result: b.cast_signed(),
                number: short(c) & 0x3ff,
                op: short(c >> 10) & 0x3ff,
                duration: c >> 20,
            },
            12 => What::Member { set: a, object: b, events: low(c), op: byte(c >> 32) },
            13 => What::Timer { object: a, expiry: b, interval: c },
            14 => What::Setting {
                task,
                which: Some(byte(a >> 32)).filter(|which| *which <= 2)?,
                value: b,
            },
            _ => return None,
        })
    }
}

impl Event {
    /// Its size in a file.
    pub const SIZE: usize = 40;

    /// As in a file.
    pub fn bytes(&self) -> [u8; Event::SIZE] {
        let mut bytes = [0; Event::SIZE];
        bytes[..8].copy_from_slice(&self.time.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.cpu.to_le_bytes());
        bytes[10] = self.what.kind();
        bytes[11] = self.context;
        bytes[12..16].copy_from_slice(&self.tid.to_le_bytes());
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(self.what.words()) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From a file; `None` if the kind, the context or a field is none that is known.
    pub fn parse(bytes: &[u8; Event::SIZE]) -> Option<Event> {
        let tid = low(word(bytes, 8) >> 32);
        let words = [word(bytes, 16), word(bytes, 24), word(bytes, 32)];
        let context = Some(bytes[11]).filter(|context| *context <= 2)?;
        let what = What::parse(bytes[10], tid, words)?;
        Some(Event { time: word(bytes, 0), cpu: short(word(bytes, 8)), context, tid, what })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn low(word: u64) -> u32 {
    (word & u64::from(u32::MAX)) as u32
}

fn short(word: u64) -> u16 {
    (word & u64::from(u16::MAX)) as u16
}

fn byte(word: u64) -> u8 {
    (word & u64::from(u8::MAX)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What parses is written as what parses to the same.
        #[test]
        fn an_event_survives_its_bytes(bytes in any::<[u8; 32]>(), kind in 0_u8..16, rest in any::<[u8; 8]>()) {
            let mut all = [0; Event::SIZE];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&rest);
            all[10] = kind;
            all[11] %= 4;
            if let Some(event) = Event::parse(&all) {
                prop_assert_eq!(Event::parse(&event.bytes()), Some(event));
                prop_assert_eq!(What::name_of(kind), Some(event.what.name()));
            }
        }
    }

    #[test]
    fn what_is_unknown_is_refused() {
        let known = What::Exit { task: 1, prio: 120 };
        let mut bytes = Event { time: 1, cpu: 0, context: 0, tid: 1, what: known }.bytes();
        assert!(Event::parse(&bytes).is_some());
        for (at, wrong) in [(10, 0), (10, 15), (11, 3)] {
            let right = std::mem::replace(&mut bytes[at], wrong);
            assert_eq!(Event::parse(&bytes), None, "byte {at} is {wrong}");
            bytes[at] = right;
        }
    }
}
