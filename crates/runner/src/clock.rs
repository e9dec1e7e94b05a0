//! The clock of a run, the CPU time of a task, and the loop that uses CPU time.
//!
//! In a guest the clock is the time-stamp counter: under QEMU's instruction counting it advances by
//! one for each instruction. On a real machine it is `CLOCK_MONOTONIC`.

use crate::guest;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Passes of [`spin`] in 65,536 ns of CPU time; 0 before [`calibrate`].
static PASSES: AtomicU64 = AtomicU64::new(0);
/// The CPU time of a clock read, in nanoseconds.
static READ: AtomicU64 = AtomicU64::new(0);

/// How many nanoseconds an instruction takes; 0 where that is not known.
static INSTRUCTION: AtomicU64 = AtomicU64::new(0);

/// Takes it that an instruction takes so long, whatever runs.
pub fn set_instruction(ns: u64) {
    INSTRUCTION.store(ns, Relaxed);
}

/// The clock, in nanoseconds.
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if guest::is_guest() {
        // SAFETY: every x86-64 CPU has the counter.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    read(libc::CLOCK_MONOTONIC)
}

/// A clock of the kernel, in nanoseconds; 0 if there is no such clock.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time` only.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Marks the begin or the end of a window for the QEMU plugin: a no-operation with a number in it
/// that no other instruction has.
///
/// It executes with and without a plugin, so the plugin changes no count.
#[cfg(target_arch = "x86_64")]
pub fn mark(begin: bool) {
    // SAFETY: `nopw 0x5ced1ab0(%rax,%rax,1)` and the same with 1: no-operations, whatever is in the
    // register.
    unsafe {
        match begin {
            true => std::arch::asm!(
                ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb0, 0x1a, 0xed, 0x5c",
                options(nomem, nostack, preserves_flags)
            ),
            false => {
                std::arch::asm!(
                    ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb1, 0x1a, 0xed, 0x5c",
                    options(nomem, nostack, preserves_flags)
                )
            }
        }
    }
}

/// Makes QEMU's plugin run the CPUs in lockstep from here on.
#[cfg(target_arch = "x86_64")]
pub fn begin_lockstep() {
    // SAFETY: as of `mark`, with 2.
    unsafe {
        std::arch::asm!(
            ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb2, 0x1a, 0xed, 0x5c",
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Only a guest has CPUs in lockstep.
#[cfg(not(target_arch = "x86_64"))]
pub fn begin_lockstep() {}

/// Only guests have a plugin.
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

/// Measures how fast this CPU spins.
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

/// A timer tick of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    /// The clock when it began.
    pub ns: u64,
    /// How long it kept this CPU.
    pub took_ns: u64,
}

/// The last tick of the kernel; `None` if none is found. No interface reports ticks, so this reads
/// the clock for three periods: what keeps this CPU from it once each period is the tick.
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
    let is_again =
        |gap: &Tick| gaps.iter().any(|other| (other.ns + period).abs_diff(gap.ns) < INEXACT);
    let last = gaps.iter().copied().rev().find(is_again)?;
    let is_tick = |gap: &&Tick| {
        (last.ns - gap.ns) % period < INEXACT || (last.ns - gap.ns) % period > period - INEXACT
    };
    // Other work at a tick makes it longer.
    let took_ns =
        gaps.iter().filter(|gap| gap.ns <= last.ns).filter(is_tick).map(|gap| gap.took_ns).min()?;
    Some(Tick { took_ns, ..last })
}

/// Uses `ns` of CPU time, measured by the task's own CPU clock.
pub fn burn(ns: u64) {
    let read = READ.load(Relaxed);
    match INSTRUCTION.load(Relaxed) {
        0 => {}
        instruction => return run_instructions(ns / instruction),
    }
    // Either a clock read would be the larger part, or the CPU is always as fast as in the trial,
    // however often the task is interrupted.
    if ns <= 8 * read || guest::is_guest() {
        return spin(((u128::from(ns) * u128::from(PASSES.load(Relaxed))) >> 16) as u64);
    }
    // A busy neighbour slows the CPU down, and a long spin would overshoot by as much.
    const LONGEST: u64 = 100_000;
    let begin = cpu();
    loop {
        let used = cpu() - begin + read;
        if used >= ns {
            return;
        }
        // The last twentieth is left to the next pass, so that a spin slower than the trial does
        // not overshoot by more.
        let left = (ns - used).min(LONGEST);
        spin((((left - left / 20) * PASSES.load(Relaxed)) >> 16).max(1));
        if left <= 2 * read {
            return;
        }
    }
}

/// Runs as many instructions, in pairs.
pub fn run_instructions(count: u64) {
    #[cfg(target_arch = "x86_64")]
    if count >= 2 {
        // SAFETY: it counts a register down to zero.
        unsafe {
            std::arch::asm!("2:", "dec {0}", "jnz 2b", inout(reg) count / 2 => _, options(nomem, nostack));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    spin(count);
}

fn spin(passes: u64) {
    for pass in 0..passes {
        std::hint::black_box(pass);
    }
}
