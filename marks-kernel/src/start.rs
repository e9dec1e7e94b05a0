//! From where the loader leaves the CPU to `boot` in 64 bits: as the teaching kernel begins.

core::arch::global_asm!(
    include_str!("../../kernel/teaching/src/port/x86_start.s"),
    options(att_syntax)
);
