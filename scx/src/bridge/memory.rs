//! The memory that both sides of the bridge share: a ring of events and a ring of decisions, in the
//! layout of `bpf/bridge.h`.

use crate::error::Error;
use libbpf_rs::MapCore;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const EVENTS: u64 = 16384;
const DECISIONS: u64 = 4096;

/// An event of a task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Event {
    sequence: u64,
    /// Its time, on `CLOCK_MONOTONIC`.
    pub ns: u64,
    /// Its meaning depends on the kind.
    pub value: u64,
    /// The task.
    pub pid: u32,
    /// The CPU.
    pub cpu: u16,
    /// One of [`kind`].
    pub kind: u8,
    /// A set of [`flag`]s.
    pub flags: u8,
}

/// A decision about a task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Decision {
    /// The longest time that it runs.
    pub slice: u64,
    /// The number of the wait that this ends.
    pub wait: u64,
    /// The task.
    pub pid: u32,
    /// The CPU.
    pub cpu: u16,
    /// One of [`decision`].
    pub kind: u16,
}

/// `enum event_kind`.
pub mod kind {
    pub const ENABLE: u8 = 1;
    pub const DISABLE: u8 = 2;
    pub const RUNNABLE: u8 = 3;
    pub const ENQUEUE: u8 = 4;
    pub const DEQUEUE: u8 = 5;
    pub const RUNNING: u8 = 6;
    pub const STOPPING: u8 = 7;
    pub const QUIESCENT: u8 = 8;
    pub const TICK: u8 = 9;
    pub const WEIGHT: u8 = 10;
    pub const CPUMASK: u8 = 11;
    pub const EXIT: u8 = 12;
    pub const CPU_ONLINE: u8 = 13;
    pub const CPU_OFFLINE: u8 = 14;
    pub const CPU_ACQUIRE: u8 = 15;
    pub const CPU_RELEASE: u8 = 16;
}

/// `enum event_flag`.
pub mod flag {
    pub const WOKEN: u8 = 1;
    pub const RUNNABLE: u8 = 2;
    pub const YIELDED: u8 = 4;
    pub const EXCURSION: u8 = 8;
    pub const KEPT: u8 = 16;
    pub const DEAD: u8 = 32;
    pub const SLEEPS: u8 = 64;
}

/// `enum decision_kind`.
pub mod decision {
    pub const RUN: u16 = 1;
    pub const STOP: u16 = 2;
}

/// The memory that both sides use at the same time.
#[repr(C)]
struct Heads {
    _event_head: AtomicU64,
    decision_tail: AtomicU64,
    exited: AtomicU64,
    _unused: [u64; 5],
    event_tail: AtomicU64,
    decision_head: AtomicU64,
    _unused_too: [u64; 6],
}

#[repr(C)]
struct Shared {
    heads: Heads,
    events: [Event; EVENTS as usize],
    decisions: [Decision; DECISIONS as usize],
}

/// The program's mapping of it.
pub struct Memory {
    shared: *mut Shared,
    read: u64,
    written: u64,
}

impl Memory {
    /// Maps it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn map(map: &libbpf_rs::Map<'_>) -> Result<Memory, Error> {
        assert!(
            map.value_size() as usize == size_of::<Shared>(),
            "bridge.h and memory.rs describe the same memory"
        );
        let (access, file) = (libc::PROT_READ | libc::PROT_WRITE, map.as_fd().as_raw_fd());
        // SAFETY: a new mapping of a map whose only value is as large as `Shared` and begins as
        // zeros, which are a value of it. It is never unmapped.
        let memory = unsafe {
            libc::mmap(ptr::null_mut(), size_of::<Shared>(), access, libc::MAP_SHARED, file, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::Missing(format!(
                "the rings cannot be mapped: {}",
                std::io::Error::last_os_error()
            )));
        }
        Ok(Memory { shared: memory.cast(), read: 0, written: 0 })
    }

    /// The next event, if there is one.
    pub fn next(&mut self) -> Option<Event> {
        // SAFETY: the place lies in the mapping. The kernel's side writes its number last, and does
        // not write there again before `event_tail` has passed it.
        let event = unsafe {
            let place = &raw const (*self.shared).events[(self.read % EVENTS) as usize];
            let number = AtomicU64::from_ptr((&raw const (*place).sequence).cast_mut());
            (number.load(Acquire) == self.read + 1).then(|| place.read())?
        };
        self.read += 1;
        self.heads().event_tail.store(self.read, Release);
        Some(event)
    }

    /// Sends a decision; false if there is no room until the kernel's side has read some.
    pub fn decide(&mut self, decision: Decision) -> bool {
        if self.written - self.heads().decision_tail.load(Acquire) == DECISIONS {
            return false;
        }
        // SAFETY: the place lies in the mapping, and the kernel's side has read what was there.
        unsafe {
            (&raw mut (*self.shared).decisions[(self.written % DECISIONS) as usize]).write(decision)
        };
        self.written += 1;
        self.heads().decision_head.store(self.written, Release);
        true
    }

    /// Whether the kernel has ejected the policy.
    pub fn has_exited(&self) -> bool {
        self.heads().exited.load(Relaxed) != 0
    }

    fn heads(&self) -> &Heads {
        // SAFETY: atomic integers, mapped as long as the program lives.
        unsafe { &(*self.shared).heads }
    }
}
