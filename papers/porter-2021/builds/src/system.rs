//! What Linux does for a process: it puts the words on the stack, and it ends it.

use core::arch::{asm, global_asm};
use core::ffi::CStr;

#[cfg(target_arch = "x86_64")]
global_asm!(".global _start", "_start: mov rdi, rsp", "and rsp, -16", "call {0}", sym start);
#[cfg(target_arch = "riscv64")]
global_asm!(".global _start", "_start: mv a0, sp", "andi sp, sp, -16", "call {0}", sym start);
#[cfg(target_arch = "aarch64")]
global_asm!(".global _start", "_start: mov x0, sp", "bl {0}", sym start);
#[cfg(target_arch = "arm")]
global_asm!(".global _start", ".thumb_func", "_start: mov r0, sp", "bl {0}", sym start);

/// The words begin at `stack`: their number, then a pointer to each.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    let mut words: [&[u8]; 5] = [&[]; 5];
    // SAFETY: Linux promises it of every new process.
    let count = unsafe { *stack };
    for (index, word) in words.iter_mut().enumerate().take(count) {
        // SAFETY: as above.
        *word = unsafe { CStr::from_ptr(*stack.add(1 + index) as *const _) }.to_bytes();
    }
    end(if count == words.len() { super::run(&words) } else { 2 })
}

/// Ends the process.
pub fn end(status: u8) -> ! {
    loop {
        // SAFETY: the system call `exit`, which does not come back.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("syscall", in("rax") 60, in("rdi") u64::from(status), options(nostack));
            #[cfg(target_arch = "riscv64")]
            asm!("ecall", in("a7") 93, in("a0") u64::from(status), options(nostack));
            #[cfg(target_arch = "aarch64")]
            asm!("svc 0", in("x8") 93, in("x0") u64::from(status), options(nostack));
            // r7 is the frame pointer there, and may not be named.
            #[cfg(target_arch = "arm")]
            asm!("mov r12, r7", "movs r7, #1", "svc 0", "mov r7, r12", in("r0") u32::from(status), out("r12") _, options(nostack));
        }
    }
}
