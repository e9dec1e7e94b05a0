//! RISC-V of 32 bits: QEMU's machine `virt`, in machine mode.

use crate::kernel::TICK_NS;
use core::arch::{asm, global_asm};
use core::ptr::{read_volatile, write_volatile};

const UART: *mut u8 = 0x1000_0000 as *mut u8;
const POWER: *mut u32 = 0x0010_0000 as *mut u32;
/// The clock, 10 MHz, and the time of the next interrupt, as two words each.
const TIME: *mut u32 = 0x0200_bff8 as *mut u32;
const NEXT: *mut u32 = 0x0200_4000 as *mut u32;
const HERTZ: u64 = 10_000_000;

// A trap stores all registers but sp below the stack, gives `trap` their place, and loads those of
// the place that it returns. x0 is zero, and its place holds the address to go on at.
global_asm!(
    ".section .text.reset",
    ".globl reset",
    "reset: la sp, boot_stack_end",
    "la t0, entry",
    "csrw mtvec, t0",
    "j boot",
    ".text",
    ".align 4",
    "entry: addi sp, sp, -128",
    ".irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "sw x\\n, \\n * 4(sp)",
    ".endr",
    "csrr t0, mepc",
    "csrr a1, mcause",
    "srli a1, a1, 31",
    "xori a1, a1, 1", // 1: a call, not the timer
    "slli t1, a1, 2", // behind the ecall, of four bytes
    "add t0, t0, t1",
    "sw t0, 0(sp)",
    "mv a0, sp",
    "call trap",
    "mv sp, a0",
    "lw t0, 0(sp)",
    "csrw mepc, t0",
    ".irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "lw x\\n, \\n * 4(sp)",
    ".endr",
    "addi sp, sp, 128",
    "mret",
    ".bss",
    ".align 4",
    ".skip 262144",
    "boot_stack_end:",
);

/// What a task has saved: as if a trap had stopped it before its first instruction.
pub fn prepare(stack: &mut [usize], start: extern "C" fn(usize) -> !, argument: usize) -> usize {
    let frame = stack.len() - 32;
    stack[frame] = start as usize;
    stack[frame + 10] = argument;
    stack[frame..].as_ptr() as usize
}

/// The number and the argument of a call: a0 and a1.
pub fn arguments(frame: &[usize]) -> (usize, usize) {
    (frame[10], frame[11])
}

pub fn call(number: usize, argument: usize) {
    // SAFETY: the trap saves all registers.
    unsafe { asm!("ecall", in("a0") number, in("a1") argument) };
}

pub fn now_ns() -> u64 {
    loop {
        // SAFETY: the clock of this machine, read twice as it is of two words.
        let (high, low, again) = unsafe {
            (read_volatile(TIME.add(1)), read_volatile(TIME), read_volatile(TIME.add(1)))
        };
        if high == again {
            return (u64::from(high) << 32 | u64::from(low)) * (1_000_000_000 / HERTZ);
        }
    }
}

pub fn start_ticks() {
    ticked();
    // SAFETY: the timer may interrupt where interrupts are taken.
    unsafe { asm!("csrs mie, {timer}", timer = in(reg) 1 << 7) };
}

/// After an interrupt of the timer: the next one is at the next multiple of a tick.
pub fn ticked() {
    let next = (now_ns() / TICK_NS + 1) * (TICK_NS * HERTZ / 1_000_000_000);
    // SAFETY: the timer of this machine; the high word is never too early on the way.
    unsafe {
        write_volatile(NEXT.add(1), u32::MAX);
        write_volatile(NEXT, next as u32);
        write_volatile(NEXT.add(1), (next >> 32) as u32);
    }
}

/// Waits for an interrupt, and takes it.
pub fn idle() {
    // SAFETY: interrupts are taken here, and only here outside of tasks.
    unsafe { asm!("wfi", "csrsi mstatus, 8", "csrci mstatus, 8") };
}

pub fn write(byte: u8) {
    // SAFETY: the emulated port is never busy.
    unsafe { write_volatile(UART, byte) };
}

pub fn off() -> ! {
    // SAFETY: the machine ends here.
    unsafe { write_volatile(POWER, 0x5555) };
    loop {}
}

/// Marks are for `schedlab image`, which runs x86.
pub fn mark(_is_begin: bool) {}
