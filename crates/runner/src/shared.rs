//! The memory that all tasks of a job share, threads and processes alike. It starts as zeros.

use crate::kind::{KINDS, Kind};
use crate::program::Program;
use crate::sync::{Barrier, Condition, Mutex, Semaphore};
use crate::usage::Sum;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The state of the job.
#[repr(C)]
pub struct Board {
    /// The number of tasks at the gate.
    pub ready: AtomicU32,
    /// 1 once the tasks may run.
    pub gate: AtomicU32,
    /// The number of live tasks that are no daemons.
    pub remaining: AtomicU32,
    /// 1 once the job is over.
    pub done: AtomicU32,
    /// When the gate opened, on the clock.
    pub begin_ns: AtomicU64,
    /// The same on `CLOCK_MONOTONIC`.
    pub begin_monotonic: AtomicU64,
    /// When the job was over, on the clock.
    pub end_ns: AtomicU64,
    /// The failure of a task ([`crate::failure::Failure`]); the last one counts.
    pub failure: AtomicU32,
    /// The error number of the failure.
    pub error: AtomicU32,
}

/// The state of one task.
#[repr(C, align(128))]
pub struct Instance {
    /// Completed phases by kind.
    pub counts: [AtomicU64; KINDS.len()],
    /// CPU time, set when the task ends.
    pub cpu_ns: AtomicU64,
    /// When it first ran, on the clock.
    pub began_ns: AtomicU64,
    /// When it ended, on the clock.
    pub ended_ns: AtomicU64,
    /// Its thread id, set when it begins.
    pub tid: AtomicU32,
    /// For a free place: the next one in [`Family::free`].
    next: AtomicU32,
}

impl Instance {
    /// Adds one to `kind`. Only the task itself counts.
    pub fn count(&self, kind: Kind) {
        let count = &self.counts[kind as usize];
        count.store(count.load(Relaxed) + 1, Relaxed);
    }
}

/// The instances of a kind of task.
#[repr(C)]
pub struct Family {
    /// Alive now.
    pub alive: AtomicU32,
    /// Begun so far.
    pub begun: AtomicU32,
    /// The number of places ever taken, of those that are given back.
    pub places: AtomicU32,
    /// The number of instances that have ended and given their place back.
    pub ended: AtomicU32,
    /// The first free place, counted from 1; 0 if there is none. The upper half changes with each
    /// update, so that an old value is never taken for a new one.
    free: AtomicU64,
    /// The results of the ended instances: sums, the first begin and the last end.
    pub sum: Instance,
}

impl Family {
    /// Takes a place for the next instance, of `places`: a free one, or a new one. So the number of
    /// places is the largest number of instances alive at a time.
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

    /// Adds the results of an ended instance to the sum and frees its place.
    pub fn give_back(&self, place: usize, places: &[Instance]) {
        let instance = &places[place];
        for (sum, count) in self.sum.counts.iter().zip(&instance.counts) {
            sum.fetch_add(count.swap(0, SeqCst), SeqCst);
        }
        self.sum.cpu_ns.fetch_add(instance.cpu_ns.swap(0, SeqCst), SeqCst);
        self.sum.ended_ns.fetch_max(instance.ended_ns.swap(0, SeqCst), SeqCst);
        let began = instance.began_ns.swap(0, SeqCst);
        let _ = self
            .sum
            .began_ns
            .fetch_update(SeqCst, SeqCst, |first| (first == 0 || began < first).then_some(began));
        self.sum.tid.store(instance.tid.swap(0, SeqCst), SeqCst);
        self.ended.fetch_add(1, SeqCst);
        let mut head = self.free.load(SeqCst);
        loop {
            instance.next.store(head as u32, SeqCst);
            match self.free.compare_exchange(head, after(head) | (place as u64 + 1), SeqCst, SeqCst)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The upper half of the value after `head`.
fn after(head: u64) -> u64 {
    (head >> 32).wrapping_add(1) << 32
}

/// The border between two windows: the count, and the clock before and after counting.
#[repr(C)]
pub struct Reading {
    /// The end of the previous window.
    pub end_ns: AtomicU64,
    /// The phases of the sampled kind that all tasks have completed.
    pub operations: AtomicU64,
    /// The begin of the next window.
    pub begin_ns: AtomicU64,
}

/// What becomes of the place of a forked task that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// It stays: each task is reported.
    Kept,
    /// The next task gets it: only their sum is reported.
    GivenBack,
}

/// All of the shared memory.
pub struct Shared {
    pub board: &'static Board,
    pub instances: &'static [Instance],
    pub families: &'static [Family],
    pub mutexes: &'static [Mutex],
    pub conditions: &'static [Condition],
    pub barriers: &'static [Barrier],
    /// One for each event counter, of which only those that wake one task are used.
    pub semaphores: &'static [Semaphore],
    pub timers: &'static [AtomicU64],
    pub readings: &'static [Reading],
    pub used: &'static Sum,
}

impl Shared {
    /// For `program`, with room for `readings`, each object `pad` bytes behind the begin of a page.
    /// Where instances give their `places` back, a place takes memory when it is first used.
    pub fn new(program: &Program, readings: usize, places: Places, pad: u32) -> Shared {
        let wakes_one = program.eventfds.iter().any(|of| of.wakes_one);
        let semaphores = if wakes_one { program.eventfds.len() } else { 0 };
        Shared {
            board: &zeroed(1, pad)[0],
            instances: map(
                program.instances,
                pad,
                if places == Places::GivenBack { 0 } else { libc::MAP_POPULATE },
            ),
            families: zeroed(program.templates.len(), pad),
            mutexes: zeroed(program.mutexes.len(), pad),
            conditions: zeroed(program.conditions, pad),
            barriers: zeroed(program.barriers.len(), pad),
            semaphores: zeroed(semaphores, pad),
            timers: zeroed(program.shared_timers, pad),
            readings: zeroed(readings, pad),
            used: &zeroed(1, pad)[0],
        }
    }

    /// The number of phases of `kind` that all tasks have completed.
    pub fn total(&self, kind: Kind) -> u64 {
        self.instances.iter().map(|instance| instance.counts[kind as usize].load(Relaxed)).sum()
    }
}

/// A type of atomic integers only, of which zeros are a value.
///
/// # Safety
/// The type must be `repr(C)` and have no other fields.
unsafe trait Atomics: Sync {}

// SAFETY: all fields are atomic.
unsafe impl Atomics for Board {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Instance {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Family {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Reading {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Sum {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Mutex {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Condition {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Barrier {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for Semaphore {}
// SAFETY: all fields are atomic.
unsafe impl Atomics for AtomicU64 {}

/// Maps `count` zeros that child processes share, until the process ends.
fn zeroed<T: Atomics>(count: usize, pad: u32) -> &'static [T] {
    map(count, pad, libc::MAP_POPULATE)
}

/// Maps `count` zeros, `pad` bytes behind the begin of a page. Without `MAP_POPULATE`, the first
/// use of each page takes memory and time.
fn map<T: Atomics>(count: usize, pad: u32, populate: i32) -> &'static [T] {
    let pad = (pad as usize).next_multiple_of(align_of::<T>());
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | populate;
    let begin = mapped(pad + count * size_of::<T>(), libc::PROT_READ | libc::PROT_WRITE, flags);
    // SAFETY: a new mapping with room for the padding and `count` values, aligned as a page is and
    // the padding is, never unmapped, and zeros are a value of `T`.
    unsafe { std::slice::from_raw_parts(begin.byte_add(pad).cast::<T>(), count) }
}

/// Takes `pages` of the address space, which nothing uses: what is mapped later lies elsewhere.
pub fn reserve(pages: u32) {
    const PAGE: usize = 4096;
    if pages > 0 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        mapped(pages as usize * PAGE, libc::PROT_NONE, flags);
    }
}

/// A new mapping of at least one byte, which is never unmapped.
fn mapped(bytes: usize, protection: i32, flags: i32) -> *mut libc::c_void {
    // SAFETY: a new mapping, where the kernel chooses.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes.max(1), protection, flags, -1, 0) };
    assert!(memory != libc::MAP_FAILED, "no memory for {bytes} bytes");
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reused_and_no_result_is_lost() {
        const THREADS: usize = 4;
        const EACH: u64 = 2_000;
        let (family, places) =
            (&zeroed::<Family>(1, 64)[0], map::<Instance>(THREADS * EACH as usize, 64, 0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 1..=EACH {
                        let place = family.take_place(places);
                        let instance = &places[place];
                        assert_eq!(instance.tid.swap(1, SeqCst), 0, "the place is free");
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
        assert_eq!(
            (of(&family.sum.counts[Kind::Run as usize]), of(&family.sum.cpu_ns)),
            (all, 10 * all)
        );
        assert_eq!((of(&family.sum.began_ns), of(&family.sum.ended_ns)), (101, 200 + EACH));
    }
}
