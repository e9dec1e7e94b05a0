//! The clock of a run, the CPU time of a task, and the loop that uses it up.
//!
//! In a guest the clock is the time-stamp counter: under QEMU's instruction counting it advances by one for each instruction. On a real machine it is
//! `CLOCK_MONOTONIC`.

use crate::guest;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Passes of [`spin`] in 65,536 ns of CPU time; 0 before [`calibrate`].
static PASSES: AtomicU64 = AtomicU64::new(0);
/// A clock read, in nanoseconds of CPU time.
static READ: AtomicU64 = AtomicU64::new(0);

/// The clock, in nanoseconds.
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if guest::is_guest() {
        // SAFETY: every x86-64 CPU has the counter.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    read(libc::CLOCK_MONOTONIC)
}

/// A clock of the kernel's, in nanoseconds; 0 if there is no such clock.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time` only.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Marks the begin or the end of a window for QEMU's plugin: an instruction that does nothing, with a number in it that nothing else has.
///
/// It is there whether or not a plugin looks, so that looking changes no count.
#[cfg(target_arch = "x86_64")]
pub fn mark(begin: bool) {
    // SAFETY: `nopw 0x5ced1ab0(%rax,%rax,1)` and the same with 1: no-operations, whatever is in the register.
    unsafe {
        match begin {
            true => std::arch::asm!(".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb0, 0x1a, 0xed, 0x5c", options(nomem, nostack, preserves_flags)),
            false => {
                std::arch::asm!(".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb1, 0x1a, 0xed, 0x5c", options(nomem, nostack, preserves_flags))
            }
        }
    }
}

/// Only a guest is looked at.
#[cfg(not(target_arch = "x86_64"))]
pub fn mark(_begin: bool) {}

/// The CPU time of the calling task.
pub fn cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The CPU time of a thread of this process, or of a process.
pub fn cpu_of(id: u32, process: bool) -> u64 {
    // linux/include/uapi: the complement of the id, CPUCLOCK_SCHED = 2, and 4 for a thread.
    let of = if process { 2 } else { 6 };
    read((!id.cast_signed() << 3) | of)
}

/// Learns how fast this CPU spins.
pub fn calibrate() {
    const TRIAL: u64 = 20_000;
    let read = (0..8)
        .map(|_| -> u64 {
            let begin = cpu();
            cpu() - begin
        })
        .min()
        .unwrap_or(0);
    let trial = || {
        let begin = cpu();
        spin(TRIAL);
        (cpu() - begin).saturating_sub(read).max(1)
    };
    let best = (0..8).map(|_| trial()).min().unwrap_or(1);
    READ.store(read, Relaxed);
    PASSES.store((TRIAL << 16) / best, Relaxed);
}

/// A tick of the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    /// The clock when it began.
    pub ns: u64,
    /// For how long it kept this CPU.
    pub took_ns: u64,
}

/// The kernel's last tick, which nothing tells: the clock is looked at for three periods, and what keeps this CPU from it once each period is the tick. `None` if nothing does.
pub fn tick() -> Option<Tick> {
    const PASSES: u64 = 20;
    const INEXACT: u64 = 1_000;
    let mut period = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `period` only.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut period) };
    let period = period.tv_nsec.cast_unsigned();
    let (begin, mut last) = (now(), now());
    let (mut usual, mut gaps) = (u64::MAX, Vec::new());
    while last < begin + 3 * period {
        spin(PASSES);
        let gap = now() - last;
        usual = usual.min(gap);
        if gap > 4 * usual {
            gaps.push(Tick { ns: last, took_ns: gap - usual });
        }
        last += gap;
    }
    let is_again = |gap: &Tick| gaps.iter().any(|other| (other.ns + period).abs_diff(gap.ns) < INEXACT);
    let last = gaps.iter().copied().rev().find(is_again)?;
    let is_tick = |gap: &&Tick| (last.ns - gap.ns) % period < INEXACT || (last.ns - gap.ns) % period > period - INEXACT;
    // What else is done at a tick makes it longer.
    let took_ns = gaps.iter().filter(|gap| gap.ns <= last.ns).filter(is_tick).map(|gap| gap.took_ns).min()?;
    Some(Tick { took_ns, ..last })
}

/// Uses `ns` of CPU time, measured by the task's own CPU clock.
pub fn burn(ns: u64) {
    let read = READ.load(Relaxed);
    let always_as_fast = guest::is_guest() && guest::has_one_cpu();
    // So little that a look at the clock would be the larger part; or as much as in the trial, however often it is interrupted.
    if ns <= 8 * read || always_as_fast {
        return spin(((u128::from(ns) * u128::from(PASSES.load(Relaxed))) >> 16) as u64);
    }
    // A neighbour slows it down, and a long spin would overshoot by as much.
    let longest = if guest::is_guest() { 5_000 } else { 100_000 };
    let begin = cpu();
    loop {
        let used = cpu() - begin + read;
        if used >= ns {
            return;
        }
        // The last twentieth is left to the next look, so that a spin that is slower than the trial was does not overshoot by more.
        let left = (ns - used).min(longest);
        guest::next_cpu();
        spin((((left - left / 20) * PASSES.load(Relaxed)) >> 16).max(1));
        if left <= 2 * read {
            return;
        }
    }
}

fn spin(passes: u64) {
    for pass in 0..passes {
        std::hint::black_box(pass);
    }
}
