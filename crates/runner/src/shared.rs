//! What all tasks of a job share, threads and processes alike: memory that starts as zeros.

use crate::program::Program;
use crate::sync::{Barrier, Condition, Mutex};
use crate::usage::Sum;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

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
    /// Of a place that nobody has: the one behind it in [`Family::free`].
    next: AtomicU32,
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
    /// How many places were ever taken, of those that are given back.
    pub places: AtomicU32,
    /// How many have ended and given their place back.
    pub ended: AtomicU32,
    /// The first place that nobody has, from 1 on; 0 if there is none. The upper half changes with each change, so that an old value is never taken for a new one.
    free: AtomicU64,
    /// What those have come to: sums, the first begin and the last end.
    pub sum: Instance,
}

impl Family {
    /// A place for the next instance, of `places`: that of one which has ended, or a new one. So there are as many as were alive at a time.
    pub fn take_place(&self, places: &[Instance]) -> usize {
        let mut head = self.free.load(SeqCst);
        while let Some(place) = (head as u32).checked_sub(1) {
            let rest = after(head) | u64::from(places[place as usize].next.load(SeqCst));
            match self.free.compare_exchange(head, rest, SeqCst, SeqCst) {
                Ok(_) => return place as usize,
                Err(now) => head = now,
            }
        }
        self.places.fetch_add(1, SeqCst) as usize
    }

    /// An instance has ended: adds what it came to, and lets another have its place.
    pub fn give_back(&self, place: usize, places: &[Instance]) {
        let instance = &places[place];
        for (sum, count) in self.sum.counts.iter().zip(&instance.counts) {
            sum.fetch_add(count.swap(0, SeqCst), SeqCst);
        }
        self.sum.cpu_ns.fetch_add(instance.cpu_ns.swap(0, SeqCst), SeqCst);
        self.sum.ended_ns.fetch_max(instance.ended_ns.swap(0, SeqCst), SeqCst);
        let began = instance.began_ns.swap(0, SeqCst);
        let _ = self.sum.began_ns.fetch_update(SeqCst, SeqCst, |first| (first == 0 || began < first).then_some(began));
        self.sum.tid.store(instance.tid.swap(0, SeqCst), SeqCst);
        self.ended.fetch_add(1, SeqCst);
        let mut head = self.free.load(SeqCst);
        loop {
            instance.next.store(head as u32, SeqCst);
            match self.free.compare_exchange(head, after(head) | (place as u64 + 1), SeqCst, SeqCst) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The upper half of what follows `head`.
fn after(head: u64) -> u64 {
    (head >> 32).wrapping_add(1) << 32
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

/// Who has the place of a forked task that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// It does: each is told of.
    Kept,
    /// The next one: only their sum is told.
    GivenBack,
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
    /// For `program`, with room for `readings`. Where instances give their `places` back, memory comes with the first who has one.
    pub fn new(program: &Program, readings: usize, places: Places) -> Shared {
        Shared {
            board: &zeroed(1)[0],
            instances: map(program.instances, if places == Places::GivenBack { 0 } else { libc::MAP_POPULATE }),
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
    map(count, libc::MAP_POPULATE)
}

/// The same; without `MAP_POPULATE` each page costs memory, and time, when it is first used.
fn map<T: Atomics>(count: usize, populate: i32) -> &'static [T] {
    let bytes = (count * size_of::<T>()).max(1);
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | populate;
    // SAFETY: a new mapping, page-aligned, never unmapped, and zeros are a value of `T`.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert!(memory != libc::MAP_FAILED, "no memory for {bytes} bytes");
        std::slice::from_raw_parts(memory.cast::<T>(), count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_instances_at_a_time_and_nothing_that_they_came_to_is_lost() {
        const THREADS: usize = 4;
        const EACH: u64 = 2_000;
        let (family, places) = (&zeroed::<Family>(1)[0], map::<Instance>(THREADS * EACH as usize, 0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 1..=EACH {
                        let place = family.take_place(places);
                        let instance = &places[place];
                        assert_eq!(instance.tid.swap(1, SeqCst), 0, "nobody else has it");
                        instance.count(Kind::Run);
                        instance.cpu_ns.store(10, SeqCst);
                        instance.began_ns.store(100 + round, SeqCst);
                        instance.ended_ns.store(200 + round, SeqCst);
                        family.give_back(place, places);
                    }
                });
            }
        });
        let all = THREADS as u64 * EACH;
        assert!((1..=THREADS as u32).contains(&family.places.load(SeqCst)));
        assert_eq!(u64::from(family.ended.load(SeqCst)), all);
        let of = |sum: &AtomicU64| sum.load(SeqCst);
        assert_eq!((of(&family.sum.counts[Kind::Run as usize]), of(&family.sum.cpu_ns)), (all, 10 * all));
        assert_eq!((of(&family.sum.began_ns), of(&family.sum.ended_ns)), (101, 200 + EACH));
    }
}
