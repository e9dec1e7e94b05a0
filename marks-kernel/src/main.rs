//! The smallest kernel that schedules: eight tasks, a ready queue of `readyq`, no hardware but a
//! timer that is never set. It marks what it does for `schedlab image` (docs/marks.md).
//!
//! ```sh
//! (cd marks-kernel && cargo build --offline)
//! schedlab image marks-kernel/target/x86_64-unknown-none/debug/marks-kernel
//! ```
#![no_std]
#![no_main]

mod start;

use core::arch::asm;
use core::fmt::{self, Write};
use core::hint::black_box;
use readyq::{Level, Node, Nodes, RbTree, ReadyQueue, RoundRobin, Strides, TaskId};

const TASKS: u32 = 8;
const SLICES: u32 = 1_000;

/// A mark: `rdtsc` puts the time where it is expected, and the no-operation makes the mark.
macro_rules! mark {
    ($kind:literal, $number:expr) => {
        // SAFETY: it reads the clock and does nothing.
        unsafe {
            asm!(
                "rdtsc",
                concat!(".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, ", $kind, ", 0x1a, 0xed, 0x5c"),
                in("rdi") u64::from($number), out("rax") _, out("rdx") _,
                options(nomem, nostack, preserves_flags)
            )
        }
    };
}

/// Windows: nothing, a known number of instructions, slices under two ready queues.
#[unsafe(no_mangle)]
extern "C" fn boot() -> ! {
    mark!("0xb0", 0u32);
    mark!("0xb1", 0u32);
    mark!("0xb0", 1u32);
    // SAFETY: a loop of two instructions, 10,000 times.
    unsafe { asm!("2:", "dec {count}", "jnz 2b", count = inout(reg) 10_000u64 => _) };
    mark!("0xb1", 1u32);
    let hash = slices(2, RoundRobin::new());
    let other = slices(3, RbTree::new(Strides::Linear));
    let _ = writeln!(Console, "{TASKS} tasks, {SLICES} slices, order {hash:08x} and {other:08x}");
    switch_off();
}

/// Runs [`SLICES`] slices, with an event for each hundredth; the order of the tasks as a hash.
fn slices(window: u32, mut queue: impl ReadyQueue) -> u32 {
    let mut slab = [Node::NEW; TASKS as usize];
    let nodes = Nodes::from_mut(&mut slab);
    (0..TASKS).for_each(|task| queue.insert(nodes, TaskId(task), Level(task as u16)));
    let mut hash = 0u32;
    mark!("0xb0", window);
    for slice in 0..SLICES {
        let Some(task) = queue.pop(nodes) else { break };
        hash = hash.rotate_left(5) ^ task.0;
        queue.insert(nodes, black_box(task), Level(task.0 as u16));
        if slice % 100 == 0 {
            mark!("0xb3", task.0);
        }
    }
    mark!("0xb1", window);
    hash
}

/// The emulator's debug console.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the port takes one byte at a time and is never busy.
            unsafe { asm!("out 0xe9, al", in("al") byte, options(nomem, nostack)) };
        }
        Ok(())
    }
}

/// Resets the machine through the keyboard's controller, which ends the run.
fn switch_off() -> ! {
    loop {
        // SAFETY: the machine ends here.
        unsafe { asm!("out 0x64, al", in("al") 0xfeu8, options(nomem, nostack)) };
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    switch_off()
}
