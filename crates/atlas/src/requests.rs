//! Valgrind's client requests: a program under valgrind controls the tool with instruction
//! sequences that do nothing elsewhere.
//!
//! The magic sequences are those of `valgrind.h`, the numbers those of `callgrind.h`; both are part
//! of valgrind's stable interface.

const RUNNING_ON_VALGRIND: usize = 0x1001;
const CALLGRIND: usize = (b'C' as usize) << 24 | (b'T' as usize) << 16;
const ZERO_STATS: usize = CALLGRIND + 1;
const DUMP_STATS_AT: usize = CALLGRIND + 3;
const START_INSTRUMENTATION: usize = CALLGRIND + 4;
const STOP_INSTRUMENTATION: usize = CALLGRIND + 5;

/// Whether this process runs under valgrind.
pub fn under_valgrind() -> bool {
    request(RUNNING_ON_VALGRIND, 0) > 0
}

/// Starts or stops counting.
pub fn instrument(on: bool) {
    request(if on { START_INSTRUMENTATION } else { STOP_INSTRUMENTATION }, 0);
}

/// Resets the counters.
pub fn zero() {
    request(ZERO_STATS, 0);
}

/// Writes the counts to a file with `name` in it.
pub fn dump(name: &std::ffi::CStr) {
    request(DUMP_STATS_AT, name.as_ptr() as usize);
}

#[cfg(target_arch = "x86_64")]
fn request(code: usize, argument: usize) -> usize {
    let words: [usize; 6] = [code, argument, 0, 0, 0, 0];
    let mut result = 0usize;
    // SAFETY: four rotations by 128 bits in total leave rdi unchanged, and exchanging rbx with
    // itself does nothing; valgrind reads `words` and sets rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") words.as_ptr(), inout("rdx") result, options(nostack)
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
fn request(code: usize, argument: usize) -> usize {
    let words: [usize; 6] = [code, argument, 0, 0, 0, 0];
    let mut result = 0usize;
    // SAFETY: as above, with x12 and x10.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") words.as_ptr(), inout("x3") result, options(nostack)
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn request(_code: usize, _argument: usize) -> usize {
    0
}
