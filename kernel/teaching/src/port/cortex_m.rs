//! A Cortex-M4: QEMU's board `mps2-an386`. Tasks use the process stack, traps the main one.

use crate::kernel::TICK_NS;
use core::arch::{asm, global_asm};
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicU32, Ordering};

const UART: *mut u32 = 0x4000_4000 as *mut u32;
/// SysTick: control, the value to begin from, the value. It counts down, one in 40 ns.
const SYSTICK: *mut u32 = 0xe000_e010 as *mut u32;
const PENDING: *mut u32 = 0xe000_ed04 as *mut u32;
const NS: u64 = 40;
/// How many of them a tick is.
const WRAP: u32 = TICK_NS as u32 / NS as u32;

static WRAPS: AtomicU32 = AtomicU32::new(0);

// The hardware stores r0 to r3, r12, lr, pc and the flags on the stack of the task; a trap the rest
// below them. It gives `trap` their place, and loads those of the place that it returns.
global_asm!(
    ".section .vectors, \"a\"",
    ".word main_stack_end, reset, fault, fault, fault, fault, fault",
    ".word 0, 0, 0, 0, called, 0, 0, 0, ticked",
    ".text",
    ".globl reset",
    ".thumb_func",
    "reset: ldr r0, =boot_stack_end",
    "msr psp, r0",
    "movs r0, #2",
    "msr control, r0",
    "isb",
    "bl boot",
    ".thumb_func",
    "fault: b fault",
    ".thumb_func",
    "called: movs r1, #1",
    "b 1f",
    ".thumb_func",
    "ticked: movs r1, #0",
    "1: mrs r0, psp",
    "stmdb r0!, {{r4-r11}}",
    "push {{r3, lr}}",
    "bl trap",
    "ldmia r0!, {{r4-r11}}",
    "msr psp, r0",
    "pop {{r3, pc}}",
    ".bss",
    ".align 3",
    ".skip 262144",
    "boot_stack_end: .skip 8192",
    "main_stack_end:",
);

/// What a task has saved: as if a trap had stopped it before its first instruction.
pub fn prepare(stack: &mut [usize], start: extern "C" fn(usize) -> !, argument: usize) -> usize {
    let frame = stack.len() - 16;
    stack[frame + 8] = argument;
    stack[frame + 14] = start as usize & !1;
    stack[frame + 15] = 1 << 24; // Thumb
    stack[frame..].as_ptr() as usize
}

/// The number and the argument of a call: r0 and r1.
pub fn arguments(frame: &[usize]) -> (usize, usize) {
    (frame[8], frame[9])
}

pub fn call(number: usize, argument: usize) {
    // SAFETY: the trap saves all registers.
    unsafe { asm!("svc 0", in("r0") number, in("r1") argument) };
}

pub fn now_ns() -> u64 {
    // SAFETY: the clock of this machine.
    let (value, is_pending) = unsafe {
        let value = read_volatile(SYSTICK.add(2));
        (value, read_volatile(PENDING) >> 26 & 1 == 1)
    };
    // SAFETY: as above. It wrapped, and that is not counted yet: read it again.
    let value = if is_pending { unsafe { read_volatile(SYSTICK.add(2)) } } else { value };
    let wraps = WRAPS.load(Ordering::Relaxed) + u32::from(is_pending);
    (u64::from(wraps) * u64::from(WRAP) + u64::from(WRAP - 1 - value)) * NS
}

/// The clock starts with the ticks: each time it wraps is one.
pub fn start_ticks() {
    // SAFETY: the port and the timer of this machine.
    unsafe {
        write_volatile(UART.add(2), 1);
        write_volatile(SYSTICK.add(1), WRAP - 1);
        write_volatile(SYSTICK.add(2), 0);
        write_volatile(SYSTICK, 7);
        while read_volatile(SYSTICK.add(2)) == 0 {}
    }
}

pub fn ticked() {
    WRAPS.store(WRAPS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Waits for an interrupt, and takes it.
pub fn idle() {
    // SAFETY: interrupts are taken here, and only here outside of tasks.
    unsafe { asm!("wfi", "cpsie i", "isb", "cpsid i") };
}

pub fn write(byte: u8) {
    // SAFETY: the emulated port is never busy for long.
    unsafe {
        while read_volatile(UART.add(1)) & 1 == 1 {}
        write_volatile(UART, u32::from(byte));
    }
}

/// Asks the emulator to end (semihosting: the application has exited).
pub fn off() -> ! {
    // SAFETY: the machine ends here.
    unsafe { asm!("bkpt 0xab", in("r0") 0x18, in("r1") 0x20026) };
    loop {}
}

/// Marks are for `schedlab image`, which runs x86.
pub fn mark(_is_begin: bool) {}
