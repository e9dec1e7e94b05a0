//! Hides a value from the optimiser.

/// Returns `value` without any instruction; the compiler cannot know that it is unchanged.
#[inline(always)]
pub(super) fn opaque(mut value: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assembly contains only a comment.
    unsafe {
        std::arch::asm!("/* {0:e} */", inout(reg) value, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        value = std::hint::black_box(value);
    }
    value
}
