//! What all tasks of a job share, threads and processes alike: memory that starts as zeros.

use crate::program::Program;
use crate::sync::{Barrier, Condition, Mutex};
use crate::usage::Sum;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Kind {
    Yield,
    Run,
    Sleep,
    Timer,
    Lock,
    Unlock,
    Wait,
    Signal,
    Barrier,
    Write,
    Read,
    Io,
    Fork,
    Join,
}

/// The kinds' names, in their order.
pub const KINDS: [&str; 14] =
    ["yield", "run", "sleep", "timer", "lock", "unlock", "wait", "signal", "barrier", "write", "read", "io", "fork", "join"];

/// The state of the job as a whole.
#[repr(C)]
pub struct Board {
    /// How many tasks wait at the gate.
    pub ready: AtomicU32,
    /// 1 once the tasks may run.
    pub gate: AtomicU32,
    /// How many are alive that somebody waits for.
    pub remaining: AtomicU32,
    /// 1 once the job is over.
    pub done: AtomicU32,
    /// When the gate opened, on the clock.
    pub begin_ns: AtomicU64,
    /// The same on `CLOCK_MONOTONIC`.
    pub begin_monotonic: AtomicU64,
    /// When the job was over, on the clock.
    pub end_ns: AtomicU64,
    /// What a task could not do ([`crate::task::Failure`]); the last one counts.
    pub failure: AtomicU32,
    /// The error number of that.
    pub error: AtomicU32,
}

/// The state of one task.
#[repr(C, align(128))]
pub struct Instance {
    /// Completed phases by kind.
    pub counts: [AtomicU64; KINDS.len()],
    /// CPU time, once it has ended.
    pub cpu_ns: AtomicU64,
    /// When it first ran, on the clock.
    pub began_ns: AtomicU64,
    /// When it ended, on the clock.
    pub ended_ns: AtomicU64,
    /// Its thread id, once it began.
    pub tid: AtomicU32,
}

impl Instance {
    /// One more of `kind`; only the task itself counts.
    pub fn count(&self, kind: Kind) {
        let count = &self.counts[kind as usize];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }
}

/// How many instances of a kind of task there are and have been.
#[repr(C)]
pub struct Family {
    /// Alive now.
    pub alive: AtomicU32,
    /// Begun so far.
    pub begun: AtomicU32,
}

/// A window's border: what had been done, and the clock before and after that was added up.
#[repr(C)]
pub struct Reading {
    /// The end of the window before.
    pub end_ns: AtomicU64,
    /// All tasks' phases of the sampled kind.
    pub operations: AtomicU64,
    /// The begin of the window after.
    pub begin_ns: AtomicU64,
}

/// All of it.
pub struct Shared {
    pub board: &'static Board,
    pub instances: &'static [Instance],
    pub families: &'static [Family],
    pub mutexes: &'static [Mutex],
    pub conditions: &'static [Condition],
    pub barriers: &'static [Barrier],
    pub timers: &'static [AtomicU64],
    pub readings: &'static [Reading],
    pub used: &'static Sum,
}

impl Shared {
    /// For `program`, with room for `readings`.
    pub fn new(program: &Program, readings: usize) -> Shared {
        Shared {
            board: &zeroed(1)[0],
            instances: zeroed(program.instances),
            families: zeroed(program.templates.len()),
            mutexes: zeroed(program.mutexes.len()),
            conditions: zeroed(program.conditions),
            barriers: zeroed(program.barriers.len()),
            timers: zeroed(program.shared_timers),
            readings: zeroed(readings),
            used: &zeroed(1)[0],
        }
    }

    /// What all tasks together have done of `kind`.
    pub fn total(&self, kind: Kind) -> u64 {
        self.instances.iter().map(|instance| instance.counts[kind as usize].load(Relaxed)).sum()
    }
}

/// Made of atomic integers only, so that zeros are a value of it.
///
/// # Safety
/// The type must be `repr(C)` and have no other fields.
unsafe trait Atomics: Sync {}

// SAFETY: so they are.
unsafe impl Atomics for Board {}
// SAFETY: so it is.
unsafe impl Atomics for Instance {}
// SAFETY: so it is.
unsafe impl Atomics for Family {}
// SAFETY: so it is.
unsafe impl Atomics for Reading {}
// SAFETY: so it is.
unsafe impl Atomics for Sum {}
// SAFETY: so it is.
unsafe impl Atomics for Mutex {}
// SAFETY: so it is.
unsafe impl Atomics for Condition {}
// SAFETY: so it is.
unsafe impl Atomics for Barrier {}
// SAFETY: so it is.
unsafe impl Atomics for AtomicU64 {}

/// `count` zeros that child processes share, for as long as the process lives.
fn zeroed<T: Atomics>(count: usize) -> &'static [T] {
    let bytes = (count * size_of::<T>()).max(1);
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new mapping, page-aligned, never unmapped, and zeros are a value of `T`.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert!(memory != libc::MAP_FAILED, "no memory for {bytes} bytes");
        std::slice::from_raw_parts(memory.cast::<T>(), count)
    }
}
