//! x86-64 without an operating system, as `schedlab image` starts it: the time stamp counter counts
//! nanoseconds, and an instruction takes one.

use crate::kernel::TICK_NS;
use core::arch::{asm, global_asm};

/// The timer (8254) and the interrupt controllers (8259): ports.
const TIMER: [u16; 2] = [0x43, 0x40];
const CONTROLLERS: [u16; 2] = [0x20, 0xa0];
const TICK: u8 = 0x20;
const CALL: u8 = 0x80;

global_asm!(include_str!("x86_start.s"), options(att_syntax));
global_asm!(include_str!("x86.s"), options(att_syntax));

unsafe extern "C" {
    fn ticked_entry();
    fn called_entry();
}

/// The table of interrupts: 129 gates of two words.
static mut GATES: [[u64; 2]; 129] = [[0; 2]; 129];

fn out(port: u16, byte: u8) {
    // SAFETY: the devices of this machine, as their manuals have it.
    unsafe { asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) };
}

/// What a task has saved: as if a trap had stopped it before its first instruction.
pub fn prepare(stack: &mut [usize], start: extern "C" fn(usize) -> !, argument: usize) -> usize {
    let frame = stack.len() - 22;
    stack[frame + 13] = argument; // rdi
    let stack_pointer = stack[stack.len() - 1..].as_ptr() as usize;
    // The instruction, code segment, flags with interrupts, stack, data segment.
    stack[frame + 15..frame + 20].copy_from_slice(&[start as usize, 8, 0x202, stack_pointer, 16]);
    stack[frame..].as_ptr() as usize
}

/// The number and the argument of a call: rdi and rsi.
pub fn arguments(frame: &[usize]) -> (usize, usize) {
    (frame[13], frame[14])
}

pub fn call(number: usize, argument: usize) {
    // SAFETY: the trap saves all registers.
    unsafe { asm!("int 0x80", in("rdi") number, in("rsi") argument) };
}

pub fn now_ns() -> u64 {
    // SAFETY: it reads the clock.
    unsafe { core::arch::x86_64::_rdtsc() }
}

pub fn start_ticks() {
    let gate = |entry: unsafe extern "C" fn()| {
        let at = entry as usize as u64;
        [at & 0xffff | 8 << 16 | 0x8e << 40 | (at >> 16 & 0xffff) << 48, at >> 32]
    };
    let count = (TICK_NS * 1_193_182 / 1_000_000_000) as u16;
    // SAFETY: interrupts are not taken yet, and nothing else has the table.
    unsafe {
        GATES[TICK as usize] = gate(ticked_entry);
        GATES[CALL as usize] = gate(called_entry);
        let table = [(size_of::<[[u64; 2]; 129]>() as u64 - 1) << 48, (&raw const GATES) as u64];
        asm!("lidt [{}]", in(reg) (table.as_ptr() as usize + 6));
    }
    // Begin, with vectors from 0x20 on, one controller behind the other; only the timer interrupts.
    for (port, words) in CONTROLLERS.into_iter().zip([[0x11, TICK, 4, 1], [0x11, 0x28, 2, 1]]) {
        out(port, words[0]);
        words[1..].iter().for_each(|&word| out(port + 1, word));
        out(port + 1, if port == 0x20 { 0xfe } else { 0xff });
    }
    out(TIMER[0], 0x34);
    count.to_le_bytes().into_iter().for_each(|byte| out(TIMER[1], byte));
}

pub fn ticked() {
    out(CONTROLLERS[0], 0x20);
}

/// Waits for an interrupt, and takes it.
pub fn idle() {
    // SAFETY: interrupts are taken here, and only here outside of tasks.
    unsafe { asm!("sti", "hlt", "cli") };
}

pub fn write(byte: u8) {
    out(0xe9, byte);
}

/// Resets the machine, which ends the run.
pub fn off() -> ! {
    loop {
        out(0x64, 0xfe);
    }
}

/// A mark of `schedlab image` (docs/marks.md): window 1 begins, or ends.
pub fn mark(is_begin: bool) {
    // SAFETY: it reads the clock and does nothing.
    unsafe {
        if is_begin {
            asm!("rdtsc", ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb0, 0x1a, 0xed, 0x5c",
                 in("rdi") 1u64, out("rax") _, out("rdx") _);
        } else {
            asm!("rdtsc", ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0xb1, 0x1a, 0xed, 0x5c",
                 in("rdi") 1u64, out("rax") _, out("rdx") _);
        }
    }
}
